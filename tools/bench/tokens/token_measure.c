// SPDX-License-Identifier: MIT
// The graphs of a llama, computed whole and node by node.
#define _GNU_SOURCE
#include "bench/tokens/token_measure.h"

#include <stdlib.h>

#include "bench/bench.h"
#include "bench/roofline.h"

bool token_machine_init(struct token_machine *machine, ggml_backend_dev_t device, int threads) {
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    ggml_backend_dev_t devices[] = {device, cpu};
    *machine = (struct token_machine){0};
    for (int i = 0; i < (cpu && cpu != device ? 2 : 1); ++i) {
        ggml_backend_t stream = ggml_backend_dev_init(devices[i], NULL);
        if (!stream) return false;
        machine->streams[machine->n_streams++] = stream;
        ggml_backend_set_n_threads_t set_threads =
            (ggml_backend_set_n_threads_t)(uintptr_t)ggml_backend_reg_get_proc_address(
                ggml_backend_dev_backend_reg(devices[i]), "ggml_backend_set_n_threads");
        if (set_threads && threads > 0) set_threads(stream, threads);
    }
    return true;
}

void token_machine_measure(struct token_machine *machine, ggml_backend_dev_t device) {
    const enum ggml_backend_dev_type type = ggml_backend_dev_type(device);
    int ignored;
    if (type != GGML_BACKEND_DEVICE_TYPE_CPU && type != GGML_BACKEND_DEVICE_TYPE_ACCEL) return;
    machine->flops = bench_fma_peak(&ignored);
    machine->reads = bench_read_peak(bench_cold_bytes());
}

void token_machine_free(struct token_machine *machine) {
    for (int i = 0; i < machine->n_streams; ++i)
        ggml_backend_free(machine->streams[i]);
}

// --- measuring

// The node that is being timed.
struct step {
    struct token_timing *timing;
    double start;
};

// The scheduler computes node by node, as after each it is asked for.
static bool count_node(struct ggml_tensor *node, bool ask, void *user) {
    struct step *step = user;
    if (ask) {
        step->start = bench_ns();
        return true;
    }
    const double seconds = (bench_ns() - step->start) * 1e-9;
    step->timing->by_op[node->op] += seconds;
    step->timing->stepwise += seconds;
    return true;
}

// For qsort(), ascending.
static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Inputs are set before every run: their memory serves other tensors once they have been read.
static bool time_runs(ggml_backend_sched_t sched, const struct llama_graph *graph, int runs,
                      struct token_timing *out_timing) {
    double times[TOKEN_MAX_RUNS], busy = 0;
    for (int i = -1; i < runs; ++i) { // the first one is not counted
        llama_graph_set_inputs(graph);
        const double start = bench_ns(), busy_start = bench_busy_ns();
        if (ggml_backend_sched_graph_compute(sched, graph->graph) != GGML_STATUS_SUCCESS)
            return false;
        if (i < 0) continue;
        times[i] = (bench_ns() - start) * 1e-9;
        busy += bench_busy_ns() - busy_start;
    }
    qsort(times, (size_t)runs, sizeof(times[0]), compare_doubles);
    out_timing->best = times[0];
    out_timing->busy = busy * 1e-9 / runs;
    out_timing->median = times[runs / 2];
    return true;
}

bool token_measure(const struct token_machine *machine, const struct llama *llama, int n_tokens,
                   int n_past, int runs, struct token_timing *out_timing) {
    struct llama_graph graph;
    bool good = llama_graph_init(&graph, llama, n_tokens, n_past);
    ggml_backend_t streams[2] = {machine->streams[0], machine->streams[1]};
    ggml_backend_sched_t sched =
        good ? ggml_backend_sched_new(streams, NULL, machine->n_streams,
                                      (size_t)ggml_graph_size(graph.graph), false, false)
             : NULL;
    struct step step = {out_timing, 0};
    *out_timing = (struct token_timing){0};
    good = sched && ggml_backend_sched_alloc_graph(sched, graph.graph);
    good = good && time_runs(sched, &graph, runs, out_timing);
    if (good) {
        llama_graph_set_inputs(&graph);
        ggml_backend_sched_set_eval_callback(sched, count_node, &step);
        good = ggml_backend_sched_graph_compute(sched, graph.graph) == GGML_STATUS_SUCCESS;
    }
    ggml_backend_sched_free(sched);
    llama_graph_free(&graph);
    return good;
}

bool token_measure_launching(const struct token_machine *machine, const struct llama_shape *of,
                             int runs, struct token_timing *out_timing) {
    struct llama_shape shape = *of;
    shape.width = shape.hidden = shape.vocabulary = shape.state = 32;
    shape.heads = 2;
    shape.kv_heads = 1;
    ggml_backend_buffer_type_t buft = ggml_backend_get_default_buffer_type(machine->streams[0]);
    struct llama llama;
    const bool good = llama_init(&llama, &shape, GGML_TYPE_F32, 1, buft) &&
                      token_measure(machine, &llama, 1, 0, runs, out_timing);
    llama_free(&llama);
    return good;
}

double token_prompt_flops(const struct llama *llama, int n_tokens) {
    const double output = 2.0 * llama->shape.width * llama->shape.vocabulary;
    return (llama->flops - output) * n_tokens + output;
}
