// SPDX-License-Identifier: MIT
// ggml-conformance: compares every operation of a device with an oracle.
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance.h"
#include "ggml-host.h"
#include "help.h"
#include "output_file.h"
#include "platform.h"
#include "progress.h"

enum { EXIT_USAGE = 2, EXIT_NO_DEVICE = 3, EXIT_ERROR = 4, DEFAULT_SEED = 20240607 };

static const char usage[] =
    "Usage: ggml-conformance [OPTION]...\n"
    "Compare every operation of a device with double-precision oracles.\n"
    "\n"
    "  --device NAME        device to check (default: the CPU)\n"
    "  --plugin-path DIR    load plugins from this directory first\n"
    "  --level NAME         instruction-set level of the CPU plugin (GGML_CPU_LEVEL)\n"
    "  --op NAME            only this operation or sub-operation\n"
    "  --case NAME          only this case, or those that begin so if NAME ends in '*'\n"
    "  --every N            only one case of N\n"
    "  --sample N           of each operation only N claimed cases and a few more\n"
    "  --kinds              with --sample: and a case for each combination of kinds of types\n"
    "  --seed N             of the operands' numbers (default 20240607)\n"
    "  --list               print the names of the cases and run nothing\n"
    "  --trace              print each case before it runs\n"
    "  --json FILE          also write the outcome as JSON ('-': to standard output, without TAP)\n"
    "  --matrix             print operations and types instead of TAP\n"
    "  --write-page FILE    write what was computed as a page of documentation; with --claims,\n"
    "                       of all cases\n"
    "  --check-page FILE    fail if the file is not that page; with --sample, if it is not that "
    "of\n"
    "                       what the device claims\n"
    "  --isolated           compute in a process of its own (Linux)\n"
    "  --claims             also compute all types that are said to be supported\n"
    "  --threads            also compute with 1, 2, 3 and the default number of threads;\n"
    "                       every byte must come out the same\n"
    "  --corrupt result     change an element of each result; every case must then fail\n"
    "  --corrupt guard      change a byte that no result owns; every case must then fail\n"
    "  -h, --help           this text\n"
    "  -V, --version        the library's version\n"
    "\n"
    "Exit status: 0 all cases passed, 1 a case failed or none ran, 2 wrong usage, 3 no such "
    "device,\n"
    "4 another error.\n";

struct arguments {
    struct conformance_options options;
    const char *device;
    const char *plugin_path;
    const char *json;
    const char *write_page;
    const char *check_page;
    bool matrix;
    bool isolated;
};

static bool parse_corruption(const char *text, enum conformance_corruption *out) {
    *out = strcmp(text, "guard") == 0 ? CORRUPT_GUARD : CORRUPT_RESULT;
    return *out == CORRUPT_GUARD || strcmp(text, "result") == 0;
}

static bool parse_flag(struct arguments *a, const char *option) {
    if (strcmp(option, "--list") == 0) {
        a->options.list = stdout;
    } else if (strcmp(option, "--trace") == 0) {
        a->options.trace = stderr;
    } else if (strcmp(option, "--claims") == 0) {
        a->options.claims = true;
    } else if (strcmp(option, "--kinds") == 0) {
        a->options.kinds = true;
    } else if (strcmp(option, "--threads") == 0) {
        a->options.threads = true;
    } else if (strcmp(option, "--matrix") == 0) {
        a->matrix = true;
    } else if (strcmp(option, "--isolated") == 0) {
        a->isolated = true;
    } else {
        return false;
    }
    return true;
}

static bool parse_option(struct arguments *a, const char *option, const char *value) {
    if (!value) return false;
    if (strcmp(option, "--device") == 0) {
        a->device = value;
    } else if (strcmp(option, "--plugin-path") == 0) {
        a->plugin_path = absolute_path(value);
    } else if (strcmp(option, "--level") == 0) {
        if (!set_variable("GGML_CPU_LEVEL", value)) return false;
    } else if (strcmp(option, "--op") == 0) {
        a->options.op = value;
    } else if (strcmp(option, "--case") == 0) {
        a->options.name = value;
    } else if (strcmp(option, "--every") == 0) {
        a->options.every = atoi(value);
    } else if (strcmp(option, "--sample") == 0) {
        a->options.sample = atoi(value);
    } else if (strcmp(option, "--seed") == 0) {
        a->options.seed = strtoull(value, NULL, 0);
    } else if (strcmp(option, "--json") == 0) {
        a->json = value;
    } else if (strcmp(option, "--write-page") == 0) {
        a->write_page = value;
    } else if (strcmp(option, "--check-page") == 0) {
        a->check_page = value;
    } else if (strcmp(option, "--corrupt") == 0) {
        return parse_corruption(value, &a->options.corruption);
    } else {
        return false;
    }
    return true;
}

