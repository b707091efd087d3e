# SPDX-License-Identifier: MIT
"""Compares the public headers with the tables of ggml's API.

usage: check_api.py ABI_DIR API_DIR CC...
"""
import csv
import os
import re
import sys

import headers

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import Tap  # noqa: E402

# The builders of operations are in headers of their own that ggml.h includes.
PARTS = {"ggml.h": ["ggml.h", "ggml-op.h", "ggml-op-image.h"]}
# Macros that belong to a compiler or a build rather than to the API.
OWN_VALUE = {"GGML_API", "GGML_BACKEND_API", "GGML_NORETURN", "GGML_RESTRICT"}
NOT_OURS = {"_WIN32_WINNT"}


def read_table(api_dir, name):
    with open(os.path.join(api_dir, name), newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def check_functions(tap, rows, declared):
    for row in rows:
        name = row["name"]
        if tap.ok(name in declared, "%s is declared" % name):
            expected = (headers.normal(row["returns"]), headers.split_parameters(row["parameters"]))
            tap.same(declared[name], expected, "signature of %s" % name)
    extra = sorted(set(declared) - {row["name"] for row in rows})
    tap.ok(not extra, "no functions beyond the table", *extra)


def check_enums(tap, rows, declared):
    expected = {}
    for row in rows:
        expected.setdefault(row["enum"], {})[row["constant"]] = int(row["value"], 0)
    for name, constants in expected.items():
        tap.same(declared.get(name), constants, "constants of enum %s" % name)
    extra = sorted(set(declared) - set(expected))
    tap.ok(not extra, "no enums beyond the table", *extra)


def check_structs(tap, rows, declared, constants):
    expected = {}
    for row in rows:
        expected.setdefault(row["struct"], []).append(headers.normal(expand(row["field"], constants)))
    for name, fields in expected.items():
        tap.same(declared.get(name), fields, "fields of struct %s" % name)


def expand(text, constants):
    """The text with the macros of array sizes replaced by their values."""
    def size(match):
        known = re.sub(r"[A-Z_]{4,}", lambda m: constants[m.group(0)], match.group(1))
        return "[%s]" % re.sub(r"\s", "", known)
    return re.sub(r"\[([^\]]*)\]", size, text)


def check_typedefs(tap, rows, declared):
    for row in rows:
        name = headers.typedef_name(row["typedef"])
        tap.same(without_names(declared.get(name, "")), without_names(row["typedef"]), "typedef %s" % name)


def without_names(text):
    pointer = re.match(r"(.*\(\*\w+\))\((.*)\)$", headers.normal(text))
    if not pointer:
        return headers.normal(text)
    return "%s(%s)" % (pointer.group(1), ",".join(headers.split_parameters(pointer.group(2))))


def check_macros(tap, rows, defined):
    allowed = {}
    for row in rows:
        allowed.setdefault(row["macro"], set()).add(headers.normal(row["value"]))
    for name, values in allowed.items():
        if name in NOT_OURS:
            continue
        value = defined.get(name)
        passed = value is not None and (name in OWN_VALUE or headers.normal(value) in values)
        tap.ok(passed, "macro %s" % name, "expected: %s" % values, "actual:   %s" % value)


def main():
    abi_dir, api_dir, cc = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:]
    tap = Tap()
    tables = {n: read_table(api_dir, n + ".tsv") for n in
              ["functions", "enums", "structs", "typedefs", "constants"]}
    constants = {row["macro"]: row["value"] for row in tables["constants"]}
    for header in sorted({row["header"] for row in tables["functions"]}):
        rows = {n: [r for r in table if r["header"] == header] for n, table in tables.items()}
        text = headers.preprocess(cc, abi_dir, header, PARTS.get(header, [header]))
        functions, enums, structs, typedefs = headers.parse(text)
        if header == "ggml-backend.h":  # its handle types are shared with ggml-alloc.h
            alloc = headers.preprocess(cc, abi_dir, "ggml-alloc.h", ["ggml-alloc.h"])
            typedefs = {**headers.parse(alloc)[3], **typedefs}
        check_functions(tap, rows["functions"], functions)
        check_enums(tap, rows["enums"], enums)
        check_structs(tap, rows["structs"], structs, constants)
        check_typedefs(tap, rows["typedefs"], typedefs)
        check_macros(tap, rows["constants"], headers.macros(cc, abi_dir, header))
    tap.done()


if __name__ == "__main__":
    main()
