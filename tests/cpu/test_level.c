// SPDX-License-Identifier: MIT
// The level that a processor gets, and how it is masked. Usage: test-cpu-level LEVEL, the best that
// this processor can be given.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "cpu_test.h"
#include "runtime/level.h"

static const char *expected;

static void test_the_best_level_of_this_processor(void **state) {
    (void)state;
    test_use_best_level();
    ggml_cpu_init();
    assert_string_equal(cpu_level()->name, expected);
}

static void test_a_mask_lowers_and_never_raises(void **state) {
    (void)state;
    int count = 0;
    bool above = false;
    const struct cpu_level *levels = cpu_levels(&count);
    for (int i = 0; i < count; ++i) {
        setenv("GGML_CPU_LEVEL", levels[i].name, 1);
        cpu_level_reset();
        ggml_cpu_init();
        assert_string_equal(cpu_level()->name, above ? expected : levels[i].name);
        assert_int_equal(ggml_cpu_has_neon(), strcmp(cpu_level()->name, "scalar") != 0);
        assert_int_equal(ggml_cpu_has_matmul_int8(), strcmp(cpu_level()->name, "i8mm") == 0);
        above = above || strcmp(levels[i].name, expected) == 0;
    }
    assert_true(above);
    test_use_best_level();
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_best_level_of_this_processor),
        cmocka_unit_test(test_a_mask_lowers_and_never_raises),
    };
    if (argc != 2) return fprintf(stderr, "usage: test-cpu-level LEVEL\n"), 2;
    expected = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
