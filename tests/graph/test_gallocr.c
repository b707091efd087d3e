// SPDX-License-Identifier: MIT
// The graph allocator: memory is reused in place where that is allowed, and a model that plays
// the graph finds no tensor overwritten before its last reader.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ggml-host.h"
#include "graph/fake_memory.h"
#include "tensor/error_tensor.h"

static struct ggml_context *ctx;
static struct fake_memory memory;
static ggml_gallocr_t galloc;

static int set_up(void **state) {
    (void)state;
    fake_next_base = 1 << 20;
    fake_memory_init(&memory, 32, SIZE_MAX);
    ctx = ggml_init((struct ggml_init_params){1 << 24, NULL, true});
    galloc = ggml_gallocr_new(&memory.buft);
    return ctx && galloc ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    ggml_mem_set_fault_hook(NULL, NULL);
    ggml_gallocr_free(galloc);
    ggml_free(ctx);
    return memory.live_buffers == 0 ? 0 : -1;
}

static void start_anew(void) {
    assert_int_equal(tear_down(NULL), 0);
    assert_int_equal(set_up(NULL), 0);
}

// --- graphs by hand

static struct ggml_tensor *leaf(int64_t n) {
    return ggml_new_tensor_1d(ctx, GGML_TYPE_F32, n);
}

static struct ggml_tensor *op2(enum ggml_op op, int64_t n, struct ggml_tensor *a,
                               struct ggml_tensor *b) {
    struct ggml_tensor *t = leaf(n);
    t->op = op;
    t->src[0] = a;
    t->src[1] = b;
    return t;
}

static struct ggml_tensor *op1(enum ggml_op op, int64_t n, struct ggml_tensor *a) {
    return op2(op, n, a, NULL);
}

static struct ggml_tensor *view_of(enum ggml_op op, struct ggml_tensor *a) {
    struct ggml_tensor *t = ggml_view_tensor(ctx, a);
    t->op = op;
    t->src[0] = a;
    return t;
}

static struct ggml_tensor *weight(int64_t n) {
    struct ggml_tensor *t = leaf(n);
    t->data = (void *)(uintptr_t)64;
    return t;
}

static struct ggml_cgraph *expand(struct ggml_tensor *result) {
    struct ggml_cgraph *g = ggml_new_graph_custom(ctx, 4096, false);
    ggml_build_forward_expand(g, result);
    assert_null(ggml_graph_error(g));
    return g;
}

// --- an independent check: plays the graph, noting who wrote each unit of memory last

enum { UNIT = 32, MAX_UNITS = 1 << 20 };

static const struct ggml_tensor *owners[MAX_UNITS];

static const struct ggml_tensor *root_of(const struct ggml_tensor *t) {
    return t->view_src ? t->view_src : t;
}

static size_t first_unit(const struct ggml_tensor *t) {
    const size_t unit = ((uintptr_t)t->data - (1 << 20)) / UNIT;
    assert_true(unit + ggml_nbytes(t) / UNIT + 1 < MAX_UNITS);
    return unit;
}

static bool is_managed(const struct ggml_tensor *t) {
    return root_of(t)->buffer != NULL;
}

static void write_units(const struct ggml_tensor *t) {
    const struct ggml_tensor *root = root_of(t);
    if (!is_managed(root)) return;
    const size_t n = (ggml_nbytes(root) + UNIT - 1) / UNIT;
    for (size_t i = 0; i < n; ++i) {
        owners[first_unit(root) + i] = root;
    }
}

static void read_units(const struct ggml_tensor *t) {
    const struct ggml_tensor *root = root_of(t);
    if (!is_managed(root)) return;
    const size_t n = (ggml_nbytes(root) + UNIT - 1) / UNIT;
    for (size_t i = 0; i < n; ++i) {
        if (owners[first_unit(root) + i] != root) fail_msg("%s was overwritten", root->name);
    }
}

static void check_aliasing(const struct ggml_tensor *node) {
    if (node->view_src || !is_managed(node)) return;
    const uintptr_t begin = (uintptr_t)node->data, end = begin + ggml_nbytes(node);
    for (int k = 0; k < GGML_MAX_SRC; ++k) {
        const struct ggml_tensor *src = node->src[k];
        if (!src || src == node || !is_managed(src)) continue;
        const struct ggml_tensor *root = root_of(src);
        const uintptr_t low = (uintptr_t)root->data, high = low + ggml_nbytes(root);
        if (end <= low || high <= begin) continue;
        assert_true(ggml_op_can_inplace(node->op));
        assert_true(src->data == node->data && ggml_are_same_layout(src, node));
    }
}

