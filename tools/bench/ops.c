// SPDX-License-Identifier: MIT
// Operations on one device: operations and bytes per second beside what the machine can do at most,
// and what a launch costs.
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "bench/floor.h"
#include "bench/op_cases.h"
#include "bench/roofline.h"
#include "ggml-host.h"
#include "json_text.h"
#include "platform.h"

enum { MAX_CASES = 256, MAX_RUNS = 1000, CHAIN = 1024, LEAST_ROUNDS = 15, COPY_FLOATS = 1 << 24 };
enum { MAX_COPIES = 256 };

// The command line, as parsed.
struct options {
    const char *device;
    const char *plugin_path;
    const char *op;
    struct op_sizes sizes;
    double seconds; // that each measurement takes at least
    bool warm;      // the same weights again and again
    bool json;
};

// Of a node of a chain that was computed before, in seconds; medians over rounds in which all were
// measured in turn. 0: not known.
struct launch {
    double whole;                       // the graph from start to end
    double submit;                      // until the device has it
    double driver[BENCH_FLOOR_KERNELS]; // chains recorded without the plugin
    double beyond[3];                   // quartiles of whole less driver[BENCH_FLOOR_SCALE]
    int rounds;
};

struct bounds {
    double flops; // per second; 0: not known
    double bytes; // read and written per second by a copy
    double reads; // bytes per second that the host's processors read; 0: not known
    struct launch launch;
    int threads;
};

// Graphs on one device, with memory: the same one with weights of its own each.
struct work {
    struct ggml_context *ctx;
    struct ggml_cgraph *graphs[MAX_COPIES];
    int n_graphs;
    ggml_backend_t stream;
    ggml_backend_buffer_t buffer;
};

struct result {
    double best, median; // seconds
    double busy;         // least of all processors' seconds of this process
    double bytes;
    int runs;
};

static double now_seconds(void) {
    return bench_ns() * 1e-9;
}

// A context with empty graphs on a stream; end() frees what there is also after a failure.
static bool begin(struct work *work, ggml_backend_t stream, size_t n_nodes, int n_graphs) {
    const size_t graph_bytes = (2 * n_nodes + 16) * ggml_tensor_overhead() +
                               ggml_graph_overhead_custom(n_nodes + 16, false);
    const struct ggml_init_params params = {
        .mem_size = (size_t)n_graphs * graph_bytes + 4096,
        .no_alloc = true,
    };
    *work = (struct work){.ctx = ggml_init(params), .stream = stream};
    for (; work->ctx && work->n_graphs < n_graphs; ++work->n_graphs) {
        work->graphs[work->n_graphs] = ggml_new_graph_custom(work->ctx, n_nodes + 16, false);
        if (!work->graphs[work->n_graphs]) return false;
    }
    return work->n_graphs == n_graphs;
}

static void end(struct work *work) {
    ggml_backend_buffer_free(work->buffer);
    ggml_free(work->ctx);
}

// Adds the nodes of one graph. False if the device does not compute it.
static bool add(struct work *work, int graph, struct ggml_tensor *result) {
    if (!result || !ggml_backend_dev_supports_op(ggml_backend_get_device(work->stream), result))
        return false;
    ggml_build_forward_expand(work->graphs[graph], result);
    return true;
}

// Rows that the indices of the result's node may name.
static int64_t count_rows(const struct ggml_tensor *result) {
    switch (result->op) {
    case GGML_OP_MUL_MAT_ID: return result->src[0]->ne[2];
    case GGML_OP_GET_ROWS: return result->src[0]->ne[1];
    case GGML_OP_SET_ROWS: return result->ne[1];
    default: return INT32_MAX;
    }
}

