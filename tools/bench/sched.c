// SPDX-License-Identifier: MIT
// Splitting and allocating: what the scheduler costs per node. The devices exist only here,
// return at once and compute nothing.
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "families.h"
#include "ggml-backend-impl.h"
#include "ggml-host.h"
#include "help.h"
#include "idle.h"
#include "model.h"

enum { TOKENS = 4 };

// The structure that all measurements but that of new ones have.
enum { USUAL = 0 };

struct options {
    int runs;
    int nodes;   // 0: the usual sizes
    int devices; // 0: the usual numbers
    bool json;
};

// --- measuring ---

struct sample {
    double first;     // ns per node of the first graph of a scheduler
    double fresh;     // ns per node of a structure that the scheduler has not seen
    double cold;      // the same, when the processor's caches are full of something else
    double changed;   // ns per node of the last structure with other extents
    double repeated;  // ns per node of a new graph that is like the last
    double unchanged; // us per graph
    int n_nodes;
    int n_splits;
    size_t bytes; // of compute buffers
};

struct bench {
    ggml_backend_sched_t sched;
    struct model model;
    void *memory; // of graphs
};

// Graphs that are measured one after the other.
struct series {
    uint32_t structure; // of the first
    bool is_new;        // each has a structure of its own
    bool changes;       // each has other extents than the one before
    bool cold;
};

// One graph: *out_ns of splitting and allocating it, *out_again_ns of the same graph once more.
static bool measure_once(const struct bench *bench, int n_tokens, uint32_t structure, bool cold,
                         double *out_ns, double *out_again_ns, int *out_nodes) {
    struct ggml_context *ctx = NULL;
    struct ggml_cgraph *graph =
        model_graph(&bench->model, n_tokens, structure, bench->memory, &ctx);
    if (cold) bench_evict();
    const double start = bench_ns();
    ggml_backend_sched_reset(bench->sched);
    bool done = ggml_backend_sched_alloc_graph(bench->sched, graph);
    const double middle = bench_ns();
    ggml_backend_sched_reset(bench->sched);
    done = done && ggml_backend_sched_alloc_graph(bench->sched, graph);
    *out_again_ns = bench_ns() - middle;
    *out_nodes = ggml_graph_n_nodes(graph);
    *out_ns = (middle - start) / *out_nodes;
    ggml_free(ctx);
    return done;
}

// The median over graphs of the series, per node; *out_again_us: of the same graphs once more, each
// as a whole, or NULL.
static bool measure_runs(const struct bench *bench, const struct series *series, int runs,
                         double *out_ns, double *out_again_us) {
    double *times = calloc(2 * (size_t)runs, sizeof(times[0]));
    double *again = times + runs;
    int n_nodes;
    bool done = times != NULL;
    for (int i = 0; i < runs && done; ++i) {
        const uint32_t structure = series->structure + (series->is_new ? (uint32_t)i : 0);
        const int n_tokens = TOKENS - (series->changes ? 1 + i % 2 : 0);
        done =
            measure_once(bench, n_tokens, structure, series->cold, &times[i], &again[i], &n_nodes);
    }
    if (done) *out_ns = bench_median(times, runs);
    if (done && out_again_us) *out_again_us = bench_median(again, runs) / 1000;
    free(times);
    return done;
}

static bool measure_all_series(const struct bench *bench, int runs, struct sample *out_sample) {
    enum { MOST_COLD = 9 }; // as each takes long
    const struct series fresh = {.structure = 1, .is_new = true};
    const struct series cold = {.structure = 1 + (uint32_t)runs, .is_new = true, .cold = true};
    const struct series usual = {.structure = USUAL};
    const struct series changed = {.structure = USUAL, .changes = true};
    double ignored;
    return measure_once(bench, TOKENS, USUAL, false, &out_sample->first, &ignored,
                        &out_sample->n_nodes) &&
           measure_runs(bench, &fresh, runs, &out_sample->fresh, NULL) &&
           measure_runs(bench, &cold, runs < MOST_COLD ? runs : MOST_COLD, &out_sample->cold,
                        NULL) &&
           measure_runs(bench, &usual, 2, &ignored, NULL) && // until it is known again
           measure_runs(bench, &usual, runs, &out_sample->repeated, &out_sample->unchanged) &&
           measure_runs(bench, &changed, runs, &out_sample->changed, NULL);
}