// A page is about all cases and types.
static bool fits_page(const struct arguments *a) {
    const struct conformance_options *o = &a->options;
    const bool all = o->claims && o->every <= 1 && !o->op && !o->name;
    if (a->write_page) return all && o->sample <= 0;
    return !a->check_page || all;
}

static bool has_op(const char *name) {
    for (int i = 0; i < conformance_op_count(); ++i)
        if (strcmp(conformance_op_name(i), name) == 0) return true;
    return false;
}

static void complain_of_op(const char *name) {
    fprintf(stderr, "ggml-conformance: no operation is called '%s'; there are:", name);
    for (int i = 0; i < conformance_op_count(); ++i)
        fprintf(stderr, " %s", conformance_op_name(i));
    fputc('\n', stderr);
}

static int complain(const char *text, const char *value) {
    fprintf(stderr, "ggml-conformance: %s%s; see ggml-conformance --help\n", text, value);
    return EXIT_USAGE;
}

// Returns -1 to go on, else the exit code.
static int parse(struct arguments *a, int argc, char **argv) {
    *a = (struct arguments){.options.seed = DEFAULT_SEED};
    for (int i = 1; i < argc; ++i) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help(usage, stdout);
            return EXIT_SUCCESS;
        }
        if (strcmp(argv[i], "--version") == 0 || strcmp(argv[i], "-V") == 0) {
            printf("ggml-conformance %s (%s)\n", ggml_version(), ggml_commit());
            return EXIT_SUCCESS;
        }
        if (parse_flag(a, argv[i])) continue;
        if (!parse_option(a, argv[i], i + 1 < argc ? argv[i + 1] : NULL))
            return complain("no such option, or not with that value: ", argv[i]);
        ++i;
    }
    if (!fits_page(a)) return complain("a page is about all cases: with --claims alone", "");
    if (!a->options.op || has_op(a->options.op)) return -1;
    complain_of_op(a->options.op);
    return EXIT_USAGE;
}

// --- what ends the process

static char current_case[256];
static bool prints_tap;

static void remember_case(void *unused, const char *name) {
    (void)unused;
    snprintf(current_case, sizeof(current_case), "%s", name);
    progress_set(name);
}

#ifdef _WIN32
static void tell_crashes(void) {
}
#else
static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
enum { N_CRASHES = sizeof(crashes) / sizeof(crashes[0]) };
static struct sigaction before[N_CRASHES];

static void put_text(const char *text) {
    const ssize_t ignored = write(prints_tap ? STDOUT_FILENO : STDERR_FILENO, text, strlen(text));
    (void)ignored;
}

// Whoever handled it before goes on with it.
static void tell_crash(int number) {
    char digits[] = {(char)('0' + number / 10), (char)('0' + number % 10), '\0'};
    put_text("Bail out! the plugin ended the process by signal ");
    put_text(digits + (number < 10));
    put_text(current_case[0] ? " in case " : " before the first case");
    put_text(current_case);
    put_text("\n");
    for (int i = 0; i < N_CRASHES; ++i)
        if (crashes[i] == number) sigaction(number, &before[i], NULL);
    if (number == SIGABRT) raise(number);
}

static void tell_crashes(void) {
    struct sigaction action = {.sa_handler = tell_crash};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < N_CRASHES; ++i)
        sigaction(crashes[i], &action, &before[i]);
}
#endif

static void complain_of_device(const char *name) {
    fprintf(stderr,
            "ggml-conformance: there is no device %s; there are: ", name ? name : "of type CPU");
    for (size_t i = 0; i < ggml_backend_dev_count(); ++i)
        fprintf(stderr, "%s%s", i > 0 ? ", " : "", ggml_backend_dev_name(ggml_backend_dev_get(i)));
    fputs(ggml_backend_dev_count() > 0 ? "\n" : "none\n", stderr);
}

