// SPDX-License-Identifier: MIT
// Numbers of tensors by address. The addresses are made up: the index only compares them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/data/tensor_index.h"
#include "base/mem.h"

enum { N = 3000 };

struct numbered {
    const struct ggml_tensor *tensor;
    int32_t other;
};

static struct numbered numbered[N];
static const struct tensor_list list = {numbered, sizeof(numbered[0])};

static void enter_all(struct tensor_index *index, uintptr_t first, uintptr_t stride) {
    for (int32_t i = 0; i < N; ++i) {
        numbered[i].tensor = (const struct ggml_tensor *)(first + (uintptr_t)i * stride);
        assert_int_equal(tensor_index_get(index, list, numbered[i].tensor), -1);
        assert_true(tensor_index_grow(index, list));
        assert_int_equal(tensor_index_add(index, list, numbered[i].tensor, i), i);
    }
    assert_int_equal(index->count, N);
    for (int32_t i = 0; i < N; ++i) {
        assert_int_equal(tensor_index_get(index, list, numbered[i].tensor), i);
        assert_int_equal(tensor_index_add(index, list, numbered[i].tensor, N), i); // known
    }
    assert_int_equal(index->count, N);
    assert_int_equal(
        tensor_index_get(index, list, (const struct ggml_tensor *)(first + N * stride)), -1);
}

// As in a context; in few homes, as several contexts that lie alike; all in one home.
static void test_addresses(void **state) {
    static const uintptr_t strides[] = {368, 16, 1u << 16, 1u << 24};
    (void)state;
    for (int k = 0; k < 4; ++k) {
        struct tensor_index index = {0};
        assert_int_equal(tensor_index_get(&index, list, numbered[0].tensor), -1); // no room yet
        enter_all(&index, 0x10000, strides[k]);
        tensor_index_free(&index);
        assert_int_equal(tensor_index_get(&index, list, numbered[0].tensor), -1);
    }
}

static void test_cleared(void **state) {
    struct tensor_index index = {0};
    (void)state;
    enter_all(&index, 0x10000, 368);
    const int32_t *slots = index.slots;
    assert_true(tensor_index_clear(&index, N));
    assert_ptr_equal(index.slots, slots); // large enough
    assert_int_equal(tensor_index_get(&index, list, numbered[7].tensor), -1);
    assert_true(tensor_index_clear(&index, 10)); // a smaller part of the same table
    enter_all(&index, 0x20000, 368);
    tensor_index_free(&index);
}

static bool refuse(void *context) {
    (void)context;
    return false;
}

static void test_no_memory(void **state) {
    struct tensor_index index = {0};
    (void)state;
    enter_all(&index, 0x10000, 368);
    const size_t mask = index.mask;
    index.count = mask / 2 + 1; // full
    ggml_mem_set_fault_hook(refuse, NULL);
    const bool grown = tensor_index_grow(&index, list);
    assert_int_equal(tensor_index_get(&index, list, numbered[N - 1].tensor), N - 1); // unchanged
    const bool cleared = tensor_index_clear(&index, 4 * mask);
    ggml_mem_set_fault_hook(NULL, NULL);
    assert_false(grown || cleared);
    assert_int_equal(tensor_index_get(&index, list, numbered[0].tensor), -1); // empty
    enter_all(&index, 0x10000, 368);
    tensor_index_free(&index);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_cleared),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests_name("tensor index", tests, NULL, NULL);
}
