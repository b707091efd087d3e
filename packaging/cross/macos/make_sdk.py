#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes what clang and lld need to build for macOS or iOS: headers from headers.txt, the system's library and, for macOS, hwloc's
and Jansson's from symbols.txt, a compiler's command and a file for Meson's --cross-file. The headers of hwloc, Jansson, Vulkan and
volk are Debian's: they are the same on every system but for what hwloc knows of Linux, which is not asked for.

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


# Homebrew's packages that are linked: headers, where the library is, its version and the prefix of its symbols.
LIBRARIES = {
    "jansson": (["jansson.h", "jansson_config.h"], "/opt/homebrew/opt/jansson/lib/libjansson.4.dylib", "2.14", "_json_"),
    "hwloc": (["hwloc.h", "hwloc", "x86_64-linux-gnu/hwloc"], "/opt/homebrew/opt/hwloc/lib/libhwloc.15.dylib", "2.9.0", "_hwloc_"),
}


def copy_headers(folder, headers):
    """Those below a folder of an architecture lie beside the others here."""
    for header in headers:
        source = os.path.join("/usr/include", header)
        to = os.path.join(folder, "usr/include", header.split("/")[-1])
        if os.path.isdir(source):
            shutil.copytree(source, to, dirs_exist_ok=True)
        else:
            shutil.copy2(source, to)


def package(folder, name, version, libs):
    put(os.path.join(folder, f"usr/lib/pkgconfig/{name}.pc"),
        f"includedir={folder}/usr/include\nName: {name}\nDescription: {name}\nVersion: {version}\nLibs:{libs}\n")


def homebrew(folder, target, names):
    for name, (headers, path, version, prefix) in LIBRARIES.items():
        copy_headers(folder, headers)
        library(os.path.join(folder, f"usr/lib/lib{name}.tbd"), target, path, [n for n in names if n.startswith(prefix)])
        package(folder, name, version, f" -L{folder}/usr/lib -l{name}")
    copy_headers(folder, ["vulkan", "vk_video", "volk.h", "volk.c"])
    package(folder, "vulkan", "1.3.239", "")


def main():
    machine, clang, lld, folder = sys.argv[1:]
    folder = os.path.abspath(folder)
    processor, target, system = MACHINES[machine]
    headers(os.path.join(folder, "usr/include"))
    names = symbols(machine)
    library(os.path.join(folder, "usr/lib/libSystem.tbd"), system, "/usr/lib/libSystem.B.dylib",
            [n for n in names if not n.startswith(tuple(prefix for *_, prefix in LIBRARIES.values()))])
    if machine != "ios":
        homebrew(folder, system, names)
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
