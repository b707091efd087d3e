// SPDX-License-Identifier: MIT
// Profiles: every node that is computed is in one slice, slices of a stream follow one another, lie
// within the time of their computation, and are written as a trace that JSON readers take.
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/mem.h"
#include "rig.h"

enum { N_DEVICES = 2, CPU = N_DEVICES };

static struct rig rig;
static struct transformer_graph graph;
static struct transformer *model; // of the graph

static int begin(void **state) {
    (void)state;
    rig_open(&rig, N_DEVICES, &rig_shape, NULL, false);
    model = rig.model;
    return transformer_graph_build(model, 4, 0, &graph) ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    transformer_graph_free(&graph);
    rig_close(&rig);
    return 0;
}

static void compute(int times) {
    for (int i = 0; i < times; ++i) {
        transformer_set_inputs(model, &graph, 1);
        assert_int_equal(ggml_backend_sched_graph_compute(rig.sched, graph.graph),
                         GGML_STATUS_SUCCESS);
    }
}

static ggml_sched_profile_t profile_of(int times) {
    assert_true(ggml_backend_sched_alloc_graph(rig.sched, graph.graph));
    assert_int_equal(ggml_sched_profile_begin(rig.sched, 0), GGML_HOST_OK);
    compute(times);
    ggml_sched_profile_t profile = ggml_sched_profile_end(rig.sched);
    assert_non_null(profile);
    return profile;
}

static bool is_computed(const struct ggml_tensor *node) {
    return !ggml_op_is_empty(node->op) && ggml_nelements(node) > 0;
}

// The model whose weights lie in the CPU's memory: the CPU computes it, and tells of each node.
static void use_cpu(void) {
    model = rig.reference;
    transformer_graph_free(&graph);
    assert_true(transformer_graph_build(model, 4, 0, &graph));
}

static void test_covers_every_node(void **state) {
    (void)state;
    enum { RUNS = 3 };
    use_cpu();
    const int n = ggml_graph_n_nodes(graph.graph);
    int n_computed = 0;
    for (int i = 0; i < n; ++i) {
        n_computed += is_computed(ggml_graph_node(graph.graph, i));
    }
    ggml_sched_profile_t profile = profile_of(RUNS);
    assert_int_equal(ggml_sched_profile_lost(profile), 0);
    int counted[RUNS + 1] = {0};
    bool *seen = calloc((size_t)n * (RUNS + 1), sizeof(seen[0]));
    uint64_t last_end = 0;
    for (size_t i = 0; i < ggml_sched_profile_count(profile); ++i) {
        const struct ggml_sched_slice *slice = ggml_sched_profile_get(profile, i);
        assert_true(slice->begin_ns <= slice->end_ns);
        if (slice->kind != GGML_SCHED_SLICE_NODE) continue;
        assert_int_equal(slice->stream, CPU);
        assert_in_range(slice->run, 1, RUNS);
        assert_in_range(slice->node, 0, n - 1);
        assert_true(slice->begin_ns >= last_end);
        last_end = slice->end_ns;
        const struct ggml_tensor *node = ggml_graph_node(graph.graph, slice->node);
        assert_true(is_computed(node));
        assert_string_equal(slice->name, node->name);
        assert_string_equal(slice->op, ggml_op_desc(node));
        assert_string_equal(slice->type, ggml_type_name(node->type));
        assert_memory_equal(slice->ne, node->ne, sizeof(node->ne));
        bool *once = &seen[(size_t)slice->run * (size_t)n + (size_t)slice->node];
        assert_false(*once);
        *once = true;
        counted[slice->run] += slice->n_nodes;
    }
    for (int run = 1; run <= RUNS; ++run) {
        assert_int_equal(counted[run], n_computed);
    }
    free(seen);
    ggml_sched_profile_free(profile);
}

// The sum of the slices is no longer than the time from begin to end, and most of that of a graph
// that is long enough.
static void test_within_wall_time(void **state) {
    (void)state;
    const int64_t before = ggml_time_us();
    ggml_sched_profile_t profile = profile_of(2);
    const uint64_t wall = (uint64_t)(ggml_time_us() - before + 1) * 1000;
    uint64_t sum = 0, in_splits = 0;
    for (size_t i = 0; i < ggml_sched_profile_count(profile); ++i) {
        const struct ggml_sched_slice *slice = ggml_sched_profile_get(profile, i);
        assert_true(slice->end_ns <= wall);
        if (slice->kind == GGML_SCHED_SLICE_NODE) sum += slice->end_ns - slice->begin_ns;
        if (slice->kind == GGML_SCHED_SLICE_SPLIT) in_splits += slice->end_ns - slice->begin_ns;
    }
    assert_true(sum <= wall);
    assert_true(in_splits > 0 && in_splits <= wall);
    ggml_sched_profile_free(profile);
}

