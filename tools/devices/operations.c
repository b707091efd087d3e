// SPDX-License-Identifier: MIT
// How fast a device says it is, and which operations it takes in which types: asked by the cases of
// the conformance suite, in a process of its own, since what answers is the plugin's code.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conformance.h"
#include "print.h"
#include "scratch_file.h"

// --- telling: lines of three fields with tabs between them

static void tell_rate(FILE *out, const char *type, double flops) {
    const bool tera = flops >= 1e12;
    if (flops > 0)
        fprintf(out, "figure\tcomputes%s%s\t%.3g %cFLOP/s\n", type[0] ? " " : "", type,
                flops / (tera ? 1e12 : 1e9), tera ? 'T' : 'G');
}

static void tell_figures(ggml_backend_dev_t device, FILE *out) {
    struct ggml_device_figures figures = {.size = sizeof(figures)};
    if (ggml_backend_dev_figures(device, &figures) != GGML_HOST_OK) return;
    tell_rate(out, "", figures.flops);
    for (int t = 0; t < GGML_TYPE_COUNT && t < GGML_DEVICE_FIGURES_TYPES; ++t)
        tell_rate(out, ggml_type_name((enum ggml_type)t), figures.flops_of[t]);
    if (figures.bytes_per_second > 0)
        fprintf(out, "figure\tmemory is read\t%.3g GB/s\n", figures.bytes_per_second / 1e9);
    if (figures.launch_seconds > 0)
        fprintf(out, "figure\tstarts a node in\t%.3g us\n", figures.launch_seconds * 1e6);
    if (figures.link_bytes_per_second > 0)
        fprintf(out, "figure\tlink to the host\t%.3g GB/s, %.3g us\n",
                figures.link_bytes_per_second / 1e9, figures.link_seconds * 1e6);
}

// Types of the result and, where they are others, of the first operand.
static void tell_types(const struct conformance_type_set *set, FILE *out) {
    conformance_print_types(out, set->slot[0]);
    if (set->slot[1] == 0 || set->slot[1] == set->slot[0]) return;
    fputs(" from ", out);
    conformance_print_types(out, set->slot[1]);
}

void tell_operations(ggml_backend_dev_t device, FILE *out) {
    const struct conformance_options options = {.ask = true};
    struct conformance_report report;
    tell_figures(device, out);
    if (!conformance_run(device, &options, &report)) return;
    for (int i = 0; i < report.n_types; ++i) {
        fprintf(out, "operation\t%s\t", report.types[i].op);
        tell_types(&report.types[i].claimed, out);
        fputc('\n', out);
    }
    conformance_report_free(&report);
}

// --- printing

enum { MAX_ROWS = 256, ROW = 512 };

struct row {
    char kind[16], name[48], types[ROW];
    bool is_printed;
};

static size_t read_rows(FILE *in, struct row *rows) {
    char line[ROW];
    size_t n = 0;
    while (n < MAX_ROWS && fgets(line, sizeof(line), in)) {
        struct row *row = &rows[n];
        char *name = strchr(line, '\t'), *types = name ? strchr(name + 1, '\t') : NULL;
        if (!types) continue;
        *name = *types = '\0';
        types[1 + strcspn(types + 1, "\n")] = '\0';
        snprintf(row->kind, sizeof(row->kind), "%.15s", line);
        snprintf(row->name, sizeof(row->name), "%.47s", name + 1);
        snprintf(row->types, sizeof(row->types), "%s", types + 1);
        row->is_printed = false;
        ++n;
    }
    return n;
}

// All operations with the same types as row `first`, on lines of their own.
static void print_group(const struct page *page, struct row *rows, size_t n, size_t first) {
    enum { INDENT = 6 };
    fputs("    ", stdout);
    put(page, 4, 8, "%s:", rows[first].types[0] ? rows[first].types : "not supported");
    printf("\n%*s", INDENT, "");
    unsigned column = INDENT;
    for (size_t i = first; i < n; ++i) {
        if (strcmp(rows[i].kind, "operation") != 0 || strcmp(rows[i].types, rows[first].types) != 0)
            continue;
        column = put(page, column, INDENT, i == first ? "%s" : " %s", rows[i].name);
        rows[i].is_printed = true;
    }
    putchar('\n');
}

static void print_rows(const struct page *page, struct row *rows, size_t n) {
    size_t n_operations = 0, n_supported = 0;
    char text[64];
    for (size_t i = 0; i < n; ++i) {
        if (strcmp(rows[i].kind, "figure") == 0) put_row(page, rows[i].name, rows[i].types);
        if (strcmp(rows[i].kind, "operation") != 0) continue;
        ++n_operations;
        n_supported += rows[i].types[0] != '\0';
    }
    if (n_operations == 0) return;
    snprintf(text, sizeof(text), "%zu of %zu, by types; \"coded\" are quantised", n_supported,
             n_operations);
    put_row(page, "operations", text);
    for (int supported = 1; supported >= 0; --supported) // what it does not take comes last
        for (size_t i = 0; i < n; ++i)
            if (strcmp(rows[i].kind, "operation") == 0 && !rows[i].is_printed &&
                (rows[i].types[0] != '\0') == supported)
                print_group(page, rows, n, i);
}

// How the child ended, "" for well; or why there is none.
static size_t ask_child(const struct device_entry *device, struct row *rows, char *how,
                        size_t how_size) {
    struct device_child child;
    const bool has_run = device_child_run(device, CHILD_TELLS, &child);
    const size_t n = has_run ? read_rows(child.told, rows) : 0;
    snprintf(how, how_size, "%s", child.how);
    if (has_run) device_child_free(&child);
    return n;
}

static size_t ask_here(ggml_backend_dev_t device, struct row *rows, char *how, size_t how_size) {
    FILE *told = scratch_file();
    if (!told) {
        snprintf(how, how_size, "no temporary file for them: %s", strerror(errno));
        return 0;
    }
    tell_operations(device, told);
    rewind(told);
    const size_t n = read_rows(told, rows);
    fclose(told);
    return n;
}

void print_operations(const struct device_entry *device, const struct page *page) {
    struct row *rows = calloc(MAX_ROWS, sizeof(*rows));
    char how[256] = "";
    if (!rows) return;
    const size_t n = device->handle ? ask_here(device->handle, rows, how, sizeof(how))
                                    : ask_child(device, rows, how, sizeof(how));
    print_rows(page, rows, n);
    if (how[0]) put_row(page, "operations", how);
    free(rows);
}
