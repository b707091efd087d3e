#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What all tools have in common: help, version, wrong usage, names that are not there, and a full disk. Speaks TAP.

Usage: check_exits.py PROGRAM..."""
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import check, finish  # noqa: E402

# Program: arguments that write something within a second; option that names something, exit status, what is listed then.
TOOLS = {
    "ggml-devices": (["--names"], [(["NONE"], 3, "CPU"), (["--device", "NONE"], 3, "CPU"), (["--color", "red"], 2, "never")]),
    "ggml-bench": (["graph", "--nodes", "100", "--runs", "1"],
                   [(["nothing"], 2, "report"), (["ops", "--device", "NONE"], 3, "CPU"), (["model", "--size", "5B"], 2, "0.2B"),
                    (["ops", "--device", "CPU", "--op", "NONE"], 2, "MUL_MAT"), (["ops", "--type", "q9"], 2, " q4_0 "),
                    (["model", "--type", "q9"], 2, " q4_0 "), (["report", "--device", "NONE"], 3, "CPU")]),
    "ggml-bench-mpi": (["--help"], [(["--nodes", "none"], 2, "see ggml-bench mpi --help")]),
    "ggml-conformance": (["--op", "SCALE", "--list"], [(["--device", "NONE"], 3, "CPU"), (["--op", "NOTHING"], 2, "MUL_MAT")]),
    "ggml-plugin-check": (["--list"], [(["--only", "none"], 2, "--list"), (["--format", "xml"], 2, "junit"),
                                         (["--skip", "nope=1"], 2, "nope=1")]),
    "ggml-exec": (["--help"], []),
    "ggml-node": (["--version"], [(["--device", "NONE"], 3, "CPU"), (["something"], 2, "something"), (["--timeout", "-1"], 2, "-1")]),
}
MEASUREMENTS = ["figures", "graph", "isolate", "kernels", "load", "model", "ops", "report", "sched"]  # of ggml-bench
STARTED_AS = {"ggml-bench-mpi": "ggml-bench mpi"}
USAGE = {"ggml-exec": 125}  # as env and timeout have it: other numbers are the program's
FAILED = {"ggml-exec": 125}
# As if mpirun had started it: what is looked for here comes before MPI.
ENVIRONMENT = {"ggml-node": {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}}


def run(program, *arguments, out=subprocess.PIPE):
    return subprocess.run([program, *arguments], text=True, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, timeout=100,
                          check=False, env={**os.environ, **ENVIRONMENT.get(os.path.basename(program), {})})


def on_terminal(columns, *command):
    """What a program writes on a terminal of that width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
                          env={**os.environ, "TERM": "dumb", **ENVIRONMENT.get(os.path.basename(command[0]), {})}) as process:
        shown, ended = b"", False
        # The other end stays open here: Linux may drop what is on its way when the last one is closed.
        while not ended:
            ended = process.poll() is not None
            while select.select([ours], [], [], 0.1)[0]:
                shown += os.read(ours, 65536)
    os.close(theirs)
    os.close(ours)
    return shown.decode().replace("\r\n", "\n")


def check_help(program, *arguments):
    """It fits the terminal, with the same words, options at the begin of lines as they were, and paragraphs that are filled."""
    name = " ".join([os.path.basename(program), *arguments])
    whole = run(program, *arguments, "--help").stdout
    options = [line.split("  ")[1] for line in whole.splitlines() if line.startswith("  -")]
    for columns in (40, 80):
        shown = on_terminal(columns, program, *arguments, "--help")
        lines = shown.splitlines()
        wide = [line for line in lines if len(line) > columns and " " in line.strip()]
        check(f"{name} --help fits {columns} columns", not wide and whole and shown.split() == whole.split() and
              options == [line.split("  ")[1] for line in lines if line.startswith("  -")], wide or shown)


def check_tool(program):
    name = os.path.basename(program)
    writes, unknown = TOOLS[name]
    for option in ("--help", "-h"):
        done = run(program, option)
        check(f"{name} {option} is for the standard output", done.returncode == 0 and done.stdout.startswith(f"Usage: {STARTED_AS.get(name, name)} ") and not done.stderr, done)
    if name not in STARTED_AS:
        done = run(program, "--version")
        check(f"{name} --version names it", done.returncode == 0 and done.stdout.startswith(name + " "), done)
    done = run(program, "--nonsense")
    check(f"{name}: an unknown option is wrong usage, and named", done.returncode == USAGE.get(name, 2) and "--nonsense" in done.stderr and
          not done.stdout, done)
    for arguments, status, listed in unknown:
        done = run(program, *arguments)
        check(f"{name} {' '.join(arguments)}: exit status {status}, and what there is is named", done.returncode == status and listed in done.stderr, done)
    if name not in STARTED_AS:
        check_help(program)
    for measurement in MEASUREMENTS if name == "ggml-bench" else ():
        check_help(program, measurement)
    if os.path.exists("/dev/full"):
        for arguments in (writes, ["--help"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = run(program, *arguments, out=full)
            check(f"{name} {' '.join(arguments)}: a full disk is told", done.returncode == FAILED.get(name, 4) and
                  done.stderr.count("\n") == 1 and "No space left" in done.stderr, done)


def main():
    for program in sys.argv[1:]:
        check_tool(os.path.abspath(program))
    return finish()


if __name__ == "__main__":
    sys.exit(main())
