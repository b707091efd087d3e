// SPDX-License-Identifier: MIT
// Graphs as the driver's: the order in which nodes must run, found again, changed in place; nodes
// that one launch computes.
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_test.h"
#include "ggml-ext-profile.h"

enum { WIDTH = 32, TOKENS = 6, CACHE_ROWS = 10, LAYERS = 2, MOST = 4096, N_SEEDS = 24 };

static ggml_backend_dev_t device;
static ggml_backend_t stream;

static struct ggml_tensor *matrix(struct ggml_context *ctx, int64_t n, int64_t m) {
    return ggml_new_tensor_2d(ctx, GGML_TYPE_F32, n, m);
}

// --- a graph with branches -----------------------------------------------------------------------

// Three products of one operand, of which two meet early, and what is added at the end.
static struct ggml_tensor *layer(struct ggml_context *ctx, struct ggml_tensor *x) {
    struct ggml_tensor *y = ggml_mul(ctx, ggml_rms_norm(ctx, x, 1e-5f), matrix(ctx, WIDTH, 1));
    struct ggml_tensor *q = ggml_mul_mat(ctx, matrix(ctx, WIDTH, WIDTH), y);
    struct ggml_tensor *k = ggml_mul_mat(ctx, matrix(ctx, WIDTH, WIDTH), y);
    struct ggml_tensor *v = ggml_mul_mat(ctx, matrix(ctx, WIDTH, WIDTH), y);
    struct ggml_tensor *mask = matrix(ctx, TOKENS, TOKENS);
    struct ggml_tensor *s =
        ggml_soft_max(ctx, ggml_add(ctx, ggml_scale(ctx, ggml_mul_mat(ctx, k, q), 0.2f), mask));
    struct ggml_tensor *o = ggml_mul_mat(ctx, ggml_cont(ctx, ggml_transpose(ctx, v)), s);
    struct ggml_tensor *up = ggml_silu(ctx, ggml_mul_mat(ctx, matrix(ctx, WIDTH, WIDTH), x));
    return ggml_add(ctx, x, ggml_add(ctx, ggml_sqr(ctx, v), ggml_add(ctx, up, o)));
}

// Two independent nodes of two launches each, which share the stream's scratch memory.
static struct ggml_tensor *attention(struct ggml_context *ctx, struct ggml_tensor *q) {
    enum { KEYS = 512 };
    struct ggml_tensor *results[2];
    for (int i = 0; i < 2; ++i) {
        struct ggml_tensor *k = ggml_new_tensor_2d(ctx, GGML_TYPE_F16, WIDTH, KEYS),
                           *v = ggml_new_tensor_2d(ctx, GGML_TYPE_F16, WIDTH, KEYS);
        results[i] = ggml_flash_attn_ext(ctx, q, k, v, NULL, 1.0f, 0.0f, 0.0f);
    }
    return ggml_add(ctx, results[0], results[1]);
}

// A product that a warpgroup's kernel computes with more than a MiB of scratch memory.
static struct ggml_tensor *wide_product(struct ggml_context *ctx) {
    enum { DEPTH = 4608, ROWS = 16, COLUMNS = 65 };
    return ggml_mul_mat(ctx, ggml_new_tensor_2d(ctx, GGML_TYPE_F16, DEPTH, ROWS),
                        matrix(ctx, DEPTH, COLUMNS));
}

// A gated unit and a product with a bias, by tensor cores.
static struct ggml_tensor *gated(struct ggml_context *ctx, struct ggml_tensor *x) {
    struct ggml_tensor *weights[3], *bias = matrix(ctx, WIDTH, 1);
    for (int i = 0; i < 3; ++i)
        weights[i] = ggml_new_tensor_2d(ctx, GGML_TYPE_F16, WIDTH, WIDTH);
    struct ggml_tensor *up = ggml_mul_mat(ctx, weights[0], x),
                       *gate = ggml_mul_mat(ctx, weights[1], x);
    struct ggml_tensor *y = ggml_swiglu_split(ctx, up, gate);
    return ggml_add(ctx, ggml_mul_mat(ctx, weights[2], y), bias);
}

