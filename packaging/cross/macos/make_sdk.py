#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes what clang and lld need to build for macOS or iOS: headers from headers.txt, the system's library and Jansson's from
symbols.txt, a compiler's command and a file for Meson's --cross-file. Jansson's header is Debian's.

usage: make_sdk.py arm64|x86_64|ios CLANG LLD FOLDER
"""
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# (processor, clang's target, that of the system's library)
MACHINES = {
    "arm64": ("arm64", "arm64-apple-macos13", "arm64-macos"),
    "x86_64": ("x86_64", "x86_64-apple-macos13", "x86_64-macos"),
    "ios": ("arm64", "arm64-apple-ios16.0", "arm64-ios"),
}


def put(path, text, mode=0o644):
    """A file that is as it should be keeps its time, so that nothing is compiled again."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.exists(path) and open(path, encoding="utf-8").read() == text:
        return
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)


def headers(folder):
    """A file of each part of headers.txt, and one that includes it for each further name."""
    text = open(os.path.join(HERE, "headers.txt"), encoding="utf-8").read()
    parts = re.split(r"^// --- (.*)\n", text, flags=re.M)[1:]
    for names, body in zip(parts[::2], parts[1::2]):
        first, *others = names.split(", ")
        common = "" if first == "macos_types.h" else "#include <macos_types.h>\n"
        put(os.path.join(folder, first), f"#pragma once\n{common}{body}")
        for other in others:
            put(os.path.join(folder, other), f"#include <{first}>\n")


def symbols(machine):
    """Those of symbols.txt; with a star they have another name on x86-64."""
    names = [line.strip() for line in open(os.path.join(HERE, "symbols.txt"), encoding="utf-8")]
    names = [name for name in names if name and not name.startswith("#")]
    suffix = "$INODE64" if machine == "x86_64" else ""
    return ["_" + name.rstrip("*") + (suffix if name.endswith("*") else "") for name in names] + ["dyld_stub_binder"]


def library(path, target, name, names):
    """What the linker needs to know of a dynamic library."""
    quoted = ", ".join(f"'{n}'" for n in names)
    put(path, f"""--- !tapi-tbd
tbd-version: 4
targets: [ {target} ]
install-name: '{name}'
exports:
  - targets: [ {target} ]
    symbols: [ {quoted} ]
...
""")


def jansson(folder, target, names):
    for header in ("jansson.h", "jansson_config.h"):
        shutil.copy2(os.path.join("/usr/include", header), os.path.join(folder, "usr/include"))
    library(os.path.join(folder, "usr/lib/libjansson.tbd"), target, "/opt/homebrew/opt/jansson/lib/libjansson.4.dylib", names)
    put(os.path.join(folder, "usr/lib/pkgconfig/jansson.pc"),
        f"Name: jansson\nDescription: JSON\nVersion: 2.14\nLibs: -L{folder}/usr/lib -ljansson\n")


def main():
    machine, clang, lld, folder = sys.argv[1:]
    folder = os.path.abspath(folder)
    processor, target, system = MACHINES[machine]
    headers(os.path.join(folder, "usr/include"))
    names = symbols(machine)
    library(os.path.join(folder, "usr/lib/libSystem.tbd"), system, "/usr/lib/libSystem.B.dylib",
            [n for n in names if not n.startswith("_json_")])
    jansson(folder, system, [n for n in names if n.startswith("_json_")])
    # Meson tells lld for Mach-O from others by what it writes when it is asked for its version.
    put(os.path.join(folder, "cc"), f"""#!/bin/sh
case " $* " in *" -Wl,-v "*) echo ld64.lld >&2 ;; esac
exec {clang} -target {target} -isysroot {folder} -Wno-unused-command-line-argument -fuse-ld={lld} -mlinker-version=705 "$@"
""", 0o755)
    family = {"arm64": "aarch64"}.get(processor, processor)
    subsystem = "ios" if machine == "ios" else "macos"
    put(os.path.join(folder, "cross.ini"), f"""[binaries]
c = '{folder}/cc'
ar = 'llvm-ar-14'
strip = 'llvm-strip-14'
pkgconfig = 'pkg-config'
[properties]
pkg_config_libdir = '{folder}/usr/lib/pkgconfig'
[host_machine]
system = 'darwin'
subsystem = '{subsystem}'
cpu_family = '{family}'
cpu = '{processor}'
endian = 'little'
""")


main()
