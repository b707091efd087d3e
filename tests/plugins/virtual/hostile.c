// SPDX-License-Identifier: MIT
// Extensions that break their contract, for tests of what the host takes from them.
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <time.h>

#include "internal.h"

enum { NO_STATUS = 12345, TABLE_START = 8 };

// --- profiles

static int32_t take_number(ggml_backend_t stream, uint64_t number) {
    (void)stream;
    (void)number;
    return GGML_HOST_OK;
}

static int32_t begin_without_status(ggml_backend_t stream, uint64_t capacity) {
    (void)stream;
    (void)capacity;
    return NO_STATUS;
}

static int32_t end_profile(ggml_backend_t stream) {
    (void)stream;
    return GGML_HOST_OK;
}

static int32_t read_endless(ggml_backend_t stream, struct ggml_profile_slice *slices, uint64_t max,
                            uint64_t *out_count, uint64_t *out_lost) {
    (void)stream;
    memset(slices, 0, max * sizeof(*slices));
    for (uint64_t i = 0; i < max; ++i)
        slices[i].tag = 1;
    *out_count = max;
    *out_lost = 1;
    return GGML_HOST_OK;
}

// Each slice but the first is wrong in one way.
static int32_t read_lies(ggml_backend_t stream, struct ggml_profile_slice *slices, uint64_t max,
                         uint64_t *out_count, uint64_t *out_lost) {
    struct timespec clock;
    (void)stream;
    (void)out_lost;
    if (max < HOSTILE_SLICES) return GGML_HOST_INVALID_ARGUMENT;
    clock_gettime(CLOCK_MONOTONIC, &clock);
    const uint64_t now = (uint64_t)clock.tv_sec * 1000000000u + (uint64_t)clock.tv_nsec;
    memset(slices, 0, max * sizeof(*slices));
    for (int i = 0; i < HOSTILE_SLICES; ++i)
        slices[i] = (struct ggml_profile_slice){1, 0, 1, now, now};
    slices[1].tag = UINT64_MAX;
    slices[2].first_node = -1;
    slices[3].first_node = INT32_MAX;
    slices[4].n_nodes = 0;
    slices[5].n_nodes = INT32_MAX;
    slices[6].begin_ns = 0;
    slices[7].end_ns = now - 1;
    *out_count = UINT64_MAX;
    return GGML_HOST_OK;
}

const struct ggml_extension_profile *hostile_profile(int64_t kind) {
    enum { SIZE = sizeof(struct ggml_extension_profile), REVISION = 1 };
    static const struct ggml_extension_profile tables[HOSTILE_PROFILE_COUNT] = {
        [HOSTILE_PROFILE_ENDLESS] = {SIZE, REVISION, take_number, take_number, read_endless,
                                     end_profile},
        [HOSTILE_PROFILE_LIES] = {SIZE, REVISION, take_number, take_number, read_lies, end_profile},
        [HOSTILE_PROFILE_NO_STATUS] = {SIZE, REVISION, begin_without_status, take_number, read_lies,
                                       end_profile},
        [HOSTILE_PROFILE_NO_BEGIN] = {SIZE, REVISION, NULL, take_number, read_lies, end_profile},
        [HOSTILE_PROFILE_NO_TAG] = {SIZE, REVISION, take_number, NULL, read_lies, end_profile},
        [HOSTILE_PROFILE_NO_READ] = {SIZE, REVISION, take_number, take_number, NULL, end_profile},
        [HOSTILE_PROFILE_NO_END] = {SIZE, REVISION, take_number, take_number, read_lies, NULL},
        [HOSTILE_PROFILE_SHORT] = {TABLE_START, REVISION, take_number, take_number, read_lies,
                                   end_profile},
    };
    return kind > 0 && kind < HOSTILE_PROFILE_COUNT ? &tables[kind] : NULL;
}

// --- communicators

static int32_t sum_without_status(ggml_comm_group_t group, enum ggml_comm_reduction reduction,
                                  struct ggml_tensor *const *parts, const uint8_t *counts) {
    (void)group;
    (void)reduction;
    (void)parts;
    (void)counts;
    return NO_STATUS;
}

static int32_t new_without_group(const struct ggml_comm_ranks *ranks,
                                 ggml_comm_group_t *out_group) {
    (void)ranks;
    (void)out_group;
    return GGML_HOST_OK;
}

static int32_t new_bad_group(const struct ggml_comm_ranks *ranks, ggml_comm_group_t *out_group) {
    (void)ranks;
    *out_group = (ggml_comm_group_t)(uintptr_t)TABLE_START;
    return NO_STATUS;
}

const struct ggml_extension_comm *hostile_comm(int64_t kind) {
    static struct ggml_extension_comm tables[HOSTILE_COMM_COUNT];
    if (kind <= 0 || kind >= HOSTILE_COMM_COUNT) return NULL;
    struct ggml_extension_comm *table = &tables[kind];
    *table = comm_extension;
    switch (kind) {
    case HOSTILE_COMM_NO_STATUS: table->all_reduce = sum_without_status; break;
    case HOSTILE_COMM_NO_NEW: table->group_new = NULL; break;
    case HOSTILE_COMM_NO_FREE: table->group_free = NULL; break;
    case HOSTILE_COMM_NO_SUM: table->all_reduce = NULL; break;
    case HOSTILE_COMM_SHORT: table->size = TABLE_START; break;
    case HOSTILE_COMM_NO_GROUP: table->group_new = new_without_group; break;
    case HOSTILE_COMM_BAD_GROUP: table->group_new = new_bad_group; break;
    default: break;
    }
    if (kind == HOSTILE_COMM_SHORT) table->all_reduce = sum_without_status; // whoever asks is told
    return table;
}
