// SPDX-License-Identifier: MIT
// An entry is named by a digest of everything that has to be equal for it to hold (protocol,
// host, path, file, system) and begins with a digest of itself, so that half-written and stale
// entries read as none.
#include "plugin/probe/cache/probe_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/env.h"
#include "base/status.h"
#include "plugin/discover/search_path.h"
#include "plugin/probe/cache/probe_libraries.h"
#include "plugin/probe/message/probe_protocol.h"

#define ENTRY_MAGIC "GGMLPRB\x1a"

enum {
    MAGIC_SIZE = 8,
    ENTRY_HEADER_SIZE = MAGIC_SIZE + GGML_SHA256_SIZE,
    NAME_SIZE = 2 * GGML_SHA256_SIZE + 1,
    DIR_SIZE = 4096,
    DEFAULT_FAILURE_EXPIRY = 3600,
    ENTRY_EXPIRY = 90 * 24 * 3600,
    SUMMED_MAX = 1 << 30, // bytes of a file; reading takes longer than starting it in a helper
};

// --- entries -------------------------------------------------------------------------------------

static void sum_of(const void *bytes, size_t size, uint8_t out_digest[GGML_SHA256_SIZE]) {
    struct ggml_sha256 sum;
    ggml_sha256_init(&sum);
    ggml_sha256_update(&sum, bytes, size);
    ggml_sha256_final(&sum, out_digest);
}

// Everything that has to be equal for a result to hold, apart from the file's content.
static void write_terms(const struct probe_cache_key *key, struct probe_writer *writer) {
    probe_put_u32(writer, PROBE_PROTOCOL_VERSION);
    probe_hello_write(writer);
    probe_put_text(writer, key->path);
    probe_file_id_write(&key->file, writer);
    probe_put_bytes(writer, key->system, GGML_SHA256_SIZE);
}

// The checksum covers everything after the header and is filled in last.
void probe_entry_write(const struct probe_cache_key *key, int64_t probed_at,
                       const struct probe_result *result, struct probe_writer *writer) {
    static const unsigned char no_digest[GGML_SHA256_SIZE];
    const size_t start = writer->size;
    probe_put_bytes(writer, ENTRY_MAGIC, MAGIC_SIZE);
    probe_put_bytes(writer, no_digest, sizeof(no_digest));
    write_terms(key, writer);
    probe_put_bytes(writer, key->content, GGML_SHA256_SIZE);
    probe_put_u64(writer, (uint64_t)probed_at);
    probe_result_write(result, writer);
    if (writer->failed) return;
    unsigned char *entry = writer->data + start;
    sum_of(entry + ENTRY_HEADER_SIZE, writer->size - start - ENTRY_HEADER_SIZE, entry + MAGIC_SIZE);
}

// Whether the bytes are one whole entry; the digest detects entries that were cut short.
static bool is_entry(const unsigned char *bytes, size_t size) {
    uint8_t digest[GGML_SHA256_SIZE];
    if (size < ENTRY_HEADER_SIZE || size > PROBE_ENTRY_MAX) return false;
    if (memcmp(bytes, ENTRY_MAGIC, MAGIC_SIZE) != 0) return false;
    sum_of(bytes + ENTRY_HEADER_SIZE, size - ENTRY_HEADER_SIZE, digest);
    return memcmp(bytes + MAGIC_SIZE, digest, sizeof(digest)) == 0;
}

static enum ggml_host_status damaged(void) {
    return ggml_fail(GGML_HOST_DAMAGED_FILE, "an entry of the probe cache is damaged");
}

