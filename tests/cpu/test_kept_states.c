// SPDX-License-Identifier: MIT
// Recurrences that store their new states where the copy of them would: what they compute is what
// the two nodes compute by themselves, and they don't do it where anything else reads the states.
#include "cpu_test.h"

#include <stdlib.h>

enum {
    SIZE = 21, // rows and columns of a state
    HEADS = 3,
    SEQUENCES = 3,
    EACH = 5, // tokens of a sequence
    CELLS = 6,
    STATE = SIZE * SIZE * HEADS, // elements of a sequence
    OUTPUT = SIZE * HEADS * EACH * SEQUENCES,
};

static const float UNTOUCHED = -7.0f;

// A recurrence, the copy of its states into a cache, and a node that reads its output.
struct subject {
    struct ggml_context *ctx;
    struct ggml_tensor *cache; // CELLS states, and then operands
    struct ggml_tensor *node, *states, *copy, *output;
    struct ggml_cgraph *graph;
};

static struct ggml_tensor *operand(struct ggml_context *ctx, int64_t a, int64_t b, int64_t c,
                                   int64_t d, uint32_t seed) {
    return test_tensor(ctx, GGML_TYPE_F32, (struct extents){{a, b, c, d}}, seed, -0.4f, 0.4f);
}

// --- recurrences; `initial` is the cell of the first state

typedef struct ggml_tensor *(*recurrence_fn)(struct subject *subject, int64_t initial,
                                             const int32_t *ids);

// x lies behind the states.
static struct ggml_tensor *ssm_scan(struct subject *subject, int64_t initial, const int32_t *ids) {
    struct ggml_context *ctx = subject->ctx;
    (void)initial;
    struct ggml_tensor *cells =
        ggml_view_4d(ctx, subject->cache, SIZE, SIZE, HEADS, CELLS, SIZE * sizeof(float),
                     SIZE * SIZE * sizeof(float), STATE * sizeof(float), 0);
    struct ggml_tensor *x =
        ggml_view_4d(ctx, subject->cache, SIZE, HEADS, EACH, SEQUENCES, SIZE * sizeof(float),
                     SIZE * HEADS * sizeof(float), SIZE * HEADS * EACH * sizeof(float),
                     CELLS * STATE * sizeof(float));
    struct ggml_tensor *which = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, SEQUENCES);
    memcpy(which->data, ids, SEQUENCES * sizeof(ids[0]));
    return ggml_ssm_scan(ctx, cells, x, operand(ctx, HEADS, EACH, SEQUENCES, 1, 3),
                         operand(ctx, 1, HEADS, 1, 1, 4), operand(ctx, SIZE, 1, EACH, SEQUENCES, 5),
                         operand(ctx, SIZE, 1, EACH, SEQUENCES, 6), which, 1);
}

static struct ggml_tensor *initial_states(struct subject *subject, int64_t initial) {
    return ggml_view_2d(subject->ctx, subject->cache, STATE, SEQUENCES, STATE * sizeof(float),
                        (size_t)initial * STATE * sizeof(float));
}

static struct ggml_tensor *rows(struct subject *subject, uint32_t seed) {
    return operand(subject->ctx, SIZE, HEADS, (int64_t)EACH * SEQUENCES, 1, seed);
}

static struct ggml_tensor *wkv6(struct subject *subject, int64_t initial, const int32_t *ids) {
    (void)ids;
    return ggml_rwkv_wkv6(subject->ctx, rows(subject, 1), rows(subject, 2), rows(subject, 3),
                          operand(subject->ctx, SIZE, HEADS, 1, 1, 4), rows(subject, 5),
                          initial_states(subject, initial));
}

static struct ggml_tensor *wkv7(struct subject *subject, int64_t initial, const int32_t *ids) {
    (void)ids;
    return ggml_rwkv_wkv7(subject->ctx, rows(subject, 1), rows(subject, 2), rows(subject, 3),
                          rows(subject, 4), rows(subject, 5), rows(subject, 6),
                          initial_states(subject, initial));
}

// The first operand begins where three states end.
static struct ggml_tensor *wkv7_of_cache(struct subject *subject, int64_t initial,
                                         const int32_t *ids) {
    struct ggml_tensor *node = wkv7(subject, initial, ids);
    node->src[0] = ggml_view_3d(subject->ctx, subject->cache, SIZE, HEADS, EACH * SEQUENCES,
                                SIZE * sizeof(float), SIZE * HEADS * sizeof(float),
                                SEQUENCES * STATE * sizeof(float));
    return node;
}

