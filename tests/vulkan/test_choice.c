// SPDX-License-Identifier: MIT
// What follows from a device's properties, without any device; and the parts of the runtime that
// know nothing of Vulkan.
#include "device/device.h"
#include "plan/plan.h"
#include "queue/barrier.h"
#include "queue/graph_key.h"
#include "queue/ring.h"
#include "recorded.h"
#include "support/seen.h"
#include "vulkan_test.h"

// --- devices -------------------------------------------------------------------------------------

static void test_which_devices_are_offered(void **state) {
    (void)state;
    for (int i = 0; i < n_recorded_devices; ++i) {
        const struct recorded *r = &recorded_devices[i];
        struct vk_probe probe;
        struct vk_features features;
        char reason[VK_MAX_REASON], id[64], description[1024];
        recorded_probe(r, &probe);
        const bool usable = vk_probe_judge(&probe, &features, reason);
        if (usable != r->usable) fail_msg("%s: %s", r->name, reason);
        if (!usable && !strstr(reason, r->reason)) fail_msg("%s: %s", r->name, reason);
        if (!usable) continue;
        assert_string_equal(reason, "");
        assert_int_equal(vk_probe_type(&probe), r->type);
        vk_probe_id(&probe, id, sizeof(id));
        assert_string_equal(id, r->id);
        vk_probe_description(&probe, description, sizeof(description));
        assert_non_null(strstr(description, probe.properties.deviceName));
        assert_non_null(strstr(description, probe.driver.driverInfo));
        assert_true(features.min_storage_alignment >= 16);
        assert_true(features.max_group_size >= 128);
    }
}

static void test_drivers_on_the_cpu_come_last(void **state) {
    struct vk_probe probe;
    int last = 0;
    (void)state;
    for (int i = 0; i < 4; ++i) {
        recorded_probe(&recorded_devices[i], &probe);
        assert_true(vk_probe_rank(&probe) >= last);
        last = vk_probe_rank(&probe);
    }
    assert_true(vk_probe_unified(&probe));
}

static const char *detail(const struct vk_details *details, const char *key) {
    for (int i = 0; i < details->n; ++i)
        if (strcmp(details->list[i].name, key) == 0) return details->list[i].value;
    return NULL;
}

static void test_what_is_known_of_a_device_is_told(void **state) {
    (void)state;
    for (int i = 0; i < n_recorded_devices; ++i) {
        struct vk_probe probe;
        struct vk_details details;
        recorded_probe(&recorded_devices[i], &probe);
        vk_details_fill(&details, &probe);
        assert_null(details.list[details.n].name);
        if (probe.driver.driverName[0] != '\0')
            assert_string_equal(detail(&details, "driver"), probe.driver.driverName);
        assert_non_null(detail(&details, "driver-version"));
        assert_non_null(detail(&details, "api-version"));
        assert_string_equal(detail(&details, "unified-memory"),
                            vk_probe_unified(&probe) ? "yes" : "no");
        assert_true((detail(&details, "link") != NULL) == probe.has.pci);
    }
}

// Every kernel's choice on every device: what is claimed can be planned, within the limits.
static void test_what_is_claimed_is_planned(void **state) {
    const struct ggml_init_params params = {.mem_size = 1 << 20, .no_alloc = true};
    (void)state;
    for (int i = 0; i < 4; ++i) {
        struct vk_probe probe;
        struct vk_features features;
        char reason[VK_MAX_REASON];
        struct vk_plan plan;
        struct ggml_context *ctx = ggml_init(params);
        recorded_probe(&recorded_devices[i], &probe);
        assert_true(vk_probe_judge(&probe, &features, reason));
        struct ggml_tensor *x = ggml_new_tensor_2d(ctx, GGML_TYPE_F16, 1 << 14, 1 << 9);
        struct ggml_tensor *y = ggml_abs(ctx, x);
        assert_true(vk_supports_op(&features, y));
        vk_plan_init(&plan, &features);
        assert_true(vk_plan_add(&plan, y));
        assert_true(plan.n_dispatches > 0);
        for (int d = 0; d < plan.n_dispatches; ++d) {
            for (int k = 0; k < 3; ++k)
                assert_in_range(plan.dispatches[d].groups[k], 1, features.max_groups[k]);
            assert_true(plan.dispatches[d].specs[0] <= features.max_group_size);
        }
        // More than an operand may have.
        struct ggml_tensor *big = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 1 << 20, 1 << 10);
        assert_false(vk_supports_op(&features, ggml_abs(ctx, big)));
        vk_plan_free(&plan);
        ggml_free(ctx);
    }
}