static ggml_backend_dev_t find_device(const struct arguments *a) {
    if (a->plugin_path && ggml_plugin_load_all(a->plugin_path, NULL) != GGML_HOST_OK) {
        fprintf(stderr, "%s\n", ggml_last_error());
        return NULL;
    }
    ggml_backend_dev_t device = a->device ? ggml_backend_dev_by_name(a->device)
                                          : ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (!device) complain_of_device(a->device);
    if (!device || !a->isolated) return device;
    if (ggml_host_isolate(device, NULL, &device) != GGML_HOST_OK)
        fprintf(stderr, "%s\n", ggml_last_error());
    return device;
}

static bool write_json(const struct arguments *a, ggml_backend_dev_t device,
                       const struct conformance_report *report) {
    struct output_file file;
    if (!output_file_open(&file, "ggml-conformance", a->json)) return false;
    conformance_print_json(file.stream, report, device, &a->options);
    return output_file_close(&file, true);
}

static bool write_page(const char *path, const struct conformance_report *report,
                       ggml_backend_dev_t device) {
    struct output_file file;
    if (!output_file_open(&file, "ggml-conformance", path)) return false;
    conformance_print_page(file.stream, report, device, false);
    return output_file_close(&file, true);
}

static bool check_page(const char *path, const struct conformance_report *report,
                       ggml_backend_dev_t device, bool claimed) {
    FILE *expected = tmpfile(), *committed = ggml_fopen(path, "rb");
    int line = 1, a = 0, b = EOF;
    if (expected && committed) {
        conformance_print_page(expected, report, device, claimed);
        rewind(expected);
        do {
            a = getc(expected);
            b = getc(committed);
            line += a == '\n';
        } while (a == b && a != EOF);
    }
    if (expected) fclose(expected);
    if (committed) fclose(committed);
    if (a != b)
        printf("# %s is out of date at line %d: run ggml-conformance --device %s --claims "
               "--write-page %s\n",
               path, line, ggml_backend_dev_name(device), path);
    return a == b;
}

// With corrupted results: whether every case failed.
static bool is_good(const struct arguments *a, const struct conformance_report *report) {
    if (a->options.list) return report->n_cases > 0;
    if (a->options.corruption != CORRUPT_NOTHING)
        return report->n_failed > 0 && report->n_passed == 0;
    return report->n_passed > 0 && report->n_failed == 0;
}

static void print(const struct arguments *a, ggml_backend_dev_t device,
                  const struct conformance_report *report) {
    if (a->options.corruption != CORRUPT_NOTHING) {
        printf("1..1\n%s 1 - %lld of %lld corrupted results were found out\n",
               is_good(a, report) ? "ok" : "not ok", (long long)report->n_failed,
               (long long)(report->n_failed + report->n_passed));
    } else if (a->matrix) {
        conformance_print_matrix(stdout, report);
    } else if (!a->json || strcmp(a->json, "-") != 0) {
        const char *level = getenv("GGML_CPU_LEVEL");
        printf("# device %s, level %s, seed %llu, %d rows\n", ggml_backend_dev_name(device),
               level ? level : "best", (unsigned long long)a->options.seed, conformance_op_count());
        conformance_print_tap(stdout, report);
    }
}

static int run(int argc, char **argv) {
    struct arguments a;
    struct conformance_report report;
    const int code = parse(&a, argc, argv);
    if (code >= 0) return code;
    prints_tap = !a.matrix && !a.options.list && !(a.json && strcmp(a.json, "-") == 0);
    a.options.progress = remember_case;
    tell_crashes();
    ggml_backend_dev_t device = find_device(&a);
    if (!device) return EXIT_NO_DEVICE;
    if (!a.options.trace) progress_begin("conformance");
    const bool ran = conformance_run(device, &a.options, &report);
    progress_end();
    if (!ran) {
        fprintf(stderr, "%s: %s\n", ggml_backend_dev_name(device), ggml_last_error());
        return EXIT_ERROR;
    }
    if (report.n_cases == 0 && a.options.name)
        complain("no case is called so (--list prints their names): ", a.options.name);
    if (!a.options.list) print(&a, device, &report);
    bool good = is_good(&a, &report), wrote = true;
    if (a.json && !write_json(&a, device, &report)) wrote = false;
    if (a.write_page && !write_page(a.write_page, &report, device)) wrote = false;
    if (a.check_page && !check_page(a.check_page, &report, device, a.options.sample > 0))
        good = false;
    conformance_report_free(&report);
    if (a.isolated && ggml_host_isolated_free(device) != GGML_HOST_OK) good = false;
    if (!wrote) return EXIT_ERROR;
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv) {
    use_utf8(&argc, &argv);
    return finish_output("ggml-conformance", run(argc, argv));
}
