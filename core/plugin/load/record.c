// SPDX-License-Identifier: MIT
// Records outlive the plugins they are about: they say why a file is not in use. One lock guards
// the lists; it is never held while code of a plugin runs.
#include "plugin/load/record.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/data/arena.h"
#include "base/fork_lock.h"
#include "base/mem.h"
#include "base/status.h"
#include "plugin/discover/search_path.h"
#include "plugin/trust/trust.h"

struct directory {
    struct directory *next;
    const char *origin; // constant
    enum ggml_host_status status;
    char path[];
};

// Held only while the lists are read or changed, never while a plugin's code runs.
static pthread_mutex_t records_lock = PTHREAD_MUTEX_INITIALIZER;
FORK_LOCK(records_lock);
static struct record *records;
static struct directory *directories;

// Contract numbers are -1 until a note was read.
struct record *record_new(const char *path) {
    const size_t length = strlen(path);
    struct record *record = ggml_mem_calloc(1, sizeof(*record) + length + 1);
    if (!record) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for the record of '%s'", path);
        return NULL;
    }
    memcpy(record->path, path, length + 1);
    record->contract_major = -1;
    record->contract_minor = -1;
    return record;
}

// Copies a string of a note, which may fill its field without a terminating zero.
static void copy_string(char *out_text, const char *text) {
    snprintf(out_text, GGML_PLUGIN_STRING_SIZE + 1, "%.*s", GGML_PLUGIN_STRING_SIZE, text);
}

void record_set_note(struct record *record, const struct ggml_plugin_note *note) {
    copy_string(record->name, note->name);
    copy_string(record->variant, note->variant);
    copy_string(record->version, note->version);
    record->contract_major = note->contract_major;
    record->contract_minor = note->contract_minor;
    record->machine = (enum ggml_machine)note->machine;
}

// The message is the thread's last error, which the failing stage has set.
enum ggml_host_status record_refuse(struct record *record, enum ggml_plugin_stage stage,
                                    enum ggml_host_status status) {
    record->stage = stage;
    record->status = status;
    snprintf(record->message, sizeof(record->message), "%s", ggml_last_error());
    return status;
}

// Whether two records are about the same candidate: by path and, for built-ins, which share one
// path, by name.
static bool same_candidate(const struct record *a, const struct record *b) {
    if (strcmp(a->path, b->path) != 0) return false;
    return strcmp(a->path, BUILTIN_PATH) != 0 || strcmp(a->name, b->name) == 0;
}

static bool identify(const char *path, struct plugin_file_id *out_id) {
#ifdef _WIN32 // where what is mapped stays
    (void)path;
    (void)out_id;
    return false;
#else
    return plugin_file_identify(path, out_id);
#endif
}

// Of a plugin that is loaded: what is wrong with what is at its path now. `distrusts`: that others
// can change it, or a folder on the way there.
static void note_file(struct record *record, const char *text, bool distrusts) {
    snprintf(record->file_message, sizeof(record->file_message), "%s", text);
    record->distrusts_path = distrusts;
    record->has_file = identify(record->path, &record->file);
}

// Whether others can't change what is at the path any more.
static bool is_trusted_now(const char *path) {
    struct ggml_saved_error saved;
    ggml_error_save(&saved);
    const bool trusted =
        trust_check_dir(path) == GGML_HOST_OK; // files are asked for in the same way
    ggml_error_restore(&saved);
    return trusted;
}

// What note_file() said, "" if the file changed or came back, or went away, since then, or if it is
// trusted now.
static const char *said_of_file(const struct record *record) {
    struct plugin_file_id now;
    if (record->file_message[0] == '\0') return "";
    if (record->distrusts_path && is_trusted_now(record->path)) return "";
    const bool is_there = identify(record->path, &now);
    const bool is_same = is_there && record->has_file && plugin_file_is_same(&now, &record->file);
    return is_same || (!is_there && !record->has_file) ? record->file_message : "";
}

void records_put(struct record *record) {
    struct record *old = NULL;
    pthread_mutex_lock(&records_lock);
    // The new one takes the old one's place, so that a report keeps the order in which files
    // were found.
    struct record **link = &records;
    while (*link && !same_candidate(*link, record))
        link = &(*link)->next;
    old = *link;
    if (old && old->reg && !record->reg) {
        // The plugin that runs is not the file that was found at its path now.
        note_file(old, record->message,
                  record->status == GGML_HOST_UNTRUSTED && record->stage == GGML_PLUGIN_STAGE_FILE);
        old = record;
    } else if (old && old->reg && old->reg != record->reg) {
        // Another file had taken the path of one that runs, and runs too.
        record->next = old->next;
        old->next = record;
        old = NULL;
    } else {
        record->next = old ? old->next : NULL;
        *link = record;
    }
    pthread_mutex_unlock(&records_lock);
    ggml_mem_free(old);
}

