// SPDX-License-Identifier: MIT
// Times of nodes: of graphs with fusions, of some in flight at once, and back to recordings without
// timestamps.
#define _POSIX_C_SOURCE 200809L
#include "queue/stream.h"
#include "support/vulkan_test.h"

enum { WIDTH = 64, TOKENS = 5, N_NODES = 5, N_GRAPHS = 6, MOST = 64 };

static const struct ggml_extension_profile *profile = &gvk_profile_extension;
static ggml_backend_dev_t device;
static ggml_backend_t stream;
static struct ggml_context *ctx;
static ggml_backend_buffer_t buffer;
static struct ggml_cgraph *graph;

// A norm with its scale, fused; a view, which computes nothing; a product with what is added to it,
// fused; and a lone node.
static void build(void) {
    const struct ggml_init_params params = {
        .mem_size = 32 * ggml_tensor_overhead() + ggml_graph_overhead(), .no_alloc = true};
    ctx = ggml_init(params);
    struct ggml_tensor *x = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, WIDTH, TOKENS);
    struct ggml_tensor *y = ggml_rms_norm(ctx, x, 1e-5f);
    y = ggml_mul(ctx, y, ggml_new_tensor_1d(ctx, GGML_TYPE_F32, WIDTH));
    y = ggml_reshape_3d(ctx, y, WIDTH, TOKENS, 1);
    y = ggml_mul_mat(ctx, ggml_new_tensor_2d(ctx, GGML_TYPE_F16, WIDTH, 40), y);
    y = ggml_add(ctx, y, ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 40));
    y = ggml_sin(ctx, y);
    graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, y);
    buffer = ggml_backend_alloc_ctx_tensors_from_buft(ctx, ggml_backend_dev_buffer_type(device));
    assert_non_null(buffer);
    ggml_backend_buffer_clear(buffer, 0);
}

static int open_all(void **state) {
    (void)state;
    device = vulkan_device(vulkan_start("record", "0"));
    stream = device ? ggml_backend_dev_init(device, NULL) : NULL;
    if (!stream) return -1;
    build();
    return 0;
}

static int close_all(void **state) {
    (void)state;
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);
    ggml_backend_free(stream);
    vulkan_stop();
    return vulkan_n_messages();
}

static int read_all(struct ggml_profile_slice *slices, uint64_t *out_lost) {
    uint64_t n;
    assert_int_equal(profile->read(stream, slices, MOST, &n, out_lost), GGML_HOST_OK);
    return (int)n;
}

static void compute(void) {
    assert_int_equal(ggml_backend_graph_compute_async(stream, graph), GGML_STATUS_SUCCESS);
}

// The nodes of one graph, each once, and spans in the order of their time.
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
    (void)state;
    struct ggml_profile_slice slices[MOST];
    uint64_t lost;
    assert_int_equal(profile->begin(stream, MOST), GGML_HOST_OK);
    const uint64_t before = gpu_clock_ns();
    for (uint64_t i = 0; i < N_GRAPHS; ++i) {
        assert_int_equal(profile->tag(stream, 10 + i), GGML_HOST_OK);
        compute();
    }
    ggml_backend_synchronize(stream);
    const uint64_t after = gpu_clock_ns();
    const int n = read_all(slices, &lost);
    assert_int_equal(lost, 0);
    assert_true(n > 0 && n % N_GRAPHS == 0);
    assert_int_equal(n / N_GRAPHS, 3); // two fusions and a node
    for (int i = 0; i < N_GRAPHS; ++i)
        check_graph(slices + i * n / N_GRAPHS, n / N_GRAPHS, 10 + (uint64_t)i);
    for (int i = 0; i < n; ++i) {
        assert_true(slices[i].end_ns >= slices[i].begin_ns);
        assert_true(slices[i].begin_ns >= (i == 0 ? before : slices[i - 1].end_ns));
        assert_true(slices[i].end_ns <= after);
    }
    assert_int_equal(profile->end(stream), GGML_HOST_OK);
}

