// SPDX-License-Identifier: MIT
// A device that another process computes, beside the same device in this one: what a graph loses.
//
// A process that computes in turn with another one finds its caches cold and its processor asleep,
// the process that gave it the work. So there is a third to compare with: a process that computes
// the same graphs for itself, in its own turn. What an isolated graph takes beyond that is the way
// there, as far as two processes compute alike. What it takes beyond the time that its own process
// says the device was busy with it, in the very same graph, is its exact cost. That includes waking
// processors that sleep, which no message between processes that wait for each other is without: so
// the third process also answers bare messages, after being busy for as long as the device was.
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-host.h"
#include "help.h"
#include "json_text.h"
#include "platform.h"

#ifdef __linux__
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

enum { WIDTH = 32, LAYER_NODES = 5, USUAL_SIZES = 3, INPUTS = 6 };

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
    double apart; // in a process that computes for itself
    double isolated;
    double device;     // of these, those that the device itself was busy
    double cost;       // what isolation cost, median of the rounds
    double least_cost; // the least of them
    double bare;       // cost of a message that the process to compare with answers as late
    double difference; // of isolated and apart, median of the rounds
    double least;      // of the least that each of them took: what nothing else held up
    double loop_cost;  // cost where nothing is computed between graphs
    double loop_bare;  // of messages that follow each other likewise
    double step_cost;  // cost in a loop where each graph has inputs to set and a result to read
    double changed;    // isolated, when a parameter changed since
    double changed_cost;
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

// The same of a chain on an isolated device. *out_device: those that the device itself was busy;
// *out_cost: what isolation cost. The rest are checks, which graphs pass on every device.
static double compute_isolated(struct chain *chain, int in_a_row, double *out_device,
                               double *out_cost) {
    ggml_backend_dev_t device = ggml_backend_get_device(chain->stream);
    int64_t total_before, device_before, total_after, device_after;
    ggml_host_isolated_time(device, &total_before, &device_before);
    const double ns = compute(chain, in_a_row);
    ggml_host_isolated_time(device, &total_after, &device_after);
    *out_device = (double)(device_after - device_before) / in_a_row;
    *out_cost = (double)(total_after - total_before) / in_a_row - *out_device;
    return ns;
}

// A token of a program: inputs are set, a graph is computed, a result is read. *out_cost:
// nanoseconds beyond those that the device was busy with the graph. Below 0 on failure.
static double step(struct chain *chain, double *out_cost) {
    float values[WIDTH] = {0};
    double device, cost;
    const double start = bench_ns();
    for (int i = 0; i < INPUTS; ++i)
        ggml_backend_tensor_set(chain->x, values, 0, sizeof(values));
    if (compute_isolated(chain, 1, &device, &cost) < 0) return -1;
    ggml_backend_tensor_get(chain->scaled, values, 0, sizeof(values));
    const double ns = bench_ns() - start;
    *out_cost = ns - device;
    return ns;
}

// False after the reason was printed.
static bool load_plugins(const struct options *options) {
    if (!options->plugin_path || ggml_plugin_load_all(options->plugin_path, NULL) == GGML_HOST_OK)
        return true;
    fprintf(stderr, "ggml-bench: %s\n", ggml_last_error());
    return false;
}

// --- the process to compare with -----------------------------------------------------------------

struct control {
    int socket; // -1: none
    long process;
};

// What that process is asked for: to compute a graph of so many nodes, or to be busy.
struct control_request {
    int n_nodes; // 0: none
    double busy_ns;
};

#ifdef __linux__
// Nanoseconds that it took.
static double be_busy(double ns) {
    const double start = bench_ns();
    double now;
    do
        now = bench_ns();
    while (now - start < ns);
    return now - start;
}