static bool is_read(const struct ggml_cgraph *g, const struct ggml_tensor *t) {
    for (int i = 0; i < g->n_nodes; ++i) {
        for (int k = 0; k < GGML_MAX_SRC; ++k) {
            if (g->nodes[i]->src[k] == t && g->nodes[i] != t) return true;
        }
    }
    return false;
}

static void check_by_playing(const struct ggml_cgraph *g) {
    memset(owners, 0, sizeof(owners));
    for (int i = 0; i < g->n_leafs; ++i) {
        if (root_of(g->leafs[i])->op == GGML_OP_NONE) write_units(g->leafs[i]);
    }
    for (int i = 0; i < g->n_nodes; ++i) {
        const bool input = g->nodes[i]->flags & GGML_TENSOR_FLAG_INPUT;
        if (input && !g->nodes[i]->view_src) write_units(g->nodes[i]);
    }
    for (int i = 0; i < g->n_nodes; ++i) {
        const struct ggml_tensor *node = g->nodes[i];
        for (int k = 0; k < GGML_MAX_SRC; ++k) {
            if (node->src[k] && node->src[k] != node) read_units(node->src[k]);
        }
        check_aliasing(node);
        write_units(node);
    }
    for (int i = 0; i < g->n_nodes; ++i) {
        const struct ggml_tensor *node = g->nodes[i];
        if ((node->flags & GGML_TENSOR_FLAG_OUTPUT) || !is_read(g, node)) read_units(node);
    }
}

static void reset_tensors(void) {
    struct ggml_tensor *t = ggml_get_first_tensor(ctx);
    for (; t; t = ggml_get_next_tensor(ctx, t)) {
        if (!t->buffer) continue;
        t->buffer = NULL;
        t->data = NULL;
    }
}

// Largest sum over time of the distinct places of live tensors.
static size_t live_peak(const struct ggml_cgraph *g) {
    size_t most = 0;
    for (int now = 0; now <= g->n_nodes; ++now) {
        size_t live = 0;
        memset(owners, 0, sizeof(owners));
        for (int i = 0; i < g->n_leafs + g->n_nodes; ++i) {
            const bool is_leaf = i < g->n_leafs;
            const struct ggml_tensor *t = is_leaf ? g->leafs[i] : g->nodes[i - g->n_leafs];
            int first = is_leaf || (t->flags & GGML_TENSOR_FLAG_INPUT) ? 0 : i - g->n_leafs + 1;
            int last = -1;
            if (t->view_src || !is_managed(t)) continue;
            for (int n = 0; n < g->n_nodes; ++n) {
                for (int k = 0; k < GGML_MAX_SRC; ++k) {
                    const struct ggml_tensor *src = g->nodes[n]->src[k];
                    if (src && src != g->nodes[n] && root_of(src) == t) last = n + 1;
                }
            }
            if (last < 0 || (t->flags & GGML_TENSOR_FLAG_OUTPUT)) last = g->n_nodes + 1;
            if (first > now || now > last || owners[first_unit(t)]) continue;
            owners[first_unit(t)] = t;
            live += GGML_PAD(ggml_nbytes(t), (size_t)UNIT);
        }
        most = MAX(most, live);
    }
    return most;
}

// --- tests

static void test_in_place_where_nobody_else_looks(void **state) {
    (void)state;
    struct ggml_tensor *in = leaf(64);
    ggml_set_input(in);
    struct ggml_tensor *a = op1(GGML_OP_SQR, 64, in), *b = op1(GGML_OP_SCALE, 64, a);
    struct ggml_tensor *c = op2(GGML_OP_ADD, 64, b, b);
    struct ggml_cgraph *g = expand(c);
    assert_true(ggml_gallocr_alloc_graph(galloc, g));
    assert_ptr_equal(a->data, in->data);
    assert_ptr_equal(b->data, a->data);
    assert_ptr_not_equal(c->data, b->data); // reads it twice
    assert_int_equal(ggml_gallocr_get_buffer_size(galloc, 0), 512);
    check_by_playing(g);
}

static void test_in_place_through_a_reshape(void **state) {
    (void)state;
    struct ggml_tensor *a = op1(GGML_OP_MUL_MAT, 64, weight(8));
    struct ggml_tensor *flat = view_of(GGML_OP_RESHAPE, a), *b = op1(GGML_OP_SCALE, 64, flat);
    struct ggml_cgraph *g = expand(b);
    assert_true(ggml_gallocr_alloc_graph(galloc, g));
    assert_ptr_equal(b->data, a->data);
    assert_ptr_equal(flat->buffer, a->buffer);
    check_by_playing(g);
    reset_tensors();
    struct ggml_tensor *again = op1(GGML_OP_LOG, 64, flat); // now the reshape is read once more
    struct ggml_cgraph *g2 = expand(op2(GGML_OP_ADD, 64, b, again));
    assert_true(ggml_gallocr_alloc_graph(galloc, g2));
    assert_ptr_not_equal(b->data, a->data);
    check_by_playing(g2);
}

