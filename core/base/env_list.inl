// SPDX-License-Identifier: MIT
// Every environment variable that the core and its own plugins read, once. docs/environment.md is
// generated from it.
//
// GGML_ENV_ROW(NAME, default, text)
//   NAME     the variable; the identifier is GGML_ENV_<NAME>
//   default  what holds when it is not set, for the documentation
//   text     what it does
GGML_ENV_ROW(GGML_PLUGIN_PATH, "none",
             "List of absolute directories (separated by ':', on Windows ';') that are searched for "
             "plugins after the caller's own directory.")
GGML_ENV_ROW(GGML_DEVICES, "all",
             "Comma-separated list of what to use: plugin names (cpu), device names (CUDA0), PCI "
             "addresses (0000:01:00.0) or UUIDs; an entry starting with '-' excludes. Plugins that "
             "can't match are not initialised. A device of a driver that computes on the CPU counts "
             "as a GPU for who names it here.")
GGML_ENV_ROW(GGML_ISOLATE, "none",
             "Comma-separated list, as GGML_DEVICES, of devices that a process of their own computes, so "
             "that a driver which crashes ends nothing else; docs/crash-isolation.md has the rest. One "
             "that can't be isolated is left out.")
GGML_ENV_ROW(GGML_ISOLATE_DEADLINE, "none",
             "Seconds, up to 3600, after which the process of a device that GGML_ISOLATE names is ended and "
             "the device lost, when a call, such as for a graph, takes longer.")
GGML_ENV_ROW(GGML_BACKEND_PATH, "none", "One plugin file that load_all loads in addition.")
GGML_ENV_ROW(GGML_FOREIGN_PATH, "none",
             "List of absolute paths, separated by ':', of binaries of ggml's own backends, or of folders "
             "of them, whose devices the plugin foreign offers; docs/plugins/foreign.md has the rest. none: it "
             "offers only to open some later.")
GGML_ENV_ROW(GGML_FOREIGN_RPC, "none",
             "List of servers host:port, separated by ',', of ggml's RPC backend, whose devices the plugin "
             "foreign offers; GGML_FOREIGN_PATH names the libggml-rpc.so for it.")
GGML_ENV_ROW(GGML_ALLOW_UNSAFE_PLUGINS, "0",
             "1: plugins are loaded although another user could have changed the file or a directory "
             "of its path; docs/security.md says when that is.")
GGML_ENV_ROW(GGML_PLUGIN_SHA256, "none",
             "Absolute path of a list as sha256sum writes it: only plugins with one of its sums are "
             "loaded. If it can't be read, none is.")
GGML_ENV_ROW(GGML_PROBE_HELPER, "looked for",
             "Absolute path of the helper program ggml-probe, in which plugins are tried out and "
             "hwloc is asked for the topology.")
GGML_ENV_ROW(GGML_PROBE_CACHE, "ggml-host/probe in the user's cache directory",
             "Absolute directory in which results of probes are remembered; off: they are not, and "
             "hwloc isn't asked.")
GGML_ENV_ROW(GGML_PROBE_FAILURE_SECONDS, "3600",
             "How long the failure of a probe is remembered.")
GGML_ENV_ROW(GGML_PROBE_SANDBOX, "1",
             "0: helpers in which plugins are tried out may do what the application may; "
             "docs/security.md says what they may otherwise.")
GGML_ENV_ROW(XDG_CACHE_HOME, "~/.cache", "The user's cache directory.")
GGML_ENV_ROW(HOME, "none", "Below it is .cache, unless XDG_CACHE_HOME is set.")
GGML_ENV_ROW(GGML_CPU_LEVEL, "best",
             "Highest instruction-set level that the CPU plugin may use: scalar, x86-64-v2, "
             "x86-64-v3, x86-64-v4, x86-64-v4-vnni; on AArch64 scalar, neon, dotprod, i8mm.")
GGML_ENV_ROW(GGML_CPU_ALL_THREADS, "0",
             "1: the CPU plugin computes with as many threads as it is asked for, also with more "
             "than there are processors, and where fewer are faster beside other programs. guests: likewise, "
             "and all but one come and go as they do beside other programs, to measure that.")
GGML_ENV_ROW(GGML_CPU_DISABLE_BF16, "0",
             "1: the CPU plugin multiplies BF16 weights with columns as F32, never rounded to BF16.")
GGML_ENV_ROW(GGML_CPU_DISABLE_FUSION, "0",
             "1: the CPU plugin computes every node by itself, and stores all results, also those "
             "that only a fused node reads and that aren't marked as outputs.")
GGML_ENV_ROW(GGML_CPU_DISABLE_ROUNDING, "0",
             "1: the CPU plugin multiplies quantised and BF16 weights with columns as F32, never "
             "rounded to 8 bits or BF16, and quantised keys with queries as F32, never rounded to 16 bits.")
GGML_ENV_ROW(GGML_SCHED_DEBUG, "0",
             "The scheduler logs at debug level: 1: the splits of each graph and what they copy; 2: "
             "every node too.")
GGML_ENV_ROW(GGML_SCHED_CACHE, "1",
             "0: schedulers do not remember the last graph, so that each is placed, split and planned "
             "again: to find out whether a fault comes from there.")
