// SPDX-License-Identifier: MIT
// A program that uses and frees what it has at a node after the plugin has said goodbye: by a
// handler of its exit that it registered before it loaded plugins, or after it has ended MPI
// itself. Prints what it sees, for check_starts.py.
//
// usage: mpi-late exit|finalize|busy|hung|threads|message N|killed|stopped, of which "busy" ends
// while the node computes, "hung" while it computes one graph for longer than anybody waits,
// "threads" while threads go on to use two nodes, and "message" while a thread sends one; "killed"
// ends without a word, and "stopped" goes on when it is continued
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-ext-comm.h"
#include "ggml-host.h"

enum { NUMBERS = 100000, PRODUCTS = 20 };

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

// Products of one matrix, all with the same result, in memory of the first node.
struct products {
    struct ggml_tensor *matrix, *result;
    ggml_backend_buffer_t held;
};

static int products_init(struct products *products) {
    enum { SIDE = 512 };
    struct ggml_context *memory =
        ggml_init((struct ggml_init_params){8 * ggml_tensor_overhead(), NULL, true});
    products->matrix = ggml_new_tensor_2d(memory, GGML_TYPE_F32, SIDE, SIDE);
    products->result = ggml_new_tensor_2d(memory, GGML_TYPE_F32, SIDE, SIDE);
    products->held = ggml_backend_alloc_ctx_tensors(memory, stream);
    if (products->held) ggml_backend_buffer_clear(products->held, 0);
    return products->held != NULL;
}

static struct ggml_cgraph *products_graph(const struct products *products, size_t n) {
    struct ggml_context *nodes = ggml_init((struct ggml_init_params){
        n * ggml_tensor_overhead() + ggml_graph_overhead_custom(n + 8, false), NULL, true});
    struct ggml_cgraph *made = ggml_new_graph_custom(nodes, n + 8, false);
    for (size_t i = 0; i < n; ++i) {
        struct ggml_tensor *product = ggml_mul_mat(nodes, products->matrix, products->matrix);
        product->data = products->result->data;
        product->buffer = products->held;
        ggml_build_forward_expand(made, product);
    }
    return made;
}

// Starts products that take the node longer than so many seconds, by how long the first of them
// take: a graph of them as often as it has to be computed, or one graph of all.
static int begin_products(double length, int at_once) {
    struct products products;
    if (!products_init(&products)) return 0;
    struct ggml_cgraph *batch = products_graph(&products, PRODUCTS);
    if (ggml_backend_graph_compute(stream, batch) != GGML_STATUS_SUCCESS) return 0;
    const double begin = seconds();
    if (ggml_backend_graph_compute(stream, batch) != GGML_STATUS_SUCCESS) return 0;
    int n = 1 + (int)(length / (seconds() - begin));
    if (at_once) batch = products_graph(&products, (size_t)n * PRODUCTS);
    for (int i = 0; i < (at_once ? 1 : n); ++i)
        if (ggml_backend_graph_compute_async(stream, batch) != GGML_STATUS_SUCCESS) return 0;
    printf("late: busy for %d products\n", PRODUCTS * n);
    fflush(stdout);
    return 1;
}

// Has the first node compute, the next graph before it is done with the one before, until a call
// fails.
static void *compute_on(void *context) {
    struct products products;
    if (!products_init(&products)) return NULL;
    struct ggml_cgraph *batch = products_graph(&products, PRODUCTS);
    ggml_backend_event_t event = ggml_backend_event_new(ggml_backend_get_device(stream));
    for (int i = 0; event; ++i) {
        ggml_backend_event_record(event, stream);
        if (ggml_backend_graph_compute_async(stream, batch) != GGML_STATUS_SUCCESS) break;
        ggml_backend_event_synchronize(event);
        if (i == 1) sem_post(context);
    }
    for (;;)
        pause();
    return NULL;
}

// A stream at each of two nodes, with a tensor of so many numbers.
static int make_ends(ggml_backend_t streams[2], struct ggml_tensor *tensors[2], int64_t n) {
    for (int i = 0; i < 2; ++i) {
        ggml_backend_dev_t device = ggml_backend_dev_by_name(i == 0 ? "MPI1:CPU" : "MPI2:CPU");
        struct ggml_context *memory =
            ggml_init((struct ggml_init_params){4 * ggml_tensor_overhead(), NULL, true});
        tensors[i] = ggml_new_tensor_1d(memory, GGML_TYPE_F32, n);
        streams[i] = ggml_backend_dev_init(device, NULL);
        if (!streams[i] || !ggml_backend_alloc_ctx_tensors(memory, streams[i])) return 0;
    }
    return 1;
}

