#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs ggml-conformance as a user would, with what goes wrong. Speaks TAP.

Usage: check_conformance.py PROGRAM [CRASHING_PLUGIN]"""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import check, finish  # noqa: E402

PROGRAM = sys.argv[1]


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, check=False, timeout=120)


def main():
    done = run("--help")
    check("--help explains and succeeds", done.returncode == 0 and done.stdout.startswith("Usage: ggml-conformance"), done)
    check("--version names the version", run("--version").stdout.startswith("ggml-conformance "))
    done = run("--no-such-option")
    check("an unknown option is exit status 2 and named", done.returncode == 2 and "--no-such-option" in done.stderr and
          done.stderr.count("\n") == 1, done)
    done = run("--op", "NOPE")
    check("an unknown operation is exit status 2, and the known ones are named", done.returncode == 2 and
          "NOPE" in done.stderr and "MUL_MAT" in done.stderr and done.stdout == "", done)
    done = run("--case", "nope/1")
    check("an unknown case is said", done.returncode == 1 and "no case is called so" in done.stderr, done)
    done = run("--device", "NOPE")
    check("an unknown device is exit status 3, and the known ones are named", done.returncode == 3 and
          "NOPE" in done.stderr and "CPU" in done.stderr, done)
    if len(sys.argv) > 2:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(sys.argv[2], folder)
            done = run("--plugin-path", folder, "--device", "DEFECT0", "--op", "ADD")
            lines = [line for line in done.stdout.splitlines() if line.startswith("Bail out!")]
            check("a crash names its case", done.returncode != 0 and len(lines) == 1 and "signal 6" in lines[0] and
                  "case ADD/f32" in lines[0], done)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