// O(records), under the lock.
bool records_loaded(const char *path) {
    pthread_mutex_lock(&records_lock);
    const struct record *record = records;
    while (record && !(record->reg && strcmp(record->path, path) == 0))
        record = record->next;
    pthread_mutex_unlock(&records_lock);
    return record != NULL;
}

void records_clear_file(const char *path) {
    pthread_mutex_lock(&records_lock);
    for (struct record *record = records; record; record = record->next)
        if (record->reg && strcmp(record->path, path) == 0) note_file(record, "", false);
    pthread_mutex_unlock(&records_lock);
}

// The record goes with the plugin; the file becomes a candidate again.
void records_forget(ggml_backend_reg_t reg) {
    struct record *found = NULL;
    pthread_mutex_lock(&records_lock);
    struct record **link = &records;
    while (*link && (*link)->reg != reg)
        link = &(*link)->next;
    found = *link;
    if (found) *link = found->next;
    pthread_mutex_unlock(&records_lock);
    ggml_mem_free(found);
}

// The file's name if its path is that of a plugin directly in `dir`, else NULL.
static const char *plugin_name_in(const char *path, const char *dir) {
    const size_t length = strlen(dir);
    if (strncmp(path, dir, length) != 0) return NULL;
    const char *name = path + length;
    if (length > 0 && !search_path_is_separator(dir[length - 1])) {
        if (!search_path_is_separator(*name++)) return NULL;
    }
    const bool nested = search_path_file_name(name) != name;
    return !nested && plugin_file_name_parse(name, NULL, NULL, 0) ? name : NULL;
}

// Comparison for bsearch().
static int compare_path(const void *key, const void *element) {
    return strcmp(key, *(char *const *)element);
}

// Updates the record of a file that has disappeared, or come back. A loaded plugin stays usable
// without its file.
static void note_gone(struct record *record, bool is_there) {
    static const char in_use[] = "its file is gone; it stays in use until it is unloaded";
    if (record->reg) {
        const bool says_so = strcmp(record->file_message, in_use) == 0;
        if (!is_there || says_so) note_file(record, is_there ? "" : in_use, false);
    } else if (!is_there) {
        record->stage = GGML_PLUGIN_STAGE_FOUND;
        record->status = GGML_HOST_NOT_FOUND;
        snprintf(record->message, sizeof(record->message), "its file went away");
    }
}

void records_note_gone(const char *dir, char *const *paths, size_t count) {
    pthread_mutex_lock(&records_lock);
    for (struct record *record = records; record; record = record->next) {
        if (!plugin_name_in(record->path, dir)) continue;
        const bool is_there =
            count > 0 && bsearch(record->path, paths, count, sizeof(*paths), compare_path);
        note_gone(record, is_there);
    }
    pthread_mutex_unlock(&records_lock);
}

// Whether the record is about the directory itself, which others can write to.
static bool is_refused_directory(const struct record *record, const char *path) {
    return record->status == GGML_HOST_UNTRUSTED && record->stage == GGML_PLUGIN_STAGE_FOUND &&
           strcmp(record->path, path) == 0;
}

// With the lock held: takes the record of a directory itself out of the list; NULL if it has none.
static struct record *take_directory_record(const char *path) {
    struct record **link = &records;
    while (*link && !is_refused_directory(*link, path))
        link = &(*link)->next;
    struct record *found = *link;
    if (found) *link = found->next;
    return found;
}

enum ggml_host_status records_put_directory(const char *path, const char *origin,
                                            enum ggml_host_status status) {
    const size_t length = strlen(path);
    struct directory *added = ggml_mem_calloc(1, sizeof(*added) + length + 1);
    if (!added) return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for directory '%s'", path);
    memcpy(added->path, path, length + 1);
    added->origin = origin;
    added->status = status;

    pthread_mutex_lock(&records_lock);
    struct directory **link = &directories;
    while (*link && strcmp((*link)->path, path) != 0)
        link = &(*link)->next;
    struct directory *old = *link;
    added->next = old ? old->next : NULL;
    *link = added;
    struct record *outdated = status == GGML_HOST_UNTRUSTED ? NULL : take_directory_record(path);
    pthread_mutex_unlock(&records_lock);
    ggml_mem_free(outdated);
    ggml_mem_free(old);
    return GGML_HOST_OK;
}

// Reports are copies: loading may go on while one is read.
// --- report --------------------------------------------------------------------------------------

struct ggml_plugin_report {
    struct arena arena; // holds everything, this struct excepted
    size_t n_records;
    size_t n_directories;
    struct ggml_plugin_record *records;
    struct ggml_plugin_directory *directories;
};

