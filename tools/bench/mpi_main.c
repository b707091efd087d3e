// SPDX-License-Identifier: MIT
// ggml-bench mpi: what devices of nodes take, and in turn what bare MPI does between processes
// beside them.
#define _POSIX_C_SOURCE 200809L
#include <getopt.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "ggml-alloc.h"
#include "ggml-ext-comm.h"
#include "ggml-host.h"
#include "help.h"
#include "mpi_bare.h"
#include "platform.h"

enum { MOST_NODES = 64, MOST_RUNS = 1000, ROUND_TRIPS = 100, USUAL_MB = 64, USUAL_GRAPH = 1000 };

// The command line, as parsed.
struct options {
    int runs, megabytes, reduced_megabytes, nodes;
    bool json;
};

// One tensor on a device, and a stream there.
struct place {
    ggml_backend_dev_t device;
    ggml_backend_t stream;
    struct ggml_context *ctx;
    ggml_backend_buffer_t buffer;
    struct ggml_tensor *large;
    struct ggml_tensor *small;
    struct ggml_cgraph *graph; // a chain of small nodes
};

// All that is measured with: the places, the bare processes, and memory of the host.
struct bench {
    struct options options;
    struct bare bare;
    struct place places[MOST_NODES + 1]; // the nodes, and the CPU here
    struct place twins[MOST_NODES];      // the nodes again: another stream of each
    int n, n_twins;
    char *bytes;
    size_t size;
    const struct ggml_extension_comm *comm;
    ggml_comm_group_t group, twin_group; // of the places, of places and twins
    bool failed;
};

static double seconds(void) {
    return bench_ns() * 1e-9;
}

// --- what is measured with -----------------------------------------------------------------------

static void place_free(struct place *place) {
    ggml_backend_buffer_free(place->buffer);
    ggml_free(place->ctx);
    ggml_backend_free(place->stream);
}

// Makes tensors and a chain of n_nodes scalings by 1 on a device; false without memory, then
// place_free() frees what there is.
static bool place_make(struct place *place, ggml_backend_dev_t device, size_t bytes, int n_nodes) {
    const size_t n = (size_t)n_nodes;
    const struct ggml_init_params params = {.mem_size = (n + 8) * ggml_tensor_overhead() +
                                                        ggml_graph_overhead_custom(n + 1, false),
                                            .no_alloc = true};
    *place = (struct place){
        .device = device, .stream = ggml_backend_dev_init(device, NULL), .ctx = ggml_init(params)};
    if (!place->stream || !place->ctx) return false;
    place->large = ggml_new_tensor_1d(place->ctx, GGML_TYPE_F32, (int64_t)(bytes / sizeof(float)));
    place->small = ggml_new_tensor_1d(place->ctx, GGML_TYPE_F32, 4);
    place->graph = ggml_new_graph_custom(place->ctx, n + 1, false);
    struct ggml_tensor *y = place->small;
    for (int i = 0; i < n_nodes; ++i)
        y = ggml_scale_inplace(place->ctx, y, 1.0f);
    ggml_build_forward_expand(place->graph, y);
    place->buffer = ggml_backend_alloc_ctx_tensors(place->ctx, place->stream);
    if (place->buffer) ggml_backend_buffer_clear(place->buffer, 0);
    return place->buffer != NULL;
}

// The CPU of a node by its name, or NULL behind the last node.
static ggml_backend_dev_t cpu_of_node(int node) {
    char name[32];
    snprintf(name, sizeof(name), "MPI%d:CPU", node);
    return ggml_backend_dev_by_name(name);
}

// The first device of each node that is a CPU.
static bool bench_open(struct bench *bench) {
    const struct options *options = &bench->options;
    const size_t large = (size_t)options->megabytes << 20;
    const size_t reduced = (size_t)options->reduced_megabytes * 1000000 / 4 * 4;
    bench->size = large > reduced ? large : reduced;
    bench->bytes = calloc(1, bench->size);
    bool good = bench->bytes != NULL;
    if (good) memset(bench->bytes, 1, bench->size);
    ggml_backend_dev_t device;
    for (int node = 1; good && bench->n < MOST_NODES && (device = cpu_of_node(node)); ++node) {
        good = place_make(&bench->places[bench->n], device, bench->size, options->nodes);
        bench->n += good;
    }
    for (int i = 0; good && i < bench->n; ++i) {
        good = place_make(&bench->twins[i], bench->places[i].device, reduced, 1);
        bench->n_twins += good;
    }
    device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    return good && bench->n > 0 && device &&
           place_make(&bench->places[bench->n], device, 4096, options->nodes);
}

