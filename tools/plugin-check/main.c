// SPDX-License-Identifier: MIT
// ggml-plugin-check: whether a plugin keeps the contract.
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "help.h"
#include "platform.h"
#include "report.h"
#include "runner.h"

enum exit_code { EXIT_ALL_WELL = 0, EXIT_CHECK_FAILED = 1, EXIT_USAGE = 2, EXIT_ERROR = 4 };
enum format { FORMAT_TAP, FORMAT_JUNIT, FORMAT_JSON };
enum { DEFAULT_SEED = 20240607, DEFAULT_DEADLINE = 10 };

struct options {
    struct runner_options runner;
    enum format format;
    bool list;
    bool counts;
    bool any_only;
};

static const char usage[] =
    "Usage: ggml-plugin-check [OPTION]... PLUGIN\n"
    "Check whether a plugin keeps the contract, each rule in a process of its own.\n"
    "\n"
    "  --format FORMAT     tap (the default), junit or json (ggml-plugin-check.schema.json)\n"
    "  --only ID           only this check, or those of an area as AREA.*; can be repeated\n"
    "  --skip ID=REASON    a check that is known to fail; it is executed all the same, and fails\n"
    "                      if it passes; of AREA.*, one has to fail; can be repeated\n"
    "  --device NAME       only this device of the plugin\n"
    "  --seed N            of the numbers that are computed with\n"
    "  --all-cases         of each operation every case, instead of some that follow from the "
    "seed\n"
    "  --jobs N            checks at the same time (1)\n"
    "  --deadline SECONDS  for each check, or each case of an operation (10)\n"
    "  --list              print the checks instead of executing them\n"
    "  --counts            print how many there are in each area\n"
    "  -v, --verbose       let the plugin write to the terminal\n"
    "  -h, --help          this text\n"
    "  -V, --version       the library's version\n"
    "\n"
    "Exit status: 0 no check failed, 1 a check failed or none was executed, 2 wrong usage,\n"
    "4 another error.\n";

// Says what is wrong with the command line; returns the exit status for it.
static int complain(const char *text, const char *value) {
    fprintf(stderr, "ggml-plugin-check: %s%s; see ggml-plugin-check --help\n", text, value);
    return EXIT_USAGE;
}

// A number without sign up to `most`; false for anything else.
static bool parse_number(const char *text, unsigned long long most, unsigned long long *out) {
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 0);
    return errno == 0 && end != text && *end == '\0' && text[0] != '-' && *out <= most;
}

static bool parse_format(const char *text, enum format *out_format) {
    static const char *const names[] = {"tap", "junit", "json"};
    for (int i = 0; i < 3; ++i) {
        if (strcmp(text, names[i]) != 0) continue;
        *out_format = (enum format)i;
        return true;
    }
    return false;
}

// Selects the checks that match a pattern; false if there is none.
static bool select_checks(struct check_result *results, const char *pattern) {
    bool any = false;
    for (int i = 0; i < check_count; ++i) {
        if (!check_matches(pattern, strlen(pattern), check_list[i].id)) continue;
        results[i].selected = true;
        any = true;
    }
    return any;
}

// Splits ID=REASON and notes the reason at each check that matches; a check that passes in spite
// of it fails. The text stays in use.
static bool exclude_check(struct check_result *results, const char *text) {
    const char *reason = strchr(text, '=');
    if (!reason || reason[1] == '\0') return false;
    const size_t length = (size_t)(reason++ - text);
    bool any = false;
    for (int i = 0; i < check_count; ++i) {
        if (!check_matches(text, length, check_list[i].id)) continue;
        results[i].exclusion = reason;
        any = true;
    }
    return any;
}

static bool parse_numeric(struct options *options, int option, const char *text) {
    unsigned long long number = 0;
    switch (option) {
    case 's':
        // JSON can't say more.
        if (!parse_number(text, INT64_MAX, &number)) return false;
        options->runner.seed = number;
        return true;
    case 'j':
        if (!parse_number(text, 64, &number) || number == 0) return false;
        options->runner.jobs = (int)number;
        return true;
    default:
        if (!parse_number(text, 3600, &number) || number == 0) return false;
        options->runner.deadline = (double)number;
        return true;
    }
}

// Takes one option. Returns -1 to go on, else the exit status.
static int parse_option(struct options *options, struct check_result *results, int option) {
    switch (option) {
    case 'f':
        return parse_format(optarg, &options->format)
                   ? -1
                   : complain("--format: not tap, junit or json: ", optarg);
    case 'o':
        options->any_only = true;
        return select_checks(results, optarg)
                   ? -1
                   : complain("--only: no check, nor area (--list names them), is called ", optarg);
    case 'x':
        return exclude_check(results, optarg)
                   ? -1
                   : complain("--skip wants a check and a reason as ID=REASON, not ", optarg);
    case 'd': options->runner.device = optarg; return -1;
    case 's':
    case 'j':
    case 't':
        return parse_numeric(options, option, optarg) ? -1 : complain("not a fit number: ", optarg);
    case 'a': options->runner.all_cases = true; return -1;
    case 'l': options->list = true; return -1;
    case 'c': options->list = options->counts = true; return -1;
    case 'v': options->runner.verbose = true; return -1;
    case 'h': print_help(usage, stdout); return EXIT_ALL_WELL;
    case 'V': printf("ggml-plugin-check %s (%s)\n", ggml_version(), ggml_commit()); return 0;
    default: return complain("wrong usage", "");
    }
}