// A product whose weights an earlier node makes, and one whose are there.
static struct ggml_tensor *made_weights(struct ggml_context *ctx, struct ggml_tensor *x) {
    struct ggml_tensor *w = ggml_cast(ctx, matrix(ctx, WIDTH, WIDTH), GGML_TYPE_F16);
    struct ggml_tensor *y = ggml_mul_mat(ctx, w, ggml_sqr(ctx, x));
    return ggml_mul_mat(ctx, ggml_new_tensor_2d(ctx, GGML_TYPE_F16, WIDTH, WIDTH), y);
}

// Rope whose result goes to rows of a cache, the last ones first.
static struct ggml_tensor *cached(struct ggml_context *ctx, struct ggml_tensor *x) {
    enum { HEADS = 2 };
    struct ggml_tensor *positions = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, TOKENS);
    struct ggml_tensor *cache = ggml_cont(ctx, matrix(ctx, WIDTH, CACHE_ROWS));
    x = ggml_add(ctx, x, ggml_view_2d(ctx, cache, WIDTH, TOKENS, cache->nb[1], 0));
    x = ggml_rope(ctx, ggml_reshape_3d(ctx, x, WIDTH / HEADS, HEADS, TOKENS), positions,
                  WIDTH / HEADS - 4, 0);
    x = ggml_set_rows(ctx, cache, ggml_reshape_2d(ctx, x, WIDTH, TOKENS),
                      ggml_new_tensor_1d(ctx, GGML_TYPE_I64, TOKENS));
    return ggml_neg(ctx, x);
}

// What graphs are of: layers, three small nodes, attention, a product, a gated unit, weights that
// are made, rows of a cache.
static enum { LAYERED, SMALL, ATTENTIVE, WIDE, GATED, MADE, CACHED } shape;

struct work {
    struct ggml_context *ctx;
    struct ggml_cgraph *graph;
    struct ggml_tensor *out;
    ggml_backend_buffer_t leaves;
    ggml_gallocr_t allocator;
};

// Leaves in a buffer of their own, nodes where an allocator puts them, again and again.
static void build(struct work *w, ggml_backend_buffer_type_t buft, uint32_t seed) {
    w->ctx = cuda_context();
    struct ggml_tensor *x = matrix(w->ctx, WIDTH, TOKENS);
    for (int l = 0; l < LAYERS && shape == LAYERED; ++l)
        x = layer(w->ctx, x);
    if (shape == ATTENTIVE) x = attention(w->ctx, x);
    if (shape == WIDE) x = wide_product(w->ctx);
    for (int l = 0; l < LAYERS && shape == GATED; ++l)
        x = gated(w->ctx, x);
    if (shape == CACHED) x = cached(w->ctx, x);
    if (shape == MADE) x = made_weights(w->ctx, x);
    if (shape == SMALL) x = ggml_sqr(w->ctx, ggml_neg(w->ctx, ggml_sqr(w->ctx, x)));
    w->out = x;
    w->graph = ggml_new_graph(w->ctx);
    ggml_build_forward_expand(w->graph, x);
    w->leaves = NULL;
    struct ggml_tensor *leaves[64];
    size_t n = 0, bytes = 0;
    const size_t alignment = ggml_backend_buft_get_alignment(buft);
    for (struct ggml_tensor *t = ggml_get_first_tensor(w->ctx); t;
         t = ggml_get_next_tensor(w->ctx, t)) {
        if (t->op != GGML_OP_NONE || t->view_src) continue;
        leaves[n++] = t;
        bytes += (ggml_nbytes(t) + alignment - 1) / alignment * alignment;
    }
    w->leaves = ggml_backend_buft_alloc_buffer(buft, bytes);
    assert_non_null(w->leaves);
    char *at = ggml_backend_buffer_get_base(w->leaves);
    for (size_t i = 0; i < n; ++i) {
        assert_int_equal(ggml_backend_tensor_alloc(w->leaves, leaves[i], at), GGML_STATUS_SUCCESS);
        at += (ggml_nbytes(leaves[i]) + alignment - 1) / alignment * alignment;
        cuda_fill(leaves[i], seed + (uint32_t)i);
        for (int64_t k = 0; k < TOKENS && leaves[i]->type == GGML_TYPE_I64; ++k) {
            const int64_t row = CACHE_ROWS - 1 - k;
            ggml_backend_tensor_set(leaves[i], &row, (size_t)k * sizeof(row), sizeof(row));
        }
    }
    w->allocator = ggml_gallocr_new(buft);
    assert_true(ggml_gallocr_alloc_graph(w->allocator, w->graph));
}

