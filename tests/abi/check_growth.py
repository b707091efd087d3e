# SPDX-License-Identifier: MIT
"""Compares the lists of operations, types and flags with the frozen ones: what was there stays as it was,
REUSE and ALIAS of an operation among it, and what came since then says so.

usage: check_growth.py ABI_DIR FROZEN_DIR CC...
"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import Tap  # noqa: E402


PROGRAM = """
#define GGML_OP_PARAM(text, word, n, since) | word n since
#define GGML_OP_SRC(slot, since) | src slot since
#define GGML_OP_VALUES(word, first, n, set, since) | values word first n set since
#define GGML_OP_ROW(number, name, symbol, min, max, type, shape, cost, flops, flags, builders, since, more) \\
    @ op name number since max flags more
#include "op_list.inl"
#define GGML_OP_PARAM(text, word, n, since) | word n since
#define GGML_UNARY_ROW(number, name, since, params) @ unary name number since 0 NONE params
#include "unary_list.inl"
#define GGML_OP_PARAM(text, word, n, since) | word n since
#define GGML_GLU_ROW(number, name, since, params) @ glu name number since 0 NONE params
#include "glu_list.inl"
#define GGML_TYPE_ROW(number, name, text, block, size, quantized, since) @ type name number since 0 NONE
#include "type_list.inl"
#define GGML_TENSOR_FLAG_ROW(value, name, since) @ flag name value since 0 NONE
#include "flag_list.inl"
"""


def things(cc, folder):
    """What the lists give a meaning to: {what: (minor that it came with, what never changes of it)}."""
    text = subprocess.run(cc + ["-E", "-P", "-I", folder, "-x", "c", "-"], input=PROGRAM, stdout=subprocess.PIPE,
                          check=True, universal_newlines=True).stdout
    found = {}
    for row in text.split("@")[1:]:
        head, *parts = row.split("|")
        kind, name, number, since, n_src, flags = head.split()
        found[kind, name] = int(since), (number, flags if flags in ("REUSE", "ALIAS") else "")
        sources = {slot: int(since) for slot in range(int(n_src))}
        for part in (part.split() for part in parts):
            if part[0] == "values":
                word, first, bits, values, part_since = part[1:]
                for value in (v for v in range(64) if int(values, 16) >> v & 1):
                    found[kind, name, "word %s from bit %s: value %d" % (word, first, value)] = int(part_since), bits
                continue
            first, n, part_since = part
            if first == "src":
                sources[int(n)] = int(part_since)
            for word in range(int(first), int(first) + int(n)) if first != "src" else []:
                found[kind, name, "word %d" % word] = int(part_since), ""
        for slot, slot_since in sources.items():
            found[kind, name, "source %d" % slot] = slot_since, ""
    return found


def minor(folder):
    with open(os.path.join(folder, "ggml-plugin-note.h"), encoding="utf-8") as file:
        return int(re.search(r"define GGML_CONTRACT_MINOR (\d+)", file.read()).group(1))


def faults(cc, folder, frozen_dir, newest):
    frozen, now, oldest = things(cc, frozen_dir), things(cc, folder), minor(frozen_dir)
    wrong = ["%s is not what it was" % " ".join(what) for what in frozen if now.get(what) != frozen[what]]
    return wrong + ["%s does not say which later minor it came with" % " ".join(what)
                    for what in now if what not in frozen and not oldest < now[what][0] <= newest]


CHANGES = [
    ("an operation that may no longer run in place", "op_list.inl", r"(, ADD, .*?)REUSE", r"\1NONE", True),
    ("an operation that may run in place only now", "op_list.inl", r"(, CUMSUM, .*?)NONE", r"\1REUSE", True),
    ("another number", "type_list.inl", r"\(28, F64", "(31, F64", True),
    ("a parameter that counts as always known", "op_list.inl", r'(?=GGML_OP_PARAM\("i32 n_dims")',
     'GGML_OP_PARAM("f32 new", 3, 1, 0) ', True),
    ("a source that counts as always known", "op_list.inl", r"(, SOFT_MAX, [^,]*, 1, )3", r"\g<1>4", True),
    ("a value that counts as always known", "op_list.inl", r'(?=GGML_OP_PARAM\("i32 order")',
     "GGML_OP_VALUES(0, 0, 32, 0x4, 0) ", True),
    ("a value that has lost its meaning", "op_list.inl", r'("i32 order".*?)0x3', r"\g<1>0x1", True),
    ("a value of the next minor", "op_list.inl", r'(?=GGML_OP_PARAM\("i32 order")',
     "GGML_OP_VALUES(0, 0, 32, 0x4, 1) ", False),
    ("a flag of a minor that is to come", "flag_list.inl", "(?=#undef)", "GGML_TENSOR_FLAG_ROW(32, NEW, 2)\n", True),
    ("a parameter of the next minor", "op_list.inl", r'(?=GGML_OP_PARAM\("i32 n_dims")',
     'GGML_OP_PARAM("f32 new", 3, 1, 1) ', False),
]


def main():
    abi_dir, frozen_dir, *cc = sys.argv[1:]
    tap = Tap()
    found = faults(cc, abi_dir, frozen_dir, minor(abi_dir))
    tap.ok(not found, "%d things that nodes are made of grew by the rules" % len(things(cc, abi_dir)), *found)
    for what, name, pattern, replacement, bad in CHANGES:
        with tempfile.TemporaryDirectory() as folder:
            for list_name in (n for n in os.listdir(frozen_dir) if n.endswith("_list.inl")):
                with open(os.path.join(frozen_dir, list_name), encoding="utf-8") as file:
                    text, n = file.read(), 1
                if list_name == name:
                    text, n = re.subn(pattern, replacement, text, count=1, flags=re.S)
                with open(os.path.join(folder, list_name), "w", encoding="utf-8") as file:
                    file.write(text)
                if n != 1:
                    tap.ok(False, "%s: nothing to change in %s" % (what, name))
            tap.ok(bool(faults(cc, folder, frozen_dir, minor(frozen_dir) + 1)) == bad,
                   "%s is %s" % (what, "found" if bad else "fine"))
    tap.done()


if __name__ == "__main__":
    main()
