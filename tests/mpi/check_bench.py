#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs ggml-bench mpi with two nodes and two partners: that it measures, not how fast. Speaks TAP.

Usage: check_bench.py GGML-BENCH GGML-NODE"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import check, finish  # noqa: E402

BENCH, NODE = sys.argv[1:3]
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none", "--mca", "btl_vader_single_copy_mechanism", "none"]
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "GGML_MPI_DEADLINE": "20"}


def run(*command):
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100, check=False,
                          env=ENVIRONMENT)


def main():
    small = ("--megabytes", "9", "--reduce", "1", "--nodes", "50", "--runs", "3")
    check("wrong usage is exit status 2", run(BENCH, "mpi", "--runs", "0").returncode == 2)
    done = run(*MPIRUN, "-n", "1", BENCH, "mpi", *small, "--json", ":", "-n", "2", NODE, ":", "-n", "2", BENCH, "mpi")
    report = json.loads(done.stdout) if done.returncode == 0 else {}
    rows = {row["name"]: row for row in report.get("results", [])}
    check("two nodes are measured", report.get("nodes") == 2, done)
    check("what is measured", {"round_trip", "set", "get", "copy", "all_reduce", "all_reduce_twins", "graph"} <= set(rows), done)
    check("times are positive", rows and all(row["us"] > 0 and row["bare_us"] > 0 and row["ratio"] > 0 for row in rows.values()),
          rows)
    done = run(*MPIRUN, "-n", "1", BENCH, "mpi", *small)
    check("without nodes it is exit status 3, and how to start is said", done.returncode == 3 and "ggml-node" in done.stderr, done)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
