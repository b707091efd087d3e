// SPDX-License-Identifier: MIT
// Transfers of the Metal plugin, on a device that shares memory with the host and on one that does
// not: those that block, those that queue, copies between streams; sizes and offsets of any bytes.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metal_test.h"

enum { N = 64, LARGE = 5 << 20 };

static const char *const waited = "waitUntilCompleted";
static ggml_backend_reg_t reg;
static ggml_backend_dev_t device;
static ggml_backend_t streams[2];
static struct ggml_context *context;
static ggml_backend_buffer_t buffer;

static void open_device(bool unified) {
    setenv("FAKE_METAL_UNIFIED", unified ? "1" : "0", 1);
    reg = metal_load();
    device = metal_device(reg, 0);
    for (int i = 0; i < 2; ++i)
        streams[i] = ggml_backend_dev_init(device, NULL);
    context = metal_context();
}

static void allocate(void) {
    buffer = ggml_backend_alloc_ctx_tensors(context, streams[0]);
    if (!buffer) fail_msg("%s", ggml_last_error());
}

static void close_device(void) {
    ggml_backend_buffer_free(buffer);
    ggml_free(context);
    for (int i = 0; i < 2; ++i)
        ggml_backend_free(streams[i]);
    metal_unload(reg);
    assert_int_equal(metal.live(), 0);
    unsetenv("FAKE_METAL_UNIFIED");
}

static struct ggml_tensor *bytes(int64_t n) {
    return ggml_new_tensor_1d(context, GGML_TYPE_I8, n);
}

static void fill(char *memory, size_t n, unsigned seed) {
    for (size_t i = 0; i < n; ++i)
        memory[i] = (char)(seed = seed * 1103515245u + 12345u, seed >> 16);
}

// Ranges with odd beginnings and ends, each by an entry that blocks; the rest stays as it is.
static void blocking(bool unified) {
    static char expected[LARGE], got[LARGE], part[LARGE];
    open_device(unified);
    struct ggml_tensor *a = bytes(LARGE), *b = bytes(LARGE);
    allocate();
    ggml_backend_buffer_clear(buffer, 7);
    memset(expected, 7, LARGE);
    static const size_t ranges[][2] = {{0, LARGE}, {0, 64}, {1, 3}, {4, 5}, {5, 4099}, {8, 8}};
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); ++i) {
        const size_t at = ranges[i][0], n = ranges[i][1];
        fill(part, n, (unsigned)i);
        memcpy(expected + at, part, n);
        ggml_backend_tensor_set(a, part, at, n);
        memset(got, 0, n);
        ggml_backend_tensor_get(a, got, at, n);
        assert_memory_equal(got, part, n);
        memset(expected + at + n / 2, (int)i, n / 2);
        ggml_backend_tensor_memset(a, (uint8_t)i, at + n / 2, n / 2);
        ggml_backend_tensor_get(a, got, 0, LARGE);
        assert_memory_equal(got, expected, LARGE);
    }
    ggml_backend_tensor_copy(a, b);
    ggml_backend_tensor_get(b, got, 0, LARGE);
    assert_memory_equal(got, expected, LARGE);
    close_device();
}

static void test_blocking(void **state) {
    (void)state;
    blocking(true);
    blocking(false);
}

// A graph that doubles x into y, queued; y is NaN until it has run.
struct doubled {
    struct ggml_tensor *x, *y;
    struct ggml_cgraph *graph;
};

static struct doubled doubles(void) {
    struct doubled d;
    d.x = ggml_new_tensor_1d(context, GGML_TYPE_F32, N);
    d.y = ggml_scale(context, d.x, 2.0f);
    d.graph = ggml_new_graph(context);
    ggml_build_forward_expand(d.graph, d.y);
    return d;
}

static void expect(const float *values, float factor) {
    for (int i = 0; i < N; ++i)
        assert_true(values[i] == factor * (float)i);
}