// Devices without the extension: splits, copies and waits as the report says them.
static void test_splits_and_copies(void **state) {
    (void)state;
    ggml_sched_profile_t profile = profile_of(1);
    ggml_sched_report_t report = ggml_sched_report_new(rig.sched, NULL);
    size_t n_splits = 0, n_copies = 0, expected_copies = 0, n_waits = 0;
    for (size_t i = 0; i < ggml_sched_profile_count(profile); ++i) {
        const struct ggml_sched_slice *slice = ggml_sched_profile_get(profile, i);
        n_copies += slice->kind == GGML_SCHED_SLICE_COPY;
        n_waits += slice->kind == GGML_SCHED_SLICE_WAIT;
        if (slice->kind != GGML_SCHED_SLICE_SPLIT) continue;
        const struct ggml_sched_split_info *split = ggml_sched_report_split(report, n_splits++);
        assert_non_null(split);
        assert_int_equal(slice->node, split->first_node);
        assert_int_equal(slice->n_nodes, split->n_nodes);
        assert_string_equal(slice->device, split->device);
    }
    for (size_t i = 0; i < ggml_sched_report_split_count(report); ++i) {
        expected_copies += ggml_sched_report_split(report, i)->n_copies;
    }
    assert_int_equal(n_splits, ggml_sched_report_split_count(report));
    assert_int_equal(n_copies, expected_copies);
    assert_true(n_waits > 0);
    ggml_sched_report_free(report);
    ggml_sched_profile_free(profile);
}

static void check_events(json_t *events) {
    size_t i;
    json_t *event;
    double last_end[N_DEVICES + 2] = {0};
    json_array_foreach(events, i, event) {
        const char *phase = json_string_value(json_object_get(event, "ph"));
        assert_non_null(json_string_value(json_object_get(event, "name")));
        assert_int_equal(json_integer_value(json_object_get(event, "pid")), 1);
        const json_int_t track = json_integer_value(json_object_get(event, "tid"));
        assert_in_range(track, 0, N_DEVICES + 1);
        if (strcmp(phase, "M") == 0) continue;
        assert_string_equal(phase, "X");
        const double ts = json_number_value(json_object_get(event, "ts"));
        const double dur = json_number_value(json_object_get(event, "dur"));
        assert_true(json_is_real(json_object_get(event, "ts")) && dur >= 0);
        if (track == 0) continue; // copies contain waits
        assert_true(ts >= last_end[track] - 0.001);
        last_end[track] = ts + dur;
    }
}

// Names that no JSON may contain as they are; a locale whose decimal point is a comma.
static void test_written(void **state) {
    (void)state;
    use_cpu();
    ggml_set_name(graph.logits, "lo\"g\n\\its\x01\xff");
    ggml_set_name(ggml_graph_node(graph.graph, 0), "gr\xc3\xbc\xc3\x9f");
    const bool has_comma = setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
    ggml_sched_profile_t profile = profile_of(1);
    assert_non_null(strstr(ggml_sched_profile_text(profile), "MUL_MAT"));
    assert_ptr_equal(ggml_sched_profile_text(profile), ggml_sched_profile_text(profile));
    const char *text = ggml_sched_profile_json(profile);
    assert_non_null(text);
    assert_non_null(strstr(text, "gr\xc3\xbc\xc3\x9f"));
    if (has_comma) setlocale(LC_ALL, "C");
    json_error_t error;
    json_t *json = json_loads(text, 0, &error);
    if (!json) fail_msg("line %d: %s", error.line, error.text);
    json_t *events = json_object_get(json, "traceEvents");
    // A name for the process and one for each track.
    assert_int_equal(json_array_size(events),
                     ggml_sched_profile_count(profile) + 1 + 1 + N_DEVICES + 1);
    check_events(events);
    json_decref(json);

    char path[64];
    snprintf(path, sizeof(path), "test_profile.%p.json", (void *)profile);
    assert_int_equal(ggml_sched_profile_write(profile, path), GGML_HOST_OK);
    json = json_load_file(path, 0, &error);
    assert_non_null(json);
    json_decref(json);
    remove(path);
    assert_int_equal(ggml_sched_profile_write(profile, "no-such-folder/trace.json"),
                     GGML_HOST_IO_ERROR);
    ggml_sched_profile_free(profile);
}

