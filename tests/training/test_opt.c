// SPDX-License-Identifier: MIT
// The training helper: data sets, results, static and dynamic graphs, accumulated gradients, fit.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml-host.h"
#include "ggml-opt.h"

typedef struct ggml_tensor *tensor_t;

enum { N_IN = 3, N_POINTS = 24, GRAPH_SIZE = 512 };

static ggml_backend_t cpu;
static ggml_backend_sched_t sched;

// A linear model y = w x + b whose data have exact answers.
struct model {
    struct ggml_context *fixed;
    ggml_backend_buffer_t buffer;
    tensor_t w, b, inputs;
};

static const float true_w[N_IN] = {0.5f, -1.25f, 2.0f};
static const float true_b = 0.75f;

static struct ggml_context *new_context(void) {
    return ggml_init((struct ggml_init_params){.mem_size = 2 << 20, .no_alloc = true});
}

static struct model new_model(int64_t n_batch) {
    struct model m = {.fixed = new_context()};
    m.w = ggml_new_tensor_2d(m.fixed, GGML_TYPE_F32, N_IN, 1);
    m.b = ggml_new_tensor_1d(m.fixed, GGML_TYPE_F32, 1);
    m.inputs = ggml_new_tensor_2d(m.fixed, GGML_TYPE_F32, N_IN, n_batch);
    ggml_set_name(m.w, "w");
    ggml_set_name(m.b, "b");
    ggml_set_param(m.w);
    ggml_set_param(m.b);
    m.buffer = ggml_backend_alloc_ctx_tensors(m.fixed, cpu);
    assert_non_null(m.buffer);
    ggml_backend_buffer_clear(m.buffer, 0);
    return m;
}

static void free_model(struct model *m) {
    ggml_backend_buffer_free(m->buffer);
    ggml_free(m->fixed);
}

static tensor_t outputs_of(struct ggml_context *ctx, const struct model *m) {
    return ggml_add(ctx, ggml_mul_mat(ctx, m->w, m->inputs), m->b);
}

static ggml_opt_dataset_t new_points(int64_t shard) {
    ggml_opt_dataset_t set =
        ggml_opt_dataset_init(GGML_TYPE_F32, GGML_TYPE_F32, N_IN, 1, N_POINTS, shard);
    assert_non_null(set);
    float *x = ggml_get_data_f32(ggml_opt_dataset_data(set));
    float *y = ggml_get_data_f32(ggml_opt_dataset_labels(set));
    for (int i = 0; i < N_POINTS; ++i) {
        y[i] = true_b;
        for (int k = 0; k < N_IN; ++k) {
            x[i * N_IN + k] = (float)((i * (k + 3) + 5 * k) % 7 - 3) / 3.0f;
            y[i] += true_w[k] * x[i * N_IN + k];
        }
    }
    return set;
}

static float value_of(tensor_t t, int i) {
    float value;
    ggml_backend_tensor_get(t, &value, (size_t)i * sizeof(value), sizeof(value));
    return value;
}

static struct ggml_opt_optimizer_params fast(void *userdata) {
    struct ggml_opt_optimizer_params p = ggml_opt_get_default_optimizer_params(userdata);
    p.adamw.alpha = 0.05f;
    p.sgd.alpha = 0.1f;
    return p;
}

static ggml_opt_context_t new_static(struct model *m, struct ggml_context *compute, int32_t period,
                                     enum ggml_opt_optimizer_type optimizer) {
    struct ggml_opt_params params =
        ggml_opt_default_params(sched, GGML_OPT_LOSS_TYPE_MEAN_SQUARED_ERROR);
    params.ctx_compute = compute;
    params.inputs = m->inputs;
    params.outputs = outputs_of(compute, m);
    params.opt_period = period;
    params.optimizer = optimizer;
    params.get_opt_pars = fast;
    ggml_opt_context_t opt = ggml_opt_init(params);
    if (!opt) fail_msg("%s", ggml_last_error());
    return opt;
}