GGML_ENV_ROW(GGML_NO_BACKTRACE, "unset", "Set: ggml_abort prints no backtrace.")
GGML_ENV_ROW(GGML_VULKAN_DEVICES, "all",
             "Comma-separated numbers of the Vulkan devices to offer, in this order: discrete ones "
             "are counted first, drivers that compute on the CPU last. A number that comes twice "
             "makes two devices of the same hardware.")
GGML_ENV_ROW(GGML_VULKAN_CACHE, "XDG_CACHE_HOME/ggml-host, ~/.cache/ggml-host",
             "Absolute directory in which the Vulkan plugin keeps compiled shaders; 0: nowhere.")
GGML_ENV_ROW(GGML_VULKAN_VALIDATE, "0",
             "1: the Vulkan plugin turns the validation layer on, synchronisation included, and "
             "logs what it says.")
GGML_ENV_ROW(GGML_VULKAN_DISABLE_FUSION, "none",
             "Comma-separated list of what the Vulkan plugin computes node by node, although one "
             "launch could do it: norm, glu, bias, add_chain, rope_rows, mask; 1: everything.")
GGML_ENV_ROW(GGML_VULKAN_DISABLE_REORDER, "0",
             "1: the Vulkan plugin computes the nodes of a graph in the order in which they come, though "
             "another one would need fewer launches and waits.")
GGML_ENV_ROW(GGML_VULKAN_DEBUG, "none",
             "Comma-separated list: staging: the Vulkan plugin copies through staging memory even "
             "where it could reach the device's; record: logs every graph that is recorded; gpu: "
             "chooses kernels on drivers that compute on the CPU as for a GPU.")
GGML_ENV_ROW(GGML_CUDA_DISABLE_GRAPHS, "0",
             "1: the CUDA plugin queues the launches of a graph one by one, in order, instead of as "
             "a graph of the driver's in which independent ones overlap.")
GGML_ENV_ROW(GGML_CUDA_DISABLE_FUSION, "none",
             "Comma-separated list of what the CUDA plugin computes node by node, although one "
             "launch could do it: norm, glu, bias, add_chain, rope_rows, mask; 1: everything.")
GGML_ENV_ROW(GGML_CUDA_DISABLE_EARLY, "0",
             "1: launches of a graph of the CUDA plugin begin only when those that they wait for have "
             "ended, not when all blocks of these have begun.")
GGML_ENV_ROW(GGML_CUDA_DISABLE_REORDER, "0",
             "1: the CUDA plugin computes the nodes of a graph in the order in which they come, though "
             "another one would need fewer launches and waits.")
GGML_ENV_ROW(GGML_CUDA_P2P, "links",
             "1: kernels of the CUDA plugin reach the memory of all other devices that the driver says "
             "they can; 0: of none; not set: of those with a link of their own (NVLink).")
GGML_ENV_ROW(GGML_CUDA_REGISTER_HOST, "0",
             "1: the CUDA plugin makes buffers over the application's own memory, which it pins for the "
             "time: for fast copies, as kernels don't work on it.")
GGML_ENV_ROW(GGML_CUDA_MEMORY_LIMIT, "none",
             "Bytes that the CUDA plugin may have of each device's memory, perhaps with K, M or G: the "
             "device seems to be of that size. Code and what the driver keeps are not counted.")
GGML_ENV_ROW(GGML_CUDA_NO_VMM, "0",
             "1: the CUDA plugin uses none of the driver's memory that grows in place: every buffer is an "
             "allocation of the driver's, as tools that look for accesses out of bounds want it, and no "
             "memory can be shared with other processes.")
GGML_ENV_ROW(GGML_CUDA_NO_PINNED, "0", "1: devices of the CUDA plugin have no pinned memory of the host.")
GGML_ENV_ROW(GGML_METAL_CACHE, "XDG_CACHE_HOME/ggml-host, ~/.cache/ggml-host",
             "Absolute directory in which the Metal plugin keeps compiled kernels; 0: nowhere.")
GGML_ENV_ROW(GGML_METAL_DISABLE_FUSION, "none",
             "Comma-separated list of what the Metal plugin computes node by node, although one "
             "launch could do it: norm, add_chain, mask; 1: everything.")
GGML_ENV_ROW(GGML_METAL_DISABLE_REORDER, "0",
             "1: the Metal plugin computes the nodes of a graph in the order in which they come, though "
             "another one would need fewer launches and waits.")
GGML_ENV_ROW(GGML_MPI_NODES, "every other process of the job",
             "How many ggml-node the MPI plugin waits for at start; docs/plugins/mpi.md says when to set it.")
GGML_ENV_ROW(GGML_MPI_START_SECONDS, "30",
             "How long the MPI plugin waits for them, from when it starts MPI.")
GGML_ENV_ROW(GGML_MPI_DEADLINE, "30",
             "Seconds after which a node of which nothing is heard, while it owes an answer, is lost.")
GGML_ENV_ROW(GGML_MPI_DEVICE_MEMORY, "auto",
             "auto, off: whether ggml-node lets an MPI that is CUDA-aware read and write tensors in a GPU's "
             "memory itself, where that can be.")
GGML_ENV_ROW(GGML_MPI_JOIN, "none",
             "File in which the MPI plugin finds the port of a node of another job that joins "
             "(ggml-node --join), while the program runs. Who may write there lends devices.")
#undef GGML_ENV_ROW
