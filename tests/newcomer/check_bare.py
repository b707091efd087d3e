#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One binary is one file: the sample application, with the library and the CPU plugin in it, in a folder tree that
has nothing else than what it links. Speaks TAP.

Usage: check_bare.py SOURCE_ROOT STATIC_LIBRARY COMPILER...
       check_bare.py SOURCE_ROOT --musl MUSL_GCC    the same with a library that is built with musl"""
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import check, finish, skip  # noqa: E402

SOURCE = os.path.abspath(sys.argv[1])
LIBRARY, COMPILER = sys.argv[2], sys.argv[3:]
C_LIBRARY = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1"}


def build(folder, name, *flags):
    program = os.path.join(folder, name)
    done = subprocess.run([*COMPILER, "-std=c11", "-O1", "-I", os.path.join(SOURCE, "abi"),
                           os.path.join(SOURCE, "tests/clients/one-binary/main.c"), LIBRARY, "-lm", "-ldl", "-pthread",
                           *flags, "-o", program],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=300)
    return program if done.returncode == 0 else None, done.stdout


def libraries(program):
    """Names and paths of what the dynamic linker maps for it."""
    done = subprocess.run(["ldd", program], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    found = re.findall(r"^\s*(\S+)(?: => (\S+))? \(0x", done.stdout, re.M)
    return {os.path.basename(name): path or name for name, path in found if not name.startswith("linux-vdso")}


def run_alone(program, needed):
    """In a tree of folders that holds nothing but the program and its libraries: no /proc, no /sys, no hwloc."""
    with tempfile.TemporaryDirectory(prefix="ggml-bare-") as root:
        for path in needed.values():
            target = root + path
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(path, target)
        shutil.copy(program, os.path.join(root, "app"))
        return subprocess.run(["/app"], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=120,
                              env={"PATH": "/"}, cwd="/", preexec_fn=lambda: (os.chroot(root), os.chdir("/")))


def check_alone(name, program, needed):
    if os.geteuid() != 0:
        skip(name, "only root can change the root folder")
        return
    done = run_alone(program, needed)
    check(name, done.returncode == 0 and "CPU computed [9, 4]" in done.stdout and done.stderr == "", done)


def check_static(folder):
    program, text = build(folder, "app-static", "-static")
    if not program and "cannot find -l" in text:
        skip("fully static", "there is no static C library")
        return
    check("it links without any shared library", program, text)
    if program:
        check("and has none", libraries(program) == {}, libraries(program))
        check_alone("it runs where there is no file at all", program, {})


def build_library(folder):
    """The library with the built-in CPU plugin, and nothing else. Of the CPU plugin's levels plain C and another one: they differ in
    instructions, and not in what they need of the C library, as with less optimisation, which takes a fraction of the time."""
    options = ["tests=false", "tools=false", "docs=false", "dropin=false", "bindings=", "plugin_vulkan=disabled", "plugin_cuda=disabled",
               "plugin_foreign=disabled", "plugin_null=disabled", "mpi=disabled", "buildtype=release", "optimization=1"]
    options += ["cpu_levels=x86-64-v3"] if platform.machine() == "x86_64" else []
    env = {**os.environ, "CC": " ".join(COMPILER)}
    for command in (["meson", "setup", folder, SOURCE, *("-D" + option for option in options)],
                    ["ninja", "-C", folder, "core/lib/libggml.a"]):
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, env=env,
                              timeout=1500)
        if done.returncode != 0:
            return False, done.stdout
    return "warning:" not in done.stdout, done.stdout


def main_musl():
    global LIBRARY
    if os.environ.get("GGML_TEST_MUSL") != "1":
        print("1..0 # SKIP compiling the library takes minutes: GGML_TEST_MUSL=1 does it")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        built, text = build_library(os.path.join(folder, "build"))
        check("the library builds with musl, without a warning", built, text)
        LIBRARY = os.path.join(folder, "build", "core/lib/libggml.a")
        check_static(folder)
    return finish()


def main():
    if LIBRARY == "--musl":
        return main_musl()
    with tempfile.TemporaryDirectory() as folder:
        program, text = build(folder, "app")
        check("the sample application links with the C library alone", program, text)
        if program:
            needed = libraries(program)
            others = {name for name in needed if name not in C_LIBRARY and not name.startswith("ld-")}
            check("it names no other library", needed and not others, needed)
            check_alone("it runs where there is nothing else", program, needed)
        check_static(folder)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
