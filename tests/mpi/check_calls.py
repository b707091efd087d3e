#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs test-mpi-calls with watch_mpi.c before MPI, with and without threads that MPI allows, and looks at which threads called MPI.
Speaks TAP.

Usage: check_calls.py RUN.SH TEST-MPI-CALLS GGML-NODE WATCH-MPI.SO"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import check, finish  # noqa: E402

RUN, TEST, NODE, WATCH = sys.argv[1:5]
NODES = 2
FUNNELED, MULTIPLE = 1, 3
# What MPI is said to be like; the level that it then tells.
WAYS = {
    "MPI_THREAD_MULTIPLE": ({}, MULTIPLE),
    "MPI_THREAD_FUNNELED": ({"WATCH_MPI_FUNNELED": "1"}, FUNNELED),
}


def run(way, folder, *which):
    environment = {**os.environ, "GGML_MPI_DEADLINE": "60", **way, "WATCH_MPI": folder, "TEST_MPI_OPTIONS": f"--mca mca_base_env_list LD_PRELOAD={WATCH}"}
    done = subprocess.run([RUN, str(NODES), NODE, TEST, *which], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100, check=False,
                          env=environment)
    seen = []
    for rank in sorted(os.listdir(folder)):
        with open(os.path.join(folder, rank), encoding="utf-8") as file:
            seen.append(json.load(file))
    return done, seen


def passes(name, done):
    good = [line for line in done.stdout.splitlines() if line.startswith("ok ")]
    check(f"{name}: {len(good)} tests", done.returncode == 0 and good and "not ok" not in done.stdout, done.stdout)


def main():
    for name, (way, level) in WAYS.items():
        with tempfile.TemporaryDirectory(prefix="ggml-mpi-calls-") as folder:
            done, seen = run(way, folder)
        passes(name, done)
        check(f"{name}: program and nodes tell of their calls, no two are made at once",
              len(seen) == NODES + 1 and all(one["calls"] > 0 and one["level"] == level and one["at_once"] == 1 for one in seen), seen)
        check(f"{name}: the thread that started MPI is the only one to call it", seen and all(one["others"] == 0 for one in seen), seen)
    with tempfile.TemporaryDirectory(prefix="ggml-mpi-calls-") as folder:
        passes("a request that MPI has freed", run({}, folder, "broken")[0])
        passes("more transfers than there are tags", run({"GGML_MPI_DEADLINE": "600"}, folder, "tags")[0])
        passes("what takes long", run({"GGML_MPI_DEADLINE": "2"}, folder, "slow")[0])
    return finish()


if __name__ == "__main__":
    sys.exit(main())
