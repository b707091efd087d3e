#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes what the Python package takes from the headers: the types, the statuses, and the builders of operations with
the kinds of their parameters, as letters.

Usage: gen_builders.py FOLDER_OF_HEADERS OUTPUT"""
import os
import re
import sys

LETTERS = {"struct ggml_tensor *": "t", "const struct ggml_tensor *": "t", "int": "i", "int32_t": "i", "int64_t": "l",
           "uint32_t": "u", "size_t": "z", "float": "f", "bool": "b"}
BUILDER = re.compile(r"^GGML_API struct ggml_tensor \*ggml_(\w+)\(struct ggml_context \*ctx,([^)]*)\);", re.M)
# They make tensors from a shape; Graph.tensor() does it.
LEFT_OUT = re.compile(r"new_tensor|get_tensor|dup_tensor|view_tensor")


def parameter(text):
    """Letter and name of one parameter; None if Python can't pass it (an array, a callback)."""
    match = re.match(r"\s*(.*?[\s*])(\w+)\s*$", " ".join(text.split()))
    kind = match.group(1).strip() if match else ""
    letter = "i" if kind.startswith("enum ") else LETTERS.get(kind)
    return letter and (letter, match.group(2))


def rows(folder, name, macro):
    """Number and name in each row of a list."""
    with open(os.path.join(folder, name), encoding="utf-8") as stream:
        found = re.findall(r"^" + macro + r"\((-?\d+), (\w+)", stream.read(), re.M)
    return {key: int(number) for number, key in found}


def main():
    folder, output = sys.argv[1:]
    header = ""
    for name in ("ggml.h", "ggml-op.h"):
        with open(os.path.join(folder, name), encoding="utf-8") as stream:
            header += re.sub(r"//[^\n]*", "", stream.read())
    builders = {}
    for name, text in BUILDER.findall(header):
        parameters = [parameter(item) for item in text.split(",")]
        if all(parameters) and not LEFT_OUT.search(name):
            builders[name] = ("".join(letter for letter, _ in parameters), tuple(word for _, word in parameters))
    if len(builders) < 100:
        sys.exit("gen_builders.py: the headers have changed: %d builders" % len(builders))
    with open(output, "w", encoding="utf-8") as stream:
        stream.write('# SPDX-License-Identifier: MIT\n"""Made by gen_builders.py."""\n')
        for variable, values in (("TYPES", rows(folder, "type_list.inl", "GGML_TYPE_ROW")),
                                 ("STATUSES", rows(folder, "status_list.inl", "GGML_HOST_STATUS_ROW")),
                                 ("BUILDERS", builders)):
            stream.write("\n%s = {\n" % variable)
            stream.writelines("    %r: %r,\n" % item for item in values.items())
            stream.write("}\n")


if __name__ == "__main__":
    main()
