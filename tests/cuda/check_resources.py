#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What ptxas said of each kernel when the plugin was built. Kernels for tensor cores have no spills and no local memory; the
plain ones may keep a few registers in memory across calls, as of a division of 64 bits. No kernel has more registers
than its budget, no wgmma is serialised, and every kernel of the list is there. No function has the hash of its file's path in its
name, by which builds in two folders would differ.

usage: check_resources.py [REPORT KERNEL_LIST TYPES]    in TAP; without arguments there was no nvcc
"""
import re
import sys

# By the beginning of the name: registers, bytes of spills, bytes of local memory. 65,536 registers are two blocks of 256
# threads with 128 each, three of 128 threads with 168. Encoders have a block's elements in local memory; those of 256
# elements take all the registers that a block of 256 threads can have.
BUDGETS = [("kernel_encode_large", 255, 128, 2048), ("kernel_set_rows_large", 255, 128, 2048), ("kernel_add_encoded_large", 255, 128, 2048),
           ("kernel_tile_", 168, 0, 0), ("kernel_wide_", 168, 0, 0), ("kernel_few_", 128, 0, 0), ("kernel_attention_", 168, 0, 0), ("kernel_encode", 128, 128, 2048), ("kernel_set_rows_", 128, 128, 2048),
           ("kernel_add_encoded", 128, 128, 2048), ("kernel_", 128, 128, 64)]
# A multiprocessor of capability 7.5 has 64 KB of shared memory, which leave room for few blocks of these, of 128 threads:
# registers may be as many as leave room for as many, or for four. A warp gets them by eight per thread.
FEW_BLOCKS = ("sm_75", ("kernel_tile_", "kernel_few_", "kernel_attention_"), 65536, 4, 128)

ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(sm_\w+)'")
PROPERTIES = re.compile(r"Function properties for (\w+)")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
PLANTED = ["ptxas info    : Compiling entry function 'kernel_tile_F16' for 'sm_90a'", "ptxas info    : Function properties for kernel_tile_F16",
           "    0 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads", "ptxas info    : Used 170 registers",
           "ptxas info    : Compiling entry function 'kernel_unary' for 'sm_90a'", "ptxas info    : Function properties for kernel_unary",
           "    640 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads", "ptxas info    : Used 40 registers",
           "ptxas info    : Compiling entry function 'kernel_tile_Q5_1' for 'sm_75'", "ptxas info    : Used 188 registers, used 1 barriers, 30464 bytes smem",
           "ptxas info    : Compiling entry function 'kernel_tile_Q4_1' for 'sm_75'", "ptxas info    : Used 170 registers, used 1 barriers, 20480 bytes smem",
           "ptxas info    : Function properties for _ZN58_INTERNAL_7065d652_6_all_cu_d8624a4014attend_plainlyEv",
           "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized"]


def kernels_of(list_path, types_path):
    text = open(list_path, encoding="utf-8").read()
    names = set(re.findall(r"^SIMT(?:_TENSOR)?_KERNEL\((\w+)\)", text, re.M))
    types = re.findall(r"^TENSOR_TYPE\((\w+),", open(types_path, encoding="utf-8").read(), re.M)
    for family in re.findall(r"SIMT_TENSOR_KERNEL\((\w+)##name\)", text):
        names |= {family + name for name in types}
    return {"kernel_" + name for name in names}


def most_registers(name, arch, shared, budget):
    few_arch, names, shared_of_all, most_blocks, threads = FEW_BLOCKS
    if arch != few_arch or shared == 0 or not name.startswith(names):
        return budget
    blocks = min(most_blocks, shared_of_all // shared)
    return min(255, 65536 // blocks // threads // 8 * 8)


def check(lines):
    """Names of kernels, complaints, the most registers of any."""
    names, faults, most, name, arch, function = set(), [], 0, "?", "?", "?"
    for line in lines:
        entry, properties = ENTRY.search(line), PROPERTIES.search(line)
        bytes_, used = SPILLS.search(line), re.search(r"Used (\d+) registers(?:.* (\d+) bytes smem)?", line)
        if entry:
            name, arch = entry[1], entry[2]
            names.add(name)
        function = properties[1] if properties else function
        faults += [f"{function}: static, and not inlined"] if properties and "_INTERNAL_" in function else []
        budget = next((b for b in BUDGETS if name.startswith(b[0])), BUDGETS[-1])
        if bytes_ and function == name:
            faults += [f"{name}: spills, {line.strip()}"] if max(int(bytes_[2]), int(bytes_[3])) > budget[2] else []
            faults += [f"{name}: local memory, {line.strip()}"] if int(bytes_[1]) > budget[3] else []
        if used:
            most = max(most, int(used[1]))
            limit = most_registers(name, arch, int(used[2] or 0), budget[1])
            faults += [f"{name}, {arch}: {used[1]} registers, at most {limit}"] if int(used[1]) > limit else []
        if re.search(r"C75\d\d", line):
            faults.append(f"{name}: {line.strip()}")
    return names, faults, most


def main():
    if len(sys.argv) == 1:
        print("1..0 # SKIP the kernels were compiled without nvcc")
        return
    report, *lists = sys.argv[1:]
    names, faults, most = check(open(report, encoding="utf-8"))
    faults += [f"{name}: ptxas said nothing of it" for name in sorted(kernels_of(*lists) - names)]
    print(f"1..2\n# {len(names)} kernels, at most {most} registers")
    for fault in faults:
        print(f"# {fault}")
    print("not ok" if faults else "ok", "1 - registers, local memory and spills of each kernel")
    print("ok" if len(check(PLANTED)[1]) == 6 else "not ok", "2 - planted faults are found")


main()
