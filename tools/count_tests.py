#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Adds up the cases in Meson's test logs and prints what failed, then "N passed, N failed[, N skipped]".

Arguments: JUnit files. Meson writes a .json file beside each, with a line per program. A program that failed without a
failed case (a timeout, a status other than 0 at its end, cases that never ran) counts as one failure. One that ran when Meson
itself was stopped has no result: it is named and not counted. Exits with 1 when anything failed or nothing ran."""
import json
import os
import sys
import xml.etree.ElementTree as ElementTree

MESSAGE_LINES = 15
MESSAGE_WIDTH = 240
GOOD_RESULTS = ("OK", "SKIP", "EXPECTEDFAIL")


def is_failure(case):
    return case.find("failure") is not None or case.find("error") is not None


def print_end(text):
    """Prints the end of what a program printed beside its successes."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("ok ")]
    for line in lines[-MESSAGE_LINES:]:
        print("    " + line[:MESSAGE_WIDTH])


def report_failures(build, suite, failures):
    """Names the failed cases of a test program."""
    for case in failures:
        print(f"failed in {build}: {suite.get('name')}: {case.get('name')} {case.findtext('system-out') or ''}")
    print_end((suite.findtext("system-out") or "") + "\n" + (suite.findtext("system-err") or ""))


def failed_programs(path):
    """Yields the log's lines of the programs that failed."""
    with open(path, encoding="utf-8") as log:
        for program in map(json.loads, log):
            if program["result"] not in GOOD_RESULTS:
                yield program


def count(path):
    build = os.path.basename(os.path.dirname(os.path.dirname(os.path.abspath(path))))
    passed = failed = skipped = 0
    blamed = set()  # names of programs that have failed cases, as in both files
    for suite in ElementTree.parse(path).getroot().iter("testsuite"):
        cases = suite.findall("testcase")
        failures = [case for case in cases if is_failure(case)]
        if failures:
            report_failures(build, suite, failures)
            blamed.add(suite.get("name").partition(".")[2])
            blamed.update(case.get("name") for case in failures)
        failed += len(failures)
        skipped += sum(case.find("skipped") is not None for case in cases if not is_failure(case))
        passed += sum(case.find("skipped") is None for case in cases if not is_failure(case))
    for program in failed_programs(path.removesuffix(".junit.xml") + ".json"):
        if program["result"] == "INTERRUPT":
            print(f"stopped in {build}: {program['name']} after {program['duration']:.0f} s")
        elif program["name"] not in blamed:
            print(f"failed in {build}: {program['name']}: {program['result']} after {program['duration']:.0f} s, "
                  f"status {program['returncode']}, no failed case")
            print_end(program.get("stdout", "") + "\n" + program.get("stderr", ""))
            failed += 1
    return passed, failed, skipped


def main():
    paths = [path for path in sys.argv[1:] if os.path.exists(path)]  # none of a build that failed
    passed, failed, skipped = (sum(column) for column in zip((0, 0, 0), *map(count, paths)))
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
