#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs ggml-bench load once per scenario, figures, graph, isolate, model and ops: that it measures, not how fast. Speaks TAP.

Usage: check_bench.py PROGRAM PLUGIN [VULKAN_PLUGIN_FOLDER]"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import check, finish  # noqa: E402

PROGRAM, PLUGIN = sys.argv[1:3]
VULKAN_FOLDER = sys.argv[3] if len(sys.argv) > 3 else None
# Memory is dear in virtual machines that are told of a cache of half a GiB.
SMALL = ("--cache", "8")


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=200, check=False)


def check_unknown_device(measurement):
    done = run(measurement, "--device", "NONE")
    check(measurement + ": an unknown device is exit status 3, and those there are are named",
          done.returncode == 3 and "NONE" in done.stderr and "CPU" in done.stderr, done)


def check_figures():
    check("figures: wrong usage is exit status 2", run("figures", "--runs", "0").returncode == 2)
    check_unknown_device("figures")
    done = run("figures", "--plugin", PLUGIN, "--device", "CPU", "--runs", "1", "--json")
    devices = json.loads(done.stdout)["devices"] if done.returncode == 0 else []
    check("figures: the CPU is measured", [device["device"] for device in devices] == ["CPU"], done)
    figures = devices[0]["measured"] if devices else {}
    check("figures: rates are positive", figures and figures["flops"] > 0 and figures["bytes_per_second"] > 0 and
          figures["launch_seconds"] >= 0, figures)
    check("figures: it has no link to itself", figures and figures["link_bytes_per_second"] == 0, figures)
    check("figures: rates per type", figures and all(rate > 0 for rate in figures["flops_of"].values()) and
          {"f32", "f16", "q8_0"} <= set(figures["flops_of"]), figures)