// Parses the whole command line. Without --only all checks are selected.
static int parse_options(int argc, char **argv, struct options *out_options,
                         struct check_result *results) {
    static const struct option table[] = {
        {"format", required_argument, NULL, 'f'},   {"only", required_argument, NULL, 'o'},
        {"skip", required_argument, NULL, 'x'},     {"device", required_argument, NULL, 'd'},
        {"seed", required_argument, NULL, 's'},     {"jobs", required_argument, NULL, 'j'},
        {"deadline", required_argument, NULL, 't'}, {"list", no_argument, NULL, 'l'},
        {"counts", no_argument, NULL, 'c'},         {"all-cases", no_argument, NULL, 'a'},
        {"verbose", no_argument, NULL, 'v'},        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},        {NULL, 0, NULL, 0}};
    int option;
    *out_options =
        (struct options){.runner = {.seed = DEFAULT_SEED, .jobs = 1, .deadline = DEFAULT_DEADLINE}};
    while ((option = getopt_long(argc, argv, "vhV", table, NULL)) != -1) {
        const int code = parse_option(out_options, results, option);
        if (code >= 0) return code;
    }
    if (out_options->list) return optind < argc ? complain("--list wants no plugin", "") : -1;
    if (optind + 1 != argc) return complain("exactly one plugin is wanted", "");
    out_options->runner.path = argv[optind];
    for (int i = 0; i < check_count && !out_options->any_only; ++i)
        results[i].selected = true;
    return -1;
}

// One check a line, with its rule.
static int list_checks(const struct check_result *results, bool any_only) {
    for (int i = 0; i < check_count; ++i) {
        const struct check *check = &check_list[i];
        if (any_only && !results[i].selected) continue;
        printf("%-32s GP-%03u  %s\n", check->id, check->rule, check->title);
    }
    return fflush(stdout) == 0 ? EXIT_ALL_WELL : EXIT_ERROR;
}

// The areas are not adjacent in the list: each is counted at its first check.
static int count_checks(const struct check_result *results, bool any_only) {
    int total = 0;
    for (int i = 0; i < check_count; ++i) {
        const char *area = check_list[i].id;
        const size_t length = strcspn(area, ".") + 1;
        int n = 0;
        for (int j = 0; j < check_count; ++j) {
            if (strncmp(check_list[j].id, area, length) != 0) continue;
            if (j < i) break;
            n += !any_only || results[j].selected;
        }
        if (n > 0) printf("%-8.*s %d\n", (int)length - 1, area, n);
        total += n;
    }
    printf("%-8s %d\n", "together", total);
    return fflush(stdout) == 0 ? EXIT_ALL_WELL : EXIT_ERROR;
}

static bool report(const struct options *options, const struct check_result *results) {
    switch (options->format) {
    case FORMAT_TAP: return report_tap(&options->runner, results, stdout);
    case FORMAT_JUNIT: return report_junit(&options->runner, results, stdout);
    case FORMAT_JSON: return report_json(&options->runner, results, stdout);
    }
    return false;
}

// Runs the selected checks and prints the report. Returns the exit status.
static int run(struct options *options, struct check_result *results) {
    // The checks change nothing, but they map the file by this name from processes of their own.
    char *path = realpath(options->runner.path, NULL);
    if (!path || access(path, R_OK) != 0) {
        fprintf(stderr, "ggml-plugin-check: can't read %s: %s\n", options->runner.path,
                strerror(errno));
        free(path);
        return EXIT_ERROR;
    }
    options->runner.path = path;
    int code = EXIT_ERROR;
    if (!runner_run(&options->runner, results)) {
        fprintf(stderr, "ggml-plugin-check: can't start a process: %s\n", strerror(errno));
    } else if (!report(options, results)) {
        // Of the standard output finish_output() says it.
        if (!ferror(stdout)) fprintf(stderr, "ggml-plugin-check: out of memory\n");
    } else {
        const struct check_totals totals = runner_totals(results);
        code = totals.failed > 0 || totals.executed == 0 ? EXIT_CHECK_FAILED : EXIT_ALL_WELL;
    }
    free(path);
    return code;
}

int main(int argc, char **argv) {
    struct options options;
    struct check_result *results = calloc((size_t)check_count, sizeof(*results));
    if (!results) return EXIT_ERROR;
    for (int i = 0; i < check_count; ++i)
        results[i].check = &check_list[i];
    int code = parse_options(argc, argv, &options, results);
    if (code < 0) {
        code = options.counts ? count_checks(results, options.any_only)
               : options.list ? list_checks(results, options.any_only)
                              : run(&options, results);
    }
    free(results);
    return finish_output("ggml-plugin-check", code);
}
