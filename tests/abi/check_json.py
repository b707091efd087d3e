# SPDX-License-Identifier: MIT
"""What ggml-contract.json says is what the compiler says of the headers.

usage: check_json.py ABI_DIR JSON CC...
"""
import json
import os
import re
import subprocess
import sys

import headers

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import Tap  # noqa: E402

PREFIXES = {"statuses": "GGML_HOST_", "types": "GGML_TYPE_", "tensor_flags": "GGML_TENSOR_FLAG_",
            "operations": "GGML_OP_", "unary_operations": "GGML_UNARY_OP_", "glu_operations": "GGML_GLU_OP_"}


def claims(contract):
    for name, prefix in PREFIXES.items():
        for row in contract[name]:
            if not row.get("removed"):
                yield "%s%s == %d" % (prefix, row["name"], row["number"])
    for feature in contract["cpu_features"]:
        yield "GGML_CPU_%s_%s == %d" % (feature["machine"], feature["name"], feature["bit"])
    for name, struct in contract["structs"].items():
        yield "sizeof(struct %s) == %d" % (name, struct["bytes"])
        for member, offset in struct["members"].items():
            yield "offsetof(struct %s, %s) == %d" % (name, member, offset)
    for name, value in contract["constants"].items():
        if isinstance(value, int):
            yield "%s == %d" % (name, value)
        else:
            yield "sizeof(%s) == sizeof(%s)" % (name, json.dumps(value))
    yield "GGML_PLUGIN_LAYOUT_HASH == UINT64_C(%s)" % contract["layout_number"]


def refused(cc, abi_dir, lines):
    """Those that are not true."""
    source = '#include "ggml-plugin.h"\n' + "".join('_Static_assert(%s, "");\n' % line for line in lines)
    ran = subprocess.run(cc + ["-std=c11", "-fsyntax-only", "-I", abi_dir, "-x", "c", "-"], input=source,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, check=False)
    return ran.stdout if ran.returncode != 0 else ""


def main():
    abi_dir, path, cc = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:]
    with open(path, encoding="utf-8") as file:
        contract = json.load(file)
    tap = Tap()
    found = list(claims(contract))
    for what, least in [("operations", 100), ("types", 30), ("structs", 20), ("constants", 50)]:
        tap.ok(len(contract[what]) >= least, "%d %s" % (len(contract[what]), what))
    text = headers.preprocess(cc, abi_dir, "ggml-plugin.h", [n for n in os.listdir(abi_dir) if n.endswith(".h")])
    enumerators = set(re.findall(r"\b(GGML_(?:BACKEND|PLUGIN|STATUS|DEVICE|LOG|MACHINE)_\w+)\s*=\s*-?\d", text))
    tap.same(sorted(enumerators - set(contract["constants"])), [], "every numbered enumerator of %d is there" % len(enumerators))
    wrong = refused(cc, abi_dir, found)
    tap.ok(not wrong, "%d numbers are those of the headers" % len(found), wrong)
    tap.ok(refused(cc, abi_dir, ["GGML_OP_ADD == 3"]), "another number is refused")
    tap.done()


if __name__ == "__main__":
    main()
