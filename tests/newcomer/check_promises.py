#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""README's table of what a bad plugin costs with and without probing: each of its rows, with an application that does either.
Speaks TAP.

Usage: check_promises.py README PROGRAM HELPER PLUGINS_OF_PROBE FIXTURES CPU_PLUGIN"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import check, finish  # noqa: E402

README, PROGRAM, HELPER, HABITS, FIXTURES, CPU_PLUGIN = (os.path.abspath(path) for path in sys.argv[1:7])
ENDED = {-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT, -signal.SIGILL, -signal.SIGTRAP}
COMPUTED = "CPU computed 3\n"


class Outcome:
    def __init__(self, how, folder, *arguments):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("GGML_")}
        environment.update({"GGML_ALLOW_UNSAFE_PLUGINS": "1", "GGML_PROBE_HELPER": HELPER})
        self.status, self.hangs = None, False
        with subprocess.Popen([PROGRAM, how, folder, *arguments], env=environment, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT) as process:
            try:
                # What is probed is given up after a second; what hangs is not, however long one waits.
                self.text = process.communicate(timeout=1 if how == "load" and "endless" in " ".join(os.listdir(folder)) else 60)[0]
                self.status = process.returncode
            except subprocess.TimeoutExpired:
                self.hangs = True
                process.kill()
                self.text = process.communicate()[0]

    def __str__(self):
        return f"status {self.status}, hangs {self.hangs}\n{self.text}"

    def is_record(self, file):
        """The plugin is a record that says more than "ok", and the application went on and computed."""
        return self.status == 0 and re.search(rf"{file}: (?!ok)\S", self.text) and self.text.endswith(COMPUTED)


def both(plugin, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(plugin, folder)
        return Outcome("load", folder, *arguments), Outcome("probe", folder, *arguments)


def check_unfit(row):
    with open(CPU_PLUGIN, "rb") as stream:
        image = stream.read()
    images = {"ggml-text.so": b"no plugin", "ggml-half.so": image[:len(image) // 2],
              # Another machine's: e_machine of RISC-V.
              "ggml-other.so": image[:18] + b"\xf3\0" + image[20:]}
    for name, bytes_ in images.items():
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, name)
            with open(path, "wb") as stream:
                stream.write(bytes_)
            outcomes = both(path)
        check(f"{row}: {name} is a record either way", all(outcome.is_record(name) for outcome in outcomes), [*map(str, outcomes)])


def main():
    with open(README, encoding="utf-8") as stream:
        rows = [line.split("|")[1].strip() for line in re.search(r"^\| A plugin \|.*\n\|[-|]+\n((?:\|.*\n)+)", stream.read(), re.M)[1].splitlines()]
    check("README has four rows", len(rows) == 4, rows)
    check_unfit(rows[0])
    for name in ("ggml-no_devices.so", "ggml-init_fails.so"):
        outcomes = both(os.path.join(FIXTURES, name))
        check(f"{rows[1]}: {name} is a record either way", all(outcome.is_record(name) for outcome in outcomes), [*map(str, outcomes)])
    for name in ("crash_init", "crash_constructor", "endless_init", "exit_init"):
        loaded, probed = both(os.path.join(HABITS, f"ggml-{name}.so"))
        check(f"{rows[2]}: {name} takes the application with it", loaded.hangs if "endless" in name else
              loaded.status in ENDED if "crash" in name else COMPUTED not in loaded.text, loaded)
        check(f"{rows[2]}: {name} is a record if it is probed", probed.is_record(f"ggml-{name}.so"), probed)
    plugin = os.path.join(FIXTURES, "defective", "ggml-defect-sum_crashes.so")
    loaded, probed = both(plugin, "DEFECT0")
    check(f"{rows[3]}: the application crashes, probed or not", loaded.status in ENDED and probed.status in ENDED,
          f"{loaded}\n{probed}")
    isolated = both(plugin, "DEFECT0", "isolated")[0]
    check(f"{rows[3]}: not with a process of its own", isolated.status == 0 and "is lost" in isolated.text and
          isolated.text.endswith(COMPUTED), isolated)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
