#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs ggml-devices as a user would. Speaks TAP.

Usage: check_devices.py PROGRAM SCHEMA PLUGIN [PROBE_PLUGIN_FOLDER [VULKAN_PLUGIN_FOLDER]]"""
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import check, finish  # noqa: E402

try:
    import jsonschema
except ImportError:
    jsonschema = None

PROGRAM, SCHEMA, PLUGIN = sys.argv[1:4]
PROBE_PLUGINS = sys.argv[4] if len(sys.argv) > 4 else None
VULKAN = sys.argv[5] if len(sys.argv) > 5 else None  # the folder of the Vulkan plugin, where there is lavapipe
BUILD = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(PLUGIN))))
PLANTED_HWLOC = os.environ.get("GGML_TEST_PLANTED_HWLOC")
NO_FILES = os.environ.get("GGML_TEST_NO_FILES")
CACHE = tempfile.mkdtemp()


def run(*arguments, **environment):
    base = {k: v for k, v in os.environ.items() if not k.startswith("GGML_") and k != "NO_COLOR"}
    base["XDG_CACHE_HOME"] = CACHE
    return subprocess.run([PROGRAM, *arguments], env={**base, **environment}, text=True, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False)


def load(done):
    try:
        return json.loads(done.stdout)
    except ValueError:
        return None


def valid(document):
    with open(SCHEMA, encoding="utf-8") as stream:
        schema = json.load(stream)
    if jsonschema is None or document is None:
        return document is not None and set(schema["required"]) == set(document)
    try:
        jsonschema.validate(document, schema)
    except jsonschema.ValidationError as error:
        print("#", error.message)
        return False
    return True


def check_usage():
    done = run("--help")
    check("--help explains and succeeds", done.returncode == 0 and "--plugin-path" in done.stdout, done)
    check("--version names the version", "ggml-devices " in run("--version").stdout)
    done = run("--no-such-option")
    check("an unknown option is exit status 2", done.returncode == 2 and "--help" in done.stderr, done)
    check("the unknown option is named", "--no-such-option" in done.stderr, done)
    check("two devices are exit status 2", run("one", "two").returncode == 2)
    for forms in (("--json", "--tree"), ("--dot", "--json"), ("--svg", "x.svg", "--names"), ("--html", "x.html", "--json"), ("--tree", "CPU"),
                  ("--tree", "--test")):
        done = run(*forms)
        check(" ".join(forms) + " is exit status 2, and nothing is printed",
              done.returncode == 2 and done.stdout == "" and forms[0] in done.stderr, done)
    done = run("--plugin-path", "relative/folder")
    check("a relative plugin path is taken from the working directory",
          done.returncode == 4 and os.path.join(os.getcwd(), "relative/folder") in done.stderr, done)


def check_plain(folder):
    done = run("--plugin-path", folder)
    check("the table lists device, plugin, search and threads", done.returncode == 0 and all(
        text in done.stdout for text in ("Devices", "CPU", "Plugins", "in use", "Searched", "by default")), done)
    check("no colours without a terminal", "\033[" not in done.stdout)
    check("--color=always colours", "\033[" in run("--plugin-path", folder, "--color=always").stdout)
    check("nothing on the standard error", done.stderr == "", done.stderr)
    check("one line each", "stage ready" not in done.stdout)
    done = run("--names", "--plugin-path", folder)
    check("--names prints names alone", done.stdout == "CPU\n" and done.returncode == 0, done)
    done = run("CPU", "--plugin-path", folder)
    check("one device in detail", done.returncode == 0 and all(
        text in done.stdout for text in ("capabilities", "cpu-level", "GiB free", folder)), done)
    groups = re.findall(r"^    (\S.*):\n((?:      .*\n)+)", done.stdout, re.M)
    types = {op: types for types, ops in groups for op in ops.split()}
    check("its operations by type", "f32 from f32, f16" in types.get("MUL_MAT", "") and types.get("ARGMAX") == "i32 from f32" and
          types.get("FLASH_ATTN_BACK") == "not supported" and len(types) > 100, done)
    done = run("NOPE", "--plugin-path", folder)
    check("an unknown device is exit status 3, and the known ones are named",
          done.returncode == 3 and "NOPE" in done.stderr and "CPU" in done.stderr, done)


def run_in_terminal(columns, *arguments, **environment):
    """On a terminal of that width; what it shows."""
    base = {k: v for k, v in os.environ.items() if not k.startswith("GGML_") and k != "NO_COLOR"}
    base.update({"XDG_CACHE_HOME": CACHE, "TERM": "xterm", **environment})
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen([PROGRAM, *arguments], env=base, stdin=subprocess.DEVNULL, stdout=theirs,
                          stderr=theirs) as process:
        shown, ended, deadline = b"", False, time.monotonic() + 120
        # The other end stays open here: Linux may drop what is on its way when the last one is closed.
        while not ended and time.monotonic() < deadline:
            ended = process.poll() is not None
            while select.select([ours], [], [], 0.1)[0]:
                shown += os.read(ours, 65536)
        process.kill()  # unless it has ended
    os.close(theirs)
    os.close(ours)
    return shown.decode("utf-8", "replace").replace("\r\n", "\n")


def check_hosts():
    """Four virtual devices that are said to be in two hosts, with links between these."""
    plugin = os.path.join(BUILD, "tests/plugins/virtual/ggml-virtual.so")
    if not os.path.exists(plugin):
        return
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(plugin, folder)

        def show(*arguments, options="devices=4,hosts=2,far_delay_us=50,far_ns_per_kib=512", loads=True):
            return run("--plugin-path", folder, "--in-process" if loads else "--no-cache", *arguments, GGML_VIRTUAL=options)
        tree = show("--tree").stdout
        link = "50.0 us, 2.00 GB/s"
        check("the tree has hosts with their nodes and devices, and the links between nodes of different ones",
              re.search(r"Host host-0\n\W+VIRTUAL0\n\W+VIRTUAL0 \(gpu\)[^\n]*\n\W+VIRTUAL2\n", tree) and "Host host-1" in tree and
              f"VIRTUAL0 - VIRTUAL1: {link}" in tree and f"program - VIRTUAL3: {link}" in tree and
              "VIRTUAL0 - VIRTUAL2" not in tree and tree.count(link) == 8, tree)
        document = load(show("--json"))
        links = [(one["from"], one["to"]) for one in document["links"]]
        check("the JSON has them too, and is valid", valid(document) and len(document["nodes"]) == 4 and
              document["nodes"][1] == {"name": "VIRTUAL1", "host": "host-1"} and len(links) == 8 and
              (None, "VIRTUAL0") in links and ("VIRTUAL1", "VIRTUAL2") in links and
              all(abs(one["seconds"] - 50e-6) < 1e-12 and abs(one["bytes_per_second"] - 2e9) < 1 for one in document["links"]),
              document)
        check("for Graphviz they are edges", show("--dot").stdout.count(f'label="{link}"') == 8)
        path = os.path.join(folder, "hosts.svg")
        show("--svg", path)
        width, _ = check_boxes(path, "hosts and links")
        elements = list(ElementTree.parse(path).getroot())
        lines = [e for e in elements if e.get("class") == "l"]
        ends = {int(e.get("x1")) for e in elements if e.get("class") == "e"}
        check("a drawing has a line from end to end for each, with its figures", len(lines) == 8 and len(ends) == 5 and
              all({int(e.get("x1")), int(e.get("x2"))} <= ends for e in lines) and max(ends) < width and
              [e.text for e in elements if e.tag.endswith("text")].count(link) == 8, lines)
        page = show("--html", "-").stdout
        check("and the page has that", page.count('class="l"') == 8 and "Host host-1" in page, page)
        probed = load(show("--json", loads=False))
        check("links are known of plugins that are loaded, hosts of all", valid(probed) and len(probed["nodes"]) == 4 and
              not probed["links"], probed)
        alone = show("--tree", options="devices=2").stdout
        check("devices of this machine make no hosts", "Host" not in alone and "Links" not in alone and alone.startswith("Machine"), alone)


def check_isolated():
    """GGML_ISOLATE, on two virtual devices."""
    plugin = os.path.join(BUILD, "tests/plugins/virtual/ggml-virtual.so")
    if not os.path.exists(plugin) or not sys.platform.startswith("linux"):
        return
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(plugin, folder)

        def show(*arguments, **environment):
            environment = {"GGML_VIRTUAL": "devices=2", "GGML_ISOLATE": "VIRTUAL1", **environment}
            return run("--plugin-path", folder, "--in-process", *arguments, **environment)
        document = load(show("--json"))
        processes = {device["name"]: device["process"] for device in document["devices"]}
        check("the JSON has the process of an isolated device", valid(document) and processes["VIRTUAL1"] and
              not processes["VIRTUAL0"] and not processes["CPU"], processes)
        table = show().stdout
        check("so has the table", re.search(r"VIRTUAL1 .*computed by process \d+", table) and table.count("computed by") == 1, table)
        check("so has the device alone", re.search(r"computed by process +\d+", show("VIRTUAL1").stdout), show("VIRTUAL1").stdout)
        left = load(show("--json", GGML_PROBE_HELPER="/nonexistent/helper"))
        check("one that can't be isolated is left out, and its plugin says why", [d["name"] for d in left["devices"]] ==
              ["VIRTUAL0", "CPU"] and "GGML_ISOLATE: VIRTUAL1" in plugin_of(left, "virtual")["message"], left)
        table = show(GGML_PROBE_HELPER="/nonexistent/helper").stdout
        check("so does the table", re.search(r"GGML_ISOLATE: VIRTUAL1", table), table)
        check("no entry is called missing then", "GGML_ISOLATE names" not in table, table)
        table = show(GGML_DEVICES="VIRTUAL0").stdout
        check("nor where others are excluded", "GGML_ISOLATE names" not in table, table)
        for names in ("VIRTUAL1", "virtual,cpu", " virtual0 , -VIRTUAL1,", "-", ","):
            table = show(GGML_ISOLATE=names).stdout
            check("entries that are here aren't called missing", "GGML_ISOLATE names" not in table, table)
        for table in (show(GGML_ISOLATE="VIRTUAL1,nosuch, -VIRTUAL7").stdout,
                      run("--plugin-path", folder, GGML_VIRTUAL="devices=2", GGML_ISOLATE="VIRTUAL1,nosuch, -VIRTUAL7").stdout):
            check("entries that aren't here are", "GGML_ISOLATE names no device or plugin here: nosuch, VIRTUAL7)" in
                  " ".join(table.split()), table)


def check_terminal(folder):
    for columns in (40, 50, 80, 200):
        shown = run_in_terminal(columns, "--plugin-path", folder)
        plain = re.sub(r"\x1b\[[0-9;]*[mK]", "", shown)
        wide = [line for line in re.split(r"[\r\n]+", plain) if len(line) > columns and " " in line.strip()]
        # A path is never broken.
        wide = [line for line in wide if not any(len(word) + 12 > columns for word in line.split())]
        check(f"lines fit {columns} columns", not wide and "CPU" in plain, wide or plain)
    # Every form, at two widths.
    for arguments in (["-v"], ["CPU"], ["--tree"], ["--names"], ["--test"], ["--help"]):
        for columns in (40, 80):
            plain = run_in_terminal(columns, "--plugin-path", folder, *arguments, TERM="dumb", LC_ALL="C.UTF-8")
            wide = [line for line in plain.splitlines() if len(line) > columns and " " in line.strip() and
                    not any(len(word) + 12 > columns for word in line.split())]
            check(f"{arguments[0]}: lines fit {columns} columns, and a dumb terminal is sent no sequence", not wide and plain and
                  "\033" not in plain, wide or plain)
    # The memory of a virtual machine may grow in between: sizes are not compared.
    def words(text):
        return re.sub(r"[\d.]+ [KMGT]?i?B\b", "SIZE", " ".join(re.sub(r"[|`-]", " ", text).split()))
    wide = run("--plugin-path", folder, "--tree", LC_ALL="C").stdout
    narrow = run_in_terminal(40, "--plugin-path", folder, "--tree", LC_ALL="C")
    check("a narrow tree has the words of a wide one", words(narrow) == words(wide) and "SIZE" in words(wide), narrow + wide)
    check("a terminal has colours", "\033[1m" in shown)
    shown = run_in_terminal(80, "--plugin-path", folder, TERM="dumb")
    check("a dumb one is sent none", "\033" not in shown and "CPU" in shown, shown)
    if PROBE_PLUGINS:
        with tempfile.TemporaryDirectory() as slow:
            shutil.copy(os.path.join(PROBE_PLUGINS, "ggml-endless_constructor.so"), slow)
            options = ["--plugin-path", slow, "--no-cache", "--timeout", "2.5"]
            shown = run_in_terminal(80, *options)
            check("what takes long is said meanwhile", re.search(r"\r[^\r\n]*tr[a-z]+[^\r\n]*, \d+ s", shown), repr(shown))
            shown = run_in_terminal(80, *options, TERM="dumb")
            check("but not on a dumb terminal", "\r" not in shown, repr(shown))
            os.remove(os.path.join(slow, "ggml-endless_constructor.so"))
            shutil.copy(os.path.join(PROBE_PLUGINS, "..", "plugins", "ggml-no_devices.so"), slow)
            shown = run_in_terminal(40, "--plugin-path", slow, TERM="dumb")
            check("no line ends with a blank", re.search(r"no usable device:\n +plugin", shown) and not re.search(r"\S +\n", shown), shown)


def check_output():
    with open("/dev/full", "w", encoding="utf-8") as full:
        for option in ("--verbose", "--json", "--tree", "--names"):
            done = subprocess.run([PROGRAM, option], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
            check(f"a full disk is exit status 4 and told ({option})", done.returncode == 4 and
                  "No space left" in done.stderr, done)
    for locale, line in (("C", "|-"), ("C.UTF-8", "\u251c")):
        done = run("--tree", LC_ALL=locale)
        check(f"--tree draws in the encoding of {locale}", line in done.stdout and
              (locale != "C" or done.stdout.isascii()), done)


def gpu(folder, address, vendor, device, class_code, driver=None):
    place = os.path.join(folder, "sys/bus/pci/devices", address)
    os.makedirs(place)
    for name, value in (("vendor", vendor), ("device", device), ("class", class_code)):
        with open(os.path.join(place, name), "w", encoding="ascii") as stream:
            stream.write(f"0x{value:04x}\n")
    if driver:
        os.symlink("../../../../bus/pci/drivers/" + driver, os.path.join(place, "driver"))


def check_gpus(plugins):
    with tempfile.TemporaryDirectory() as folder:
        gpu(folder, "0000:41:00.0", 0x1002, 0x73bf, 0x030000, "amdgpu")
        gpu(folder, "0000:01:00.0", 0x10de, 0x2335, 0x030200)
        gpu(folder, "0000:02:00.0", 0x10de, 0x2335, 0x030200, "vfio-pci")
        gpu(folder, "0000:03:00.0", 0x1a03, 0x2000, 0x030000, "ast")
        gpu(folder, "0000:04:00.0", 0xfade, 0x0001, 0x120000, "fade")
        gpu(folder, "0000:05:00.0", 0x8086, 0x1533, 0x020000, "igb")  # a network card
        names = os.path.join(folder, "usr/share/misc")
        os.makedirs(names)
        with open(os.path.join(names, "pci.ids"), "w", encoding="ascii") as stream:
            stream.write("# a list\n1002  AMD/ATI\n\t73bf  Navi 21\n\t\t1002 0001  A board\nfade  Fade Ltd\n")
        done = run("--json", "--sysfs", folder, "--plugin-path", plugins)
        document = load(done)
        check("GPUs without a device are in the JSON", valid(document), done)
        gpus = {g["address"]: g for g in document["gpus_without_device"]}
        check("by address, and nothing else", list(gpus) == ["0000:01:00.0", "0000:02:00.0", "0000:03:00.0",
                                                             "0000:04:00.0", "0000:41:00.0"], gpus)
        check("with vendor, model and driver", gpus["0000:41:00.0"]["model"] == "Navi 21" and
              gpus["0000:41:00.0"]["driver"] == "amdgpu" and gpus["0000:01:00.0"]["driver"] is None and
              gpus["0000:04:00.0"]["vendor"] == "Fade Ltd", gpus)
        check("and what is missing", "nvidia-driver" in gpus["0000:01:00.0"]["advice"] and
              "virtual machine" in gpus["0000:02:00.0"]["advice"] and gpus["0000:03:00.0"]["display_only"] and
              "mesa-vulkan-drivers" in gpus["0000:41:00.0"]["advice"] and
              "not found" in gpus["0000:41:00.0"]["advice"], gpus)
        table = run("--sysfs", folder, "--plugin-path", plugins).stdout
        check("the table has those that compute", "0000:41:00.0" in table and "Navi 21" in table and
              "ASPEED" not in table, table)
        tree = run("--tree", "--sysfs", folder, "--plugin-path", plugins).stdout
        check("so has the tree", "PCI 0000:41:00.0" in tree and "0000:03:00.0" not in tree, tree)


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii") as stream:
        stream.write(text)


def watch(plugins, root, wanted, until=None):
    """Output of --watch, which SIGINT ends after it has written that something `wanted` and three tables; `until` is called meanwhile."""
    base = {k: v for k, v in os.environ.items() if not k.startswith("GGML_")}
    base.update({"XDG_CACHE_HOME": CACHE, "GGML_ALLOW_UNSAFE_PLUGINS": "1"})
    with subprocess.Popen([PROGRAM, "--watch", "--interval", "0.2", "--plugin-path", plugins, "--sysfs", root], env=base,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        shown = process.stdout.readline()  # it is ready
        if until:
            until()
        deadline = time.monotonic() + 60
        while not (re.search(wanted, shown) and shown.count("every 0.2 s") >= 3) and time.monotonic() < deadline:
            line = process.stdout.readline()
            if not line:
                break
            shown += line
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
    return process.returncode, shown + rest, errors


def check_watch(folder):
    """Recorded trees of /proc and /sys, of a machine with two GPUs that the fixture has devices of."""
    for value in ("0", "x", "4000"):
        check(f"--interval {value} is exit status 2", run("--watch", "--interval", value).returncode == 2)
    with tempfile.TemporaryDirectory() as root, tempfile.TemporaryDirectory() as plugins:
        shutil.copy(PLUGIN, os.path.join(plugins, "ggml-cpu.so"))
        shutil.copy(os.path.join(BUILD, "tests/plugins/ggml-gpu.so"), plugins)
        write(root + "/proc/stat", "cpu  1000 0 0 1000 0 0 0 0 0 0\n")
        write(root + "/sys/bus/pci/devices/0000:01:00.0/gpu_busy_percent", "37\n")
        write(root + "/proc/4242/comm", "lla\x1bma\n")
        write(root + "/proc/77/comm", "other\n")
        client = "pos:\t0\ndrm-driver:\tx\ndrm-pdev:\t%s\ndrm-client-id:\t%d\ndrm-memory-vram:\t%d KiB\ndrm-engine-gfx:\t%d ns\n"
        write(root + "/proc/4242/fdinfo/5", client % ("0000:02:00.0", 9, 3 << 20, 1))
        write(root + "/proc/4242/fdinfo/6", client % ("0000:02:00.0", 9, 3 << 20, 1))  # the same once more
        write(root + "/proc/77/fdinfo/3", client % ("0000:02:00.0", 10, 1 << 20, 1))
        write(root + "/proc/77/fdinfo/4", "flags:\t02\n")

        def move_on():
            write(root + "/proc/stat.new", "cpu  1250 0 0 1750 0 0 0 0 0 0\n")
            os.rename(root + "/proc/stat.new", root + "/proc/stat")  # never half of it
        code, shown, errors = watch(plugins, root, "CPU .*busy", move_on)
        check("--watch goes on until it is interrupted, and ends well", code == 0 and errors == "" and
              shown.count("every 0.2 s") >= 3, (code, shown, errors))
        check("nothing but text is written to a file", shown.isprintable() or not re.search(r"[\x00-\x09\x0b-\x1f]", shown), shown)
        check("a driver's figure is shown", re.search(r"GPU0 .*busy +37 %", shown), shown)
        check("processors are busy for what /proc/stat counted", re.search(r"CPU .*busy +25 %", shown), shown)
        order = re.search(r"GPU1 .*\n +4242 lla\?ma +3\.0 GiB\n +77 other +1\.0 GiB\n", shown)
        check("processes are counted once, the largest first", order and "and" not in shown, shown)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    before = termios.tcgetattr(theirs)
    base = {k: v for k, v in os.environ.items() if not k.startswith("GGML_")}
    base.update({"XDG_CACHE_HOME": CACHE, "TERM": "xterm"})
    with subprocess.Popen([PROGRAM, "--watch", "--interval", "0.2", "--plugin-path", folder], env=base, stdin=theirs, stdout=theirs,
                          stderr=theirs) as process:
        shown = b""
        deadline = time.monotonic() + 60
        while shown.count(b"every 0.2 s") < 3 and time.monotonic() < deadline:
            if select.select([ours], [], [], 1)[0]:
                shown += os.read(ours, 65536)
        meanwhile = termios.tcgetattr(theirs)
        os.write(ours, b"q")
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
    n_lines = shown.split(b"\x1b[")[0].count(b"\n") if shown else 0
    check("on a terminal it is drawn over", re.search(rb"\x1b\[\d+A", shown) and n_lines < 24, shown)
    check("no line is wider", all(len(line) < 60 for line in re.split(rb"[\r\n]+", re.sub(rb"\x1b\[\d*[AJKm]", b"", shown))), shown)
    check("the bar gives way to the figures", re.search(rb"CPU +\[[#.]+\] .* GiB used  busy +\d+ %\x1b", shown), shown)
    check("q ends it", process.returncode == 0, process.returncode)
    check("and the terminal is as before", termios.tcgetattr(theirs) == before and meanwhile != before)
    os.close(ours)
    os.close(theirs)


def check_watch_behind(folder):
    """A terminal's process that is not in front, as timeout starts it, is not stopped: neither at the start nor when it ends."""
    command = ["timeout", "-s", "INT", "0.5", PROGRAM, "--watch", "--interval", "0.1", "--plugin-path", folder]
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update({"XDG_CACHE_HOME": CACHE, "TERM": "xterm"})
        os.execvp("sh", ["sh", "-c", '"$@"; echo "status $?"', "sh", *command])
    shown = b""
    deadline = time.monotonic() + 60
    while b"status " not in shown and time.monotonic() < deadline:
        if select.select([terminal], [], [], 1)[0]:
            try:
                shown += os.read(terminal, 65536)
            except OSError:  # Linux: the other end is closed
                break
    os.close(terminal)  # hangs up
    os.waitpid(pid, 0)
    check("--watch behind another process of the terminal ends when it is told to", b"status 124" in shown, shown)


