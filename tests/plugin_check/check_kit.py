#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures ggml-plugin-check: each defective plugin fails exactly its own check, good ones fail none. Speaks TAP.

usage: check_kit.py quick|full PROGRAM SCHEMA DEFECTS.inl DIRECTORY GOOD_PLUGIN...

quick: of a defective plugin only its own check is executed."""
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import check, finish  # noqa: E402

MODE, PROGRAM, SCHEMA, DEFECTS, DIRECTORY = sys.argv[1:6]
GOOD = sys.argv[6:]


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=300, check=False)


def outcome(path, deadline="10", only=""):
    """Exit status, what failed with its message, and the number of executed checks."""
    done = run("--format", "json", "--deadline", deadline, *(["--only", only] if only else []), path)
    if done.returncode not in (0, 1):
        return done.returncode, {"(program)": done.stderr}, 0
    report = json.loads(done.stdout)
    failed = {c["id"]: c["message"] for c in report["checks"] if c["outcome"] in ("failed", "unexpected-pass")}
    return done.returncode, failed, report["totals"]["executed"]


def defects():
    with open(DEFECTS, encoding="utf-8") as file:
        return re.findall(r'^DEFECT\((\w+), "([^"]*)"\)', file.read(), re.M)


def path_of(name):
    return f"{DIRECTORY}/{'defect' if name == 'file_name' else 'ggml-defect'}-{name}.so"


def absent_checks():
    """What is not checked on this machine: instructions without a decoder, what linkers note of x86-64 alone,
    affinities with one CPU, processes in an emulator."""
    absent = ["life.threads-bound"] if len(os.sched_getaffinity(0)) < 2 else []
    if "MESON_EXE_WRAPPER" in os.environ:
        absent.append("life.leaves-process")
    for check_id, name in (("file.instructions", "none"), ("file.note-cpu-honest", "isa_unnamed")):
        if "# SKIP" in run("--only", check_id, path_of(name)).stdout:
            absent.append(check_id)
    return absent


def check_defects(listed):
    absent = absent_checks()
    rows = defects()
    check("there are at least 40 defects", len(rows) > 40, len(rows))
    check("every defect names a check", all(c == "" or c in listed for _, c in rows),
          [c for _, c in rows if c and c not in listed])
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        # What hangs is given less time, and nothing else.
        outcomes = list(pool.map(lambda row: outcome(path_of(row[0]), "1" if "hangs" in row[0] else "10",
                                                     row[1] if MODE == "quick" else ""), rows))
    print(f"# {len(rows)} defective plugins in {time.monotonic() - began:.1f} s")
    table = []
    for (name, wanted), (code, failed, executed) in zip(rows, outcomes):
        if wanted in absent and not failed:
            print(f"# {name}: {wanted} can't be told here")
            continue
        check(f"defect {name}: {wanted or 'none'}",
              list(failed) == ([wanted] if wanted else []) and code == (1 if wanted else 0) and executed > 0,
              f"exit status {code}, {executed} executed, failed: {failed}")
        table.append((name, wanted, failed.get(wanted, "")))
    print("# defect -> check: message")
    for name, wanted, message in table:
        print(f"# {name} -> {wanted or '-'}:", " ".join(message.split()))


def check_good():
    for path in GOOD:
        code, failed, executed = outcome(path)
        check(f"{path.rsplit('/', 1)[-1]} fails no check", code == 0 and not failed and executed > 100,
              (code, failed, executed))


def follows_schema(text):
    """What is wrong with the JUnit report; empty if nothing is, or if there is nothing to tell it with."""
    if not shutil.which("xmllint"):
        print("# no xmllint: the schema of JUnit is not tested")
        return ""
    done = subprocess.run(["xmllint", "--noout", "--schema", SCHEMA.replace(".schema.json", ".junit.xsd"), "-"],
                          input=text, text=True, capture_output=True, check=False)
    return done.stderr if done.returncode else ""


def check_formats():
    good, bad = path_of("none"), path_of("note_flags")
    report = json.loads(run("--format=json", "--only", "file.*", "--seed", "7", bad).stdout)
    try:
        import jsonschema
        with open(SCHEMA, encoding="utf-8") as file:
            jsonschema.validate(report, json.load(file))
        check("the JSON follows its schema", True)
    except ImportError:
        print("# no jsonschema: the schema is not tested")
    check("the seed is in the report", report["seed"] == 7, report["seed"])
    text = run("--format=junit", "--only", "file.*", bad).stdout
    suite = xml.etree.ElementTree.fromstring(text)
    check("JUnit counts what it lists", int(suite.get("tests")) == len(suite.findall("testcase")) and
          int(suite.get("failures")) == len(suite.findall("testcase/failure")) == 1, suite.attrib)
    for name, junit in (("one failure", text), ("nothing executed", run(
            "--format=junit", "--only", "file.note-cpu-honest", good).stdout),
            ("a name that is not text", run("--format=junit", "--only", "enum.*", path_of("name_invalid")).stdout)):
        valid = follows_schema(junit)
        check(f"JUnit follows its schema: {name}", not valid, valid)
    with tempfile.TemporaryDirectory() as folder:  # UTF-8, and yet nothing that XML may have
        odd = shutil.copy(good, os.path.join(folder, "ggml-\ufffe\uffff.so"))
        text = run("--format=junit", "--only", "file.note-cpu-honest", odd).stdout
        try:
            valid = "\ufffd\ufffd.so" in xml.etree.ElementTree.fromstring(text).find("properties/property").get("value")
        except xml.etree.ElementTree.ParseError as error:
            valid, text = False, f"{error}: {text}"
        check("F18: JUnit is XML whatever a plugin calls things", valid, text)
    lines = run("--only", "file.*", bad).stdout.splitlines()
    check("TAP has one line per check and one plan",
          sum(l.startswith(("ok", "not ok")) for l in lines) == int(re.search(r"1\.\.(\d+)", "\n".join(lines))[1]))
    both = [run("--only", "enum.*", "--jobs", jobs, good).stdout for jobs in "14"]
    check("jobs do not change the report", both[0] == both[1], both)


def check_options():
    good, bad = path_of("none"), path_of("note_flags")
    check("wrong usage is exit status 2",
          all(run(*a).returncode == 2 for a in ([], ["a", "b"], ["--format=x", good], ["--only", "no.such", good],
                                                ["--skip", "file.name", good], ["--skip", "no.such=x", good],
                                                ["--jobs", "0", good], ["--seed", "-1", good])))
    crash = run("--only", "life.init", path_of("init_crashes")).stdout
    check("a crash names its place in the file", re.search(r"ended by signal \d+ .*ggml-defect-init_crashes\.so at 0x[0-9a-f]+",
                                                          crash), crash)
    check("a file that is not there is exit status 4", run("/nonexistent.so").returncode == 4)
    check("no executed check is a failure", run("--only", "file.note-cpu-honest", good).returncode == 1)
    check("an exclusion hides a failure", run("--only", "file.*", "--skip", "file.note-flags=known", bad).returncode == 0)
    check("an excluded check that passes is a failure",
          run("--only", "file.*", "--skip", "file.note-flags=known", good).returncode == 1)
    check("an exclusion of several needs one failure",
          run("--only", "file.note-*", "--skip", "file.note-*=known", bad).returncode == 0 and
          run("--only", "file.note-*", "--skip", "file.note-*=known", good).returncode == 1)
    check("all cases of an operation are computed",
          run("--all-cases", "--only", "op.conformance.SUB", good).returncode == 0)
    check("an unknown device is a failure",
          run("--only", "enum.name", "--device", "NONE", good).returncode == 1)
    check("a known device is none", run("--only", "enum.name", "--device", "DEFECT1", good).returncode == 0)
    done = run("--only", "life.table", os.path.join(DIRECTORY, "..", "ggml-init_fails.so"))
    check("a status has a number and the host's words for it", re.search(r"no table with status \d+ \([a-z].*\)", done.stdout) and
          "unknown status" not in done.stdout, done.stdout)
    if os.path.exists("/dev/full"):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([PROGRAM, "--only", "file.*", good], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        check("a full disk is exit status 4, and told once", done.returncode == 4 and done.stderr.count("\n") == 1 and
              "No space left" in done.stderr, done)
    done = run(SCHEMA)
    check("a file that is no plugin is a failure", done.returncode == 1 and "not ok 2 - file.shared" in done.stdout)


def check_blocked():
    """One failure that blocks others: each says which one, and a line how many and what to do."""
    chosen = ("op.sum", "op.claims-placed", "op.conformance.ADD", "op.conformance.SUB")
    done = run(*(word for name in chosen for word in ("--only", name)), path_of("sum_wrong"))
    check("a wrong sum is told with operation, type and operands",
          re.search(r"# DEFECT0: ADD in F32: number \d+ is \S+ instead of \S+, the sum of \S+ and \S+\n", done.stdout), done.stdout)
    check("what is skipped for it names it", "# SKIP needs op.sum, which failed\n" in done.stdout and
          done.stdout.count("# SKIP needs op.claims-placed; op.sum failed\n") == 2, done.stdout)
    check("and is counted, with what helps", "# 3 skipped need one that failed; --only executes" in done.stdout and
          done.stdout.endswith("# 0 passed, 1 failed, 3 skipped\n"), done.stdout)
    done = run("--only", "op.conformance.SUB", path_of("sum_wrong"))
    check("which it does", done.stdout.endswith("# 0 passed, 1 failed, 0 skipped\n"), done.stdout)


def check_killed():
    """A plugin that hangs ends with a program that is killed."""
    path = path_of("event_unrecorded_hangs")
    with subprocess.Popen([PROGRAM, "--deadline", "60", "--only", "stream.event-unrecorded", path], stdout=subprocess.DEVNULL) as program:
        child, started = "", time.monotonic()
        while not child and program.poll() is None and time.monotonic() - started < 30:
            with open(f"/proc/{program.pid}/task/{program.pid}/children", encoding="utf-8") as children:
                child = "".join(children.read().split()[:1])
        program.kill()
    check("a check runs in a process of its own", child)
    started = time.monotonic()
    while child and os.path.exists(f"/proc/{child}/exe") and time.monotonic() - started < 10:
        time.sleep(0.02)
    check("that ends when the program is killed", child and not os.path.exists(f"/proc/{child}/exe"))


def main():
    listed = [line.split()[0] for line in run("--list").stdout.splitlines()]
    check("there are at least 120 checks, each once", len(listed) >= 120 and len(set(listed)) == len(listed))
    areas = {}
    for name in listed:
        areas[name.split(".")[0]] = areas.get(name.split(".")[0], 0) + 1
    print("# checks by area:", ", ".join(f"{area} {n}" for area, n in areas.items()), "- together", len(listed))
    counts = dict(line.split() for line in run("--counts").stdout.splitlines())
    check("the counts are those of the list",
          counts == {**{a: str(n) for a, n in areas.items()}, "together": str(len(listed))}, counts)
    check_options()
    check_formats()
    check_blocked()
    check_killed()
    check_good()
    check_defects(listed)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
