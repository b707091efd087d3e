// SPDX-License-Identifier: MIT
// Memory, transfers, graphs and events on a device, through the host's own calls. Run with and
// without the validation layer, which must have nothing to say.
#define _DEFAULT_SOURCE
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/vulkan_test.h"

enum { N = 3000, BIG = 24 << 20 };

static ggml_backend_reg_t reg;
static ggml_backend_dev_t device;

static int open_plugin(const char *debug, const char *devices) {
    reg = vulkan_start(debug, devices);
    if (!reg) return -1;
    device = vulkan_device(reg);
    return 0;
}

static int open_direct(void **state) {
    (void)state;
    return open_plugin("record", "0");
}

static int open_staging(void **state) {
    (void)state;
    return open_plugin("record,staging", "0");
}

static int open_two(void **state) {
    (void)state;
    return open_plugin("", "0,0");
}

static int close_plugin(void **state) {
    (void)state;
    vulkan_stop();
    return vulkan_n_messages();
}

static ggml_backend_t new_stream(ggml_backend_dev_t dev) {
    ggml_backend_t stream = ggml_backend_dev_init(dev, NULL);
    if (!stream) fail_msg("%s", ggml_last_error());
    return stream;
}

static struct vulkan_graph new_graph(int64_t n, int n_steps) {
    struct vulkan_graph graph;
    const bool made = vulkan_graph_new(ggml_backend_dev_buffer_type(device), n, n_steps, &graph);
    if (!made) fail_msg("%s", ggml_last_error());
    return graph;
}

static void fill(float *values, size_t n, float start) {
    for (size_t i = 0; i < n; ++i)
        values[i] = (i % 2 ? 1.0f : -1.0f) * (start + (float)i);
}

static void expect_abs(const float *values, size_t n, float start) {
    for (size_t i = 0; i < n; ++i) {
        if (values[i] == start + (float)i) continue;
        fail_msg("element %zu is %g instead of %g", i, (double)values[i],
                 (double)(start + (float)i));
    }
}

// --- listing -------------------------------------------------------------------------------------

static void test_listing_makes_no_device(void **state) {
    struct ggml_backend_dev_props props;
    (void)state;
    ggml_backend_dev_get_props(device, &props);
    assert_string_equal(props.name, "Vulkan0");
    assert_true(props.memory_total > 0 && props.memory_free <= props.memory_total);
    assert_true(props.caps.async && props.caps.events && props.caps.host_buffer);
    assert_true(strlen(props.device_id) >= 12);
    assert_null(gvk_device_of(device)->context);
    const bool on_cpu = gvk_device_of(device)->features.cpu;
    assert_int_equal(props.type == GGML_BACKEND_DEVICE_TYPE_CPU, on_cpu);
    assert_int_equal(strstr(props.description, "computes on the CPU") != NULL, on_cpu);
}

// --- memory --------------------------------------------------------------------------------------

static void check_bytes(const struct ggml_tensor *t, const uint8_t *expected, size_t n) {
    uint8_t *bytes = malloc(n);
    assert_non_null(bytes);
    ggml_backend_tensor_get(t, bytes, 0, n);
    assert_memory_equal(bytes, expected, n);
    free(bytes);
}

// Odd offsets and sizes beside a mirror in memory of the host.
static void test_bytes_at_any_offset(void **state) {
    struct vulkan_graph g = new_graph(N, 0);
    const size_t n = ggml_nbytes(g.x);
    uint8_t *mirror = malloc(n), *bytes = malloc(n);
    uint32_t seed = 7;
    (void)state;
    for (size_t i = 0; i < n; ++i)
        bytes[i] = (uint8_t)(i * 31 + 5);
    ggml_backend_buffer_clear(g.buffer, 0xa5);
    memset(mirror, 0xa5, n);
    check_bytes(g.x, mirror, n);
    for (int round = 0; round < 200; ++round) {
        seed = seed * 1664525u + 1013904223u;
        const size_t offset = (seed >> 8) % n;
        const size_t size = 1 + (seed >> 4) % MIN(n - offset, round % 3 == 0 ? 9 : n);
        const uint8_t value = (uint8_t)(seed >> 24);
        if (round % 2) {
            ggml_backend_tensor_memset(g.x, value, offset, size);
            memset(mirror + offset, value, size);
        } else {
            ggml_backend_tensor_set(g.x, bytes, offset, size);
            memcpy(mirror + offset, bytes, size);
        }
    }
    check_bytes(g.x, mirror, n);
    free(bytes);
    free(mirror);
    vulkan_graph_free(&g);
}

