# SPDX-License-Identifier: MIT
"""What rows of tools/real-programs are made of: programs run on two libraries, and a table of what came out."""
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

THEIRS, OURS = "theirs", "ours"
SIDES = (THEIRS, OURS)
LIBRARIES = "/usr/lib/x86_64-linux-gnu"


class Failure(Exception):
    """A row has failed: what theirs gave, what ours gave, and why that is not good enough."""

    def __init__(self, why, theirs="", ours=""):
        super().__init__(why)
        self.theirs, self.ours = theirs, ours


class LeftOut(Exception):
    """A row can't be judged: their own library does not do it."""


class Ran:
    """How a program ended, and what it printed."""

    def __init__(self, side, status, path, seconds, timed_out):
        self.side, self.status, self.path, self.seconds, self.timed_out = side, status, path, seconds, timed_out

    @property
    def text(self):
        return re.sub(r"\x1b\[[0-9;]*m", "", self.path.read_text(errors="replace"))

    @property
    def stdout(self):
        return self.path.with_suffix(".out").read_bytes()

    @property
    def ok(self):
        return self.status == 0

    def last_lines(self, count=3):
        lines = [line.strip() for line in self.text.splitlines() if line.strip()]
        return " / ".join(line[:160] for line in lines[-count:])

    def how(self):
        if self.timed_out:
            return "not done after %d s" % self.seconds
        if self.status < 0:
            return "killed by " + signal.Signals(-self.status).name
        if self.status > 128 and self.status - 128 in list(signal.Signals):
            return "killed by " + signal.Signals(self.status - 128).name
        return "status %d" % self.status

    def find(self, pattern, default=None):
        """The first group of the last match in what was printed."""
        found = re.findall(pattern, self.text)
        return found[-1] if found else default

    def must_end_well(self):
        if not self.ok:
            raise Failure("%s: %s: %s" % (self.side, self.how(), self.last_lines()),
                          **{self.side: self.how()})
        return self


class Context:
    """Where the programs are, and where their outputs go."""

    def __init__(self, root, home, build, results, everything):
        self.root, self.home, self.results = pathlib.Path(root), home, pathlib.Path(results)
        self.build, self.everything = pathlib.Path(build), everything
        self.sources = pathlib.Path(__file__).resolve().parent
        self.row = None
        self.made = {}
        tool = next(pathlib.Path(str(self.root) + home).glob("**/bin/ggml-exec"), None)
        if tool is None:
            raise SystemExit("error: the build has no ggml-exec: configure it with -Ddropin=true")
        self.tool = "/" + str(tool.relative_to(self.root))
        self.scratch = self.home + "/work"
        self.outside(self.scratch).mkdir(parents=True, exist_ok=True)

    def outside(self, path):
        """A path in the system as this process sees it."""
        return pathlib.Path(str(self.root) + path)

    def folder(self):
        folder = self.results / re.sub(r"[^\w.-]+", "-", self.row)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def command(self, side, argv, env=None):
        variables = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": self.scratch, "LC_ALL": "C.UTF-8",
                     "LLAMA_CACHE": self.scratch, "GGML_DEVICES": "CPU"}
        variables.update(env or {})
        words = ["%s=%s" % item for item in variables.items() if item[1] is not None]
        runner = [self.tool, "--"] if side == OURS else []
        return ["chroot", str(self.root), "/usr/bin/env", "-i", "--chdir=" + self.scratch] + words + runner + list(argv)

    def run(self, side, argv, timeout=120, name="", env=None, stdin=None):
        """Runs a program in the system on the library of one side; never raises because of how it ends."""
        path = self.folder() / ((name + "." if name else "") + side + ".log")
        command = self.command(side, argv, env)
        start = time.monotonic()
        timed_out = False
        with open(path, "wb") as errors, open(path.with_suffix(".out"), "wb") as output:
            errors.write(("$ %s\n" % " ".join(argv)).encode())
            errors.flush()
            process = subprocess.Popen(command, stdin=subprocess.PIPE if stdin else subprocess.DEVNULL, stdout=output,
                                       stderr=errors, start_new_session=True)
            try:
                process.communicate(stdin, timeout=timeout)
            except subprocess.TimeoutExpired:
                timed_out = True
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        seconds = time.monotonic() - start
        with open(path, "ab") as log:
            log.write(b"\n$ standard output\n" + path.with_suffix(".out").read_bytes())
            log.write(("\n$ status %d after %.1f s\n" % (process.returncode, seconds)).encode())
        return Ran(side, process.returncode, path, seconds, timed_out)

    def both(self, argv, timeout=120, name="", ours_env=None, sides=SIDES):
        """The same program on both libraries at the same time, or on one side's only, ours with further variables. {side} in
        an argument is replaced."""
        def one(side):
            return self.run(side, [a.replace("{side}", side) for a in argv], timeout, name,
                            ours_env if side == OURS else None)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return tuple(pool.map(one, sides))

    def both_well(self, argv, **options):
        """As both(), where theirs must end well for the row to mean anything, and ours for it to pass."""
        results = self.both(argv, **options)
        for ran in results:
            if ran.side == THEIRS and not ran.ok:
                raise LeftOut("their own library: %s: %s" % (ran.how(), ran.last_lines()))
            ran.must_end_well()
        return results

    def both_output(self, argv, attempts=8, **options):
        """Standard output of both, repeated while they differ: programs of llama.cpp end now and then, on either
        library, before the thread that prints is done. What is longest of each is compared."""
        longest = [b"", b""]
        for _ in range(attempts):
            for index, ran in enumerate(self.both_well(argv, **options)):
                longest[index] = max(longest[index], ran.stdout, key=len)
            if longest[0] == longest[1]:
                break
        return longest

    def both_find(self, argv, pattern, attempts=8, **options):
        """The first group of the last match in what each prints. A side that has not printed it is repeated alone: the
        thread that prints is late where the other side keeps the processors busy."""
        found = dict.fromkeys(SIDES)
        for _ in range(attempts):
            for ran in self.both_well(argv, sides=[side for side in SIDES if not found[side]], **options):
                found[ran.side] = ran.find(pattern)
            if all(found.values()):
                return [found[side] for side in SIDES]
        raise Failure("no line like %r in what %d runs printed" % (pattern, attempts), *map(str, found.values()))

    def once(self, key, make):
        """The result of make(), which is called once in a run; its failure is that of every row that needs it."""
        if key not in self.made:
            try:
                self.made[key] = make()
            except (Failure, LeftOut) as error:
                self.made[key] = error
        if isinstance(self.made[key], Exception):
            raise self.made[key]
        return self.made[key]

    def compile(self, source, libraries=(), include=()):
        """A program of this folder, compiled in the system against the headers there; its path inside."""
        def make():
            path = "%s/%s" % (self.scratch, source.replace(".c", ""))
            for file in list(self.sources.glob("*.[ch]")) + list(include):
                self.outside(self.scratch + "/" + file.name).write_bytes(file.read_bytes())
            sources = [source] + [w for w in libraries if w.endswith(".c")]
            ran = self.run(THEIRS, ["gcc", "-std=gnu11", "-O2", "-w", "-o", path] + sources +
                           [w for w in libraries if not w.endswith(".c")] + ["-lm"], name="compile-" + source)
            if not ran.ok:
                raise Failure("%s does not compile: %s" % (source, ran.last_lines()))
            return path
        return self.once("compile " + source, make)