def check_refusals():
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(PLUGIN, os.path.join(folder, "mine.so"))
        shutil.copy(PLUGIN, os.path.join(folder, "ggml-cpu.so"))
        done = run("--plugin-path", folder)
        check("a library that is not named like a plugin is said to be ignored", "ignored: mine.so" in done.stdout and
              "ggml-NAME" in done.stdout, done)
        document = load(run("--json", "--plugin-path", folder))
        check("in the JSON too", valid(document) and document["search"][0]["ignored"] == ["mine.so"],
              document["search"])
        os.chmod(folder, 0o777)
        table = run(GGML_PLUGIN_PATH=folder).stdout
        check("an unsafe directory is refused with the reason and what to do", all(
            text in table for text in ("refused " + folder, "can be written by everyone", "chmod go-w",
                                       "GGML_ALLOW_UNSAFE_PLUGINS", "others could change it")), table)
        check("and nothing speaks of sums", "its sum is not allowed" not in table, table)
        os.chmod(folder, 0o755)


def check_json(folder):
    done = run("--json", "--plugin-path", folder)
    document = load(done)
    check("--json is valid against the schema", valid(document), done)
    plugin = [p for p in document["plugins"] if p["path"] == os.path.join(folder, "ggml-cpu.so")]
    check("the plugin beside is in use", plugin and plugin[0]["loaded"] and plugin[0]["status"] == "OK", plugin)
    device = document["devices"][0]
    check("free memory is at most total", 0 < device["memory"]["free"] <= device["memory"]["total"], device)
    done = run("--json", "--test", "--plugin-path", folder)
    document = load(done)
    check("--json says what the CPU plugin knows of its device", device["details"].get("unified-memory") == "yes" and
          device["details"].get("cpu-level"), device)
    tests = document["devices"][0]["self_test"]
    check("--test --json is valid and passes", valid(document) and done.returncode == 0 and
          all(t["verdict"] == "passed" for t in tests), tests)


