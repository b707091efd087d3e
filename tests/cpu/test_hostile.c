// SPDX-License-Identifier: MIT
// Graphs and tensors that nobody should build, and tensors that were changed by hand. The findings'
// numbers are those of a security review.
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "cpu_test.h"
#include "ggml-alloc.h"
#include "ggml-cpu.h"
#include "ggml-host.h"

enum { N = 64 };

struct scene {
    struct ggml_context *ctx;
    ggml_backend_t backend;
    ggml_backend_buffer_t buffer;
    struct ggml_tensor *a, *b, *sum;
    struct ggml_cgraph *graph;
};

static void open_scene(struct scene *scene) {
    const struct ggml_init_params params = {1 << 20, NULL, true};
    scene->ctx = ggml_init(params);
    scene->backend = ggml_backend_cpu_init();
    assert_true(scene->ctx && scene->backend);
    scene->a = ggml_new_tensor_2d(scene->ctx, GGML_TYPE_F32, N, 2);
    scene->b = ggml_new_tensor_2d(scene->ctx, GGML_TYPE_F32, N, 2);
    scene->sum = ggml_add(scene->ctx, scene->a, scene->b);
    scene->graph = ggml_new_graph(scene->ctx);
    ggml_build_forward_expand(scene->graph, scene->sum);
    scene->buffer = ggml_backend_alloc_ctx_tensors(scene->ctx, scene->backend);
    assert_non_null(scene->buffer);
    ggml_backend_buffer_clear(scene->buffer, 0);
}

static void close_scene(struct scene *scene) {
    ggml_backend_buffer_free(scene->buffer);
    ggml_backend_free(scene->backend);
    ggml_free(scene->ctx);
}

// Each way to reach outside, of a source and of the result.
static void change(struct ggml_tensor *tensor, int way) {
    switch (way) {
    case 0: tensor->ne[1] = 1 << 20; break;
    case 1: tensor->nb[1] = (size_t)1 << 40; break;
    case 2: tensor->nb[1] = SIZE_MAX - 3; break;
    case 3: tensor->data = (char *)tensor->data + ((size_t)1 << 30); break;
    case 4: tensor->data = (char *)tensor->data - ((size_t)1 << 30); break;
    case 5: tensor->ne[3] = INT64_MAX; break;
    default: break;
    }
}
enum { N_WAYS = 6 };

static void test_f23_tensors_outside_their_buffers_are_not_computed(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene);
    assert_int_equal(ggml_backend_graph_compute(scene.backend, scene.graph), GGML_STATUS_SUCCESS);
    struct ggml_tensor *const tensors[] = {scene.a, scene.b, scene.sum};
    for (int i = 0; i < 3; ++i) {
        const struct ggml_tensor before = *tensors[i];
        for (int way = 0; way < N_WAYS; ++way) {
            change(tensors[i], way);
            assert_int_equal(ggml_backend_graph_compute(scene.backend, scene.graph),
                             GGML_STATUS_FAILED);
            assert_non_null(strstr(ggml_last_error(), "beyond its buffer"));
            *tensors[i] = before;
        }
    }
    assert_int_equal(ggml_backend_graph_compute(scene.backend, scene.graph), GGML_STATUS_SUCCESS);
    close_scene(&scene);
}

static void test_f23_nor_are_they_read_or_written(void **state) {
    (void)state;
    struct scene scene;
    float byte = 0;
    open_scene(&scene);
    const struct ggml_tensor before = *scene.a;
    for (int way = 0; way < N_WAYS; ++way) {
        change(scene.a, way);
        ggml_clear_error();
        ggml_backend_tensor_get(scene.a, &byte, 0, sizeof(byte));
        assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_RANGE);
        ggml_clear_error();
        ggml_backend_tensor_set(scene.a, &byte, 0, sizeof(byte));
        assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_RANGE);
        ggml_clear_error();
        ggml_backend_tensor_memset(scene.a, 1, 0, sizeof(byte));
        assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_RANGE);
        struct ggml_tensor twin = *scene.a; // of the same layout, so that only the place is wrong
        ggml_clear_error();
        ggml_backend_tensor_copy(scene.a, &twin);
        assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_RANGE);
        ggml_clear_error();
        assert_false(ggml_backend_buffer_copy_tensor(scene.a, &twin)); // by the plugin alone
        assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_RANGE);
        *scene.a = before;
    }
    close_scene(&scene);
}

