// SPDX-License-Identifier: MIT
// The encoders lose no more than ggml's do, and where they make the same bytes they keep making
// them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ggml.h"
#include "quant/quality.h"

static const struct {
    enum ggml_type type;
    enum quality_distribution distribution;
    double plain;
    double weighted;
    uint64_t hash;
} rows[] = {
#define QUALITY_ROW(type, distribution, plain, weighted, hash)                                     \
    {GGML_TYPE_##type, QUALITY_##distribution, plain, weighted, UINT64_C(hash)},
#include "quant/quality_list.inl"
};
enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

static struct quality_data data;

static void test_error_is_at_most_ggmls(void **state) {
    (void)state;
    int n_worse = 0;
    for (int i = 0; i < N_ROWS; ++i) {
        const char *type = ggml_type_name(rows[i].type);
        const char *distribution = quality_names[rows[i].distribution];
        uint64_t hash;
        quality_fill(rows[i].distribution, &data);
        const double plain = quality_error(ggml_quantize_chunk, rows[i].type, &data, false, &hash);
        const double weighted =
            quality_error(ggml_quantize_chunk, rows[i].type, &data, true, &hash);
        print_message("# %s %s: error %.4e (ggml %.4e), weighted %.4e (ggml %.4e)\n", type,
                      distribution, plain, rows[i].plain, weighted, rows[i].weighted);
        n_worse += !(plain <= rows[i].plain) + !(weighted <= rows[i].weighted);
        if (!(plain <= rows[i].plain && weighted <= rows[i].weighted)) {
            print_error("%s %s: worse than ggml\n", type, distribution);
        }
    }
    assert_int_equal(n_worse, 0);
}

static void test_bytes_are_ggmls(void **state) {
    (void)state;
    int n_checked = 0;
    for (int i = 0; i < N_ROWS; ++i) {
        uint64_t hash;
        if (rows[i].hash == 0) continue;
        quality_fill(rows[i].distribution, &data);
        quality_error(ggml_quantize_chunk, rows[i].type, &data, false, &hash);
        if (hash != rows[i].hash) {
            fail_msg("%s %s: not the bytes that ggml makes", ggml_type_name(rows[i].type),
                     quality_names[rows[i].distribution]);
        }
        ++n_checked;
    }
    assert_true(n_checked > N_ROWS / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_is_at_most_ggmls),
        cmocka_unit_test(test_bytes_are_ggmls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
