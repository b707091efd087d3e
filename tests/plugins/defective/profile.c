// SPDX-License-Identifier: MIT
// When the nodes of graphs are computed: extension "ggml.profile".
#include <time.h>

#include "defective.h"

enum { MAX_SLICES = 256 };

// Of a stream; zero: off.
struct profile {
    bool is_on;
    uint64_t capacity, n, lost, tag;
    struct ggml_profile_slice slices[MAX_SLICES];
};

static uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(HAS(profile_clock_other) ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct profile *profile_of(ggml_backend_t stream) {
    struct profile **place = stream_profile(stream);
    if (!*place) {
        *place = ggml_aligned_malloc(sizeof(**place));
        if (!*place) abort();
        **place = (struct profile){.is_on = false};
    }
    return *place;
}

void profile_free(struct profile *profile) {
    if (profile) ggml_aligned_free(profile, sizeof(*profile));
}

uint64_t profile_tag(const struct profile *profile) {
    return profile && !HAS(profile_tag_ignored) ? profile->tag : 0;
}

uint64_t profile_begin(const struct profile *profile) {
    return profile ? clock_ns() : 0;
}

void profile_node(struct profile *profile, const struct ggml_graph *graph, int i, uint64_t tag,
                  uint64_t begin_ns) {
    const struct ggml_tensor *node = graph->nodes[i];
    const bool is_computed = !ggml_op_is_empty(node->op) && ggml_nelements(node) > 0 &&
                             node->flags & GGML_TENSOR_FLAG_COMPUTE;
    if (!profile || !profile->is_on || !is_computed) return;
    if (HAS(profile_node_missing) && i == graph->n_nodes - 1) return;
    if (profile->n == profile->capacity || profile->n == MAX_SLICES) {
        if (!HAS(profile_loss_untold)) ++profile->lost;
        return;
    }
    const uint64_t end_ns = HAS(profile_backwards) ? begin_ns - 1 : clock_ns();
    profile->slices[profile->n++] = (struct ggml_profile_slice){
        tag, HAS(profile_node_twice) && i > 0 ? i - 1 : i, 1, begin_ns, end_ns};
}

static int32_t begin(ggml_backend_t stream, uint64_t capacity) {
    struct profile *profile = profile_of(stream);
    if (profile->is_on && !HAS(profile_begins_twice))
        return fail(GGML_HOST_BUSY, "it is recording already");
    if (!HAS(profile_keeps)) *profile = (struct profile){.is_on = false};
    profile->is_on = true;
    profile->capacity = capacity;
    return GGML_HOST_OK;
}

static int32_t off(void) {
    return fail(GGML_HOST_INVALID_ARGUMENT, "it is not recording");
}

static int32_t tag(ggml_backend_t stream, uint64_t value) {
    struct profile *profile = profile_of(stream);
    if (!profile->is_on) return off();
    profile->tag = value;
    return GGML_HOST_OK;
}

static int32_t read_slices(ggml_backend_t stream, struct ggml_profile_slice *slices, uint64_t max,
                           uint64_t *out_count, uint64_t *out_lost) {
    struct profile *profile = profile_of(stream);
    *out_count = *out_lost = 0;
    if (!profile->is_on) return HAS(profile_never_ends) ? GGML_HOST_OK : off();
    const uint64_t n = profile->n < max ? profile->n : max;
    memcpy(slices, profile->slices, n * sizeof(slices[0]));
    profile->n -= n;
    memmove(profile->slices, profile->slices + n, profile->n * sizeof(slices[0]));
    *out_count = n;
    *out_lost = profile->lost;
    profile->lost = 0;
    return GGML_HOST_OK;
}

static int32_t end(ggml_backend_t stream) {
    struct profile *profile = profile_of(stream);
    if (!profile->is_on) return off();
    profile->is_on = false;
    return GGML_HOST_OK;
}

const struct ggml_extension_profile *profile_extension(void) {
    static struct ggml_extension_profile table = {
        .revision = 1, .begin = begin, .tag = tag, .read = read_slices, .end = end};
    table.size = HAS(profile_table_short) ? 8 : sizeof(table);
    return &table;
}
