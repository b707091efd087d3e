// SPDX-License-Identifier: MIT
// What the backend and its devices say of themselves.
#define _GNU_SOURCE
#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elf_view.h"
#include "exercise.h"
#include "ggml-host.h"
#include "state.h"
#include "subject.h"

enum { MAX_NAME = 128, N_THREADS = 4, N_ROUNDS = 200 };

// Fails the check for a text that is NULL, empty or not UTF-8.
static void check_text(const struct check_run *run, const char *text, const char *what) {
    CHECK_THAT(run, text, "%s is NULL", what);
    CHECK_THAT(run, text[0] != '\0', "%s is empty", what);
    CHECK_THAT(run, valid_utf8(text), "%s is not valid UTF-8", what);
}

// --- backend -------------------------------------------------------------------------------------

// The size of a table tells how far it may be read; everything up to `reserved` is of contract
// 1.0.
void enum_backend_table(struct check_run *run) {
    struct subject subject;
    subject_open(run, &subject);
    const struct ggml_backend_table *table = subject.table->reg->table;
    CHECK_THAT(run, table, "the backend has no table");
    CHECK_THAT(run, table->size >= offsetof(struct ggml_backend_table, reserved),
               "the table of the backend is %u bytes long, less than that of contract 1.0",
               (unsigned)table->size);
}

void enum_backend_entries(struct check_run *run) {
    struct subject subject;
    subject_open(run, &subject);
    const struct ggml_backend_table *table = subject.table->reg->table;
    CHECK_THAT(run, table->get_name, "get_name is missing");
    CHECK_THAT(run, table->get_device_count, "get_device_count is missing");
    CHECK_THAT(run, table->get_device, "get_device is missing");
}

void enum_backend_name(struct check_run *run) {
    struct subject subject;
    subject_open(run, &subject);
    ggml_backend_reg_t reg = subject.table->reg;
    const char *name = reg->table->get_name(reg);
    check_text(run, name, "the backend's name");
    CHECK_THAT(run, strlen(name) < MAX_NAME, "the backend's name has %zu bytes", strlen(name));
    CHECK_THAT(run, strcmp(reg->table->get_name(reg), name) == 0, "the backend's name changes");
}

// Fails the check if a reserved slot has a value.
static void check_zero(const struct check_run *run, const void *slots, size_t size,
                       const char *what) {
    for (size_t i = 0; i < size; ++i)
        CHECK_THAT(run, ((const char *)slots)[i] == 0, "a reserved slot of %s is not zero", what);
}

// Slots that this program doesn't know may have a meaning in a later contract: newer plugins are
// not checked.
void enum_backend_reserved(struct check_run *run) {
    struct subject subject;
    if (elf_view_is_newer(run)) check_skip(run, "the plugin may know more than this program");
    subject_open(run, &subject);
    const struct ggml_backend_reg *reg = subject.table->reg;
    check_zero(run, reg->reserved, sizeof(reg->reserved), "the backend");
    check_zero(run, reg->table->reserved, sizeof(reg->table->reserved), "its interface");
}

// A plugin that returns any pointer for an unknown name would have it called.
void enum_unknown_function(struct check_run *run) {
    struct subject subject;
    subject_open(run, &subject);
    ggml_backend_reg_t reg = subject.table->reg;
    if (!reg->table->get_proc_address) check_skip(run, "it has no named functions");
    CHECK_THAT(run, !reg->table->get_proc_address(reg, "ggml_no_such_function"),
               "returns a function that does not exist");
    CHECK_THAT(run, !reg->table->get_proc_address(reg, ""), "returns a function without a name");
}

