#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The Rust crate: its structs lie in memory as the contract says, its numbers are the contract's, and its example keeps
the contract. Speaks TAP.

usage: check_rust.py RUSTC CRATE_DIR CONTRACT_JSON PLUGIN_CHECK"""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import check, finish  # noqa: E402

STRUCTS = {
    "Note": "ggml_plugin_note", "Host": "ggml_host_table", "HostMemory": "ggml_extension_host_memory", "Tensor": "ggml_tensor",
    "Graph": "ggml_graph", "Caps": "ggml_backend_dev_caps", "Props": "ggml_backend_dev_props",
    "BufferTypeTable": "ggml_buffer_type_table", "BufferType": "ggml_backend_buffer_type", "BufferTable": "ggml_buffer_table",
    "Buffer": "ggml_backend_buffer", "StreamTable": "ggml_stream_table", "Stream": "ggml_backend", "DeviceTable": "ggml_device_table",
    "Device": "ggml_backend_device", "BackendTable": "ggml_backend_table", "Backend": "ggml_backend_reg", "Plugin": "ggml_plugin_table",
}
# Members of another name, and arrays that stand for several, by the first of those.
OTHERWISE = {"kind": "type", "r#async": "async"}
STREAM_ARRAYS = {"transfers": "set_tensor_async", "plans": "graph_plan_create", "events": "event_record"}


def structs_of(source):
    """{struct: [members]} of the crate."""
    found = {}
    for name, body in re.findall(r"pub struct (\w+) \{\n(.*?)\n\}", source, re.S):
        found[name] = re.findall(r"^    pub ((?:r#)?\w+):", body, re.M)
    return found


def measure(rustc, folder, library, structs):
    """{(struct, member or None): offset or size} as the compiler has them."""
    lines = []
    for name, members in structs.items():
        lines.append('println!("%s - {}", std::mem::size_of::<%s>());' % (name, name))
        for member in members:
            lines.append('let place = std::mem::MaybeUninit::<%s>::uninit(); let base = place.as_ptr(); '
                         'println!("%s %s {}", unsafe { std::ptr::addr_of!((*base).%s) as usize } - base as usize);'
                         % (name, name, member, member))
    source = os.path.join(folder, "layout.rs")
    with open(source, "w", encoding="ascii") as file:
        file.write("use ggml_plugin::*;\nfn main() {\n%s\n}\n" % "\n".join(lines))
    program = os.path.join(folder, "layout")
    subprocess.run(rustc + ["--crate-type", "bin", "--extern", "ggml_plugin=" + library, "-o", program, source], check=True)
    text = subprocess.run([program], check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout
    return {(s, None if m == "-" else m): int(n) for s, m, n in (line.split() for line in text.splitlines())}


def main():
    rustc, crate, contract, plugin_check = [sys.argv[1], "--edition", "2021", "-O"], sys.argv[2], sys.argv[3], sys.argv[4]
    with open(contract, encoding="utf-8") as file:
        numbers = json.load(file)
    with open(os.path.join(crate, "src/contract.rs"), encoding="utf-8") as file:
        source = file.read()
    structs = structs_of(source)
    check("every struct of the crate is one of the contract", set(structs) == set(STRUCTS), set(structs) ^ set(STRUCTS))
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "libggml_plugin.rlib")
        built = subprocess.run(rustc + ["-D", "warnings", "--crate-type", "rlib", "--crate-name", "ggml_plugin", "-o", library,
                                        os.path.join(crate, "src/lib.rs")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
        check("it compiles without a warning", built.returncode == 0, built.stdout)
        if built.returncode == 0:
            measured = measure(rustc, folder, library, structs)
            for name, members in structs.items():
                known = numbers["structs"][STRUCTS[name]]
                other = dict(OTHERWISE, **STREAM_ARRAYS) if name == "StreamTable" else OTHERWISE
                wrong = [] if measured[name, None] == known["bytes"] else ["%d bytes" % measured[name, None]]
                for member in members:
                    right = known["members"].get(other.get(member, member))
                    if measured[name, member] != right:
                        wrong.append("%s at %d instead of %s" % (member, measured[name, member], right))
                check("%s lies in memory as struct %s" % (name, STRUCTS[name]), not wrong, "\n".join(wrong))
            plugin = os.path.join(folder, "libggml-add.so")
            built = subprocess.run(rustc + ["-D", "warnings", "--crate-type", "cdylib", "--extern", "ggml_plugin=" + library, "-o", plugin,
                                            os.path.join(crate, "examples/add.rs")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   universal_newlines=True)
            check("the example compiles without a warning", built.returncode == 0, built.stdout)
            done = subprocess.run([plugin_check, plugin], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
            check("and keeps the contract", done.returncode == 0 and ", 0 failed" in done.stdout,
                  "\n".join(line for line in done.stdout.splitlines() if not line.startswith("ok")))
    named = {"status": {s["name"]: s["number"] for s in numbers["statuses"]},
             "op": {o["name"]: o["number"] for o in numbers["operations"]},
             "device_type": {n[len("GGML_BACKEND_DEVICE_TYPE_"):]: v for n, v in numbers["constants"].items() if "_DEVICE_TYPE_" in n}}
    for module, known in named.items():
        body = re.search(r"pub mod %s \{(.*?)\n\}" % module, source, re.S).group(1)
        said = {name: int(number) for name, number in re.findall(r"pub const (\w+): i32 = (\d+);", body)}
        check("the numbers of %s" % module, said and all(known.get(name) == number for name, number in said.items()), (said, known))
    with open(os.path.join(crate, "src/lib.rs"), encoding="utf-8") as file:
        check("the layout number", "LAYOUT_HASH: u64 = %s;" % numbers["layout_number"] in file.read())
    return finish()


if __name__ == "__main__":
    sys.exit(main())
