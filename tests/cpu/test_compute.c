// SPDX-License-Identifier: MIT
// Plans, streams and thread pools of the CPU plugin, through the public API.
#define _GNU_SOURCE
#include "cpu_test.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "ggml-impl.h"
#include "runtime/level.h"
#include "support/setenv.h"

// Small and large nodes by turns, so that threads meet and part: about 20 nodes.
static struct ggml_tensor *network(struct ggml_context *ctx, int64_t width, int64_t rows) {
    struct ggml_tensor *x =
        test_tensor(ctx, GGML_TYPE_F32, (struct extents){{width, rows, 1, 1}}, 1, -1, 1);
    struct ggml_tensor *w =
        test_tensor(ctx, GGML_TYPE_F32, (struct extents){{width, 1, 1, 1}}, 2, -1, 1);
    for (int layer = 0; layer < 4; ++layer) {
        struct ggml_tensor *h = ggml_mul(ctx, ggml_rms_norm(ctx, x, 1e-5f), w);
        h = ggml_silu(ctx, h);
        struct ggml_tensor *s = ggml_scale(ctx, ggml_sum(ctx, h), 1e-3f);
        x = ggml_add(ctx, ggml_add(ctx, h, x), s);
    }
    return x;
}

static void test_results_do_not_depend_on_threads(void **state) {
    (void)state;
    struct ggml_context *ctx = test_context(32);
    struct ggml_tensor *y = network(ctx, 777, 65);
    struct ggml_cgraph *graph = test_graph(ctx, y);
    assert_int_equal(test_compute(graph, 1), GGML_STATUS_SUCCESS);
    void *first = malloc(ggml_nbytes(y));
    memcpy(first, y->data, ggml_nbytes(y));
    for (int n_threads = 2; n_threads <= 5; ++n_threads) {
        memset(y->data, 0, ggml_nbytes(y));
        assert_int_equal(test_compute(graph, n_threads), GGML_STATUS_SUCCESS);
        assert_memory_equal(first, y->data, ggml_nbytes(y));
    }
    free(first);
    ggml_free(ctx);
}

// --- abort -----------------------------------------------------------------------------

struct countdown {
    int left;
    int calls;
};

static bool count_down(void *data) {
    struct countdown *countdown = data;
    ++countdown->calls;
    return --countdown->left == 0;
}

static void test_abort_callback_stops_between_nodes(void **state) {
    (void)state;
    for (int n_threads = 1; n_threads <= 3; ++n_threads) {
        struct ggml_context *ctx = test_context(8);
        struct ggml_tensor *x =
            test_tensor(ctx, GGML_TYPE_F32, (struct extents){{512, 64, 1, 1}}, 3, 1, 2);
        struct ggml_tensor *nodes[6] = {x};
        for (int i = 1; i < 6; ++i) {
            nodes[i] = ggml_scale(ctx, nodes[i - 1], 2.0f);
            ggml_set_f32(nodes[i], -1.0f);
        }
        ggml_backend_t stream = ggml_backend_cpu_init();
        ggml_backend_cpu_set_n_threads(stream, n_threads);
        struct countdown countdown = {.left = 3};
        ggml_backend_cpu_set_abort_callback(stream, count_down, &countdown);
        struct ggml_cgraph *graph = test_graph(ctx, nodes[5]);
        assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_ABORTED);
        assert_int_equal(countdown.calls, 3);
        assert_true(ggml_get_f32_1d(nodes[3], 32767) > 0.0f);
        assert_float_equal(ggml_get_f32_1d(nodes[4], 0), -1.0f, 0);
        ggml_backend_cpu_set_abort_callback(stream, NULL, NULL);
        assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_SUCCESS);
        assert_true(ggml_get_f32_1d(nodes[5], 0) > 0.0f);
        ggml_backend_free(stream);
        ggml_free(ctx);
    }
}

// --- pools -----------------------------------------------------------------------------

// Threads of this process whose name begins with `prefix`.
static int count_threads(const char *prefix) {
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
        char path[300], name[32] = "";
        snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (!file) continue;
        if (fgets(name, sizeof(name), file) && strncmp(name, prefix, strlen(prefix)) == 0) ++count;
        fclose(file);
    }
    if (tasks) closedir(tasks);
    return count;
}

// A thread that was joined stays in the list for a moment.
static void assert_threads_left(const char *prefix, int count) {
    const struct timespec moment = {0, 10 * 1000 * 1000};
    for (int i = 0; i < 500 && count_threads(prefix) > count; ++i)
        nanosleep(&moment, NULL);
    assert_int_equal(count_threads(prefix), count);
}

