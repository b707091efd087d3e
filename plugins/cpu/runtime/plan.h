// SPDX-License-Identifier: MIT
// A graph prepared for computing: one step per node that computes something, with its kernel.
#ifndef CPU_PLAN_H
#define CPU_PLAN_H

#include "ggml-cpu.h"
#include "ggml-graph.h"
#include "runtime/kernel_list.h"
#include "runtime/profile.h"

struct cpu_step {
    struct ggml_tensor *node;        // or the last of several that are computed together
    const struct ggml_tensor *first; // of them
    cpu_kernel_fn kernel;
    bool parallel;  // on all threads; otherwise on thread 0
    bool takes;     // whoever is there may take pieces, see cpu_task_take()
    bool splits;    // any number of threads could compute it one after the other
    bool barrier;   // all threads meet before it
    int first_node; // index in the graph of the first node that it computes
    int n_nodes;    // that it computes
};

// Zero-initialised is empty and ready.
struct cpu_plan {
    struct cpu_step *steps;
    int n_steps;
    int capacity;
    bool parallel; // any step is
    size_t work_size;
    int n_threads; // planned for
    bool use_ref;
    bool exact, bf16, vnni; // see struct cpu_task
    uint64_t uid;           // of the graph; 0: must be made for each computation
    int n_nodes;
};

// How a plan is computed.
struct cpu_run {
    struct ggml_threadpool *pool;       // NULL: one is borrowed
    void *work;                         // plan->work_size bytes, 64-byte aligned
    ggml_abort_callback abort_callback; // asked after each node, or NULL
    void *abort_data;
    struct cpu_profile *profile; // NULL: no times are recorded
};

// Prepares the graph for n_threads; nothing to do if it is the one prepared before. On failure the
// plan is empty and the status GGML_STATUS_FAILED (a node that no kernel computes, an invalid
// graph) or GGML_STATUS_ALLOC_FAILED, after telling the host. [stream]
enum ggml_status cpu_plan_make(struct cpu_plan *plan, const struct ggml_graph *graph, int n_threads,
                               bool use_ref);
// Computes it; operands' data may have moved since. [stream]
enum ggml_status cpu_plan_run(const struct cpu_plan *plan, const struct cpu_run *run);
// Whether the environment asks for products without rounded operands. [any-thread]
bool cpu_rounding_is_disabled(void);
void cpu_plan_free(struct cpu_plan *plan);

#endif
