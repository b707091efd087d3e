#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What takes more than a second says so on a terminal, in each tool, and not elsewhere. Speaks TAP.

Usage: check_terminal.py [--hanging-plugin FILE] PROGRAM..."""
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import check, finish  # noqa: E402

# Program: arguments for which it needs many seconds, and what is then in the line.
LONG = {
    "ggml-bench": (["ops", "--device", "CPU", "--op", "MUL_MAT"], r"measuring ops, \d+ s"),
    "ggml-conformance": (["--device", "CPU"], r"\w+/\S+, \d+ s"),
    "ggml-plugin-check": (["--deadline", "60"], r"\d+ of \d+ checks, \d+ s"),
}


class Run:
    """A program on a terminal, ended as soon as enough was seen."""
    def __init__(self, terminal, *command):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("GGML_")}
        environment.update({"TERM": terminal, "GGML_ALLOW_UNSAFE_PLUGINS": "1"})
        self.ours, theirs = pty.openpty()
        self.seen = ""
        self.started = time.monotonic()
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, start_new_session=True)
        os.close(theirs)

    def read_until(self, pattern, seconds):
        """Whether it was seen; what comes is in .seen."""
        while not re.search(pattern, self.seen) and time.monotonic() - self.started < seconds:
            if not select.select([self.ours], [], [], 0.1)[0]:
                continue
            try:
                piece = os.read(self.ours, 65536)
            except OSError:  # Linux: the other end is closed
                break
            self.seen += piece.decode(errors="replace")
        return re.search(pattern, self.seen)

    def end(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.ours)


def check_progress(commands):
    runs = {name: Run("xterm", *command) for name, command in commands.items()}
    dumb = {name: Run("dumb", *command) for name, command in commands.items()}
    for name, run in runs.items():
        check(f"{name} says on a terminal what it is busy with", run.read_until(r"\r" + LONG[name][1] + r"\x1b\[K", 60), run.seen)
    for name, run in dumb.items():
        check(f"{name} does not where lines can't be written over", not run.read_until(LONG[name][1], 2.5), run.seen)
    for run in [*runs.values(), *dumb.values()]:
        run.end()


def check_rows(bench):
    """Rows come in the place of the progress line, whole."""
    run = Run("xterm", bench, "ops", "--device", "CPU", "--op", "ADD")
    run.read_until(r"\nADD [^\r]*\r\n", 200)
    run.end()
    shown = [re.split(r"\x1b\[K|\r(?!$)", line)[-1].rstrip("\r") for line in run.seen.split("\n")]
    check("rows are whole and have lines of their own", any(line.startswith("CPU: ") for line in shown) and
          any(re.match(r"ADD +f32 .*\d$", line) for line in shown) and not any("measuring" in line for line in shown[:-1]), run.seen)


def main():
    arguments = sys.argv[1:]
    hanging = None
    if arguments[0] == "--hanging-plugin":
        hanging, arguments = arguments[1], arguments[2:]
    programs = {os.path.basename(path): os.path.abspath(path) for path in arguments}
    commands = {name: [path, *LONG[name][0]] for name, path in programs.items() if name != "ggml-plugin-check"}
    if hanging and "ggml-plugin-check" in programs:
        commands["ggml-plugin-check"] = [programs["ggml-plugin-check"], *LONG["ggml-plugin-check"][0], os.path.abspath(hanging)]
    check_progress(commands)
    check_rows(programs["ggml-bench"])
    return finish()


if __name__ == "__main__":
    sys.exit(main())
