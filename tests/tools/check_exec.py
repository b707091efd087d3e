#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs ggml-exec as a user would, on a program that was linked with libraries of ggml's names, and compares the
symbols of the libraries that it brings with those of ggml's. Speaks TAP.

Usage: check_exec.py GGML_EXEC LIBGGML SYMBOLS VERSION INCLUDE_DIR"""
import os
import stat
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import check, finish, skip  # noqa: E402

EXEC, LIBGGML, SYMBOLS, VERSION, INCLUDE = sys.argv[1:6]
CC = os.environ.get("CC", "cc").split()

PROGRAM = """
#include <stdio.h>
#include "ggml-backend.h"
int main(int argc, char **argv) {
    printf("%s %s %zu", argv[argc - 1], ggml_version(), ggml_backend_reg_count());
    ggml_backend_load_all();
    printf(" %zu", ggml_backend_reg_count());
    return argc + 40;
}
"""
# What the program is linked with, in place of ggml: says so if it is called.
FAKE = "#include <stddef.h>\n{}\n"
FAKE_BASE = 'const char *ggml_version(void) { return "fake"; } void ggml_no_such_thing(void) {}'
FAKE_GGML = "size_t ggml_backend_reg_count(void) { return 77; } void ggml_backend_load_all(void) {}"


def run(*arguments, **environment):
    done = subprocess.run(arguments, env={**os.environ, **environment}, text=True, timeout=120, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout


def compile_c(folder, name, text, *arguments):
    source, target = os.path.join(folder, name + ".c"), os.path.join(folder, name)
    with open(source, "w", encoding="utf-8") as stream:
        stream.write(text)
    subprocess.run(CC + [source, "-o", target, *arguments], check=True)
    return target


def symbols(*paths):
    run_nm = subprocess.run(["nm", "-D", "--defined-only", "--format=posix", *paths], stdout=subprocess.PIPE,
                            text=True, check=True)
    return {line.split()[0].partition("@")[0] for line in run_nm.stdout.splitlines() if line.count(" ") > 1}


def main():
    code, text = run(EXEC, "--print")
    dropin = text.strip()
    check("--print names the folder", code == 0 and os.path.isfile(os.path.join(dropin, "libggml.so.0")), text)
    hidden = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    try:
        allowed = run(*hidden, "true")[0] == 0
    except FileNotFoundError:
        allowed = False
    if allowed:
        code, text = run(*hidden, EXEC, "--print")
        check("the same where no /proc is mounted", (code, text.strip()) == (0, dropin), text)
    else:
        skip("the same where no /proc is mounted", "there are no namespaces to hide it in")
    libraries = [os.path.join(dropin, name) for name in ("libggml.so.0", "libggml-base.so.0")]
    with open(SYMBOLS, encoding="utf-8") as stream:
        wanted = set(stream.read().split())
    missing = sorted(wanted - symbols(LIBGGML, *libraries))
    check(f"{len(wanted)} symbols of ggml's are there", len(wanted) > 600 and not missing, "\n".join(missing))

    with tempfile.TemporaryDirectory() as folder:
        fakes = [compile_c(folder, f"lib{name}.so.0", FAKE.format(text), "-shared", "-fPIC", f"-Wl,-soname,lib{name}.so.0")
                 for name, text in (("ggml-base", FAKE_BASE), ("ggml", FAKE_GGML))]
        program = compile_c(folder, "program", PROGRAM, "-I", INCLUDE, "-Wl,--no-as-needed", *fakes)
        code, text = run(program, "x", LD_LIBRARY_PATH=folder)
        check("alone it uses the other library", text == "x fake 77 77", text)
        code, text = run(EXEC, program, "--help", LD_LIBRARY_PATH=folder)
        words = text.split()
        check("the program runs on this library, with its arguments", words[:2] == ["--help", VERSION], text)
        check("no call is answered by the other library", len(words) == 4 and "77" not in words, text)
        check("no backend is there before it loads", words[2:3] == ["0"] and words[3:] > ["0"], text)
        check("its exit status is kept", code == 42, code)
        code, text = run(EXEC, "--", program, LD_LIBRARY_PATH=folder)
        check("-- ends the options", code == 41, text)
        code, text = run(EXEC, "program", PATH=folder + ":" + os.environ["PATH"])
        check("a program is found on the path", code == 41, text)
        code, text = run(EXEC, "--check", program)
        check("--check: would run", code == 0 and "would run" in text and dropin in text, text)

        if os.path.exists("/dev/full"):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([EXEC, "--check", program], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
            check("--check: a full disk is told", done.returncode == 125 and done.stderr.count("\n") == 1 and
                  "No space left" in done.stderr, done)

        code, text = run(EXEC, "--check", "/bin/true")
        check("--check: no program of ggml's", code == 1 and "needs neither" in text, text)
        own = compile_c(folder, "own", PROGRAM, "-I", INCLUDE, "-Wl,--no-as-needed", *fakes,
                        "-Wl,--disable-new-dtags,-rpath," + folder)
        code, text = run(EXEC, "--check", own)
        check("--check: brings a library of its own", code == 1 and "of its own" in text, text)
        lacking = compile_c(folder, "lacking", "void ggml_no_such_thing(void);\nint main(void) "
                            "{ ggml_no_such_thing(); return 0; }\n", "-Wl,--no-as-needed", *fakes)
        code, text = run(EXEC, "--check", lacking)
        check("--check: names a missing symbol", code == 1 and "ggml_no_such_thing" in text, text)

        code, text = run(EXEC, os.path.join(folder, "absent"))
        check("no such program: 127", code == 127 and "absent" in text, (code, text))
        code, text = run(EXEC, folder + "/program.c")
        check("not executable: 126", code == 126 and "program.c" in text, (code, text))
        os.chmod(program, os.stat(program).st_mode | stat.S_ISUID)
        code, text = run(EXEC, program)
        check("set-user-ID: 126", code == 126 and "set-user-ID" in text, (code, text))
    code, text = run(EXEC)
    check("without a program: 125", code == 125 and "--help" in text, (code, text))
    code, text = run(EXEC, "--no-such-option", "x")
    check("an unknown option: 125", code == 125 and "--no-such-option" in text, (code, text))
    code, text = run(EXEC, "--help")
    check("--help", code == 0 and text.startswith("Usage:"), text)
    check("--version", run(EXEC, "--version") == (0, f"ggml-exec {VERSION}\n"), run(EXEC, "--version"))
    return finish()


if __name__ == "__main__":
    sys.exit(main())