// Set, compute, get, compute on what was got before: nobody waits until the end.
static void queued(bool unified) {
    float in[N], out[N], again[N];
    open_device(unified);
    const struct doubled d = doubles();
    allocate();
    for (int i = 0; i < N; ++i)
        in[i] = (float)i, out[i] = again[i] = -1.0f;
    assert_int_equal(ggml_backend_graph_compute_async(streams[0], d.graph), GGML_STATUS_SUCCESS);
    const long before = metal.calls(waited);
    ggml_backend_tensor_set_async(streams[0], d.x, in, 0, sizeof(in));
    assert_int_equal(ggml_backend_graph_compute_async(streams[0], d.graph), GGML_STATUS_SUCCESS);
    ggml_backend_tensor_get_async(streams[0], d.y, out, 0, sizeof(out));
    ggml_backend_tensor_set_async(streams[0], d.x, in, 0, sizeof(float)); // the order is kept
    ggml_backend_tensor_copy_async(streams[0], streams[0], d.y, d.x);
    assert_int_equal(ggml_backend_graph_compute_async(streams[0], d.graph), GGML_STATUS_SUCCESS);
    ggml_backend_tensor_get_async(streams[0], d.y, again, 0, sizeof(again));
    assert_int_equal(metal.calls(waited), before);
    assert_true(out[5] == -1.0f);
    ggml_backend_synchronize(streams[0]);
    expect(out, 2.0f);
    expect(again, 4.0f);
    close_device();
}

static void test_queued(void **state) {
    (void)state;
    queued(true);
    queued(false);
}

// What was got last is there in the end, also where the first was staged and the second found the
// stream idle.
static void twice(bool unified) {
    float in[N], out[N];
    open_device(unified);
    const struct doubled d = doubles();
    allocate();
    ggml_backend_buffer_t other =
        ggml_backend_buft_alloc_buffer(ggml_backend_dev_buffer_type(device), 4096);
    for (int i = 0; i < N; ++i)
        in[i] = (float)i;
    ggml_backend_tensor_set(d.x, in, 0, sizeof(in));
    assert_int_equal(ggml_backend_graph_compute_async(streams[0], d.graph), GGML_STATUS_SUCCESS);
    ggml_backend_tensor_get_async(streams[0], d.y, out, 0, sizeof(out));
    ggml_backend_buffer_free(other); // waits for all queued work, and hands out nothing
    ggml_backend_tensor_get_async(streams[0], d.x, out, 0, sizeof(out));
    ggml_backend_synchronize(streams[0]);
    expect(out, 1.0f);
    close_device();
}

static void test_twice_to_the_same_place(void **state) {
    (void)state;
    twice(true);
    twice(false);
}

// Of rows of 7 bytes in the middle of rows of 13, and of rows by fours; and more than is staged.
static void pieces(bool unified) {
    static char host[LARGE], got[LARGE], all[LARGE];
    static const size_t shapes[][4] = {{7, 20, 13, 9}, {8, 20, 16, 12}, {4, 1, 4, 4}, {0, 5, 1, 1}};
    open_device(unified);
    struct ggml_tensor *a = bytes(LARGE);
    const struct doubled d = doubles();
    allocate();
    for (size_t k = 0; k < sizeof(shapes) / sizeof(shapes[0]); ++k) {
        const size_t size = shapes[k][0], n = shapes[k][1], at_tensor = shapes[k][2];
        const size_t at_host = shapes[k][3];
        fill(host, sizeof(host), (unsigned)k);
        memset(got, 0, sizeof(got));
        ggml_backend_buffer_clear(buffer, 9);
        ggml_backend_graph_compute_async(streams[0], d.graph); // so that the stream isn't idle
        ggml_backend_tensor_set_2d_async(streams[0], a, host, 4, size, n, at_tensor, at_host);
        ggml_backend_tensor_get_2d_async(streams[0], a, got, 4, size, n, at_tensor, at_host);
        ggml_backend_synchronize(streams[0]);
        ggml_backend_tensor_get(a, all, 0, LARGE);
        for (size_t i = 0; i < n; ++i) {
            assert_memory_equal(got + i * at_host, host + i * at_host, size);
            assert_memory_equal(all + 4 + i * at_tensor, host + i * at_host, size);
            for (size_t b = size; b < at_tensor; ++b)
                assert_int_equal(all[4 + i * at_tensor + b], 9);
        }
    }
    ggml_backend_graph_compute_async(streams[0], d.graph);
    ggml_backend_tensor_set_async(streams[0], a, host, 0, LARGE);
    ggml_backend_tensor_get_async(streams[0], a, got, 0, LARGE);
    ggml_backend_synchronize(streams[0]);
    assert_memory_equal(got, host, LARGE);
    close_device();
}

