#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that what GPU plugins share refers to no driver, and that no plugin's objects refer to those of another one.

usage: check_apart.py BUILD [--shared FOLDER] --folder FOLDER=PREFIX,...
BUILD has compile_commands.json. Names of the folder's functions begin with one of PREFIX. The shared folder
(plugins/gpu) may be used by all; the objects of every folder may need names of their own, of the shared folder and of
libraries, but the shared ones none of a driver."""
import argparse
import os
import re
import subprocess
import sys

from check_layers import read_objects

DRIVERS = re.compile(r"^(vk[A-Z]|volk|cu[A-Z]|nv|cuda|MTL|objc_|OBJC_)")
SANITIZERS = ("__odr_asan", "__asan_", "__tsan_", "__ubsan_")


def read_names(build, folder):
    """Returns (names that the objects of the folder define, names that they need)."""
    objects = [path for _, path in read_objects(build, ["-common.a.", "-image.a.", "-simt.a."], [folder])]
    defined, needed = set(), set()
    for line in subprocess.run(["nm", "-g", *objects], check=True, capture_output=True, text=True).stdout.splitlines():
        words = line.split()
        if len(words) < 2 or words[-1].startswith(SANITIZERS):
            continue  # the name of an object, or a name that a sanitizer makes beside each variable
        (needed if words[-2] in "Uvw" else defined).add(words[-1])
    return defined, needed - defined


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--shared", default="plugins/gpu")
    parser.add_argument("--folder", action="append", default=[])
    arguments = parser.parse_args()
    prefixes = {folder: tuple(names.split(",")) for folder, names in (text.split("=") for text in arguments.folder)}
    names = {folder: read_names(arguments.build, folder) for folder in prefixes}
    problems = []
    for folder, (defined, needed) in names.items():
        if not defined:
            problems.append(f"{folder}: no objects")
        for other, (theirs, _) in names.items():
            if other not in (folder, arguments.shared):
                problems += [f"{folder} needs {name} of {other}" for name in sorted(needed & theirs)]
                problems += [f"{folder} needs {name}, which is named as {other}'s" for name in sorted(needed - theirs)
                             if name.startswith(prefixes[other])]
        problems += [f"{folder} defines {name}, which does not begin with {' or '.join(prefixes[folder])}" for name in sorted(defined)
                     if not name.startswith(prefixes[folder]) and not DRIVERS.match(name)]
    defined, needed = names[arguments.shared]
    problems += [f"{arguments.shared} refers to {name}" for name in sorted(defined | needed) if DRIVERS.match(name)]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