// Computes graphs of as many nodes as it is asked for, or is busy, and answers how long that took,
// until the other end is closed. A device that is not there is the other process's to tell.
_Noreturn static void control_serve(const struct options *options, int socket) {
    struct chain chain = {0};
    struct control_request request;
    int made = 0;
    if (!freopen("/dev/null", "w", stderr)) _exit(BENCH_ERROR);
    ggml_backend_dev_t device = load_plugins(options) ? bench_find_device(options->device) : NULL;
    while (device && recv(socket, &request, sizeof(request), MSG_WAITALL) == sizeof(request)) {
        const int n = request.n_nodes;
        if (n && made && made != n) chain_free(&chain);
        if (n && made != n && !chain_make(device, n, &chain)) break;
        made = n ? n : made;
        const double ns = n ? compute(&chain, options->in_a_row) : be_busy(request.busy_ns);
        if (send(socket, &ns, sizeof(ns), MSG_NOSIGNAL) != sizeof(ns)) break;
    }
    _exit(BENCH_OK);
}

// Before any plugin is loaded: a driver's threads would not be in the child.
static struct control control_start(const struct options *options) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return (struct control){.socket = -1};
    const pid_t process = fork();
    if (process == 0) {
        close(ends[0]);
        control_serve(options, ends[1]);
    }
    close(ends[1]);
    return (struct control){ends[0], process};
}

// Nanoseconds there, below 0 on failure.
static double control_ask(const struct control *control, struct control_request request) {
    double ns;
    if (send(control->socket, &request, sizeof(request), MSG_NOSIGNAL) == sizeof(request) &&
        recv(control->socket, &ns, sizeof(ns), MSG_WAITALL) == sizeof(ns)) {
        return ns;
    }
    fprintf(stderr, "ggml-bench: the process to compare with is gone\n");
    return -1;
}

static void control_end(const struct control *control) {
    if (control->socket < 0) return;
    close(control->socket);
    if (control->process > 0) waitpid((pid_t)control->process, NULL, 0);
}
#else
// Where devices can't be isolated either.
static struct control control_start(const struct options *options) {
    (void)options;
    return (struct control){.socket = -1};
}

static double control_ask(const struct control *control, struct control_request request) {
    (void)control;
    (void)request;
    return -1;
}

static void control_end(const struct control *control) {
    (void)control;
}
#endif

// Nanoseconds that a graph took there.
static double control_compute(const struct control *control, int n_nodes) {
    return control_ask(control, (struct control_request){.n_nodes = n_nodes});
}

// Nanoseconds that a message there and back takes beyond the time that the process is busy in
// between, of so many in a row.
static double control_message(const struct control *control, double busy_ns, int in_a_row) {
    double cost = 0;
    for (int i = 0; i < in_a_row; ++i) {
        const double start = bench_ns();
        const double busy = control_ask(control, (struct control_request){.busy_ns = busy_ns});
        if (busy < 0) return -1;
        cost += (bench_ns() - start - busy) / in_a_row;
    }
    return cost;
}

// --- comparing -----------------------------------------------------------------------------------

// What is compared: chains in this process and on the isolated device, of so many nodes.
struct contest {
    struct chain here, isolated;
    const struct control *control;
    int n_nodes;
};

static double least(const double *values, int n) {
    double found = values[0];
    for (int i = 1; i < n; ++i)
        found = values[i] < found ? values[i] : found;
    return found;
}

// One list of each, a value per round.
struct rounds {
    double *here, *apart, *isolated, *device, *cost, *difference, *bare, *loop_cost, *loop_bare,
        *step_cost, *changed, *changed_cost;
};
enum { N_LISTS = 12 };

static bool rounds_make(int runs, struct rounds *out_rounds) {
    const size_t n = (size_t)runs;
    double *all = calloc(N_LISTS * n, sizeof(all[0]));
    if (!all) return false;
    *out_rounds = (struct rounds){all,         all + n,     all + 2 * n,  all + 3 * n,
                                  all + 4 * n, all + 5 * n, all + 6 * n,  all + 7 * n,
                                  all + 8 * n, all + 9 * n, all + 10 * n, all + 11 * n};
    return true;
}

