// SPDX-License-Identifier: MIT
// Results of earlier probes, one file per plugin in a directory of the user's.
#ifndef GGML_PLUGIN_PROBE_PROBE_CACHE_H
#define GGML_PLUGIN_PROBE_PROBE_CACHE_H

#include "base/data/sha256.h"
#include "plugin/image/plugin_file.h"
#include "plugin/probe/message/probe_result.h"

enum { PROBE_ENTRY_MAX = PROBE_RESULT_MAX + (1 << 15) };

// Terms under which a result holds. The build of the library counts too and is added by the writer.
struct probe_cache_key {
    const char *path;
    struct plugin_file_id file;
    uint8_t content[GGML_SHA256_SIZE]; // of the file
    uint8_t system[GGML_SHA256_SIZE];  // probe_system_digest()
};

// --- entries

// Appends a whole entry; probed_at in seconds since 1970. [stream]
void probe_entry_write(const struct probe_cache_key *key, int64_t probed_at,
                       const struct probe_result *result, struct probe_writer *writer);
// Reads an entry that anybody may have written. *out_content is what the file contained then.
// NOT_FOUND: it is of another plugin, or something that it holds for changed (key->content is not
// looked at); DAMAGED_FILE; OUT_OF_MEMORY; the result is empty then. [stream]
enum ggml_host_status probe_entry_read(const void *bytes, size_t size,
                                       const struct probe_cache_key *key,
                                       uint8_t out_content[GGML_SHA256_SIZE],
                                       int64_t *out_probed_at, struct probe_result *out_result);

// --- the cache

struct probe_cache {
    int dir;                // descriptor; -1: nothing is remembered
    int64_t now;            // seconds since 1970
    int64_t failure_expiry; // seconds that a failure is remembered
    uint8_t system[GGML_SHA256_SIZE];
};

// Opens the directory and creates it where needed: `dir` (absolute) if that is not NULL, else where
// GGML_PROBE_CACHE says, else ggml-host/probe below XDG_CACHE_HOME or ~/.cache. A negative expiry
// is the default. On failure nothing is remembered: UNSUPPORTED (privileged, not wanted, no home),
// PERMISSION_DENIED (the directory belongs to or can be changed by others), IO_ERROR. [any-thread]
enum ggml_host_status probe_cache_open(const char *dir, const char *helper, int64_t failure_expiry,
                                       struct probe_cache *out_cache);
// The same for what hwloc said of the machine, which depends on less. [any-thread]
enum ggml_host_status probe_cache_open_machine(const char *helper, struct probe_cache *out_cache);
void probe_cache_close(struct probe_cache *cache);
// Whether there is a result that still holds; *out_probed_at is its age. `file` is NULL for what is
// not about a file (PROBE_MACHINE). [any-thread]
bool probe_cache_find(const struct probe_cache *cache, const char *path,
                      const struct plugin_file *file, struct probe_result *out_result,
                      int64_t *out_probed_at);
// Stores a result of just now, if the open file is still the one at the path. Failures are ignored:
// the plugin is probed again next time. [any-thread]
void probe_cache_put(const struct probe_cache *cache, const char *path,
                     const struct plugin_file *file, const struct probe_result *result);

// Removes entries that were written long ago. Reads the whole directory: once per run. [any-thread]
void probe_cache_prune(const struct probe_cache *cache);

// --- per platform

// Digest of what drivers depend on: which boot this is, the kernel, its driver modules, devices on
// the bus, libraries and environment. [any-thread]
void probe_system_digest(const char *helper, uint8_t out_digest[GGML_SHA256_SIZE]);
// Digest of what the topology depends on: which boot this is, the kernel, the CPUs that are online.
// [any-thread]
void probe_machine_digest(const char *helper, uint8_t out_digest[GGML_SHA256_SIZE]);
// Opens (and creates) a directory that only this user can change; statuses as probe_cache_open.
enum ggml_host_status probe_store_open(const char *dir, int *out_dir);
void probe_store_close(int dir);
// Whole contents of a file of this user's in it, of PROBE_ENTRY_MAX bytes at most. NOT_FOUND,
// PERMISSION_DENIED, IO_ERROR, OUT_OF_MEMORY.
enum ggml_host_status probe_store_read(int dir, const char *name, struct probe_writer *out_bytes);
// Puts a file in its place at once or not at all.
enum ggml_host_status probe_store_write(int dir, const char *name, const void *bytes, size_t size);
// Removes files that were written so long ago.
void probe_store_prune(int dir, int64_t older_than_seconds);

#endif
