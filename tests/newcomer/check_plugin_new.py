#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A plugin of one's own from an installed copy alone: made by ggml-plugin-new, built by Meson and CMake, in C and C++,
checked and loaded. Speaks TAP.

Usage: check_plugin_new.py BUILD_ROOT"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import check, finish, skip  # noqa: E402

BUILD = os.path.abspath(sys.argv[1])


class Place:
    def __init__(self, folder):
        self.folder = folder
        self.env = {key: value for key, value in os.environ.items() if not key.startswith("GGML_") and key != "DESTDIR"}

    def run(self, *command, cwd=None):
        done = subprocess.run(command, cwd=cwd or self.folder, env=self.env, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False, timeout=600)
        return done.returncode == 0, done.stdout

    def install(self):
        """In a prefix of its own, as --destdir has it; pkg-config's files say where they are."""
        root = os.path.join(self.folder, "root")
        self.run("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", root)
        tool = glob.glob(root + "/**/bin/ggml-plugin-new", recursive=True)[0]
        prefix = os.path.dirname(os.path.dirname(tool))
        packages = os.path.dirname(glob.glob(prefix + "/**/ggml-plugin.pc", recursive=True)[0])
        for path in glob.glob(packages + "/*.pc"):
            with open(path, encoding="utf-8") as stream:
                text = re.sub(r"^prefix=.*$", "prefix=" + prefix, stream.read(), flags=re.M)
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(text)
        self.env.update({"PKG_CONFIG_PATH": packages, "CMAKE_PREFIX_PATH": prefix,
                         "PATH": os.path.join(prefix, "bin") + ":" + self.env["PATH"]})
        return prefix


def check_project(place, name, *options):
    made, text = place.run("ggml-plugin-new", *options, name)
    check(f"{name} is made", made, text)
    folder = os.path.join(place.folder, "ggml-" + name)
    good, text = place.run("meson", "setup", "by-meson", "--werror", cwd=folder)
    good = good and place.run("meson", "compile", "-C", "by-meson", cwd=folder)[0]
    check(f"{name} builds by Meson, without a warning", good, text)
    good, text = place.run("meson", "test", "-C", "by-meson", "--print-errorlogs", cwd=folder)
    check(f"{name} keeps the contract", good and re.search(r"contract +OK", text), text)
    if shutil.which("cmake"):
        good, text = place.run("cmake", "-S", ".", "-B", "by-cmake", cwd=folder)
        good = good and place.run("cmake", "--build", "by-cmake", cwd=folder)[0]
        check(f"{name} builds by CMake", good, text)
        good, text = place.run("ctest", "--output-on-failure", cwd=os.path.join(folder, "by-cmake"))
        check(f"{name} keeps the contract there", good and "1 tests passed" in text or "100% tests passed" in text, text)
    good, text = place.run("ggml-devices", "--names", "--plugin-path", "by-meson", cwd=folder)
    check(f"{name} has a device", good and name.upper() + "0" in text.split(), text)


def check_readme(place, name):
    """Its commands, one after the other, where nothing was built yet."""
    place.run("ggml-plugin-new", name, "as-read")
    folder = os.path.join(place.folder, "as-read")
    with open(os.path.join(folder, "README.md"), encoding="utf-8") as stream:
        commands = re.findall(r"^    (\w.*?)(?: +#.*)?$", stream.read(), re.M)
    check("its README has commands", len(commands) >= 3, commands)
    for command in commands:
        if "cmake" not in command or shutil.which("cmake"):
            good, text = place.run("sh", "-c", command, cwd=folder)
            check(f"its README: {command}", good and ("ggml-devices" not in command or name.upper() + "0" in text.split()), text)


def check_hint(place, prefix):
    """What has to be said to the build is told where pkg-config does not find the library, and there alone."""
    told = f"export PKG_CONFIG_PATH={place.env['PKG_CONFIG_PATH']} CMAKE_PREFIX_PATH={prefix}\n"
    _, silent = place.run("ggml-plugin-new", "mine", "found")
    _, text = place.run("env", "PKG_CONFIG_PATH=", "PKG_CONFIG_LIBDIR=/nonexistent", "ggml-plugin-new", "mine", "not-found")
    check("a prefix that is not searched is told", told in text and "export" not in silent, (silent, text))


def check_operation(place):
    """An author's first operation passes every check, and a wrong one does not."""
    folder = os.path.join(place.folder, "ggml-mine")
    source, plugin = os.path.join(folder, "mine.c"), os.path.join(folder, "by-meson", "ggml-mine.so")
    written, text = place.run(os.path.join(os.path.dirname(os.path.abspath(__file__)), "bare", "write_add.sh"), source)
    good, built = place.run("meson", "compile", "-C", "by-meson", cwd=folder)
    check("an ADD is written into the skeleton, and builds", written and good, text + built)
    good, text = place.run("ggml-plugin-check", plugin)
    check("which keeps the contract", good and re.search(r"^ok .* op\.conformance\.ADD", text, re.M), text)
    with open(source, encoding="utf-8") as stream:
        text = stream.read().replace("a[i] + b[i]", "a[i] - b[i]")
    with open(source, "w", encoding="utf-8") as stream:
        stream.write(text)
    place.run("meson", "compile", "-C", "by-meson", cwd=folder)
    good, text = place.run("ggml-plugin-check", "--only", "op.conformance.ADD", plugin)
    check("a wrong one does not", not good and re.search(r"^not ok .* op\.", text, re.M), text)


