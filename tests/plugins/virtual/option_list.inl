// SPDX-License-Identifier: MIT
// What can be configured with a number, once.
//
// VIRTUAL_OPTION(name, value, text)
//   name   member of struct virtual_config, and key in GGML_VIRTUAL
//   value  default
//   text   meaning
VIRTUAL_OPTION(type, 1, "enum ggml_backend_dev_type")
VIRTUAL_OPTION(memory, 1073741824, "bytes that buffers may take together")
VIRTUAL_OPTION(max_buffer, 0, "bytes of the largest buffer; 0: no limit of its own")
VIRTUAL_OPTION(alignment, 256, "alignment of tensors, a power of two up to 4096")
VIRTUAL_OPTION(padding, 0, "bytes that a tensor occupies beyond its own")
VIRTUAL_OPTION(poison, 1, "fill new memory with NaN")
VIRTUAL_OPTION(async, 1, "streams queue work; 0: every call waits")
VIRTUAL_OPTION(events, 1, "events exist")
VIRTUAL_OPTION(peer_copy, 1, "direct copies from and to other virtual devices")
VIRTUAL_OPTION(ordered_copies, 0, "a direct copy also waits for earlier work of the destination")
VIRTUAL_OPTION(communicator, 1, "all-reduce for tensor parallelism (all devices must have it)")
VIRTUAL_OPTION(host_memory, 0, "tensor->data is an address of the host")
VIRTUAL_OPTION(host_buffers, 0, "a second buffer type: pinned host memory")
VIRTUAL_OPTION(host_import, 0, "buffers over memory of the caller")
VIRTUAL_OPTION(reads_host, 0, "computes on host memory in place")
VIRTUAL_OPTION(reads_peers, 0, "computes on memory of other virtual devices in place")
VIRTUAL_OPTION(offload, 0, "offload_op answers true")
VIRTUAL_OPTION(copy_delay_us, 0, "each transfer takes at least this long")
VIRTUAL_OPTION(copy_ns_per_kib, 0, "and this per KiB")
VIRTUAL_OPTION(graph_delay_us, 0, "each graph takes at least this long")
VIRTUAL_OPTION(node_delay_us, 0, "and this per node")
VIRTUAL_OPTION(node_ns_per_kib, 0, "and this per KiB of results and operands")
VIRTUAL_OPTION(node_ns_per_mflop, 0, "or this per million operations, if that is more")
VIRTUAL_OPTION(quant_ns_per_mflop, 0, "the same where the first operand is quantised; 0: as others")
VIRTUAL_OPTION(fail_alloc_after, -1, "allocations that succeed before one fails; -1: none fails")
VIRTUAL_OPTION(fail_copy_after, -1, "the same for transfers")
VIRTUAL_OPTION(fail_compute_after, -1, "the same for graphs")
VIRTUAL_OPTION(lose_after, -1, "allocations, transfers and graphs before the device is lost")
VIRTUAL_OPTION(crash_after, -1, "graphs that are taken before one is a bad access to memory")
VIRTUAL_OPTION(fixed_weights, 0, "memory whose use is that of weights can't be written to")
VIRTUAL_OPTION(fail_late, 0, "failures of queued work show when it runs, not when it is queued")
#undef VIRTUAL_OPTION
