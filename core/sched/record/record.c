// SPDX-License-Identifier: MIT
// A stream's slices name a tag and a node of a graph. Each part of a graph that is given to a
// stream has a number, which is the tag, and a slice without times for each of its nodes, since
// tensors may end before the profile is read.
#define _POSIX_C_SOURCE 200809L
#include "sched/record/record.h"

#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/mem.h"

enum { READ_AT_ONCE = 256 };

// The clock that plugins use too (ggml-ext-profile.h): slices of all sources can be compared.
uint64_t sched_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// --- slices

// A slice of a stream in this run, without times and of no tensor.
static struct ggml_sched_slice new_slice(const struct ggml_sched_profile *profile,
                                         enum ggml_sched_slice_kind kind, int32_t backend) {
    return (struct ggml_sched_slice){
        .kind = kind,
        .stream = backend,
        .from = -1,
        .node = -1,
        .run = profile->run,
        .device = profile->streams[backend].device,
        .name = "",
        .op = "",
        .type = "",
    };
}

// What a profile says about a tensor, without references to it.
static void describe(struct profile_node *out, const struct ggml_tensor *tensor) {
    memcpy(out->name, tensor->name, sizeof(out->name) - 1);
    memcpy(out->slice.ne, tensor->ne, sizeof(out->slice.ne));
    out->slice.name = out->name;
    out->slice.op = ggml_op_desc(tensor);
    out->slice.type = ggml_type_name(tensor->type);
    out->slice.bytes = ggml_nbytes(tensor);
}

// Appends a slice. Without memory, without a message, it is counted as lost: recording is nothing
// that a computation may fail for.
static void add_slice(struct ggml_sched_profile *profile, struct ggml_sched_slice slice,
                      uint64_t begin_ns, uint64_t end_ns) {
    if (!array_extend(&profile->slices, &profile->slices_capacity, profile->n_slices, 1,
                      sizeof(profile->slices[0]))) {
        ++profile->lost;
        return;
    }
    slice.begin_ns = begin_ns - profile->begin_ns;
    slice.end_ns = end_ns - profile->begin_ns;
    profile->slices[profile->n_slices++] = slice;
}

// --- while graphs are computed

// Appends a part of n nodes; NULL without memory. The first node is there even if there are none.
static struct profile_part *add_part(struct ggml_sched_profile *profile, int n) {
    struct profile_node *nodes = arena_alloc(&profile->arena, ((size_t)n + 1) * sizeof(nodes[0]));
    if (!nodes || !array_extend(&profile->parts, &profile->parts_capacity, profile->n_parts, 1,
                                sizeof(profile->parts[0]))) {
        return NULL;
    }
    profile->parts[profile->n_parts] = (struct profile_part){nodes, n};
    return &profile->parts[profile->n_parts++];
}

// Called before a part of a graph is given to a stream: its slices will carry the part's number.
void sched_profile_enter(struct ggml_sched_profile *profile, int32_t backend, ggml_backend_t stream,
                         const struct ggml_graph *graph, int first) {
    const struct ggml_extension_profile *extension = profile->streams[backend].extension;
    const struct profile_part *part = add_part(profile, graph->n_nodes);
    profile->part = part ? profile->n_parts : 0;
    if (!part) {
        ++profile->lost;
        return;
    }
    for (int i = 0; i <= part->n_nodes; ++i) {
        part->nodes[i].slice = new_slice(profile, GGML_SCHED_SLICE_NODE, backend);
        part->nodes[i].slice.node = first + i;
        if (i < part->n_nodes) describe(&part->nodes[i], graph->nodes[i]);
    }
    if (extension) extension->tag(stream, profile->part);
}

// Called after it; a stream whose plugin doesn't record gets one slice for the part as a whole.
void sched_profile_leave(struct ggml_sched_profile *profile, int32_t backend, ggml_backend_t stream,
                         uint64_t begin_ns) {
    const struct ggml_extension_profile *extension = profile->streams[backend].extension;
    if (profile->part == 0) return;
    const struct profile_part *part = &profile->parts[profile->part - 1];
    if (extension) { // what the application computes there is not the scheduler's
        extension->tag(stream, 0);
    } else {
        struct ggml_sched_slice slice = part->nodes[0].slice;
        slice.kind = GGML_SCHED_SLICE_SPLIT;
        slice.n_nodes = part->n_nodes;
        add_slice(profile, slice, begin_ns, sched_clock_ns());
    }
    profile->part = 0;
}

