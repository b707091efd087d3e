// SPDX-License-Identifier: MIT
// Graphs on the Metal plugin: nodes that one kernel computes, barriers, recordings that are found
// again, graphs of several command buffers.
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "metal_test.h"

enum { WIDTH = 32, TOKENS = 6, MOST = WIDTH * TOKENS };

static const char *const dispatch = "dispatchThreadgroups:threadsPerThreadgroup:";
static const char *const looked_up = "maxTotalThreadsPerThreadgroup"; // for each step once

struct work {
    struct ggml_context *context;
    struct ggml_cgraph *graph;
    struct ggml_tensor *out;
    ggml_backend_buffer_t leaves;
    ggml_gallocr_t allocator;
};

// Two norms with weights, one with a term; a mask before soft_max; sums of several tensors: as each
// is, five launches fewer if they are fused.
static struct ggml_tensor *layer(struct ggml_context *c) {
    struct ggml_tensor *x = metal_matrix(c, WIDTH, TOKENS);
    struct ggml_tensor *y = ggml_mul(c, ggml_rms_norm(c, x, 1e-5f), metal_matrix(c, WIDTH, 1));
    struct ggml_tensor *q = ggml_mul_mat(c, metal_matrix(c, WIDTH, WIDTH), y);
    struct ggml_tensor *k = ggml_mul_mat(c, metal_matrix(c, WIDTH, WIDTH), y);
    struct ggml_tensor *scores = ggml_scale(c, ggml_mul_mat(c, k, q), 0.2f);
    struct ggml_tensor *s = ggml_soft_max(c, ggml_add(c, scores, metal_matrix(c, TOKENS, TOKENS)));
    struct ggml_tensor *o = ggml_mul_mat(c, ggml_cont(c, ggml_transpose(c, k)), s);
    struct ggml_tensor *z = ggml_add(c, ggml_add(c, o, q), x);
    return ggml_add(c, ggml_mul(c, ggml_rms_norm(c, z, 1e-5f), metal_matrix(c, WIDTH, 1)),
                    metal_matrix(c, WIDTH, 1));
}

// x, negated and doubled n times in turn: a barrier before each.
static struct ggml_tensor *chain(struct ggml_context *c, int n) {
    struct ggml_tensor *x = metal_matrix(c, WIDTH, TOKENS);
    for (int i = 0; i < n; ++i)
        x = i % 2 ? ggml_scale(c, x, 1.03f) : ggml_neg(c, x);
    return x;
}

// Leaves in a buffer of their own, nodes where an allocator puts them, again and again.
static void build(struct work *w, ggml_backend_buffer_type_t buft, int n_chain) {
    uint32_t seed = 7;
    size_t bytes = 0;
    const size_t alignment = ggml_backend_buft_get_alignment(buft);
    w->context = metal_context();
    w->out = n_chain ? chain(w->context, n_chain) : layer(w->context);
    w->graph = ggml_new_graph(w->context);
    ggml_build_forward_expand(w->graph, w->out);
    for (struct ggml_tensor *t = ggml_get_first_tensor(w->context); t;
         t = ggml_get_next_tensor(w->context, t))
        bytes += ggml_nbytes(t) + alignment;
    w->leaves = ggml_backend_buft_alloc_buffer(buft, bytes);
    assert_non_null(w->leaves);
    char *at = ggml_backend_buffer_get_base(w->leaves);
    for (struct ggml_tensor *t = ggml_get_first_tensor(w->context); t;
         t = ggml_get_next_tensor(w->context, t)) {
        if (t->op != GGML_OP_NONE || t->view_src) continue;
        assert_int_equal(ggml_backend_tensor_alloc(w->leaves, t, at), GGML_STATUS_SUCCESS);
        at += (ggml_nbytes(t) + alignment - 1) / alignment * alignment;
        metal_fill(t, seed++);
    }
    w->allocator = ggml_gallocr_new(buft);
    assert_true(ggml_gallocr_alloc_graph(w->allocator, w->graph));
}

static void release(struct work *w) {
    ggml_gallocr_free(w->allocator);
    ggml_backend_buffer_free(w->leaves);
    ggml_free(w->context);
}