// A view that has the place for it in its buffer, but not in the tensor that it is a view of.
static void test_f23_a_view_is_no_way_to_a_neighbour(void **state) {
    (void)state;
    struct scene scene;
    float byte = 0;
    open_scene(&scene);
    struct ggml_tensor all = *scene.a;
    all.ne[1] = 4; // of a and of what follows
    all.nb[2] = all.nb[3] = 4 * all.nb[1];
    struct ggml_tensor view = all;
    view.view_src = scene.a;
    ggml_clear_error();
    ggml_backend_tensor_get(&all, &byte, 0, sizeof(byte));
    assert_int_equal(ggml_last_status(), GGML_HOST_OK);
    ggml_backend_tensor_get(&view, &byte, 0, sizeof(byte));
    assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_RANGE);
    ggml_clear_error();
    ggml_backend_tensor_set(&view, &byte, 0, sizeof(byte));
    assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_RANGE);
    ggml_clear_error();
    assert_false(ggml_backend_buffer_copy_tensor(&view, &all));
    assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_RANGE);
    ggml_clear_error();
    assert_false(ggml_backend_buffer_copy_tensor(&all, &view));
    assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_RANGE);
    ggml_clear_error();
    close_scene(&scene);
}

static double seconds_now(void) {
    return (double)ggml_time_us() * 1e-6;
}

static void test_f15_groups_without_channels_take_no_time(void **state) {
    (void)state;
    const struct ggml_init_params params = {1 << 20, NULL, false};
    struct ggml_context *ctx = ggml_init(params);
    struct ggml_tensor *a = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, 4, 4, 3);
    for (int i = 0; i < 48; ++i)
        ((float *)a->data)[i] = (float)(i % 7);
    struct ggml_tensor *many = ggml_group_norm(ctx, a, INT32_MAX, 1e-5f);
    struct ggml_tensor *three = ggml_group_norm(ctx, a, 3, 1e-5f);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, many);
    ggml_build_forward_expand(graph, three);
    const double start = seconds_now();
    assert_int_equal(ggml_graph_compute_with_ctx(ctx, graph, 1), GGML_STATUS_SUCCESS);
    assert_true(seconds_now() - start < 1.0);
    assert_memory_equal(many->data, three->data, 48 * sizeof(float)); // a group per channel
    ggml_free(ctx);
}

static void test_f15_an_empty_timestep_has_no_rows(void **state) {
    (void)state;
    const struct ggml_init_params params = {1 << 20, NULL, false};
    struct ggml_context *ctx = ggml_init(params);
    struct ggml_tensor *steps = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 4, 0);
    ggml_clear_error();
    struct ggml_tensor *result = ggml_timestep_embedding(ctx, steps, 8, 100);
    assert_int_equal(ggml_last_status(), GGML_HOST_INVALID_ARGUMENT);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, result);
    assert_int_equal(ggml_graph_compute_with_ctx(ctx, graph, 1), GGML_STATUS_FAILED);
    // Emptied after it was built: the kernel's affair.
    steps = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 4, 1);
    ggml_set_zero(steps);
    graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, ggml_timestep_embedding(ctx, steps, 8, 100));
    assert_int_equal(ggml_graph_compute_with_ctx(ctx, graph, 1), GGML_STATUS_SUCCESS);
    steps->ne[1] = 0;
    assert_int_equal(ggml_graph_compute_with_ctx(ctx, graph, 1), GGML_STATUS_FAILED);
    ggml_free(ctx);
}

static void test_f15_an_empty_view_starts_at_no_absurd_place(void **state) {
    (void)state;
    const struct ggml_init_params params = {1 << 20, NULL, true};
    struct ggml_context *ctx = ggml_init(params);
    struct ggml_tensor *a = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, N);
    ggml_clear_error();
    ggml_view_1d(ctx, a, 0, (size_t)1 << 63);
    assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_RANGE);
    ggml_clear_error();
    ggml_view_1d(ctx, a, 0, N * sizeof(float));
    assert_int_equal(ggml_last_status(), GGML_HOST_OK);
    ggml_free(ctx);
}

