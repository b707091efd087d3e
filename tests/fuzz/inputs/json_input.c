// SPDX-License-Identifier: MIT
// Fills an inventory, a check report, a placement report or a measurement with texts and numbers
// of the input, and parses what is printed with jansson.
#define _GNU_SOURCE
#include "fuzz/inputs/json_input.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "devices/print.h"
#include "json_text.h"
#include "plugin-check/report.h"
#include "sched/report/report.h"

enum { MOST_TEXTS = 64, N_ITEMS = 3 };

static void require(bool holds) {
    if (!holds) abort();
}

// --- the input -----------------------------------------------------------------------------------

static char *texts[MOST_TEXTS];
static size_t n_texts, at;

static void cut(const unsigned char *data, size_t size) {
    n_texts = at = 0;
    while (n_texts < MOST_TEXTS && size > 0) {
        const size_t length = strnlen((const char *)data, size);
        texts[n_texts] = calloc(1, length + sizeof(double)); // a number ends in zeros
        require(texts[n_texts] != NULL);
        memcpy(texts[n_texts++], data, length);
        data += length;
        size -= length;
        if (size > 0) ++data, --size;
    }
}

static const char *text(void) {
    return n_texts > 0 ? texts[at++ % n_texts] : "";
}

static const char *text_or_null(void) {
    const char *one = text();
    return one[0] == '\1' ? NULL : one;
}

static uint64_t number(void) {
    uint64_t value = 0;
    if (n_texts > 0) memcpy(&value, text(), sizeof(value));
    return value;
}

