# SPDX-License-Identifier: MIT
"""Reads the declarations of a C header, as the compiler's preprocessor leaves them."""
import os
import re
import subprocess

# A header for each extension of the contract.
EXTENSIONS = ["ggml-ext-%s.h" % name for name in (
    "comm", "cpu-features", "device-figures", "device-info", "external-memory", "host-memory", "plugin-path", "profile",
    "registry", "trial")]

QUALIFIERS = {"const", "volatile", "restrict", "unsigned", "signed"}


def preprocess(cc, abi_dir, header, files):
    """Text of `header` that stems from the named files of abi_dir."""
    run = subprocess.run(cc + ["-std=c11", "-E", "-I", abi_dir, os.path.join(abi_dir, header)],
                         stdout=subprocess.PIPE, check=True, universal_newlines=True)
    lines, keep = [], False
    for line in run.stdout.splitlines():
        marker = re.match(r'# \d+ "(.*?)"', line)
        if marker:
            name = os.path.basename(marker.group(1))
            if not name.endswith(".inl"):  # lists belong to the header that includes them
                keep = os.path.dirname(marker.group(1)) == abi_dir and name in files
        elif keep and not line.startswith("#"):
            lines.append(line)
    return re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)", "", "\n".join(lines))


def statements(text):
    """The top-level declarations and definitions, without bodies of functions."""
    depth, current = 0, ""
    for char in text:
        current += char
        if char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0 and re.match(r"\s*static inline\b", current):
                current = ""
        elif char == ";" and depth == 0:
            yield re.sub(r"\s+", " ", current[:-1]).strip()
            current = ""


def normal(text):
    """A type or declaration with uniform spacing."""
    text = re.sub(r"\b__restrict(__)?\b|\bGGML_RESTRICT\b", "restrict", text)
    text = re.sub(r"\b_Bool\b", "bool", text)
    text = re.sub(r"\s*([*()\[\],/])\s*", r"\1", re.sub(r"\s+", " ", text.strip()))
    return re.sub(r"\s+", " ", text)


def parameter_type(text):
    """Type of a parameter without its name; arrays decay to pointers."""
    text = normal(text)
    array = "[" in text
    text = re.sub(r"\[[^\]]*\]", "", text)
    tagged = re.match(r"(?:const )?(?:struct|enum|union) \w+(.*)", text)
    rest = tagged.group(1) if tagged else text
    words = [w for w in re.findall(r"\w+", rest) if w not in QUALIFIERS]
    named = len(words) > (0 if tagged else 1)
    if named and text != "...":
        text = re.sub(r"\w+$", "", text)
    return normal(text) + ("*" if array else "")


def split_parameters(text):
    return [parameter_type(p) for p in text.split(",")]


def parse(text):
    """Dictionaries of functions, enums, structs and typedefs by name."""
    functions, enums, structs, typedefs = {}, {}, {}, {}
    for statement in statements(text):
        statement = re.sub(r"^((_Noreturn|extern) )+", "", statement)
        body = re.match(r"(enum|struct) (\w+) \{(.*)\}$", statement)
        alias = re.match(r"typedef (.*)", statement)
        function = re.match(r"([^(]*?)\b(\w+) ?\((.*)\)$", statement)
        if body and body.group(1) == "enum":
            enums[body.group(2)] = parse_enum(body.group(3))
        elif body:
            structs[body.group(2)] = [normal(f) for f in body.group(3).split(";") if f.strip()]
        elif alias:
            typedefs[typedef_name(alias.group(1))] = normal(alias.group(1))
        elif function and not re.search(r"^static |{", statement):
            functions[function.group(2)] = (normal(function.group(1)), split_parameters(function.group(3)))
    return functions, enums, structs, typedefs


def parse_enum(text):
    values, value = {}, -1
    for entry in [e.strip() for e in text.split(",") if e.strip()]:
        name, _, expression = entry.partition("=")
        value = int(expression.strip(), 0) if expression else value + 1
        values[name.strip()] = value
    return values


def typedef_name(text):
    pointer = re.search(r"\(\s*\*\s*(\w+)\s*\)", text)
    return pointer.group(1) if pointer else re.findall(r"\w+", re.sub(r"\[.*\]", "", text))[-1]


def macros(cc, abi_dir, header):
    run = subprocess.run(cc + ["-std=c11", "-E", "-dM", "-I", abi_dir, os.path.join(abi_dir, header)],
                         stdout=subprocess.PIPE, check=True, universal_newlines=True)
    return dict(re.findall(r"^#define (\w+)(?:\([^)]*\))? ?(.*)$", run.stdout, re.M))
