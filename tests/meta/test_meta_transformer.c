// SPDX-License-Identifier: MIT
// A transformer, tensor-parallel over several devices: results as on one, bytes as predicted.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ggml-impl.h"
#include "support/transformer.h"
#include "virtual_host.h"

enum { N_TOKENS = 6, N_LAYERS = 2 };

static struct virtual_host host;
static int n_fallbacks;

// A model spread over devices by weight.
struct parallel {
    struct transformer_shape shape;
    size_t n_devices;
    int weights[16];
};

// --- split plan ----------------------------------------------------------------------------------

struct name_rule {
    const char *suffix;
    int axis;
    char unit; // of shares: 'q' the query heads of a group, 'k' a head, 'h' hidden units
};

static const struct name_rule name_rules[] = {
    {".wq", 1, 'q'},      {".wk", 1, 'k'},    {".wv", 1, 'k'},   {".wo", 0, 'q'},
    {".gate", 1, 'h'},    {".up", 1, 'h'},    {".down", 0, 'h'}, {".k_cache", 0, 'k'},
    {".v_cache", 0, 'k'}, {"output", 1, '1'},
};

static bool ends_with(const char *name, const char *suffix) {
    const size_t n = strlen(name), m = strlen(suffix);
    return n >= m && strcmp(name + n - m, suffix) == 0;
}

static int64_t unit_of(const struct parallel *p, char unit) {
    const int head = p->shape.width / p->shape.heads;
    if (unit == 'k') return head;
    if (unit == 'q') return (int64_t)head * p->shape.heads / p->shape.kv_heads;
    return unit == 'h' ? 32 : 1;
}

static struct ggml_backend_meta_split_state split(const struct ggml_tensor *tensor, void *user) {
    const struct parallel *p = user;
    struct ggml_backend_meta_split_state state = {.axis = GGML_BACKEND_SPLIT_AXIS_MIRRORED,
                                                  .n_segments = 1};
    state.nr[0] = 1;
    for (size_t i = 0; i < sizeof(name_rules) / sizeof(name_rules[0]); ++i) {
        if (!ends_with(tensor->name, name_rules[i].suffix)) continue;
        const int64_t unit = unit_of(p, name_rules[i].unit);
        const int64_t n_units = tensor->ne[name_rules[i].axis] / unit;
        int64_t total = 0, sum = 0, done = 0;
        for (size_t j = 0; j < p->n_devices; ++j)
            total += p->weights[j];
        state.axis = (enum ggml_backend_meta_split_axis)name_rules[i].axis;
        for (size_t j = 0; j < p->n_devices; ++j) {
            sum += p->weights[j];
            state.ne[j] = (n_units * sum / total - done) * unit;
            done = n_units * sum / total;
        }
    }
    return state;
}

static ggml_backend_dev_t parallel_device(struct parallel *p) {
    ggml_backend_dev_t devices[16];
    for (size_t j = 0; j < p->n_devices; ++j)
        devices[j] = virtual_device(&host, j);
    return ggml_backend_meta_device(devices, p->n_devices, split, p);
}

// --- computing -----------------------------------------------------------------------------------

static ggml_backend_buffer_type_t place(void *user, int layer) {
    (void)layer;
    return ggml_backend_dev_buffer_type(user);
}

struct session {
    ggml_backend_t stream;
    ggml_gallocr_t galloc;
    struct transformer *model;
};

static void session_begin(struct session *s, ggml_backend_dev_t device,
                          const struct transformer_shape *shape) {
    s->stream = ggml_backend_dev_init(device, NULL);
    assert_non_null(s->stream);
    s->galloc = ggml_gallocr_new(ggml_backend_dev_buffer_type(device));
    s->model = transformer_new(shape, 1, place, NULL, device);
    if (!s->model) fail_msg("%s", ggml_last_error());
}

static void session_end(struct session *s) {
    ggml_backend_free(s->stream);
    ggml_gallocr_free(s->galloc);
    transformer_free(s->model);
}

// What the devices did for the last step.
static struct traffic {
    size_t n_reductions, n_copies, n_host;
    uint64_t reduced, copied;
} traffic;

