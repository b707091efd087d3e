// SPDX-License-Identifier: MIT
#include <string.h>

#include "print.h"

enum { TEXT_SIZE = 8192 };

static const char *const BOLD = "\033[1m";
static const char *const GREEN = "\033[32m";
static const char *const RED = "\033[31m";
static const char *const DIM = "\033[2m";
static const char *const PLAIN = "\033[0m";

static const char *shade(bool colour, const char *code) {
    return colour ? code : "";
}

static void heading(const char *text, bool colour) {
    printf("%s%s%s\n", shade(colour, BOLD), text, shade(colour, PLAIN));
}

static void format_memory(const struct device_entry *device, char *out_text, size_t size) {
    const double gib = 1024.0 * 1024.0 * 1024.0;
    const struct ggml_backend_dev_props *props = &device->props;
    if (device->memory == GGML_MEMORY_UNKNOWN) {
        snprintf(out_text, size, "unknown");
    } else {
        snprintf(out_text, size, "%.1f of %.1f GiB free%s", (double)props->memory_free / gib,
                 (double)props->memory_total / gib,
                 device->memory == GGML_MEMORY_ESTIMATED ? " (estimated)" : "");
    }
}

// NULL is not printed.
static void print_clean(const char *before, const char *text, const char *after) {
    char clean[TEXT_SIZE];
    if (!text) return;
    sanitise(text, clean, sizeof(clean));
    printf("%s%s%s", before, clean, after);
}

static void print_details(const struct ggml_backend_feature *details) {
    if (!details || !details->name) return;
    printf("            ");
    for (; details->name; ++details) {
        print_clean(" ", details->name, "");
        print_clean(" ", details->value, details[1].name ? "," : "\n");
    }
}

static void print_devices(const struct inventory *inventory, bool colour, bool verbose) {
    heading("Devices", colour);
    if (inventory->n_devices == 0) puts("  none: see below why each plugin was refused");
    for (size_t i = 0; i < inventory->n_devices; ++i) {
        const struct device_entry *device = &inventory->devices[i];
        char name[128], description[256], memory[96];
        sanitise(device->props.name, name, sizeof(name));
        sanitise(device->props.description, description, sizeof(description));
        format_memory(device, memory, sizeof(memory));
        printf("  %s%-10s%s %-12s %-28s %s", shade(colour, BOLD), name, shade(colour, PLAIN),
               device_type_name(device->props.type), memory, description);
        print_clean("  [", device->props.device_id, "]");
        print_clean("  same hardware as ", device->alias_of, "");
        putchar('\n');
        if (verbose) print_details(device->details);
    }
}

// Not wanted, as opposed to not fit.
static bool is_merely_unused(enum ggml_host_status status) {
    return status == GGML_HOST_SUPERSEDED || status == GGML_HOST_FILTERED ||
           status == GGML_HOST_DUPLICATE;
}

static void print_plugin(const struct plugin_entry *plugin, bool colour, bool verbose) {
    const struct ggml_plugin_record *record = plugin->record;
    char path[TEXT_SIZE], message[TEXT_SIZE], name[64], variant[64], version[64];
    sanitise(record->path, path, sizeof(path));
    sanitise(record->message, message, sizeof(message));
    sanitise(record->name, name, sizeof(name));
    sanitise(record->variant, variant, sizeof(variant));
    sanitise(record->version, version, sizeof(version));
    const bool usable = plugin->usable;
    const bool unused = is_merely_unused(record->status);
    printf("  %s%-7s%s %s\n",
           shade(colour, usable   ? GREEN
                         : unused ? DIM
                                  : RED),
           usable   ? "in use"
           : unused ? "unused"
                    : "refused",
           shade(colour, PLAIN), path);
    printf("          %s", shade(colour, DIM));
    if (record->contract_major >= 0) {
        printf("%s%s%s %s, contract %d.%d, %s, ", name, variant[0] ? "-" : "", variant, version,
               record->contract_major, record->contract_minor, machine_name(record->machine));
    }
    printf("stage %s%s\n", ggml_plugin_stage_text(record->stage), shade(colour, PLAIN));
    if (!usable) printf("          %s: %s\n", ggml_host_status_text(record->status), message);
    if (record->missing[0]) print_clean("          missing library: ", record->missing, "\n");
    if (verbose) printf("          %.0f us, says the %s\n", record->microseconds, plugin->source);
}

