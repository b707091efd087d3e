#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes what clang and lld need to build for macOS: headers from headers.txt, the system's library from symbols.txt, a
compiler's command and a file for Meson's --cross-file.

usage: make_sdk.py ARM64|X86_64 CLANG LLD FOLDER
"""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


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
    headers(os.path.join(folder, "usr/include"))
    quoted = ", ".join(f"'{name}'" for name in symbols(machine))
    put(os.path.join(folder, "usr/lib/libSystem.tbd"), f"""--- !tapi-tbd
tbd-version: 4
targets: [ {machine}-macos ]
install-name: '/usr/lib/libSystem.B.dylib'
exports:
  - targets: [ {machine}-macos ]
    symbols: [ {quoted} ]
...
""")
    # Meson tells lld for Mach-O from others by what it writes when it is asked for its version.
    put(os.path.join(folder, "cc"), f"""#!/bin/sh
case " $* " in *" -Wl,-v "*) echo ld64.lld >&2 ;; esac
exec {clang} -target {machine}-apple-macos13 -isysroot {folder} -Wno-unused-command-line-argument -fuse-ld={lld} -mlinker-version=705 "$@"
""", 0o755)
    family = {"arm64": "aarch64"}.get(machine, machine)
    put(os.path.join(folder, "cross.ini"), f"""[binaries]
c = '{folder}/cc'
ar = 'llvm-ar-14'
strip = 'llvm-strip-14'
[host_machine]
system = 'darwin'
cpu_family = '{family}'
cpu = '{machine}'
endian = 'little'
""")


main()
