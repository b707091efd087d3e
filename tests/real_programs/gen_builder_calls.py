# SPDX-License-Identifier: MIT
"""Writes calls of every graph builder through pointers, and the cases that builder_diff.c starts from.

usage: gen_builder_calls.py GGML.H CASES.txt CALLS.inl NAMES.inl

CALLS.inl gets the calls and the cases, NAMES.inl an enum of the builders.
Each line of CASES.txt is a builder without "ggml_" and its arguments without the context:
    f32[8,4,3,2]      a tensor; i32[3]<1:2 holds numbers below extent 2 of argument 1, i32[3]<5 below 5, with ! none twice;
                      f32[8]>0 positive numbers
    NULL              an absent tensor
    7, 0.5, -1        a number; =7 is never changed
    {1,2,3,4}         an array of four
"""
import re
import sys

KINDS = {
    "int": "i", "int32_t": "i", "bool": "i", "uint32_t": "i", "int64_t": "i", "size_t": "i", "float": "f",
}


def kind_of(declaration):
    declaration = declaration.strip()
    if re.match(r"(const )?struct ggml_tensor \*", declaration):
        return "t", "struct ggml_tensor *"
    if re.match(r"int \w+\[", declaration):
        return "a", "int *"
    if re.match(r"int64_t \*", declaration):
        return "n", "int64_t *"
    ctype = declaration.rsplit(" ", 1)[0].strip()
    if ctype.startswith("enum "):
        return "i", ctype
    return KINDS[ctype], ctype


MEMBER = {"t": "t", "i": "i", "f": "f", "a": "a", "n": "n"}


def number(text):
    return {"true": "1", "false": "0", "inf": "INFINITY", "-inf": "-INFINITY"}.get(text, text)


def argument(text, kind):
    if kind == "t":
        if text == "NULL":
            return "{.kind = 't', .absent = true}"
        match = re.fullmatch(r"(\w+)\[([\d,]+)\](?:<(\d+)(?::(\d))?)?(>0|!)?", text)
        if not match:
            raise SystemExit("not a tensor: " + text)
        ne = (match[2].split(",") + ["1"] * 4)[:4]
        bound = ""
        if match[4]:
            bound = ", .bound_of = %s, .bound_dim = %s, .bounded = BOUND_EXTENT" % (match[3], match[4])
        elif match[3]:
            bound = ", .bound = %s, .bounded = BOUND_NUMBER" % match[3]
        elif match[5] == ">0":
            bound = ", .bounded = POSITIVE"
        if match[5] == "!":
            bound += ", .distinct = true"
        return "{.kind = 't', .type = \"%s\", .ne = {%s}%s}" % (match[1], ", ".join(ne), bound)
    if kind in "an":
        fixed = ", .fixed = true" if text.startswith("=") else ""
        return "{.kind = '%s', .array = {%s}%s}" % (kind, text.strip("={}"), fixed)
    fixed = ", .fixed = true" if text.startswith("=") else ""
    return "{.kind = '%s', .number = %s%s}" % (kind, number(text.lstrip("=")), fixed)


def declarations(path):
    """The builders in a header: names without "ggml_", and parameters."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"//[^\n]*|/\*.*?\*/", "", file.read(), flags=re.S)
    pattern = r"GGML_API\s+struct\s+ggml_tensor\s*\*\s*ggml_(\w+)\s*\(\s*(struct\s+ggml_context\s*\*[^;{]*?)\)\s*[;,]"
    for name, parameters in re.findall(pattern, text):
        yield name, re.sub(r"\s+", " ", parameters)


def main():
    header, cases, calls_path, names_path = sys.argv[1:]
    builders = {}
    for name, parameters in declarations(header):
        try:
            builders[name] = [kind_of(p) for p in parameters.split(",")[1:]]
        except KeyError:
            pass  # takes a function of the application
    rows, used = [], []
    with open(cases, encoding="utf-8") as file:
        for line in file:
            words = line.split("#")[0].split()
            if not words:
                continue
            name, given = words[0], words[1:]
            kinds = builders[name]
            if len(given) != len(kinds):
                raise SystemExit("%s takes %d arguments: %s" % (name, len(kinds), line))
            if name not in used:
                used.append(name)
            arguments = ", ".join(argument(text, kind) for text, (kind, _) in zip(given, kinds))
            rows.append("    {BUILDER_%s, %d, {%s}}," % (name, len(kinds), arguments))
    with open(names_path, "w", encoding="utf-8") as out:
        out.write("enum { %s, N_BUILDERS };\n" % ", ".join("BUILDER_" + name for name in used))
    with open(calls_path, "w", encoding="utf-8") as out:
        for name in used:
            kinds = builders[name]
            signature = ", ".join(["struct ggml_context *"] + [ctype for _, ctype in kinds])
            values = "".join(", (%s)v[%d].%s" % (ctype, i, MEMBER[kind]) for i, (kind, ctype) in enumerate(kinds))
            out.write("static struct ggml_tensor *call_%s(void *f, struct ggml_context *ctx, const union value *v) {\n"
                      "    (void)v;\n"
                      "    return ((struct ggml_tensor * (*)(%s)) f)(ctx%s);\n}\n" % (name, signature, values))
        out.write("const struct builder builders[N_BUILDERS] = {\n%s\n};\n" %
                  "\n".join('    {"ggml_%s", call_%s},' % (name, name) for name in used))
        out.write("static const struct base_case base_cases[] = {\n%s\n};\n" % "\n".join(rows))
    missing = sorted(set(builders) - set(used))
    print("not covered: " + " ".join(missing))


if __name__ == "__main__":
    main()