// --- data sets -----------------------------------------------------------------------------------

static void test_batches_follow_the_order(void **state) {
    (void)state;
    ggml_opt_dataset_t set = new_points(2);
    float x[4 * N_IN], y[4];
    const float *all = ggml_get_data_f32(ggml_opt_dataset_data(set));
    ggml_opt_dataset_get_batch_host(set, x, sizeof(x), y, 3);
    assert_memory_equal(x, all + 12 * N_IN, sizeof(x));
    ggml_clear_error();
    ggml_opt_dataset_get_batch_host(set, x, sizeof(x), y, N_POINTS / 4);
    assert_int_equal(ggml_last_status(), GGML_HOST_INVALID_ARGUMENT);
    ggml_clear_error();
    ggml_opt_dataset_get_batch_host(set, x, 3 * N_IN * sizeof(float), y, 0);
    assert_int_equal(ggml_last_status(), GGML_HOST_INVALID_ARGUMENT);
    ggml_opt_dataset_free(set);
}

// As in ggml the points behind the last whole shard are left out.
static void test_points_that_fill_no_shard(void **state) {
    (void)state;
    ggml_opt_dataset_t dataset = new_points(N_POINTS - 1);
    assert_non_null(dataset);
    assert_int_equal(ggml_opt_dataset_ndata(dataset), N_POINTS);
    static float batch[N_POINTS * N_IN], labels[N_POINTS];
    const size_t bytes = (N_POINTS - 1) * N_IN * sizeof(float);
    ggml_clear_error();
    ggml_opt_dataset_get_batch_host(dataset, batch, bytes, labels, 0);
    assert_int_equal(ggml_last_status(), GGML_HOST_OK);
    ggml_opt_dataset_get_batch_host(dataset, batch, bytes, labels, 1);
    assert_int_equal(ggml_last_status(), GGML_HOST_INVALID_ARGUMENT);
    ggml_opt_dataset_free(dataset);
    dataset = new_points(INT64_MAX);
    assert_non_null(dataset);
    ggml_opt_dataset_get_batch_host(dataset, batch, bytes, labels, 0);
    assert_int_equal(ggml_last_status(), GGML_HOST_INVALID_ARGUMENT);
    ggml_opt_dataset_free(dataset);
}

// Every shard stays whole and appears once; those behind the shuffled part stay.
static void test_shuffle_moves_whole_shards(void **state) {
    (void)state;
    enum { SHARD = 3, SHUFFLED = 18 };
    struct model m = new_model(SHARD);
    struct ggml_context *compute = new_context();
    ggml_opt_context_t opt = new_static(&m, compute, 1, GGML_OPT_OPTIMIZER_TYPE_SGD);
    ggml_opt_dataset_t set =
        ggml_opt_dataset_init(GGML_TYPE_F32, GGML_TYPE_F32, 1, 0, N_POINTS, SHARD);
    float *data = ggml_get_data_f32(ggml_opt_dataset_data(set));
    for (int i = 0; i < N_POINTS; ++i)
        data[i] = (float)i;
    ggml_opt_dataset_shuffle(opt, set, SHUFFLED);
    bool seen[N_POINTS / SHARD] = {false};
    bool moved = false;
    for (int i = 0; i < N_POINTS / SHARD; ++i) {
        float batch[SHARD];
        ggml_opt_dataset_get_batch_host(set, batch, sizeof(batch), NULL, i);
        const int shard = (int)batch[0] / SHARD;
        assert_false(seen[shard]);
        seen[shard] = true;
        moved = moved || shard != i;
        if (i >= SHUFFLED / SHARD) assert_int_equal(shard, i);
        for (int k = 0; k < SHARD; ++k)
            assert_int_equal((int)batch[k], shard * SHARD + k);
    }
    assert_true(moved);
    ggml_opt_dataset_free(set);
    ggml_opt_free(opt);
    ggml_free(compute);
    free_model(&m);
}