static void test_pool_starts_late_and_is_reused(void **state) {
    (void)state;
    struct ggml_context *ctx = test_context(16);
    struct ggml_cgraph *graph = test_graph(ctx, network(ctx, 512, 64));
    const int before = count_threads("ggml-cpu-");
    struct ggml_threadpool_params params = ggml_threadpool_params_default(3);
    struct ggml_threadpool *pool = ggml_threadpool_new(&params);
    assert_non_null(pool);
    assert_int_equal(ggml_threadpool_get_n_threads(pool), 3);
    assert_int_equal(count_threads("ggml-cpu-"), before);
    ggml_backend_t stream = ggml_backend_cpu_init();
    ggml_backend_cpu_set_threadpool(stream, pool);
    ggml_backend_cpu_set_n_threads(stream, 64);
    for (int i = 0; i < 20; ++i) {
        if (i == 5) ggml_threadpool_pause(pool);
        if (i == 9) ggml_threadpool_resume(pool);
        assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_SUCCESS);
        assert_in_range(count_threads("ggml-cpu-"), before, before + 2);
    }
    ggml_backend_cpu_set_threadpool(stream, NULL);
    ggml_backend_free(stream);
    ggml_threadpool_free(pool);
    assert_threads_left("ggml-cpu-", before);
    ggml_free(ctx);
}

// How many threads computed, and how often each did since.
struct presence {
    _Atomic int threads;
    _Atomic int times[8];
};

static void be_present(struct ggml_tensor *dst, const struct ggml_tensor *a, int ith, int nth,
                       void *userdata) {
    struct presence *presence = userdata;
    (void)dst, (void)a;
    atomic_store(&presence->threads, nth);
    atomic_fetch_add(&presence->times[ith], 1);
}

static int processors(void) {
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
#endif
    return 8;
}

// Computes on a pool of eight threads, with 1 to 8 of them by turns: who is left out sleeps until
// it is needed again.
static void compute_with_changing_numbers(bool with_all) {
    enum { ROUNDS = 50 };
    static const int numbers[] = {2, 8, 3, 3, 5, 1, 8, 2, 7, 4};
    struct presence presence = {0};
    struct ggml_context *ctx = test_context(4);
    struct ggml_tensor *x = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 1 << 16);
    struct ggml_cgraph *graph =
        test_graph(ctx, ggml_map_custom1(ctx, x, be_present, GGML_N_TASKS_MAX, &presence));
    struct ggml_threadpool_params params = ggml_threadpool_params_default(8);
    setenv("GGML_CPU_ALL_THREADS", with_all ? "1" : "0", 1);
    struct ggml_threadpool *pool = ggml_threadpool_new(&params);
    ggml_backend_t stream = ggml_backend_cpu_init();
    ggml_backend_cpu_set_threadpool(stream, pool);
    int expected[8] = {0};
    for (int i = 0; i < ROUNDS; ++i) {
        const int n = numbers[i % 10];
        const int most = with_all ? n : MIN(n, processors());
        ggml_backend_cpu_set_n_threads(stream, n);
        assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_SUCCESS);
        const int took_part = atomic_load(&presence.threads);
        assert_in_range(took_part, with_all ? n : 1, most);
        for (int t = 0; t < 8; ++t) {
            expected[t] += t < took_part;
            assert_int_equal(atomic_load(&presence.times[t]), expected[t]);
        }
    }
    ggml_backend_cpu_set_threadpool(stream, NULL);
    ggml_backend_free(stream);
    ggml_threadpool_free(pool);
    ggml_free(ctx);
}

static void test_all_threads_where_they_are_wanted(void **state) {
    (void)state;
    compute_with_changing_numbers(true);
}

static void test_no_more_threads_than_processors(void **state) {
    (void)state;
    compute_with_changing_numbers(false);
    setenv("GGML_CPU_ALL_THREADS", "1", 1);
}

static void test_placed_pool_computes(void **state) {
    (void)state;
    struct ggml_context *ctx = test_context(16);
    struct ggml_cgraph *graph = test_graph(ctx, network(ctx, 512, 64));
    for (int strict = 0; strict < 2; ++strict) {
        struct ggml_threadpool_params params = ggml_threadpool_params_default(2);
        params.strict_cpu = strict;
        params.cpumask[0] = true;
        params.poll = 0;
        params.prio = strict ? GGML_SCHED_PRIO_HIGH : GGML_SCHED_PRIO_LOW;
        struct ggml_threadpool *pool = ggml_threadpool_new(&params);
        struct ggml_cplan plan = ggml_graph_plan(graph, 2, pool);
        assert_int_equal(plan.n_threads, 2);
        plan.work_data = malloc(plan.work_size);
        assert_int_equal(ggml_graph_compute(graph, &plan), GGML_STATUS_SUCCESS);
        free(plan.work_data);
        ggml_threadpool_free(pool);
    }
    ggml_free(ctx);
}