// More graphs than recordings are kept, each of another place.
static void test_recordings_are_dropped(void **state) {
    (void)state;
    enum { N = GVK_MAX_RECORDINGS + 3 };
    struct vulkan_graph graphs[N];
    struct ggml_profile_slice slices[MOST];
    uint64_t lost;
    for (int i = 0; i < N; ++i)
        assert_true(vulkan_graph_new(ggml_backend_dev_buffer_type(device), 8, 1, &graphs[i]));
    assert_int_equal(profile->begin(stream, MOST), GGML_HOST_OK);
    for (int i = 0; i < N; ++i) {
        assert_int_equal(profile->tag(stream, (uint64_t)i), GGML_HOST_OK);
        assert_int_equal(ggml_backend_graph_compute_async(stream, graphs[i].graph),
                         GGML_STATUS_SUCCESS);
    }
    ggml_backend_synchronize(stream);
    assert_int_equal(read_all(slices, &lost), N);
    assert_int_equal(lost, 0);
    for (int i = 0; i < N; ++i)
        assert_int_equal(slices[i].tag, i);
    assert_int_equal(profile->end(stream), GGML_HOST_OK);
    for (int i = 0; i < N; ++i)
        vulkan_graph_free(&graphs[i]);
}

// A recording with timestamps is not submitted where none are wanted, nor the other way round.
static void test_recordings_change(void **state) {
    (void)state;
    struct ggml_profile_slice slices[MOST];
    uint64_t lost;
    compute();
    ggml_backend_synchronize(stream);
    const int recorded = vulkan_n_recorded();
    compute();
    ggml_backend_synchronize(stream);
    assert_int_equal(vulkan_n_recorded(), recorded);
    assert_int_equal(profile->begin(stream, MOST), GGML_HOST_OK);
    compute();
    ggml_backend_synchronize(stream);
    assert_int_equal(vulkan_n_recorded(), recorded + 1);
    assert_int_equal(read_all(slices, &lost), 3);
    assert_int_equal(profile->end(stream), GGML_HOST_OK);
    compute();
    ggml_backend_synchronize(stream);
    assert_int_equal(vulkan_n_recorded(), recorded + 1);
}

// A queue family without timestamps.
static void test_no_timestamps(void **state) {
    (void)state;
    struct gvk_probe *probe = &gvk_device_of(device)->probe;
    const uint32_t bits = probe->timestamp_bits;
    probe->timestamp_bits = 0;
    assert_int_equal(profile->begin(stream, MOST), GGML_HOST_UNSUPPORTED);
    probe->timestamp_bits = bits;
}

// The count of few bits starts again from 0 within the graph: times stay in order and inside it.
static void test_narrow_timestamps(void **state) {
    (void)state;
    struct gvk_probe *probe = &gvk_device_of(device)->probe;
    const uint32_t bits = probe->timestamp_bits;
    struct ggml_profile_slice slices[MOST];
    uint64_t lost;
    probe->timestamp_bits = 8;
    assert_int_equal(profile->begin(stream, MOST), GGML_HOST_OK);
    const uint64_t before = gpu_clock_ns();
    compute();
    ggml_backend_synchronize(stream);
    const uint64_t after = gpu_clock_ns();
    assert_int_equal(read_all(slices, &lost), 3);
    for (int i = 0; i < 3; ++i) {
        assert_true(slices[i].begin_ns >= before && slices[i].end_ns <= after);
        assert_true(slices[i].begin_ns <= slices[i].end_ns);
        assert_true(i == 0 || slices[i].begin_ns >= slices[i - 1].end_ns);
    }
    assert_int_equal(profile->end(stream), GGML_HOST_OK);
    probe->timestamp_bits = bits;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graphs_in_flight),  cmocka_unit_test(test_recordings_are_dropped),
        cmocka_unit_test(test_recordings_change), cmocka_unit_test(test_no_timestamps),
        cmocka_unit_test(test_narrow_timestamps),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