static void release(struct work *w) {
    ggml_gallocr_free(w->allocator);
    ggml_backend_buffer_free(w->leaves);
    ggml_free(w->ctx);
}

static double largest; // of the last one

static void reference(uint32_t seed, float *out) {
    struct work w;
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    ggml_backend_t backend = ggml_backend_dev_init(cpu, NULL);
    assert_non_null(backend);
    build(&w, ggml_backend_dev_buffer_type(cpu), seed);
    assert_int_equal(ggml_backend_graph_compute(backend, w.graph), GGML_STATUS_SUCCESS);
    cuda_read(w.out, out);
    largest = 0.0;
    for (int64_t i = 0; i < ggml_nelements(w.out); ++i)
        largest = fmax(largest, fabs((double)out[i]));
    release(&w);
    ggml_backend_free(backend);
}

// What a node does not write is not a number.
static double run(struct work *w, const float *expected) {
    ggml_backend_buffer_clear(w->out->buffer, 0xff);
    assert_int_equal(ggml_backend_graph_compute(stream, w->graph), GGML_STATUS_SUCCESS);
    return cuda_worst(w->out, expected);
}

static void open_stream(void) {
    device = cuda_device(0);
    stream = ggml_backend_dev_init(device, NULL);
    assert_non_null(stream);
}

static void close_stream(void) {
    ggml_backend_free(stream);
    cuda_unload();
}

// Products on tensor cores round activations to F16, and units grow what they are given.
static double limit(void) {
    return shape == GATED || shape == MADE ? 4e-3 * largest : 1e-3;
}

// Of orders, edges that are missing and calls that fail, one of so many is tried. More than 1 with
// the argument `sample`.
static unsigned step = 1;

// Any order that the edges permit gives the same.
static void test_orders(void **state) {
    static float expected[MOST];
    struct work w;
    (void)state;
    reference(7, expected);
    open_stream();
    build(&w, ggml_backend_dev_buffer_type(device), 7);
    for (unsigned long seed = 0; seed < N_SEEDS; seed += step) {
        driver.set_seed(seed);
        const double worst = run(&w, expected);
        if (!(worst < limit())) fail_msg("order %lu: %g off", seed, worst);
    }
    driver.set_seed(0);
    release(&w);
    close_stream();
}

static void test_scratch(void **state) {
    shape = ATTENTIVE;
    test_orders(state);
    shape = LAYERED;
}

// Launches begin before those that they wait for have ended; not where they are told not to, nor
// where the driver takes no such graph, which it is asked once.
static void test_early(void **state) {
    static float expected[MOST];
    static const struct {
        const char *name, *value;
        long least, most; // edges of that kind
    } rows[] = {{"GGML_CUDA_DISABLE_EARLY", "0", 5, 100},
                {"GGML_CUDA_DISABLE_EARLY", "1", 0, 0},
                {"FAKE_CUDA_EARLY", "0", 1, 1},
                {"FAKE_CUDA_CAPABILITY", "80", 0, 0}};
    (void)state;
    reference(7, expected);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        struct work w[2];
        setenv(rows[i].name, rows[i].value, 1);
        open_stream();
        const long before = driver.calls("cuGraphAddDependencies_v2");
        for (int k = 0; k < 2; ++k) {
            build(&w[k], ggml_backend_dev_buffer_type(device), 7);
            const double worst = run(&w[k], expected);
            if (!(worst < limit())) fail_msg("%s=%s: %g off", rows[i].name, rows[i].value, worst);
        }
        assert_in_range(driver.calls("cuGraphAddDependencies_v2") - before, rows[i].least,
                        rows[i].most);
        for (int k = 0; k < 2; ++k)
            release(&w[k]);
        close_stream();
        unsetenv(rows[i].name);
    }
}

// Weights are read early where no launch of the graph makes them.
static void test_made_weights(void **state) {
    shape = MADE;
    test_orders(state);
    shape = LAYERED;
}

