// SPDX-License-Identifier: MIT
// Bytes that go to an isolated device's own memory and back: in messages, in pieces, and not at
// all.
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include <pthread.h>

#include "ggml-alloc.h"
#include "isolate/protocol.h"
#include "isolated.h"
#include "virtual_host.h"

static void test_the_device_knows_what_memory_is_for(void **state) {
    struct virtual_host host;
    struct small small;
    float y;
    (void)state;
    virtual_open(&host, "devices=1,fixed_weights=1");
    ggml_backend_dev_t isolated = isolate(virtual_device(&host, 0), 0);
    small_begin(&small, isolated);
    assert_int_equal(small_compute(&small, 3, &y), GGML_STATUS_SUCCESS);
    assert_int_equal(ggml_last_status(), GGML_HOST_OK);
    ggml_backend_buffer_set_usage(small.buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    assert_int_equal(ggml_last_status(), GGML_HOST_OK);
    assert_int_equal(small_compute(&small, 4, &y), GGML_STATUS_SUCCESS);
    assert_non_null(strstr(ggml_last_error(), "weights are fixed"));
    assert_true(y == 9);
    ggml_clear_error();
    small_end(&small);
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
    assert_int_equal(virtual_close(&host), 0);
}

// Nobody waits for a few bytes to be set. What uses them says that they were not.
static void test_a_transfer_that_fails_later_fails_what_follows(void **state) {
    struct virtual_host host;
    struct small small;
    float y;
    (void)state;
    virtual_open(&host, "devices=1,fail_copy_after=2");
    ggml_backend_dev_t isolated = isolate(virtual_device(&host, 0), 0);
    small_begin(&small, isolated);
    assert_int_equal(small_compute(&small, 3, &y), GGML_STATUS_SUCCESS);
    assert_true(y == 9);
    ggml_clear_error();
    assert_int_equal(small_compute(&small, 4, &y), GGML_STATUS_FAILED);
    assert_non_null(strstr(ggml_last_error(), "an earlier transfer failed: "));
    assert_non_null(strstr(ggml_last_error(), "was told to fail"));
    assert_int_equal(small_compute(&small, 5, &y), GGML_STATUS_SUCCESS);
    assert_true(y == 25);
    small_end(&small);
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
    assert_int_equal(virtual_close(&host), 0);
}

// Sets the last bytes of a tensor and reads all of them.
static void expect_transfer(struct ggml_tensor *x, size_t size, char *sent, char *back) {
    const size_t whole = ggml_nbytes(x), before = whole - size;
    for (size_t k = 0; k < size; ++k)
        sent[k] = (char)(k * 7 + size * 13 + k / 256);
    memset(back, 1, whole);
    ggml_clear_error();
    ggml_backend_tensor_memset(x, 0, 0, whole);
    ggml_backend_tensor_set(x, sent, before, size);
    ggml_backend_tensor_get(x, back, 0, whole);
    assert_int_equal(ggml_last_status(), GGML_HOST_OK);
    for (size_t k = 0; k < before; ++k)
        if (back[k] != 0) fail_msg("byte %zu before the last %zu is %d", k, size, back[k]);
    if (memcmp(back + before, sent, size) != 0) fail_msg("other bytes, of the last %zu", size);
}

// A message carries few, shared memory a piece at a time, of which several are under way. Blocks of
// Q4_0 have 18 bytes.
static void test_transfers_of_any_size(void **state) {
    enum { PIECE = (4 << 20) / 18 * 18, MOST = 9 * PIECE };
    static const size_t sizes[] = {18,        1800,      ISOLATE_POST_BYTES / 18 * 18,
                                   20 * 1820, PIECE,     PIECE + 18,
                                   2 * PIECE, 3 * PIECE, 8 * PIECE - 18,
                                   MOST};
    char *sent = malloc(MOST), *back = malloc(MOST);
    struct virtual_host host;
    const struct ggml_init_params params = {.mem_size = 2 * ggml_tensor_overhead(),
                                            .no_alloc = true};
    (void)state;
    assert_true(sent && back);
    virtual_open(&host, "devices=1");
    ggml_backend_dev_t isolated = isolate(virtual_device(&host, 0), 0);
    struct ggml_context *ctx = ggml_init(params);
    struct ggml_tensor *x = ggml_new_tensor_1d(ctx, GGML_TYPE_Q4_0, MOST / 18 * 32);
    assert_int_equal(ggml_nbytes(x), MOST);
    ggml_backend_buffer_t buffer =
        ggml_backend_alloc_ctx_tensors_from_buft(ctx, ggml_backend_dev_buffer_type(isolated));
    assert_non_null(buffer);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i)
        expect_transfer(x, sizes[i], sent, back);
    ggml_backend_buffer_set_usage(buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    expect_transfer(x, 18, sent, back);
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
    assert_int_equal(virtual_close(&host), 0);
    free(sent);
    free(back);
}

// A device may take nothing but whole tensors, or rows: a tensor of three rows, longer than a piece
// and shorter, and of a length that isn't a multiple of a block's.
static void test_transfers_in_units_of_the_device(void **state) {
    static const struct {
        const char *options;
        size_t row;
    } units[] = {{"devices=1,unit=0", 3 * 18 * 100000},
                 {"devices=1,unit=5400000", 18 * 300000},
                 {"devices=1,unit=1800000", 18 * 100000},
                 {"devices=1,unit=2000004", 18 * 333334}};
    const struct ggml_init_params params = {.mem_size = 2 * ggml_tensor_overhead(),
                                            .no_alloc = true};
    (void)state;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); ++i) {
        const size_t row = units[i].row, size = 3 * row;
        char *sent = malloc(size), *back = malloc(size);
        struct virtual_host host;
        assert_true(sent && back);
        virtual_open(&host, units[i].options);
        ggml_backend_dev_t isolated = isolate(virtual_device(&host, 0), 0);
        struct ggml_context *ctx = ggml_init(params);
        struct ggml_tensor *x = ggml_new_tensor_1d(ctx, GGML_TYPE_Q4_0, (int64_t)(size / 18 * 32));
        ggml_backend_buffer_t buffer =
            ggml_backend_alloc_ctx_tensors_from_buft(ctx, ggml_backend_dev_buffer_type(isolated));
        assert_non_null(buffer);
        expect_transfer(x, size, sent, back);
        if (i > 0) expect_transfer(x, row, sent, back);
        ggml_backend_tensor_set(x, sent, i > 0 ? 18 : row, row);
        assert_int_equal(ggml_last_status(), GGML_HOST_UNSUPPORTED);
        ggml_backend_buffer_free(buffer);
        ggml_free(ctx);
        assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
        assert_int_equal(virtual_close(&host), 0);
        free(sent);
        free(back);
    }
}