// Fills a tensor of indices with 0, 1, ... below the limit, again and again.
static void count_up(struct ggml_tensor *indices, int64_t limit) {
    for (int64_t i = 0; i < ggml_nelements(indices); ++i) {
        const int64_t wide = i % limit;
        const int32_t narrow = (int32_t)wide;
        const bool is_wide = indices->type == GGML_TYPE_I64;
        const size_t size = is_wide ? sizeof(wide) : sizeof(narrow);
        const void *value = is_wide ? (const void *)&wide : (const void *)&narrow;
        ggml_backend_tensor_set(indices, value, (size_t)i * size, size);
    }
}

// Memory with numbers of about one in every type (zeros would be too easy for some kernels), and
// indices that count up. False if the device has not so much.
static bool allocate(struct work *work) {
    work->buffer = ggml_backend_alloc_ctx_tensors(work->ctx, work->stream);
    if (!work->buffer) return false;
    ggml_backend_buffer_clear(work->buffer, 0x3c);
    for (int i = 0; i < work->n_graphs; ++i) {
        struct ggml_tensor *result = ggml_graph_node(work->graphs[i], -1);
        for (int k = 0; k < GGML_MAX_SRC; ++k) {
            struct ggml_tensor *t = result->src[k];
            if (t && (t->type == GGML_TYPE_I32 || t->type == GGML_TYPE_I64))
                count_up(t, count_rows(result));
        }
    }
    return true;
}

// Bytes that a node must move at least: its operands and its result, once.
static double tensor_bytes(const struct ggml_tensor *result) {
    double bytes = (double)ggml_nbytes(result);
    const bool gets = result->op == GGML_OP_GET_ROWS;
    if (gets || result->op == GGML_OP_SET_ROWS) { // of a table that is touched in places only
        const struct ggml_tensor *table = gets ? result->src[0] : result;
        const struct ggml_tensor *rows = gets ? result : result->src[0];
        return (double)ggml_nrows(rows) *
               ((double)ggml_row_size(table->type, table->ne[0]) + 4.0 * (double)rows->ne[0]);
    }
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
        if (result->src[i]) bytes += (double)ggml_nbytes(result->src[i]);
    }
    if (result->op == GGML_OP_MUL_MAT_ID) { // experts that no token takes are not read
        const struct ggml_tensor *weights = result->src[0];
        const int64_t taken = ggml_nelements(result->src[2]);
        if (taken < weights->ne[2])
            bytes -= (double)(weights->ne[2] - taken) * (double)weights->nb[2];
    }
    return bytes;
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The first computation of each graph, which may compile, is not counted. Then they are computed in
// turn, so that no weights are in a cache from the last time.
static bool time_graph(const struct work *work, double seconds, struct result *out_result) {
    double times[MAX_RUNS], total = 0;
    int n = 0;
    *out_result = (struct result){0};
    for (int i = 0; i < work->n_graphs; ++i) {
        if (ggml_backend_graph_compute(work->stream, work->graphs[i]) != GGML_STATUS_SUCCESS)
            return false;
    }
    for (; n < MAX_RUNS && (n == 0 || total < seconds); ++n) {
        struct ggml_cgraph *graph = work->graphs[n % work->n_graphs];
        const double start = now_seconds(), busy_start = bench_busy_ns();
        if (ggml_backend_graph_compute(work->stream, graph) != GGML_STATUS_SUCCESS) return false;
        times[n] = now_seconds() - start;
        total += times[n];
        const double busy = (bench_busy_ns() - busy_start) * 1e-9;
        if (n == 0 || busy < out_result->busy) out_result->busy = busy;
    }
    qsort(times, (size_t)n, sizeof(times[0]), compare_doubles);
    out_result->best = times[0];
    out_result->median = times[n / 2];
    out_result->runs = n;
    return true;
}

// --- bounds

// Columns of a round.
enum { WHOLE, SUBMIT, DRIVER, BEYOND = DRIVER + BENCH_FLOOR_KERNELS, N_TIMES };

