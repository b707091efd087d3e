# SPDX-License-Identifier: MIT
"""ggml's own tests, and calls of its graph builders."""
import csv
import io
import re
import shutil
import subprocess
import sys

from harness import LIBRARIES, OURS, THEIRS, Failure, row

TESTS = "/usr/libexec/x86_64-linux-gnu/llama.cpp-tests/"
GGML_TESTS = "/usr/libexec/x86_64-linux-gnu/ggml/"
BACKEND_OPS = TESTS + "test-backend-ops"
MINUTE = 60
# What a quick run computes: every kind of kernel, few cases of each.
QUICK_OPS = ("ADD,CPY,SET_ROWS,SOFT_MAX,RMS_NORM,IM2COL,CONV_2D_DW,GATED_DELTA_NET,SSM_SCAN,ARGSORT,CUMSUM,PAD,"
             "UPSCALE,SUM_ROWS,GEGLU")
SMALL_PRODUCTS = r"(m=16,n=[18],k=256,bs=\[1,1\],nr=\[1,1\],per=\[0,1,2,3\],k_v=0,o=1)|n_mats=4,n_used=2,b=0,m=16"
# Drivers that compute on the CPU count as devices when they are named.
LAVAPIPE = {"GGML_DEVICES": None, "GGML_VK_VISIBLE_DEVICES": "0", "GGML_VULKAN_CACHE": "0",
            "VK_LOADER_DRIVERS_SELECT": "*lvp*"}


def cases(ran):
    """The rows that test-backend-ops wrote as CSV, by operation and parameters."""
    found = {}
    lines = [line for line in ran.stdout.decode(errors="replace").splitlines() if line.startswith('"')]
    for line in csv.DictReader(io.StringIO("\n".join(lines))):
        if None not in line.values():
            found[line["op_name"], line["op_params"], line["test_mode"]] = line
    return found


def supported(found):
    return {key for key, line in found.items() if line["supported"] == "1"}


def failed(found):
    return [key for key in supported(found) if found[key]["error_message"] not in ("", "yes", "no")]


def name_some(keys):
    return "; ".join("%s(%s)" % key[:2] for key in sorted(keys)[:3])


def compare_cases(context, mode, arguments, timeout):
    argv = [BACKEND_OPS, mode, "-b", "CPU", "--output", "csv"] + arguments
    theirs, ours = context.both(argv, timeout=timeout)
    a, b = cases(theirs), cases(ours)
    text = tuple("%d of %d supported%s" % (len(supported(c)), len(c), "" if r.ok else ", " + r.how())
                 for c, r in ((a, theirs), (b, ours)))
    if not ours.ok:
        raise Failure("%s: %s" % (ours.how(), ours.last_lines()), *text)
    if not b:
        raise Failure("no case was run", *text)
    if failed(b):
        raise Failure("%d cases failed: %s" % (len(failed(b)), name_some(failed(b))), *text)
    missing = supported(a) - supported(b)
    if missing:
        raise Failure("%d cases that theirs supports: %s" % (len(missing), name_some(missing)), *text)
    return text


@row("test-backend-ops support")
def backend_ops_support(context):
    return compare_cases(context, "support", [], 5 * MINUTE)


@row("test-backend-ops test, some operations")
def backend_ops_some(context):
    return compare_cases(context, "test", ["-o", QUICK_OPS], 10 * MINUTE)


@row("test-backend-ops test, products of every type")
def backend_ops_products(context):
    return compare_cases(context, "test", ["-o", "MUL_MAT,MUL_MAT_ID", "-p", SMALL_PRODUCTS], 10 * MINUTE)


@row("test-backend-ops test", only_all=True)
def backend_ops_test(context):
    return compare_cases(context, "test", [], 90 * MINUTE)


# Finite differences of numbers near the resolution of floats fail by chance on both sides, those of CPY in three runs of
# four. What ours lacks fails in every run, and passes in every run of theirs.
ATTEMPTS = 5


def grad_of(context, side, device, operation, name):
    argv = [BACKEND_OPS, "grad", "-b", device, "-o", operation]
    if operation.startswith("MUL_MAT"):
        argv += ["-p", r"m=16,n=[18],k=256,bs=\[[13],1\]"]
    ran = context.run(side, argv, 5 * MINUTE, name=name, env=None if device == "CPU" else LAVAPIPE)
    lines = re.findall(r"^  (\w+)\((.*)\): (?:.* )?(OK|FAIL)\s*$", ran.text, re.M)
    bad = {line[:2] for line in lines if line[2] == "FAIL"}
    return ran, {line[:2] for line in lines} - bad, bad


def compare_gradients(context, device, operation):
    """How theirs (on the CPU) and ours ended, and what ours can't do although theirs can."""
    theirs, good, _ = grad_of(context, THEIRS, "CPU", operation, operation)
    ours, ours_good, ours_bad = grad_of(context, OURS, device, operation, operation)
    lost = good - ours_good - ours_bad if theirs.ok and device == "CPU" else set()
    worse = ours_bad & good
    for attempt in range(1, ATTEMPTS):
        if not worse:
            break
        name = "%s.%d" % (operation, attempt)
        worse &= grad_of(context, OURS, device, operation, name)[2]
        worse &= grad_of(context, THEIRS, "CPU", operation, name)[1]
    return theirs, ours, len(good), len(ours_good), lost | worse


