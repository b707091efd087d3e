// SPDX-License-Identifier: MIT
// A stream's slices name a tag and a node of a graph. Each part of a graph that is given to a
// stream is one entry of `parts`, whose number is the tag, and the nodes it had are described in
// `tensors`, since tensors may end before the profile is read.
#define _POSIX_C_SOURCE 200809L
#include "sched/report/profile.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/thread_guard.h"
#include "device/check.h"
#include "plugin/query/profile.h"
#include "sched/sched.h"

enum { DEFAULT_SLICES = 65536, MOST_SLICES = 1 << 22, READ_AT_ONCE = 256 };
static const size_t NO_TENSOR = SIZE_MAX;

// Nodes that were given to a stream.
struct profile_part {
    uint64_t run;
    uint64_t uid;  // of the graph given: a part of the next run with the same has the same nodes
    size_t tensor; // of its first node
    int32_t backend;
    int32_t first; // number of its first node in the graph that was split
    int32_t n_nodes;
};

// What took the time from begin_ns to end_ns: struct ggml_sched_slice before pointers are known, as
// lists still grow.
struct profile_span {
    enum ggml_sched_slice_kind kind;
    int32_t backend, from; // stream; that a copy comes from, or -1
    int32_t node, n_nodes; // number of the first in the graph, or -1
    uint64_t run;
    size_t tensor; // into `tensors`, or NO_TENSOR
    uint64_t begin_ns, end_ns;
};

// Grows by doubling. Elements are only reached by index while it may grow.
struct list {
    void *values;
    size_t n, capacity;
};

// How a stream records.
struct profile_stream {
    const struct ggml_extension_profile *extension; // NULL: it does not tell
    bool is_repeated; // the same stream stands before it among the scheduler's
};

// A recording under way. Parts of the last two runs tell whether nodes are described already.
struct sched_profile {
    struct profile_stream *streams;
    // Lists of elements that never move in number, as slices refer to them by it.
    struct list parts;   // struct profile_part
    struct list spans;   // struct profile_span
    struct list tensors; // struct profile_tensor
    uint64_t begin_ns;   // of the recording: earlier slices are of something else
    uint64_t capacity;   // slices that a stream keeps until they are read
    uint64_t run;        // under way
    uint64_t lost;       // slices that there was no memory for, or that can't be
    size_t part;         // number of the one under way, from 1; 0: none
    size_t first_part_of_last_run, first_part_of_run;
};

// The clock that plugins use too (ggml-ext-profile.h): slices of all sources can be compared.
uint64_t sched_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Room for n more behind the last; NULL, without a message, when memory runs out: recording is
// nothing that a computation may fail for.
static void *list_add(struct list *list, size_t n, size_t element) {
    if (list->n + n > list->capacity) {
        const size_t capacity = 2 * (list->n + n) + 64;
        void *values = ggml_mem_realloc(list->values, capacity * element);
        if (!values) return NULL;
        list->values = values;
        list->capacity = capacity;
    }
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
    if (graph->uid == 0) return NO_TENSOR;
    const size_t place = profile->parts.n - profile->first_part_of_run;
    const size_t before = profile->first_part_of_last_run + place;
    if (before >= profile->first_part_of_run || parts[before].uid != graph->uid) return NO_TENSOR;
    return parts[before].n_nodes == graph->n_nodes ? parts[before].tensor : NO_TENSOR;
}

