// SPDX-License-Identifier: MIT
// The fake Metal runtime: work is done as late as it may be, and what a program does wrong is
// found.
#define _DEFAULT_SOURCE
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/objc.h"
#include "fake_metal.h"
#include "kernels/args.h"

enum { N = 64, SCALE = 38 }; // SCALE: x * params[0] + params[1]

struct run {
    void *pool;
    mtl_id device, queues[2], pipeline, x, y, event;
};

static mtl_id text(const char *what) {
    return mtl_string(mtl_api.get_class("NSString"), what);
}

static mtl_id pipeline_of(mtl_id device, const char *source, const char *kernel) {
    mtl_id error = NULL;
    const mtl_id options = mtl_new(mtl_api.get_class("MTLCompileOptions"));
    mtl_set_fast_math(options, false);
    const mtl_id library = mtl_new_library(device, text(source), options, &error);
    const mtl_id function = mtl_new_function(library, text(kernel));
    const mtl_id pipeline = mtl_new_pipeline(device, function, &error);
    assert_non_null(pipeline);
    mtl_release(function);
    mtl_release(library);
    mtl_release(options);
    return pipeline;
}

static void start(struct run *r) {
    r->pool = mtl_api.pool_push();
    r->device = mtl_api.default_device();
    for (int i = 0; i < 2; ++i)
        r->queues[i] = mtl_new_queue(r->device);
    r->pipeline = pipeline_of(r->device, "GPU_KERNEL(kernel_unary, 256)", "kernel_unary");
    r->x = mtl_new_buffer(r->device, N * sizeof(float), MTL_STORAGE_SHARED);
    r->y = mtl_new_buffer(r->device, N * sizeof(float), MTL_STORAGE_SHARED);
    r->event = mtl_new_event(r->device);
}

static void stop(struct run *r) {
    mtl_release(r->event);
    mtl_release(r->y);
    mtl_release(r->x);
    mtl_release(r->pipeline);
    for (int i = 0; i < 2; ++i)
        mtl_release(r->queues[i]);
    mtl_release(r->device);
    mtl_api.pool_pop(r->pool);
    assert_int_equal(fake_metal_live(), 0);
}

static struct gpu_operand operand(mtl_id buffer) {
    return (struct gpu_operand){
        .data = mtl_gpu_address(buffer), .ne = {N, 1, 1, 1}, .nb = {4, 4 * N, 4 * N, 4 * N}};
}

#define FOUND assert_int_equal(fake_metal_faults(), ++faults)

enum mistake { NONE, NO_RESOURCE, WRONG_USAGE, NO_END };

// to = 3 from.
static struct gpu_args triple_args(mtl_id from, mtl_id to) {
    const float three = 3.0f;
    struct gpu_args args = {.operands = {operand(to), operand(from)}, .numbers = {SCALE}};
    memcpy(&args.params[0], &three, sizeof(three));
    return args;
}

// The same as a command buffer of its own on a queue.
static mtl_id triple(struct run *r, int queue, mtl_id from, mtl_id to, enum mistake mistake) {
    const struct gpu_args args = triple_args(from, to);
    const mtl_id commands = mtl_command_buffer(r->queues[queue]);
    const mtl_id encoder = mtl_compute_encoder(commands, MTL_DISPATCH_SERIAL);
    mtl_set_pipeline(encoder, r->pipeline);
    mtl_set_bytes(encoder, &args, sizeof(args), 0);
    mtl_use_resource(encoder, from, MTL_USAGE_READ);
    if (mistake != NO_RESOURCE)
        mtl_use_resource(encoder, to, mistake == WRONG_USAGE ? MTL_USAGE_READ : MTL_USAGE_WRITE);
    mtl_dispatch(encoder, (struct mtl_size){1, 1, 1}, (struct mtl_size){N, 1, 1});
    if (mistake != NO_END) mtl_end_encoding(encoder);
    mtl_commit(commands);
    if (mistake == NO_END) mtl_end_encoding(encoder);
    return commands;
}

static float *seen(mtl_id buffer) {
    return mtl_contents(buffer);
}

