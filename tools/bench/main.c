// SPDX-License-Identifier: MIT
// ggml-bench: measures the library, one kind of measurement per subcommand.
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "ggml.h"
#include "help.h"
#include "platform.h"
#include "progress.h"

static const struct measurement {
    const char *name;
    const char *text; // NULL: not for people
    int (*run)(int argc, char **argv);
} measurements[] = {
    {"figures", "how fast devices are, for cost-aware placement", bench_figures},
    {"graph", "time to build a graph and to allocate it in one memory", bench_graph},
    {"isolate", "what a graph loses when another process computes it", bench_isolate},
    {"kernels", "inner kernels of the CPU plugin against their scalar twins, one by one",
     bench_kernels},
    {"load", "time to scan a directory and load its plugins", bench_load},
    {"load-once", NULL, bench_load_once},
    {"model", "tokens per second of a transformer, beside what the machine can do", bench_model},
    {"mpi", "devices of other hosts, beside bare MPI", bench_mpi},
    {"ops", "operations on a device, beside what the machine can do at most", bench_ops},
    {"report", "a page that shows what this machine can do", bench_report},
    {"sched", "time to split and allocate a graph over several devices", bench_sched},
};

enum { N_MEASUREMENTS = sizeof(measurements) / sizeof(measurements[0]) };

static void print_usage(FILE *stream) {
    char text[2048];
    size_t used = (size_t)snprintf(text, sizeof(text),
                                   "Usage: ggml-bench MEASUREMENT [OPTION]...\n\nMeasurements:\n");
    for (int i = 0; i < N_MEASUREMENTS; ++i) {
        if (!measurements[i].text) continue;
        used += (size_t)snprintf(text + used, sizeof(text) - used, "  %-8s  %s\n",
                                 measurements[i].name, measurements[i].text);
    }
    snprintf(text + used, sizeof(text) - used,
             "\nggml-bench MEASUREMENT --help explains its options.\n"
             "Exit status: 0 everything was measured, 2 wrong usage, 3 no such device, 4 another "
             "error.\n");
    print_help(text, stream);
}

static int measure(const struct measurement *measurement, int argc, char **argv) {
    char text[64];
    snprintf(text, sizeof(text), "measuring %s", measurement->name);
    progress_begin(text);
    const int code = measurement->run(argc - 1, argv + 1);
    progress_end();
    return code;
}

static int run(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        print_usage(stdout);
        return BENCH_OK;
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        printf("ggml-bench %s (%s)\n", ggml_version(), ggml_commit());
        return BENCH_OK;
    }
    for (int i = 0; i < N_MEASUREMENTS; ++i) {
        if (strcmp(name, measurements[i].name) == 0) return measure(&measurements[i], argc, argv);
    }
    if (name[0] == '\0') {
        print_usage(stderr);
        return BENCH_USAGE;
    }
    fprintf(stderr, "ggml-bench: nothing is measured by the name '%s'; there are:", name);
    for (int i = 0; i < N_MEASUREMENTS; ++i)
        if (measurements[i].text) fprintf(stderr, " %s", measurements[i].name);
    fputc('\n', stderr);
    return BENCH_USAGE;
}

int main(int argc, char **argv) {
    use_utf8(&argc, &argv);
    return finish_output("ggml-bench", run(argc, argv));
}