// Describes the nodes of a part; returns the index of the first, NO_TENSOR without memory.
static size_t describe_nodes(struct sched_profile *profile, const struct ggml_graph *graph) {
    struct profile_tensor *tensors =
        list_add(&profile->tensors, (size_t)graph->n_nodes, sizeof(*tensors));
    if (!tensors) return NO_TENSOR;
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
    if (tensor == NO_TENSOR) tensor = describe_nodes(profile, graph);
    struct profile_part *part =
        tensor != NO_TENSOR ? list_add(&profile->parts, 1, sizeof(*part)) : NULL;
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
                              .tensor = part->n_nodes > 0 ? part->tensor : NO_TENSOR,
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
                          .tensor = tensor ? profile->tensors.n - 1 : NO_TENSOR,
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
                          .tensor = NO_TENSOR,
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

// Slices of all streams, in the order of the streams; sorted by time at the end.
static void read_streams(const struct sched_setup *setup, struct sched_runs *runs) {
    for (int b = 0; b < setup->n_streams; ++b) {
        read_stream(setup, runs, b);
    }
}

// Called after each run, so that plugins' memory for slices isn't used up.
void sched_profile_collect(const struct sched_setup *setup, struct sched_runs *runs) {
    struct sched_profile *profile = runs->profile;
    read_streams(setup, runs);
    ++profile->run;
    profile->first_part_of_last_run = profile->first_part_of_run;
    profile->first_part_of_run = profile->parts.n;
}

// --- begin and end

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

// Has a stream record. The same stream at a second place records once; one that can't is no
// failure.
static enum ggml_host_status begin_stream(struct ggml_backend_sched *sched, int b,
                                          uint64_t max_slices) {
    struct profile_stream *stream = &sched->runs.profile->streams[b];
    ggml_backend_t backend = sched->setup.streams[b].backend;
    const int first = sched_find_stream(sched, backend);
    if (first < b) {
        *stream = (struct profile_stream){sched->runs.profile->streams[first].extension, true};
        return GGML_HOST_OK;
    }
    const struct ggml_extension_profile *extension = plugin_profile(sched->setup.streams[b].device);
    const unsigned long errors_before = ggml_fail_count();
    const int32_t status =
        extension ? extension->begin(backend, max_slices) : GGML_HOST_UNSUPPORTED;
    if (status == GGML_HOST_OK) stream->extension = extension;
    if (status == GGML_HOST_UNSUPPORTED) return GGML_HOST_OK;
    return device_check_status(status, errors_before, "ggml.profile",
                               sched_stream_label(&sched->setup, b));
}

// Waits for what is queued first, which is not to be in the profile.
enum ggml_host_status ggml_sched_profile_begin(ggml_backend_sched_t sched, size_t max_slices) {
    THREAD_GUARD(sched, GGML_HOST_BUSY);
    if (!sched) return ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the scheduler is NULL", __func__);
    if (sched->runs.profile)
        return ggml_fail(GGML_HOST_BUSY, "%s: the scheduler records already", __func__);
    for (int b = 0; b < sched->setup.n_streams; ++b) {
        if (!sched_stream_is_live(sched, b, __func__)) return GGML_HOST_INVALID_ARGUMENT;
    }
    sched_wait_all(&sched->setup, &sched->runs);
    struct sched_profile *profile = ggml_mem_calloc(1, sizeof(*profile));
    sched->runs.profile = profile;
    if (profile)
        profile->streams =
            ggml_mem_calloc((size_t)sched->setup.n_streams, sizeof(profile->streams[0]));
    if (!profile || !profile->streams) {
        sched_profile_drop(&sched->setup, &sched->runs);
        return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory to record", __func__);
    }
    profile->begin_ns = sched_clock_ns();
    profile->capacity = max_slices ? MIN(max_slices, MOST_SLICES) : DEFAULT_SLICES;
    for (int b = 0; b < sched->setup.n_streams; ++b) {
        const enum ggml_host_status status = begin_stream(sched, b, profile->capacity);
        if (status == GGML_HOST_OK) continue;
        // The message is kept, as stopping the streams before may fail too.
        char reason[256];
        snprintf(reason, sizeof(reason), "%s", ggml_last_error());
        sched_profile_drop(&sched->setup, &sched->runs);
        return ggml_fail(status, "%s: %s: %s", __func__, sched_stream_label(&sched->setup, b),
                         reason);
    }
    return GGML_HOST_OK;
}

// Those that begin first, and of these those that contain others.
static int compare_slices(const void *a, const void *b) {
    const struct ggml_sched_slice *left = a;
    const struct ggml_sched_slice *right = b;
    if (left->begin_ns != right->begin_ns) return left->begin_ns < right->begin_ns ? -1 : 1;
    if (left->end_ns != right->end_ns) return left->end_ns > right->end_ns ? -1 : 1;
    return (left->node > right->node) - (left->node < right->node);
}

// Names of all streams in one allocation, pointers first.
static char **copy_devices(const struct ggml_backend_sched *sched) {
    size_t bytes = (size_t)sched->setup.n_streams * sizeof(char *);
    for (int b = 0; b < sched->setup.n_streams; ++b) {
        bytes += strlen(sched_stream_label(&sched->setup, b)) + 1;
    }
    char **devices = ggml_mem_alloc(bytes);
    char *next = devices ? (char *)(devices + sched->setup.n_streams) : NULL;
    for (int b = 0; devices && b < sched->setup.n_streams; ++b) {
        const size_t size = strlen(sched_stream_label(&sched->setup, b)) + 1;
        devices[b] = memcpy(next, sched_stream_label(&sched->setup, b), size);
        next += size;
    }
    return devices;
}

// A span as the application sees it, with times since the recording began.
static struct ggml_sched_slice make_slice(const struct ggml_sched_profile *result,
                                          const struct profile_span *span, uint64_t begin_ns) {
    static const struct profile_tensor none = {.op = "", .type = ""};
    const struct profile_tensor *tensor =
        span->tensor != NO_TENSOR ? &result->tensors[span->tensor] : &none;
    struct ggml_sched_slice slice = {
        .kind = span->kind,
        .stream = span->backend,
        .from = span->from,
        .node = span->node,
        .n_nodes = span->n_nodes,
        .run = span->run,
        .device = result->devices[span->backend],
        .name = tensor->name,
        .op = tensor->op,
        .type = tensor->type,
        .bytes = tensor->bytes,
        .begin_ns = span->begin_ns - begin_ns,
        .end_ns = span->end_ns - begin_ns,
    };
    memcpy(slice.ne, tensor->ne, sizeof(slice.ne));
    return slice;
}

// Takes over the descriptions of tensors, copies the rest and sorts slices by time. NULL without
// memory.
static ggml_sched_profile_t make_result(struct ggml_backend_sched *sched) {
    struct sched_profile *profile = sched->runs.profile;
    const size_t n = profile->spans.n;
    ggml_sched_profile_t result = ggml_mem_calloc(1, sizeof(*result));
    if (!result) return NULL;
    result->slices = ggml_mem_calloc(n > 0 ? n : 1, sizeof(result->slices[0]));
    result->devices = copy_devices(sched);
    if (!result->slices || !result->devices) {
        ggml_sched_profile_free(result);
        return NULL;
    }
    result->tensors = profile->tensors.values;
    profile->tensors.values = NULL;
    for (size_t i = 0; i < n; ++i) {
        result->slices[i] = make_slice(
            result, (const struct profile_span *)profile->spans.values + i, profile->begin_ns);
    }
    result->n_slices = n;
    result->n_streams = sched->setup.n_streams;
    result->lost = profile->lost;
    qsort(result->slices, n, sizeof(result->slices[0]), compare_slices);
    return result;
}

// Waits for what is queued, which belongs to the profile. The recording ends also on failure.
ggml_sched_profile_t ggml_sched_profile_end(ggml_backend_sched_t sched) {
    THREAD_GUARD(sched, NULL);
    if (!sched || !sched->runs.profile) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: %s", __func__,
                  sched ? "the scheduler records nothing" : "the scheduler is NULL");
        return NULL;
    }
    sched_wait_all(&sched->setup, &sched->runs);
    read_streams(&sched->setup, &sched->runs);
    ggml_sched_profile_t result = make_result(sched);
    if (!result) ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory for a profile", __func__);
    sched_profile_drop(&sched->setup, &sched->runs);
    return result;
}

// Independent of the scheduler, which may be gone.
void ggml_sched_profile_free(ggml_sched_profile_t profile) {
    if (!profile) return;
    ggml_mem_free(profile->slices);
    ggml_mem_free(profile->tensors);
    ggml_mem_free(profile->devices);
    ggml_mem_free(profile->text);
    ggml_mem_free(profile->json);
    ggml_mem_free(profile);
}

// --- questions: 0 or NULL for no profile

size_t ggml_sched_profile_count(ggml_sched_profile_t profile) {
    return profile ? profile->n_slices : 0;
}

const struct ggml_sched_slice *ggml_sched_profile_get(ggml_sched_profile_t profile, size_t i) {
    return profile && i < profile->n_slices ? &profile->slices[i] : NULL;
}

uint64_t ggml_sched_profile_lost(ggml_sched_profile_t profile) {
    return profile ? profile->lost : 0;
}
