// SPDX-License-Identifier: MIT
// A device that another process computes, beside the same device in this one: what a graph loses.
#define _POSIX_C_SOURCE 200809L
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-host.h"
#include "json_text.h"
#include "platform.h"

enum { WIDTH = 32, LAYER_NODES = 5, USUAL_SIZES = 3 };

struct options {
    const char *device;
    const char *plugin_path;
    int runs;
    int nodes; // 0: the usual sizes
    int in_a_row;
    bool json;
};

struct chain {
    ggml_backend_t stream;
    struct ggml_context *ctx;
    ggml_backend_buffer_t buffer;
    struct ggml_tensor *x, *scaled;
    struct ggml_cgraph *graph;
};

// Microseconds for a graph.
struct times {
    double here;
    double isolated;
    double difference; // median of the pairs'
    double changed;    // isolated, when a parameter changed since
};

// --- graphs

static void chain_free(struct chain *chain) {
    ggml_backend_buffer_free(chain->buffer);
    ggml_free(chain->ctx);
    ggml_backend_free(chain->stream);
}

// Layers of small matrices, so that little but the way to the kernels counts.
static bool chain_make(ggml_backend_dev_t device, int n_nodes, struct chain *out_chain) {
    const int n_layers = n_nodes / LAYER_NODES > 0 ? n_nodes / LAYER_NODES : 1;
    const size_t most = (size_t)n_layers * LAYER_NODES;
    const struct ggml_init_params params = {.mem_size = (most + 8) * ggml_tensor_overhead() +
                                                        ggml_graph_overhead_custom(most, false),
                                            .no_alloc = true};
    *out_chain =
        (struct chain){.stream = ggml_backend_dev_init(device, NULL), .ctx = ggml_init(params)};
    struct chain *chain = out_chain;
    if (!chain->stream || !chain->ctx) return false;
    struct ggml_tensor *weight = ggml_new_tensor_2d(chain->ctx, GGML_TYPE_F32, WIDTH, WIDTH);
    struct ggml_tensor *y = chain->x = ggml_new_tensor_1d(chain->ctx, GGML_TYPE_F32, WIDTH);
    chain->graph = ggml_new_graph_custom(chain->ctx, most, false);
    for (int i = 0; i < n_layers; ++i) {
        struct ggml_tensor *scaled = ggml_scale(chain->ctx, y, 0.5f);
        if (i == 0) chain->scaled = scaled;
        y = ggml_mul_mat(chain->ctx, weight, scaled);
        y = ggml_silu(chain->ctx, ggml_add(chain->ctx, y, chain->x));
        y = ggml_rms_norm(chain->ctx, y, 1e-5f);
    }
    ggml_build_forward_expand(chain->graph, y);
    chain->buffer = ggml_backend_alloc_ctx_tensors(chain->ctx, chain->stream);
    if (!chain->buffer) return false;
    ggml_backend_buffer_clear(chain->buffer, 0);
    return true;
}

// --- measuring

// Nanoseconds of a graph that is computed in_a_row times, below 0 on failure.
static double compute(struct chain *chain, int in_a_row) {
    enum ggml_status status = GGML_STATUS_SUCCESS;
    const double start = bench_ns();
    for (int i = 0; i < in_a_row && status == GGML_STATUS_SUCCESS; ++i)
        status = ggml_backend_graph_compute(chain->stream, chain->graph);
    return status == GGML_STATUS_SUCCESS ? (bench_ns() - start) / in_a_row : -1;
}

// Times both in turn, so that what else the machine does strikes both alike; then the isolated
// one with a node that changes each time, which has to be sent again.
static bool measure_runs(struct chain *here, struct chain *isolated, const struct options *options,
                         struct times *out_times) {
    const int runs = options->runs;
    double *all = calloc(4 * (size_t)runs, sizeof(all[0]));
    double *a = all, *b = all + runs, *both = all + 2 * runs, *changed = all + 3 * runs;
    bool good = all != NULL;
    for (int i = -3; i < runs && good; ++i) {
        const int at = i < 0 ? 0 : i;
        a[at] = compute(here, options->in_a_row);
        b[at] = compute(isolated, options->in_a_row);
        both[at] = b[at] - a[at];
        good = a[at] >= 0 && b[at] >= 0;
    }
    for (int i = 0; i < runs && good; ++i) {
        isolated->scaled->op_params[0] ^= 1; // the last bit of the factor
        changed[i] = compute(isolated, 1);
        good = changed[i] >= 0;
    }
    if (good) {
        out_times->here = bench_median(a, runs) / 1e3;
        out_times->isolated = bench_median(b, runs) / 1e3;
        out_times->difference = bench_median(both, runs) / 1e3;
        out_times->changed = bench_median(changed, runs) / 1e3;
    }
    free(all);
    return good;
}

