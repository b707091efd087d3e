# SPDX-License-Identifier: MIT
"""Every prototype of a public header, and every entry of an interface struct, has a contract with a
thread tag: a comment directly above it, or above the group without blank lines that it belongs to.

usage: check_contracts.py ABI_DIR
"""
import os
import re
import sys

import headers

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import Tap  # noqa: E402

PROTOTYPE = re.compile(r"(?:GGML_NORETURN )?GGML_(?:BACKEND_)?API\b")
ENTRY = re.compile(r" {4}\S.*\(\*(?!reserved)\w+\)\(")
TAG = re.compile(r"\[(?:any-thread|stream|init)((?: & !?\w+)*)\]")
STATE = re.compile(r"State (\w+)(?: \([^)]*\))?[:.]")
INTERFACES = {"ggml-plugin-cpu.h", "ggml-plugin-host.h", "ggml-plugin-sdk.h", "ggml-plugin-table.h",
              "ggml-backend-impl.h"} | set(headers.EXTENSIONS)


def contract(lines, i):
    """The comment above the group of declarations that line i belongs to."""
    i -= 1
    while i >= 0 and re.match(r"\s*(?!//)\S.*[^{]$", lines[i]):
        i -= 1
    comment = []
    while i >= 0 and lines[i].strip().startswith("//"):
        comment.insert(0, lines[i].strip())
        i -= 1
    return " ".join(comment)


def main():
    abi_dir = sys.argv[1]
    tap = Tap()
    for name in sorted(n for n in os.listdir(abi_dir) if n.endswith(".h")):
        with open(os.path.join(abi_dir, name), encoding="utf-8") as file:
            lines = file.read().splitlines()
        found = [i for i, line in enumerate(lines)
                 if PROTOTYPE.match(line) or (name in INTERFACES and ENTRY.match(line))]
        bad = ["%s:%d: %s" % (name, i + 1, lines[i]) for i in found if not TAG.search(contract(lines, i))]
        tap.ok(not bad, "%d contracts in %s" % (len(found), name), *bad)
    known, used = set(), {}
    for name in sorted(n for n in os.listdir(abi_dir) if n.endswith(".h")):
        with open(os.path.join(abi_dir, name), encoding="utf-8") as file:
            text = " ".join(line.strip().lstrip("/ ") for line in file)
        known.update(STATE.findall(text))
        used.update((state, name) for states in TAG.findall(text) for state in re.findall(r"\w+", states))
    unknown = ["%s: %s" % (name, state) for state, name in used.items() if state not in known]
    tap.ok(used and not unknown, "%d states of tags are explained" % len(used), *unknown)
    tap.done()


if __name__ == "__main__":
    main()
