// SPDX-License-Identifier: MIT
// The runner of the conformance suite: goes through operations and cases, leaves out what the
// filter excludes, and counts outcomes.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "claims.h"
#include "table.h"

enum { CONTEXT_SIZE = 256 << 10, NAME_SLOTS = 1 << 17 };

int conformance_op_count(void) {
    return conformance_table_size;
}

const char *conformance_op_name(int i) {
    return i >= 0 && i < conformance_table_size ? conformance_table[i]->name : NULL;
}

static uint64_t hash_text(const char *text, uint64_t seed) {
    uint64_t hash = seed ^ UINT64_C(14695981039346656037);
    for (; *text; ++text)
        hash = (hash ^ (uint8_t)*text) * UINT64_C(1099511628211);
    return hash;
}

// Whether a case of this name went by before: generators may reach the same one in two ways.
static bool is_repeated(struct conformance *c) {
    const uint64_t hash = hash_text(c->name, 0) | 1; // 0 is a free slot
    size_t i = hash / 2 % NAME_SLOTS;
    while (c->seen[i] != 0 && c->seen[i] != hash)
        i = (i + 1) % NAME_SLOTS;
    const bool repeated = c->seen[i] == hash;
    if (!repeated && c->n_names < NAME_SLOTS / 2) {
        c->seen[i] = hash;
        ++c->n_names;
    }
    return repeated;
}

// Exact, or the beginning where the pattern ends in '*'.
static bool matches(const char *name, const char *pattern) {
    const size_t n = strlen(pattern);
    if (n > 0 && pattern[n - 1] == '*') return strncmp(name, pattern, n - 1) == 0;
    return strcmp(name, pattern) == 0;
}

// Whether the case is needed to make those that are asked for.
static bool is_example(const struct conformance *c) {
    return c->claims && strstr(c->options->name, "/claimed/") &&
           strncmp(c->options->name, c->name, strlen(c->op->name) + 1) == 0 &&
           !conformance_claims_checking(c->claims);
}

bool conformance_case(struct conformance *c, const char *format, ...) {
    const struct conformance_options *options = c->options;
    const int n = snprintf(c->name, sizeof(c->name), "%s/", c->op->name);
    va_list args;
    va_start(args, format);
    vsnprintf(c->name + n, sizeof(c->name) - (size_t)n, format, args);
    va_end(args);
    if (is_repeated(c)) return false;
    if (options->name && !is_example(c) && !matches(c->name, options->name)) return false;
    if (options->every > 1 && c->n_seen++ % options->every != 0) return false;
    ++c->report->n_cases;
    if (options->list) {
        fprintf(options->list, "%s\n", c->name);
        return false;
    }
    if (options->trace) {
        fprintf(options->trace, "%s\n", c->name);
        fflush(options->trace);
    }
    if (options->progress) options->progress(options->progress_data, c->name);
    ggml_reset(c->ctx);
    c->n_operands = 0;
    c->bound = c->op->bound;
    c->random.state = hash_text(c->name, options->seed);
    random_u32(&c->random);
    return true;
}

void conformance_bound(struct conformance *c, double bound) {
    c->bound = bound;
}

const char *conformance_shape(struct conformance *c, struct conformance_extents extents) {
    char *text = c->text[c->n_text++ % 8];
    int n_dims = GGML_MAX_DIMS, n = 0;
    while (n_dims > 1 && extents.ne[n_dims - 1] == 1)
        --n_dims;
    for (int d = 0; d < n_dims; ++d)
        n += snprintf(text + n, sizeof(c->text[0]) - (size_t)n, d == 0 ? "%d" : "x%d",
                      (int)extents.ne[d]);
    return text;
}

// Whether nodes of this kind compute nothing, or what the application says: any type will do.
static bool takes_anything(const char *op) {
    static const char *const names[] = {"NONE",        "RESHAPE",     "VIEW",
                                        "PERMUTE",     "TRANSPOSE",   "MAP_CUSTOM1",
                                        "MAP_CUSTOM2", "MAP_CUSTOM3", "CUSTOM"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        if (strcmp(op, names[i]) == 0) return true;
    }
    return false;
}

static void run_op(struct conformance *c) {
    c->report->types[c->report->n_types++].op = c->op->name;
    c->n_claimed = 0;
    memset(c->has_kinds, 0, sizeof(c->has_kinds));
    c->n_seen = 0; // a sample has the first case of every operation
    if (c->claims) conformance_claims_begin(c->claims);
    c->op->cases(c);
    if (c->claims && !takes_anything(c->op->name)) conformance_claims_check(c);
}

static ggml_backend_set_n_threads_t thread_setter(ggml_backend_dev_t device) {
    ggml_backend_reg_t reg = ggml_backend_dev_backend_reg(device);
    void *address = ggml_backend_reg_get_proc_address(reg, "ggml_backend_set_n_threads");
    ggml_backend_set_n_threads_t setter;
    memcpy(&setter, &address, sizeof(setter));
    return setter;
}

bool conformance_run(ggml_backend_dev_t device, const struct conformance_options *options,
                     struct conformance_report *out_report) {
    struct conformance_memory memory = {.size = 0};
    struct conformance c = {
        .options = options, .report = out_report, .device = device, .memory = &memory};
    *out_report = (struct conformance_report){.n_cases = 0};
    c.claims = options->claims ? conformance_claims_new() : NULL;
    c.ctx = ggml_init((struct ggml_init_params){.mem_size = CONTEXT_SIZE, .no_alloc = true});
    const bool computes = !options->list && !options->ask;
    c.stream = computes ? ggml_backend_dev_init(device, NULL) : NULL;
    out_report->types = calloc((size_t)conformance_table_size, sizeof(*out_report->types));
    c.seen = calloc(NAME_SLOTS, sizeof(*c.seen));
    bool usable = c.ctx && c.seen && out_report->types && (!computes || c.stream);
    if (options->threads) {
        c.set_n_threads = thread_setter(device);
        usable = usable && c.set_n_threads;
    }
    const int64_t start = ggml_time_us();
    for (int i = 0; i < conformance_table_size && usable; ++i) {
        c.op = conformance_table[i];
        if (options->op && strcmp(options->op, c.op->name) != 0) continue;
        run_op(&c);
    }
    out_report->seconds = (double)(ggml_time_us() - start) * 1e-6;
    conformance_claims_free(c.claims);
    conformance_memory_free(&memory);
    free(c.seen);
    ggml_backend_free(c.stream);
    ggml_free(c.ctx);
    return usable;
}