// Copies from one node to the other, with answers under way all the time, until a call fails.
static void *copy_on(void *context) {
    ggml_backend_t streams[2];
    struct ggml_tensor *tensors[2];
    if (!make_ends(streams, tensors, 64)) return NULL;
    ggml_backend_event_t event = ggml_backend_event_new(ggml_backend_dev_by_name("MPI2:CPU"));
    for (int i = 1; event && ggml_last_status() == GGML_HOST_OK; ++i) {
        ggml_backend_tensor_copy_async(streams[0], streams[1], tensors[0], tensors[1]);
        if (i % 64 == 0) ggml_backend_event_record(event, streams[1]);
        if (i % 64 == 32) ggml_backend_event_synchronize(event); // more is under way then
        if (i == 1024) sem_post(context);
    }
    for (;;)
        pause();
    return NULL;
}

// At which of the allocations that a thread makes while it sends a message the program ends; the
// thread goes on after a while.
static _Thread_local int n_left;
static sem_t is_there;
extern void *__libc_calloc(size_t n, size_t size);

__attribute__((visibility("default"))) void *calloc(size_t n, size_t size) {
    const struct timespec a_while = {0, 300000000};
    if (n_left > 0 && --n_left == 0) {
        sem_post(&is_there);
        nanosleep(&a_while, NULL);
    }
    return __libc_calloc(n, size);
}

// Sends messages from one node to the other until that fails, each more than MPI takes before the
// other side wants it.
static void *message_on(void *context) {
    enum { LARGE = 1 << 14 };
    const struct ggml_extension_comm *comm = ggml_backend_reg_get_extension(
        ggml_backend_dev_backend_reg(ggml_backend_dev_by_name("MPI1:CPU")), GGML_EXTENSION_COMM,
        GGML_EXTENSION_COMM_REVISION);
    ggml_backend_t streams[2];
    struct ggml_tensor *tensors[2];
    ggml_comm_group_t group;
    int good = comm && make_ends(streams, tensors, LARGE);
    const struct ggml_comm_ranks ranks = {
        .size = sizeof(ranks), .n_ranks = 2, .n_streams = 2, .streams = streams};
    good = good && comm->group_new(&ranks, &group) == GGML_HOST_OK;
    n_left = *(const int *)context;
    while (good) {
        good = comm->send(group, 0, 1, tensors[0]) == GGML_HOST_OK &&
               comm->receive(group, 1, 0, tensors[1]) == GGML_HOST_OK;
        ggml_backend_synchronize(streams[1]);
    }
    for (;;)
        pause();
    return NULL;
}

// Ends the program at the n-th allocation of that.
static int begin_message(int n) {
    static int which;
    pthread_t thread;
    which = n;
    sem_init(&is_there, 0, 0);
    if (pthread_create(&thread, NULL, message_on, &which) != 0) return 0;
    sem_wait(&is_there);
    printf("late: a message is under way\n");
    fflush(stdout);
    return 1;
}

static int begin_threads(void) {
    enum { THREADS = 4 };
    static sem_t under_way;
    pthread_t thread;
    sem_init(&under_way, 0, 0);
    for (int i = 0; i < THREADS; ++i)
        if (pthread_create(&thread, NULL, i == 0 ? compute_on : copy_on, &under_way) != 0) return 0;
    for (int i = 0; i < THREADS; ++i)
        sem_wait(&under_way);
    printf("late: threads go on\n");
    fflush(stdout);
    return 1;
}

// Continued by someone else, it uses its node as before.
static int be_stopped(void) {
    printf("late: process %ld\n", (long)getpid());
    fflush(stdout);
    raise(SIGSTOP);
    if (ggml_backend_graph_compute(stream, graph) != GGML_STATUS_SUCCESS) return 0;
    printf("late: goes on\n");
    return 1;
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "exit";
    const int finalizes = strcmp(way, "finalize") == 0;
    int level;
    if (finalizes)
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    else if (strcmp(way, "exit") == 0)
        atexit(use);
    ggml_backend_load_all();
    if (!make()) return 1;
    if (strcmp(way, "threads") == 0) return begin_threads() ? 0 : 1;
    if (strcmp(way, "message") == 0 && argc > 2) return begin_message(atoi(argv[2])) ? 0 : 1;
    if (strcmp(way, "busy") == 0) return begin_products(6, 0) ? 0 : 1;
    if (strcmp(way, "hung") == 0) return begin_products(60, 1) ? 0 : 1;
    if (strcmp(way, "stopped") == 0) return be_stopped() ? 0 : 1;
    if (strcmp(way, "killed") == 0) raise(SIGKILL);
    if (!finalizes) return 0;
    MPI_Finalize();
    use();
    return 0;
}
