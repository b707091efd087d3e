// SPDX-License-Identifier: MIT
// A stream's slices name a tag and a node of a graph. Each part of a graph that is given to a
// stream is one entry of `parts`, whose number is the tag, and the nodes it had are described in
// `tensors`, since tensors may end before the profile is read.
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

// Room for n more behind the last; NULL, without a message, when memory runs out: recording is
// nothing that a computation may fail for.
static void *list_add(struct profile_list *list, size_t n, size_t element) {
    if (!array_extend(&list->values, &list->capacity, list->n, n, element)) return NULL;
    void *added = (char *)list->values + list->n * element;
    list->n += n;
    return added;
}

// What a report says about a tensor, without references to it.
static void describe(struct profile_tensor *out, const struct ggml_tensor *tensor) {
    *out = (struct profile_tensor){
        .op = ggml_op_desc(tensor),
        .type = ggml_type_name(tensor->type),
        .bytes = ggml_nbytes(tensor),
    };
    memcpy(out->name, tensor->name, sizeof(out->name) - 1);
    memcpy(out->ne, tensor->ne, sizeof(out->ne));
}

// --- while graphs are computed

// Appends a span; without memory it is counted as lost.
static void add_span(struct sched_profile *profile, struct profile_span span) {
    struct profile_span *added = list_add(&profile->spans, 1, sizeof(span));
    if (added) {
        *added = span;
    } else {
        ++profile->lost;
    }
}

// Where the same nodes are described already: in the run before, if that was of the same graph.
static size_t find_described(const struct sched_profile *profile, const struct ggml_graph *graph) {
    const struct profile_part *parts = profile->parts.values;
    if (graph->uid == 0) return PROFILE_NO_TENSOR;
    const size_t place = profile->parts.n - profile->first_part_of_run;
    const size_t before = profile->first_part_of_last_run + place;
    if (before >= profile->first_part_of_run || parts[before].uid != graph->uid)
        return PROFILE_NO_TENSOR;
    return parts[before].n_nodes == graph->n_nodes ? parts[before].tensor : PROFILE_NO_TENSOR;
}

// Describes the nodes of a part; returns the index of the first, PROFILE_NO_TENSOR without memory.
static size_t describe_nodes(struct sched_profile *profile, const struct ggml_graph *graph) {
    struct profile_tensor *tensors =
        list_add(&profile->tensors, (size_t)graph->n_nodes, sizeof(*tensors));
    if (!tensors) return PROFILE_NO_TENSOR;
    for (int i = 0; i < graph->n_nodes; ++i) {
        describe(&tensors[i], graph->nodes[i]);
    }
    return profile->tensors.n - (size_t)graph->n_nodes;
}

// Called before a part of a graph is given to a stream: its slices will carry the part's number.
void sched_profile_enter(struct sched_profile *profile, int32_t backend, ggml_backend_t stream,
                         const struct ggml_graph *graph, int first) {
    const struct ggml_extension_profile *extension = profile->streams[backend].extension;
    size_t tensor = find_described(profile, graph);
    if (tensor == PROFILE_NO_TENSOR) tensor = describe_nodes(profile, graph);
    struct profile_part *part =
        tensor != PROFILE_NO_TENSOR ? list_add(&profile->parts, 1, sizeof(*part)) : NULL;
    profile->part = part ? profile->parts.n : 0;
    if (!part) {
        ++profile->lost;
        return;
    }
    *part = (struct profile_part){
        .run = profile->run,
        .uid = graph->uid,
        .tensor = tensor,
        .backend = backend,
        .first = first,
        .n_nodes = graph->n_nodes,
    };
    if (extension) extension->tag(stream, profile->part);
}

// Called after it; a stream whose plugin doesn't record gets one slice for the part as a whole.
void sched_profile_leave(struct sched_profile *profile, int32_t backend, ggml_backend_t stream,
                         uint64_t begin_ns) {
    const struct ggml_extension_profile *extension = profile->streams[backend].extension;
    if (profile->part == 0) return;
    const struct profile_part *part =
        (const struct profile_part *)profile->parts.values + profile->part - 1;
    if (extension) { // what the application computes there is not the scheduler's
        extension->tag(stream, 0);
    } else {
        add_span(profile, (struct profile_span){
                              .kind = GGML_SCHED_SLICE_SPLIT,
                              .backend = backend,
                              .from = -1,
                              .node = part->first,
                              .n_nodes = part->n_nodes,
                              .run = part->run,
                              .tensor = part->n_nodes > 0 ? part->tensor : PROFILE_NO_TENSOR,
                              .begin_ns = begin_ns,
                              .end_ns = sched_clock_ns(),
                          });
    }
    profile->part = 0;
}

