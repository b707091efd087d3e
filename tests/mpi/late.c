// SPDX-License-Identifier: MIT
// A program that uses and frees what it has at a node after the plugin has said goodbye: by a
// handler of its exit that it registered before it loaded plugins, or after it has ended MPI
// itself. Prints what it sees, for check_starts.py.
//
// usage: mpi-late exit|finalize|busy, the last of which ends while the node computes
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-host.h"

enum { NUMBERS = 100000 };

static struct ggml_context *ctx;
static struct ggml_tensor *tensor, *few;
static struct ggml_cgraph *graph;
static ggml_backend_buffer_t buffer;
static ggml_backend_t stream;
static float numbers[NUMBERS];

static void say(const char *what) {
    printf("late %s: %s, %s\n", what,
           ggml_host_status_text((enum ggml_host_status)ggml_last_status()), ggml_last_error());
    fflush(stdout);
    ggml_clear_error();
}

static void use(void) {
    ggml_backend_tensor_set(few, numbers, 0, ggml_nbytes(few));
    say("small set");
    ggml_backend_tensor_set(tensor, numbers, 0, sizeof(numbers));
    say("set");
    ggml_backend_tensor_get(tensor, numbers, 0, sizeof(numbers));
    say("get");
    ggml_backend_graph_compute(stream, graph);
    say("graph");
    ggml_backend_buffer_free(buffer);
    ggml_backend_free(stream);
    ggml_free(ctx);
    printf("late: all is freed\n");
    fflush(stdout);
}

static int make(void) {
    const struct ggml_init_params params = {
        .mem_size = 8 * ggml_tensor_overhead() + ggml_graph_overhead(), .no_alloc = true};
    ggml_backend_dev_t device = ggml_backend_dev_by_name("MPI1:CPU");
    if (!device) return 0;
    ctx = ggml_init(params);
    tensor = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, NUMBERS);
    few = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4);
    graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, ggml_scale_inplace(ctx, few, 2.0f));
    stream = ggml_backend_dev_init(device, NULL);
    buffer = ggml_backend_alloc_ctx_tensors_from_buft(ctx, ggml_backend_dev_buffer_type(device));
    return stream && buffer && ggml_backend_graph_compute(stream, graph) == GGML_STATUS_SUCCESS;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// Starts products that take the node so many seconds, by how long the first of them take.
static int begin_products(double length) {
    enum { SIDE = 512, FEW = 20, MOST = 100000 };
    struct ggml_context *memory =
        ggml_init((struct ggml_init_params){8 * ggml_tensor_overhead(), NULL, true});
    struct ggml_tensor *a = ggml_new_tensor_2d(memory, GGML_TYPE_F32, SIDE, SIDE);
    struct ggml_tensor *b = ggml_new_tensor_2d(memory, GGML_TYPE_F32, SIDE, SIDE);
    ggml_backend_buffer_t held = ggml_backend_alloc_ctx_tensors(memory, stream);
    int n = FEW;
    if (!held) return 0;
    ggml_backend_buffer_clear(held, 0);
    for (int round = 0; round < 2; ++round) {
        struct ggml_context *nodes = ggml_init((struct ggml_init_params){
            (size_t)n * ggml_tensor_overhead() + ggml_graph_overhead_custom((size_t)n + 8, false),
            NULL, true});
        struct ggml_cgraph *products = ggml_new_graph_custom(nodes, (size_t)n + 8, false);
        for (int i = 0; i < n; ++i) {
            struct ggml_tensor *product = ggml_mul_mat(nodes, a, a);
            product->data = b->data;
            product->buffer = held;
            ggml_build_forward_expand(products, product);
        }
        const double begin = seconds();
        if (ggml_backend_graph_compute_async(stream, products) != GGML_STATUS_SUCCESS) return 0;
        if (round == 1) continue;
        ggml_backend_synchronize(stream);
        const double took = (seconds() - begin) / n;
        n = length / took < MOST ? (int)(length / took) : MOST;
    }
    printf("late: busy for %d products\n", n);
    fflush(stdout);
    return 1;
}

int main(int argc, char **argv) {
    const int is_busy = argc > 1 && strcmp(argv[1], "busy") == 0;
    const int finalizes = argc > 1 && strcmp(argv[1], "finalize") == 0;
    int level;
    if (finalizes)
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    else if (!is_busy)
        atexit(use);
    ggml_backend_load_all();
    if (!make()) return 1;
    if (is_busy) return begin_products(6) ? 0 : 1;
    if (!finalizes) return 0;
    MPI_Finalize();
    use();
    return 0;
}
