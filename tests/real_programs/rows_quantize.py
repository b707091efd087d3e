# SPDX-License-Identifier: MIT
"""llama-quantize to every type: errors, and files of each side on the other."""
import models
from harness import THEIRS, Failure, LeftOut, row

TYPES = ("F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q2_K_S", "Q3_K_S", "Q3_K_M", "Q3_K_L", "Q4_K_S",
         "Q4_K_M", "Q5_K_S", "Q5_K_M", "Q6_K", "IQ4_NL", "IQ4_XS", "IQ3_XXS", "IQ3_XS", "IQ3_S", "IQ3_M", "IQ2_XXS",
         "IQ2_XS", "IQ2_S", "IQ2_M", "IQ1_S", "IQ1_M", "TQ1_0", "TQ2_0", "Q1_0", "Q2_0", "MXFP4_MOE")
QUICK = ("F16", "Q8_0", "Q4_0", "Q2_K", "Q4_K_M", "Q6_K", "IQ4_XS", "IQ3_S", "IQ2_XXS")
# Both sides' logits are compared with those that the same weights give in single precision: most programs' products round
# the other operand to 8 bits, whose error of about 1 % says nothing about the file. Ours may be 1.1 times as far from them
# in the square, as half-precision caches make the distance of F16 and BF16 files a matter of chance.
# Sums of errors are equal but for the order in which they are added.
ROUNDING = 1e-6
# Of 32 tokens and more their BLAS computes the products, in single precision.
FEW_TOKENS = 16


def importance(context, name):
    """An importance matrix, measured by their own library."""
    def make():
        path = "%s/%s.importance.gguf" % (context.scratch, name)
        context.run(THEIRS, ["llama-imatrix", "-m", models.model(context, name), "-f", models.text(context), "-c", "256",
                             "--chunks", "8", "-t", "2", "-o", path], name="imatrix").must_end_well()
        return path
    return context.once("importance " + name, make)


def errors(context, original, files, weights, name):
    """For each type in the files: (type, error of theirs, error of ours)."""
    program = context.compile("compare_gguf.c", ["-lggml-base"])
    ran = context.run(THEIRS, [program, original] + files + ([weights] if weights else []), name=name)
    ran.must_end_well()
    lines = [line.split() for line in ran.stdout.decode().splitlines()]
    return [(words[0], float(words[2]), float(words[3])) for words in lines]


def quantise(context, name, type_name, weights):
    """The files that both make; raises LeftOut if their own library refuses."""
    kind = "weighted" if weights else "plain"
    path = "%s/%s.{side}.gguf" % (context.scratch, kind)
    argv = ["llama-quantize"] + (["--imatrix", weights] if weights else []) + [models.model(context, name), path, type_name, "1"]
    theirs, ours = context.both(argv, timeout=900, name=kind)
    if not theirs.ok:
        raise LeftOut("their own library: %s" % theirs.last_lines())
    ours.must_end_well()
    return [path.format(side=side) for side in ("theirs", "ours")]


def judge_errors(found):
    """The ratio of all errors, and the largest of one type with its name."""
    def ratio(theirs, ours):
        return ours / theirs if theirs > 0 else (1.0 if ours == 0 else float("inf"))
    worst = max((ratio(theirs, ours), type_name) for type_name, theirs, ours in found)
    return (ratio(sum(f[1] for f in found), sum(f[2] for f in found)),) + worst


def judge_logits(context, paths):
    """Each file on both libraries: the largest distance of logits, and the largest ratio of ours' distance to theirs from
    what the same weights give in single precision."""
    exact = []
    for path in paths:
        exact.append(path.replace(".gguf", ".exact.gguf"))
        context.run(THEIRS, ["llama-quantize", "--allow-requantize", path, exact[-1], "F32", "2"],
                    name="decode").must_end_well()
    ran, tokens, files = models.logits(context, paths + exact, at_a_time=FEW_TOKENS)
    if not ran[0].ok:
        raise LeftOut("their own library does not run what was made: %s" % ran[0].last_lines())
    ran[1].must_end_well()
    apart, ratio = 0.0, 0.0
    for index in range(len(paths)):
        reference = len(paths) + index
        # The same rows on both sides: rows differ in how far they are from exact ones.
        same = models.count_same(tokens[0][reference], tokens[0][index], tokens[1][index])
        apart = max(apart, models.distance(files[0][index], files[1][index], same))
        from_exact = [models.distance(files[0][reference], files[side][index], same) for side in (0, 1)]
        ratio = max(ratio, from_exact[1] / from_exact[0] if from_exact[0] else float(from_exact[1] > 0))
    return apart, ratio


def add_row(type_name):
    @row("llama-quantize %s" % type_name, only_all=type_name not in QUICK)
    def run(context):
        name = "qwen3moe" if type_name == "MXFP4_MOE" else "llama"
        paths, ratios, wrong = [], [], []
        for weights in (None, importance(context, name)):
            try:
                files = quantise(context, name, type_name, weights)
            except LeftOut:
                if weights:
                    raise
                continue  # the smallest types are made with importance only
            total, ratio, of = judge_errors(errors(context, models.model(context, name), files, weights,
                                                   "errors-weighted" if weights else "errors"))
            ratios.append("%.4f%s" % (total, " weighted" if weights else ""))
            if not ratio <= 1 + ROUNDING:
                wrong.append("%.4f of their error in %s%s" % (ratio, of, ", weighted" if weights else ""))
            paths += files
        apart, distance = judge_logits(context, paths)
        text = "1", "%s; logits %.2f from exact ones, %.1e apart" % (", ".join(ratios), distance, apart)
        if not distance <= 1.1:
            wrong.append("logits are %.2f times as far from exact ones as theirs" % distance)
        if wrong:
            raise Failure("; ".join(wrong), *text)
        return text


for quantised_type in TYPES:
    add_row(quantised_type)
