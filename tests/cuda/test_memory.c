// SPDX-License-Identifier: MIT
// Device memory: small buffers that share a range which grows, scratch memory that grows in place,
// the limit of GGML_CUDA_MEMORY_LIMIT, and all of it on a driver without such memory.
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "cuda_test.h"

enum { MIB = 1 << 20 };

static ggml_backend_buffer_type_t open_buffers(void) {
    return ggml_backend_dev_buffer_type(cuda_device(0));
}

static ggml_backend_buffer_t new_buffer(size_t size) {
    return ggml_backend_buft_alloc_buffer(open_buffers(), size);
}

static char *base_of(ggml_backend_buffer_t buffer) {
    return ggml_backend_buffer_get_base(buffer);
}

// Reads bytes of a buffer through a tensor of them.
static void read_buffer(ggml_backend_buffer_t buffer, size_t at, uint8_t *out, size_t size) {
    struct ggml_context *ctx = cuda_context();
    struct ggml_tensor *t = ggml_new_tensor_1d(ctx, GGML_TYPE_I8, (int64_t)size);
    assert_int_equal(ggml_backend_tensor_alloc(buffer, t, base_of(buffer) + at),
                     GGML_STATUS_SUCCESS);
    ggml_backend_tensor_get(t, out, 0, size);
    ggml_free(ctx);
}

// Buffers of all sizes, freed and made again in another order: each keeps what is in it.
static void churn(int n) {
    enum { MOST = 40 };
    struct {
        ggml_backend_buffer_t buffer;
        size_t size;
        uint8_t value;
    } all[MOST] = {{NULL, 0, 0}};
    uint32_t random = 1;
    for (int i = 0; i < n; ++i) {
        random = random * 1664525u + 1013904223u;
        const int k = (int)(random >> 16) % MOST;
        if (all[k].buffer) {
            uint8_t ends[2];
            read_buffer(all[k].buffer, 0, &ends[0], 1);
            read_buffer(all[k].buffer, all[k].size - 1, &ends[1], 1);
            assert_int_equal(ends[0], all[k].value);
            assert_int_equal(ends[1], all[k].value);
            ggml_backend_buffer_free(all[k].buffer);
        }
        all[k].size = 1 + random % (random % 3 == 0 ? 300000 : 5000);
        all[k].value = (uint8_t)i;
        all[k].buffer = new_buffer(all[k].size);
        if (!all[k].buffer) fail_msg("%s", ggml_last_error());
        ggml_backend_buffer_clear(all[k].buffer, all[k].value);
    }
    for (int k = 0; k < MOST; ++k)
        ggml_backend_buffer_free(all[k].buffer);
}

static void test_pool(void **state) {
    (void)state;
    const long allocated = driver.calls("cuMemAlloc_v2"), made = driver.calls("cuMemCreate");
    churn(300);
    assert_int_equal(driver.calls("cuMemAlloc_v2"), allocated);
    const long steps = driver.calls("cuMemCreate") - made;
    if (steps < 1 || steps > 6) fail_msg("%ld pieces of memory for 300 buffers", steps);
    cuda_unload();
}

// First fit: the gap that a buffer leaves is used again; neighbours are joined.
static void test_gaps(void **state) {
    ggml_backend_buffer_t buffers[4];
    (void)state;
    for (int i = 0; i < 4; ++i)
        buffers[i] = new_buffer(1000);
    for (int i = 1; i < 4; ++i)
        assert_ptr_equal(base_of(buffers[i]), base_of(buffers[0]) + 1024 * i);
    const char *first = base_of(buffers[1]);
    ggml_backend_buffer_free(buffers[1]);
    ggml_backend_buffer_free(buffers[2]);
    buffers[1] = new_buffer(2048);
    assert_ptr_equal(base_of(buffers[1]), first);
    buffers[2] = new_buffer(1);
    assert_ptr_equal(base_of(buffers[2]), base_of(buffers[3]) + 1024);
    for (int i = 0; i < 4; ++i)
        ggml_backend_buffer_free(buffers[i]);
    cuda_unload();
}