// Each edge is there for a reason: without it, some order computes something else.
static void test_missing_edges(void **state) {
    static float expected[MOST];
    struct work w;
    long n_edges = 0;
    (void)state;
    reference(7, expected);
    for (;; n_edges += step) {
        open_stream();
        build(&w, ggml_backend_dev_buffer_type(device), 7);
        driver.drop_edge(n_edges);
        const bool is_found = !(run(&w, expected) < limit());
        const bool was_there = driver.dropped();
        driver.drop_edge(-1);
        release(&w);
        close_stream();
        if (!was_there) break;
        if (!is_found) fail_msg("nothing goes wrong without edge %ld", n_edges);
    }
    assert_true(n_edges > 15);
}

// --- found again, and changed --------------------------------------------------------------------

static void test_found_again(void **state) {
    static float expected[2][MOST];
    struct work w[2];
    (void)state;
    reference(7, expected[0]);
    reference(8, expected[1]);
    open_stream();
    for (int i = 0; i < 2; ++i)
        build(&w[i], ggml_backend_dev_buffer_type(device), 7 + (uint32_t)i);
    for (int i = 0; i < 2; ++i)
        assert_true(run(&w[i], expected[i]) < limit());
    const long made = driver.calls("cuGraphInstantiateWithFlags");
    const long changed = driver.calls("cuGraphExecKernelNodeSetParams");
    for (int i = 0; i < 6; ++i)
        assert_true(run(&w[i % 2], expected[i % 2]) < limit());
    assert_int_equal(driver.calls("cuGraphInstantiateWithFlags"), made);
    assert_int_equal(driver.calls("cuGraphExecKernelNodeSetParams"), changed);
    for (int i = 0; i < 2; ++i)
        release(&w[i]);
    close_stream();
}

// Graphs that lie elsewhere each time: after two of them no more are made. The launch before may
// still be queued when its graph is changed.
static void test_changed_in_place(void **state) {
    enum { N = 6 };
    static float expected[N][MOST];
    struct work w[N];
    (void)state;
    open_stream();
    const long before = driver.calls("cuGraphInstantiateWithFlags");
    for (int i = 0; i < N; ++i) {
        reference(20 + (uint32_t)i, expected[i]);
        build(&w[i], ggml_backend_dev_buffer_type(device), 20 + (uint32_t)i);
        ggml_backend_buffer_clear(w[i].out->buffer, 0xff);
    }
    for (int i = 0; i < N; ++i)
        assert_int_equal(ggml_backend_graph_compute_async(stream, w[i].graph), GGML_STATUS_SUCCESS);
    ggml_backend_synchronize(stream);
    for (int i = 0; i < N; ++i)
        assert_true(cuda_worst(w[i].out, expected[i]) < limit());
    assert_int_equal(driver.calls("cuGraphInstantiateWithFlags"), before + 2);
    assert_true(driver.calls("cuGraphExecKernelNodeSetParams") > 0);
    for (int i = 0; i < N; ++i)
        release(&w[i]);
    close_stream();
}

// GGML_CUDA_DISABLE_GRAPHS: no graph of the driver's is made.
static void test_one_by_one(void **state) {
    static float expected[MOST];
    struct work w;
    (void)state;
    reference(7, expected);
    setenv("GGML_CUDA_DISABLE_GRAPHS", "1", 1);
    open_stream();
    unsetenv("GGML_CUDA_DISABLE_GRAPHS");
    const long before = driver.calls("cuGraphCreate");
    build(&w, ggml_backend_dev_buffer_type(device), 7);
    for (int i = 0; i < 2; ++i)
        assert_true(run(&w, expected) < limit());
    assert_int_equal(driver.calls("cuGraphCreate"), before);
    release(&w);
    close_stream();
}

// --- fusions -------------------------------------------------------------------------------------

// Launches of the graph: nodes of its graph, or its only one.
static long count_launches(struct work *w, const float *expected) {
    const long before = driver.calls("cuGraphAddKernelNode") + driver.calls("cuLaunchKernel");
    open_stream();
    build(w, ggml_backend_dev_buffer_type(device), 7);
    const double worst = run(w, expected);
    if (!(worst < limit())) fail_msg("%g off", worst);
    release(w);
    close_stream();
    return driver.calls("cuGraphAddKernelNode") + driver.calls("cuLaunchKernel") - before;
}

