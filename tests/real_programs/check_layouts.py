# SPDX-License-Identifier: MIT
"""Compares what programs compiled with ggml's headers rely on with this project's headers: the values of
enumeration constants, sizes and offsets of structs, types of functions. Speaks TAP.

usage: check_layouts.py FOLDER_OF_GGMLS_HEADERS FOLDER_OF_OUR_HEADERS CC...
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "abi"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import headers  # noqa: E402
from tap import Tap  # noqa: E402

# Headers whose declarations programs are linked with; those of single backends name what plugins have.
PUBLIC = ["ggml.h", "ggml-alloc.h", "ggml-backend.h", "ggml-cpu.h", "ggml-opt.h", "gguf.h"]
INCLUDES = "#include <stddef.h>\n#include <stdio.h>\n" + "".join(f'#include "{name}"\n' for name in PUBLIC)


def declarations(cc, folder):
    """Constants, (struct, field) pairs and functions of ggml's headers."""
    constants, fields, functions = [], [], {}
    for name in PUBLIC:
        text = headers.preprocess(cc, folder, name, [name])
        for statement in headers.statements(text):
            statement = re.sub(r"^((_Noreturn|extern|typedef) )+", "", statement)
            enum = re.match(r"enum (?:\w+ )?\{(.*)\}", statement)
            struct = re.match(r"struct (\w+) \{(.*)\}", statement)
            if enum:
                constants += [entry.partition("=")[0].strip() for entry in enum.group(1).split(",") if entry.strip()]
            elif struct and "{" not in struct.group(2):
                fields += [(struct.group(1), field) for field in field_names(struct.group(2))]
        functions.update(headers.parse(re.sub(r"\benum\b[^{;()]*\{[^}]*\}", "", text))[0])
    return constants, fields, functions


def field_names(body):
    for field in [f.strip() for f in body.split(";") if f.strip()]:
        pointer = re.search(r"\(\s*\*\s*(\w+)\s*\)\s*\(", field)
        if pointer:
            yield pointer.group(1)
        else:
            for part in field.split(","):
                yield re.findall(r"\w+", re.sub(r"\[.*?\]", "", part))[-1]


def questions(constants, fields):
    """Expressions of integers, each with a name."""
    for constant in constants:
        yield constant, f"(long long){constant}"
    for struct in sorted({struct for struct, _ in fields}):
        yield f"size of struct {struct}", f"(long long)sizeof(struct {struct})"
    for struct, field in fields:
        yield f"place of {struct}.{field}", f"(long long)offsetof(struct {struct}, {field})"
        yield f"size of {struct}.{field}", f"(long long)sizeof(((struct {struct} *)0)->{field})"


def values(cc, include, asked, folder):
    """What the headers say, by name."""
    lines = "".join(f'    printf("%lld\\n", {expression});\n' for _, expression in asked)
    source, program = os.path.join(folder, "values.c"), os.path.join(folder, "values")
    with open(source, "w", encoding="utf-8") as stream:
        stream.write(f"{INCLUDES}int main(void) {{\n{lines}    return 0;\n}}\n")
    subprocess.run(cc + ["-std=gnu11", "-w", "-I", include, source, "-o", program], check=True)
    answers = subprocess.run([program], stdout=subprocess.PIPE, check=True, universal_newlines=True).stdout.split()
    return {name: int(answer) for (name, _), answer in zip(asked, answers)}


def errors(cc, include, lines, folder):
    """Of each line of C after the includes, what the compiler says against it."""
    source = os.path.join(folder, "lines.c")
    with open(source, "w", encoding="utf-8") as stream:
        stream.write(INCLUDES + "\n".join(lines) + "\n")
    run = subprocess.run(cc + ["-std=gnu11", "-w", "-Werror=incompatible-pointer-types", "-fmax-errors=0",
                               "-fsyntax-only", "-I", include, source],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    first, found = INCLUDES.count("\n") + 1, {}
    for match in re.finditer(r"lines\.c:(\d+):\d+: error: (.*)", run.stdout):
        found.setdefault(int(match.group(1)) - first, match.group(2))
    if run.returncode != 0 and not found:
        raise RuntimeError(run.stdout)
    return found


def main():
    theirs, ours, cc = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3:]
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        alone = os.path.join(folder, "ggml")  # without the C library that may lie beside them
        os.mkdir(alone)
        for path in glob.glob(os.path.join(theirs, "gg*.h")):
            shutil.copy(path, alone)
        constants, fields, functions = declarations(cc, alone)
        asked = list(questions(constants, fields))
        expected = values(cc, alone, asked, folder)
        lines = [f'_Static_assert({expression} == {expected[name]}, "");' for name, expression in asked]
        wrong = errors(cc, ours, lines, folder)
        for i, (name, _) in enumerate(asked):
            tap.ok(i not in wrong, f"{name} is {expected[name]}", wrong.get(i, ""))
        lines = [f"static {returned} (*const of_{name})({', '.join(parameters)}) = {name};"
                 for name, (returned, parameters) in functions.items()]
        wrong = errors(cc, ours, lines, folder)
        for i, name in enumerate(functions):
            tap.ok(i not in wrong, f"{name} is called as by ggml's header", lines[i], wrong.get(i, ""))
        tap.ok(len(constants) > 250 and len(fields) > 70 and len(functions) > 600, "the headers were understood",
               f"{len(constants)} constants, {len(fields)} fields, {len(functions)} functions")
    tap.done()


if __name__ == "__main__":
    main()
