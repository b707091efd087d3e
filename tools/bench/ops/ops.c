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
#include "bench/ops/op_cases.h"
#include "bench/ops/op_measure.h"
#include "ggml-host.h"
#include "help.h"
#include "json_text.h"
#include "platform.h"
#include "sanitise.h"

enum { MAX_CASES = 256, LABEL = 14 + 1 + 38 }; // LABEL: columns of the first of the table

// The command line, as parsed.
struct options {
    const char *device;
    const char *plugin_path;
    const char *op;
    struct op_sizes sizes;
    double seconds; // that each measurement takes at least
    bool warm;      // the same weights again and again
    bool repacked;  // weights where the device repacks them
    bool json;
};

// --- the report

static void print_launch_json(const struct op_launch *l) {
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

static void print_launch(const struct op_launch *l) {
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
static void print_head(ggml_backend_dev_t device, const struct op_bounds *bounds, bool json) {
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
    char clean[256];
    sanitise(ggml_backend_dev_description(device), clean, sizeof(clean));
    printf("%s: %s\n", ggml_backend_dev_name(device), clean);
    if (bounds->flops > 0)
        printf("fused multiply-adds  %9.1f GFLOP/s, %d processors of the host\n",
               bounds->flops / 1e9, bounds->threads);
    if (bounds->reads > 0)
        printf("reading memory       %9.2f GB/s, the same processors\n", bounds->reads / 1e9);
    printf("copy on the device   %9.2f GB/s read and written\n", bounds->bytes / 1e9);
    print_launch(&bounds->launch);
    putchar('\n');
    bench_print_row("op", LABEL, "         ms     cpu ms   GFLOP/s  %peak     GB/s   %mem");
}

static double percent(double part, double whole) {
    return whole > 0 ? 100 * part / whole : 0;
}

// One case; % of peak and of memory are of the limits measured before.
static void print_result(const struct op_case *c, const struct op_result *r,
                         const struct op_bounds *bounds, bool json, bool first) {
    const double flops = c->flops / r->best, bytes = r->bytes / r->best;
    if (json) {
        printf("%s\n    {\"op\": \"%s\", \"case\": \"%s\", \"milliseconds\": %.4f, "
               "\"median_milliseconds\": %.4f, \"cpu_milliseconds\": %.4f, \"runs\": %d, "
               "\"gflops\": %.3f, \"gb_per_s\": %.3f}",
               first ? "" : ",", c->op, c->name, r->best * 1e3, r->median * 1e3, r->busy * 1e3,
               r->runs, flops / 1e9, bytes / 1e9);
        return;
    }
    char label[128], computed[64] = "        -      -", cells[160];
    snprintf(label, sizeof(label), "%-14s %s", c->op, c->name);
    if (c->flops > 0)
        snprintf(computed, sizeof(computed), "%9.2f %6.1f", flops / 1e9,
                 percent(flops, bounds->flops));
    const double limit = c->has_weights && bounds->reads > 0 ? bounds->reads : bounds->bytes;
    snprintf(cells, sizeof(cells), " %10.3f %10.3f %s %8.2f %6.1f", r->best * 1e3, r->busy * 1e3,
             computed, bytes / 1e9, percent(bytes, limit));
    bench_print_row(label, LABEL, cells);
}

// Measures all cases of the options; returns the exit status.
static int measure(ggml_backend_dev_t device, const struct options *options) {
    static struct op_case cases[MAX_CASES];
    struct op_bounds bounds = {0};
    const struct op_way way = {options->seconds, options->warm,
                               options->repacked ? op_repacked_memory(device) : NULL};
    int n = op_cases(options->op, &options->sizes, cases, MAX_CASES), shown = 0;
    if (options->repacked && !way.weights) {
        fprintf(stderr, "ggml-bench: %s repacks no weights\n", options->device);
        return BENCH_ERROR;
    }
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);
    bool good = stream != NULL;
    if (n > MAX_CASES) n = MAX_CASES;
    if (good) {
        op_bounds_measure(device, stream, options->seconds, &bounds);
        print_head(device, &bounds, options->json);
    }
    for (int i = 0; i < n && good; ++i) {
        struct op_result result;
        good = op_case_measure(stream, &cases[i], &way, &result);
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
    "  --repacked          keep weights where the device repacks them, as applications may; only\n"
    "                      operations and types for which it does are measured\n"
    "  --cache MIB         the largest cache (default: as the system says, which in a virtual\n"
    "                      machine may be more than it has)\n"
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
    case 'r': options->repacked = true; return true;
    case 'c': return bench_set_cache(text);
    case 'j': options->json = true; return true;
    default: return false;
    }
}

int bench_ops(int argc, char **argv) {
    static const struct option table[] = {{"device", required_argument, NULL, 'd'},
                                          {"plugin-path", required_argument, NULL, 'p'},
                                          {"op", required_argument, NULL, 'o'},
                                          {"type", required_argument, NULL, 't'},
                                          {"seconds", required_argument, NULL, 's'},
                                          {"cache", required_argument, NULL, 'c'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"warm", no_argument, NULL, 'w'},
                                          {"repacked", no_argument, NULL, 'r'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    struct options options = {.sizes = {4096, 14336, 0, GGML_TYPE_COUNT}, .seconds = 0.3};
    int option;
    bool valid = true;
    while (valid && (option = getopt_long(argc, argv, "hm:n:k:", table, NULL)) != -1) {
        if (option == 'h') {
            print_help(usage, stdout);
            return BENCH_OK;
        }
        valid = take_option(option, optarg, &options);
    }
    struct op_case ignored;
    if (!valid || optind < argc) return bench_usage_error(argc, argv, valid);
    if (!op_cases_know(options.op)) return BENCH_USAGE;
    op_cases_say_left_out(options.op, &options.sizes);
    if (op_cases(options.op, &options.sizes, &ignored, 0) == 0) return BENCH_USAGE;
    ggml_plugin_load_all(options.plugin_path, NULL);
    if (!options.device) {
        fputs("ggml-bench: ops needs --device", stderr);
        bench_list_devices();
        return BENCH_USAGE;
    }
    ggml_backend_dev_t device = bench_find_device(options.device);
    return device ? measure(device, &options) : BENCH_NO_DEVICE;
}