// One round: the plugin's chain, then those without the plugin.
static bool time_round(const struct work *work, struct bench_floor *floor,
                       double times[N_TIMES][MAX_RUNS], int round) {
    const double start = now_seconds();
    if (ggml_backend_graph_compute_async(work->stream, work->graphs[0]) != GGML_STATUS_SUCCESS)
        return false;
    times[SUBMIT][round] = now_seconds() - start;
    ggml_backend_synchronize(work->stream);
    times[WHOLE][round] = now_seconds() - start;
    for (int i = 0; i < BENCH_FLOOR_KERNELS && floor; ++i) {
        times[DRIVER + i][round] = bench_floor_time(floor, (enum bench_floor_kernel)i);
        if (times[DRIVER + i][round] < 0) return false;
    }
    times[BEYOND][round] = times[WHOLE][round] - times[DRIVER + BENCH_FLOOR_SCALE][round];
    return true;
}

// A quartile of the rounds' times, per node of the chain. Sorts the times.
static double quartile_per_node(double *times, int n, int quarter) {
    qsort(times, (size_t)n, sizeof(times[0]), compare_doubles);
    return n > 0 ? times[n * quarter / 4] / CHAIN : 0;
}

// What runs beside this process slows all parts of a round alike.
static void time_rounds(const struct work *work, struct bench_floor *floor, double seconds,
                        struct launch *out_launch) {
    static double times[N_TIMES][MAX_RUNS];
    const double end_time = now_seconds() + seconds;
    int n = 0;
    memset(times, 0, sizeof(times));
    while (n < MAX_RUNS && (n < LEAST_ROUNDS || now_seconds() < end_time) &&
           time_round(work, floor, times, n))
        ++n;
    *out_launch = (struct launch){.whole = quartile_per_node(times[WHOLE], n, 2),
                                  .submit = quartile_per_node(times[SUBMIT], n, 2),
                                  .rounds = n};
    for (int i = 0; i < BENCH_FLOOR_KERNELS; ++i)
        out_launch->driver[i] = quartile_per_node(times[DRIVER + i], n, 2);
    for (int i = 0; i < 3 && floor; ++i)
        out_launch->beyond[i] = quartile_per_node(times[BEYOND], n, i + 1);
}

// Costs of one launch, by a chain of CHAIN tiny nodes that depend on each other. For Vulkan also
// what the driver takes for such chains by itself.
static void measure_launch(ggml_backend_dev_t device, ggml_backend_t stream, double seconds,
                           struct launch *out_launch) {
    struct work work;
    struct result ignored;
    *out_launch = (struct launch){0};
    if (begin(&work, stream, CHAIN, 1)) {
        struct ggml_tensor *x = ggml_new_tensor_1d(work.ctx, GGML_TYPE_F32, 16);
        for (int i = 0; i < CHAIN; ++i)
            x = ggml_scale_inplace(work.ctx, x, 0.5f);
        if (add(&work, 0, x) && allocate(&work) && time_graph(&work, 0, &ignored)) {
            struct bench_floor *floor = NULL;
            if (strcmp(ggml_backend_reg_name(ggml_backend_dev_backend_reg(device)), "Vulkan") == 0)
                floor = bench_floor_new(ggml_backend_dev_description(device), CHAIN);
            time_rounds(&work, floor, seconds, out_launch);
            bench_floor_free(floor);
        }
    }
    end(&work);
}

// Bytes read and written per second by a copy of 64 MiB on the device.
static double copy_rate(ggml_backend_t stream, double seconds) {
    struct work work;
    struct result result = {0};
    if (begin(&work, stream, 1, 1)) {
        struct ggml_tensor *x = ggml_new_tensor_1d(work.ctx, GGML_TYPE_F32, COPY_FLOATS);
        struct ggml_tensor *y = ggml_new_tensor_1d(work.ctx, GGML_TYPE_F32, COPY_FLOATS);
        if (add(&work, 0, ggml_cpy(work.ctx, x, y)) && allocate(&work))
            time_graph(&work, seconds, &result);
    }
    end(&work);
    return result.best > 0 ? 8.0 * COPY_FLOATS / result.best : 0;
}