static void test_impossible_pools_are_refused(void **state) {
    (void)state;
    static const int sizes[] = {0, -1, GGML_MAX_N_THREADS + 1};
    for (int i = 0; i < 3; ++i) {
        struct ggml_threadpool_params params = ggml_threadpool_params_default(sizes[i]);
        ggml_clear_error();
        assert_null(ggml_threadpool_new(&params));
        assert_int_equal(ggml_last_status(), GGML_HOST_INVALID_ARGUMENT);
    }
    assert_null(ggml_threadpool_new(NULL));
    ggml_threadpool_free(NULL);
    assert_int_equal(ggml_threadpool_get_n_threads(NULL), 0);
}

struct user {
    struct ggml_threadpool *pool; // NULL: none of its own
    uint32_t seed;
    bool ok;
};

static void *compute_repeatedly(void *argument) {
    struct user *user = argument;
    struct ggml_context *ctx = ggml_init((struct ggml_init_params){.mem_size = 16 << 20});
    struct ggml_tensor *x = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 1000, 40);
    ggml_set_f32(x, (float)user->seed);
    struct ggml_tensor *y = ggml_sum(ctx, ggml_sqr(ctx, ggml_add(ctx, x, x)));
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, y);
    ggml_backend_t stream = ggml_backend_cpu_init();
    ggml_backend_cpu_set_threadpool(stream, user->pool);
    ggml_backend_cpu_set_n_threads(stream, 2);
    const float expected = 4.0f * (float)(user->seed * user->seed) * 40000.0f;
    user->ok = true;
    for (int i = 0; i < 25 && user->ok; ++i) {
        ggml_set_f32(y, 0.0f);
        user->ok = ggml_backend_graph_compute(stream, graph) == GGML_STATUS_SUCCESS &&
                   ggml_get_f32_1d(y, 0) == expected;
    }
    ggml_backend_free(stream);
    ggml_free(ctx);
    return NULL;
}

static void test_graphs_of_several_threads(void **state) {
    (void)state;
    struct ggml_threadpool_params params = ggml_threadpool_params_default(2);
    struct ggml_threadpool *pool = ggml_threadpool_new(&params);
    struct user users[4] = {{pool, 1, false}, {pool, 2, false}, {NULL, 3, false}, {NULL, 4, false}};
    pthread_t threads[4];
    for (int i = 0; i < 4; ++i)
        assert_int_equal(pthread_create(&threads[i], NULL, compute_repeatedly, &users[i]), 0);
    for (int i = 0; i < 4; ++i)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; ++i)
        assert_true(users[i].ok);
    ggml_threadpool_free(pool);
}

struct nested {
    struct ggml_threadpool *pool;
    struct ggml_cgraph *graph;
    enum ggml_status status;
};

static bool compute_inside(void *data) {
    struct nested *nested = data;
    struct ggml_cplan plan = ggml_graph_plan(nested->graph, 2, nested->pool);
    plan.work_data = malloc(plan.work_size);
    nested->status = ggml_graph_compute(nested->graph, &plan);
    free(plan.work_data);
    return false;
}

static void test_graph_inside_a_graph_on_one_pool_is_refused(void **state) {
    (void)state;
    struct ggml_context *ctx = test_context(16);
    struct ggml_cgraph *graph = test_graph(ctx, network(ctx, 512, 64));
    struct ggml_threadpool_params params = ggml_threadpool_params_default(2);
    struct nested nested = {ggml_threadpool_new(&params), graph, GGML_STATUS_SUCCESS};
    ggml_backend_t stream = ggml_backend_cpu_init();
    ggml_backend_cpu_set_threadpool(stream, nested.pool);
    ggml_backend_cpu_set_abort_callback(stream, compute_inside, &nested);
    assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_SUCCESS);
    assert_int_equal(nested.status, GGML_STATUS_FAILED);
    ggml_backend_free(stream);
    ggml_threadpool_free(nested.pool);
    ggml_free(ctx);
}

static void compute_on_a_worker(struct ggml_tensor *dst, const struct ggml_tensor *a, int ith,
                                int nth, void *userdata) {
    (void)dst, (void)a, (void)nth;
    if (ith == 1) compute_inside(userdata);
}

