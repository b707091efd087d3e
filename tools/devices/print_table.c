// SPDX-License-Identifier: MIT
// The inventory for a person: machine, devices, plugins and the reasons of those that were not
// loaded, as wide as the terminal.
#define _GNU_SOURCE // syscall()
#include <stdarg.h>
#include <string.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "print.h"
#include "terminal.h"

enum { TEXT_SIZE = 8192 };

static const char *const BOLD = "\033[1m";
static const char *const GREEN = "\033[32m";
static const char *const RED = "\033[31m";
static const char *const DIM = "\033[2m";
static const char *const PLAIN = "\033[0m";

// An escape sequence, or nothing where colours are not wanted.
static const char *shade(bool colour, const char *code) {
    return colour ? code : "";
}

static void heading(const char *text, const struct page *page) {
    printf("%s%s%s\n", shade(page->colour, BOLD), text, shade(page->colour, PLAIN));
}

unsigned put(const struct page *page, unsigned column, unsigned indent, const char *format, ...) {
    char text[TEXT_SIZE], clean[TEXT_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    sanitise(text, clean, sizeof(clean));
    return text_wrap(stdout, clean, column, indent, page->width);
}

// A line of its own.
static void put_line(const struct page *page, unsigned indent, unsigned hanging, const char *text) {
    printf("%*s", (int)indent, "");
    put(page, indent, hanging, "%s", text);
    putchar('\n');
}

// An age in the largest sensible unit, as memory that was remembered may be old.
static void format_age(int64_t seconds, char *out_text, size_t size) {
    if (seconds < 60) {
        snprintf(out_text, size, "%d s ago", (int)seconds);
    } else if (seconds < 3600) {
        snprintf(out_text, size, "%d min ago", (int)(seconds / 60));
    } else if (seconds < 48 * 3600) {
        snprintf(out_text, size, "%d h ago", (int)(seconds / 3600));
    } else {
        snprintf(out_text, size, "%lld days ago", (long long)(seconds / 86400));
    }
}

// "free of total", in GiB, with a note where the numbers are estimated or remembered.
void format_memory(const struct device_entry *device, char *out_text, size_t size) {
    const double gib = 1024.0 * 1024.0 * 1024.0;
    const struct ggml_backend_dev_props *props = &device->props;
    char age[48] = "";
    if (device->memory == GGML_MEMORY_UNKNOWN) {
        snprintf(out_text, size, "unknown");
        return;
    }
    if (device->memory_age > 0) format_age(device->memory_age, age, sizeof(age));
    const char *note = age[0] ? age : device->memory == GGML_MEMORY_ESTIMATED ? "estimated" : NULL;
    snprintf(out_text, size, "%.1f of %.1f GiB free%s%s%s", (double)props->memory_free / gib,
             (double)props->memory_total / gib, note ? " (" : "", note ? note : "",
             note ? ")" : "");
}

// What the device-info extension tells, as one wrapped paragraph.
static void print_details(const struct page *page, const struct ggml_backend_feature *details) {
    enum { INDENT = 12 };
    if (!details || !details->name) return;
    unsigned column = (unsigned)printf("%*s", INDENT, "");
    for (; details->name; ++details) {
        column = put(page, column, INDENT, " %s %s%s", details->name, details->value,
                     details[1].name ? "," : "");
    }
    putchar('\n');
}

// Widths of the first columns.
struct columns {
    unsigned name, type, memory;
};

// Widths for the longest entry of each column, in columns of the terminal, not bytes.
static struct columns measure(const struct inventory *inventory) {
    struct columns columns = {8, 3, 8};
    for (size_t i = 0; i < inventory->n_devices; ++i) {
        const struct device_entry *device = &inventory->devices[i];
        char memory[96], name[128];
        format_memory(device, memory, sizeof(memory));
        sanitise(device->props.name, name, sizeof(name));
        const unsigned widths[] = {text_columns(name),
                                   text_columns(device_type_name(device->props.type)),
                                   text_columns(memory)};
        if (widths[0] > columns.name) columns.name = widths[0];
        if (widths[1] > columns.type) columns.type = widths[1];
        if (widths[2] > columns.memory) columns.memory = widths[2];
    }
    return columns;
}

// Prints a text and pads it to `width`; returns the column behind it. A longer one shifts the
// rest.
static unsigned put_cell(const struct page *page, unsigned column, unsigned width, const char *code,
                         const char *text) {
    char clean[128];
    sanitise(text, clean, sizeof(clean));
    const unsigned used = text_columns(clean), gap = used < width ? width - used : 0;
    printf("%s%s%s%*s", shade(page->colour, code), clean, shade(page->colour, PLAIN), (int)gap, "");
    return column + used + gap;
}

// One line per device; on a terminal that leaves less than LEAST_TEXT columns for the
// description, three lines.
static void print_device(const struct page *page, const struct device_entry *device,
                         const struct columns *columns) {
    enum { LEAST_TEXT = 36, INDENT = 2, HANGING = 4 };
    const unsigned text_at = INDENT + columns->name + columns->type + columns->memory + 6;
    const bool is_narrow = page->width > 0 && page->width < text_at + LEAST_TEXT;
    const unsigned hanging = is_narrow ? HANGING : text_at;
    char memory[96];
    format_memory(device, memory, sizeof(memory));
    unsigned column = (unsigned)printf("%*s", INDENT, "");
    column = put_cell(page, column, columns->name, BOLD, device->props.name);
    column += (unsigned)printf("  ");
    column = put_cell(page, column, columns->type, PLAIN, device_type_name(device->props.type));
    if (is_narrow) {
        column = (unsigned)printf("\n%*s", HANGING, "") - 1;
        put_cell(page, column, 0, PLAIN, memory);
        column = (unsigned)printf("\n%*s", HANGING, "") - 1;
    } else {
        column += (unsigned)printf("  ");
        column = put_cell(page, column, columns->memory, PLAIN, memory);
        column += (unsigned)printf("  ");
    }
    column = put(page, column, hanging, "%s", device->props.description);
    if (device->props.device_id)
        column = put(page, column, hanging, "  [%s]", device->props.device_id);
    if (device->alias_of)
        column = put(page, column, hanging, "  same hardware as %s", device->alias_of);
    if (device->process > 0)
        column =
            put(page, column, hanging, "  computed by process %lld", (long long)device->process);
    putchar('\n');
    if (page->verbose) print_details(page, device->details);
}

// A line in brackets, or nothing if there is nothing to say.
static void print_note(const struct page *page, const char *what, const char *why) {
    if (why[0] == '\0') return;
    unsigned column = (unsigned)printf("  ");
    put(page, column, 3, "(%s: %s)", what, why);
    putchar('\n');
}

static void print_devices(const struct page *page, const struct inventory *inventory) {
    const struct columns columns = measure(inventory);
    char missing[512];
    heading("Devices", page);
    if (inventory->n_devices == 0)
        put_line(page, 2, 2, "none: see below why each plugin was refused");
    for (size_t i = 0; i < inventory->n_devices; ++i)
        print_device(page, &inventory->devices[i], &columns);
    inventory_not_found(inventory, missing, sizeof(missing));
    print_note(page, "GGML_ISOLATE names no device or plugin here", missing);
}

// One line of text for a GPU that no plugin serves, with what would serve it.
void format_gpu(const struct unserved_gpu *gpu, char *out_text, size_t size) {
    const struct gpu *what = &gpu->gpu;
    char perhaps[160] = "";
    if (gpu->perhaps) {
        snprintf(perhaps, sizeof(perhaps), " (unless it is %.64s, whose plugin tells no address)",
                 gpu->perhaps);
    }
    snprintf(out_text, size, "%s%s%s [%04x:%04x], %s%s: %s%s", what->vendor_name,
             what->vendor_name[0] ? " " : "", what->model[0] ? what->model : "GPU", what->vendor,
             what->device, what->driver[0] ? "driver " : "no driver", what->driver, gpu->advice,
             perhaps);
}

// GPUs on the bus that no device serves, with what to install or why a plugin was refused.
// Display controllers are shown only with --verbose.
static void print_gpus(const struct page *page, const struct inventory *inventory) {
    bool any = false;
    for (size_t i = 0; i < inventory->n_gpus; ++i) {
        const struct unserved_gpu *gpu = &inventory->gpus[i];
        char text[1024];
        if (gpu->gpu.display_only && !page->verbose) continue;
        if (!any) heading("GPUs without a device", page);
        any = true;
        format_gpu(gpu, text, sizeof(text));
        unsigned column = (unsigned)printf("  ");
        column = put_cell(page, column, 14, BOLD, gpu->gpu.address);
        put(page, column, 10, "%s", text);
        putchar('\n');
    }
}

// Not wanted, as opposed to not fit.
static bool is_merely_unused(enum ggml_host_status status) {
    return status == GGML_HOST_SUPERSEDED || status == GGML_HOST_FILTERED ||
           status == GGML_HOST_DUPLICATE;
}

// Whether the message of a record says what the text of its status does.
static bool message_is_enough(const struct ggml_plugin_record *record) {
    switch (record->status) {
    case GGML_HOST_NOT_A_PLUGIN:
    case GGML_HOST_DAMAGED_FILE:
    case GGML_HOST_MISSING_DEPENDENCY:
    case GGML_HOST_LINK_FAILED:
    case GGML_HOST_NO_ENTRY:
    case GGML_HOST_INIT_FAILED:
    case GGML_HOST_FILTERED:
    case GGML_HOST_DUPLICATE:
    case GGML_HOST_UNTRUSTED: return record->message[0] != '\0';
    default: return false;
    }
}

// Without the path that stands above it.
static const char *message_of(const struct ggml_plugin_record *record) {
    const char *message = record->message;
    const size_t length = strlen(record->path);
    while (strncmp(message, record->path, length) == 0 && strncmp(message + length, ": ", 2) == 0)
        message += length + 2;
    return message;
}

// Why a plugin was refused: the status' text, unless the message says it too, and the missing
// library.
static void print_reason(const struct page *page, const struct ggml_plugin_record *record) {
    enum { INDENT = 10 };
    unsigned column = (unsigned)printf("%*s", INDENT, "");
    if (!message_is_enough(record))
        column = put(page, column, INDENT, "%s:", ggml_host_status_text(record->status));
    put(page, column, INDENT, "%s%s", column > INDENT ? " " : "", message_of(record));
    putchar('\n');
    if (record->missing[0]) {
        column = (unsigned)printf("%*s", INDENT, "");
        put(page, column, INDENT, "missing library: %s", record->missing);
        putchar('\n');
    }
}

// A plugin's verdict and path; below it what its note says, then the reason if it isn't used.
static void print_plugin(const struct page *page, const struct plugin_entry *plugin) {
    enum { INDENT = 10 };
    const struct ggml_plugin_record *record = plugin->record;
    const bool usable = plugin->usable, unused = is_merely_unused(record->status);
    printf("  %s%-7s%s ",
           shade(page->colour, usable   ? GREEN
                               : unused ? DIM
                                        : RED),
           usable   ? "in use"
           : unused ? "unused"
                    : "refused",
           shade(page->colour, PLAIN));
    put(page, INDENT, INDENT, "%s", record->path);
    putchar('\n');
    if (record->contract_major >= 0) {
        unsigned column = (unsigned)printf("%*s", INDENT, "");
        fputs(shade(page->colour, DIM), stdout);
        column = put(page, column, INDENT, "%s%s%s %s, contract %d.%d, %s", record->name,
                     record->variant[0] ? "-" : "", record->variant, record->version,
                     record->contract_major, record->contract_minor, machine_name(record->machine));
        if (!usable) put(page, column, INDENT, ", stage %s", ggml_plugin_stage_text(record->stage));
        printf("%s\n", shade(page->colour, PLAIN));
    }
    if (!usable) print_reason(page, record);
    if (usable && record->message[0]) {
        put(page, (unsigned)printf("%*s", INDENT, ""), INDENT, "%s", message_of(record));
        putchar('\n');
    }
    if (page->verbose)
        printf("%*s%.0f us, says the %s\n", INDENT, "", record->microseconds, plugin->source);
}

// A few names; a directory of the system's has thousands.
static void print_ignored(const struct page *page, const struct inventory *inventory,
                          size_t directory) {
    enum { SHOWN = 4, INDENT = 5 };
    size_t n = 0;
    unsigned column = INDENT;
    for (size_t i = 0; i < inventory->n_ignored; ++i) {
        const struct ignored_file *file = &inventory->ignored[i];
        if (file->directory != directory || ++n > SHOWN) continue;
        if (n == 1) column = (unsigned)printf("%*signored:", INDENT, "");
        column = put(page, column, INDENT, "%s %s", n > 1 ? "," : "", file->name);
    }
    if (n == 0) return;
    if (n > SHOWN) column = put(page, column, INDENT, " and %zu more", n - SHOWN);
    put(page, column, INDENT, " (plugins are named [lib]ggml-NAME[-VARIANT] before the suffix)");
    putchar('\n');
}

// The directories in the order of search, with what was wrong with each and the files ignored
// there.
static void print_search(const struct page *page, const struct inventory *inventory) {
    const struct ggml_plugin_directory *directory;
    heading("Searched, in this order", page);
    if (!inventory_directory(inventory, 0)) put_line(page, 2, 2, "nowhere");
    for (size_t i = 0; (directory = inventory_directory(inventory, i)) != NULL; ++i) {
        unsigned column = (unsigned)printf("  ");
        column = put(page, column, 5, "%zu. %s (%s)", i + 1, directory->path, directory->origin);
        if (directory->status == GGML_HOST_UNTRUSTED) {
            put(page, column, 5, ": refused, because others could change it: above is what to do");
        } else if (directory->status != GGML_HOST_OK) {
            put(page, column, 5, ": %s", ggml_host_status_text(directory->status));
        }
        putchar('\n');
        print_ignored(page, inventory, i);
    }
}

// Where the pages of large buffers lie, as the system says of one; NULL where there is one node, or
// nothing is said.
static const char *numa_memory(const struct ggml_host_topology *topology) {
#if defined(__linux__) && defined(SYS_get_mempolicy)
    enum { SIZE = 64 << 20, OF_ADDRESS = 2, INTERLEAVE = 3 }; // of the kernel's numbers
    int policy = 0;
    ggml_backend_buffer_t buffer =
        topology->n_numa_nodes > 1
            ? ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), SIZE)
            : NULL;
    if (!buffer) return NULL;
    char *middle = (char *)ggml_backend_buffer_get_base(buffer) + SIZE / 2;
    const bool told = syscall(SYS_get_mempolicy, &policy, NULL, 0UL, middle, OF_ADDRESS) == 0;
    ggml_backend_buffer_free(buffer);
    if (!told) return NULL;
    return policy == INTERLEAVE ? "large buffers are spread over the NUMA nodes in turn"
                                : "pages of buffers lie at the node that writes them first, or as "
                                  "numactl says";
