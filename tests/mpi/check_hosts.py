#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ggml-devices in a job with two nodes: hosts, nodes and measured links, as text and as JSON. Speaks TAP.

Usage: check_hosts.py RUN.SH GGML-DEVICES GGML-NODE"""
import os
import json
import re
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import check, finish  # noqa: E402

RUN, DEVICES, NODE = sys.argv[1:4]


def devices(option):
    return subprocess.run([RUN, "2", NODE, DEVICES, "--in-process", option], text=True, stdout=subprocess.PIPE, timeout=100, check=False).stdout


def main():
    tree = devices("--tree")
    check("the host of both nodes is one box", tree.count(f"Host {socket.gethostname()}") == 1 and
          re.search(r"MPI1\n\W+MPI1:CPU \(gpu\)[^\n]*\n\W+MPI2\n\W+MPI2:CPU \(gpu\)", tree), tree)
    figures = r" [0-9.]+ us, [0-9.]+ GB/s\n"
    check("the links of all three are measured", all(re.search(f"{link}:{figures}", tree) for link in (
        "program - MPI1", "program - MPI2", "MPI1 - MPI2")), tree)
    document = json.loads(devices("--json"))
    check("the JSON says the same", [node["name"] for node in document["nodes"]] == ["MPI1", "MPI2"] and
          [(link["from"], link["to"]) for link in document["links"]] == [(None, "MPI1"), (None, "MPI2"), ("MPI1", "MPI2")] and
          all(0 < link["seconds"] < 10 and link["bytes_per_second"] > 1e3 for link in document["links"]), document)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
