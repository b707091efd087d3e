// SPDX-License-Identifier: MIT
// Tokens per second of a transformer through the scheduler, beside what the machine can do at most,
// and what becomes of the time.
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/tokens/llama.h"
#include "bench/tokens/token_measure.h"
#include "ggml-host.h"
#include "help.h"
#include "platform.h"

enum { MAX_PROMPT = 1 << 14 };

// The command line, as parsed.
struct options {
    const char *device;
    const char *plugin_path;
    const char *size;
    const char *profile; // file; NULL: none
    enum ggml_type type;
    int prompt, context, runs, threads;
    bool json;
};

// A prompt and a token behind it, with the times of their nodes to a file and in sums to the
// standard error, so that the standard output stays what it is. They are computed once before.
static bool write_profile(const struct token_machine *machine, const struct llama *llama,
                          const struct options *options) {
    struct llama_graph graphs[2] = {{0}, {0}};
    const int n_tokens[] = {options->prompt, 1};
    const int n_past[] = {0, options->context};
    ggml_backend_t streams[2] = {machine->streams[0], machine->streams[1]};
    ggml_sched_profile_t profile = NULL;
    bool good = llama_graph_init(&graphs[0], llama, n_tokens[0], n_past[0]) &&
                llama_graph_init(&graphs[1], llama, n_tokens[1], n_past[1]);
    ggml_backend_sched_t sched =
        good ? ggml_backend_sched_new(streams, NULL, machine->n_streams,
                                      (size_t)ggml_graph_size(graphs[0].graph), false, false)
             : NULL;
    good = sched != NULL;
    for (int i = 0; i < 2 && good; ++i) {
        ggml_backend_sched_reset(sched);
        good = ggml_backend_sched_alloc_graph(sched, graphs[i].graph);
        for (int k = 0; k < 2 && good; ++k) {
            llama_graph_set_inputs(&graphs[i]);
            if (i == 0 && k == 1) good = ggml_sched_profile_begin(sched, 0) == GGML_HOST_OK;
            good = good &&
                   ggml_backend_sched_graph_compute(sched, graphs[i].graph) == GGML_STATUS_SUCCESS;
        }
    }
    if (good) profile = ggml_sched_profile_end(sched);
    const char *text = ggml_sched_profile_text(profile);
    good = text && ggml_sched_profile_write(profile, options->profile) == GGML_HOST_OK;
    if (good) fputs(text, stderr);
    ggml_sched_profile_free(profile);
    ggml_backend_sched_free(sched);
    llama_graph_free(&graphs[0]);
    llama_graph_free(&graphs[1]);
    return good;
}

// --- the report

// What is printed, as text or JSON.
struct report {
    const struct options *options;
    const struct token_machine *machine;
    const struct llama *llama;
    struct token_timing prompt, token, launching;
};

static double percent(double part, double whole) {
    return whole > 0 ? 100 * part / whole : 0;
}

// Operations by their share of a token's time. Selection sort over GGML_OP_COUNT.
static void print_rows(const struct report *r) {
    printf("\n%-16s %10s %6s %10s %6s\n", "node by node", "prompt ms", "%", "token ms", "%");
    bool shown[GGML_OP_COUNT] = {false};
    for (;;) {
        int most = -1;
        for (int op = 0; op < GGML_OP_COUNT; ++op) {
            const bool counts = r->token.by_op[op] > 0 && !shown[op];
            if (counts && (most < 0 || r->token.by_op[op] > r->token.by_op[most])) most = op;
        }
        if (most < 0) break;
        shown[most] = true;
        printf("%-16s %10.3f %6.1f %10.3f %6.1f\n", ggml_op_name((enum ggml_op)most),
               r->prompt.by_op[most] * 1e3, percent(r->prompt.by_op[most], r->prompt.stepwise),
               r->token.by_op[most] * 1e3, percent(r->token.by_op[most], r->token.stepwise));
    }
    printf("%-16s %10.3f %6s %10.3f\n", "all of these", r->prompt.stepwise * 1e3, "",
           r->token.stepwise * 1e3);
}

enum { LABEL = 26, CELLS = 128 }; // columns of the table's first, bytes of what is right of it

static void format_timing(const struct token_timing *timing, int n_tokens, char out_cells[CELLS]) {
    snprintf(out_cells, CELLS, " %10.2f %10.2f %10.2f %12.2f", timing->median * 1e3,
             timing->best * 1e3, timing->busy * 1e3, n_tokens / timing->median);
}

// A row that ends with a rate and its part of the machine's; limit 0: unknown.
static void print_limited(const char *label, const char *cells, double rate, const char *unit,
                          double limit) {
    char all[2 * CELLS], part[32] = "";
    if (limit > 0) snprintf(part, sizeof(part), " %6.1f", percent(rate, limit));
    snprintf(all, sizeof(all), "%s %8.2f %-7s%s", cells, rate / 1e9, unit, part);
    bench_print_row(label, LABEL, all);
}

