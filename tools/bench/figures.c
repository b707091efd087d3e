// SPDX-License-Identifier: MIT
// Figures of devices for cost-aware placement: what struct ggml_device_figures wants to know.
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "ggml-host.h"
#include "help.h"
#include "json_text.h"
#include "sanitise.h"

enum {
    TINY_NODES = 256,
    TINY_BYTES = 64,
    PRODUCT_INNER = 1024,
    PRODUCT_COLUMNS = 64,
    MOST_ROWS = 1 << 14,
    MOST_ELEMENTS = 1 << 26,
};

static const double long_enough = 0.005; // seconds: then the clock and the launch don't matter

struct options {
    const char *device;
    const char *plugin;
    int runs;
    bool json;
};

struct measured {
    ggml_backend_dev_t device;
    struct ggml_device_figures figures;
    struct ggml_device_figures declared; // flops 0: nothing
};

// A graph on one device, with memory.
struct work {
    struct ggml_context *ctx;
    struct ggml_cgraph *graph;
    ggml_backend_t stream;
    ggml_backend_buffer_t buffer;
};

static double now_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// A context with a graph on a stream; end() frees what there is also after a failure.
static bool begin(struct work *work, ggml_backend_t stream, size_t n_nodes) {
    const struct ggml_init_params params = {
        .mem_size = (n_nodes + 8) * ggml_tensor_overhead() +
                    ggml_graph_overhead_custom(n_nodes + 8, false) + 4096,
        .no_alloc = true,
    };
    *work = (struct work){.ctx = ggml_init(params), .stream = stream};
    if (work->ctx) work->graph = ggml_new_graph_custom(work->ctx, n_nodes + 8, false);
    return work->graph != NULL;
}

static void end(struct work *work) {
    ggml_backend_buffer_free(work->buffer);
    ggml_free(work->ctx);
}

// Gives it memory, all zero; false if the device does not compute it or has not so much.
static bool allocate(struct work *work, struct ggml_tensor *result) {
    if (!result || !ggml_backend_dev_supports_op(ggml_backend_get_device(work->stream), result)) {
        return false;
    }
    ggml_build_forward_expand(work->graph, result);
    work->buffer = ggml_backend_alloc_ctx_tensors(work->ctx, work->stream);
    if (work->buffer) ggml_backend_buffer_clear(work->buffer, 0);
    return work->buffer != NULL;
}

// Shortest of several computations; negative if one failed.
static double time_graph(const struct work *work, int runs) {
    double best = -1;
    for (int i = 0; i <= runs; ++i) {
        const double start = now_seconds();
        if (ggml_backend_graph_compute(work->stream, work->graph) != GGML_STATUS_SUCCESS) return -1;
        const double seconds = now_seconds() - start;
        if (i > 0 && (best < 0 || seconds < best)) best = seconds; // the first warms up
    }
    return best;
}

// --- one figure each

// Seconds of a chain of tiny nodes that depend on each other; negative if it isn't computed.
static double time_chain(ggml_backend_t stream, int n_nodes, int runs) {
    struct work work;
    double seconds = -1;
    if (begin(&work, stream, (size_t)n_nodes)) {
        struct ggml_tensor *x = ggml_new_tensor_1d(work.ctx, GGML_TYPE_F32, TINY_BYTES / 4);
        for (int i = 0; i < n_nodes; ++i) {
            x = ggml_scale(work.ctx, x, 0.5f);
        }
        if (allocate(&work, x)) seconds = time_graph(&work, runs);
    }
    end(&work);
    return seconds;
}

// Seconds of a launch: the slope between a chain of many nodes and one of one, so that what a
// graph costs as a whole is left out.
static double launch_seconds(ggml_backend_t stream, int runs) {
    const double many = time_chain(stream, TINY_NODES, runs);
    const double one = time_chain(stream, 1, runs);
    return many > one && one > 0 ? (many - one) / (TINY_NODES - 1) : 0;
}

// Seconds of reading and writing n floats.
static double time_copy(ggml_backend_t stream, int64_t n, int runs) {
    struct work work;
    double seconds = -1;
    if (begin(&work, stream, 1)) {
        struct ggml_tensor *x = ggml_new_tensor_1d(work.ctx, GGML_TYPE_F32, n);
        if (allocate(&work, ggml_scale(work.ctx, x, 0.5f))) seconds = time_graph(&work, runs);
    }
    end(&work);
    return seconds;
}

// Doubles the size until a copy takes long enough for the clock; the launch is subtracted.
static double bytes_per_second(ggml_backend_t stream, double launch, int runs) {
    double rate = 0;
    for (int64_t n = 1 << 20; n <= MOST_ELEMENTS; n *= 2) {
        const double seconds = time_copy(stream, n, runs);
        if (seconds <= launch) break;
        rate = 8 * (double)n / (seconds - launch); // read and written
        if (seconds >= long_enough) break;
    }
    return rate;
}

