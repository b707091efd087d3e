// SPDX-License-Identifier: MIT
// Which devices are to split tensors, and who gets which layers, by recorded links: four devices in
// two hosts, of which the virtual plugin says what was measured between real ones. A transformer
// that is divided so computes what it does on one device.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/transformer.h"
#include "virtual_host.h"

enum { DEVICES = 4, LAYERS = 32 };

static struct virtual_host host;

// 200 MB a layer, a row of 4096 F32 between two.
static const struct ggml_split_model model = {
    .size = sizeof(model), .n_layers = LAYERS, .layer_bytes = 200000000, .value_bytes = 16384};

// Links of a host's devices among them, and between hosts.
struct links {
    int64_t near_us, near_ns_per_kib, far_us, far_ns_per_kib;
};

// 1 Gbit/s as tools/mpi-test --rate 1gbit measures it (0.119 GB/s, half of 0.1 ms one way), PCIe 4
// by its specification within a host.
static const struct links ethernet = {10, 40, 50, 8600};
// InfiniBand HDR as its data sheet has it: 2 us, 24 GB/s.
static const struct links infiniband = {10, 40, 2, 43};

// Memory of 102 GB/s (10 ns per KiB).
static void set_up(const struct links *links, int64_t memory, ggml_backend_dev_t out[DEVICES]) {
    struct virtual_config config;
    host.default_config(&config);
    config.memory = memory;
    config.node_ns_per_kib = 10;
    config.copy_delay_us = links->near_us;
    config.copy_ns_per_kib = links->near_ns_per_kib;
    config.hosts = 2; // devices 0 and 2, 1 and 3
    config.far_delay_us = links->far_us;
    config.far_ns_per_kib = links->far_ns_per_kib;
    assert_true(host.configure(-1, &config));
    for (size_t i = 0; i < DEVICES; ++i)
        out[i] = virtual_device(&host, i);
}

static size_t plan(const struct links *links, int64_t memory,
                   struct ggml_island out_islands[DEVICES]) {
    ggml_backend_dev_t devices[DEVICES];
    size_t n = 7;
    set_up(links, memory, devices);
    if (ggml_host_plan_islands(devices, DEVICES, &model, out_islands, &n) != GGML_HOST_OK)
        assert_int_equal(n, 0);
    return n;
}

static int host_of(ggml_backend_dev_t device) {
    for (int i = 0; i < DEVICES; ++i)
        if (virtual_device(&host, (size_t)i) == device) return i % 2;
    return -1;
}

// --- divisions -----------------------------------------------------------------------------------

static void test_slow_links_separate_islands(void **state) {
    struct ggml_island islands[DEVICES];
    (void)state;
    assert_int_equal(plan(&ethernet, INT64_C(2000000000), islands), 2);
    uint32_t next = 0;
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(islands[i].n_devices, 2);
        assert_int_equal(host_of(islands[i].devices[0]), host_of(islands[i].devices[1]));
        assert_int_equal(islands[i].first_layer, next);
        next += islands[i].n_layers;
        // Half a layer each, and two sums.
        assert_true(islands[i].layer_seconds > 0.97e-3 && islands[i].layer_seconds < 1.1e-3);
    }
    assert_int_not_equal(host_of(islands[0].devices[0]), host_of(islands[1].devices[0]));
    assert_int_equal(islands[0].n_layers, 20);
    assert_int_equal(next, LAYERS);
}

static void test_fast_links_make_one_island(void **state) {
    struct ggml_island islands[DEVICES];
    (void)state;
    assert_int_equal(plan(&infiniband, INT64_C(2000000000), islands), 1);
    assert_int_equal(islands[0].n_devices, DEVICES);
    assert_int_equal(islands[0].n_layers, LAYERS);
}

