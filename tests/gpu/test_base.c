// SPDX-License-Identifier: MIT
// The ring of staging memory, lists of words, and what tables and devices of plugins share.
#include "gpu/base/device.h"
#include "gpu/base/nodes.h"
#include "gpu/base/ring.h"
#include "gpu/base/tables.h"
#include "gpu/base/util.h"
#include "gpu_test.h"
#include "lists/type_set.h"

// Against a model: no two pieces in use overlap.
static void test_ring(void **state) {
    enum { SIZE = 1024, LIVE = 256 };
    struct gpu_ring ring;
    struct {
        uint64_t begin, end, value;
    } live[LIVE];
    int n_live = 0, n_taken = 0;
    uint64_t value = 1;
    uint32_t seed = 3;
    (void)state;
    gpu_ring_init(&ring, SIZE);
    assert_int_equal(gpu_ring_oldest(&ring), 0);
    for (int round = 0; round < 5000; ++round) {
        uint64_t offset;
        seed = seed * 1664525u + 1013904223u;
        const uint64_t size = 1 + (seed >> 8) % 300;
        if (seed >> 30 == 0) ++value;
        if (gpu_ring_take(&ring, size, value, &offset)) {
            assert_true(offset % 16 == 0 && offset + size <= SIZE);
            for (int i = 0; i < n_live; ++i)
                assert_true(offset >= live[i].end || offset + size <= live[i].begin);
            assert_true(n_live < LIVE);
            live[n_live].begin = offset;
            live[n_live].end = offset + size;
            live[n_live++].value = value;
            ++n_taken;
        } else {
            const uint64_t oldest = gpu_ring_oldest(&ring);
            int n = 0;
            assert_true(oldest > 0);
            gpu_ring_reach(&ring, oldest);
            for (int i = 0; i < n_live; ++i) {
                if (live[i].value > oldest) live[n++] = live[i];
            }
            n_live = n;
        }
    }
    assert_true(n_taken > 1000);
    gpu_ring_reach(&ring, value);
    uint64_t offset;
    assert_true(gpu_ring_take(&ring, SIZE, value + 1, &offset));
    assert_false(gpu_ring_take(&ring, 1, value + 1, &offset));
    assert_false(gpu_ring_take(&ring, SIZE + 1, value + 1, &offset));
}

// A piece never goes over the end: what is left there stays unused until the ring comes round.
static void test_ring_wraps_around(void **state) {
    enum { SIZE = 256 };
    struct gpu_ring ring;
    uint64_t offset;
    (void)state;
    gpu_ring_init(&ring, SIZE);
    assert_true(gpu_ring_take(&ring, 96, 1, &offset));
    assert_int_equal(offset, 0);
    assert_true(gpu_ring_take(&ring, 96, 2, &offset));
    assert_int_equal(offset, 96);
    assert_false(gpu_ring_take(&ring, 96, 3, &offset)); // 64 at the end, and the rest is in use
    gpu_ring_reach(&ring, 1);
    assert_true(gpu_ring_take(&ring, 96, 3, &offset));
    assert_int_equal(offset, 0);
    assert_false(gpu_ring_take(&ring, 1, 4, &offset)); // up to the work of value 2
    assert_int_equal(gpu_ring_oldest(&ring), 2);
    gpu_ring_reach(&ring, 2);
    assert_false(gpu_ring_take(&ring, 112, 4, &offset)); // what was skipped comes back with 3
    assert_true(gpu_ring_take(&ring, 96, 4, &offset));
    assert_int_equal(offset, 96);
    gpu_ring_reach(&ring, 4);
    assert_int_equal(gpu_ring_oldest(&ring), 0);
}

// What was taken for work that never came is free again; what older work holds is not.
static void test_ring_forgets(void **state) {
    enum { SIZE = 256 };
    struct gpu_ring ring;
    uint64_t offset;
    (void)state;
    gpu_ring_init(&ring, SIZE);
    assert_true(gpu_ring_take(&ring, 96, 1, &offset));
    assert_true(gpu_ring_take(&ring, 96, 2, &offset));
    assert_true(gpu_ring_take(&ring, 64, 3, &offset));
    gpu_ring_forget(&ring, 3);
    assert_false(gpu_ring_take(&ring, 16, 3, &offset));
    gpu_ring_forget(&ring, 1);
    assert_int_equal(gpu_ring_oldest(&ring), 1);
    assert_false(gpu_ring_take(&ring, 176, 2, &offset));
    assert_true(gpu_ring_take(&ring, 160, 2, &offset));
    assert_int_equal(offset, 96);
    gpu_ring_forget(&ring, 0);
    assert_int_equal(gpu_ring_oldest(&ring), 0);
    assert_true(gpu_ring_take(&ring, SIZE, 1, &offset));
}

