#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Copies the sound plugin with other defects: a copy says another variant in its note and another number of its defect.
Building each would take some hundred compilations of the same code.

usage: copy_plugin.py ggml-defect-none.so FOLDER NAME=NUMBER...
Writes FOLDER/ggml-defect-NAME.so; one without the prefix "ggml-" for the defect of that kind."""
import pathlib
import struct
import sys

NOTE_MAGIC, MARK = b"GGMLPLG\x1a", b"which defect"
# Of struct ggml_plugin_note.
VARIANT_AT, VARIANT_SIZE = 88, 32
ET_EXEC, PT_LOAD, PF_X, PF_W = 2, 1, 1, 2
TYPE_AT, MACHINE_AT = 16, 18


def only(data, mark):
    """Where the mark is in the file, which has it once."""
    at = data.find(mark)
    if at < 0 or data.find(mark, at + 1) >= 0:
        sys.exit(f"copy_plugin.py: {mark} is not there once")
    return at


def make_code_writable(data):
    table, = struct.unpack_from("=Q", data, 32)
    size, n = struct.unpack_from("=HH", data, 54)
    for at in range(table, table + n * size, size):
        kind, flags = struct.unpack_from("=II", data, at)
        if kind == PT_LOAD and flags & PF_X:
            struct.pack_into("=I", data, at + 4, flags | PF_W)


def make_copy(sound, name, number):
    data = bytearray(sound)
    variant = only(data, NOTE_MAGIC) + VARIANT_AT
    assert data[variant:variant + VARIANT_SIZE].rstrip(b"\0") == b"none"
    struct.pack_into(f"={VARIANT_SIZE}s", data, variant, name.encode())
    struct.pack_into("=i", data, only(data, MARK) + len(MARK), number)
    # What no compiler makes.
    if name == "not_shared":
        struct.pack_into("=H", data, TYPE_AT, ET_EXEC)
    elif name == "machine_other":
        struct.pack_into("=H", data, MACHINE_AT, 0xfeed)
    elif name == "code_writable":
        make_code_writable(data)
    return data


def main():
    sound = pathlib.Path(sys.argv[1]).read_bytes()
    folder = pathlib.Path(sys.argv[2])
    for argument in sys.argv[3:]:
        name, number = argument.split("=")
        prefix = "" if name == "file_name" else "ggml-"
        target = folder / f"{prefix}defect-{name}.so"
        target.write_bytes(make_copy(sound, name, int(number)))
        target.chmod(0o755)


if __name__ == "__main__":
    main()