static void test_late(void **state) {
    struct run r;
    (void)state;
    start(&r);
    for (int i = 0; i < N; ++i)
        seen(r.x)[i] = (float)i;
    const mtl_id commands = triple(&r, 0, r.x, r.y, NONE);
    assert_true(isnan(seen(r.y)[5]));
    mtl_wait_until_completed(commands);
    assert_int_equal(mtl_status(commands), MTL_STATUS_COMPLETED);
    assert_true(seen(r.y)[5] == 15.0f);
    stop(&r);
    assert_int_equal(fake_metal_faults(), 0);
}

// Two queues, the second of which waits for the first or forgets to.
static float two_queues(bool waits) {
    struct run r;
    start(&r);
    for (int i = 0; i < N; ++i)
        seen(r.x)[i] = 1.0f;
    triple(&r, 0, r.x, r.y, NONE);
    const mtl_id signal = mtl_command_buffer(r.queues[0]);
    mtl_encode_signal(signal, r.event, 7);
    mtl_commit(signal);
    if (waits) {
        const mtl_id wait = mtl_command_buffer(r.queues[1]);
        mtl_encode_wait(wait, r.event, 7);
        mtl_commit(wait);
    }
    mtl_wait_until_completed(triple(&r, 1, r.y, r.x, NONE));
    const float result = seen(r.x)[0];
    mtl_wait_until_completed(signal);
    stop(&r);
    return result;
}

static void test_queues(void **state) {
    (void)state;
    assert_true(two_queues(true) == 9.0f);
    assert_true(isnan(two_queues(false)));
}

// x times 9 in two dispatches of one encoder.
static float two_dispatches(mtl_word type, bool separates) {
    struct run r;
    start(&r);
    for (int i = 0; i < N; ++i)
        seen(r.x)[i] = 1.0f;
    const mtl_id commands = mtl_command_buffer(r.queues[0]);
    const mtl_id encoder = mtl_compute_encoder(commands, type);
    const mtl_id from[2] = {r.x, r.y}, to[2] = {r.y, r.x};
    mtl_set_pipeline(encoder, r.pipeline);
    mtl_use_resource(encoder, r.x, MTL_USAGE_READ | MTL_USAGE_WRITE);
    mtl_use_resource(encoder, r.y, MTL_USAGE_READ | MTL_USAGE_WRITE);
    for (int i = 0; i < 2; ++i) {
        const struct gpu_args args = triple_args(from[i], to[i]);
        mtl_set_bytes(encoder, &args, sizeof(args), 0);
        mtl_dispatch(encoder, (struct mtl_size){1, 1, 1}, (struct mtl_size){N, 1, 1});
        if (separates) mtl_memory_barrier(encoder, MTL_SCOPE_BUFFERS);
    }
    mtl_end_encoding(encoder);
    mtl_commit(commands);
    mtl_wait_until_completed(commands);
    const float result = seen(r.x)[0];
    stop(&r);
    return result;
}

static void test_barriers(void **state) {
    (void)state;
    assert_true(two_dispatches(MTL_DISPATCH_SERIAL, false) == 9.0f);
    assert_true(two_dispatches(MTL_DISPATCH_CONCURRENT, true) == 9.0f);
    assert_true(isnan(two_dispatches(MTL_DISPATCH_CONCURRENT, false)));
}

// The device sees memory of the program's at an address of its own.
static void test_borrowed(void **state) {
    struct run r;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    float *memory = aligned_alloc(page, page);
    (void)state;
    start(&r);
    for (int i = 0; i < N; ++i)
        memory[i] = (float)i;
    const mtl_id buffer = mtl_new_buffer_no_copy(r.device, memory, page, MTL_STORAGE_SHARED, NULL);
    assert_ptr_equal(mtl_contents(buffer), memory);
    assert_true(mtl_gpu_address(buffer) != (uintptr_t)memory);
    mtl_wait_until_completed(triple(&r, 0, buffer, buffer, NONE));
    assert_true(memory[5] == 15.0f);
    mtl_release(buffer);
    stop(&r);
    free(memory);
    assert_int_equal(fake_metal_faults(), 0);
}

