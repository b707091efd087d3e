// SPDX-License-Identifier: MIT
// The functions of isolated.h.
#define _GNU_SOURCE
#include "isolated.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <time.h>

#include "ggml-alloc.h"

ggml_backend_dev_t isolate(ggml_backend_dev_t device, uint32_t deadline_ms) {
    const struct ggml_isolate_options options = {.size = sizeof(options),
                                                 .deadline_ms = deadline_ms};
    ggml_backend_dev_t isolated;
    const enum ggml_host_status status = ggml_host_isolate(device, &options, &isolated);
    if (status != GGML_HOST_OK) fail_msg("%s", ggml_last_error());
    return isolated;
}

void small_begin(struct small *small, ggml_backend_dev_t device) {
    const struct ggml_init_params params = {
        .mem_size = 8 * ggml_tensor_overhead() + 2 * ggml_graph_overhead(), .no_alloc = true};
    small->ctx = ggml_init(params);
    small->x = ggml_new_tensor_1d(small->ctx, GGML_TYPE_F32, 4);
    small->y = ggml_sqr(small->ctx, small->x);
    small->graph = ggml_new_graph(small->ctx);
    ggml_build_forward_expand(small->graph, small->y);
    small->stream = ggml_backend_dev_init(device, NULL);
    assert_non_null(small->stream);
    small->buffer = ggml_backend_alloc_ctx_tensors(small->ctx, small->stream);
    assert_non_null(small->buffer);
}

void small_end(struct small *small) {
    ggml_backend_buffer_free(small->buffer);
    ggml_backend_free(small->stream);
    ggml_free(small->ctx);
}

enum ggml_status small_compute(struct small *small, float x, float *out_y) {
    const float values[4] = {x, 1, 2, 3};
    float results[4] = {0};
    ggml_backend_tensor_set(small->x, values, 0, sizeof(values));
    const enum ggml_status status = ggml_backend_graph_compute(small->stream, small->graph);
    if (status == GGML_STATUS_SUCCESS)
        ggml_backend_tensor_get(small->y, results, 0, sizeof(results));
    *out_y = results[0];
    return status;
}

void expect_lost(void) {
    assert_int_equal(ggml_last_status(), GGML_HOST_DEVICE_LOST);
    ggml_clear_error();
}

void *kill_later(void *argument) {
    const struct timespec pause = {.tv_nsec = 300000000};
    nanosleep(&pause, NULL);
    kill((pid_t)ggml_host_isolated_process(argument), SIGKILL);
    return NULL;
}
