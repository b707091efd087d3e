#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The completions know every option that the tools print, and their values. Speaks TAP.

Usage: check_completions.py BASH_FILE ZSH_FILE FISH_FILE PROGRAM..."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import check, finish  # noqa: E402

BASH, ZSH, FISH = map(os.path.abspath, sys.argv[1:4])
PROGRAMS = sys.argv[4:]


def help_of(program, *names):
    done = subprocess.run([program, *names, "--help"], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, timeout=60)
    return done.stdout if done.returncode == 0 else ""


def options_of(text):
    return set(re.findall(r"^ {2,6}(?:-\w, )?(--[\w-]+)", text, re.M))


def complete_lines(tool, *words, tools=os.path.dirname(PROGRAMS[0]), cwd=None):
    """What bash would offer for the last word, a line each."""
    script = (f'source "{BASH}"; COMP_WORDS=({tool} ' + " ".join(f"'{word}'" for word in words) +
              f"); COMP_CWORD={len(words)}; _{tool.replace('-', '_')}; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
    done = subprocess.run(["bash", "-c", script], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          timeout=60, cwd=cwd, env={**os.environ, "PATH": tools + ":" + os.environ["PATH"]})
    return set(done.stdout.splitlines()) if not done.stderr else {done.stderr}


def complete(tool, *words, **more):
    """The same where no word has a blank in it."""
    return {word for line in complete_lines(tool, *words, **more) for word in line.split()}


def check_file_names():
    """A file's name is one word, whatever is in it, and stands for no other file."""
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/my folder")
        for name in ("my plugin.so", "my*"):
            open(f"{folder}/{name}", "w", encoding="utf-8").close()
        files = complete_lines("ggml-bench", "figures", "--plugin", "my", cwd=folder)
        check("names of files are whole", files == {"my folder", "my plugin.so", "my*"}, files)
        folders = complete_lines("ggml-bench", "ops", "--plugin-path", "my", cwd=folder)
        check("names of folders are whole", folders == {"my folder"}, folders)


def check_hostile_names():
    """What a plugin calls its devices is run by no shell, neither when it is offered nor when it is accepted."""
    with tempfile.TemporaryDirectory() as folder:
        names = ["Fine0", f"$(touch${{IFS}}{folder}/ran)", f"`touch${{IFS}}{folder}/ran`", ";touch"]
        with open(f"{folder}/ggml-devices", "w", encoding="utf-8") as stream:
            stream.write("#!/bin/sh\ncat <<'END'\n" + "\n".join(names) + "\nEND\n")
        os.chmod(f"{folder}/ggml-devices", 0o755)
        for words in (("",), ("ops", "--device", "")):
            offered = complete("ggml-bench" if len(words) > 1 else "ggml-devices", *words, tools=folder)
            accepted = subprocess.run(["bash", "-c", "printf '%s\\n' " + " ".join(offered)], text=True, check=False,
                                      stdout=subprocess.PIPE, timeout=60).stdout.split("\n")
            check(f"devices are not commands: {words}", not os.path.exists(f"{folder}/ran") and set(names) <= set(accepted), offered)


def subcommands(text):
    return re.findall(r"^  ([a-z]+) +\S", text.split("Measurements:", 1)[1].split("\n\n", 1)[0], re.M) \
        if "Measurements:" in text else [None]


def main():
    with open(ZSH, encoding="utf-8") as stream:
        zsh = stream.read()
    with open(FISH, encoding="utf-8") as stream:
        fish = stream.read()
    for program in PROGRAMS:
        tool = os.path.basename(program)
        for name in subcommands(help_of(program)):
            sub = [name] if name else []
            known = options_of(help_of(program, *sub))
            offered = complete(tool, *sub, "--")
            check(f"bash: {' '.join([tool, *sub])} has the options that it prints", known and known == {
                word for word in offered if word.startswith("--")}, known ^ offered)
            lines = [line for line in fish.splitlines() if f" {tool} " in line and (not name or f"_from {name}'" in line)]
            check(f"fish: {' '.join([tool, *sub])}", known == {"--" + o for line in lines for o in re.findall(" -l ([\\w-]+)", line)},
                  lines)
            block = zsh.split(f"\n{tool})\n", 1)[1]
            block = block.split(f"    {name})\n", 1)[1] if name else block
            block = block.split(";;", 1)[0]
            check(f"zsh: {' '.join([tool, *sub])}", known == set(re.findall(r"'(--[\w-]+)\[", block)), block)
    check("what is said of an option is whole, whatever characters it has", r"machine\'s topology" in fish and r"machine'\''s topology" in zsh and
          "(default: 15)" in fish and "(default: 15)" in zsh)
    check("choices are offered", complete("ggml-devices", "--color", "a") == {"auto", "always"})
    check("operations are offered", {"MUL_MAT", "MUL_MAT_ID"} == complete("ggml-conformance", "--op", "MUL_M"))
    check("types are offered", "q4_0" in complete("ggml-bench", "ops", "--type", "q4"))
    check("measurements are offered", complete("ggml-bench", "s") == {"sched"})
    check("devices are offered", "CPU" in complete("ggml-devices", "C") and
          "CPU" in complete("ggml-bench", "ops", "--device", "C"))
    check_hostile_names()
    check_file_names()
    for shell, path in (("bash", BASH), ("zsh", ZSH), ("fish", FISH)):
        if shutil.which(shell):
            done = subprocess.run([shell, "-n", path], check=False, stderr=subprocess.PIPE, timeout=60)
            check(f"{shell} reads it", done.returncode == 0, done)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