static struct ggml_tensor *gated(struct subject *subject, int64_t initial, const int32_t *ids) {
    (void)ids;
    return ggml_gated_linear_attn(subject->ctx, rows(subject, 1), rows(subject, 2),
                                  rows(subject, 3), rows(subject, 4),
                                  initial_states(subject, initial), 0.5f);
}

static struct ggml_tensor *delta_net_of(struct subject *subject, int64_t initial,
                                        int64_t snapshots) {
    struct ggml_context *ctx = subject->ctx;
    struct ggml_tensor *x[3];
    for (uint32_t i = 0; i < 3; ++i)
        x[i] = operand(ctx, SIZE, HEADS, EACH, SEQUENCES, i);
    struct ggml_tensor *state =
        ggml_reshape_4d(ctx, initial_states(subject, initial), SIZE, SIZE, HEADS, SEQUENCES);
    return ggml_gated_delta_net(ctx, x[0], x[1], x[2], operand(ctx, 1, HEADS, EACH, SEQUENCES, 3),
                                operand(ctx, 1, HEADS, EACH, SEQUENCES, 4), state, snapshots);
}

static struct ggml_tensor *delta_net(struct subject *subject, int64_t initial, const int32_t *ids) {
    (void)ids;
    return delta_net_of(subject, initial, 1);
}

static struct ggml_tensor *delta_net_snapshots(struct subject *subject, int64_t initial,
                                               const int32_t *ids) {
    (void)ids;
    return delta_net_of(subject, initial, 2);
}

// --- subjects

static struct ggml_tensor *view_of_output(struct subject *subject) {
    return ggml_view_1d(subject->ctx, subject->node, OUTPUT, 0);
}

static struct ggml_tensor *view_of_states(struct subject *subject, int64_t n) {
    return ggml_view_1d(subject->ctx, subject->node, n, OUTPUT * sizeof(float));
}

// n elements of the states are copied to element `to` of the cache; 0: all.
static struct subject new_part(recurrence_fn recurrence, int64_t initial, const int32_t *ids,
                               int64_t to, int64_t n) {
    static const int32_t in_order[SEQUENCES] = {0, 1, 2};
    struct subject subject = {.ctx = test_context(4)};
    subject.cache = operand(subject.ctx, (int64_t)STATE * (CELLS + SEQUENCES), 1, 1, 1, 9);
    subject.node = recurrence(&subject, initial, ids ? ids : in_order);
    assert_null(ggml_tensor_error(subject.node));
    if (n == 0) n = ggml_nelements(subject.node) - OUTPUT;
    subject.states = view_of_states(&subject, n);
    subject.copy =
        ggml_cpy(subject.ctx, subject.states,
                 ggml_view_1d(subject.ctx, subject.cache, n, (size_t)to * sizeof(float)));
    subject.output = ggml_sqr(subject.ctx, view_of_output(&subject));
    subject.graph = test_graph(subject.ctx, subject.copy);
    ggml_build_forward_expand(subject.graph, subject.output);
    return subject;
}

static struct subject new_subject(recurrence_fn recurrence, int64_t initial, const int32_t *ids,
                                  int64_t to) {
    return new_part(recurrence, initial, ids, to, 0);
}

static float *data_of(const struct ggml_tensor *tensor) {
    float *data = malloc(ggml_nbytes(tensor));
    assert_non_null(data);
    memcpy(data, tensor->data, ggml_nbytes(tensor));
    return data;
}

static void compute(const struct subject *subject, struct ggml_cgraph *graph, int n_threads,
                    bool use_ref) {
    ggml_backend_t stream = ggml_backend_cpu_init();
    ggml_backend_cpu_set_n_threads(stream, n_threads);
    ggml_backend_cpu_set_use_ref(stream, use_ref);
    float *states = subject->states->data;
    for (int64_t i = 0; i < ggml_nelements(subject->states); ++i)
        states[i] = UNTOUCHED;
    assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_SUCCESS);
    ggml_backend_free(stream);
}

