// SPDX-License-Identifier: MIT
// What the fast kernels ask of memory, counted by the emulator: sectors of device memory near the
// least there can be, and no two lanes of a request in the same bank of shared memory. Speed itself
// is not to be seen here.
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <stdio.h>

#include "tensor_run.h"

enum { M = 32, K = 4096 };

static struct simt_traffic count(const struct ggml_tensor *node, const char *kernel) {
    struct simt_traffic traffic;
    simt_traffic_start();
    run_node(node, kernel);
    simt_traffic_stop(&traffic);
    return traffic;
}

// The limit, in percent.
static void check(const char *what, struct simt_traffic t, unsigned long long percent) {
    print_message("# %s: sectors read %llu of at least %llu, written %llu of %llu, wavefronts %llu "
                  "of %llu\n",
                  what, t.read_sectors, t.read_least, t.write_sectors, t.write_least, t.wavefronts,
                  t.wavefronts_least);
    if (t.read_sectors * 100 > t.read_least * percent) fail_msg("%s: reads too many sectors", what);
    if (t.write_sectors * 100 > t.write_least * percent) fail_msg("%s: writes too many", what);
    if (t.wavefronts != t.wavefronts_least) fail_msg("%s: conflicts in shared memory", what);
}

static void check_product(enum ggml_type type, int64_t n, const char *kernel) {
    struct ggml_tensor a = new_tensor(type, K, M), b = new_tensor(GGML_TYPE_F32, K, n),
                       y = new_tensor(GGML_TYPE_F32, M, n);
    char what[100];
    y.op = GGML_OP_MUL_MAT;
    y.src[0] = &a;
    y.src[1] = &b;
    snprintf(what, sizeof(what), "%s %s, n = %d", kernel, ggml_type_name(type), (int)n);
    check(what, count(&y, kernel), 110);
    free_tensor(&a);
    free_tensor(&b);
    free_tensor(&y);
}

static const enum ggml_type types[] = {
#define TENSOR_TYPE(name, elements, bytes) GGML_TYPE_##name,
#include "kernels/tensor_types.inl"
};

static void test_few_columns(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); ++i) {
        check_product(types[i], 1, "kernel_few_");
        if (i % 4 == 0) check_product(types[i], 8, "kernel_few_");
    }
}

static void test_many_columns(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i += 4)
        check_product(types[i], 64, "kernel_tile_");
}

// One that is known to be bad: the counts can fail.
static void test_counts(void **state) {
    (void)state;
    struct ggml_tensor a = new_tensor(GGML_TYPE_F32, 64, 64), y = new_tensor(GGML_TYPE_F32, 64, 64);
    a.nb[0] = 64 * sizeof(float); // transposed
    a.nb[1] = sizeof(float);
    y.op = GGML_OP_CONT;
    y.src[0] = &a;
    const struct simt_traffic t = count(&y, "kernel_");
    assert_true(t.read_sectors >= 8 * t.read_least);
    free_tensor(&a);
    free_tensor(&y);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_columns),
        cmocka_unit_test(test_many_columns),
        cmocka_unit_test(test_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
