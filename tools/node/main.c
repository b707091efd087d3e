// SPDX-License-Identifier: MIT
// ggml-node: lends the devices of this machine to a program of the same MPI job.
#define _GNU_SOURCE
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "help.h"
#include "platform.h"
#include "server.h"

enum { EXIT_USAGE = 2, EXIT_NO_DEVICES = 3, EXIT_NO_JOB = 4, EXIT_PROGRAM_LOST = 5 };
enum { STUCK_SECONDS = 30 }; // for a call of MPI
enum { JOIN_SECONDS = 1000000000 };
enum { REST_SECONDS = 5 }; // for what nobody waits for any more

static const char usage[] =
    "Usage: ggml-node [OPTION]...\n"
    "Lend the devices of this machine to a program of the same MPI job:\n"
    "mpirun -n 1 PROGRAM : -n NODES ggml-node\n"
    "\n"
    "  --device LIST       only these: plugin names, device names, PCI addresses, UUIDs;\n"
    "                      an entry starting with '-' excludes\n"
    "  --plugin-path DIR   look for plugins in this directory only\n"
    "  --weights DIR       read weights from files in this directory where the program has them\n"
    "                      too, instead of having them sent\n"
    "  --join FILE         join a program of another job, which looks for this file\n"
    "                      (GGML_MPI_JOIN=FILE), until SIGTERM or SIGINT\n"
    "  --timeout SECONDS   how long the program may take to ask for nodes (default: 60)\n"
    "  -v, --verbose       say what is lent\n"
    "  -h, --help          this text\n"
    "  -V, --version       the library's version\n"
    "\n"
    "Exit status: 0 the program said goodbye or took no node and ended, or this node said "
    "goodbye,\n"
    "2 wrong usage, 3 no such device, 4 no MPI job, no program in it, or another error, 5 the\n"
    "program is gone.\n";

struct settings {
    const char *plugin_path;
    const char *devices;
    const char *weights;
    const char *join;
    double timeout;
    bool verbose;
};

// Returns EXIT_USAGE, which most callers pass on.
static int complain(const char *text, const char *value) {
    fprintf(stderr, "ggml-node: %s%s\n", text, value);
    return EXIT_USAGE;
}

// -1: go on.
static int parse(int argc, char **argv, struct settings *settings) {
    enum { DEVICE = 256, PLUGIN_PATH, WEIGHTS, JOIN, TIMEOUT };
    static const struct option options[] = {
        {"device", required_argument, NULL, DEVICE},
        {"plugin-path", required_argument, NULL, PLUGIN_PATH},
        {"weights", required_argument, NULL, WEIGHTS},
        {"join", required_argument, NULL, JOIN},
        {"timeout", required_argument, NULL, TIMEOUT},
        {"verbose", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0},
    };
    int option;
    while ((option = getopt_long(argc, argv, "hvV", options, NULL)) != -1) {
        switch (option) {
        case DEVICE: settings->devices = optarg; break;
        case PLUGIN_PATH: settings->plugin_path = optarg; break;
        case WEIGHTS: settings->weights = optarg; break;
        case JOIN: settings->join = optarg; break;
        case TIMEOUT:
            settings->timeout = atof(optarg);
            if (!(settings->timeout > 0 && settings->timeout < JOIN_SECONDS))
                return complain("no number of seconds: ", optarg);
            break;
        case 'v': settings->verbose = true; break;
        case 'h': print_help(usage, stdout); return EXIT_SUCCESS;
        case 'V': printf("ggml-node %s\n", ggml_version()); return EXIT_SUCCESS;
        default: return EXIT_USAGE;
        }
    }
    return optind == argc ? -1 : complain("what is this? ", argv[optind]);
}

// Whether a plugin would end this process, or hold it up, by starting: processes of their own try
// them out first, as a node that is gone while the others start MPI may hold up the whole job. Each
// is named.
static bool some_crash(ggml_probe_report_t report) {
    bool any = false;
    for (size_t i = 0; i < ggml_probe_report_count(report); ++i) {
        const struct ggml_plugin_record *plugin = ggml_probe_report_get(report, i)->plugin;
        if (plugin->status != GGML_HOST_CRASHED && plugin->status != GGML_HOST_TIMED_OUT) continue;
        fprintf(stderr, "ggml-node: without %s: %s\n", plugin->path, plugin->message);
        any = true;
    }
    return any;
}

static void load_sound_plugins(const char *folder) {
    const struct ggml_probe_options options = {.size = sizeof(options), .dir = folder};
    ggml_probe_report_t report = NULL;
    ggml_plugin_probe(&options, &report);
    if (report && some_crash(report))
        ggml_plugin_load_probed(report, NULL);
    else
        ggml_plugin_load_all(folder, NULL);
    ggml_probe_report_free(report);
}

// devices: a choice, empty for all. Without the plugin that makes this process a program with
// nodes.
static void load_plugins(const char *folder, const char *devices) {
    char *choice = NULL;
    if (asprintf(&choice, "%s%s-mpi", devices, devices[0] != '\0' ? "," : "") > 0) {
        setenv("GGML_DEVICES", choice, 1);
        load_sound_plugins(folder);
        free(choice);
    }
}