static void test_bad_data_sets_are_refused(void **state) {
    (void)state;
    const enum ggml_type f32 = GGML_TYPE_F32;
    assert_null(ggml_opt_dataset_init(f32, f32, 0, 1, 4, 1));
    assert_null(ggml_opt_dataset_init(f32, f32, 1, -1, 4, 1));
    assert_null(ggml_opt_dataset_init(f32, f32, 1, 1, 0, 1));
    assert_null(ggml_opt_dataset_init(f32, f32, 1, 1, 4, 0));
    assert_null(ggml_opt_dataset_init(f32, f32, INT64_MAX / 2, 1, 4, 1));
    ggml_clear_error();
    assert_null(ggml_opt_dataset_init(GGML_TYPE_Q8_0, f32, 3, 1, 4, 1)); // no whole block
    assert_int_equal(ggml_last_status(), GGML_HOST_INVALID_ARGUMENT);
    ggml_opt_dataset_free(NULL);
}

// --- steps ---------------------------------------------------------------------------------------

static void run_batch(ggml_opt_context_t opt, ggml_opt_dataset_t set, int64_t i, bool backward,
                      ggml_opt_result_t result) {
    ggml_clear_error();
    ggml_opt_alloc(opt, backward);
    ggml_opt_dataset_get_batch(set, ggml_opt_inputs(opt), ggml_opt_labels(opt), i);
    ggml_opt_eval(opt, result);
    if (ggml_last_status() != GGML_HOST_OK) fail_msg("%s", ggml_last_error());
}

// Two evaluations of half the points, accumulated, move the parameters as one of all of them does.
static void check_accumulation(enum ggml_opt_optimizer_type optimizer) {
    float moved[2][N_IN + 1];
    for (int halves = 0; halves < 2; ++halves) {
        const int period = halves ? 2 : 1;
        struct model m = new_model(N_POINTS / period);
        struct ggml_context *compute = new_context();
        ggml_opt_context_t opt = new_static(&m, compute, period, optimizer);
        ggml_opt_dataset_t set = new_points(1);
        for (int step = 0; step < 3 * period; ++step)
            run_batch(opt, set, step % period, true, NULL);
        for (int k = 0; k < N_IN; ++k)
            moved[halves][k] = value_of(m.w, k);
        moved[halves][N_IN] = value_of(m.b, 0);
        ggml_opt_dataset_free(set);
        ggml_opt_free(opt);
        ggml_free(compute);
        free_model(&m);
    }
    for (int k = 0; k <= N_IN; ++k) {
        assert_true(fabsf(moved[0][k]) > 1e-3f);
        assert_true(fabsf(moved[0][k] - moved[1][k]) < 1e-5f);
    }
}

static void test_accumulated_gradients(void **state) {
    (void)state;
    check_accumulation(GGML_OPT_OPTIMIZER_TYPE_SGD);
    check_accumulation(GGML_OPT_OPTIMIZER_TYPE_ADAMW);
}

// A context for gradients only has the sums of one period's evaluations: parameters don't move, so
// that they are the same each time.
static void check_sums_of_periods(int32_t period) {
    struct model m = new_model(N_POINTS / 2);
    struct ggml_context *compute = new_context();
    struct ggml_opt_params params =
        ggml_opt_default_params(sched, GGML_OPT_LOSS_TYPE_MEAN_SQUARED_ERROR);
    params.ctx_compute = compute;
    params.inputs = m.inputs;
    params.outputs = outputs_of(compute, &m);
    params.build_type = GGML_OPT_BUILD_TYPE_GRAD;
    params.opt_period = period;
    ggml_opt_context_t opt = ggml_opt_init(params);
    ggml_opt_dataset_t set = new_points(1);
    float sums[3];
    for (int i = 0; i < 3; ++i) {
        for (int k = 0; k < period; ++k)
            run_batch(opt, set, k, true, NULL);
        sums[i] = value_of(ggml_opt_grad_acc(opt, m.w), 0);
    }
    assert_true(fabsf(sums[0]) > 1e-3f);
    assert_true(fabsf(sums[1] - sums[0]) < 1e-6f);
    assert_true(fabsf(sums[2] - sums[0]) < 1e-6f);
    assert_float_equal(value_of(m.w, 0), 0.0f, 0.0f);
    ggml_opt_dataset_free(set);
    ggml_opt_free(opt);
    ggml_free(compute);
    free_model(&m);
}