def compare_all_gradients(context, device):
    """Operation by operation, since ggml ends the program at each that has no gradient there."""
    listed = context.run(THEIRS, [BACKEND_OPS, "--list-ops"], name="list").stdout.decode()
    ended, counts, lost = ([], []), [0, 0], set()
    for operation in [line.strip() for line in listed.splitlines() if line.startswith("  ")]:
        theirs, ours, n_theirs, n_ours, missing = compare_gradients(context, device, operation)
        lost |= missing
        counts = [counts[0] + n_theirs, counts[1] + n_ours]
        for side, ran in enumerate((theirs, ours)):
            if ran.status < 0 or ran.status > 1 or ran.timed_out:
                ended[side].append(operation)
    text = tuple("%d cases passed, ended early at %d operations" % (count, len(names))
                 for count, names in zip(counts, ended))
    beyond = sorted(set(ended[1]) - set(ended[0]))
    if beyond or lost or not counts[1]:
        raise Failure("only ours ends early at %s; %d cases lost: %s" % (beyond, len(lost), name_some(lost)), *text)
    return text


@row("test-backend-ops grad", only_all=True)
def backend_ops_grad(context):
    return compare_all_gradients(context, "CPU")


def on_lavapipe(context, timeout):
    """Theirs crashes on lavapipe: it is asked what it supports, and ours must not fail at anything."""
    argv = ["-b", "Vulkan0", "--output", "csv"]
    theirs = context.run(THEIRS, [BACKEND_OPS, "support"] + argv, 10 * MINUTE, env=LAVAPIPE)
    ours = context.run(OURS, [BACKEND_OPS, "test"] + argv, timeout, env=LAVAPIPE)
    text = tuple("%d of %d supported%s" % (len(supported(cases(r))), len(cases(r)), "" if r.ok else ", " + r.how())
                 for r in (theirs, ours))
    found = cases(ours)
    if not ours.ok or not found or failed(found):
        raise Failure("%s, %d cases failed: %s %s" % (ours.how(), len(failed(found)), name_some(failed(found)),
                                                      "" if ours.ok else ours.last_lines()), *text)
    return text


@row("test-backend-ops test on Vulkan", only_all=True)
def backend_ops_vulkan(context):
    return on_lavapipe(context, 120 * MINUTE)


@row("test-backend-ops grad on Vulkan", only_all=True)
def backend_ops_vulkan_grad(context):
    return compare_all_gradients(context, "Vulkan0")


def builder_calls(context):
    """The calls of every builder, generated from ggml's own header."""
    scratch = context.outside(context.scratch)
    subprocess.run([sys.executable, str(context.sources / "gen_builder_calls.py"),
                    str(context.outside("/usr/include/ggml.h")), str(context.sources / "builder_cases.txt"),
                    str(scratch / "builder_calls.inl"), str(scratch / "builder_names.inl")],
                   check=True, stdout=subprocess.DEVNULL)
    return context.compile("builder_diff.c", ["builder_operands.c", "builder_known.c", "-ldl"])


def run_builders(context, count):
    program = builder_calls(context)
    ours = next(context.outside(context.home).glob("**/libggml.so.1"))
    ran = context.run(THEIRS, [program, "--cases", str(count), LIBRARIES + "/libggml-base.so.0",
                               LIBRARIES + "/libggml.so.0", "/" + str(ours.relative_to(context.root))],
                      timeout=30 * MINUTE, name="diff")
    compared = ran.find(r"(\d+) calls compared"), ran.find(r"(\d+) computed")
    if not ran.ok or compared[0] is None:
        raise Failure("%s: %s" % (ran.how(), ran.last_lines()), ours=ran.find(r"(\d+ findings)", ran.how()))
    return "%s calls" % compared[0], "%s equal results, the rest refused alike or known" % compared[1]


@row("random builder calls")
def builders(context):
    return run_builders(context, 4000)


@row("many random builder calls", only_all=True)
def more_builders(context):
    return run_builders(context, 40000)


def archs(context, arguments, timeout):
    """BLAS is a second device of theirs, which ours doesn't have: each model is tested twice there."""
    found = context.both_find([TESTS + "test-llama-archs", "-s", "7"] + arguments, r"Summary: (.*)", timeout=timeout)
    counts = [int(re.search(r"all (\d+)", text).group(1)) for text in found]
    if not counts[0] or 2 * counts[1] < counts[0]:
        raise Failure("fewer models than theirs", *found)
    return found


@row("test-llama-archs, some architectures")
def some_archs(context):
    return archs(context, ["-a", "^(llama|qwen3|qwen3moe|qwen3next|gemma3|mamba2|gpt2|bloom|deepseek2|gpt-oss|phi3)$"],
                 5 * MINUTE)


@row("test-llama-archs", only_all=True)
def all_archs(context):
    return archs(context, [], 30 * MINUTE)


@row("test-alloc")
def allocator(context):
    """Its buffer types are made by ggml's private headers: an adapter makes them this library's."""
    adapter = context.scratch + "/buffer-types.so"
    shutil.copy(context.build / "tests/real_programs/buffer-types.so", context.outside(adapter))
    found = context.both_well([GGML_TESTS + "test-alloc"], ours_env={"LD_PRELOAD": adapter})
    counts = [ran.text.count(" PASSED") for ran in found]
    if counts[0] == 0 or counts[0] != counts[1]:
        raise Failure("not as many tests", *map(str, counts))
    return ["%d tests passed" % count for count in counts]


@row("test-gguf")
def gguf(context):
    return context.both_find([GGML_TESTS + "test-gguf", "7"], r"(\d+/\d+ tests passed)")


def small_test(name):
    @row(name)
    def run(context):
        theirs, ours = context.both_well([TESTS + name], timeout=5 * MINUTE)
        return theirs.how(), ours.how()
    return run


for test in ("test-opt", "test-tiled-mulmat", "test-sampling", "test-batch-alloc", "test-grammar-integration",
             "test-quant-type-selection"):
    small_test(test)