// The caller would wait for the worker, and that for the caller.
static void test_graph_inside_a_worker_on_one_pool_is_refused(void **state) {
    (void)state;
    struct ggml_context *ctx = test_context(16);
    struct ggml_threadpool_params params = ggml_threadpool_params_default(2);
    struct nested nested = {ggml_threadpool_new(&params), test_graph(ctx, network(ctx, 512, 64)),
                            GGML_STATUS_SUCCESS};
    struct ggml_tensor *x = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 1 << 10);
    struct ggml_cgraph *graph =
        test_graph(ctx, ggml_map_custom1(ctx, x, compute_on_a_worker, GGML_N_TASKS_MAX, &nested));
    ggml_backend_t stream = ggml_backend_cpu_init();
    ggml_backend_cpu_set_n_threads(stream, 2);
    ggml_backend_cpu_set_threadpool(stream, nested.pool);
    assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_SUCCESS);
    assert_int_equal(nested.status, GGML_STATUS_FAILED);
    ggml_backend_free(stream);
    ggml_threadpool_free(nested.pool);
    ggml_free(ctx);
}

// --- plans -----------------------------------------------------------------------------

static void test_plan_of_the_caller(void **state) {
    (void)state;
    struct ggml_context *ctx = test_context(16);
    struct ggml_tensor *x =
        test_tensor(ctx, GGML_TYPE_F32, (struct extents){{5000, 9, 1, 1}}, 4, 0, 1);
    struct ggml_tensor *y = ggml_sum(ctx, x);
    struct ggml_cgraph *graph = test_graph(ctx, y);
    struct ggml_cplan plan = ggml_graph_plan(graph, 2, NULL);
    assert_int_equal(plan.n_threads, 2);
    assert_true(plan.work_size > 0);
    assert_int_equal(ggml_graph_compute(graph, &plan), GGML_STATUS_FAILED);
    char *memory = malloc(plan.work_size + 1);
    plan.work_data = (uint8_t *)memory + 1;
    assert_int_equal(ggml_graph_compute(graph, &plan), GGML_STATUS_SUCCESS);
    const float sum = ggml_get_f32_1d(y, 0);
    plan.work_size = 16;
    assert_int_equal(ggml_graph_compute(graph, &plan), GGML_STATUS_FAILED);
    free(memory);
    ggml_set_f32(y, 0);
    const size_t used = ggml_used_mem(ctx);
    assert_int_equal(ggml_graph_compute_with_ctx(ctx, graph, 3), GGML_STATUS_SUCCESS);
    assert_float_equal(ggml_get_f32_1d(y, 0), sum, 0);
    assert_int_equal(ggml_used_mem(ctx), used); // programs leave no room for work memory
    assert_int_equal(ggml_graph_compute_with_ctx(NULL, graph, 3), GGML_STATUS_FAILED);
    assert_int_equal(ggml_graph_compute(graph, NULL), GGML_STATUS_FAILED);
    assert_int_equal(ggml_graph_compute(NULL, &plan), GGML_STATUS_FAILED);
    assert_int_equal(ggml_graph_plan(NULL, 1, NULL).n_threads, 0);
    ggml_free(ctx);
}

static void test_plan_is_kept_for_a_graph_with_the_same_uid(void **state) {
    (void)state;
    struct ggml_context *ctx = test_context(2);
    struct ggml_tensor *x = ggml_new_f32(ctx, 3.0f), *y = ggml_sqr(ctx, x);
    struct ggml_cgraph *graph = test_graph(ctx, y);
    graph->uid = ggml_graph_next_uid();
    ggml_backend_t stream = ggml_backend_cpu_init();
    float moved;
    assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_SUCCESS);
    y->data = &moved;
    assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_SUCCESS);
    assert_float_equal(moved, 9.0f, 0);
    graph->uid = ggml_graph_next_uid();
    graph->nodes[0]->op = GGML_OP_SQRT;
    assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_SUCCESS);
    assert_float_equal(moved, sqrtf(3.0f), 1e-6f);
    ggml_backend_free(stream);
    ggml_free(ctx);
}

