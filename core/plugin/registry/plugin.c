// SPDX-License-Identifier: MIT
// Registered backends: devices are listed and their tables verified once. What a plugin reports is
// bounded (devices, sizes of tables) before it is used.
#include "plugin/registry/plugin.h"

#include <string.h>

#include "base/data/text.h"
#include "base/mem.h"
#include "base/status.h"
#include "device/check.h"
#include "ggml-backend-impl.h"
#include "plugin/discover/search_path.h"
#include "plugin/registry/isolation.h"
#include "plugin/registry/process_state.h"

enum { MAX_DEVICES = 1024, MAX_TABLE_SIZE = 1 << 16 };

// The folder of an absolute path, without a final separator except for the root.
static char *folder_of(struct arena *arena, const char *path) {
    char *folder = arena_strdup(arena, path);
    if (!folder) return NULL;
    char *end = folder + (search_path_file_name(path) - path);
    while (end > folder + 1 && search_path_is_separator(end[-1]) && end[-2] != ':')
        --end;
    *end = '\0';
    return folder;
}

struct host_plugin *plugin_new(const char *path, const char *name) {
    struct host_plugin *plugin = ggml_mem_calloc(1, sizeof(*plugin));
    if (!plugin) goto fail;
    plugin->path = arena_strdup(&plugin->arena, path);
    plugin->name = arena_strdup(&plugin->arena, name);
    const bool is_file = search_path_is_absolute(path);
    if (is_file) plugin->folder = folder_of(&plugin->arena, path);
    plugin->reg_name = "";
    plugin->contract_minor = GGML_CONTRACT_MINOR;
    if (plugin->path && plugin->name && (plugin->folder || !is_file)) return plugin;
fail:
    if (plugin) arena_free(&plugin->arena);
    ggml_mem_free(plugin);
    ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory to load '%s'", path);
    return NULL;
}

// --- libraries that are never unmapped

// Mapping one again would give the linker one name more for it each time.
struct kept_library {
    struct kept_library *next;
    struct plugin_file_id id;
    struct dl_library *library;
};
static struct kept_library *kept; // under the registry's lock

struct dl_library *plugin_kept_library(const struct plugin_file_id *id) {
    for (const struct kept_library *item = kept; item; item = item->next)
        if (plugin_file_is_same(&item->id, id)) return item->library;
    return NULL;
}

// Remembers a library that must stay mapped. Without memory it is mapped again when it comes back,
// which works too.
static void keep_library(const struct host_plugin *plugin) {
    if (!plugin->library || plugin_kept_library(&plugin->id)) return;
    struct kept_library *item = ggml_mem_alloc(sizeof(*item));
    if (!item) return;
    *item = (struct kept_library){kept, plugin->id, plugin->library};
    kept = item;
}

// Ends the processes that compute its devices.
static void free_isolated(const struct host_plugin *plugin) {
    const struct device_list *list = plugin_devices(plugin);
    for (size_t i = 0; i < list->count; ++i)
        isolation_maker()->free(list->items[i].isolated);
}

// Shutdown runs the plugin's code, so that its changes to the process are undone as at start.
void plugin_free(struct host_plugin *plugin) {
    if (!plugin) return;
    struct process_state state;
    free_isolated(plugin);
    process_state_save(&state);
    if (plugin->table && plugin->table->shutdown)
        plugin->table->shutdown(plugin->table, &plugin->host);
    if (plugin->stays) {
        keep_library(plugin);
    } else {
        dl_close(plugin->library);
    }
    process_state_restore(&state, plugin->name, "while it was shut down");
    plugin_file_unpin(plugin->pin);
    arena_free(&plugin->arena);
    ggml_mem_free(plugin);
}

static enum ggml_host_status bad(const char *what) {
    return ggml_fail(GGML_HOST_BAD_PLUGIN, "%s: report it to the plugin's author", what);
}

// Whether the pointer is NULL or a small number: what is written for ggml's own interface begins
// with a version number there.
static bool is_no_table(const void *table) {
    return (uintptr_t)table < 4096;
}

// The first required entry that a device lacks, as text, or NULL.
static const char *missing_device_entry(const struct ggml_device_table *table) {
    if (is_no_table(table) || table->size < offsetof(struct ggml_device_table, reserved))
        return "its device has no table of this contract";
    if (!table->get_name) return "its device has no get_name";
    if (!table->get_description) return "its device has no get_description";
    if (!table->get_memory) return "its device has no get_memory";
    if (!table->get_type) return "its device has no get_type";
    if (!table->get_props) return "its device has no get_props";
    if (!table->init_backend) return "its device has no init_backend";
    if (!table->get_buffer_type) return "its device has no get_buffer_type";
    if (!table->supports_op) return "its device has no supports_op";
    if (!table->supports_buft) return "its device has no supports_buft";
    return NULL;
}

