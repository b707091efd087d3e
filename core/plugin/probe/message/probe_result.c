// SPDX-License-Identifier: MIT
// Results of probes as bytes: written in the helper, read in the application. The reader trusts
// nothing: numbers are checked against their range and lengths against what is left.
#include "plugin/probe/message/probe_result.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "ggml-backend-impl.h"
#include "plugin/query/details.h"

enum { MESSAGE_SIZE = 1024, N_CAPS = 5 };

// Times are kept as doubles, which hold whole numbers up to here.
#define EXACT_MAX (UINT64_C(1) << 53)

static enum ggml_host_status no_memory(void) {
    return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for what a plugin says of itself");
}

void probe_result_free(struct probe_result *result) {
    arena_free(&result->arena);
    memset(result, 0, sizeof(*result));
}

// --- taking --------------------------------------------------------------------------------------

// Copies the properties of one device into the result's arena. Free memory is cut to the total.
// False if memory runs out.
static bool take_device(struct probe_result *result, const struct host_device *device) {
    struct ggml_backend_dev_props *props = &result->devices[result->n_devices];
    device->device->table->get_props(device->device, props);
    if (props->memory_free > props->memory_total) props->memory_free = props->memory_total;
    const char *description = props->description ? props->description : "";
    props->type = device->type;
    props->name = arena_strdup(&result->arena, device->name);
    props->device_id = arena_strdup(&result->arena, device->device_id);
    props->description = arena_strdup(&result->arena, description);
    ++result->n_devices;
    return props->name && props->device_id && props->description;
}

// Copies the details that the plugin reports for each device.
static bool take_details(struct probe_result *result, const struct host_plugin *plugin,
                         const struct device_list *list) {
    result->details = arena_alloc(&result->arena, list->count * sizeof(*result->details) + 1);
    for (size_t i = 0; result->details && i < list->count; ++i) {
        const struct ggml_backend_feature *from = plugin_details(plugin, list->items[i].device);
        if (!details_copy(&result->arena, from, &result->details[i])) return false;
    }
    return result->details != NULL;
}

// Copies all devices. Sizes are one byte larger, so that no devices is not mistaken for no memory.
// False if memory runs out.
static bool take_devices(struct probe_result *result, const struct host_plugin *plugin) {
    const struct device_list *list = plugin_devices(plugin);
    const size_t size = list->count * sizeof(*result->devices);
    result->devices = arena_alloc(&result->arena, size + 1);
    for (size_t i = 0; result->devices && i < list->count; ++i) {
        if (!take_device(result, &list->items[i])) return false;
    }
    return result->devices && take_details(result, plugin, list);
}

// Copies what the record and the plugin say; nothing of it refers to them afterwards.
enum ggml_host_status probe_result_take(struct probe_result *out_result,
                                        const struct record *record,
                                        const struct host_plugin *plugin) {
    memset(out_result, 0, sizeof(*out_result));
    out_result->stage = record->stage;
    out_result->status = record->status;
    out_result->microseconds = record->microseconds;
    out_result->message = arena_strdup(&out_result->arena, record->message);
    out_result->missing = arena_strdup(&out_result->arena, record->missing);
    const bool taken =
        out_result->message && out_result->missing && (!plugin || take_devices(out_result, plugin));
    if (taken) return GGML_HOST_OK;
    probe_result_free(out_result);
    return no_memory();
}

