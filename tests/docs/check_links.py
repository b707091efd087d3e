#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks what the documents refer to: links and their anchors, paths of this repository, names of functions and macros;
and the drawings: each SVG has the words of the DOT file that it was made of, and names only functions that there are.

usage: check_links.py ROOT"""
import glob
import html
import os
import re
import shutil
import subprocess
import sys

FOLDERS = "abi|core|docs|plugins|tests|tools|packaging"
PATH = re.compile(rf"`((?:{FOLDERS})/[\w./*-]*)`")
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
CODE = re.compile(r"`([^`\n]+)`")
NAME = re.compile(r"\b(?:ggml|GGML|gguf|GGUF)_\w*[a-zA-Z0-9]\b(?![*<])")


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def git_files(root, *folders):
    listing = subprocess.run(["git", "-C", root, "ls-files", "-z", *folders], check=True, capture_output=True, text=True)
    return [os.path.join(root, name) for name in listing.stdout.split("\0") if name]


def anchors_of(document):
    headings = re.findall(r"^#+ (.*)$", read(document), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def check_links(document, text):
    for target, anchor in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        path = os.path.normpath(os.path.join(os.path.dirname(document), target)) if target else document
        if not os.path.exists(path):
            yield f"link to {target}, which is not there"
        elif anchor and anchor not in anchors_of(path):
            yield f"link to {target}#{anchor}, a heading that is not there"


def check_document(root, document, known):
    text = read(document)
    yield from check_links(document, text)
    for path in PATH.findall(text):
        if not glob.glob(os.path.join(root, path)):
            yield f"path {path}, which is not there"
    for code in CODE.findall(text):
        for name in NAME.findall(code):
            if name not in known:
                yield f"name {name}, which no source has"


def words_of(labels):
    return sorted(" ".join(labels).split())


def check_drawing(source, known):
    drawing = source[:-len(".dot")] + ".svg"
    if not os.path.isfile(drawing):
        yield "there is no SVG of it: run tools/draw-diagrams"
        return
    labels = [label.replace("\\n", " ") for label in re.findall(r'label="([^"]*)"', read(source))]
    drawn = [html.unescape(text).replace("\xa0", " ") for text in re.findall(r"<text[^>]*>([^<]*)</text>", read(drawing))]
    if words_of(labels) != words_of(drawn):
        yield "the SVG has other words: run tools/draw-diagrams"
    for name in re.findall(r"(\w+)\(", " ".join(labels)):
        if name not in known:
            yield f"function {name}, which no source has"


def main():
    root = os.path.abspath(sys.argv[1])
    if not os.path.exists(os.path.join(root, ".git")) or not shutil.which("git"):
        print("1..0 # SKIP only git knows which files are the project's")
        return 0
    sources = git_files(root, "abi", "bindings", "core", "plugins", "tests", "tools", "packaging", "meson.build", "meson_options.txt")
    known = set()
    for source in sources:
        if not source.endswith(".md") and os.path.isfile(source):
            known.update(re.findall(r"\w+", read(source)))
    documents = [path for path in git_files(root) if path.endswith(".md") and os.path.isfile(path)]
    documents += [path for path in git_files(root) if path.endswith(".dot")]
    print(f"1..{len(documents)}")
    failed = False
    for number, document in enumerate(documents, 1):
        is_drawing = document.endswith(".dot")
        problems = list(check_drawing(document, known) if is_drawing else check_document(root, document, known))
        print(f"{'not ok' if problems else 'ok'} {number} - {os.path.relpath(document, root)}")
        for problem in problems:
            print(f"# {problem}")
        failed |= bool(problems)
    return 1 if failed or not documents else 0


if __name__ == "__main__":
    sys.exit(main())