// Rows of the second source are read in any order, after others were written.
static void test_rows_that_are_picked_keep_their_memory(void **state) {
    (void)state;
    struct ggml_tensor *rows = op1(GGML_OP_SQR, 64, leaf(64));
    struct ggml_tensor *sum = op2(GGML_OP_ADD_ID, 64, weight(64), rows);
    sum->src[2] = leaf(8);
    assert_true(ggml_gallocr_alloc_graph(galloc, expand(sum)));
    assert_ptr_not_equal(sum->data, rows->data);
}

static void test_outputs_and_unread_results_stay(void **state) {
    (void)state;
    struct ggml_tensor *a = op1(GGML_OP_SQR, 64, leaf(64)), *kept = op1(GGML_OP_SQR, 64, a);
    ggml_set_output(kept);
    struct ggml_tensor *t = kept;
    for (int i = 0; i < 20; ++i) {
        t = op1(i % 2 ? GGML_OP_SCALE : GGML_OP_CONT, 64, t);
    }
    struct ggml_cgraph *g = expand(t);
    ggml_build_forward_expand(g, op1(GGML_OP_SCALE, 64, a)); // never read, not last
    ggml_build_forward_expand(g, op1(GGML_OP_CONT, 64, t));
    assert_true(ggml_gallocr_alloc_graph(galloc, g));
    check_by_playing(g);
}

static void check_apart(const struct ggml_tensor *a, const struct ggml_tensor *b) {
    const uintptr_t x = (uintptr_t)a->data, y = (uintptr_t)b->data;
    assert_true(x + ggml_nbytes(a) <= y || y + ggml_nbytes(b) <= x);
}

// It is written when its turn comes, after the last that reads it.
static void test_a_node_that_is_read_before_its_turn_keeps_its_memory(void **state) {
    (void)state;
    struct ggml_tensor *late = op1(GGML_OP_MUL_MAT, 64, weight(64));
    struct ggml_tensor *reader = op1(GGML_OP_MUL_MAT, 8, late);
    struct ggml_tensor *other = op1(GGML_OP_MUL_MAT, 64, weight(64));
    struct ggml_tensor *result = op2(GGML_OP_MUL_MAT, 8, reader, other);
    struct ggml_cgraph *g = ggml_new_graph_custom(ctx, 16, false);
    ggml_graph_add_node(g, reader);
    ggml_graph_add_node(g, other);
    ggml_graph_add_node(g, late);
    ggml_graph_add_node(g, result);
    assert_true(ggml_gallocr_alloc_graph(galloc, g));
    check_apart(late, other);
    check_apart(late, reader);
}

static void test_a_chain_needs_two_places(void **state) {
    (void)state;
    struct ggml_tensor *t = leaf(1000);
    for (int i = 0; i < 500; ++i) {
        t = op1(GGML_OP_CONT, 1000, t);
    }
    assert_true(ggml_gallocr_alloc_graph(galloc, expand(t)));
    assert_int_equal(ggml_gallocr_get_buffer_size(galloc, 0), 2 * 4000);
}

static uint64_t random_state;

static uint32_t next_random(uint32_t limit) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % limit;
}

static struct ggml_tensor *random_node(struct ggml_tensor **known, uint32_t n) {
    struct ggml_tensor *a = known[n - 1 - next_random(MIN(n, 12))], *b = known[next_random(n)];
    struct ggml_tensor *t;
    switch (next_random(8)) {
    case 0: return view_of(GGML_OP_RESHAPE, a);
    case 1: return view_of(GGML_OP_ADD, a); // in place by the builder
    case 2:
        t = op1(GGML_OP_CPY, 8 + next_random(300), a);
        t->src[1] = t; // as ggml_cast
        return t;
    case 3: return op1(GGML_OP_SCALE, ggml_nelements(a), a);
    case 4: return op2(GGML_OP_MUL, ggml_nelements(a), a, b);
    case 5: return ggml_view_tensor(ctx, a); // a leaf that views a node
    default: return op2(GGML_OP_MUL_MAT, 8 + next_random(300), a, b);
    }
}

