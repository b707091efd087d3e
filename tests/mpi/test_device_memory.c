// SPDX-License-Identifier: MIT
// Tensors in memory of two nodes' devices that is not the host's: set, read, computed with, copied
// between nodes and summed. Started by run.sh; what the nodes did for it check_device_memory.py
// sees.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ggml-alloc.h"
#include "ggml-host.h"
#include "ggml-impl.h"
#include "ggml-plugin.h"

enum { BYTES = (1 << 20) + 1234, SHIFT = 4096 + 60 };

static ggml_backend_dev_t first, second, other;

static int start(void **state) {
    (void)state;
    ggml_backend_load_all();
    first = ggml_backend_dev_by_name("MPI1:CUDA0");
    second = ggml_backend_dev_by_name("MPI2:CUDA0");
    other = ggml_backend_dev_by_name("MPI1:CUDA1");
    return first && second && other ? 0 : -1;
}

// Numbers in a buffer of a device, on a stream of it.
struct place {
    struct ggml_context *ctx;
    ggml_backend_t stream;
    ggml_backend_buffer_t buffer;
    struct ggml_tensor *tensor;
    struct ggml_cgraph *triple; // multiplies each by 3
};

static void place_new(struct place *place, ggml_backend_dev_t device) {
    const struct ggml_init_params params = {.mem_size = 8 * ggml_tensor_overhead() +
                                                        ggml_graph_overhead_custom(2, false),
                                            .no_alloc = true};
    *place =
        (struct place){.ctx = ggml_init(params), .stream = ggml_backend_dev_init(device, NULL)};
    assert_true(place->ctx && place->stream);
    place->tensor = ggml_new_tensor_1d(place->ctx, GGML_TYPE_F32, BYTES / sizeof(float));
    place->triple = ggml_new_graph_custom(place->ctx, 2, false);
    ggml_build_forward_expand(place->triple, ggml_scale_inplace(place->ctx, place->tensor, 3.0f));
    place->buffer = ggml_backend_alloc_ctx_tensors(place->ctx, place->stream);
    assert_non_null(place->buffer);
}

static void place_free(struct place *place) {
    ggml_backend_free(place->stream);
    ggml_backend_buffer_free(place->buffer);
    ggml_free(place->ctx);
}

// Exact after any few steps of the tests.
static float number(int seed, size_t i) {
    return (float)((i * 7 + (size_t)seed * 13) % 1021) - 500.0f;
}

static float *numbers_new(int seed, size_t n) {
    float *numbers = malloc(n * sizeof(float));
    assert_non_null(numbers);
    for (size_t i = 0; i < n; ++i)
        numbers[i] = number(seed, i);
    return numbers;
}

static void set(struct place *place, int seed) {
    const size_t bytes = ggml_nbytes(place->tensor);
    float *numbers = numbers_new(seed, bytes / sizeof(float));
    ggml_backend_tensor_set(place->tensor, numbers, 0, bytes);
    free(numbers);
}

// Each number of the tensor is `factor` times the one that was set, and `more` of another one.
static void expect(const struct place *place, int seed, float factor, int other_seed, float more) {
    const size_t bytes = ggml_nbytes(place->tensor), n = bytes / sizeof(float);
    float *numbers = malloc(bytes);
    size_t wrong = 0;
    assert_non_null(numbers);
    memset(numbers, 0xff, bytes);
    ggml_backend_tensor_get(place->tensor, numbers, 0, bytes);
    for (size_t i = 0; i < n; ++i)
        wrong += numbers[i] != factor * number(seed, i) + more * number(other_seed, i);
    free(numbers);
    assert_int_equal(wrong, 0);
}

static void test_what_was_set_is_read(void **state) {
    (void)state;
    struct place place;
    place_new(&place, first);
    set(&place, 1);
    expect(&place, 1, 1, 0, 0);
    place_free(&place);
}

