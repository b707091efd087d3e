// SPDX-License-Identifier: MIT
// Graphs: topological order, numbering, copies, hash sets, fusable chains and subgraphs, and
// visits that run out of memory.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "ggml-backend-impl.h"
#include "ggml-host.h"
#include "ggml-impl.h"
#include "tensor/error_tensor.h"

static struct ggml_context *ctx;

static int set_up(void **state) {
    (void)state;
    ctx = ggml_init((struct ggml_init_params){1 << 22, NULL, true});
    return ctx ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    ggml_mem_set_fault_hook(NULL, NULL);
    ggml_free(ctx);
    return 0;
}

static struct ggml_tensor *leaf(const char *name) {
    return ggml_set_name(ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4), name);
}

static struct ggml_tensor *node(enum ggml_op op, struct ggml_tensor *a, struct ggml_tensor *b) {
    struct ggml_tensor *t = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4);
    t->op = op;
    t->src[0] = a;
    t->src[1] = b;
    return t;
}

static void test_order_respects_dependencies(void **state) {
    (void)state;
    struct ggml_tensor *a = leaf("a"), *b = leaf("b");
    struct ggml_tensor *x = node(GGML_OP_ADD, a, b), *y = node(GGML_OP_MUL, x, x);
    struct ggml_tensor *z = node(GGML_OP_ADD, y, x);
    struct ggml_cgraph *g = ggml_new_graph(ctx);
    ggml_build_forward_expand(g, z);
    assert_int_equal(ggml_graph_n_nodes(g), 3);
    assert_ptr_equal(ggml_graph_node(g, 0), x);
    assert_ptr_equal(ggml_graph_node(g, 1), y);
    assert_ptr_equal(ggml_graph_node(g, -1), z);
    assert_ptr_equal(g->leafs[0], a);
    assert_ptr_equal(g->leafs[1], b);
    assert_string_equal(x->name, "node_0");
    assert_int_equal(ggml_node_get_use_count(g, 0), 3);
    assert_int_equal(ggml_node_get_use_count(g, 2), 0);
    assert_true(z->flags & y->flags & GGML_TENSOR_FLAG_COMPUTE);
    assert_ptr_equal(ggml_graph_get_tensor(g, "b"), b);
    assert_null(ggml_graph_node(g, 3));
    assert_null(ggml_graph_node(g, -4));
    assert_null(ggml_graph_error(g));
}

static void test_nodes_are_numbered_and_found_in_any_size_of_graph(void **state) {
    enum { NODES = 1200 };
    (void)state;
    for (size_t size = 2 * NODES; size < 32000; size = 2 * size + 1) {
        struct ggml_cgraph *g = ggml_new_graph_custom(ctx, size, false);
        struct ggml_tensor *nodes[NODES] = {leaf(""), node(GGML_OP_SQR, leaf(""), NULL)};
        for (int i = 2; i < NODES; ++i) {
            nodes[i] = node(GGML_OP_ADD, nodes[i - 1], nodes[i / 2]);
        }
        ggml_build_forward_expand(g, nodes[NODES - 1]);
        assert_int_equal(ggml_graph_n_nodes(g), NODES - 1);
        for (int i = 1; i < NODES; ++i) {
            char name[GGML_MAX_NAME] = "";
            snprintf(name, sizeof(name), "node_%d", i - 1);
            assert_ptr_equal(ggml_graph_node(g, i - 1), nodes[i]);
            assert_memory_equal(nodes[i]->name, name, sizeof(name));
            assert_true(ggml_hash_contains(&g->visited_hash_set, nodes[i]));
            const size_t slot = ggml_hash_find(&g->visited_hash_set, nodes[i]);
            assert_ptr_equal(g->visited_hash_set.keys[slot], nodes[i]);
        }
        assert_string_equal(g->leafs[0]->name, "leaf_0");
        ggml_reset(ctx);
    }
}

