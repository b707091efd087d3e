// SPDX-License-Identifier: MIT
// A thousand streams and buffers one after the other leave nothing behind.
#include "support/fault_sweep.h"
#include "support/plugin_dir.h"
#include "support/vulkan_test.h"

enum { CYCLES = 1000, WARM = 50, N = 500 };

static void cycle(ggml_backend_dev_t device, int i) {
    struct vulkan_graph g;
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);
    ggml_backend_event_t event = ggml_backend_event_new(device);
    float value = -1.0f - (float)i, back = 0;
    assert_non_null(stream);
    assert_non_null(event);
    assert_true(vulkan_graph_new(ggml_backend_dev_buffer_type(device), N + i % 7, 2, &g));
    ggml_backend_tensor_set_async(stream, g.x, &value, 0, sizeof(value));
    assert_int_equal(ggml_backend_graph_compute_async(stream, g.graph), GGML_STATUS_SUCCESS);
    ggml_backend_tensor_get_async(stream, g.y, &back, 0, sizeof(back));
    ggml_backend_event_record(event, stream);
    ggml_backend_event_synchronize(event);
    assert_true(back == -value);
    ggml_backend_event_free(event);
    ggml_backend_free(stream);
    vulkan_graph_free(&g);
}

static void test_cycles(void **state) {
    ggml_backend_reg_t reg = vulkan_start("staging", "0");
    ggml_backend_dev_t device = vulkan_device(reg);
    (void)state;
    assert_non_null(device);
    for (int i = 0; i < WARM; ++i)
        cycle(device, i);
    const struct resources before = resources_in_use();
    const size_t n_threads = count_threads(), n_mappings = count_mappings();
    for (int i = 0; i < CYCLES; ++i)
        cycle(device, i);
    const struct resources after = resources_in_use();
    printf("# %zu bytes before, %zu after\n", before.n_bytes, after.n_bytes);
    assert_int_equal(after.n_files, before.n_files);
    assert_int_equal(count_threads(), n_threads);
    assert_true(count_mappings() <= n_mappings + 8);
    assert_true(after.n_bytes <= before.n_bytes + (64 << 10));
    vulkan_stop();
}

// The plugin as a whole, again and again.
static void test_starts(void **state) {
    struct resources before = {0};
    size_t n_threads = 0;
    (void)state;
    for (int i = 0; i < 30; ++i) {
        ggml_backend_reg_t reg = vulkan_start("", "0");
        assert_non_null(reg);
        cycle(vulkan_device(reg), i);
        vulkan_stop();
        if (i == 9) {
            before = resources_in_use();
            n_threads = count_threads();
        }
    }
    const struct resources after = resources_in_use();
    printf("# %zu bytes before, %zu after\n", before.n_bytes, after.n_bytes);
    assert_int_equal(after.n_files, before.n_files);
    assert_int_equal(count_threads(), n_threads);
    assert_true(after.n_bytes <= before.n_bytes + (256 << 10));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cycles),
        cmocka_unit_test(test_starts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
