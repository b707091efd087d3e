# SPDX-License-Identifier: MIT
"""Programs of llama.cpp with models of random weights."""
import models
from harness import THEIRS, Failure, LeftOut, row
from rows_ggml import LAVAPIPE, TESTS

# One thread each: the two sides run at the same time.
COMMON = ["-t", "1", "--no-warmup"]
# With keys and values in half precision, which is what programs do when nobody asks, logits are 5e-4 of their size apart:
# a token in some hundred is chosen by chance. In single precision, without the fused attention whose sums ggml keeps in
# half precision, the texts must be equal.
EXACT = ["-ctk", "f32", "-ctv", "f32", "-fa", "off"]
ESTIMATE = r"Final estimate: PPL = ([\d.]+)"
PROMPT = "The water of the day is like the light of the first word, and so"


# The driver that computes on the CPU is a GPU for who names its device, and libllama gives all layers to it.
OFFLOADED = dict(LAVAPIPE, GGML_DEVICES="CPU,Vulkan0")


def compare_logits(context, name, ours_env=None):
    ran, tokens, files = models.logits(context, [models.model(context, name)], ours_env=ours_env)
    if not ran[0].ok:
        raise LeftOut("their own library: %s: %s" % (ran[0].how(), ran[0].last_lines()))
    ran[1].must_end_well()
    distance = models.distance(files[0][0], files[1][0], models.count_same(tokens[0][0], tokens[1][0]))
    same = tokens[0] == tokens[1]
    text = "%d tokens" % len(tokens[0][0]), "%s, relative squared distance %.1e" % (
        "the same" if same else "others", distance)
    if not distance <= models.BOUND:
        raise Failure("the distance of the logits is above %g" % models.BOUND, *text)
    if not same and not models.is_tie(files[0][0], tokens[0][0], tokens[1][0], models.BOUND):
        raise Failure("other tokens are chosen", *text)
    if ours_env:
        layers = ran[1].find(r"offloaded (\d+/\d+) layers")
        if not layers or len(set(layers.split("/"))) != 1:
            raise Failure("not every layer was given to the device: %s" % layers, *text)
        text = text[0], "%s, %s layers offloaded" % (text[1], layers)
    return text


