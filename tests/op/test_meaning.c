// SPDX-License-Identifier: MIT
// ggml_node_is_known: what a plugin declines because its headers give it no meaning; and that the
// built-in CPU plugin asks.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ggml-host.h"
#include "ggml-shape.h"

enum { N_WORDS = GGML_MAX_OP_PARAMS / (int)sizeof(int32_t), N_NODES = 9 };

static struct ggml_context *ctx;
static struct ggml_tensor *nodes[N_NODES];
// Words of op_params that have a meaning for it, as bits, and sources.
static const struct {
    uint32_t words;
    int n_src;
} expected[N_NODES] = {{0, 2},    {0x1, 1}, {0xfff6, 3}, {0x3, 3}, {0x1, 1},
                       {0x1f, 1}, {0x3, 2}, {0xb, 2},    {0x1f, 5}};

static int build(void **state) {
    (void)state;
    ctx = ggml_init((struct ggml_init_params){1 << 20, NULL, true});
    if (!ctx) return -1;
    struct ggml_tensor *a = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, 64, 4, 4);
    struct ggml_tensor *b = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, 64, 4, 4);
    struct ggml_tensor *half = ggml_new_tensor_3d(ctx, GGML_TYPE_F16, 64, 4, 4);
    nodes[0] = ggml_mul(ctx, a, b);
    nodes[1] = ggml_rms_norm(ctx, a, 1e-5f);
    nodes[2] = ggml_rope_multi(ctx, a, ggml_new_tensor_1d(ctx, GGML_TYPE_I32, 16), NULL, 64,
                               (int[]){8, 8, 8, 8}, GGML_ROPE_TYPE_MROPE, 64, 1e4f, 1, 1, 1, 1, 1);
    nodes[3] = ggml_soft_max(ctx, a);
    nodes[4] = ggml_silu(ctx, a);
    nodes[5] = ggml_xielu(ctx, a, 0.5f, 0.5f, 0.5f, -1e-6f);
    nodes[6] = ggml_swiglu(ctx, a);
    nodes[7] = ggml_swiglu_clamp(ctx, a, b, 1.0f);
    nodes[8] = ggml_flash_attn_ext(ctx, a, half, half, NULL, 1.0f, 0.0f, 0.0f);
    return 0;
}

static int end(void **state) {
    (void)state;
    ggml_free(ctx);
    return 0;
}

// By the function and by the device that asks it.
static void assert_known(const struct ggml_tensor *node, bool known) {
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    assert_int_equal(ggml_node_is_known(node), known);
    assert_int_equal(ggml_backend_dev_supports_op(cpu, node), known);
}

static void what_builders_make_is_known(void **state) {
    (void)state;
    for (int i = 0; i < N_NODES; ++i)
        assert_known(nodes[i], true);
}

static void words(void **state) {
    (void)state;
    for (int i = 0; i < N_NODES; ++i) {
        for (int word = 0; word < N_WORDS; ++word) {
            struct ggml_tensor node = *nodes[i];
            if (expected[i].words >> word & 1) continue;
            node.op_params[word] = 1;
            assert_known(&node, false);
        }
    }
}

// Words of op_params that are numbers from a list or flags, with what they may be.
static const struct {
    int node, word;
    int values[7];
    int n;
} lists[] = {
    {2, 2, {0, 2, 8, 24, 40}, 5},
    {6, 1, {0, 1}, 2},
    {7, 1, {0, 1}, 2},
    {8, 3, {0, 10, 15, 20}, 4},
};

static bool is_from_a_list(int node, int word) {
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); ++i)
        if (lists[i].node == node && lists[i].word == word) return true;
    return false;
}

static void values_from_lists(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); ++i) {
        struct ggml_tensor node = *nodes[lists[i].node];
        for (int value = -70; value < 300; ++value) {
            bool listed = false;
            for (int j = 0; j < lists[i].n; ++j)
                listed = listed || lists[i].values[j] == value;
            node.op_params[lists[i].word] = value;
            assert_int_equal(ggml_node_is_known(&node), listed);
            if (!listed) assert_known(&node, false);
        }
    }
}