// What a record says of itself and of its file, NULL without memory.
static const char *copy_message(struct arena *arena, const struct record *record) {
    char text[sizeof(record->message) + sizeof(record->file_message) + 2];
    const char *of_file = said_of_file(record);
    const bool both = record->message[0] != '\0' && of_file[0] != '\0';
    snprintf(text, sizeof(text), "%s%s%s", record->message, both ? "; " : "", of_file);
    return arena_strdup(arena, text);
}

// False if any string could not be copied.
bool record_copy(struct arena *arena, const struct record *from,
                 struct ggml_plugin_record *out_record) {
    *out_record = (struct ggml_plugin_record){
        .path = arena_strdup(arena, from->path),
        .name = arena_strdup(arena, from->name),
        .variant = arena_strdup(arena, from->variant),
        .version = arena_strdup(arena, from->version),
        .contract_major = from->contract_major,
        .contract_minor = from->contract_minor,
        .machine = from->machine,
        .stage = from->stage,
        .status = from->status,
        .message = copy_message(arena, from),
        .missing = arena_strdup(arena, from->missing),
        .reg = from->reg,
        .microseconds = from->microseconds,
    };
    return out_record->path && out_record->name && out_record->variant && out_record->version &&
           out_record->message && out_record->missing;
}

// Copies all records, with the lock held.
static bool copy_records(struct ggml_plugin_report *report) {
    size_t count = 0;
    for (const struct record *record = records; record; record = record->next)
        ++count;
    report->records = arena_alloc(&report->arena, count * sizeof(*report->records) + 1);
    if (!report->records) return false;
    for (const struct record *record = records; record; record = record->next) {
        if (!record_copy(&report->arena, record, &report->records[report->n_records++]))
            return false;
    }
    return true;
}

// Copies all directories, with the lock held.
static bool copy_directories(struct ggml_plugin_report *report) {
    size_t count = 0;
    for (const struct directory *dir = directories; dir; dir = dir->next)
        ++count;
    report->directories = arena_alloc(&report->arena, count * sizeof(*report->directories) + 1);
    if (!report->directories) return false;
    for (const struct directory *dir = directories; dir; dir = dir->next) {
        struct ggml_plugin_directory *copy = &report->directories[report->n_directories++];
        copy->path = arena_strdup(&report->arena, dir->path);
        copy->origin = dir->origin;
        copy->status = dir->status;
        if (!copy->path) return false;
    }
    return true;
}

// Complete or NULL: a report that lacks records would mislead.
ggml_plugin_report_t ggml_plugin_report_new(void) {
    struct ggml_plugin_report *report = ggml_mem_calloc(1, sizeof(*report));
    bool complete = false;
    if (report) {
        pthread_mutex_lock(&records_lock);
        complete = copy_records(report) && copy_directories(report);
        pthread_mutex_unlock(&records_lock);
    }
    if (complete) return report;
    ggml_plugin_report_free(report);
    ggml_fail(GGML_HOST_OUT_OF_MEMORY, "ggml_plugin_report_new: no memory for the report");
    return NULL;
}

void ggml_plugin_report_free(ggml_plugin_report_t report) {
    if (!report) return;
    arena_free(&report->arena);
    ggml_mem_free(report);
}

size_t ggml_plugin_report_count(ggml_plugin_report_t report) {
    return report ? report->n_records : 0;
}

const struct ggml_plugin_record *ggml_plugin_report_get(ggml_plugin_report_t report, size_t i) {
    return report && i < report->n_records ? &report->records[i] : NULL;
}

size_t ggml_plugin_report_directory_count(ggml_plugin_report_t report) {
    return report ? report->n_directories : 0;
}

const struct ggml_plugin_directory *ggml_plugin_report_directory_get(ggml_plugin_report_t report,
                                                                     size_t i) {
    return report && i < report->n_directories ? &report->directories[i] : NULL;
}

// By the value as an int: a plugin of a later minor may know more stages than this enumeration.
const char *ggml_plugin_stage_text(enum ggml_plugin_stage stage) {
    switch ((int)stage) {
    case GGML_PLUGIN_STAGE_FOUND: return "found";
    case GGML_PLUGIN_STAGE_FILE: return "file";
    case GGML_PLUGIN_STAGE_NOTE: return "note";
    case GGML_PLUGIN_STAGE_NEGOTIATE: return "negotiate";
    case GGML_PLUGIN_STAGE_SELECT: return "select";
    case GGML_PLUGIN_STAGE_MAP: return "map";
    case GGML_PLUGIN_STAGE_INIT: return "init";
    case GGML_PLUGIN_STAGE_VERIFY: return "verify";
    case GGML_PLUGIN_STAGE_READY: return "ready";
    default: return "unknown stage";
    }
}
