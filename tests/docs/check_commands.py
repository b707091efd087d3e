#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the commands that README.md, CONTRIBUTING.md and docs/ quote (```sh blocks) in scratch folders, against an installed
copy. Speaks TAP. Each command stands in COMMANDS if it can't run as it is; one that is not there runs.

Usage: check_commands.py SOURCE_ROOT BUILD_ROOT"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import finish, program  # noqa: E402

SOURCE, BUILD = (os.path.abspath(path) for path in sys.argv[1:3])


class Ci:
    """Too long for a test: .ci/run has a step with this text."""

    def __init__(self, text):
        self.text = text


class Needs:
    """What it needs is not here; `covered` is the test that runs it where that is, or why nothing does."""

    def __init__(self, what, covered):
        self.what, self.covered = what, covered


REAL = Needs("programs and backends that Debian ships", "tools/real-programs")
COMMANDS = {  # another command that runs in its place, Ci or Needs
    "tools/quickstart": Ci("tools/quickstart"),
    "tools/test": Ci("tools/test --build"),
    "sudo ldconfig": Needs("the system's own folders", "nothing"),
    "ggml-devices Vulkan0": "ggml-devices CPU",
    "ggml-bench report": Needs("minutes of measuring", "tests/tools/check_report.py, with --quick"),
    "ggml-conformance": "ggml-conformance --every 151",
    "ggml-exec llama-cli ...": REAL,
    "ggml-node": Needs("mpirun", "suite mpi"),
    "ggml-plugin-new NAME": "ggml-plugin-new mine",
    "ggml-plugin-check FILE": "ggml-plugin-check $NULL_PLUGIN",
    "export GGML_FOREIGN_PATH=/usr/lib/x86_64-linux-gnu/ggml/backends0/libggml-blas.so": REAL,
    "export GGML_FOREIGN_PATH=/usr/lib/x86_64-linux-gnu/ggml/backends0/libggml-rpc.so": REAL,
    "ggml-exec llama-completion --rpc 192.168.1.7:50052 -ngl 99 -m model.gguf": REAL,
    "GGML_FOREIGN_RPC=192.168.1.7:50052,192.168.1.8:50052 ggml-devices --in-process": REAL,
    "tools/cross-test aarch64": Ci("tools/cross-test aarch64"),
    "tools/cross-test windows": Ci("tools/cross-test windows"),
    "tools/test --build build-simulated --suite cpu --suite conformance --packages libsimde-dev"
    " -- -Dcpu_simulated=true -Dcpu_levels=x86-64-v4,x86-64-v4-vnni -Dplugin_cuda=disabled -Dplugin_vulkan=disabled"
    " -Dmpi=disabled": Ci("-Dcpu_simulated=true"),
    "tools/avx512-test": Needs("hours in an emulator", "nothing"),
    "tools/avx512-test test-cpu-kernels": Needs("hours in an emulator", "nothing"),
    "tools/cross-test macos": Needs("some minutes for two more builds", "nothing yet"),
    "meson setup build --cross-file packaging/cross/aarch64.ini && meson compile -C build":
        Needs("a cross compiler", "tools/cross-test aarch64"),
    "meson setup build --cross-file packaging/cross/windows.ini && meson compile -C build":
        Needs("a cross compiler", "tools/cross-test windows"),
    "tools/real-programs": Ci("tools/real-programs"),
    "tools/real-programs --all": Needs("two hours", "nothing"),
    "tools/real-programs --bench": Needs("an hour", "nothing"),
    "tools/real-programs --only quant": REAL,
    "meson install -C build": Needs("the system's own folders", "this test, with --destdir"),
    "ggml-exec --check whisper-cli": REAL,
    "ggml-exec whisper-cli -m model.bin -f sound.wav": REAL,
    "GGML_DEVICES=CPU ggml-exec llama-bench -m model.gguf": REAL,
    "GGML_DEVICES=CPU,Vulkan0 ggml-exec llama-bench -m model.gguf -ngl 99": REAL,
    "GGML_ISOLATE=Vulkan0 ggml-exec llama-server -m model.gguf -ngl 99": REAL,
    "meson setup build --werror": Ci("--werror"),
    # The tests of the tree that the plugin is added to are not what the guide is about.
    "meson setup build": "meson setup build -Dtests=false -Dtools=false -Ddocs=false -Dbindings=",
    "ninja -C build": Ci("tools/test --build"),
    "meson test -C build": Ci("tools/test --build"),
    "meson test -C build --suite host": "meson test -C build --suite host --list",
    "ninja -C build core/lib/libggml.a": "mkdir -p build/core/lib && cp $BUILT/core/lib/libggml.a build/core/lib/",
    "tools/mpi-test": Needs("root and network namespaces", "nothing"),
    "tools/fuzz --seconds 10": Ci("tools/fuzz --seconds 10"),
    "tools/page-test": Ci("tools/page-test build-ci-gcc"),
    "tools/release": Needs("a changelog of a release", "tests/packaging/check_recipes.py, with --draft"),
    "tools/package-test": Needs("root, debootstrap and half an hour", "nothing"),
    "tools/package-test --quick BUILD": Ci("tools/package-test --quick"),
    "tools/device-report": Needs("a GPU", "nothing"),
}
# What a document's commands find beside them: {name: file of the source tree, or block of code of the document}.
FILES = {
    "README.md": {"main.c": "tests/clients/one-binary/main.c"},
    "docs/writing-a-plugin.md": {
        "mine.c": "plugins/null/null.c", "plugin.map": "plugins/plugin.map", "mine.cpp": "tests/plugins/port.cpp",
        "list.c": re.compile(r"```c\n((?:(?!```).)*?int main\(int argc.*?)```", re.S)},
}
# Documents whose commands run in a copy of the source tree, with the build folder unless they make one.
IN_SOURCES = {"CONTRIBUTING.md", "docs/plugins/cuda.md", "docs/real-programs.md", "docs/writing-a-plugin.md"}


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as stream:
        return stream.read()


