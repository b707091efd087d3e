// SPDX-License-Identifier: MIT
// Building a graph and allocating it in one memory, without a scheduler: what each node costs.
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "ggml-alloc.h"
#include "ggml-host.h"
#include "help.h"
#include "idle.h"
#include "model.h"

enum { TOKENS = 4, USUAL = 0 };

struct options {
    int runs;
    int nodes; // 0: the usual sizes
    bool json;
};

// Nanoseconds per node.
struct times {
    double tensors;  // creating nodes
    double visit;    // putting them into a graph
    double first;    // allocating the first graph of an allocator
    double fresh;    // a structure that is unlike the last
    double repeated; // a new graph that is like the last
};

struct bench {
    struct model model;
    void *memory; // of graphs
    ggml_gallocr_t galloc;
    int n_nodes;
};

// Builds one graph and allocates it; *out_allocate is the time of the latter.
static bool measure_once(struct bench *bench, uint32_t structure, struct times *out_times,
                         double *out_allocate) {
    const struct ggml_init_params params = {model_graph_bytes(&bench->model), bench->memory, true};
    const double start = bench_ns();
    struct ggml_context *ctx = ggml_init(params);
    struct ggml_tensor *result = model_tensors(&bench->model, ctx, TOKENS, structure);
    const double made = bench_ns();
    struct ggml_cgraph *graph = ggml_new_graph_custom(ctx, model_graph_size(&bench->model), false);
    ggml_build_forward_expand(graph, result);
    const double visited = bench_ns();
    const bool done = ggml_gallocr_alloc_graph(bench->galloc, graph);
    *out_allocate = bench_ns() - visited;
    bench->n_nodes = done ? ggml_graph_n_nodes(graph) : 1;
    *out_allocate /= bench->n_nodes;
    out_times->tensors = (made - start) / bench->n_nodes;
    out_times->visit = (visited - made) / bench->n_nodes;
    ggml_free(ctx);
    return done;
}

static bool measure_runs(struct bench *bench, int runs, struct times *out_times) {
    double *all = calloc(4 * (size_t)runs, sizeof(all[0]));
    double *tensors = all, *visit = all + runs, *fresh = all + 2 * runs, *repeated = all + 3 * runs;
    struct times times;
    double ignored;
    bool done = all && measure_once(bench, USUAL, &times, &out_times->first);
    for (int i = 0; i < runs && done; ++i) {
        done = measure_once(bench, (uint32_t)i + 1, &times, &fresh[i]);
    }
    done = done && measure_once(bench, USUAL, &times, &ignored);
    for (int i = 0; i < runs && done; ++i) {
        done = measure_once(bench, USUAL, &times, &repeated[i]);
        tensors[i] = times.tensors;
        visit[i] = times.visit;
    }
    if (done) {
        out_times->tensors = bench_median(tensors, runs);
        out_times->visit = bench_median(visit, runs);
        out_times->fresh = bench_median(fresh, runs);
        out_times->repeated = bench_median(repeated, runs);
    }
    free(all);
    return done;
}

static bool measure(int n_nodes, int runs, int *out_nodes, struct times *out_times) {
    struct bench bench = {.n_nodes = 1};
    bool done = model_init(&bench.model, n_nodes, 2);
    bench.memory = malloc(model_graph_bytes(&bench.model));
    bench.galloc = ggml_gallocr_new(idle_memory(0));
    done = done && bench.memory && bench.galloc && measure_runs(&bench, runs, out_times);
    *out_nodes = bench.n_nodes;
    ggml_gallocr_free(bench.galloc);
    model_free(&bench.model);
    free(bench.memory);
    return done;
}

// --- the command ---

static void print_times(const struct options *options, int n_nodes, const struct times *times,
                        bool first) {
    if (options->json) {
        printf("%s\n    {\"nodes\": %d, \"tensors_ns_per_node\": %.1f, "
               "\"visit_ns_per_node\": %.1f, \"first_ns_per_node\": %.1f, "
               "\"new_ns_per_node\": %.1f, \"repeated_ns_per_node\": %.1f}",
               first ? "" : ",", n_nodes, times->tensors, times->visit, times->first, times->fresh,
               times->repeated);
        return;
    }
    printf("%8d %8.1f %8.1f %8.1f %8.1f %8.1f\n", n_nodes, times->tensors, times->visit,
           times->first, times->fresh, times->repeated);
}

static int measure_all(const struct options *options) {
    static const int sizes[] = {100, 1000, 10000, 100000};
    if (options->json) {
        printf("{\"runs\": %d, \"samples\": [", options->runs);
    } else {
        printf("%26s %26s\n%8s %8s %8s %8s %8s %8s\n",
               "ns per node: building:", "allocating:", "nodes", "tensors", "visit", "first", "new",
               "repeated");
    }
    for (int i = 0; i < (options->nodes ? 1 : 4); ++i) {
        struct times times;
        int n_nodes = options->nodes ? options->nodes : sizes[i];
        if (!measure(n_nodes, options->runs, &n_nodes, &times)) {
            fprintf(stderr, "ggml-bench: %s\n", ggml_last_error());
            return BENCH_ERROR;
        }
        print_times(options, n_nodes, &times, i == 0);
    }
    if (options->json) printf("\n]}\n");
    return BENCH_OK;
}

static void print_usage(FILE *stream) {
    print_help("Usage: ggml-bench graph [OPTION]...\n\n"
               "Builds graphs, and allocates each with a graph allocator that has one memory.\n\n"
               "  --nodes N     only graphs of about N nodes (default 100, 1000, 10000, 100000)\n"
               "  --runs N      graphs per measurement (default 21)\n"
               "  --json        print JSON\n"
               "  -h, --help    print this\n",
               stream);
}

int bench_graph(int argc, char **argv) {
    static const struct option longs[] = {
        {"nodes", required_argument, NULL, 'n'},
        {"runs", required_argument, NULL, 'r'},
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct options options = {.runs = 21};
    int c;
    bool valid = true;
    while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1 && valid) {
        switch (c) {
        case 'n': valid = bench_read_number(optarg, 1, 10000000, &options.nodes); break;
        case 'r': valid = bench_read_number(optarg, 1, 10000, &options.runs); break;
        case 'j': options.json = true; break;
        case 'h': print_usage(stdout); return BENCH_OK;
        default: valid = false;
        }
    }
    if (!valid || optind < argc) return bench_usage_error(argc, argv, valid);
    bench_warm_up();
    return measure_all(&options);
}