static void test_nodes_without_compute_flag_are_left_alone(void **state) {
    (void)state;
    struct ggml_context *ctx = test_context(3);
    struct ggml_tensor *x = ggml_new_f32(ctx, 3.0f), *y = ggml_sqr(ctx, x), *z = ggml_sqr(ctx, y);
    struct ggml_cgraph *graph = test_graph(ctx, z);
    ggml_set_f32(y, 2.0f);
    y->flags &= ~GGML_TENSOR_FLAG_COMPUTE;
    assert_int_equal(test_compute(graph, 1), GGML_STATUS_SUCCESS);
    assert_float_equal(ggml_get_f32_1d(z, 0), 4.0f, 0);
    // An alternative that isn't chosen needs no memory.
    struct ggml_tensor *other = ggml_cos(ctx, ggml_sin(ctx, x));
    ggml_build_forward_expand(graph, other);
    other->flags &= ~GGML_TENSOR_FLAG_COMPUTE;
    other->data = NULL;
    assert_int_equal(test_compute(graph, 1), GGML_STATUS_SUCCESS);
    other->flags |= GGML_TENSOR_FLAG_COMPUTE;
    assert_int_equal(test_compute(graph, 1), GGML_STATUS_FAILED);
    ggml_free(ctx);
}

static void test_fusion_skips_the_norm_unless_it_is_needed(void **state) {
    (void)state;
    struct ggml_context *ctx = test_context(4);
    struct ggml_tensor *x =
        test_tensor(ctx, GGML_TYPE_F32, (struct extents){{300, 7, 1, 1}}, 5, -1, 1);
    struct ggml_tensor *w =
        test_tensor(ctx, GGML_TYPE_F32, (struct extents){{300, 1, 1, 1}}, 6, -1, 1);
    struct ggml_tensor *norm = ggml_rms_norm(ctx, x, 1e-5f), *y = ggml_mul(ctx, norm, w);
    struct ggml_cgraph *graph = test_graph(ctx, y);
    ggml_backend_t stream = ggml_backend_cpu_init();
    ggml_set_f32(norm, -7.0f);
    assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_SUCCESS);
    assert_float_equal(ggml_get_f32_1d(norm, 0), -7.0f, 0);
    float *fused = malloc(ggml_nbytes(y));
    memcpy(fused, y->data, ggml_nbytes(y));
    ggml_backend_cpu_set_use_ref(stream, true);
    assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_SUCCESS);
    assert_true(ggml_get_f32_1d(norm, 0) != -7.0f);
    for (int i = 0; i < 2100; ++i)
        assert_float_equal(fused[i], ggml_get_f32_1d(y, i), 1e-6f);
    ggml_backend_cpu_set_use_ref(stream, false);
    ggml_set_output(norm);
    ggml_set_f32(norm, -7.0f);
    assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_SUCCESS);
    assert_true(ggml_get_f32_1d(norm, 0) != -7.0f);
    free(fused);
    ggml_backend_free(stream);
    ggml_free(ctx);
}

// Both factors are norms: one kernel computes the second with the product or none, never the first,
// which is in memory by then.
static void test_product_of_two_norms(void **state) {
    (void)state;
    const struct extents shape = {{300, 7, 1, 1}};
    for (int swapped = 0; swapped < 2; ++swapped) {
        struct ggml_context *ctx = test_context(6);
        struct ggml_tensor *x = test_tensor(ctx, GGML_TYPE_F32, shape, 5, -1, 1);
        struct ggml_tensor *y = test_tensor(ctx, GGML_TYPE_F32, shape, 6, -1, 3);
        struct ggml_tensor *a = ggml_rms_norm(ctx, x, 1e-5f), *b = ggml_rms_norm(ctx, y, 1e-5f);
        struct ggml_tensor *product = ggml_mul(ctx, a, b);
        struct ggml_cgraph *graph = ggml_new_graph(ctx);
        if (swapped) ggml_build_forward_expand(graph, b);
        ggml_build_forward_expand(graph, product);
        ggml_backend_t stream = ggml_backend_cpu_init();
        ggml_set_f32(a, -7.0f), ggml_set_f32(b, -7.0f);
        assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_SUCCESS);
        float *found = malloc(ggml_nbytes(product));
        memcpy(found, product->data, ggml_nbytes(product));
        ggml_backend_cpu_set_use_ref(stream, true);
        assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_SUCCESS);
        for (int i = 0; i < 2100; ++i)
            assert_float_equal(found[i], ggml_get_f32_1d(product, i), 1e-6f);
        free(found);
        ggml_backend_free(stream);
        ggml_free(ctx);
    }
}