// As many kinds of work as there are marks: the next has to wait although there are bytes.
static void test_ring_has_so_many_marks(void **state) {
    struct gpu_ring ring;
    uint64_t offset;
    (void)state;
    gpu_ring_init(&ring, 1 << 20);
    for (uint64_t value = 1; value <= GPU_RING_MARKS; ++value)
        assert_true(gpu_ring_take(&ring, 16, value, &offset));
    assert_true(gpu_ring_take(&ring, 16, GPU_RING_MARKS, &offset)); // of work that has a mark
    assert_false(gpu_ring_take(&ring, 16, GPU_RING_MARKS + 1, &offset));
    gpu_ring_reach(&ring, 1);
    assert_true(gpu_ring_take(&ring, 16, GPU_RING_MARKS + 1, &offset));
}

// --- words, types, numbers -----------------------------------------------------------------------

static void test_words(void **state) {
    (void)state;
    assert_true(gpu_has_word("a,bc", "a"));
    assert_true(gpu_has_word("a,bc", "bc"));
    assert_false(gpu_has_word("a,bc", "b"));
    assert_false(gpu_has_word("abc", "bc"));
    assert_false(gpu_has_word("", "a"));
}

static void test_sets_of_types(void **state) {
    struct ggml_tensor t = {.type = GGML_TYPE_F16};
    (void)state;
    assert_true(type_set_has(T_F16 | T_F32, &t));
    assert_false(type_set_has(T_F32 | T_NONE, &t));
    assert_true(type_set_has(T_F32 | T_NONE, NULL));
    assert_false(type_set_has(T_SOME, NULL));
    t.type = (enum ggml_type)GGML_TYPE_COUNT;
    assert_false(type_set_has(T_ANY, &t));
    assert_int_equal(gpu_power_of_two_within(0), 1);
    assert_int_equal(gpu_power_of_two_within(31), 16);
    assert_int_equal(gpu_power_of_two_within(32), 32);
}

// --- tables --------------------------------------------------------------------------------------

static size_t n_pieces, piece_offset, piece_size;

static int32_t set_2d(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, const void *data,
                      size_t offset, size_t size, size_t n, size_t stride_tensor,
                      size_t stride_data) {
    (void)buffer, (void)tensor, (void)data, (void)stride_tensor, (void)stride_data;
    n_pieces += n;
    piece_offset = offset;
    piece_size = size;
    return GGML_HOST_BUSY;
}

static void test_one_piece_is_pieces(void **state) {
    static const struct ggml_buffer_table table = {.size = sizeof(table), .set_tensor_2d = set_2d};
    struct ggml_backend_buffer buffer = {.table = &table};
    struct ggml_tensor t = {.type = GGML_TYPE_F32}, view = {.view_src = &t};
    (void)state;
    assert_int_equal(gpu_buffer_set(&buffer, &t, "", 3, 5), GGML_HOST_BUSY);
    assert_int_equal(n_pieces, 1);
    assert_int_equal(piece_offset, 3);
    assert_int_equal(piece_size, 5);
    assert_null(gpu_buffer_of(&view));
    t.buffer = &buffer;
    assert_ptr_equal(gpu_buffer_of(&view), &buffer);
}

static enum ggml_backend_dev_type device_type(ggml_backend_dev_t device) {
    (void)device;
    return GGML_BACKEND_DEVICE_TYPE_GPU;
}

static void device_memory(ggml_backend_dev_t device, size_t *out_free, size_t *out_total) {
    (void)device;
    *out_free = 1;
    *out_total = 2;
}

static void test_devices_of_a_registry(void **state) {
    static const struct ggml_device_table table = {
        .size = sizeof(table), .get_type = device_type, .get_memory = device_memory};
    struct own {
        struct gpu_device base;
        int more[7];
    } devices[2];
    struct gpu_reg registry = {
        .name = "Test", .devices = devices, .device_bytes = sizeof(devices[0]), .n_devices = 2};
    struct ggml_backend_reg reg = {.context = &registry};
    struct ggml_backend_dev_props props;
    (void)state;
    for (int i = 0; i < 2; ++i)
        gpu_device_init(&devices[i].base, &table, &reg, NULL, "Test", i);
    assert_string_equal(gpu_reg_name(&reg), "Test");
    assert_int_equal(gpu_reg_device_count(&reg), 2);
    assert_ptr_equal(gpu_reg_device(&reg, 1), &devices[1].base.base);
    assert_null(gpu_reg_device(&reg, 2));
    assert_string_equal(gpu_device_name(gpu_reg_device(&reg, 1)), "Test1");
    assert_string_equal(devices[1].base.host_name, "Test1_Host");
    gpu_device_props(gpu_reg_device(&reg, 0), &props);
    assert_true(props.memory_free == 1 && props.memory_total == 2);
    for (int i = 0; i < GPU_MAX_DETAILS + 3; ++i)
        gpu_details_add(&devices[0].base.details, "key", "%s", i == 1 ? "" : "value");
    assert_int_equal(devices[0].base.details.n, GPU_MAX_DETAILS);
    assert_null(devices[0].base.details.list[GPU_MAX_DETAILS].name);
    assert_null(gpu_device_info_extension(UINT32_MAX));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_ring_wraps_around),
        cmocka_unit_test(test_ring_forgets),
        cmocka_unit_test(test_ring_has_so_many_marks),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_sets_of_types),
        cmocka_unit_test(test_one_piece_is_pieces),
        cmocka_unit_test(test_devices_of_a_registry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