// The first required entry that a backend lacks, as text, or NULL.
static const char *missing_reg_entry(const struct ggml_backend_reg *reg) {
    if (is_no_table(reg->table) || reg->table->size < offsetof(struct ggml_backend_table, reserved))
        return "its backend has no table of this contract";
    if (!reg->table->get_name) return "its backend has no get_name";
    if (!reg->table->get_device_count) return "its backend has no get_device_count";
    if (!reg->table->get_device) return "its backend has no get_device";
    return NULL;
}

bool plugin_reg_usable(ggml_backend_reg_t reg) {
    return !missing_reg_entry(reg);
}

// Copies a name that the plugin returned; NULL with the status if it is unusable.
static const char *copy_name(struct arena *arena, const char *name, const char *of,
                             enum ggml_host_status *out_status) {
    *out_status = GGML_HOST_BAD_PLUGIN;
    if (!name || name[0] == '\0' || !utf8_valid(name)) {
        *out_status = ggml_fail(GGML_HOST_BAD_PLUGIN,
                                "the name of its %s is empty or not UTF-8: "
                                "report it to the plugin's author",
                                of);
        return NULL;
    }
    const char *copy = arena_strdup(arena, name);
    *out_status = copy ? GGML_HOST_OK : ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for a name");
    return copy;
}

// The host table is a member, so that its address tells the plugin.
struct host_plugin *plugin_of_table(const struct ggml_host_table *host) {
    return (struct host_plugin *)((char *)(uintptr_t)host - offsetof(struct host_plugin, host));
}

struct device_list *plugin_devices(const struct host_plugin *plugin) {
    static struct device_list none;
    struct device_list *list = atomic_load_explicit(&plugin->devices, memory_order_acquire);
    return list ? list : &none;
}

// Whether a device of that name is listed: devices are found by name, so that names must differ.
// O(devices).
static bool name_taken(const struct device_list *list, const char *name) {
    for (size_t i = 0; i < list->count; ++i) {
        if (strcmp(list->items[i].name, name) == 0) return true;
    }
    return false;
}

// The device's type; one that this contract doesn't know counts as an accelerator.
static enum ggml_backend_dev_type known_type(enum ggml_backend_dev_type type) {
    const bool known =
        (int)type >= GGML_BACKEND_DEVICE_TYPE_CPU && (int)type <= GGML_BACKEND_DEVICE_TYPE_META;
    return known ? type : GGML_BACKEND_DEVICE_TYPE_ACCEL;
}

// Whether a CPU device computes in the host's memory: a GPU driver may compute on the CPU in memory
// that only it can address.
static bool works_in_host_memory(ggml_backend_dev_t device) {
    ggml_backend_buffer_type_t buft =
        device->table->get_buffer_type ? device->table->get_buffer_type(device) : NULL;
    return device_buft_usable(buft) && buft->table->is_host && buft->table->is_host(buft);
}

// Checks one device and adds it to a list with room. Texts are copied, since a plugin may free its
// own.
static enum ggml_host_status add_device(const struct host_plugin *plugin, struct arena *arena,
                                        struct device_list *list, ggml_backend_dev_t device) {
    if (!device) return bad("get_device returns NULL");
    const char *missing = missing_device_entry(device->table);
    if (missing) return bad(missing);
    if (device->reg != plugin->reg) return bad("its device does not point back to its backend");

    enum ggml_host_status status;
    struct host_device *added = &list->items[list->count];
    added->name = copy_name(arena, device->table->get_name(device), "device", &status);
    if (!added->name) return status;
    if (name_taken(list, added->name)) return bad("two of its devices have the same name");

    struct ggml_backend_dev_props props;
    memset(&props, 0, sizeof(props));
    device->table->get_props(device, &props);
    const char *id = props.device_id && utf8_valid(props.device_id) ? props.device_id : "";
    added->device = device;
    added->type = known_type(device->table->get_type(device));
    added->host_memory =
        added->type == GGML_BACKEND_DEVICE_TYPE_CPU && works_in_host_memory(device);
    added->device_id = arena_strdup(arena, id);
    if (!added->device_id) return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for a device");
    ++list->count;
    return GGML_HOST_OK;
}

// An empty list with room for that many; NULL when memory runs out.
static struct device_list *new_list(struct arena *arena, size_t capacity) {
    struct device_list *list =
        arena_alloc(arena, sizeof(*list) + capacity * sizeof(list->items[0]));
    if (list) memset(list, 0, sizeof(*list) + capacity * sizeof(list->items[0]));
    if (!list) ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for %zu devices", capacity);
    return list;
}

