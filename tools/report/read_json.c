// SPDX-License-Identifier: MIT
// Reads the measurements back, out of a page or a file of JSON, with jansson. What is missing is 0
// or empty, so that pages of other versions are read too.
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "report/page.h"
#include "report/report.h"
#include "sanitise.h"

enum { MOST_BYTES = 64 << 20 };
// Of each list. Measurements are compared with each other, so time grows with the square.
enum { MOST_DEVICES = 64, MOST_OPS = 2048, MOST_MODELS = 64 };

static void get_text(const json_t *object, const char *name, char *out_text, size_t size) {
    const char *text = json_string_value(json_object_get(object, name));
    snprintf(out_text, size, "%s", text ? text : "");
}

// Rates and times are positive, or not known. What no machine measures is not known either: scales
// of pictures are computed from quotients of two.
static double get_number(const json_t *object, const char *name) {
    static const double least = 1e-30, most = 1e30;
    const double value = json_number_value(json_object_get(object, name));
    return value >= least && value <= most ? value : 0;
}

static int64_t get_count(const json_t *object, const char *name) {
    const double value = get_number(object, name);
    return value < 1e15 ? (int64_t)value : 0;
}

// Whether a list has room for one more; says that it has not.
static bool has_room(size_t n, size_t most, const char *what) {
    if (n < most) return true;
    fprintf(stderr, "ggml-bench: more than %zu %s\n", most, what);
    return false;
}

// A measurement without a time is none.
static bool get_op(const json_t *object, struct report_device *device) {
    if (get_number(object, "seconds") <= 0) return true;
    if (!has_room(device->n_ops, MOST_OPS, "operations of a device")) return false;
    struct report_op *op = report_add_op(device);
    if (!op) return false;
    get_text(object, "op", op->op, sizeof(op->op));
    get_text(object, "case", op->name, sizeof(op->name));
    op->columns = get_count(object, "columns");
    op->seconds = get_number(object, "seconds");
    op->median = get_number(object, "median_seconds");
    op->flops = get_number(object, "flops");
    op->bytes = get_number(object, "bytes");
    op->runs = get_count(object, "runs");
    op->cold = json_is_true(json_object_get(object, "cold"));
    return true;
}

static bool get_model(const json_t *object, struct report_device *device) {
    if (get_number(object, "prompt_seconds") <= 0 || get_number(object, "token_seconds") <= 0)
        return true;
    if (!has_room(device->n_models, MOST_MODELS, "models of a device")) return false;
    struct report_model *model = report_add_model(device);
    if (!model) return false;
    get_text(object, "size", model->size, sizeof(model->size));
    get_text(object, "type", model->type, sizeof(model->type));
    model->prompt = get_count(object, "prompt");
    model->context = get_count(object, "context");
    model->prompt_seconds = get_number(object, "prompt_seconds");
    model->token_seconds = get_number(object, "token_seconds");
    model->prompt_flops = get_number(object, "prompt_flops");
    model->weight_bytes = get_number(object, "weight_bytes");
    return true;
}

static bool get_device(const json_t *object, struct report *report) {
    const json_t *element;
    size_t i;
    if (!has_room(report->n_devices, MOST_DEVICES, "devices")) return false;
    struct report_device *device = report_add_device(report);
    if (!device) return false;
    get_text(object, "name", device->name, sizeof(device->name));
    get_text(object, "description", device->description, sizeof(device->description));
    get_text(object, "type", device->type, sizeof(device->type));
    get_text(object, "plugin", device->plugin, sizeof(device->plugin));
    get_text(object, "failure", device->failure, sizeof(device->failure));
    get_text(object, "note", device->note, sizeof(device->note));
    device->memory = get_number(object, "memory_bytes");
    device->flops = get_number(object, "peak_flops");
    device->reads = get_number(object, "read_bytes_per_second");
    device->copies = get_number(object, "copy_bytes_per_second");
    device->launch = get_number(object, "launch_seconds");
    device->submit = get_number(object, "submit_seconds");
    json_array_foreach(json_object_get(object, "operations"), i, element) {
        if (!get_op(element, device)) return false;
    }
    json_array_foreach(json_object_get(object, "models"), i, element) {
        if (!get_model(element, device)) return false;
    }
    return true;
}

// A whole file with a zero behind it; NULL after the error was set in errno.
static char *read_file(const char *path) {
    FILE *stream = fopen(path, "rb");
    size_t size = 0, room = 1 << 16;
    char *text = stream ? malloc(room + 1) : NULL;
    while (text) {
        size += fread(text + size, 1, room - size, stream);
        if (size < room || room >= MOST_BYTES) break;
        char *bigger = realloc(text, (room *= 2) + 1);
        if (!bigger) free(text);
        text = bigger;
    }
    if (stream && text && (ferror(stream) || size >= MOST_BYTES)) {
        errno = size >= MOST_BYTES ? EFBIG : EIO;
        free(text);
        text = NULL;
    }
    if (text) text[size] = '\0';
    if (stream) fclose(stream);
    return text;
}

// The part of a page that is JSON, or all of it.
static const char *find_json(char *text) {
    char *start = strstr(text, REPORT_DATA_TAG);
    if (!start) return text;
    start += strlen(REPORT_DATA_TAG);
    char *end = strstr(start, "</script>");
    if (end) *end = '\0';
    return start;
}

bool report_read(struct report *out_report, const char *path) {
    json_error_t error;
    *out_report = (struct report){0};
    char *text = read_file(path);
    if (!text) {
        fprintf(stderr, "ggml-bench: can't read %s: %s\n", path, strerror(errno));
        return false;
    }
    json_t *root = json_loads(find_json(text), 0, &error);
    const char *schema = json_string_value(json_object_get(root, "schema"));
    bool good = schema && strcmp(schema, "ggml-bench-report/1") == 0;
    const json_t *element;
    size_t i;
    free(text);
    if (!good) {
        char why[sizeof(error.text)]; // it quotes the file
        sanitise(root ? "it has another schema" : error.text, why, sizeof(why));
        fprintf(stderr, "ggml-bench: %s is no report of ggml-bench: %s\n", path, why);
        json_decref(root);
        return false;
    }
    get_text(root, "time", out_report->time, sizeof(out_report->time));
    get_text(root, "version", out_report->version, sizeof(out_report->version));
    get_text(root, "commit", out_report->commit, sizeof(out_report->commit));
    out_report->threads = get_count(root, "threads");
    out_report->quick = json_is_true(json_object_get(root, "quick"));
    out_report->other_load = get_number(root, "other_load");
    if (out_report->other_load > 1) out_report->other_load = 1;
    json_array_foreach(json_object_get(root, "devices"), i, element) {
        good = good && get_device(element, out_report);
    }
    json_decref(root);
    if (!good) {
        fprintf(stderr, "ggml-bench: %s can't be read: it has too much\n", path);
        report_free(out_report);
    }
    return good;
}