// Bytes of the largest memory that is shared with a process.
static size_t most_shared(void) {
    char line[512];
    size_t most = 0;
    FILE *file = fopen("/proc/self/maps", "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file)) {
        size_t start, end;
        if (!strstr(line, "memfd:ggml-isolated")) continue;
        assert_int_equal(sscanf(line, "%zx-%zx", &start, &end), 2);
        if (end - start > most) most = end - start;
    }
    fclose(file);
    return most;
}

// What a whole tensor took of shared memory is given back when graphs have gone without for a
// while.
static void test_shared_memory_is_given_back(void **state) {
    enum { SIZE = 40 << 20 };
    const struct ggml_init_params params = {.mem_size = 2 * ggml_tensor_overhead(),
                                            .no_alloc = true};
    char *sent = malloc(SIZE), *back = malloc(SIZE);
    struct virtual_host host;
    struct small small;
    float y;
    (void)state;
    assert_true(sent && back);
    virtual_open(&host, "devices=1,unit=0");
    ggml_backend_dev_t isolated = isolate(virtual_device(&host, 0), 0);
    small_begin(&small, isolated);
    struct ggml_context *ctx = ggml_init(params);
    struct ggml_tensor *x = ggml_new_tensor_1d(ctx, GGML_TYPE_I8, SIZE);
    ggml_backend_buffer_t buffer =
        ggml_backend_alloc_ctx_tensors_from_buft(ctx, ggml_backend_dev_buffer_type(isolated));
    assert_non_null(buffer);
    for (int i = 0; i < 2; ++i) {
        expect_transfer(x, SIZE, sent, back);
        for (int k = 0; k < 100; ++k) {
            assert_int_equal(small_compute(&small, (float)k, &y), GGML_STATUS_SUCCESS);
            assert_true(y == (float)(k * k));
            if (k == 0) assert_true(most_shared() >= SIZE);
        }
        assert_in_range(most_shared(), 1, 16 << 20);
    }
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);
    small_end(&small);
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
    assert_int_equal(virtual_close(&host), 0);
    free(sent);
    free(back);
}

