// SPDX-License-Identifier: MIT
// Several devices: copies between them, events across them, groups of streams, and a meta device
// over them; with kernels that reach the memory of other devices, and without.
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda_test.h"
#include "ggml-ext-comm.h"
#include "ggml-ext-external-memory.h"

enum { DEVICES = 3, N = 3000, WIDTH = 64, TOKENS = 5 };

static ggml_backend_t streams[DEVICES];
static const struct ggml_extension_comm *comm;

static void open_all(const char *p2p) {
    setenv("GGML_CUDA_P2P", p2p, 1);
    for (size_t i = 0; i < DEVICES; ++i) {
        streams[i] = ggml_backend_dev_init(cuda_device(i), NULL);
        assert_non_null(streams[i]);
    }
    comm = ggml_backend_reg_get_extension(ggml_backend_dev_backend_reg(cuda_device(0)),
                                          GGML_EXTENSION_COMM, 1);
    assert_non_null(comm);
}

static void close_all(void) {
    for (size_t i = 0; i < DEVICES; ++i)
        ggml_backend_free(streams[i]);
    cuda_unload();
    unsetenv("GGML_CUDA_P2P");
}

// A row of n on each device.
struct rows {
    struct ggml_context *ctx[DEVICES];
    ggml_backend_buffer_t buffers[DEVICES];
    struct ggml_tensor *x[DEVICES], *y[DEVICES];
};

static void rows_new(struct rows *r, enum ggml_type type, int64_t n, int64_t n_y) {
    for (size_t i = 0; i < DEVICES; ++i) {
        r->ctx[i] = cuda_context();
        r->x[i] = ggml_new_tensor_1d(r->ctx[i], type, n);
        r->y[i] = ggml_new_tensor_1d(r->ctx[i], type, n_y);
        r->buffers[i] = ggml_backend_alloc_ctx_tensors(r->ctx[i], streams[i]);
        assert_non_null(r->buffers[i]);
        ggml_backend_buffer_clear(r->buffers[i], 0xff);
    }
}

static void rows_free(struct rows *r) {
    for (size_t i = 0; i < DEVICES; ++i) {
        ggml_backend_buffer_free(r->buffers[i]);
        ggml_free(r->ctx[i]);
    }
}

// --- copies --------------------------------------------------------------------------------------

// x of device 0 is set, doubled there, copied to device 1, and overwritten, all queued.
static void test_copies(void **state) {
    static float in[N], out[N], zeros[N];
    struct rows r;
    (void)state;
    open_all("0");
    rows_new(&r, GGML_TYPE_F32, N, N);
    for (int i = 0; i < N; ++i)
        in[i] = (float)i;
    const long to_host = driver.calls("cuMemcpyDtoHAsync_v2");
    struct ggml_context *ctx = cuda_context();
    struct ggml_tensor *sum = ggml_add_inplace(ctx, r.x[0], r.x[0]);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, sum);
    assert_int_equal(ggml_backend_view_init(sum), GGML_STATUS_SUCCESS);
    ggml_backend_tensor_set_async(streams[0], r.x[0], in, 0, sizeof(in));
    assert_int_equal(ggml_backend_graph_compute_async(streams[0], graph), GGML_STATUS_SUCCESS);
    ggml_backend_tensor_copy_async(streams[0], streams[1], r.x[0], r.y[1]);
    ggml_backend_tensor_set_async(streams[0], r.x[0], zeros, 0, sizeof(zeros));
    ggml_backend_synchronize(streams[0]);
    assert_int_equal(driver.calls("cuMemcpyDtoHAsync_v2"), to_host);
    ggml_backend_tensor_get(r.y[1], out, 0, sizeof(out));
    for (int i = 0; i < N; ++i)
        assert_true(out[i] == 2.0f * (float)i);
    // Not queued: from buffer to buffer.
    ggml_backend_tensor_copy(r.y[1], r.y[2]);
    ggml_backend_tensor_get(r.y[2], out, 0, sizeof(out));
    assert_true(out[N - 1] == 2.0f * (float)(N - 1));
    ggml_free(ctx);
    rows_free(&r);
    close_all();
}