static void bench_close(struct bench *bench) {
    if (bench->group) bench->comm->group_free(bench->group);
    if (bench->twin_group) bench->comm->group_free(bench->twin_group);
    for (int i = 0; i < bench->n_twins; ++i)
        place_free(&bench->twins[i]);
    for (int i = 0; i <= bench->n; ++i)
        place_free(&bench->places[i]);
    free(bench->bytes);
}

// A group of so many streams, NULL if there is none.
static ggml_comm_group_t group_of(const struct bench *bench, ggml_backend_t *streams, int n) {
    const struct ggml_comm_ranks ranks = {.size = sizeof(ranks),
                                          .n_ranks = (uint32_t)n,
                                          .n_streams = (uint32_t)n,
                                          .streams = streams};
    ggml_comm_group_t group = NULL;
    bench->comm->group_new(&ranks, &group);
    return group;
}

// Groups of a stream of each node, and of two of each; none without the extension or with a single
// node.
static void make_groups(struct bench *bench) {
    ggml_backend_t streams[2 * MOST_NODES];
    const int n = bench->n;
    for (int i = 0; i < n; ++i) {
        streams[i] = bench->places[i].stream;
        streams[n + i] = bench->twins[i].stream;
    }
    bench->comm =
        ggml_backend_reg_get_extension(ggml_backend_dev_backend_reg(bench->places[0].device),
                                       GGML_EXTENSION_COMM, GGML_EXTENSION_COMM_REVISION);
    if (!bench->comm || n < 2) return;
    bench->group = group_of(bench, streams, n);
    bench->twin_group = group_of(bench, streams, 2 * n);
}

// --- pairs of times ------------------------------------------------------------------------------

static double bare_small(struct bench *bench) {
    return bare_round_trip(&bench->bare, ROUND_TRIPS);
}

// Seconds of a read of four bytes: a round trip through request, queue and answer.
static double ours_small(struct bench *bench) {
    float value;
    const double begin = seconds();
    for (int i = 0; i < ROUND_TRIPS; ++i)
        ggml_backend_tensor_get(bench->places[0].small, &value, 0, sizeof(value));
    return (seconds() - begin) / ROUND_TRIPS;
}

// Bytes of a transfer.
static size_t large_of(const struct bench *bench) {
    return (size_t)bench->options.megabytes << 20;
}

static double bare_set(struct bench *bench) {
    return bare_send(&bench->bare, bench->bytes, large_of(bench));
}

static double ours_set(struct bench *bench) {
    const double begin = seconds();
    ggml_backend_tensor_set(bench->places[0].large, bench->bytes, 0, large_of(bench));
    return seconds() - begin;
}

static double bare_get(struct bench *bench) {
    return bare_receive(&bench->bare, bench->bytes, large_of(bench));
}

static double ours_get(struct bench *bench) {
    const double begin = seconds();
    ggml_backend_tensor_get(bench->places[0].large, bench->bytes, 0, large_of(bench));
    return seconds() - begin;
}

static double bare_copy(struct bench *bench) {
    return bare_between(&bench->bare, bench->size);
}

static double ours_copy(struct bench *bench) {
    const double begin = seconds();
    ggml_backend_tensor_copy(bench->places[0].large, bench->places[1].large);
    return seconds() - begin;
}

static size_t n_reduced(const struct bench *bench) {
    return (size_t)bench->options.reduced_megabytes * 1000000 / sizeof(float);
}

static double bare_sum(struct bench *bench) {
    return bare_all_reduce(&bench->bare, n_reduced(bench));
}

static const struct place *place_of(const struct bench *bench, int rank) {
    return rank < bench->n ? &bench->places[rank] : &bench->twins[rank - bench->n];
}

