#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Adds up the cases in JUnit files and prints "N passed, N failed[, N skipped]".

Exits with 1 when a case failed or none ran."""
import sys
import xml.etree.ElementTree as ElementTree


def count(path):
    passed = failed = skipped = 0
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def main():
    passed, failed, skipped = (sum(column) for column in zip(*map(count, sys.argv[1:])))
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
