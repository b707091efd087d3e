#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Opens what the tools draw in a browser without a screen: texts stay in their pictures and do not overlap, in light and dark,
wide and narrow. Speaks TAP; exit status 77 without a browser.

Usage: check_browser.py GGML_BENCH GGML_DEVICES [--keep FOLDER]    --keep: leave the screenshots there"""
import base64
import json
import os
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib

import report_data

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import check, finish  # noqa: E402

BENCH, DEVICES = (os.path.abspath(path) for path in sys.argv[1:3])
KEEP = sys.argv[sys.argv.index("--keep") + 1] if "--keep" in sys.argv else None
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

# Runs in the page: what is not where it should be, as text.
LOOK = """(() => {
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
return {texts, found, width: innerWidth, dark: matchMedia('(prefers-color-scheme: dark)').matches, paper: getComputedStyle(document.body).backgroundColor};
})()"""


class Browser:
    """One process for all views, which is told what to do through pipes (Chrome's DevTools protocol)."""
    def __init__(self, profile):
        theirs_in, self.out = os.pipe()
        self.answers, theirs_out = os.pipe()
        # It reads descriptor 3 and writes to 4.
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "sh", BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-background-networking", "--hide-scrollbars", f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"],
            pass_fds=(theirs_in, theirs_out), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(theirs_in)
        os.close(theirs_out)
        self.last, self.pending, self.loads = 0, b"", 0
        page = [target for target in self.ask("Target.getTargets")["targetInfos"] if target["type"] == "page"][0]
        self.session = self.ask("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        self.ask("Page.enable")

    def next_message(self):
        deadline = time.monotonic() + 200
        while b"\0" not in self.pending:
            if not select.select([self.answers], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self.answers, 1 << 16)
            if not piece:
                raise EOFError("the browser has ended")
            self.pending += piece
        message, _, self.pending = self.pending.partition(b"\0")
        message = json.loads(message)
        self.loads += message.get("method") == "Page.loadEventFired"
        return message

    def ask(self, method, **parameters):
        self.last += 1
        request = {"id": self.last, "method": method, "params": parameters, **({"sessionId": self.session} if hasattr(self, "session") else {})}
        os.write(self.out, json.dumps(request).encode() + b"\0")
        while (message := self.next_message()).get("id") != self.last:
            pass
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']}")
        return message["result"]

    def show(self, path, width, height, dark):
        """What LOOK returns of a page, and a picture of it."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        before = self.loads
        self.ask("Page.navigate", url="file://" + path)
        while self.loads == before:
            self.next_message()
        seen = self.ask("Runtime.evaluate", expression=LOOK, returnByValue=True)["result"].get("value", {})
        return seen, base64.b64decode(self.ask("Page.captureScreenshot")["data"])

    def end(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def colours(data):
    """How many of them a PNG of 8-bit RGB or RGBA has, seen in every 7th row before its filter is undone: enough to tell a blank one."""
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


def check_view(browser, path, name, width, height, dark=False):
    seen, picture = browser.show(path, width, height, dark)
    check(f"{name}: it has texts, each in its picture and beside the others", seen.get("texts", 0) > 3 and not seen["found"] and
          seen["width"] == width, "\n".join(seen.get("found", [])) or seen)
    check(f"{name}: it is painted", colours(picture) > 20)
    if KEEP:
        with open(os.path.join(KEEP, re.sub(r"\W+", "-", name) + ".png"), "wb") as stream:
            stream.write(picture)
    return seen


def check_report(browser, folder):
    for name, slower in (("now", 1.0), ("then", 1.4)):
        with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as stream:
            json.dump(report_data.report(slower), stream)
    done = subprocess.run([BENCH, "report", "--from", "now.json", "--compare", "then.json", "--output", "page.html"], cwd=folder,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    check("there is a page", done.returncode == 0, done.stdout)
    page = os.path.join(folder, "page.html")
    light = check_view(browser, page, "report", 1240, 3000)
    dark = check_view(browser, page, "report, dark", 1240, 3000, dark=True)
    check("dark where the reader's system is", light.get("paper") == "rgb(255, 255, 255)" and dark.get("dark") and
          dark.get("paper") == "rgb(15, 19, 23)", (light, dark))
    check_view(browser, page, "report, narrow", 500, 3000)


def check_drawings(browser, folder):
    for name, machine in (("server", "package:2 [numa] l3:8 core:8 pu:2"), ("desktop", "package:1 l3:1 core:8 pu:2")):
        done = subprocess.run([DEVICES, "--html", "machine.html"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False, env={**os.environ, "HWLOC_SYNTHETIC": machine})
        check(f"there is a drawing of a {name}", done.returncode == 0, done.stdout)
        check_view(browser, os.path.join(folder, "machine.html"), f"drawing of a {name}", 1300, 700)


def main():
    if not BROWSER:
        print("1..0 # SKIP there is no Chromium")
        return 77
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # the browser may be writing there
        browser = Browser(os.path.join(folder, "profile"))
        try:
            check_report(browser, folder)
            check_drawings(browser, folder)
        finally:
            browser.end()
    return finish()


if __name__ == "__main__":
    sys.exit(main())