static struct ggml_cgraph *random_graph(uint32_t seed) {
    struct ggml_tensor *known[150];
    struct ggml_cgraph *g = ggml_new_graph_custom(ctx, 512, false);
    const uint32_t n = 10 + seed % 140;
    random_state = seed;
    for (uint32_t i = 0; i < n; ++i) {
        known[i] = i < 5 ? leaf(8 + next_random(200)) : random_node(known, i);
        if (i == 0) known[i]->data = (void *)(uintptr_t)64;
        if (next_random(20) == 0) ggml_set_output(known[i]);
        if (next_random(20) == 0) ggml_set_input(known[i]);
        if (known[i]->op != GGML_OP_NONE) ggml_build_forward_expand(g, known[i]);
    }
    return g;
}

static void test_random_graphs_keep_their_data(void **state) {
    (void)state;
    for (uint32_t seed = 0; seed < 200; ++seed) {
        const size_t limits[] = {SIZE_MAX, 4096, 1000};
        start_anew();
        memory.max_size = limits[seed % 3];
        ggml_gallocr_free(galloc);
        galloc = ggml_gallocr_new(&memory.buft);
        struct ggml_cgraph *g = random_graph(seed);
        if (!ggml_gallocr_alloc_graph(galloc, g)) fail_msg("seed %u: %s", seed, ggml_last_error());
        check_by_playing(g);
    }
}

// The same structure with new tensors takes the same places, another one is planned anew.
static void test_random_graphs_one_after_the_other(void **state) {
    (void)state;
    for (uint32_t seed = 0; seed < 60; ++seed) {
        start_anew();
        memory.plain = seed % 2 == 0;
        memory.has_reset = seed % 3 == 0;
        memory.max_size = seed % 5 == 0 ? 3000 : SIZE_MAX;
        ggml_gallocr_free(galloc);
        galloc = ggml_gallocr_new(&memory.buft);
        size_t size = 0;
        for (uint32_t i = 0; i < 4; ++i) {
            struct ggml_cgraph *g = random_graph(seed + (i == 3));
            const int live = memory.live_buffers;
            assert_true(ggml_gallocr_alloc_graph(galloc, g));
            check_by_playing(g);
            if (i == 1 || i == 2) {
                assert_int_equal(ggml_gallocr_get_buffer_size(galloc, 0), size);
                assert_int_equal(memory.live_buffers, live);
            }
            size = ggml_gallocr_get_buffer_size(galloc, 0);
            assert_true(ggml_gallocr_alloc_graph(galloc, g)); // nothing is left to do
            check_by_playing(g);
        }
    }
}

// Nothing shows of an attempt to use the plan of another graph, not even in the buffers.
static void test_a_graph_that_does_not_fit_changes_nothing(void **state) {
    (void)state;
    for (int has_reset = 0; has_reset < 2; ++has_reset) {
        start_anew();
        memory.plain = true;
        memory.has_reset = has_reset;
        ggml_backend_buffer_type_t bufts[2] = {&memory.buft, &memory.buft};
        ggml_gallocr_t two = ggml_gallocr_new_n(bufts, 2);
        struct ggml_tensor *w = weight(64), *in = leaf(64);
        struct ggml_tensor *a = op2(GGML_OP_MUL_MAT, 64, view_of(GGML_OP_RESHAPE, w), in);
        struct ggml_tensor *b = op1(GGML_OP_CONT, 64, view_of(GGML_OP_RESHAPE, a));
        struct ggml_cgraph *g = expand(op2(GGML_OP_MUL_MAT, 64, a, b));
        assert_true(ggml_gallocr_reserve(two, g));
        assert_true(ggml_gallocr_alloc_graph(two, g));
        assert_int_equal(memory.resets, has_reset);

        struct ggml_backend_buffer *buffer = a->buffer;
        w->buffer = buffer;
        struct ggml_tensor *v = view_of(GGML_OP_RESHAPE, w);
        v->data = w->data;
        struct ggml_tensor *c = op2(GGML_OP_MUL_MAT, 64, v, leaf(64));
        struct ggml_tensor *d = op1(GGML_OP_CONT, 64, view_of(GGML_OP_RESHAPE, c));
        struct ggml_cgraph *other = expand(op2(GGML_OP_MUL_MAT, 64, d, d)); // not c and d
        assert_int_equal(ggml_graph_n_nodes(other), ggml_graph_n_nodes(g));
        assert_false(ggml_gallocr_alloc_graph(two, other));
        assert_int_equal(memory.resets, has_reset);
        assert_ptr_equal(a->buffer, buffer);
        assert_ptr_equal(v->data, w->data);
        assert_null(v->buffer);
        for (int i = 1; i < other->n_nodes; ++i) {
            assert_null(other->nodes[i]->buffer);
            assert_null(other->nodes[i]->data);
        }
        w->buffer = NULL;
        ggml_gallocr_free(two);
    }
}

