#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs test-mpi-device-memory with nodes whose GPUs are emulated and an MPI that says that it takes their memory (watch_mpi.c), and one that
does not: results are the same, and nodes and MPI's callers tell which bytes went without staging. Speaks TAP.

Usage: check_device_memory.py RUN.SH TEST-MPI-DEVICE-MEMORY GGML-NODE WATCH-MPI.SO DRIVER-FOLDER"""
import json
import os
import re
import subprocess
import sys
import tempfile

RUN, TEST, NODE, WATCH, DRIVER = sys.argv[1:6]
# Of the test's tensors, and of the part of one.
LARGE = ((5 << 20) + 1234) // 4 * 4
PART = ((5 << 20) + 1234) // 2 // 4 * 4
# What each node sets, gives, sends to the other and takes from it; sums, small buffers and the second device of a node go through the host.
DIRECT = [7 * LARGE, 10 * LARGE + 2 * PART]
NONE = [0, 0]
# What is set, and what each node moves without staging.
WAYS = {
    "MPI takes device memory": ({"WATCH_MPI_CUDA": "1"}, DIRECT),
    "between hosts": ({"WATCH_MPI_CUDA": "1", "WATCH_MPI_APART": "1", "GGML_MPI_DEVICE_MEMORY": "auto"}, DIRECT),
    "switched off": ({"WATCH_MPI_CUDA": "1", "GGML_MPI_DEVICE_MEMORY": "off"}, NONE),
    "MPI takes none": ({"GGML_MPI_DEVICE_MEMORY": "auto"}, NONE),
}
results = []


def check(name, condition, text=""):
    results.append(bool(condition))
    print(("ok" if condition else "not ok"), len(results), "-", name, flush=True)
    for line in str(text).splitlines() if not condition else []:
        print("#", line, flush=True)


def run(way, folder):
    environment = {**os.environ, "FAKE_CUDA_DEVICES": "2", **way, "WATCH_MPI": folder, "GGML_MPI_DEADLINE": "60",
                   "TEST_MPI_OPTIONS": f"--mca mca_base_env_list LD_PRELOAD={WATCH}", "TEST_NODE_OPTIONS": "--device CUDA0,CUDA1 --verbose",
                   "LD_LIBRARY_PATH": DRIVER + ":" + os.environ.get("LD_LIBRARY_PATH", "")}
    done = subprocess.run([RUN, "2", NODE, TEST], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100, check=False, env=environment)
    seen = []
    for rank in sorted(os.listdir(folder)):
        with open(os.path.join(folder, rank), encoding="utf-8") as file:
            seen.append(json.load(file))
    return done, seen


def main():
    for name, (way, moved) in WAYS.items():
        with tempfile.TemporaryDirectory(prefix="ggml-mpi-device-") as folder:
            done, seen = run(way, folder)
        good = [line for line in done.stdout.splitlines() if line.startswith("ok ")]
        check(f"{name}: {len(good)} tests", done.returncode == 0 and good and "not ok" not in done.stdout, done.stdout)
        told = sorted(int(n) for n in re.findall(r"MPI moved (\d+) bytes of device memory itself", done.stdout))
        check(f"{name}: nodes tell of {sum(moved)} bytes without staging", told == moved, f"{told} and not {moved}\n{done.stdout}")
        given = [one["device"] for one in seen]
        check(f"{name}: MPI is given {'device memory' if moved != NONE else 'none'}",
              len(given) == 3 and given[0] == 0 and all((n > 0) == (moved != NONE) for n in given[1:]), seen)
        if moved != NONE:
            check(f"{name}: in the context that it is of", all(one["without_context"] == 0 for one in seen), seen)
    print(f"1..{len(results)}")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
