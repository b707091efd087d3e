// SPDX-License-Identifier: MIT
// The core of today with a plugin whose headers are a minor ahead, lists included: it is loaded,
// and computes what both sides know. What only its lists have is its own to claim or to decline.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ggml-alloc.h"
#include "ggml-host.h"
#include "ggml-plugin.h"

static ggml_backend_reg_t reg;
static ggml_backend_dev_t device;

static int begin(void **state) {
    (void)state;
    if (ggml_plugin_load(GROWN_PLUGIN, &reg) != GGML_HOST_OK) return -1;
    device = ggml_backend_reg_dev_get(reg, 0);
    return device ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    return ggml_plugin_unload(reg) == GGML_HOST_OK ? 0 : -1;
}

static void the_record_names_its_minor(void **state) {
    (void)state;
    ggml_plugin_report_t report = ggml_plugin_report_new();
    const struct ggml_plugin_record *found = NULL;
    for (size_t i = 0; i < ggml_plugin_report_count(report); ++i) {
        const struct ggml_plugin_record *record = ggml_plugin_report_get(report, i);
        if (strcmp(record->name, "naive-grown") == 0) found = record;
    }
    assert_non_null(found);
    assert_int_equal(found->status, GGML_HOST_OK);
    assert_int_equal(found->contract_major, GGML_CONTRACT_MAJOR);
    assert_int_equal(found->contract_minor, GGML_CONTRACT_MINOR + 1);
    ggml_plugin_report_free(report);
}

static void what_both_know_is_computed(void **state) {
    (void)state;
    struct ggml_context *ctx = ggml_init((struct ggml_init_params){1 << 20, NULL, true});
    struct ggml_tensor *a = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 32, 4);
    struct ggml_tensor *sum = ggml_add(ctx, a, a);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, sum);
    assert_true(ggml_backend_dev_supports_op(device, sum));
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, stream);
    assert_non_null(buffer);
    assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_SUCCESS);
    ggml_backend_buffer_free(buffer);
    ggml_backend_free(stream);
    ggml_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_record_names_its_minor),
        cmocka_unit_test(what_both_know_is_computed),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
