#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds the sample application in every documented way and runs it with its plugin present, absent and
unfit. Only the list of plugins may change, never the result. Speaks TAP.

Usage: check_clients.py SOURCE_ROOT BUILD_ROOT"""
import glob
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import check, finish  # noqa: E402

SOURCE, BUILD = (os.path.abspath(path) for path in sys.argv[1:3])
SAMPLE = os.path.join(SOURCE, "tests", "clients", "one-binary")
PLUGIN = os.path.join(BUILD, "plugins", "cpu", "ggml-cpu.so")
EXPECTED = "CPU computed [9, 4]"


def run(command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, stdin=subprocess.DEVNULL, timeout=900, **options).stdout


class Workshop:
    def __init__(self, folder):
        self.folder = folder
        self.prefix = None
        self.environment = dict(os.environ)
        for name in ("GGML_PLUGIN_PATH", "GGML_DEVICES", "GGML_BACKEND_PATH", "DESTDIR"):
            self.environment.pop(name, None)

    def install(self):
        """Installs the build under a root of its own; packages are found there relocated."""
        root = os.path.join(self.folder, "root")
        run(["meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", root], env=self.environment)
        libdir = os.path.dirname(run(["find", root, "-name", "libggml.a"]).strip())
        self.prefix = os.path.dirname(run(["find", root, "-type", "d", "-path", "*/include/ggml-host"]).strip())
        self.prefix = os.path.dirname(self.prefix)
        self.environment["PKG_CONFIG_PATH"] = os.path.join(libdir, "pkgconfig")
        self.libdir = libdir
        # pkg-config then answers paths below the root for what is installed there, and only for that.
        for package in ("ggml", "ggml-static", "ggml-plugin"):
            path = os.path.join(libdir, "pkgconfig", package + ".pc")
            with open(path, encoding="utf-8") as stream:
                text = re.sub(r"^prefix=.*$", "prefix=" + self.prefix, stream.read(), flags=re.M)
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(text)
        # The sample brings its own plugins; the installed ones would be found too.
        self.installed_plugins = os.path.join(libdir, "ggml-plugins")

    def sample(self, name):
        folder = os.path.join(self.folder, name)
        shutil.copytree(SAMPLE, folder)
        return folder

    def meson(self, name, *arguments):
        self.use_installed()
        folder = self.sample(name)
        run(["meson", "setup", "out", *arguments], cwd=folder, env=self.environment)
        run(["meson", "compile", "-C", "out"], cwd=folder, env=self.environment)
        return os.path.join(folder, "out", "one-binary")

    def subproject(self, kind):
        """Both kinds come from one build folder, since the library is built once for both."""
        folder = os.path.join(self.folder, "subproject")
        if not os.path.exists(folder):
            self.sample("subproject")
            os.mkdir(os.path.join(folder, "subprojects"))
            os.symlink(SOURCE, os.path.join(folder, "subprojects", "ggml-host"))
            # All levels take minutes, and are linked alike.
            levels = ["-Dggml-host:cpu_levels=x86-64-v3"] if platform.machine() == "x86_64" else []
            run(["meson", "setup", "out", "--wrap-mode=forcefallback", *levels], cwd=folder, env=self.environment)
        run(["meson", "configure", "out", f"-Ddefault_library={kind}"], cwd=folder, env=self.environment)
        run(["meson", "compile", "-C", "out", "one-binary"], cwd=folder, env=self.environment)
        program = os.path.join(folder, kind, "one-binary")
        os.makedirs(os.path.dirname(program))
        shutil.copy(os.path.join(folder, "out", "one-binary"), program)
        if kind == "shared":
            for library in glob.glob(os.path.join(folder, "out/subprojects/ggml-host/core/lib/libggml.so*")):
                if not os.path.isdir(library):
                    shutil.copy(library, os.path.dirname(program))
            self.environment["LD_LIBRARY_PATH"] = os.path.dirname(program)
        return program

    def use_installed(self):
        self.environment["LD_LIBRARY_PATH"] = self.libdir

    def cmake(self, kind):
        self.use_installed()
        folder = self.sample("cmake-" + kind)
        run(["cmake", "-G", "Ninja", "-S", ".", "-B", "out", "-DCMAKE_PREFIX_PATH=" + self.prefix,
             "-DBUILD_SHARED_LIBS=" + ("ON" if kind == "shared" else "OFF")],
            cwd=folder, env=self.environment)
        run(["cmake", "--build", "out"], cwd=folder, env=self.environment)
        return os.path.join(folder, "out", "one-binary")

    def pkg_config(self, kind):
        self.use_installed()
        folder = self.sample("pkg-config-" + kind)
        package = "ggml" if kind == "shared" else "ggml-static"
        flags = run(["pkg-config", "--cflags", "--libs", package], env=self.environment).split()
        compiler = os.environ.get("CC", "cc").split()
        run(compiler + ["-std=c11", "main.c", "-o", "one-binary"] + flags, cwd=folder,
            env=self.environment)
        return os.path.join(folder, "one-binary")


    def cmake_all(self):
        """As programs of ggml ask for all of its backends."""
        self.use_installed()
        folder = self.sample("cmake-all")
        with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as stream:
            stream.write("cmake_minimum_required(VERSION 3.16)\nproject(all C)\n"
                         "find_package(ggml REQUIRED)\nadd_executable(one-binary main.c)\n"
                         "if(NOT ggml-cpu IN_LIST GGML_AVAILABLE_BACKENDS)\n"
                         "  message(FATAL_ERROR \"GGML_AVAILABLE_BACKENDS: ${GGML_AVAILABLE_BACKENDS}\")\n"
                         "endif()\ntarget_link_libraries(one-binary PRIVATE ggml::all)\n")
        run(["cmake", "-G", "Ninja", "-S", ".", "-B", "out", "-DCMAKE_PREFIX_PATH=" + self.prefix],
            cwd=folder, env=self.environment)
        run(["cmake", "--build", "out"], cwd=folder, env=self.environment)
        return os.path.join(folder, "out", "one-binary")

    def skeleton(self, data):
        """The skeleton of a plugin, by the flags of pkg-config."""
        self.use_installed()
        flags = run(["pkg-config", "--cflags", "--libs", "ggml-plugin"], env=self.environment).split()
        library = os.path.join(self.folder, "ggml-null.so")
        run(os.environ.get("CC", "cc").split() +
            ["-std=c11", "-shared", "-fPIC", "-fvisibility=hidden", os.path.join(data, "skeleton", "null.c"),
             "-Wl,--version-script=" + os.path.join(data, "skeleton", "plugin.map"), "-Wl,--no-undefined",
             "-o", library] + flags, env=self.environment)
        return library

    def backend(self, package):
        """A backend of ggml's form, linked with one library."""
        self.use_installed()
        flags = run(["pkg-config", "--cflags", package], env=self.environment).split()
        library = os.path.join(self.folder, f"ggml-tiny-{package}.so")
        compiler = os.environ.get("CC", "cc").split()
        link = {"ggml": ["-L" + self.libdir, "-lggml"],
                "ggml-plugin": run(["pkg-config", "--libs", package], env=self.environment).split()}[package]
        run(compiler + ["-std=c11", "-shared", "-fPIC", "-fvisibility=hidden", "-DGGML_BACKEND_DL",
                        '-DGGML_PLUGIN_NAME="tiny"', os.path.join(SAMPLE, "..", "tiny_backend.c"),
                        "-o", library, "-Wl,-z,defs"] + flags + link, env=self.environment)
        return library