// What does not fit is counted, and what fits is there.
static void test_capacity(void **state) {
    (void)state;
    use_cpu();
    assert_true(ggml_backend_sched_alloc_graph(rig.sched, graph.graph));
    assert_int_equal(ggml_sched_profile_begin(rig.sched, 5), GGML_HOST_OK);
    compute(1);
    ggml_sched_profile_t profile = ggml_sched_profile_end(rig.sched);
    size_t n = 0;
    for (size_t i = 0; i < ggml_sched_profile_count(profile); ++i) {
        n += ggml_sched_profile_get(profile, i)->kind == GGML_SCHED_SLICE_NODE;
    }
    assert_int_equal(n, 5);
    assert_true(ggml_sched_profile_lost(profile) > 0);
    assert_non_null(strstr(ggml_sched_profile_text(profile), "slices were lost"));
    ggml_sched_profile_free(profile);
}

static void be_hostile(enum hostile_profile kind) {
    struct virtual_config config = rig.config;
    config.hostile_profile = kind;
    assert_true(rig.host.configure(-1, &config));
    ggml_backend_sched_reset(rig.sched);
}

// Of the devices, not of the CPU.
static size_t count_slices(ggml_sched_profile_t profile, enum ggml_sched_slice_kind kind) {
    size_t n = 0;
    for (size_t i = 0; i < ggml_sched_profile_count(profile); ++i) {
        const struct ggml_sched_slice *slice = ggml_sched_profile_get(profile, i);
        n += slice->kind == kind && slice->stream != CPU;
    }
    return n;
}

// A stream that says each time that there is more is read up to what it may keep: before the graph,
// and at the end.
static void test_a_stream_that_never_ends(void **state) {
    enum { CAPACITY = 1000, AT_ONCE = 256 };
    (void)state;
    be_hostile(HOSTILE_PROFILE_ENDLESS);
    assert_true(ggml_backend_sched_alloc_graph(rig.sched, graph.graph));
    assert_int_equal(ggml_sched_profile_begin(rig.sched, CAPACITY), GGML_HOST_OK);
    compute(1);
    ggml_sched_profile_t profile = ggml_sched_profile_end(rig.sched);
    assert_non_null(profile);
    assert_true(ggml_sched_profile_lost(profile) > 0);
    assert_true(ggml_sched_profile_lost(profile) <= 2 * N_DEVICES * (CAPACITY + 2 * AT_ONCE));
    ggml_sched_profile_free(profile);
}

// Of what can't be nothing is kept, and each slice of it is counted as lost, however many there are
// said to be.
static void test_slices_that_cannot_be(void **state) {
    (void)state;
    be_hostile(HOSTILE_PROFILE_LIES);
    ggml_sched_profile_t profile = profile_of(1);
    // Read before the graph, when nothing can be, and at the end.
    assert_int_equal(count_slices(profile, GGML_SCHED_SLICE_NODE), N_DEVICES);
    assert_int_equal(ggml_sched_profile_lost(profile), N_DEVICES * (2 * HOSTILE_SLICES - 1));
    ggml_sched_profile_free(profile);
}

static void test_a_hostile_extension(void **state) {
    (void)state;
    be_hostile(HOSTILE_PROFILE_NO_STATUS);
    assert_int_equal(ggml_sched_profile_begin(rig.sched, 0), GGML_HOST_BAD_PLUGIN);
    assert_int_equal(ggml_last_status(), GGML_HOST_BAD_PLUGIN);
    assert_non_null(strstr(ggml_last_error(), "12345"));
    // A table that lacks something is none: the scheduler tells what it knows itself.
    for (int kind = HOSTILE_PROFILE_NO_BEGIN; kind < HOSTILE_PROFILE_COUNT; ++kind) {
        be_hostile((enum hostile_profile)kind);
        ggml_sched_profile_t profile = profile_of(1);
        assert_true(count_slices(profile, GGML_SCHED_SLICE_SPLIT) > 0);
        assert_int_equal(count_slices(profile, GGML_SCHED_SLICE_NODE), 0);
        ggml_sched_profile_free(profile);
    }
}

