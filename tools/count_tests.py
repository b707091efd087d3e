#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Adds up the cases in JUnit files and prints what failed, then "N passed, N failed[, N skipped]".

Exits with 1 when a case failed or none ran."""
import os
import sys
import xml.etree.ElementTree as ElementTree

MESSAGE_LINES = 15
MESSAGE_WIDTH = 240


def is_failure(case):
    return case.find("failure") is not None or case.find("error") is not None


def report_failures(path, suite, failures):
    """Names the failed cases of a test program, then the end of what it printed beside its successes."""
    build = os.path.basename(os.path.dirname(os.path.dirname(os.path.abspath(path))))
    for case in failures:
        print(f"failed in {build}: {suite.get('name')}: {case.get('name')} {case.findtext('system-out') or ''}")
    printed = (suite.findtext("system-out") or "") + "\n" + (suite.findtext("system-err") or "")
    lines = [line for line in printed.splitlines() if line.strip() and not line.startswith("ok ")]
    for line in lines[-MESSAGE_LINES:]:
        print("    " + line[:MESSAGE_WIDTH])


def count(path):
    passed = failed = skipped = 0
    for suite in ElementTree.parse(path).getroot().iter("testsuite"):
        cases = suite.findall("testcase")
        failures = [case for case in cases if is_failure(case)]
        if failures:
            report_failures(path, suite, failures)
        failed += len(failures)
        skipped += sum(case.find("skipped") is not None for case in cases if not is_failure(case))
        passed += sum(case.find("skipped") is None for case in cases if not is_failure(case))
    return passed, failed, skipped


def main():
    passed, failed, skipped = (sum(column) for column in zip(*map(count, sys.argv[1:])))
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
