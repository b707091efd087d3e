// SPDX-License-Identifier: MIT
// ggml-plugin-host.h: what the host offers to each plugin: the host table, and the machine's
// topology.
//
// A part of ggml-plugin.h, where it is written how these structs grow. Thread tags are defined in
// ggml.h; a plugin may call every entry from its first line in ggml_backend_init until its shutdown
// returned, on any thread, also from inside another entry.
//
// Why a table: a plugin links nothing of the host, so that it loads into any host of the contract,
// and two hosts in one process do not mix.
#ifndef GGML_PLUGIN_HOST_H
#define GGML_PLUGIN_HOST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// What bounded the default number of threads.
enum ggml_thread_bound {
    GGML_THREAD_BOUND_CORES = 0,    // physical performance cores
    GGML_THREAD_BOUND_AFFINITY = 1, // allowed CPUs
    GGML_THREAD_BOUND_QUOTA = 2,    // cgroup CPU quota
    GGML_THREAD_BOUND_MINIMUM = 3,  // raised to 1
};

// The machine as a plugin needs to know it; `size` is set by the caller, who is given no more than
// that. Numbers are at least 1, sizes 0 where unknown. Does not change while the process runs.
struct ggml_host_topology {
    uint32_t size;                  // sizeof, set by the caller
    uint32_t n_packages;            // sockets
    uint32_t n_cores;               // physical, allowed to this process
    uint32_t n_performance_cores;   // of those, of the fastest kind
    uint32_t n_pus;                 // logical CPUs allowed to this process
    uint32_t n_numa_nodes;          // with memory that this process may use
    uint32_t default_threads;       // that compute best by themselves
    uint32_t default_threads_bound; // enum ggml_thread_bound
    uint64_t l1d_bytes;             // of one performance core; 0: unknown
    uint64_t l2_bytes;              // likewise
    uint64_t l3_bytes;              // likewise, though cores share it
    uint64_t cpu_features[2];       // by enum ggml_cpu_feature: CPU and operating system; [1] is 0
    uint64_t reserved[8];           // 0
};

// What the host offers to one plugin, valid until that plugin's shutdown returned. Every call
// passes the pointer that the plugin was given, by which the host knows who is calling; another
// plugin, or the same one after its shutdown, may be given another. It is also there while the
// plugin isn't attached yet (ggml-plugin-table.h): during its ggml_backend_init().
struct ggml_host_table {
    uint32_t size;            // bytes of the table that the host knows
    uint16_t contract_major;  // of the host; equal to the plugin's
    uint16_t contract_minor;  // may be above or below the plugin's
    const char *host_version; // of the host, for messages

    // Logs text at an enum ggml_log_level: whole lines, which GGML_LOG_LEVEL_CONT continues.
    // [any-thread]
    void (*log)(const struct ggml_host_table *host, int32_t level, const char *text);
    // Records why the current call fails, for the calling thread. [any-thread]
    void (*set_error)(const struct ggml_host_table *host, int32_t status, const char *text);
    // size > 0 bytes, aligned to a power of two; NULL on failure, which is not yet a failure of the
    // plugin's call: that is set_error. [any-thread]
    void *(*alloc)(const struct ggml_host_table *host, size_t size, size_t alignment);
    // Frees what alloc gave, be it that of another host in this process, and also when that one has
    // gone. NULL does nothing. [any-thread]
    void (*free)(const struct ggml_host_table *host, void *memory);
    // Fills out_topology; the first call may take milliseconds. [any-thread]
    int32_t (*get_topology)(const struct ggml_host_table *host,
                            struct ggml_host_topology *out_topology);
    // Binds the calling thread as worker `index` of `count`, spread over performance cores first. A
    // count of 0 undoes it. The place depends on index and count alone: no core is handed out, and
    // two plugins with as many workers share the same ones. [any-thread]
    int32_t (*bind_thread)(const struct ggml_host_table *host, uint32_t index, uint32_t count);
    // Binds the calling thread to the logical CPUs of a bit mask. [any-thread]
    int32_t (*bind_thread_mask)(const struct ggml_host_table *host, const uint64_t *mask,
                                size_t n_words);
    // Value of an environment variable, or NULL: of those that the host documents, and of the
    // plugin's own, GGML_<NAME>_* with the name of its note in capitals and '_' for what isn't a
    // letter or digit. Valid until the process changes its environment. NULL in programs with
    // raised privileges. [any-thread]
    const char *(*get_config)(const struct ggml_host_table *host, const char *name);
    // Extension table by string id, at least of this revision, or NULL. Ids that begin with "ggml."
    // are this contract's, others with a domain of their author ("org.example.name"), be it
    // the application or a plugin; one that is still a draft keeps its id when it is done.
    // [any-thread]
    const void *(*get_extension)(const struct ggml_host_table *host, const char *id,
                                 uint32_t min_revision);
    void *reserved[16];
};

#ifdef __cplusplus
}
#endif

#endif
