// SPDX-License-Identifier: MIT
// Stages of one candidate: read, named, compared with others of its name, filtered, mapped,
// attached. A stage that fails writes the reason into the candidate's record; the caller decides on
// the order.
#include "plugin/load/candidate.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/status.h"
#include "machine/cpu_features.h"
#include "plugin/discover/search_path.h"
#include "plugin/image/image_load.h"
#include "plugin/load/missing.h"
#include "plugin/load/negotiate.h"
#include "plugin/offer/host_table.h"
#include "plugin/registry/isolation.h"
#include "plugin/registry/process_state.h"
#include "plugin/registry/registry.h"

enum { LINKER_MESSAGE_SIZE = 768 };

enum ggml_host_status candidate_init(struct candidate *candidate, const char *path,
                                     const struct builtin_plugin *builtin) {
    memset(candidate, 0, sizeof(*candidate));
    candidate->builtin = builtin;
    candidate->file.handle = candidate->file.original = -1;
    candidate->record = record_new(path);
    return candidate->record ? GGML_HOST_OK : GGML_HOST_OUT_OF_MEMORY;
}

void candidate_finish(struct candidate *candidate) {
    if (candidate->record) records_put(candidate->record);
    candidate->record = NULL;
    plugin_file_close(&candidate->file);
}

// Ends a candidate with the thread's last error as the reason. The file is closed at once, so that
// hundreds of refused candidates keep no descriptors.
static enum ggml_host_status refuse(struct candidate *candidate, enum ggml_plugin_stage stage,
                                    enum ggml_host_status status) {
    candidate->state = CANDIDATE_DONE;
    plugin_file_close(&candidate->file);
    return record_refuse(candidate->record, stage, status);
}

enum ggml_host_status candidate_refuse(struct candidate *candidate, enum ggml_plugin_stage stage,
                                       enum ggml_host_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    ggml_fail_v(status, format, args);
    va_end(args);
    return refuse(candidate, stage, status);
}

// `verb` distinguishes a decision of loading from a prediction of probing.
void candidate_supersede(struct candidate *candidate, const char *winner, const char *verb) {
    candidate_refuse(candidate, GGML_PLUGIN_STAGE_NEGOTIATE, GGML_HOST_SUPERSEDED,
                     "of the files with the plugin name '%s', '%s' %s loaded", candidate->name,
                     winner, verb);
}

void candidate_refuse_duplicate(struct candidate *candidate, const char *other_path) {
    candidate_refuse(candidate, GGML_PLUGIN_STAGE_NOTE, GGML_HOST_DUPLICATE,
                     "'%s' is the same file as '%s'", candidate->record->path, other_path);
}

void candidate_refuse_filtered(struct candidate *candidate) {
    candidate_refuse(candidate, GGML_PLUGIN_STAGE_VERIFY, GGML_HOST_FILTERED,
                     "GGML_DEVICES excludes every device of plugin '%s'", candidate->name);
}

void candidate_refuse_directory(struct candidate *candidate) {
    refuse(candidate, GGML_PLUGIN_STAGE_FOUND, GGML_HOST_UNTRUSTED);
}

// --- examine -------------------------------------------------------------------------------------

// The name that variants share. Backends written for ggml have none in their note; their file name
// provides it.
static void choose_name(struct candidate *candidate) {
    const char *path = candidate->record->path;
    char from_file[GGML_PLUGIN_STRING_SIZE];
    memcpy(candidate->name, candidate->note.name, sizeof(candidate->name));
    if (candidate->builtin || strcmp(candidate->note.name, "unnamed") != 0) return;
    if (plugin_file_name_parse(search_path_file_name(path), from_file, NULL, sizeof(from_file))) {
        memcpy(candidate->name, from_file, sizeof(candidate->name));
        memcpy(candidate->record->name, from_file, sizeof(from_file));
    }
}