static void test_right_to_left_visits_last_source_first(void **state) {
    (void)state;
    struct ggml_tensor *a = leaf("a"), *b = leaf("b");
    struct ggml_tensor *x = node(GGML_OP_SQR, a, NULL), *y = node(GGML_OP_SQR, b, NULL);
    struct ggml_cgraph *g = ggml_new_graph(ctx);
    g->order = GGML_CGRAPH_EVAL_ORDER_RIGHT_TO_LEFT;
    ggml_build_forward_expand(g, node(GGML_OP_ADD, x, y));
    assert_ptr_equal(ggml_graph_node(g, 0), y);
    assert_ptr_equal(ggml_graph_node(g, 1), x);
}

static void test_select_computes_one_branch(void **state) {
    (void)state;
    struct ggml_tensor *shared = node(GGML_OP_SQR, leaf("a"), NULL);
    struct ggml_tensor *branches[2] = {node(GGML_OP_LOG, shared, NULL),
                                       node(GGML_OP_SQRT, shared, NULL)};
    struct ggml_cgraph *g = ggml_new_graph(ctx);
    assert_ptr_equal(ggml_build_forward_select(g, branches, 2, 1), branches[1]);
    assert_int_equal(ggml_graph_n_nodes(g), 3);
    assert_false(branches[0]->flags & GGML_TENSOR_FLAG_COMPUTE);
    assert_true(branches[1]->flags & GGML_TENSOR_FLAG_COMPUTE);
    assert_true(shared->flags & GGML_TENSOR_FLAG_COMPUTE);
    assert_true(ggml_tensor_is_error(ggml_build_forward_select(g, branches, 2, 2)));
    assert_non_null(ggml_graph_error(g));
}

static void test_ordered_nodes_can_be_computed_later(void **state) {
    (void)state;
    struct ggml_tensor *x = node(GGML_OP_SQR, leaf("a"), NULL);
    struct ggml_tensor *y = node(GGML_OP_SQR, x, NULL), *z = node(GGML_OP_SQR, y, NULL);
    struct ggml_cgraph *g = ggml_new_graph(ctx);
    ggml_build_forward_order(g, z);
    assert_false(x->flags & GGML_TENSOR_FLAG_COMPUTE);
    ggml_build_forward_expand(g, y);
    assert_true(x->flags & y->flags & GGML_TENSOR_FLAG_COMPUTE);
    assert_false(z->flags & GGML_TENSOR_FLAG_COMPUTE);
    assert_int_equal(ggml_graph_n_nodes(g), 3);
    assert_int_equal(ggml_node_get_use_count(g, 0), 1);
}

static void test_a_million_levels_do_not_overflow_the_stack(void **state) {
    (void)state;
    const size_t depth = 1000000;
    struct ggml_tensor *chain = ggml_mem_calloc(depth, sizeof(*chain));
    const size_t size = ggml_graph_overhead_custom(depth, false);
    struct ggml_context *large = ggml_init((struct ggml_init_params){size, NULL, true});
    assert_non_null(chain);
    assert_non_null(large);
    for (size_t i = 0; i < depth; ++i) {
        chain[i].op = i > 0 ? GGML_OP_SQR : GGML_OP_NONE;
        chain[i].src[0] = i > 0 ? &chain[i - 1] : NULL;
        chain[i].src[1] = i > 1 ? &chain[i - 2] : NULL;
    }
    struct ggml_cgraph *g = ggml_new_graph_custom(large, depth, false);
    ggml_build_forward_order(g, &chain[depth - 1]);
    assert_null(ggml_graph_error(g));
    assert_int_equal(ggml_graph_n_nodes(g), depth - 1);
    ggml_build_forward_expand(g, &chain[depth - 1]);
    assert_true(chain[1].flags & GGML_TENSOR_FLAG_COMPUTE);
    for (int i = 0; i < g->n_nodes; ++i) {
        if (g->nodes[i] != &chain[i + 1]) fail_msg("node %d is out of order", i);
    }
    ggml_free(large);
    ggml_mem_free(chain);
}