def check_escapes():
    """F17 of a security review: what a plugin calls its device is no command to the terminal."""
    plugin = os.path.join(os.path.dirname(PROGRAM), "../tests/plugins/virtual/ggml-virtual.so")
    if not os.path.exists(plugin):
        return
    with open(plugin, "rb") as file:
        data = file.read()
    check("escapes: the description is where it is looked for", data.count(b"Virtual device for tests") == 1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ggml-virtual.so")
        with open(path, "wb") as file:
            file.write(data.replace(b"Virtual device for tests", b"Virt\x1b]0;dev\xc2\x9b31m tests!!"))
        done = run("figures", "--plugin", path, "--device", "VIRTUAL0", "--runs", "1")
        check("escapes: figures prints no escape sequence", done.returncode == 0 and "Virt?]0;dev" in done.stdout and
              "\x1b" not in done.stdout + done.stderr and "\x9b" not in done.stdout + done.stderr, done)


def check_isolate():
    check("isolate: wrong usage is exit status 2", run("isolate", "--runs", "0").returncode == 2)
    check_unknown_device("isolate")
    done = run("isolate", "--runs", "5", "--nodes", "20", "--in-a-row", "2", "--json")
    if not sys.platform.startswith("linux"):
        check("isolate: refused where there is none", done.returncode == 4, done)
        return
    rows = json.loads(done.stdout)["samples"] if done.returncode == 0 else []
    check("isolate: one size is measured", [row["nodes"] for row in rows] == [20], done)
    check("isolate: times are positive", rows and rows[0]["us"] > 0 and rows[0]["isolated_us"] > 0 and rows[0]["apart_us"] > 0 and
          rows[0]["loop_cost_us"] > 0 and rows[0]["bare_us"] > 0 and rows[0]["loop_bare_us"] > 0 and rows[0]["step_cost_us"] > 0 and rows[0]["changed_us"] > 0 and rows[0]["ratio"] > 0, rows)


def check_kernels():
    check("kernels: wrong usage is exit status 2", run("kernels", "--kernel", "none").returncode == 2)
    done = run("kernels", "--level", "none")
    check("kernels: an unknown level is exit status 2, and those there are are named",
          done.returncode == 2 and "scalar" in done.stderr, done)
    done = run("kernels", "--check", "--kernel", "unpack", "--level", "scalar")
    check("kernels: compared only", done.returncode == 0 and done.stdout.startswith("scalar: 0 kernels differ") and
          done.stdout.count("\n") == 1, done)
    done = run("kernels", "--kernel", "rounded", "--type", "Q4_0", "-m", "9", "-k", "64", "-n", "2", "--seconds", "0.001",
               "--json")
    report = json.loads(done.stdout) if done.returncode == 0 else {}
    rows = report.get("results", [])
    check("kernels: one is measured", report.get("checks", 0) > 0 and report.get("different") == 0 and len(rows) == 1 and
          (rows[0]["kernel"], rows[0]["of"], rows[0]["rows"], rows[0]["columns"]) == ("rounded", "q4_0", 9, 2), done)
    check("kernels: times and rates are positive", rows and rows[0]["nanoseconds"] > 0 and rows[0]["gb_per_s"] > 0 and
          rows[0]["gflops"] > 0 and rows[0]["scalar_nanoseconds"] > 0, rows)


def check_ops():
    check("ops: wrong usage is exit status 2", run("ops").returncode == 2 and
          run("ops", "--device", "CPU", "--op", "NOTHING").returncode == 2 and
          run("ops", "--device", "CPU", "--type", "f17").returncode == 2 and
          run("ops", "--device", "CPU", "--cache", "0").returncode == 2)
    done = run("ops", "--device", "CPU", "--op", "NOTHING")
    check("ops: an unknown operation is named, and the known ones", "NOTHING" in done.stderr and
          "FLASH_ATTN_EXT" in done.stderr and "Usage" not in done.stderr, done)
    done = run("ops", "--device", "CPU", "--op", "MUL_MAT", "--type", "q4_0", "-k", "100")
    check("ops: rows that are no whole blocks are named", done.returncode == 2 and "100" in done.stderr and
          "blocks of q4_0" in done.stderr and "no operation" not in done.stderr, done)
    done = run("ops", "--device", "CPU", "--op", "MUL_MAT", "--type", "q4_0", "-k", "1")
    check("ops: so are those of less than a block", done.returncode == 2 and "rows of 1 elements" in done.stderr, done)
    for sizes in (("-k", "130"), ("-m", "1")):
        done = run("ops", "--device", "CPU", "--op", "MUL_MAT_ID", "--type", "f16", *sizes)
        check(f"ops: of {' '.join(sizes)} experts have no quarter", done.returncode == 2 and f"{sizes[1]}/4" in done.stderr, done)
    done = run("ops", "--device", "CPU", "--op", "FLASH_ATTN_EXT", "--type", "q4_K")
    check("ops: keys that are no whole blocks are named once", done.returncode == 2 and done.stderr.count("\n") == 1 and
          "rows of 128 elements aren't whole blocks of q4_K" in done.stderr, done)
    done = run("ops", *SMALL, "--device", "CPU", "--type", "q8_0", "-m", "64", "-k", "130", "-n", "1", "--seconds", "0.0001", "--json")
    measured = {row["op"] for row in json.loads(done.stdout)["results"]} if done.returncode == 0 else {}
    check("ops: what is left out is named, and what doesn't depend on it is measured", not measured & {"MUL_MAT", "MUL_MAT_ID"} and
          {"FLASH_ATTN_EXT", "ADD", "GET_ROWS"} <= measured and "MUL_MAT is left out" in done.stderr and
          "MUL_MAT_ID is left out" in done.stderr and done.stderr.count("\n") == 2, done)
    done = run("ops", *SMALL, "--device", "CPU", "--op", "MUL_MAT", "-m", "64", "-k", "32", "-n", "1", "--seconds", "0.0001", "--json")
    types = {row["case"].split()[0] for row in json.loads(done.stdout)["results"]} if done.returncode == 0 else {}
    check("ops: rows of one block are whole", {"f32", "q8_0", "q4_0"} <= types and "q4_K" not in types and "q4_K" in done.stderr and
          "q8_0" not in done.stderr, done)
    done = run("ops", "--device", "CPU", "--seconds", "x")
    check("ops: what is wrong is said", "'x'" in done.stderr and "Usage" not in done.stderr, done)
    done = run("ops")
    check("ops: without a device they are named", done.returncode == 2 and "CPU" in done.stderr, done)
    done = run("ops", *SMALL, "--device", "CPU", "--type", "i8", "--op", "MUL_MAT")
    check("ops: nothing measured is exit status 4", done.returncode == 4 and "supports none" in done.stderr, done)
    check_unknown_device("ops")
    done = run("ops", *SMALL, "--device", "CPU", "--op", "MUL_MAT", "--type", "q4_0", "-m", "256", "-k", "128", "-n", "3",
               "--seconds", "0.001", "--json")
    report = json.loads(done.stdout) if done.returncode == 0 else {}
    rows = report.get("results", [])
    check("ops: one product is measured", [row["case"] for row in rows] == ["q4_0 m=256 k=128 n=3"], done)
    check("ops: times and rates are positive", rows and rows[0]["milliseconds"] > 0 and rows[0]["gflops"] > 0 and
          rows[0]["gb_per_s"] > 0 and rows[0]["runs"] > 0, rows)
    check("ops: so are the bounds", report and report["peak_gflops"] > 0 and report["copy_gb_per_s"] > 0, report)
    check("ops: a launch is measured, without a driver beneath", report and report["launch_microseconds"] > 0 and
          report["launch_rounds"] > 0 and "launch_driver_empty_microseconds" not in report, report)


def check_weights():
    """Of a product whose weights a cache would hold, and of one expert of eight."""
    sizes = ("--device", "CPU", "--type", "q8_0", "-m", "1024", "-k", "1024", "-n", "1", "--seconds", "0.001", "--json")
    for warm in ([], ["--warm"]):
        done = run("ops", *SMALL, *sizes, *warm)
        report = json.loads(done.stdout) if done.returncode == 0 else {}
        rows = {row["op"]: row for row in report.get("results", [])}
        check("ops: weights are read" + (", the same again" if warm else " that no cache holds"),
              rows and report["read_gb_per_s"] > 0 and rows["MUL_MAT"]["gb_per_s"] > 0, done)
        used = 2 * 256 * 256 * 34 / 32  # of two experts
        product = rows.get("MUL_MAT_ID")
        read = product["gb_per_s"] * product["milliseconds"] * 1e6 if product else 0
        check("ops: experts that no token takes are not counted", used < read < 1.2 * used, product)


def check_repacked():
    """Some levels of the CPU repack weights of some types, the others none."""
    sizes = (*SMALL, "--device", "CPU", "--op", "MUL_MAT", "-m", "64", "-k", "1024", "-n", "1", "--seconds", "0.001", "--json")
    done = run("ops", *sizes, "--type", "q2_K", "--repacked")
    rows = json.loads(done.stdout)["results"] if done.returncode == 0 else []
    check("ops: repacked weights are measured, or it is said that there are none",
          [row["case"] for row in rows] == ["q2_K m=64 k=1024 n=1"] or
          (done.returncode == 4 and "repacks no weights" in done.stderr), done)
    done = run("ops", *sizes, "--type", "f32", "--repacked")
    check("ops: a type that isn't repacked is not measured", done.returncode == 4, done)


def check_trace(path, done):
    """Nodes of three computations, one after the other on their stream, as the table on standard error sums them up."""
    events = json.load(open(path, encoding="utf-8"))["traceEvents"] if done.returncode == 0 else []
    nodes = [event for event in events if event.get("cat") == "node"]
    check("profile: nodes of each computation", {event["args"]["run"] for event in nodes} == {1, 2, 3}, done)
    check("profile: operations, names, shapes and types", any(
        event["args"]["op"] == "MUL_MAT" and event["name"] == "MUL_MAT " + event["args"]["tensor"] and
        len(event["args"]["shape"]) == 4 and event["args"]["type"] == "f32" for event in nodes))
    ends = {}
    ordered = True
    for event in sorted(nodes, key=lambda event: event["ts"]):
        ordered = ordered and event["ts"] >= ends.get(event["tid"], 0) - 0.001 and event["dur"] >= 0
        ends[event["tid"]] = event["ts"] + event["dur"]
    check("profile: nodes of a stream follow one another", ordered and ends)
    begin = min((event["ts"] for event in nodes), default=0)
    busy = sum(event["dur"] for event in nodes)
    check("profile: nodes take no longer than from the first to the last", 0 < busy <= max(ends.values(), default=0) - begin + 1)
    rows = [line.split() for line in done.stderr.splitlines() if " MUL_MAT " in line]
    count = sum(event["args"]["op"] == "MUL_MAT" for event in nodes)
    check("profile: the table counts the same slices", rows and sum(int(row[3]) for row in rows) == count, done)


def check_model():
    check("model: wrong usage is exit status 2", run("model", "--size", "0.3B").returncode == 2 and
          run("model", "--type", "f17").returncode == 2 and run("model", "--runs", "0").returncode == 2)
    check_unknown_device("model")
    done = run("model", *SMALL, "--type", "q4_0", "--prompt", "2", "--context", "3", "--runs", "1", "--json")
    report = json.loads(done.stdout) if done.returncode == 0 else {}
    check("model: prompt and token are measured", report and all(
        report[part]["tokens_per_second"] > 0 and report[part]["cpu_milliseconds"] > 0 for part in ("prompt", "token")), done)
    check("model: by operation", report and report["token"]["operations"]["MUL_MAT"] > 0 and
          report["token"]["operations"]["FLASH_ATTN_EXT"] > 0, report)
    check("model: beside the limits", report and report["peak_gflops"] > 0 and report["read_gb_per_s"] > 0 and
          report["weight_bytes"] > 50e6, report)
    check("model: launching is less than computing", report and
          0 < report["launching"]["least_milliseconds"] < report["token"]["least_milliseconds"], report)
    done = run("model", *SMALL, "--size", "rwkv7", "--type", "q4_0", "--prompt", "2", "--runs", "1")
    check("model: as text, of linear attention", "tokens/s" in done.stdout and "RWKV_WKV7" in done.stdout and
          done.returncode == 0, done)
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "trace.json")
        profiled = run("model", *SMALL, "--size", "moe", "--type", "q4_0", "--prompt", "2", "--context", "3", "--runs", "1", "--profile", trace)
        check_trace(trace, profiled)
        check("model: of experts", "MUL_MAT_ID" in profiled.stdout, profiled)
        done = run("model", *SMALL, "--size", "mamba2", "--prompt", "2", "--runs", "1", "--profile", os.path.join(folder, "none", "x"))
        check("model: a profile that can't be written, of state-space layers, is exit status 4",
              done.returncode == 4 and "no profile" in done.stderr, done)