static void test_two_buffer_types(void **state) {
    (void)state;
    struct fake_memory other;
    fake_memory_init(&other, 64, SIZE_MAX);
    ggml_backend_buffer_type_t bufts[3] = {&memory.buft, &other.buft, &memory.buft};
    ggml_gallocr_t many = ggml_gallocr_new_n(bufts, 3);
    for (uint32_t seed = 0; seed < 40; ++seed) {
        int node_ids[512], leaf_ids[512];
        size_t sizes[3];
        struct ggml_cgraph *g = random_graph(seed);
        for (int i = 0; i < 512; ++i) {
            node_ids[i] = (int)next_random(3);
            leaf_ids[i] = (int)next_random(3);
        }
        assert_false(ggml_gallocr_alloc_graph(many, g)); // reserved for another graph, or for none
        ggml_gallocr_reserve_n_size(many, g, node_ids, leaf_ids, sizes);
        assert_int_equal(sizes[0], sizes[2]);
        assert_true(ggml_gallocr_reserve_n(many, g, node_ids, leaf_ids));
        assert_true(ggml_gallocr_get_buffer_size(many, 0) >= sizes[0]);
        assert_true(ggml_gallocr_get_buffer_size(many, 1) >= sizes[1]);
        assert_int_equal(ggml_gallocr_get_buffer_size(many, 2), 0);
        assert_true(ggml_gallocr_alloc_graph(many, g));
        if (fake_next_base < (1 << 20) + UNIT * (size_t)MAX_UNITS) check_by_playing(g);
        ggml_reset(ctx);
    }
    int bad_ids[512] = {3};
    assert_false(ggml_gallocr_reserve_n(many, random_graph(1), bad_ids, NULL));
    ggml_gallocr_free(many);
    assert_int_equal(other.live_buffers, 0);
}

// As in ggml: memory that is taken over counts more than the buffer that was asked for.
static void test_in_place_across_buffers(void **state) {
    (void)state;
    struct fake_memory other;
    fake_memory_init(&other, 32, SIZE_MAX);
    ggml_backend_buffer_type_t bufts[2] = {&memory.buft, &other.buft};
    ggml_gallocr_t both = ggml_gallocr_new_n(bufts, 2);
    struct ggml_tensor *a = op1(GGML_OP_MUL_MAT, 64, weight(8));
    struct ggml_tensor *b = op1(GGML_OP_SCALE, 64, a), *c = op1(GGML_OP_SQR, 64, b);
    struct ggml_tensor *d = op1(GGML_OP_MUL_MAT, 32, c), *e = op1(GGML_OP_SCALE, 32, d);
    struct ggml_cgraph *g = expand(e);
    const int ids[] = {0, 1, 1, 1, 0}; // of a, b, c, d and e
    assert_true(ggml_gallocr_reserve_n(both, g, ids, NULL));
    assert_true(ggml_gallocr_alloc_graph(both, g));
    assert_ptr_equal(b->data, a->data);
    assert_ptr_equal(c->data, a->data);
    assert_ptr_equal(e->data, d->data);
    assert_ptr_equal(c->buffer, a->buffer);
    assert_ptr_equal(a->buffer->buft, &memory.buft);
    assert_ptr_equal(d->buffer->buft, &other.buft);
    assert_ptr_equal(e->buffer, d->buffer);
    assert_int_equal(ggml_gallocr_get_buffer_size(both, 0), 256);
    assert_int_equal(ggml_gallocr_get_buffer_size(both, 1), 128);
    check_by_playing(g);
    // Where the memory can't be taken over, the buffer that was asked for is used.
    reset_tensors();
    struct ggml_cgraph *g2 = expand(op2(GGML_OP_ADD, 64, b, a));
    const int ids2[] = {0, 1, 1};
    assert_true(ggml_gallocr_reserve_n(both, g2, ids2, NULL));
    assert_true(ggml_gallocr_alloc_graph(both, g2));
    assert_ptr_equal(a->buffer->buft, &memory.buft);
    assert_ptr_equal(b->buffer->buft, &other.buft);
    check_by_playing(g2);
    ggml_gallocr_free(both);
    assert_int_equal(other.live_buffers, 0);
}