static struct times summarise(const struct rounds *rounds, int runs) {
    return (struct times){
        .least_cost = least(rounds->cost, runs) / 1e3,
        .least = (least(rounds->isolated, runs) - least(rounds->apart, runs)) / 1e3,
        .here = bench_median(rounds->here, runs) / 1e3,
        .apart = bench_median(rounds->apart, runs) / 1e3,
        .isolated = bench_median(rounds->isolated, runs) / 1e3,
        .device = bench_median(rounds->device, runs) / 1e3,
        .cost = bench_median(rounds->cost, runs) / 1e3,
        .difference = bench_median(rounds->difference, runs) / 1e3,
        .bare = bench_median(rounds->bare, runs) / 1e3,
        .loop_cost = bench_median(rounds->loop_cost, runs) / 1e3,
        .loop_bare = bench_median(rounds->loop_bare, runs) / 1e3,
        .step_cost = bench_median(rounds->step_cost, runs) / 1e3,
        .changed = bench_median(rounds->changed, runs) / 1e3,
        .changed_cost = bench_median(rounds->changed_cost, runs) / 1e3,
    };
}

// Times all in turn, so that what else the machine does strikes them alike; then the isolated one
// alone, as a program has it whose graphs are all computed there; and with a node that changes each
// time, which has to be sent again.
static bool measure_runs(struct contest *contest, const struct options *options,
                         struct times *out_times) {
    const int runs = options->runs, in_a_row = options->in_a_row;
    struct chain *isolated = &contest->isolated;
    struct rounds r;
    double device;
    if (!rounds_make(runs, &r)) return false;
    bool good = true;
    for (int i = -3; i < runs && good; ++i) {
        const int at = i < 0 ? 0 : i;
        r.here[at] = compute(&contest->here, in_a_row);
        r.apart[at] = control_compute(contest->control, contest->n_nodes);
        r.isolated[at] = compute_isolated(isolated, in_a_row, &r.device[at], &r.cost[at]);
        r.difference[at] = r.isolated[at] - r.apart[at];
        r.bare[at] = control_message(contest->control, r.device[at], in_a_row);
        good = r.here[at] >= 0 && r.apart[at] >= 0 && r.isolated[at] >= 0 && r.bare[at] >= 0;
    }
    for (int i = 0; i < runs && good; ++i)
        good = compute_isolated(isolated, 1, &device, &r.loop_cost[i]) >= 0;
    for (int i = 0; i < runs && good; ++i)
        good = step(isolated, &r.step_cost[i]) >= 0;
    for (int i = 0; i < runs && good; ++i) {
        r.loop_bare[i] = control_message(contest->control, device, 1);
        good = r.loop_bare[i] >= 0;
    }
    for (int i = 0; i < runs && good; ++i) {
        isolated->scaled->op_params[0] ^= 1; // the last bit of the factor
        r.changed[i] = compute_isolated(isolated, 1, &device, &r.changed_cost[i]);
        good = r.changed[i] >= 0;
    }
    if (good) *out_times = summarise(&r, runs);
    free(r.here);
    return good;
}

// Where the same graphs are computed.
struct devices {
    ggml_backend_dev_t here, isolated;
    const struct control *control;
};

// Makes the same graph on both devices and measures it. *n_nodes becomes the number that it has.
static bool measure(const struct devices *devices, int *n_nodes, const struct options *options,
                    struct times *out_times) {
    struct contest contest = {.control = devices->control, .n_nodes = *n_nodes};
    const bool good = chain_make(devices->here, *n_nodes, &contest.here) &&
                      chain_make(devices->isolated, *n_nodes, &contest.isolated) &&
                      measure_runs(&contest, options, out_times);
    if (good) *n_nodes = ggml_graph_n_nodes(contest.here.graph);
    chain_free(&contest.here);
    chain_free(&contest.isolated);
    return good;
}

// --- the command

