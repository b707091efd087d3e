// SPDX-License-Identifier: MIT
// One plugin file, or one built-in plugin, on its way to being loaded.
#ifndef GGML_PLUGIN_LOAD_CANDIDATE_H
#define GGML_PLUGIN_LOAD_CANDIDATE_H

#include "plugin/discover/filter.h"
#include "plugin/image/note.h"
#include "plugin/load/record.h"
#include "plugin/registry/builtin.h"
#include "plugin/trust/policy.h"

struct host_plugin;

enum candidate_state {
    CANDIDATE_NEW,
    CANDIDATE_FIT,  // examined; may be loaded
    CANDIDATE_DONE, // loaded or refused
};

struct candidate {
    enum candidate_state state;
    struct record *record; // owned
    struct ggml_plugin_note note;
    struct plugin_file file;              // open while it is fit
    const struct builtin_plugin *builtin; // NULL: a file
    char name[GGML_PLUGIN_STRING_SIZE];   // what its variants have in common
    // (opt) Told each stage from SELECT on as soon as it is reached.
    void (*on_stage)(void *context, enum ggml_plugin_stage stage);
    void *stage_context;
};

// Takes the path, or the built-in. GGML_HOST_OUT_OF_MEMORY. [init]
enum ggml_host_status candidate_init(struct candidate *candidate, const char *path,
                                     const struct builtin_plugin *builtin);
// Opens the file, asks the policy, reads the note and compares it with this machine; nothing of the
// plugin runs. On success it is fit; on failure done and its record says why. [init]
enum ggml_host_status candidate_examine(struct candidate *candidate,
                                        const struct load_policy *policy);
// Whether both are files, the same one, and `a` is fit. [any-thread]
bool candidate_is_same_file(const struct candidate *a, const struct candidate *b);
// Whether, of two with one name, a is preferred to b, which was found earlier. [any-thread]
bool candidate_is_better(const struct candidate *a, const struct candidate *b);
// Refuses a fit one that GGML_DEVICES does not ask for.
void candidate_apply_filter(struct candidate *candidate, const struct device_filter *filter);
// Maps, starts and checks a fit one, without registering it. It is done then; on failure everything
// is undone and its record says why. The plugin is the caller's. [init]
enum ggml_host_status candidate_start(struct candidate *candidate, struct host_plugin **out_plugin);
// Maps, starts, checks and registers a fit one with the registry lock held, or undoes everything.
// It is done then and its record says how it went. [init]
enum ggml_host_status candidate_load(struct candidate *candidate,
                                     const struct device_filter *filter);
// Writes down that a candidate stops here, for a reason that does not come from an earlier call.
enum ggml_host_status candidate_refuse(struct candidate *candidate, enum ggml_plugin_stage stage,
                                       enum ggml_host_status status, const char *format, ...)
    GGML_ATTRIBUTE_FORMAT(4, 5);
// Refuses one that another file of its name, `winner`, was preferred to. verb: "is" or "would be".
// [init]
void candidate_supersede(struct candidate *candidate, const char *winner, const char *verb);
// Refuses one that is the same file as `other_path`. [init]
void candidate_refuse_duplicate(struct candidate *candidate, const char *other_path);
// Refuses one of whose devices GGML_DEVICES excludes each. [init]
void candidate_refuse_filtered(struct candidate *candidate);
// For a directory that nothing is loaded from because others could change it: its record has the
// thread's last error.
void candidate_refuse_directory(struct candidate *candidate);
// Hands the record over to the list and closes the file.
void candidate_finish(struct candidate *candidate);

// Copies the name of the library that the dynamic linker's message says is missing; "" if it speaks
// of something else. `path` is the plugin that was opened. [any-thread]
void missing_library(const char *message, const char *path, char *out_name, size_t size);

#endif
