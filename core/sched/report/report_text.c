// SPDX-License-Identifier: MIT
// Prints a report as text or as JSON.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "sched/report/report.h"
#include "sched/report/text_writer.h"

// Readers of JSON take no more than 63 bits.
static size_t bounded(size_t size) {
    return (uint64_t)size > INT64_MAX ? (size_t)INT64_MAX : size;
}

// --- text, for a person: streams first, then splits in the order in which they run

// A split with its copies, then its nodes with why each runs there: what a reader who looks for an
// unwanted copy reads from top to bottom.
static void write_split(struct text_writer *writer, ggml_sched_report_t report, size_t number) {
    const struct ggml_sched_split_info *split = &report->splits[number];
    text_put(writer, "\nsplit %zu on %s: nodes %d to %d, %zu bytes copied\n", number, split->device,
             split->first_node, split->first_node + split->n_nodes - 1, split->copied_bytes);
    for (size_t i = 0; i < split->n_copies; ++i) {
        const struct ggml_sched_copy_info *copy = &split->copies[i];
        text_put(writer, "  copy %s from %s, %zu bytes: %s\n", copy->tensor, copy->from,
                 copy->bytes, copy->reason);
    }
    for (int i = split->first_node; i < split->first_node + split->n_nodes; ++i) {
        const struct ggml_sched_node_info *node = &report->nodes[i];
        text_put(writer, "  %5d %-20s %-24s %s\n", i, node->op, node->name, node->reason);
    }
}

// Written at the first call and kept: most reports are only asked for their structs.
const char *ggml_sched_report_text(ggml_sched_report_t report) {
    struct text_writer writer = {0};
    if (!report || report->text) return report ? report->text : NULL;
    text_put(&writer, "%zu nodes in %zu splits\n", report->n_nodes, report->n_splits);
    if (report->seconds > 0) {
        text_put(&writer, "predicted: %.3f ms of work, %.3f ms from start to end\n",
                 report->seconds * 1e3, report->elapsed * 1e3);
    }
    for (size_t i = 0; i < report->n_streams; ++i) {
        const struct ggml_sched_stream_info *stream = &report->streams[i];
        text_put(&writer,
                 "stream %zu on %s: %d nodes in %d splits, %zu bytes of %s memory (%zu free)\n", i,
                 stream->device, stream->n_nodes, stream->n_splits, stream->bytes, stream->memory,
                 stream->free_bytes);
    }
    for (size_t i = 0; i < report->n_splits; ++i) {
        write_split(&writer, report, i);
    }
    return text_finish(&writer, "ggml_sched_report", &report->text);
}

// --- JSON

// Members of a stream, numbers last: text_put_member() ends each text with a comma.
static void write_streams_json(struct text_writer *writer, ggml_sched_report_t report) {
    text_put(writer, "{\"streams\": [");
    for (size_t i = 0; i < report->n_streams; ++i) {
        const struct ggml_sched_stream_info *stream = &report->streams[i];
        text_put(writer, "%s\n  {", i > 0 ? "," : "");
        text_put_member(writer, "device", stream->device);
        text_put_member(writer, "memory", stream->memory);
        text_put(writer, "\"nodes\": %d, \"splits\": %d, \"bytes\": %zu, \"free_bytes\": %zu}",
                 stream->n_nodes, stream->n_splits, bounded(stream->bytes),
                 bounded(stream->free_bytes));
    }
    text_put(writer, "]");
}

// The nodes of a split are first_node and the count behind it, as splits are runs of nodes.
static void write_split_json(struct text_writer *writer,
                             const struct ggml_sched_split_info *split) {
    text_put_member(writer, "device", split->device);
    text_put(writer, "\"stream\": %d, \"first_node\": %d, \"nodes\": %d, \"copied_bytes\": %zu, ",
             split->stream, split->first_node, split->n_nodes, bounded(split->copied_bytes));
    text_put(writer, "\"copies\": [");
    for (size_t k = 0; k < split->n_copies; ++k) {
        text_put(writer, "%s\n    {", k > 0 ? "," : "");
        text_put_member(writer, "tensor", split->copies[k].tensor);
        text_put_member(writer, "from", split->copies[k].from);
        text_put_member(writer, "reason", split->copies[k].reason);
        text_put(writer, "\"bytes\": %zu}", bounded(split->copies[k].bytes));
    }
    text_put(writer, "]}");
}

// Every node on a line of its own, so that two reports can be compared with diff.
static void write_nodes_json(struct text_writer *writer, ggml_sched_report_t report) {
    text_put(writer, ",\n\"nodes\": [");
    for (size_t i = 0; i < report->n_nodes; ++i) {
        const struct ggml_sched_node_info *node = &report->nodes[i];
        text_put(writer, "%s\n  {", i > 0 ? "," : "");
        text_put_member(writer, "name", node->name);
        text_put_member(writer, "op", node->op);
        text_put_member(writer, "device", node->device);
        text_put_member(writer, "reason", node->reason);
        text_put(writer, "\"stream\": %d, \"split\": %d}", node->stream, node->split);
    }
    text_put(writer, "]}\n");
}

// With a point in every locale, whatever bytes that one has for it.
static void put_number(struct text_writer *writer, double value) {
    char text[64], plain[64];
    size_t used = 0;
    bool has_point = false;
    if (!isfinite(value)) { // by what figures say, the time may be
        text_put(writer, "null");
        return;
    }
    // Nine digits tell apart what a clock could.
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
    text_put(writer, "%s", plain);
}

// One object; times are left out where no figures predict them, since 0 would look like a result.
const char *ggml_sched_report_json(ggml_sched_report_t report) {
    struct text_writer writer = {0};
    if (!report || report->json) return report ? report->json : NULL;
    write_streams_json(&writer, report);
    text_put(&writer, ",\n\"splits\": [");
    for (size_t i = 0; i < report->n_splits; ++i) {
        text_put(&writer, "%s\n  {", i > 0 ? "," : "");
        write_split_json(&writer, &report->splits[i]);
    }
    text_put(&writer, "]");
    if (report->seconds > 0) {
        text_put(&writer, ",\n\"seconds\": ");
        put_number(&writer, report->seconds);
        text_put(&writer, ", \"elapsed\": ");
        put_number(&writer, report->elapsed);
    }
    write_nodes_json(&writer, report);
    return text_finish(&writer, "ggml_sched_report", &report->json);
}