static void test_pieces_with_strides(void **state) {
    struct vulkan_graph g = new_graph(N, 0);
    const size_t n = ggml_nbytes(g.x);
    uint8_t *mirror = calloc(1, n), *bytes = malloc(n), *back = calloc(1, n);
    (void)state;
    for (size_t i = 0; i < n; ++i)
        bytes[i] = (uint8_t)(i * 7 + 1);
    ggml_backend_buffer_clear(g.buffer, 0);
    ggml_backend_tensor_set_2d(g.x, bytes, 3, 7, 500, 19, 11);
    for (size_t i = 0; i < 500; ++i)
        memcpy(mirror + 3 + i * 19, bytes + i * 11, 7);
    check_bytes(g.x, mirror, n);
    ggml_backend_tensor_get_2d(g.x, back, 3, 7, 500, 19, 23);
    for (size_t i = 0; i < 500; ++i)
        assert_memory_equal(back + i * 23, bytes + i * 11, 7);
    free(back);
    free(bytes);
    free(mirror);
    vulkan_graph_free(&g);
}

static void test_more_than_the_staging_memory(void **state) {
    struct vulkan_graph g = new_graph(BIG / 4, 0);
    ggml_backend_t stream = new_stream(device);
    uint8_t *bytes = malloc(BIG), *back = calloc(1, BIG);
    (void)state;
    for (size_t i = 0; i < BIG; ++i)
        bytes[i] = (uint8_t)(i % 251);
    ggml_backend_tensor_set(g.x, bytes, 0, BIG);
    ggml_backend_tensor_get(g.x, back, 0, BIG);
    assert_memory_equal(back, bytes, BIG);
    memset(back, 0, BIG);
    ggml_backend_tensor_set_async(stream, g.x, bytes + 1, 0, BIG - 1);
    ggml_backend_tensor_get_async(stream, g.x, back, 0, BIG);
    ggml_backend_synchronize(stream);
    assert_memory_equal(back, bytes + 1, BIG - 1);
    assert_int_equal(back[BIG - 1], bytes[BIG - 1]);
    free(back);
    free(bytes);
    ggml_backend_free(stream);
    vulkan_graph_free(&g);
}

static sigjmp_buf after_fault;

static void on_fault(int number) {
    (void)number;
    siglongjmp(after_fault, 1);
}

static void test_the_host_can_not_read_device_memory(void **state) {
    struct vulkan_graph g = new_graph(N, 0);
    struct sigaction action = {.sa_handler = on_fault}, old_segv, old_bus;
    volatile bool faulted = false;
    (void)state;
    assert_false(ggml_backend_buffer_is_host(g.buffer));
    sigaction(SIGSEGV, &action, &old_segv);
    sigaction(SIGBUS, &action, &old_bus);
    if (sigsetjmp(after_fault, 1) == 0)
        (void)*(volatile char *)g.x->data;
    else
        faulted = true;
    sigaction(SIGSEGV, &old_segv, NULL);
    sigaction(SIGBUS, &old_bus, NULL);
    assert_true(faulted);
    vulkan_graph_free(&g);
}

static void test_pinned_and_imported_memory(void **state) {
    ggml_backend_t stream = new_stream(device);
    ggml_backend_buffer_type_t pinned = ggml_backend_dev_host_buffer_type(device);
    struct vulkan_graph g;
    float values[N];
    (void)state;
    assert_non_null(pinned);
    assert_true(ggml_backend_buft_is_host(pinned));
    assert_true(vulkan_graph_new(pinned, N, 2, &g));
    fill(g.x->data, N, 1);
    if (ggml_backend_dev_supports_buft(device, pinned)) {
        assert_int_equal(ggml_backend_graph_compute(stream, g.graph), GGML_STATUS_SUCCESS);
        ggml_backend_tensor_get(g.y, values, 0, sizeof(values));
        expect_abs(values, N, 1);
    }
    vulkan_graph_free(&g);
    const size_t size = (size_t)64 << 10;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    ggml_backend_buffer_t buffer =
        ggml_backend_dev_buffer_from_host_ptr(device, memory, size, size);
    if (gvk_device_of(device)->probe.has.host_pointer) {
        if (!buffer) fail_msg("%s", ggml_last_error());
        assert_ptr_equal(ggml_backend_buffer_get_base(buffer), memory);
        assert_true(ggml_backend_dev_supports_buft(device, ggml_backend_buffer_get_type(buffer)));
    }
    ggml_backend_buffer_free(buffer);
    assert_null(ggml_backend_dev_buffer_from_host_ptr(device, memory + 1, size - 1, size - 1));
    const size_t none_or_too_many[] = {0, (size_t)1 << 62};
    for (int i = 0; i < 2 && gvk_device_of(device)->probe.has.host_pointer; ++i) {
        ggml_clear_error();
        assert_null(ggml_backend_dev_buffer_from_host_ptr(device, memory, none_or_too_many[i], 64));
        assert_int_equal(ggml_last_status(), GGML_HOST_INVALID_ARGUMENT);
    }
    munmap(memory, size);
    ggml_backend_free(stream);
}

