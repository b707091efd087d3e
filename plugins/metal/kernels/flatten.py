#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes one text of a Metal source: what it includes by quotes is put in its place, since a library that is compiled when the
program runs has no folders to include from. Lines of comments are left out.

The second file has its bytes as numbers, for C.

usage: flatten.py SOURCE OUT BYTES DEPFILE FOLDER...
"""
import os
import re
import sys


class Text:
    def __init__(self, folders):
        self.folders, self.lines, self.files = folders, [], []

    def find(self, name, line):
        for folder in self.folders:
            path = os.path.join(folder, name)
            if os.path.exists(path):
                return path
        raise SystemExit(f"flatten.py: {line}: no {name} in {', '.join(self.folders)}")

    def add(self, path, macro=None):
        """Headers once, as their guards say; of a list, as often as it is included, the rows of the macro that was defined last."""
        is_list = path.endswith(".inl")
        if path in self.files and not is_list:
            return
        self.files.append(path)
        skipped = self.skips_other_compilers(path)
        for number, line in enumerate(open(path, encoding="utf-8"), 1):
            include = re.match(r'\s*#include "(.*)"', line)
            define, row = re.match(r"#define (\w+) ", line), re.match(r"([A-Z]\w+)\(", line)
            macro = define[1] if define and not is_list else macro
            if is_list and row and row[1] != macro:
                continue
            if include and include[1] not in skipped:
                self.add(self.find(include[1], f"{path}:{number}"), macro)
            elif not include and line.strip() and not re.match(r"\s*//", line):
                self.lines.append(line)

    @staticmethod
    def skips_other_compilers(path):
        others = {"gpu.h": {"gpu_emulated.h", "gpu_nvidia.h"}, "gpu_matrix.h": {"gpu_matrix_emulated.h"}}
        return others.get(os.path.basename(path), set())


def main():
    source, out, numbers, depfile, *folders = sys.argv[1:]
    text = Text(folders)
    text.add(source)
    with open(out, "w", encoding="utf-8") as file:
        file.writelines(text.lines)
    rows = ("".join(text.lines)).encode().splitlines(keepends=True)
    with open(numbers, "w", encoding="utf-8") as file:
        file.write(",\n".join(",".join(map(str, row)) for row in rows) + "\n")
    with open(depfile, "w", encoding="utf-8") as file:
        file.write(f"{out} {numbers}: {' '.join(dict.fromkeys(text.files))}\n")


main()
