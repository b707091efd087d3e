#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The library's sources are in C as musl's headers have it too: each is parsed, and checked, but not compiled, which takes seconds
instead of minutes. Speaks TAP.

Usage: check_musl.py BUILD_ROOT MUSL_GCC"""
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys

BUILD, COMPILER = sys.argv[1:3]


def arguments(entry):
    """Of the build's own command what says how to read the file: folders, definitions and the language."""
    words, kept = shlex.split(entry["command"]), []
    for place, word in enumerate(words):
        if word in ("-I", "-isystem", "-D"):
            kept += [word, words[place + 1]]
        elif word.startswith(("-I", "-D", "-std=", "-m", "-W")) and not word.startswith("-Wl,"):
            kept.append(word)
    # Headers of other packages are those of the other C library, beside which musl's are not meant to be.
    return [word for word in kept if not word.startswith("-I/usr")]


def parse(entry):
    done = subprocess.run([COMPILER, "-fsyntax-only", "-Werror", *arguments(entry), entry["file"]], cwd=entry["directory"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return entry["file"], done.returncode, done.stdout


def main():
    with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as stream:
        entries = {entry["file"]: entry for entry in json.load(stream)
                   if entry["output"].startswith("core/lib/libggml") and entry["file"].startswith("../core/")}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        failed = [(file, text) for file, code, text in pool.map(parse, entries.values()) if code != 0]
    # Of another package, which the C library beside has: where there are none, these files are not compiled.
    failed = [(file, text) for file, text in failed if "hwloc.h: No such file" not in text]
    print("1..1")
    good = len(entries) > 100 and not failed
    print("ok" if good else "not ok", f"1 - {len(entries)} sources of the library are C with musl's headers")
    for file, text in failed:
        print("".join(f"# {line[:200]}\n" for line in [file, *text.splitlines()[:6]]), end="")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
