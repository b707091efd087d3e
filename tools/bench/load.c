// SPDX-License-Identifier: MIT
// Scanning and loading: every sample is a process of its own, in which nothing was loaded before.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "ggml-host.h"
#include "help.h"
#include "json_text.h"

extern char **environ;

enum { MAX_RUNS = 1001, MAX_PLUGINS = 100 };

// One directory to load, and what was measured.
struct scenario {
    const char *text;
    int count;
    bool fit;
    double microseconds[MAX_RUNS];
    int loaded; // backends that became available
    int mapped; // files of the directory that were mapped
};

struct options {
    const char *plugin;
    int runs;
    bool json;
};

// --- the measured process ---

// Files of the directory that this process has mapped.
static int count_mapped(const char *directory) {
    char line[PATH_MAX + 256];
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof(line), maps)) {
        // Each file counts once, by the mapping of its first bytes.
        count += strstr(line, directory) != NULL && strstr(line, " 00000000 ") != NULL;
    }
    if (maps) fclose(maps);
    return count;
}

static double now_microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

// The child's side of a sample: loads everything in a directory and prints time, loaded and
// mapped files.
int bench_load_once(int argc, char **argv) {
    size_t loaded = 0;
    if (argc != 2) return BENCH_USAGE;
    const double start = now_microseconds();
    const enum ggml_host_status status = ggml_plugin_load_all(argv[1], &loaded);
    const double end = now_microseconds();
    if (status != GGML_HOST_OK) {
        fprintf(stderr, "ggml-bench: %s\n", ggml_last_error());
        return BENCH_ERROR;
    }
    printf("%f %zu %d\n", end - start, loaded, count_mapped(argv[1]));
    return BENCH_OK;
}