static void test_f15_what_repeats_itself_is_not_computed_in_place(void **state) {
    (void)state;
    const struct ggml_init_params params = {1 << 20, NULL, false};
    struct ggml_context *ctx = ggml_init(params);
    struct ggml_tensor *a = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4);
    struct ggml_tensor *view = ggml_view_2d(ctx, a, 4, (int64_t)1 << 40, 0, 0);
    ggml_clear_error();
    ggml_scale_inplace(ctx, view, 2);
    assert_int_equal(ggml_last_status(), GGML_HOST_INVALID_ARGUMENT);
    ggml_clear_error();
    ggml_scale_inplace(ctx, a, 2);
    assert_int_equal(ggml_last_status(), GGML_HOST_OK);
    ggml_free(ctx);
}

// Also where no stream takes the graph, and tensors lie in the context's own memory.
static void test_f23_views_outside_their_tensors_are_not_computed(void **state) {
    (void)state;
    const struct ggml_init_params params = {1 << 20, NULL, false};
    static const size_t strides[] = {(size_t)1 << 40, SIZE_MAX / 2 + 1};
    for (size_t i = 0; i < sizeof(strides) / sizeof(strides[0]); ++i) {
        struct ggml_context *ctx = ggml_init(params);
        struct ggml_tensor *a = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, N);
        struct ggml_tensor *sums = ggml_sum_rows(ctx, ggml_view_2d(ctx, a, 4, 3, strides[i], 0));
        struct ggml_cgraph *graph = ggml_new_graph(ctx);
        ggml_build_forward_expand(graph, sums);
        ggml_clear_error();
        assert_int_equal(ggml_graph_compute_with_ctx(ctx, graph, 1), GGML_STATUS_FAILED);
        assert_string_not_equal(ggml_last_error(), "");
        ggml_free(ctx);
    }
}

// Sums of extents saturate, so that absurd ones give no result extent that fits: without that a
// sanitizer stops here. And each extent is looked at by itself: padding makes patches, as many as
// there are here, of a negative one too.
static void test_f15_extents_of_a_gradient_are_bounded(void **state) {
    enum { PAD = 100 };
    (void)state;
    const struct ggml_init_params params = {1 << 20, NULL, true};
    static const int64_t hostile[] = {INT64_MIN, INT64_MAX, -1};
    struct ggml_context *ctx = ggml_init(params);
    struct ggml_tensor *kernel = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, 3, 3, 1, 1);
    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); ++i) {
        for (int pad = 0; pad <= PAD; pad += PAD) {
            struct ggml_tensor *a =
                ggml_new_tensor_4d(ctx, GGML_TYPE_F32, 9, pad ? 2 * PAD - 3 : 2, 2, 1);
            int64_t ne[4] = {hostile[i], 4, 1, 1};
            ggml_clear_error();
            ggml_im2col_back(ctx, a, kernel, ne, 1, 1, pad, 0, 1, 1, true);
            assert_int_equal(ggml_last_status(), GGML_HOST_INVALID_ARGUMENT);
            assert_int_equal(strstr(ggml_last_error(), "an extent of the result") != NULL,
                             hostile[i] < 0);
        }
    }
    ggml_free(ctx);
}

// --- numbers that change while they are used
// ------------------------------------------------------

enum { ROWS = 8, FLIPPED = 256, FLIP_US = 200000 };

struct flipper {
    volatile int32_t *ids;
    atomic_bool stop;
};

static void pass_time(int n) {
    for (volatile int i = 0; i < n; ++i)
        continue;
}

// As a process that shares the memory may do at any time: one index names nothing for a moment, so
// that most looks at it find it sound and some don't, and all change. What it names lies right
// behind the rows there are, or so far away that whoever goes there faults.
static void *flip(void *argument) {
    struct flipper *flipper = argument;
    for (int i = 0; !atomic_load(&flipper->stop); ++i) {
        const int at = (i * 37) % FLIPPED;
        flipper->ids[at] = i % 2 ? ROWS + i % ROWS : INT32_MAX - i % ROWS;
        pass_time(100);
        flipper->ids[at] = i % ROWS;
        pass_time(900);
    }
    return NULL;
}

// Rows behind those that may be set are of the same tensor: what is written there can be seen.
static struct ggml_tensor *rows_set(struct ggml_context *ctx, struct ggml_tensor *ids) {
    struct ggml_tensor *all = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, N, 2 * ROWS);
    struct ggml_tensor *to = ggml_view_2d(ctx, all, N, ROWS, all->nb[1], 0);
    return ggml_set_rows(ctx, to, ggml_new_tensor_2d(ctx, GGML_TYPE_F32, N, FLIPPED), ids);
}

