// SPDX-License-Identifier: MIT
// Times of nodes: of graphs in flight at once, of fusions, with and without graphs of the driver's.
#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>

#include "cuda_test.h"
#include "ggml-ext-profile.h"

enum { WIDTH = 64, TOKENS = 5, N_NODES = 5, N_GRAPHS = 6, MOST = 64 };

static const struct ggml_extension_profile *profile;
static ggml_backend_t stream;
static struct ggml_context *ctx;
static ggml_backend_buffer_t buffer;
static struct ggml_cgraph *graph;

// A norm with its scale, fused; a view, which computes nothing; and nodes alone.
static void build(void) {
    ctx = cuda_context();
    struct ggml_tensor *x = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, WIDTH, TOKENS);
    struct ggml_tensor *y = ggml_rms_norm(ctx, x, 1e-5f);
    y = ggml_mul(ctx, y, ggml_new_tensor_1d(ctx, GGML_TYPE_F32, WIDTH));
    y = ggml_reshape_3d(ctx, y, WIDTH, TOKENS, 1);
    y = ggml_mul_mat(ctx, ggml_new_tensor_2d(ctx, GGML_TYPE_F32, WIDTH, 40), y);
    y = ggml_sqr(ctx, y);
    y = ggml_sin(ctx, y);
    graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, y);
    buffer = ggml_backend_alloc_ctx_tensors(ctx, stream);
    assert_non_null(buffer);
    ggml_backend_buffer_clear(buffer, 0);
}

static int open_all(void **state) {
    (void)state;
    ggml_backend_dev_t device = cuda_device(0);
    stream = ggml_backend_dev_init(device, NULL);
    profile = ggml_backend_reg_get_extension(ggml_backend_dev_backend_reg(device),
                                             GGML_EXTENSION_PROFILE, 1);
    if (!stream || !profile) return -1;
    build();
    return 0;
}

static int close_all(void **state) {
    (void)state;
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);
    ggml_backend_free(stream);
    cuda_unload();
    return 0;
}

static int open_one_by_one(void **state) {
    setenv("GGML_CUDA_DISABLE_GRAPHS", "1", 1);
    const int result = open_all(state);
    unsetenv("GGML_CUDA_DISABLE_GRAPHS");
    return result;
}

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void compute(void) {
    assert_int_equal(ggml_backend_graph_compute_async(stream, graph), GGML_STATUS_SUCCESS);
}

static int read_all(struct ggml_profile_slice *slices) {
    uint64_t n, lost;
    assert_int_equal(profile->read(stream, slices, MOST, &n, &lost), GGML_HOST_OK);
    assert_int_equal(lost, 0);
    return (int)n;
}

// The nodes of one graph, each once.
static void check_graph(const struct ggml_profile_slice *slices, int n, uint64_t tag) {
    int n_nodes = 0;
    for (int i = 0; i < n; ++i) {
        const struct ggml_tensor *first = ggml_graph_node(graph, slices[i].first_node);
        assert_int_equal(slices[i].tag, tag);
        assert_int_not_equal(first->op, GGML_OP_RESHAPE);
        assert_true(i == 0 || slices[i].first_node > slices[i - 1].first_node);
        n_nodes += slices[i].n_nodes;
    }
    assert_int_equal(n_nodes, N_NODES);
}

// The same graph is computed again before anyone waited for it.
static void test_graphs_in_flight(void **state) {
    struct ggml_profile_slice slices[MOST];
    (void)state;
    assert_int_equal(profile->begin(stream, MOST), GGML_HOST_OK);
    assert_int_equal(profile->begin(stream, MOST), GGML_HOST_BUSY);
    const uint64_t before = now();
    for (uint64_t i = 0; i < N_GRAPHS; ++i) {
        assert_int_equal(profile->tag(stream, 10 + i), GGML_HOST_OK);
        compute();
    }
    ggml_backend_synchronize(stream);
    const uint64_t after = now();
    const int n = read_all(slices);
    assert_int_equal(n, N_GRAPHS * 4); // a fusion and three nodes
    uint64_t length = 0;
    for (int i = 0; i < N_GRAPHS; ++i)
        check_graph(slices + 4 * i, 4, 10 + (uint64_t)i);
    for (int i = 0; i < n; ++i) {
        assert_true(slices[i].end_ns >= slices[i].begin_ns);
        assert_true(slices[i].begin_ns >= (i == 0 ? before : slices[i - 1].end_ns));
        assert_true(slices[i].end_ns <= after);
        length += slices[i].end_ns - slices[i].begin_ns;
    }
    assert_true(length > 0);
    assert_int_equal(profile->end(stream), GGML_HOST_OK);
    assert_int_equal(profile->end(stream), GGML_HOST_INVALID_ARGUMENT);
}

// A recording with events is not used where no times are wanted, nor the other way round.
static void test_recordings_change(void **state) {
    struct ggml_profile_slice slices[MOST];
    (void)state;
    compute();
    ggml_backend_synchronize(stream);
    const long events = driver.calls("cuEventCreate");
    compute();
    ggml_backend_synchronize(stream);
    assert_int_equal(driver.calls("cuEventCreate"), events);
    assert_int_equal(profile->begin(stream, MOST), GGML_HOST_OK);
    compute();
    ggml_backend_synchronize(stream);
    assert_int_equal(read_all(slices), 4);
    assert_int_equal(profile->end(stream), GGML_HOST_OK);
    const long launches = driver.calls("cuGraphLaunch") + driver.calls("cuLaunchKernel");
    const long records = driver.calls("cuEventRecord");
    compute();
    ggml_backend_synchronize(stream);
    assert_int_equal(driver.calls("cuEventRecord"), records);
    assert_true(driver.calls("cuGraphLaunch") + driver.calls("cuLaunchKernel") > launches);
}

// A slice that finds no room is lost, and told.
static void test_no_room(void **state) {
    struct ggml_profile_slice slices[MOST];
    uint64_t n, lost;
    (void)state;
    assert_int_equal(profile->begin(stream, 3), GGML_HOST_OK);
    compute();
    compute();
    ggml_backend_synchronize(stream);
    assert_int_equal(profile->read(stream, slices, MOST, &n, &lost), GGML_HOST_OK);
    assert_int_equal(n, 3);
    assert_int_equal(lost, 5);
    // A stream that goes while it records leaves nothing.
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_graphs_in_flight, open_all, close_all),
        cmocka_unit_test_setup_teardown(test_recordings_change, open_all, close_all),
        cmocka_unit_test_setup_teardown(test_no_room, open_all, close_all),
        cmocka_unit_test_setup_teardown(test_graphs_in_flight, open_one_by_one, close_all),
        cmocka_unit_test_setup_teardown(test_recordings_change, open_one_by_one, close_all),
    };
    cuda_find_driver();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
