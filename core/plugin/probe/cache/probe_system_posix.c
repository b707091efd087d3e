// SPDX-License-Identifier: MIT
// A digest of the system's state (boot, kernel, drivers), on which results of probes depend.
#ifndef _WIN32
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env.h"
#include "machine/cpu_features.h"
#include "plugin/probe/cache/probe_cache.h"

#ifdef __APPLE__
#include <crt_externs.h>
#define environ (*_NSGetEnviron()) // libraries have no such variable
#else
extern char **environ;
#endif

// Hashes a text with its terminating zero, so that two texts can't be confused with one.
static void add_text(struct ggml_sha256 *sum, const char *text) {
    ggml_sha256_update(sum, text, strlen(text) + 1);
}

// The path is hashed as well, so that content can't move between files unnoticed.
static void add_content(struct ggml_sha256 *sum, const char *path) {
    char text[512];
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const ssize_t n = fd >= 0 ? read(fd, text, sizeof(text)) : -1;
    if (fd >= 0) close(fd);
    if (n <= 0) return;
    add_text(sum, path);
    ggml_sha256_update(sum, text, (size_t)n);
}

// Identity instead of contents: driver files are large.
static void add_identity(struct ggml_sha256 *sum, const char *path) {
    struct stat info;
    if (stat(path, &info) != 0) return;
    const int64_t numbers[] = {(int64_t)info.st_dev, (int64_t)info.st_ino, (int64_t)info.st_size,
#ifdef __APPLE__
                               (int64_t)info.st_mtimespec.tv_sec, info.st_mtimespec.tv_nsec};
#else
                               (int64_t)info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
#endif
    add_text(sum, path);
    ggml_sha256_update(sum, numbers, sizeof(numbers));
}

// Adds a text to a sum that doesn't depend on the order of texts, as directories and environments
// have none.
static void mix(uint64_t *out_total, const char *text) {
    uint8_t digest[GGML_SHA256_SIZE];
    uint64_t value;
    struct ggml_sha256 sum;
    ggml_sha256_init(&sum);
    add_text(&sum, text);
    ggml_sha256_final(&sum, digest);
    memcpy(&value, digest, sizeof(value));
    *out_total += value;
}

// Names in any order: their digests are added up.
static void add_names(struct ggml_sha256 *sum, const char *path) {
    uint64_t total = 0;
    DIR *stream = opendir(path);
    if (!stream) return;
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;)
        mix(&total, entry->d_name);
    closedir(stream);
    add_text(sum, path);
    ggml_sha256_update(sum, &total, sizeof(total));
}

static bool begins_with(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

// Variables that don't change what a plugin finds.
static bool is_exception(const char *variable) {
    static const char *const exceptions[] = {
#define PROBE_CONTENT(path)
#define PROBE_IDENTITY(path)
#define PROBE_NAMES(path)
#define PROBE_VARIABLES(text)
#define PROBE_EXCEPT(text) text,
#include "plugin/probe/cache/probe_system_list.inl"
    };
    for (size_t i = 0; i < sizeof(exceptions) / sizeof(*exceptions); ++i)
        if (begins_with(variable, exceptions[i])) return true;
    return false;
}

// Name and value of each variable with the prefix.
static void add_variables(struct ggml_sha256 *sum, const char *prefix) {
    uint64_t total = 0;
    for (char **variable = environ; variable && *variable; ++variable) {
        if (begins_with(*variable, prefix) && !is_exception(*variable)) mix(&total, *variable);
    }
    ggml_sha256_update(sum, &total, sizeof(total));
}

// A few system calls per entry of the list; once per run.
void probe_system_digest(const char *helper, uint8_t out_digest[GGML_SHA256_SIZE]) {
    const uint64_t features = cpu_features_detect();
    struct ggml_sha256 sum;
    ggml_sha256_init(&sum);
    ggml_sha256_update(&sum, &features, sizeof(features));
    add_identity(&sum, helper);
#define PROBE_CONTENT(path) add_content(&sum, path);
#define PROBE_IDENTITY(path) add_identity(&sum, path);
#define PROBE_NAMES(path) add_names(&sum, path);
#define PROBE_VARIABLES(text) add_variables(&sum, text);
#define PROBE_EXCEPT(text)
#include "plugin/probe/cache/probe_system_list.inl"
    ggml_sha256_final(&sum, out_digest);
}

void probe_machine_digest(const char *helper, uint8_t out_digest[GGML_SHA256_SIZE]) {
    struct ggml_sha256 sum;
    ggml_sha256_init(&sum);
    add_identity(&sum, helper);
    add_content(&sum, "/proc/sys/kernel/random/boot_id");
    add_content(&sum, "/proc/sys/kernel/osrelease");
    add_content(&sum, "/sys/devices/system/cpu/online");
    ggml_sha256_final(&sum, out_digest);
}
#endif