// The host's processors bound the CPU and drivers that run on it.
static void measure_bounds(ggml_backend_dev_t device, ggml_backend_t stream,
                           const struct options *options, struct bounds *bounds) {
    const enum ggml_backend_dev_type type = ggml_backend_dev_type(device);
    if (type == GGML_BACKEND_DEVICE_TYPE_CPU || type == GGML_BACKEND_DEVICE_TYPE_ACCEL) {
        bounds->flops = bench_fma_peak(&bounds->threads);
        bounds->reads = bench_read_peak(bench_cold_bytes());
    }
    bounds->bytes = copy_rate(stream, options->seconds);
    measure_launch(device, stream, options->seconds, &bounds->launch);
}

// --- the report

static void print_launch_json(const struct launch *l) {
    printf("  \"launch_microseconds\": %.3f,\n  \"launch_submit_microseconds\": %.4f,\n"
           "  \"launch_rounds\": %d,\n",
           l->whole * 1e6, l->submit * 1e6, l->rounds);
    if (l->driver[BENCH_FLOOR_SCALE] <= 0) return;
    printf("  \"launch_driver_empty_microseconds\": %.3f,\n"
           "  \"launch_driver_kernel_microseconds\": %.3f,\n"
           "  \"launch_beyond_driver_microseconds\": %.3f,\n"
           "  \"launch_beyond_driver_quartiles\": [%.3f, %.3f],\n",
           l->driver[BENCH_FLOOR_EMPTY] * 1e6, l->driver[BENCH_FLOOR_SCALE] * 1e6,
           l->beyond[1] * 1e6, l->beyond[0] * 1e6, l->beyond[2] * 1e6);
}

static void print_launch(const struct launch *l) {
    printf("launch per node      %9.2f us, graph computed before; medians of %d rounds\n"
           "  submitting         %9.2f us of these\n",
           l->whole * 1e6, l->rounds, l->submit * 1e6);
    if (l->driver[BENCH_FLOOR_SCALE] <= 0) return;
    printf("  driver, empty      %9.2f us, a chain of empty kernels without the plugin\n"
           "  driver, kernel     %9.2f us, one of kernels that do the same\n"
           "  beyond the driver  %9.2f us, quartiles %.2f and %.2f\n",
           l->driver[BENCH_FLOOR_EMPTY] * 1e6, l->driver[BENCH_FLOOR_SCALE] * 1e6,
           l->beyond[1] * 1e6, l->beyond[0] * 1e6, l->beyond[2] * 1e6);
}

// The device and its limits.
static void print_head(ggml_backend_dev_t device, const struct bounds *bounds, bool json) {
    if (json) {
        printf("{\n  \"schema\": \"ggml-bench-ops/1\",\n  \"device\": ");
        json_text_print(stdout, ggml_backend_dev_name(device));
        printf(",\n  \"description\": ");
        json_text_print(stdout, ggml_backend_dev_description(device));
        printf(",\n  \"peak_gflops\": %.2f,\n  \"read_gb_per_s\": %.3f,\n"
               "  \"copy_gb_per_s\": %.3f,\n",
               bounds->flops / 1e9, bounds->reads / 1e9, bounds->bytes / 1e9);
        print_launch_json(&bounds->launch);
        printf("  \"results\": [");
        return;
    }
    printf("%s: %s\n", ggml_backend_dev_name(device), ggml_backend_dev_description(device));
    if (bounds->flops > 0)
        printf("fused multiply-adds  %9.1f GFLOP/s, %d processors of the host\n",
               bounds->flops / 1e9, bounds->threads);
    if (bounds->reads > 0)
        printf("reading memory       %9.2f GB/s, the same processors\n", bounds->reads / 1e9);
    printf("copy on the device   %9.2f GB/s read and written\n", bounds->bytes / 1e9);
    print_launch(&bounds->launch);
    printf("\n%-14s %-38s %10s %10s %9s %6s %8s %6s\n", "op", "", "ms", "cpu ms", "GFLOP/s",
           "%peak", "GB/s", "%mem");
}

