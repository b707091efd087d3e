# SPDX-License-Identifier: MIT
"""Compares the layout of the plugin contract with the committed description of it.

usage: check_abi_dump.py ABI_DIR SOURCE DUMP CC...             compares
       check_abi_dump.py --update ABI_DIR SOURCE DUMP CC...    writes the dump of a new contract
"""
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import Tap  # noqa: E402


ABIDW = ["abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--no-elf-needed",
         "--type-id-style", "hash"]


def dump(cc, abi_dir, source, out_path):
    """Writes the description of a shared object that holds every struct of the contract."""
    library = os.path.join(os.path.dirname(os.path.abspath(out_path)), "contract-under-test.so")
    subprocess.run(cc + ["-std=c11", "-g", "-O0", "-shared", "-fPIC", "-I", abi_dir, source, "-o", library],
                   check=True)
    subprocess.run(ABIDW + ["--out-file", out_path, library], check=True)
    os.remove(library)
    with open(out_path, encoding="utf-8") as file:
        text = re.sub(r" path='[^']*'", " path='contract.c'", file.read())
    with open(out_path, "w", encoding="utf-8") as file:
        file.write(text)


def compare(old, new):
    run = subprocess.run(["abidiff", "--no-architecture", old, new], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         universal_newlines=True)
    return run.returncode, run.stdout


def insert_member(abi_dir, out_dir, header, pattern, member):
    """Copies the headers and puts a member behind the line that matches; pins are dropped, so that it is
    the comparison which notices."""
    shutil.copytree(abi_dir, out_dir)
    open(os.path.join(out_dir, "layout_pins.inl"), "w", encoding="utf-8").close()
    path = os.path.join(out_dir, header)
    with open(path, encoding="utf-8") as file:
        text, found = re.subn(pattern, lambda m: m.group(0) + "\n    " + member, file.read(), count=1)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return found == 1


CHANGES = [
    ("a callback inside the buffer interface", "ggml-backend-impl.h",
     r"void \*\(\*get_base\)\(ggml_backend_buffer_t buffer\);", "void (*inserted)(void);"),
    ("a field inside struct ggml_tensor", "ggml.h", r"size_t view_offs; .*", "int64_t inserted;"),
    ("a callback inside the host table", "ggml-plugin-host.h",
     r"void \(\*free\)\(const struct ggml_host_table \*host, void \*memory\);", "void (*inserted)(void);"),
]


def main():
    arguments = [a for a in sys.argv[1:] if a != "--update"]
    abi_dir, source, committed, cc = os.path.abspath(arguments[0]), *arguments[1:3], arguments[3:]
    if "--update" in sys.argv:
        dump(cc, abi_dir, source, committed)
        return
    tap = Tap()
    if not (shutil.which("abidw") and shutil.which("abidiff")):
        tap.skip("layout of the contract", "abigail-tools is not installed")
        tap.done()
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"):
        tap.skip("layout of the contract", "the dump is of 64-bit Linux")
        tap.done()
    with open(committed, encoding="utf-8") as file:
        tap.ok(not re.search(r"['\"]/\w", file.read()), "the committed dump names no path of a machine")
    with tempfile.TemporaryDirectory() as folder:
        current = os.path.join(folder, "current.abi")
        dump(cc, abi_dir, source, current)
        code, report = compare(committed, current)
        tap.ok(code == 0, "the contract has the committed layout", report)
        for i, (name, header, pattern, member) in enumerate(CHANGES):
            changed_dir = os.path.join(folder, "abi-%d" % i)
            tap.ok(insert_member(abi_dir, changed_dir, header, pattern, member), "insert " + name)
            dump(cc, changed_dir, source, current)
            code, report = compare(committed, current)
            tap.ok(code & 4, "the comparison notices " + name, report)
    tap.done()


if __name__ == "__main__":
    main()