static void print_note(const char *what, const char *why) {
    char clean[TEXT_SIZE];
    if (why[0] == '\0') return;
    sanitise(why, clean, sizeof(clean));
    printf("  (%s: %s)\n", what, clean);
}

static void print_search(const struct inventory *inventory, bool colour) {
    const struct ggml_plugin_directory *directory;
    heading("Searched, in this order", colour);
    if (!inventory_directory(inventory, 0)) puts("  nowhere");
    for (size_t i = 0; (directory = inventory_directory(inventory, i)) != NULL; ++i) {
        char path[TEXT_SIZE];
        sanitise(directory->path, path, sizeof(path));
        printf("  %zu. %s (%s)", i + 1, path, directory->origin);
        if (directory->status != GGML_HOST_OK)
            printf(": %s", ggml_host_status_text(directory->status));
        putchar('\n');
    }
}

static void print_machine(const struct inventory *inventory, bool colour) {
    const struct ggml_host_topology *topology = &inventory->topology;
    heading("Machine", colour);
    printf("  %u package%s, %u core%s (%u performance), %u logical CPU%s allowed, %u NUMA node%s\n",
           topology->n_packages, topology->n_packages == 1 ? "" : "s", topology->n_cores,
           topology->n_cores == 1 ? "" : "s", topology->n_performance_cores, topology->n_pus,
           topology->n_pus == 1 ? "" : "s", topology->n_numa_nodes,
           topology->n_numa_nodes == 1 ? "" : "s");
    printf("  %u thread%s by default, bounded by %s\n", topology->default_threads,
           topology->default_threads == 1 ? "" : "s",
           thread_bound_name((enum ggml_thread_bound)topology->default_threads_bound));
    printf("  instruction sets:");
    const uint64_t features = ggml_host_cpu_features();
    for (unsigned bit = 0; bit < 64; ++bit) {
        const char *name = ggml_host_cpu_feature_name(bit);
        if (name && (features >> bit & 1)) printf(" %s", name);
    }
    putchar('\n');
}

void print_table(const struct inventory *inventory, bool colour, bool verbose) {
    print_devices(inventory, colour, verbose);
    heading("Plugins", colour);
    if (inventory->n_plugins == 0) puts("  none found");
    for (size_t i = 0; i < inventory->n_plugins; ++i)
        print_plugin(&inventory->plugins[i], colour, verbose);
    print_note("run in this process, not in a helper", inventory_not_isolated(inventory));
    if (verbose) print_note("results are not remembered", inventory_not_cached(inventory));
    if (verbose) print_note("helpers are not wholly confined", inventory_not_sandboxed(inventory));
    print_search(inventory, colour);
    print_machine(inventory, colour);
}

void print_selftest(const struct device_entry *device, const struct selftest_result *results,
                    bool colour) {
    char name[128];
    sanitise(device->props.name, name, sizeof(name));
    printf("%s%s%s\n", shade(colour, BOLD), name, shade(colour, PLAIN));
    for (int i = 0; i < SELFTEST_WORKLOADS; ++i) {
        const struct selftest_result *result = &results[i];
        char message[sizeof(result->message)];
        sanitise(result->message, message, sizeof(message));
        switch (result->verdict) {
        case SELFTEST_PASSED:
            printf("  %spassed%s      %-28s %9.3f ms  error %.2e (bound %.0e)\n",
                   shade(colour, GREEN), shade(colour, PLAIN), result->workload,
                   result->milliseconds, result->error, result->bound);
            break;
        case SELFTEST_FAILED:
            printf("  %sFAILED%s      %-28s %s\n", shade(colour, RED), shade(colour, PLAIN),
                   result->workload, message);
            break;
        case SELFTEST_UNSUPPORTED:
            printf("  unsupported %-28s %s\n", result->workload, message);
            break;
        }
    }
}