static void test_gradients_without_steps(void **state) {
    (void)state;
    check_sums_of_periods(1);
    check_sums_of_periods(2);
}

// The graph is built anew for each step.
static void run_dynamic(ggml_opt_context_t opt, struct model *m, ggml_opt_dataset_t set, int64_t i,
                        bool backward, ggml_opt_result_t result) {
    struct ggml_context *compute = new_context();
    struct ggml_cgraph *graph = ggml_new_graph_custom(compute, GRAPH_SIZE, true);
    tensor_t outputs = outputs_of(compute, m);
    ggml_build_forward_expand(graph, outputs);
    ggml_opt_prepare_alloc(opt, compute, graph, m->inputs, outputs);
    run_batch(opt, set, i, backward, result);
    ggml_free(compute);
}

static void test_dynamic_graphs_do_the_same(void **state) {
    (void)state;
    struct model fixed = new_model(N_POINTS / 2), built = new_model(N_POINTS / 2);
    struct ggml_context *compute = new_context();
    ggml_opt_context_t opt = new_static(&fixed, compute, 2, GGML_OPT_OPTIMIZER_TYPE_ADAMW);
    struct ggml_opt_params params =
        ggml_opt_default_params(sched, GGML_OPT_LOSS_TYPE_MEAN_SQUARED_ERROR);
    params.opt_period = 2;
    params.get_opt_pars = fast;
    ggml_opt_context_t dynamic = ggml_opt_init(params);
    assert_non_null(dynamic);
    assert_false(ggml_opt_static_graphs(dynamic));
    assert_true(ggml_opt_static_graphs(opt));
    ggml_opt_dataset_t set = new_points(1);
    ggml_opt_result_t a = ggml_opt_result_init(), b = ggml_opt_result_init();
    for (int i = 0; i < 6; ++i)
        run_batch(opt, set, i % 2, true, a);
    for (int i = 0; i < 6; ++i)
        run_dynamic(dynamic, &built, set, i % 2, true, b);
    double loss_a, loss_b;
    ggml_opt_result_loss(a, &loss_a, NULL);
    ggml_opt_result_loss(b, &loss_b, NULL);
    assert_true(loss_a > 0.0 && fabs(loss_a - loss_b) < 1e-6 * loss_a);
    for (int k = 0; k < N_IN; ++k)
        assert_true(fabsf(value_of(fixed.w, k) - value_of(built.w, k)) < 1e-6f);
    ggml_opt_result_free(a);
    ggml_opt_result_free(b);
    ggml_opt_dataset_free(set);
    ggml_opt_free(dynamic);
    ggml_opt_free(opt);
    ggml_free(compute);
    free_model(&built);
    free_model(&fixed);
}

// Evaluating forward changes nothing; a reset forgets momenta and the step count.
static void test_forward_and_reset(void **state) {
    (void)state;
    struct model m = new_model(N_POINTS);
    struct ggml_context *compute = new_context();
    ggml_opt_context_t opt = new_static(&m, compute, 1, GGML_OPT_OPTIMIZER_TYPE_ADAMW);
    ggml_opt_dataset_t set = new_points(1);
    run_batch(opt, set, 0, false, NULL);
    assert_true(value_of(m.w, 0) == 0.0f);
    run_batch(opt, set, 0, true, NULL);
    const float first = value_of(m.w, 0);
    assert_true(first != 0.0f);
    run_batch(opt, set, 0, true, NULL);
    ggml_backend_buffer_clear(m.buffer, 0);
    ggml_opt_reset(opt, true);
    run_batch(opt, set, 0, true, NULL);
    assert_true(value_of(m.w, 0) == first);
    ggml_opt_dataset_free(set);
    ggml_opt_free(opt);
    ggml_free(compute);
    free_model(&m);
}