ROWS = []


def row(name, only_all=False):
    """Adds a row: function(context) returns what theirs and ours gave, in words, or raises a Failure."""
    def add(function):
        ROWS.append((name, only_all, function))
        return function
    return add


def chosen(patterns, everything):
    for name, only_all, function in ROWS:
        if patterns:
            if any(fnmatch.fnmatch(name, "*%s*" % p) for p in patterns):
                yield name, function
        elif everything or not only_all:
            yield name, function


def judge(context, name, function):
    """Runs a row: (what theirs gave, what ours gave, verdict, why)."""
    context.row = name
    try:
        theirs, ours = function(context)
        return theirs, ours, "passed", ""
    except Failure as failure:
        return failure.theirs, failure.ours, "FAILED", str(failure)
    except LeftOut as reason:
        return "", "", "left out", str(reason)


def colour(verdict):
    if not sys.stdout.isatty():
        return verdict
    return "\x1b[%dm%s\x1b[0m" % ({"passed": 32, "FAILED": 31}.get(verdict, 33), verdict)


def run_rows(context, patterns, json_path):
    """Runs rows and prints the table as it grows; the number that failed."""
    results = []
    print("| program | theirs | ours | verdict |\n|---|---|---|---|", flush=True)
    for name, function in chosen(patterns, context.everything):
        if sys.stdout.isatty():
            print("  %s ..." % name, end="\r", flush=True)
        start = time.monotonic()
        theirs, ours, verdict, why = judge(context, name, function)
        seconds = time.monotonic() - start
        print("| %s | %s | %s | %s |" % (name, theirs, ours, colour(verdict)), flush=True)
        if why:
            print("    %s" % why, flush=True)
        results.append({"program": name, "theirs": theirs, "ours": ours, "verdict": verdict, "why": why,
                        "seconds": round(seconds, 1)})
        context.results.mkdir(parents=True, exist_ok=True)
        with open(json_path or context.results / "table.json", "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
    count = {v: sum(r["verdict"] == v for r in results) for v in ("passed", "FAILED", "left out")}
    if count["left out"]:
        print("%d left out: their own library does not do it" % count["left out"])
    print("%d passed, %d failed" % (count["passed"], count["FAILED"]))
    return count["FAILED"]
