#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs ggml-bench report: what is on the page of measurements that are given, that it measures, and what it refuses. Speaks TAP.

Usage: check_report.py PROGRAM SCHEMA"""
import html.parser
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

import report_data

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import check, finish, skip  # noqa: E402

try:
    import jsonschema
except ImportError:
    jsonschema = None

PROGRAM, SCHEMA = os.path.abspath(sys.argv[1]), sys.argv[2]


def run(folder, *arguments, **options):
    return subprocess.run([PROGRAM, "report", *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder,
                          timeout=200, check=False, **options)


def limit_files():
    """Of the process that is about to run the program: no page is larger than 16 MiB."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 24, 1 << 24))


class Page(html.parser.HTMLParser):
    """Text, tags and pictures of a page, and whether every element is closed in its turn."""
    EMPTY = {"meta", "link", "img", "br"}

    def __init__(self, text):
        super().__init__()
        self.open, self.well_formed, self.tags, self.text = [], True, [], ""
        self.pictures = re.findall(r"<svg viewBox=\"0 0 1080.*?</svg>", text, re.S)
        data = re.search(r'<script type="application/json" id="ggml-bench-report">(.*?)</script>', text, re.S)
        self.data = json.loads(data.group(1)) if data else None
        self.feed(text)
        self.well_formed = self.well_formed and not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        self.well_formed = self.well_formed and bool(self.open) and self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.text += data


def read_page(path):
    with open(path, encoding="utf-8") as stream:
        return Page(stream.read())


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as stream:
        json.dump(value, stream)
    return path


def check_schema(name, data):
    if not jsonschema:
        skip(name, "no jsonschema")
        return
    with open(SCHEMA, encoding="utf-8") as stream:
        schema = json.load(stream)
    errors = list(jsonschema.Draft7Validator(schema).iter_errors(data))
    check(name, not errors, errors[:3])


def same(a, b):
    """But for the tenth digit of numbers."""
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    return abs(a - b) <= 1e-8 * abs(a) if isinstance(a, float) else a == b


def marks(picture):
    return [e for e in ElementTree.fromstring(picture).iter() if e.tag == "g" and "mark" in e.get("class", "")]


def check_page(folder):
    now = report_data.report()
    done = run(folder, "--from", write_json(os.path.join(folder, "now.json"), now))
    check("the page has a name by default", done.returncode == 0 and done.stdout.startswith("ggml-report.html: 46 measurements"), done)
    page = read_page(os.path.join(folder, "ggml-report.html"))
    check("every element is closed", page.well_formed, page.open)
    check("nothing is fetched from elsewhere, and nothing runs",
          not [t for t in page.tags if t[0] in ("link", "img", "iframe") or "src" in t[1] or "href" in t[1] or
               t[0] == "script" and t[1].get("type") != "application/json"], page.tags)
    check("texts of others are texts", "<script>alert(1)</script> \"&" in page.text and "lost </script><b>" in page.text, page.text[:2000])
    check("the measurements stand in it as they were", same(now, page.data), page.data)
    check_schema("as the schema says", page.data)
    check("a picture of models and one for each device that was measured", len(page.pictures) == 3, len(page.pictures))
    first = [tag for tag, _ in page.tags if tag in ("svg", "table")][0]
    check("a picture comes first, tables below", first == "svg")
    for name, picture in zip(("CPU", "Example0"), page.pictures[1:]):
        check(f"every operation of {name} is a point", len(marks(picture)) == len(report_data.CASES), len(marks(picture)))
    titles = ["".join(mark.itertext()) for mark in marks(page.pictures[1])]
    check("which says what it is", any("MUL_MAT q4_0 m=4096 k=4096 n=8" in t and "of the limit" in t for t in titles), titles)
    return now


def check_comparison(folder, now):
    then = report_data.report(slower=2.0, version="0.26.0")
    path = write_json(os.path.join(folder, "then.json"), then)
    old_page = os.path.join(folder, "then.html")
    run(folder, "--from", path, "--output", old_page)
    for earlier in (path, old_page):
        done = run(folder, "--from", "now.json", "--compare", earlier, "--output", "both.html", "--data", "again.json")
        page = read_page(os.path.join(folder, "both.html"))
        name = os.path.basename(earlier)
        check(f"compared with {name}", done.returncode == 0 and f"Compared with {name}" in page.text and "0.26.0" in page.text, done)
        check("a picture of the change of each device", len(page.pictures) == 5, len(page.pictures))
        ratios = re.findall(r">×([\d.]+)</text>", "".join(page.pictures[3:]))
        check("twice as fast is ×2", ratios.count("2.00") >= 2 * len({case[0] for case in report_data.CASES}), ratios)
        check("for models too", page.pictures[0].count("×2.00") == 2 * 2 * len(report_data.SHAPES), page.pictures[0])
    with open(os.path.join(folder, "again.json"), encoding="utf-8") as stream:
        check("--data writes the measurements alone", same(now, json.load(stream)))
    done = run(folder, "--from", write_json(os.path.join(folder, "busy.json"), report_data.report(load=0.4)), "--output", "busy.html")
    check("a machine that was busy otherwise is said, and an idle one is not", done.returncode == 0 and
          "took 40 % of the processors' time" in read_page(os.path.join(folder, "busy.html")).text and "processors' time" not in page.text, done)
    other = report_data.report()
    for device in other["devices"]:
        device["operations"] = []
    done = run(folder, "--from", "now.json", "--compare", write_json(os.path.join(folder, "other.json"), other), "--output", "x.html")
    check("nothing in common is said", done.returncode == 0 and
          "has no operation of this device" in read_page(os.path.join(folder, "x.html")).text, done)


