#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The stages of tools/device-report for one device, each with what is left of the time, and what came of them: a page and
JSON. --most: seconds of each program of a stage. A stage that is cut off, that fails, or for which no time is left makes the report fail, and the others go on.

usage: device_report.py --library FILE --device NAME --description TEXT --tools DIR --conformance FILE --output DIR
                        [--primitives FILE]... [--image FILE] [--commit TEXT] [--started SECONDS] [--seconds N] [--most N] [--every N]
                        [--small] [--bench-env NAME=VALUE]
"""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

# By a part of a device's description: operations and bytes per second that were measured on it.
LIMITS = {"H200": {"flops": 790e12, "bytes": 4.3e12}, "H100": {"flops": 790e12, "bytes": 3.0e12}}
GOOD_TYPES = ("q4_0", "q8_0", "q4_K", "q6_K")

# What PyTorch reaches there, in the same run: the yardstick for products and attention.
YARDSTICK = r"""
import json, time, torch
def rate(work, amount):
    for _ in range(3): work()
    torch.cuda.synchronize()
    begin, n = time.perf_counter(), 0
    while time.perf_counter() - begin < 0.5:
        for _ in range(5): work()
        torch.cuda.synchronize()
        n += 5
    return amount * n / (time.perf_counter() - begin)
out = {"version": torch.__version__}
for n in (4096, 8192):
    a, b = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out[f"product of BF16, {n}"] = {"flops": rate(lambda: a @ b, 2.0 * n ** 3)}