// y = 9 x by two encoders, the second of which reads what the first has written: from the same
// buffer, or from another one that shows the same memory.
static float two_encoders(bool same) {
    struct run r;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    float *memory = aligned_alloc(page, page);
    mtl_id shown[2];
    start(&r);
    for (int i = 0; i < 2; ++i)
        shown[i] = mtl_new_buffer_no_copy(r.device, memory, page, MTL_STORAGE_SHARED, NULL);
    for (int i = 0; i < N; ++i)
        memory[i] = 1.0f;
    triple(&r, 0, shown[0], shown[0], NONE);
    mtl_wait_until_completed(triple(&r, 0, shown[!same], r.y, NONE));
    const float result = seen(r.y)[0];
    for (int i = 0; i < 2; ++i)
        mtl_release(shown[i]);
    stop(&r);
    free(memory);
    return result;
}

static void test_encoders(void **state) {
    (void)state;
    assert_true(two_encoders(true) == 9.0f);
    assert_true(two_encoders(false) == 3.0f);
}

// A kernel that writes to what it is said to read.
static void test_usage(void **state) {
    struct run r;
    long faults = fake_metal_faults();
    (void)state;
    start(&r);
    for (int i = 0; i < N; ++i)
        seen(r.x)[i] = 1.0f;
    mtl_wait_until_completed(triple(&r, 0, r.x, r.y, WRONG_USAGE));
    FOUND;
    stop(&r);
}

static void test_failures(void **state) {
    struct run r;
    (void)state;
    start(&r);
    mtl_id commands = triple(&r, 0, r.x, r.y, NO_RESOURCE); // not made resident
    mtl_wait_until_completed(commands);
    assert_int_equal(mtl_status(commands), MTL_STATUS_ERROR);
    fake_metal_fail(2, FAKE_METAL_OUT_OF_MEMORY); // command buffer, encoder, work
    commands = triple(&r, 0, r.x, r.y, NONE);
    mtl_wait_until_completed(commands);
    assert_int_equal(mtl_code(mtl_error(commands)), FAKE_METAL_OUT_OF_MEMORY);
    assert_string_equal(fake_metal_failed(), "what was queued");
    fake_metal_fail(-1, 0);
    setenv("FAKE_METAL_MEMORY", "100", 1);
    setenv("FAKE_METAL_MAX_BUFFER", "1000", 1);
    assert_null(mtl_new_buffer(r.device, 1000, MTL_STORAGE_SHARED));
    unsetenv("FAKE_METAL_MAX_BUFFER");
    unsetenv("FAKE_METAL_MEMORY");
    assert_null(mtl_name(NULL));
    stop(&r);
}

// A kernel of CUDA's with 44 KiB, where Metal's have 32.
static void test_shared_memory(void **state) {
    struct run r;
    const struct gpu_args args = {.operands = {{0}}};
    (void)state;
    start(&r);
    const mtl_id pipeline =
        pipeline_of(r.device, "GPU_KERNEL(kernel_few_F16, 128)", "kernel_few_F16");
    const mtl_id commands = mtl_command_buffer(r.queues[0]);
    const mtl_id encoder = mtl_compute_encoder(commands, MTL_DISPATCH_SERIAL);
    mtl_set_pipeline(encoder, pipeline);
    mtl_set_bytes(encoder, &args, sizeof(args), 0);
    mtl_dispatch(encoder, (struct mtl_size){1, 1, 1}, (struct mtl_size){128, 1, 1});
    mtl_end_encoding(encoder);
    mtl_commit(commands);
    mtl_wait_until_completed(commands);
    assert_int_equal(mtl_status(commands), MTL_STATUS_ERROR);
    const char *why = mtl_utf8(mtl_localized_description(mtl_error(commands)));
    assert_non_null(strstr(why, "32768 bytes of shared memory"));
    mtl_release(pipeline);
    stop(&r);
}