// The product takes the memory of what the norm is made of, which lies there in another order.
static void test_product_upon_other_rows_of_the_norm(void **state) {
    (void)state;
    enum { N = 64 * 16 * 16 };
    float *results = malloc(2 * N * sizeof(float));
    for (int n_threads = 1; n_threads <= 3; ++n_threads) {
        for (int ref = 0; ref < 2; ++ref) {
            struct ggml_context *ctx = test_context(4);
            const struct extents shape = {{64, 16, 16, 1}};
            struct ggml_tensor *r = test_tensor(ctx, GGML_TYPE_F32, shape, 5, -1, 1);
            struct ggml_tensor *x = ggml_permute(ctx, r, 0, 2, 1, 3);
            struct ggml_tensor *y = ggml_mul_inplace(ctx, r, ggml_rms_norm(ctx, x, 1e-5f));
            struct ggml_cgraph *graph = test_graph(ctx, y);
            ggml_backend_t stream = ggml_backend_cpu_init();
            ggml_backend_cpu_set_n_threads(stream, n_threads);
            ggml_backend_cpu_set_use_ref(stream, ref);
            assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_SUCCESS);
            memcpy(results + (ptrdiff_t)ref * N, y->data, ggml_nbytes(y));
            ggml_backend_free(stream);
            ggml_free(ctx);
        }
        for (int i = 0; i < N; ++i)
            assert_float_equal(results[i], results[N + i], 1e-6f);
    }
    free(results);
}

static void test_sinks_may_share_memory_with_the_result(void **state) {
    (void)state;
    struct ggml_context *ctx = test_context(3);
    struct ggml_tensor *x = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, 1, 1, 1, 1);
    struct ggml_tensor *sinks = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 1);
    struct ggml_tensor *y = ggml_soft_max_ext(ctx, x, NULL, 1.0f, 0.0f);
    ggml_soft_max_add_sinks(y, sinks);
    ggml_set_f32(x, 1.0f), ggml_set_f32(sinks, 2.0f);
    y->data = sinks->data;
    assert_int_equal(test_compute(test_graph(ctx, y), 1), GGML_STATUS_SUCCESS);
    assert_float_equal(ggml_get_f32_1d(y, 0), 1.0f / (1.0f + expf(1.0f)), 1e-6f);
    ggml_free(ctx);
}

static void test_gelu_of_infinities(void **state) {
    (void)state;
    struct ggml_context *ctx = test_context(2);
    struct ggml_tensor *x = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 19);
    for (int i = 0; i < 19; ++i)
        ggml_set_f32_1d(x, i, i % 3 == 0 ? -INFINITY : i % 3 == 1 ? INFINITY : NAN);
    struct ggml_tensor *y = ggml_gelu(ctx, x);
    assert_int_equal(test_compute(test_graph(ctx, y), 1), GGML_STATUS_SUCCESS);
    for (int i = 0; i < 19; ++i) {
        const float value = ggml_get_f32_1d(y, i);
        assert_true(i % 3 == 0 ? value == 0 : i % 3 == 1 ? value == INFINITY : isnan(value));
    }
    ggml_free(ctx);
}

// --- refusals --------------------------------------------------------------------------

static void test_unsupported_node_is_named(void **state) {
    (void)state;
    struct ggml_context *ctx = test_context(2);
    struct ggml_tensor *y = ggml_sqr(ctx, ggml_new_f32(ctx, 1.0f));
    ggml_set_name(y, "the-odd-one");
    y->op = GGML_OP_LIGHTNING_INDEXER;
    assert_int_equal(test_compute(test_graph(ctx, y), 1), GGML_STATUS_FAILED);
    assert_non_null(strstr(ggml_last_error(), "the-odd-one"));
    assert_non_null(strstr(ggml_last_error(), "LIGHTNING_INDEXER"));
    y->op = (enum ggml_op)4711;
    assert_int_equal(test_compute(test_graph(ctx, y), 1), GGML_STATUS_FAILED);
    ggml_free(ctx);
}

static void test_graph_without_memory_is_refused(void **state) {
    (void)state;
    struct ggml_context *ctx =
        ggml_init((struct ggml_init_params){.mem_size = 1 << 20, .no_alloc = true});
    struct ggml_tensor *y = ggml_sqr(ctx, ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 10));
    assert_int_equal(test_compute(test_graph(ctx, y), 2), GGML_STATUS_FAILED);
    assert_non_null(strstr(ggml_last_error(), "no data"));
    ggml_free(ctx);
}

