// SPDX-License-Identifier: MIT
// Negotiation between host and plugin: contract versions, machine, data layout, and instruction
// sets that are missing.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "note/image_builder.h"
#include "plugin/load/negotiate.h"

static void assert_says(const char *word) {
    if (!strstr(ggml_last_error(), word)) fail_msg("no '%s' in: %s", word, ggml_last_error());
}

static void test_contract_versions(void **state) {
    (void)state;
    struct ggml_plugin_note note = valid_note();
    assert_int_equal(plugin_negotiate(&note, 0), GGML_HOST_OK);
    note.contract_minor = GGML_CONTRACT_MINOR + 7; // newer, but needs nothing newer
    assert_int_equal(plugin_negotiate(&note, 0), GGML_HOST_OK);
    note.contract_min_minor = GGML_CONTRACT_MINOR + 1;
    assert_int_equal(plugin_negotiate(&note, 0), GGML_HOST_WRONG_CONTRACT);
    assert_says("update the host");
    note = valid_note();
    note.contract_major = GGML_CONTRACT_MAJOR - 1;
    assert_int_equal(plugin_negotiate(&note, 0), GGML_HOST_WRONG_CONTRACT);
    note.contract_major = GGML_CONTRACT_MAJOR + 1;
    note.layout_hash = 0; // means nothing in another major
    assert_int_equal(plugin_negotiate(&note, 0), GGML_HOST_WRONG_CONTRACT);
}

static void test_machine_and_layout(void **state) {
    (void)state;
    struct ggml_plugin_note note = valid_note();
    note.machine = GGML_MACHINE_S390X;
    assert_int_equal(plugin_negotiate(&note, UINT64_MAX), GGML_HOST_WRONG_MACHINE);
    assert_says("s390x");
    note.machine = 999;
    assert_int_equal(plugin_negotiate(&note, UINT64_MAX), GGML_HOST_WRONG_MACHINE);
    note = valid_note();
    note.layout_hash ^= 1;
    assert_int_equal(plugin_negotiate(&note, 0), GGML_HOST_LAYOUT_MISMATCH);
}

static void test_every_missing_feature_is_named(void **state) {
    (void)state;
    struct ggml_plugin_note note = valid_note();
    for (unsigned bit = 0; bit < 64; ++bit) {
        const char *name = ggml_host_cpu_feature_name(bit);
        note.cpu_features[0] = GGML_CPU_BIT(bit);
        assert_int_equal(plugin_negotiate(&note, ~GGML_CPU_BIT(bit)),
                         GGML_HOST_MISSING_CPU_FEATURE);
        assert_says(name ? name : "unknown to this host");
        assert_int_equal(plugin_negotiate(&note, GGML_CPU_BIT(bit)), GGML_HOST_OK);
    }
    note.cpu_features[0] = UINT64_MAX;
    assert_int_equal(plugin_negotiate(&note, 1), GGML_HOST_MISSING_CPU_FEATURE);
    note.cpu_features[0] = 0;
    note.cpu_features[1] = 1;
    assert_int_equal(plugin_negotiate(&note, UINT64_MAX), GGML_HOST_MISSING_CPU_FEATURE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contract_versions),
        cmocka_unit_test(test_machine_and_layout),
        cmocka_unit_test(test_every_missing_feature_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
