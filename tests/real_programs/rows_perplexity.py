# SPDX-License-Identifier: MIT
"""What a model's predictions lose by products that round the other operand to 8 bits, on either library. A llama of bytes is
trained on one licence by llama-finetune, quantised, and asked about another licence. It is compared with the same weights
decoded to F32, so that what quantising lost is no part of it; keys, values and attention are in F32 as well."""
import math
import re

import models
from harness import OURS, THEIRS, Failure, row
from rows_models import ESTIMATE, EXACT

LICENCES = "/usr/share/common-licenses/"
TYPES = ("Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "IQ3_S", "MXFP4_MOE",
         "TQ2_0", "Q1_0", "Q2_0", "F16", "BF16")
QUICK = ("Q8_0", "Q4_K")
# Tokens at a time: ours computes up to four columns by other kernels than many. Theirs would give 32 and more to BLAS, in F32.
THEIRS_AT_A_TIME, OURS_AT_A_TIME = "16", ("4", "256")
CONTEXT = ["-c", "256", "-b", "256"]
LEARNED = 12  # choices per byte of a model that has learned something: 259 of one that has not, 8 of this one
# Divergences are means over 4,096 tokens, 1 % uncertain, and printed with six decimals.
DIVERGENCE, DECIMALS = 1.1, 2e-6
# Standard deviations that the logarithm of the perplexity may be farther from that of F32 than theirs: its difference is a mean
# over tokens of either sign, most of it chance.
DEVIATIONS = 4
CHANGE = r"Mean ln\(PPL\(Q\)/PPL\(base\)\)\s*:\s*(\S+) ±\s*(\S+)"
MEAN_DIVERGENCE = r"Mean\s+KLD:\s+(\S+) ±"


def ask(context, side, path, at_a_time, options, patterns, name, attempts=8):
    """What llama-perplexity prints by these patterns; repeated while its last lines are lost."""
    argv = ["llama-perplexity", "-m", path, "-f", LICENCES + "GPL-2", "--chunks", "32", "-ub", at_a_time, "-t", "1",
            "--no-warmup"] + CONTEXT + EXACT + options
    for _ in range(attempts):
        text = context.run(side, argv, timeout=300, name=name).must_end_well().text
        found = [re.findall(pattern, text) for pattern in patterns]
        if all(found):
            return [matches[-1] for matches in found]
    raise Failure("%s: llama-perplexity prints no line like %s" % (side, patterns))


def trained(context):
    """The path in the system of a llama that has read 35 KB of English once."""
    def make():
        path = context.scratch + "/trained.gguf"
        context.run(OURS, ["llama-finetune", "-m", models.model(context, "llama"), "-f", LICENCES + "GPL-3", "-o", path, "-epochs",
                           "1", "-lr", "1e-3", "-opt", "adamw", "-ub", "256", "-fa", "off", "-t", "2"] + CONTEXT,
                    timeout=600, name="train").must_end_well()
        choices = float(ask(context, OURS, path, "256", [], [ESTIMATE], "trained")[0])
        if not choices < LEARNED:
            raise Failure("llama-finetune on this library leaves a perplexity of %g" % choices)
        return path
    return context.once("trained", make)


def compare(context, side, path, base, at_a_time):
    """The change of the perplexity's logarithm, its standard deviation, and the divergence from the base."""
    options = ["--kl-divergence-base", base, "--kl-divergence"]
    (change, deviation), divergence = ask(context, side, path, at_a_time, options, [CHANGE, MEAN_DIVERGENCE], at_a_time)
    deviation = float(deviation)  # not a number where all predictions are equal
    return float(change), 0.0 if math.isnan(deviation) else deviation, float(divergence)


def add_row(type_name):
    @row("perplexity by rounding: %s" % type_name, only_all=type_name not in QUICK)
    def run(context):
        path, exact, base = ("%s/rounding.%s" % (context.scratch, end) for end in ("gguf", "exact.gguf", "base"))
        for argv in (["--pure", trained(context), path, type_name, "1"], ["--allow-requantize", path, exact, "F32", "2"]):
            context.run(THEIRS, ["llama-quantize"] + argv, name=argv[0].strip("-")).must_end_well()
        choices = ask(context, OURS, exact, "256", ["--save-all-logits", base], [ESTIMATE], "exact")[0]
        theirs = compare(context, THEIRS, path, base, THEIRS_AT_A_TIME)
        ours = [compare(context, OURS, path, base, n) for n in OURS_AT_A_TIME]
        text = ("%s changes by %+.5f, divergence %.6f" % (choices, theirs[0], theirs[2]),
                "%s ± %.5f, divergence %s" % (" and ".join("%+.5f" % c[0] for c in ours), max(c[1] for c in ours),
                                              " and ".join("%.6f" % c[2] for c in ours)))
        for change, deviation, divergence in ours:
            if not divergence <= DIVERGENCE * theirs[2] + DECIMALS:
                raise Failure("the divergence is above %g times theirs" % DIVERGENCE, *text)
            if not abs(change) <= abs(theirs[0]) + DEVIATIONS * deviation + DECIMALS:
                raise Failure("the perplexity is farther from that of F32 than theirs", *text)
        return text


for quantised_type in TYPES:
    add_row(quantised_type)