// Tensors have there the alignment that the device asks for, which may be more than a page's.
static void use_aligned(const char *options) {
    enum { BUFFERS = 8, ALIGNMENT = 1 << 16, SIZE = 3 << 12 };
    ggml_backend_buffer_t buffers[BUFFERS];
    struct virtual_host host;
    struct small small;
    float y;
    virtual_open(&host, options);
    ggml_clear_error();
    ggml_backend_dev_t isolated = isolate(virtual_device(&host, 0), 0);
    for (int i = 0; i < BUFFERS; ++i) {
        buffers[i] =
            ggml_backend_buft_alloc_buffer(ggml_backend_dev_buffer_type(isolated), i * SIZE + 1);
        assert_non_null(buffers[i]);
        assert_int_equal((uintptr_t)ggml_backend_buffer_get_base(buffers[i]) % ALIGNMENT, 0);
        small_begin(&small, isolated);
        assert_int_equal(small_compute(&small, 3, &y), GGML_STATUS_SUCCESS);
        small_end(&small);
    }
    for (int i = 0; i < BUFFERS; ++i)
        ggml_backend_buffer_free(buffers[i]);
    assert_int_equal(ggml_last_status(), GGML_HOST_OK);
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
    assert_int_equal(virtual_close(&host), 0);
}

static void test_the_alignment_of_the_device(void **state) {
    (void)state;
    use_aligned("devices=1,alignment=65536");
    use_aligned("devices=1,alignment=65536,host_memory=1,host_import=1");
}

// Each of eight pieces takes 0.2 seconds, and the process is killed in the second one: the
// application has sent it and copies the next meanwhile, or the one before.
static void test_a_kill_in_the_middle_of_a_transfer(void **state) {
    enum { SIZE = 8 * (4 << 20) };
    const struct ggml_init_params params = {.mem_size = 2 * ggml_tensor_overhead(),
                                            .no_alloc = true};
    char *bytes = calloc(1, SIZE);
    (void)state;
    assert_non_null(bytes);
    for (int reads = 0; reads < 2; ++reads) {
        struct virtual_host host;
        pthread_t thread;
        virtual_open(&host, "devices=1,copy_delay_us=200000");
        ggml_backend_dev_t isolated = isolate(virtual_device(&host, 0), 0);
        struct ggml_context *ctx = ggml_init(params);
        struct ggml_tensor *x = ggml_new_tensor_1d(ctx, GGML_TYPE_I8, SIZE);
        ggml_backend_buffer_t buffer =
            ggml_backend_alloc_ctx_tensors_from_buft(ctx, ggml_backend_dev_buffer_type(isolated));
        assert_non_null(buffer);
        assert_int_equal(pthread_create(&thread, NULL, kill_later, isolated), 0);
        if (reads)
            ggml_backend_tensor_get(x, bytes, 0, SIZE);
        else
            ggml_backend_tensor_set(x, bytes, 0, SIZE);
        expect_lost();
        pthread_join(thread, NULL);
        ggml_backend_buffer_free(buffer);
        ggml_free(ctx);
        assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
        assert_int_equal(virtual_close(&host), 0);
    }
    free(bytes);
}

// Resets the buffer and places its tensors where they were.
static void place_again(struct small *small) {
    struct ggml_tensor *const again[] = {small->x, small->y};
    ggml_backend_buffer_reset(small->buffer);
    for (int i = 0; i < 2; ++i) {
        void *data = again[i]->data;
        again[i]->buffer = NULL;
        again[i]->data = NULL;
        assert_int_equal(ggml_backend_tensor_alloc(small->buffer, again[i], data),
                         GGML_STATUS_SUCCESS);
    }
}