// --- the scheduler is shared ---------------------------------------------------------------------

enum { N_TURNS = 4 };

// Something else that the scheduler computes.
static void infer(struct model *m) {
    struct ggml_context *ctx = new_context();
    struct ggml_cgraph *graph = ggml_new_graph_custom(ctx, GRAPH_SIZE, false);
    ggml_build_forward_expand(graph, outputs_of(ctx, m));
    ggml_backend_sched_reset(sched);
    assert_true(ggml_backend_sched_alloc_graph(sched, graph));
    assert_int_equal(ggml_backend_sched_graph_compute(sched, graph), GGML_STATUS_SUCCESS);
    ggml_backend_sched_reset(sched);
    ggml_free(ctx);
}

// Two contexts train by turns, and an evaluation of one is spoiled by a graph that the scheduler
// computes after the allocation: each goes on as if it were alone.
static void test_contexts_by_turns(void **state) {
    (void)state;
    struct model models[3];
    struct ggml_context *computes[3];
    ggml_opt_context_t opts[3];
    ggml_opt_dataset_t set = new_points(1);
    for (int i = 0; i < 3; ++i) {
        models[i] = new_model(N_POINTS);
        computes[i] = new_context();
        opts[i] = new_static(&models[i], computes[i], 1, GGML_OPT_OPTIMIZER_TYPE_ADAMW);
    }
    for (int step = 0; step < N_TURNS; ++step)
        run_batch(opts[0], set, 0, true, NULL);
    for (int step = 0; step < N_TURNS; ++step) {
        run_batch(opts[1], set, 0, true, NULL);
        run_batch(opts[2], set, 0, true, NULL);
        infer(&models[2]);
        ggml_opt_alloc(opts[2], true);
        infer(&models[2]);
        ggml_clear_error();
        ggml_opt_eval(opts[2], NULL);
        // Either the scheduler takes the graph again or it tells: then nothing was changed.
        if (ggml_last_status() == GGML_HOST_OK) fail_msg("computed without memory");
    }
    for (int k = 0; k < N_IN; ++k) {
        assert_true(value_of(models[1].w, k) == value_of(models[0].w, k));
        assert_true(value_of(models[2].w, k) == value_of(models[0].w, k));
    }
    for (int i = 0; i < 3; ++i) {
        ggml_opt_free(opts[i]);
        ggml_free(computes[i]);
        free_model(&models[i]);
    }
    ggml_opt_dataset_free(set);
}

// --- without memory ------------------------------------------------------------------------------

static bool may_allocate(void *context) {
    int *left = context;
    return (*left)-- != 0;
}