static void modes_and_their_flags(void **state) {
    (void)state;
    struct ggml_tensor *x = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, 4, 4, 1);
    struct ggml_tensor node = *ggml_interpolate(ctx, x, 8, 8, 1, 1, GGML_SCALE_MODE_BILINEAR);
    for (int flags = 0; flags < 8; ++flags) {
        for (int mode = 0; mode < 256; ++mode) {
            node.op_params[0] = mode | flags << 8;
            assert_int_equal(ggml_node_is_known(&node), mode < 3 && flags < 4);
        }
    }
}

// Some change what a kernel can compute: the function alone.
static void words_with_a_meaning(void **state) {
    (void)state;
    for (int i = 0; i < N_NODES; ++i) {
        for (int word = nodes[i]->op == GGML_OP_UNARY || nodes[i]->op == GGML_OP_GLU;
             word < N_WORDS; ++word) {
            struct ggml_tensor node = *nodes[i];
            if (is_from_a_list(i, word)) continue;
            node.op_params[word] = 77;
            assert_int_equal(ggml_node_is_known(&node), expected[i].words >> word & 1);
        }
    }
}

static void sources(void **state) {
    (void)state;
    for (int i = 0; i < N_NODES; ++i) {
        for (int slot = 0; slot < GGML_MAX_SRC; ++slot) {
            struct ggml_tensor node = *nodes[i];
            node.src[slot] = nodes[0];
            assert_int_equal(ggml_node_is_known(&node), slot < expected[i].n_src);
            if (slot >= expected[i].n_src) assert_known(&node, false);
        }
    }
}

static void flags(void **state) {
    (void)state;
    for (int bit = 0; bit < 32; ++bit) {
        struct ggml_tensor node = *nodes[0], source = *node.src[1];
        node.flags |= (int32_t)(1u << bit);
        if (bit != 30) assert_known(&node, bit < 16); // 30: an error, told by itself
        node = *nodes[0];
        node.src[1] = &source;
        source.flags |= (int32_t)(1u << bit);
        assert_known(&node, bit < 16);
    }
}

static void padding(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(nodes[0]->padding); ++i) {
        struct ggml_tensor node = *nodes[0], source = *node.src[0];
        node.padding[i] = 1;
        assert_known(&node, false);
        node = *nodes[0];
        node.src[0] = &source;
        source.padding[i] = 1;
        assert_known(&node, false);
    }
}

static void numbers(void **state) {
    (void)state;
    // Beyond all counts, private, and the largest.
    static const int too_large[] = {GGML_OP_COUNT, GGML_FIRST_PRIVATE, 0x7fffffff};
    for (int i = 0; i < 3; ++i) {
        struct ggml_tensor node = *nodes[0], unary = *nodes[4], glu = *nodes[6], type = *nodes[0];
        struct ggml_tensor view = *ggml_view_1d(ctx, nodes[0], 8, 0), source = *nodes[0];
        node.op = (enum ggml_op)too_large[i];
        unary.op_params[0] = glu.op_params[0] = too_large[i];
        type.type = view.type = source.type = (enum ggml_type)too_large[i];
        assert_known(&node, false);
        assert_known(&unary, false);
        assert_known(&glu, false);
        assert_known(&type, false);
        assert_known(&view, false);
        node = *nodes[0];
        node.src[0] = &source;
        assert_known(&node, false);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_builders_make_is_known),
        cmocka_unit_test(words),
        cmocka_unit_test(words_with_a_meaning),
        cmocka_unit_test(values_from_lists),
        cmocka_unit_test(modes_and_their_flags),
        cmocka_unit_test(sources),
        cmocka_unit_test(flags),
        cmocka_unit_test(padding),
        cmocka_unit_test(numbers),
    };
    return cmocka_run_group_tests(tests, build, end);
}
