#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the kernels' Metal source without Apple's compiler: clang compiles it as C++14 with Metal's address spaces, which
a few declarations in metal_stdlib stand for, and what else Metal's language lacks is looked for in the text. Then
mistakes are planted, each of which has to be found.

usage: check_metal.py CLANG FLATTENED SOURCE KERNEL_LIST METAL_KERNEL_LIST FOLDER...    in TAP
"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from tap import Tap  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
OPTIONS = ["-target", "arm64-apple-macos13", "-x", "c++", "-std=c++14", "-nostdinc", "-nostdinc++", "-Wall", "-Wextra",
           "-Werror", "-Wno-unused-function", "-Wno-unknown-pragmas", "-isystem", HERE, "-D__METAL_VERSION__=300"]

TYPE = r"(?:(?:[ui](?:8|16|32|64))|float|bool|void|uint|gpu_[a-z]+|[a-z]+_(?:state|sum|memory|columns|block|result))"
FORBIDDEN = [
    (r"\bdouble\b|\blong double\b", "Metal has no double"),
    (r"\blong long\b", "Metal has no long long"),
    (r"\[[&=]?\]\s*\(|\[[&=]\]", "no lambdas"),
    (r"\bgoto\b|\bnew\b|\bdelete\b|\bthrow\b|\btry\b|\bvirtual\b|\bdynamic_cast\b|\bthread_local\b", "not in Metal's C++"),
    (r"\b(?:float|u8|i8|u16|u32|i32|u64|i64|int) (?:half|kernel|vertex|fragment|sampler|texture|device|constant|thread)\b",
     "a word of Metal's language as a name"),
    (r"0x[0-9a-fA-F.]+p[0-9+-]|__builtin_|\basm\b|\bstd::", "not for Metal"),
    # A pointer or a reference, in a declaration or a cast, that doesn't say to what memory.
    (r"(?<!GPU_GLOBAL )(?<!GPU_GLOBAL const )(?<!GPU_LOCAL )(?<!GPU_LOCAL const )(?<!GPU_PRIVATE )(?<!GPU_PRIVATE const )(?<!GPU_ARGS )"
     rf"\b{TYPE} ?[*&](?![=&])",
     "a pointer without an address space"),
    (r"^\s+static\b", "a variable of a function that is static"),
]

# What is replaced, by what, and what that is a case of.
MISTAKES = [
    ("GPU_GLOBAL u8 *to = gpu_row(", "GPU_LOCAL u8 *to = gpu_row(", "a device pointer kept as one to threadgroup memory"),
    ("float gpu_block_sum(gpu_thread g, GPU_LOCAL float *parts", "float gpu_block_sum(gpu_thread g, GPU_GLOBAL float *parts",
     "shared memory passed to a function for device memory"),
    ("GPU_GLOBAL u8 *to = gpu_row(", "u8 *to = gpu_row(", "a pointer without an address space"),
    ("(GPU_GLOBAL const float *)b", "(const float *)b", "a cast to a pointer without an address space"),
    ("GPU_FN float gpu_param(GPU_ARGS gpu_args &p, int i) {", "GPU_FN float gpu_param(GPU_PRIVATE gpu_args &p, int i) {",
     "arguments as a variable of the thread"),
    ("GPU_ARGS gpu_args &p, int i) {\n", "GPU_ARGS gpu_args &p, int i) {\n    p.params[0] = i;\n", "arguments that are written"),
    ("GPU_PRIVATE gpu_matrix &m, GPU_LOCAL const float *p, u32 pitch) {", "GPU_PRIVATE gpu_matrix &m, GPU_GLOBAL const float *p, u32 pitch) {",
     "a matrix loaded from device memory where it lies in shared memory"),
    ("GPU_LOCAL float *left, *right, *scores", "GPU_GLOBAL float *left, *right, *scores",
     "shared memory kept as a pointer to device memory"),
    ("const u8 *row, u64 c, u64 n, GPU_LOCAL float *to) {", "const u8 *row, u64 c, u64 n, GPU_PRIVATE float *to) {",
     "shared memory passed as a variable of the thread"),
    ("GPU_GLOBAL float *attention_part(", "GPU_LOCAL float *attention_part(", "scratch memory returned as shared memory"),
    ("GPU_PRIVATE vector_state &s) {", "vector_state &s) {", "a reference to a structure without an address space"),
    ("gpu_wide result = {1.0f, 0.0f};", "double result = 1.0;", "a double"),
    ("const i32 own = key_of(", "auto own = [&](int) { return 0; }; (void)own(0); const i32 unused = key_of(", "a lambda"),
    ("u16 bits;", "u16 half;", "a reserved word"),
    ("GPU_FN float gpu_warp_sum(float x) {\n", "GPU_FN float gpu_warp_sum(float x) {\n    GPU_SHARED(float, more, 4);\n    more[0] = x;\n",
     "shared memory of a function that is no kernel"),
    ("GPU_FN float gpu_warp_sum(float x) {\n", "GPU_FN float gpu_warp_sum(float x) {\n    static float before = 0.0f;\n    x += before;\n",
     "a static variable"),
    ("typedef long gpu_number;", "typedef long long gpu_number;", "long long"),
]


