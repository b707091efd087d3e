// SPDX-License-Identifier: MIT
// A program that uses and frees what it has at a node after the plugin has said goodbye: by a
// handler of its exit that it registered before it loaded plugins, or after it has ended MPI
// itself. Prints what it sees, for check_starts.py.
//
// usage: mpi-late exit|finalize
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int main(int argc, char **argv) {
    const int finalizes = argc > 1 && strcmp(argv[1], "finalize") == 0;
    int level;
    if (finalizes)
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    else
        atexit(use);
    ggml_backend_load_all();
    if (!make()) return 1;
    if (!finalizes) return 0;
    MPI_Finalize();
    use();
    return 0;
}