// Measures once in a new process of this program, so that nothing is loaded before. False if it
// could not be started or failed.
static bool sample(const char *directory, double *out_microseconds, int *out_loaded,
                   int *out_mapped) {
    char self[] = "/proc/self/exe", once[] = "load-once", path[PATH_MAX], text[256] = "";
    char *argv[] = {self, once, path, NULL};
    int ends[2], status = -1;
    pid_t child;
    posix_spawn_file_actions_t actions;
    snprintf(path, sizeof(path), "%s", directory);
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    const bool spawned = posix_spawn(&child, self, &actions, NULL, argv, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (spawned) {
        size_t used = 0;
        ssize_t got;
        while ((got = read(ends[0], text + used, sizeof(text) - 1 - used)) > 0) {
            used += (size_t)got;
        }
        waitpid(child, &status, 0);
    }
    close(ends[0]);
    return spawned && status == 0 &&
           sscanf(text, "%lf %d %d", out_microseconds, out_loaded, out_mapped) == 3;
}

// --- directories to measure ---

// The whole file; NULL if it can't be read. The caller frees it.
static char *read_file(const char *path, size_t *out_size) {
    struct stat info;
    char *content = NULL;
    FILE *stream = fopen(path, "rb");
    *out_size = 0;
    if (stream && fstat(fileno(stream), &info) == 0 && info.st_size > 0 &&
        (content = malloc((size_t)info.st_size)) != NULL) {
        *out_size = fread(content, 1, (size_t)info.st_size, stream);
    }
    if (stream) fclose(stream);
    return content;
}

// Copy number i gets a name of its own in its note, so that it is no variant of the others; an
// unfit one asks for a contract that does not exist.
static bool write_copy(const char *directory, int i, bool fit, char *image, size_t size) {
    struct ggml_plugin_note note;
    char path[PATH_MAX];
    char *at = memmem(image, size, GGML_PLUGIN_MAGIC, GGML_PLUGIN_MAGIC_SIZE);
    if (!at || (size_t)(image + size - at) < sizeof(note)) return false;
    memcpy(&note, at, sizeof(note));
    memset(note.name, 0, sizeof(note.name));
    snprintf(note.name, sizeof(note.name), "bench%03d", i);
    if (!fit) note.contract_major = 999;
    memcpy(at, &note, sizeof(note));

    snprintf(path, sizeof(path), "%s/ggml-bench%03d.so", directory, i);
    FILE *stream = fopen(path, "wb");
    const bool written = stream && fwrite(image, 1, size, stream) == size;
    return stream && fclose(stream) == 0 && written;
}

// Fills a directory with copies of the plugin under different names.
static bool fill_directory(const char *directory, const struct scenario *scenario,
                           const char *plugin) {
    size_t size;
    char *image = read_file(plugin, &size);
    bool filled = image != NULL;
    for (int i = 0; filled && i < scenario->count; ++i) {
        filled = write_copy(directory, i, scenario->fit, image, size);
    }
    free(image);
    return filled;
}

// Removes what fill_directory() has made.
static void remove_directory(const char *directory) {
    char path[PATH_MAX];
    for (int i = 0; i < MAX_PLUGINS; ++i) {
        snprintf(path, sizeof(path), "%s/ggml-bench%03d.so", directory, i);
        unlink(path);
    }
    rmdir(directory);
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Makes a directory for a scenario and takes the samples, after one that warms the file cache.
static bool measure(struct scenario *scenario, const struct options *options) {
    char directory[] = "/tmp/ggml-bench-XXXXXX";
    double ignored;
    if (!mkdtemp(directory)) return false;
    bool measured = fill_directory(directory, scenario, options->plugin) &&
                    sample(directory, &ignored, &scenario->loaded, &scenario->mapped);
    for (int i = 0; measured && i < options->runs; ++i) {
        measured =
            sample(directory, &scenario->microseconds[i], &scenario->loaded, &scenario->mapped);
    }
    remove_directory(directory);
    qsort(scenario->microseconds, (size_t)options->runs, sizeof(double), compare_doubles);
    return measured;
}

// One scenario: least, median and largest time.
static void print_row(const struct scenario *scenario, const struct options *options, bool last) {
    const double *us = scenario->microseconds;
    const int n = options->runs;
    if (options->json) {
        printf("    {\"directory\": ");
        json_text_print(stdout, scenario->text);
        printf(", \"files\": %d, \"loaded\": %d, \"mapped\": %d, "
               "\"microseconds\": {\"min\": %.1f, \"median\": %.1f, \"max\": %.1f}}%s\n",
               scenario->count, scenario->loaded, scenario->mapped, us[0], us[n / 2], us[n - 1],
               last ? "" : ",");
    } else {
        printf("%-18s %7d %7d %11.0f %11.0f %11.0f\n", scenario->text, scenario->loaded,
               scenario->mapped, us[0], us[n / 2], us[n - 1]);
    }
}

// Measures and prints all scenarios. Returns the exit status.
static int report(struct scenario *scenarios, int count, const struct options *options) {
    if (options->json) {
        printf("{\n  \"schema\": \"ggml-bench-load/1\",\n  \"runs\": %d,\n  \"results\": [\n",
               options->runs);
    } else {
        printf("%-18s %7s %7s %11s %11s %11s\n", "directory", "loaded", "mapped", "min us",
               "median us", "max us");
    }
    for (int i = 0; i < count; ++i) {
        if (!measure(&scenarios[i], options)) {
            fprintf(stderr, "ggml-bench: measuring \"%s\" with %s failed\n", scenarios[i].text,
                    options->plugin);
            return BENCH_ERROR;
        }
        print_row(&scenarios[i], options, i == count - 1);
        fflush(stdout);
    }
    if (options->json) puts("  ]\n}");
    return BENCH_OK;
}

static const char usage[] = "Usage: ggml-bench load --plugin FILE [--runs N] [--json]\n"
                            "Measure how long it takes to scan a directory and load what fits.\n"
                            "\n"
                            "  --plugin FILE  the plugin that is copied to make the directories\n"
                            "  --runs N       processes per measurement, 1 to 1000 (default 21)\n"
                            "  --json         print the measurements as JSON\n";

// Returns -1 to go on, else the exit code.
static int parse_options(int argc, char **argv, struct options *out_options) {
    static const struct option table[] = {{"plugin", required_argument, NULL, 'p'},
                                          {"runs", required_argument, NULL, 'r'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    *out_options = (struct options){.runs = 21};
    int option;
    while ((option = getopt_long(argc, argv, "h", table, NULL)) != -1) {
        switch (option) {
        case 'p': out_options->plugin = optarg; break;
        case 'r': out_options->runs = atoi(optarg); break;
        case 'j': out_options->json = true; break;
        case 'h': print_help(usage, stdout); return BENCH_OK;
        default: return bench_usage_error(argc, argv, false);
        }
    }
    if (out_options->plugin && out_options->runs >= 1 && out_options->runs < MAX_RUNS &&
        optind == argc)
        return -1;
    if (optind < argc) return bench_usage_error(argc, argv, true);
    fputs("ggml-bench: --plugin is missing, or --runs not between 1 and 1000; see ggml-bench load "
          "--help\n",
          stderr);
    return BENCH_USAGE;
}

int bench_load(int argc, char **argv) {
    static struct scenario scenarios[] = {
        {.text = "1 plugin", .count = 1, .fit = true},
        {.text = "10 plugins", .count = 10, .fit = true},
        {.text = "100 plugins", .count = 100, .fit = true},
        {.text = "100 unfit files", .count = 100, .fit = false},
    };
    struct options options;
    const int code = parse_options(argc, argv, &options);
    return code >= 0 ? code : report(scenarios, sizeof(scenarios) / sizeof(scenarios[0]), &options);
}