// Opens and checks the file and reads its note. *out_stage is the stage reached, to which a failure
// belongs.
static enum ggml_host_status read_file(struct candidate *candidate,
                                       const struct load_policy *policy,
                                       enum ggml_plugin_stage *out_stage) {
    const char *path = candidate->record->path;
    *out_stage = GGML_PLUGIN_STAGE_FOUND;
    enum ggml_host_status status = plugin_file_open(path, &candidate->file);
    if (status != GGML_HOST_OK) return status;
    *out_stage = GGML_PLUGIN_STAGE_FILE;
    status = policy_check_file(policy, path, &candidate->file);
    if (status != GGML_HOST_OK) return status;
    // A sum is of use only for bytes that nobody can change afterwards.
    if (policy->has_set_sums || policy->has_env_sums)
        status = plugin_file_seal(&candidate->file, path);
    if (status != GGML_HOST_OK) return status;
    status = plugin_note_read_file(&candidate->file, path, &candidate->note);
    if (status != GGML_HOST_OK) return status;
    *out_stage = GGML_PLUGIN_STAGE_NOTE;
    return policy_check_sum(policy, path, &candidate->file);
}

// On success the candidate is fit; the record has whatever is known at the point of failure.
enum ggml_host_status candidate_examine(struct candidate *candidate,
                                        const struct load_policy *policy) {
    struct record *record = candidate->record;
    enum ggml_plugin_stage stage = GGML_PLUGIN_STAGE_NOTE;
    enum ggml_host_status status = GGML_HOST_OK;
    if (candidate->builtin) {
        candidate->note = *candidate->builtin->note;
    } else {
        status = read_file(candidate, policy, &stage);
    }
    // Of a library for another system the machine is known, though its note may not be.
    if (stage < GGML_PLUGIN_STAGE_NOTE) {
        record->machine = (enum ggml_machine)candidate->note.machine;
    } else {
        record_set_note(record, &candidate->note);
        choose_name(candidate);
    }
    if (status != GGML_HOST_OK) return refuse(candidate, stage, status);
    status = plugin_negotiate(&candidate->note, cpu_features_detect());
    if (status != GGML_HOST_OK) return refuse(candidate, GGML_PLUGIN_STAGE_NEGOTIATE, status);
    record->stage = GGML_PLUGIN_STAGE_NEGOTIATE;
    candidate->state = CANDIDATE_FIT;
    return GGML_HOST_OK;
}

// --- choice --------------------------------------------------------------------------------------

// By device and inode: links and repeated directories lead to the same file.
bool candidate_is_same_file(const struct candidate *a, const struct candidate *b) {
    return !a->builtin && !b->builtin && a->state == CANDIDATE_FIT &&
           a->file.id.device == b->file.id.device && a->file.id.inode == b->file.id.inode;
}

// One step for each bit that is set.
static unsigned count_bits(uint64_t bits) {
    unsigned count = 0;
    for (; bits; bits &= bits - 1)
        ++count;
    return count;
}

// Preference among plugins of one name: a file over a built-in, so that an application can be given
// a newer plugin; then the author's priority; then more CPU features. False for equals, so that the
// order in which they were found decides.
bool candidate_is_better(const struct candidate *a, const struct candidate *b) {
    if (!a->builtin != !b->builtin) return !a->builtin;
    if (a->note.priority != b->note.priority) return a->note.priority > b->note.priority;
    return count_bits(a->note.cpu_features[0]) > count_bits(b->note.cpu_features[0]);
}

void candidate_apply_filter(struct candidate *candidate, const struct device_filter *filter) {
    if (filter_allows_plugin(filter, candidate->name)) return;
    candidate_refuse(candidate, GGML_PLUGIN_STAGE_NEGOTIATE, GGML_HOST_FILTERED,
                     "GGML_DEVICES does not ask for plugin '%s'", candidate->name);
}

// --- load ----------------------------------------------------------------------------------------

// Records a stage and reports it to the watching process, if any: the last stage reported is where
// a plugin crashed.
static void reach(struct candidate *candidate, enum ggml_plugin_stage stage) {
    candidate->record->stage = stage;
    if (candidate->on_stage) candidate->on_stage(candidate->stage_context, stage);
}

