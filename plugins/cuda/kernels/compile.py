#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs nvcc, and writes what ptxas says of the kernels (-Xptxas -v) to a file, where the test cuda_resources reads it. It is
shown only if nvcc fails.

usage: compile.py FILE NVCC OPTION...
"""
import subprocess
import sys

run = subprocess.run([*sys.argv[2:], "-Xptxas", "-v"], capture_output=True, text=True, check=False)
with open(sys.argv[1], "w", encoding="utf-8") as file:
    file.write(run.stderr)
if run.returncode != 0:
    sys.stderr.write(run.stdout + run.stderr)
sys.exit(run.returncode)
