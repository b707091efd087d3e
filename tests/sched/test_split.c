// SPDX-License-Identifier: MIT
// A model spread over 1 to 64 devices: results, splits, bytes.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rig.h"

static void spread(int n_devices, const struct transformer_shape *shape) {
    struct rig rig;
    rig_open(&rig, n_devices, shape, NULL, false);
    const int n_tokens = 5;
    rig_check(&rig, n_tokens, 0, 7);
    // One split per device: the first layer's embedding lies on the last device.
    const int expected = n_devices > 1 ? n_devices + 1 : 1;
    assert_int_equal(ggml_backend_sched_get_n_splits(rig.sched), expected);
    // Each device gets positions and mask; the last one also the tokens.
    const uint64_t inputs =
        (uint64_t)n_devices * (4 * n_tokens + 4 * n_tokens * n_tokens) + 4 * n_tokens;
    uint64_t set_bytes, copied_bytes;
    virtual_count(&rig.host, VIRTUAL_CALL_SET, -1, &set_bytes);
    virtual_count(&rig.host, VIRTUAL_CALL_COPY, -1, &copied_bytes);
    assert_int_equal(set_bytes, inputs);
    // Activations pass from the embedding to the first device, and from each to the next: the sum
    // so far, and its norm, which still belongs to the stream before since only the factors are
    // weights.
    const uint64_t hop = 2 * (uint64_t)n_tokens * (uint64_t)shape->width * 4;
    assert_int_equal(copied_bytes, n_devices > 1 ? (uint64_t)n_devices * hop : 0);

    rig_check(&rig, 1, n_tokens, 8); // another structure
    rig_check(&rig, 1, n_tokens + 1, 9);
    rig_check(&rig, 4, n_tokens + 2, 10);
    rig_close(&rig);
}

static void test_devices_1(void **state) {
    (void)state;
    spread(1, &rig_shape);
}

static void test_devices_2(void **state) {
    (void)state;
    spread(2, &rig_shape);
}

static void test_devices_4(void **state) {
    (void)state;
    spread(4, &rig_shape);
}

static void test_devices_8(void **state) {
    (void)state;
    spread(8, &rig_shape);
}

static void test_devices_64(void **state) {
    (void)state;
    struct transformer_shape shape = rig_shape;
    shape.layers = 64;
    spread(64, &shape);
}

static void test_experts(void **state) {
    (void)state;
    struct transformer_shape shape = rig_shape;
    shape.experts = 6;
    spread(2, &shape);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices_1),  cmocka_unit_test(test_devices_2),
        cmocka_unit_test(test_devices_4),  cmocka_unit_test(test_devices_8),
        cmocka_unit_test(test_devices_64), cmocka_unit_test(test_experts),
    };
    return cmocka_run_group_tests_name("sched split", tests, NULL, NULL);
}