// Extracts the library's name from the linker's message, whose wording differs between glibc, musl
// and macOS.
void missing_library(const char *message, const char *path, char *out_name, size_t size) {
    static const char glibc[] = ": cannot open shared object file";
    static const char musl[] = "Error loading shared library ";
    static const char macos[] = "Library not loaded: ";
    const char *start = NULL;
    const char *end = NULL;
    out_name[0] = '\0';
    if ((end = strstr(message, glibc)) != NULL) {
        start = message;
    } else if ((start = strstr(message, musl)) != NULL) {
        start += sizeof(musl) - 1;
        end = strstr(start, ": ");
    } else if ((start = strstr(message, macos)) != NULL) {
        start += sizeof(macos) - 1;
        end = start + strcspn(start, "\r\n");
    }
    if (!start || !end || end == start) return;
    const size_t length = (size_t)(end - start);
    // A message about the plugin's own path means that the plugin is missing, not a dependency.
    if (strlen(path) == length && memcmp(start, path, length) == 0) return;
    snprintf(out_name, size, "%.*s", (int)(length < size ? length : size), start);
}

// Turns a linker failure into an error. The usual reason is a missing library, which a user can do
// something about: its name comes from the linker's message or, where that has none, from the
// file's imports.
static enum ggml_host_status explain_linker(struct candidate *candidate, const char *message) {
    struct record *record = candidate->record;
    missing_library(message, record->path, record->missing, sizeof(record->missing));
    if (record->missing[0] == '\0') {
        missing_import(&candidate->file, record->path, record->missing, sizeof(record->missing));
    }
    if (record->missing[0] != '\0') {
        return ggml_fail(GGML_HOST_MISSING_DEPENDENCY,
                         "plugin '%s' needs %s, which is not installed or "
                         "not in the linker's path: install it (%s)",
                         candidate->name, record->missing, message);
    }
    return ggml_fail(GGML_HOST_LINK_FAILED, "the dynamic linker refuses plugin '%s': %s",
                     candidate->name, message);
}

// Reads the note again from the open file, which may have been written to since, and compares.
static enum ggml_host_status compare_again(const struct candidate *candidate, bool by_path) {
    struct ggml_plugin_note note;
    const char *path = candidate->record->path;
    enum ggml_host_status status = plugin_note_read_file(&candidate->file, path, &note);
    if (status != GGML_HOST_OK) return status;
    if (memcmp(&note, &candidate->note, sizeof(note)) != 0) {
        return ggml_fail(GGML_HOST_DAMAGED_FILE,
                         "'%s' changed while it was being loaded: try again",
                         search_path_label(path));
    }
    return plugin_file_unchanged(&candidate->file, path, by_path);
}

// Maps the library: by its open descriptor where possible, by path only where the linker needs one.
// Checks afterwards that what was mapped is that file.
static enum ggml_host_status open_library(struct candidate *candidate, struct host_plugin *plugin,
                                          bool by_path) {
    char message[LINKER_MESSAGE_SIZE] = "";
    const char *path = candidate->record->path;
    const struct plugin_file *file = &candidate->file;
    if (by_path && !dl_takes_path(path)) {
        return ggml_fail(
            GGML_HOST_LINK_FAILED,
            "'%s' has a '$', which the dynamic linker would replace by something else: "
            "rename it",
            search_path_label(path));
    }
    plugin->library = by_path ? dl_open(path, message, sizeof(message))
                              : dl_open_file(file->handle, path, message, sizeof(message));
    if (!plugin->library) return explain_linker(candidate, message);
    reach(candidate, GGML_PLUGIN_STAGE_MAP);
    const bool is_copy = !by_path || file->original < 0;
    const enum ggml_host_status status =
        dl_check_mapping(plugin->library, is_copy ? file->handle : file->original, path);
    // What is not known to be the file is left mapped, but not remembered as the file.
    if (status != GGML_HOST_OK && plugin->stays) plugin->library = NULL;
    return status;
}

