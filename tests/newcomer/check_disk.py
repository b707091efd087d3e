#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A disk that is full, a tmpfs of one MiB: each tool that writes a file says so in one line, exits with 4, leaves the file that was there
as it was, and no half of a new one; what merely remembers something goes on without. Speaks TAP.

Usage: check_disk.py CPU_PLUGIN PROGRAM..."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import report_data  # pylint: disable=wrong-import-position

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import check, finish  # noqa: E402


def run(*command, **environment):
    return subprocess.run(command, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False,
                          env={**os.environ, "GGML_ALLOW_UNSAFE_PLUGINS": "1", **environment})


def fill(disk):
    """Leaves no byte."""
    if os.path.exists(os.path.join(disk, "rest")):
        os.remove(os.path.join(disk, "rest"))
    with open(os.path.join(disk, "rest"), "wb", buffering=0) as stream:
        try:
            while True:
                stream.write(b"x" * 4096)
        except OSError:
            pass


def check_writes(disk, name, command, path):
    """`path` is the command's file: of the first run there is none, of the second an earlier one."""
    for before in (None, "earlier\n"):
        if before:
            os.remove(os.path.join(disk, "rest"))
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(before)
        fill(disk)
        there = sorted(os.listdir(disk))
        done = run(*command)
        told = done.stderr.splitlines()
        check(f"{name}: a full disk is told in a line, with the file's name", done.returncode == 4 and len(told) == 1 and
              "No space left" in told[0] and path in told[0], done)
        kept = open(path, encoding="utf-8").read() if before else before
        check(f"{name}: {'the earlier file stays' if before else 'no half of a file is left'}", sorted(os.listdir(disk)) == there and
              kept == before, os.listdir(disk))
    os.remove(path)


def check_disk(disk, plugin, tools):
    devices, bench, conformance = (tools[name] for name in ("ggml-devices", "ggml-bench", "ggml-conformance"))
    with tempfile.TemporaryDirectory() as room:
        data, page = os.path.join(room, "data.json"), os.path.join(room, "page.html")
        with open(data, "w", encoding="utf-8") as stream:
            json.dump(report_data.report(), stream)
        done = run(bench, "report", "--from", data, "--output", page)
        check("where there is room a page is there, and nothing else", done.returncode == 0 and sorted(os.listdir(room)) == ["data.json", "page.html"], done)
        at = os.path.join(disk, "file")
        for form in ("--svg", "--html"):
            check_writes(disk, f"ggml-devices {form}", [devices, form, at], at)
        check_writes(disk, "ggml-bench report", [bench, "report", "--from", data, "--output", at], at)
        check_writes(disk, "ggml-conformance --json", [conformance, "--op", "SCALE", "--json", at], at)
    plugins = tempfile.mkdtemp()
    shutil.copy(plugin, plugins)
    done = run(devices, "--plugin-path", plugins, "--names", XDG_CACHE_HOME=disk)
    check("ggml-devices shows the devices though nothing can be remembered", done.returncode == 0 and "CPU" in done.stdout.split() and
          not done.stderr, done)
    shutil.rmtree(plugins)


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "--inside":
        disk, plugin = sys.argv[2:4]
        check_disk(disk, plugin, {os.path.basename(path): path for path in sys.argv[4:]})
        return finish()
    with tempfile.TemporaryDirectory() as folder:
        disk = os.path.join(folder, "disk")
        os.mkdir(disk)
        # Seen by what this starts only, and gone with it.
        apart = ["unshare", "--mount"] + ([] if os.geteuid() == 0 else ["--map-root-user"])
        inside = ["sh", "-c", 'mount -t tmpfs -o size=1m tmpfs "$1" && shift && exec "$@"', "sh", disk]
        if subprocess.run([*apart, *inside, "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode != 0:
            print("1..0 # SKIP no small disk can be mounted here")
            return 0
        arguments = [os.path.abspath(path) for path in sys.argv[1:]]
        return subprocess.run([*apart, *inside, sys.executable, os.path.abspath(__file__), "--inside", disk, *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