// Walks the list of features to its end, which is a NULL name.
void enum_features(struct check_run *run) {
    struct subject subject;
    subject_open(run, &subject);
    ggml_backend_reg_t reg = subject.table->reg;
    ggml_backend_get_features_t features = NULL;
    if (reg->table->get_proc_address)
        *(void **)&features = reg->table->get_proc_address(reg, "ggml_backend_get_features");
    if (!features) check_skip(run, "it lists no features");
    const struct ggml_backend_feature *feature = features(reg);
    CHECK_THAT(run, feature, "returns NULL");
    for (int i = 0; feature[i].name; ++i) {
        CHECK_THAT(run, i < 1000, "the list has no end");
        check_text(run, feature[i].name, "a feature's name");
        CHECK_THAT(run, feature[i].value, "feature %s has no value", feature[i].name);
    }
}

// --- device objects ------------------------------------------------------------------------------

// With the flag for it the number may grow.
void enum_count(struct check_run *run) {
    struct subject subject;
    struct ggml_plugin_note note;
    const bool grows =
        elf_view_read_note(run, &note) && note.flags & GGML_PLUGIN_FLAG_DYNAMIC_DEVICES;
    subject_open(run, &subject);
    ggml_backend_reg_t reg = subject.table->reg;
    const size_t count = reg->table->get_device_count(reg);
    CHECK_THAT(run, count <= 1024, "%zu devices", count);
    for (int i = 0; i < 10; ++i) {
        const size_t again = reg->table->get_device_count(reg);
        CHECK_THAT(run, again == count || (grows && again > count), "%zu devices, then %zu", count,
                   again);
    }
}

void enum_objects(struct check_run *run) {
    struct subject subject;
    subject_open(run, &subject);
    ggml_backend_reg_t reg = subject.table->reg;
    for (size_t i = 0; i < reg->table->get_device_count(reg); ++i)
        CHECK_THAT(run, reg->table->get_device(reg, i), "device %zu is NULL", i);
}

// A device is one object: the same pointer for the same index, another one for another index.
// Hosts compare devices by address.
void enum_objects_stable(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    ggml_backend_reg_t reg = devices.reg;
    const size_t count = reg->table->get_device_count(reg);
    for (size_t i = 0; i < count; ++i) {
        ggml_backend_dev_t device = reg->table->get_device(reg, i);
        CHECK_THAT(run, reg->table->get_device(reg, i) == device, "device %zu is another each time",
                   i);
        for (size_t j = 0; j < i; ++j) {
            CHECK_THAT(run, reg->table->get_device(reg, j) != device, "devices %zu and %zu are one",
                       j, i);
        }
    }
}

void enum_back_pointer(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        CHECK_THAT(run, devices.items[i]->reg == devices.reg,
                   "device %d does not point back to its backend", i);
    }
}

// All devices, also when one was chosen on the command line: the host refuses the whole plugin
// for one that lacks an entry.
void enum_entries(struct check_run *run) {
    struct devices devices;
    struct check_run any_device = *run;
    any_device.device = NULL;
    devices_open(&any_device, &devices);
    for (int i = 0; i < devices.n; ++i) {
        const struct ggml_device_table *table = devices.items[i]->table;
        CHECK_THAT(run, table && table->size >= offsetof(struct ggml_device_table, reserved),
                   "a device has no table of contract 1.0");
        CHECK_THAT(run, table->get_name, "get_name is missing");
        CHECK_THAT(run, table->get_description, "get_description is missing");
        CHECK_THAT(run, table->get_memory, "get_memory is missing");
        CHECK_THAT(run, table->get_type, "get_type is missing");
        CHECK_THAT(run, table->get_props, "get_props is missing");
        CHECK_THAT(run, table->init_backend, "init_backend is missing");
        CHECK_THAT(run, table->get_buffer_type, "get_buffer_type is missing");
        CHECK_THAT(run, table->supports_op, "supports_op is missing");
        CHECK_THAT(run, table->supports_buft, "supports_buft is missing");
    }
}

// Only devices that make an event here; enum.caps-events compares with what they claim.
void enum_event_entries(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        ggml_backend_dev_t device = devices.items[i];
        ggml_backend_event_t event = device->table->event_new ? make_event(device) : NULL;
        if (!event) continue;
        CHECK_THAT(
            run, event->table && event->table->size >= offsetof(struct ggml_event_table, reserved),
            "%s: an event has no table, or a short one", label(device));
        CHECK_THAT(run, event->table->free, "%s: an event has no free", label(device));
        CHECK_THAT(run, event->table->synchronize, "%s: an event has no synchronize",
                   label(device));
        event->table->free(event);
    }
}