static void test_events(void **state) {
    static float in[N], out[N];
    struct rows r;
    (void)state;
    open_all("0");
    rows_new(&r, GGML_TYPE_F32, N, N);
    ggml_backend_event_t event = ggml_backend_event_new(cuda_device(0));
    assert_non_null(event);
    in[7] = 7.0f;
    ggml_backend_tensor_set_async(streams[0], r.x[0], in, 0, sizeof(in));
    ggml_backend_event_record(event, streams[0]);
    ggml_backend_event_wait(streams[1], event);
    ggml_backend_synchronize(streams[1]); // and so for what is before the event
    const long waits = driver.calls("cuStreamSynchronize");
    ggml_backend_event_synchronize(event);
    assert_int_equal(driver.calls("cuStreamSynchronize"), waits);
    ggml_backend_tensor_get(r.x[0], out, 0, sizeof(out));
    assert_true(out[7] == 7.0f);
    ggml_backend_event_free(event);
    rows_free(&r);
    close_all();
}

// --- groups --------------------------------------------------------------------------------------

static ggml_comm_group_t new_group(void) {
    const struct ggml_comm_ranks ranks = {
        .size = sizeof(ranks), .n_ranks = DEVICES, .n_streams = DEVICES, .streams = streams};
    ggml_comm_group_t group = NULL;
    assert_int_equal(comm->group_new(&ranks, &group), GGML_HOST_OK);
    return group;
}

// What rank i has at k, exact in all types.
static float value(size_t i, int k) {
    return (float)((k * 7 + (int)i * 5) % 31 - 15);
}

// On device `on` what rank i has.
static void set_row(struct ggml_tensor *row, size_t on, size_t i, int n) {
    static float values[N];
    static char data[N * sizeof(float)];
    for (int k = 0; k < n; ++k)
        values[k] = value(i, k);
    if (row->type == GGML_TYPE_F32)
        memcpy(data, values, (size_t)n * sizeof(float));
    else
        ggml_fp32_to_fp16_row(values, (ggml_fp16_t *)(void *)data, n);
    ggml_backend_tensor_set_async(streams[on], row, data, 0, ggml_nbytes(row));
    ggml_backend_synchronize(streams[on]);
}

static void get_row(const struct ggml_tensor *row, float *out, int n) {
    static ggml_fp16_t halves[N];
    if (row->type == GGML_TYPE_F32) {
        ggml_backend_tensor_get(row, out, 0, (size_t)n * sizeof(float));
    } else {
        ggml_backend_tensor_get(row, halves, 0, (size_t)n * sizeof(halves[0]));
        ggml_fp16_to_fp32_row(halves, out, n);
    }
}

// Of the rows x.
static void reduce(ggml_comm_group_t group, enum ggml_comm_reduction reduction,
                   const struct rows *r, int n, const uint8_t *counts) {
    static float out[N];
    for (size_t i = 0; i < DEVICES; ++i)
        set_row(r->x[i], i, i, n);
    assert_int_equal(comm->all_reduce(group, reduction, r->x, counts), GGML_HOST_OK);
    for (size_t i = 0; i < DEVICES; ++i)
        ggml_backend_synchronize(streams[i]);
    for (size_t i = 0; i < DEVICES; ++i) {
        get_row(r->x[i], out, n);
        for (int k = 0; k < n; ++k) {
            float expected = 0.0f;
            bool any = false;
            for (size_t j = 0; j < DEVICES; ++j) {
                if (counts && !counts[j]) continue;
                const float v = value(j, k);
                expected = !any                         ? v
                           : reduction == GGML_COMM_SUM ? expected + v
                                                        : fmaxf(expected, v);
                any = true;
            }
            if (out[k] != expected)
                fail_msg("rank %zu has %g at %d of %d, not %g", i, (double)out[k], k, n,
                         (double)expected);
        }
    }
}

static void check_reduce(ggml_comm_group_t group, enum ggml_comm_reduction reduction,
                         enum ggml_type type, int n, const uint8_t *counts) {
    struct rows r;
    rows_new(&r, type, n, n);
    reduce(group, reduction, &r, n, counts);
    rows_free(&r);
}

static void check_group(const char *p2p) {
    static const uint8_t some[] = {1, 0, 1}, none[] = {0, 0, 0};
    open_all(p2p);
    const bool reaches = strcmp(p2p, "1") == 0;
    const long copies = driver.calls("cuMemcpyPeerAsync");
    ggml_comm_group_t group = new_group();
    check_reduce(group, GGML_COMM_SUM, GGML_TYPE_F32, N, NULL);
    check_reduce(group, GGML_COMM_SUM, GGML_TYPE_F32, 1, NULL);
    check_reduce(group, GGML_COMM_SUM, GGML_TYPE_F32, 257, some);
    check_reduce(group, GGML_COMM_SUM, GGML_TYPE_F32, 700, none);
    check_reduce(group, GGML_COMM_SUM, GGML_TYPE_F16, N, NULL);
    check_reduce(group, GGML_COMM_MAX, GGML_TYPE_F16, N - 1, some);
    // The one that kernels do reads and writes where the parts are.
    assert_int_equal(driver.calls("cuMemcpyPeerAsync") == copies, reaches);
    comm->group_free(group);
    close_all();
}

