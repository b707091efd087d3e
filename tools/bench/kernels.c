// SPDX-License-Identifier: MIT
// ggml-bench kernels: the inner kernels of the CPU plugin, each by itself on one thread: right, and
// how fast.
#include "kernels.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "ggml-cpu.h"
#include "ggml-host.h"
#include "help.h"
#include "json_text.h"

static const char usage[] =
    "Usage: ggml-bench kernels [OPTION]...\n"
    "Compare each inner kernel of the CPU plugin with its scalar twin, then measure it on one\n"
    "thread.\n\n"
    "  --level NAME    instruction-set level, as in GGML_CPU_LEVEL (default the best one here)\n"
    "  --kernel NAME   only unpack, pack, round, dot, map, vector, rounded, tiles, packed,\n"
    "                  pairs, strips, dots, repacked, scores or sums\n"
    "  --type NAME     only rows of this type\n"
    "  -m N, -n N, -k N  rows (default 64) and columns (1 or 16, as the kernel is for) of "
    "products,\n"
    "                  and elements of a row (1024)\n"
    "  --cold          rows that no cache holds, as many as that needs\n"
    "  --seconds S     that each measurement takes at least (default 0.02)\n"
    "  --check         only compare\n"
    "  --json          print the measurements as JSON\n";

enum { ALIGNMENT = 64, WINDOWS = 5, MAX_ROWS = 1 << 24 };

enum kernel { UNPACK, PACK, ROUND, DOT, MAP, PRODUCT };

// The command line, as parsed.
struct options {
    const char *level, *kernel;
    enum ggml_type type; // GGML_TYPE_COUNT: all
    int m, n, k;         // 0: as the kernel is for
    double seconds;
    bool cold, only_check, json;
};

// One kernel with its operands.
struct subject {
    enum kernel kernel;
    enum kernel_way way;
    enum ggml_type type;
    enum ggml_unary_op op;
    struct kernel_product product;
    float *floats;     // k of them
    void *other;       // as many, of the type or its partner
    double bytes;      // that a call reads of rows, and writes where that is all it does
    double operations; // two for each product, one for each result of a function
};

// Calls the kernel once; false if this level has none for the type.
static bool call(const struct kernel_table *table, const struct subject *s) {
    const struct kernel_product *p = &s->product;
    switch (s->kernel) {
    case UNPACK: table->unpack(s->type, p->rows, s->floats, p->k); return true;
    case PACK: table->pack(s->type, p->x, s->other, p->k); return true;
    case ROUND: table->round(p->x, s->other, s->floats, p->k); return true;
    case DOT: return table->dot(s->type, p->rows, s->other, (int)p->k, s->floats);
    case MAP: table->map(s->op, p->x, s->floats, p->k); return true;
    default: return table->multiply[s->way](p);
    }
}

// Nanoseconds of a call: the shortest of some windows.
static double measure(const struct kernel_table *table, const struct subject *s, double seconds) {
    double least = 0;
    int64_t calls = 1;
    for (int window = 0; window < WINDOWS;) {
        const double begin = bench_ns();
        for (int64_t i = 0; i < calls; ++i)
            call(table, s);
        const double ns = bench_ns() - begin;
        if (ns < seconds * 1e9 / WINDOWS && window == 0 && calls < INT64_MAX / 2) {
            calls *= 2;
            continue;
        }
        if (window == 0 || ns / (double)calls < least) least = ns / (double)calls;
        ++window;
    }
    return least;
}