#else
    (void)topology;
    return NULL;
#endif
}

// Cores, threads and instruction sets, as the library sees them.
static void print_machine(const struct page *page, const struct inventory *inventory) {
    const struct ggml_host_topology *topology = &inventory->topology;
    char text[512];
    heading("Machine", page);
    snprintf(text, sizeof(text),
             "%u package%s, %u core%s (%u performance), %u logical CPU%s allowed, %u NUMA node%s",
             topology->n_packages, topology->n_packages == 1 ? "" : "s", topology->n_cores,
             topology->n_cores == 1 ? "" : "s", topology->n_performance_cores, topology->n_pus,
             topology->n_pus == 1 ? "" : "s", topology->n_numa_nodes,
             topology->n_numa_nodes == 1 ? "" : "s");
    put_line(page, 2, 4, text);
    snprintf(text, sizeof(text), "%u thread%s by default, bounded by %s", topology->default_threads,
             topology->default_threads == 1 ? "" : "s",
             thread_bound_name((enum ggml_thread_bound)topology->default_threads_bound));
    put_line(page, 2, 4, text);
    const char *memory = numa_memory(topology);
    if (memory) put_line(page, 2, 4, memory);
    unsigned column = (unsigned)printf("  instruction sets:");
    const uint64_t features = ggml_host_cpu_features();
    for (unsigned bit = 0; bit < 64; ++bit) {
        const char *name = ggml_host_cpu_feature_name(bit);
        if (name && (features >> bit & 1)) column = put(page, column, 4, " %s", name);
    }
    putchar('\n');
}