void enum_device_reserved(struct check_run *run) {
    struct devices devices;
    if (elf_view_is_newer(run)) check_skip(run, "the plugin may know more than this program");
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        const struct ggml_backend_device *device = devices.items[i];
        check_zero(run, device->reserved, sizeof(device->reserved), "a device");
        check_zero(run, device->table->reserved, sizeof(device->table->reserved), "its interface");
    }
}

// --- what a device says --------------------------------------------------------------------------

void enum_name(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        const char *name = devices.items[i]->table->get_name(devices.items[i]);
        check_text(run, name, "a device's name");
        CHECK_THAT(run, strlen(name) < MAX_NAME, "a device's name has %zu bytes", strlen(name));
    }
}

// Users choose devices by name, so two of a plugin may not share one.
void enum_name_unique(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        for (int j = 0; j < i; ++j) {
            CHECK_THAT(run, strcmp(label(devices.items[i]), label(devices.items[j])) != 0,
                       "two devices are called %s", label(devices.items[i]));
        }
    }
}

// Compares a copy of the first answer with the second one, and with the text that the first
// pointer leads to now: both have to stay, as hosts keep the pointer.
void enum_name_constant(struct check_run *run) {
    struct devices devices;
    char name[MAX_NAME];
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        ggml_backend_dev_t device = devices.items[i];
        const char *first = device->table->get_name(device);
        strncpy(name, first, sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        const char *second = device->table->get_name(device);
        CHECK_THAT(run, strcmp(second, name) == 0 && strcmp(first, name) == 0,
                   "a device is called %s, then %s", name, second);
    }
}

void enum_description(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        const char *text = devices.items[i]->table->get_description(devices.items[i]);
        CHECK_THAT(run, text && valid_utf8(text), "the description of %s is NULL or not UTF-8",
                   label(devices.items[i]));
    }
}

// Free memory never exceeds the total, and both are set.
void enum_memory(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        size_t free_bytes = SIZE_MAX, total_bytes = 0;
        devices.items[i]->table->get_memory(devices.items[i], &free_bytes, &total_bytes);
        CHECK_THAT(run, free_bytes <= total_bytes, "%s: %zu bytes free of %zu",
                   label(devices.items[i]), free_bytes, total_bytes);
    }
}

void enum_type(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        const int type = (int)devices.items[i]->table->get_type(devices.items[i]);
        CHECK_THAT(run, type >= 0 && type <= GGML_BACKEND_DEVICE_TYPE_META, "%s: type %d",
                   label(devices.items[i]), type);
        CHECK_THAT(run, (int)devices.items[i]->table->get_type(devices.items[i]) == type,
                   "%s: its type changes", label(devices.items[i]));
    }
}

// What get_props fills in, of a struct that was zero before.
static struct ggml_backend_dev_props props_of(ggml_backend_dev_t device) {
    struct ggml_backend_dev_props props;
    memset(&props, 0, sizeof(props));
    device->table->get_props(device, &props);
    return props;
}

static bool same_text(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

// argument: 0 name, 1 description, 2 type, 3 memory.
void enum_props(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        ggml_backend_dev_t device = devices.items[i];
        const struct ggml_backend_dev_props props = props_of(device);
        size_t free_bytes = 0, total_bytes = 0;
        device->table->get_memory(device, &free_bytes, &total_bytes);
        const bool agrees[] = {same_text(props.name, device->table->get_name(device)),
                               same_text(props.description, device->table->get_description(device)),
                               props.type == device->table->get_type(device),
                               props.memory_total == total_bytes &&
                                   props.memory_free <= props.memory_total};
        CHECK_THAT(run, agrees[run->check->argument], "get_props of %s differs", label(device));
    }
}

