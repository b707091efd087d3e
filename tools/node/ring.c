// SPDX-License-Identifier: MIT
// All-reduce of many bytes: a ring, in which every rank sends and receives 2 (n - 1) / n of them,
// and each part of the sum is made once.
//
// The sum is cut into a chunk for each rank. In step s a rank sends chunk self - s and takes the
// one before it, which in the first n - 1 steps is a sum of ranks so far, to which it adds its own
// part, and then is whole. So what is taken in one step is sent in the next one. A sum so far
// travels in pieces: one is added, in the cache still, and sent on while others come.
//
// Each transfer is posted once those that it needs are done, in an order that both sides know, as
// they have one tag. The host adds in the thread that calls MPI, which goes on at once: to hand
// each piece to another thread and back takes longer than to add it where processes share cores. A
// device adds by the queue's thread, since it may take its time.
#include <stdlib.h>

#include "ggml-plugin-sdk.h"
#include "reduce.h"

enum { PIECE = 1024 << 10, MOST_PIECES = 16, SLOTS = 4 };

struct transfer {
    struct link_op op;
    struct ring *ring;
    // So many transfers of each kind are done before this one is posted.
    size_t after_taken, after_given;
    char *mine; // NULL, or what is taken is added to this
    bool is_done;
};

// Transfers in the order in which they are posted.
struct way {
    struct transfer *list;
    size_t n, n_posted, n_done;
};

struct ring {
    struct reduction *r;
    pthread_mutex_t lock;
    pthread_cond_t changed; // there is something to do for the thread that waits
    struct way takes, gives;
    size_t n_under_way; // posted, and a callback may still run
    bool stops;
};

// --- chunks and pieces ---------------------------------------------------------------------------

static size_t begin_of(const struct reduction *r, uint32_t chunk) {
    const size_t rest = r->n_elements % r->n;
    return r->n_elements / r->n * chunk + (rest < chunk ? rest : chunk);
}

static size_t bytes_of(const struct reduction *r, uint32_t chunk) {
    return (begin_of(r, chunk + 1) - begin_of(r, chunk)) * r->element;
}

// Bytes of all pieces of a chunk but the last one.
static size_t piece_of(const struct reduction *r, uint32_t chunk) {
    const size_t size = bytes_of(r, chunk);
    size_t n = (size + PIECE - 1) / PIECE;
    n = n > MOST_PIECES ? MOST_PIECES : n;
    return (size / r->element + n - 1) / n * r->element;
}

// The largest pieces are those of two ranks.
static size_t largest_piece(size_t n_elements, size_t element) {
    const size_t half = (n_elements + 1) / 2;
    const size_t part = (half / MOST_PIECES + 1) * element;
    const size_t largest = part > PIECE ? part : PIECE;
    return largest < half * element ? largest : half * element;
}

size_t ring_scratch(size_t n_elements, size_t element) {
    return SLOTS * largest_piece(n_elements, element);
}

// --- the order of transfers ----------------------------------------------------------------------

static void note_done(struct link_op *op);

static struct transfer *append(struct ring *ring, struct way *way, void *data, size_t size) {
    struct reduction *r = ring->r;
    const uint32_t next = (r->self + 1) % r->n, before = (r->self + r->n - 1) % r->n;
    const bool takes = way == &ring->takes;
    struct transfer *transfer = &way->list[way->n++];
    *transfer = (struct transfer){.ring = ring};
    transfer->op =
        reduction_transfer(r, takes ? before : r->self, takes ? r->self : next, data, size);
    transfer->op.on_done = note_done;
    transfer->op.context = transfer;
    return transfer;
}