void print_table(const struct inventory *inventory, const struct page *page) {
    print_devices(page, inventory);
    print_gpus(page, inventory);
    heading("Plugins", page);
    if (inventory->n_plugins == 0) put_line(page, 2, 2, "none found");
    for (size_t i = 0; i < inventory->n_plugins; ++i)
        print_plugin(page, &inventory->plugins[i]);
    print_note(page, "run in this process, not in a helper", inventory_not_isolated(inventory));
    if (page->verbose) {
        print_note(page, "results are not remembered", inventory_not_cached(inventory));
        print_note(page, "not wholly confined", inventory_not_sandboxed(inventory));
    }
    print_search(page, inventory);
    print_machine(page, inventory);
}

// One line per workload of a device, two on a terminal that is too narrow for it; a device that
// computes none of them counts as not tested.
void print_selftest(const struct device_entry *device, const struct selftest_result *results,
                    const struct page *page) {
    enum { INDENT = 43, NARROW_INDENT = 14, FIGURES = 42 };
    const bool is_narrow = page->width > 0 && page->width < INDENT + FIGURES;
    char name[128];
    bool computed = false;
    sanitise(device->props.name, name, sizeof(name));
    printf("%s%s%s\n", shade(page->colour, BOLD), name, shade(page->colour, PLAIN));
    for (int i = 0; i < SELFTEST_WORKLOADS; ++i) {
        const struct selftest_result *result = &results[i];
        const char *words[] = {"passed", "FAILED", "unsupported", "not run"};
        const char *code = result->verdict == SELFTEST_PASSED   ? GREEN
                           : result->verdict == SELFTEST_FAILED ? RED
                                                                : PLAIN;
        printf("  %s%-11s%s %-*s", shade(page->colour, code), words[result->verdict],
               shade(page->colour, PLAIN), is_narrow ? 0 : 29, result->workload);
        if (is_narrow) printf("\n%*s", NARROW_INDENT, "");
        const unsigned column = is_narrow ? NARROW_INDENT : INDENT;
        if (result->verdict == SELFTEST_PASSED) {
            put(page, column, column,
                is_narrow ? "%.3f ms, error %.2e (bound %.0e)"
                          : "%9.3f ms  error %.2e (bound %.0e)",
                result->milliseconds, result->error, result->bound);
        } else {
            put(page, column, is_narrow ? NARROW_INDENT : 4, "%s", result->message);
        }
        putchar('\n');
        computed |= result->verdict != SELFTEST_UNSUPPORTED;
    }
    if (!computed) {
        printf("  %snot tested%s  ", shade(page->colour, RED), shade(page->colour, PLAIN));
        put(page, 14, 14,
            "the device computes none of these; ggml-conformance --device '%s' has all operations",
            device->props.name);
        putchar('\n');
    }
}

