// SPDX-License-Identifier: MIT
// Records of plugin candidates and directories, the source of the public report.
#ifndef GGML_PLUGIN_LOAD_RECORD_H
#define GGML_PLUGIN_LOAD_RECORD_H

#include <stdbool.h>

#include "base/data/arena.h"
#include "ggml-host.h"
#include "plugin/image/plugin_file.h"

#define BUILTIN_PATH "(built-in)"

struct record {
    struct record *next;
    char name[GGML_PLUGIN_STRING_SIZE + 1];
    char variant[GGML_PLUGIN_STRING_SIZE + 1];
    char version[GGML_PLUGIN_STRING_SIZE + 1];
    int contract_major;
    int contract_minor;
    enum ggml_machine machine;
    enum ggml_plugin_stage stage; // the last one reached
    enum ggml_host_status status;
    char message[512];      // of the failure; if loaded, what else there is to say, or ""
    char file_message[512]; // if loaded: what is wrong with its path, or ""
    bool distrusts_path;    // that it can be changed by others
    bool has_file;          // there was a file at its path then:
    struct plugin_file_id file;
    char missing[128];      // library that the linker did not find
    ggml_backend_reg_t reg; // NULL unless loaded
    double microseconds;    // examining and starting
    char path[];            // allocated with the record
};

// A record of a candidate that was found; NULL when memory runs out. Freed with ggml_mem_free, or
// owned by the list after records_put(). [any-thread]
struct record *record_new(const char *path);
// Takes over what the note says. [stream]
void record_set_note(struct record *record, const struct ggml_plugin_note *note);
// Writes down that the candidate stopped at this stage, with the thread's last error as the
// message; returns `status`. [stream]
enum ggml_host_status record_refuse(struct record *record, enum ggml_plugin_stage stage,
                                    enum ggml_host_status status);
// Copies it for a report, texts and all, into the arena; false when memory runs out. [stream]
bool record_copy(struct arena *arena, const struct record *from,
                 struct ggml_plugin_record *out_record);

// Adds it to the list, in the place of an older one of the same path and, for built-ins, name, or
// behind it where plugins run of both files that were at the path. Of a plugin that is loaded only
// the message is taken over from one that is not, behind its own and for as long as the file at its
// path is the same. [any-thread]
void records_put(struct record *record);
// Whether the file at this path is loaded. [any-thread]
bool records_loaded(const char *path);
// Nothing is wrong any more with the path of a plugin that is loaded. [any-thread]
void records_clear_file(const char *path);
// Removes the record of a plugin that was unloaded. [any-thread]
void records_forget(ggml_backend_reg_t reg);
// Notes which plugin files of a directory went away since they were seen, given the sorted paths of
// those that are there now. One that is loaded stays so and gets a message; another becomes
// NOT_FOUND. [any-thread]
void records_note_gone(const char *dir, char *const *paths, size_t count);
// Remembers a directory of the search path; a record of itself, that it is not trusted, goes when
// it is. [any-thread]
enum ggml_host_status records_put_directory(const char *path, const char *origin,
                                            enum ggml_host_status status);

#endif
