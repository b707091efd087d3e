// SPDX-License-Identifier: MIT
// Writes a profile for a person, and as JSON in Chrome's trace event format.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "sched/record/record.h"
#include "sched/report/text_writer.h"

// How kinds of slices are called: in the table, where parentheses tell them from operations of the
// graph; in names, before the tensor or the device; and as categories of a viewer.
static const struct {
    const char *label, *verb, *category; // label and verb of a node: its operation
} kinds[] = {
    [GGML_SCHED_SLICE_NODE] = {NULL, NULL, "node"},
    [GGML_SCHED_SLICE_SPLIT] = {"(split)", "split", "split"},
    [GGML_SCHED_SLICE_COPY] = {"(copy to it)", "copy", "copy"},
    [GGML_SCHED_SLICE_WAIT] = {"(wait for it)", "wait for", "wait"},
};

// --- text

// What the slices of one device, kind and operation took.
struct total {
    const struct ggml_sched_slice *slice; // one of them
    uint64_t n_slices, n_nodes, ns;
};

// Nodes are summed up by operation and type, the rest by kind.
static bool same_total(const struct ggml_sched_slice *a, const struct ggml_sched_slice *b) {
    return a->stream == b->stream && a->kind == b->kind &&
           (a->kind != GGML_SCHED_SLICE_NODE ||
            (strcmp(a->op, b->op) == 0 && strcmp(a->type, b->type) == 0));
}

// For qsort(): the most time first.
static int compare_totals(const void *a, const void *b) {
    const struct total *left = a;
    const struct total *right = b;
    return (left->ns < right->ns) - (left->ns > right->ns);
}

// Linear in the slices times the kinds of totals, which are few.
static size_t sum_up(ggml_sched_profile_t profile, struct total *totals) {
    size_t n = 0;
    for (size_t i = 0; i < profile->n_slices; ++i) {
        const struct ggml_sched_slice *slice = &profile->slices[i];
        size_t k = 0;
        while (k < n && !same_total(totals[k].slice, slice)) {
            ++k;
        }
        if (k == n) totals[n++] = (struct total){.slice = slice};
        ++totals[k].n_slices;
        totals[k].n_nodes += (uint64_t)slice->n_nodes;
        totals[k].ns += slice->end_ns - slice->begin_ns;
    }
    qsort(totals, n, sizeof(totals[0]), compare_totals);
    return n;
}

// A table of totals, the most time first, for a look at where a graph spends it. A total per slice
// is enough memory in any case.
const char *ggml_sched_profile_text(ggml_sched_profile_t profile) {
    struct text_writer writer = {0};
    if (!profile || profile->text) return profile ? profile->text : NULL;
    struct total *totals = ggml_mem_calloc(profile->n_slices + 1, sizeof(totals[0]));
    if (!totals) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory to write it", __func__);
        return NULL;
    }
    // Names of devices and operations are short; longer ones only shift their own line.
    const size_t n = sum_up(profile, totals);
    text_put(&writer, "%-12s %-20s %-6s %8s %8s %12s\n", "device", "operation", "type", "slices",
             "nodes", "ms");
    for (size_t i = 0; i < n; ++i) {
        const struct ggml_sched_slice *slice = totals[i].slice;
        const bool is_node = slice->kind == GGML_SCHED_SLICE_NODE;
        text_put(&writer, "%-12s %-20s %-6s %8" PRIu64 " %8" PRIu64 " %12.3f\n", slice->device,
                 is_node ? slice->op : kinds[slice->kind].label, is_node ? slice->type : "",
                 totals[i].n_slices, totals[i].n_nodes, (double)totals[i].ns / 1e6);
    }
    if (profile->lost > 0) text_put(&writer, "%" PRIu64 " slices were lost\n", profile->lost);
    ggml_mem_free(totals);
    return text_finish(&writer, __func__, &profile->text);
}

// --- JSON

enum { HOST_TRACK = 0 }; // streams follow

// What the host does by itself has a track of its own: copies and waits of all streams.
static int track_of(const struct ggml_sched_slice *slice) {
    const bool by_host =
        slice->kind == GGML_SCHED_SLICE_COPY || slice->kind == GGML_SCHED_SLICE_WAIT;
    return by_host ? HOST_TRACK : 1 + slice->stream;
}

// A metadata event that gives a track or the process its name.
static void put_track(struct text_writer *writer, const char *what, int track, const char *name) {
    text_put(writer, "\n{\"ph\": \"M\", \"pid\": 1, \"tid\": %d, \"name\": \"%s\", \"args\": {",
             track, what);
    text_put(writer, "\"name\": ");
    text_put_string(writer, name);
    text_put(writer, "}},");
}