static double real(void) {
    const uint64_t bits = number();
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

// --- stand-ins for what gathers ------------------------------------------------------------------

static struct ggml_plugin_directory directory;

const struct ggml_plugin_directory *inventory_directory(const struct inventory *inventory,
                                                        size_t i) {
    (void)inventory;
    return i < N_ITEMS ? &directory : NULL;
}

const char *inventory_not_isolated(const struct inventory *inventory) {
    (void)inventory;
    return text();
}

const char *inventory_not_cached(const struct inventory *inventory) {
    (void)inventory;
    return text();
}

const char *inventory_not_sandboxed(const struct inventory *inventory) {
    (void)inventory;
    return text();
}

const char *device_type_name(enum ggml_backend_dev_type type) {
    (void)type;
    return "gpu";
}

const char *machine_name(enum ggml_machine machine) {
    (void)machine;
    return "any";
}

const char *memory_quality_name(enum ggml_memory_quality quality) {
    (void)quality;
    return "unknown";
}

const char *thread_bound_name(enum ggml_thread_bound bound) {
    (void)bound;
    return "cores";
}

const char *status_identifier(enum ggml_host_status status) {
    (void)status;
    return "OK";
}

static void pass(struct check_run *run) {
    (void)run;
}

const struct check check_list[] = {{"area.name", 1, NULL, pass, 0, "a check"},
                                   {"area.other", 2, NULL, pass, 0, "another check"}};
const int check_count = 2;

struct check_totals runner_totals(const struct check_result *results) {
    (void)results;
    return (struct check_totals){0};
}

bool result_is_bad(const struct check_result *result) {
    return result->verdict == VERDICT_FAILED;
}

// --- what is printed -----------------------------------------------------------------------------

static void fill_record(struct ggml_plugin_record *record) {
    memset(record, 0, sizeof(*record));
    record->path = text_or_null();
    record->name = text_or_null();
    record->variant = text_or_null();
    record->version = text_or_null();
    record->message = text_or_null();
    record->missing = text_or_null();
    record->contract_major = (int)number();
    record->contract_minor = (int)number();
    record->microseconds = real();
}

static void fill_device(struct device_entry *device) {
    *device = (struct device_entry){
        .plugin_path = text_or_null(), .plugin_name = text_or_null(), .alias_of = text_or_null()};
    device->props.name = text_or_null();
    device->props.description = text_or_null();
    device->props.device_id = text_or_null();
    device->props.memory_free = number();
    device->props.memory_total = number();
}

static bool devices(FILE *out) {
    struct ggml_plugin_record records[N_ITEMS];
    struct plugin_entry plugins[N_ITEMS];
    struct device_entry entries[N_ITEMS];
    struct selftest_result results[N_ITEMS * SELFTEST_WORKLOADS];
    directory = (struct ggml_plugin_directory){.path = text_or_null(), .origin = "environment"};
    for (int i = 0; i < N_ITEMS; ++i) {
        fill_record(&records[i]);
        plugins[i] = (struct plugin_entry){&records[i], i == 0, "helper", (int64_t)number()};
        fill_device(&entries[i]);
    }
    for (int i = 0; i < N_ITEMS * SELFTEST_WORKLOADS; ++i) {
        results[i] = (struct selftest_result){
            .workload = "name", .verdict = i % 3, .milliseconds = real(), .error = real()};
        snprintf(results[i].message, sizeof(results[i].message), "%s", text());
    }
    const struct inventory inventory = {
        .devices = entries, .n_devices = N_ITEMS, .plugins = plugins, .n_plugins = N_ITEMS};
    return print_json(&inventory, number() % 2 ? results : NULL, out);
}

static bool checks(FILE *out) {
    const struct runner_options options = {
        .path = text(), .device = text_or_null(), .seed = number()};
    struct check_result results[2];
    for (int i = 0; i < 2; ++i) {
        results[i] = (struct check_result){.check = &check_list[i],
                                           .selected = true,
                                           .exclusion = text_or_null(),
                                           .verdict = 1 + (int)(number() % 3),
                                           .seconds = real()};
        snprintf(results[i].text, sizeof(results[i].text), "%s", text());
    }
    return report_json(&options, results, out);
}

static bool placement(FILE *out) {
    struct ggml_sched_copy_info copy = {text(), text(), text(), number()};
    struct ggml_sched_split_info split = {
        .device = text(), .stream = (int)number(), .n_copies = 1, .copies = &copy};
    struct ggml_sched_node_info nodes[2];
    struct ggml_sched_stream_info stream = {
        .device = text(), .memory = text(), .bytes = number(), .free_bytes = number()};
    for (int i = 0; i < 2; ++i)
        nodes[i] = (struct ggml_sched_node_info){
            .name = text(), .op = text(), .device = text(), .reason = text()};
    struct ggml_sched_report report = {.splits = &split,
                                       .nodes = nodes,
                                       .streams = &stream,
                                       .n_splits = 1,
                                       .n_nodes = 2,
                                       .n_streams = 1,
                                       .seconds = real(),
                                       .elapsed = real()};
    fputs(ggml_sched_report_json(&report), out);
    ggml_mem_free(report.json);
    return true;
}

static bool measurement(FILE *out) {
    fputs("{\"device\": ", out);
    json_text_print(out, text_or_null());
    fputs(", \"flops\": ", out);
    json_number_print(out, real());
    fputs("}\n", out);
    return true;
}

void run_json_input(const unsigned char *data, size_t size) {
    static bool (*const kinds[])(FILE *) = {devices, checks, placement, measurement};
    char *printed = NULL;
    size_t length = 0;
    json_error_t error;
    if (size == 0) return;
    cut(data + 1, size - 1);
    FILE *out = open_memstream(&printed, &length);
    require(out != NULL);
    const bool written = kinds[data[0] % 4](out);
    require(fclose(out) == 0 && written && strlen(printed) == length);
    json_t *document = json_loadb(printed, length, JSON_REJECT_DUPLICATES, &error);
    if (!document) fprintf(stderr, "%s in line %d of\n%s\n", error.text, error.line, printed);
    require(document != NULL);
    json_decref(document);
    free(printed);
    for (size_t i = 0; i < n_texts; ++i)
        free(texts[i]);
}