static void count_traffic(void) {
    traffic.n_reductions = virtual_count(&host, VIRTUAL_CALL_REDUCE, -1, &traffic.reduced);
    traffic.n_copies = virtual_count(&host, VIRTUAL_CALL_COPY, -1, &traffic.copied);
    traffic.n_host = virtual_count(&host, VIRTUAL_CALL_GET, -1, NULL) +
                     virtual_count(&host, VIRTUAL_CALL_SET, -1, NULL);
}

// Logits of n_tokens after n_past; the caller frees them.
static float *step(struct session *s, int n_tokens, int n_past) {
    struct transformer_graph graph;
    assert_true(transformer_graph_build(s->model, n_tokens, n_past, &graph));
    if (!ggml_gallocr_alloc_graph(s->galloc, graph.graph)) fail_msg("%s", ggml_last_error());
    transformer_set_inputs(s->model, &graph, 7u + (uint64_t)n_past);
    host.log_clear();
    ggml_clear_error();
    if (ggml_backend_graph_compute(s->stream, graph.graph) != GGML_STATUS_SUCCESS) {
        fail_msg("%s", ggml_last_error());
    }
    assert_int_equal(virtual_print_violations(&host), 0);
    count_traffic();
    float *logits = malloc(ggml_nbytes(graph.logits));
    assert_non_null(logits);
    ggml_backend_tensor_get(graph.logits, logits, 0, ggml_nbytes(graph.logits));
    assert_string_equal(ggml_last_error(), "");
    transformer_graph_free(&graph);
    return logits;
}

static double difference(const float *a, const float *b, int n) {
    double largest = 0, worst = 0;
    for (int i = 0; i < n; ++i) {
        assert_true(isfinite(a[i]) && isfinite(b[i]));
        largest = fmax(largest, fabs((double)a[i]));
        worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
    }
    return worst / largest;
}

// --- bytes ---------------------------------------------------------------------------------------

// Two sums per layer: after the attention and after the hidden layer.
static void check_reduced_bytes(const struct parallel *p, int n_tokens, bool communicator) {
    const size_t n = p->n_devices;
    const uint64_t sum_bytes = (uint64_t)p->shape.width * (uint64_t)n_tokens * sizeof(float);
    assert_int_equal(traffic.n_host, 0);
    if (communicator) {
        assert_int_equal(traffic.n_reductions, n > 1 ? 2 * N_LAYERS * n : 0);
        assert_int_equal(traffic.reduced, traffic.n_reductions * sum_bytes);
        assert_int_equal(traffic.n_copies, 0);
        return;
    }
    size_t power = 1, steps = 0;
    for (; 2 * power <= n; power *= 2)
        ++steps;
    const size_t per_sum = power * steps + 2 * (n - power);
    assert_int_equal(traffic.n_reductions, 0);
    assert_int_equal(traffic.n_copies, 2 * N_LAYERS * per_sum);
    assert_int_equal(traffic.copied, traffic.n_copies * sum_bytes);
}

static bool every_device_has_work(const struct parallel *p) {
    for (size_t j = 0; j < p->n_devices; ++j) {
        if (p->weights[j] == 0) return false;
    }
    return p->n_devices <= (size_t)p->shape.kv_heads;
}

static void compare(struct parallel *p, bool communicator) {
    struct session one, many;
    struct virtual_config config;
    host.default_config(&config);
    config.communicator = communicator;
    assert_true(host.configure(-1, &config));
    session_begin(&one, virtual_device(&host, 0), &p->shape);
    session_begin(&many, parallel_device(p), &p->shape);
    n_fallbacks = 0;
    for (int k = 0; k < 3; ++k) { // a prompt, then single tokens
        const int n_tokens = k == 0 ? N_TOKENS : 1;
        const int n_past = k == 0 ? 0 : N_TOKENS + k - 1;
        float *expected = step(&one, n_tokens, n_past);
        float *logits = step(&many, n_tokens, n_past);
        if (communicator || every_device_has_work(p)) {
            check_reduced_bytes(p, n_tokens, communicator);
        }
        const double error = difference(expected, logits, n_tokens * p->shape.vocabulary);
        if (!(error < 2e-5)) fail_msg("%zu devices, step %d: off by %g", p->n_devices, k, error);
        free(expected);
        free(logits);
    }
    assert_int_equal(n_fallbacks, 0);
    session_end(&one);
    session_end(&many);
}

