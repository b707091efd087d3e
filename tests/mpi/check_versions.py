#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Nodes of other versions of the protocol: of a later minor one they work, of another major one they are refused by name,
and the others of the job are used. Speaks TAP.

Usage: check_versions.py GGML-DEVICES GGML-NODE NODE-OF-A-LATER-MINOR-VERSION NODE-OF-A-LATER-MAJOR-VERSION"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import check, finish  # noqa: E402

DEVICES, NODE, MINOR, MAJOR = sys.argv[1:5]
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none", "--mca", "btl_vader_single_copy_mechanism", "none",
          "--mca", "orte_abort_on_non_zero_status", "0"]
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "GGML_MPI_DEADLINE": "20"}


def devices(*nodes):
    command = [*MPIRUN, "-n", "1", DEVICES, "--in-process"]
    for node in nodes:
        command += [":", "-n", "1", node]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100, check=False,
                          env=ENVIRONMENT)
    return done.stdout


def main():
    text = devices(MINOR)
    check("a node of a later minor version works", "MPI1:CPU" in text, text)
    text = devices(MAJOR)
    check("one of another major version is refused with both versions",
          "rank 1 speaks version 77.0 of the protocol, this program 2.3" in text, text)
    check("and says so itself", "the program speaks version 2 of the protocol, this node 77.0" in text, text)
    check("it lends nothing", "MPI1:CPU" not in text, text)
    text = devices(MAJOR, NODE)
    check("the others of the job are used", "MPI1:CPU" in text and "this node 77.0" in text, text)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