void print_names(const struct inventory *inventory) {
    for (size_t i = 0; i < inventory->n_devices; ++i) {
        char name[128];
        sanitise(inventory->devices[i].props.name, name, sizeof(name));
        puts(name);
    }
}

void put_row(const struct page *page, const char *name, const char *text) {
    enum { INDENT = 24, NARROW_INDENT = 6 };
    const bool is_narrow = page->width > 0 && page->width < 2 * INDENT;
    char clean[64];
    if (!text) return;
    sanitise(name, clean, sizeof(clean));
    unsigned column = (unsigned)printf("  %-*s", is_narrow ? 0 : INDENT - 2, clean);
    if (is_narrow) {
        printf("\n%*s", NARROW_INDENT, "");
        column = NARROW_INDENT;
    }
    put(page, column, is_narrow ? NARROW_INDENT : INDENT, "%s", text);
    putchar('\n');
}

// All that is known of one device, one property a line.
void print_device_page(const struct device_entry *device, const struct page *page) {
    const struct ggml_backend_dev_caps *caps = &device->props.caps;
    char name[128], memory[96], flags[128];
    sanitise(device->props.name, name, sizeof(name));
    format_memory(device, memory, sizeof(memory));
    snprintf(flags, sizeof(flags), "%s%s%s%s%s", caps->async ? "asynchronous " : "",
             caps->events ? "events " : "", caps->host_buffer ? "host-buffers " : "",
             caps->buffer_from_host_ptr ? "buffers-from-pointers " : "",
             caps->mmap_support ? "mapped-files" : "");
    if (flags[0] && !caps->mmap_support) flags[strlen(flags) - 1] = '\0';
    printf("%s%s%s\n", shade(page->colour, BOLD), name, shade(page->colour, PLAIN));
    put_row(page, "description", device->props.description);
    put_row(page, "type", device_type_name(device->props.type));
    put_row(page, "address or UUID", device->props.device_id);
    put_row(page, "same hardware as", device->alias_of);
    if (device->process > 0) {
        char process[32];
        snprintf(process, sizeof(process), "%lld", (long long)device->process);
        put_row(page, "computed by process", process);
    }
    put_row(page, "memory", memory);
    put_row(page, "capabilities", flags[0] ? flags : "none");
    put_row(page, "plugin", device->plugin_name);
    put_row(page, "plugin's file", device->plugin_path);
    for (const struct ggml_backend_feature *detail = device->details; detail && detail->name;
         ++detail)
        put_row(page, detail->name, detail->value);
    print_operations(device, page);
}