q, k, v = (torch.randn(1, 32, 4096, 128, device="cuda", dtype=torch.float16) for _ in range(3))
attend = torch.nn.functional.scaled_dot_product_attention
out["attention of 4096 tokens, causal"] = {"flops": rate(lambda: attend(q, k, v, is_causal=True), 2.0 * 32 * 4096 ** 2 * 128)}
x = torch.empty(1 << 28, device="cuda")
y = torch.empty_like(x)
out["copy"] = {"bytes": rate(lambda: y.copy_(x), 2.0 * 4 * x.numel())}
print(json.dumps(out))
"""


class Report:
    def __init__(self, options):
        self.options, self.stages, self.chapters, self.measured = options, [], [], {}
        self.deadline = options.started + options.seconds
        self.folder = tempfile.mkdtemp(prefix="device-report-")

    def left(self):
        return self.deadline - time.time()

    def run(self, commands, most, env=None, quiet=False):
        """Runs commands side by side for at most so many seconds. (status of the first that failed, outputs); None: cut off."""
        outputs, processes = [], []
        for command in commands:
            outputs.append(tempfile.TemporaryFile("w+", dir=self.folder, errors="replace"))
            processes.append(subprocess.Popen(command, stdout=outputs[-1], env=dict(os.environ, **(env or {})),
                                              stderr=subprocess.DEVNULL if quiet else subprocess.STDOUT, start_new_session=True))
        end, status = time.time() + min(most, self.options.most, self.left()), 0
        for process in processes:
            try:
                code = process.wait(max(0.0, end - time.time()))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                code = None
            status = status if status != 0 else code
        for output in outputs:
            output.seek(0)
        return status, [output.read() for output in outputs]

    def stage(self, name, work, least=2):
        """work() returns (status, text); a stage is not begun with less than `least` seconds."""
        begin = time.time()
        print(f"==> {name}, {self.left():.0f} s left", file=sys.stderr, flush=True)
        status, text = ("no time", "") if self.left() < least else work()
        outcome = {0: "passed", None: "cut off"}.get(status, status if isinstance(status, str) else f"failed, status {status}")
        self.stages.append({"stage": name, "outcome": outcome, "seconds": round(time.time() - begin, 1)})
        self.chapters.append((name, outcome, text))

    # --- stages

    def tap(self, command, most, env=None):
        """Of a program that speaks TAP: failures, what was left out, and the sum."""
        status, (text,) = self.run([command], most, env)
        kept = [line for line in text.splitlines() if re.match(r"not ok|#|Bail out", line) or "SKIP" in line or " cases: " in line]
        passed = len(re.findall(r"^ok \d+", text, re.M))
        return status, "\n".join(kept[-200:] + [f"{passed} passed, {len(re.findall(r'^not ok', text, re.M))} failed"])

    def plugin_path(self):
        return ["--plugin-path", os.path.dirname(self.options.library)]

    def tool(self, name):
        return os.path.join(self.options.tools, name)

    def device(self):
        status, (text,) = self.run([[self.tool("ggml-devices"), *self.plugin_path(), "--test", "--device", self.options.device]], 60)
        return status, text

    def primitives(self):
        env, status, texts = {"SIMT_IMAGE": self.options.image} if self.options.image else {}, 0, []
        for program in self.options.primitives:
            code, text = self.tap([program], 60, env)
            status, texts = status if status != 0 else code, texts + [text]
        return status, "\n".join(texts)

    def compliance(self):
        if not os.access(self.tool("ggml-plugin-check"), os.X_OK):
            return "not there on this system", ""
        return self.tap([self.tool("ggml-plugin-check"), "--jobs", "8", self.options.library], 150)

    def conformance_command(self, every, seed):
        return [self.options.conformance, *self.plugin_path(), "--device", self.options.device, "--claims", "--every",
                str(every), "--seed", str(seed)] + (["--op", "ADD"] if self.options.small else [])

    def conformance(self):
        return self.tap(self.conformance_command(self.options.every, 20240607), 240)

    def stress(self):
        """Several processes at once, whose operands are others each time."""
        begin, rounds, text, status = time.time(), 0, "", 0
        while (rounds == 0 or time.time() - begin < (0 if self.options.small else 40)) and status == 0:
            every = 1999 if self.options.small else 199
            commands = [self.conformance_command(every, 1000 * rounds + i) for i in range(2 if self.options.small else 4)]
            status, outputs = self.run(commands, 120)
            rounds += 1
            if status != 0:
                text = "\n".join(line for output in outputs for line in output.splitlines() if not line.startswith("ok "))[-4000:]
        return status, f"{rounds} rounds of several processes at once\n{text}"

    def bench(self, name, arguments, most):
        """A measurement in JSON, kept by its name."""
        status, (text,) = self.run([[self.tool("ggml-bench"), *arguments, "--json"]], most, self.options.bench_env, quiet=True)
        try:
            self.measured[name] = json.loads(text)
        except ValueError:
            return (status or "no JSON"), text[-2000:]
        return status, ""

    def ops(self):
        small, common = self.options.small, ["ops", *self.plugin_path(), "--device", self.options.device]
        sizes = [(64, 256, 4)] if small else [(4096, 14336, 1), (4096, 14336, 512), (4096, 4096, 4096)]
        status = 0
        for m, k, n in sizes:
            extra = ["--seconds", "0.001" if small else "0.05", "-m", str(m), "-k", str(k), "-n", str(n)] + (["--warm"] if small else [])
            if n == 4096:
                extra += ["--type", "bf16"]
            code, _ = self.bench(f"ops n={n}", common + extra, 90)
            status = status if status != 0 else code
        return status, self.ops_table()

    def model(self):
        size = "0.2B" if self.options.small else "8B"
        status, text = self.bench("model", ["model", *self.plugin_path(), "--device", self.options.device, "--size", size, "--type",
                                            "q4_K", "--runs", "1" if self.options.small else "5", "--prompt",
                                            "4" if self.options.small else "512"], 120)
        return status, text or json.dumps(self.measured.get("model"), indent=1)[:4000]

    def yardstick(self):
        status, (text,) = self.run([[sys.executable, "-c", YARDSTICK]], 60, quiet=True)
        if status == 0:
            self.measured["PyTorch"] = json.loads(text)
        return ("not there" if status == 1 else status), text

    # --- what came of it

    def limits(self):
        found = next((limit for name, limit in LIMITS.items() if name in self.options.description), {})
        copies = [m["copy_gb_per_s"] * 1e9 for name, m in self.measured.items() if name.startswith("ops")]
        return {"flops": found.get("flops", 0), "bytes": max([found.get("bytes", 0)] + copies)}

    def ops_results(self):
        return [(name, r) for name, m in self.measured.items() if name.startswith("ops") for r in m["results"]]

    def ops_table(self):
        limit, lines = self.limits(), [f"{'':14} {'case':44} {'ms':>10} {'TFLOP/s':>9} {'%':>6} {'GB/s':>9} {'%':>6}"]
        for _, r in self.ops_results():
            flops = 100e9 * r["gflops"] / limit["flops"] if limit["flops"] else 0
            lines.append(f"{r['op']:14} {r['case'][:44]:44} {r['milliseconds']:10.4f} {r['gflops'] / 1e3:9.2f} {flops:6.1f} "
                         f"{r['gb_per_s']:9.1f} {100e9 * r['gb_per_s'] / max(limit['bytes'], 1):6.1f}")
        return "\n".join(lines)

    def targets(self):
        """(what, asked, reached) in percent of the limits, as far as they were measured."""
        limit, rows = self.limits(), []
        for name, r in self.ops_results():
            n = int(name.split("=")[1])
            dense, good = r["case"].startswith(("f16", "bf16")), r["case"].startswith(GOOD_TYPES)
            by_flops = (90 if dense else 80 if good else 70) if r["op"] == "MUL_MAT" else 70 if r["op"] == "FLASH_ATTN_EXT" else 0
            by_bytes = 80 if r["op"] == "FLASH_ATTN_EXT" else 85
            if n >= 512 and by_flops and limit["flops"]:
                rows.append((f"{r['op']} {r['case']}", by_flops, 100e9 * r["gflops"] / limit["flops"]))
            elif (n == 1) == (r["op"] in ("MUL_MAT", "FLASH_ATTN_EXT")) and limit["bytes"]:
                rows.append((f"{r['op']} {r['case']}", by_bytes, 100e9 * r["gb_per_s"] / limit["bytes"]))
        launches = [m["launch_microseconds"] for name, m in self.measured.items() if name.startswith("ops")]
        if launches:
            rows.append(("a node of a chain of 1,024, 1.3 us", 100, 130.0 / max(min(launches), 1e-3)))
        model = self.measured.get("model")
        if model and limit["bytes"]:
            rows.append((f"a model of {model['size']} in Q4_K, one token after another, bytes of its weights", 60,
                         100 * model["token"]["tokens_per_second"] * model["weight_bytes"] / limit["bytes"]))
        return rows

    def write(self):
        o, rows = self.options, self.targets()
        day = time.strftime("%Y-%m-%d", time.gmtime(o.started))
        # A machine may have several devices of one description.
        name = re.sub(r"[^a-z0-9]+", "-", f"{o.description} {o.device}".lower()).strip("-")
        path, system = os.path.join(o.output, f"{day}-{name}"), os.uname()
        with open(path + ".json", "w", encoding="utf-8") as stream:
            json.dump({"schema": "ggml-device-report/1", "date": day, "commit": o.commit, "device": o.device,
                       "description": o.description, "system": f"{system.sysname} {system.release}", "stages": self.stages,
                       "limits": self.limits(),
                       "targets": [{"what": w, "asked_percent": a, "reached_percent": round(r, 1)} for w, a, r in rows],
                       "measured": self.measured}, stream, indent=1)
            stream.write("\n")
        with open(path + ".md", "w", encoding="utf-8") as stream:
            stream.write(f"# {o.device}: {o.description}\n\n{day}, commit {o.commit}, on {system.sysname} {system.release} "
                         f"({os.cpu_count()} logical CPUs); {time.time() - o.started:.0f} s in all.\n\n| stage | outcome | s |\n|---|---|--:|\n")
            stream.writelines(f"| {s['stage']} | {s['outcome']} | {s['seconds']} |\n" for s in self.stages)
            stream.write("\n| what | asked, % of the limit | reached, % |\n|---|--:|--:|\n")
            stream.writelines(f"| {w} | {a} | {r:.1f} |\n" for w, a, r in rows)
            for name, outcome, text in self.chapters:
                stream.write(f"\n## {name}\n\n{outcome}\n" + (f"\n```\n{text.rstrip()}\n```\n" if text.strip() else ""))
        print(f"==> wrote {path}.md and .json", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser()
    for name in ("library", "device", "description", "tools", "conformance", "output"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--primitives", action="append")
    parser.add_argument("--image")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--started", type=float, default=time.time())
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--most", type=float, default=600)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--bench-env", type=lambda text: dict([text.split("=", 1)]), default={})
    options = parser.parse_args()
    os.makedirs(options.output, exist_ok=True)
    report = Report(options)
    report.stage("Device", report.device)
    if options.primitives:
        report.stage("Primitives", report.primitives)
    report.stage("Speed of operations", report.ops, least=5)
    report.stage("Speed of a model", report.model, least=5)
    report.stage("PyTorch", report.yardstick, least=5)
    report.stage("Compliance", report.compliance, least=5)
    report.stage("Stress", report.stress, least=5)
    report.stage("Conformance", report.conformance, least=5)
    report.write()
    shutil.rmtree(report.folder)
    sys.exit(any(s["outcome"] not in ("passed", "not there", "not there on this system") for s in report.stages))


main()
