# SPDX-License-Identifier: MIT
"""Test Anything Protocol for the checks of this folder."""
import sys


class Tap:
    def __init__(self):
        self.count = 0
        self.failed = 0

    def ok(self, passed, name, *details):
        self.count += 1
        if not passed:
            self.failed += 1
        print("%sok %d - %s" % ("" if passed else "not ", self.count, name))
        if not passed:
            for line in "\n".join(details).splitlines():
                print("# " + line)
        return passed

    def same(self, actual, expected, name):
        return self.ok(actual == expected, name, "expected: %s" % (expected,), "actual:   %s" % (actual,))

    def skip(self, name, reason):
        self.count += 1
        print("ok %d - %s # SKIP %s" % (self.count, name, reason))

    def done(self):
        print("1..%d" % self.count)
        sys.exit(1 if self.failed else 0)