// A device may write to a tensor when it is placed, which nobody waits for in memory of graphs:
// what is set comes after that, as in one process, also where both processes have the memory
// mapped.
static void set_what_was_placed(const char *options, int32_t flags) {
    struct virtual_host host;
    struct small small;
    const float values[4] = {5, 1, 2, 3};
    float y = 0;
    virtual_open(&host, options);
    ggml_backend_dev_t isolated = isolate(virtual_device(&host, 0), 0);
    small_begin(&small, isolated);
    ggml_backend_buffer_set_usage(small.buffer, GGML_BACKEND_BUFFER_USAGE_COMPUTE);
    small.x->flags |= flags;
    place_again(&small);
    assert_int_equal(small_compute(&small, 3, &y), GGML_STATUS_SUCCESS);
    if (!(y == 9)) fail_msg("%s: %g", options, (double)y);
    if (flags & GGML_TENSOR_FLAG_INPUT && ggml_backend_buffer_is_host(small.buffer)) {
        place_again(&small);
        memcpy(small.x->data, values, sizeof(values));
        assert_int_equal(ggml_backend_graph_compute(small.stream, small.graph),
                         GGML_STATUS_SUCCESS);
        assert_true(((const float *)small.y->data)[0] == 25);
    }
    assert_int_equal(ggml_last_status(), GGML_HOST_OK);
    small_end(&small);
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
    assert_int_equal(virtual_close(&host), 0);
}

static void test_what_is_set_comes_after_what_placing_does(void **state) {
    static const char wraps[] =
        "devices=1,attaches=9,placing_us=100000,host_memory=1,host_import=1";
    (void)state;
    set_what_was_placed("devices=1,attaches=9,placing_us=100000", 0);
    set_what_was_placed(wraps, 0);
    set_what_was_placed(wraps, GGML_TENSOR_FLAG_INPUT);
}

// A graph with a tensor that could not be placed fails as often as it is computed, until that is.
// What is placed as it was has the number that it had, so that it isn't sent again.
static void test_a_placing_that_fails_later(void **state) {
    struct virtual_host host;
    struct small small;
    float y = 0;
    (void)state;
    virtual_open(&host, "devices=1,attaches=2");
    ggml_backend_dev_t isolated = isolate(virtual_device(&host, 0), 0);
    small_begin(&small, isolated);
    const void *extras[] = {small.x->extra, small.y->extra};
    place_again(&small);
    assert_ptr_equal(small.x->extra, extras[0]);
    assert_ptr_equal(small.y->extra, extras[1]);
    assert_int_equal(small_compute(&small, 3, &y), GGML_STATUS_SUCCESS);
    assert_true(y == 9);

    ggml_backend_buffer_set_usage(small.buffer, GGML_BACKEND_BUFFER_USAGE_COMPUTE);
    ggml_backend_buffer_reset(small.buffer);
    struct ggml_tensor *views[2];
    for (int i = 0; i < 2; ++i) {
        views[i] = ggml_view_1d(small.ctx, small.x, 1, 0);
        assert_int_equal(ggml_backend_view_init(views[i]), GGML_STATUS_SUCCESS);
    }
    assert_ptr_equal(views[0]->extra, views[1]->extra);
    void *data = small.y->data;
    small.y->buffer = NULL;
    small.y->data = NULL;
    assert_int_equal(ggml_backend_tensor_alloc(small.buffer, small.y, data), GGML_STATUS_SUCCESS);
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(ggml_backend_graph_compute(small.stream, small.graph),
                         GGML_STATUS_ALLOC_FAILED);
        assert_non_null(strstr(ggml_last_error(), "too much is attached"));
        assert_null(strstr(ggml_last_error(), "an earlier"));
        ggml_clear_error();
    }
    place_again(&small);
    assert_int_equal(small_compute(&small, 4, &y), GGML_STATUS_SUCCESS);
    assert_true(y == 16);
    small_end(&small);
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
    assert_int_equal(virtual_close(&host), 0);
}

static void expect_not_placed(enum ggml_status status) {
    assert_int_equal(status, GGML_STATUS_ALLOC_FAILED);
    assert_non_null(strstr(ggml_last_error(), "too much is attached"));
    ggml_clear_error();
}

