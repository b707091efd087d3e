# SPDX-License-Identifier: MIT
"""Every struct of the plugin contract and each of its members is pinned in layout_pins.inl.

usage: check_pins.py ABI_DIR CC...
"""
import os
import re
import sys

import headers
from tap import Tap

CONTRACT = ["ggml-plugin.h", "ggml-backend-impl.h"]
# Not part of the contract: what the helper library keeps inside a plugin.
PRIVATE = {"ggml_sdk_plugin"}


def member_name(declaration):
    pointer = re.search(r"\(\*(\w+)(?:\[\w+\])?\)", declaration)
    return pointer.group(1) if pointer else re.findall(r"\w+", re.sub(r"\[.*?\]", "", declaration))[-1]


def main():
    abi_dir, cc = os.path.abspath(sys.argv[1]), sys.argv[2:]
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
    tap.done()


if __name__ == "__main__":
    main()