// The terms are compared as bytes with those that the current ones would be written as, so that no
// field can be forgotten.
enum ggml_host_status probe_entry_read(const void *bytes, size_t size,
                                       const struct probe_cache_key *key,
                                       uint8_t out_content[GGML_SHA256_SIZE],
                                       int64_t *out_probed_at, struct probe_result *out_result) {
    struct probe_reader reader = {.data = bytes, .size = size};
    struct probe_writer terms = {0};
    memset(out_result, 0, sizeof(*out_result));
    memset(out_content, 0, GGML_SHA256_SIZE);
    *out_probed_at = 0;
    if (!is_entry(bytes, size)) return damaged();
    probe_get_bytes(&reader, ENTRY_HEADER_SIZE);
    write_terms(key, &terms);
    const unsigned char *said = terms.failed ? NULL : probe_get_bytes(&reader, terms.size);
    const bool holds = said && memcmp(said, terms.data, terms.size) == 0;
    const bool failed = terms.failed;
    probe_writer_free(&terms);
    if (failed) return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for the probe cache");
    if (!holds) return ggml_fail(GGML_HOST_NOT_FOUND, "an entry of the probe cache is out of date");
    const unsigned char *content = probe_get_bytes(&reader, GGML_SHA256_SIZE);
    const uint64_t probed_at = probe_get_u64(&reader);
    if (reader.damaged) return damaged();
    memcpy(out_content, content, GGML_SHA256_SIZE);
    *out_probed_at = (int64_t)probed_at;
    return probe_result_read((const unsigned char *)bytes + reader.at, size - reader.at,
                             out_result);
}

// --- files ---------------------------------------------------------------------------------------

// The name of a plugin's entry: a digest of its path, so that each path has one entry and no path
// can leave the directory.
static void name_of(const char *path, char out_name[NAME_SIZE]) {
    uint8_t digest[GGML_SHA256_SIZE];
    sum_of(path, strlen(path), digest);
    for (size_t i = 0; i < sizeof(digest); ++i)
        snprintf(out_name + 2 * i, 3, "%02x", digest[i]);
}

// Digest of the file's content, zeros of none. False if the file is so large that probing it again
// is faster, if it can't be read, or if it has changed since it was opened.
static bool sum_file(const char *path, const struct plugin_file *file,
                     uint8_t out_digest[GGML_SHA256_SIZE]) {
    memset(out_digest, 0, GGML_SHA256_SIZE);
    if (!file) return true;
    if (file->id.size > SUMMED_MAX) return false;
    return plugin_file_sha256(file, path, out_digest) == GGML_HOST_OK &&
           plugin_file_unchanged(file, path, true) == GGML_HOST_OK;
}

// --- the cache -----------------------------------------------------------------------------------

// Directory of the cache: the caller's, GGML_PROBE_CACHE, XDG_CACHE_HOME, or ~/.cache. None for
// privileged processes, whose environment is not their own.
static enum ggml_host_status find_dir(const char *given, char out_dir[DIR_SIZE]) {
    const char *named = given ? given : ggml_env(GGML_ENV_GGML_PROBE_CACHE);
    const char *base = ggml_env(GGML_ENV_XDG_CACHE_HOME);
    const char *home = ggml_env(GGML_ENV_HOME);
    int n = -1;
    out_dir[0] = '\0';
    if (ggml_env_privileged()) {
        return ggml_fail(GGML_HOST_UNSUPPORTED, "a privileged process keeps no probe cache");
    }
    if (named && strcmp(named, "off") == 0) {
        return ggml_fail(GGML_HOST_UNSUPPORTED, "the probe cache is switched off");
    }
    if (named) {
        n = snprintf(out_dir, DIR_SIZE, "%s", named);
    } else if (base && search_path_is_absolute(base)) {
        n = snprintf(out_dir, DIR_SIZE, "%s/ggml-host/probe", base);
    } else if (home && search_path_is_absolute(home)) {
        n = snprintf(out_dir, DIR_SIZE, "%s/.cache/ggml-host/probe", home);
    }
    if (n > 0 && n < DIR_SIZE && search_path_is_absolute(out_dir)) return GGML_HOST_OK;
    return ggml_fail(GGML_HOST_UNSUPPORTED, "no absolute directory for the probe cache");
}

// Seconds that a failure is believed; successes have no such limit.
static int64_t failure_expiry(int64_t given) {
    const char *text = ggml_env(GGML_ENV_GGML_PROBE_FAILURE_SECONDS);
    if (given >= 0) return given;
    char *end = NULL;
    const long long seconds = text ? strtoll(text, &end, 10) : -1;
    return text && *end == '\0' && seconds >= 0 ? (int64_t)seconds : DEFAULT_FAILURE_EXPIRY;
}