// Copies of a blit encoder, which find nothing wrong, and those that macOS refuses.
static void test_copies(void **state) {
    struct run r;
    long faults = fake_metal_faults();
    (void)state;
    start(&r);
    seen(r.x)[3] = 7.0f;
    const mtl_id hidden = mtl_new_buffer(r.device, 64, MTL_STORAGE_PRIVATE);
    assert_null(mtl_contents(hidden));
    const mtl_id commands = mtl_command_buffer(r.queues[0]);
    const mtl_id encoder = mtl_blit_encoder(commands);
    mtl_copy_bytes(encoder, r.x, 12, hidden, 4, 8);
    mtl_copy_bytes(encoder, hidden, 4, r.y, 20, 4);
    mtl_fill_bytes(encoder, r.y, (struct mtl_range){24, 4}, 0);
    assert_int_equal(fake_metal_faults(), faults);
    mtl_copy_bytes(encoder, r.x, 2, r.y, 0, 4); // not by fours
    FOUND;
    mtl_copy_bytes(encoder, r.x, 0, r.y, N * 4 - 4, 8); // beyond the end
    FOUND;
    mtl_copy_bytes(encoder, r.x, 0, r.x, 4, 8); // overlaps
    FOUND;
    mtl_end_encoding(encoder);
    mtl_commit(commands);
    mtl_release(hidden); // the command buffer keeps it
    mtl_wait_until_completed(commands);
    assert_true(seen(r.y)[5] == 7.0f && seen(r.y)[6] == 0.0f);
    stop(&r);
}

// The 65th command buffer of a queue waits for the first one; there is nothing to wait for where
// none is committed. Buffers are at most as long as the device says.
static void test_limits(void **state) {
    struct run r;
    long faults = fake_metal_faults();
    (void)state;
    start(&r);
    const mtl_id first = triple(&r, 0, r.x, r.y, NONE);
    for (int i = 1; i < 65; ++i)
        mtl_command_buffer(r.queues[0]);
    assert_int_equal(mtl_status(first), MTL_STATUS_COMPLETED);
    assert_int_equal(fake_metal_faults(), faults);
    mtl_command_buffer(r.queues[0]);
    FOUND;
    setenv("FAKE_METAL_MAX_BUFFER", "1000", 1);
    assert_null(mtl_new_buffer(r.device, 1001, MTL_STORAGE_SHARED));
    FOUND;
    unsetenv("FAKE_METAL_MAX_BUFFER");
    stop(&r);
}

// Each is one fault more. What is left behind stays known, so that it is no leak of the test's.
static void test_misuse(void **state) {
    static struct run r;
    static volatile mtl_id unpooled;
    long faults = fake_metal_faults();
    (void)state;
    start(&r);
    const mtl_id gone = mtl_new_event(r.device);
    mtl_release(gone);
    mtl_release(gone); // once too often
    FOUND;
    mtl_count(r.queues[0]); // not understood
    FOUND;
    const mtl_id commands = triple(&r, 0, r.x, r.y, NO_END);
    FOUND;
    mtl_commit(commands); // twice
    FOUND;
    mtl_wait_until_completed(mtl_command_buffer(r.queues[0])); // not committed
    FOUND;
    const mtl_id buffer = mtl_new_buffer(r.device, N * sizeof(float), MTL_STORAGE_SHARED);
    const mtl_id queued = triple(&r, 1, r.x, buffer, NONE);
    mtl_release(buffer); // while it is used
    FOUND;
    mtl_api.pool_pop(r.pool);
    unpooled = mtl_command_buffer(r.queues[0]); // without a pool
    FOUND;
    (void)queued, (void)unpooled;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_late),     cmocka_unit_test(test_queues),
        cmocka_unit_test(test_barriers), cmocka_unit_test(test_borrowed),
        cmocka_unit_test(test_failures), cmocka_unit_test(test_shared_memory),
        cmocka_unit_test(test_copies),   cmocka_unit_test(test_encoders),
        cmocka_unit_test(test_usage),    cmocka_unit_test(test_limits),
        cmocka_unit_test(test_misuse),
    };
    setenv("FAKE_METAL_TOLERANT", "1", 1);
    return mtl_start() ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