// Maps the file that was examined. Only where its path has to be given to the linker could another
// file have taken its place; that is checked before and after.
static enum ggml_host_status map(struct candidate *candidate, struct host_plugin *plugin) {
    const char *path = candidate->record->path;
    const struct image_source source = plugin_file_source(&candidate->file, path);
    struct image_needs needs;
    enum ggml_host_status status = plugin_image_check(&source, &needs);
    if (status != GGML_HOST_OK) return status;
    const bool by_path = needs.path || !dl_can_open_file(candidate->file.handle, path);
    status = plugin_file_unchanged(&candidate->file, path, by_path);
    if (status != GGML_HOST_OK) return status;
    // Before its constructors run: what must stay mapped does so also when something fails later.
    plugin->stays = needs.stays || (candidate->note.flags & GGML_PLUGIN_FLAG_NO_UNLOAD) != 0;
    plugin->library = plugin_kept_library(&candidate->file.id);
    if (plugin->library) {
        plugin->stays = true; // it is the list's
        reach(candidate, GGML_PLUGIN_STAGE_MAP);
    } else {
        status = open_library(candidate, plugin, by_path);
    }
    return status == GGML_HOST_OK ? compare_again(candidate, by_path) : status;
}

// The entry of a built-in, or the one symbol that a plugin exports.
static enum ggml_host_status find_entry(const struct candidate *candidate,
                                        const struct host_plugin *plugin,
                                        ggml_plugin_init_t *out_entry) {
    if (candidate->builtin) {
        *out_entry = candidate->builtin->init;
        return GGML_HOST_OK;
    }
    void *symbol = dl_symbol(plugin->library, GGML_PLUGIN_ENTRY_SYMBOL);
    memcpy(out_entry, &symbol, sizeof(symbol));
    if (symbol) return GGML_HOST_OK;
    return ggml_fail(GGML_HOST_NO_ENTRY,
                     "plugin '%s' does not export " GGML_PLUGIN_ENTRY_SYMBOL ": "
                     "report it to the plugin's author",
                     candidate->name);
}

// The error of a failed start. The plugin's own message counts most; statuses that say more than
// "failed" are kept.
static enum ggml_host_status explain_init(const struct candidate *candidate, int32_t result) {
    char text[512];
    const enum ggml_host_status said = ggml_last_status();
    enum ggml_host_status status = GGML_HOST_INIT_FAILED;
    if (said == GGML_HOST_NO_DEVICE || said == GGML_HOST_OUT_OF_MEMORY) status = said;
    if (result == GGML_HOST_NO_DEVICE || result == GGML_HOST_OUT_OF_MEMORY) {
        status = (enum ggml_host_status)result;
    }
    snprintf(text, sizeof(text), "%s",
             said != GGML_HOST_OK ? ggml_last_error()
                                  : ggml_host_status_text((enum ggml_host_status)result));
    return ggml_fail(status, "plugin '%s' could not start: %s", candidate->name, text);
}

// Calls the plugin's entry, its first code to run, checks the table that it returns, and asks for
// its score: 0 means that it is of no use here.
static enum ggml_host_status enter(struct candidate *candidate, struct host_plugin *plugin) {
    const struct ggml_plugin_table *table = NULL;
    ggml_plugin_init_t entry = NULL;
    enum ggml_host_status status = find_entry(candidate, plugin, &entry);
    if (status != GGML_HOST_OK) return status;
    plugin->flags = candidate->note.flags;
    plugin->contract_minor = candidate->note.contract_minor;
    plugin->entry = entry;
    ggml_clear_error();
    const int32_t result = entry(&plugin->host, &table);
    reach(candidate, GGML_PLUGIN_STAGE_INIT);
    if (result != GGML_HOST_OK) return explain_init(candidate, result);
    reach(candidate, GGML_PLUGIN_STAGE_VERIFY);
    status = plugin_adopt_table(plugin, table);
    if (status != GGML_HOST_OK) return status;
    // A backend that another plugin has registered can't be taken over.
    const struct host_plugin *owner = registry_find_reg(plugin->reg);
    if (owner) {
        if (owner->table == table) plugin->table = NULL; // not to be shut down by this one
        return ggml_fail(GGML_HOST_BAD_PLUGIN,
                         "plugin '%s' returns the backend of '%s', which is running: report it to "
                         "the plugin's author",
                         candidate->name, owner->reg_name);
    }
    if (!table->score || table->score(table) != 0) return GGML_HOST_OK;
    return ggml_fail(GGML_HOST_UNSUPPORTED,
                     "plugin '%s' says that it can't be used on this machine", candidate->name);
}

