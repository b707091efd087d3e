// SPDX-License-Identifier: MIT
// Nodes that the Metal plugin's own kernels compute together: gated units and biases with their
// products, rope with the rows that it goes to. Results are those of the nodes one by one.
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "metal_test.h"

enum { WIDTH = 64, HEADS = 2, ROWS = 50, MOST = WIDTH * (40 + ROWS) };

static const char *const dispatch = "dispatchThreadgroups:threadsPerThreadgroup:";

struct graph {
    struct ggml_context *context;
    struct ggml_cgraph *graph;
    struct ggml_tensor *out, *cache; // results
    ggml_backend_buffer_t leaves;
    ggml_gallocr_t allocator;
};

// bias(glu(x)), and its rope in a cache of halves.
static void build(struct graph *w, ggml_backend_buffer_type_t buft, int n, bool by_index_64) {
    struct ggml_context *c = w->context = metal_context();
    struct ggml_tensor *x = ggml_neg(c, metal_matrix(c, WIDTH, n));
    struct ggml_tensor *up = ggml_mul_mat(c, metal_matrix(c, WIDTH, WIDTH), x);
    struct ggml_tensor *gate = ggml_mul_mat(c, metal_matrix(c, WIDTH, WIDTH), x);
    struct ggml_tensor *glu = ggml_swiglu_split(c, gate, up);
    struct ggml_tensor *product = ggml_mul_mat(c, metal_matrix(c, WIDTH, WIDTH), glu);
    struct ggml_tensor *sum = ggml_add(c, product, metal_matrix(c, WIDTH, 1));
    struct ggml_tensor *positions = ggml_new_tensor_1d(c, GGML_TYPE_I32, n);
    struct ggml_tensor *heads = ggml_reshape_3d(c, sum, WIDTH / HEADS, HEADS, n);
    struct ggml_tensor *turned = ggml_rope(c, heads, positions, WIDTH / HEADS - 4, 0);
    struct ggml_tensor *rows = ggml_reshape_2d(c, turned, WIDTH, n);
    struct ggml_tensor *ids = ggml_new_tensor_1d(c, by_index_64 ? GGML_TYPE_I64 : GGML_TYPE_I32, n);
    w->cache = ggml_new_tensor_2d(c, GGML_TYPE_F16, WIDTH, ROWS);
    struct ggml_tensor *set = ggml_set_rows(c, w->cache, rows, ids);
    w->out = ggml_neg(c, sum);
    w->graph = ggml_new_graph(c);
    ggml_build_forward_expand(w->graph, set);
    ggml_build_forward_expand(w->graph, w->out);
    ggml_set_output(w->out);
    w->leaves = ggml_backend_buft_alloc_buffer(buft, 1 << 18);
    assert_non_null(w->leaves);
    char *at = ggml_backend_buffer_get_base(w->leaves);
    uint32_t seed = 5;
    for (struct ggml_tensor *t = ggml_get_first_tensor(c); t; t = ggml_get_next_tensor(c, t)) {
        if (t->op != GGML_OP_NONE || t->view_src) continue;
        assert_int_equal(ggml_backend_tensor_alloc(w->leaves, t, at), GGML_STATUS_SUCCESS);
        at += (ggml_nbytes(t) + 255) / 256 * 256;
        if (t->type == GGML_TYPE_F32) metal_fill(t, seed++);
    }
    ggml_backend_tensor_memset(w->cache, 0, 0, ggml_nbytes(w->cache));
    for (int i = 0; i < n; ++i) {
        const int32_t position = 3 * i + 1;
        const int64_t row = ROWS - 1 - i;
        ggml_backend_tensor_set(positions, &position, (size_t)i * sizeof(position),
                                sizeof(position));
        const size_t size = ggml_element_size(ids); // little-endian
        ggml_backend_tensor_set(ids, &row, (size_t)i * size, size);
    }
    w->allocator = ggml_gallocr_new(buft);
    assert_true(ggml_gallocr_alloc_graph(w->allocator, w->graph));
}

// Both results of a stream that fuses as `disabled` says, and how many dispatches it took.
static long run(int n, const char *disabled, bool by_index_64, char *out) {
    struct graph w;
    setenv("GGML_METAL_DISABLE_FUSION", disabled, 1);
    ggml_backend_reg_t reg = metal_load();
    ggml_backend_dev_t device = metal_device(reg, 0);
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);
    build(&w, ggml_backend_dev_buffer_type(device), n, by_index_64);
    const long before = metal.calls(dispatch);
    assert_int_equal(ggml_backend_graph_compute(stream, w.graph), GGML_STATUS_SUCCESS);
    const long count = metal.calls(dispatch) - before;
    memset(out, 0, MOST * sizeof(float));
    ggml_backend_tensor_get(w.out, out, 0, ggml_nbytes(w.out));
    ggml_backend_tensor_get(w.cache, out + ggml_nbytes(w.out), 0, ggml_nbytes(w.cache));
    ggml_gallocr_free(w.allocator);
    ggml_backend_buffer_free(w.leaves);
    ggml_free(w.context);
    ggml_backend_free(stream);
    metal_unload(reg);
    assert_int_equal(metal.live(), 0);
    return count;
}

// saved: dispatches fewer by each fusion alone.
static void check(int n, int glu, int bias, int rope_rows) {
    static char plain[MOST * sizeof(float)], fused[MOST * sizeof(float)];
    const long count = run(n, "1", false, plain);
    for (int wide = 0; wide < 2; ++wide) {
        assert_int_equal(count - run(n, "none", wide, fused), glu + bias + rope_rows);
        assert_memory_equal(plain, fused, sizeof(plain));
    }
    assert_int_equal(count - run(n, "bias,rope_rows", false, fused), glu);
    assert_int_equal(count - run(n, "glu,rope_rows", false, fused), bias);
    assert_int_equal(count - run(n, "glu,bias", false, fused), rope_rows);
    assert_memory_equal(plain, fused, sizeof(plain));
}

static void test_few_columns(void **state) {
    (void)state;
    check(1, 1, 1, 1); // the unit's result comes by a copy: its place was that of what it reads
    check(5, 1, 1, 1);
}

static void test_many_columns(void **state) {
    (void)state;
    check(40, 0, 1, 1);
    setenv("FAKE_METAL_APPLE", "6", 1); // the plain kernel of products
    check(40, 0, 0, 1);
    unsetenv("FAKE_METAL_APPLE");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_columns),
        cmocka_unit_test(test_many_columns),
    };
    metal_find_runtime();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