static void reference(int n_chain, float *out) {
    struct work w;
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    ggml_backend_t backend = ggml_backend_dev_init(cpu, NULL);
    assert_non_null(backend);
    build(&w, ggml_backend_dev_buffer_type(cpu), n_chain);
    assert_int_equal(ggml_backend_graph_compute(backend, w.graph), GGML_STATUS_SUCCESS);
    ggml_backend_tensor_get(w.out, out, 0, MOST * sizeof(float));
    release(&w);
    ggml_backend_free(backend);
}

// What a node does not write is not a number.
static double run(struct work *w, ggml_backend_t stream, const float *expected) {
    ggml_backend_buffer_clear(w->out->buffer, 0xff);
    assert_int_equal(ggml_backend_graph_compute(stream, w->graph), GGML_STATUS_SUCCESS);
    return metal_worst(w->out, expected);
}

// Results of a stream that fuses as `disabled` says; returns how many dispatches it took.
static long dispatches(const char *disabled, const float *expected) {
    struct work w;
    if (disabled)
        setenv("GGML_METAL_DISABLE_FUSION", disabled, 1);
    else
        unsetenv("GGML_METAL_DISABLE_FUSION");
    ggml_backend_reg_t reg = metal_load();
    ggml_backend_dev_t device = metal_device(reg, 0);
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);
    build(&w, ggml_backend_dev_buffer_type(device), 0);
    const long before = metal.calls(dispatch);
    const double worst = run(&w, stream, expected);
    const long n = metal.calls(dispatch) - before;
    if (!(worst < 1e-5)) fail_msg("%g off without %s", worst, disabled ? disabled : "nothing");
    release(&w);
    ggml_backend_free(stream);
    metal_unload(reg);
    return n;
}

static void test_fusions(void **state) {
    static float expected[MOST];
    (void)state;
    reference(0, expected);
    const long plain = dispatches("1", expected), fused = dispatches(NULL, expected);
    assert_int_equal(plain - fused, 1 + 2 + 1 + 2);
    assert_int_equal(plain - dispatches("norm", expected), 2 + 1);
    assert_int_equal(plain - dispatches("mask", expected), 1 + 1 + 2);
    assert_int_equal(plain - dispatches("norm,add_chain,bias", expected), 2);
    unsetenv("GGML_METAL_DISABLE_FUSION");
}

// Each barrier is there for a reason: without it something else is computed.
static void test_missing_barriers(void **state) {
    static float expected[MOST];
    struct work w;
    long n = 0;
    (void)state;
    reference(0, expected);
    ggml_backend_reg_t reg = metal_load();
    ggml_backend_dev_t device = metal_device(reg, 0);
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);
    build(&w, ggml_backend_dev_buffer_type(device), 0);
    for (;; ++n) {
        metal.drop("memoryBarrierWithScope:", n);
        const double worst = run(&w, stream, expected);
        if (!metal.dropped()) {
            assert_true(worst < 1e-5);
            break;
        }
        if (worst < 1e-5) fail_msg("barrier %ld makes no difference", n);
    }
    metal.drop("", -1);
    assert_true(n >= 5);
    release(&w);
    ggml_backend_free(stream);
    metal_unload(reg);
    assert_int_equal(metal.live(), 0);
}

// A graph that is computed again is not looked up again; one in other memory is.
static void test_recordings(void **state) {
    static float expected[MOST];
    struct work w, other;
    (void)state;
    reference(0, expected);
    ggml_backend_reg_t reg = metal_load();
    ggml_backend_dev_t device = metal_device(reg, 0);
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);
    build(&w, ggml_backend_dev_buffer_type(device), 0);
    assert_true(run(&w, stream, expected) < 1e-5);
    const long once = metal.calls(looked_up);
    for (int i = 0; i < 3; ++i)
        assert_true(run(&w, stream, expected) < 1e-5);
    assert_int_equal(metal.calls(looked_up), once);
    build(&other, ggml_backend_dev_buffer_type(device), 0);
    assert_true(run(&other, stream, expected) < 1e-5);
    assert_true(metal.calls(looked_up) > once);
    // The first is still known, although a buffer is gone.
    release(&other);
    const long twice = metal.calls(looked_up);
    assert_true(run(&w, stream, expected) < 1e-5);
    assert_int_equal(metal.calls(looked_up), twice);
    // More graphs than are remembered.
    for (int i = 0; i < 12; ++i) {
        build(&other, ggml_backend_dev_buffer_type(device), 0);
        assert_true(run(&other, stream, expected) < 1e-5);
        release(&other);
    }
    assert_true(run(&w, stream, expected) < 1e-5);
    release(&w);
    ggml_backend_free(stream);
    metal_unload(reg);
    assert_int_equal(metal.live(), 0);
}

