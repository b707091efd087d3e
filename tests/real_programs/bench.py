# SPDX-License-Identifier: MIT
"""llama-bench of Debian on Debian's library and on this one in turn: tokens per second of a prompt of 512 and of single tokens,
for a llama of 0.2 billion random weights in several types, and for models of other kinds. Runs are paired, so that what else
the machine does weighs on both. Beside the llama's stand the machine's limits, measured before: a prompt at its multiply-adds
of floats (instructions for BF16 and bytes may do two and four times as many), a token at the bandwidth of reading all
weights."""
import datetime
import fnmatch
import json
import os
import re
import statistics
import subprocess
import sys

import models
from harness import OURS, SIDES, THEIRS, Failure, row

TYPES = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_K_M", "Q5_K_M", "Q6_K", "Q2_K", "Q3_K_M", "IQ4_XS")
OTHER_MODELS = ("qwen3moe-0.3B", "mamba2-0.1B", "rwkv7-0.2B")
OTHER_TYPES = ("F16", "Q8_0", "Q4_0", "Q4_K_M")
# What a row of the table is called, its model and its type.
CASES = [(type_name, "llama-0.2B", type_name) for type_name in TYPES] + \
        [("%s %s" % (model, type_name), model, type_name) for model in OTHER_MODELS for type_name in OTHER_TYPES]
RUNS = 5
PARTS = ("prompt", "token")


def machine_limits(context):
    """Floating-point operations, and bytes read from memory, per second."""
    out = subprocess.run([context.build / "tools" / "ggml-bench", "ops", "--device", "CPU", "--op", "MUL_MAT", "--type", "f32",
                          "-m", "64", "-k", "64", "-n", "1", "--json"], stdout=subprocess.PIPE, check=True, timeout=300).stdout
    measured = json.loads(out)
    return measured["peak_gflops"] * 1e9, measured["read_gb_per_s"] * 1e9


def model_limits(limits, model):
    """Tokens per second by part: a multiplication and an addition for each weight, all of which a token reads."""
    flops, reads = limits
    return {"prompt": flops / (2 * model["model_n_params"]), "token": reads / model["model_size"]}


def measure(context, side, path, n_prompt, n_tokens, name):
    """Tokens per second by part, and what the program says of the model."""
    ran = context.run(side, ["llama-bench", "-m", path, "-p", str(n_prompt), "-n", str(n_tokens), "-r", "1", "-t",
                             str(os.cpu_count()), "-o", "json"], name=name, timeout=900).must_end_well()
    rates = {}
    for test in json.loads(ran.stdout):
        rates["token" if test["n_gen"] else "prompt"] = test["avg_ts"]
    if sorted(rates) != sorted(PARTS) or min(rates.values()) <= 0:
        raise Failure("llama-bench on %s prints no rates: %s" % (side, rates))
    return rates, json.loads(ran.stdout)[0]


@row("llama-bench: rates")
def check_llama_bench(context):
    path = models.model(context, "llama")
    return tuple("%.0f and %.0f tokens per second" % tuple(rates[part] for part in PARTS)
                 for rates, _ in (measure(context, side, path, 32, 4, "") for side in SIDES))


def model_of(context, name, type_name):
    original = models.model(context, name)
    if type_name == "F32":
        return original
    path = "%s/%s.%s.gguf" % (context.scratch, name, type_name)
    context.run(THEIRS, ["llama-quantize", original, path, type_name], timeout=900, name="make-" + type_name).must_end_well()
    return path


def summary(pairs, part):
    """Cells of both sides, smallest, median and largest, and of the pairs' ratios."""
    cells = []
    for side in SIDES:
        values = [pair[side][part] for pair in pairs]
        cells.append("%.0f %.0f %.0f" % (min(values), statistics.median(values), max(values)))
    ratios = [pair[OURS][part] / pair[THEIRS][part] for pair in pairs]
    return cells + ["%.2f %.2f %.2f" % (min(ratios), statistics.median(ratios), max(ratios))]


def describe_machine():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            name = re.search(r"model name\s*: (.*)", file.read())
    except OSError:
        name = None
    return "%s, %d threads" % (name.group(1) if name else "unknown processor", os.cpu_count())


def run(context, patterns, json_path):
    context.row = "bench"
    cases = [case for case in CASES if not patterns or any(fnmatch.fnmatch(case[0], "*%s*" % p) for p in patterns)]
    print("%s, %s; load average %s" % (datetime.date.today().isoformat(), describe_machine(),
                                       " ".join("%.1f" % load for load in os.getloadavg())))
    limits = machine_limits(context)
    print("Multiply-adds of floats %.0f GFLOP/s, reading memory %.1f GB/s." % (limits[0] / 1e9, limits[1] / 1e9))
    print("Tokens per second, smallest, median and largest of %d runs; ratios of each pair of runs.\n" % RUNS)
    print("| weights | prompt: theirs | ours | ratio | limit | token: theirs | ours | ratio | limit | load |")
    print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
    results = {}
    for case, name, type_name in cases:
        path = model_of(context, name, type_name)
        pairs, loads = [], []
        for i in range(RUNS):
            order = SIDES if i % 2 == 0 else SIDES[::-1]
            measured = {side: measure(context, side, path, 512, 64, "%s-%s-%d" % (name, type_name, i)) for side in order}
            pairs.append({side: rates for side, (rates, _) in measured.items()})
            loads.append(os.getloadavg()[0])
            if sys.stderr.isatty():
                print("%s %d/%d" % (case, i + 1, RUNS), end="\r", file=sys.stderr)
        # Only a llama multiplies each token by each of its weights, and by nothing else that counts.
        of_model = model_limits(limits, measured[OURS][1]) if name.startswith("llama") else {}
        cells = [cell for part in PARTS
                 for cell in summary(pairs, part) + ["%.0f" % of_model[part] if of_model else ""]]
        print("| %s | %s | %.1f |" % (case, " | ".join(cells), statistics.median(loads)), flush=True)
        results[case] = pairs
        if type_name != "F32":
            context.outside(path).unlink()
    if json_path:
        with open(json_path, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