// --- tests ---------------------------------------------------------------------------------------

static const struct transformer_shape wide = {.layers = N_LAYERS,
                                              .width = 256,
                                              .heads = 16,
                                              .kv_heads = 8,
                                              .hidden = 256,
                                              .vocabulary = 50,
                                              .capacity = 16,
                                              .type = GGML_TYPE_F32};
static const struct transformer_shape few_heads = {.layers = N_LAYERS,
                                                   .width = 128,
                                                   .heads = 8,
                                                   .kv_heads = 2,
                                                   .hidden = 96,
                                                   .vocabulary = 5,
                                                   .capacity = 16,
                                                   .type = GGML_TYPE_F32};
static const struct transformer_shape expert_layers = {.layers = N_LAYERS,
                                                       .width = 128,
                                                       .heads = 8,
                                                       .kv_heads = 4,
                                                       .hidden = 128,
                                                       .vocabulary = 50,
                                                       .capacity = 16,
                                                       .experts = 4,
                                                       .type = GGML_TYPE_F32};

static void compare_all(const struct transformer_shape *shape, bool communicator) {
    static struct parallel runs[64]; // meta devices live for the process
    static size_t n_runs;
    for (size_t n = 1; n <= 8; ++n) {
        struct parallel *p = &runs[n_runs++ % 64];
        *p = (struct parallel){.shape = *shape, .n_devices = n};
        for (size_t j = 0; j < n; ++j)
            p->weights[j] = 1;
        compare(p, communicator);
    }
    const int uneven[3][5] = {{5, 2, 1}, {1, 0, 3, 1}, {0, 2, 2, 1, 3}};
    for (size_t i = 0; i < 3; ++i) {
        struct parallel *p = &runs[n_runs++ % 64];
        *p = (struct parallel){.shape = *shape, .n_devices = 3 + i};
        memcpy(p->weights, uneven[i], sizeof(uneven[i]));
        compare(p, communicator);
    }
}

static void test_wide_with_communicator(void **state) {
    (void)state;
    compare_all(&wide, true);
}

static void test_wide_without_communicator(void **state) {
    (void)state;
    compare_all(&wide, false);
}

// Fewer heads, and fewer words, than devices.
static void test_weights_smaller_than_the_device_count(void **state) {
    (void)state;
    compare_all(&few_heads, true);
    compare_all(&few_heads, false);
}

static void test_experts(void **state) {
    (void)state;
    compare_all(&expert_layers, true);
}

static void test_without_events_and_peer_copies(void **state) {
    (void)state;
    static struct parallel p = {.n_devices = 5, .weights = {1, 1, 1, 1, 1}};
    struct session one, many;
    struct virtual_config config;
    p.shape = wide;
    host.default_config(&config);
    config.communicator = config.events = config.peer_copy = 0;
    assert_true(host.configure(-1, &config));
    session_begin(&one, virtual_device(&host, 0), &p.shape);
    session_begin(&many, parallel_device(&p), &p.shape);
    float *expected = step(&one, N_TOKENS, 0);
    float *logits = step(&many, N_TOKENS, 0);
    assert_true(difference(expected, logits, N_TOKENS * p.shape.vocabulary) < 2e-5);
    free(expected);
    free(logits);
    session_end(&one);
    session_end(&many);
}

// Each device holds its share of the matrices, not all of them.
static void test_memory_is_shared_out(void **state) {
    (void)state;
    static struct parallel p = {.n_devices = 4, .weights = {1, 1, 1, 1}};
    struct session one, many;
    uint64_t whole, part;
    p.shape = wide;
    host.log_clear();
    session_begin(&one, virtual_device(&host, 0), &p.shape);
    virtual_count(&host, VIRTUAL_CALL_ALLOC, 0, &whole);
    host.log_clear();
    session_begin(&many, parallel_device(&p), &p.shape);
    for (int j = 0; j < 4; ++j) {
        virtual_count(&host, VIRTUAL_CALL_ALLOC, j, &part);
        assert_true(part < whole / 4 + whole / 10);
    }
    session_end(&one);
    session_end(&many);
}