def run_sample(workshop, program):
    elsewhere = tempfile.mkdtemp(dir=workshop.folder)
    done = subprocess.run([program], cwd=elsewhere, env=workshop.environment, text=True, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout


def check_plugin_states(workshop, name, program):
    plugins = os.path.join(os.path.dirname(program), "ggml-plugins")
    os.makedirs(plugins)
    target = os.path.join(plugins, "ggml-cpu.so")

    code, text = run_sample(workshop, program)
    check(f"{name}: plugin absent", code == 0 and EXPECTED in text and target not in text, text)

    shutil.copy(PLUGIN, target)
    code, text = run_sample(workshop, program)
    check(f"{name}: plugin present", code == 0 and EXPECTED in text
          and re.search(re.escape(target) + ": in use", text) is not None, text)

    with open(PLUGIN, "rb") as stream:
        image = bytearray(stream.read())
    at = image.find(b"GGMLPLG\x1a")
    image[at + 12] = 99  # contract major
    with open(target, "wb") as stream:
        stream.write(image)
    code, text = run_sample(workshop, program)
    check(f"{name}: plugin unfit", code == 0 and EXPECTED in text
          and re.search(re.escape(target) + ": (?!in use)", text) is not None, text)


def check_linkage(workshop, name, program, kind):
    libraries = run(["ldd", program], env=workshop.environment)
    check(f"{name}: links {kind}", ("libggml.so" in libraries) == (kind == "shared"), libraries)
    if kind == "static":
        exported = run(["nm", "-D", "--defined-only", program])
        check(f"{name}: exports nothing of ggml", "ggml_" not in exported, exported)


def check_tags():
    """meson install --tags: each file is of some part."""
    with open(os.path.join(BUILD, "meson-info", "intro-install_plan.json"), encoding="utf-8") as stream:
        plan = json.load(stream)
    without = [entry["destination"] for files in plan.values() for entry in files.values() if not entry.get("tag")]
    check("what is installed has tags", plan and not without, "\n".join(without))


def main():
    with tempfile.TemporaryDirectory(prefix="ggml-clients-") as folder:
        workshop = Workshop(folder)
        workshop.install()
        check_tags()
        ways = {"subproject": workshop.subproject, "find_package": workshop.cmake,
                "pkg-config": workshop.pkg_config,
                "meson dependency": lambda kind: workshop.meson("meson-" + kind, "-Ddefault_library=" + kind)}
        share = os.path.join(workshop.prefix, "share")
        wanted = ["doc/ggml-host/LICENSE", "doc/ggml-host/plugin-contract.md", "doc/ggml-host/writing-a-plugin.md",
                  "ggml-host/skeleton/null.c", "ggml-host/skeleton/plugin.map"]
        missing = [name for name in wanted if not os.path.exists(os.path.join(share, name))]
        check("what a plugin's author reads and begins with is installed", not missing, str(missing))
        try:
            check("the skeleton builds from there", os.path.exists(workshop.skeleton(os.path.join(share, "ggml-host"))))
        except subprocess.CalledProcessError as error:
            check("the skeleton builds from there", False, error.stdout)
        for package in ("ggml", "ggml-plugin"):
            try:
                check(f"a backend links with {package} alone", os.path.exists(workshop.backend(package)))
            except subprocess.CalledProcessError as error:
                check(f"a backend links with {package} alone", False, error.stdout)
        shutil.rmtree(workshop.installed_plugins, ignore_errors=True)
        for way, build in ways.items():
            for kind in ("shared", "static"):
                name = f"{way}, {kind}"
                try:
                    program = build(kind)
                except subprocess.CalledProcessError as error:
                    check(name + ": builds", False, error.stdout)
                    continue
                check(name + ": builds", True)
                check_linkage(workshop, name, program, kind)
                check_plugin_states(workshop, name, program)
        program = workshop.cmake_all()
        code, text = run_sample(workshop, program)
        check("ggml::all: computes", code == 0 and EXPECTED in text, text)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