static void test_too_large_a_buffer_is_refused(void **state) {
    ggml_backend_buffer_type_t buft = ggml_backend_dev_buffer_type(device);
    (void)state;
    ggml_clear_error();
    assert_null(ggml_backend_buft_alloc_buffer(buft, SIZE_MAX / 2));
    assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_MEMORY);
    assert_non_null(strstr(ggml_last_error(), "limit"));
}

// --- streams -------------------------------------------------------------------------------------

// Sets, graphs and gets that are queued without waiting see each other in order.
static void test_queued_work_keeps_its_order(void **state) {
    enum { ROUNDS = 40 };
    struct vulkan_graph g = new_graph(N, 2);
    ggml_backend_t stream = new_stream(device);
    static float in[ROUNDS][N], out[ROUNDS][N];
    (void)state;
    for (int i = 0; i < ROUNDS; ++i) {
        fill(in[i], N, (float)i * 10);
        ggml_backend_tensor_set_async(stream, g.x, in[i], 0, sizeof(in[i]));
        assert_int_equal(ggml_backend_graph_compute_async(stream, g.graph), GGML_STATUS_SUCCESS);
        ggml_backend_tensor_get_async(stream, g.y, out[i], 0, sizeof(out[i]));
    }
    ggml_backend_synchronize(stream);
    for (int i = 0; i < ROUNDS; ++i)
        expect_abs(out[i], N, (float)i * 10);
    assert_int_equal(vulkan_n_recorded(), 1);
    ggml_backend_free(stream);
    vulkan_graph_free(&g);
}

// Its nodes are not even looked at, so that a change is seen only with another number, or none.
static void test_a_graph_with_a_number_is_known_by_it(void **state) {
    struct vulkan_graph g = new_graph(N, 1);
    ggml_backend_t stream = new_stream(device);
    float values[N];
    (void)state;
    fill(values, N, 1);
    ggml_backend_tensor_set(g.x, values, 0, sizeof(values));
    g.graph->uid = ggml_graph_next_uid();
    assert_int_equal(ggml_backend_graph_compute(stream, g.graph), GGML_STATUS_SUCCESS);
    const int before = vulkan_n_recorded();
    const int32_t parameter = g.y->op_params[0];
    g.y->op_params[0] = GGML_UNARY_OP_ABS; // was neg
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(ggml_backend_graph_compute(stream, g.graph), GGML_STATUS_SUCCESS);
        assert_int_equal(vulkan_n_recorded(), before);
    }
    g.graph->uid = 0;
    assert_int_equal(ggml_backend_graph_compute(stream, g.graph), GGML_STATUS_SUCCESS);
    assert_int_equal(vulkan_n_recorded(), before + 1);
    ggml_backend_tensor_get(g.y, values, 0, sizeof(values));
    expect_abs(values, N, 1);
    g.y->op_params[0] = parameter;
    g.graph->uid = ggml_graph_next_uid();
    assert_int_equal(ggml_backend_graph_compute(stream, g.graph), GGML_STATUS_SUCCESS);
    ggml_backend_tensor_get(g.y, values, 0, sizeof(values));
    assert_true(values[0] == 1 && values[1] == -2);
    ggml_backend_free(stream);
    vulkan_graph_free(&g);
}

