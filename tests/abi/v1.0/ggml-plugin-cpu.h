// SPDX-License-Identifier: MIT
// ggml-plugin-cpu.h: what a backend of type CPU returns from ggml_backend_reg_get_proc_address()
// under GGML_CPU_API_PROC, so that the functions of ggml-cpu.h work with whichever CPU plugin is
// loaded. It is the address of a static struct ggml_cpu_api.
//
// Why: ggml's programs call functions of the CPU backend by name. Here the backend is a plugin of
// which several may be there, so the host's functions of these names look it up and pass the call
// on.
#ifndef GGML_PLUGIN_CPU_H
#define GGML_PLUGIN_CPU_H

#include "ggml-cpu.h"
#include "ggml-graph.h"

#ifdef __cplusplus
extern "C" {
#endif

// Name to ask for, and what these headers know of the table.
#define GGML_CPU_API_PROC "ggml_cpu_api"
#define GGML_CPU_API_REVISION 1

// Append-only: read a member only if `size` covers it. Arguments are checked by the caller: no
// pointer is NULL unless said.
struct ggml_cpu_api {
    uint32_t size;     // bytes of the table that the plugin knows
    uint32_t revision; // GGML_CPU_API_REVISION when it was built
    // A pool whose threads start with the first graph; NULL and set_error on failure. [any-thread]
    struct ggml_threadpool *(*threadpool_new)(const struct ggml_threadpool_params *params);
    // Ends its threads; no graph may be running. [stream]
    void (*threadpool_free)(struct ggml_threadpool *pool);
    int (*threadpool_get_n_threads)(struct ggml_threadpool *pool);
    // Waiting threads sleep at once; the next graph or resume ends that. [any-thread]
    void (*threadpool_pause)(struct ggml_threadpool *pool);
    void (*threadpool_resume)(struct ggml_threadpool *pool);
    // See ggml_graph_plan(); pool may be NULL. [any-thread]
    struct ggml_cplan (*graph_plan)(const struct ggml_graph *graph, int n_threads,
                                    struct ggml_threadpool *pool);
    // See ggml_graph_compute(). [stream]
    enum ggml_status (*graph_compute)(const struct ggml_graph *graph,
                                      const struct ggml_cplan *cplan);
    // By type, or NULL where there is none; constant. [any-thread]
    const struct ggml_type_traits_cpu *(*type_traits)(enum ggml_type type);
    // Features (GGML_CPU_BIT) of the code in use, and its level's name. [any-thread]
    uint64_t (*features)(void);
    const char *(*level)(void);
};

// Every struct ggml_threadpool begins with it, so that a pool finds its way back to its plugin.
struct ggml_threadpool_head {
    const struct ggml_cpu_api *api; // of the plugin that made it
};

#ifdef __cplusplus
}
#endif

#endif