// Makes the same graph on both devices and measures it. *n_nodes becomes the number that it has.
static bool measure(ggml_backend_dev_t device, ggml_backend_dev_t isolated, int *n_nodes,
                    const struct options *options, struct times *out_times) {
    struct chain chains[2] = {{0}};
    const bool good = chain_make(device, *n_nodes, &chains[0]) &&
                      chain_make(isolated, *n_nodes, &chains[1]) &&
                      measure_runs(&chains[0], &chains[1], options, out_times);
    if (good) *n_nodes = ggml_graph_n_nodes(chains[0].graph);
    chain_free(&chains[0]);
    chain_free(&chains[1]);
    return good;
}

// --- the command

// One size of graph.
static void print_times(const struct options *options, int n_nodes, const struct times *times,
                        bool first) {
    const double ratio = times->isolated / times->here;
    if (options->json) {
        printf("%s\n    {\"nodes\": %d, \"us\": %.2f, \"isolated_us\": %.2f, \"difference_us\": "
               "%.2f, \"ratio\": %.4f, \"changed_us\": %.2f}",
               first ? "" : ",", n_nodes, times->here, times->isolated, times->difference, ratio,
               times->changed);
        return;
    }
    printf("%8d %10.1f %10.1f %11.1f %8.3f %10.1f\n", n_nodes, times->here, times->isolated,
           times->difference, ratio, times->changed);
}

// Measures and prints each size; false after the error was set.
static bool measure_all(const struct options *options, ggml_backend_dev_t device,
                        ggml_backend_dev_t isolated) {
    static const int sizes[USUAL_SIZES] = {40, 290, 1155};
    if (options->json) {
        printf("{\"device\": ");
        json_text_print(stdout, ggml_backend_dev_name(device));
        printf(", \"runs\": %d, \"samples\": [", options->runs);
    } else {
        printf("us per graph, medians of %d pairs in turn\n%8s %10s %10s %11s %8s %10s\n",
               options->runs, "nodes", "here", "isolated", "difference", "ratio", "changed");
    }
    for (int i = 0; i < (options->nodes ? 1 : USUAL_SIZES); ++i) {
        struct times times;
        int n_nodes = options->nodes ? options->nodes : sizes[i];
        if (!measure(device, isolated, &n_nodes, options, &times)) return false;
        print_times(options, n_nodes, &times, i == 0);
    }
    if (options->json) printf("\n]}\n");
    return true;
}

// Isolates the device and measures. Returns the exit status.
static int run(const struct options *options) {
    ggml_backend_dev_t isolated = NULL;
    if (options->plugin_path && ggml_plugin_load_all(options->plugin_path, NULL) != GGML_HOST_OK) {
        fprintf(stderr, "ggml-bench: %s\n", ggml_last_error());
        return BENCH_ERROR;
    }
    ggml_backend_dev_t device = bench_find_device(options->device);
    if (!device) return BENCH_NO_DEVICE;
    const bool good = ggml_host_isolate(device, NULL, &isolated) == GGML_HOST_OK &&
                      measure_all(options, device, isolated);
    if (!good) fprintf(stderr, "ggml-bench: %s\n", ggml_last_error());
    ggml_host_isolated_free(isolated);
    return good ? BENCH_OK : BENCH_ERROR;
}

static void print_usage(FILE *stream) {
    fputs(
        "Usage: ggml-bench isolate [OPTION]...\n\n"
        "Computes graphs of small matrices on a device in this process and, in turn, on the\n"
        "same device in a process of its own (ggml_host_isolate).\n\n"
        "  --device NAME      this device (default: the CPU)\n"
        "  --plugin-path DIR  load the plugins of this directory too\n"
        "  --nodes N          only graphs of about N nodes (default 40, 290, 1155)\n"
        "  --runs N           pairs per measurement (default 301)\n"
        "  --in-a-row N       graphs after each other in either half of a pair (default 1), as a\n"
        "                     loop computes them: both processes are awake then\n"
        "  --json             print JSON\n"
        "  -h, --help         print this\n",
        stream);
}

int bench_isolate(int argc, char **argv) {
    static const struct option longs[] = {
        {"device", required_argument, NULL, 'd'},   {"plugin-path", required_argument, NULL, 'p'},
        {"nodes", required_argument, NULL, 'n'},    {"runs", required_argument, NULL, 'r'},
        {"in-a-row", required_argument, NULL, 'i'}, {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0},
    };
    struct options options = {.runs = 301, .in_a_row = 1};
    int c;
    bool valid = true;
    while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1 && valid) {
        switch (c) {
        case 'd': options.device = optarg; break;
        case 'p': options.plugin_path = absolute_path(optarg); break;
        case 'n': valid = bench_read_number(optarg, 1, 100000, &options.nodes); break;
        case 'r': valid = bench_read_number(optarg, 1, 10000, &options.runs); break;
        case 'i': valid = bench_read_number(optarg, 1, 1000, &options.in_a_row); break;
        case 'j': options.json = true; break;
        case 'h': print_usage(stdout); return BENCH_OK;
        default: valid = false;
        }
    }
    if (!valid || optind < argc) return bench_usage_error(argc, argv, valid);
    bench_warm_up();
    return run(&options);
}