// A failure without a description of devices.
void probe_result_fail(struct probe_result *out_result, enum ggml_plugin_stage stage,
                       enum ggml_host_status status, const char *format, ...) {
    char text[MESSAGE_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    memset(out_result, 0, sizeof(*out_result));
    out_result->stage = stage;
    out_result->status = status;
    out_result->message = arena_strdup(&out_result->arena, text);
    if (!out_result->message) out_result->message = "";
    out_result->missing = "";
}

// --- files ---------------------------------------------------------------------------------------

void probe_file_id_write(const struct plugin_file_id *id, struct probe_writer *writer) {
    probe_put_u64(writer, id->device);
    probe_put_u64(writer, id->inode);
    probe_put_u64(writer, id->size);
    probe_put_u64(writer, (uint64_t)id->mtime_ns);
    probe_put_u64(writer, (uint64_t)id->ctime_ns);
}

struct plugin_file_id probe_file_id_read(struct probe_reader *reader) {
    struct plugin_file_id id;
    id.device = probe_get_u64(reader);
    id.inode = probe_get_u64(reader);
    id.size = probe_get_u64(reader);
    id.mtime_ns = (int64_t)probe_get_u64(reader);
    id.ctime_ns = (int64_t)probe_get_u64(reader);
    return id;
}

// --- writing -------------------------------------------------------------------------------------

// Bits in the order of the struct's members.
static uint32_t pack_caps(const struct ggml_backend_dev_caps *caps) {
    // A plugin may have left any byte in a bool.
    const bool *const flags[N_CAPS] = {&caps->async, &caps->host_buffer,
                                       &caps->buffer_from_host_ptr, &caps->events,
                                       &caps->mmap_support};
    uint32_t bits = 0;
    for (int i = 0; i < N_CAPS; ++i)
        bits |= (uint32_t)(*(const unsigned char *)flags[i] != 0) << i;
    return bits;
}

// Bit numbers are part of the protocol.
static void unpack_caps(uint32_t bits, struct ggml_backend_dev_caps *out_caps) {
    out_caps->async = bits & 1;
    out_caps->host_buffer = bits >> 1 & 1;
    out_caps->buffer_from_host_ptr = bits >> 2 & 1;
    out_caps->events = bits >> 3 & 1;
    out_caps->mmap_support = bits >> 4 & 1;
}

// A count, then pairs of texts; the list ends with a pair without a name.
static void put_details(struct probe_writer *writer, const struct ggml_backend_feature *list) {
    uint32_t n = 0;
    while (list && list[n].name)
        ++n;
    probe_put_u32(writer, n);
    for (uint32_t i = 0; i < n; ++i) {
        probe_put_text(writer, list[i].name);
        probe_put_text(writer, list[i].value);
    }
}

static void put_cpu(struct probe_writer *writer, const struct topology_cpu *cpu) {
    const uint32_t numbers[] = {cpu->core,         cpu->package,      cpu->node,        cpu->speed,
                                cpu->cache_kib[0], cpu->cache_kib[1], cpu->cache_kib[2]};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); ++i)
        probe_put_u32(writer, numbers[i]);
}

// The order of the fields is the format; PROBE_PROTOCOL_VERSION covers every change.
void probe_result_write(const struct probe_result *result, struct probe_writer *writer) {
    probe_put_u32(writer, (uint32_t)result->stage);
    probe_put_u32(writer, (uint32_t)result->status);
    probe_put_u64(writer, (uint64_t)result->microseconds);
    probe_put_text(writer, result->message);
    probe_put_text(writer, result->missing);
    probe_put_u32(writer, (uint32_t)result->n_devices);
    for (size_t i = 0; i < result->n_devices; ++i) {
        const struct ggml_backend_dev_props *props = &result->devices[i];
        probe_put_text(writer, props->name);
        probe_put_text(writer, props->description);
        probe_put_text(writer, props->device_id);
        probe_put_u32(writer, (uint32_t)props->type);
        probe_put_u64(writer, props->memory_free);
        probe_put_u64(writer, props->memory_total);
        probe_put_u32(writer, pack_caps(&props->caps));
        put_details(writer, result->details ? result->details[i] : NULL);
    }
    probe_put_u32(writer, (uint32_t)result->n_libraries);
    for (size_t i = 0; i < result->n_libraries; ++i) {
        const struct probe_library *library = &result->libraries[i];
        probe_put_text(writer, library->path);
        probe_file_id_write(&library->file, writer);
    }
    probe_put_u32(writer, (uint32_t)result->n_cpus);
    for (size_t i = 0; i < result->n_cpus; ++i)
        put_cpu(writer, &result->cpus[i]);
}

// --- reading -------------------------------------------------------------------------------------

// Whether the number is a status; generated from the list, which has gaps.
static bool is_known_status(uint32_t status) {
    switch (status) {
#define GGML_HOST_STATUS_ROW(number, name, text) case number:
#include "status_list.inl"
        return true;
    default: return false;
    }
}

// A size. One that this machine's addresses can't hold is damage.
static size_t get_size(struct probe_reader *reader) {
    const uint64_t value = probe_get_u64(reader);
    if (value > SIZE_MAX) reader->damaged = true;
    return (size_t)value;
}

// Reads one device. The caller checks reader->damaged at the end: reading on after an error yields
// zeros.
static void get_device(struct probe_reader *reader, struct arena *arena,
                       struct ggml_backend_dev_props *out_props) {
    out_props->name = probe_get_text(reader, arena);
    out_props->description = probe_get_text(reader, arena);
    out_props->device_id = probe_get_text(reader, arena);
    const uint32_t type = probe_get_u32(reader);
    out_props->memory_free = get_size(reader);
    out_props->memory_total = get_size(reader);
    const uint32_t caps = probe_get_u32(reader);
    if (out_props->name[0] == '\0' || type > GGML_BACKEND_DEVICE_TYPE_META || caps >> N_CAPS) {
        reader->damaged = true;
    }
    out_props->type = (enum ggml_backend_dev_type)type;
    unpack_caps(caps, &out_props->caps);
}