static void test_supports_op_follows_layout(void **state) {
    (void)state;
    struct ggml_context *ctx = test_context(2);
    ggml_backend_dev_t dev = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    struct ggml_tensor *x = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 4, 3);
    struct ggml_tensor *y = ggml_sqr(ctx, x);
    assert_true(ggml_backend_dev_supports_op(dev, y));
    assert_true(ggml_backend_dev_supports_op(dev, ggml_transpose(ctx, x)));
    y->src[0] = ggml_transpose(ctx, ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 3, 4));
    assert_false(ggml_backend_dev_supports_op(dev, y));
    y->src[0] = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 4, 2);
    assert_false(ggml_backend_dev_supports_op(dev, y));
    y->src[0] = ggml_new_tensor_2d(ctx, GGML_TYPE_I32, 4, 3);
    assert_false(ggml_backend_dev_supports_op(dev, y));
    y->src[0] = NULL;
    assert_false(ggml_backend_dev_supports_op(dev, y));
    y->src[0] = x;
    y->op = GGML_OP_UNARY;
    ggml_set_op_params_i32(y, 0, 1000);
    assert_false(ggml_backend_dev_supports_op(dev, y));
    ggml_set_op_params_i32(y, 0, -5);
    assert_false(ggml_backend_dev_supports_op(dev, y));
    struct ggml_tensor *blocks = ggml_new_tensor_2d(ctx, GGML_TYPE_Q8_0, 64, 64);
    assert_true(ggml_backend_dev_supports_op(dev, ggml_cont(ctx, blocks)));
    assert_false(ggml_backend_dev_supports_op(dev, ggml_cont(ctx, ggml_transpose(ctx, blocks))));
    ggml_free(ctx);
}

// --- kernel list, levels ---------------------------------------------------------------

static bool hides(const struct cpu_kernel *earlier, const struct cpu_kernel *later) {
    if (earlier->op != later->op || earlier->accepts != later->accepts) return false;
    if (earlier->sub != later->sub && earlier->sub != ANY) return false;
    if (earlier->sub == ANY && later->sub >= CPU_SUB_FUSED) return false;
    bool wider = (later->dst & ~earlier->dst) == 0;
    for (int s = 0; s < 3; ++s)
        wider = wider && (later->src[s] & ~earlier->src[s]) == 0;
    return wider;
}

static void test_every_kernel_can_be_reached(void **state) {
    (void)state;
    int n_kernels = 0, n_levels = 0;
    const struct cpu_kernel *kernels = cpu_kernels(&n_kernels);
    const struct cpu_level *levels = cpu_levels(&n_levels);
    assert_true(n_kernels > 20);
    for (int k = 0; k < n_kernels; ++k) {
        for (int earlier = 0; earlier < k; ++earlier) {
            if (hides(&kernels[earlier], &kernels[k])) fail_msg("row %d hides row %d", earlier, k);
        }
        for (int level = 0; level < n_levels; ++level)
            assert_non_null(levels[level].kernels[k]);
    }
}

static void test_level_is_forced_and_limited(void **state) {
    (void)state;
    for (int i = 0; i < test_level_count(); ++i) {
        const char *name = test_use_level(i);
        assert_string_equal(name, cpu_level()->name);
        assert_int_equal(ggml_cpu_has_avx2(), strstr(name, "v3") || strstr(name, "v4"));
    }
    setenv("GGML_CPU_LEVEL", "no-such-level", 1);
    cpu_level_reset();
    const struct cpu_level *best = cpu_level();
    test_use_best_level();
    assert_ptr_equal(best, cpu_level());
    int count = 0;
    const struct cpu_level *levels = cpu_levels(&count);
    assert_ptr_equal(cpu_level_choose(0, NULL), &levels[0]);
    assert_ptr_equal(cpu_level_choose(~UINT64_C(0), NULL), &levels[count - 1]);
    assert_ptr_equal(cpu_level_choose(0, levels[count - 1].name), &levels[0]);
    assert_ptr_equal(cpu_level_choose(~UINT64_C(0), levels[1].name), &levels[1]);
#if defined(__x86_64__)
    // As of Ice Lake.
    const uint64_t without = ~GGML_CPU_BIT(GGML_CPU_X86_64_AVX512_BF16);
    assert_ptr_equal(cpu_level_choose(without, NULL), &levels[count - 1]);
#endif
}

// --- failing allocations ---------------------------------------------------------------

static bool allow_some(void *context) {
    int *left = context;
    return (*left)-- > 0;
}