// Whether an id has the shape of a PCI address, "0000:00:00.0".
static bool looks_like_pci(const char *id) {
    return strlen(id) == 12 && id[4] == ':' && id[7] == ':' && id[10] == '.';
}

// An id may be any text; one in the shape of a PCI address has to be one, in lower case, as the
// host finds the same hardware in several plugins by it.
void enum_id(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        const char *id = props_of(devices.items[i]).device_id;
        if (!id) continue;
        check_text(run, id, "a device's id");
        for (int j = 0; looks_like_pci(id) && j < 12; ++j) {
            const bool digit = isdigit((unsigned char)id[j]) || (id[j] >= 'a' && id[j] <= 'f');
            CHECK_THAT(run, digit || j == 4 || j == 7 || j == 10,
                       "'%s' is not a PCI address in lower case", id);
        }
    }
}

// The text is copied first: the second call may write over it.
void enum_id_constant(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        const char *id = props_of(devices.items[i]).device_id;
        char *copy = strdup(id ? id : "");
        const char *again = props_of(devices.items[i]).device_id;
        CHECK_THAT(run, copy && strcmp(copy, again ? again : "") == 0, "the id of %s changes",
                   label(devices.items[i]));
    }
}

// A text that ends within the extension's limit and is UTF-8.
static bool is_detail(const char *text) {
    return text && strnlen(text, GGML_DEVICE_INFO_MAX_TEXT) < GGML_DEVICE_INFO_MAX_TEXT &&
           valid_utf8(text);
}

static bool is_detail_key(const char *text) {
    return is_detail(text) && text[0] != '\0' &&
           text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0';
}

// Walks the list of keys and values of a device: bounded, with valid texts, and no key twice.
// O(n^2) for at most GGML_DEVICE_INFO_MAX_PAIRS keys.
static void check_details(const struct check_run *run, const struct ggml_backend_feature *list,
                          const char *device) {
    int n = 0;
    for (; list[n].name; ++n) {
        CHECK_THAT(run, n < GGML_DEVICE_INFO_MAX_PAIRS, "%s: the list has no end, or over %d keys",
                   device, GGML_DEVICE_INFO_MAX_PAIRS);
        CHECK_THAT(run, is_detail_key(list[n].name),
                   "%s: key %d is not lower-case letters, digits and '-'", device, n);
        CHECK_THAT(run, is_detail(list[n].value), "%s: the value of %s is no text", device,
                   list[n].name);
        for (int i = 0; i < n; ++i) {
            CHECK_THAT(run, strcmp(list[i].name, list[n].name) != 0, "%s: %s comes twice", device,
                       list[n].name);
        }
    }
}

// The list must be the same object each time, as the host keeps it.
void enum_details(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    const struct ggml_plugin_table *table = devices.subject.table;
    if (!table->get_extension) check_skip(run, "it has no extensions");
    const struct ggml_extension_device_info *extension = table->get_extension(
        table, GGML_EXTENSION_DEVICE_INFO, GGML_EXTENSION_DEVICE_INFO_REVISION);
    if (!extension) check_skip(run, "it does not offer " GGML_EXTENSION_DEVICE_INFO);
    CHECK_THAT(run, extension->size >= sizeof(*extension) && extension->info,
               "the table of the extension is short, or its entry NULL");
    for (int i = 0; i < devices.n; ++i) {
        ggml_backend_dev_t device = devices.items[i];
        const struct ggml_backend_feature *list = extension->info(device);
        if (!list) continue;
        check_details(run, list, label(device));
        CHECK_THAT(run, extension->info(device) == list, "%s: another list each time",
                   label(device));
    }
}

// --- claims --------------------------------------------------------------------------------------

// A device that claims asynchronous streams needs synchronize, or no caller could wait.
void enum_caps_async(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        ggml_backend_dev_t device = devices.items[i];
        if (!props_of(device).caps.async) continue;
        ggml_backend_t stream = make_stream(device, NULL);
        if (!stream || !stream->table) check_skip(run, "no stream that can be called");
        CHECK_THAT(run, stream->table->synchronize, "%s queues but has no synchronize",
                   label(device));
        ggml_backend_free(stream);
    }
}

