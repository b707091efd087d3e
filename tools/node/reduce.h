// SPDX-License-Identifier: MIT
// One rank's part of an all-reduce, for the algorithms that do it.
#ifndef GGML_NODE_REDUCE_H
#define GGML_NODE_REDUCE_H

#include "server.h"

struct reduction {
    struct server *server;
    struct queue *queue;
    uint64_t group;
    enum ggml_comm_reduction how;
    enum ggml_type type;
    uint32_t n, self;
    uint32_t first_tag;
    struct wire_rank ranks[WIRE_MAX_RANKS];
    size_t n_elements, element;
    char *sum;   // the rank's part, then the sum
    char *other; // what another rank sent
    bool gave_up;
    const struct held_buffer *device; // NULL, or sum and other lie in its device's memory
    enum ggml_host_status status;     // of what the device added
};

// --- reduce.c ------------------------------------------------------------------------------------

// Whether to give up: this rank has, or the group has been reported lost. [any-thread]
bool reduction_is_lost(void *reduction);
// Whether one of the `count` ranks from that one on counts, round the ring.
bool reduction_counts(const struct reduction *r, uint32_t first, uint32_t count);
// What a transfer between two ranks, of which this is one, needs. Tags are those of the group, one
// per pair of ranks.
struct link_op reduction_transfer(const struct reduction *r, uint32_t from, uint32_t to, void *data,
                                  size_t size);

// --- ring.c --------------------------------------------------------------------------------------

// Bytes of `other` that ring_sum() needs for a sum of so many elements between any number of ranks.
size_t ring_scratch(size_t n_elements, size_t element);
// Adds up many bytes: at least one element per rank. False: a rank is lost, or the device can't
// add. Blocks. By the queue's thread.
bool ring_sum(struct reduction *r);

#endif