// Seconds of a product of `rows` rows of the type with PRODUCT_COLUMNS columns.
static double time_product(ggml_backend_t stream, enum ggml_type type, int64_t rows, int runs) {
    struct work work;
    double seconds = -1;
    if (begin(&work, stream, 1)) {
        struct ggml_tensor *a = ggml_new_tensor_2d(work.ctx, type, PRODUCT_INNER, rows);
        struct ggml_tensor *b =
            ggml_new_tensor_2d(work.ctx, GGML_TYPE_F32, PRODUCT_INNER, PRODUCT_COLUMNS);
        if (allocate(&work, ggml_mul_mat(work.ctx, a, b))) seconds = time_graph(&work, runs);
    }
    end(&work);
    return seconds;
}

// 0: the device does not multiply this type.
static double flops_of(ggml_backend_t stream, enum ggml_type type, double launch, int runs) {
    double rate = 0;
    for (int64_t rows = 64; rows <= MOST_ROWS; rows *= 2) {
        const double seconds = time_product(stream, type, rows, runs);
        if (seconds <= launch) break;
        rate = 2.0 * PRODUCT_INNER * PRODUCT_COLUMNS * (double)rows / (seconds - launch);
        if (seconds >= long_enough) break;
    }
    return rate;
}

// Of the slower direction; the data pass through memory that the host knows.
static double time_link(ggml_backend_t stream, size_t bytes, int runs) {
    double best = -1;
    struct work work;
    char *data = calloc(1, bytes);
    struct ggml_tensor *x = NULL;
    if (begin(&work, stream, 1)) x = ggml_new_tensor_1d(work.ctx, GGML_TYPE_I8, (int64_t)bytes);
    if (x) work.buffer = ggml_backend_alloc_ctx_tensors(work.ctx, stream);
    for (int i = 0; i <= runs && data && work.buffer; ++i) {
        const double start = now_seconds();
        ggml_backend_tensor_set(x, data, 0, bytes);
        const double middle = now_seconds();
        ggml_backend_tensor_get(x, data, 0, bytes);
        const double in = middle - start, out = now_seconds() - middle;
        const double seconds = in > out ? in : out;
        if (i > 0 && (best < 0 || seconds < best)) best = seconds;
    }
    free(data);
    end(&work);
    return best;
}

// Latency by a tiny transfer, rate by ever larger ones. Host memory has no link.
static void measure_link(ggml_backend_t stream, int runs, struct ggml_device_figures *figures) {
    if (ggml_backend_buft_is_host(ggml_backend_get_default_buffer_type(stream))) return;
    figures->link_seconds = time_link(stream, TINY_BYTES, runs);
    for (size_t bytes = 1 << 18; bytes <= (size_t)1 << 28; bytes *= 2) {
        const double seconds = time_link(stream, bytes, runs);
        if (seconds <= figures->link_seconds) continue;
        figures->link_bytes_per_second = (double)bytes / (seconds - figures->link_seconds);
        if (seconds >= long_enough) break;
    }
}

// --- one device

// Measures all figures of a device; false if it has no stream.
static bool measure(struct measured *measured, int runs) {
    struct ggml_device_figures *figures = &measured->figures;
    ggml_backend_t stream = ggml_backend_dev_init(measured->device, NULL);
    if (!stream) return false;
    *figures = (struct ggml_device_figures){.size = sizeof(*figures)};
    measured->declared = *figures;
    ggml_backend_dev_figures(measured->device, &measured->declared);
    figures->flags = measured->declared.flags; // what a clock can't tell
    figures->launch_seconds = launch_seconds(stream, runs);
    figures->bytes_per_second = bytes_per_second(stream, figures->launch_seconds, runs);
    for (int type = 0; type < GGML_TYPE_COUNT && type < GGML_DEVICE_FIGURES_TYPES; ++type) {
        const int64_t block = ggml_blck_size((enum ggml_type)type);
        if (block < 1 || PRODUCT_INNER % block != 0) continue;
        figures->flops_of[type] =
            flops_of(stream, (enum ggml_type)type, figures->launch_seconds, runs);
    }
    figures->flops = figures->flops_of[GGML_TYPE_F32];
    measure_link(stream, runs, figures);
    size_t free_bytes = 0, total = 0;
    ggml_backend_dev_memory(measured->device, &free_bytes, &total);
    figures->memory_bytes = free_bytes;
    ggml_backend_free(stream);
    return true;
}

// --- the command

static void print_json_number(const char *name, double value) {
    printf(", \"%s\": ", name);
    json_number_print(stdout, value);
}