static void test_self_loops_and_dependency_leafs_end(void **state) {
    (void)state;
    struct ggml_tensor *cast = node(GGML_OP_CPY, leaf("a"), NULL);
    cast->src[1] = cast;
    struct ggml_cgraph *g = ggml_new_graph(ctx);
    struct ggml_tensor *used = node(GGML_OP_SQR, cast, NULL);
    ggml_build_forward_order(g, used);
    ggml_build_forward_expand(g, used);
    assert_int_equal(ggml_graph_n_nodes(g), 2);
    assert_int_equal(ggml_node_get_use_count(g, 0), 1);

    struct ggml_tensor *marker = node(GGML_OP_NONE, cast, NULL); // each level doubles the paths
    for (int i = 0; i < 200; ++i) {
        marker = node(GGML_OP_NONE, marker, marker);
    }
    marker->src[3] = marker;
    ggml_build_forward_order(g, marker);
    ggml_build_forward_expand(g, marker);
    assert_null(ggml_graph_error(g));
}

static void test_a_full_graph_is_an_error_not_a_crash(void **state) {
    (void)state;
    struct ggml_cgraph *g = ggml_new_graph_custom(ctx, 2, false);
    struct ggml_tensor *t = leaf("a");
    for (int i = 0; i < 9; ++i) {
        t = node(GGML_OP_SQR, t, NULL);
    }
    ggml_build_forward_expand(g, t);
    assert_non_null(ggml_graph_error(g));
    assert_non_null(strstr(ggml_last_error(), "full"));
    ggml_graph_clear(g);
    assert_null(ggml_graph_error(g));
    ggml_build_forward_expand(g, node(GGML_OP_SQR, leaf("b"), NULL));
    assert_null(ggml_graph_error(g));
    ggml_graph_add_node(g, leaf("c"));
    ggml_graph_add_node(g, leaf("d"));
    assert_non_null(ggml_graph_error(g));
    assert_int_equal(ggml_graph_n_nodes(g), 2);
}

static void test_error_tensors_name_the_first_reason(void **state) {
    (void)state;
    struct ggml_tensor *bad = ggml_error_tensor(ctx, "rows differ");
    struct ggml_cgraph *g = ggml_new_graph(ctx);
    ggml_build_forward_expand(g, node(GGML_OP_SQR, bad, NULL));
    assert_string_equal(ggml_graph_error(g), "rows differ");
    ggml_build_forward_expand(g, NULL);
    assert_string_equal(ggml_graph_error(g), "rows differ");
    assert_string_equal(ggml_graph_error(ggml_graph_dup(ctx, g, false)), "rows differ");
    const struct ggml_cgraph view = ggml_graph_view(g, 0, 0);
    assert_string_equal(view.error, "rows differ");
}

static bool never(void *context) {
    (void)context;
    return false;
}

static void test_running_out_of_memory_during_the_visit(void **state) {
    (void)state;
    struct ggml_tensor *t = leaf("a");
    for (int i = 0; i < 200; ++i) {
        t = node(GGML_OP_SQR, t, NULL);
    }
    struct ggml_cgraph *g = ggml_new_graph(ctx);
    ggml_mem_set_fault_hook(never, NULL);
    ggml_build_forward_expand(g, t);
    ggml_mem_set_fault_hook(NULL, NULL);
    assert_non_null(ggml_graph_error(g));
    ggml_graph_clear(g);
    ggml_build_forward_expand(g, t);
    assert_int_equal(ggml_graph_n_nodes(g), 200);
}

static void test_impossible_graph_sizes(void **state) {
    (void)state;
    assert_null(ggml_new_graph_custom(ctx, SIZE_MAX, true));
    assert_null(ggml_new_graph_custom(ctx, (size_t)INT32_MAX, true));
    assert_true(ggml_graph_overhead_custom(SIZE_MAX, true) >= SIZE_MAX / 2);
    assert_null(ggml_new_graph_custom(NULL, 8, false));
    for (size_t size = 0; size < 70; size += 3) {
        const size_t overhead = ggml_graph_overhead_custom(size, size % 2);
        struct ggml_context *exact = ggml_init((struct ggml_init_params){overhead, NULL, true});
        struct ggml_cgraph *g = ggml_new_graph_custom(exact, size, size % 2);
        assert_non_null(g);
        assert_int_equal(ggml_used_mem(exact), overhead);
        assert_true(
            (char *)(g->visited_hash_set.used + ggml_bitset_size(g->visited_hash_set.size)) <=
            (char *)ggml_get_mem_buffer(exact) + overhead);
        ggml_free(exact);
    }
}

