#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs ggml-devices as a user would. Speaks TAP.

Usage: check_devices.py PROGRAM SCHEMA PLUGIN [PROBE_PLUGIN_FOLDER]"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

try:
    import jsonschema
except ImportError:
    jsonschema = None

PROGRAM, SCHEMA, PLUGIN = sys.argv[1:4]
PROBE_PLUGINS = sys.argv[4] if len(sys.argv) > 4 else None
CACHE = tempfile.mkdtemp()
results = []


def check(name, condition, text=""):
    results.append(bool(condition))
    print(("ok" if condition else "not ok"), len(results), "-", name, flush=True)
    if not condition:
        print("".join(f"# {line}\n" for line in str(text).splitlines()[-30:]), flush=True)


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
    check("a stray argument is exit status 2", run("stray").returncode == 2)
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


def check_drawings(folder):
    done = run("--tree", "--plugin-path", folder)
    check("--tree shows the machine and the device", "Machine" in done.stdout and "* CPU" in done.stdout, done)
    done = run("--dot", "--plugin-path", folder)
    check("--dot is a digraph", done.stdout.startswith("digraph") and done.stdout.rstrip().endswith("}"), done)
    path = os.path.join(folder, "out.svg")
    done = run("--svg", path, "--plugin-path", folder)
    texts = [e.text for e in ElementTree.parse(path).iter() if e.tag.endswith("text")]
    check("--svg is XML with the device in it", any("CPU" in t for t in texts), texts)
    done = run("--svg", "/nonexistent/out.svg")
    check("an unwritable SVG is exit status 4", done.returncode == 4 and "can't write" in done.stderr, done)


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
        for option in ("--rescan", "--no-cache"):
            again = load(run(*options, option))
            check(option + " tries again", plugin_of(again, "no_habit")["source"] == "helper", again["plugins"])
        table = run("--plugin-path", folder).stdout
        check("the table has the reasons", "signal 11" in table and "did not answer in time" in table, table)
        done = run("--json", "--test", "--plugin-path", folder)
        document = load(done)
        check("--test loads what works", valid(document) and plugin_of(document, "no_habit")["loaded"] and
              plugin_of(document, "crash_init")["status"] == "CRASHED", done)


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
        check("with --no-sandbox it may", os.path.exists(os.path.join(home, "written")) and
              document["probing"]["not_sandboxed"] == "", document["probing"])


def check_in_process(folder):
    probed = load(run("--json", "--no-cache", "--plugin-path", folder))
    done = run("--json", "--in-process", "--plugin-path", folder)
    document = load(done)
    check("--in-process is valid and says so", valid(document) and not document["probing"]["isolated"] and
          plugin_of(document, "cpu")["source"] == "process", done)
    check("it finds the same", [(d["name"], d["type"], d["id"], d["caps"], d["details"]) for d in probed["devices"]] ==
          [(d["name"], d["type"], d["id"], d["caps"], d["details"]) for d in document["devices"]], document["devices"])
    done = run("--json", "--plugin-path", folder, GGML_PROBE_HELPER="/nonexistent/helper")
    document = load(done)
    check("without a helper it says so and goes on", valid(document) and not document["probing"]["isolated"] and
          "/nonexistent/helper" in document["probing"]["not_isolated"] and document["devices"], done)
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
        check("but the rest is", "[?31mred]" in done.stdout and "lib?]0;hi" in done.stdout, done.stdout)


def main():
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(PLUGIN, os.path.join(folder, "ggml-cpu.so"))
        check_usage()
        check_plain(folder)
        check_json(folder)
        check_drawings(folder)
        check_filter(folder)
        check_in_process(folder)
    check_hostile()
    if PROBE_PLUGINS:
        check_probing()
        check_sandbox()
        check_escapes()
    shutil.rmtree(CACHE)
    print(f"1..{len(results)}")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
