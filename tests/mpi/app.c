// SPDX-License-Identifier: MIT
// A program that uses MPI itself, beside nodes: it starts MPI at a level, loads plugins, sums over
// its own processes by a communicator of its own while it computes on a node, and ends MPI. Prints
// what it sees, for check_starts.py.
//
// usage: mpi-app LEVEL [OWN-PROCESSES [SECONDS]], the level as single, funneled, serialized,
// multiple
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ggml-backend.h"

enum { SUMS = 200, NUMBERS = 1000 };

static const char *const level_names[] = {"single", "funneled", "serialized", "multiple"};
static const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
                             MPI_THREAD_MULTIPLE};

// Reads and writes of a node's memory, by a thread of the program's.
static void *use_node(void *context) {
    ggml_backend_dev_t device = ggml_backend_dev_by_name("MPI1:CPU");
    static float out[NUMBERS], in[NUMBERS];
    int *good = context;
    *good = 0;
    if (!device) return NULL;
    const struct ggml_init_params params = {.mem_size = 4 * ggml_tensor_overhead(),
                                            .no_alloc = true};
    struct ggml_context *ctx = ggml_init(params);
    struct ggml_tensor *tensor = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, NUMBERS);
    ggml_backend_buffer_t buffer =
        ggml_backend_alloc_ctx_tensors_from_buft(ctx, ggml_backend_dev_buffer_type(device));
    *good = buffer != NULL;
    for (int i = 0; i < SUMS && *good; ++i) {
        for (int k = 0; k < NUMBERS; ++k)
            out[k] = (float)(i + k);
        ggml_backend_tensor_set(tensor, out, 0, sizeof(out));
        ggml_backend_tensor_get(tensor, in, 0, sizeof(in));
        *good = memcmp(out, in, sizeof(out)) == 0;
    }
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);
    return NULL;
}

// Whether each sum over the program's own processes is right.
static int sum(MPI_Comm own, int n) {
    int good = 1;
    for (int i = 0; i < SUMS; ++i) {
        int value = i + 1, total = 0;
        MPI_Allreduce(&value, &total, 1, MPI_INT, MPI_SUM, own);
        good = good && total == n * (i + 1);
    }
    return good;
}

int main(int argc, char **argv) {
    const int n_own = argc > 2 ? atoi(argv[2]) : 1;
    const struct timespec pause = {argc > 3 ? atoi(argv[3]) : 0, 0};
    int wanted = 0, level, rank, size, range[1][3] = {{0, n_own - 1, 1}}, node_good = 0;
    if (argc < 2) return 2;
    while (wanted < 3 && strcmp(argv[1], level_names[wanted]) != 0)
        ++wanted;
    MPI_Init_thread(&argc, &argv, levels[wanted], &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Group world, group;
    MPI_Comm own;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_range_incl(world, 1, range, &group);
    MPI_Comm_create_group(MPI_COMM_WORLD, group, 1, &own);
    ggml_backend_load_all();
    pthread_t thread;
    const int threads = level == MPI_THREAD_MULTIPLE && rank == 0;
    if (threads && pthread_create(&thread, NULL, use_node, &node_good) != 0) return 1;
    const int sums_good = sum(own, n_own);
    if (threads) pthread_join(thread, NULL);
    for (size_t i = 0; rank == 0 && i < ggml_backend_dev_count(); ++i)
        printf("device %s\n", ggml_backend_dev_name(ggml_backend_dev_get(i)));
    printf("rank %d: level %s, own sums %d, node %d\n", rank, level_names[wanted], sums_good,
           node_good);
    fflush(stdout);
    nanosleep(&pause, NULL);
    MPI_Comm_free(&own);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    MPI_Finalize();
    printf("rank %d ended MPI\n", rank);
    return 0;
}
