// SPDX-License-Identifier: MIT
// The measurements as JSON; docs/schemas/ggml-bench-report.schema.json says what it is.
#include <inttypes.h>

#include "json_text.h"
#include "report/report.h"

static void put_text(FILE *stream, const char *name, const char *text) {
    fprintf(stream, "\"%s\": ", name);
    json_text_print(stream, text);
    fputs(", ", stream);
}

static void put_number(FILE *stream, const char *name, double value, const char *end) {
    fprintf(stream, "\"%s\": ", name);
    if (value >= 1 && value < 9e15 && value == (double)(int64_t)value)
        fprintf(stream, "%" PRId64, (int64_t)value); // bytes and operations, to the last digit
    else
        json_number_print(stream, value);
    fputs(end, stream);
}

static void put_op(FILE *stream, const struct report_op *op) {
    fputs("{", stream);
    put_text(stream, "op", op->op);
    put_text(stream, "case", op->name);
    put_number(stream, "columns", (double)op->columns, ", ");
    put_number(stream, "seconds", op->seconds, ", ");
    put_number(stream, "median_seconds", op->median, ", ");
    put_number(stream, "flops", op->flops, ", ");
    put_number(stream, "bytes", op->bytes, ", ");
    put_number(stream, "runs", (double)op->runs, ", ");
    fprintf(stream, "\"cold\": %s}", op->cold ? "true" : "false");
}

static void put_model(FILE *stream, const struct report_model *model) {
    fputs("{", stream);
    put_text(stream, "size", model->size);
    put_text(stream, "type", model->type);
    put_number(stream, "prompt", (double)model->prompt, ", ");
    put_number(stream, "context", (double)model->context, ", ");
    put_number(stream, "prompt_seconds", model->prompt_seconds, ", ");
    put_number(stream, "token_seconds", model->token_seconds, ", ");
    put_number(stream, "prompt_flops", model->prompt_flops, ", ");
    put_number(stream, "weight_bytes", model->weight_bytes, "}");
}

// The limits of a device, then what it computed.
static void put_device(FILE *stream, const struct report_device *device) {
    fputs("    {", stream);
    put_text(stream, "name", device->name);
    put_text(stream, "description", device->description);
    put_text(stream, "type", device->type);
    put_text(stream, "plugin", device->plugin);
    fputs("\n     ", stream);
    put_text(stream, "failure", device->failure);
    put_text(stream, "note", device->note);
    fputs("\n     ", stream);
    put_number(stream, "memory_bytes", device->memory, ", ");
    put_number(stream, "peak_flops", device->flops, ", ");
    put_number(stream, "read_bytes_per_second", device->reads, ", ");
    put_number(stream, "copy_bytes_per_second", device->copies, ",\n     ");
    put_number(stream, "launch_seconds", device->launch, ", ");
    put_number(stream, "submit_seconds", device->submit, ",\n     \"operations\": [");
    for (size_t i = 0; i < device->n_ops; ++i) {
        fputs(i > 0 ? ",\n       " : "\n       ", stream);
        put_op(stream, &device->ops[i]);
    }
    fputs("],\n     \"models\": [", stream);
    for (size_t i = 0; i < device->n_models; ++i) {
        fputs(i > 0 ? ",\n       " : "\n       ", stream);
        put_model(stream, &device->models[i]);
    }
    fputs("]}", stream);
}

bool report_write_json(const struct report *report, FILE *stream) {
    fputs("{\n  \"schema\": \"ggml-bench-report/1\",\n  ", stream);
    put_text(stream, "time", report->time);
    put_text(stream, "version", report->version);
    put_text(stream, "commit", report->commit);
    put_number(stream, "threads", (double)report->threads, ", ");
    put_number(stream, "other_load", report->other_load, ", ");
    fprintf(stream, "\"quick\": %s,\n  \"devices\": [\n", report->quick ? "true" : "false");
    for (size_t i = 0; i < report->n_devices; ++i) {
        if (i > 0) fputs(",\n", stream);
        put_device(stream, &report->devices[i]);
    }
    fputs("\n  ]\n}\n", stream);
    return !ferror(stream);
}