// Claim and entry agree in both directions, and the type is host memory indeed.
void enum_caps_host_buffer(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        ggml_backend_dev_t device = devices.items[i];
        if (!props_of(device).caps.host_buffer) {
            CHECK_THAT(run,
                       !device->table->get_host_buffer_type ||
                           !device->table->get_host_buffer_type(device),
                       "%s has host buffers and does not say so", label(device));
            continue;
        }
        CHECK_THAT(run, device->table->get_host_buffer_type, "%s claims host buffers without entry",
                   label(device));
        ggml_backend_buffer_type_t buft = device->table->get_host_buffer_type(device);
        CHECK_THAT(run, buft, "%s claims host buffers and has no type for them", label(device));
        if (!buft->table) check_skip(run, "no type that can be called");
        CHECK_THAT(run, buft->table->is_host && buft->table->is_host(buft),
                   "the host buffers of %s are not host memory", label(device));
    }
}

// Claim and entry agree in both directions, tried with 64 KiB aligned to their size.
void enum_caps_host_ptr(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        ggml_backend_dev_t device = devices.items[i];
        void *memory = aligned_alloc(65536, 65536);
        CHECK_THAT(run, memory, "no memory");
        if (!props_of(device).caps.buffer_from_host_ptr) {
            CHECK_THAT(run, !wrap_memory(device, memory, 65536, 65536),
                       "%s wraps host memory and does not say so", label(device));
            continue;
        }
        CHECK_THAT(run, device->table->buffer_from_host_ptr, "%s claims it without entry",
                   label(device));
        ggml_backend_buffer_t buffer = wrap_memory(device, memory, 65536, 65536);
        CHECK_THAT(run, buffer, "%s does not wrap host memory: %s", label(device),
                   host_counters.last_error);
        if (!buffer->table) check_skip(run, "no buffer that can be called");
        ggml_backend_buffer_free(buffer);
        free(memory);
    }
}

// Claim and entry agree in both directions, tried by making an event.
void enum_caps_events(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        ggml_backend_dev_t device = devices.items[i];
        if (!props_of(device).caps.events) {
            CHECK_THAT(run, !make_event(device), "%s makes events and does not say so",
                       label(device));
            continue;
        }
        CHECK_THAT(run, device->table->event_new, "%s claims events without entry", label(device));
        ggml_backend_event_t event = make_event(device);
        CHECK_THAT(run, event, "%s claims events and makes none", label(device));
        CHECK_THAT(run, event->table && event->table->free, "%s: an event has no free",
                   label(device));
        event->table->free(event);
    }
}

void enum_buffer_type(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        ggml_backend_dev_t device = devices.items[i];
        ggml_backend_buffer_type_t buft = device->table->get_buffer_type(device);
        CHECK_THAT(run, buft, "%s has no buffer type", label(device));
        CHECK_THAT(run, device->table->get_buffer_type(device) == buft,
                   "%s returns another buffer type each time", label(device));
    }
}

void enum_supports_own(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        ggml_backend_dev_t device = devices.items[i];
        CHECK_THAT(run,
                   device->table->supports_buft(device, device->table->get_buffer_type(device)),
                   "%s does not support its own buffer type", label(device));
    }
}

static const char *stranger_name(ggml_backend_buffer_type_t buft) {
    (void)buft;
    return "a stranger";
}

// Memory of a device that the plugin has never seen: supporting it would mean reading addresses
// that mean nothing to it.
void enum_supports_strange(struct check_run *run) {
    struct ggml_backend_device other = {.context = NULL};
    static const struct ggml_buffer_type_table table = {.size = sizeof(table),
                                                        .get_name = stranger_name};
    struct ggml_backend_buffer_type stranger = {.table = &table, .device = &other};
    struct devices devices;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        ggml_backend_dev_t device = devices.items[i];
        CHECK_THAT(run, !device->table->supports_buft(device, &stranger),
                   "%s supports the memory of a strange device", label(device));
    }
}