// What an earlier plan needed more of is not kept where a later one needs other buffers to grow.
static void test_buffers_are_as_planned(void **state) {
    (void)state;
    memory.max_size = 256;
    fake_memory_init(&memory, 32, 256);
    ggml_gallocr_t limited = ggml_gallocr_new(&memory.buft);
    struct ggml_tensor *a = leaf(64), *b = leaf(32);
    ggml_set_input(a), ggml_set_input(b);
    assert_true(ggml_gallocr_reserve(limited, expand(op2(GGML_OP_MUL_MAT, 8, a, b))));
    assert_int_equal(ggml_gallocr_get_buffer_size(limited, 0), 256 + 160);
    struct ggml_tensor *c = leaf(48), *d = leaf(48);
    ggml_set_input(c), ggml_set_input(d);
    assert_true(ggml_gallocr_reserve(limited, expand(op2(GGML_OP_ADD, 48, c, d))));
    assert_int_equal(ggml_gallocr_get_buffer_size(limited, 0), 192 + 192);
    assert_int_equal(memory.live_bytes, 192 + 192);
    ggml_gallocr_free(limited);
}

struct shape {
    int64_t embed, tokens, context, ffn;
    int layers, kv_share;
    bool flash;
};

static struct ggml_tensor *attention(const struct shape *s, struct ggml_tensor *x,
                                     struct ggml_tensor *mask, struct ggml_tensor *pos,
                                     struct ggml_cgraph *g) {
    const int64_t n = s->embed * s->tokens, kv = n / s->kv_share;
    const int64_t scores = s->tokens * s->context * MAX(s->embed / 64, 1);
    struct ggml_tensor *q = op2(GGML_OP_MUL_MAT, n, weight(8), x);
    struct ggml_tensor *k = op2(GGML_OP_MUL_MAT, kv, weight(8), x);
    struct ggml_tensor *v = op2(GGML_OP_MUL_MAT, kv, weight(8), x);
    q = op2(GGML_OP_ROPE, n, view_of(GGML_OP_RESHAPE, q), pos);
    k = op2(GGML_OP_ROPE, kv, view_of(GGML_OP_RESHAPE, k), pos);
    struct ggml_tensor *k_cache = weight(8), *v_cache = weight(8);
    ggml_build_forward_expand(g, op2(GGML_OP_SET_ROWS, 8, k, k_cache));
    ggml_build_forward_expand(g, op2(GGML_OP_SET_ROWS, 8, v, v_cache));
    q = view_of(GGML_OP_PERMUTE, q);
    if (s->flash) {
        struct ggml_tensor *out = op2(GGML_OP_FLASH_ATTN_EXT, n, q, k_cache);
        out->src[2] = v_cache;
        out->src[3] = mask;
        return view_of(GGML_OP_RESHAPE, out);
    }
    struct ggml_tensor *kq = op2(GGML_OP_MUL_MAT, scores, k_cache, q);
    kq = op2(GGML_OP_SOFT_MAX, scores, kq, mask);
    struct ggml_tensor *kqv = op2(GGML_OP_MUL_MAT, n, v_cache, kq);
    return op1(GGML_OP_CONT, n, view_of(GGML_OP_PERMUTE, kqv));
}

static struct ggml_tensor *normed(struct ggml_tensor *x) {
    return op2(GGML_OP_MUL, x->ne[0], op1(GGML_OP_RMS_NORM, x->ne[0], x), weight(8));
}

static struct ggml_cgraph *transformer(const struct shape *s) {
    const int64_t n = s->embed * s->tokens, wide = s->ffn * s->tokens;
    struct ggml_cgraph *g = ggml_new_graph_custom(ctx, 8192, false);
    struct ggml_tensor *tokens = leaf(s->tokens), *pos = leaf(s->tokens);
    struct ggml_tensor *mask = leaf(s->tokens * s->context);
    ggml_set_input(tokens), ggml_set_input(pos), ggml_set_input(mask);
    struct ggml_tensor *x = op2(GGML_OP_GET_ROWS, n, weight(8), tokens);
    for (int i = 0; i < s->layers; ++i) {
        struct ggml_tensor *a = attention(s, normed(x), mask, pos, g);
        x = op2(GGML_OP_ADD, n, op2(GGML_OP_MUL_MAT, n, weight(8), a), x);
        struct ggml_tensor *y = normed(x);
        struct ggml_tensor *gate = op2(GGML_OP_MUL_MAT, wide, weight(8), y);
        struct ggml_tensor *up = op2(GGML_OP_MUL_MAT, wide, weight(8), y);
        y = op2(GGML_OP_MUL_MAT, n, weight(8), op2(GGML_OP_GLU, wide, gate, up));
        x = op2(GGML_OP_ADD, n, y, x);
    }
    struct ggml_tensor *logits = op2(GGML_OP_MUL_MAT, 1000 * s->tokens, weight(8), normed(x));
    ggml_set_output(logits);
    ggml_build_forward_expand(g, logits);
    return g;
}