// Seconds of a sum over so many ranks, in views of the large tensors.
static double sum_over(struct bench *bench, ggml_comm_group_t group, int n) {
    struct ggml_tensor parts[2 * MOST_NODES], *list[2 * MOST_NODES];
    for (int i = 0; i < n; ++i) {
        parts[i] = *place_of(bench, i)->large;
        parts[i].ne[0] = (int64_t)n_reduced(bench);
        parts[i].nb[1] = parts[i].nb[2] = parts[i].nb[3] = n_reduced(bench) * sizeof(float);
        list[i] = &parts[i];
    }
    const double begin = seconds();
    if (bench->comm->all_reduce(group, GGML_COMM_SUM, list, NULL) != GGML_HOST_OK)
        bench->failed = true;
    for (int i = 0; i < n; ++i)
        ggml_backend_synchronize(place_of(bench, i)->stream);
    return seconds() - begin;
}

static double ours_sum(struct bench *bench) {
    return sum_over(bench, bench->group, bench->n);
}

static double ours_twin_sum(struct bench *bench) {
    return sum_over(bench, bench->twin_group, 2 * bench->n);
}

// Seconds of one run, waiting included; a failure is noted in the bench.
static double compute(struct bench *bench, const struct place *place) {
    const double begin = seconds();
    if (ggml_backend_graph_compute(place->stream, place->graph) != GGML_STATUS_SUCCESS)
        bench->failed = true;
    return seconds() - begin;
}

static double here_graph(struct bench *bench) {
    return compute(bench, &bench->places[bench->n]);
}

static double ours_graph(struct bench *bench) {
    return compute(bench, &bench->places[0]);
}

// --- the command ---------------------------------------------------------------------------------

struct pair {
    double bare, ours, ratio; // medians; of the pairs' ratios
};

// Times both in turn, so that what else the machine does strikes both alike. Two pairs before
// are not counted.
static struct pair measure(struct bench *bench, double (*bare)(struct bench *),
                           double (*ours)(struct bench *)) {
    static double a[MOST_RUNS], b[MOST_RUNS], ratios[MOST_RUNS];
    const int runs = bench->options.runs;
    for (int i = -2; i < runs; ++i) {
        const int at = i < 0 ? 0 : i;
        a[at] = bare(bench);
        b[at] = ours(bench);
        ratios[at] = b[at] / a[at];
    }
    return (struct pair){bench_median(a, runs), bench_median(b, runs), bench_median(ratios, runs)};
}

// One measurement: times, or rates where bytes are transferred; the ratio is how many times as
// fast the bare one is (times), or what share of its rate is reached (rates).
static void print_row(const struct bench *bench, const char *name, const char *text, double bytes,
                      struct pair pair, bool first) {
    if (bench->options.json) {
        printf("%s\n    {\"name\": \"%s\", \"bytes\": %.0f, \"bare_us\": %.3f, \"us\": %.3f, "
               "\"ratio\": %.4f}",
               first ? "" : ",", name, bytes, pair.bare * 1e6, pair.ours * 1e6, pair.ratio);
    } else if (bytes > 0) {
        printf("%-34s %10.2f %10.2f %8.2f  GB/s\n", text, bytes / pair.bare * 1e-9,
               bytes / pair.ours * 1e-9, 1 / pair.ratio);
    } else {
        printf("%-34s %10.2f %10.2f %8.2f  us\n", text, pair.bare * 1e6, pair.ours * 1e6,
               pair.ratio);
    }
}

// Measures and prints everything that the number of nodes allows.
static void measure_all(struct bench *bench) {
    const double large = (double)large_of(bench), size = (double)bench->size;
    char text[64];
    if (bench->options.json)
        printf("{\"nodes\": %d, \"runs\": %d, \"results\": [", bench->n, bench->options.runs);
    else
        printf("%d nodes, medians of %d pairs in turn\n%-34s %10s %10s %8s\n", bench->n,
               bench->options.runs, "", "bare MPI", "device", "ratio");
    print_row(bench, "round_trip", "a small read", 0, measure(bench, bare_small, ours_small), true);
    snprintf(text, sizeof(text), "%d MiB to a node", bench->options.megabytes);
    print_row(bench, "set", text, large, measure(bench, bare_set, ours_set), false);
    snprintf(text, sizeof(text), "%d MiB from a node", bench->options.megabytes);
    print_row(bench, "get", text, large, measure(bench, bare_get, ours_get), false);
    if (bench->n > 1 && bench->bare.n > 1)
        print_row(bench, "copy", "from one node to another", size,
                  measure(bench, bare_copy, ours_copy), false);
    snprintf(text, sizeof(text), "sum of %d MB over %d nodes", bench->options.reduced_megabytes,
             bench->n);
    if (bench->group && bench->bare.n == bench->n)
        print_row(bench, "all_reduce", text, 0, measure(bench, bare_sum, ours_sum), false);
    if (bench->twin_group && bench->bare.n == bench->n)
        print_row(bench, "all_reduce_twins", "the same, two ranks of each node", 0,
                  measure(bench, bare_sum, ours_twin_sum), false);
    snprintf(text, sizeof(text), "graph of %d nodes (beside: here)", bench->options.nodes);
    print_row(bench, "graph", text, 0, measure(bench, here_graph, ours_graph), false);
    if (bench->options.json) printf("\n]}\n");
}