static void test_an_unchanged_graph_is_recorded_once(void **state) {
    struct vulkan_graph g = new_graph(N, 4);
    ggml_backend_t stream = new_stream(device);
    float values[N];
    (void)state;
    fill(values, N, 1);
    ggml_backend_tensor_set(g.x, values, 0, sizeof(values));
    const int before = vulkan_n_recorded();
    for (int i = 0; i < 5; ++i)
        assert_int_equal(ggml_backend_graph_compute(stream, g.graph), GGML_STATUS_SUCCESS);
    assert_int_equal(vulkan_n_recorded() - before, 1);
    struct vulkan_graph other = new_graph(N, 4);
    ggml_backend_tensor_set(other.x, values, 0, sizeof(values));
    assert_int_equal(ggml_backend_graph_compute(stream, other.graph), GGML_STATUS_SUCCESS);
    ggml_backend_tensor_get(other.y, values, 0, sizeof(values));
    expect_abs(values, N, 1);
    assert_int_equal(vulkan_n_recorded() - before, 2);
    // Memory at the address of memory that was freed is not the same memory.
    for (int i = 0; i < 3; ++i) {
        vulkan_graph_free(&other);
        other = new_graph(N, 4);
        fill(values, N, (float)i);
        ggml_backend_tensor_set(other.x, values, 0, sizeof(values));
        assert_int_equal(ggml_backend_graph_compute(stream, other.graph), GGML_STATUS_SUCCESS);
        ggml_backend_tensor_get(other.y, values, 0, sizeof(values));
        expect_abs(values, N, (float)i);
    }
    vulkan_graph_free(&other);
    ggml_backend_free(stream);
    vulkan_graph_free(&g);
}

// More graphs than a stream remembers, each twice.
static void test_many_graphs(void **state) {
    enum { GRAPHS = 80 };
    struct vulkan_graph g[GRAPHS];
    ggml_backend_t stream = new_stream(device);
    float values[64];
    (void)state;
    for (int i = 0; i < GRAPHS; ++i) {
        g[i] = new_graph(64, 2);
        fill(values, 64, (float)i);
        ggml_backend_tensor_set(g[i].x, values, 0, sizeof(values));
    }
    for (int i = 0; i < 2 * GRAPHS; ++i)
        assert_int_equal(ggml_backend_graph_compute_async(stream, g[i % GRAPHS].graph),
                         GGML_STATUS_SUCCESS);
    ggml_backend_synchronize(stream);
    for (int i = 0; i < GRAPHS; ++i) {
        ggml_backend_tensor_get(g[i].y, values, 0, sizeof(values));
        expect_abs(values, 64, (float)i);
        vulkan_graph_free(&g[i]);
    }
    ggml_backend_free(stream);
}

// One stream computes, another one copies and reads, ordered by events or by the copy itself.
static void order_two_streams(ggml_backend_dev_t other_device) {
    enum { ROUNDS = 30 };
    struct vulkan_graph a = new_graph(N, 6), b;
    ggml_backend_t first = new_stream(device), second = new_stream(other_device);
    ggml_backend_event_t done = ggml_backend_event_new(device);
    static float in[ROUNDS][N], out[ROUNDS][N];
    assert_non_null(done);
    assert_true(vulkan_graph_new(ggml_backend_dev_buffer_type(other_device), N, 2, &b));
    ggml_backend_event_wait(second, done); // never recorded
    for (int i = 0; i < ROUNDS; ++i) {
        fill(in[i], N, (float)i);
        ggml_backend_tensor_set_async(first, a.x, in[i], 0, sizeof(in[i]));
        assert_int_equal(ggml_backend_graph_compute_async(first, a.graph), GGML_STATUS_SUCCESS);
        ggml_backend_tensor_copy_async(first, second, a.y, b.x);
        assert_int_equal(ggml_backend_graph_compute_async(second, b.graph), GGML_STATUS_SUCCESS);
        ggml_backend_tensor_get_async(second, b.y, out[i], 0, sizeof(out[i]));
        ggml_backend_event_record(done, second);
        ggml_backend_event_wait(first, done);
    }
    ggml_backend_event_synchronize(done);
    for (int i = 0; i < ROUNDS; ++i)
        expect_abs(out[i], N, (float)i);
    ggml_backend_free(first);
    ggml_backend_free(second);
    ggml_backend_event_synchronize(done); // outlives the stream
    ggml_backend_event_free(done);
    vulkan_graph_free(&a);
    vulkan_graph_free(&b);
}

static void test_two_streams(void **state) {
    (void)state;
    order_two_streams(device);
}

static void test_two_devices(void **state) {
    (void)state;
    assert_int_equal(reg->table->get_device_count(reg), 2);
    order_two_streams(reg->table->get_device(reg, 0));
}

static void test_copies(void **state) {
    struct vulkan_graph a = new_graph(N, 0), b = new_graph(N, 0);
    ggml_backend_t stream = new_stream(device);
    float values[N], back[N];
    (void)state;
    fill(values, N, 3);
    ggml_backend_tensor_set(a.x, values, 0, sizeof(values));
    ggml_backend_tensor_copy(a.x, b.x);
    ggml_backend_tensor_get(b.x, back, 0, sizeof(back));
    assert_memory_equal(values, back, sizeof(values));
    // A chain inside one stream: each copy needs the one before.
    for (int i = 0; i < 20; ++i) {
        values[0] = (float)i;
        ggml_backend_tensor_set_async(stream, a.x, values, 0, sizeof(values[0]));
        ggml_backend_tensor_copy_async(stream, stream, a.x, b.x);
        ggml_backend_tensor_get_async(stream, b.x, &back[i], 0, sizeof(back[0]));
    }
    ggml_backend_synchronize(stream);
    for (int i = 0; i < 20; ++i)
        assert_true(back[i] == (float)i);
    ggml_backend_free(stream);
    vulkan_graph_free(&a);
    vulkan_graph_free(&b);
}

