// SPDX-License-Identifier: MIT
// Bare MPI, driven by rank 0.
#define _POSIX_C_SOURCE 200809L
#include "mpi_bare.h"

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

enum { TAG_ORDER = 101, TAG_READY = 102, TAG_DATA = 103, TAG_TIME = 104, TAG_GROUP = 105 };
enum { SMALL = 80, PIECE = 1 << 30 };

enum kind { ECHO = 1, TAKE, GIVE, PASS_ON, TAKE_PASSED, ADD_UP, END };

// What rank 0 has a partner do.
struct order {
    int32_t kind, times;
    uint64_t size;
};

static double seconds(void) {
    return bench_ns() * 1e-9;
}

// MPI counts with an int; transfers above a GiB are cut.
static int count_of(size_t size) {
    return size < PIECE ? (int)size : PIECE;
}

static void send_to(int rank, int tag, const void *bytes, size_t size) {
    MPI_Send(bytes, count_of(size), MPI_BYTE, rank, tag, MPI_COMM_WORLD);
}

static void receive_from(int rank, int tag, void *bytes, size_t size) {
    MPI_Recv(bytes, count_of(size), MPI_BYTE, rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// --- a partner -----------------------------------------------------------------------------------

struct partner {
    int self, first;
    MPI_Comm comm; // of the partners
    void *bytes;
    size_t size;
};

// Waits for an order without keeping a core busy: what is measured runs beside it.
static void await_order(struct order *out_order) {
    const struct timespec pause = {0, 200000};
    int found = 0;
    while (MPI_Iprobe(0, TAG_ORDER, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
           !found)
        nanosleep(&pause, NULL);
    receive_from(0, TAG_ORDER, out_order, sizeof(*out_order));
}

// Memory of zeroes that was touched.
static void prepare(struct partner *partner, size_t size) {
    if (size > partner->size) {
        free(partner->bytes);
        partner->bytes = malloc(size);
        partner->size = size;
        if (!partner->bytes) MPI_Abort(MPI_COMM_WORLD, BENCH_ERROR);
    }
    memset(partner->bytes, 0, size);
}

// Sends back what it receives, as many times as ordered.
static void echo(struct partner *partner, const struct order *order) {
    for (int i = 0; i < order->times; ++i) {
        receive_from(0, TAG_DATA, partner->bytes, SMALL);
        send_to(0, TAG_DATA, partner->bytes, SMALL);
    }
}

// Sends to the next partner and waits for its one byte; tells rank 0 how long both took.
static void pass_on(struct partner *partner, const struct order *order) {
    char taken;
    const double begin = seconds();
    send_to(partner->self + 1, TAG_DATA, partner->bytes, order->size);
    receive_from(partner->self + 1, TAG_DATA, &taken, 1);
    const double took = seconds() - begin;
    send_to(0, TAG_TIME, &took, sizeof(took));
}

// Receives and acknowledges with one byte, so that the sender's time ends with the arrival.
static void take(struct partner *partner, const struct order *order, int from) {
    receive_from(from, TAG_DATA, partner->bytes, order->size);
    send_to(from, TAG_DATA, "", 1);
}

// A sum over all partners, from a barrier on; the first partner tells the time.
static void add_up(struct partner *partner, const struct order *order) {
    MPI_Barrier(partner->comm);
    const double begin = seconds();
    MPI_Allreduce(MPI_IN_PLACE, partner->bytes, (int)(order->size / sizeof(float)), MPI_FLOAT,
                  MPI_SUM, partner->comm);
    const double took = seconds() - begin;
    if (partner->self == partner->first) send_to(0, TAG_TIME, &took, sizeof(took));
}

// Obeys orders until the last one.
static void serve(struct partner *partner) {
    struct order order = {0};
    while (order.kind != END) {
        await_order(&order);
        prepare(partner, (size_t)order.size + SMALL);
        if (order.kind != END) send_to(0, TAG_READY, "", 1);
        switch ((enum kind)order.kind) {
        case ECHO: echo(partner, &order); break;
        case TAKE: take(partner, &order, 0); break;
        case GIVE: send_to(0, TAG_DATA, partner->bytes, order.size); break;
        case PASS_ON: pass_on(partner, &order); break;
        case TAKE_PASSED: take(partner, &order, partner->self - 1); break;
        case ADD_UP: add_up(partner, &order); break;
        case END: break;
        }
    }
    free(partner->bytes);
}

// A communicator of the partners alone; all of them call this at once.
static MPI_Comm comm_of(const struct bare *bare) {
    MPI_Group world, group;
    MPI_Comm comm;
    int range[1][3] = {{bare->first, bare->first + bare->n - 1, 1}};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_range_incl(world, 1, range, &group);
    MPI_Comm_create_group(MPI_COMM_WORLD, group, TAG_GROUP, &comm);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    return comm;
}

bool bare_start(struct bare *out_bare) {
    int level, size, rank;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    *out_bare = (struct bare){.first = size - (size - 1) / 2, .n = (size - 1) / 2};
    if (rank < out_bare->first) return rank == 0;
    struct partner partner = {.self = rank, .first = out_bare->first, .comm = comm_of(out_bare)};
    serve(&partner);
    MPI_Comm_free(&partner.comm);
    return false;
}

// --- rank 0 --------------------------------------------------------------------------------------

// Sends an order and waits until the partner is ready, so that its preparations don't count.
static void give_order(int rank, enum kind kind, int times, size_t size) {
    const struct order order = {(int32_t)kind, times, size};
    char ready;
    send_to(rank, TAG_ORDER, &order, sizeof(order));
    if (kind != END) receive_from(rank, TAG_READY, &ready, 1);
}

static double told_time(int rank) {
    double took = 0;
    receive_from(rank, TAG_TIME, &took, sizeof(took));
    return took;
}

void bare_end(const struct bare *bare) {
    for (int i = 0; i < bare->n; ++i)
        give_order(bare->first + i, END, 0, 0);
}

double bare_round_trip(const struct bare *bare, int times) {
    char bytes[SMALL] = {0};
    give_order(bare->first, ECHO, times, 0);
    const double begin = seconds();
    for (int i = 0; i < times; ++i) {
        send_to(bare->first, TAG_DATA, bytes, SMALL);
        receive_from(bare->first, TAG_DATA, bytes, SMALL);
    }
    return (seconds() - begin) / times;
}

double bare_send(const struct bare *bare, void *bytes, size_t size) {
    char taken;
    give_order(bare->first, TAKE, 1, size);
    const double begin = seconds();
    send_to(bare->first, TAG_DATA, bytes, size);
    receive_from(bare->first, TAG_DATA, &taken, 1);
    return seconds() - begin;
}

double bare_receive(const struct bare *bare, void *bytes, size_t size) {
    give_order(bare->first, GIVE, 1, size);
    const double begin = seconds();
    receive_from(bare->first, TAG_DATA, bytes, size);
    return seconds() - begin;
}

double bare_between(const struct bare *bare, size_t size) {
    give_order(bare->first + 1, TAKE_PASSED, 1, size);
    give_order(bare->first, PASS_ON, 1, size);
    return told_time(bare->first);
}

double bare_all_reduce(const struct bare *bare, size_t n) {
    for (int i = 0; i < bare->n; ++i)
        give_order(bare->first + i, ADD_UP, 1, n * sizeof(float));
    return told_time(bare->first);
}
