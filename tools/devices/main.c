// SPDX-License-Identifier: MIT
// ggml-devices: what this machine can do with ggml.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "help.h"
#include "output_file.h"
#include "platform.h"
#include "print.h"
#include "progress.h"
#include "terminal.h"
#include "watch.h"

enum exit_code {
    EXIT_ALL_WELL = 0,
    EXIT_TEST_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_NO_DEVICE = 3,
    EXIT_ERROR = 4
};
enum view {
    VIEW_TABLE,
    VIEW_JSON,
    VIEW_TREE,
    VIEW_DOT,
    VIEW_SVG,
    VIEW_HTML,
    VIEW_NAMES,
    VIEW_DEVICE,
    VIEW_WATCH
};
enum colour { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };

// The command line, as parsed.
struct options {
    enum view view;
    const char *view_option; // that asked for the view; NULL: none did
    const char *device;      // of VIEW_DEVICE
    enum colour colour;
    bool test;
    bool verbose;
    const char *drawing; // file
    double interval;     // seconds, of VIEW_WATCH
    const char *devices;
    struct inventory_options inventory;
};

static const char usage[] =
    "Usage: ggml-devices [OPTION]... [DEVICE]\n"
    "Show the devices that ggml can compute on, and what became of every plugin; or all that is\n"
    "known of one device.\n"
    "\n"
    "  --json              print everything as JSON (ggml-devices.schema.json in the\n"
    "                      documentation)\n"
    "  --names             print the devices' names alone, one a line\n"
    "  --tree              print the machine's topology with the devices where they hang\n"
    "  --dot               the same for Graphviz\n"
    "  --svg FILE          the same as a drawing; - is the standard output\n"
    "  --html FILE         a page with the drawing, which tells more where the pointer is\n"
    "  --watch             show what the devices do, again and again until q or Ctrl-C: memory,\n"
    "                      how busy they are, processes\n"
    "  --interval SECONDS  of --watch (default: 2)\n"
    "  --test              let every device compute something that is checked, each in a process\n"
    "                      of its own\n"
    "  --in-process        load the plugins into this process instead of trying them in helpers\n"
    "  --rescan            don't believe what is remembered of earlier tries\n"
    "  --no-cache          nor remember anything of these\n"
    "  --no-sandbox        let the helpers do what this program may do\n"
    "  --timeout SECONDS   how long a plugin may take (default: 15)\n"
    "  --jobs N            how many are tried at a time (default: 4)\n"
    "  --plugin-path DIR   look for plugins in this directory only\n"
    "  --device LIST       only these: plugin names, device names, PCI addresses, UUIDs;\n"
    "                      an entry starting with '-' excludes\n"
    "  --sysfs DIR         look for GPUs in a copy of /sys below this directory\n"
    "  --color WHEN        auto, always or never\n"
    "  -v, --verbose       also what the library logs and how long each plugin took\n"
    "  -h, --help          this text\n"
    "  -V, --version       the library's version\n"
    "\n"
    "Exit status: 0 all is well, 1 a self-test failed or a device computed nothing of it,\n"
    "2 wrong usage, 3 no such device, or none at all, 4 another error.\n";

// Says what is wrong with the command line; returns the exit status for it.
static int complain(const char *text, const char *value) {
    fprintf(stderr, "ggml-devices: %s%s; see ggml-devices --help\n", text, value);
    return EXIT_USAGE;
}

static bool parse_colour(const char *text, enum colour *out_colour) {
    static const char *const names[] = {"auto", "always", "never"};
    for (int i = 0; i < 3; ++i) {
        if (strcmp(text, names[i]) != 0) continue;
        *out_colour = (enum colour)i;
        return true;
    }
    return false;
}

// A number of seconds between `least` and an hour; false for anything else.
static bool parse_seconds(const char *text, double least, double *out_seconds) {
    char *end;
    *out_seconds = strtod(text, &end);
    return end != text && *end == '\0' && *out_seconds >= least && *out_seconds <= 3600.0;
}

// A number of helpers, 1 to 64.
static bool parse_jobs(const char *text, unsigned *out_jobs) {
    char *end;
    const long number = strtol(text, &end, 10);
    *out_jobs = (unsigned)number;
    return end != text && *end == '\0' && number >= 1 && number <= 64;
}