static double percent(double part, double whole) {
    return whole > 0 ? 100 * part / whole : 0;
}

// One case; % of peak and of memory are of the limits measured before.
static void print_result(const struct op_case *c, const struct result *r,
                         const struct bounds *bounds, bool json, bool first) {
    const double flops = c->flops / r->best, bytes = r->bytes / r->best;
    if (json) {
        printf("%s\n    {\"op\": \"%s\", \"case\": \"%s\", \"milliseconds\": %.4f, "
               "\"median_milliseconds\": %.4f, \"cpu_milliseconds\": %.4f, \"runs\": %d, "
               "\"gflops\": %.3f, \"gb_per_s\": %.3f}",
               first ? "" : ",", c->op, c->name, r->best * 1e3, r->median * 1e3, r->busy * 1e3,
               r->runs, flops / 1e9, bytes / 1e9);
        return;
    }
    printf("%-14s %-38s %10.3f %10.3f ", c->op, c->name, r->best * 1e3, r->busy * 1e3);
    if (c->flops > 0)
        printf("%9.2f %6.1f ", flops / 1e9, percent(flops, bounds->flops));
    else
        printf("%9s %6s ", "-", "-");
    const double limit = c->has_weights && bounds->reads > 0 ? bounds->reads : bounds->bytes;
    printf("%8.2f %6.1f\n", bytes / 1e9, percent(bytes, limit));
}

// How many weights of a case are more than a cache holds.
static int count_copies(const struct op_case *c) {
    struct work work;
    size_t bytes = 0;
    if (begin(&work, NULL, 8, 1)) {
        const struct ggml_tensor *result = c->make(work.ctx, c);
        // Keys and values are the second and third operand.
        const bool is_attention = result && result->op == GGML_OP_FLASH_ATTN_EXT;
        if (result) bytes = ggml_nbytes(result->src[is_attention ? 1 : 0]);
        if (is_attention) bytes += ggml_nbytes(result->src[2]);
    }
    end(&work);
    const size_t n = bytes ? (bench_cold_bytes() + bytes - 1) / bytes : 1;
    return n > MAX_COPIES ? MAX_COPIES : (int)n;
}

// Returns false if the device failed; what it doesn't support is left out.
static bool measure_case(ggml_backend_t stream, const struct op_case *c,
                         const struct options *options, struct result *out_result) {
    struct work work;
    const int n_copies = c->has_weights && !options->warm ? count_copies(c) : 1;
    bool supported = begin(&work, stream, 8, n_copies), good = true;
    *out_result = (struct result){0};
    for (int i = 0; i < n_copies && supported; ++i)
        supported = add(&work, i, c->make(work.ctx, c));
    if (supported && allocate(&work)) {
        good = time_graph(&work, options->seconds, out_result);
        out_result->bytes = tensor_bytes(ggml_graph_node(work.graphs[0], -1));
    }
    end(&work);
    return good;
}

// Measures all cases of the options; returns the exit status.
static int measure(ggml_backend_dev_t device, const struct options *options) {
    static struct op_case cases[MAX_CASES];
    struct bounds bounds = {0};
    int n = op_cases(options->op, &options->sizes, cases, MAX_CASES), shown = 0;
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);
    bool good = stream != NULL;
    if (n > MAX_CASES) n = MAX_CASES;
    if (good) {
        measure_bounds(device, stream, options, &bounds);
        print_head(device, &bounds, options->json);
    }
    for (int i = 0; i < n && good; ++i) {
        struct result result;
        good = measure_case(stream, &cases[i], options, &result);
        if (good && result.runs > 0)
            print_result(&cases[i], &result, &bounds, options->json, shown++ == 0);
        fflush(stdout);
    }
    if (options->json && stream) printf("\n  ]\n}\n");
    ggml_backend_free(stream);
    if (good && shown == 0) {
        fprintf(stderr, "ggml-bench: %s supports none of these operations with these types\n",
                options->device);
        return BENCH_ERROR;
    }
    if (good) return BENCH_OK;
    fprintf(stderr, "ggml-bench: %s: %s\n", options->device, ggml_last_error());
    return BENCH_ERROR;
}