def check_attacks(place):
    """Names and folders that would write somewhere else, or run something."""
    victim = os.path.join(place.folder, "victim")
    os.mkdir(victim)
    for name, target in (("link", victim), ("dangling", os.path.join(place.folder, "nowhere"))):
        os.symlink(target, os.path.join(place.folder, name))
        made, text = place.run("ggml-plugin-new", "mine", name)
        check(f"a link is there already: {name}", not made and "is there already" in text, text)
    # One that comes after the look: by a program that the tool runs then.
    racer = os.path.join(place.folder, "racer")
    os.mkdir(racer)
    with open(os.path.join(racer, "dirname"), "w", encoding="utf-8") as stream:
        stream.write(f"#!/bin/sh\nln -sfn {victim} {place.folder}/late\nexec {shutil.which('dirname')} \"$@\"\n")
    os.chmod(os.path.join(racer, "dirname"), 0o755)
    made, text = place.run("env", f"PATH={racer}:{place.env['PATH']}", "ggml-plugin-new", "mine", "late")
    check("a link comes meanwhile", not made and "can't be made" in text and
          os.path.islink(os.path.join(place.folder, "late")), text)
    check("nothing was written where links lead", not os.listdir(victim) and
          not os.path.lexists(os.path.join(place.folder, "nowhere")), os.listdir(place.folder))
    made, text = place.run("ggml-plugin-new", "mine", "file/below")
    check("folders above are made too", made and os.path.isfile(os.path.join(place.folder, "file/below/mine.c")), text)
    made, text = place.run("ggml-plugin-new", "mine", "file/below/mine.c/deeper")
    check("a file is no folder", not made and "can't be made" in text, text)
    made, text = place.run("ggml-plugin-new", "mine", "-rf; touch pwned")
    check("a folder is a name, whatever is in it", made and
          os.path.isfile(os.path.join(place.folder, "-rf; touch pwned/mine.c")), text)
    made, text = place.run("sh", "-c", "ulimit -f 2; exec ggml-plugin-new mine on-a-full-disk")
    check("half a plugin is removed", not made and "was removed" in text and
          not os.path.exists(os.path.join(place.folder, "on-a-full-disk")), text)
    made, text = place.run("ggml-plugin-new", "a\\033[2J\\c")
    check("what is quoted is quoted as it is", not made and "'a\\033[2J\\c'" in text and "--help" in text, text)
    check("nothing ran", not os.path.exists(os.path.join(place.folder, "pwned")), os.listdir(place.folder))


def check_packages(place):
    """An installed copy's pkg-config files, where no other library has headers."""
    place.env["PKG_CONFIG_LIBDIR"] = place.env["PKG_CONFIG_PATH"]
    for name in ("ggml", "ggml-static", "ggml-plugin"):
        good, text = place.run("pkg-config", "--cflags", "--libs", name)
        check(f"{name}.pc needs no other package's", good and "ggml" in text, text)


def check_documents(prefix):
    """What an author reads: the guides, the contract also as a page with an anchor for each rule, and the licence."""
    folder = os.path.join(prefix, "share/doc/ggml-host")
    there = set(os.listdir(folder))
    check("the contract, the guides and the licence are installed",
          {"LICENSE", "plugin-contract.md", "writing-a-plugin.md", "plugin-check.md", "security.md"} <= there, there)
    if not shutil.which("cmark-gfm"):
        skip("the contract as a page", "no cmark-gfm")
        return
    with open(os.path.join(folder, "plugin-contract.md"), encoding="utf-8") as stream:
        rules = re.findall(r"^\*\*(GP-\d+)\.", stream.read(), re.M)
    with open(os.path.join(folder, "plugin-contract.html"), encoding="utf-8") as stream:
        page = stream.read()
    check("the contract is a page too, with every rule", rules and re.findall(r'<strong id="(GP-\d+)">', page) == rules, len(rules))
    links = {link.split("#")[0] for name in there if name.endswith(".html")
             for link in re.findall(r'href="([\w.\-]+\.html)', open(os.path.join(folder, name), encoding="utf-8").read())}
    check("pages link to pages that are installed", links and links <= there, links - there)


def main():
    with tempfile.TemporaryDirectory(prefix="ggml-plugin-new-") as folder:
        place = Place(folder)
        prefix = place.install()
        check_documents(prefix)
        check_hint(place, prefix)
        check_project(place, "mine")
        check_operation(place)
        check_readme(place, "other")
        check_project(place, "mine_too", "--c++")
        check_attacks(place)
        check_packages(place)
        for wrong in ((), ("",), ("Mine",), ("--pascal", "other"), ("a-b",), ("a", "b", "c"), ("\u00e9",), ("x" * 25,),
                      ("a/b",), ("..",), ("a\nb",), ("$(touch pwned)",), ("a\\033[2Jb",), ("mine", "")):
            made, text = place.run("ggml-plugin-new", *wrong)
            check(f"wrong usage is told: {' '.join(wrong)!r}", not made and "--help" in text, text)
        made, text = place.run("ggml-plugin-new", "mine")
        check("what is there stays", not made and "is there already" in text, text)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