static void test_pieces(void **state) {
    (void)state;
    pieces(true);
    pieces(false);
}

// What comes before an event is there when the host has waited for it, also through a stream that
// waits for it.
static void test_events(void **state) {
    float in[N], out[N];
    (void)state;
    for (int way = 0; way < 2; ++way) {
        open_device(true);
        const struct doubled d = doubles();
        allocate();
        ggml_backend_event_t event = ggml_backend_event_new(device);
        for (int i = 0; i < N; ++i)
            in[i] = (float)i, out[i] = -1.0f;
        ggml_backend_tensor_set(d.x, in, 0, sizeof(in));
        ggml_backend_graph_compute_async(streams[0], d.graph);
        ggml_backend_tensor_get_async(streams[0], d.y, out, 0, sizeof(out));
        ggml_backend_event_record(event, streams[0]);
        if (way == 0) {
            ggml_backend_event_synchronize(event);
        } else {
            ggml_backend_event_wait(streams[1], event);
            ggml_backend_synchronize(streams[1]);
        }
        expect(out, 2.0f);
        ggml_backend_event_free(event);
        close_device();
    }
}

// A copy comes after what one stream computes and before what the other does.
static void between(bool unified) {
    float in[N], out[N];
    open_device(unified);
    const struct doubled d = doubles(), e = doubles();
    allocate();
    for (int i = 0; i < N; ++i)
        in[i] = (float)i;
    ggml_backend_tensor_set(d.x, in, 0, sizeof(in));
    const long before = metal.calls(waited);
    ggml_backend_graph_compute_async(streams[0], d.graph);
    ggml_backend_tensor_copy_async(streams[0], streams[1], d.y, e.x);
    ggml_backend_graph_compute_async(streams[1], e.graph);
    // The first stream goes on in the memory that is copied from.
    ggml_backend_tensor_copy_async(streams[0], streams[0], d.x, d.y);
    ggml_backend_tensor_get_async(streams[1], e.y, out, 0, sizeof(out));
    assert_int_equal(metal.calls(waited), before);
    ggml_backend_synchronize(streams[0]);
    ggml_backend_synchronize(streams[1]);
    expect(out, 4.0f);
    close_device();
}

static void test_streams(void **state) {
    (void)state;
    between(true);
    between(false);
}

// Private memory is not shown to the host; shared memory is not private.
static void test_storage(void **state) {
    (void)state;
    for (int unified = 0; unified < 2; ++unified) {
        open_device(unified);
        bytes(100);
        const long before =
            metal.calls("copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:");
        allocate();
        char value = 3;
        ggml_backend_tensor_set(ggml_get_first_tensor(context), &value, 0, 1);
        ggml_backend_tensor_set(ggml_get_first_tensor(context), "four", 4, 4);
        assert_int_equal(
            metal.calls("copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:") - before,
            unified ? 0 : 1);
        close_device();
    }
}

static void test_residency(void **state) {
    (void)state;
    for (int system = 14; system <= 15; ++system) {
        char text[8];
        snprintf(text, sizeof(text), "%d", system);
        setenv("FAKE_METAL_SYSTEM", text, 1);
        const long added = metal.calls("addAllocation:"), sets = metal.calls("addResidencySet:");
        open_device(true);
        bytes(100);
        allocate();
        close_device();
        assert_int_equal(metal.calls("addAllocation:") - added, system - 14);
        assert_int_equal(metal.calls("addResidencySet:") - sets, 2 * (system - 14));
    }
    unsetenv("FAKE_METAL_SYSTEM");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocking),  cmocka_unit_test(test_queued),
        cmocka_unit_test(test_pieces),    cmocka_unit_test(test_events),
        cmocka_unit_test(test_streams),   cmocka_unit_test(test_storage),
        cmocka_unit_test(test_residency), cmocka_unit_test(test_twice_to_the_same_place),
    };
    metal_find_runtime();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