static void test_transformers_stay_near_the_lower_bound(void **state) {
    (void)state;
    const struct shape shapes[] = {
        {64, 16, 32, 172, 4, 1, false},   {64, 16, 256, 172, 4, 4, false},
        {128, 1, 512, 344, 8, 1, false},  {128, 32, 64, 512, 6, 8, true},
        {256, 8, 128, 1024, 12, 2, true}, {96, 24, 24, 96, 5, 3, false},
        {320, 7, 77, 1280, 10, 5, false}, {64, 64, 64, 64, 3, 1, true},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); ++i) {
        start_anew();
        struct ggml_cgraph *g = transformer(&shapes[i]);
        assert_true(ggml_gallocr_alloc_graph(galloc, g));
        check_by_playing(g);
        const size_t peak = ggml_gallocr_get_buffer_size(galloc, 0), bound = live_peak(g);
        if (peak > bound + bound / 20) fail_msg("shape %zu: %zu bytes, bound %zu", i, peak, bound);
    }
}

static void test_a_plan_is_reused_until_the_structure_changes(void **state) {
    (void)state;
    struct ggml_tensor *in = leaf(4), *a = op1(GGML_OP_CONT, 900, in),
                       *b = op1(GGML_OP_CONT, 900, a);
    assert_true(ggml_gallocr_reserve(galloc, expand(op2(GGML_OP_MUL_MAT, 900, a, b))));
    const size_t size = ggml_gallocr_get_buffer_size(galloc, 0);
    ggml_backend_buffer_type_t bufts[2] = {&memory.buft, &memory.buft};
    ggml_gallocr_t two = ggml_gallocr_new_n(bufts, 2);
    assert_true(ggml_gallocr_reserve(two, expand(op2(GGML_OP_MUL_MAT, 900, a, b))));

    // Smaller tensors, same structure.
    struct ggml_tensor *c = op1(GGML_OP_CONT, 300, in), *d = op1(GGML_OP_CONT, 300, c);
    struct ggml_cgraph *same = expand(op2(GGML_OP_MUL_MAT, 300, c, d));
    assert_true(ggml_gallocr_alloc_graph(galloc, same));
    assert_int_equal(ggml_gallocr_get_buffer_size(galloc, 0), size);
    reset_tensors();
    assert_true(ggml_gallocr_alloc_graph(two, same));
    reset_tensors();

    // As many nodes of the same sizes, but `c` lives longer.
    struct ggml_tensor *e = op2(GGML_OP_MUL_MAT, 300, d, d);
    struct ggml_cgraph *longer = expand(e);
    assert_false(ggml_gallocr_alloc_graph(two, longer));
    assert_null(e->data);
    assert_true(ggml_gallocr_reserve_n(two, longer, NULL, NULL));
    assert_true(ggml_gallocr_alloc_graph(two, longer));
    reset_tensors();
    d->flags |= GGML_TENSOR_FLAG_OUTPUT;
    assert_false(ggml_gallocr_alloc_graph(two, longer));
    assert_true(ggml_gallocr_alloc_graph(galloc, longer));
    ggml_gallocr_free(two);
}

static void test_one_tensor_in_two_roles_is_noticed(void **state) {
    (void)state;
    ggml_backend_buffer_type_t bufts[2] = {&memory.buft, &memory.buft};
    ggml_gallocr_t two = ggml_gallocr_new_n(bufts, 2);
    struct ggml_tensor *x = leaf(64), *y = leaf(64);
    struct ggml_cgraph *g = ggml_new_graph(ctx);
    ggml_graph_add_node(g, op1(GGML_OP_CONT, 64, x));
    ggml_graph_add_node(g, op1(GGML_OP_CONT, 64, y));
    assert_true(ggml_gallocr_reserve_n(two, g, NULL, NULL));
    g->nodes[1]->src[0] = x;
    assert_false(ggml_gallocr_alloc_graph(two, g));
    assert_null(x->data);
    assert_null(g->nodes[0]->data);
    ggml_gallocr_free(two);
}

static void test_tensors_without_elements(void **state) {
    (void)state;
    struct ggml_tensor *a = op1(GGML_OP_CONT, 0, leaf(0));
    struct ggml_tensor *b = op1(GGML_OP_CONT, 0, view_of(GGML_OP_VIEW, a));
    assert_true(ggml_gallocr_alloc_graph(galloc, expand(b)));
    assert_non_null(b->buffer);
    assert_non_null(b->data);
}