static void test_copies_keep_order_uses_and_gradients(void **state) {
    (void)state;
    struct ggml_tensor *x = node(GGML_OP_SQR, leaf("a"), NULL);
    struct ggml_cgraph *g = ggml_new_graph_custom(ctx, 8, true);
    ggml_build_forward_expand(g, node(GGML_OP_MUL, x, x));
    g->grads[ggml_hash_find(&g->visited_hash_set, x)] = leaf("grad of x");
    g->uid = ggml_graph_next_uid();
    struct ggml_cgraph *copy = ggml_graph_dup(ctx, g, false);
    assert_int_equal(copy->n_nodes, 2);
    assert_int_equal(copy->n_leafs, 1);
    assert_int_equal(copy->uid, 0);
    assert_int_equal(ggml_node_get_use_count(copy, 0), 2);
    assert_string_equal(ggml_graph_get_grad(copy, x)->name, "grad of x");
    assert_null(ggml_graph_get_grad_acc(copy, x));
    struct ggml_cgraph *small = ggml_new_graph_custom(ctx, 1, true);
    ggml_graph_cpy(g, small);
    assert_non_null(ggml_graph_error(small));
    const struct ggml_cgraph view = ggml_graph_view(g, 1, 2);
    assert_int_equal(view.n_nodes, 1);
    assert_int_equal(ggml_node_get_use_count(g, 0), 2);
    assert_non_null(ggml_graph_view(g, 1, 3).error);
    assert_true(ggml_graph_next_uid() > g->uid);
}

static void test_reset_sets_the_loss_to_one(void **state) {
    (void)state;
    struct ggml_context *host = ggml_init((struct ggml_init_params){1 << 16, NULL, false});
    struct ggml_cgraph *g = ggml_new_graph_custom(host, 8, true);
    struct ggml_tensor *loss = ggml_new_tensor_1d(host, GGML_TYPE_F32, 1);
    struct ggml_tensor *other = ggml_new_tensor_1d(host, GGML_TYPE_F32, 2);
    struct ggml_tensor *acc[2] = {ggml_dup_tensor(host, loss), ggml_dup_tensor(host, other)};
    ggml_set_loss(loss);
    loss->op = other->op = GGML_OP_SQR;
    ggml_build_forward_expand(g, loss);
    ggml_build_forward_expand(g, other);
    g->grad_accs[ggml_hash_find(&g->visited_hash_set, loss)] = acc[0];
    g->grad_accs[ggml_hash_find(&g->visited_hash_set, other)] = acc[1];
    memset(acc[1]->data, 5, ggml_nbytes(acc[1]));
    ggml_graph_reset(g);
    assert_true(*ggml_get_data_f32(acc[0]) == 1.0f);
    assert_true(ggml_get_data_f32(acc[1])[1] == 0.0f);
    ggml_free(host);
}

static void test_hash_set_finds_everything_until_full(void **state) {
    (void)state;
    static struct ggml_tensor keys[40];
    struct ggml_hash_set set = ggml_hash_set_new(20);
    assert_int_equal(set.size, 37);
    for (size_t i = 0; i < set.size; ++i) {
        assert_true(ggml_hash_insert(&set, &keys[i]) < set.size);
    }
    assert_int_equal(ggml_hash_insert(&set, &keys[3]), GGML_HASHSET_ALREADY_EXISTS);
    assert_int_equal(ggml_hash_insert(&set, &keys[38]), GGML_HASHSET_FULL);
    assert_int_equal(ggml_hash_find_or_insert(&set, &keys[38]), GGML_HASHSET_FULL);
    assert_false(ggml_hash_contains(&set, &keys[39]));
    ggml_hash_set_reset(&set);
    assert_false(ggml_hash_contains(&set, &keys[0]));
    ggml_hash_set_free(&set);
    assert_int_equal(ggml_hash_find(&set, &keys[0]), GGML_HASHSET_FULL);
    assert_int_equal(ggml_hash_set_new(SIZE_MAX - 1).size, 0);
    ggml_mem_set_fault_hook(never, NULL);
    assert_int_equal(ggml_hash_set_new(4).size, 0);
}