// One measurement, as a line or as an object of the JSON array.
static void print_row(const struct options *options, const struct kernel_level *level,
                      const struct subject *s, double ns, double scalar_ns, bool *first) {
    static const char *const names[] = {"unpack", "pack", "round", "dot", "map"};
    const char *name = s->kernel == PRODUCT ? kernel_way_name(s->way) : names[s->kernel];
    const char *of = s->kernel == MAP ? ggml_unary_op_name(s->op) : ggml_type_name(s->type);
    if (!options->json) {
        printf("%-8s %-10s %8lld %6lld %12.1f %9.2f %9.2f %9.2f\n", name, of,
               (long long)(s->kernel == PRODUCT ? s->product.n_rows : 1),
               (long long)(s->kernel == PRODUCT ? s->product.n_columns : 1), ns, s->bytes / ns,
               s->operations / ns, scalar_ns / ns);
        return;
    }
    printf("%s\n    {\"kernel\": \"%s\", \"of\": \"%s\", \"level\": \"%s\", \"rows\": %lld, "
           "\"columns\": %lld, \"nanoseconds\": ",
           *first ? "" : ",", name, of, level->name, (long long)s->product.n_rows,
           (long long)s->product.n_columns);
    json_number_print(stdout, ns);
    fputs(", \"gb_per_s\": ", stdout);
    json_number_print(stdout, s->bytes / ns);
    fputs(", \"gflops\": ", stdout);
    json_number_print(stdout, s->operations / ns);
    fputs(", \"scalar_nanoseconds\": ", stdout);
    json_number_print(stdout, scalar_ns);
    putchar('}');
    *first = false;
}

// Whether --kernel names this one, or none.
static bool wanted(const struct options *options, const char *name) {
    return !options->kernel || strcmp(options->kernel, name) == 0;
}

// Operands of one kernel.
struct memory {
    char *rows;
    void *other, *work;
    float *x, *y;
};

static void free_memory(struct memory *memory) {
    free(memory->rows), free(memory->other), free(memory->work), free(memory->x), free(memory->y);
}

// Rows of random blocks and columns of random floats, always the same; false without memory.
static bool make_memory(struct memory *memory, enum ggml_type type, int64_t k, int64_t n_rows,
                        int64_t n_columns) {
    const size_t bytes = ggml_row_size(type, k) * (size_t)n_rows;
    const size_t floats = (size_t)(n_columns * (k + n_rows)) * sizeof(float);
    *memory = (struct memory){.rows = malloc(bytes),
                              .other = malloc((size_t)k * sizeof(float)),
                              .work = malloc(kernel_work_bytes(k, n_columns) + ALIGNMENT),
                              .x = malloc(floats),
                              .y = malloc(floats)};
    if (!memory->rows || !memory->other || !memory->work || !memory->x || !memory->y) return false;
    uint32_t random = 1;
    kernel_random_rows(type, memory->rows, bytes, &random);
    kernel_random_floats(memory->x, n_columns * k, &random);
    return true;
}

