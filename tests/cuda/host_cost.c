// SPDX-License-Identifier: MIT
// What a repeated graph costs the host: the plugin's own work and the fake driver's, whose kernels
// do nothing (FAKE_CUDA_SKIP_KERNELS=1). By the graph's number, by where its tensors lie, by its
// nodes, and where it lies elsewhere each time, so that a graph of the driver's is changed.
//
// usage: host-cost, with the fake driver in LD_LIBRARY_PATH
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cuda_test.h"
#include "ggml-impl.h"

enum { RUNS = 400, PLACES = 4, MOST = 2048 };

static const int32_t uses[MOST + 1];
static ggml_backend_t stream;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

// The least of some rounds, per graph, in microseconds.
static double measure(struct ggml_cgraph **graphs, int n_graphs, bool has_uid, bool has_structure) {
    double best = 1e30;
    for (int round = 0; round < 8; ++round) {
        double spent = 0.0;
        for (int i = 0; i < RUNS / 8; ++i) {
            const struct ggml_cgraph *g = graphs[i % n_graphs];
            const struct ggml_graph view = {.size = sizeof(view),
                                            .n_nodes = g->n_nodes,
                                            .nodes = g->nodes,
                                            .use_counts = uses,
                                            .structure = has_structure ? 5 : 0,
                                            .uid = has_uid ? 77 : 0};
            const double begin = now();
            if (stream->table->graph_compute(stream, &view) != GGML_HOST_OK) exit(1);
            spent += now() - begin;
        }
        ggml_backend_synchronize(stream);
        const double each = spent / (RUNS / 8);
        best = each < best ? each : best;
    }
    return best;
}

int main(void) {
    setenv("FAKE_CUDA_SKIP_KERNELS", "1", 1);
    cuda_find_driver();
    printf("nodes  number  places  nodes'  changed  (microseconds per graph)\n");
    for (int n = 2; n <= MOST; n *= 4) {
        struct ggml_context *ctx[PLACES];
        ggml_backend_buffer_t buffers[PLACES];
        struct ggml_cgraph *graphs[PLACES];
        stream = ggml_backend_dev_init(cuda_device(0), NULL);
        for (int p = 0; p < PLACES; ++p) {
            ctx[p] = ggml_init((struct ggml_init_params){(size_t)8 << 20, NULL, true});
            struct ggml_tensor *x = ggml_new_tensor_1d(ctx[p], GGML_TYPE_F32, 32);
            for (int i = 0; i < n; ++i)
                x = ggml_sqr(ctx[p], x);
            graphs[p] = ggml_new_graph_custom(ctx[p], MOST + 8, false);
            ggml_build_forward_expand(graphs[p], x);
            buffers[p] = ggml_backend_alloc_ctx_tensors(ctx[p], stream);
        }
        const double changed = measure(graphs, PLACES, false, false);
        printf("%5d %7.2f %7.2f %7.2f %8.2f\n", n, measure(graphs, 1, true, false),
               measure(graphs, 1, false, true), measure(graphs, 1, false, false), changed);
        ggml_backend_free(stream);
        for (int p = 0; p < PLACES; ++p) {
            ggml_backend_buffer_free(buffers[p]);
            ggml_free(ctx[p]);
        }
    }
    cuda_unload();
    return 0;
}