// Compiled into programs that include ggml-impl.h, so that it stays what it is: addresses that are
// never read, and their slots.
static void test_the_slots_of_addresses_never_change(void **state) {
    (void)state;
    static const struct {
        uintptr_t address;
        size_t slot;
    } rows[] = {{0x1000, 34}, {0x1008, 35}, {0x7f0000000010, 17}, {0x1250, 36}, {0x1260, 0}};
    ggml_bitset_t used[2] = {0};
    struct ggml_tensor *keys[37] = {NULL};
    struct ggml_hash_set set = {37, used, keys};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        struct ggml_tensor *key = (struct ggml_tensor *)rows[i].address;
        assert_int_equal(ggml_hash_insert(&set, key), rows[i].slot);
        assert_ptr_equal(keys[rows[i].slot], key);
        assert_true(used[rows[i].slot / 32] >> rows[i].slot % 32 & 1);
    }
}

static bool is_prime(size_t n) {
    for (size_t i = 2; i * i <= n; ++i) {
        if (n % i == 0) return false;
    }
    return n > 1;
}

static void test_hash_sizes_are_the_next_primes(void **state) {
    (void)state;
    for (unsigned k = 1; k < 31; ++k) {
        const size_t size = ggml_hash_size(((size_t)1 << k) + 1);
        assert_true(size > (size_t)1 << k && size < (size_t)2 << k);
        assert_true(is_prime(size));
    }
    assert_int_equal(ggml_hash_size(0), 2);
    assert_int_equal(ggml_hash_size((size_t)1 << 33), ((size_t)1 << 33) + 1);
}

static void test_chains_fuse_only_when_nobody_else_looks(void **state) {
    (void)state;
    struct ggml_tensor *norm = node(GGML_OP_RMS_NORM, leaf("a"), NULL);
    struct ggml_tensor *mul = node(GGML_OP_MUL, leaf("w"), norm);
    struct ggml_tensor *add = node(GGML_OP_ADD, mul, leaf("b"));
    struct ggml_cgraph *g = ggml_new_graph(ctx);
    const enum ggml_op ops[] = {GGML_OP_RMS_NORM, GGML_OP_MUL, GGML_OP_ADD};
    ggml_build_forward_order(g, add);
    assert_false(ggml_can_fuse(g, 0, ops, 3)); // nobody computes it
    ggml_build_forward_expand(g, add);
    assert_true(ggml_can_fuse(g, 0, ops, 3));
    assert_true(ggml_can_fuse_ext(g, (const int[]){0, 1}, ops, 2));
    assert_false(ggml_can_fuse(g, 1, ops, 2));
    assert_false(ggml_can_fuse(g, 0, ops, 0));
    assert_false(ggml_can_fuse(g, 1, ops + 1, 3));
    assert_false(ggml_can_fuse(g, -1, ops, 3));
    assert_false(ggml_can_fuse(g, INT32_MAX, ops, 3));
    norm->flags |= GGML_TENSOR_FLAG_OUTPUT;
    assert_false(ggml_can_fuse(g, 0, ops, 3));
    norm->flags &= ~GGML_TENSOR_FLAG_OUTPUT;
    mul->ne[0] = 2;
    assert_false(ggml_can_fuse(g, 0, ops, 3));
    mul->ne[0] = 4;
    ggml_build_forward_expand(g, node(GGML_OP_SQR, norm, NULL));
    assert_false(ggml_can_fuse(g, 0, ops, 3));
}

