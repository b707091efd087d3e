// SPDX-License-Identifier: MIT
// ggml-bench report: measures this machine, or takes what was measured before, and writes the page.
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/ops/op_cases.h"
#include "ggml-host.h"
#include "help.h"
#include "output_file.h"
#include "platform.h"
#include "report/report.h"
#include "sanitise.h"

enum { MAX_NAMES = 32 };

// The command line, as parsed.
struct command {
    const char *names[MAX_NAMES];
    struct report_options options;
    const char *plugin_path;
    const char *output;  // page; "-": the standard output
    const char *data;    // also the measurements alone; NULL: no
    const char *compare; // an earlier report; NULL
    const char *from;    // measurements made before; NULL: measure
};

static const char usage[] =
    "Usage: ggml-bench report [OPTION]...\n"
    "Measure what this machine's devices compute, and write a page that shows it: tokens per "
    "second\n"
    "of models, the roofline of each device with every operation, and what became of it since an\n"
    "earlier report. The page is one file that a browser opens without a network.\n"
    "\n"
    "  --output FILE       the page (default ggml-report.html); - is the standard output\n"
    "  --quick             fewer types and smaller sizes, shorter: under a minute per device\n"
    "  --device NAME       only this device; may be given again\n"
    "  --op NAME           only this operation, and no models\n"
    "  --compare FILE      show what became faster or slower since this report, a page or JSON\n"
    "  --data FILE         also write the measurements as JSON, as they stand in the page\n"
    "  --from FILE         measure nothing: show the measurements of this report\n"
    "  --plugin-path DIR   load the plugins of this directory too\n";

static bool take_option(int option, const char *text, struct command *command) {
    switch (option) {
    case 'O': command->output = text; return true;
    case 'q': command->options.quick = true; return true;
    case 'd':
        if (command->options.n_devices == MAX_NAMES) return false;
        command->names[command->options.n_devices++] = text;
        return true;
    case 'o': command->options.op = text; return true;
    case 'c': command->compare = text; return true;
    case 'j': command->data = text; return true;
    case 'f': command->from = text; return true;
    case 'p': command->plugin_path = absolute_path(text); return true;
    default: return false;
    }
}

// All devices and the operation that were asked for are known.
static enum bench_exit check_names(const struct command *command) {
    if (!op_cases_know(command->options.op)) return BENCH_USAGE;
    for (size_t i = 0; i < command->options.n_devices; ++i) {
        if (!bench_find_device(command->names[i])) return BENCH_NO_DEVICE;
    }
    if (ggml_backend_dev_count() > 0) return BENCH_OK;
    fputs("ggml-bench: there is no device: ggml-devices says why each plugin was refused\n",
          stderr);
    return BENCH_NO_DEVICE;
}

// Writes a file by one of the two forms.
static bool write_file(const char *path, const struct report *report, const struct report *earlier,
                       const char *earlier_name, bool is_page) {
    struct output_file file;
    if (!output_file_open(&file, "ggml-bench", path)) return false;
    return output_file_close(&file,
                             is_page ? report_write_page(report, earlier, earlier_name, file.stream)
                                     : report_write_json(report, file.stream));
}

// The name of a file without its folders.
static const char *last_part(const char *path) {
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path;
}

// Says where the page is, and which devices failed.
static bool tell(const struct report *report, const struct command *command) {
    bool good = true;
    size_t n = 0;
    for (size_t i = 0; i < report->n_devices; ++i) {
        const struct report_device *device = &report->devices[i];
        n += device->n_ops + device->n_models;
        if (device->failure[0] == '\0') continue;
        char name[sizeof(device->name)], failure[sizeof(device->failure)];
        sanitise(device->name, name, sizeof(name));
        sanitise(device->failure, failure, sizeof(failure));
        fprintf(stderr, "ggml-bench: %s: %s\n", name, failure);
        good = good && command->from;
    }
    if (strcmp(command->output, "-") != 0)
        printf("%s: %zu measurements of %zu device%s\n", command->output, n, report->n_devices,
               report->n_devices == 1 ? "" : "s");
    return good;
}

static int run(struct command *command) {
    struct report report = {0}, earlier = {0};
    // The earlier report may be the file that is written.
    bool good = !command->compare || report_read(&earlier, command->compare);
    if (good) {
        good = command->from ? report_read(&report, command->from)
                             : report_measure(&report, &command->options);
    }
    good = good && write_file(command->output, &report, command->compare ? &earlier : NULL,
                              last_part(command->compare), true);
    if (good && command->data) good = write_file(command->data, &report, NULL, NULL, false);
    good = good && tell(&report, command);
    report_free(&report);
    report_free(&earlier);
    return good ? BENCH_OK : BENCH_ERROR;
}

int bench_report(int argc, char **argv) {
    static const struct option table[] = {
        {"output", required_argument, NULL, 'O'},  {"quick", no_argument, NULL, 'q'},
        {"device", required_argument, NULL, 'd'},  {"op", required_argument, NULL, 'o'},
        {"compare", required_argument, NULL, 'c'}, {"data", required_argument, NULL, 'j'},
        {"from", required_argument, NULL, 'f'},    {"plugin-path", required_argument, NULL, 'p'},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0}};
    struct command command = {.output = "ggml-report.html"};
    command.options.devices = command.names;
    int option;
    bool valid = true;
    while (valid && (option = getopt_long(argc, argv, "h", table, NULL)) != -1) {
        if (option == 'h') {
            print_help(usage, stdout);
            return BENCH_OK;
        }
        valid = take_option(option, optarg, &command);
    }
    if (!valid || optind < argc) return bench_usage_error(argc, argv, valid);
    if (!command.from) {
        ggml_plugin_load_all(command.plugin_path, NULL);
        const enum bench_exit known = check_names(&command);
        if (known != BENCH_OK) return known;
    }
    return run(&command);
}
