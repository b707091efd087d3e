#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Opens what the tools draw in a browser without a screen: texts stay in their pictures and do not overlap, in light and dark,
wide and narrow. Speaks TAP; exit status 77 without a browser.

Usage: check_browser.py GGML_BENCH GGML_DEVICES [--keep FOLDER]    --keep: leave the screenshots there"""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

import report_data

BENCH, DEVICES = (os.path.abspath(path) for path in sys.argv[1:3])
KEEP = sys.argv[sys.argv.index("--keep") + 1] if "--keep" in sys.argv else None
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
results = []

# Runs in the browser on a copy of the page: what is not where it should be, as text of the element "found".
LOOK = """<script>addEventListener('load', () => {
const found = [], round = r => [r.left, r.top, r.right, r.bottom].map(Math.round).join(' ');
const overlap = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1.5 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;
let texts = 0;
for (const svg of document.querySelectorAll('svg')) {
  const frame = svg.getBoundingClientRect(), names = [];
  for (const text of svg.querySelectorAll('text')) {
    const box = text.getBoundingClientRect();
    ++texts;
    if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
      found.push('out of the picture: ' + text.textContent + ' ' + round(box) + ' of ' + round(frame));
    if (text.transform.baseVal.numberOfItems === 0 && text.textContent.trim()) names.push([text, box]);
  }
  for (let i = 0; i < names.length; ++i) for (let k = 0; k < i; ++k)
    if (overlap(names[i][1], names[k][1])) found.push('one on the other: ' + names[i][0].textContent + ' and ' + names[k][0].textContent);
}
if (document.documentElement.scrollWidth > innerWidth + 1) found.push('wider than the window: ' + document.documentElement.scrollWidth + ' of ' + innerWidth);
const out = document.createElement('script');
out.type = 'application/json'; out.id = 'found';
out.textContent = JSON.stringify({texts, found, dark: matchMedia('(prefers-color-scheme: dark)').matches, paper: getComputedStyle(document.body).backgroundColor});
document.body.append(out);
});</script>"""


def check(name, condition, text=""):
    results.append(bool(condition))
    print(("ok" if condition else "not ok"), len(results), "-", name, flush=True)
    if not condition:
        print("".join(f"# {line[:400]}\n" for line in str(text).splitlines()[-20:]), flush=True)


def browse(folder, width, height, dark, *arguments):
    """A new profile each time, so that nothing is remembered."""
    with tempfile.TemporaryDirectory() as profile:
        command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
                   "--hide-scrollbars", f"--user-data-dir={profile}", f"--window-size={width},{height}",
                   *(["--blink-settings=preferredColorScheme=0", "--force-dark-mode"] if dark else []), *arguments]
        return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=240)


def colours(path):
    """How many of them a PNG of 8-bit RGB or RGBA has, seen in every 7th row before its filter is undone: enough to tell a blank one."""
    with open(path, "rb") as stream:
        data = stream.read()
    at, packed, width, channels = 8, b"", 0, 3
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, _, _, colour = struct.unpack(">IIBB", data[at + 8:at + 18])
            channels = 4 if colour == 6 else 3
        if kind == b"IDAT":
            packed += data[at + 8:at + 8 + size]
        at += size + 12
    raw, stride = zlib.decompress(packed), 1 + width * channels
    return len({raw[i:i + channels] for row in range(0, len(raw), 7 * stride) for i in range(row + 1, row + stride, channels)})


def check_view(folder, page, name, width, height, dark=False):
    with open(os.path.join(folder, page), encoding="utf-8") as stream:
        text = stream.read()
    with open(os.path.join(folder, "look.html"), "w", encoding="utf-8") as stream:
        stream.write(text.replace("</body>", LOOK + "</body>") if "</body>" in text else "<!DOCTYPE html><body>" + text + LOOK + "</body>")
    done = browse(folder, width, height, dark, "--dump-dom", "file://" + os.path.join(folder, "look.html"))
    told = re.search(r'<script type="application/json" id="found">(.*?)</script>', done.stdout, re.S)
    seen = json.loads(told.group(1)) if told else {}
    check(f"{name}: it has texts, each in its picture and beside the others", seen.get("texts", 0) > 3 and not seen["found"],
          "\n".join(seen.get("found", [])) or done.stderr[-2000:])
    picture = os.path.join(KEEP or folder, re.sub(r"\W+", "-", name) + ".png")
    browse(folder, width, height, dark, f"--screenshot={picture}", "file://" + os.path.join(folder, page))
    check(f"{name}: it is painted", os.path.exists(picture) and colours(picture) > 20)
    return seen


def check_report(folder):
    for name, slower in (("now", 1.0), ("then", 1.4)):
        with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as stream:
            json.dump(report_data.report(slower), stream)
    done = subprocess.run([BENCH, "report", "--from", "now.json", "--compare", "then.json", "--output", "page.html"], cwd=folder,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    check("there is a page", done.returncode == 0, done.stdout)
    light = check_view(folder, "page.html", "report", 1240, 3000)
    dark = check_view(folder, "page.html", "report, dark", 1240, 3000, dark=True)
    check("dark where the reader's system is", light.get("paper") == "rgb(255, 255, 255)" and dark.get("dark") and
          dark.get("paper") == "rgb(15, 19, 23)", (light, dark))
    check_view(folder, "page.html", "report, narrow", 500, 3000)


def check_drawings(folder):
    for name, machine in (("server", "package:2 [numa] l3:8 core:8 pu:2"), ("desktop", "package:1 l3:1 core:8 pu:2")):
        done = subprocess.run([DEVICES, "--html", "machine.html"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False, env={**os.environ, "HWLOC_SYNTHETIC": machine})
        check(f"there is a drawing of a {name}", done.returncode == 0, done.stdout)
        check_view(folder, "machine.html", f"drawing of a {name}", 1300, 700)


def main():
    if not BROWSER:
        print("1..0 # SKIP there is no Chromium")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        check_report(folder)
        check_drawings(folder)
    print(f"1..{len(results)}")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
