// SPDX-License-Identifier: MIT
// Keys of graphs: what makes two graphs different recordings.
#include "gpu/graph/graph_key.h"

#include "gpu_test.h"
#include "support/seen.h"

static uint64_t buffer_number;

static uint64_t buffer_id(const struct ggml_tensor *tensor) {
    (void)tensor;
    return buffer_number;
}

// Of a graph whose structure is known only that and where its tensors lie is looked at.
static void test_keys_of_places(void **state) {
    struct ggml_context *ctx = gpu_test_context();
    struct ggml_tensor *x = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 8, 4);
    struct ggml_tensor *y = ggml_scale(ctx, x, 2);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    struct gpu_graph_key first = {0}, key = {0}, whole = {0};
    (void)state;
    ggml_build_forward_expand(graph, y);
    struct ggml_graph view = seen(graph);
    view.structure = 5;
    assert_true(gpu_graph_key_make_places(&first, &view, buffer_id));
#define FINDS(object, value, expected)                                                             \
    do {                                                                                           \
        const __typeof__(object) old = object;                                                     \
        object = value;                                                                            \
        assert_true(gpu_graph_key_make_places(&key, &view, buffer_id));                            \
        assert_int_equal(gpu_graph_key_equal(&first, &key), expected);                             \
        object = old;                                                                              \
    } while (0)
    FINDS(y->op_params[0], 7, true); // the structure would be another one
    FINDS(view.structure, 6, false);
    FINDS(y->data, (void *)&key, false);
    FINDS(x->data, (void *)&key, false);
    FINDS(buffer_number, 9, false);
#undef FINDS
    assert_true(gpu_graph_key_make(&whole, &view, buffer_id));
    assert_false(gpu_graph_key_equal(&first, &whole));
    assert_true(gpu_graph_key_copy(&whole, &first)); // into a key that was used
    assert_true(gpu_graph_key_equal(&first, &whole));
    gpu_graph_key_free(&first);
    gpu_graph_key_free(&key);
    gpu_graph_key_free(&whole);
    ggml_free(ctx);
}

static void test_keys_tell_graphs_apart(void **state) {
    struct ggml_context *ctx = gpu_test_context();
    struct ggml_tensor *x = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 8, 4);
    struct ggml_tensor *y = ggml_scale(ctx, x, 2);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    struct gpu_graph_key first = {0}, key = {0};
    (void)state;
    ggml_build_forward_expand(graph, y);
    struct ggml_graph view = seen(graph);
    assert_true(gpu_graph_key_make(&key, &view, buffer_id));
    assert_true(gpu_graph_key_copy(&first, &key));
    assert_true(gpu_graph_key_make(&key, &view, buffer_id));
    assert_true(gpu_graph_key_equal(&first, &key));
#define CHANGES(object, value)                                                                     \
    do {                                                                                           \
        const __typeof__(object) old = object;                                                     \
        object = value;                                                                            \
        assert_true(gpu_graph_key_make(&key, &view, buffer_id));                                   \
        assert_false(gpu_graph_key_equal(&first, &key));                                           \
        object = old;                                                                              \
        assert_true(gpu_graph_key_make(&key, &view, buffer_id));                                   \
        assert_true(gpu_graph_key_equal(&first, &key));                                            \
    } while (0)
    CHANGES(y->op_params[0], 7);
    CHANGES(y->op, GGML_OP_SQR);
    CHANGES(y->type, GGML_TYPE_F16);
    CHANGES(y->data, (void *)&key);
    CHANGES(x->data, (void *)&key);
    CHANGES(x->ne[1], 5);
    CHANGES(x->nb[1], 64);
    CHANGES(y->flags, 0);
    CHANGES(buffer_number, 9);
    CHANGES(y->src[0], NULL);
    CHANGES(view.n_nodes, 0);
#undef CHANGES
    gpu_graph_key_free(&first);
    gpu_graph_key_free(&key);
    ggml_free(ctx);
}

// The hash only sorts out most: where two keys share it, the words decide.
static void test_equal_hashes_are_not_equal_keys(void **state) {
    struct ggml_context *ctx = gpu_test_context();
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    struct gpu_graph_key a = {0}, b = {0};
    (void)state;
    struct ggml_tensor *y = ggml_scale(ctx, ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 8, 4), 2);
    ggml_build_forward_expand(graph, y);
    struct ggml_graph view = seen(graph);
    assert_true(gpu_graph_key_make(&a, &view, buffer_id));
    y->op_params[0] ^= 1;
    assert_true(gpu_graph_key_make(&b, &view, buffer_id));
    assert_int_not_equal(a.hash, b.hash);
    b.hash = a.hash;
    assert_false(gpu_graph_key_equal(&a, &b));
    // Nor is a key that only begins like another one.
    assert_true(gpu_graph_key_copy(&b, &a));
    assert_true(gpu_graph_key_equal(&a, &b));
    b.n--;
    assert_false(gpu_graph_key_equal(&a, &b));
    gpu_graph_key_free(&a);
    gpu_graph_key_free(&b);
    ggml_free(ctx);
}

// One bit of any word changes the hash: a weak mix would let graphs that differ in a pointer's high
// bits be compared word by word at every look-up.
static void test_every_word_is_hashed(void **state) {
    struct ggml_context *ctx = gpu_test_context();
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    struct gpu_graph_key key = {0};
    uint64_t hashes[128];
    int n = 0;
    (void)state;
    struct ggml_tensor *y = ggml_scale(ctx, ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 8, 4), 2);
    ggml_build_forward_expand(graph, y);
    struct ggml_graph view = seen(graph);
    for (int bit = 0; bit < 64; ++bit) {
        y->data = (void *)(uintptr_t)(UINT64_C(1) << bit);
        assert_true(gpu_graph_key_make(&key, &view, buffer_id));
        hashes[n++] = key.hash;
        y->data = NULL;
        y->ne[1] = (int64_t)(UINT64_C(1) << bit);
        assert_true(gpu_graph_key_make(&key, &view, buffer_id));
        hashes[n++] = key.hash;
        y->ne[1] = 4;
    }
    for (int i = 0; i < n; ++i) {
        for (int k = 0; k < i; ++k)
            assert_int_not_equal(hashes[i], hashes[k]);
    }
    gpu_graph_key_free(&key);
    ggml_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_tell_graphs_apart),
        cmocka_unit_test(test_keys_of_places),
        cmocka_unit_test(test_equal_hashes_are_not_equal_keys),
        cmocka_unit_test(test_every_word_is_hashed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
