// SPDX-License-Identifier: MIT
// Streams of one device on several threads at once.
#include <pthread.h>

#include "support/vulkan_test.h"

enum { THREADS = 2, ROUNDS = 30, N = 2000 };

static ggml_backend_dev_t device;

struct worker {
    pthread_t thread;
    float start;
    bool ok;
};

static bool round_trip(ggml_backend_t stream, struct vulkan_graph *g, float start) {
    float in[N], out[N];
    for (int i = 0; i < N; ++i)
        in[i] = -start - (float)i;
    ggml_backend_tensor_set_async(stream, g->x, in, 0, sizeof(in));
    if (ggml_backend_graph_compute_async(stream, g->graph) != GGML_STATUS_SUCCESS) return false;
    ggml_backend_tensor_get_async(stream, g->y, out, 0, sizeof(out));
    ggml_backend_synchronize(stream);
    for (int i = 0; i < N; ++i) {
        if (out[i] != start + (float)i) return false;
    }
    return true;
}

static void *work(void *argument) {
    struct worker *worker = argument;
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);
    worker->ok = stream != NULL;
    for (int i = 0; i < ROUNDS && worker->ok; ++i) {
        struct vulkan_graph g;
        worker->ok = vulkan_graph_new(ggml_backend_dev_buffer_type(device), N, 2 + i % 3 * 2, &g) &&
                     round_trip(stream, &g, worker->start + (float)i) &&
                     round_trip(stream, &g, worker->start);
        vulkan_graph_free(&g);
    }
    ggml_backend_free(stream);
    return NULL;
}

static void run(const char *debug) {
    struct worker workers[THREADS];
    ggml_backend_reg_t reg = vulkan_start(debug, "0");
    device = vulkan_device(reg);
    assert_non_null(device);
    for (int i = 0; i < THREADS; ++i) {
        workers[i].start = (float)(i * 1000);
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; ++i) {
        pthread_join(workers[i].thread, NULL);
        assert_true(workers[i].ok);
    }
    vulkan_stop();
}

static void test_two_streams_at_once(void **state) {
    (void)state;
    run("");
}

static void test_two_streams_at_once_with_staging(void **state) {
    (void)state;
    run("staging");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_streams_at_once),
        cmocka_unit_test(test_two_streams_at_once_with_staging),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