// SI units, unlike the text: operations and bytes per second, seconds.
static void print_json_figures(const char *key, const struct ggml_device_figures *figures) {
    const char *separator = "";
    printf("     \"%s\": {\"direct_copy\": %s", key,
           figures->flags & GGML_DEVICE_FIGURES_DIRECT_COPY ? "true" : "false");
    print_json_number("flops", figures->flops);
    print_json_number("bytes_per_second", figures->bytes_per_second);
    print_json_number("launch_seconds", figures->launch_seconds);
    print_json_number("link_bytes_per_second", figures->link_bytes_per_second);
    print_json_number("link_seconds", figures->link_seconds);
    printf(", \"memory_bytes\": %llu,\n      \"flops_of\": {",
           (unsigned long long)figures->memory_bytes);
    for (int type = 0; type < GGML_TYPE_COUNT && type < GGML_DEVICE_FIGURES_TYPES; ++type) {
        if (figures->flops_of[type] <= 0) continue;
        printf("%s\"%s\": ", separator, ggml_type_name((enum ggml_type)type));
        json_number_print(stdout, figures->flops_of[type]);
        separator = ", ";
    }
    printf("}}");
}

static void print_json(const struct measured *measured, bool first) {
    printf("%s\n    {\"device\": ", first ? "" : ",");
    json_text_print(stdout, ggml_backend_dev_name(measured->device));
    printf(",\n");
    if (measured->declared.flops > 0) {
        print_json_figures("declared", &measured->declared);
        printf(",\n");
    }
    print_json_figures("measured", &measured->figures);
    printf("}");
}

static void print_text(const struct measured *measured) {
    const struct ggml_device_figures *figures = &measured->figures;
    char clean[256];
    sanitise(ggml_backend_dev_description(measured->device), clean, sizeof(clean));
    printf("%s (%s)\n", ggml_backend_dev_name(measured->device), clean);
    printf("  launch         %10.3f us per node\n", figures->launch_seconds * 1e6);
    printf("  memory         %10.3f GB/s\n", figures->bytes_per_second / 1e9);
    if (figures->link_bytes_per_second > 0) {
        printf("  link           %10.3f GB/s, %.3f us per copy\n",
               figures->link_bytes_per_second / 1e9, figures->link_seconds * 1e6);
    } else {
        printf("  link                 none: its memory is the host's\n");
    }
    for (int type = 0; type < GGML_TYPE_COUNT && type < GGML_DEVICE_FIGURES_TYPES; ++type) {
        if (figures->flops_of[type] <= 0) continue;
        printf("  %-14s %10.3f GFLOP/s\n", ggml_type_name((enum ggml_type)type),
               figures->flops_of[type] / 1e9);
    }
}

// Prints each device as soon as it is measured. A status of the program.
static int measure_all(const struct options *options) {
    int n = 0;
    if (options->json) printf("{\"runs\": %d, \"devices\": [", options->runs);
    for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
        struct measured measured = {.device = ggml_backend_dev_get(i)};
        const char *name = ggml_backend_dev_name(measured.device);
        if (options->device && strcmp(options->device, name) != 0) continue;
        if (!measure(&measured, options->runs)) {
            fprintf(stderr, "ggml-bench: %s: %s\n", name, ggml_last_error());
            return BENCH_ERROR;
        }
        if (options->json) {
            print_json(&measured, n == 0);
        } else {
            print_text(&measured);
        }
        fflush(stdout);
        ++n;
    }
    if (options->json) printf("\n]}\n");
    if (n > 0) return BENCH_OK;
    bench_find_device(options->device); // says which there are
    return BENCH_NO_DEVICE;
}

static void print_usage(FILE *stream) {
    print_help(
        "Usage: ggml-bench figures [OPTION]...\n\n"
        "Measures how fast devices are, for cost-aware placement.\n\n"
        "  --plugin FILE   load this plugin only, instead of all that are found\n"
        "  --device NAME   only this device\n"
        "  --runs N        computations per measurement, of which the fastest counts (default 5)\n"
        "  --json          print JSON\n"
        "  -h, --help      print this\n",
        stream);
}

int bench_figures(int argc, char **argv) {
    static const struct option longs[] = {
        {"plugin", required_argument, NULL, 'p'}, {"device", required_argument, NULL, 'd'},
        {"runs", required_argument, NULL, 'r'},   {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
    };
    struct options options = {.runs = 5};
    int c;
    bool valid = true;
    while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1 && valid) {
        switch (c) {
        case 'p': options.plugin = optarg; break;
        case 'd': options.device = optarg; break;
        case 'r': valid = bench_read_number(optarg, 1, 1000, &options.runs); break;
        case 'j': options.json = true; break;
        case 'h': print_usage(stdout); return BENCH_OK;
        default: valid = false;
        }
    }
    if (!valid || optind < argc) return bench_usage_error(argc, argv, valid);
    if (options.plugin && !ggml_backend_load(options.plugin)) {
        fprintf(stderr, "ggml-bench: %s\n", ggml_last_error());
        return BENCH_ERROR;
    }
    if (!options.plugin) ggml_backend_load_all();
    return measure_all(&options);
}