// Whether a device is left to show. A plugin without devices yet is kept.
static bool has_shown(const struct host_plugin *plugin) {
    const struct device_list *list = plugin_devices(plugin);
    size_t n_hidden = 0;
    for (size_t i = 0; i < list->count; ++i)
        n_hidden += list->items[i].hidden;
    return n_hidden < list->count || list->count == 0;
}

static void hide_devices(struct host_plugin *plugin, const struct device_filter *filter) {
    struct device_list *list = plugin_devices(plugin);
    for (size_t i = 0; i < list->count; ++i) {
        struct host_device *device = &list->items[i];
        device->hidden =
            !filter_allows_device(filter, plugin->name, device->name, device->device_id);
    }
}

// Isolates what GGML_ISOLATE names and registers the plugin, unless no device is left. The record
// of one that is registered without some of its devices says why.
static enum ggml_host_status show(struct host_plugin *plugin, struct record *record) {
    enum ggml_host_status status = isolation_apply(plugin, plugin_devices(plugin), 0);
    if (status != GGML_HOST_OK && has_shown(plugin)) {
        snprintf(record->message, sizeof(record->message), "%s", ggml_last_error());
        status = GGML_HOST_OK;
    }
    if (status == GGML_HOST_OK) status = registry_add(plugin);
    return status == GGML_HOST_OK ? status : record_refuse(record, record->stage, status);
}

// Whether devices may appear later: the note says so, or procedures of the plugin can add some, as
// for those of other machines.
static bool may_have_later(const struct host_plugin *plugin) {
    const bool says_so = (plugin->flags & GGML_PLUGIN_FLAG_DYNAMIC_DEVICES) != 0;
    return says_so || plugin->reg->table->get_proc_address;
}

// Starts a plugin without registering it. Changes to the process (signals, floating-point modes,
// working directory) are undone before anything else runs, whether it succeeded or not.
enum ggml_host_status candidate_start(struct candidate *candidate,
                                      struct host_plugin **out_plugin) {
    struct record *record = candidate->record;
    enum ggml_host_status status = GGML_HOST_OUT_OF_MEMORY;
    *out_plugin = NULL;
    candidate->state = CANDIDATE_DONE;
    reach(candidate, GGML_PLUGIN_STAGE_SELECT);
    struct host_plugin *plugin = plugin_new(record->path, candidate->name);
    if (!plugin) goto fail;
    host_table_init(&plugin->host);
    plugin->id = candidate->file.id;
    struct process_state state;
    process_state_save(&state);
    status = candidate->builtin ? GGML_HOST_OK : map(candidate, plugin);
    plugin->pin = plugin_file_pin(&candidate->file);
    plugin_file_close(&candidate->file);
    if (status == GGML_HOST_OK) status = enter(candidate, plugin);
    process_state_restore(&state, candidate->name, "while it was started");
    if (status == GGML_HOST_OK && plugin_devices(plugin)->count == 0 && !may_have_later(plugin)) {
        status = ggml_fail(GGML_HOST_NO_DEVICE, "plugin '%s' found no device", candidate->name);
    }
    if (status != GGML_HOST_OK) goto fail;
    *out_plugin = plugin;
    return GGML_HOST_OK;
fail:
    plugin_file_close(&candidate->file);
    record_refuse(record, record->stage, status);
    plugin_free(plugin);
    return status;
}

// Starts and registers a plugin. The filter by device can only be applied once it runs; a plugin
// without a device left is shut down again.
enum ggml_host_status candidate_load(struct candidate *candidate,
                                     const struct device_filter *filter) {
    struct record *record = candidate->record;
    struct host_plugin *plugin;
    enum ggml_host_status status = candidate_start(candidate, &plugin);
    if (status != GGML_HOST_OK) return status;
    hide_devices(plugin, filter);
    if (has_shown(plugin)) {
        status = show(plugin, record);
    } else {
        candidate_refuse_filtered(candidate);
        status = GGML_HOST_FILTERED;
    }
    if (status != GGML_HOST_OK) {
        plugin_free(plugin);
        return status;
    }
    reach(candidate, GGML_PLUGIN_STAGE_READY);
    record->reg = plugin->reg;
    return GGML_HOST_OK;
}