static void test_every_failing_allocation_is_a_status(void **state) {
    (void)state;
    struct ggml_context *ctx = test_context(16);
    struct ggml_tensor *x =
        test_tensor(ctx, GGML_TYPE_F32, (struct extents){{5000, 9, 1, 1}}, 7, 0, 1);
    struct ggml_cgraph *graph = test_graph(ctx, ggml_sum(ctx, x));
    int failures = 0;
    enum ggml_status status = GGML_STATUS_FAILED;
    for (int allowed = 0; status != GGML_STATUS_SUCCESS && allowed < 50; ++allowed) {
        int left = allowed;
        ggml_mem_set_fault_hook(allow_some, &left);
        ggml_backend_t stream = ggml_backend_cpu_init();
        // More threads than any test before, so that no pool is kept.
        if (stream) ggml_backend_cpu_set_n_threads(stream, 9);
        status = stream ? ggml_backend_graph_compute(stream, graph) : GGML_STATUS_ALLOC_FAILED;
        ggml_mem_set_fault_hook(NULL, NULL);
        if (status != GGML_STATUS_SUCCESS) {
            ++failures;
            assert_int_equal(status, GGML_STATUS_ALLOC_FAILED);
            assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_MEMORY);
        }
        ggml_backend_free(stream);
    }
    assert_int_equal(status, GGML_STATUS_SUCCESS);
    assert_true(failures >= 3);
    ggml_free(ctx);
}

// --- single elements -------------------------------------------------------------------

static void test_single_elements(void **state) {
    (void)state;
    static const enum ggml_type types[] = {GGML_TYPE_I8,  GGML_TYPE_I16,  GGML_TYPE_I32,
                                           GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_F32};
    struct ggml_context *ctx = test_context(2);
    for (int k = 0; k < 6; ++k) {
        struct ggml_tensor *t = ggml_new_tensor_2d(ctx, types[k], 4, 3);
        ggml_set_i32(t, 7);
        ggml_set_f32_nd(t, 1, 2, 0, 0, -5.0f);
        assert_int_equal(ggml_get_i32_1d(t, 9), -5);
        assert_float_equal(ggml_get_f32_1d(ggml_transpose(ctx, t), 5), -5.0f, 0);
        assert_float_equal(ggml_get_f32_nd(t, 3, 2, 0, 0), 7.0f, 0);
        ggml_clear_error();
        assert_int_equal(ggml_get_i32_1d(t, 12), 0);
        assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_RANGE);
        ggml_set_i32_1d(t, -1, 3);
        ggml_set_f32_nd(t, 0, 3, 0, 0, 3.0f);
        assert_int_equal(ggml_get_i32_nd(t, 0, 0, 0, 0), 7);
    }
    ggml_clear_error();
    assert_float_equal(ggml_get_f32_1d(NULL, 0), 0, 0);
    assert_float_equal(ggml_get_f32_1d(ggml_new_tensor_1d(ctx, GGML_TYPE_Q4_0, 32), 0), 0, 0);
    assert_int_equal(ggml_last_status(), GGML_HOST_INVALID_ARGUMENT);
    ggml_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results_do_not_depend_on_threads),
        cmocka_unit_test(test_abort_callback_stops_between_nodes),
        cmocka_unit_test(test_pool_starts_late_and_is_reused),
        cmocka_unit_test(test_all_threads_where_they_are_wanted),
        cmocka_unit_test(test_no_more_threads_than_processors),
        cmocka_unit_test(test_placed_pool_computes),
        cmocka_unit_test(test_impossible_pools_are_refused),
        cmocka_unit_test(test_graphs_of_several_threads),
        cmocka_unit_test(test_graph_inside_a_graph_on_one_pool_is_refused),
        cmocka_unit_test(test_graph_inside_a_worker_on_one_pool_is_refused),
        cmocka_unit_test(test_plan_of_the_caller),
        cmocka_unit_test(test_plan_is_kept_for_a_graph_with_the_same_uid),
        cmocka_unit_test(test_nodes_without_compute_flag_are_left_alone),
        cmocka_unit_test(test_fusion_skips_the_norm_unless_it_is_needed),
        cmocka_unit_test(test_product_of_two_norms),
        cmocka_unit_test(test_product_upon_other_rows_of_the_norm),
        cmocka_unit_test(test_sinks_may_share_memory_with_the_result),
        cmocka_unit_test(test_gelu_of_infinities),
        cmocka_unit_test(test_unsupported_node_is_named),
        cmocka_unit_test(test_graph_without_memory_is_refused),
        cmocka_unit_test(test_supports_op_follows_layout),
        cmocka_unit_test(test_every_kernel_can_be_reached),
        cmocka_unit_test(test_level_is_forced_and_limited),
        cmocka_unit_test(test_every_failing_allocation_is_a_status),
        cmocka_unit_test(test_single_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