// Not in the pool: buffers above 4 MiB.
static void test_large(void **state) {
    (void)state;
    const long allocated = driver.calls("cuMemAlloc_v2");
    ggml_backend_buffer_t buffer = new_buffer(5 * MIB);
    assert_non_null(buffer);
    assert_int_equal(driver.calls("cuMemAlloc_v2"), allocated + 1);
    ggml_backend_buffer_free(buffer);
    cuda_unload();
}

// --- the limit -----------------------------------------------------------------------------------

static void figures(size_t *out_free, size_t *out_total) {
    ggml_backend_dev_memory(cuda_device(0), out_free, out_total);
}

static void test_limit(void **state) {
    size_t free_bytes, total;
    (void)state;
    setenv("GGML_CUDA_MEMORY_LIMIT", "16M", 1);
    figures(&free_bytes, &total);
    assert_int_equal(total, 16 * MIB);
    assert_int_equal(free_bytes, 16 * MIB);
    ggml_backend_buffer_t large = new_buffer(10 * MIB);
    assert_non_null(large);
    figures(&free_bytes, &total);
    assert_int_equal(total, 16 * MIB);
    assert_int_equal(free_bytes, 6 * MIB);
    const long asked = driver.calls("cuMemAlloc_v2");
    ggml_clear_error();
    assert_null(new_buffer(7 * MIB));
    assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_MEMORY);
    assert_non_null(strstr(ggml_last_error(), "GGML_CUDA_MEMORY_LIMIT"));
    assert_int_equal(driver.calls("cuMemAlloc_v2"), asked); // the driver was not asked
    ggml_backend_buffer_t small[3];
    for (int i = 0; i < 3; ++i)
        assert_non_null(small[i] = new_buffer(2 * MIB));
    assert_null(new_buffer(1));
    ggml_backend_buffer_free(large);
    figures(&free_bytes, &total);
    assert_int_equal(free_bytes, 10 * MIB);
    assert_non_null(large = new_buffer(10 * MIB));
    ggml_backend_buffer_free(large);
    for (int i = 0; i < 3; ++i)
        ggml_backend_buffer_free(small[i]);
    cuda_unload();
    setenv("GGML_CUDA_MEMORY_LIMIT", "a lot", 1);
    figures(&free_bytes, &total);
    assert_int_equal(total, 1 << 30);
    cuda_unload();
    unsetenv("GGML_CUDA_MEMORY_LIMIT");
}

// --- scratch memory ------------------------------------------------------------------------------

// A product whose columns are rounded to scratch memory first, of a little more than `mib` MiB.
struct product {
    struct ggml_context *ctx;
    struct ggml_cgraph *graph;
    struct ggml_tensor *out;
    ggml_backend_buffer_t buffer;
};

static void build(struct product *p, ggml_backend_t stream, int mib) {
    enum { ROWS = 16, COLUMNS = 65 };
    p->ctx = cuda_context();
    struct ggml_tensor *a = ggml_new_tensor_2d(p->ctx, GGML_TYPE_F16, 4096 * mib, ROWS);
    struct ggml_tensor *b = ggml_new_tensor_2d(p->ctx, GGML_TYPE_F32, 4096 * mib, COLUMNS);
    p->out = ggml_mul_mat(p->ctx, a, b);
    p->graph = ggml_new_graph(p->ctx);
    ggml_build_forward_expand(p->graph, p->out);
    p->buffer = ggml_backend_alloc_ctx_tensors(p->ctx, stream);
    assert_non_null(p->buffer);
    ggml_backend_buffer_clear(p->buffer, 0);
}

static void release(struct product *p) {
    ggml_backend_buffer_free(p->buffer);
    ggml_free(p->ctx);
}