// Medians beside the machine's limits, then the shares of operations.
static void print_text(const struct report *r) {
    const struct options *o = r->options;
    const double flops = token_prompt_flops(r->llama, r->options->prompt) / r->prompt.median;
    const double bytes = (double)r->llama->weight_bytes / r->token.median;
    char label[64], cells[CELLS];
    printf("%s, %s, %.0f MB of weights per token, on %s\n", o->size, ggml_type_name(o->type),
           (double)r->llama->weight_bytes / 1e6, o->device);
    if (r->machine->flops > 0)
        printf("fused multiply-adds  %9.1f GFLOP/s\nreading memory       %9.2f GB/s\n",
               r->machine->flops / 1e9, r->machine->reads / 1e9);
    putchar('\n');
    bench_print_row("medians", LABEL,
                    "         ms   least ms     cpu ms     tokens/s                  %limit");
    snprintf(label, sizeof(label), "prompt of %d", o->prompt);
    format_timing(&r->prompt, o->prompt, cells);
    print_limited(label, cells, flops, "GFLOP/s", r->machine->flops);
    snprintf(label, sizeof(label), "token after %d", o->context);
    format_timing(&r->token, 1, cells);
    print_limited(label, cells, bytes, "GB/s", r->machine->reads);
    snprintf(cells, sizeof(cells), " %10.2f %10.2f %10.2f, %.1f %% of a token",
             r->launching.median * 1e3, r->launching.best * 1e3, r->launching.busy * 1e3,
             percent(r->launching.median, r->token.median));
    bench_print_row("launching and barriers", LABEL, cells);
    print_rows(r);
}

// Times in milliseconds; operations that took none are left out.
static void print_timing_json(const char *name, const struct token_timing *t, int n_tokens) {
    printf("  \"%s\": {\"tokens\": %d, \"milliseconds\": %.4f, \"least_milliseconds\": %.4f, "
           "\"cpu_milliseconds\": %.4f, \"tokens_per_second\": %.3f,\n    \"operations\": {",
           name, n_tokens, t->median * 1e3, t->best * 1e3, t->busy * 1e3, n_tokens / t->median);
    bool first = true;
    for (int op = 0; op < GGML_OP_COUNT; ++op) {
        if (t->by_op[op] <= 0) continue;
        printf("%s\"%s\": %.4f", first ? "" : ", ", ggml_op_name((enum ggml_op)op),
               t->by_op[op] * 1e3);
        first = false;
    }
    printf("}}");
}

static void print_json(const struct report *r) {
    const struct options *o = r->options;
    printf("{\n  \"schema\": \"ggml-bench-model/1\",\n  \"size\": \"%s\",\n  \"type\": \"%s\",\n"
           "  \"weight_bytes\": %zu,\n  \"prompt_flops\": %.0f,\n  \"context\": %d,\n"
           "  \"peak_gflops\": %.2f,\n  \"read_gb_per_s\": %.3f,\n",
           o->size, ggml_type_name(o->type), r->llama->weight_bytes,
           token_prompt_flops(r->llama, r->options->prompt), o->context, r->machine->flops / 1e9,
           r->machine->reads / 1e9);
    print_timing_json("prompt", &r->prompt, o->prompt);
    printf(",\n");
    print_timing_json("token", &r->token, 1);
    printf(",\n");
    print_timing_json("launching", &r->launching, 1);
    printf("\n}\n");
}

// Measures and prints; everything is freed on the way out. Returns the exit status.
static int run(ggml_backend_dev_t device, const struct llama_shape *shape,
               const struct options *options) {
    struct token_machine machine;
    struct llama llama = {0};
    struct report report = {.options = options, .machine = &machine, .llama = &llama};
    const int capacity =
        options->prompt > options->context + 1 ? options->prompt : options->context + 1;
    const char *failure = "";
    const bool started = token_machine_init(&machine, device, options->threads);
    if (started) token_machine_measure(&machine, device);
    if (!started) {
        failure = "its streams can't be made";
    } else if (!llama_init(&llama, shape, options->type, capacity,
                           ggml_backend_get_default_buffer_type(machine.streams[0]))) {
        failure = "no memory for the model, or its rows are no whole blocks of the type";
    } else if (!token_measure(&machine, &llama, options->prompt, 0, options->runs,
                              &report.prompt) ||
               !token_measure(&machine, &llama, 1, options->context, 4 * options->runs,
                              &report.token) ||
               !token_measure_launching(&machine, shape, 4 * options->runs, &report.launching)) {
        failure = "it can't compute the model";
    } else if (options->profile && !write_profile(&machine, &llama, options)) {
        failure = "no profile";
    } else {
        (options->json ? print_json : print_text)(&report);
    }
    if (*failure) {
        fprintf(stderr, "ggml-bench: %s: %s", options->device, failure);
        fprintf(stderr, *ggml_last_error() ? ": %s\n" : "%s\n", ggml_last_error());
    }
    llama_free(&llama);
    token_machine_free(&machine);
    return *failure ? BENCH_ERROR : BENCH_OK;
}