// Also by a stream, which queues it.
static void test_parts(void **state) {
    (void)state;
    const size_t n = BYTES / 2 / sizeof(float);
    struct place place;
    place_new(&place, first);
    set(&place, 1);
    float *numbers = numbers_new(2, n), *read = numbers_new(0, n);
    ggml_backend_tensor_set_async(place.stream, place.tensor, numbers, SHIFT, n * sizeof(float));
    assert_int_equal(ggml_backend_graph_compute_async(place.stream, place.triple), 0);
    ggml_backend_tensor_get_async(place.stream, place.tensor, read, SHIFT, n * sizeof(float));
    ggml_backend_synchronize(place.stream);
    for (size_t i = 0; i < n; ++i)
        assert_true(read[i] == 3 * numbers[i]);
    ggml_backend_tensor_get(place.tensor, read, 0, SHIFT);
    for (size_t i = 0; i < SHIFT / sizeof(float); ++i)
        assert_true(read[i] == 3 * number(1, i));
    free(numbers);
    free(read);
    place_free(&place);
}

static void test_a_second_device_of_a_node(void **state) {
    (void)state;
    struct place place;
    place_new(&place, other);
    set(&place, 4);
    assert_int_equal(ggml_backend_graph_compute(place.stream, place.triple), 0);
    expect(&place, 4, 3, 0, 0);
    place_free(&place);
}

// The emulated device works when it is waited for, and no sooner: bytes that go before that are
// those of before the graph.
static void test_copies_between_nodes_come_after_graphs_and_before_others(void **state) {
    (void)state;
    enum { TIMES = 3 };
    struct place a, b;
    place_new(&a, first);
    place_new(&b, second);
    set(&a, 5);
    set(&b, 6);
    float factor = 1;
    for (int i = 0; i < TIMES; ++i) {
        struct place *from = i % 2 ? &b : &a, *to = i % 2 ? &a : &b;
        assert_int_equal(ggml_backend_graph_compute_async(from->stream, from->triple), 0);
        ggml_backend_tensor_copy_async(from->stream, to->stream, from->tensor, to->tensor);
        factor *= 3;
    }
    ggml_backend_synchronize(a.stream);
    ggml_backend_synchronize(b.stream);
    expect(&b, 5, factor, 0, 0);
    expect(&a, 5, factor, 0, 0);
    place_free(&a);
    place_free(&b);
}

static void test_sums(void **state) {
    (void)state;
    const struct ggml_extension_comm *comm = ggml_backend_reg_get_extension(
        ggml_backend_dev_backend_reg(first), GGML_EXTENSION_COMM, GGML_EXTENSION_COMM_REVISION);
    struct place places[2];
    ggml_comm_group_t group;
    assert_non_null(comm);
    place_new(&places[0], first);
    place_new(&places[1], second);
    ggml_backend_t streams[2] = {places[0].stream, places[1].stream};
    struct ggml_tensor *parts[2] = {places[0].tensor, places[1].tensor};
    const struct ggml_comm_ranks ranks = {
        .size = sizeof(ranks), .n_ranks = 2, .n_streams = 2, .streams = streams};
    assert_int_equal(comm->group_new(&ranks, &group), GGML_HOST_OK);
    for (int i = 0; i < 2; ++i) {
        set(&places[i], 7 + i);
        assert_int_equal(ggml_backend_graph_compute_async(streams[i], places[i].triple), 0);
    }
    assert_int_equal(comm->all_reduce(group, GGML_COMM_SUM, parts, NULL), GGML_HOST_OK);
    for (int i = 0; i < 2; ++i)
        ggml_backend_synchronize(streams[i]);
    for (int i = 0; i < 2; ++i)
        expect(&places[i], 7, 3, 8, 3);
    // What one rank holds doesn't count: it gets the other's.
    const uint8_t counts[2] = {0, 1};
    set(&places[0], 9);
    assert_int_equal(comm->all_reduce(group, GGML_COMM_SUM, parts, counts), GGML_HOST_OK);
    for (int i = 0; i < 2; ++i)
        ggml_backend_synchronize(streams[i]);
    for (int i = 0; i < 2; ++i)
        expect(&places[i], 7, 3, 8, 3);
    comm->group_free(group);
    for (int i = 0; i < 2; ++i)
        place_free(&places[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_set_is_read),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_a_second_device_of_a_node),
        cmocka_unit_test(test_copies_between_nodes_come_after_graphs_and_before_others),
        cmocka_unit_test(test_sums),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