static void test_broken_graphs_are_refused(void **state) {
    (void)state;
    struct ggml_cgraph *g = ggml_new_graph(ctx);
    ggml_build_forward_expand(g, op1(GGML_OP_CONT, 1, ggml_error_tensor(ctx, "odd shapes")));
    size_t size = 7;
    assert_false(ggml_gallocr_reserve(galloc, g));
    assert_false(ggml_gallocr_alloc_graph(galloc, g));
    assert_non_null(strstr(ggml_last_error(), "odd shapes"));
    ggml_gallocr_reserve_n_size(galloc, g, NULL, NULL, &size);
    assert_int_equal(size, 0);
    assert_false(ggml_gallocr_alloc_graph(NULL, g));
    assert_false(ggml_gallocr_alloc_graph(galloc, NULL));
    assert_null(ggml_gallocr_new(NULL));
    assert_null(ggml_gallocr_new_n(NULL, 0));
    assert_int_equal(ggml_gallocr_get_buffer_size(galloc, 1), 0);
    ggml_graph_clear(g);
    assert_true(ggml_gallocr_alloc_graph(galloc, g)); // nothing to do
    struct ggml_tensor *huge = op1(GGML_OP_CONT, INT64_MAX / 16, leaf(INT64_MAX / 16));
    memory.allocations_left = 0;
    assert_false(
        ggml_gallocr_alloc_graph(galloc, expand(op2(GGML_OP_MUL_MAT, 8, huge, huge->src[0]))));
}

static void test_failures_leave_a_usable_allocator(void **state) {
    (void)state;
    struct ggml_cgraph *g = random_graph(77);
    memory.allocations_left = 0;
    assert_false(ggml_gallocr_reserve(galloc, g));
    assert_false(ggml_gallocr_alloc_graph(galloc, g));
    memory.allocations_left = -1;
    bool good = false;
    for (int left = 0; left < 500 && !good; ++left) {
        memory.inits_left = left;
        good = ggml_gallocr_alloc_graph(galloc, g);
        for (int i = 0; i < g->n_nodes && !good; ++i) {
            assert_null(g->nodes[i]->buffer);
        }
    }
    assert_true(good);
    check_by_playing(g);
}

static int allocations_left;

static bool count_down(void *context) {
    (void)context;
    return allocations_left-- > 0;
}

static void test_every_allocation_may_fail(void **state) {
    (void)state;
    struct ggml_cgraph *g = random_graph(33);
    memory.max_size = 2000;
    bool good = false;
    for (int limit = 0; limit < 500 && !good; ++limit) {
        allocations_left = limit;
        ggml_mem_set_fault_hook(count_down, NULL);
        ggml_gallocr_t fresh = ggml_gallocr_new(&memory.buft);
        good = fresh && ggml_gallocr_alloc_graph(fresh, g);
        ggml_mem_set_fault_hook(NULL, NULL);
        if (good) check_by_playing(g);
        ggml_gallocr_free(fresh);
        assert_int_equal(memory.live_buffers, 0);
    }
    assert_true(good);
}

#define GALLOCR_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        GALLOCR_TEST(test_in_place_where_nobody_else_looks),
        GALLOCR_TEST(test_in_place_through_a_reshape),
        GALLOCR_TEST(test_rows_that_are_picked_keep_their_memory),
        GALLOCR_TEST(test_outputs_and_unread_results_stay),
        GALLOCR_TEST(test_a_node_that_is_read_before_its_turn_keeps_its_memory),
        GALLOCR_TEST(test_a_chain_needs_two_places),
        GALLOCR_TEST(test_random_graphs_keep_their_data),
        GALLOCR_TEST(test_random_graphs_one_after_the_other),
        GALLOCR_TEST(test_a_graph_that_does_not_fit_changes_nothing),
        GALLOCR_TEST(test_two_buffer_types),
        GALLOCR_TEST(test_in_place_across_buffers),
        GALLOCR_TEST(test_buffers_are_as_planned),
        GALLOCR_TEST(test_transformers_stay_near_the_lower_bound),
        GALLOCR_TEST(test_a_plan_is_reused_until_the_structure_changes),
        GALLOCR_TEST(test_one_tensor_in_two_roles_is_noticed),
        GALLOCR_TEST(test_tensors_without_elements),
        GALLOCR_TEST(test_broken_graphs_are_refused),
        GALLOCR_TEST(test_failures_leave_a_usable_allocator),
        GALLOCR_TEST(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