def check_measuring(folder):
    done = run(folder, "--quick", "--device", "CPU", "--op", "ADD", "--output", "-")
    page = Page(done.stdout)
    operations = page.data["devices"][0]["operations"] if page.data else []
    check("--output - writes the page alone to the standard output", done.returncode == 0 and page.well_formed, done)
    check("one operation of one device is measured", [(o["op"], o["columns"]) for o in operations] == [("ADD", 1), ("ADD", 64)], operations)
    check("an addition is one operation per element", [o["flops"] for o in operations] == [4096, 4096 * 64], operations)
    check_schema("what was measured is as the schema says", page.data)
    check("limits of the processors are measured", page.data and page.data["devices"][0]["peak_flops"] > 0 and
          page.data["devices"][0]["read_bytes_per_second"] > 0, page.data)


def check_refusals(folder):
    for text, words in (("", "no report"), ("{}", "no report"), ('{"schema": "x/1"}', "another schema"), ("<html>", "no report"),
                        ('{"schema": "ggml-bench-report/1", "devices": [{"operations": [{"seconds": -1}, 7, null], "models": 3}, 5]}', "")):
        path = os.path.join(folder, "odd")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        done = run(folder, "--from", path, "--output", "odd.html")
        check(f"odd input: {text[:30]!r}", (done.returncode == 4 and words in done.stderr) if words else done.returncode == 0, done)
    done = run(folder, "--from", "nowhere.json")
    check("no such file is exit status 4, and said", done.returncode == 4 and "can't read nowhere.json" in done.stderr, done)
    done = run(folder, "--from", "now.json", "--output", "no/where.html")
    check("a page that can't be written is", done.returncode == 4 and "can't write no/where.html" in done.stderr, done)
    if os.path.exists("/dev/full"):
        done = run(folder, "--from", "now.json", "--output", "/dev/full")
        check("a full disk is", done.returncode == 4 and "No space left" in done.stderr, done)
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([PROGRAM, "report", "--from", "now.json", "--output", "-"], stdout=full, stderr=subprocess.PIPE, text=True,
                                  cwd=folder, check=False)
        check("also where it is the standard output, once", done.returncode == 4 and done.stderr.count("\n") == 1 and
              "No space left" in done.stderr, done)
    done = run(folder, "--device", "NONE")
    check("an unknown device is exit status 3, and those there are are named", done.returncode == 3 and "CPU" in done.stderr, done)
    done = run(folder, "--op", "NOTHING")
    check("an unknown operation is exit status 2, and those there are are named", done.returncode == 2 and "MUL_MAT" in done.stderr, done)
    check("wrong usage is exit status 2", run(folder, "--pages").returncode == 2 and run(folder, "x").returncode == 2)


def check_hostile(folder):
    """Reports that nobody measured: no endless page, no endless time, no commands to the terminal."""
    def write(file, **device):
        return write_json(os.path.join(folder, file), {**report_data.report(), "devices": [{"name": "X", "type": "CPU", **device}]})

    operation = {"op": "ADD", "case": "c", "columns": 1, "seconds": 1, "median_seconds": 1, "flops": 1, "bytes": 1, "runs": 1, "cold": False}
    smallest, largest = 5e-324, 1.7e308
    for numbers in ({"flops": smallest}, {"flops": smallest, "bytes": largest}, {"seconds": smallest}, {"seconds": largest},
                    {"flops": 0, "bytes": smallest}, {"flops": largest, "bytes": smallest, "seconds": smallest}):
        path = write("numbers.json", peak_flops=largest, read_bytes_per_second=smallest, copy_bytes_per_second=largest,
                     operations=[operation, {**operation, **numbers}], models=[
                         {"size": "1B", "type": "f16", "prompt": 1e14, "context": 1, "prompt_seconds": smallest, "token_seconds": 1,
                          "prompt_flops": largest, "weight_bytes": largest}])
        done = run(folder, "--from", path, "--compare", path, "--output", "numbers.html", preexec_fn=limit_files)
        page = read_page(os.path.join(folder, "numbers.html"))
        check(f"numbers that nobody measures make a page all the same: {numbers}", done.returncode == 0 and page.well_formed and
              len(page.text) < 100000 and not re.search(r'"(nan|-?inf)', "".join(page.pictures)), done)
    for what, device in (("operations", {"operations": [{"seconds": 1}] * 3000}),
                         ("models", {"models": [{"prompt_seconds": 1, "token_seconds": 1}] * 100})):
        done = run(folder, "--from", write("many.json", **device), "--output", "many.html")
        check(f"more {what} than a report has are refused", done.returncode == 4 and "more than" in done.stderr, done)
    texts = []
    for text, name in (("\x1b]0;name\x07", "escapes.json"), ("\u009b31m", "c1.json")):
        texts.append(run(folder, "--from", write(name, name="X" + text, failure="lost " + text), "--output", "escapes.html"))
    with open(os.path.join(folder, "raw.json"), "w", encoding="utf-8") as stream:
        stream.write('{"schema": \x1b]0;name\x07}')
    texts.append(run(folder, "--from", "raw.json"))
    check("F17: no text of a report is a command to the terminal",
          all(done.stderr and not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", done.stderr) for done in texts), texts)


def main():
    with tempfile.TemporaryDirectory() as folder:
        now = check_page(folder)
        check_comparison(folder, now)
        check_measuring(folder)
        check_refusals(folder)
        check_hostile(folder)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
