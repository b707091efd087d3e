// SPDX-License-Identifier: MIT
// Finds data races between streams: each piece of queued work has the ranges of memory it reads
// and writes, and a violation is logged when two unordered pieces conflict.
#include <stdlib.h>

#include "internal.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct hazard *first;

static int compare(const void *a, const void *b) {
    const struct hazard_range *x = a, *y = b;
    if (x->writes != y->writes) return x->writes - y->writes;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

// Joins what overlaps, so that comparing two graphs is cheap.
static void merge(struct hazard *hazard) {
    struct hazard_range *ranges = hazard->ranges;
    size_t n = 0;
    if (hazard->n_ranges < 2) return;
    qsort(ranges, hazard->n_ranges, sizeof(*ranges), compare);
    for (size_t i = 1; i < hazard->n_ranges; ++i) {
        struct hazard_range *last = &ranges[n];
        if (ranges[i].writes == last->writes && ranges[i].begin <= last->end) {
            if (ranges[i].end > last->end) last->end = ranges[i].end;
        } else {
            ranges[++n] = ranges[i];
        }
    }
    hazard->n_ranges = n + 1;
}

void hazard_queue(struct hazard *hazard) {
    merge(hazard);
    pthread_mutex_lock(&mutex);
    hazard->previous = NULL;
    hazard->next = first;
    if (first) first->previous = hazard;
    first = hazard;
    pthread_mutex_unlock(&mutex);
}

void hazard_done(struct hazard *hazard) {
    pthread_mutex_lock(&mutex);
    if (hazard->next) hazard->next->previous = hazard->previous;
    if (hazard->previous)
        hazard->previous->next = hazard->next;
    else
        first = hazard->next;
    pthread_mutex_unlock(&mutex);
}

struct range_list {
    const struct hazard_range *items;
    size_t n;
};

// Those that write, or those that only read; sorted and apart from each other.
static struct range_list part(const struct hazard *hazard, bool writes) {
    size_t n_reads = 0;
    if (hazard->n_ranges == 0) return (struct range_list){NULL, 0};
    while (n_reads < hazard->n_ranges && !hazard->ranges[n_reads].writes)
        ++n_reads;
    if (!writes) return (struct range_list){hazard->ranges, n_reads};
    return (struct range_list){hazard->ranges + n_reads, hazard->n_ranges - n_reads};
}

static bool overlap(struct range_list a, struct range_list b) {
    size_t i = 0, k = 0;
    while (i < a.n && k < b.n) {
        if (a.items[i].end <= b.items[k].begin)
            ++i;
        else if (b.items[k].end <= a.items[i].begin)
            ++k;
        else
            return true;
    }
    return false;
}

static bool conflict(const struct hazard *a, const struct hazard *b) {
    return overlap(part(a, true), part(b, true)) || overlap(part(a, true), part(b, false)) ||
           overlap(part(a, false), part(b, true));
}

void hazard_start(struct hazard *hazard) {
    char name[sizeof(hazard->name)] = "";
    bool found = false;
    pthread_mutex_lock(&mutex);
    hazard->runs = true;
    for (struct hazard *other = first; other && !found && !hazard->reported; other = other->next) {
        const bool concurrent =
            other != hazard && other->stream != hazard->stream && (other->runs || !hazard->stream);
        found = concurrent && conflict(hazard, other);
        if (!found) continue;
        other->reported = true;
        memcpy(name, other->name, sizeof(name));
    }
    pthread_mutex_unlock(&mutex);
    if (found) {
        log_violation(hazard->device, "race: '%s' and '%s' touch the same bytes without an order",
                      hazard->name, name);
    }
}

bool hazard_touches(const char *begin, size_t size) {
    struct hazard_range range = {begin, begin + size, true};
    const struct hazard probe = {.ranges = &range, .n_ranges = 1};
    bool found = false;
    pthread_mutex_lock(&mutex);
    for (const struct hazard *other = first; other && !found; other = other->next) {
        found = conflict(&probe, other);
    }
    pthread_mutex_unlock(&mutex);
    return found;
}