// A graph that is computed again needs no new plan: nothing waits for the host.
static void test_same_graph_again(void **state) {
    (void)state;
    static struct parallel p = {.n_devices = 3, .weights = {1, 1, 1}};
    struct session s;
    struct transformer_graph graph;
    struct virtual_config config;
    p.shape = wide;
    host.default_config(&config);
    assert_true(host.configure(-1, &config));
    session_begin(&s, parallel_device(&p), &p.shape);
    assert_true(transformer_graph_build(s.model, N_TOKENS, 0, &graph));
    assert_true(ggml_gallocr_alloc_graph(s.galloc, graph.graph));
    transformer_set_inputs(s.model, &graph, 7);
    assert_int_equal(ggml_backend_graph_compute(s.stream, graph.graph), GGML_STATUS_SUCCESS);
    transformer_set_inputs(s.model, &graph, 7); // later nodes had their memory
    host.log_clear();
    assert_int_equal(ggml_backend_graph_compute_async(s.stream, graph.graph), GGML_STATUS_SUCCESS);
    assert_int_equal(virtual_count(&host, VIRTUAL_CALL_SYNCHRONIZE, -1, NULL),
                     graph.graph->uid != 0 ? 0 : 3);
    ggml_backend_synchronize(s.stream);
    transformer_graph_free(&graph);
    session_end(&s);
}

// --- scheduler -----------------------------------------------------------------------------------

static void check_scheduled_step(struct session *one, struct session *many,
                                 ggml_backend_sched_t sched, int n_tokens, int n_past) {
    struct transformer_graph graph;
    float *expected = step(one, n_tokens, n_past);
    assert_true(transformer_graph_build(many->model, n_tokens, n_past, &graph));
    ggml_backend_sched_reset(sched);
    if (!ggml_backend_sched_alloc_graph(sched, graph.graph)) fail_msg("%s", ggml_last_error());
    transformer_set_inputs(many->model, &graph, 7u + (uint64_t)n_past);
    if (ggml_backend_sched_graph_compute(sched, graph.graph) != GGML_STATUS_SUCCESS) {
        fail_msg("%s", ggml_last_error());
    }
    float *logits = malloc(ggml_nbytes(graph.logits));
    assert_non_null(logits);
    ggml_backend_tensor_get(graph.logits, logits, 0, ggml_nbytes(graph.logits));
    assert_true(difference(expected, logits, n_tokens * many->model->shape.vocabulary) < 2e-5);
    free(expected);
    free(logits);
    transformer_graph_free(&graph);
}

static void test_under_the_scheduler(void **state) {
    (void)state;
    static struct parallel p = {.n_devices = 3, .weights = {2, 1, 1}};
    struct session one, many;
    struct virtual_config config;
    p.shape = wide;
    host.default_config(&config);
    assert_true(host.configure(-1, &config));
    session_begin(&one, virtual_device(&host, 0), &p.shape);
    session_begin(&many, parallel_device(&p), &p.shape);
    ggml_backend_t cpu = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, NULL);
    ggml_backend_t streams[] = {many.stream, cpu};
    ggml_backend_sched_t sched = ggml_backend_sched_new(streams, NULL, 2, 1024, false, false);
    assert_non_null(sched);
    check_scheduled_step(&one, &many, sched, N_TOKENS, 0);
    check_scheduled_step(&one, &many, sched, 1, N_TOKENS);
    ggml_backend_sched_free(sched);
    ggml_backend_free(cpu);
    session_end(&one);
    session_end(&many);
    assert_int_equal(virtual_print_violations(&host), 0);
}

static void count_fallbacks(enum ggml_log_level level, const char *text, void *user) {
    (void)level;
    (void)user;
    if (strstr(text, "gathered")) ++n_fallbacks;
}

static int begin(void **state) {
    (void)state;
    ggml_log_set(count_fallbacks, NULL);
    virtual_open(&host, "devices=8");
    return 0;
}

static int end(void **state) {
    (void)state;
    return (int)virtual_close(&host);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wide_with_communicator),
        cmocka_unit_test(test_wide_without_communicator),
        cmocka_unit_test(test_weights_smaller_than_the_device_count),
        cmocka_unit_test(test_experts),
        cmocka_unit_test(test_without_events_and_peer_copies),
        cmocka_unit_test(test_memory_is_shared_out),
        cmocka_unit_test(test_same_graph_again),
        cmocka_unit_test(test_under_the_scheduler),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
