// SPDX-License-Identifier: MIT
// Counting outcomes and printing them.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "table.h"

enum { MAX_FAILURES = 200 };

// The group of the case c->name; NULL when memory runs out.
static struct conformance_group *group_of(struct conformance *c) {
    struct conformance_report *r = c->report;
    const char *types = strchr(c->name, '/') + 1;
    const size_t length = strcspn(types, "/");
    for (int i = r->n_groups - 1; i >= 0 && strcmp(r->groups[i].op, c->op->name) == 0; --i) {
        if (strlen(r->groups[i].types) == length && !memcmp(r->groups[i].types, types, length))
            return &r->groups[i];
    }
    if (r->n_groups == r->max_groups) {
        const int max = r->max_groups * 2 + 64;
        void *grown = realloc(r->groups, (size_t)max * sizeof(*r->groups));
        if (!grown) return NULL;
        r->groups = grown;
        r->max_groups = max;
    }
    struct conformance_group *group = &r->groups[r->n_groups++];
    *group = (struct conformance_group){.op = c->op->name};
    snprintf(group->types, sizeof(group->types), "%.*s", (int)length, types);
    return group;
}

static void note_types(struct conformance_type_set *types, const struct ggml_tensor *node) {
    ++types->n;
    types->slot[0] |= UINT64_C(1) << node->type;
    for (int i = 0; i < 3; ++i) {
        if (node->src[i]) types->slot[i + 1] |= UINT64_C(1) << node->src[i]->type;
    }
}

static struct conformance_types *types_of(struct conformance *c) {
    return &c->report->types[c->report->n_types - 1];
}

void conformance_claimed(struct conformance *c, const struct ggml_tensor *node) {
    note_types(&types_of(c)->claimed, node);
}

void conformance_pass(struct conformance *c, const struct ggml_tensor *node, double error,
                      double bound) {
    struct conformance_group *group = group_of(c);
    ++c->report->n_passed;
    if (node) note_types(&types_of(c)->passed, node);
    if (!group) return;
    ++group->n_passed;
    group->worst = fmax(group->worst, error);
    if (bound > 0) group->worst_share = fmax(group->worst_share, error / bound);
}

void conformance_unsupported(struct conformance *c) {
    struct conformance_group *group = group_of(c);
    ++c->report->n_unsupported;
    if (group) ++group->n_unsupported;
}

void conformance_fail(struct conformance *c, const char *format, ...) {
    struct conformance_report *r = c->report;
    struct conformance_group *group = group_of(c);
    char message[256];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    ++r->n_failed;
    if (group) ++group->n_failed;
    if (r->n_failures == MAX_FAILURES) return;
    if (!r->failures) r->failures = calloc(MAX_FAILURES, sizeof(*r->failures));
    if (!r->failures) return;
    const size_t name_size = strlen(c->name) + 1;
    char *texts = malloc(name_size + strlen(message) + 1);
    if (!texts) return;
    memcpy(texts, c->name, name_size);
    strcpy(texts + name_size, message);
    r->failures[r->n_failures++] = (struct conformance_failure){texts, texts + name_size};
}

void conformance_report_free(struct conformance_report *report) {
    for (int i = 0; i < report->n_failures; ++i)
        free(report->failures[i].name);
    free(report->failures);
    free(report->groups);
    free(report->types);
    *report = (struct conformance_report){.n_cases = 0};
}

static bool belongs(const struct conformance_failure *failure,
                    const struct conformance_group *group) {
    const size_t n = strlen(group->op), m = strlen(group->types);
    return strncmp(failure->name, group->op, n) == 0 && failure->name[n] == '/' &&
           strncmp(failure->name + n + 1, group->types, m) == 0 &&
           (failure->name[n + 1 + m] == '/' || failure->name[n + 1 + m] == '\0');
}

static void print_failures(FILE *out, const struct conformance_report *report,
                           const struct conformance_group *group) {
    int n = 0;
    for (int i = 0; i < report->n_failures && n < 8; ++i) {
        if (!belongs(&report->failures[i], group)) continue;
        fprintf(out, "#   %s: %s\n", report->failures[i].name, report->failures[i].message);
        ++n;
    }
}