static void test_subgraphs_fuse_around_their_outputs(void **state) {
    (void)state;
    struct ggml_tensor *x = node(GGML_OP_SQR, leaf("a"), NULL);
    struct ggml_tensor *y = node(GGML_OP_SQRT, x, NULL), *z = node(GGML_OP_ADD, x, y);
    struct ggml_cgraph *g = ggml_new_graph(ctx);
    const enum ggml_op ops[] = {GGML_OP_SQR, GGML_OP_SQRT, GGML_OP_ADD};
    ggml_build_forward_expand(g, z);
    const int outputs[] = {2, 0};
    assert_true(ggml_can_fuse_subgraph(g, 0, 3, ops, outputs, 1));
    assert_true(ggml_can_fuse_subgraph_ext(g, (const int[]){0, 1, 2}, 3, ops, outputs, 1));
    assert_false(ggml_can_fuse_subgraph(g, 0, 2, ops, outputs, 1));
    ggml_build_forward_expand(g, node(GGML_OP_LOG, x, NULL));
    assert_false(ggml_can_fuse_subgraph(g, 0, 3, ops, outputs, 1));
    assert_true(ggml_can_fuse_subgraph(g, 0, 3, ops, outputs, 2));

    struct ggml_backend_buffer weights = {.usage = GGML_BACKEND_BUFFER_USAGE_WEIGHTS};
    struct ggml_tensor *outside = leaf("outside");
    y->view_src = outside;
    assert_false(ggml_can_fuse_subgraph(g, 0, 3, ops, outputs, 2));
    outside->buffer = &weights;
    assert_true(ggml_can_fuse_subgraph(g, 0, 3, ops, outputs, 2));
}

static void test_edges(void **state) {
    (void)state;
    struct ggml_tensor *x = node(GGML_OP_SQR, leaf("a"), NULL);
    struct ggml_tensor *y = node(GGML_OP_ADD, x, x), *z = node(GGML_OP_ADD, y, x);
    struct ggml_cgraph *g = ggml_new_graph(ctx);
    ggml_build_forward_expand(g, z);
    const int edges[][3] = {{1, 0, 0}, {2, 0, 1}, {2, 1, 0}};
    const int wrong[][3] = {{2, 1, 1}};
    const int outside[][3] = {{3, 0, 0}};
    const int slot[][3] = {{1, 10, 0}};
    assert_true(ggml_check_edges(g, 0, edges, 3));
    assert_false(ggml_check_edges(g, 0, wrong, 1));
    assert_false(ggml_check_edges(g, 0, outside, 1));
    assert_false(ggml_check_edges(g, 0, slot, 1));
    assert_false(ggml_check_edges(g, INT32_MAX, edges, 1));
    assert_true(ggml_check_edges(g, 0, NULL, 0));
}

static void test_dot_file_quotes_names(void **state) {
    (void)state;
    char path[] = "test-graph-dump.dot", text[4096];
    struct ggml_cgraph *g = ggml_new_graph(ctx);
    ggml_build_forward_expand(g, node(GGML_OP_SQR, leaf("a\"b|c"), NULL));
    ggml_graph_dump_dot(NULL, g, path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    remove(path);
    assert_non_null(strstr(text, "a\\\"b\\|c"));
    assert_non_null(strstr(text, "->"));
    ggml_clear_error();
    ggml_graph_dump_dot(NULL, g, "/nonexistent/graph.dot");
    assert_int_equal(ggml_last_status(), GGML_HOST_IO_ERROR);
}

#define GRAPH_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        GRAPH_TEST(test_order_respects_dependencies),
        GRAPH_TEST(test_nodes_are_numbered_and_found_in_any_size_of_graph),
        GRAPH_TEST(test_right_to_left_visits_last_source_first),
        GRAPH_TEST(test_select_computes_one_branch),
        GRAPH_TEST(test_ordered_nodes_can_be_computed_later),
        GRAPH_TEST(test_a_million_levels_do_not_overflow_the_stack),
        GRAPH_TEST(test_self_loops_and_dependency_leafs_end),
        GRAPH_TEST(test_a_full_graph_is_an_error_not_a_crash),
        GRAPH_TEST(test_error_tensors_name_the_first_reason),
        GRAPH_TEST(test_running_out_of_memory_during_the_visit),
        GRAPH_TEST(test_impossible_graph_sizes),
        GRAPH_TEST(test_copies_keep_order_uses_and_gradients),
        GRAPH_TEST(test_reset_sets_the_loss_to_one),
        GRAPH_TEST(test_the_slots_of_addresses_never_change),
        GRAPH_TEST(test_hash_set_finds_everything_until_full),
        GRAPH_TEST(test_hash_sizes_are_the_next_primes),
        GRAPH_TEST(test_chains_fuse_only_when_nobody_else_looks),
        GRAPH_TEST(test_subgraphs_fuse_around_their_outputs),
        GRAPH_TEST(test_edges),
        GRAPH_TEST(test_dot_file_quotes_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
