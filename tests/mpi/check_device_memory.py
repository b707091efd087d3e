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

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import check, finish  # noqa: E402

RUN, TEST, NODE, WATCH, DRIVER = sys.argv[1:6]
# Of the test's tensors, and of the part of one.
ALL = ((1 << 20) + 1234) // 4 * 4
PART = ((1 << 20) + 1234) // 2 // 4 * 4
# What each node sets, gives, sends to the other and takes from it, also in a sum; the second device of a node goes through the host.
# And what the program measures at start: 4 MiB, four times.
MEASURED = 4 * (4 << 20)
DIRECT = [MEASURED + 12 * ALL, MEASURED + 16 * ALL + 2 * PART]
NONE = [0, 0]
TAKES = {"WATCH_MPI_CUDA": "1", "GGML_CUDA_NO_VMM": "1"}
# What is set, and what each node moves without staging.
WAYS = {
    "MPI takes device memory": (TAKES, DIRECT),
    "the default by name": ({**TAKES, "GGML_MPI_DEVICE_MEMORY": "auto"}, DIRECT),
    "buffers share an allocation": ({"WATCH_MPI_CUDA": "1"}, NONE),
    "switched off": ({**TAKES, "GGML_MPI_DEVICE_MEMORY": "off"}, NONE),
    "MPI takes none": ({"GGML_CUDA_NO_VMM": "1"}, NONE),
}


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
    return finish()


if __name__ == "__main__":
    sys.exit(main())
