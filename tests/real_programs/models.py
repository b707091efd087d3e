# SPDX-License-Identifier: MIT
"""Models and texts that rows share, and how far logits are apart."""
import array
import random
import struct
import subprocess

from harness import Failure

NAMES = ("llama", "qwen3", "gemma3", "qwen3moe", "mamba2")
# Mean squared difference of logits over their mean square. Half-precision caches of keys and values, which both sides
# round at other places, leave 1e-6 with F32 weights.
BOUND = 2e-6


def model(context, name):
    """The path in the system of a model with F32 weights."""
    def make():
        path = "%s/%s.gguf" % (context.scratch, name)
        subprocess.run([str(context.build / "tests/real_programs/make-model"), name, str(context.outside(path))],
                       check=True)
        return path
    return context.once("model " + name, make)


WORDS = "the a of and to in is was it that with for on by from we see run time light water small great word " \
        "number other many then them these so some her would make like him into has look two more write go way " \
        "could people my than first been call who its now find long down day did get come made may part".split()


def text(context, n_words=2000):
    """The path in the system of a text of random sentences."""
    def make():
        rng = random.Random(5)
        words = []
        while len(words) < n_words:
            sentence = [rng.choice(WORDS) for _ in range(rng.randint(4, 14))]
            words += [sentence[0].capitalize()] + sentence[1:-1] + [sentence[-1] + "."]
        path = context.scratch + "/text-%d.txt" % n_words
        context.outside(path).write_text(" ".join(words) + "\n")
        return path
    return context.once("text %d" % n_words, make)


def read_logits(path):
    data = path.read_bytes()
    rows, columns = struct.unpack("<qq", data[:16])
    values = array.array("f")
    values.frombytes(data[16:])
    return rows, columns, values


N_PROMPT_ROWS = 96  # of logits.c: before those that depend on which tokens were chosen


def count_same(*tokens):
    """How many tokens all of them chose alike, before the first that one chose otherwise."""
    return next((i for i, row in enumerate(zip(*tokens)) if len(set(row)) > 1), min(map(len, tokens)))


def distance(path_a, path_b, same):
    """Mean squared difference over the mean square of the first; raises a Failure for what is no number. Rows are
    those of the prompt and of so many chosen tokens."""
    a, b = read_logits(path_a), read_logits(path_b)
    if a[:2] != b[:2]:
        raise Failure("%d x %d logits, ours %d x %d" % (a[:2] + b[:2]))
    count = (N_PROMPT_ROWS + same) * a[1]
    power = sum(x * x for x in a[2][:count])
    error = sum((x - y) * (x - y) for x, y in zip(a[2][:count], b[2][:count]))
    if not error >= 0 or power == 0 or power == float("inf"):
        raise Failure("logits that are no numbers")
    return error / power


def is_tie(path, tokens_a, tokens_b, bound):
    """Whether the first token that was chosen otherwise was as likely as the other but for the bound."""
    _, columns, values = read_logits(path)
    for index, (one, other) in enumerate(zip(tokens_a, tokens_b)):
        if one != other:
            start = (N_PROMPT_ROWS + index - 1) * columns
            row = values[start:start + columns]
            size = (sum(x * x for x in row) / columns) ** 0.5
            return abs(row[int(one)] - row[int(other)]) <= 4 * bound ** 0.5 * size
    return True


def logits_program(context):
    return context.compile("logits.c", ["-lllama", "-lggml", "-lggml-base"])


def logits(context, paths, timeout=300, ours_env=None, at_a_time=64):
    """Logits of models on both libraries: for each path the tokens that were chosen, and files, of each side."""
    program = logits_program(context)
    argv = [program, str(at_a_time)]
    for index, path in enumerate(paths):
        argv += [path, "%s/logits-%d.{side}" % (context.scratch, index)]
    ran = context.both(argv, timeout=timeout, name="logits", ours_env=ours_env)
    found = []
    for side in ran:
        blocks = side.text.split("$ standard output")[-1].split("model ")[1:]
        found.append([None if "not done" in block or "tokens:" not in block else
                      block.split("tokens:")[1].splitlines()[0].split() for block in blocks])
    files = [[context.outside("%s/logits-%d.%s" % (context.scratch, i, side.side)) for i in range(len(paths))]
             for side in ran]
    return ran, found, files