// The first address of a cache line in the memory.
static void *align(void *memory) {
    return (void *)(((uintptr_t)memory + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
}

// Measures one kernel for one type, and its scalar twin for a quarter of the time. Products take
// as many rows and columns as they are made for, unless the options say otherwise. False without
// memory; a kernel that this level lacks is left out.
static bool bench_subject(const struct options *options, const struct kernel_level *level,
                          const struct kernel_table *scalar, struct subject s, bool *first) {
    const bool few = s.kernel != PRODUCT || s.way == KERNEL_VECTOR || s.way == KERNEL_ROUNDED ||
                     s.way == KERNEL_REPACKED || s.way == KERNEL_SCORES || s.way == KERNEL_SUMS;
    const enum ggml_type type = s.type;
    int64_t k = options->k ? options->k : 1024;
    const int64_t n_columns = s.kernel != PRODUCT ? 1 : options->n ? options->n : few ? 1 : 16;
    int64_t n_rows = s.kernel != PRODUCT ? 1 : options->m ? options->m : 64;
    k = (k + ggml_blck_size(type) - 1) / ggml_blck_size(type) * ggml_blck_size(type);
    const size_t row = ggml_row_size(type, k);
    if (s.kernel == PRODUCT && options->cold) n_rows = (int64_t)(bench_cold_bytes() / row);
    if (s.way == KERNEL_TILES && s.kernel == PRODUCT) n_rows = KERNEL_MAX_TILE_ROWS;
    if (s.way == KERNEL_REPACKED) n_rows = (n_rows + 15) / 16 * 16; // side by side at any level
    struct memory memory;
    const bool ready = make_memory(&memory, type, k, n_rows, n_columns);
    if (ready) {
        s.product = (struct kernel_product){
            type,   memory.rows,       row, k, n_rows, memory.x, k, n_columns, memory.y,
            n_rows, align(memory.work)};
        if (s.way == KERNEL_SUMS) s.product.x_stride = n_rows, s.product.y_stride = k;
        s.floats = memory.y;
        s.other = memory.other;
        if (s.kernel == DOT)
            ggml_get_type_traits_cpu(ggml_get_type_traits_cpu(type)->vec_dot_type)
                ->from_float(memory.x, s.other, k);
        s.bytes = (double)row * (double)n_rows;
        s.operations = s.kernel == PRODUCT || s.kernel == DOT
                           ? 2.0 * (double)(k * n_rows * n_columns)
                           : (double)k;
        if (s.kernel == UNPACK || s.kernel == PACK) s.bytes += (double)k * sizeof(float);
        if (s.kernel == ROUND) s.bytes = (double)k * 5.125;
        if (s.kernel == MAP) s.bytes = (double)k * 8;
        if (call(level->table, &s)) {
            const double ns = measure(level->table, &s, options->seconds);
            const bool has_twin = call(scalar, &s);
            print_row(options, level, &s, ns,
                      has_twin ? measure(scalar, &s, options->seconds / 4) : 0, first);
        }
    }
    free_memory(&memory);
    if (!ready) fputs("ggml-bench: out of memory\n", stderr);
    return ready;
}

// All kernels that read rows of a type.
static bool bench_type(const struct options *options, const struct kernel_level *level,
                       const struct kernel_table *scalar, enum ggml_type type, bool *first) {
    const bool in_blocks = ggml_blck_size(type) > 1;
    bool done = true;
    struct subject s = {.type = type, .kernel = UNPACK};
    if (done && wanted(options, "unpack")) done = bench_subject(options, level, scalar, s, first);
    s.kernel = PACK;
    if (done && !in_blocks && wanted(options, "pack"))
        done = bench_subject(options, level, scalar, s, first);
    s.kernel = DOT;
    if (done && in_blocks && ggml_get_type_traits_cpu(type)->vec_dot && wanted(options, "dot"))
        done = bench_subject(options, level, scalar, s, first);
    s.kernel = PRODUCT;
    for (int way = 0; done && way < KERNEL_WAYS; ++way) {
        s.way = (enum kernel_way)way;
        if (wanted(options, kernel_way_name(s.way)))
            done = bench_subject(options, level, scalar, s, first);
    }
    return done;
}

// All types, then the kernels that know floats alone.
static bool bench_all(const struct options *options, const struct kernel_level *level,
                      const struct kernel_table *scalar) {
    int n_types = 0, n_maps = 0;
    const enum ggml_type *types = kernel_types(&n_types);
    const enum ggml_unary_op *maps = kernel_maps(&n_maps);
    bool first = true, done = true;
    for (int i = 0; done && i < n_types; ++i) {
        if (options->type == GGML_TYPE_COUNT || options->type == types[i])
            done = bench_type(options, level, scalar, types[i], &first);
    }
    struct subject s = {.type = GGML_TYPE_F32, .kernel = ROUND};
    if (options->type != GGML_TYPE_COUNT && options->type != GGML_TYPE_F32) return done;
    if (done && wanted(options, "round")) done = bench_subject(options, level, scalar, s, &first);
    s.kernel = MAP;
    for (int i = 0; done && i < n_maps && wanted(options, "map"); ++i) {
        s.op = maps[i];
        done = bench_subject(options, level, scalar, s, &first);
    }
    return done;
}

// The bits of kernel_check() for the kernel's name; 0 for an unknown one.
static unsigned parts_of(const char *kernel) {
    static const char *const names[] = {"unpack", "pack", "round", "dot", "map"};
    if (!kernel) return KERNEL_ALL_PARTS;
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        if (strcmp(kernel, names[i]) == 0) return 1u << i;
    }
    for (unsigned way = 0; way < KERNEL_WAYS; ++way) {
        if (strcmp(kernel, kernel_way_name((enum kernel_way)way)) == 0)
            return (unsigned)KERNEL_PART_PRODUCT << way;
    }
    return 0;
}

// The level of that name, or the newest that this processor has; NULL after a list was printed.
static const struct kernel_level *choose_level(const char *name) {
    int n = 0;
    const struct kernel_level *levels = kernel_levels(&n), *best = NULL;
    for (int i = 0; i < n; ++i) {
        const bool usable = (levels[i].features & ~ggml_host_cpu_features()) == 0;
        if (usable && (!name || strcmp(name, levels[i].name) == 0)) best = &levels[i];
    }
    if (best) return best;
    fprintf(stderr, "ggml-bench: no level '%s' on this processor; there are:", name);
    for (int i = 0; i < n; ++i) {
        if ((levels[i].features & ~ggml_host_cpu_features()) == 0)
            fprintf(stderr, " %s", levels[i].name);
    }
    fputc('\n', stderr);
    return NULL;
}

// Compares each kernel with its scalar twin first: times of one that is wrong say nothing.
static int run(const struct options *options) {
    const struct kernel_level *level = choose_level(options->level);
    if (!level) return BENCH_USAGE;
    int n = 0;
    const struct kernel_table *scalar = kernel_levels(&n)->table;
    int64_t n_checks = 0;
    const int n_wrong =
        kernel_check(level->table, scalar, parts_of(options->kernel), stderr, &n_checks);
    if (options->json) {
        printf("{\n  \"level\": \"%s\",\n  \"checks\": %lld,\n  \"different\": %d,\n"
               "  \"results\": [",
               level->name, (long long)n_checks, n_wrong);
    } else {
        printf("%s: %d kernels differ from their scalar twins in %lld comparisons\n", level->name,
               n_wrong, (long long)n_checks);
    }
    bool done = true;
    if (!options->only_check) {
        if (!options->json)
            printf("\n%-8s %-10s %8s %6s %12s %9s %9s %9s\n", "kernel", "of", "rows", "columns",
                   "ns", "GB/s", "GFLOP/s", "x scalar");
        bench_warm_up();
        done = bench_all(options, level, scalar);
    }
    if (options->json) puts("\n  ]\n}");
    return done && n_wrong == 0 ? BENCH_OK : BENCH_ERROR;
}

static bool take_option(int option, const char *text, struct options *options) {
    switch (option) {
    case 'l': options->level = text; return true;
    case 'K': options->kernel = text; return parts_of(text) != 0;
    case 't': return bench_read_type(text, &options->type);
    case 'm': return bench_read_number(text, 1, MAX_ROWS, &options->m);
    case 'n': return bench_read_number(text, 1, KERNEL_MAX_COLUMNS, &options->n);
    case 'k': return bench_read_number(text, 1, MAX_ROWS, &options->k);
    case 's': options->seconds = atof(text); return options->seconds > 0;
    case 'c': options->cold = true; return true;
    case 'o': options->only_check = true; return true;
    case 'j': options->json = true; return true;
    default: return false;
    }
}

int bench_kernels(int argc, char **argv) {
    static const struct option table[] = {{"level", required_argument, NULL, 'l'},
                                          {"kernel", required_argument, NULL, 'K'},
                                          {"type", required_argument, NULL, 't'},
                                          {"seconds", required_argument, NULL, 's'},
                                          {"cold", no_argument, NULL, 'c'},
                                          {"check", no_argument, NULL, 'o'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    struct options options = {.type = GGML_TYPE_COUNT, .seconds = 0.02};
    int option;
    bool valid = true;
    while (valid && (option = getopt_long(argc, argv, "hm:n:k:", table, NULL)) != -1) {
        if (option == 'h') {
            print_help(usage, stdout);
            return BENCH_OK;
        }
        valid = take_option(option, optarg, &options);
    }
    if (!valid || optind < argc) return bench_usage_error(argc, argv, valid);
    return run(&options);
}
