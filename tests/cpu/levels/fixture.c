// SPDX-License-Identifier: MIT
// Creation of operands and computing of one node, whose error is measured against an oracle in
// double precision.
#include "fixture.h"

// Tests are run with memory that is filled when it is allocated and freed.
enum { SEED = 20240607, CONTEXT_SIZE = 20 << 20, LARGE_CONTEXT_SIZE = 112 << 20 };

static int setup(void **state, size_t context_size) {
    struct fixture *f = calloc(1, sizeof(*f));
    f->random.state = SEED;
    f->ctx = ggml_init((struct ggml_init_params){.mem_size = context_size});
    f->cpu = ggml_backend_cpu_init();
    *state = f;
    return f->ctx && f->cpu ? 0 : -1;
}

int fixture_setup(void **state) {
    return setup(state, CONTEXT_SIZE);
}

int fixture_setup_large(void **state) {
    return setup(state, LARGE_CONTEXT_SIZE);
}

int fixture_teardown(void **state) {
    struct fixture *f = *state;
    ggml_backend_free(f->cpu);
    ggml_free(f->ctx);
    free(f);
    return 0;
}

void fixture_fill(struct fixture *f, struct ggml_tensor *t) {
    const int64_t n = ggml_nelements(t);
    float *values = malloc((size_t)(n > 0 ? n : 1) * sizeof(float));
    for (int64_t i = 0; i < n; ++i)
        values[i] = random_normal(&f->random);
    if (n > 0) {
        assert_int_equal(
            ggml_quantize_chunk(t->type, values, t->data, 0, ggml_nrows(t), t->ne[0], NULL),
            ggml_nbytes(t));
    }
    free(values);
}

struct ggml_tensor *fixture_tensor(struct fixture *f, enum ggml_type type, int64_t ne0, int64_t ne1,
                                   int64_t ne2, int64_t ne3) {
    struct ggml_tensor *t = ggml_new_tensor_4d(f->ctx, type, ne0, ne1, ne2, ne3);
    assert_non_null(t->data);
    fixture_fill(f, t);
    return t;
}

struct ggml_tensor *fixture_indices(struct fixture *f, int64_t n, int64_t ne0, int64_t ne1,
                                    int64_t ne2) {
    struct ggml_tensor *t = ggml_new_tensor_3d(f->ctx, GGML_TYPE_I32, ne0, ne1, ne2);
    for (int64_t i = 0; i < ggml_nelements(t); ++i)
        ((int32_t *)t->data)[i] = (int32_t)random_below(&f->random, n);
    return t;
}

enum ggml_status fixture_compute(struct fixture *f, struct ggml_tensor *node, int n_threads) {
    struct ggml_cgraph *graph = ggml_new_graph(f->ctx);
    ggml_build_forward_expand(graph, node);
    ggml_backend_cpu_set_n_threads(f->cpu, n_threads);
    return ggml_backend_graph_compute(f->cpu, graph);
}

static void explain(const struct ggml_tensor *node, double nmse, double bound) {
    const struct ggml_tensor *a = node->src[0];
    fail_msg("%s of %s [%d %d %d %d] and %s: nmse %g, allowed %g", ggml_op_desc(node),
             ggml_type_name(a->type), (int)a->ne[0], (int)a->ne[1], (int)a->ne[2], (int)a->ne[3],
             node->src[1] ? ggml_type_name(node->src[1]->type) : "-", nmse, bound);
}

void fixture_check(struct fixture *f, struct ggml_tensor *node, oracle_fn oracle, double nmse) {
    assert_null(ggml_tensor_error(node));
    assert_true(ggml_backend_supports_op(f->cpu, node));
    const size_t n = (size_t)ggml_nelements(node);
    double *expected = malloc(n * sizeof(double));
    double *actual = malloc(n * sizeof(double));
    double *again = malloc(n * sizeof(double));
    oracle(node, expected);
    assert_int_equal(fixture_compute(f, node, 1), GGML_STATUS_SUCCESS);
    oracle_read(node, actual);
    const double error = oracle_nmse(actual, expected, (int64_t)n);
    if (!(error <= nmse)) explain(node, error, nmse);
    for (int n_threads = 3; n_threads >= 2; --n_threads) {
        assert_int_equal(fixture_compute(f, node, n_threads), GGML_STATUS_SUCCESS);
        oracle_read(node, again);
        assert_memory_equal(actual, again, n * sizeof(double));
    }
    free(expected);
    free(actual);
    free(again);
}
