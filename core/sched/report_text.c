// SPDX-License-Identifier: MIT
// Writes a report for a person and as JSON.
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "sched/report.h"

struct writer {
    char *text;
    size_t length, capacity;
    bool failed;
};

static bool make_room(struct writer *writer, size_t more) {
    if (writer->failed) return false;
    if (writer->length + more + 1 <= writer->capacity) return true;
    const size_t capacity = 2 * (writer->length + more + 256);
    char *text = ggml_mem_realloc(writer->text, capacity);
    writer->failed = !text;
    if (!text) return false;
    writer->text = text;
    writer->capacity = capacity;
    return true;
}

static void put(struct writer *writer, const char *format, ...) GGML_ATTRIBUTE_FORMAT(2, 3);
static void put(struct writer *writer, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0 || !make_room(writer, (size_t)length)) return;
    va_start(args, format);
    vsnprintf(writer->text + writer->length, (size_t)length + 1, format, args);
    va_end(args);
    writer->length += (size_t)length;
}

// A JSON string; bytes that can't stand in one are replaced.
static void put_string(struct writer *writer, const char *text) {
    put(writer, "\"");
    for (; *text; ++text) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') {
            put(writer, "\\%c", c);
        } else if (c < 0x20 || c >= 0x7F) {
            put(writer, "\\u%04x", c < 0x20 ? c : 0xFFFD);
        } else {
            put(writer, "%c", c);
        }
    }
    put(writer, "\"");
}

static void put_member(struct writer *writer, const char *name, const char *text) {
    put(writer, "\"%s\": ", name);
    put_string(writer, text);
    put(writer, ", ");
}

// Readers of JSON take no more than 63 bits.
static size_t bounded(size_t size) {
    return (uint64_t)size > INT64_MAX ? (size_t)INT64_MAX : size;
}

static const char *finish(struct writer *writer, char **out_text) {
    if (writer->failed) {
        ggml_mem_free(writer->text);
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "ggml_sched_report: no memory to write it");
        return NULL;
    }
    *out_text = writer->text;
    return writer->text;
}

// --- text

static void write_split(struct writer *writer, ggml_sched_report_t report, size_t number) {
    const struct ggml_sched_split_info *split = &report->splits[number];
    put(writer, "\nsplit %zu on %s: nodes %d to %d, %zu bytes copied\n", number, split->device,
        split->first_node, split->first_node + split->n_nodes - 1, split->copied_bytes);
    for (size_t i = 0; i < split->n_copies; ++i) {
        const struct ggml_sched_copy_info *copy = &split->copies[i];
        put(writer, "  copy %s from %s, %zu bytes: %s\n", copy->tensor, copy->from, copy->bytes,
            copy->reason);
    }
    for (int i = split->first_node; i < split->first_node + split->n_nodes; ++i) {
        const struct ggml_sched_node_info *node = &report->nodes[i];
        put(writer, "  %5d %-20s %-24s %s\n", i, node->op, node->name, node->reason);
    }
}

const char *ggml_sched_report_text(ggml_sched_report_t report) {
    struct writer writer = {0};
    if (!report || report->text) return report ? report->text : NULL;
    put(&writer, "%zu nodes in %zu splits\n", report->n_nodes, report->n_splits);
    if (report->seconds > 0) {
        put(&writer, "predicted: %.3f ms of work, %.3f ms from start to end\n",
            report->seconds * 1e3, report->elapsed * 1e3);
    }
    for (size_t i = 0; i < report->n_streams; ++i) {
        const struct ggml_sched_stream_info *stream = &report->streams[i];
        put(&writer, "stream %zu on %s: %d nodes in %d splits, %zu bytes of %s memory (%zu free)\n",
            i, stream->device, stream->n_nodes, stream->n_splits, stream->bytes, stream->memory,
            stream->free_bytes);
    }
    for (size_t i = 0; i < report->n_splits; ++i) {
        write_split(&writer, report, i);
    }
    return finish(&writer, &report->text);
}

// --- JSON

static void write_streams_json(struct writer *writer, ggml_sched_report_t report) {
    put(writer, "{\"streams\": [");
    for (size_t i = 0; i < report->n_streams; ++i) {
        const struct ggml_sched_stream_info *stream = &report->streams[i];
        put(writer, "%s\n  {", i > 0 ? "," : "");
        put_member(writer, "device", stream->device);
        put_member(writer, "memory", stream->memory);
        put(writer, "\"nodes\": %d, \"splits\": %d, \"bytes\": %zu, \"free_bytes\": %zu}",
            stream->n_nodes, stream->n_splits, bounded(stream->bytes), bounded(stream->free_bytes));
    }
    put(writer, "]");
}

static void write_split_json(struct writer *writer, const struct ggml_sched_split_info *split) {
    put_member(writer, "device", split->device);
    put(writer, "\"stream\": %d, \"first_node\": %d, \"nodes\": %d, \"copied_bytes\": %zu, ",
        split->stream, split->first_node, split->n_nodes, bounded(split->copied_bytes));
    put(writer, "\"copies\": [");
    for (size_t k = 0; k < split->n_copies; ++k) {
        put(writer, "%s\n    {", k > 0 ? "," : "");
        put_member(writer, "tensor", split->copies[k].tensor);
        put_member(writer, "from", split->copies[k].from);
        put_member(writer, "reason", split->copies[k].reason);
        put(writer, "\"bytes\": %zu}", bounded(split->copies[k].bytes));
    }
    put(writer, "]}");
}

static void write_nodes_json(struct writer *writer, ggml_sched_report_t report) {
    put(writer, ",\n\"nodes\": [");
    for (size_t i = 0; i < report->n_nodes; ++i) {
        const struct ggml_sched_node_info *node = &report->nodes[i];
        put(writer, "%s\n  {", i > 0 ? "," : "");
        put_member(writer, "name", node->name);
        put_member(writer, "op", node->op);
        put_member(writer, "device", node->device);
        put_member(writer, "reason", node->reason);
        put(writer, "\"stream\": %d, \"split\": %d}", node->stream, node->split);
    }
    put(writer, "]}\n");
}

// With a point in every locale, whatever bytes that one has for it.
static void put_number(struct writer *writer, double value) {
    char text[64], plain[64];
    size_t used = 0;
    bool has_point = false;
    if (!isfinite(value)) { // by what figures say, the answer may be
        put(writer, "null");
        return;
    }
    snprintf(text, sizeof(text), "%.9g", value);
    for (const char *c = text; *c; ++c) {
        if (strchr("0123456789+-eE", *c)) {
            plain[used++] = *c;
        } else if (!has_point) {
            plain[used++] = '.';
            has_point = true;
        }
    }
    plain[used] = '\0';
    put(writer, "%s", plain);
}

const char *ggml_sched_report_json(ggml_sched_report_t report) {
    struct writer writer = {0};
    if (!report || report->json) return report ? report->json : NULL;
    write_streams_json(&writer, report);
    put(&writer, ",\n\"splits\": [");
    for (size_t i = 0; i < report->n_splits; ++i) {
        put(&writer, "%s\n  {", i > 0 ? "," : "");
        write_split_json(&writer, &report->splits[i]);
    }
    put(&writer, "]");
    if (report->seconds > 0) {
        put(&writer, ",\n\"seconds\": ");
        put_number(&writer, report->seconds);
        put(&writer, ", \"elapsed\": ");
        put_number(&writer, report->elapsed);
    }
    write_nodes_json(&writer, report);
    return finish(&writer, &report->json);
}