static void test_reduce_by_copies(void **state) {
    (void)state;
    check_group("0");
}

static void test_reduce_in_place(void **state) {
    (void)state;
    check_group("1");
}

// Memory that other processes can have too is its own device's alone: one part in plain memory, one
// in memory for others, and one in such memory that was imported.
static void test_reduce_in_external_memory(void **state) {
    ggml_backend_buffer_t buffers[DEVICES];
    struct ggml_external_memory memory = {.size = sizeof(memory)};
    struct rows r;
    (void)state;
    open_all("1");
    ggml_comm_group_t group = new_group();
    rows_new(&r, GGML_TYPE_F32, N, N);
    for (size_t i = 1; i < DEVICES; ++i) {
        buffers[i] = ggml_backend_dev_alloc_external(cuda_device(i), N * sizeof(float));
        if (!buffers[i]) fail_msg("%s", ggml_last_error());
    }
    assert_int_equal(ggml_backend_buffer_export(buffers[2], GGML_EXTERNAL_OPAQUE_FD, &memory),
                     GGML_HOST_OK);
    buffers[0] = ggml_backend_dev_import_external(cuda_device(2), &memory);
    if (!buffers[0]) fail_msg("%s", ggml_last_error());
    ggml_backend_buffer_free(buffers[2]); // the memory stays
    buffers[2] = buffers[0];
    for (size_t i = 1; i < DEVICES; ++i) {
        r.x[i] = ggml_new_tensor_1d(r.ctx[i], GGML_TYPE_F32, N);
        assert_int_equal(
            ggml_backend_tensor_alloc(buffers[i], r.x[i], ggml_backend_buffer_get_base(buffers[i])),
            GGML_STATUS_SUCCESS);
    }
    reduce(group, GGML_COMM_SUM, &r, N, NULL);
    comm->group_free(group);
    for (size_t i = 1; i < DEVICES; ++i)
        ggml_backend_buffer_free(buffers[i]);
    close(memory.fd);
    rows_free(&r);
    close_all();
}

// Without a word of the user, over links of their own only.
static void test_links(void **state) {
    (void)state;
    open_all("");
    assert_int_equal(driver.calls("cuCtxEnablePeerAccess") > 0, false);
    close_all();
    setenv("FAKE_CUDA_PEERS", "2", 1);
    open_all("");
    assert_int_equal(driver.calls("cuCtxEnablePeerAccess"), DEVICES * (DEVICES - 1));
    close_all();
    setenv("FAKE_CUDA_PEERS", "1", 1);
}

static void test_messages(void **state) {
    static float out[N];
    struct rows r;
    (void)state;
    open_all("0");
    ggml_comm_group_t group = new_group();
    rows_new(&r, GGML_TYPE_F32, N, N);
    set_row(r.x[0], 0, 0, N);
    const long allocated = driver.calls("cuMemAlloc_v2");
    for (int round = 0; round < 4; ++round) {
        assert_int_equal(comm->send(group, 0, 2, r.x[0]), GGML_HOST_OK);
        set_row(r.x[0], 0, (size_t)round + 1, N); // after what was sent
        assert_int_equal(comm->receive(group, 2, 0, r.y[2]), GGML_HOST_OK);
        ggml_backend_synchronize(streams[2]);
        get_row(r.y[2], out, N);
        for (int k = 0; k < N; ++k)
            assert_true(out[k] == value((size_t)round, k));
    }
    assert_int_equal(driver.calls("cuMemAlloc_v2"), allocated + 1);
    assert_int_equal(comm->receive(group, 2, 0, r.y[2]), GGML_HOST_INVALID_ARGUMENT);
    assert_int_equal(comm->send(group, 1, 0, r.x[1]), GGML_HOST_OK); // and never received
    rows_free(&r);
    comm->group_free(group);
    close_all();
}

// A tensor of the buffer that begins where it begins.
static struct ggml_tensor *tensor_in(struct ggml_context *ctx, ggml_backend_buffer_t buffer,
                                     int64_t n) {
    struct ggml_tensor *x = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, n);
    assert_int_equal(ggml_backend_tensor_alloc(buffer, x, ggml_backend_buffer_get_base(buffer)),
                     GGML_STATUS_SUCCESS);
    return x;
}