static void test_long_graph(void **state) {
    static float expected[MOST];
    struct work w;
    (void)state;
    reference(300, expected);
    ggml_backend_reg_t reg = metal_load();
    ggml_backend_dev_t device = metal_device(reg, 0);
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);
    build(&w, ggml_backend_dev_buffer_type(device), 300);
    const long before = metal.calls("commit");
    assert_true(run(&w, stream, expected) < 1e-3);
    assert_true(metal.calls("commit") - before >= 3);
    release(&w);
    ggml_backend_free(stream);
    metal_unload(reg);
}

// Several threads encode a graph of many command buffers, which still run in its order. Where the
// helpers come late the stream's thread has done all: again then.
static void test_parallel(void **state) {
    enum { LONG = 2000, TRIES = 50 };
    static float expected[MOST];
    struct work w;
    (void)state;
    ggml_backend_reg_t reg = metal_load();
    ggml_backend_dev_t device = metal_device(reg, 0);
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);
    build(&w, ggml_backend_dev_buffer_type(device), LONG);
    reference(LONG, expected);
    for (int i = 0; i < TRIES && metal.threads() < 2; ++i)
        assert_true(run(&w, stream, expected) < 1e-3);
    assert_true(metal.threads() >= 2);
    // More command buffers than a queue of Metal's has at a time.
    for (int i = 0; i < 6; ++i)
        assert_int_equal(ggml_backend_graph_compute_async(stream, w.graph), GGML_STATUS_SUCCESS);
    assert_true(run(&w, stream, expected) < 1e-3);
    // Whatever fails, what was committed runs, and the rest is gone.
    for (long n = 0; n < 54; n += 3) {
        metal.fail_after(n, FAKE_METAL_OUT_OF_MEMORY);
        const enum ggml_status status = ggml_backend_graph_compute(stream, w.graph);
        const bool failed = metal.failed() != NULL;
        metal.fail_after(-1, 0);
        assert_int_equal(status == GGML_STATUS_SUCCESS, !failed);
    }
    assert_true(run(&w, stream, expected) < 1e-3);
    release(&w);
    ggml_backend_free(stream);
    metal_unload(reg);
    assert_int_equal(metal.live(), 0);
}

// Plans are computed without looking anything up, beside graphs of the same stream.
static void test_plans(void **state) {
    static float expected[MOST];
    struct work w, other;
    (void)state;
    reference(0, expected);
    ggml_backend_reg_t reg = metal_load();
    ggml_backend_dev_t device = metal_device(reg, 0);
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);
    build(&w, ggml_backend_dev_buffer_type(device), 0);
    build(&other, ggml_backend_dev_buffer_type(device), 0);
    ggml_backend_graph_plan_t plan = ggml_backend_graph_plan_create(stream, w.graph);
    assert_non_null(plan);
    const long before = metal.calls(looked_up);
    for (int i = 0; i < 3; ++i) {
        ggml_backend_buffer_clear(w.out->buffer, 0xff);
        assert_int_equal(ggml_backend_graph_plan_compute(stream, plan), GGML_STATUS_SUCCESS);
        ggml_backend_synchronize(stream);
        assert_true(metal_worst(w.out, expected) < 1e-5);
    }
    assert_int_equal(metal.calls(looked_up), before);
    assert_true(run(&other, stream, expected) < 1e-5);
    // Freed while its work is queued.
    ggml_backend_buffer_clear(w.out->buffer, 0xff);
    assert_int_equal(ggml_backend_graph_plan_compute(stream, plan), GGML_STATUS_SUCCESS);
    ggml_backend_graph_plan_free(stream, plan);
    ggml_backend_synchronize(stream);
    assert_true(metal_worst(w.out, expected) < 1e-5);
    release(&other);
    release(&w);
    ggml_backend_free(stream);
    metal_unload(reg);
    assert_int_equal(metal.live(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fusions),    cmocka_unit_test(test_missing_barriers),
        cmocka_unit_test(test_recordings), cmocka_unit_test(test_long_graph),
        cmocka_unit_test(test_plans),      cmocka_unit_test(test_parallel),
    };
    metal_find_runtime();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