enum long_option {
    JSON = 256,
    NAMES,
    TREE,
    DOT,
    SVG,
    HTML,
    WATCH,
    INTERVAL,
    TEST,
    IN_PROCESS,
    RESCAN,
    NO_CACHE,
    NO_SANDBOX,
    TIMEOUT,
    JOBS,
    PLUGIN_PATH,
    DEVICE,
    SYSFS,
    COLOR
};

static const struct option long_options[] = {
    {"json", no_argument, NULL, JSON},
    {"names", no_argument, NULL, NAMES},
    {"tree", no_argument, NULL, TREE},
    {"dot", no_argument, NULL, DOT},
    {"svg", required_argument, NULL, SVG},
    {"html", required_argument, NULL, HTML},
    {"watch", no_argument, NULL, WATCH},
    {"interval", required_argument, NULL, INTERVAL},
    {"test", no_argument, NULL, TEST},
    {"in-process", no_argument, NULL, IN_PROCESS},
    {"rescan", no_argument, NULL, RESCAN},
    {"no-cache", no_argument, NULL, NO_CACHE},
    {"no-sandbox", no_argument, NULL, NO_SANDBOX},
    {"timeout", required_argument, NULL, TIMEOUT},
    {"jobs", required_argument, NULL, JOBS},
    {"plugin-path", required_argument, NULL, PLUGIN_PATH},
    {"device", required_argument, NULL, DEVICE},
    {"sysfs", required_argument, NULL, SYSFS},
    {"color", required_argument, NULL, COLOR},
    {"verbose", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

// One form of output at a time.
static bool choose_view(struct options *options, enum view view, const char *option) {
    if (options->view_option && options->view != view) {
        fprintf(stderr, "ggml-devices: %s and %s exclude each other; see ggml-devices --help\n",
                options->view_option, option);
        return false;
    }
    options->view = view;
    options->view_option = option;
    return true;
}

// What is left after the options: at most the name of one device. Returns -1 to go on, else the
// exit status.
static int parse_arguments(int argc, char **argv, struct options *options) {
    if (optind + 1 < argc) return complain("unexpected argument ", argv[optind + 1]);
    if (optind < argc && !choose_view(options, VIEW_DEVICE, "the name of a device"))
        return EXIT_USAGE;
    options->device = argv[optind];
    if (!options->test || options->view == VIEW_TABLE || options->view == VIEW_JSON) return -1;
    return complain("--test does not go with ", options->view_option);
}

// Parses the whole command line. Returns -1 to go on, else the exit status.
static int parse_options(int argc, char **argv, struct options *out_options) {
    *out_options = (struct options){.interval = 2};
    int option;
    while ((option = getopt_long(argc, argv, "vhV", long_options, NULL)) != -1) {
        switch (option) {
        case JSON:
            if (!choose_view(out_options, VIEW_JSON, "--json")) return EXIT_USAGE;
            break;
        case NAMES:
            if (!choose_view(out_options, VIEW_NAMES, "--names")) return EXIT_USAGE;
            break;
        case TREE:
            if (!choose_view(out_options, VIEW_TREE, "--tree")) return EXIT_USAGE;
            break;
        case DOT:
            if (!choose_view(out_options, VIEW_DOT, "--dot")) return EXIT_USAGE;
            break;
        case SVG:
            if (!choose_view(out_options, VIEW_SVG, "--svg")) return EXIT_USAGE;
            out_options->drawing = optarg;
            break;
        case HTML:
            if (!choose_view(out_options, VIEW_HTML, "--html")) return EXIT_USAGE;
            out_options->drawing = optarg;
            break;
        case WATCH:
            if (!choose_view(out_options, VIEW_WATCH, "--watch")) return EXIT_USAGE;
            break;
        case INTERVAL:
            if (!parse_seconds(optarg, 0.1, &out_options->interval))
                return complain("--interval: not between 0.1 and 3600 seconds: ", optarg);
            break;
        case SYSFS: out_options->inventory.sysfs = optarg; break;
        case TEST: out_options->test = true; break;
        case IN_PROCESS: out_options->inventory.in_process = true; break;
        case RESCAN: out_options->inventory.rescan = true; break;
        case NO_CACHE: out_options->inventory.no_cache = true; break;
        case NO_SANDBOX: out_options->inventory.no_sandbox = true; break;
        case TIMEOUT:
            if (!parse_seconds(optarg, 0.001, &out_options->inventory.timeout))
                return complain("--timeout: not between 0.001 and 3600 seconds: ", optarg);
            break;
        case JOBS:
            if (!parse_jobs(optarg, &out_options->inventory.jobs))
                return complain("--jobs: not between 1 and 64: ", optarg);
            break;
        case PLUGIN_PATH: out_options->inventory.plugin_path = absolute_path(optarg); break;
        case DEVICE: out_options->devices = optarg; break;
        case COLOR:
            if (!parse_colour(optarg, &out_options->colour))
                return complain("--color: not auto, always or never: ", optarg);
            break;
        case 'v': out_options->verbose = true; break;
        case 'h': print_help(usage, stdout); return EXIT_ALL_WELL;
        case 'V':
            printf("ggml-devices %s (%s)\n", ggml_version(), ggml_commit());
            return EXIT_ALL_WELL;
        default: return complain("wrong usage", ""); // getopt has said which option
        }
    }
    return parse_arguments(argc, argv, out_options);
}

// Whether to colour: as --color says; otherwise on a terminal, unless NO_COLOR is set
// (no-color.org).
static bool use_colour(enum colour colour) {
    const char *no_color = getenv("NO_COLOR");
    if (colour != COLOUR_AUTO) return colour == COLOUR_ALWAYS;
    return terminal_is_capable(stdout) && !(no_color && no_color[0] != '\0');
}

static void log_if_verbose(enum ggml_log_level level, const char *text, void *verbose) {
    (void)level;
    if (*(const bool *)verbose) fputs(text, stderr);
}

// Draws to a file or to the standard output.
static bool write_drawing(const struct inventory *inventory, const char *file,
                          bool (*draw)(const struct inventory *inventory, FILE *stream)) {
    struct output_file output;
    return output_file_open(&output, "ggml-devices", file) &&
           output_file_close(&output, draw(inventory, output.stream));
}

// A device by its exact name or id, or NULL.
static const struct device_entry *find_entry(const struct inventory *inventory, const char *name) {
    for (size_t i = 0; name && i < inventory->n_devices; ++i) {
        const struct device_entry *device = &inventory->devices[i];
        const char *id = device->props.device_id;
        if (strcmp(device->props.name, name) == 0 || (id && strcmp(id, name) == 0)) return device;
    }
    return NULL;
}

// The names of all devices on the standard error, in one line.
static void list_names(const struct inventory *inventory) {
    for (size_t i = 0; i < inventory->n_devices; ++i) {
        char name[128];
        sanitise(inventory->devices[i].props.name, name, sizeof(name));
        fprintf(stderr, "%s%s", i > 0 ? ", " : "", name);
    }
    fputs(inventory->n_devices > 0 ? "\n" : "none\n", stderr);
}

// No device was found, or not the one that was asked for: says which there are.
static void complain_of_devices(const struct inventory *inventory, const struct options *options) {
    struct inventory all;
    struct inventory_options how = options->inventory;
    if (options->device) {
        fprintf(stderr, "ggml-devices: there is no device '%s'; there are: ", options->device);
        list_names(inventory);
        return;
    }
    if (!options->devices) {
        fputs("ggml-devices: there is no device: ggml-devices says why each plugin was refused\n",
              stderr);
        return;
    }
    how.load = false;
    set_variable("GGML_DEVICES", "");
    if (!inventory_gather(&all, &how)) return;
    fprintf(stderr,
            "ggml-devices: no device is left by --device '%s'; there are: ", options->devices);
    list_names(&all);
    inventory_free(&all);
}

// Prints what was asked for. False: writing failed.
static bool show(const struct inventory *inventory, const struct options *options,
                 const struct selftest_result *results) {
    const struct page page = {
        .colour = use_colour(options->colour),
        .verbose = options->verbose,
        .utf8 = terminal_has_utf8(),
        .width = terminal_width(stdout),
    };
    switch (options->view) {
    case VIEW_JSON: return print_json(inventory, results, stdout);
    case VIEW_TREE: return draw_tree(inventory, &page, stdout);
    case VIEW_DOT: return draw_dot(inventory, stdout);
    case VIEW_SVG: return write_drawing(inventory, options->drawing, draw_svg);
    case VIEW_HTML: return write_drawing(inventory, options->drawing, draw_html);
    case VIEW_NAMES: print_names(inventory); return true;
    case VIEW_DEVICE: print_device_page(find_entry(inventory, options->device), &page); return true;
    case VIEW_WATCH: {
        const char *root = options->inventory.sysfs;
        return watch(inventory, &page, options->interval, root ? root : "");
    }
    case VIEW_TABLE: break;
    }
    if (!results) print_table(inventory, &page);
    for (size_t i = 0; results && i < inventory->n_devices; ++i) {
        print_selftest(&inventory->devices[i], results + i * SELFTEST_WORKLOADS, &page);
    }
    return true;
}

// SELFTEST_WORKLOADS results per device; the caller frees them. Each device is tested in a
// process of its own where the system has that. NULL without memory.
static struct selftest_result *test_all(const struct inventory *inventory, bool in_process) {
    struct selftest_result *results =
        calloc(inventory->n_devices + 1, sizeof(*results) * SELFTEST_WORKLOADS);
    if (!results) return NULL;
    progress_begin("");
    for (size_t i = 0; i < inventory->n_devices; ++i) {
        const struct device_entry *device = &inventory->devices[i];
        struct selftest_result *of_device = results + i * SELFTEST_WORKLOADS;
        char text[160];
        snprintf(text, sizeof(text), "testing %.100s", device->props.name);
        progress_set(text);
        if (in_process || !selftest_run_apart(device, of_device))
            selftest_run(device->handle, of_device, NULL, NULL);
    }
    progress_end();
    return results;
}

// Every device has to compute something, and that correctly.
static bool all_passed(const struct inventory *inventory, const struct selftest_result *results) {
    for (size_t i = 0; i < inventory->n_devices; ++i) {
        bool any = false;
        for (int j = 0; j < SELFTEST_WORKLOADS; ++j) {
            const enum selftest_verdict verdict = results[i * SELFTEST_WORKLOADS + j].verdict;
            if (verdict == SELFTEST_FAILED) return false;
            any |= verdict == SELFTEST_PASSED;
        }
        if (!any) return false;
    }
    return true;
}

// Exit status: failures to gather or write count more than a missing device, and that more than
// a failed test.
static int run(const struct options *options) {
    struct inventory inventory;
    struct inventory_options how = options->inventory;
    struct selftest_result *results = NULL;
    int code = EXIT_ALL_WELL;
    how.load = options->view == VIEW_WATCH || (options->test && !has_device_children);
    if (!inventory_gather(&inventory, &how)) return EXIT_ERROR;

    if (options->test) results = test_all(&inventory, how.load || how.in_process);
    const bool is_known = !options->device || find_entry(&inventory, options->device);
    if (results && !all_passed(&inventory, results)) code = EXIT_TEST_FAILED;
    if (inventory.n_devices == 0 || !is_known) code = EXIT_NO_DEVICE;
    const bool shown = !is_known || show(&inventory, options, results);
    if (code == EXIT_NO_DEVICE) complain_of_devices(&inventory, options);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "ggml-devices: writing failed: %s\n", strerror(errno));
        code = EXIT_ERROR;
    } else if (!shown || (options->test && !results)) {
        code = EXIT_ERROR;
    }
    free(results);
    inventory_free(&inventory);
    return code;
}

int main(int argc, char **argv) {
    struct options options;
    use_utf8(&argc, &argv);
    if (argc > 1 && strcmp(argv[1], DEVICE_CHILD) == 0) return device_child_main(argc, argv);
    const int code = parse_options(argc, argv, &options);
    if (code >= 0) return finish_output("ggml-devices", code);
    ggml_log_set(log_if_verbose, &options.verbose);
    // The filter works before a plugin is initialised, so it has to be there before the library
    // looks.
    if (options.devices && !set_variable("GGML_DEVICES", options.devices)) return EXIT_ERROR;
    return run(&options);
}