// --- the command

static const char usage[] =
    "Usage: ggml-bench model [OPTION]...\n"
    "Measure tokens per second of a model, whose weights lie in a device's memory, beside what "
    "the\n"
    "machine can do at most, and the time of each operation.\n"
    "\n"
    "  --device NAME       the device (default CPU)\n"
    "  --plugin-path DIR   load the plugins of this directory too\n"
    "  --size SIZE         of a llama: 0.2B (default), 1B or 8B; or a model of another kind: moe\n"
    "                      (experts), mamba2 or rwkv7, of the size of small ones\n"
    "  --type NAME         of the weights (default q4_0)\n"
    "  --prompt N          tokens of the prompt (default 512)\n"
    "  --context N         tokens before the single one (default 64)\n"
    "  --threads N         of the CPU (default: as the library chooses)\n"
    "  --runs N            of the prompt, and four times as many of the token (default 5)\n"
    "  --profile FILE      also write when each node of a prompt and of two tokens was computed, "
    "as\n"
    "                      JSON that Perfetto opens, and print the sums on standard error\n"
    "  --cache MIB         the largest cache, of which eight times as much is read for the limit\n"
    "                      (default: as the system says)\n"
    "  --json              print the measurements as JSON\n"
    "\n"
    "Launching and barriers is the time of a graph of as many nodes with nothing to compute. "
    "Times\n"
    "node by node have a wait after every node.\n";

// Takes one option; false if its value is not valid.
static bool take_option(int option, const char *text, struct options *options) {
    switch (option) {
    case 'd': options->device = text; return true;
    case 'p': options->plugin_path = absolute_path(text); return true;
    case 's': options->size = text; return true;
    case 't': return bench_read_type(text, &options->type);
    case 'n': return bench_read_number(text, 1, MAX_PROMPT, &options->prompt);
    case 'c': return bench_read_number(text, 0, MAX_PROMPT, &options->context);
    case 'T': return bench_read_number(text, 1, 512, &options->threads);
    case 'r': return bench_read_number(text, 1, TOKEN_MAX_RUNS / 4, &options->runs);
    case 'P': options->profile = text; return true;
    case 'C': return bench_set_cache(text);
    case 'j': options->json = true; return true;
    default: return false;
    }
}

static int complain_of_size(const char *size) {
    fprintf(stderr, "ggml-bench: no model has the size '%s'; there are:", size);
    for (const struct llama_shape *shape = llama_shapes; shape->name; ++shape)
        fprintf(stderr, " %s", shape->name);
    fputc('\n', stderr);
    return BENCH_USAGE;
}

int bench_model(int argc, char **argv) {
    static const struct option table[] = {{"device", required_argument, NULL, 'd'},
                                          {"plugin-path", required_argument, NULL, 'p'},
                                          {"size", required_argument, NULL, 's'},
                                          {"type", required_argument, NULL, 't'},
                                          {"prompt", required_argument, NULL, 'n'},
                                          {"context", required_argument, NULL, 'c'},
                                          {"threads", required_argument, NULL, 'T'},
                                          {"runs", required_argument, NULL, 'r'},
                                          {"profile", required_argument, NULL, 'P'},
                                          {"cache", required_argument, NULL, 'C'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    struct options options = {.device = "CPU",
                              .size = "0.2B",
                              .type = GGML_TYPE_Q4_0,
                              .prompt = 512,
                              .context = 64,
                              .runs = 5};
    int option;
    bool valid = true;
    while (valid && (option = getopt_long(argc, argv, "h", table, NULL)) != -1) {
        if (option == 'h') {
            print_help(usage, stdout);
            return BENCH_OK;
        }
        valid = take_option(option, optarg, &options);
    }
    const struct llama_shape *shape = llama_shapes;
    while (shape->name && strcmp(shape->name, options.size) != 0)
        ++shape;
    if (!valid || optind < argc) return bench_usage_error(argc, argv, valid);
    if (!shape->name) return complain_of_size(options.size);
    ggml_plugin_load_all(options.plugin_path, NULL);
    ggml_backend_dev_t device = bench_find_device(options.device);
    return device ? run(device, shape, &options) : BENCH_NO_DEVICE;
}