static bool measure(int n_nodes, int n_devices, int runs, struct sample *out_sample) {
    ggml_backend_t streams[IDLE_DEVICES];
    struct bench bench;
    *out_sample = (struct sample){0};
    for (int i = 0; i < n_devices; ++i) {
        streams[i] = idle_stream((i + 1) % n_devices); // the CPU is the last
    }
    bool done = model_init(&bench.model, n_nodes, n_devices);
    bench.memory = malloc(model_graph_bytes(&bench.model));
    bench.sched = ggml_backend_sched_new(streams, NULL, n_devices, model_graph_size(&bench.model),
                                         false, false);
    done = done && bench.memory && bench.sched && measure_all_series(&bench, runs, out_sample);
    if (done) out_sample->n_splits = ggml_backend_sched_get_n_splits(bench.sched);
    for (int i = 0; i < n_devices && done; ++i) {
        out_sample->bytes += ggml_backend_sched_get_buffer_size(bench.sched, streams[i]);
    }
    ggml_backend_sched_free(bench.sched);
    model_free(&bench.model);
    free(bench.memory);
    return done;
}

// --- memory ---

struct memory_sample {
    size_t bytes; // of the buffer
    size_t bound; // that no plan can do with less than
    int n_nodes;
    double ns; // per node, to split and allocate it as the first graph of a scheduler
};