// Trains with dynamic graphs after a first one, with a node more, in whose allocation number n
// fails; false if there are not so many.
static bool trains_after_failure(int n, float *out_w) {
    struct model m = new_model(N_POINTS);
    struct ggml_opt_params params =
        ggml_opt_default_params(sched, GGML_OPT_LOSS_TYPE_MEAN_SQUARED_ERROR);
    params.get_opt_pars = fast;
    ggml_opt_context_t opt = ggml_opt_init(params);
    ggml_opt_dataset_t set = new_points(1);
    struct ggml_context *compute = new_context();
    struct ggml_cgraph *graph = ggml_new_graph_custom(compute, GRAPH_SIZE, true);
    tensor_t outputs = ggml_scale(compute, outputs_of(compute, &m), 1.0f);
    ggml_build_forward_expand(graph, outputs);
    ggml_opt_prepare_alloc(opt, compute, graph, m.inputs, outputs);
    int left = n;
    ggml_clear_error();
    ggml_mem_set_fault_hook(may_allocate, &left);
    ggml_opt_alloc(opt, true);
    ggml_mem_set_fault_hook(NULL, NULL);
    const bool failed = ggml_last_status() != GGML_HOST_OK;
    if (failed) {
        ggml_opt_alloc(opt, true); // of what failed nothing can be made
        assert_int_equal(ggml_last_status(), GGML_HOST_INVALID_ARGUMENT);
        for (int step = 0; step < N_TURNS; ++step)
            run_dynamic(opt, &m, set, 0, true, NULL);
        for (int k = 0; k < N_IN; ++k)
            out_w[k] = value_of(m.w, k);
    }
    ggml_free(compute);
    ggml_opt_dataset_free(set);
    ggml_opt_free(opt);
    free_model(&m);
#ifdef _WIN32 // where opening a file allocates, and what it would say is done without
    assert_true(left < 0 || !failed);
#else
    assert_int_equal(failed, left < 0); // and told
#endif
    return failed;
}

static void test_first_allocation_fails(void **state) {
    (void)state;
    float expected[N_IN], w[N_IN];
    int n = 0;
    struct model m = new_model(N_POINTS);
    struct ggml_context *compute = new_context();
    ggml_opt_context_t opt = new_static(&m, compute, 1, GGML_OPT_OPTIMIZER_TYPE_ADAMW);
    ggml_opt_dataset_t set = new_points(1);
    for (int step = 0; step < N_TURNS; ++step)
        run_batch(opt, set, 0, true, NULL);
    for (int k = 0; k < N_IN; ++k)
        expected[k] = w[k] = value_of(m.w, k);
    for (; trains_after_failure(n, w); ++n) {
        for (int k = 0; k < N_IN; ++k) {
            if (fabsf(w[k] - expected[k]) >= 1e-6f)
                fail_msg("after failure %d: %g instead of %g", n, (double)w[k],
                         (double)expected[k]);
        }
    }
    assert_true(n > 6);
    ggml_opt_dataset_free(set);
    ggml_opt_free(opt);
    ggml_free(compute);
    free_model(&m);
}

// --- fit -----------------------------------------------------------------------------------------

static int64_t last_epoch;

static struct ggml_opt_optimizer_params fast_until(void *userdata) {
    last_epoch = *(const int64_t *)userdata;
    return fast(NULL);
}

static void check_fit(enum ggml_opt_optimizer_type optimizer) {
    struct model m = new_model(4);
    struct ggml_context *compute = new_context();
    ggml_opt_dataset_t set = new_points(1);
    ggml_clear_error();
    ggml_opt_fit(sched, compute, m.inputs, outputs_of(compute, &m), set,
                 GGML_OPT_LOSS_TYPE_MEAN_SQUARED_ERROR, optimizer, fast_until, 300, 8, 0.25f, true);
    if (ggml_last_status() != GGML_HOST_OK) fail_msg("%s", ggml_last_error());
    assert_int_equal(last_epoch, 300);
    for (int k = 0; k < N_IN; ++k)
        assert_true(fabsf(value_of(m.w, k) - true_w[k]) < 0.01f);
    assert_true(fabsf(value_of(m.b, 0) - true_b) < 0.01f);
    ggml_opt_dataset_free(set);
    ggml_free(compute);
    free_model(&m);
}

static void test_fit_finds_the_line(void **state) {
    (void)state;
    check_fit(GGML_OPT_OPTIMIZER_TYPE_SGD);
    check_fit(GGML_OPT_OPTIMIZER_TYPE_ADAMW);
}

// --- results -------------------------------------------------------------------------------------