// A slice for a copy between streams; its type and size are the tensor's, its operation is
// empty.
void sched_profile_copy(struct sched_profile *profile, const struct sched_work *work, int32_t copy,
                        uint64_t begin_ns) {
    const struct sched_copy *made = &work->partition->copies[copy];
    const struct sched_value *value = &work->graph->values[made->value];
    struct profile_tensor *tensor = list_add(&profile->tensors, 1, sizeof(*tensor));
    if (tensor) {
        describe(tensor, value->tensor);
        tensor->op = "";
    }
    add_span(profile, (struct profile_span){
                          .kind = GGML_SCHED_SLICE_COPY,
                          .backend = made->backend,
                          .from = work->placement->placed[made->value].backend,
                          .node = -1,
                          .run = profile->run,
                          .tensor = tensor ? profile->tensors.n - 1 : PROFILE_NO_TENSOR,
                          .begin_ns = begin_ns,
                          .end_ns = sched_clock_ns(),
                      });
}

// A slice for the time in which the calling thread waited for a stream.
void sched_profile_wait(struct sched_profile *profile, int32_t backend, uint64_t begin_ns) {
    add_span(profile, (struct profile_span){
                          .kind = GGML_SCHED_SLICE_WAIT,
                          .backend = backend,
                          .from = -1,
                          .node = -1,
                          .run = profile->run,
                          .tensor = PROFILE_NO_TENSOR,
                          .begin_ns = begin_ns,
                          .end_ns = sched_clock_ns(),
                      });
}

// --- from the streams

// Turns a plugin's slice into a span. What it says is checked against the part: a slice that
// can't be is counted as lost.
static void add_slice(struct sched_profile *profile, const struct ggml_profile_slice *slice) {
    const struct profile_part *parts = profile->parts.values;
    if (slice->tag == 0) return;
    const struct profile_part *part =
        slice->tag <= profile->parts.n ? &parts[slice->tag - 1] : NULL;
    if (!part || slice->first_node < 0 || slice->first_node >= part->n_nodes ||
        slice->n_nodes < 1 || slice->n_nodes > part->n_nodes ||
        slice->begin_ns < profile->begin_ns || slice->end_ns < slice->begin_ns) {
        ++profile->lost;
        return;
    }
    add_span(profile, (struct profile_span){
                          .kind = GGML_SCHED_SLICE_NODE,
                          .backend = part->backend,
                          .from = -1,
                          .node = part->first + slice->first_node,
                          .n_nodes = slice->n_nodes,
                          .run = part->run,
                          .tensor = part->tensor + (size_t)slice->first_node,
                          .begin_ns = slice->begin_ns,
                          .end_ns = slice->end_ns,
                      });
}

// How to read the slices of a stream; NULL if it has none, is listed before, or was freed.
static const struct ggml_extension_profile *telling(const struct sched_runs *runs, int b) {
    const struct profile_stream *stream = &runs->profile->streams[b];
    return stream->is_repeated || runs->queues[b].watch.ended ? NULL : stream->extension;
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
            add_slice(runs->profile, &slices[i]);
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

// Called after each run, so that plugins' memory for slices isn't used up.
void sched_profile_collect(const struct sched_setup *setup, struct sched_runs *runs) {
    struct sched_profile *profile = runs->profile;
    sched_profile_read(setup, runs);
    ++profile->run;
    profile->first_part_of_last_run = profile->first_part_of_run;
    profile->first_part_of_run = profile->parts.n;
}

// --- end

// Streams stop recording first. Nothing happens if nothing was recorded.
void sched_profile_drop(const struct sched_setup *setup, struct sched_runs *runs) {
    struct sched_profile *profile = runs->profile;
    if (!profile) return;
    for (int b = 0; profile->streams && b < setup->n_streams; ++b) {
        const struct ggml_extension_profile *extension = telling(runs, b);
        if (extension) extension->end(setup->streams[b].backend);
    }
    ggml_mem_free(profile->streams);
    ggml_mem_free(profile->parts.values);
    ggml_mem_free(profile->spans.values);
    ggml_mem_free(profile->tensors.values);
    ggml_mem_free(profile);
    runs->profile = NULL;
}