static bool measure_memory_once(enum family family, int size, struct memory_sample *out_sample) {
    ggml_backend_t stream = idle_stream(0);
    struct ggml_context *ctx = family_context(family, size);
    ggml_backend_buffer_t weights = ggml_backend_buft_alloc_buffer(idle_memory(0), 1 << 28);
    ggml_backend_sched_t sched = ggml_backend_sched_new(&stream, NULL, 1, 1024, false, false);
    *out_sample = (struct memory_sample){0};
    bool done = ctx && weights && sched;
    if (done) {
        ggml_backend_buffer_set_usage(weights, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
        struct ggml_cgraph *graph = family_build(ctx, family, size, weights);
        const double start = bench_ns();
        done = ggml_backend_sched_alloc_graph(sched, graph);
        out_sample->ns = bench_ns() - start;
        out_sample->n_nodes = ggml_graph_n_nodes(graph);
        out_sample->ns /= out_sample->n_nodes;
        out_sample->bytes = ggml_backend_sched_get_buffer_size(sched, stream);
        if (done) out_sample->bound = family_bound(graph, IDLE_ALIGNMENT);
    }
    ggml_backend_sched_free(sched);
    ggml_backend_buffer_free(weights);
    ggml_free(ctx);
    return done && out_sample->bound > 0;
}

// The fastest of a few: each is the first graph of a scheduler.
static bool measure_memory(enum family family, int size, struct memory_sample *out_sample) {
    enum { RUNS = 5 };
    bool done = measure_memory_once(family, size, out_sample);
    for (int i = 1; i < RUNS && done; ++i) {
        struct memory_sample sample;
        done = measure_memory_once(family, size, &sample);
        if (sample.ns < out_sample->ns) out_sample->ns = sample.ns;
    }
    return done;
}

static void print_memory(const struct options *options, enum family family, int size,
                         const struct memory_sample *sample, bool first) {
    const double ratio = (double)sample->bytes / (double)sample->bound;
    if (options->json) {
        printf("%s\n    {\"family\": \"%s\", \"%s\": %d, \"nodes\": %d, \"bytes\": %zu, "
               "\"bound\": %zu, \"ratio\": %.4f, \"ns_per_node\": %.1f}",
               first ? "" : ",", family_name(family), family_unit(family), size, sample->n_nodes,
               sample->bytes, sample->bound, ratio, sample->ns);
        return;
    }
    printf("%-20s %4d %-9s %8d %12zu %12zu %8.3f %10.1f\n", family_name(family), size,
           family_unit(family), sample->n_nodes, sample->bytes, sample->bound, ratio, sample->ns);
}

static bool measure_families(const struct options *options) {
    bool first = true;
    if (options->json) {
        printf("\n], \"memory\": [");
    } else {
        printf("\n%-35s %8s %12s %12s %8s %10s\n", "memory", "nodes", "bytes", "lower bound",
               "ratio", "ns per node");
    }
    for (int family = 0; family < FAMILY_COUNT; ++family) {
        const int *sizes = family_sizes((enum family)family);
        for (int i = 0; sizes[i] > 0; ++i) {
            struct memory_sample sample;
            if (!measure_memory((enum family)family, sizes[i], &sample)) return false;
            print_memory(options, (enum family)family, sizes[i], &sample, first);
            first = false;
        }
    }
    return true;
}

// --- the command ---

static void print_sample(const struct options *options, int n_devices, const struct sample *sample,
                         bool first) {
    if (options->json) {
        printf("%s\n    {\"nodes\": %d, \"devices\": %d, \"splits\": %d, "
               "\"first_ns_per_node\": %.1f, \"new_ns_per_node\": %.1f, "
               "\"cold_ns_per_node\": %.1f, \"changed_ns_per_node\": %.1f, "
               "\"repeated_ns_per_node\": %.1f, \"unchanged_us\": %.3f, \"bytes\": %zu}",
               first ? "" : ",", sample->n_nodes, n_devices, sample->n_splits, sample->first,
               sample->fresh, sample->cold, sample->changed, sample->repeated, sample->unchanged,
               sample->bytes);
        return;
    }
    printf("%8d %8d %8d %8.1f %8.1f %8.1f %8.1f %8.1f %12.3f %12zu\n", sample->n_nodes, n_devices,
           sample->n_splits, sample->first, sample->fresh, sample->cold, sample->changed,
           sample->repeated, sample->unchanged, sample->bytes);
}

static int measure_all(const struct options *options) {
    static const int sizes[] = {100, 1000, 10000, 100000};
    static const int counts[] = {2, 4, 8, 64};
    bool first = true;
    if (options->json) {
        printf("{\"runs\": %d, \"samples\": [", options->runs);
    } else {
        printf("%26s %44s\n%8s %8s %8s %8s %8s %8s %8s %8s %12s %12s\n", "",
               "ns per node:", "nodes", "devices", "splits", "first", "new", "cold", "changed",
               "repeated", "unchanged us", "bytes");
    }
    for (int s = 0; s < (options->nodes ? 1 : 4); ++s) {
        for (int c = 0; c < (options->devices ? 1 : 4); ++c) {
            const int n_nodes = options->nodes ? options->nodes : sizes[s];
            const int n_devices = options->devices ? options->devices : counts[c];
            struct sample sample;
            if (!measure(n_nodes, n_devices, options->runs, &sample)) {
                fprintf(stderr, "ggml-bench: %s\n", ggml_last_error());
                return BENCH_ERROR;
            }
            print_sample(options, n_devices, &sample, first);
            first = false;
        }
    }
    const bool whole = !options->nodes && !options->devices;
    if (whole && !measure_families(options)) {
        fprintf(stderr, "ggml-bench: %s\n", ggml_last_error());
        return BENCH_ERROR;
    }
    if (options->json) printf("\n]}\n");
    return BENCH_OK;
}

static void print_usage(FILE *stream) {
    print_help(
        "Usage: ggml-bench sched [OPTION]...\n\n"
        "Splits and allocates graphs over devices that compute nothing. Unless --nodes or\n"
        "--devices is given also compares the memory that graphs of the shapes of models need\n"
        "with a lower bound.\n\n"
        "  --nodes N     only graphs of about N nodes (default 100, 1000, 10000, 100000)\n"
        "  --devices N   only with N devices, the CPU among them (default 2, 4, 8, 64)\n"
        "  --runs N      graphs per measurement (default 21)\n"
        "  --json        print JSON\n"
        "  -h, --help    print this\n",
        stream);
}

int bench_sched(int argc, char **argv) {
    static const struct option longs[] = {
        {"nodes", required_argument, NULL, 'n'}, {"devices", required_argument, NULL, 'd'},
        {"runs", required_argument, NULL, 'r'},  {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},        {NULL, 0, NULL, 0},
    };
    struct options options = {.runs = 21};
    int c;
    bool valid = true;
    while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1 && valid) {
        switch (c) {
        case 'n': valid = bench_read_number(optarg, 1, 10000000, &options.nodes); break;
        case 'd': valid = bench_read_number(optarg, 2, IDLE_DEVICES, &options.devices); break;
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