static bool states_are_stored(const struct subject *subject) {
    const float *states = subject->states->data;
    for (int64_t i = 0; i < ggml_nelements(subject->states); ++i) {
        if (states[i] != UNTOUCHED) return true;
    }
    return false;
}

// --- results

// The cache and the output are, at every level, what the nodes compute by themselves; the states in
// the recurrence's result are stored or not.
static void check(struct subject subject, bool stored, const char *what) {
    float *before = data_of(subject.cache);
    for (int level = 0; level < test_level_count(); ++level) {
        const char *name = test_use_level(level);
        memcpy(subject.cache->data, before, ggml_nbytes(subject.cache));
        compute(&subject, subject.graph, 1, true);
        assert_true(states_are_stored(&subject));
        float *cache = data_of(subject.cache), *output = data_of(subject.output);
        for (int n_threads = 1; n_threads <= 3; ++n_threads) {
            memcpy(subject.cache->data, before, ggml_nbytes(subject.cache));
            memset(subject.output->data, 0, ggml_nbytes(subject.output));
            compute(&subject, subject.graph, n_threads, false);
            if (memcmp(cache, subject.cache->data, ggml_nbytes(subject.cache)) != 0)
                fail_msg("%s at %s: other states in the cache, %d threads", what, name, n_threads);
            if (memcmp(output, subject.output->data, ggml_nbytes(subject.output)) != 0)
                fail_msg("%s at %s: another output, %d threads", what, name, n_threads);
            if (states_are_stored(&subject) != stored)
                fail_msg("%s at %s: states %s", what, name, stored ? "not stored" : "stored");
        }
        free(cache);
        free(output);
    }
    test_use_best_level();
    free(before);
    ggml_free(subject.ctx);
}

static void test_states_go_into_the_cache(void **state) {
    (void)state;
    static const struct {
        recurrence_fn recurrence;
        const char *name;
    } all[] = {{wkv6, "wkv6"}, {wkv7, "wkv7"}, {gated, "gated_linear"}, {delta_net, "delta_net"}};
    const int64_t other = (int64_t)STATE * SEQUENCES;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); ++i) {
        check(new_subject(all[i].recurrence, 0, NULL, other), false, all[i].name);
        check(new_subject(all[i].recurrence, 0, NULL, 0), false, all[i].name);
        // Upon states of other sequences: only after all have been read.
        check(new_subject(all[i].recurrence, 0, NULL, STATE), true, all[i].name);
        check(new_subject(all[i].recurrence, 1, NULL, 7), true, all[i].name);
    }
    check(new_subject(wkv7_of_cache, 0, NULL, 0), false, "wkv7 beside an operand");
    check(new_subject(wkv7_of_cache, 0, NULL, other), true, "wkv7 to an operand");
}

static void test_sequences_may_exchange_cells(void **state) {
    (void)state;
    static const int32_t same[] = {0, 1, 2}, apart[] = {3, 5, 4}, later[] = {1, 2, 3};
    static const int32_t exchanged[] = {1, 0, 2}, shared[] = {0, 0, 0};
    check(new_subject(ssm_scan, 0, same, 0), false, "scan in place");
    check(new_subject(ssm_scan, 0, apart, 0), false, "scan apart");
    check(new_subject(ssm_scan, 0, later, 0), false, "scan of later cells");
    check(new_subject(ssm_scan, 0, apart, 3 * STATE), true, "scan of some in place");
    // States that are read later wait in the result.
    check(new_subject(ssm_scan, 0, exchanged, 0), true, "scan of exchanged cells");
    check(new_subject(ssm_scan, 0, shared, 0), true, "scan of one cell");
    check(new_subject(ssm_scan, 0, same, STATE), true, "scan of earlier cells");
    check(new_subject(ssm_scan, 0, same, 100), true, "scan to parts of cells");
    check(new_subject(ssm_scan, 0, same, 4 * STATE), true, "scan to an operand");
}

// --- readers

