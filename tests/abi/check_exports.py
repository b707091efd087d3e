# SPDX-License-Identifier: MIT
"""Every function of the API table is exported by the shared library and defined in the static one, and
the shared library exports nothing that no public header declares.

usage: check_exports.py ABI_DIR API_DIR SHARED_LIBRARY STATIC_LIBRARY
"""
import os
import re
import shutil
import subprocess
import sys

from check_api import read_table

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import Tap  # noqa: E402


def symbols(*command):
    run = subprocess.run(["nm", "--defined-only", *command], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, check=True, universal_newlines=True)
    return {m.group(1) for m in re.finditer(r" [A-Z] (\S+)$", run.stdout, re.M)}


def main():
    abi_dir, api_dir, shared, static = sys.argv[1:5]
    tap = Tap()
    if not shutil.which("nm"):
        tap.skip("exported symbols", "no nm")
        tap.done()
    names = {row["name"] for row in read_table(api_dir, "functions.tsv")}
    exported = symbols("-D", shared)
    tap.ok(not names - exported, "the shared library exports every function of the table",
           *sorted(names - exported))
    missing = names - symbols(static)
    tap.ok(not missing, "the static library defines every function of the table", *sorted(missing))
    text = "".join(open(os.path.join(abi_dir, n), encoding="utf-8").read()
                   for n in os.listdir(abi_dir) if n.endswith(".h"))
    extra = sorted(n for n in exported if not re.search(r"\b%s\b" % re.escape(n), text))
    tap.ok(not extra, "the shared library exports nothing that is not declared", *extra)
    tap.done()


if __name__ == "__main__":
    main()