// Each message is larger than those before it, whose memory goes when it does not suffice. No call
// waits until it was read: while that is not so it stays.
static void test_messages_that_grow(void **state) {
    enum { SIZES = 40, STEP = 1 << 16 };
    size_t free_before, free_after, total;
    (void)state;
    open_all("0");
    ggml_comm_group_t group = new_group();
    struct ggml_context *ctx = cuda_context();
    ggml_backend_buffer_t buffers[2];
    for (size_t i = 0; i < 2; ++i) {
        buffers[i] = ggml_backend_alloc_buffer(streams[i], (size_t)SIZES * STEP * sizeof(float));
        assert_non_null(buffers[i]);
        ggml_backend_buffer_clear(buffers[i], 0);
    }
    ggml_backend_dev_memory(cuda_device(0), &free_before, &total);
    const long waits = driver.calls("cuEventSynchronize");
    for (int n = 1; n <= SIZES; ++n) {
        struct ggml_tensor *x[2];
        float last = (float)n;
        for (size_t i = 0; i < 2; ++i)
            x[i] = tensor_in(ctx, buffers[i], (int64_t)n * STEP);
        ggml_backend_tensor_set(x[0], &last, ggml_nbytes(x[0]) - sizeof(last), sizeof(last));
        assert_int_equal(comm->send(group, 0, 1, x[0]), GGML_HOST_OK);
        assert_int_equal(comm->receive(group, 1, 0, x[1]), GGML_HOST_OK);
        if (n % 4 == 1) continue;
        ggml_backend_synchronize(streams[1]);
        ggml_backend_tensor_get(x[1], &last, ggml_nbytes(x[1]) - sizeof(last), sizeof(last));
        assert_true(last == (float)n);
    }
    assert_int_equal(driver.calls("cuEventSynchronize"), waits);
    ggml_backend_dev_memory(cuda_device(0), &free_after, &total);
    assert_in_range(free_before - free_after, 1, 2 * (size_t)SIZES * STEP * sizeof(float));
    for (size_t i = 0; i < 2; ++i)
        ggml_backend_buffer_free(buffers[i]);
    ggml_free(ctx);
    comm->group_free(group);
    close_all();
}

// --- a meta device -------------------------------------------------------------------------------

// Weights whose names begin with "up" are split by rows, "down" by columns: the product of the
// latter is a sum over devices.
static struct ggml_backend_meta_split_state split(const struct ggml_tensor *tensor,
                                                  void *userdata) {
    struct ggml_backend_meta_split_state s = {.axis = GGML_BACKEND_SPLIT_AXIS_MIRRORED,
                                              .n_segments = 1};
    (void)userdata;
    s.nr[0] = 1;
    const bool up = strncmp(tensor->name, "up", 2) == 0,
               down = strncmp(tensor->name, "down", 4) == 0;
    if (!up && !down) return s;
    s.axis = up ? GGML_BACKEND_SPLIT_AXIS_1 : GGML_BACKEND_SPLIT_AXIS_0;
    s.ne[0] = s.ne[1] = tensor->ne[up ? 1 : 0] / 2;
    return s;
}

static void compute_on(ggml_backend_dev_t device, float *out) {
    struct ggml_context *leaves = cuda_context(), *ctx = cuda_context();
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);
    assert_non_null(stream);
    struct ggml_tensor *x = ggml_new_tensor_2d(leaves, GGML_TYPE_F32, WIDTH, TOKENS), *y = x;
    for (int l = 0; l < 2; ++l) {
        struct ggml_tensor *up = ggml_new_tensor_2d(leaves, GGML_TYPE_F32, WIDTH, 2 * WIDTH);
        struct ggml_tensor *down = ggml_new_tensor_2d(leaves, GGML_TYPE_F32, 2 * WIDTH, WIDTH);
        ggml_set_name(up, "up");
        ggml_set_name(down, "down");
        struct ggml_tensor *h = ggml_silu(ctx, ggml_mul_mat(ctx, up, ggml_rms_norm(ctx, y, 1e-5f)));
        y = ggml_add(ctx, y, ggml_mul_mat(ctx, down, h));
    }
    ggml_set_output(y);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, y);
    ggml_backend_buffer_type_t buft = ggml_backend_get_default_buffer_type(stream);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors_from_buft(leaves, buft);
    assert_non_null(buffer);
    uint32_t seed = 1;
    for (struct ggml_tensor *t = ggml_get_first_tensor(leaves); t;
         t = ggml_get_next_tensor(leaves, t))
        cuda_fill(t, seed++);
    ggml_gallocr_t allocator = ggml_gallocr_new(buft);
    assert_true(ggml_gallocr_alloc_graph(allocator, graph));
    for (int i = 0; i < 3; ++i)
        assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_SUCCESS);
    cuda_read(y, out);
    ggml_backend_free(stream);
    ggml_gallocr_free(allocator);
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);
    ggml_free(leaves);
}