static void test_states_that_are_read_are_stored(void **state) {
    (void)state;
    const int64_t n = (int64_t)STATE * SEQUENCES;
    for (int reader = 0; reader < 9; ++reader) {
        struct subject s = new_subject(wkv7, 0, NULL, n);
        struct ggml_tensor *seen = NULL;
        if (reader == 0) seen = s.states;
        if (reader == 1) seen = view_of_states(&s, 1);
        if (reader == 2) seen = s.node;
        if (reader == 3) seen = ggml_reshape_1d(s.ctx, s.node, ggml_nelements(s.node));
        // A view of the output may show what is behind it.
        if (reader == 4) seen = ggml_view_1d(s.ctx, view_of_output(&s), OUTPUT + 1, 0);
        if (reader == 8) seen = ggml_view_tensor(s.ctx, s.node);
        if (seen) ggml_build_forward_expand(s.graph, ggml_sqr(s.ctx, seen));
        if (reader == 5) ggml_set_output(s.node);
        if (reader == 6) ggml_set_output(s.states);
        if (reader == 7) ggml_set_output(s.output->src[0]);
        check(s, true, "read states");
    }
    check(new_subject(delta_net_snapshots, 0, NULL, n), true, "snapshots");
    check(new_part(wkv7, 0, NULL, n, n - 1), true, "copies of a part");
}

static void test_gaps_in_the_cache_stay(void **state) {
    (void)state;
    struct subject s = new_subject(wkv7, 0, NULL, 0);
    struct ggml_tensor *gapped =
        ggml_view_2d(s.ctx, s.cache, STATE, SEQUENCES, (STATE + 1) * sizeof(float),
                     SEQUENCES * STATE * sizeof(float));
    s.copy = ggml_cpy(s.ctx, s.states, gapped);
    s.graph = test_graph(s.ctx, s.copy);
    ggml_build_forward_expand(s.graph, s.output);
    check(s, true, "a cache with gaps");
}

// A graph that no builder made: nothing is stored beyond the copy.
static void test_copies_of_another_size_are_refused(void **state) {
    (void)state;
    struct subject s = new_subject(wkv7, 0, NULL, 0);
    s.copy->ne[0] = STATE;
    assert_int_equal(test_compute(s.graph, 1), GGML_STATUS_FAILED);
    ggml_free(s.ctx);
}

// Also the recurrence's operands have to have data, of which a plan is told no news.
static void test_plans_check_data(void **state) {
    (void)state;
    struct subject s = new_subject(wkv7, 0, NULL, (int64_t)STATE * SEQUENCES);
    ggml_backend_t stream = ggml_backend_cpu_init();
    ggml_backend_graph_plan_t plan = ggml_backend_graph_plan_create(stream, s.graph);
    assert_non_null(plan);
    assert_int_equal(ggml_backend_graph_plan_compute(stream, plan), GGML_STATUS_SUCCESS);
    s.node->src[2]->data = NULL;
    assert_int_equal(ggml_backend_graph_plan_compute(stream, plan), GGML_STATUS_FAILED);
    ggml_backend_graph_plan_free(stream, plan);
    ggml_backend_free(stream);
    ggml_free(s.ctx);
}

// What follows the copy may belong to another graph.
static void test_readers_outside_the_graph_count(void **state) {
    (void)state;
    struct subject s = new_subject(wkv7, 0, NULL, (int64_t)STATE * SEQUENCES);
    int end = 0;
    while (ggml_graph_node(s.graph, end++) != s.copy) {
    }
    struct ggml_cgraph part = ggml_graph_view(s.graph, 0, end);
    compute(&s, &part, 1, false);
    assert_true(states_are_stored(&s));
    ggml_free(s.ctx);
}

// A node that computes something before the copy could read the cache.
static void test_nodes_between_keep_their_place(void **state) {
    (void)state;
    struct subject s = new_subject(wkv7, 0, NULL, (int64_t)STATE * SEQUENCES);
    struct ggml_cgraph *graph = test_graph(s.ctx, s.node);
    ggml_build_forward_expand(graph, ggml_sqr(s.ctx, s.cache));
    ggml_build_forward_expand(graph, s.copy);
    ggml_build_forward_expand(graph, s.output);
    s.graph = graph;
    check(s, true, "a node between");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_states_go_into_the_cache),
        cmocka_unit_test(test_sequences_may_exchange_cells),
        cmocka_unit_test(test_states_that_are_read_are_stored),
        cmocka_unit_test(test_gaps_in_the_cache_stay),
        cmocka_unit_test(test_copies_of_another_size_are_refused),
        cmocka_unit_test(test_plans_check_data),
        cmocka_unit_test(test_readers_outside_the_graph_count),
        cmocka_unit_test(test_nodes_between_keep_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
