#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Copies a 64-bit ELF file of this byte order with a defect that no linker gives it.

usage: patch.py DEFECT IN OUT"""
import struct
import sys

ET_EXEC, PT_LOAD, PF_X, PF_W = 2, 1, 1, 2
TYPE_AT, MACHINE_AT = 16, 18


def patch_header(data, at, value):
    struct.pack_into("=H", data, at, value)


def make_code_writable(data):
    table, = struct.unpack_from("=Q", data, 32)
    size, n = struct.unpack_from("=HH", data, 54)
    for at in range(table, table + n * size, size):
        kind, flags = struct.unpack_from("=II", data, at)
        if kind == PT_LOAD and flags & PF_X:
            struct.pack_into("=I", data, at + 4, flags | PF_W)


def main():
    defect, source, target = sys.argv[1:]
    with open(source, "rb") as file:
        data = bytearray(file.read())
    if defect == "not_shared":
        patch_header(data, TYPE_AT, ET_EXEC)
    elif defect == "machine_other":
        patch_header(data, MACHINE_AT, 0xfeed)
    else:
        make_code_writable(data)
    with open(target, "wb") as file:
        file.write(data)


if __name__ == "__main__":
    main()
