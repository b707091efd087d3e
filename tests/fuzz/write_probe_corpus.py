#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the seeds in tests/fuzz/corpus; the formats are described in probe_input.h.

usage: write_probe_corpus.py DIRECTORY"""
import pathlib
import struct
import sys

READY, MAP, OK, CRASHED = 8, 5, 0, 40


def text(value):
    data = value.encode()
    return struct.pack("<I", len(data)) + data


def device(name, description="A device", number="0000:01:00.0", kind=1, caps=0b01001, details=()):
    return (text(name) + text(description) + text(number) +
            struct.pack("<IQQI", kind, 1 << 20, 2 << 20, caps) + struct.pack("<I", len(details)) +
            b"".join(text(key) + text(value) for key, value in details))


def library(path):
    return text(path) + struct.pack("<QQQqq", 0x802, 4711, 65536, 1700000000000000000, 1700000000000000001)


def cpu(core, package=0, node=0, speed=1, caches=(32, 512, 8192)):
    return struct.pack("<7I", core, package, node, speed, *caches)


def result(stage, status, message="", missing="", devices=(), libraries=(), cpus=()):
    return (struct.pack("<IIQ", stage, status, 1500) + text(message) + text(missing) +
            struct.pack("<I", len(devices)) + b"".join(devices) +
            struct.pack("<I", len(libraries)) + b"".join(library(path) for path in libraries) +
            struct.pack("<I", len(cpus)) + b"".join(cpus))


def frame(kind, payload=b""):
    return struct.pack("<BH", kind, len(payload)) + payload


def stage(number):
    return frame(2, struct.pack("<I", number))


GOOD = result(READY, OK, devices=[device("GPU0", details=[("driver", "550.1"), ("cores", "132")]),
                                  device("GPU1", "", "", 4, 0)],
              libraries=["/usr/lib/libdriver.so.1", "/lib/libc.so.6"])
RELATIVE = result(READY, OK, devices=[device("GPU0")], libraries=["libdriver.so.1"])
BAD = result(MAP, CRASHED, "the process ended by signal 11 (bad address)")
MISSING = result(4, 26, "it needs libdriver.so.1", "libdriver.so.1")
MANY = result(READY, OK, devices=[device("D%d" % i, "x" * i) for i in range(12)])
MACHINE = result(READY, OK, libraries=["/usr/lib/libhwloc.so.15"],
                 cpus=[cpu(0), cpu(0), bytes(28), cpu(3, 1, 1, 2), cpu(3, 1, 1, 2)])
UPWARDS = result(READY, OK, cpus=[cpu(1), cpu(1)])
PROBE = {
    "good": b"\1" + stage(4) + stage(5) + stage(8) + frame(3, GOOD) + frame(4),
    "bad": b"\1" + stage(4) + frame(3, BAD) + frame(4),
    "missing": b"\1" + frame(3, MISSING) + frame(4),
    "many": b"\1" + frame(3, MANY) + frame(4),
    "no-result": b"\1" + stage(4) + stage(7),
    "confined": b"\1" + frame(5) + stage(4) + frame(3, BAD) + frame(4),
    "not-confined": b"\1" + frame(5, b"Landlock: Function not implemented") + stage(4),
    "confined-late": b"\1" + stage(4) + frame(5),
    "relative-library": b"\1" + frame(3, RELATIVE) + frame(4),
    "machine": b"\1" + frame(3, MACHINE) + frame(4),
    "core-upwards": b"\1" + frame(3, UPWARDS) + frame(4),
    "twice": b"\1" + frame(3, GOOD) + frame(3, GOOD),
    "early-end": b"\1" + frame(4),
    "backwards": b"\1" + stage(7) + stage(4),
    "unknown": b"\1" + frame(9, b"abc"),
    "raw-text": b"\x10garbage from a driver\n",
    "raw-header": b"\0GBRF" + struct.pack("<IIII", 2, 1, 0, 0xFFFFFFFF) + bytes(32),
    "raw-magic": b"\0GBRF",
}
CACHE = {
    "good": b"\2" + bytes(32) + struct.pack("<Q", 1700000000) + GOOD,
    "bad": b"\2" + bytes(32) + struct.pack("<Q", 1700000000) + BAD,
    "many": b"\2" + bytes(32) + struct.pack("<Q", 1) + MANY,
    "future": b"\2" + bytes(32) + struct.pack("<Q", 0xFFFFFFFFFFFFFFFF) + MISSING,
    "machine": b"\2" + bytes(32) + struct.pack("<Q", 1700000000) + MACHINE,
    "short": b"\2" + bytes(16),
    "other-terms": b"\1" + struct.pack("<I", 2) + text("0.1") + text("unknown"),
    "raw": b"\0GGMLPRB\x1a" + bytes(40),
}


def main():
    for name, seeds in (("probe", PROBE), ("cache", CACHE)):
        folder = pathlib.Path(sys.argv[1]) / name
        folder.mkdir(parents=True, exist_ok=True)
        for seed, data in seeds.items():
            (folder / seed).write_bytes(data)


if __name__ == "__main__":
    main()
