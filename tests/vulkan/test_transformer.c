// SPDX-License-Identifier: MIT
// The generated transformer, dense and with experts, on the Vulkan device alone and with its layers
// split between that and the CPU, against the CPU alone: a prompt, then tokens one by one.
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdlib.h>

#include "ggml-cpu.h"
#include "support/transformer.h"
#include "support/vulkan_test.h"

enum { PROMPT = 11, STEPS = 4 };

// Sums in another order, and exponentials of another library: the squared error over the squared
// values.
static const double TOLERANCE = 1e-6;

static ggml_backend_dev_t device;
static ggml_backend_t streams[2]; // Vulkan, CPU
static int n_vulkan_layers;

static const struct transformer_shape quantised = {.layers = 2,
                                                   .width = 256,
                                                   .heads = 4,
                                                   .kv_heads = 2,
                                                   .hidden = 256,
                                                   .vocabulary = 64,
                                                   .capacity = 32,
                                                   .type = GGML_TYPE_Q4_K};
static const struct transformer_shape experts = {.layers = 2,
                                                 .width = 64,
                                                 .heads = 4,
                                                 .kv_heads = 2,
                                                 .hidden = 96,
                                                 .vocabulary = 40,
                                                 .capacity = 32,
                                                 .experts = 4,
                                                 .type = GGML_TYPE_F16};

static int open_all(void **state) {
    ggml_backend_reg_t reg = vulkan_start("record", "0");
    (void)state;
    device = vulkan_device(reg);
    streams[0] = device ? ggml_backend_dev_init(device, NULL) : NULL;
    streams[1] = ggml_backend_cpu_init();
    setenv("GGML_CPU_DISABLE_ROUNDING", "1", 1); // rounds no column of a token
    return streams[0] && streams[1] ? 0 : -1;
}

static int close_all(void **state) {
    (void)state;
    ggml_backend_free(streams[0]);
    ggml_backend_free(streams[1]);
    vulkan_stop();
    return vulkan_n_messages();
}

static ggml_backend_buffer_type_t on_cpu(void *user, int layer) {
    (void)user;
    (void)layer;
    return ggml_backend_cpu_buffer_type();
}

static ggml_backend_buffer_type_t on_both(void *user, int layer) {
    (void)user;
    return layer < n_vulkan_layers ? ggml_backend_dev_buffer_type(device)
                                   : ggml_backend_cpu_buffer_type();
}

static void expect_supported(const struct transformer_graph *graph) {
    for (int i = 0; i < ggml_graph_n_nodes(graph->graph); ++i) {
        const struct ggml_tensor *node = ggml_graph_node(graph->graph, i);
        if (!ggml_backend_dev_supports_op(device, node))
            fail_msg("%s '%s' is not supported", ggml_op_name(node->op), node->name);
    }
}

static float *compute(struct transformer *model, ggml_backend_sched_t sched, int n_tokens,
                      int n_past, bool all_on_device) {
    struct transformer_graph graph;
    assert_true(transformer_graph_build(model, n_tokens, n_past, &graph));
    if (all_on_device) expect_supported(&graph);
    ggml_backend_sched_reset(sched);
    if (!ggml_backend_sched_alloc_graph(sched, graph.graph)) fail_msg("%s", ggml_last_error());
    transformer_set_inputs(model, &graph, 5);
    if (ggml_backend_sched_graph_compute(sched, graph.graph) != GGML_STATUS_SUCCESS)
        fail_msg("%s", ggml_last_error());
    float *logits = malloc(ggml_nbytes(graph.logits));
    ggml_backend_tensor_get(graph.logits, logits, 0, ggml_nbytes(graph.logits));
    transformer_graph_free(&graph);
    return logits;
}

static void expect_close(const float *got, const float *expected, size_t n) {
    double error = 0, scale = 0;
    for (size_t i = 0; i < n; ++i) {
        const double difference = (double)got[i] - (double)expected[i];
        if (!isfinite(got[i])) fail_msg("logit %zu is %g", i, (double)got[i]);
        error += difference * difference;
        scale += (double)expected[i] * (double)expected[i];
    }
    printf("# error %.3g\n", error / scale);
    assert_true(scale > 0);
    assert_true(error <= TOLERANCE * scale);
}

