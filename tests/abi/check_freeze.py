# SPDX-License-Identifier: MIT
"""Compares the contract with the frozen headers of its first minor: within a major nothing that is there changes.

usage: check_freeze.py ABI_DIR FROZEN_DIR CC...

What may come: names for reserved slots, members behind those of an extension, rows at the end of lists (with the
minor that they came with: check_growth.py), enumerators, macros. That each kind of change is noticed is tried on
copies. Needs a compiler and nothing else, for whatever machine it compiles."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import check_growth
import headers

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import Tap  # noqa: E402

HEADERS = ["ggml-plugin-note.h", "ggml-plugin-host.h", "ggml-plugin-table.h", "ggml-backend-impl.h"] + headers.EXTENSIONS
SHARED = {"ggml.h": ["ggml_tensor"], "ggml-backend.h": ["ggml_backend_dev_props", "ggml_backend_dev_caps", "ggml_backend_feature"]}
LISTS = ["op_list.inl", "unary_list.inl", "glu_list.inl", "type_list.inl", "flag_list.inl", "status_list.inl", "cpu_feature_list.inl"]
ROW = r"^\s*((?:GGML_\w+_ROW|GGML_CPU_FEATURE\w*)\([^\n]*)"
MAY_RISE = re.compile(r"GGML_CONTRACT_MINOR|\w+_REVISION|\w+_COUNT")
MARK = 0x4e524542554d4d47


def member_name(declaration):
    pointer = re.search(r"\(\*(\w+)(?:\[\w+\])?\)", declaration)
    return pointer.group(1) if pointer else re.findall(r"\w+", re.sub(r"\[.*?\]", "", declaration))[-1]


def read(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()


def declarations(cc, folder):
    """Structs and enums of the contract: {struct: {member: declaration}}, {enum: {name: value}}."""
    _, enums, structs, _ = headers.parse(headers.preprocess(cc, folder, "ggml-plugin.h", HEADERS))
    for header, names in SHARED.items():
        found = headers.parse(headers.preprocess(cc, folder, "ggml-plugin.h", [header]))[2]
        structs.update((name, found[name]) for name in names if name in found)
    return {name: {member_name(d): d for d in members} for name, members in structs.items()}, enums


def numbers(cc, folder, expressions):
    """Their values. Found without running anything: an object has them as data."""
    source = '#include <stddef.h>\n#include "ggml-plugin.h"\nconst unsigned long long n[] = {%#x, %s};\n' % (MARK, ", ".join(expressions))
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "numbers.o")
        subprocess.run(cc + ["-std=c11", "-O0", "-w", "-DGGML_LAYOUT_UNPINNED", "-I", folder, "-x", "c", "-c", "-", "-o", path],
                       input=source.encode(), check=True)
        with open(path, "rb") as file:
            data = file.read()
    at = data.index(MARK.to_bytes(8, "little")) + 8
    return [int.from_bytes(data[at + 8 * i:at + 8 * i + 8], "little") for i in range(len(expressions))]


def layout(cc, folder, structs):
    names = ["sizeof(struct %s)" % name for name in structs]
    names += ["offsetof(struct %s, %s)" % (name, member) for name, members in structs.items() for member in members]
    return dict(zip(names, numbers(cc, folder, names)))


def is_slot(member):
    return member.startswith("reserved")


def struct_faults(cc, frozen_dir, folder, frozen, now):
    """Members keep type, offset and name, structs their size; only reserved slots may be named."""
    wrong = ["struct %s is gone" % name for name in frozen if name not in now]
    kept = {}
    for name, members in frozen.items():
        for member, declaration in members.items() if name in now else []:
            if is_slot(member):
                continue
            if member not in now[name]:
                wrong.append("struct %s has no %s any more" % (name, member))
            elif now[name][member] != declaration:
                wrong.append("struct %s: %s became %s" % (name, declaration, now[name][member]))
            else:
                kept.setdefault(name, []).append(member)
    before, after = layout(cc, frozen_dir, kept), layout(cc, folder, kept)
    for what, value in before.items():
        grows = what.startswith("sizeof(struct ggml_extension_") and after[what] > value
        if after[what] != value and not grows:
            wrong.append("%s was %d, is %d" % (what, value, after[what]))
    return wrong


def enum_faults(frozen, now):
    return ["%s was %d, is %s" % (name, value, now.get(enum, {}).get(name)) for enum, values in frozen.items()
            for name, value in values.items() if now.get(enum, {}).get(name) != value and not MAY_RISE.fullmatch(name)]


def object_macros(folder):
    """Of the headers of the contract, those without arguments that have a value."""
    text = "".join(re.sub(r"//[^\n]*", "", read(folder, name)) for name in HEADERS)
    found = {}
    for name, value in re.findall(r"^#define (GGML_\w+)[ \t]+([^\n(\\][^\n]*)$", text, re.M):
        found.setdefault(name, value.strip())
    return found


def macro_faults(frozen_dir, folder):
    before, after = object_macros(frozen_dir), object_macros(folder)
    return ["%s was %s, is %s" % (name, value, after.get(name)) for name, value in before.items()
            if after.get(name) != value and not MAY_RISE.fullmatch(name)]


def rows(folder, name):
    """Number and name of each, by machine in the list that is one for each."""
    found = {}
    for row in re.findall(ROW, read(folder, name), re.M):
        cells = row.split("(", 1)[1].split(",")
        machine = cells.pop(0) if "CPU" in name.upper() else ""
        found.setdefault(machine, []).append([cell.strip() for cell in cells[:2]])
    return found


def list_faults(frozen_dir, folder):
    """Numbers and names: what was there comes first and in its order."""
    wrong = []
    for name in LISTS:
        all_before, all_after = rows(frozen_dir, name), rows(folder, name)
        for machine, before in all_before.items():
            after = all_after.get(machine, [])
            if after[:len(before)] != before:
                first = next((row for row, old in zip(after, before) if row != old), "the end")
                wrong.append("%s is another from %s on" % (name, first))
        wrong += [] if all_before else ["%s has no rows" % name]
    return wrong


def faults(cc, frozen_dir, folder):
    (old_structs, old_enums), (structs, enums) = declarations(cc, frozen_dir), declarations(cc, folder)
    wrong = enum_faults(old_enums, enums) + macro_faults(frozen_dir, folder) + list_faults(frozen_dir, folder)
    wrong += struct_faults(cc, frozen_dir, folder, old_structs, structs)
    return wrong + check_growth.faults(cc, folder, frozen_dir, check_growth.minor(folder))


SLOT = r"void \(\*reserved\[8\]\)\(void\);"
FREE = r"( *void \(\*free\)\(const struct ggml_host_table \*host, void \*memory\);\n)"
STATUS = r"(GGML_HOST_STATUS_ROW\(9, [^\n]*\n)"
# What is done to a header, and whether the contract allows it.
CHANGES = [
    ("a member in the middle", "ggml-plugin-host.h", FREE, r"\1    void (*inserted)(void);\n", False),
    ("an entry that is removed", "ggml-plugin-host.h", FREE, "", False),
    ("two entries that changed places", "ggml-backend-impl.h",
     r"(    void \(\*graph_plan_free\)[^;]*;\n)(    int32_t \(\*graph_plan_compute\)[^;]*;\n)", r"\2\1", False),
    ("another type of the same size", "ggml-plugin-note.h", "int32_t priority;", "uint32_t priority;", False),
    ("an entry with one argument more", "ggml-backend-impl.h", r"(\*get_access_unit\)\(ggml_backend_buffer_type_t buft,)", r"\1 int more,", False),
    ("a table with more slots", "ggml-backend-impl.h", SLOT, "void (*reserved[9])(void);", False),
    ("a tensor with a member more", "ggml.h", r"size_t view_offs;", "size_t view_offs; size_t view_more;", False),
    ("another value of an enumerator", "ggml-plugin-note.h", "GGML_PLUGIN_FLAG_NO_UNLOAD = 1", "GGML_PLUGIN_FLAG_NO_UNLOAD = 4", False),
    ("a row in the middle of a list", "status_list.inl", STATUS, '\\1GGML_HOST_STATUS_ROW(12, INSERTED, "inserted")\n', False),
    ("a row that is gone", "status_list.inl", STATUS, "", False),
    ("another number in a row", "cpu_feature_list.inl", r"_ROW\((\w+), 1,", r"_ROW(\1, 61,", False),
    ("another name in a row", "cpu_feature_list.inl", "SSSE3", "SSE4", False),
    ("another value of a macro", "ggml-ext-host-memory.h", '(?m)^(#define .*)"ggml.host-memory"', r'\1"ggml.hosts-memory"', False),
    ("a macro that is gone", "ggml-ext-device-figures.h", "#define GGML_DEVICE_FIGURES_DIRECT_COPY[^\n]*\n", "", False),
    ("an operation without the minor that it came with", "op_list.inl", "#undef GGML_OP_ROW",
     'GGML_OP_ROW(%(ops)d, NEW, "new", 1, 1, same, same, elements, 1, NONE, "none", 0, )\n#undef GGML_OP_ROW', False),
    ("an operation of the next minor", "op_list.inl", "#undef GGML_OP_ROW",
     'GGML_OP_ROW(%(ops)d, NEW, "new", 1, 1, same, same, elements, 1, NONE, "none", 1, )\n#undef GGML_OP_ROW', True),
    ("a status at the end", "status_list.inl", "#undef GGML_HOST", 'GGML_HOST_STATUS_ROW(50, NEW, "new")\n#undef GGML_HOST', True),
    ("a name for a reserved slot", "ggml-backend-impl.h", SLOT, "void (*named)(void);\n    void (*reserved[7])(void);", True),
    ("a member behind those of an extension", "ggml-ext-cpu-features.h", r"(uint64_t \(\*features\)\([^)]*\);)", r"\1\n    void (*appended)(void);", True),
]


def change(frozen_dir, folder, name, pattern, replacement):
    """A copy of the frozen headers as a next minor, with that change. False: there is nothing to change."""
    shutil.copytree(frozen_dir, folder)
    open(os.path.join(folder, "layout_pins.inl"), "w", encoding="utf-8").close()
    count = int(re.search(r"GGML_OP_COUNT = (\d+)", read(frozen_dir, "ggml.h")).group(1))
    edits = [(name, pattern, replacement.replace("%(ops)d", str(count))),
             ("ggml-plugin-note.h", r"define GGML_CONTRACT_MINOR \d+", "define GGML_CONTRACT_MINOR 1")]
    found = 0
    for file_name, what, text in edits:
        changed, n = re.subn(what, text, read(folder, file_name), count=1)
        found += n
        with open(os.path.join(folder, file_name), "w", encoding="utf-8") as file:
            file.write(changed)
    return found == len(edits)


def main():
    abi_dir, frozen_dir, cc = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3:]
    tap = Tap()
    structs, enums = declarations(cc, frozen_dir)
    tap.ok(len(structs) > 20 and len(enums) > 3 and len(object_macros(frozen_dir)) > 10,
           "%d structs, %d enumerations and %d macros are frozen" % (len(structs), len(enums), len(object_macros(frozen_dir))))
    wrong = faults(cc, frozen_dir, abi_dir)
    tap.ok(not wrong, "nothing of the first minor has changed", *wrong)
    for what, name, pattern, replacement, allowed in CHANGES:
        with tempfile.TemporaryDirectory() as scratch:
            folder = os.path.join(scratch, "abi")
            if not change(frozen_dir, folder, name, pattern, replacement):
                tap.ok(False, "%s: nothing to change in %s" % (what, name))
                continue
            wrong = faults(cc, frozen_dir, folder)
            tap.ok(allowed == (not wrong), "%s is %s" % (what, "allowed" if allowed else "noticed"), *wrong)
    tap.done()


if __name__ == "__main__":
    main()