// --- cost and threads ----------------------------------------------------------------------------

// `node` is any node.
static void enumerate(ggml_backend_dev_t device, const struct ggml_tensor *node) {
    size_t free_bytes, total_bytes;
    device->table->get_name(device);
    device->table->get_description(device);
    device->table->get_memory(device, &free_bytes, &total_bytes);
    device->table->get_type(device);
    props_of(device);
    device->table->supports_buft(device, device->table->get_buffer_type(device));
    device->table->supports_op(device, node);
}

// argument: enum state_kind.
void enum_leaves(struct check_run *run) {
    const enum state_kind kind = (enum state_kind)run->check->argument;
    struct devices devices;
    struct sum_graph sum;
    devices_open(run, &devices);
    CHECK_THAT(run, sum_graph_new(&sum, 64), "no memory");
    const char *before = state_text(kind, run->path);
    for (int i = 0; i < devices.n; ++i)
        enumerate(devices.items[i], sum.sum);
    const char *after = state_text(kind, run->path);
    CHECK_THAT(run, before && after && strcmp(before, after) == 0, "'%s' became '%s'",
               before ? before : "", after ? after : "");
}

// What a device says when one thread asks alone.
struct answers {
    ggml_backend_dev_t device;
    char name[MAX_NAME];
    char description[MAX_NAME];
    char id[MAX_NAME];
    enum ggml_backend_dev_type type;
    ggml_backend_buffer_type_t buft;
    size_t total_bytes;
};

// Copies all texts: pointers would be equal though their text has changed.
static struct answers answers_of(ggml_backend_dev_t device) {
    struct answers answers = {.device = device};
    size_t free_bytes;
    const char *id = props_of(device).device_id;
    snprintf(answers.name, MAX_NAME, "%s", label(device));
    snprintf(answers.description, MAX_NAME, "%s", device->table->get_description(device));
    snprintf(answers.id, MAX_NAME, "%s", id ? id : "");
    answers.type = device->table->get_type(device);
    answers.buft = device->table->get_buffer_type(device);
    device->table->get_memory(device, &free_bytes, &answers.total_bytes);
    return answers;
}

static bool same_answers(const struct answers *a, const struct answers *b) {
    return strcmp(a->name, b->name) == 0 && strcmp(a->description, b->description) == 0 &&
           strcmp(a->id, b->id) == 0 && a->type == b->type && a->buft == b->buft &&
           a->total_bytes == b->total_bytes;
}

struct listing {
    struct answers of[MAX_DEVICES];
    int n;
};

// A thread, and the device that it begins with.
struct lister {
    struct listing *listing;
    int first;
};

// What the first device said whose data differ now, or NULL.
static void *enumerate_often(void *argument) {
    const struct lister *lister = argument;
    struct listing *listing = lister->listing;
    for (int i = 0; i < N_ROUNDS * listing->n; ++i) {
        struct answers *expected = &listing->of[(lister->first + i) % listing->n];
        const struct answers actual = answers_of(expected->device);
        if (!same_answers(expected, &actual)) return expected;
    }
    return NULL;
}

// Compares what N_THREADS threads read, again and again, with what one thread read before.
void enum_threads(struct check_run *run) {
    static struct listing listing;
    struct devices devices;
    pthread_t threads[N_THREADS];
    struct lister listers[N_THREADS];
    devices_open(run, &devices);
    listing.n = devices.n;
    for (int i = 0; i < devices.n; ++i)
        listing.of[i] = answers_of(devices.items[i]);
    for (int i = 0; i < N_THREADS; ++i) {
        listers[i] = (struct lister){&listing, i};
        CHECK_THAT(run, pthread_create(&threads[i], NULL, enumerate_often, &listers[i]) == 0,
                   "no thread");
    }
    for (int i = 0; i < N_THREADS; ++i) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        CHECK_THAT(run, !wrong, "%s answers otherwise while other threads ask",
                   wrong ? ((const struct answers *)wrong)->name : "");
    }
}
