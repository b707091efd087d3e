// SPDX-License-Identifier: MIT
// The table of tensor types: every row has whole blocks or is marked as removed, sizes don't
// wrap, converters keep values.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ggml-impl.h"

static void test_every_row_has_whole_blocks_or_was_removed(void **state) {
    (void)state;
    for (int i = 0; i < GGML_TYPE_COUNT; ++i) {
        const struct ggml_type_traits *traits = ggml_get_type_traits((enum ggml_type)i);
        assert_non_null(traits->type_name);
        assert_int_equal(traits->blck_size == 0, traits->type_size == 0);
        assert_int_equal(traits->is_quantized, traits->blck_size > 1);
        assert_int_equal(ggml_row_size((enum ggml_type)i, 512),
                         traits->blck_size ? 512 / traits->blck_size * (int64_t)traits->type_size
                                           : 0);
    }
    assert_string_equal(ggml_type_name((enum ggml_type)5), "DEPRECATED");
}

static void test_types_out_of_range_are_harmless(void **state) {
    (void)state;
    const int wild[] = {-1, GGML_TYPE_COUNT, 1 << 30, -2147483647 - 1};
    for (size_t i = 0; i < sizeof(wild) / sizeof(wild[0]); ++i) {
        const enum ggml_type type = (enum ggml_type)wild[i];
        assert_string_equal(ggml_type_name(type), "NONE");
        assert_int_equal(ggml_row_size(type, 64), 0);
        assert_null(ggml_get_type_traits(type)->to_float);
    }
    assert_int_equal(ggml_ftype_to_ggml_type(GGML_FTYPE_UNKNOWN), GGML_TYPE_COUNT);
    assert_int_equal(ggml_ftype_to_ggml_type(GGML_FTYPE_MOSTLY_IQ4_XS), GGML_TYPE_IQ4_XS);
}

static void test_row_sizes_do_not_wrap(void **state) {
    (void)state;
    assert_true(ggml_row_size(GGML_TYPE_F64, INT64_MAX) >= SIZE_MAX / 2);
    assert_int_equal(ggml_row_size(GGML_TYPE_F32, -5), 0);
    assert_int_equal(ggml_row_size(GGML_TYPE_Q4_0, INT64_MAX / 64 * 32),
                     (size_t)(INT64_MAX / 64) * 18);
}

static void test_codecs_of_half_types_round_trip(void **state) {
    (void)state;
    const float in[4] = {0.0f, -1.5f, 1024.0f, 0.25f};
    const enum ggml_type types[] = {GGML_TYPE_F16, GGML_TYPE_BF16};
    for (int i = 0; i < 2; ++i) {
        uint16_t packed[4];
        float out[4];
        ggml_get_type_traits(types[i])->from_float_ref(in, packed, 4);
        ggml_get_type_traits(types[i])->to_float(packed, out, 4);
        assert_memory_equal(in, out, sizeof(in));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_row_has_whole_blocks_or_was_removed),
        cmocka_unit_test(test_types_out_of_range_are_harmless),
        cmocka_unit_test(test_row_sizes_do_not_wrap),
        cmocka_unit_test(test_codecs_of_half_types_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
