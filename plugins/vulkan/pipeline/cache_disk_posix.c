// SPDX-License-Identifier: MIT
// Directories and files of the pipeline cache, on POSIX systems.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu/base/folder.h"
#include "pipeline/cache_disk.h"

// A program with more rights than its caller does not follow the caller's variables.
static const char *variable(const char *name) {
#ifdef __GLIBC__
    const char *value = secure_getenv(name);
#else
    const char *value = getenv(name);
#endif
    return value ? value : "";
}

bool gvk_disk_is_absolute(const char *path) {
    return path[0] == '/';
}

// $XDG_CACHE_HOME/ggml-host or ~/.cache/ggml-host; empty where neither is an absolute path.
void gvk_disk_default_dir(char *out_path, size_t size) {
    const char *base = variable("XDG_CACHE_HOME");
    const char *home = variable("HOME");
    out_path[0] = '\0';
    if (gvk_disk_is_absolute(base)) {
        snprintf(out_path, size, "%s/ggml-host", base);
    } else if (gvk_disk_is_absolute(home)) {
        snprintf(out_path, size, "%s/.cache/ggml-host", home);
    }
}

bool gvk_disk_enter(const char *dir, bool makes) {
    return gpu_folder_is_trusted(dir, makes);
}

// Only a regular file of this user that others can't write: the driver trusts what it gets. A pipe
// is not waited for.
FILE *gvk_disk_open_own(const char *path) {
    struct stat about;
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    const bool is_own = fd >= 0 && fstat(fd, &about) == 0 && about.st_uid == geteuid() &&
                        S_ISREG(about.st_mode) && (about.st_mode & (S_IWGRP | S_IWOTH)) == 0;
    FILE *file = is_own ? fdopen(fd, "rb") : NULL;
    if (!file && fd >= 0) close(fd);
    return file;
}

// A new file in the target's folder, on the same file system, so that it can be renamed into place
// atomically. NULL on failure.
FILE *gvk_disk_create_beside(const char *target, char *out_path, size_t size) {
    snprintf(out_path, size, "%s.XXXXXX", target);
    const int fd = mkstemp(out_path);
    FILE *file = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (!file && fd >= 0) close(fd);
    return file;
}

bool gvk_disk_rename(const char *path, const char *target) {
    return rename(path, target) == 0;
}

void gvk_disk_remove(const char *path) {
    remove(path);
}