// Where sums take longer than they save, every device has layers of its own.
static void test_no_tensors_are_split_over_slow_links(void **state) {
    static const struct links slow = {2000, 8600, 2000, 8600};
    struct ggml_island islands[DEVICES];
    (void)state;
    assert_int_equal(plan(&slow, INT64_C(2000000000), islands), DEVICES);
    for (int i = 0; i < DEVICES; ++i) {
        assert_int_equal(islands[i].n_devices, 1);
        assert_int_equal(islands[i].n_layers, i < 3 ? 10 : 2);
    }
}

// The other host is not needed.
static void test_one_island_is_enough_where_all_fits(void **state) {
    struct ggml_island islands[DEVICES];
    (void)state;
    assert_int_equal(plan(&ethernet, INT64_C(64000000000), islands), 2);
    assert_int_equal(islands[0].n_devices, 2);
    assert_int_equal(islands[0].n_layers, LAYERS);
    assert_int_equal(islands[1].n_devices, 2);
    assert_int_equal(islands[1].n_layers, 0);
}

// Sums take 0.35 ms an exchange: three devices save less than the second exchange costs, four save
// more.
static void test_four_may_gain_where_three_do_not(void **state) {
    static const struct links links = {175, 0, 175, 0};
    struct ggml_island islands[DEVICES];
    (void)state;
    assert_int_equal(plan(&links, INT64_C(64000000000), islands), 1);
    assert_int_equal(islands[0].n_devices, DEVICES);
}

// A device that is slower than its plugin says, or has no room for a layer, stays alone.
static void test_given_figures_and_memory_count(void **state) {
    struct ggml_island islands[DEVICES];
    ggml_backend_dev_t devices[DEVICES];
    struct ggml_device_figures slow = {.size = sizeof(slow)};
    const struct ggml_device_figures *figures[DEVICES] = {NULL, NULL, NULL, &slow};
    struct ggml_split_model given = model;
    size_t n;
    (void)state;
    set_up(&infiniband, INT64_C(4000000000), devices);
    given.figures = figures;
    slow.bytes_per_second = 1e9;
    slow.flags = GGML_DEVICE_FIGURES_DIRECT_COPY;
    assert_int_equal(ggml_host_plan_islands(devices, DEVICES, &given, islands, &n), GGML_HOST_OK);
    assert_int_equal(n, 2);
    assert_int_equal(islands[0].n_devices, 3);
    assert_ptr_equal(islands[1].devices[0], devices[3]);
    assert_int_equal(islands[1].n_layers, 0);
    struct virtual_config full;
    host.default_config(&full);
    full.memory = 1000;
    full.node_ns_per_kib = 10;
    full.hosts = 2;
    assert_true(host.configure(1, &full));
    slow.bytes_per_second = 1e11;
    assert_int_equal(ggml_host_plan_islands(devices, DEVICES, &given, islands, &n), GGML_HOST_OK);
    assert_int_equal(islands[0].n_devices, 3);
    assert_ptr_equal(islands[1].devices[0], devices[1]);
    assert_int_equal(islands[1].n_layers, 0);
    slow.bytes_per_second = 0;
    assert_int_equal(ggml_host_plan_islands(devices, DEVICES, &given, islands, &n),
                     GGML_HOST_INVALID_ARGUMENT);
    assert_int_equal(n, 0);
}

