#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A dry run of the stages of tools/device-report on the fake driver, with small sizes: each is run, a stage that hangs is cut
off, one that fails is told, and both forms of the report have them. Where nothing is to be compared kernels compute nothing.

usage: check_device_report.py SCRIPT LIBRARY GGML_BENCH GGML_DEVICES CONFORMANCE PRIMITIVE_PROGRAMS...    in TAP
"""
import glob
import json
import os
import stat
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import finish, program  # noqa: E402

SCRIPT, LIBRARY, BENCH, DEVICES, CONFORMANCE, *PRIMITIVES = map(os.path.abspath, sys.argv[1:])
STAGES = ["Device", "Primitives", "Speed of operations", "Speed of a model", "PyTorch", "Compliance", "Stress", "Conformance"]


def stand_in(folder, name, text):
    """A program of that name that does what the text says."""
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as stream:
        stream.write("#!/bin/sh\n" + text + "\n")
    os.chmod(path, stat.S_IRWXU)
    return path


def run(folder, *more, tools, conformance=CONFORMANCE):
    command = [sys.executable, SCRIPT, "--library", LIBRARY, "--device", "CUDA0", "--description", "An H200, emulated", "--tools", tools,
               "--conformance", conformance, "--output", folder, "--small", "--every", "4001", "--bench-env", "FAKE_CUDA_SKIP_KERNELS=1"]
    done = subprocess.run(command + [word for p in PRIMITIVES for word in ("--primitives", p)] + list(more), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    pages, data = glob.glob(folder + "/*.md"), glob.glob(folder + "/*.json")
    page = open(pages[0], encoding="utf-8").read() if pages else ""
    return done.returncode, done.stdout, page, json.load(open(data[0], encoding="utf-8")) if data else {"stages": []}


def outcome(data, stage):
    return next((s["outcome"] for s in data["stages"] if s["stage"] == stage), "missing")


def main():
    with tempfile.TemporaryDirectory() as folder:
        # ggml-plugin-check has a test of its own here, of a minute; a stand-in for it suffices.
        tools = os.path.join(folder, "tools")
        os.mkdir(tools)
        for path in (BENCH, DEVICES):
            os.symlink(path, os.path.join(tools, os.path.basename(path)))
        stand_in(tools, "ggml-plugin-check", 'echo "ok 1 - $3"')
        code, text, page, data = run(os.path.join(folder, "good"), tools=tools)
        program.ok(code == 0 and all(s["outcome"] in ("passed", "not there") for s in data["stages"]), "every stage passes", text + page)
        program.ok([s["stage"] for s in data["stages"]] == STAGES and all(f"\n## {name}\n" in page for name in STAGES), "every stage is there", page)
        program.ok(data.get("limits", {}).get("flops") == 790e12 and len(data["targets"]) > 2 and "MUL_MAT" in page,
           "what was measured stands beside the limits and targets", page)
        hangs = stand_in(folder, "hangs", 'case "$*" in *1999*) sleep 100 & sleep 100 ;; esac; exit 4')
        for name in ("ggml-devices", "ggml-bench"):
            os.remove(os.path.join(tools, name))
            stand_in(tools, name, "exit 3")
        stand_in(tools, "ggml-plugin-check", 'echo "not ok 1 - planted"; exit 1')
        code, text, page, data = run(os.path.join(folder, "bad"), "--most", "5", tools=tools, conformance=hangs)
        program.ok(code == 1 and outcome(data, "Compliance") == "failed, status 1" and "not ok 1 - planted" in page, "what fails is told", page)
        program.ok(outcome(data, "Stress") == "cut off" and outcome(data, "Conformance") == "failed, status 4", "what hangs is cut off", page + text)
        code, text, page, data = run(os.path.join(folder, "late"), "--seconds", "0", tools=tools)
        program.ok(code == 1 and all(s["outcome"] == "no time" for s in data["stages"]), "nothing is begun without time", page + text)
        for name in ("CUDA0", "CUDA1"):
            run(os.path.join(folder, "twins"), "--seconds", "0", "--device", name, tools=tools)
        pages = sorted(glob.glob(os.path.join(folder, "twins", "*")))
        program.ok(len(pages) == 4, "two devices of one kind have a report each", " ".join(pages))
    sys.exit(finish())


main()