// --- barriers ------------------------------------------------------------------------------------

static void test_only_dependent_work_waits(void **state) {
    static struct vk_tracker tracker;
    const struct vk_touch write_a = {1, 0, 100, true}, read_a = {1, 50, 60, false},
                          read_beside = {1, 100, 200, false}, read_other = {2, 0, 100, false},
                          write_other = {2, 0, 100, true};
    (void)state;
    vk_tracker_clear(&tracker);
    assert_false(vk_tracker_conflicts(&tracker, &write_a, 1));
    vk_tracker_add(&tracker, &write_a, 1);
    assert_true(vk_tracker_conflicts(&tracker, &read_a, 1));  // reads what was written
    assert_true(vk_tracker_conflicts(&tracker, &write_a, 1)); // writes what was written
    assert_false(vk_tracker_conflicts(&tracker, &read_beside, 1));
    assert_false(vk_tracker_conflicts(&tracker, &read_other, 1));
    vk_tracker_add(&tracker, &read_other, 1);
    assert_false(vk_tracker_conflicts(&tracker, &read_other, 1)); // two readers
    assert_true(vk_tracker_conflicts(&tracker, &write_other, 1)); // writes what was read
    vk_tracker_clear(&tracker);
    assert_false(vk_tracker_conflicts(&tracker, &write_other, 1));
    for (int i = 0; i < VK_MAX_TOUCHES; ++i) {
        const struct vk_touch touch = {3, (uint64_t)i, (uint64_t)i + 1, true};
        assert_false(vk_tracker_conflicts(&tracker, &touch, 1));
        vk_tracker_add(&tracker, &touch, 1);
    }
    assert_true(vk_tracker_conflicts(&tracker, &read_other, 1)); // no room
}

// --- staging memory ------------------------------------------------------------------------------

// Against a model: no two pieces in use overlap.
static void test_ring(void **state) {
    enum { SIZE = 1024, LIVE = 256 };
    struct vk_ring ring;
    struct {
        uint64_t begin, end, value;
    } live[LIVE];
    int n_live = 0, n_taken = 0;
    uint64_t value = 1;
    uint32_t seed = 3;
    (void)state;
    vk_ring_init(&ring, SIZE);
    assert_int_equal(vk_ring_oldest(&ring), 0);
    for (int round = 0; round < 5000; ++round) {
        uint64_t offset;
        seed = seed * 1664525u + 1013904223u;
        const uint64_t size = 1 + (seed >> 8) % 300;
        if (seed >> 30 == 0) ++value;
        if (vk_ring_take(&ring, size, value, &offset)) {
            assert_true(offset % 16 == 0 && offset + size <= SIZE);
            for (int i = 0; i < n_live; ++i)
                assert_true(offset >= live[i].end || offset + size <= live[i].begin);
            assert_true(n_live < LIVE);
            live[n_live].begin = offset;
            live[n_live].end = offset + size;
            live[n_live++].value = value;
            ++n_taken;
        } else {
            const uint64_t oldest = vk_ring_oldest(&ring);
            int n = 0;
            assert_true(oldest > 0);
            vk_ring_reach(&ring, oldest);
            for (int i = 0; i < n_live; ++i) {
                if (live[i].value > oldest) live[n++] = live[i];
            }
            n_live = n;
        }
    }
    assert_true(n_taken > 1000);
    vk_ring_reach(&ring, value);
    uint64_t offset;
    assert_true(vk_ring_take(&ring, SIZE, value + 1, &offset));
    assert_false(vk_ring_take(&ring, 1, value + 1, &offset));
    assert_false(vk_ring_take(&ring, SIZE + 1, value + 1, &offset));
}

// --- keys of graphs ------------------------------------------------------------------------------

static uint64_t buffer_number;