def overlap(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def inside(a, b):
    return b[0] <= a[0] and b[1] <= a[1] and a[2] <= b[2] and a[3] <= b[3]


def check_boxes(path, name):
    """Texts fit their boxes; boxes are in each other or apart."""
    root = ElementTree.parse(path).getroot()
    boxes, bad = [], []
    for element in root:
        if element.tag.endswith("rect"):
            x, y, w, h = (int(element.get(key)) for key in ("x", "y", "width", "height"))
            boxes.append((x, y, x + w, y + h))
        elif element.tag.endswith("text"):
            x, y, length = (int(element.get(key)) for key in ("x", "y", "textLength"))
            box = boxes[-1]
            if length < 7.2 * len(element.text) or x < box[0] or x + length > box[2] or not box[1] < y < box[3]:
                bad.append(element.text)
    width, height = int(root.get("width")), int(root.get("height"))
    bad += [b for b in boxes if not inside(b, (0, 0, width, height))]
    bad += [(a, b) for a in boxes for b in boxes
            if a != b and overlap(a, b) and not inside(a, b) and not inside(b, a)]
    check("texts fit their boxes, and boxes their place: " + name, boxes and not bad, bad)
    return width, height


def check_drawings(folder):
    done = run("--tree", "--plugin-path", folder)
    check("--tree shows the machine and the device", "Machine" in done.stdout and "* CPU" in done.stdout, done)
    done = run("--dot", "--plugin-path", folder)
    check("--dot is a digraph", done.stdout.startswith("digraph") and done.stdout.rstrip().endswith("}"), done)
    path = os.path.join(folder, "out.svg")
    done = run("--svg", path, "--plugin-path", folder)
    texts = [e.text for e in ElementTree.parse(path).iter() if e.tag.endswith("text")]
    check("--svg is XML with the device in it", any("CPU" in t for t in texts), texts)
    check_boxes(path, "this machine")
    for machine, widest in (("package:2 [numa] l3:8 core:8 pu:2", 3), ("package:1 core:4 pu:1", 6)):
        done = run("--svg", path, "--plugin-path", folder, HWLOC_SYNTHETIC=machine)
        width, height = check_boxes(path, machine)
        check(f"is not taller than wide, nor too wide ({machine})", height < width < widest * height, (width, height))
    page = os.path.join(folder, "out.html")
    done = run("--html", page, "--plugin-path", folder)
    with open(page, encoding="utf-8") as stream:
        text = stream.read()
    drawing = ElementTree.fromstring(re.search(r"<svg.*</svg>", text, re.S).group(0))
    tips = [e.text for e in drawing.iter() if e.tag.endswith("title")]
    boxes = [e for e in drawing.iter() if e.tag.endswith("rect")]
    check("--html is a page whose boxes tell more", done.returncode == 0 and text.startswith("<!DOCTYPE html>") and
          len(tips) == len(boxes) and any("GiB free" in tip and "plugin cpu" in tip for tip in tips) and
          (not any("core" in tip for tip in tips) or any("logical CPUs" in tip for tip in tips)), tips)
    check("which fetches nothing and runs nothing", not re.search(r"<script|<link|<img|src=|href=", text), text)
    done = run("--html", "/nonexistent/out.html")
    check("a page that can't be written is exit status 4", done.returncode == 4 and "can't write" in done.stderr, done)
    done = run("--svg", "/nonexistent/out.svg")
    check("an unwritable SVG is exit status 4", done.returncode == 4 and "can't write" in done.stderr, done)


def check_without_files(folder):
    """Where /tmp is full or can't be written: what a device's process tells needs no file there."""
    asan = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    environment = {"LD_PRELOAD": NO_FILES, "ASAN_OPTIONS": asan}
    done = run("--test", "--plugin-path", folder, **environment)
    check("devices are tested without temporary files", done.returncode == 0 and "addition, F32" in done.stdout, done)
    for way in ((), ("--in-process",)):
        done = run("CPU", "--plugin-path", folder, *way, **environment)
        check(" ".join(["and asked for their operations", *way]), done.returncode == 0 and "MUL_MAT" in done.stdout, done)
    environment["GGML_TEST_NO_MEMORY_FILE"] = "1"
    done = run("--test", "--json", "--plugin-path", folder, **environment)
    tests = [device["self_test"] for device in load(done)["devices"] if device["name"] == "CPU"][0]
    check("without files in memory either no test is done, and it is said why", done.returncode == 1 and
          [t["verdict"] for t in tests] == ["failed"] + 4 * ["not_run"] and "no process for it: Read-only" in tests[0]["message"], done)
    for way in ((), ("--in-process",)):
        done = run("CPU", "--plugin-path", folder, *way, **environment)
        check(" ".join(["nor are operations told", *way]), done.returncode == 0 and
              re.search(r"operations +.*Read-only file system", done.stdout), done)


def check_planted_hwloc(folder):
    """F24 of a security review: what hwloc does costs a line, and the boxes that it alone knows."""
    asan = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    for habit, words in (("crash", "signal 11"), ("hang", "doesn't answer"), ("garbage", "can't read"), ("failure", "can't read")):
        done = run("--tree", "--plugin-path", folder, LD_PRELOAD=PLANTED_HWLOC, GGML_TEST_HWLOC=habit, ASAN_OPTIONS=asan)
        check(f"--tree without hwloc ({habit})", done.returncode == 0 and "hwloc" in done.stderr and words in done.stderr and
              done.stdout.startswith("Machine") and "* CPU" in done.stdout, done)
    done = run("--tree", "--plugin-path", folder, LD_PRELOAD=PLANTED_HWLOC, GGML_TEST_HWLOC="tree", ASAN_OPTIONS=asan)
    check("F17: what is in hwloc's place tells the terminal nothing", done.stdout == "Machine ?[31mred ?[5m ? ?\n", done)
    if not os.path.isdir("/proc/self"):
        return
    environment = dict(os.environ, LD_PRELOAD=PLANTED_HWLOC, GGML_TEST_HWLOC="hang", ASAN_OPTIONS=asan)
    with subprocess.Popen([PROGRAM, "--tree", "--plugin-path", folder], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          env=environment) as program:
        def of_hwloc():
            return [child for child in children_of(program.pid) if of_process(child, "comm").startswith("ggml-devices")]
        child = []
        while not child and wait_for(of_hwloc):  # a helper that has not begun is called so too, for a moment
            program.send_signal(signal.SIGSTOP)  # it ends its child after 5 s
            time.sleep(0.2)
            child = of_hwloc()
            if not child:
                program.send_signal(signal.SIGCONT)
        program.kill()
        program.wait()
        check("F21: hwloc's process ends with a program that is killed", child and wait_for(lambda: not runs(child[0])), child)


def hostile_files(folder):
    """Files that look like plugins by name, none of which is one."""
    with open(PLUGIN, "rb") as stream:
        image = stream.read()
    contents = {"empty": b"", "text": b"not a plugin\n", "short": image[:1000], "header": image[:64],
                "half": image[:len(image) // 2], "zeros": bytes(4096)}
    for name, content in contents.items():
        with open(os.path.join(folder, f"ggml-{name}.so"), "wb") as stream:
            stream.write(content)
    os.mkdir(os.path.join(folder, "ggml-directory.so"))
    os.mkfifo(os.path.join(folder, "ggml-fifo.so"))
    os.symlink("nowhere", os.path.join(folder, "ggml-dangling.so"))
    return len(contents) + 3


def check_hostile():
    with tempfile.TemporaryDirectory() as folder:
        count = hostile_files(folder)
        done = run("--json", "--plugin-path", folder)
        document = load(done)
        check("a directory of bad files is listed, valid and survived", valid(document), done)
        bad = [p for p in document["plugins"] if p["path"].startswith(folder)]
        check("each bad file has a record with a reason", len(bad) == count and
              all(p["status"] != "OK" and p["message"] for p in bad), bad)
        shutil.copy(PLUGIN, os.path.join(folder, "ggml-cpu.so"))
        done = run("--plugin-path", folder)
        check("a good plugin among them is used", os.path.join(folder, "ggml-cpu.so") in done.stdout and
              "in use" in done.stdout, done)


def check_filter(folder):
    done = run("--json", "--device", "-cpu", "--plugin-path", folder)
    check("excluding the only plugin leaves no device: exit status 3", done.returncode == 3 and
          load(done)["devices"] == [], done)
    done = run("--json", "--device", "cpu", "--plugin-path", folder)
    check("--device cpu keeps it", done.returncode == 0 and len(load(done)["devices"]) == 1, done)


def plugin_of(document, name):
    return next(p for p in document["plugins"] if p["path"].endswith("/ggml-" + name + ".so"))


def check_probing():
    bad = {"crash_init": "CRASHED", "endless_constructor": "TIMED_OUT", "exit_init": "CRASHED", "flood": "BAD_PLUGIN"}
    with tempfile.TemporaryDirectory() as folder:
        for name in ["no_habit", *bad]:
            shutil.copy(os.path.join(PROBE_PLUGINS, f"ggml-{name}.so"), folder)
        options = ["--json", "--plugin-path", folder, "--timeout", "3", "--jobs", "5"]
        done = run(*options)
        document = load(done)
        check("plugins that end their process are survived", done.returncode == 0 and valid(document), done)
        check("each has its reason", all(plugin_of(document, n)["status"] == s and plugin_of(document, n)["message"]
                                         for n, s in bad.items()), document["plugins"])
        check("the good one is listed", any(d["name"] == "PROBED0" for d in document["devices"]) and
              plugin_of(document, "no_habit")["source"] == "helper", document["plugins"])
        check("it ran in helpers", [document["probing"][n] for n in ("isolated", "not_isolated", "not_cached")] == [True, "", ""],
              document["probing"])
        again = load(run(*options))
        check("the second time all is remembered", all(plugin_of(again, n)["source"] == "cache"
                                                       for n in ["no_habit", *bad]), again["plugins"])
        check("free memory is estimated then", [d["memory"]["quality"] for d in again["devices"]
                                                if d["name"] == "PROBED0"] == ["estimated"], again["devices"])
        time.sleep(1.1)
        memory = [d["memory"] for d in load(run(*options))["devices"] if d["name"] == "PROBED0"][0]
        check("and has an age", memory["age_seconds"] >= 1, memory)
        check("which the table has", re.search(r"GiB free \(\d+ s ago\)", run(*options[1:]).stdout), memory)
        for option in ("--rescan", "--no-cache"):
            again = load(run(*options, option))
            check(option + " tries again", plugin_of(again, "no_habit")["source"] == "helper", again["plugins"])
        table = run("--plugin-path", folder).stdout
        check("the table has the reasons", "signal 11" in table and "did not answer in time" in table, table)
        done = run("--json", "--test", "--plugin-path", folder)
        document = load(done)
        check("--test goes by what works", valid(document) and plugin_of(document, "no_habit")["loaded"] and
              plugin_of(document, "crash_init")["status"] == "CRASHED", done)


def self_test(name, *arguments):
    """The self-test of one device of the fixtures, and the outcome."""
    with tempfile.TemporaryDirectory() as folder:
        fixture = os.path.join(BUILD, name)
        shutil.copy(fixture, folder)
        path = os.path.join(folder, os.path.basename(fixture))
        done = run("--test", "--json", "--plugin-path", folder, *arguments)
        document = load(done)
        return done, valid(document) and [d for d in document["devices"] if d["plugin_path"] == path][0]["self_test"]


def check_figures():
    plugin = os.path.join(BUILD, "tests/plugins/virtual/ggml-virtual.so")
    if not os.path.exists(plugin):
        return
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(plugin, folder)
        done = run("VIRTUAL0", "--plugin-path", folder, "--no-cache", GGML_VIRTUAL="node_ns_per_mflop=500,node_ns_per_kib=20")
        check("the figures that a plugin declares", re.search(r"computes +2 TFLOP/s", done.stdout) and
              re.search(r"memory is read +51\.2 GB/s", done.stdout), done)


def check_self_tests():
    done, tests = self_test("plugins/null/ggml-null.so")
    check("a device that computes nothing of the self-test is no success", done.returncode == 1 and
          {t["verdict"] for t in tests} == {"unsupported"}, done)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(os.path.join(BUILD, "plugins/null/ggml-null.so"), folder)
        done = run("--test", "--plugin-path", folder)
        done = run("NULL0", "--plugin-path", folder)
        check("of a device that takes little the rest is named as not supported", done.returncode == 0 and
              re.search(r"not supported:\n(?:      .*\n)*?.*\bMUL_MAT\b", done.stdout), done)
        done = run("--test", "--plugin-path", folder)
        check("and is said not to be tested", "not tested" in done.stdout and "ggml-conformance" in done.stdout, done)
    defects = "tests/plugins/defective/ggml-defect-"
    if not os.path.exists(os.path.join(BUILD, defects + "sum_wrong.so")):
        return
    done, tests = self_test(defects + "sum_wrong.so")
    check("a wrong sum is a failed test", done.returncode == 1 and tests[0]["workload"] == "addition, F32" and
          tests[0]["verdict"] == "failed" and "above" in tests[0]["message"], done)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(os.path.join(BUILD, defects + "claims_crash.so"), os.path.join(folder, "ggml-bad.so"))
        done = run("DEFECT0", "--plugin-path", folder)
        check("a plugin that crashes when it is asked what it supports is a row of its device's page", done.returncode == 0 and
              re.search(r"operations +the process ended by signal", done.stdout), done)
    done, tests = self_test(defects + "sum_crashes.so")
    check("a crash is a failed test, and the next device goes on", done.returncode == 1 and
          [t["verdict"] for t in tests] == ["failed"] + 4 * ["not_run"] and
          re.search(r"signal \d+|exit status [1-9]", tests[0]["message"]) and
          load(done)["devices"][-1]["self_test"][0]["verdict"] == "passed", done)


def of_process(process, what):
    """A file of /proc about it, "" once it is gone."""
    try:
        with open(f"/proc/{process}/{what}", encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return ""


def state_and_parent(process):
    fields = of_process(process, "stat").rpartition(")")[2].split()
    return (fields[0], int(fields[1])) if fields else ("X", 0)


def runs(process):
    return state_and_parent(process)[0] not in "ZX"


def children_of(process):
    return [int(name) for name in filter(str.isdigit, os.listdir("/proc"))
            if state_and_parent(name)[1] == process and runs(name)]


def wait_for(condition):
    for _ in range(1000):
        if condition():
            return True
        time.sleep(0.02)
    return False


def check_children():
    """Plugins that misbehave only once their device is asked or used, in the process that does it."""
    tests = self_test("tests/probe/ggml-flood_later.so")[1]
    check("what a plugin writes into its process's descriptors is no result", tests and tests[0]["verdict"] == "failed" and
          "not its own" in tests[0]["message"] and [t["verdict"] for t in tests[1:]] == 4 * ["not_run"], tests)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(os.path.join(PROBE_PLUGINS, "ggml-grandchild_session.so"), folder)
        with open(os.path.join(folder, "page"), "w+", encoding="utf-8") as page:  # a pipe's end would be left open too
            try:
                code = subprocess.run([PROGRAM, "PROBED0", "--plugin-path", folder], stdin=subprocess.DEVNULL, stdout=page,
                                      stderr=subprocess.STDOUT, timeout=60, check=False).returncode
            except subprocess.TimeoutExpired:  # that process never ends
                code = "none after 60 s"
            page.seek(0)
            text = page.read()
        check("nobody waits for what a plugin leaves", code == 0 and re.search(r"operations +0 of", text), (code, text))
    if not os.path.isdir("/proc/self"):
        return
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(os.path.join(PROBE_PLUGINS, "ggml-hang_later.so"), folder)
        with subprocess.Popen([PROGRAM, "--test", "--no-cache", "--plugin-path", folder], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as program:
            def is_asked():
                return [child for child in children_of(program.pid) if "--child-for" in of_process(child, "cmdline")]
            wait_for(is_asked)
            child = is_asked()
            time.sleep(0.3)
            program.kill()
            program.wait()
            check("a device's process ends with a program that is killed", child and wait_for(lambda: not runs(child[0])), child)


def check_sandbox():
    """A plugin that writes into the user's home when it starts."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as home:
        shutil.copy(os.path.join(PROBE_PLUGINS, "ggml-trespass.so"), folder)
        options = ["--json", "--no-cache", "--plugin-path", folder]
        document = load(run(*options, HOME=home))
        missing = document["probing"]["not_sandboxed"]
        check("a plugin may not write into the home, or it is said", valid(document) and
              (not os.path.exists(os.path.join(home, "written")) or "Landlock" in missing), document["probing"])
        document = load(run(*options, "--no-sandbox", HOME=home))
        check("with --no-sandbox it may, and that is said", os.path.exists(os.path.join(home, "written")) and
              "--no-sandbox" in document["probing"]["not_sandboxed"], document["probing"])
        document = load(run(*options, HOME=home, GGML_PROBE_SANDBOX="0"))
        check("also where the environment says so", valid(document) and
              "GGML_PROBE_SANDBOX" in document["probing"]["not_sandboxed"], document["probing"])
        shown = run("--verbose", "--no-sandbox", "--no-cache", "--plugin-path", folder, HOME=home)
        check("and to whoever asks for more text", "as --no-sandbox says" in shown.stdout, shown)


def check_sandboxed_driver():
    """A real driver finds the same in the sandbox, and it is said when there is none."""
    said = {}
    for option in ("--verbose", "--no-sandbox"):
        for what in ("asked", "remembered"):
            done = run("--json", option, "--plugin-path", VULKAN, VK_LOADER_DRIVERS_SELECT="*lvp*", GGML_VULKAN_CACHE="0")
            document = load(done)
            found = document and [d["description"] for d in document["devices"] if d["plugin"] == "vulkan"]
            said[option] = (found, document and document["probing"]["not_sandboxed"])
            check(f"the driver is {what} with {option}", valid(document) and found and document["probing"]["isolated"] and
                  plugin_of(document, "vulkan")["source"] == ("helper" if what == "asked" else "cache"), done)
            check("without the sandbox, that is said" if option == "--no-sandbox" else "in the sandbox, nothing is said but what it lacks",
                  "as --no-sandbox says" in said[option][1] if option == "--no-sandbox" else
                  not said[option][1] or "Landlock" in said[option][1] or "seccomp" in said[option][1], said)
    check("the driver finds the same in the sandbox", said["--verbose"][0] == said["--no-sandbox"][0], said)


def check_in_process(folder):
    probed = load(run("--json", "--no-cache", "--plugin-path", folder))
    done = run("--json", "--in-process", "--plugin-path", folder)
    document = load(done)
    check("--in-process is valid and says so", valid(document) and not document["probing"]["isolated"] and
          "this process" in document["probing"]["not_sandboxed"] and plugin_of(document, "cpu")["source"] == "process", done)
    check("it finds the same", [(d["name"], d["type"], d["id"], d["caps"], d["details"]) for d in probed["devices"]] ==
          [(d["name"], d["type"], d["id"], d["caps"], d["details"]) for d in document["devices"]], document["devices"])
    done = run("--json", "--plugin-path", folder, GGML_PROBE_HELPER="/nonexistent/helper")
    document = load(done)
    check("without a helper it says so and goes on", valid(document) and not document["probing"]["isolated"] and
          "/nonexistent/helper" in document["probing"]["not_isolated"] and document["devices"] and
          "this process" in document["probing"]["not_sandboxed"], done)
    for option, value in (("--timeout", "0"), ("--timeout", "x"), ("--jobs", "0"), ("--jobs", "65")):
        check(f"{option} {value} is exit status 2", run(option, value).returncode == 2)


def check_escapes():
    """F17 of a security review: nothing of a plugin's reaches the terminal as a command."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(os.path.join(PROBE_PLUGINS, "ggml-escapes.so"), folder)
        # A library of that name is not there; the message and the list name it.
        with open(os.path.join(PROBE_PLUGINS, "ggml-no_habit.so"), "rb") as file:
            data = file.read().replace(b"libc.so.6\0", b"lib\x1b]0;hi\0")
        with open(os.path.join(folder, "ggml-no_habit.so"), "wb") as file:
            file.write(data)
        for option in ("--json", "--verbose"):
            done = run("--plugin-path", folder, *([option] if option == "--json" else []))
            check(f"no escape sequence is printed ({option})", "\x1b" not in done.stdout and "\x9b" not in done.stdout
                  and "\x1b" not in done.stderr, done)
        document = load(run("--json", "--plugin-path", folder))
        sizes = [d["memory"] for d in document["devices"] if "red" in (d["id"] or "")]
        check("F18: sizes that JSON has no place for are as large as it has, never negative", valid(document) and
              [(m["free"], m["total"]) for m in sizes] == [(2**63 - 1, 2**63 - 1)], document["devices"])
        with open(os.path.join(PROBE_PLUGINS, "ggml-no_habit.so"), "rb") as file:
            data = file.read().replace(b"A device to be found", b"</title>\xef\xbf\xbf<script>!")
        with open(os.path.join(folder, "ggml-no_habit.so"), "wb") as file:
            file.write(data)
        drawing = os.path.join(folder, "drawing.svg")
        drawn = run("--svg", drawing, "--plugin-path", folder)
        try:
            texts = "".join(ElementTree.parse(drawing).getroot().itertext())
        except (OSError, ElementTree.ParseError) as error:
            texts = str(error)
        check("F18: a drawing is XML whatever a plugin calls things", "</title>?<script>!" in texts, (drawn, texts))
        check("but the rest is", "[?31mred]" in done.stdout and "lib?]0;hi" in done.stdout, done.stdout)


def main():
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(PLUGIN, os.path.join(folder, "ggml-cpu.so"))
        check_usage()
        check_plain(folder)
        check_json(folder)
        check_drawings(folder)
        if PLANTED_HWLOC:
            check_planted_hwloc(folder)
        if NO_FILES:
            check_without_files(folder)
        check_terminal(folder)
        check_gpus(folder)
        check_watch(folder)
        check_watch_behind(folder)
        check_filter(folder)
        check_in_process(folder)
    check_hostile()
    check_output()
    check_refusals()
    check_hosts()
    check_isolated()
    if PROBE_PLUGINS:
        check_probing()
        check_children()
        check_sandbox()
        if VULKAN:
            check_sandboxed_driver()
        check_escapes()
        check_self_tests()
        check_figures()
    shutil.rmtree(CACHE)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