static void check_meta(const char *p2p) {
    static float one[WIDTH * TOKENS], two[WIDTH * TOKENS];
    open_all(p2p);
    ggml_backend_dev_t devices[] = {cuda_device(0), cuda_device(1)};
    compute_on(devices[0], one);
    const long copies = driver.calls("cuMemcpyPeerAsync"),
               to_host = driver.calls("cuMemcpyDtoHAsync_v2");
    compute_on(ggml_backend_meta_device(devices, 2, split, NULL), two);
    for (int i = 0; i < WIDTH * TOKENS; ++i)
        assert_true(fabs((double)one[i] - (double)two[i]) < 1e-3);
    assert_true(driver.calls("cuMemcpyDtoHAsync_v2") <= to_host + 1); // the result
    assert_int_equal(driver.calls("cuMemcpyPeerAsync") == copies, strcmp(p2p, "1") == 0);
    close_all();
}

static void test_meta_by_copies(void **state) {
    (void)state;
    check_meta("0");
}

static void test_meta_in_place(void **state) {
    (void)state;
    check_meta("1");
}

// --- failures ------------------------------------------------------------------------------------

// Each call of the driver of a group's life fails in turn: a status, nothing left. Scratch memory
// that there is not enough of is asked for again, in fewer bytes: of each rank that has some.
static void test_faults(void **state) {
    static const int errors[] = {2, 719};
    (void)state;
    for (int p2p = 0; p2p < 2; ++p2p) {
        for (int e = 0; e < 2; ++e) {
            int n_spared = 0;
            for (long n = 0;; ++n) {
                struct rows r;
                open_all(p2p ? "1" : "0");
                rows_new(&r, GGML_TYPE_F32, N, DEVICES * N);
                ggml_comm_group_t group = new_group();
                for (size_t i = 0; i < DEVICES; ++i)
                    set_row(r.x[i], i, i, N);
                driver.fail_after(n, errors[e]);
                int status = comm->all_reduce(group, GGML_COMM_SUM, r.x, NULL);
                if (status == GGML_HOST_OK) status = comm->broadcast(group, 1, r.x);
                if (status == GGML_HOST_OK)
                    status = comm->all_gather(group, (const struct ggml_tensor *const *)r.x, r.y);
                if (status == GGML_HOST_OK) status = comm->send(group, 0, 1, r.x[0]);
                if (status == GGML_HOST_OK) status = comm->receive(group, 1, 0, r.x[1]);
                const char *call = driver.failed();
                const bool failed = call != NULL;
                const bool spared = failed && status == GGML_HOST_OK && errors[e] == 2 &&
                                    strcmp(call, "cuMemAlloc_v2") == 0;
                n_spared += spared;
                if (!failed) driver.fail_after(-1, 0); // nor does any that frees
                assert_int_equal(failed && !spared, status != GGML_HOST_OK);
                if (status == GGML_HOST_DEVICE_LOST)
                    assert_int_not_equal(comm->broadcast(group, 1, r.x), GGML_HOST_OK);
                comm->group_free(group);
                rows_free(&r);
                driver.fail_after(-1, 0);
                close_all();
                if (!failed) break;
            }
            assert_int_equal(n_spared, !p2p && errors[e] == 2 ? DEVICES : 0);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_links),           cmocka_unit_test(test_copies),
        cmocka_unit_test(test_events),          cmocka_unit_test(test_reduce_by_copies),
        cmocka_unit_test(test_reduce_in_place), cmocka_unit_test(test_reduce_in_external_memory),
        cmocka_unit_test(test_messages),        cmocka_unit_test(test_messages_that_grow),
        cmocka_unit_test(test_meta_by_copies),  cmocka_unit_test(test_meta_in_place),
        cmocka_unit_test(test_faults),
    };
    setenv("FAKE_CUDA_DEVICES", "3", 1);
    setenv("FAKE_CUDA_PEERS", "1", 1);
    cuda_find_driver();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