// Lists all devices of a backend. After a failure the list holds those that had passed.
static enum ggml_host_status adopt_reg(struct host_plugin *plugin, ggml_backend_reg_t reg) {
    const char *missing = missing_reg_entry(reg);
    if (missing) return bad(missing);
    enum ggml_host_status status;
    plugin->reg_name = copy_name(&plugin->arena, reg->table->get_name(reg), "backend", &status);
    if (!plugin->reg_name) return status;

    const size_t count = reg->table->get_device_count(reg);
    if (count > MAX_DEVICES) return bad("its number of devices is absurd");
    struct device_list *list = new_list(&plugin->arena, count);
    if (!list) return GGML_HOST_OUT_OF_MEMORY;
    for (size_t i = 0; i < count && status == GGML_HOST_OK; ++i) {
        status = add_device(plugin, &plugin->arena, list, reg->table->get_device(reg, i));
    }
    plugin_set_devices(plugin, list);
    return status;
}

// By the device's address. O(devices).
static bool is_listed(const struct device_list *list, ggml_backend_dev_t device) {
    for (size_t i = 0; i < list->count; ++i) {
        if (list->items[i].device == device) return true;
    }
    return false;
}

// Number of devices that the backend has now and the host doesn't list.
static size_t count_new(ggml_backend_reg_t reg, size_t count, const struct device_list *now) {
    size_t n_new = 0;
    for (size_t i = 0; i < count; ++i)
        n_new += !is_listed(now, reg->table->get_device(reg, i));
    return n_new;
}

// Builds the list with the backend's new devices. Plugins may announce as often as they like:
// memory is kept only if something usable is new.
enum ggml_host_status plugin_find_more(struct host_plugin *plugin, struct device_list **out_list) {
    ggml_backend_reg_t reg = plugin->reg;
    const struct device_list *now = plugin_devices(plugin);
    const size_t count = reg->table->get_device_count(reg);
    struct arena arena = {0};
    *out_list = NULL;
    if (count > MAX_DEVICES) return bad("its number of devices is absurd");
    const size_t n_new = count_new(reg, count, now);
    if (n_new == 0) return GGML_HOST_OK;
    if (n_new > MAX_DEVICES - now->count) return bad("it announces too many devices");
    struct device_list *list = new_list(&arena, now->count + n_new);
    if (!list) return GGML_HOST_OUT_OF_MEMORY;
    list->count = now->count;
    memcpy(list->items, now->items, now->count * sizeof(now->items[0]));
    enum ggml_host_status status = GGML_HOST_OK;
    for (size_t i = 0; i < count && list->count < now->count + n_new; ++i) {
        ggml_backend_dev_t device = reg->table->get_device(reg, i);
        if (is_listed(list, device)) continue;
        const enum ggml_host_status added = add_device(plugin, &arena, list, device);
        if (added != GGML_HOST_OK) status = added;
    }
    if (list->count > now->count) {
        arena_take(&plugin->arena, &arena);
        *out_list = list;
    }
    arena_free(&arena);
    return status;
}

void plugin_set_devices(struct host_plugin *plugin, struct device_list *list) {
    atomic_store(&plugin->devices, list);
}

enum ggml_host_status plugin_adopt_reg(struct host_plugin *plugin, ggml_backend_reg_t reg) {
    plugin->reg = reg;
    const enum ggml_host_status status = adopt_reg(plugin, reg);
    if (status != GGML_HOST_OK) plugin->reg = NULL;
    return status;
}

// A device without a backend: `reg` is only set during the check.
enum ggml_host_status plugin_adopt_device(struct host_plugin *plugin, ggml_backend_dev_t device) {
    plugin->reg = device->reg;
    struct device_list *list = new_list(&plugin->arena, 1);
    const enum ggml_host_status status =
        list ? add_device(plugin, &plugin->arena, list, device) : GGML_HOST_OUT_OF_MEMORY;
    if (list) plugin_set_devices(plugin, list);
    plugin->reg = NULL;
    return status;
}

// The plugin's table is kept from here on, so that its shutdown is called even if a later check
// fails.
enum ggml_host_status plugin_adopt_table(struct host_plugin *plugin,
                                         const struct ggml_plugin_table *table) {
    if (is_no_table(table)) return bad("ggml_backend_init succeeded without a plugin table");
    if (table->size < offsetof(struct ggml_plugin_table, reserved) ||
        table->size > MAX_TABLE_SIZE) {
        return bad("the size of its plugin table is impossible");
    }
    plugin->table = table;
    if (table->contract_major != GGML_CONTRACT_MAJOR) {
        return bad("its plugin table has another contract than its note");
    }
    if (!table->reg) return bad("its plugin table has no backend");
    return plugin_adopt_reg(plugin, table->reg);
}