def compile_text(clang, text):
    """None, or the first error."""
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as file:
        file.write(text)
        file.flush()
        run = subprocess.run([clang, "-fsyntax-only", *OPTIONS, file.name], capture_output=True, text=True, check=False)
    return None if run.returncode == 0 else next((l for l in run.stderr.splitlines() if "error:" in l), run.stderr)


def own_lines(text):
    """Without the branches for other compilers of args.h, and directives."""
    text = re.sub(r"#else\ntypedef unsigned long long gpu_word;\ntypedef long long gpu_number;\n", "", text)
    return "\n".join(line for line in text.splitlines() if not line.startswith("#"))


def shared_outside(text):
    """A line that declares shared memory outside of a kernel, or None: Metal has it in kernels alone."""
    function = ""
    for line in own_lines(text).splitlines():
        function = line if re.match(r"GPU_(?:KERNEL|FN|FAR)\b", line) else function
        if "GPU_SHARED(" in line and not function.startswith("GPU_KERNEL"):
            return line.strip()
    return None


def first_fault(clang, text, known=frozenset()):
    """The first thing that is wrong, outside of lines that were looked at before."""
    if outside := shared_outside(text):
        return f"shared memory of a function that is no kernel: {outside}"
    for line in own_lines(text).splitlines():
        if line in known:
            continue
        code = line.split("//")[0]
        for pattern, why in FORBIDDEN:
            if re.search(pattern, code):
                return f"{why}: {line.strip()}"
    return compile_text(clang, text)


def preprocessed(clang, path, folders):
    includes = [option for folder in folders for option in ("-I", folder)]
    run = subprocess.run([clang, "-E", "-P", *OPTIONS, *includes, path], capture_output=True, text=True, check=True)
    return re.sub(r"\s+", "", run.stdout)


def main():
    clang, flattened, source, *kernel_lists = sys.argv[1:6]
    folders = sys.argv[6:]
    text = open(flattened, encoding="utf-8").read()
    tap = Tap()
    fault = first_fault(clang, text)
    tap.ok(fault is None, "the kernels are within Metal's language", fault)
    same = preprocessed(clang, flattened, []) == preprocessed(clang, source, folders)
    tap.ok(same, "the flattened text means what the source does", "it differs")
    kernels = set(re.findall(r"^GPU_KERNEL\((\w+)", text, re.M))
    rows = "".join(open(path, encoding="utf-8").read() for path in kernel_lists)
    listed = {"kernel_" + name for name in re.findall(r"^(?:SIMT|METAL)_KERNEL\((\w+)\)", rows, re.M)}
    tap.ok(kernels == listed, f"all {len(listed)} kernels of the list are there", str(kernels ^ listed))
    known = frozenset(own_lines(text).splitlines()) if fault is None else frozenset()
    for old, new, what in MISTAKES:
        if old not in text:
            tap.ok(False, f"planted: {what}", f"nothing to replace: {old}")
            continue
        found = first_fault(clang, text.replace(old, new, 1), known)
        tap.ok(found is not None, f"planted: {what}", "it isn't found")
        if found:
            print(f"# {what}: {found}")
    return tap.plan()


sys.exit(main())