static void test_fewer_launches(void **state) {
    static float expected[MOST];
    struct work w;
    (void)state;
    reference(7, expected);
    const long fused = count_launches(&w, expected);
    const struct {
        const char *names;
        int saved; // launches of a layer
    } rows[] = {{"norm", 1}, {"mask", 2}, {"add_chain", 2}, {"norm,mask", 3}, {"1", 5}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        setenv("GGML_CUDA_DISABLE_FUSION", rows[i].names, 1);
        assert_int_equal(count_launches(&w, expected), fused + LAYERS * rows[i].saved);
    }
    unsetenv("GGML_CUDA_DISABLE_FUSION");
}

// The first unit's operand is a leaf; the second one's result is made in the place of a product,
// and copied, where the allocator has put it over its operand.
static void test_products_in_one_launch(void **state) {
    static float expected[MOST];
    struct work w;
    (void)state;
    shape = GATED;
    reference(7, expected);
    const long all = count_launches(&w, expected);
    assert_in_range(all, 2 * LAYERS, 3 * LAYERS);
    setenv("GGML_CUDA_DISABLE_FUSION", "bias", 1);
    assert_int_equal(count_launches(&w, expected), all + LAYERS);
    setenv("GGML_CUDA_DISABLE_FUSION", "1", 1);
    assert_int_equal(count_launches(&w, expected), 5 * LAYERS);
    unsetenv("GGML_CUDA_DISABLE_FUSION");
    test_orders(state);
    shape = LAYERED;
}

// Rope, the view of its result, and the rows.
static void test_rows_in_one_launch(void **state) {
    static float expected[MOST];
    struct work w;
    (void)state;
    shape = CACHED;
    reference(7, expected);
    const long all = count_launches(&w, expected);
    setenv("GGML_CUDA_DISABLE_FUSION", "rope_rows", 1);
    assert_int_equal(count_launches(&w, expected), all + 1);
    unsetenv("GGML_CUDA_DISABLE_FUSION");
    test_orders(state);
    shape = LAYERED;
}

// --- failures ------------------------------------------------------------------------------------

// Graphs are made, found again and changed, with and without times of their nodes.
static bool live(struct work *w, int n) {
    const struct ggml_extension_profile *profile = ggml_backend_reg_get_extension(
        ggml_backend_dev_backend_reg(device), GGML_EXTENSION_PROFILE, 1);
    struct ggml_profile_slice slices[64];
    uint64_t count, lost;
    bool right = true;
    for (int i = 0; i < n; ++i)
        right &= ggml_backend_graph_compute_async(stream, w[i].graph) == GGML_STATUS_SUCCESS;
    const bool records = profile->begin(stream, 64) == GGML_HOST_OK;
    for (int i = 0; i < 2; ++i)
        right &= ggml_backend_graph_compute_async(stream, w[0].graph) == GGML_STATUS_SUCCESS;
    ggml_backend_synchronize(stream);
    right &= records && profile->read(stream, slices, 64, &count, &lost) == GGML_HOST_OK;
    if (records) profile->end(stream);
    return right && count + lost > 0;
}

// Each call of the driver fails in turn: it is told, and nothing is left.
static void check_faults(int n_works, long least_told) {
    enum { N = 3 };
    static const int errors[] = {2, 719};
    for (int e = 0; e < 2; ++e) {
        long n_told = 0;
        for (long n = 0;; n += step) {
            struct work w[N];
            open_stream();
            for (int i = 0; i < n_works; ++i)
                build(&w[i], ggml_backend_dev_buffer_type(device), 20 + (uint32_t)i);
            driver.fail_after(n, errors[e]);
            ggml_clear_error();
            const bool right = live(w, n_works), failed = driver.failed() != NULL;
            char where[64];
            snprintf(where, sizeof(where), "%s", failed ? driver.failed() : "");
            if (failed && right && ggml_last_status() == GGML_HOST_OK &&
                strcmp(where, "cuEventElapsedTime") != 0 && strcmp(where, "cuEventQuery") != 0)
                fail_msg("a failure of %s is not told", where);
            n_told += ggml_last_status() != GGML_HOST_OK;
            if (!failed) driver.fail_after(-1, 0);
            for (int i = 0; i < n_works; ++i)
                release(&w[i]);
            ggml_backend_free(stream);
            driver.fail_after(-1, 0);
            cuda_unload();
            if (failed) continue;
            assert_true(right);
            break;
        }
        assert_true(n_told > least_told / (long)step);
    }
}