// A slice for a copy between streams; its type and size are the tensor's, its operation is
// empty.
void sched_profile_copy(struct ggml_sched_profile *profile, const struct sched_work *work,
                        int32_t copy, uint64_t begin_ns) {
    const struct sched_copy *made = &work->partition->copies[copy];
    struct profile_node *node = arena_alloc(&profile->arena, sizeof(*node));
    if (!node) {
        ++profile->lost;
        return;
    }
    node->slice = new_slice(profile, GGML_SCHED_SLICE_COPY, made->backend);
    describe(node, work->graph->values[made->value].tensor);
    node->slice.op = "";
    node->slice.from = work->placement->placed[made->value].backend;
    add_slice(profile, node->slice, begin_ns, sched_clock_ns());
}

// A slice for the time in which the calling thread waited for a stream.
void sched_profile_wait(struct ggml_sched_profile *profile, int32_t backend, uint64_t begin_ns) {
    add_slice(profile, new_slice(profile, GGML_SCHED_SLICE_WAIT, backend), begin_ns,
              sched_clock_ns());
}

// --- from the streams

// Adds a plugin's slice. What it says is checked against the part: a slice that can't be is counted
// as lost.
static void take_slice(struct ggml_sched_profile *profile, const struct ggml_profile_slice *said) {
    if (said->tag == 0) return;
    const struct profile_part *part =
        said->tag <= profile->n_parts ? &profile->parts[said->tag - 1] : NULL;
    if (!part || said->first_node < 0 || said->first_node >= part->n_nodes || said->n_nodes < 1 ||
        said->n_nodes > part->n_nodes || said->begin_ns < profile->begin_ns ||
        said->end_ns < said->begin_ns) {
        ++profile->lost;
        return;
    }
    struct ggml_sched_slice slice = part->nodes[said->first_node].slice;
    slice.n_nodes = said->n_nodes;
    add_slice(profile, slice, said->begin_ns, said->end_ns);
}

// How to read the slices of a stream; NULL if it has none or was freed. A stream that is listed
// twice has no more slices, and records no longer, when it is asked again.
static const struct ggml_extension_profile *telling(const struct sched_runs *runs, int b) {
    return runs->queues[b].watch.ended ? NULL : runs->profile->streams[b].extension;
}

// No more than it keeps: a stream that always has another slice does not hold up the scheduler.
static void read_stream(const struct sched_setup *setup, struct sched_runs *runs, int b) {
    const struct ggml_extension_profile *extension = telling(runs, b);
    struct ggml_profile_slice slices[READ_AT_ONCE];
    uint64_t n = READ_AT_ONCE;
    const uint64_t most = runs->profile->capacity;
    for (uint64_t all = 0; extension && n == READ_AT_ONCE && all <= most; all += n) {
        uint64_t lost = 0;
        n = 0;
        if (extension->read(setup->streams[b].backend, slices, READ_AT_ONCE, &n, &lost) !=
            GGML_HOST_OK)
            return;
        for (uint64_t i = 0; i < n && i < READ_AT_ONCE; ++i) {
            take_slice(runs->profile, &slices[i]);
        }
        runs->profile->lost += lost;
    }
}

// In the order of the streams; sorted by time at the end.
void sched_profile_read(const struct sched_setup *setup, struct sched_runs *runs) {
    for (int b = 0; b < setup->n_streams; ++b) {
        read_stream(setup, runs, b);
    }
}

// Called before each run, so that plugins' memory for slices isn't used up.
void sched_profile_collect(const struct sched_setup *setup, struct sched_runs *runs) {
    sched_profile_read(setup, runs);
    ++runs->profile->run;
}

// --- end

// A profile that could not be begun has perhaps no streams.
struct ggml_sched_profile *sched_profile_stop(const struct sched_setup *setup,
                                              struct sched_runs *runs) {
    struct ggml_sched_profile *profile = runs->profile;
    for (int b = 0; profile && profile->streams && b < setup->n_streams; ++b) {
        const struct ggml_extension_profile *extension = telling(runs, b);
        if (extension) extension->end(setup->streams[b].backend);
    }
    runs->profile = NULL;
    return profile;
}

// Independent of the scheduler, which may be gone.
void ggml_sched_profile_free(ggml_sched_profile_t profile) {
    if (!profile) return;
    ggml_mem_free(profile->slices);
    ggml_mem_free(profile->parts);
    arena_free(&profile->arena);
    ggml_mem_free(profile->text);
    ggml_mem_free(profile->json);
    ggml_mem_free(profile);
}
