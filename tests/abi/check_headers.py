# SPDX-License-Identifier: MIT
"""Compiles every public header alone, as C11 and as C++17, without warnings. ggml-plugin.h includes each part of
the contract, of which the note's needs no other.

usage: check_headers.py ABI_DIR CC...
"""
import os
import re
import shutil
import subprocess
import sys

import headers
from tap import Tap

FLAGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
# In C++ a function may not have a struct's name without shadowing its constructor; ggml's API has one.
C_FLAGS = ["-Wshadow", "-Wstrict-prototypes"]
ONLY_CXX = {"ggml-cpp.h"}
# Only plugins that are the CPU have it.
NOT_PARTS = {"ggml-plugin-cpu.h"}


def compiles(tap, compiler, language, standard, abi_dir, header):
    flags = FLAGS + (C_FLAGS if language == "c" else [])
    run = subprocess.run(compiler + ["-std=" + standard, *flags, "-I", abi_dir, "-x", language, "-"],
                         input='#include "%s"\nint unused;\n' % header, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, universal_newlines=True)
    tap.ok(run.returncode == 0, "%s alone as %s with %s" % (header, standard, compiler[-1]), run.stdout)


def included(abi_dir, header):
    with open(os.path.join(abi_dir, header), encoding="utf-8") as file:
        return set(re.findall(r'^#include "([^"]+\.h)"', file.read(), re.M))


def installed(names, *others):
    """Compilers of these names, each once, without those that `others` already are."""
    seen = {os.path.realpath(shutil.which(other) or other) for other in others}
    return [[n] for n in names if shutil.which(n) and os.path.realpath(shutil.which(n)) not in seen]


def main():
    abi_dir, cc = sys.argv[1], sys.argv[2:]
    tap = Tap()
    c_compilers = [cc] + installed(["gcc", "clang"], cc[-1])
    cxx_compilers = installed(["g++", "clang++"])
    for header in sorted(n for n in os.listdir(abi_dir) if n.endswith(".h")):
        for compiler in c_compilers if header not in ONLY_CXX else []:
            compiles(tap, compiler, "c", "c11", abi_dir, header)
        for compiler in cxx_compilers:
            compiles(tap, compiler, "c++", "c++17", abi_dir, header)
    parts = {n for n in os.listdir(abi_dir) if re.fullmatch(r"ggml-plugin-\w+\.h", n)} - NOT_PARTS
    tap.same(sorted(parts - included(abi_dir, "ggml-plugin.h")), [], "ggml-plugin.h includes its %d parts" % len(parts))
    extensions = [n for n in sorted(os.listdir(abi_dir)) if n.startswith("ggml-ext-")]
    tap.same(extensions, headers.EXTENSIONS, "the extensions of the contract are known to its checks")
    tap.same(sorted(included(abi_dir, "ggml-plugin-extensions.h")), extensions, "ggml-plugin-extensions.h includes each")
    tap.same(sorted(included(abi_dir, "ggml-plugin-note.h")), [], "ggml-plugin-note.h needs no other header")
    if not cxx_compilers:
        tap.skip("headers as C++17", "no C++ compiler")
    tap.done()


if __name__ == "__main__":
    main()