// --- the command

static const char usage[] =
    "Usage: ggml-bench ops --device NAME [OPTION]...\n"
    "Measure operations on a device, beside what the machine can do at most. %mem is of reading\n"
    "memory for operations with weights, where that is known, else of copying on the device.\n"
    "\n"
    "  --device NAME       the device\n"
    "  --plugin-path DIR   load the plugins of this directory too\n"
    "  --op NAME           only this operation\n"
    "  --type NAME         only weights of this type\n"
    "  -m N, -n N, -k N    rows and columns of weights (4096, 14336) and columns of the other\n"
    "                      operand (1, 8 and 512)\n"
    "  --seconds S         that each measurement takes at least (default 0.3)\n"
    "  --warm              read the same weights again and again, which caches may hold; without\n"
    "                      it there are eight times as many as the largest cache holds\n"
    "  --json              print the measurements as JSON\n";

static bool parse_size(const char *text, int64_t *out_size) {
    *out_size = strtoll(text, NULL, 10);
    return *out_size > 0 && *out_size <= 1 << 20;
}

static bool take_option(int option, const char *text, struct options *options) {
    switch (option) {
    case 'd': options->device = text; return true;
    case 'p': options->plugin_path = absolute_path(text); return true;
    case 'o': options->op = text; return true;
    case 't': return bench_read_type(text, &options->sizes.type);
    case 'm': return parse_size(text, &options->sizes.m);
    case 'n': return parse_size(text, &options->sizes.n);
    case 'k': return parse_size(text, &options->sizes.k);
    case 's': options->seconds = atof(text); return options->seconds > 0;
    case 'w': options->warm = true; return true;
    case 'j': options->json = true; return true;
    default: return false;
    }
}

static int complain_of_op(const struct options *options) {
    static struct op_case cases[MAX_CASES];
    int n = op_cases(NULL, &options->sizes, cases, MAX_CASES);
    if (n > MAX_CASES) n = MAX_CASES;
    fprintf(stderr, "ggml-bench: no operation '%s' is measured; there are:", options->op);
    for (int i = 0; i < n; ++i) {
        if (i == 0 || strcmp(cases[i].op, cases[i - 1].op) != 0)
            fprintf(stderr, " %s", cases[i].op);
    }
    fputc('\n', stderr);
    return BENCH_USAGE;
}

int bench_ops(int argc, char **argv) {
    static const struct option table[] = {{"device", required_argument, NULL, 'd'},
                                          {"plugin-path", required_argument, NULL, 'p'},
                                          {"op", required_argument, NULL, 'o'},
                                          {"type", required_argument, NULL, 't'},
                                          {"seconds", required_argument, NULL, 's'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"warm", no_argument, NULL, 'w'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    struct options options = {.sizes = {4096, 14336, 0, GGML_TYPE_COUNT}, .seconds = 0.3};
    int option;
    bool valid = true;
    while (valid && (option = getopt_long(argc, argv, "hm:n:k:", table, NULL)) != -1) {
        if (option == 'h') {
            fputs(usage, stdout);
            return BENCH_OK;
        }
        valid = take_option(option, optarg, &options);
    }
    struct op_case ignored;
    if (!valid || optind < argc) return bench_usage_error(argc, argv, valid);
    if (op_cases(options.op, &options.sizes, &ignored, 0) == 0) return complain_of_op(&options);
    ggml_plugin_load_all(options.plugin_path, NULL);
    if (!options.device) {
        fputs("ggml-bench: ops needs --device", stderr);
        bench_list_devices();
        return BENCH_USAGE;
    }
    ggml_backend_dev_t device = bench_find_device(options.device);
    return device ? measure(device, &options) : BENCH_NO_DEVICE;
}