// A view that is placed again as it was is the same to the application; what comes of it then
// counts for a graph that the process knows already.
static void test_what_is_placed_again_is_attached_anew(void **state) {
    struct virtual_host host;
    struct small small;
    (void)state;
    virtual_open(&host, "devices=1,attaches=4");
    ggml_backend_dev_t isolated = isolate(virtual_device(&host, 0), 0);
    small_begin(&small, isolated); // attaches to two
    struct ggml_tensor *again = ggml_sqr_inplace(small.ctx, small.x);
    struct ggml_cgraph *graph = ggml_new_graph_custom(small.ctx, 1, false);
    ggml_build_forward_expand(graph, again);
    for (int i = 0; i < 3; ++i) {
        const void *extra = again->extra;
        again->buffer = NULL;
        assert_int_equal(ggml_backend_view_init(again), GGML_STATUS_SUCCESS);
        if (i > 0) assert_ptr_equal(again->extra, extra);
        const enum ggml_status status = ggml_backend_graph_compute(small.stream, graph);
        if (i < 2) assert_int_equal(status, GGML_STATUS_SUCCESS);
        if (i == 2) expect_not_placed(status);
    }
    expect_not_placed(ggml_backend_graph_compute(small.stream, graph));
    assert_int_equal(ggml_backend_graph_compute(small.stream, small.graph), GGML_STATUS_SUCCESS);
    // A place of another number has what is attached to that, in the same graph.
    place_again(&small);
    again->buffer = NULL;
    again->view_src = again->src[0] = small.y;
    again->data = NULL;
    assert_int_equal(ggml_backend_view_init(again), GGML_STATUS_SUCCESS);
    assert_int_equal(ggml_backend_graph_compute(small.stream, graph), GGML_STATUS_SUCCESS);
    assert_int_equal(ggml_last_status(), GGML_HOST_OK);
    small_end(&small);
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
    assert_int_equal(virtual_close(&host), 0);
}

// Nodes that write to one tensor and differ in what they add are two: what can't be attached to the
// second is no matter to the first.
static void test_nodes_differ_by_what_they_read(void **state) {
    struct virtual_host host;
    struct small small;
    struct ggml_cgraph *graphs[2];
    (void)state;
    virtual_open(&host, "devices=1,attaches=4");
    ggml_backend_dev_t isolated = isolate(virtual_device(&host, 0), 0);
    small_begin(&small, isolated);
    struct ggml_tensor *more = ggml_new_tensor_1d(small.ctx, GGML_TYPE_F32, 4);
    ggml_backend_buffer_t buffer =
        ggml_backend_buft_alloc_buffer(ggml_backend_dev_buffer_type(isolated), 64);
    assert_int_equal(ggml_backend_tensor_alloc(buffer, more, ggml_backend_buffer_get_base(buffer)),
                     GGML_STATUS_SUCCESS);
    struct ggml_tensor *const nodes[] = {ggml_add_inplace(small.ctx, small.x, more),
                                         ggml_add_inplace(small.ctx, small.x, small.y)};
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(ggml_backend_view_init(nodes[i]), GGML_STATUS_SUCCESS);
        graphs[i] = ggml_new_graph_custom(small.ctx, 1, false);
        ggml_graph_add_node(graphs[i], nodes[i]);
        nodes[i]->flags |= GGML_TENSOR_FLAG_COMPUTE;
    }
    assert_ptr_not_equal(nodes[0]->extra, nodes[1]->extra);
    for (int i = 0; i < 2; ++i)
        if (ggml_backend_graph_compute(small.stream, graphs[i]) != GGML_STATUS_SUCCESS)
            fail_msg("%d: %s", i, ggml_last_error());
    nodes[1]->buffer = NULL;
    assert_int_equal(ggml_backend_view_init(nodes[1]), GGML_STATUS_SUCCESS); // a fifth
    assert_int_equal(ggml_backend_graph_compute(small.stream, graphs[0]), GGML_STATUS_SUCCESS);
    expect_not_placed(ggml_backend_graph_compute(small.stream, graphs[1]));
    ggml_backend_buffer_free(buffer);
    small_end(&small);
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
    assert_int_equal(virtual_close(&host), 0);
}

// Views that have what their owner has, of which nothing is kept: any number of them.
static void test_views_have_what_their_owner_has(void **state) {
    struct virtual_host host;
    struct small small;
    float y = 0, part = 0;
    (void)state;
    virtual_open(&host, "devices=1,attaches=2,shares_attached=1");
    ggml_backend_dev_t isolated = isolate(virtual_device(&host, 0), 0);
    small_begin(&small, isolated);
    assert_int_equal(small_compute(&small, 3, &y), GGML_STATUS_SUCCESS);
    struct ggml_tensor *view = ggml_view_1d(small.ctx, small.y, 1, 0);
    for (int i = 0; i < 1000; ++i) {
        view->buffer = NULL;
        view->extra = NULL;
        assert_int_equal(ggml_backend_view_init(view), GGML_STATUS_SUCCESS);
    }
    ggml_backend_tensor_get(view, &part, 0, sizeof(part));
    assert_true(part == 9);
    assert_int_equal(ggml_last_status(), GGML_HOST_OK);
    small_end(&small);
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
    assert_int_equal(virtual_close(&host), 0);
}