// Plugins of this machine, lent in the order of the registry. False: no devices.
static bool load(struct server *server, const struct settings *settings) {
    load_plugins(settings->plugin_path, settings->devices ? settings->devices : "");
    for (size_t i = 0; i < ggml_backend_dev_count() && i < WIRE_MAX_DEVICES; ++i)
        server->devices[server->n_devices++] = ggml_backend_dev_get(i);
    for (uint32_t i = 0; i < server->n_devices && settings->verbose; ++i)
        fprintf(stderr, "ggml-node: lends %s\n", ggml_backend_dev_name(server->devices[i]));
    return server->n_devices > 0;
}

// What there would be without the choice.
static void complain_of_devices(const struct settings *settings) {
    if (!settings->devices) {
        complain("no devices to lend: ggml-devices says why each plugin was refused", "");
        return;
    }
    load_plugins(settings->plugin_path, "");
    fprintf(stderr, "ggml-node: no device is left by --device '%s'; there are:", settings->devices);
    for (size_t i = 0; i < ggml_backend_dev_count(); ++i)
        fprintf(stderr, " %s", ggml_backend_dev_name(ggml_backend_dev_get(i)));
    fputc('\n', stderr);
}

// A peer that is gone is dropped. Peer 0 is the program: without it the node ends.
static void on_failure(void *context, int peer, const char *why) {
    struct server *server = context;
    link_drop(server->link, peer);
    char text[LINK_TEXT];
    snprintf(text, sizeof(text), "the program is lost: %.200s", why);
    if (peer == 0) server_end(server, text);
}

static void on_refused(void *context, const char *why) {
    (void)context;
    complain(why, "");
}

// Nothing to do between messages; true: go on waiting.
static bool on_tick(void *context, double now) {
    (void)context;
    (void)now;
    return true;
}

int main(int argc, char **argv) {
    static struct server server;
    struct settings settings = {.timeout = 60};
    char why[LINK_TEXT];
    int rank, size, programs;
    const int early = parse(argc, argv, &settings);
    if (early >= 0) return finish_output("ggml-node", early);
    char *plugin_path = settings.plugin_path ? realpath(settings.plugin_path, NULL) : NULL;
    if (settings.plugin_path && !plugin_path)
        return complain("no directory: ", settings.plugin_path);
    settings.plugin_path = plugin_path;
    const int files = settings.weights ? file_open_folder(settings.weights) : -1;
    if (settings.weights && files < 0) return complain("no directory: ", settings.weights);
    if (!link_launched(&rank, &size, &programs)) {
        complain("no MPI job: start with mpirun -n 1 PROGRAM : -n NODES ggml-node", "");
        return EXIT_NO_JOB;
    }
    if (rank == 0 && !settings.join) {
        complain("rank 0 has to be the program that uses the nodes: mpirun -n 1 PROGRAM : -n NODES "
                 "ggml-node",
                 "");
        return EXIT_NO_JOB;
    }
    server_init(&server);
    server.files = files;
    if (settings.join && !join_begin(&server, settings.join)) return EXIT_NO_JOB;
    if (!load(&server, &settings)) {
        complain_of_devices(&settings);
        return EXIT_NO_DEVICES;
    }
    device_memory_init(&server.device_memory);
    const struct link_options options = {
        .is_node = true,
        .start_seconds = settings.join ? JOIN_SECONDS : settings.timeout,
        .on_port = settings.join ? join_publish : NULL,
        .stuck_seconds = STUCK_SECONDS,
        .on_message = server_take,
        .on_failure = on_failure,
        .on_tick = on_tick,
        .on_refused = on_refused,
        .on_enter = server.device_memory.set_current ? device_memory_enter : NULL,
        .context = &server,
        .out_link = &server.link,
    };
    if (!link_open(&options, why)) {
        if (why[0] != '\0') complain(why, "");
        // After a refusal the program has ended MPI, but may not have ended itself: a launcher ends
        // the whole job for another status.
        return why[0] == '\0' && !settings.join ? EXIT_SUCCESS : EXIT_NO_JOB;
    }
    if (settings.join) join_done(&server);
    server_wait(&server);
    for (int i = 0; i < link_count(server.link); ++i)
        if (i != link_self(server.link)) link_drop(server.link, i);
    if (settings.verbose)
        fprintf(stderr,
                "ggml-node: read %" PRIuFAST64 " bytes of weights from files\n"
                "ggml-node: took %" PRIuFAST64 " messages, sent %" PRIuFAST64
                ", left out %" PRIuFAST64 " answers\n"
                "ggml-node: MPI moved %" PRIuFAST64 " bytes of device memory itself\n",
                atomic_load(&server.bytes_from_files), atomic_load(&server.n_messages_taken),
                atomic_load(&server.n_messages_sent), atomic_load(&server.n_left_out),
                atomic_load(&server.device_memory.bytes));
    const bool ends_mpi = server.ended_by_program && !server.leaves_mpi;
    const int status = server.ended_by_program ? EXIT_SUCCESS : EXIT_PROGRAM_LOST;
    if (!ends_mpi && !server_rests(&server, REST_SECONDS)) {
        complain("what the program has asked for is not done yet, and left", "");
        _exit(status);
    }
    server_free(&server);
    link_close(server.link, ends_mpi);
    return status;
}
