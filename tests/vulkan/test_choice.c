// SPDX-License-Identifier: MIT
// What follows from a device's properties, without any device.
#include "device/device.h"
#include "plan/plan.h"
#include "support/recorded.h"
#include "support/vulkan_test.h"

// --- devices -------------------------------------------------------------------------------------

static void test_which_devices_are_offered(void **state) {
    (void)state;
    for (int i = 0; i < n_recorded_devices; ++i) {
        const struct recorded *r = &recorded_devices[i];
        struct gvk_probe probe;
        struct gvk_features features;
        char reason[GVK_MAX_REASON], id[64], description[1024];
        recorded_probe(r, &probe);
        const bool usable = gvk_probe_check(&probe, &features, reason);
        if (usable != r->usable) fail_msg("%s: %s", r->name, reason);
        if (!usable && !strstr(reason, r->reason)) fail_msg("%s: %s", r->name, reason);
        if (!usable) continue;
        assert_string_equal(reason, "");
        assert_int_equal(gvk_probe_type(&probe), r->type);
        gvk_probe_id(&probe, id, sizeof(id));
        assert_string_equal(id, r->id);
        gvk_probe_description(&probe, description, sizeof(description));
        assert_non_null(strstr(description, probe.properties.deviceName));
        assert_non_null(strstr(description, probe.driver.driverInfo));
        assert_true(features.min_storage_alignment >= 16);
        assert_true(features.max_group_size >= 128);
    }
}

static void test_drivers_on_the_cpu_come_last(void **state) {
    struct gvk_probe probe;
    int last = 0;
    (void)state;
    for (int i = 0; i < 4; ++i) {
        recorded_probe(&recorded_devices[i], &probe);
        assert_true(gvk_probe_rank(&probe) >= last);
        last = gvk_probe_rank(&probe);
    }
    assert_true(gvk_probe_unified(&probe));
}

static const char *detail(const struct gpu_details *details, const char *key) {
    for (int i = 0; i < details->n; ++i)
        if (strcmp(details->list[i].name, key) == 0) return details->list[i].value;
    return NULL;
}

static void test_what_is_known_of_a_device_is_told(void **state) {
    (void)state;
    for (int i = 0; i < n_recorded_devices; ++i) {
        struct gvk_probe probe;
        struct gpu_details details;
        recorded_probe(&recorded_devices[i], &probe);
        gvk_details_fill(&details, &probe);
        assert_null(details.list[details.n].name);
        if (probe.driver.driverName[0] != '\0')
            assert_string_equal(detail(&details, "driver"), probe.driver.driverName);
        assert_non_null(detail(&details, "driver-version"));
        assert_non_null(detail(&details, "api-version"));
        assert_string_equal(detail(&details, "unified-memory"),
                            gvk_probe_unified(&probe) ? "yes" : "no");
        assert_true((detail(&details, "link") != NULL) == probe.has.pci);
    }
}

// Every kernel's choice on every device: what is claimed can be planned, within the limits.
static void test_what_is_claimed_is_planned(void **state) {
    const struct ggml_init_params params = {.mem_size = 1 << 20, .no_alloc = true};
    (void)state;
    for (int i = 0; i < 4; ++i) {
        struct gvk_probe probe;
        struct gvk_features features;
        char reason[GVK_MAX_REASON];
        struct gvk_plan plan;
        struct ggml_context *ctx = ggml_init(params);
        recorded_probe(&recorded_devices[i], &probe);
        assert_true(gvk_probe_check(&probe, &features, reason));
        struct ggml_tensor *x = ggml_new_tensor_2d(ctx, GGML_TYPE_F16, 1 << 14, 1 << 9);
        struct ggml_tensor *y = ggml_abs(ctx, x);
        assert_true(gvk_supports_op(&features, y));
        gvk_plan_init(&plan, &features);
        assert_true(gvk_plan_add(&plan, y));
        assert_true(gvk_plan_count(&plan) > 0);
        for (int d = 0; d < gvk_plan_count(&plan); ++d) {
            for (int k = 0; k < 3; ++k)
                assert_in_range(gvk_plan_at(&plan, d)->groups[k], 1, features.max_groups[k]);
            assert_true(gvk_plan_at(&plan, d)->specs[0] <= features.max_group_size);
        }
        // More than an operand may have.
        struct ggml_tensor *big = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 1 << 20, 1 << 10);
        assert_false(gvk_supports_op(&features, ggml_abs(ctx, big)));
        gvk_plan_free(&plan);
        ggml_free(ctx);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which_devices_are_offered),
        cmocka_unit_test(test_drivers_on_the_cpu_come_last),
        cmocka_unit_test(test_what_is_known_of_a_device_is_told),
        cmocka_unit_test(test_what_is_claimed_is_planned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