// Microseconds with the nanoseconds behind the point, whatever the locale.
static void put_time(struct text_writer *writer, const char *name, uint64_t ns) {
    text_put(writer, "\"%s\": %" PRIu64 ".%03u, ", name, ns / 1000, (unsigned)(ns % 1000));
}

// Viewers colour slices by category and sum them up by name, which therefore has no numbers of
// nodes.
static void put_name(struct text_writer *writer, const struct ggml_sched_slice *slice) {
    // Longer names are cut off: the tensor's whole name is among the arguments.
    char name[256];
    snprintf(name, sizeof(name), "%s %s",
             slice->kind == GGML_SCHED_SLICE_NODE ? slice->op : kinds[slice->kind].verb,
             slice->kind == GGML_SCHED_SLICE_WAIT ? slice->device : slice->name);
    text_put_member(writer, "name", name);
    text_put_member(writer, "cat", kinds[slice->kind].category);
}

// Shown when a slice is selected. Numbers stay below 2^63, which all readers take.
static void put_arguments(struct text_writer *writer, ggml_sched_profile_t profile,
                          const struct ggml_sched_slice *slice) {
    text_put(writer, "\"args\": {");
    if (slice->type[0]) {
        text_put_member(writer, "tensor", slice->name);
        text_put_member(writer, "type", slice->type);
        text_put(writer, "\"shape\": [%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "], ",
                 slice->ne[0], slice->ne[1], slice->ne[2], slice->ne[3]);
        text_put(writer, "\"bytes\": %" PRIu64 ", ",
                 slice->bytes > INT64_MAX ? (uint64_t)INT64_MAX : slice->bytes);
    }
    if (slice->op[0]) text_put_member(writer, "op", slice->op);
    if (slice->node >= 0) {
        text_put(writer, "\"node\": %d, \"nodes\": %d, ", slice->node, slice->n_nodes);
    }
    if (slice->kind == GGML_SCHED_SLICE_COPY) {
        if (slice->from >= 0) text_put_member(writer, "from", profile->streams[slice->from].device);
        text_put_member(writer, "to", slice->device);
    }
    text_put(writer, "\"run\": %" PRIu64 "}", slice->run);
}

// Complete events ("ph": "X") with a beginning and a duration, so that slices need not be nested or
// sorted; the tracks of streams have the names of their devices.
const char *ggml_sched_profile_json(ggml_sched_profile_t profile) {
    struct text_writer writer = {0};
    if (!profile || profile->json) return profile ? profile->json : NULL;
    text_put(&writer, "{\"displayTimeUnit\": \"ns\", \"otherData\": {\"lost\": %" PRIu64 "},\n",
             profile->lost);
    text_put(&writer, "\"traceEvents\": [");
    put_track(&writer, "process_name", HOST_TRACK, "ggml");
    put_track(&writer, "thread_name", HOST_TRACK, "scheduler");
    for (int b = 0; b < profile->n_streams; ++b) {
        put_track(&writer, "thread_name", 1 + b, profile->streams[b].device);
    }
    for (size_t i = 0; i < profile->n_slices; ++i) {
        const struct ggml_sched_slice *slice = &profile->slices[i];
        text_put(&writer, "\n{\"ph\": \"X\", \"pid\": 1, \"tid\": %d, ", track_of(slice));
        put_name(&writer, slice);
        put_time(&writer, "ts", slice->begin_ns);
        put_time(&writer, "dur", slice->end_ns - slice->begin_ns);
        put_arguments(&writer, profile, slice);
        text_put(&writer, "},");
    }
    // Commas stand behind each; JSON wants none behind the last.
    if (!writer.failed && writer.text[writer.length - 1] == ',') --writer.length;
    text_put(&writer, "\n]}\n");
    return text_finish(&writer, __func__, &profile->json);
}

// A file that could not be written whole is an error, but stays for a look at it.
enum ggml_host_status ggml_sched_profile_write(ggml_sched_profile_t profile, const char *path) {
    if (!profile || !path) {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the profile or the path is NULL",
                         __func__);
    }
    const char *json = ggml_sched_profile_json(profile);
    if (!json) return GGML_HOST_OUT_OF_MEMORY;
    // ggml_fopen() takes UTF-8 on every system.
    FILE *file = ggml_fopen(path, "wb");
    const size_t length = strlen(json);
    const bool written = file && fwrite(json, 1, length, file) == length;
    const bool closed = file && fclose(file) == 0;
    if (written && closed) return GGML_HOST_OK;
    return ggml_fail(GGML_HOST_IO_ERROR, "%s: can't write '%s'", __func__, path);
}