static void check_rows_behind(const struct ggml_tensor *node) {
    const float *behind = (const float *)node->data + N * ROWS;
    for (int i = 0; node->op == GGML_OP_SET_ROWS && i < N * ROWS; ++i)
        assert_true(behind[i] == 0);
}

static struct ggml_tensor *rows_got(struct ggml_context *ctx, struct ggml_tensor *ids) {
    return ggml_get_rows(ctx, ggml_new_tensor_2d(ctx, GGML_TYPE_F32, N, ROWS), ids);
}

static struct ggml_tensor *experts(struct ggml_context *ctx, struct ggml_tensor *ids) {
    struct ggml_tensor *weights = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, N, 4, ROWS);
    struct ggml_tensor *x = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, N, 1, FLIPPED / 2);
    return ggml_mul_mat_id(ctx, weights, x, ggml_reshape_2d(ctx, ids, 2, FLIPPED / 2));
}

static struct ggml_tensor *biases(struct ggml_context *ctx, struct ggml_tensor *ids) {
    struct ggml_tensor *x = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, N, 2, FLIPPED / 2);
    struct ggml_tensor *bias = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, N, ROWS);
    return ggml_add_id(ctx, x, bias, ggml_reshape_2d(ctx, ids, 2, FLIPPED / 2));
}

static struct ggml_tensor *rows_got_back(struct ggml_context *ctx, struct ggml_tensor *ids) {
    return ggml_get_rows_back(ctx, ggml_new_tensor_2d(ctx, GGML_TYPE_F32, N, FLIPPED), ids,
                              ggml_new_tensor_2d(ctx, GGML_TYPE_F32, N, ROWS));
}

static struct ggml_tensor *states(struct ggml_context *ctx, struct ggml_tensor *ids) {
    return test_states(ctx, ids, ROWS);
}

static void compute_flipped(struct ggml_tensor *(*make)(struct ggml_context *,
                                                        struct ggml_tensor *)) {
    const struct ggml_init_params params = {1 << 20, NULL, true};
    struct ggml_context *ctx = ggml_init(params);
    struct ggml_tensor *ids = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, FLIPPED);
    struct ggml_tensor *node = make(ctx, ids);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, node);
    ggml_backend_t backend = ggml_backend_cpu_init();
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, backend);
    assert_non_null(buffer);
    ggml_backend_buffer_clear(buffer, 0);
    struct ggml_tensor *values = node->src[0];
    if (node->op == GGML_OP_SET_ROWS)
        ggml_backend_tensor_memset(values, 0x3f, 0, ggml_nbytes(values)); // 0.747
    ggml_backend_cpu_set_n_threads(backend, 1); // the other processor is for the flipper
    struct flipper flipper = {.ids = ids->data};
    pthread_t thread;
    int n = 0, n_failed = 0;
    assert_int_equal(pthread_create(&thread, NULL, flip, &flipper), 0);
    for (const int64_t start = ggml_time_us(); ggml_time_us() - start < FLIP_US; ++n)
        n_failed += ggml_backend_graph_compute(backend, graph) != GGML_STATUS_SUCCESS;
    atomic_store(&flipper.stop, true);
    pthread_join(thread, NULL);
    check_rows_behind(node);
    print_message("# %s: %d of %d graphs failed\n", ggml_op_desc(node), n_failed, n);
    ggml_backend_buffer_free(buffer);
    ggml_backend_free(backend);
    ggml_free(ctx);
}

static void test_indices_that_change_stay_inside(void **state) {
    (void)state;
    compute_flipped(rows_got);
    compute_flipped(rows_set);
    compute_flipped(experts);
    compute_flipped(biases);
    compute_flipped(rows_got_back);
    compute_flipped(states);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f23_tensors_outside_their_buffers_are_not_computed),
        cmocka_unit_test(test_f23_nor_are_they_read_or_written),
        cmocka_unit_test(test_f23_a_view_is_no_way_to_a_neighbour),
        cmocka_unit_test(test_f23_views_outside_their_tensors_are_not_computed),
        cmocka_unit_test(test_f15_groups_without_channels_take_no_time),
        cmocka_unit_test(test_f15_an_empty_timestep_has_no_rows),
        cmocka_unit_test(test_f15_what_repeats_itself_is_not_computed_in_place),
        cmocka_unit_test(test_f15_extents_of_a_gradient_are_bounded),
        cmocka_unit_test(test_f15_an_empty_view_starts_at_no_absurd_place),
        cmocka_unit_test(test_indices_that_change_stay_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
