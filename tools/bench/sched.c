// SPDX-License-Identifier: MIT
// Splitting and allocating: what the scheduler costs per node. The devices exist only here, answer
// at once and compute nothing.
#define _POSIX_C_SOURCE 200809L
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "families.h"
#include "ggml-backend-impl.h"
#include "ggml-host.h"
#include "idle.h"

enum { LAYER_NODES = 25, WIDTH = 64, HEADS = 4, TOKENS = 4 };

struct options {
    int runs;
    int nodes;   // 0: the usual sizes
    int devices; // 0: the usual numbers
    bool json;
};

// --- a model of any size ---

struct layer {
    struct ggml_tensor *norm1, *norm2, *q, *k, *v, *o, *gate, *up, *down;
};

struct model {
    int n_layers;
    struct layer *layers;
    struct ggml_context *ctx;
    ggml_backend_buffer_t *buffers; // by device
    int n_buffers;
};

static struct ggml_tensor *weight(struct model *model, int device, int n_in, int n_out) {
    struct ggml_tensor *tensor = ggml_new_tensor_2d(model->ctx, GGML_TYPE_F32, n_in, n_out);
    void *address = ggml_backend_buffer_get_base(model->buffers[device]);
    ggml_backend_tensor_alloc(model->buffers[device], tensor, address);
    return tensor;
}

// Layers spread evenly over all devices but device 0, the CPU.
static bool make_model(struct model *model, int n_layers, int n_devices) {
    const struct ggml_init_params params = {
        .mem_size = (size_t)n_layers * 9 * ggml_tensor_overhead() + 1024,
        .no_alloc = true,
    };
    *model = (struct model){.n_layers = n_layers, .ctx = ggml_init(params)};
    model->layers = calloc((size_t)n_layers, sizeof(model->layers[0]));
    model->buffers = calloc((size_t)n_devices, sizeof(model->buffers[0]));
    if (!model->ctx || !model->layers || !model->buffers) return false;
    for (; model->n_buffers < n_devices; ++model->n_buffers) {
        ggml_backend_buffer_type_t buft = idle_memory(model->n_buffers);
        ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(buft, WIDTH * WIDTH * 16);
        if (!buffer) return false;
        ggml_backend_buffer_set_usage(buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
        model->buffers[model->n_buffers] = buffer;
    }
    for (int i = 0; i < n_layers; ++i) {
        const int d = 1 + (int)((int64_t)i * (n_devices - 1) / n_layers);
        model->layers[i] = (struct layer){
            weight(model, d, WIDTH, 1),         weight(model, d, WIDTH, 1),
            weight(model, d, WIDTH, WIDTH),     weight(model, d, WIDTH, WIDTH),
            weight(model, d, WIDTH, WIDTH),     weight(model, d, WIDTH, WIDTH),
            weight(model, d, WIDTH, 2 * WIDTH), weight(model, d, WIDTH, 2 * WIDTH),
            weight(model, d, 2 * WIDTH, WIDTH),
        };
    }
    return true;
}

static void free_model(struct model *model) {
    for (int i = 0; i < model->n_buffers; ++i) {
        ggml_backend_buffer_free(model->buffers[i]);
    }
    ggml_free(model->ctx);
    free(model->buffers);
    free(model->layers);
}

static struct ggml_tensor *heads(struct ggml_context *ctx, struct ggml_tensor *x,
                                 struct ggml_tensor *positions) {
    struct ggml_tensor *y = ggml_reshape_3d(ctx, x, WIDTH / HEADS, HEADS, x->ne[1]);
    if (positions) y = ggml_rope(ctx, y, positions, WIDTH / HEADS, 0);
    return ggml_permute(ctx, y, 0, 2, 1, 3);
}

// LAYER_NODES nodes, and another if the variant is odd.
static struct ggml_tensor *add_layer(struct ggml_context *ctx, const struct layer *layer,
                                     struct ggml_tensor *x, struct ggml_tensor *positions,
                                     uint32_t variant) {
    struct ggml_tensor *h = ggml_mul(ctx, ggml_rms_norm(ctx, x, 1e-5f), layer->norm1);
    struct ggml_tensor *q = heads(ctx, ggml_mul_mat(ctx, layer->q, h), positions);
    struct ggml_tensor *k = heads(ctx, ggml_mul_mat(ctx, layer->k, h), positions);
    struct ggml_tensor *v = heads(ctx, ggml_mul_mat(ctx, layer->v, h), NULL);
    struct ggml_tensor *scores = ggml_soft_max(ctx, ggml_mul_mat(ctx, k, q));
    struct ggml_tensor *y = ggml_mul_mat(ctx, ggml_cont(ctx, ggml_transpose(ctx, v)), scores);
    y = ggml_cont_2d(ctx, ggml_permute(ctx, y, 0, 2, 1, 3), WIDTH, x->ne[1]);
    x = ggml_add(ctx, x, ggml_mul_mat(ctx, layer->o, y));
    h = ggml_mul(ctx, ggml_rms_norm(ctx, x, 1e-5f), layer->norm2);
    struct ggml_tensor *gate = ggml_mul_mat(ctx, layer->gate, h);
    struct ggml_tensor *up = ggml_mul_mat(ctx, layer->up, h);
    if (variant & 1) {
        h = ggml_mul(ctx, ggml_silu(ctx, gate), up);
    } else {
        h = ggml_swiglu_split(ctx, gate, up);
    }
    return ggml_add(ctx, x, ggml_mul_mat(ctx, layer->down, h));
}

// The structure that all measurements but that of new ones have.
enum { USUAL = 0 };

// `structure` chooses the variant of each layer.
static struct ggml_cgraph *build(const struct model *model, int n_tokens, uint32_t structure,
                                 void *memory, size_t size, struct ggml_context **out_ctx) {
    const size_t n = (size_t)(model->n_layers + 1) * (LAYER_NODES + 10);
    struct ggml_context *ctx = ggml_init((struct ggml_init_params){size, memory, true});
    struct ggml_cgraph *graph = ggml_new_graph_custom(ctx, n, false);
    struct ggml_tensor *x = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, WIDTH, n_tokens);
    struct ggml_tensor *positions = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, n_tokens);
    ggml_set_input(x);
    ggml_set_input(positions);
    for (int i = 0; i < model->n_layers; ++i) {
        x = add_layer(ctx, &model->layers[i], x, positions, structure >> (i % 5));
    }
    ggml_build_forward_expand(graph, x);
    *out_ctx = ctx;
    return graph;
}