// One chunk of a sum so far. What is taken waits for a slot; what is sent was taken in the step
// before as the same piece, if it was taken.
static void append_pieces(struct ring *ring, struct way *way, uint32_t step, uint32_t chunk) {
    struct reduction *r = ring->r;
    const size_t size = bytes_of(r, chunk), piece = piece_of(r, chunk);
    const size_t slot = largest_piece(r->n_elements, r->element), taken_before = ring->takes.n;
    char *mine = r->sum + begin_of(r, chunk) * r->element;
    const bool takes = way == &ring->takes;
    const bool adds = takes && reduction_counts(r, chunk, step + 1);
    size_t i = 0;
    for (size_t at = 0; at < size; at += piece, ++i) {
        const size_t bytes = size - at < piece ? size - at : piece, q = way->n;
        char *data = takes ? r->other + q % SLOTS * slot : mine + at;
        struct transfer *transfer = append(ring, way, data, bytes);
        if (takes) transfer->after_taken = q < SLOTS ? 0 : q - SLOTS + 1;
        if (adds) transfer->mine = mine + at;
    }
    if (takes || step == 0) return;
    for (size_t k = 0; k < i; ++k)
        way->list[way->n - i + k].after_taken = taken_before - i + k + 1;
}

// One chunk that is whole. It is taken to where the sum so far was sent from, when as many sends as
// that are done; it is sent once everything is taken that was to be before.
static void append_whole(struct ring *ring, struct way *way, uint32_t chunk, size_t n_given) {
    struct reduction *r = ring->r;
    const size_t taken_before = ring->takes.n;
    struct transfer *transfer =
        append(ring, way, r->sum + begin_of(r, chunk) * r->element, bytes_of(r, chunk));
    if (way == &ring->takes)
        transfer->after_given = n_given;
    else
        transfer->after_taken = taken_before;
}

// Sends of a step are appended before what is taken in it.
static void plan(struct ring *ring) {
    const struct reduction *r = ring->r;
    const uint32_t n = r->n;
    size_t n_given[WIRE_MAX_RANKS]; // after each of the first steps
    for (uint32_t step = 0; step + 1 < n; ++step) {
        const uint32_t sent = (r->self + n - step) % n, taken = (sent + n - 1) % n;
        append_pieces(ring, &ring->gives, step, sent);
        append_pieces(ring, &ring->takes, step, taken);
        n_given[step] = ring->gives.n;
    }
    for (uint32_t step = 0; step + 1 < n; ++step) {
        const uint32_t sent = (r->self + 1 + n - step) % n, taken = (sent + n - 1) % n;
        append_whole(ring, &ring->gives, sent, 0);
        append_whole(ring, &ring->takes, taken, n_given[step]);
    }
}

// --- the way of a sum; the caller holds the lock -------------------------------------------------

static bool is_ready(const struct ring *ring, const struct way *way) {
    if (ring->stops || way->n_posted == way->n) return false;
    const struct transfer *next = &way->list[way->n_posted];
    return next->after_taken <= ring->takes.n_done && next->after_given <= ring->gives.n_done;
}

static void post_ready(struct ring *ring, struct way *way) {
    while (is_ready(ring, way)) {
        ++ring->n_under_way;
        link_post(ring->r->server->link, &way->list[way->n_posted++].op);
    }
}

// What has failed ends what is under way with others: they may be gone too.
static void stop(struct ring *ring) {
    struct way *const ways[2] = {&ring->takes, &ring->gives};
    ring->stops = true;
    ring->r->gave_up = ring->r->gave_up || ring->n_under_way > 0;
    for (int k = 0; k < 2; ++k)
        for (size_t i = ways[k]->n_done; i < ways[k]->n_posted; ++i)
            if (!ways[k]->list[i].is_done) link_cancel(ring->r->server->link, &ways[k]->list[i].op);
}

// Whether something has come that was not added yet.
static bool has_come(const struct ring *ring) {
    const struct way *takes = &ring->takes;
    return !ring->stops && takes->n_done < takes->n_posted && takes->list[takes->n_done].is_done;
}

