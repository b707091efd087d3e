#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A node with copies of the program's files reads weights from these, where they are the same. Speaks TAP.

Usage: check_files.py RUN.SH TEST-MPI GGML-NODE"""
import os
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import check, finish  # noqa: E402

RUN, TEST, NODE = sys.argv[1:4]
SIZE, OFFSET = 9 << 20, 12345  # as in test_mpi.c


def write(folder, name, data):
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data)


def run(folder, *options):
    environment = {**os.environ, "TEST_FILES": folder, "TEST_NODE_OPTIONS": " ".join(("--verbose", *options))}
    done = subprocess.run([RUN, "1", NODE, TEST, "files"], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100,
                          check=False, env=environment)
    read = re.search(r"read (\d+) bytes of weights from files", done.stderr)
    return done.returncode, int(read.group(1)) if read else None, done.stdout + done.stderr


def main():
    data = bytearray(random.Random(5).randbytes(SIZE))
    with tempfile.TemporaryDirectory() as own, tempfile.TemporaryDirectory() as others:
        for name in ("same", "differs", "missing"):
            write(own, name, data)
        write(others, "same", data)
        data[5 << 20] ^= 1  # in the second piece
        write(others, "differs", data)
        status, read, text = run(own, "--weights", others)
        # Two sets from the same file, and the first piece of the one that differs in the second.
        check("what is the same is read, and all is right", status == 0 and read == 2 * SIZE - OFFSET + (4 << 20), text)
        status, read, text = run(own)
        check("without a directory nothing is", status == 0 and read == 0, text)
    done = subprocess.run([NODE, "--weights", "/nonexistent"], text=True, stderr=subprocess.PIPE, timeout=100, check=False)
    check("a directory that there is not is named", done.returncode == 2 and "no directory: /nonexistent" in done.stderr, done)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