// --- measuring ---

struct sample {
    double first;     // ns per node of the first graph of a scheduler
    double fresh;     // ns per node of a structure that the scheduler has not seen
    double changed;   // ns per node of the last structure with other extents
    double repeated;  // ns per node of a new graph that is like the last
    double unchanged; // us per graph
    int n_nodes;
    int n_splits;
    size_t bytes; // of compute buffers
};

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n) {
    qsort(values, (size_t)n, sizeof(values[0]), by_value);
    return values[n / 2];
}

struct bench {
    ggml_backend_sched_t sched;
    struct model model;
    void *memory; // of graphs
    size_t size;
};

// One graph: *out_ns of splitting and allocating it, *out_again_ns of the same graph once more.
static bool measure_once(const struct bench *bench, int n_tokens, uint32_t structure,
                         double *out_ns, double *out_again_ns, int *out_nodes) {
    struct ggml_context *ctx = NULL;
    struct ggml_cgraph *graph =
        build(&bench->model, n_tokens, structure, bench->memory, bench->size, &ctx);
    const double start = now_ns();
    ggml_backend_sched_reset(bench->sched);
    bool done = ggml_backend_sched_alloc_graph(bench->sched, graph);
    const double middle = now_ns();
    ggml_backend_sched_reset(bench->sched);
    done = done && ggml_backend_sched_alloc_graph(bench->sched, graph);
    *out_again_ns = now_ns() - middle;
    *out_nodes = ggml_graph_n_nodes(graph);
    *out_ns = (middle - start) / *out_nodes;
    ggml_free(ctx);
    return done;
}

static bool measure_runs(const struct bench *bench, int runs, struct sample *out_sample) {
    double *times = calloc(4 * (size_t)runs, sizeof(times[0]));
    double *again = times + runs, *changed = times + 2 * runs, *fresh = times + 3 * runs;
    double ignored;
    int n = 0;
    bool done = times && measure_once(bench, TOKENS, USUAL, &out_sample->first, &again[0], &n);
    for (int i = 0; i < runs && done; ++i) {
        done = measure_once(bench, TOKENS, (uint32_t)i + 1, &fresh[i], &ignored, &n);
    }
    done = done && measure_once(bench, TOKENS, USUAL, &ignored, &ignored, &n) &&
           measure_once(bench, TOKENS, USUAL, &ignored, &ignored, &n);
    for (int i = 0; i < runs && done; ++i) {
        done = measure_once(bench, TOKENS, USUAL, &times[i], &again[i], &n);
    }
    for (int i = 0; i < runs && done; ++i) {
        done = measure_once(bench, TOKENS - 1 - i % 2, USUAL, &changed[i], &ignored, &n);
    }
    if (done) {
        out_sample->n_nodes = n;
        out_sample->fresh = median(fresh, runs);
        out_sample->changed = median(changed, runs);
        out_sample->repeated = median(times, runs);
        out_sample->unchanged = median(again, runs) / 1000;
    }
    free(times);
    return done;
}

