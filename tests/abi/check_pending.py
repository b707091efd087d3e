# SPDX-License-Identifier: MIT
"""The lists of functions that are declared but not implemented yet only ever shrink.

usage: check_pending.py [--strict] PENDING_DIR CEILING_FILE    compares: more rows than the ceiling fail;
                                                               with --strict fewer fail too
       check_pending.py --update PENDING_DIR CEILING_FILE      lowers the ceilings to the present counts
"""
import os
import re
import sys

from tap import Tap


def count_rows(pending_dir):
    counts = {}
    for name in sorted(os.listdir(pending_dir)):
        if name.endswith(".inl") and name != "pending_list.inl":
            with open(os.path.join(pending_dir, name), encoding="utf-8") as file:
                counts[name[:-4]] = len(re.findall(r"^GGML_PENDING(?:_VOID)?\(", file.read(), re.M))
    return counts


def read_ceilings(path):
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        rows = [line.split() for line in file if line.strip() and not line.startswith("#")]
    return {area: int(number) for area, number in rows}


def update(path, counts, ceilings):
    lowered = {area: min(n, ceilings.get(area, n)) for area, n in counts.items()}
    with open(path, "w", encoding="utf-8") as file:
        file.write("# Functions per area that are not implemented yet. The numbers only ever go down:\n"
                   "# tests/abi/check_pending.py --update core/pending tests/abi/pending_ceiling.txt\n")
        file.writelines("%s %d\n" % row for row in sorted(lowered.items()))


def main():
    options = {a for a in sys.argv[1:] if a.startswith("--")}
    pending_dir, path = [a for a in sys.argv[1:] if not a.startswith("--")]
    counts, ceilings = count_rows(pending_dir), read_ceilings(path)
    if "--update" in options:
        update(path, counts, ceilings)
        return
    tap = Tap()
    for area in sorted(set(counts) | set(ceilings)):
        count, ceiling = counts.get(area, 0), ceilings.get(area, 0)
        tap.ok(count <= ceiling, "%s: %d functions pending, %d allowed" % (area, count, ceiling),
               "new functions have to be implemented rather than listed")
        if "--strict" in options:
            tap.ok(count >= ceiling, "%s: the ceiling is not too high" % area,
                   "write '%s %d' in pending_ceiling.txt, or run with --update" % (area, count))
    tap.done()


if __name__ == "__main__":
    main()