// Without the lock. False: the device can't.
static bool add(struct reduction *r, const struct transfer *taken) {
    const size_t n = taken->op.size / r->element;
    const bool counts = r->ranks[r->self].counts != 0;
    const void *const parts[2] = {taken->op.data, counts ? taken->mine : NULL};
    if (!taken->mine) return true;
    if (r->device)
        r->status = device_sum_add(r->queue, r->device, taken->mine, taken->op.data, n, counts);
    else
        ggml_sdk_comm_combine(r->how, r->type, parts, 2, 0, n, taken->mine);
    return r->status == GGML_HOST_OK;
}

// Adds what has come, in order, and posts what is ready then. By one thread at a time.
static void advance(struct ring *ring) {
    struct way *gives = &ring->gives;
    while (gives->n_done < gives->n_posted && gives->list[gives->n_done].is_done)
        ++gives->n_done;
    post_ready(ring, &ring->takes);
    post_ready(ring, gives);
    while (has_come(ring)) {
        pthread_mutex_unlock(&ring->lock);
        const bool good = add(ring->r, &ring->takes.list[ring->takes.n_done]);
        pthread_mutex_lock(&ring->lock);
        if (!good) {
            stop(ring);
            break;
        }
        ++ring->takes.n_done;
        post_ready(ring, &ring->takes);
        post_ready(ring, gives);
    }
}

static bool is_over(const struct ring *ring) {
    const bool all = ring->takes.n_done == ring->takes.n && ring->gives.n_done == ring->gives.n;
    return ring->n_under_way == 0 && (all || ring->stops);
}

// --- threads -------------------------------------------------------------------------------------

// By the link's thread. The ring may be gone once it is unlocked.
static void note_done(struct link_op *op) {
    struct transfer *transfer = op->context;
    struct ring *ring = transfer->ring;
    struct reduction *r = ring->r;
    pthread_mutex_lock(&ring->lock);
    transfer->is_done = true;
    if (op->failed && !ring->stops) stop(ring);
    if (!op->failed && r->device) atomic_fetch_add(&r->server->device_memory.bytes, op->size);
    if (!r->device) advance(ring);
    --ring->n_under_way;
    if (r->device || is_over(ring)) pthread_cond_signal(&ring->changed);
    pthread_mutex_unlock(&ring->lock);
}

// Whether the queue's thread has something to do.
static bool wakes(void *context) {
    struct ring *ring = context;
    if (is_over(ring) || (!ring->stops && reduction_is_lost(ring->r))) return true;
    const struct way *gives = &ring->gives;
    return ring->r->device && (has_come(ring) || (gives->n_done < gives->n_posted &&
                                                  gives->list[gives->n_done].is_done));
}

static bool go_round(struct ring *ring) {
    struct reduction *r = ring->r;
    const struct link_waiting waiting = {&ring->lock, &ring->changed, wakes, ring};
    pthread_mutex_lock(&ring->lock);
    post_ready(ring, &ring->takes);
    post_ready(ring, &ring->gives);
    while (!is_over(ring)) {
        link_await(r->server->link, &waiting);
        if (!ring->stops && reduction_is_lost(r))
            stop(ring);
        else if (r->device)
            advance(ring);
    }
    pthread_mutex_unlock(&ring->lock);
    return !ring->stops;
}

bool ring_sum(struct reduction *r) {
    const size_t most = (size_t)(r->n - 1) * (MOST_PIECES + 1);
    struct ring ring = {.r = r};
    ring.takes.list = malloc(2 * most * sizeof(struct transfer));
    if (!ring.takes.list) {
        r->status = fail(GGML_HOST_OUT_OF_MEMORY, "no memory for a sum");
        return false;
    }
    ring.gives.list = ring.takes.list + most;
    pthread_mutex_init(&ring.lock, NULL);
    link_cond_init(&ring.changed);
    plan(&ring);
    const bool good = go_round(&ring);
    pthread_cond_destroy(&ring.changed);
    pthread_mutex_destroy(&ring.lock);
    free(ring.takes.list);
    return good;
}