static void check(const struct transformer_shape *shape, int layers_on_device) {
    n_vulkan_layers = layers_on_device;
    const bool all = layers_on_device > shape->layers;
    struct transformer *reference = transformer_new(shape, 1, on_cpu, NULL, NULL);
    struct transformer *model = transformer_new(shape, 1, on_both, NULL, NULL);
    ggml_backend_sched_t cpu = ggml_backend_sched_new(&streams[1], NULL, 1, 0, false, true);
    ggml_backend_sched_t both = ggml_backend_sched_new(streams, NULL, 2, 0, false, false);
    assert_non_null(reference);
    if (!model) fail_msg("%s", ggml_last_error());
    assert_true(cpu && both);
    for (int step = 0, past = 0; step <= STEPS; ++step) {
        const int n = step == 0 ? PROMPT : 1;
        float *expected = compute(reference, cpu, n, past, false);
        float *got = compute(model, both, n, past, all);
        expect_close(got, expected, (size_t)n * (size_t)shape->vocabulary);
        free(got);
        free(expected);
        past += n;
    }
    ggml_backend_sched_free(both);
    ggml_backend_sched_free(cpu);
    transformer_free(model);
    transformer_free(reference);
}

static void test_dense_on_the_device(void **state) {
    (void)state;
    check(&transformer_small, transformer_small.layers + 1);
}

static void test_quantised_on_the_device(void **state) {
    (void)state;
    check(&quantised, quantised.layers + 1);
}

static void test_experts_on_the_device(void **state) {
    (void)state;
    check(&experts, experts.layers + 1);
}

static void test_dense_on_both(void **state) {
    (void)state;
    check(&transformer_small, 2);
}

static void test_experts_on_both(void **state) {
    (void)state;
    check(&experts, 1);
}

struct figures {
    int n_recorded, n_dispatches, n_barriers;
};

// Of one token after the prompt, computed several times by graphs that are built anew.
static struct figures repeat(struct transformer *model) {
    ggml_backend_t both[2] = {ggml_backend_dev_init(device, NULL), streams[1]};
    assert_non_null(both[0]);
    ggml_backend_sched_t sched = ggml_backend_sched_new(both, NULL, 2, 0, false, false);
    assert_non_null(sched);
    free(compute(model, sched, PROMPT, 0, true));
    const struct figures before = {vulkan_n_recorded(), vulkan_n_dispatches(), vulkan_n_barriers()};
    for (int i = 0; i < STEPS; ++i)
        free(compute(model, sched, 1, PROMPT, true));
    ggml_backend_sched_free(sched);
    ggml_backend_free(both[0]);
    return (struct figures){vulkan_n_recorded() - before.n_recorded,
                            vulkan_n_dispatches() - before.n_dispatches,
                            vulkan_n_barriers() - before.n_barriers};
}

// And what was recorded once is found again, though the graphs are put in another order.
static void test_order_saves_barriers(void **state) {
    (void)state;
    n_vulkan_layers = transformer_small.layers + 1;
    struct transformer *model = transformer_new(&transformer_small, 1, on_both, NULL, NULL);
    assert_non_null(model);
    const struct figures improved = repeat(model);
    setenv("GGML_VULKAN_DISABLE_REORDER", "1", 1);
    const struct figures plain = repeat(model);
    unsetenv("GGML_VULKAN_DISABLE_REORDER");
    printf("# %d layers: %d launches, %d barriers; %d launches, %d barriers\n",
           transformer_small.layers, plain.n_dispatches, plain.n_barriers, improved.n_dispatches,
           improved.n_barriers);
    assert_int_equal(plain.n_recorded, 1);
    assert_int_equal(improved.n_recorded, 1);
    assert_true(improved.n_dispatches <= plain.n_dispatches);
    assert_true(improved.n_barriers <= plain.n_barriers - 3 * transformer_small.layers);
    transformer_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense_on_the_device),
        cmocka_unit_test(test_quantised_on_the_device),
        cmocka_unit_test(test_experts_on_the_device),
        cmocka_unit_test(test_dense_on_both),
        cmocka_unit_test(test_experts_on_both),
        cmocka_unit_test(test_order_saves_barriers),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
