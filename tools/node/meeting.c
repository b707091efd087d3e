// SPDX-License-Identifier: MIT
// Ranks of one node meet at a sum: each adds a slice of all their parts, in the order of ranks, to
// the memory of the first one, which then exchanges the sum with other nodes; the others copy the
// result. So what goes between nodes doesn't grow with the devices of a node.
#include <stdlib.h>
#include <string.h>

#include "ggml-plugin-sdk.h"
#include "server.h"

struct meeting {
    struct server *server;
    struct local_sum sum;
    char *parts[WIRE_MAX_RANKS]; // NULL: that rank is not here yet
    uint32_t n_here, n_added, n_left;
    bool begun, ended, good;
    struct meeting *next;
};

// All that the ranks were told is compared: the program is a stranger.
static bool agree(const struct local_sum *a, const struct local_sum *b) {
    return a->how == b->how && a->type == b->type && a->n_elements == b->n_elements &&
           a->bytes == b->bytes && a->n == b->n && memcmp(a->counts, b->counts, a->n) == 0;
}

// Under the lock, as those below.
static void unlink_meeting(struct meeting *meeting) {
    struct meeting **at = &meeting->server->meetings;
    while (*at != meeting)
        at = &(*at)->next;
    *at = meeting->next;
}

static struct meeting *find(struct server *server, const struct local_sum *sum) {
    struct meeting *meeting = server->meetings;
    while (meeting && meeting->sum.group != sum->group)
        meeting = meeting->next;
    if (meeting) return meeting;
    meeting = calloc(1, sizeof(*meeting));
    if (!meeting) return NULL;
    *meeting = (struct meeting){.server = server, .sum = *sum, .next = server->meetings};
    return server->meetings = meeting;
}

// The group's meeting with this rank in it. One that all have come to is taken out of the list, so
// that a rank which is done early begins the next one.
static struct meeting *join(struct server *server, const struct local_sum *sum, uint32_t self,
                            char *memory) {
    struct meeting *meeting = find(server, sum);
    if (!meeting) {
        fail(GGML_HOST_OUT_OF_MEMORY, "no memory for a sum");
        return NULL;
    }
    if (!agree(&meeting->sum, sum) || meeting->parts[self]) {
        refuse("a sum that is not that of another rank");
        return NULL;
    }
    meeting->parts[self] = memory;
    if (++meeting->n_here == sum->n) {
        unlink_meeting(meeting);
        meeting->begun = true;
        pthread_cond_broadcast(&server->progress);
    }
    return meeting;
}

static void leave_early(struct meeting *meeting, uint32_t self) {
    meeting->parts[self] = NULL;
    if (--meeting->n_here > 0) return;
    unlink_meeting(meeting);
    free(meeting);
}

// Elements of the slice are read and written by this rank alone.
static void add_slice(const struct meeting *meeting, uint32_t self) {
    const struct local_sum *sum = &meeting->sum;
    const size_t each = sum->n_elements / sum->n, begin = each * self;
    const size_t end = self + 1 == sum->n ? sum->n_elements : begin + each;
    const void *parts[WIRE_MAX_RANKS];
    for (uint32_t i = 0; i < sum->n; ++i)
        parts[i] = sum->counts[i] ? meeting->parts[i] : NULL;
    ggml_sdk_comm_combine(sum->how, sum->type, parts, sum->n, begin, end, meeting->parts[0]);
}

struct meeting *meeting_enter(struct server *server, const struct local_sum *sum, uint32_t self,
                              char *memory, bool (*gives_up)(void *context), void *context) {
    pthread_mutex_lock(&server->lock);
    struct meeting *meeting = join(server, sum, self, memory);
    while (meeting && !meeting->begun && !gives_up(context) && !server->ends)
        pthread_cond_wait(&server->progress, &server->lock);
    if (meeting && !meeting->begun) {
        leave_early(meeting, self);
        meeting = NULL;
        fail(GGML_HOST_DEVICE_LOST, "another rank of the group is gone");
    }
    pthread_mutex_unlock(&server->lock);
    if (!meeting) return NULL;
    add_slice(meeting, self);
    pthread_mutex_lock(&server->lock);
    if (++meeting->n_added == sum->n) pthread_cond_broadcast(&server->progress);
    while (self == 0 && meeting->n_added < sum->n)
        pthread_cond_wait(&server->progress, &server->lock);
    pthread_mutex_unlock(&server->lock);
    return meeting;
}

void meeting_end(struct meeting *meeting, bool good) {
    struct server *server = meeting->server;
    pthread_mutex_lock(&server->lock);
    meeting->good = good;
    meeting->ended = true;
    pthread_cond_broadcast(&server->progress);
    while (meeting->n_left + 1 < meeting->sum.n)
        pthread_cond_wait(&server->progress, &server->lock);
    pthread_mutex_unlock(&server->lock);
    free(meeting);
}

bool meeting_leave(struct meeting *meeting, char *memory) {
    struct server *server = meeting->server;
    pthread_mutex_lock(&server->lock);
    while (!meeting->ended)
        pthread_cond_wait(&server->progress, &server->lock);
    const bool good = meeting->good;
    pthread_mutex_unlock(&server->lock);
    if (good) memmove(memory, meeting->parts[0], meeting->sum.bytes); // a stranger's may overlap
    pthread_mutex_lock(&server->lock);
    ++meeting->n_left; // the first rank frees it once all have
    pthread_cond_broadcast(&server->progress);
    pthread_mutex_unlock(&server->lock);
    return good;
}
