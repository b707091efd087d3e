#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts the messages for one token of a transformer whose layers lie on two nodes: a figure of the protocol, not of the machine.
Speaks TAP.

Usage: check_messages.py RUN.SH TEST-MPI GGML-NODE"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import check, finish  # noqa: E402

RUN, TEST, NODE = sys.argv[1:4]
NODES, TOKENS, TIMES = 2, 8, (2, 6)
# As counted; quiet sets are not answered. Half a message of room, as a slow run has a ping now and then.
MOST_TAKEN, MOST_ANSWERS, PINGS = 15, 12.5, 0.5


def count(times):
    """Messages that the nodes took and sent for so many times TOKENS tokens."""
    environment = {**os.environ, "TEST_TIMES": str(times), "TEST_NODE_OPTIONS": "--verbose"}
    done = subprocess.run([RUN, str(NODES), NODE, TEST, "tokens"], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=100, check=False, env=environment)
    said = re.findall(r"took (\d+) messages, sent (\d+), left out (\d+) answers", done.stdout)
    check(f"{times} times {TOKENS} tokens", done.returncode == 0 and len(said) == NODES, done.stdout)
    return [sum(int(numbers[i]) for numbers in said) for i in range(3)]


def main():
    few, many = count(TIMES[0]), count(TIMES[1])
    taken, sent, left_out = [(b - a) / NODES / TOKENS / (TIMES[1] - TIMES[0]) for a, b in zip(few, many)]
    print(f"# messages per token and node: {taken:.1f} to it, {sent:.1f} from it, {left_out:.1f} answers left out")
    check(f"at most {MOST_TAKEN} come", taken < MOST_TAKEN + PINGS, taken)
    # How many are left out depends on who is faster; all of them together do not.
    check(f"at most {MOST_ANSWERS} are answered or left out", sent + left_out < MOST_ANSWERS + PINGS, sent + left_out)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