def add_model_rows(name):
    @row("%s: logits" % name)
    def logits(context):
        return compare_logits(context, name)

    @row("%s: logits, offloaded to Vulkan" % name, only_all=name != "llama")
    def offloaded(context):
        return compare_logits(context, name, OFFLOADED)

    @row("%s: llama-completion" % name)
    def completion(context):
        theirs, ours = context.both_output(["llama-completion", "-m", models.model(context, name), "-p", PROMPT, "-n",
                                            "32", "--temp", "0", "-no-cnv"] + COMMON + EXACT)
        if theirs != ours or len(theirs) < len(PROMPT) + 8:
            raise Failure("another text: %r" % ours[-60:], "%d bytes of text" % len(theirs), "%d others" % len(ours))
        return "%d bytes of text" % len(theirs), "the same"

    @row("%s: llama-cli" % name)
    def cli(context):
        theirs, ours = context.both_output(["llama-cli", "-m", models.model(context, name), "-p", "Tell me more.", "-n",
                                            "16", "--temp", "0", "-st", "--simple-io", "--no-show-timings"] + COMMON + EXACT)
        if theirs != ours or not theirs:
            raise Failure("another text: %r" % ours[-60:], "%d bytes of text" % len(theirs), "%d others" % len(ours))
        return "%d bytes of text" % len(theirs), "the same"

    @row("%s: llama-perplexity" % name)
    def perplexity(context):
        argv = ["llama-perplexity", "-m", models.model(context, name), "-f", models.text(context), "-c", "256",
                "--chunks", "8"] + COMMON
        base = context.scratch + "/base." + name
        values = [float(v) for v in context.both_find(argv + ["--save-all-logits", base + ".{side}"], ESTIMATE)]
        means = context.both_find(argv + ["--kl-divergence-base", base + ".theirs", "--kl-divergence"],
                                  r"Mean\s+KLD:\s+(-?[\d.e-]+)", name="divergence")
        mean = float(means[1])
        text = "%.4f" % values[0], "%.4f, divergence %.1e" % (values[1], mean)
        # Printed with four decimals; the divergence, with logits kept in 16 bits, with six.
        if not abs(values[1] - values[0]) <= 1e-4 * values[0]:
            raise Failure("the perplexity differs by more than 1e-4 of it", *text)
        if not abs(mean) <= 1e-4:
            raise Failure("the divergence is above 1e-4", *text)
        return text

    @row("%s: llama-imatrix" % name)
    def imatrix(context):
        argv = ["llama-imatrix", "-m", models.model(context, name), "-f", models.text(context), "-c", "256", "--chunks",
                "4", "-o", "%s/%s.{side}.imatrix" % (context.scratch, name), "-t", "1"]
        values = [float(v) for v in context.both_find(argv, ESTIMATE)]
        if not abs(values[1] - values[0]) <= 1e-4 * values[0]:
            raise Failure("the perplexity differs", *map(str, values))
        return tuple("%.4f" % v for v in values)

    @row("%s: llama-batched-bench" % name)
    def batched(context):
        # A run may lose its last lines, and its times differ from those of others.
        lines = [0, 0]
        for _ in range(8):
            ran = context.both_well(["llama-batched-bench", "-m", models.model(context, name), "-c", "1024", "-npp", "32,64",
                                     "-ntg", "16", "-npl", "1,4", "-t", "1"])
            lines = [max(most, side.stdout.count(b"\n|") - 2) for most, side in zip(lines, ran)]
            if lines == [4, 4]:
                break
        if lines[1] != 4:
            raise Failure("lines are missing in the table", *("%d results" % n for n in lines))
        return tuple("%d results" % n for n in lines)

    @row("%s: llama-bench" % name)
    def bench(context):
        context.both_find(["llama-bench", "-m", models.model(context, name), "-p", "64", "-n", "16", "-r", "1", "-t", "1"],
                          r"(tg16 .*)")
        return "2 results", "2 results"


for model in models.NAMES:
    add_model_rows(model)


def compare_archs(context, pattern):
    """Models that ggml's own test makes, of every architecture, on both libraries."""
    folder = context.scratch + "/archs"
    context.outside(folder).mkdir(exist_ok=True)
    try:
        made = context.run(THEIRS, [TESTS + "test-llama-archs", "-s", "7", "-o", folder] + pattern, timeout=600, name="make")
        made.must_end_well()
        names = sorted(p.name for p in context.outside(folder).glob("*.gguf"))
        ran, tokens, files = models.logits(context, ["%s/%s" % (folder, n) for n in names], timeout=1800)
        compared, wrong, worst = 0, [], (0.0, "")
        for index, name in enumerate(names):
            known = [t[index] if index < len(t) else None for t in tokens]
            if known[0] is None:
                continue  # what their own library can't run this way
            compared += 1
            if known[1] is None:
                wrong.append("%s: not done" % name)
                continue
            distance = models.distance(files[0][index], files[1][index], models.count_same(*known))
            worst = max(worst, (distance, name))
            if not distance <= models.BOUND:
                wrong.append("%s: %.1e" % (name, distance))
            elif not models.is_tie(files[0][index], *known, models.BOUND):
                wrong.append("%s: other tokens" % name)
        text = "%d models" % compared, "at most %.1e apart (%s)" % worst
        if wrong or not compared or ran[1].status not in (0, 1):
            raise Failure("%d wrong: %s; %s" % (len(wrong), ", ".join(wrong[:8]), ran[1].how()), *text)
        return text
    finally:
        for path in context.outside(folder).glob("*.gguf"):
            path.unlink()


@row("logits of some architectures")
def some_archs(context):
    return compare_archs(context, ["-a", "^(llama4|qwen3next|gpt2|bloom|deepseek2|gpt-oss|phi3|mamba|jamba|lfm2|minicpm3)$"])


@row("logits of every architecture", only_all=True)
def every_arch(context):
    return compare_archs(context, [])