static void print_usage(FILE *stream) {
    print_help(
        "Usage: ggml-bench mpi [OPTION]...\n\n"
        "mpirun -n 1 ggml-bench mpi : -n NODES ggml-node : -n NODES ggml-bench mpi\n"
        "measures devices of nodes, and in turn what bare MPI does between the program and as\n"
        "many processes beside the nodes.\n\n"
        "  --megabytes N  MiB of a transfer (default 64)\n"
        "  --reduce N     MB that are added up over all nodes (default 16)\n"
        "  --nodes N      nodes of the graph that is repeated (default 1000)\n"
        "  --runs N       pairs per measurement (default 21)\n"
        "  --json         print JSON\n"
        "  -h, --help     print this\n",
        stream);
}

// -1: go on.
static int parse(int argc, char **argv, struct options *options) {
    static const struct option longs[] = {
        {"megabytes", required_argument, NULL, 'm'},
        {"reduce", required_argument, NULL, 's'},
        {"nodes", required_argument, NULL, 'n'},
        {"runs", required_argument, NULL, 'r'},
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int c;
    bool valid = true;
    static char started_as[] = "mpi"; // for messages: users write "ggml-bench mpi"
    argv[0] = started_as;
    while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1 && valid) {
        switch (c) {
        case 'm': valid = bench_read_number(optarg, 1, 1000, &options->megabytes); break;
        case 's': valid = bench_read_number(optarg, 1, 1000, &options->reduced_megabytes); break;
        case 'n': valid = bench_read_number(optarg, 1, 100000, &options->nodes); break;
        case 'r': valid = bench_read_number(optarg, 1, MOST_RUNS, &options->runs); break;
        case 'j': options->json = true; break;
        case 'h': print_usage(stdout); return BENCH_OK;
        default: valid = false;
        }
    }
    return valid && optind == argc ? -1 : (int)bench_usage_error(argc, argv, valid);
}

// The last processes of the job are the bare ones, so the program tells the plugin how many
// nodes come before them.
static int run(struct bench *bench) {
    char nodes[16];
    snprintf(nodes, sizeof(nodes), "%d", bench->bare.first - 1);
    if (bench->bare.n > 0) setenv("GGML_MPI_NODES", nodes, 0);
    ggml_backend_load_all();
    int code = BENCH_OK;
    if (bench->bare.n == 0 || !cpu_of_node(1)) {
        fputs("ggml-bench: no nodes: start with mpirun -n 1 ggml-bench mpi : -n NODES ggml-node : "
              "-n NODES ggml-bench mpi\n",
              stderr);
        code = BENCH_NO_DEVICE;
    } else if (!bench_open(bench)) {
        bench->failed = true;
    } else {
        make_groups(bench);
        ggml_clear_error();
        measure_all(bench);
        bench->failed = bench->failed || ggml_last_status() != GGML_HOST_OK;
    }
    if (bench->failed) fprintf(stderr, "ggml-bench: %s\n", ggml_last_error());
    if (code == BENCH_OK) bench_close(bench);
    bare_end(&bench->bare);
    return bench->failed ? BENCH_ERROR : code;
}

int main(int argc, char **argv) {
    static struct bench bench = {
        .options = {
            .runs = 21, .megabytes = USUAL_MB, .reduced_megabytes = 16, .nodes = USUAL_GRAPH}};
    const int early = parse(argc, argv, &bench.options);
    if (early >= 0) return finish_output("ggml-bench", early);
    const int code = bare_start(&bench.bare) ? run(&bench) : BENCH_OK;
    MPI_Finalize();
    return finish_output("ggml-bench", code);
}