void conformance_print_tap(FILE *out, const struct conformance_report *report) {
    for (int i = 0; i < report->n_groups; ++i) {
        const struct conformance_group *g = &report->groups[i];
        const int64_t n = g->n_passed + g->n_failed;
        fprintf(out, "%s %d - %s %s: %lld of %lld", g->n_failed > 0 ? "not ok" : "ok", i + 1, g->op,
                g->types, (long long)g->n_passed, (long long)n);
        if (g->n_unsupported > 0) fprintf(out, ", %lld unsupported", (long long)g->n_unsupported);
        fprintf(out, ", worst %.2g\n", g->worst);
        if (g->n_failed > 0) print_failures(out, report, g);
    }
    const bool good = report->n_failed == 0 && report->n_passed > 0;
    fprintf(out, "%s %d - %lld cases: %lld passed, %lld failed, %lld unsupported, %.1f s\n",
            good ? "ok" : "not ok", report->n_groups + 1, (long long)report->n_cases,
            (long long)report->n_passed, (long long)report->n_failed,
            (long long)report->n_unsupported, report->seconds);
    fprintf(out, "1..%d\n", report->n_groups + 1);
}

static void print_text(FILE *out, const char *text) {
    fputc('"', out);
    for (; *text; ++text) {
        if (*text == '"' || *text == '\\') {
            fprintf(out, "\\%c", *text);
        } else if ((unsigned char)*text < ' ') {
            fprintf(out, "\\u%04x", *text);
        } else {
            fputc(*text, out);
        }
    }
    fputc('"', out);
}

void conformance_print_json(FILE *out, const struct conformance_report *report,
                            ggml_backend_dev_t device, const struct conformance_options *options) {
    const char *level = getenv("GGML_CPU_LEVEL");
    fputs("{\"schema\": 1, \"device\": ", out);
    print_text(out, ggml_backend_dev_name(device));
    fputs(", \"description\": ", out);
    print_text(out, ggml_backend_dev_description(device));
    fputs(", \"level\": ", out);
    print_text(out, level ? level : "best");
    fprintf(out, ", \"seed\": %llu, \"cases\": %lld, \"passed\": %lld, \"failed\": %lld, ",
            (unsigned long long)options->seed, (long long)report->n_cases,
            (long long)report->n_passed, (long long)report->n_failed);
    fprintf(out, "\"unsupported\": %lld, \"seconds\": %.3f, \"groups\": [",
            (long long)report->n_unsupported, report->seconds);
    for (int i = 0; i < report->n_groups; ++i) {
        const struct conformance_group *g = &report->groups[i];
        fprintf(out, "%s\n {\"op\": \"%s\", \"types\": \"%s\", \"passed\": %lld, ",
                i > 0 ? "," : "", g->op, g->types, (long long)g->n_passed);
        fprintf(out, "\"failed\": %lld, \"unsupported\": %lld, \"worst\": %.4g, \"share\": %.4g}",
                (long long)g->n_failed, (long long)g->n_unsupported, g->worst, g->worst_share);
    }
    fputs("],\n \"failures\": [", out);
    for (int i = 0; i < report->n_failures; ++i) {
        fputs(i > 0 ? ",\n {\"name\": " : "\n {\"name\": ", out);
        print_text(out, report->failures[i].name);
        fputs(", \"message\": ", out);
        print_text(out, report->failures[i].message);
        fputc('}', out);
    }
    fputs("]}\n", out);
}

void conformance_print_matrix(FILE *out, const struct conformance_report *report) {
    fprintf(out, "%-24s %-24s %9s %9s %9s %9s\n", "op", "types", "computed", "failed", "declined",
            "worst");
    for (int i = 0; i < report->n_groups; ++i) {
        const struct conformance_group *g = &report->groups[i];
        fprintf(out, "%-24s %-24s %9lld %9lld %9lld %9.2g\n", g->op, g->types,
                (long long)g->n_passed, (long long)g->n_failed, (long long)g->n_unsupported,
                g->worst);
    }
}