def check_launch():
    done = run("ops", *SMALL, "--plugin-path", VULKAN_FOLDER, "--device", "Vulkan0", "--op", "MUL_MAT", "--type", "f32",
               "-m", "256", "-k", "128", "-n", "1", "--seconds", "0.001", "--json")
    report = json.loads(done.stdout) if done.returncode == 0 else {}
    check("ops: the driver's own launches are measured beside the plugin's", report and
          report["launch_microseconds"] > report["launch_submit_microseconds"] > 0 and
          report["launch_driver_empty_microseconds"] > 0 and report["launch_driver_kernel_microseconds"] > 0, done)
    low, high = report.get("launch_beyond_driver_quartiles", (1, 0))
    check("ops: with their difference", low <= report.get("launch_beyond_driver_microseconds", 0) <= high, report)


def check_graph():
    check("graph: wrong usage is exit status 2", run("graph", "--nodes", "0").returncode == 2 and
          run("graph", "NOTHING").returncode == 2)
    done = run("graph", "--nodes", "500", "--runs", "1", "--json")
    samples = json.loads(done.stdout)["samples"] if done.returncode == 0 else []
    layer = 29  # nodes
    check("graph: the size asked for is measured, in whole layers",
          [sample["nodes"] for sample in samples] == [500 // layer * layer], done)
    check("graph: times are positive", samples and all(value > 0 for value in samples[0].values()), samples)


def main():
    check("wrong usage is exit status 2", run("load").returncode == 2 and run("nothing").returncode == 2)
    check("--help succeeds", run("--help").returncode == 0 and run("load", "--help").returncode == 0)
    done = run("load", "--plugin", "/nonexistent.so")
    check("a missing plugin is exit status 4", done.returncode == 4, done)
    done = run("load", "--plugin", PLUGIN, "--runs", "1", "--json")
    rows = json.loads(done.stdout)["results"] if done.returncode == 0 else []
    loaded = [row["loaded"] for row in rows]
    built_in = loaded[-1] if loaded else -1  # what is there without any file of the directory
    check("every fit plugin is loaded, no unfit one",
          [count - built_in for count in loaded] == [1, 10, 100, 0], done)
    check("no unfit file is mapped", rows and rows[-1]["mapped"] == 0, rows)
    check_figures()
    check_escapes()
    check_graph()
    check_isolate()
    check_kernels()
    check_ops()
    check_weights()
    check_repacked()
    check_model()
    if VULKAN_FOLDER:
        check_launch()
    return finish()


if __name__ == "__main__":
    sys.exit(main())