// Returns how much memory the stream has after graphs that need 1, 3 and 2 MiB of it. The first
// one, which has the address of what was there then, is computed once more.
static size_t grow_scratch(bool is_in_place) {
    struct product products[3];
    size_t free_before, free_after, total;
    ggml_backend_t stream = ggml_backend_dev_init(cuda_device(0), NULL);
    assert_non_null(stream);
    const int mib[] = {1, 3, 2};
    for (int i = 0; i < 3; ++i)
        build(&products[i], stream, mib[i]);
    figures(&free_before, &total);
    for (int i = 0; i < 3; ++i)
        assert_int_equal(ggml_backend_graph_compute_async(stream, products[i].graph),
                         GGML_STATUS_SUCCESS);
    assert_int_equal(ggml_backend_graph_compute_async(stream, products[0].graph),
                     GGML_STATUS_SUCCESS);
    ggml_backend_synchronize(stream);
    for (int i = 0; i < 3; ++i) {
        float value;
        ggml_backend_tensor_get(products[i].out, &value, 0, sizeof(value));
        assert_true(value == 0.0f); // not the poison of new memory
    }
    figures(&free_after, &total);
    assert_int_equal(driver.calls("cuMemAlloc_v2") == 0, is_in_place);
    for (int i = 0; i < 3; ++i)
        release(&products[i]);
    ggml_backend_free(stream);
    cuda_unload();
    return free_before - free_after;
}

static void test_scratch_in_place(void **state) {
    (void)state;
    assert_int_equal(grow_scratch(true), 4 * MIB);
}

// A piece twice as large as the one before is too much here, one of what is needed is not.
static void test_scratch_in_the_rest(void **state) {
    struct product products[2];
    size_t free_before, free_after, total;
    (void)state;
    setenv("GGML_CUDA_NO_VMM", "1", 1);
    setenv("GGML_CUDA_MEMORY_LIMIT", "64M", 1);
    ggml_backend_t stream = ggml_backend_dev_init(cuda_device(0), NULL);
    assert_non_null(stream);
    build(&products[0], stream, 2);
    build(&products[1], stream, 3);
    figures(&free_before, &total);
    assert_int_equal(ggml_backend_graph_compute(stream, products[0].graph), GGML_STATUS_SUCCESS);
    figures(&free_after, &total);
    const size_t piece = free_before - free_after;
    assert_in_range(piece, 2 * MIB, 3 * MIB);
    ggml_backend_buffer_t rest = new_buffer(free_after - piece / 4 * 7);
    assert_non_null(rest);
    figures(&free_before, &total);
    assert_int_equal(ggml_backend_graph_compute(stream, products[1].graph), GGML_STATUS_SUCCESS);
    figures(&free_after, &total);
    // Without the piece it would be computed by kernels that need none.
    assert_in_range(free_before - free_after, piece, 2 * piece);
    assert_int_equal(ggml_backend_graph_compute(stream, products[0].graph), GGML_STATUS_SUCCESS);
    ggml_backend_buffer_free(rest);
    for (int i = 0; i < 2; ++i)
        release(&products[i]);
    ggml_backend_free(stream);
    cuda_unload();
    unsetenv("GGML_CUDA_MEMORY_LIMIT");
    unsetenv("GGML_CUDA_NO_VMM");
}

static void test_without_growing_memory(void **state) {
    (void)state;
    setenv("FAKE_CUDA_VMM", "0", 1);
    const long made = driver.calls("cuMemAddressReserve");
    churn(60);
    assert_true(grow_scratch(false) >= 4 * MIB);
    assert_int_equal(driver.calls("cuMemAddressReserve"), made);
    unsetenv("FAKE_CUDA_VMM");
    setenv("GGML_CUDA_NO_VMM", "1", 1);
    churn(10);
    cuda_unload();
    assert_int_equal(driver.calls("cuMemAddressReserve"), made);
    unsetenv("GGML_CUDA_NO_VMM");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scratch_in_place),
        cmocka_unit_test(test_pool),
        cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_without_growing_memory),
        cmocka_unit_test(test_scratch_in_the_rest),
    };
    cuda_find_driver();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
