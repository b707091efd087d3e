// SPDX-License-Identifier: MIT
// Weights in host memory: copied to a device for one operation, experts one by one.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rig.h"

static ggml_backend_buffer_type_t on_host(void *user, int layer) {
    (void)layer;
    struct rig *rig = user;
    return ggml_backend_get_default_buffer_type(rig->streams[rig->n_devices]);
}

static void offload(struct virtual_config *config) {
    config->offload = 1;
}

// The rig, but with all weights in host memory and offloading on.
static void open_offloading(struct rig *rig, const struct transformer_shape *shape) {
    rig_open(rig, 1, shape, offload, false);
    transformer_free(rig->model);
    rig->model = transformer_new(shape, 1, on_host, NULL, rig);
    assert_non_null(rig->model);
    ggml_backend_sched_free(rig->sched);
    rig->sched = ggml_backend_sched_new(rig->streams, NULL, 2, 100, false, true);
    assert_non_null(rig->sched);
    rig->host.log_clear();
}

static void test_weights_stream(void **state) {
    (void)state;
    struct rig rig;
    open_offloading(&rig, &rig_shape);
    rig_check(&rig, 4, 0, 1);
    assert_true(virtual_count(&rig.host, VIRTUAL_CALL_NODE, -1, NULL) > 0);
    // A split per weight, so that their memory is recycled: much less than all weights at once.
    assert_true(ggml_backend_sched_get_n_splits(rig.sched) > 8 * rig_shape.layers);
    const size_t weights = ggml_backend_buffer_get_size(rig.model->layers[0].buffer);
    assert_true(ggml_backend_sched_get_buffer_size(rig.sched, rig.streams[0]) < 3 * weights);
    rig_close(&rig);
}

// Bytes that were set in tensors whose name contains the text.
static uint64_t bytes_set(const struct rig *rig, const char *text) {
    struct virtual_record record;
    uint64_t bytes = 0;
    for (size_t i = 0; virtual_find(&rig->host, VIRTUAL_CALL_SET, -1, i, &record); ++i) {
        if (strstr(record.text, text)) bytes += record.bytes;
    }
    return bytes;
}

static void test_experts_stream(void **state) {
    (void)state;
    struct transformer_shape shape = rig_shape;
    shape.experts = 16;
    struct rig rig;
    open_offloading(&rig, &shape);
    rig_check(&rig, 1, 0, 1); // one token uses one expert per layer
    const struct ggml_tensor *weight = rig.model->layers[0].up;
    const uint64_t expert = weight->nb[2];
    const uint64_t layers = (uint64_t)shape.layers;
    const uint64_t copied = bytes_set(&rig, ".up");
    assert_true(copied >= layers * expert);
    assert_true(copied <= layers * (expert + 512)); // and a little behind it
    rig_check(&rig, 6, 1, 2);
    rig_close(&rig);
}

// What a callback for copies was called with.
struct copying {
    struct rig *rig;
    int calls;
    bool copies; // it copies each weight itself
};

static bool copy_weight(ggml_backend_t backend, const struct ggml_tensor *src,
                        struct ggml_tensor *dst, struct ggml_cgraph *graph, void *user_data) {
    struct copying *copying = user_data;
    ++copying->calls;
    assert_ptr_equal(backend, copying->rig->streams[0]);
    assert_true(ggml_backend_buffer_is_host(src->buffer));
    assert_int_equal(ggml_backend_buffer_get_usage(src->buffer), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    bool is_read = false;
    for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
        for (int s = 0; s < GGML_MAX_SRC; ++s) {
            const struct ggml_tensor *read = ggml_graph_node(graph, i)->src[s];
            is_read |= read == dst || (read && read->view_src == dst);
        }
    }
    assert_true(is_read);
    if (copying->copies) {
        ggml_backend_tensor_set_async(backend, dst, src->data, 0, ggml_nbytes(src));
    }
    return copying->copies;
}

static void test_copy_callback(void **state) {
    (void)state;
    struct rig rig;
    open_offloading(&rig, &rig_shape);
    struct copying copying = {.rig = &rig};
    ggml_backend_sched_set_copy_callback(rig.sched, copy_weight, &copying);
    rig_check(&rig, 4, 0, 1);
    const int calls = copying.calls;
    assert_true(calls > 8 * rig_shape.layers);
    copying.copies = true;
    rig_check(&rig, 4, 0, 2);
    assert_int_equal(copying.calls, 2 * calls);
    ggml_backend_sched_set_copy_callback(rig.sched, NULL, NULL);
    rig_check(&rig, 4, 0, 3);
    assert_int_equal(copying.calls, 2 * calls);
    rig_close(&rig);
}

// A device that reads host memory needs no copy of a weight there, only of inputs: the application
// may overwrite those before it is done.
static void read_host(struct virtual_config *config) {
    config->offload = 1;
    config->reads_host = 1;
}

static void test_read_in_place(void **state) {
    (void)state;
    struct rig rig;
    rig_open(&rig, 1, &rig_shape, read_host, false);
    transformer_free(rig.model);
    rig.model = transformer_new(&rig_shape, 1, on_host, NULL, &rig);
    rig.host.log_clear();
    const uint64_t n_tokens = 4;
    rig_check(&rig, (int)n_tokens, 0, 1);
    uint64_t bytes;
    virtual_count(&rig.host, VIRTUAL_CALL_SET, -1, &bytes);
    assert_int_equal(bytes,
                     4 * (n_tokens + n_tokens + n_tokens * n_tokens)); // tokens, places, mask
    rig_check(&rig, 1, 4, 2);
    rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weights_stream),
        cmocka_unit_test(test_experts_stream),
        cmocka_unit_test(test_copy_callback),
        cmocka_unit_test(test_read_in_place),
    };
    return cmocka_run_group_tests_name("sched offload", tests, NULL, NULL);
}