// The host copies what the device can't: bytes onto themselves, moved a little.
static void test_copies_that_overlap(void **state) {
    struct vulkan_graph g = new_graph(N, 0);
    ggml_backend_t stream = new_stream(device);
    const struct ggml_init_params params = {.mem_size = 8 * ggml_tensor_overhead(),
                                            .no_alloc = true};
    struct ggml_context *ctx = ggml_init(params);
    float values[N], back[N];
    (void)state;
    struct ggml_tensor *a = ggml_view_1d(ctx, g.x, N - 10, 0);
    struct ggml_tensor *b = ggml_view_1d(ctx, g.x, N - 10, 10 * sizeof(float));
    assert_int_equal(ggml_backend_view_init(a), GGML_STATUS_SUCCESS);
    assert_int_equal(ggml_backend_view_init(b), GGML_STATUS_SUCCESS);
    fill(values, N, 1);
    for (int i = 0; i < 2; ++i) {
        ggml_backend_tensor_set(g.x, values, 0, sizeof(values));
        if (i == 0)
            ggml_backend_tensor_copy(a, b);
        else
            ggml_backend_tensor_copy_async(stream, stream, a, b);
        ggml_backend_synchronize(stream);
        ggml_backend_tensor_get(g.x, back, 0, sizeof(back));
        assert_memory_equal(back + 10, values, (N - 10) * sizeof(float));
    }
    ggml_backend_free(stream);
    ggml_free(ctx);
    vulkan_graph_free(&g);
}

static void test_a_graph_in_foreign_memory_is_refused(void **state) {
    struct vulkan_graph g;
    ggml_backend_t stream = new_stream(device);
    (void)state;
    assert_true(vulkan_graph_new(ggml_backend_cpu_buffer_type(), N, 2, &g));
    assert_int_equal(ggml_backend_graph_compute(stream, g.graph), GGML_STATUS_FAILED);
    assert_string_not_equal(ggml_last_error(), "");
    vulkan_graph_free(&g);
    ggml_backend_free(stream);
}

#define TESTS(opens)                                                                               \
    cmocka_unit_test_setup_teardown(test_listing_makes_no_device, opens, close_plugin),            \
        cmocka_unit_test_setup_teardown(test_bytes_at_any_offset, opens, close_plugin),            \
        cmocka_unit_test_setup_teardown(test_pieces_with_strides, opens, close_plugin),            \
        cmocka_unit_test_setup_teardown(test_more_than_the_staging_memory, opens, close_plugin),   \
        cmocka_unit_test_setup_teardown(test_queued_work_keeps_its_order, opens, close_plugin),    \
        cmocka_unit_test_setup_teardown(test_copies, opens, close_plugin),                         \
        cmocka_unit_test_setup_teardown(test_copies_that_overlap, opens, close_plugin),            \
        cmocka_unit_test_setup_teardown(test_two_streams, opens, close_plugin)

int main(void) {
    const struct CMUnitTest tests[] = {
        TESTS(open_direct),
        TESTS(open_staging),
        cmocka_unit_test_setup_teardown(test_two_devices, open_two, close_plugin),
        cmocka_unit_test_setup_teardown(test_the_host_can_not_read_device_memory, open_direct,
                                        close_plugin),
        cmocka_unit_test_setup_teardown(test_pinned_and_imported_memory, open_direct, close_plugin),
        cmocka_unit_test_setup_teardown(test_too_large_a_buffer_is_refused, open_direct,
                                        close_plugin),
        cmocka_unit_test_setup_teardown(test_a_graph_with_a_number_is_known_by_it, open_direct,
                                        close_plugin),
        cmocka_unit_test_setup_teardown(test_an_unchanged_graph_is_recorded_once, open_direct,
                                        close_plugin),
        cmocka_unit_test_setup_teardown(test_many_graphs, open_direct, close_plugin),
        cmocka_unit_test_setup_teardown(test_a_graph_in_foreign_memory_is_refused, open_direct,
                                        close_plugin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
