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
import tempfile

import headers

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import Tap  # noqa: E402

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


# What of a C library the headers name; that of MSVC is not there.
MSVC_LIBRARY = {
    "stdio.h": "typedef struct ggml_test_file FILE;",
    "stdlib.h": "void *malloc(unsigned long long n); void free(void *p); void abort(void);",
    "string.h": "void *memcpy(void *to, const void *from, unsigned long long n);",
}
MSVC_PLUGIN = """#define GGML_PLUGIN_BUILD
#include "ggml-plugin.h"
GGML_PLUGIN_NOTE("msvc", "", "1", 0, 0, 0)
GGML_PLUGIN_EXPORT int32_t ggml_backend_init(const struct ggml_host_table *host, const struct ggml_plugin_table **out);
GGML_PLUGIN_EXPORT int32_t ggml_backend_init(const struct ggml_host_table *host, const struct ggml_plugin_table **out) {
    static struct ggml_plugin_table table;
    (void)host;
    table.note = &ggml_plugin_note_;
    *out = &table;
    return 0;
}
"""


def msvc(tap, abi_dir):
    """A plugin as MSVC compiles one, by clang's imitation: the layouts hold there, and the object has the note."""
    what = "a plugin with a note as MSVC writes it"
    if not shutil.which("clang"):
        tap.skip(what, "no clang")
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, text in MSVC_LIBRARY.items():
            with open(os.path.join(folder, name), "w", encoding="ascii") as file:
                file.write(text + "\n")
        path = os.path.join(folder, "plugin.obj")
        run = subprocess.run(["clang", "--target=x86_64-pc-windows-msvc", "-fms-extensions", "-fms-compatibility",
                              "-fms-compatibility-version=19.30", "-ffreestanding", "-Werror", "-isystem", folder, "-I", abi_dir, "-x", "c",
                              "-c", "-", "-o", path], input=MSVC_PLUGIN, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             universal_newlines=True)
        data = b""
        if run.returncode == 0:
            with open(path, "rb") as file:
                data = file.read()
        tap.ok(b".ggmlnt\0" in data and b"GGMLPLG\x1a" in data, what, run.stdout)


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
    msvc(tap, abi_dir)
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
