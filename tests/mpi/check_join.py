#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Nodes of other jobs join a program, compute and leave; one of another version, and a file that others may write to, do not
get in. Speaks TAP; skipped without ompi-server.

Usage: check_join.py RUN.SH TEST-MPI GGML-NODE NODE-OF-A-LATER-MAJOR-VERSION NODE-OF-AN-OLDER-VERSION"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import check, finish  # noqa: E402

RUN, TEST, NODE, MAJOR, OLDER = sys.argv[1:6]
processes = []


def start(*command, **options):
    process = subprocess.Popen(command, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    processes.append(process)
    return process


def await_file(path, there=True):
    end = time.monotonic() + 40
    while os.path.exists(path) != there and time.monotonic() < end:
        time.sleep(0.01)
    return os.path.exists(path) == there


def joined_by(uri, environment, node, path):
    """A node that has joined a program which was killed then, and its process."""
    program = start("mpirun", "--ompi-server", f"file:{uri}", "-n", "1", TEST, "join-killed", env=environment)
    joined = node(path)
    text = program.communicate(timeout=60)[0]
    found = re.search(r"^node (\d+)$", text, re.MULTILINE)
    check("a program is killed that a node has joined", found, text)
    return joined, found


def tests(folder):
    uri, port = os.path.join(folder, "uri"), os.path.join(folder, "port")
    start("ompi-server", "--no-daemonize", "-r", uri)
    await_file(uri)
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "GGML_MPI_JOIN": port,
                   "TEST_MPI_OPTIONS": f"--ompi-server file:{uri}"}

    def node(program):
        return start("mpirun", "--oversubscribe", "--bind-to", "none", "--ompi-server", f"file:{uri}", "-n", "1", program, "--join", port,
                     env=environment)

    with open(port, "w", encoding="utf-8") as file:
        file.write("not a port\n")
    os.chmod(port, 0o666)
    program = start(RUN, "1", NODE, TEST, "join", env=environment)
    check("a file that others may write to is removed", await_file(port, False))
    other = node(MAJOR)  # alone: the program ends when the two others have left
    refused = other.communicate(timeout=60)[0]
    check("a node of another major version says so", "this node 77.0" in refused and other.returncode != 0, refused)
    first, second = node(NODE), node(NODE)
    text = program.communicate(timeout=100)[0]
    check("two nodes come, compute and leave", program.returncode == 0 and "ok 1 - test_nodes_of_other_jobs" in text, text)
    for name, done in (("first", first), ("second", second)):
        said = done.communicate(timeout=60)[0]
        check(f"the {name} one ends well", done.returncode == 0, said)
    check("the program named what was wrong", "is no file that this user alone writes to" in text and
          "speaks version 77.0 of the protocol" in text, text)
    third, found = joined_by(uri, environment, node, NODE)
    try:
        said = third.communicate(timeout=20)[0]
    except subprocess.TimeoutExpired:
        said = "it is still there"
    check("it sees that its program is gone", third.returncode == 5 and "the program is gone" in said, said)
    third, found = joined_by(uri, environment, node, OLDER)  # as one that can't see the program's process
    time.sleep(1)
    if third.poll() is None and found:
        os.kill(int(found[1]), signal.SIGTERM)
    try:
        said = third.communicate(timeout=20)[0]
    except subprocess.TimeoutExpired:
        said = "it is still there"
    check("its goodbye does not wait for the program for ever", third.returncode == 5, said)
    check("no file is left", sorted(os.listdir(folder)) == ["uri"], os.listdir(folder))


def main():
    if not shutil.which("ompi-server"):
        print("1..0 # SKIP there is no ompi-server")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        try:
            tests(folder)
        finally:
            for process in processes:
                if process.poll() is None:
                    process.terminate()
                process.wait()
    return finish()


if __name__ == "__main__":
    sys.exit(main())
