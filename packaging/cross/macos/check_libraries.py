#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Looks at what was built for macOS or iOS: for which system it is, what libraries export, their install names and what they
and the tools need; and whether ggml-devices, built for this machine, refuses the plugins and says why. In TAP.

usage: check_libraries.py arm64|x86_64|ios BUILD GGML_DEVICES NUMBER
  NUMBER   of the first line
"""
import json
import os
import re
import subprocess
import sys

REFUSALS = {"arm64": "built for AArch64", "x86_64": "for x86-64 in the format macOS", "ios": "built for AArch64"}
TOOLS = ("tools/ggml-devices", "tools/ggml-bench", "tests/conformance/ggml-conformance")  # not on iOS
SYSTEM = "/usr/lib/libSystem.B.dylib"
HWLOC = "/opt/homebrew/opt/hwloc/lib/libhwloc.15.dylib"
NEEDS = {SYSTEM, "@rpath/libggml.1.dylib", HWLOC, "/opt/homebrew/opt/jansson/lib/libjansson.4.dylib"}
# Number or name of the platform in a library, and the oldest version of the system.
SYSTEMS = {"arm64": (r"1|macos", "13.0"), "x86_64": (r"1|macos", "13.0"), "ios": (r"2|ios", "16.0")}


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def exports(path):
    return {line.split()[-1] for line in output("llvm-nm-14", "--extern-only", "--defined-only", path).splitlines() if line.strip()}


def loads(path):
    """(its own name, libraries that it needs)"""
    text = output("llvm-objdump-14", "--macho", "--private-headers", path)
    commands = re.findall(r"cmd (LC_ID_DYLIB|LC_LOAD_DYLIB)\n.*?name (\S+)", text, re.S)
    return ([n for c, n in commands if c == "LC_ID_DYLIB"], [n for c, n in commands if c == "LC_LOAD_DYLIB"])


def refusals(tool, folder):
    """{plugin's file: what ggml-devices says of it}"""
    environment = {**os.environ, "GGML_ALLOW_UNSAFE_PLUGINS": "1"}
    run = subprocess.run([tool, "--plugin-path", folder, "--json"], capture_output=True, text=True, env=environment, check=False)
    return {os.path.basename(p["path"] or ""): p for p in json.loads(run.stdout)["plugins"]}


def is_for(machine, path):
    platform, version = SYSTEMS[machine]
    text = output("llvm-objdump-14", "--macho", "--private-headers", path)
    return re.search(rf"LC_BUILD_VERSION\n.*?platform ({platform})\n.*?minos {version}\n", text, re.S | re.I) is not None


def check(machine, build, tool):
    core = os.path.join(build, "core/lib/libggml.1.dylib")
    names = exports(core)
    yield (len(names) > 500 and all(re.match(r"_(ggml|gguf)", n) for n in names),
           f"the core exports {len(names)} symbols, all of ggml's", sorted(n for n in names if not re.match(r"_(ggml|gguf)", n))[:5])
    own, needed = loads(core)
    yield own == ["@rpath/libggml.1.dylib"], "the core's install name", own
    yield is_for(machine, core), f"the core is for version {SYSTEMS[machine][1]} of the system", SYSTEMS[machine]
    expected = [SYSTEM] if machine == "ios" else sorted([SYSTEM, HWLOC])
    also = "" if machine == "ios" else " and hwloc"
    yield sorted(needed) == expected, f"the core needs the system's library{also} only", needed
    for plugin in ("cpu", "metal", "null") + (() if machine == "ios" else ("vulkan",)):
        path = os.path.join(build, f"plugins/{plugin}/ggml-{plugin}.dylib")
        names = exports(path)
        yield ("_ggml_backend_init" in names and len(names) <= 2, f"{plugin} exports its entry", sorted(names)[:8])
        yield loads(path)[1] == [SYSTEM], f"{plugin} needs the system's library only", loads(path)
        yield is_for(machine, path), f"{plugin} is for version {SYSTEMS[machine][1]} of the system", SYSTEMS[machine]
        record = refusals(tool, os.path.dirname(path)).get(f"ggml-{plugin}.dylib", {})
        yield (record.get("status") == "WRONG_MACHINE" and REFUSALS[machine] in record.get("message", ""),
               f"{plugin} is refused here, for what it was built for", record)
    for tool_path in TOOLS if machine != "ios" else ():
        path = os.path.join(build, tool_path)
        name = os.path.basename(path)
        yield is_for(machine, path), f"{name} is for version {SYSTEMS[machine][1]} of the system", SYSTEMS[machine]
        yield set(loads(path)[1]) <= NEEDS, f"{name} needs the system's library, the core, hwloc and Jansson only", loads(path)


def main():
    machine, build, tool, number = sys.argv[1:]
    bad = 0
    for i, (good, name, seen) in enumerate(check(machine, build, tool), int(number)):
        print(f"{'ok' if good else 'not ok'} {i} - {machine}: {name}")
        if not good:
            bad += 1
            print(f"# {seen}")
    return 1 if bad else 0


sys.exit(main())
