// SPDX-License-Identifier: MIT
// Logs placement and splits for GGML_SCHED_DEBUG.
#include "base/env.h"
#include "sched/sched.h"

// One line per split, and one per copy that it makes.
static void log_split(const struct ggml_backend_sched *sched, int32_t number) {
    const struct sched_split *split = &sched->partition.splits[number];
    GGML_LOG_DEBUG("split %d: %s, nodes %d to %d, %d inputs\n", (int)number,
                   sched_stream_label(&sched->setup, split->backend), (int)split->i_start,
                   (int)split->i_end - 1, (int)split->n_inputs);
    for (int32_t i = 0; i < split->n_inputs; ++i) {
        const struct sched_copy *input =
            &sched->partition.copies[sched->partition.inputs[split->first_input + i]];
        const struct sched_value *value = &sched->graph.values[input->value];
        GGML_LOG_DEBUG(
            "    input %s (%zu bytes) from %s\n", value->tensor->name, ggml_nbytes(value->tensor),
            sched_stream_label(&sched->setup, sched->placement.placed[input->value].backend));
    }
}

// One line per node, with the reason for its place, and one per source.
static void log_node(const struct ggml_backend_sched *sched, int32_t node) {
    const struct sched_value *value = &sched->graph.values[node];
    GGML_LOG_DEBUG("node %d: %s %s (%zu bytes)%s on %s: %s\n", (int)node,
                   ggml_op_desc(value->tensor), value->tensor->name, ggml_nbytes(value->tensor),
                   value->tensor->flags & GGML_TENSOR_FLAG_COMPUTE ? "" : " not computed",
                   sched_stream_label(&sched->setup, sched->placement.placed[node].backend),
                   sched_reason_text(sched->placement.placed[node].reason));
    for (int32_t e = sched->graph.first_edge[node]; e < sched->graph.first_edge[node + 1]; ++e) {
        const int32_t src = sched->graph.edges[e].value;
        GGML_LOG_DEBUG("    source %s on %s\n", sched->graph.values[src].tensor->name,
                       sched_stream_label(&sched->setup, sched->placement.placed[src].backend));
    }
}

// The level is read for each graph, so that it can be changed while a program runs.
void sched_log(const struct ggml_backend_sched *sched, const struct ggml_cgraph *graph) {
    const char *level = ggml_env(GGML_ENV_GGML_SCHED_DEBUG);
    if (!level || strcmp(level, "0") == 0) return;
    GGML_LOG_DEBUG("scheduler: %d nodes in %d splits\n", graph->n_nodes,
                   (int)sched->partition.n_splits);
    for (int32_t i = 0; i < sched->partition.n_splits; ++i) {
        log_split(sched, i);
    }
    for (int32_t i = 0; i < sched->graph.n_nodes && strcmp(level, "1") != 0; ++i) {
        log_node(sched, i);
    }
}
