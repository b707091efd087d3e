#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What docs/security.md says of its tests, as far as a script can tell: every test that the table names is there and is
run, and every finding F1 to F30 stands at a test or on the page.
Usage: check_claims.py SOURCE"""
import pathlib
import re
import sys

FINDINGS = 30
SUFFIXES = {".c", ".h", ".inl", ".py", ".sh", ".build"}
faults = []


def rows_of(page):
    """(claim, tests) of the table of the section 'Claims and their tests'."""
    section = page.split("## Claims and their tests", 1)[1].split("\n## ", 1)[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return [(claim.strip(), tests) for claim, tests in rows[2:]]


def is_run(path, texts):
    """Whether Meson knows the file: by its name, or by what follows 'test_'. Corpora are replayed."""
    names = {path.name, path.stem, path.stem.removeprefix("test_")}
    return any(re.search(rf"['/]{re.escape(name)}'", text) for name in names for where, text in texts.items()
               if where.name == "meson.build")


def check_token(claim, token, tests, texts):
    if "/" in token:
        found = tests / token.removeprefix("tests/")
        if not (found.is_dir() or found.is_file()):
            faults.append(f"'{claim}': tests/{token} is not there")
        elif found.is_file() and not is_run(found, texts):
            faults.append(f"'{claim}': tests/{token} is in no meson.build")
        return
    name = re.escape(token.rstrip(".*"))
    end = r"\w*" if token.endswith(("...", "*")) else r"\b"
    # A test function is defined and then listed; another name is that of a fixture, corpus or function.
    needed = 2 if token.startswith("test_") else 1
    for where, text in texts.items():
        if len(re.findall(rf"\b{name}{end}", text)) >= needed:
            return
    if not any(path.match(f"{token}*") for path in texts):
        faults.append(f"'{claim}': no test has or lists {token}")


def check_finding(number, page, texts):
    if re.search(rf"\bF{number}\b|`test_f{number}_", page):
        return
    stands = re.compile(rf"\btest_f{number}_|\bF{number}\b(?! \()")
    if not any(stands.search(text) for text in texts.values()):
        faults.append(f"F{number} stands at no test, and not in docs/security.md")


def main():
    source = pathlib.Path(sys.argv[1])
    tests = source / "tests"
    page = (source / "docs/security.md").read_text(encoding="utf-8")
    texts = {path: path.read_text(encoding="utf-8") for path in tests.rglob("*")
             if path.suffix in SUFFIXES and path.is_file() and path.name != "check_claims.py"}
    rows = rows_of(page)
    if len(rows) < 25:
        faults.append(f"only {len(rows)} rows were found")
    for claim, cell in rows:
        tokens = re.findall(r"`([^`]+)`", cell)
        if not tokens:
            faults.append(f"'{claim}' has no test")
        for token in tokens:
            check_token(claim, token, tests, texts)
    for number in range(1, FINDINGS + 1):
        check_finding(number, page, texts)
    for fault in faults:
        print(fault)
    print(f"{len(rows)} claims, {FINDINGS} findings, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