static void test_what_can_not_be_is_refused(void **state) {
    struct ggml_island islands[DEVICES];
    struct ggml_split_model none = model;
    ggml_backend_dev_t device = virtual_device(&host, 0);
    size_t n = 1;
    (void)state;
    assert_int_equal(plan(&ethernet, INT64_C(1000000000), islands), 0); // 20 layers fit
    assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_MEMORY);
    none.n_layers = 0;
    assert_int_equal(ggml_host_plan_islands(&device, 1, &none, islands, &n),
                     GGML_HOST_INVALID_ARGUMENT);
    assert_int_equal(n, 0);
    ggml_backend_dev_t two[2] = {device, device};
    assert_int_equal(ggml_host_plan_islands(two, 0, &model, islands, &n),
                     GGML_HOST_INVALID_ARGUMENT);
    assert_int_equal(ggml_host_plan_islands(two, 2, &model, islands, &n),
                     GGML_HOST_INVALID_ARGUMENT);
    two[1] = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    assert_int_equal(ggml_host_plan_islands(two, 2, &model, islands, &n), GGML_HOST_UNSUPPORTED);
    struct virtual_config config;
    host.default_config(&config);
    config.hosts = 2;
    config.hostile_link = 1;
    config.node_ns_per_kib = 10;
    config.far_delay_us = 1;
    assert_true(host.configure(-1, &config));
    two[1] = virtual_device(&host, 1);
    assert_int_equal(ggml_host_plan_islands(two, 2, &model, islands, &n), GGML_HOST_BAD_PLUGIN);
}

// --- a transformer -------------------------------------------------------------------------------

enum { STEPS = 3, PROMPT = 5, WORDS = 40, SPLITTERS = 8 };

static const struct transformer_shape shape = {.layers = 4,
                                               .width = 64,
                                               .heads = 8,
                                               .kv_heads = 4,
                                               .hidden = 128,
                                               .vocabulary = WORDS,
                                               .capacity = 16,
                                               .type = GGML_TYPE_F32};

struct division {
    struct ggml_island islands[DEVICES];
    size_t n;
    ggml_backend_dev_t devices[DEVICES]; // one for each island
    ggml_backend_t streams[DEVICES + 1]; // and the processor's
};

// Three layers fit in two devices.
static void divide(struct division *d, ggml_backend_dev_t *devices, size_t n) {
    static int counts[SPLITTERS]; // meta devices live for the process
    const struct ggml_split_model four = {
        .size = sizeof(four), .n_layers = 4, .layer_bytes = 200000000, .value_bytes = 16384};
    assert_int_equal(ggml_host_plan_islands(devices, n, &four, d->islands, &d->n), GGML_HOST_OK);
    for (size_t i = 0; i < d->n; ++i) {
        struct ggml_island *island = &d->islands[i];
        counts[island->n_devices] = (int)island->n_devices;
        d->devices[i] = ggml_backend_meta_device(island->devices, island->n_devices,
                                                 transformer_split, &counts[island->n_devices]);
        d->streams[i] = ggml_backend_dev_init(d->devices[i], NULL);
        assert_non_null(d->streams[i]);
    }
    d->streams[d->n] = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, NULL);
}

static void division_end(struct division *d) {
    for (size_t i = 0; i <= d->n; ++i)
        ggml_backend_free(d->streams[i]);
}

// What belongs to no layer is with the first or the last one.
static ggml_backend_buffer_type_t place(void *user, int layer) {
    const struct division *d = user;
    const uint32_t wanted = layer < 0 ? 0 : layer == 4 ? 3 : (uint32_t)layer;
    for (size_t i = 0; i < d->n; ++i) {
        const struct ggml_island *island = &d->islands[i];
        if (wanted - island->first_layer < island->n_layers)
            return ggml_backend_dev_buffer_type(d->devices[i]);
    }
    return NULL;
}

static bool compute_step(struct transformer *built, ggml_backend_sched_t sched, int i,
                         float out[WORDS]) {
    struct transformer_graph graph;
    const int n_tokens = i == 0 ? PROMPT : 1, n_past = i == 0 ? 0 : PROMPT + i - 1;
    assert_true(transformer_graph_build(built, n_tokens, n_past, &graph));
    ggml_backend_sched_reset(sched);
    bool good = ggml_backend_sched_alloc_graph(sched, graph.graph);
    if (good) {
        transformer_set_inputs(built, &graph, 7u + (uint64_t)n_past);
        ggml_clear_error();
        good = ggml_backend_sched_graph_compute(sched, graph.graph) == GGML_STATUS_SUCCESS;
    }
    if (good)
        ggml_backend_tensor_get(graph.logits, out, (size_t)(n_tokens - 1) * WORDS * sizeof(float),
                                WORDS * sizeof(float));
    transformer_graph_free(&graph);
    return good;
}