def commands_of(text):
    """Commands of the ```sh blocks: without comments, continued lines joined."""
    for block in re.findall(r"^```sh\n(.*?)^```", text, re.S | re.M):
        for line in block.replace("\\\n", " ").splitlines():
            command = " ".join(re.sub(r"(^|\s)#.*", "", line).split())
            if command:
                yield command


def install(folder):
    """An installed copy and the environment of somebody who uses it."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("GGML_") and key != "DESTDIR"}
    root = os.path.join(folder, "root")
    subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", root], check=True, env=env,
                   stdout=subprocess.DEVNULL)
    tools = os.path.dirname(glob.glob(root + "/**/bin/ggml-devices", recursive=True)[0])
    library = os.path.dirname(glob.glob(root + "/**/pkgconfig/ggml.pc", recursive=True)[0])
    prefix = os.path.dirname(tools)
    for path in glob.glob(library + "/*.pc"):  # as if it had been configured for this prefix
        with open(path, encoding="utf-8") as stream:
            text = stream.read()
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(re.sub("^prefix=.*$", "prefix=" + prefix, text, flags=re.M))
    null = glob.glob(BUILD + "/plugins/null/*ggml-null.so")
    env.update(PREFIX=prefix, LIBDIR=os.path.relpath(os.path.dirname(library), prefix), PKG_CONFIG_PATH=library,
               PATH=tools + os.pathsep + env["PATH"], LD_LIBRARY_PATH=os.path.dirname(library),
               BUILT=BUILD, NULL_PLUGIN=null[0] if null else "")
    return env


def place_files(document, text, folder):
    for name, source in FILES.get(document, {}).items():
        path = os.path.join(folder, name)
        if isinstance(source, str):
            shutil.copyfile(os.path.join(SOURCE, source), path)
        else:
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(source.search(text).group(1))


def copy_sources(folder):
    """What is in the source tree, with the build folder as it is."""
    kept = {"abi", "core", "docs", "packaging", "plugins", "tests", "tools", "bindings"}
    for name in os.listdir(SOURCE):
        path = os.path.join(SOURCE, name)
        if name in kept:
            shutil.copytree(path, os.path.join(folder, name), symlinks=True)
        elif os.path.isfile(path):
            shutil.copy2(path, folder)
    os.symlink(BUILD, os.path.join(folder, "build"))


class Shell:
    """One bash for a document, so that what is exported or built stays for its later commands."""

    def __init__(self, folder, env):
        self.folder, self.env, self.exports = folder, env, ""

    def run(self, command):
        if command.startswith("export "):
            self.exports += command.replace("$PREFIX/lib/", "$PREFIX/$LIBDIR/") + "\n"
            return True, ""
        done = subprocess.run(["bash", "-euc", self.exports + command], cwd=self.folder, env=self.env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False,
                              timeout=300)
        return done.returncode == 0, done.stdout


def check_document(document, env, ci, used):
    text = read(document)
    with tempfile.TemporaryDirectory() as folder:
        if document in IN_SOURCES:
            copy_sources(folder)
        place_files(document, text, folder)
        shell = Shell(folder, env)
        for command in commands_of(text):
            instead = COMMANDS.get(command, command)
            used.add(command)
            name = f"{document}: {command}"
            if isinstance(instead, Ci):
                program.ok(instead.text in ci, f"{name} # in .ci/run")
            elif isinstance(instead, Needs):
                program.ok(True, f"{name} # SKIP needs {instead.what}; run by {instead.covered}")
            else:
                if instead.startswith("meson setup build"):  # a new one
                    os.unlink(os.path.join(folder, "build"))
                good, output = shell.run(instead)
                program.ok(good, name, output)


def check_picture(env):
    """The README's picture of ggml-devices has the headings that it prints now."""
    drawn = re.findall(r'<text x="18\.0" [^>]*class="b"[^>]*>([^<]*)</text>', read("docs/diagrams/ggml-devices.svg"))
    with tempfile.TemporaryDirectory() as nothing:  # in place of a machine's GPUs, which have a heading of their own
        done = subprocess.run(["ggml-devices", "--sysfs", nothing], env=env, text=True, stdout=subprocess.PIPE, check=False)
    printed = [line for line in done.stdout.splitlines() if line and not line.startswith(" ")]
    program.ok(printed and set(printed) <= set(drawn), "the picture of ggml-devices is what it prints; tools/draw-devices draws it",
       f"printed {printed}\ndrawn {drawn}")
    # Of a machine that hwloc pretends, where there is one, all but the devices.
    machine = re.search(r'^MACHINE = "(.*)"', read("tools/draw-devices"), re.M)[1]
    done = subprocess.run(["ggml-devices", "--svg", "-"], env={**env, "HWLOC_SYNTHETIC": machine}, text=True, stdout=subprocess.PIPE, check=False)
    drawn, shown = ([text for text in re.findall("<text [^>]*>([^<]*)", svg) if "(" not in text]
                    for svg in (read("docs/diagrams/machine.svg"), done.stdout))
    program.ok(shown == drawn if "Package 1" in shown else shown, "so is that of a machine; tools/draw-devices --machine draws it",
       f"drawn then {drawn}\nnow {shown}")


def main():
    used = set()
    documents = ["README.md", "CONTRIBUTING.md"]
    documents += sorted(os.path.relpath(path, SOURCE) for path in glob.glob(os.path.join(SOURCE, "docs", "**", "*.md"), recursive=True))
    ci = read(".ci/run")
    with tempfile.TemporaryDirectory() as folder:
        env = install(folder)
        for document in documents:
            check_document(document, env, ci, used)
        check_picture(env)
    unused = sorted(set(COMMANDS) - used)
    program.ok(not unused, "no document lacks a command that this test knows", "\n".join(unused))
    sys.exit(finish())


main()
