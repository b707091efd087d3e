# SPDX-License-Identifier: MIT
"""whisper.cpp with a tiny model of random weights, on generated sound."""
import array
import math
import random
import subprocess
import wave

from harness import Failure, row

RATE = 16000


def model(context):
    def make():
        path = context.scratch + "/whisper.bin"
        subprocess.run([str(context.build / "tests/real_programs/make-whisper"), str(context.outside(path))], check=True)
        return path
    return context.once("whisper model", make)


def sound(context, seconds=12):
    """The path in the system of a file with a gliding tone, beeps and noise."""
    def make():
        rng = random.Random(3)
        samples = array.array("h")
        for index in range(RATE * seconds):
            t = index / RATE
            value = 0.3 * math.sin(2 * math.pi * (200 + 150 * math.sin(2 * t)) * t) + 0.05 * rng.gauss(0, 1)
            if math.sin(5 * t) > 0:
                value += 0.15 * math.sin(2 * math.pi * 1700 * t)
            samples.append(int(max(-1, min(1, value)) * 30000))
        path = context.scratch + "/sound.wav"
        with wave.open(str(context.outside(path)), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(RATE)
            file.writeframes(samples.tobytes())
        return path
    return context.once("sound", make)


def same_segments(context, path, options, name=""):
    argv = ["whisper-cli", "-m", path, "-f", sound(context), "-t", "1", "-nf"] + options
    theirs, ours = context.both_well(argv, name=name)
    lines = [r.stdout.decode(errors="replace").strip().splitlines() for r in (theirs, ours)]
    text = tuple("%d segments, %d words" % (len(side), sum(line.count(" w") for line in side)) for side in lines)
    if lines[0] != lines[1] or not lines[0]:
        raise Failure("another text", text[0], text[1] + ", others")
    return text[0], "the same"


@row("whisper-cli, greedy")
def greedy(context):
    return same_segments(context, model(context), ["-bs", "1", "-bo", "1"])


@row("whisper-cli, beam search")
def beams(context):
    return same_segments(context, model(context), ["-bs", "5"])


def add_quantised(type_name):
    @row("whisper-quantize %s" % type_name)
    def run(context):
        path = "%s/whisper-%s.{side}.bin" % (context.scratch, type_name)
        context.both_well(["whisper-quantize", model(context), path, type_name])
        paths = [path.format(side=side) for side in ("theirs", "ours")]
        sizes = [context.outside(p).stat().st_size for p in paths]
        if sizes[0] != sizes[1]:
            raise Failure("files of other sizes", *("%d bytes" % s for s in sizes))
        # Each runs on the other side too. The texts of the two sides differ at times: the other operand of products is
        # rounded to 8 bits by theirs and not by ours.
        for index, made in enumerate(paths):
            context.both_well(["whisper-cli", "-m", made, "-f", sound(context), "-t", "1", "-nf", "-bs", "1", "-bo", "1"],
                              name="by-" + ("theirs", "ours")[index])
        return "%d bytes" % sizes[0], "%d bytes, each runs on both" % sizes[1]


for quantised_type in ("q5_0", "q8_0"):
    add_quantised(quantised_type)


@row("whisper-bench", only_all=True)
def bench(context):
    theirs, ours = context.both_well(["whisper-bench", "-m", model(context), "-t", "1"], timeout=600)
    times = [r.find(r"encode time =\s*([\d.]+ ms)") for r in (theirs, ours)]
    if None in times:
        raise Failure("no times are printed", *map(str, times))
    return tuple("encodes in " + t for t in times)