// Logits of a prompt and of tokens after it; how many steps succeeded.
static int generate(struct division *d, float out[STEPS][WORDS]) {
    struct transformer *built = transformer_new(&shape, 3, place, NULL, d);
    if (!built) fail_msg("%s", ggml_last_error());
    ggml_backend_sched_t sched =
        ggml_backend_sched_new(d->streams, NULL, (int)d->n + 1, 1024, false, false);
    int done = 0;
    while (done < STEPS && compute_step(built, sched, done, out[done]))
        ++done;
    const enum ggml_host_status status = ggml_last_status();
    char why[256];
    snprintf(why, sizeof(why), "%s", ggml_last_error());
    ggml_backend_sched_free(sched);
    transformer_free(built);
    if (done < STEPS) {
        assert_int_equal(status, GGML_HOST_DEVICE_LOST);
        assert_non_null(strstr(why, "VIRTUAL2"));
    }
    return done;
}

static void expect_same(float a[STEPS][WORDS], float b[STEPS][WORDS]) {
    float largest = 0, difference = 0;
    for (int i = 0; i < STEPS * WORDS; ++i) {
        const float x = a[i / WORDS][i % WORDS], y = b[i / WORDS][i % WORDS];
        assert_true(isfinite(x) && isfinite(y));
        largest = fmaxf(largest, fabsf(x));
        difference = fmaxf(difference, fabsf(x - y));
    }
    if (!(difference < 2e-5f * largest)) fail_msg("off by %g", (double)difference);
}

// One device of the first island is lost on the way; the others make two islands again.
static void test_a_transformer_over_islands_equals_one_device(void **state) {
    float expected[STEPS][WORDS], got[STEPS][WORDS];
    struct division one, two;
    struct virtual_config config;
    ggml_backend_dev_t devices[DEVICES];
    (void)state;
    set_up(&ethernet, 1000000000, devices);
    divide(&one, devices, 1);
    assert_int_equal(one.n, 1);
    assert_int_equal(generate(&one, expected), STEPS);
    division_end(&one);
    set_up(&ethernet, 300000000, devices);
    divide(&two, devices, DEVICES);
    assert_int_equal(two.n, 2);
    assert_int_equal(two.islands[0].n_layers, 3);
    assert_int_equal(two.islands[1].n_layers, 1);
    assert_int_equal(generate(&two, got), STEPS);
    expect_same(expected, got);
    host.default_config(&config);
    config.lose_after = 40;
    assert_true(host.configure(2, &config));
    assert_true(generate(&two, got) < STEPS);
    division_end(&two);
    devices[2] = devices[3];
    divide(&two, devices, 3);
    assert_int_equal(two.n, 2);
    assert_int_equal(generate(&two, got), STEPS);
    expect_same(expected, got);
    division_end(&two);
    set_up(&ethernet, 300000000, devices); // the lost one, too
}

static int open_host(void **state) {
    (void)state;
    virtual_open(&host, "devices=4");
    return 0;
}

static int close_host(void **state) {
    (void)state;
    return (int)virtual_close(&host);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow_links_separate_islands),
        cmocka_unit_test(test_fast_links_make_one_island),
        cmocka_unit_test(test_no_tensors_are_split_over_slow_links),
        cmocka_unit_test(test_one_island_is_enough_where_all_fits),
        cmocka_unit_test(test_four_may_gain_where_three_do_not),
        cmocka_unit_test(test_given_figures_and_memory_count),
        cmocka_unit_test(test_what_can_not_be_is_refused),
        cmocka_unit_test(test_a_transformer_over_islands_equals_one_device),
    };
    return cmocka_run_group_tests(tests, open_host, close_host);
}
