#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes what clang and lld need to build for macOS or iOS: headers from headers.txt, the system's library from symbols.txt, a
compiler's command and a file for Meson's --cross-file.

usage: make_sdk.py arm64|x86_64|ios CLANG LLD FOLDER
"""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# (processor, clang's target, that of the system's library)
MACHINES = {
    "arm64": ("arm64", "arm64-apple-macos13", "arm64-macos"),
    "x86_64": ("x86_64", "x86_64-apple-macos13", "x86_64-macos"),
    "ios": ("arm64", "arm64-apple-ios16.0", "arm64-ios"),
}


def put(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
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


def main():
    machine, clang, lld, folder = sys.argv[1:]
    folder = os.path.abspath(folder)
    processor, target, library = MACHINES[machine]
    headers(os.path.join(folder, "usr/include"))
    quoted = ", ".join(f"'{name}'" for name in symbols(machine))
    put(os.path.join(folder, "usr/lib/libSystem.tbd"), f"""--- !tapi-tbd
tbd-version: 4
targets: [ {library} ]
install-name: '/usr/lib/libSystem.B.dylib'
exports:
  - targets: [ {library} ]
    symbols: [ {quoted} ]
...
""")
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
[host_machine]
system = 'darwin'
subsystem = '{subsystem}'
cpu_family = '{family}'
cpu = '{processor}'
endian = 'little'
""")


main()