static bool measure(int n_nodes, int n_devices, int runs, struct sample *out_sample) {
    ggml_backend_t streams[IDLE_DEVICES];
    struct bench bench;
    const int n_layers = n_nodes > LAYER_NODES ? n_nodes / LAYER_NODES : 1;
    const size_t n = (size_t)(n_layers + 1) * (LAYER_NODES + 10);
    *out_sample = (struct sample){0};
    for (int i = 0; i < n_devices; ++i) {
        streams[i] = idle_stream((i + 1) % n_devices); // the CPU is the last
    }
    bool done = make_model(&bench.model, n_layers, n_devices);
    bench.size = n * ggml_tensor_overhead() + ggml_graph_overhead_custom(n, false);
    bench.memory = malloc(bench.size);
    bench.sched = ggml_backend_sched_new(streams, NULL, n_devices, n, false, false);
    done = done && bench.memory && bench.sched && measure_runs(&bench, runs, out_sample);
    if (done) out_sample->n_splits = ggml_backend_sched_get_n_splits(bench.sched);
    for (int i = 0; i < n_devices && done; ++i) {
        out_sample->bytes += ggml_backend_sched_get_buffer_size(bench.sched, streams[i]);
    }
    ggml_backend_sched_free(bench.sched);
    free_model(&bench.model);
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

static bool measure_memory(enum family family, int size, struct memory_sample *out_sample) {
    ggml_backend_t stream = idle_stream(0);
    struct ggml_context *ctx = family_context();
    ggml_backend_buffer_t weights = ggml_backend_buft_alloc_buffer(idle_memory(0), 1 << 28);
    ggml_backend_sched_t sched = ggml_backend_sched_new(&stream, NULL, 1, 1024, false, false);
    *out_sample = (struct memory_sample){0};
    bool done = ctx && weights && sched;
    if (done) {
        ggml_backend_buffer_set_usage(weights, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
        struct ggml_cgraph *graph = family_build(ctx, family, size, weights);
        const double start = now_ns();
        done = ggml_backend_sched_alloc_graph(sched, graph);
        out_sample->n_nodes = ggml_graph_n_nodes(graph);
        out_sample->ns = (now_ns() - start) / out_sample->n_nodes;
        out_sample->bytes = ggml_backend_sched_get_buffer_size(sched, stream);
        if (done) out_sample->bound = family_bound(graph, IDLE_ALIGNMENT);
    }
    ggml_backend_sched_free(sched);
    ggml_backend_buffer_free(weights);
    ggml_free(ctx);
    return done && out_sample->bound > 0;
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
               "\"changed_ns_per_node\": %.1f, \"repeated_ns_per_node\": %.1f, "
               "\"unchanged_us\": %.3f, \"bytes\": %zu}",
               first ? "" : ",", sample->n_nodes, n_devices, sample->n_splits, sample->first,
               sample->fresh, sample->changed, sample->repeated, sample->unchanged, sample->bytes);
        return;
    }
    printf("%8d %8d %8d %8.1f %8.1f %8.1f %8.1f %12.3f %12zu\n", sample->n_nodes, n_devices,
           sample->n_splits, sample->first, sample->fresh, sample->changed, sample->repeated,
           sample->unchanged, sample->bytes);
}

static int measure_all(const struct options *options) {
    static const int sizes[] = {100, 1000, 10000, 100000};
    static const int counts[] = {2, 4, 8, 64};
    bool first = true;
    if (options->json) {
        printf("{\"runs\": %d, \"samples\": [", options->runs);
    } else {
        printf("%26s %35s\n%8s %8s %8s %8s %8s %8s %8s %12s %12s\n", "", "ns per node:", "nodes",
               "devices", "splits", "first", "new", "changed", "repeated", "unchanged us", "bytes");
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
    fputs("Usage: ggml-bench sched [OPTION]...\n\n"
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

static bool read_number(const char *text, int low, int high, int *out_number) {
    char *end = NULL;
    const long number = strtol(text, &end, 10);
    if (end == text || *end != '\0' || number < low || number > high) return false;
    *out_number = (int)number;
    return true;
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
        case 'n': valid = read_number(optarg, 1, 10000000, &options.nodes); break;
        case 'd': valid = read_number(optarg, 2, IDLE_DEVICES, &options.devices); break;
        case 'r': valid = read_number(optarg, 1, 10000, &options.runs); break;
        case 'j': options.json = true; break;
        case 'h': print_usage(stdout); return BENCH_OK;
        default: valid = false;
        }
    }
    if (!valid || optind < argc) {
        print_usage(stderr);
        return BENCH_USAGE;
    }
    return measure_all(&options);
}
