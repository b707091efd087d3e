# SPDX-License-Identifier: MIT
"""Compares the symbols of an installed ggml with those of the libraries that stand in for it. Speaks TAP.

usage: check_symbols.py ROOT OUR_LIBRARY...

ROOT has ggml and programs that use it (/ or a chroot). Every symbol that one of its programs, libraries and
backends takes from libggml.so.0 or libggml-base.so.0 must be in one of OUR_LIBRARY, and so must every C function
that these export.
"""
import glob
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import Tap  # noqa: E402

# Exported by ggml, but in no header, and used by nothing that is installed.
INTERNAL = {
    "ggml_backend_meta_buffer_set_usage",
    "ggml_backend_meta_n_backends",
    "ggml_backend_meta_simple_backend",
}


def symbols(kind, paths):
    """Names without versions."""
    run = subprocess.run(["nm", "-D", f"--{kind}-only", "--format=posix", *paths], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, universal_newlines=True, check=False)
    return {line.split()[0].partition("@")[0] for line in run.stdout.splitlines() if len(line.split()) > 1}


def programs(root):
    """All that may be linked with ggml."""
    folders = ["usr/bin", "usr/lib/*-linux-gnu", "usr/lib/*-linux-gnu/ggml/*", "usr/lib/*-linux-gnu/llama*",
               "usr/lib/*-linux-gnu/whisper*", "usr/libexec/*-linux-gnu/*"]
    for folder in folders:
        for path in glob.glob(os.path.join(root, folder, "*")):
            name = os.path.basename(path)
            if os.path.isfile(path) and not os.path.islink(path) and \
                    any(word in path for word in ("ggml", "llama", "whisper", "mtmd")):
                yield path, name


def main():
    root, ours = sys.argv[1], symbols("defined", sys.argv[2:])
    tap = Tap()
    libraries = [path for name in ("libggml.so.0", "libggml-base.so.0")
                 for path in glob.glob(os.path.join(root, "usr/lib/*-linux-gnu", name))]
    exported = symbols("defined", libraries)
    c_functions = {name for name in exported if not name.startswith("_")}
    tap.ok(len(libraries) == 2 and len(c_functions) > 700, "ggml's libraries are installed",
           f"{len(libraries)} libraries, {len(c_functions)} functions")
    n_used = 0
    for path, name in sorted(programs(root)):
        used = symbols("undefined", [path]) & exported
        if used and os.path.realpath(path) not in map(os.path.realpath, libraries):
            n_used += 1
            tap.ok(not used - ours, f"{name}: {len(used)} symbols", *sorted(used - ours))
    tap.ok(n_used > 20, "programs that use ggml are installed", f"{n_used} programs")
    missing = sorted(c_functions - ours - INTERNAL)
    tap.ok(not missing, f"{len(c_functions)} C functions that ggml exports", *missing)
    tap.done()


if __name__ == "__main__":
    main()