// What init_tensor attaches is there for as long as in one process: for transfers, for graphs, and
// for views, until the buffer is reset.
static void test_what_a_device_attaches_to_tensors(void **state) {
    struct virtual_host host;
    struct small small;
    float y = 0, part[2];
    (void)state;
    virtual_open(&host, "devices=1,attaches=3");
    ggml_backend_dev_t isolated = isolate(virtual_device(&host, 0), 0);
    small_begin(&small, isolated); // attaches to two
    struct ggml_tensor *view =
        ggml_view_1d(small.ctx, small.y, 2, 2 * ggml_type_size(GGML_TYPE_F32));
    assert_int_equal(ggml_backend_view_init(view), GGML_STATUS_SUCCESS);
    for (int i = 0; i < 100; ++i) {
        assert_int_equal(small_compute(&small, (float)i, &y), GGML_STATUS_SUCCESS);
        assert_true(y == (float)(i * i));
    }
    ggml_backend_tensor_get(view, part, 0, sizeof(part));
    assert_true(part[0] == 4 && part[1] == 9);
    ggml_backend_tensor_copy(small.y, small.x);
    assert_int_equal(ggml_last_status(), GGML_HOST_OK);

    // Nobody waits for a fourth: what uses it fails, each time, and nothing else does.
    struct ggml_tensor *fourth = ggml_view_1d(small.ctx, small.y, 1, 0);
    assert_int_equal(ggml_backend_view_init(fourth), GGML_STATUS_SUCCESS);
    assert_int_equal(small_compute(&small, 3, &y), GGML_STATUS_SUCCESS);
    assert_int_equal(ggml_last_status(), GGML_HOST_OK);
    for (int i = 0; i < 2; ++i) {
        ggml_backend_tensor_get(fourth, part, 0, sizeof(part[0]));
        assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_MEMORY);
        assert_non_null(strstr(ggml_last_error(), "too much is attached"));
        assert_null(strstr(ggml_last_error(), "an earlier"));
        ggml_clear_error();
    }

    place_again(&small);
    view->buffer = NULL;
    assert_int_equal(ggml_backend_view_init(view), GGML_STATUS_SUCCESS);
    assert_int_equal(small_compute(&small, 5, &y), GGML_STATUS_SUCCESS);
    assert_true(y == 25);
    assert_int_equal(ggml_last_status(), GGML_HOST_OK);
    small_end(&small);
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
    assert_int_equal(virtual_close(&host), 0);
}

// A system that runs out of memory which two processes share ends any process: no more is taken
// than there is. The limit of files keeps this machine from that, whatever happens.
static void test_more_memory_than_there_is(void **state) {
    static const int bits[] = {40, 47, 62};
    const struct rlimit few = {.rlim_cur = 1 << 26, .rlim_max = RLIM_INFINITY};
    ggml_backend_dev_t isolated = isolate(ggml_backend_dev_by_name("CPU"), 0);
    ggml_backend_buffer_type_t buft = ggml_backend_dev_buffer_type(isolated);
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
    for (int i = 0; i < 3; ++i) {
        ggml_clear_error();
        assert_null(ggml_backend_buft_alloc_buffer(buft, (size_t)1 << bits[i]));
        assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_MEMORY);
        assert_non_null(strstr(ggml_last_error(), strerror(ENOMEM)));
    }
    ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(buft, 1 << 20);
    assert_non_null(buffer);
    ggml_backend_buffer_free(buffer);
    ggml_clear_error();
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_device_knows_what_memory_is_for),
        cmocka_unit_test(test_a_transfer_that_fails_later_fails_what_follows),
        cmocka_unit_test(test_transfers_of_any_size),
        cmocka_unit_test(test_transfers_in_units_of_the_device),
        cmocka_unit_test(test_shared_memory_is_given_back),
        cmocka_unit_test(test_the_alignment_of_the_device),
        cmocka_unit_test(test_a_kill_in_the_middle_of_a_transfer),
        cmocka_unit_test(test_what_a_device_attaches_to_tensors),
        cmocka_unit_test(test_a_placing_that_fails_later),
        cmocka_unit_test(test_what_is_set_comes_after_what_placing_does),
        cmocka_unit_test(test_what_is_placed_again_is_attached_anew),
        cmocka_unit_test(test_nodes_differ_by_what_they_read),
        cmocka_unit_test(test_views_have_what_their_owner_has),
        cmocka_unit_test(test_more_memory_than_there_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
