# SPDX-License-Identifier: MIT
"""Every struct of the plugin contract and each of its members is pinned in layout_pins.inl, and the
layout number that the rules state for other languages is that of the headers.

usage: check_pins.py ABI_DIR CONTRACT_MD CC...
"""
import os
import re
import subprocess
import sys
import tempfile

import headers

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import Tap  # noqa: E402

CONTRACT = ["ggml-plugin-note.h", "ggml-plugin-host.h", "ggml-plugin-table.h", "ggml-plugin-sdk.h", "ggml-backend-impl.h",
            "ggml-graph.h"] + headers.EXTENSIONS
# Not part of the contract: what the helper library keeps inside a plugin.
PRIVATE = {"ggml_sdk_plugin"}


def member_name(declaration):
    pointer = re.search(r"\(\*(\w+)(?:\[\w+\])?\)", declaration)
    return pointer.group(1) if pointer else re.findall(r"\w+", re.sub(r"\[.*?\]", "", declaration))[-1]


def layout_number(cc, abi_dir):
    """Found without running anything, so that it works for other machines too: the object has it as data."""
    source = '#include "ggml-plugin.h"\nconst unsigned long long number[2] = {0x4e524542554d4d47, GGML_PLUGIN_LAYOUT_HASH};\n'
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "number.o")
        subprocess.run(cc + ["-std=c11", "-I", abi_dir, "-x", "c", "-c", "-", "-o", path], input=source.encode(), check=True)
        with open(path, "rb") as file:
            data = file.read()
    at = data.index((0x4e524542554d4d47).to_bytes(8, "little")) + 8
    return "0x%016x" % int.from_bytes(data[at:at + 8], "little")


def main():
    abi_dir, rules, cc = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:]
    tap = Tap()
    with open(os.path.join(abi_dir, "layout_pins.inl"), encoding="utf-8") as file:
        text = file.read()
    sizes = set(re.findall(r"^GGML_PIN_SIZE\(struct (\w+),", text, re.M))
    pins = re.findall(r"^GGML_PIN\(struct (\w+), (\w+),", text, re.M)
    structs = headers.parse(headers.preprocess(cc, abi_dir, "ggml-plugin.h", CONTRACT))[2]
    tap.ok(len(structs) > 10, "structs of the contract are found")
    for struct, fields in sorted(structs.items()):
        if struct in PRIVATE:
            continue
        tap.ok(struct in sizes, "size of struct %s is pinned" % struct)
        tap.same([m for s, m in pins if s == struct], [member_name(f) for f in fields],
                 "members of struct %s are pinned in order" % struct)
    with open(rules, encoding="utf-8") as file:
        stated = re.search(r"layout number of contract 1\.0 is `(0x[0-9a-f]+)`", " ".join(file.read().split()))
    tap.same([stated and stated.group(1)], [layout_number(cc, abi_dir)], "the rules state the layout number")
    tap.done()


if __name__ == "__main__":
    main()
