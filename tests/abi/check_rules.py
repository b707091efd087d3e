# SPDX-License-Identifier: MIT
"""The numbered rules of docs/plugin-contract.md: numbers in order, a consequence and a check each, and
no check that does not exist. Rule numbers that sources mention exist.

usage: check_rules.py SOURCE_ROOT
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import Tap  # noqa: E402


PATH = re.compile(r"`((?:abi|core|plugins|tests|tools)/[\w./-]+)`")


def sources(root):
    for folder in ("abi", "core", "plugins", "tests", "tools"):
        for path, _, names in os.walk(os.path.join(root, folder)):
            for name in names:
                if name.endswith((".c", ".h", ".inl", ".py", ".build")):
                    yield os.path.join(path, name)


def main():
    root = sys.argv[1]
    tap = Tap()
    with open(os.path.join(root, "docs", "plugin-contract.md"), encoding="utf-8") as file:
        text = file.read()
    parts = re.split(r"^\*\*GP-(\d{3})\.\*\* ", text, flags=re.M)[1:]
    rules = dict(zip(parts[::2], parts[1::2]))
    numbers = parts[::2]
    tap.ok(len(numbers) >= 60, "there are %d rules" % len(numbers))
    tap.same(numbers, ["%03d" % (i + 1) for i in range(len(numbers))], "rules are numbered in order")
    for number, rule in rules.items():
        complete = re.search(r"\b(MUST|MUST NOT|MAY|SHOULD|no)\b", rule) and \
            re.search(r"^- (Otherwise|Effect): ", rule, re.M) and re.search(r"^- Checked by: ", rule, re.M)
        missing = [p for p in PATH.findall(rule) if not os.path.exists(os.path.join(root, p))]
        tap.ok(complete and not missing, "GP-%s is complete" % number, rule, "missing: %s" % missing)
    unknown = []
    for path in sources(root):
        with open(path, encoding="utf-8") as file:
            unknown += ["%s: GP-%s" % (path, n) for n in re.findall(r"\bGP-(\d{3})\b", file.read())
                        if n not in rules]
    tap.ok(not unknown, "every rule that a source mentions exists", *unknown)
    tap.done()


if __name__ == "__main__":
    main()
