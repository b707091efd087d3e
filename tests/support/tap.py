# SPDX-License-Identifier: MIT
"""Test Anything Protocol for tests that are programs in Python: an object, and functions for the one of the whole program."""
import sys

MOST_LINES, MOST_CHARACTERS = 40, 400  # of what explains a failure


class Tap:
    def __init__(self):
        self.count = 0
        self.failed = 0

    def ok(self, passed, name, *details):
        self.count += 1
        if not passed:
            self.failed += 1
        print("%sok %d - %s" % ("" if passed else "not ", self.count, name), flush=True)
        if not passed:
            for line in "\n".join(map(str, details)).splitlines()[-MOST_LINES:]:
                print("# " + line[:MOST_CHARACTERS], flush=True)
        return passed

    def same(self, actual, expected, name):
        return self.ok(actual == expected, name, "expected: %s" % (expected,), "actual:   %s" % (actual,))

    def skip(self, name, reason):
        self.count += 1
        print("ok %d - %s # SKIP %s" % (self.count, name, reason), flush=True)

    def plan(self):
        """After the last result. Returns the program's exit status."""
        print("1..%d" % self.count, flush=True)
        return 1 if self.failed else 0

    def done(self):
        sys.exit(self.plan())


program = Tap()


def check(name, condition, text=""):
    """`text` explains a failure: its last lines are shown."""
    program.ok(condition, name, text)


def skip(name, reason):
    program.skip(name, reason)


def finish():
    return program.plan()
