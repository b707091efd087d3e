// SPDX-License-Identifier: MIT
// The plugin as a file. With the argument "no-loader" the directory of the built tests holds what
// is no Vulkan loader, and the system's is not found.
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ggml-host.h"

static void test_it_loads_and_unloads(void **state) {
    ggml_backend_reg_t reg = NULL;
    (void)state;
    for (int i = 0; i < 2; ++i) {
        if (ggml_plugin_load(VULKAN_PLUGIN, &reg) != GGML_HOST_OK)
            fail_msg("%s", ggml_last_error());
        assert_string_equal(ggml_backend_reg_name(reg), "Vulkan");
        assert_true(ggml_backend_reg_dev_count(reg) > 0);
        ggml_backend_dev_t device = ggml_backend_reg_dev_get(reg, 0);
        struct ggml_backend_feature *features = NULL;
        ggml_backend_get_features_t get_features =
            (ggml_backend_get_features_t)(uintptr_t)ggml_backend_reg_get_proc_address(
                reg, "ggml_backend_get_features");
        assert_non_null(get_features);
        features = get_features(reg);
        int n = 0;
        for (; features[n].name; ++n) {
            assert_true(strncmp(features[n].name, "Vulkan", 6) == 0);
            const char *arithmetic = strstr(features[n].name, ".SUBGROUP_A");
            if (arithmetic) assert_string_equal(arithmetic, ".SUBGROUP_ARITHMETIC");
        }
        assert_true(n > 0);
        ggml_backend_t best = ggml_backend_init_best();
        assert_non_null(best);
        // A driver that computes on the CPU is what no program means by the best device or the CPU.
        if (ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_CPU) {
            assert_ptr_not_equal(ggml_backend_get_device(best), device);
            assert_ptr_not_equal(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU), device);
        }
        ggml_backend_free(best);
        assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_OK);
    }
}

// Programs offload to GPUs: a driver on the CPU counts as one for who names its device.
static void test_a_named_device_is_a_gpu(void **state) {
    static const struct {
        const char *names;
        bool is_gpu;
    } lists[] = {{"vulkan0", true},
                 {"CPU, Vulkan0 ,x", true},
                 {"vulkan", false},
                 {"-Vulkan1", false},
                 {"", false}};
    ggml_backend_reg_t reg = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); ++i) {
        setenv("GGML_DEVICES", lists[i].names, 1);
        if (ggml_plugin_load(VULKAN_PLUGIN, &reg) != GGML_HOST_OK)
            fail_msg("%s: %s", lists[i].names, ggml_last_error());
        const ggml_backend_dev_t device = ggml_backend_reg_dev_get(reg, 0);
        struct ggml_backend_dev_props props;
        ggml_backend_dev_get_props(device, &props);
        if (strstr(props.description, "computes on the CPU")) {
            assert_int_equal(props.type == GGML_BACKEND_DEVICE_TYPE_GPU, lists[i].is_gpu);
            assert_int_equal(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_GPU) == device,
                             lists[i].is_gpu);
        }
        assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_OK);
    }
    unsetenv("GGML_DEVICES");
}

static void test_no_loader(void **state) {
    ggml_backend_reg_t reg = NULL;
    (void)state;
    assert_int_not_equal(ggml_plugin_load(VULKAN_PLUGIN, &reg), GGML_HOST_OK);
    if (!strstr(ggml_last_error(), "no Vulkan loader")) fail_msg("%s", ggml_last_error());
    assert_null(reg);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_it_loads_and_unloads),
                                       cmocka_unit_test(test_a_named_device_is_a_gpu)};
    const struct CMUnitTest without[] = {cmocka_unit_test(test_no_loader)};
    if (argc > 1 && strcmp(argv[1], "no-loader") == 0)
        return cmocka_run_group_tests(without, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
