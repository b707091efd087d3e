// SPDX-License-Identifier: MIT
// A model spread over 1 to 64 devices: results, splits, bytes.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rig.h"

struct spread {
    const char *name;
    int n_devices, experts;
};

static void check_spread(int n_devices, const struct transformer_shape *shape) {
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

// Of a layer with experts the router and the experts lie together, so nothing more is copied.
static void test_spread(void **state) {
    const struct spread *spread = *state;
    struct transformer_shape shape = rig_shape;
    if (spread->n_devices > shape.layers) shape.layers = spread->n_devices;
    shape.experts = spread->experts;
    check_spread(spread->n_devices, &shape);
}

int main(void) {
    static struct spread spreads[] = {
        {"1 device", 1, 0},           {"2 devices", 2, 0},
        {"4 devices", 4, 0},          {"8 devices", 8, 0},
        {"64 devices", 64, 0},        {"1 device, experts", 1, 6},
        {"2 devices, experts", 2, 6}, {"4 devices, experts", 4, 6},
        {"8 devices, experts", 8, 6}, {"64 devices, experts", 64, 6},
    };
    enum { N_SPREADS = sizeof(spreads) / sizeof(spreads[0]) };
    struct CMUnitTest tests[N_SPREADS];
    for (int i = 0; i < N_SPREADS; ++i) {
        tests[i] = (struct CMUnitTest){
            .name = spreads[i].name, .test_func = test_spread, .initial_state = &spreads[i]};
    }
    return cmocka_run_group_tests_name("sched split", tests, NULL, NULL);
}