static uint64_t buffer_id(const struct ggml_tensor *tensor) {
    (void)tensor;
    return buffer_number;
}

// Of a graph whose structure is known only that and where its tensors lie is looked at.
static void test_keys_of_places(void **state) {
    const struct ggml_init_params params = {.mem_size = 1 << 20, .no_alloc = true};
    struct ggml_context *ctx = ggml_init(params);
    struct ggml_tensor *x = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 8, 4);
    struct ggml_tensor *y = ggml_scale(ctx, x, 2);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    struct vk_graph_key first = {0}, key = {0}, whole = {0};
    (void)state;
    ggml_build_forward_expand(graph, y);
    struct ggml_graph view = seen(graph);
    view.structure = 5;
    assert_true(vk_graph_key_make_places(&first, &view, buffer_id));
#define FINDS(object, value, expected)                                                             \
    do {                                                                                           \
        const __typeof__(object) old = object;                                                     \
        object = value;                                                                            \
        assert_true(vk_graph_key_make_places(&key, &view, buffer_id));                             \
        assert_int_equal(vk_graph_key_equal(&first, &key), expected);                              \
        object = old;                                                                              \
    } while (0)
    FINDS(y->op_params[0], 7, true); // the structure would be another one
    FINDS(view.structure, 6, false);
    FINDS(y->data, (void *)&key, false);
    FINDS(x->data, (void *)&key, false);
    FINDS(buffer_number, 9, false);
#undef FINDS
    assert_true(vk_graph_key_make(&whole, &view, buffer_id));
    assert_false(vk_graph_key_equal(&first, &whole));
    assert_true(vk_graph_key_copy(&whole, &first)); // into a key that was used
    assert_true(vk_graph_key_equal(&first, &whole));
    vk_graph_key_free(&first);
    vk_graph_key_free(&key);
    vk_graph_key_free(&whole);
    ggml_free(ctx);
}

static void test_keys_tell_graphs_apart(void **state) {
    const struct ggml_init_params params = {.mem_size = 1 << 20, .no_alloc = true};
    struct ggml_context *ctx = ggml_init(params);
    struct ggml_tensor *x = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 8, 4);
    struct ggml_tensor *y = ggml_scale(ctx, x, 2);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    struct vk_graph_key first = {0}, key = {0};
    (void)state;
    ggml_build_forward_expand(graph, y);
    struct ggml_graph view = seen(graph);
    assert_true(vk_graph_key_make(&key, &view, buffer_id));
    assert_true(vk_graph_key_copy(&first, &key));
    assert_true(vk_graph_key_make(&key, &view, buffer_id));
    assert_true(vk_graph_key_equal(&first, &key));
#define CHANGES(object, value)                                                                     \
    do {                                                                                           \
        const __typeof__(object) old = object;                                                     \
        object = value;                                                                            \
        assert_true(vk_graph_key_make(&key, &view, buffer_id));                                    \
        assert_false(vk_graph_key_equal(&first, &key));                                            \
        object = old;                                                                              \
        assert_true(vk_graph_key_make(&key, &view, buffer_id));                                    \
        assert_true(vk_graph_key_equal(&first, &key));                                             \
    } while (0)
    CHANGES(y->op_params[0], 7);
    CHANGES(y->op, GGML_OP_SQR);
    CHANGES(y->type, GGML_TYPE_F16);
    CHANGES(y->data, (void *)&key);
    CHANGES(x->data, (void *)&key);
    CHANGES(x->ne[1], 5);
    CHANGES(x->nb[1], 64);
    CHANGES(y->flags, 0);
    CHANGES(buffer_number, 9);
    CHANGES(y->src[0], NULL);
    CHANGES(view.n_nodes, 0);
#undef CHANGES
    vk_graph_key_free(&first);
    vk_graph_key_free(&key);
    ggml_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which_devices_are_offered),
        cmocka_unit_test(test_drivers_on_the_cpu_come_last),
        cmocka_unit_test(test_what_is_known_of_a_device_is_told),
        cmocka_unit_test(test_what_is_claimed_is_planned),
        cmocka_unit_test(test_only_dependent_work_waits),
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_keys_tell_graphs_apart),
        cmocka_unit_test(test_keys_of_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