// Reads the details of a device; NULL if there are none. The limit bounds what a damaged count can
// allocate.
static const struct ggml_backend_feature *get_details(struct probe_reader *reader,
                                                      struct arena *arena) {
    const uint32_t n = probe_get_u32(reader);
    if (n > GGML_DEVICE_INFO_MAX_PAIRS) reader->damaged = true;
    if (n == 0 || reader->damaged || reader->no_memory) return NULL;
    struct ggml_backend_feature *list = arena_alloc(arena, (n + 1) * sizeof(*list));
    if (!list) reader->no_memory = true;
    for (uint32_t i = 0; list && i < n; ++i) {
        list[i].name = probe_get_text(reader, arena);
        list[i].value = probe_get_text(reader, arena);
    }
    if (list) list[n] = (struct ggml_backend_feature){NULL, NULL};
    return list;
}

// The count is checked before memory is allocated for it: the other process isn't trusted.
static void get_devices(struct probe_reader *reader, struct probe_result *result) {
    const uint32_t count = probe_get_u32(reader);
    if (count > PROBE_DEVICES_MAX) reader->damaged = true;
    if (reader->damaged || reader->no_memory) return;
    result->devices = arena_alloc(&result->arena, count * sizeof(*result->devices) + 1);
    result->details = arena_alloc(&result->arena, count * sizeof(*result->details) + 1);
    if (!result->devices || !result->details) reader->no_memory = true;
    for (size_t i = 0; i < count && !reader->damaged && !reader->no_memory; ++i) {
        get_device(reader, &result->arena, &result->devices[i]);
        result->details[i] = get_details(reader, &result->arena);
        ++result->n_devices;
    }
}

// Reads one library; its path is absolute, as the dynamic linker has it.
static void get_library(struct probe_reader *reader, struct arena *arena,
                        struct probe_library *out_library) {
    out_library->path = probe_get_text(reader, arena);
    out_library->file = probe_file_id_read(reader);
    if (out_library->path[0] != '/') reader->damaged = true;
}

static void get_libraries(struct probe_reader *reader, struct probe_result *result) {
    const uint32_t count = probe_get_u32(reader);
    if (count > PROBE_LIBRARIES_MAX) reader->damaged = true;
    if (reader->damaged || reader->no_memory) return;
    result->libraries = arena_alloc(&result->arena, count * sizeof(*result->libraries) + 1);
    if (!result->libraries) reader->no_memory = true;
    for (uint32_t i = 0; i < count && !reader->damaged && !reader->no_memory; ++i) {
        get_library(reader, &result->arena, &result->libraries[i]);
        ++result->n_libraries;
    }
}

// The CPUs of a machine; checked as a table before anybody indexes by them.
static void get_cpus(struct probe_reader *reader, struct probe_result *result) {
    const uint32_t count = probe_get_u32(reader);
    if (count > TOPOLOGY_CPUS_MAX) reader->damaged = true;
    if (count == 0 || reader->damaged || reader->no_memory) return;
    result->cpus = arena_alloc(&result->arena, count * sizeof(*result->cpus));
    if (!result->cpus) reader->no_memory = true;
    for (uint32_t i = 0; i < count && !reader->no_memory; ++i) {
        struct topology_cpu *cpu = &result->cpus[i];
        uint32_t *const numbers[] = {&cpu->core,        &cpu->package,      &cpu->node,
                                     &cpu->speed,       &cpu->cache_kib[0], &cpu->cache_kib[1],
                                     &cpu->cache_kib[2]};
        for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); ++k)
            *numbers[k] = probe_get_u32(reader);
    }
    if (reader->damaged || reader->no_memory) return;
    result->n_cpus = count;
    if (!topology_table_valid(result->cpus, count)) reader->damaged = true;
}

// Accepts only a result that is complete and consistent: every byte used, known status, and success
// only at the last stage.
enum ggml_host_status probe_result_read(const void *bytes, size_t size,
                                        struct probe_result *out_result) {
    struct probe_reader reader = {.data = bytes, .size = size};
    memset(out_result, 0, sizeof(*out_result));
    const uint32_t stage = probe_get_u32(&reader);
    const uint32_t status = probe_get_u32(&reader);
    const uint64_t microseconds = probe_get_u64(&reader);
    if (microseconds > EXACT_MAX) reader.damaged = true;
    out_result->microseconds = (double)microseconds;
    out_result->message = probe_get_text(&reader, &out_result->arena);
    out_result->missing = probe_get_text(&reader, &out_result->arena);
    get_devices(&reader, out_result);
    get_libraries(&reader, out_result);
    get_cpus(&reader, out_result);
    out_result->stage = (enum ggml_plugin_stage)stage;
    out_result->status = (enum ggml_host_status)status;
    const bool ready = stage == GGML_PLUGIN_STAGE_READY;
    const bool whole = !reader.damaged && reader.at == size && stage <= GGML_PLUGIN_STAGE_READY &&
                       is_known_status(status) && (status != GGML_HOST_OK || ready);
    if (whole && !reader.no_memory) return GGML_HOST_OK;
    probe_result_free(out_result);
    if (reader.no_memory) return no_memory();
    return ggml_fail(GGML_HOST_DAMAGED_FILE, "the %zu bytes are no result of a probe", size);
}