// One size of graph.
static void print_times(const struct options *options, int n_nodes, const struct times *times,
                        bool first) {
    const double ratio = times->isolated / times->apart;
    if (options->json) {
        printf(
            "%s\n    {\"nodes\": %d, \"us\": %.2f, \"apart_us\": %.2f, \"isolated_us\": %.2f, "
            "\"device_us\": %.2f, \"cost_us\": %.2f, \"least_cost_us\": %.2f, \"bare_us\": %.2f, "
            "\"difference_us\": %.2f, \"least_difference_us\": %.2f, \"ratio\": %.4f, "
            "\"loop_cost_us\": %.2f, \"loop_bare_us\": %.2f, \"step_cost_us\": %.2f, "
            "\"changed_us\": %.2f, \"changed_cost_us\": %.2f}",
            first ? "" : ",", n_nodes, times->here, times->apart, times->isolated, times->device,
            times->cost, times->least_cost, times->bare, times->difference, times->least, ratio,
            times->loop_cost, times->loop_bare, times->step_cost, times->changed,
            times->changed_cost);
        return;
    }
    printf(
        "%6d %8.1f %8.1f %8.1f %8.1f %6.1f %6.1f %6.1f %10.1f %8.1f %6.3f %6.1f %6.1f %6.1f %8.1f "
        "%6.1f\n",
        n_nodes, times->here, times->apart, times->isolated, times->device, times->cost,
        times->least_cost, times->bare, times->difference, times->least, ratio, times->loop_cost,
        times->loop_bare, times->step_cost, times->changed, times->changed_cost);
}

// Measures and prints each size; false after the error was set.
static bool measure_all(const struct options *options, const struct devices *devices) {
    static const int sizes[USUAL_SIZES] = {40, 290, 1155};
    if (options->json) {
        printf("{\"device\": ");
        json_text_print(stdout, ggml_backend_dev_name(devices->here));
        printf(", \"runs\": %d, \"samples\": [", options->runs);
    } else {
        printf("us per graph, medians of %d rounds\n"
               "%6s %8s %8s %8s %8s %6s %6s %6s %10s %8s %6s %6s %6s %6s %8s %6s\n",
               options->runs, "nodes", "here", "apart", "isolated", "device", "cost", "least",
               "bare", "difference", "of least", "ratio", "loop", "bare", "step", "changed",
               "cost");
    }
    for (int i = 0; i < (options->nodes ? 1 : USUAL_SIZES); ++i) {
        struct times times;
        int n_nodes = options->nodes ? options->nodes : sizes[i];
        if (!measure(devices, &n_nodes, options, &times)) return false;
        print_times(options, n_nodes, &times, i == 0);
    }
    if (options->json) printf("\n]}\n");
    return true;
}

// Isolates the device and measures. Returns the exit status.
static int run(const struct options *options) {
    const struct control control = control_start(options);
    struct devices devices = {.control = &control};
    int status = BENCH_ERROR;
    if (!load_plugins(options)) goto done;
    status = BENCH_NO_DEVICE;
    devices.here = bench_find_device(options->device);
    if (!devices.here) goto done;
    const bool good = ggml_host_isolate(devices.here, NULL, &devices.isolated) == GGML_HOST_OK &&
                      measure_all(options, &devices);
    if (!good) fprintf(stderr, "ggml-bench: %s\n", ggml_last_error());
    ggml_host_isolated_free(devices.isolated);
    status = good ? BENCH_OK : BENCH_ERROR;
done:
    control_end(&control);
    return status;
}

static void print_usage(FILE *stream) {
    print_help(
        "Usage: ggml-bench isolate [OPTION]...\n\n"
        "Computes graphs of small matrices on a device in this process, in another one for\n"
        "itself (apart), and on the isolated device (ggml_host_isolate), in turn. The cost is\n"
        "what an isolated graph took, after the checks that graphs pass on every device, beyond\n"
        "the time that the device was busy with it: the median of the rounds, and the least. The "
        "difference is that of\n"
        "isolated and apart, by the median of the rounds and by the least that each of them\n"
        "took, which counts where other programs keep the processors. Loop is the cost where one\n"
        "isolated graph follows the other, step the same with six inputs set before each graph\n"
        "and a result read after it. Bare is what a message costs in its place that another\n"
        "process answers when it was busy for as long: what two processes need that sleep while\n"
        "they wait for each other.\n\n"
        "  --device NAME      this device (default: the CPU)\n"
        "  --plugin-path DIR  load the plugins of this directory too\n"
        "  --nodes N          only graphs of about N nodes (default 40, 290, 1155)\n"
        "  --runs N           rounds per measurement (default 301)\n"
        "  --in-a-row N       graphs after each other in each turn (default 1), as a loop\n"
        "                     computes them: both processes are awake then\n"
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
