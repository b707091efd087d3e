// SPDX-License-Identifier: MIT
// Loads the virtual devices, spreads the layers of a transformer over them, and compares the
// logits with those of the CPU alone.
#include "rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

const struct transformer_shape rig_shape = {
    .layers = 8,
    .width = 64,
    .heads = 4,
    .kv_heads = 2,
    .hidden = 96,
    .vocabulary = 40,
    .capacity = 32,
    .type = GGML_TYPE_F16,
};

static ggml_backend_buffer_type_t on_device(void *user, int layer) {
    struct rig *rig = user;
    const int layers = rig->reference->shape.layers;
    int device = layer == layers ? rig->n_devices - 1 : layer * rig->n_devices / layers;
    if (layer < 0) device = rig->embedding_device;
    return ggml_backend_get_default_buffer_type(rig->streams[device]);
}

static ggml_backend_buffer_type_t on_cpu(void *user, int layer) {
    (void)layer;
    struct rig *rig = user;
    return ggml_backend_get_default_buffer_type(rig->streams[rig->n_devices]);
}

void rig_open(struct rig *rig, int n_devices, const struct transformer_shape *shape,
              void (*change)(struct virtual_config *config), bool parallel) {
    char options[32];
    memset(rig, 0, sizeof(*rig));
    snprintf(options, sizeof(options), "devices=%d", n_devices);
    virtual_open(&rig->host, options);
    rig->host.default_config(&rig->config);
    if (change) change(&rig->config);
    assert_true(rig->host.configure(-1, &rig->config));
    rig->n_devices = n_devices;
    rig->embedding_device = parallel ? 0 : n_devices - 1;
    for (int i = 0; i < n_devices; ++i) {
        rig->streams[i] = ggml_backend_dev_init(virtual_device(&rig->host, (size_t)i), NULL);
        assert_non_null(rig->streams[i]);
    }
    rig->streams[n_devices] = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, NULL);
    assert_non_null(rig->streams[n_devices]);
    rig->reference = transformer_new(shape, 1, on_cpu, NULL, rig);
    assert_non_null(rig->reference);
    rig->model = transformer_new(shape, 1, on_device, NULL, rig);
    assert_non_null(rig->model);
    rig->sched = ggml_backend_sched_new(rig->streams, NULL, n_devices + 1, 100, parallel, false);
    assert_non_null(rig->sched);
    rig->host.log_clear();
}

void rig_close(struct rig *rig) {
    ggml_backend_sched_free(rig->sched);
    transformer_free(rig->model);
    transformer_free(rig->reference);
    for (int i = 0; i <= rig->n_devices; ++i) {
        ggml_backend_free(rig->streams[i]);
    }
    assert_int_equal(virtual_close(&rig->host), 0);
}

static float *logits_of(const struct transformer_graph *graph) {
    float *logits = malloc(ggml_nbytes(graph->logits));
    assert_non_null(logits);
    ggml_backend_tensor_get(graph->logits, logits, 0, ggml_nbytes(graph->logits));
    return logits;
}

float *rig_reference(struct rig *rig, int n_tokens, int n_past, uint64_t seed) {
    ggml_backend_t cpu = rig->streams[rig->n_devices];
    struct transformer_graph graph;
    assert_true(transformer_graph_build(rig->reference, n_tokens, n_past, &graph));
    ggml_gallocr_t galloc = ggml_gallocr_new(ggml_backend_get_default_buffer_type(cpu));
    assert_true(ggml_gallocr_alloc_graph(galloc, graph.graph));
    transformer_set_inputs(rig->reference, &graph, seed);
    assert_int_equal(ggml_backend_graph_compute(cpu, graph.graph), GGML_STATUS_SUCCESS);
    float *logits = logits_of(&graph);
    ggml_gallocr_free(galloc);
    transformer_graph_free(&graph);
    return logits;
}

float *rig_run(struct rig *rig, int n_tokens, int n_past, uint64_t seed) {
    struct transformer_graph graph;
    float *logits = NULL;
    ggml_backend_sched_reset(rig->sched);
    assert_true(transformer_graph_build(rig->model, n_tokens, n_past, &graph));
    if (ggml_backend_sched_alloc_graph(rig->sched, graph.graph)) {
        transformer_set_inputs(rig->model, &graph, seed);
        if (ggml_backend_sched_graph_compute(rig->sched, graph.graph) == GGML_STATUS_SUCCESS) {
            logits = logits_of(&graph);
        }
    }
    transformer_graph_free(&graph);
    return logits;
}

void rig_check(struct rig *rig, int n_tokens, int n_past, uint64_t seed) {
    float *expected = rig_reference(rig, n_tokens, n_past, seed);
    float *logits = rig_run(rig, n_tokens, n_past, seed);
    if (!logits) fail_msg("%s", ggml_last_error());
    const size_t n = (size_t)n_tokens * (size_t)rig->model->shape.vocabulary;
    for (size_t i = 0; i < n; ++i) {
        if (memcmp(&logits[i], &expected[i], sizeof(logits[i])) == 0) continue;
        fail_msg("logit %zu is %g instead of %g", i, (double)logits[i], (double)expected[i]);
    }
    free(logits);
    free(expected);
}