// Two classes told apart by the sign of the input, with one point on the wrong side.
static void test_classes(void **state) {
    (void)state;
    enum { N = 8 };
    struct ggml_context *fixed = new_context(), *compute = new_context();
    tensor_t inputs = ggml_new_tensor_2d(fixed, GGML_TYPE_F32, 2, N);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(fixed, cpu);
    ggml_opt_dataset_t set = ggml_opt_dataset_init(GGML_TYPE_F32, GGML_TYPE_F32, 2, 2, N, 1);
    float *x = ggml_get_data_f32(ggml_opt_dataset_data(set));
    float *y = ggml_get_data_f32(ggml_opt_dataset_labels(set));
    for (int i = 0; i < N; ++i) {
        x[2 * i] = i % 2 ? 2.0f : -2.0f;
        x[2 * i + 1] = 0.0f;
        y[2 * i] = (i % 2 || i == 4) ? 1.0f : 0.0f;
        y[2 * i + 1] = 1.0f - y[2 * i];
    }
    struct ggml_opt_params params =
        ggml_opt_default_params(sched, GGML_OPT_LOSS_TYPE_CROSS_ENTROPY);
    params.ctx_compute = compute;
    params.inputs = inputs;
    params.outputs = ggml_scale(compute, inputs, 1.0f);
    params.build_type = GGML_OPT_BUILD_TYPE_FORWARD;
    ggml_opt_context_t opt = ggml_opt_init(params);
    ggml_opt_result_t result = ggml_opt_result_init();
    assert_non_null(opt);
    run_batch(opt, set, 0, false, result);
    double loss, loss_unc, accuracy, accuracy_unc;
    int64_t n;
    int32_t pred[N];
    ggml_opt_result_ndata(result, &n);
    ggml_opt_result_loss(result, &loss, &loss_unc);
    ggml_opt_result_accuracy(result, &accuracy, &accuracy_unc);
    ggml_opt_result_pred(result, pred);
    const double right = log(1.0 + exp(-2.0)), wrong = log(1.0 + exp(2.0));
    assert_int_equal(n, N);
    assert_true(fabs(loss - (7.0 * right + wrong) / 8.0) < 1e-5);
    assert_true(isnan(loss_unc)); // one batch
    assert_true(fabs(accuracy - 7.0 / 8.0) < 1e-12);
    assert_true(fabs(accuracy_unc - sqrt(7.0 / 64.0 / 7.0)) < 1e-12);
    for (int i = 0; i < N; ++i)
        assert_int_equal(pred[i], i % 2 ? 0 : 1);
    ggml_opt_result_free(result);
    ggml_opt_free(opt);
    ggml_opt_dataset_free(set);
    ggml_backend_buffer_free(buffer);
    ggml_free(compute);
    ggml_free(fixed);
}

static void test_empty_result(void **state) {
    (void)state;
    ggml_opt_result_t result = ggml_opt_result_init();
    double value, unc;
    ggml_opt_result_loss(result, &value, &unc);
    assert_true(value == 0.0 && isnan(unc));
    ggml_opt_result_loss(result, &value, NULL);
    ggml_opt_result_accuracy(result, &value, &unc);
    assert_true(isnan(value) && isnan(unc));
    ggml_opt_result_free(result);
}

// --- errors --------------------------------------------------------------------------------------

static void test_wrong_order_is_reported(void **state) {
    (void)state;
    struct model m = new_model(4);
    struct ggml_context *compute = new_context();
    ggml_opt_context_t opt = new_static(&m, compute, 1, GGML_OPT_OPTIMIZER_TYPE_SGD);
    ggml_opt_eval(opt, NULL);
    assert_int_equal(ggml_last_status(), GGML_HOST_INVALID_ARGUMENT);
    ggml_opt_alloc(opt, true);
    ggml_clear_error();
    ggml_opt_alloc(opt, true);
    assert_int_equal(ggml_last_status(), GGML_HOST_INVALID_ARGUMENT);
    ggml_clear_error();
    ggml_opt_prepare_alloc(opt, compute, NULL, NULL, NULL);
    assert_int_equal(ggml_last_status(), GGML_HOST_INVALID_ARGUMENT);
    ggml_opt_free(opt);
    ggml_free(compute);
    free_model(&m);
    ggml_opt_free(NULL);
    ggml_opt_result_free(NULL);
}