static void test_faults(void **state) {
    (void)state;
    shape = SMALL;
    check_faults(3, 30);
    shape = ATTENTIVE;
    check_faults(1, 20);
    shape = LAYERED;
}

// What scratch memory is made by.
static bool makes_memory(const char *call) {
    return strcmp(call, "cuMemAddressReserve") == 0 || strcmp(call, "cuMemCreate") == 0 ||
           strcmp(call, "cuMemMap") == 0 || strcmp(call, "cuMemSetAccess") == 0;
}

// Without that memory the product is computed by another kernel.
static void test_tight_memory(void **state) {
    static float expected[MOST];
    int n_found = 0;
    (void)state;
    shape = WIDE;
    reference(7, expected);
    for (long n = 0;; n += step) {
        struct work w;
        open_stream();
        build(&w, ggml_backend_dev_buffer_type(device), 7);
        ggml_backend_buffer_clear(w.out->buffer, 0xff);
        driver.fail_after(n, 2);
        const enum ggml_status status = ggml_backend_graph_compute(stream, w.graph);
        const bool failed = driver.failed() != NULL;
        const bool was_memory = failed && makes_memory(driver.failed());
        driver.fail_after(-1, 0);
        if (was_memory || !failed) {
            assert_int_equal(status, GGML_STATUS_SUCCESS);
            assert_true(cuda_worst(w.out, expected) < 0.05);
        }
        n_found += was_memory;
        release(&w);
        close_stream();
        if (!failed) break;
    }
    shape = LAYERED;
    if (step == 1) assert_int_equal(n_found, 4);
}

// Of minus infinity it is 0, also where it is a gate's, as on the CPU; the others go as they go.
static void test_gelu_of_infinities(void **state) {
    static const float numbers[] = {-INFINITY, INFINITY, NAN, -1e30f}, ones[] = {1, 1, 1, 1};
    (void)state;
    open_stream();
    for (int form = 0; form < 4; ++form) {
        struct ggml_context *ctx = cuda_context();
        struct ggml_tensor *x = matrix(ctx, 4, 1), *g = matrix(ctx, 4, 1);
        struct ggml_tensor *y = form == 0   ? ggml_gelu(ctx, x)
                                : form == 1 ? ggml_gelu_erf(ctx, x)
                                : form == 2 ? ggml_geglu_split(ctx, x, g)
                                            : ggml_geglu_erf_split(ctx, x, g);
        struct ggml_cgraph *graph = ggml_new_graph(ctx);
        ggml_build_forward_expand(graph, y);
        ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, stream);
        float out[4];
        ggml_backend_tensor_set(x, numbers, 0, sizeof(numbers));
        ggml_backend_tensor_set(g, ones, 0, sizeof(ones));
        assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_SUCCESS);
        cuda_read(y, out);
        assert_true(out[0] == 0 && out[1] == INFINITY && isnan(out[2]) && out[3] == 0);
        ggml_backend_buffer_free(buffer);
        ggml_free(ctx);
    }
    close_stream();
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_scratch),
        cmocka_unit_test(test_missing_edges),
        cmocka_unit_test(test_found_again),
        cmocka_unit_test(test_changed_in_place),
        cmocka_unit_test(test_one_by_one),
        cmocka_unit_test(test_fewer_launches),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_tight_memory),
        cmocka_unit_test(test_products_in_one_launch),
        cmocka_unit_test(test_early),
        cmocka_unit_test(test_made_weights),
        cmocka_unit_test(test_rows_in_one_launch),
        cmocka_unit_test(test_gelu_of_infinities),
    };
    if (argc > 1 && strcmp(argv[1], "sample") == 0) step = 29;
    ggml_backend_load_all();
    cuda_find_driver();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
