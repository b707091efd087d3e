# SPDX-License-Identifier: MIT
"""Writes the plugin contract as JSON, for bindings and for authors in other languages: every number of the lists,
sizes and offsets of every struct on 64-bit machines, the layout number.

usage: gen_contract_json.py ABI_DIR OUT CC...
"""
import json
import os
import re
import subprocess
import sys

# Each list with the macros that make a JSON object of a row; the name of the macro is the first word.
PARAMETERS = r"""
#define GGML_OP_PARAM(text, word, n, since_) {"parameter": text, "word": word, "words": n, "since": since_},
#define GGML_OP_SRC(slot, since_) {"source": slot, "since": since_},
#define GGML_OP_VALUES(word, first, n, set, since_) \
    {"values_of_word": word, "first_bit": first, "bits": n, "set": #set, "since": since_},
"""
LISTS = {
    "statuses": ("status_list.inl", r"""
#define GGML_HOST_STATUS_ROW(number_, name_, text_) {"number": number_, "name": #name_, "text": text_},
"""),
    "cpu_features": ("cpu_feature_list.inl", r"""
#define GGML_CPU_FEATURE_ROW(machine_, bit_, name_, text_) \
    {"machine": #machine_, "bit": bit_, "name": #name_, "text": text_},
"""),
    "types": ("type_list.inl", r"""
#define GGML_TYPE_ROW(number_, name_, text_, block_, size_, quantized_, since_) \
    {"number": number_, "name": #name_, "text": text_, "block_elements": block_, "block_bytes": size_, \
     "quantized": quantized_, "since": since_},
#define GGML_TYPE_REMOVED(number_, text_) {"number": number_, "removed": true},
"""),
    "tensor_flags": ("flag_list.inl", r"""
#define GGML_TENSOR_FLAG_ROW(value_, name_, since_) {"number": value_, "name": #name_, "since": since_},
"""),
    "operations": ("op_list.inl", PARAMETERS + r"""
#define GGML_OP_ROW(number_, name_, symbol_, min_, max_, type_, shape_, cost_, flops_, flags_, builders_, since_, more_) \
    {"number": number_, "name": #name_, "sources_min": min_, "sources_max": max_, "memory": #flags_, "since": since_, \
     "more": [more_]},
"""),
    "unary_operations": ("unary_list.inl", PARAMETERS + r"""
#define GGML_UNARY_ROW(number_, name_, since_, more_) \
    {"number": number_, "name": #name_, "since": since_, "more": [more_]},
"""),
    "glu_operations": ("glu_list.inl", PARAMETERS + r"""
#define GGML_GLU_ROW(number_, name_, since_, more_) \
    {"number": number_, "name": #name_, "since": since_, "more": [more_]},
"""),
    "layout": ("layout_pins.inl", r"""
#define GGML_PIN_SIZE(type_, bytes_) {"struct": #type_, "bytes": bytes_},
#define GGML_PIN(type_, member_, offset_) {"struct": #type_, "member": #member_, "offset": offset_},
"""),
}


def preprocess(cc, abi_dir, source):
    ran = subprocess.run(cc + ["-E", "-P", "-I", abi_dir, "-x", "c", "-"], input=source.encode(), check=True,
                         stdout=subprocess.PIPE)
    return ran.stdout.decode()


def rows(cc, abi_dir, name, macros):
    text = preprocess(cc, abi_dir, '%s#include "%s"\n' % (macros, name))
    text = re.sub(r"},;$", "},", text, flags=re.M)
    return json.loads(re.sub(r",(\s*[\]}])", r"\1", "[%s]" % text))


def structs(pins):
    found = {}
    for pin in pins:
        entry = found.setdefault(pin["struct"].split()[-1], {"bytes": None, "members": {}})
        if "bytes" in pin:
            entry["bytes"] = pin["bytes"]
        else:
            entry["members"][pin["member"]] = pin["offset"]
    return found


def constants(cc, abi_dir, prefixes):
    """Enumerators with an explicit number, and macros that are a number or a string."""
    text = preprocess(cc, abi_dir, '#include "ggml-plugin.h"\n')
    found = {name: int(value) for name, value in re.findall(r"\b(GGML_\w+)\s*=\s*(-?\d+)\b", text)}
    macros = subprocess.run(cc + ["-E", "-dM", "-I", abi_dir, os.path.join(abi_dir, "ggml-plugin.h")], check=True,
                            stdout=subprocess.PIPE).stdout.decode()
    found.update((name, json.loads(value)) for name, value in
                 re.findall(r'^#define (GGML_\w+) (\d+|"[^"\\]*")$', macros, re.M))
    return {name: found[name] for name in sorted(found) if name.startswith(prefixes)}


def layout_number(sizes):
    """As GGML_PLUGIN_LAYOUT_HASH."""
    tensor = sizes["ggml_tensor"]
    values = [tensor["bytes"]] + [tensor["members"][member] for member in ("op_params", "data", "extra")]
    values += [sizes[name]["bytes"] for name in
               ("ggml_backend_buffer_type", "ggml_backend_buffer", "ggml_backend", "ggml_backend_device",
                "ggml_backend_reg", "ggml_stream_table", "ggml_host_table", "ggml_plugin_table", "ggml_backend_dev_props", "ggml_graph")]
    number = 14695981039346656037
    for value in values:
        number = ((number ^ value) * 1099511628211) % 2**64
    return number


def contract(abi_dir, cc):
    lists = {key: rows(cc, abi_dir, *what) for key, what in LISTS.items()}
    sizes = structs(lists.pop("layout"))
    known = constants(cc, abi_dir, ("GGML_PLUGIN_", "GGML_EXTENSION_", "GGML_CONTRACT_", "GGML_MACHINE_",
                                    "GGML_BACKEND_", "GGML_STATUS_", "GGML_DEVICE_", "GGML_LOG_", "GGML_MAX_"))
    return dict({"major": known["GGML_CONTRACT_MAJOR"], "minor": known["GGML_CONTRACT_MINOR"],
                 "layout_number": "0x%016x" % layout_number(sizes), "constants": known, "structs": sizes}, **lists)


def main():
    text = json.dumps(contract(sys.argv[1], sys.argv[3:]), indent=1, ensure_ascii=False) + "\n"
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