static struct ggml_opt_optimizer_params backwards(void *userdata) {
    struct ggml_opt_optimizer_params p = ggml_opt_get_default_optimizer_params(userdata);
    p.sgd.alpha = -1.0f;
    return p;
}

static void test_bad_parameters_are_refused(void **state) {
    (void)state;
    struct model m = new_model(4);
    struct ggml_context *compute = new_context();
    struct ggml_opt_params params = ggml_opt_default_params(sched, GGML_OPT_LOSS_TYPE_MEAN);
    params.ctx_compute = compute;
    assert_null(ggml_opt_init(params)); // no inputs
    params.inputs = m.inputs;
    params.outputs = outputs_of(compute, &m);
    params.opt_period = 0;
    assert_null(ggml_opt_init(params));
    params.opt_period = 1;
    params.backend_sched = NULL;
    assert_null(ggml_opt_init(params));
    params.backend_sched = sched;
    params.optimizer = GGML_OPT_OPTIMIZER_TYPE_SGD;
    params.get_opt_pars = backwards;
    ggml_opt_context_t opt = ggml_opt_init(params);
    assert_non_null(opt);
    ggml_opt_alloc(opt, true);
    ggml_clear_error();
    ggml_opt_eval(opt, NULL);
    assert_int_equal(ggml_last_status(), GGML_HOST_INVALID_ARGUMENT);
    assert_true(value_of(m.w, 0) == 0.0f);
    ggml_opt_free(opt);
    ggml_free(compute);
    free_model(&m);
}

// Without a parameter there is no gradient: the context is refused with the reason.
static void test_no_parameter(void **state) {
    (void)state;
    struct ggml_context *fixed = new_context(), *compute = new_context();
    tensor_t inputs = ggml_new_tensor_2d(fixed, GGML_TYPE_F32, 2, 2);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(fixed, cpu);
    struct ggml_opt_params params = ggml_opt_default_params(sched, GGML_OPT_LOSS_TYPE_SUM);
    params.ctx_compute = compute;
    params.inputs = inputs;
    params.outputs = ggml_sqr(compute, inputs);
    assert_null(ggml_opt_init(params));
    assert_non_null(strstr(ggml_last_error(), "parameter"));
    ggml_backend_buffer_free(buffer);
    ggml_free(compute);
    ggml_free(fixed);
}

static int start(void **state) {
    (void)state;
    cpu = ggml_backend_cpu_init();
    sched = cpu ? ggml_backend_sched_new(&cpu, NULL, 1, GRAPH_SIZE, false, false) : NULL;
    return sched ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    ggml_backend_sched_free(sched);
    ggml_backend_free(cpu);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches_follow_the_order),
        cmocka_unit_test(test_points_that_fill_no_shard),
        cmocka_unit_test(test_shuffle_moves_whole_shards),
        cmocka_unit_test(test_bad_data_sets_are_refused),
        cmocka_unit_test(test_accumulated_gradients),
        cmocka_unit_test(test_gradients_without_steps),
        cmocka_unit_test(test_dynamic_graphs_do_the_same),
        cmocka_unit_test(test_forward_and_reset),
        cmocka_unit_test(test_contexts_by_turns),
        cmocka_unit_test(test_first_allocation_fails),
        cmocka_unit_test(test_fit_finds_the_line),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_empty_result),
        cmocka_unit_test(test_wrong_order_is_reported),
        cmocka_unit_test(test_bad_parameters_are_refused),
        cmocka_unit_test(test_no_parameter),
    };
    return cmocka_run_group_tests(tests, start, end);
}