// Without a usable directory nothing is remembered: the caller goes on without a cache.
static enum ggml_host_status open_cache(const char *dir, int64_t expiry,
                                        struct probe_cache *out_cache) {
    char path[DIR_SIZE];
    memset(out_cache, 0, sizeof(*out_cache));
    out_cache->dir = -1;
    out_cache->now = (int64_t)time(NULL); // also of what is not kept
    enum ggml_host_status status = find_dir(dir, path);
    if (status == GGML_HOST_OK) status = probe_store_open(path, &out_cache->dir);
    out_cache->failure_expiry = failure_expiry(expiry);
    return status;
}

enum ggml_host_status probe_cache_open(const char *dir, const char *helper, int64_t expiry,
                                       struct probe_cache *out_cache) {
    const enum ggml_host_status status = open_cache(dir, expiry, out_cache);
    if (status == GGML_HOST_OK) probe_system_digest(helper, out_cache->system);
    return status;
}

enum ggml_host_status probe_cache_open_machine(const char *helper, struct probe_cache *out_cache) {
    const enum ggml_host_status status = open_cache(NULL, -1, out_cache);
    if (status == GGML_HOST_OK) probe_machine_digest(helper, out_cache->system);
    return status;
}

void probe_cache_close(struct probe_cache *cache) {
    if (cache->dir >= 0) probe_store_close(cache->dir);
    cache->dir = -1;
}

static struct probe_cache_key key_of(const struct probe_cache *cache, const char *path,
                                     const struct plugin_file *file) {
    struct probe_cache_key key = {.path = path};
    if (file) key.file = file->id;
    memcpy(key.system, cache->system, sizeof(key.system));
    return key;
}

// A result from the future means that the clock was set back; failures expire, since a driver may
// be repaired without any file changing.
static bool is_fresh(const struct probe_cache *cache, const struct probe_result *result,
                     int64_t probed_at) {
    if (probed_at > cache->now) return false; // the clock was set back
    return result->status == GGML_HOST_OK || cache->now - probed_at < cache->failure_expiry;
}

// The terms are cheap to compare; libraries and content are only read where those hold.
bool probe_cache_find(const struct probe_cache *cache, const char *path,
                      const struct plugin_file *file, struct probe_result *out_result,
                      int64_t *out_probed_at) {
    char name[NAME_SIZE];
    uint8_t content[GGML_SHA256_SIZE], now[GGML_SHA256_SIZE];
    struct probe_writer bytes = {0};
    const struct probe_cache_key key = key_of(cache, path, file);
    memset(out_result, 0, sizeof(*out_result));
    *out_probed_at = 0;
    if (cache->dir < 0) return false;
    name_of(path, name);
    enum ggml_host_status status = probe_store_read(cache->dir, name, &bytes);
    if (status == GGML_HOST_OK) {
        status = probe_entry_read(bytes.data, bytes.size, &key, content, out_probed_at, out_result);
    }
    probe_writer_free(&bytes);
    const bool holds = status == GGML_HOST_OK && is_fresh(cache, out_result, *out_probed_at) &&
                       probe_libraries_hold(out_result) && sum_file(path, file, now) &&
                       memcmp(content, now, sizeof(now)) == 0;
    if (!holds) probe_result_free(out_result);
    return holds;
}

// Failures to write are ignored: the plugin is probed again next time.
void probe_cache_put(const struct probe_cache *cache, const char *path,
                     const struct plugin_file *file, const struct probe_result *result) {
    char name[NAME_SIZE];
    struct probe_writer bytes = {0};
    struct probe_cache_key key = key_of(cache, path, file);
    if (cache->dir < 0 || !sum_file(path, file, key.content)) return;
    name_of(path, name);
    probe_entry_write(&key, cache->now, result, &bytes);
    if (!bytes.failed) probe_store_write(cache->dir, name, bytes.data, bytes.size);
    probe_writer_free(&bytes);
}

// Entries of plugins that are gone are never looked up, so that only age removes them.
void probe_cache_prune(const struct probe_cache *cache) {
    if (cache->dir >= 0) probe_store_prune(cache->dir, ENTRY_EXPIRY);
}