static bool every_second(struct ggml_tensor *tensor, bool ask, void *user) {
    int *n = user;
    (void)tensor;
    return ask ? ++*n % 2 == 0 : true;
}

// With an evaluation callback nodes are computed in pieces, whose numbers are those of the graph.
static void test_pieces(void **state) {
    (void)state;
    int asked = 0;
    use_cpu();
    ggml_backend_sched_set_eval_callback(rig.sched, every_second, &asked);
    ggml_sched_profile_t profile = profile_of(1);
    int last = -1;
    for (size_t i = 0; i < ggml_sched_profile_count(profile); ++i) {
        const struct ggml_sched_slice *slice = ggml_sched_profile_get(profile, i);
        if (slice->kind != GGML_SCHED_SLICE_NODE) continue;
        assert_true(slice->node > last);
        last = slice->node;
        assert_string_equal(slice->name, ggml_graph_node(graph.graph, slice->node)->name);
    }
    assert_true(last > 0);
    ggml_sched_profile_free(profile);
    ggml_backend_sched_set_eval_callback(rig.sched, NULL, NULL);
}

static void test_misuse(void **state) {
    (void)state;
    assert_int_equal(ggml_sched_profile_begin(NULL, 0), GGML_HOST_INVALID_ARGUMENT);
    assert_null(ggml_sched_profile_end(NULL));
    assert_null(ggml_sched_profile_end(rig.sched));
    assert_int_equal(ggml_sched_profile_begin(rig.sched, 0), GGML_HOST_OK);
    assert_int_equal(ggml_sched_profile_begin(rig.sched, 0), GGML_HOST_BUSY);
    // Two schedulers with a stream in common.
    ggml_backend_sched_t other =
        ggml_backend_sched_new(&rig.streams[CPU], NULL, 1, 100, false, false);
    assert_int_equal(ggml_sched_profile_begin(other, 0), GGML_HOST_BUSY);
    assert_non_null(strstr(ggml_last_error(), "CPU"));
    ggml_sched_profile_t profile = ggml_sched_profile_end(rig.sched);
    assert_non_null(profile);
    assert_null(ggml_sched_profile_get(profile, ggml_sched_profile_count(profile)));
    assert_int_equal(ggml_sched_profile_write(profile, NULL), GGML_HOST_INVALID_ARGUMENT);
    ggml_sched_profile_free(profile);
    ggml_sched_profile_free(NULL);
    // A scheduler that is freed while it records frees its streams for others.
    assert_int_equal(ggml_sched_profile_begin(other, 0), GGML_HOST_OK);
    ggml_backend_sched_free(other);
    assert_int_equal(ggml_sched_profile_begin(rig.sched, 0), GGML_HOST_OK);
    ggml_sched_profile_free(ggml_sched_profile_end(rig.sched));
}

static long allocations_left;

static bool may_allocate(void *context) {
    (void)context;
    return allocations_left-- > 0;
}

// The graph is computed all the same.
static void test_no_memory(void **state) {
    (void)state;
    bool done = false;
    assert_true(ggml_backend_sched_alloc_graph(rig.sched, graph.graph));
    transformer_set_inputs(model, &graph, 1);
    for (long n = 0; !done; ++n) {
        allocations_left = n;
        ggml_sched_profile_t profile = NULL;
        ggml_mem_set_fault_hook(may_allocate, NULL);
        const enum ggml_host_status status = ggml_sched_profile_begin(rig.sched, 1000);
        ggml_mem_set_fault_hook(NULL, NULL);
        if (status != GGML_HOST_OK) {
            assert_int_equal(status, GGML_HOST_OUT_OF_MEMORY);
            continue;
        }
        compute(1);
        ggml_mem_set_fault_hook(may_allocate, NULL);
        profile = ggml_sched_profile_end(rig.sched);
        done = profile && ggml_sched_profile_json(profile) && ggml_sched_profile_text(profile);
        ggml_mem_set_fault_hook(NULL, NULL);
        if (!done) assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_MEMORY);
        ggml_sched_profile_free(profile);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_covers_every_node),
        TEST(test_within_wall_time),
        TEST(test_splits_and_copies),
        TEST(test_written),
        TEST(test_capacity),
        TEST(test_a_stream_that_never_ends),
        TEST(test_slices_that_cannot_be),
        TEST(test_a_hostile_extension),
        TEST(test_pieces),
        TEST(test_misuse),
        TEST(test_no_memory),
    };
    return cmocka_run_group_tests_name("sched profile", tests, NULL, NULL);
}
