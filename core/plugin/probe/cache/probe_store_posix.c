// SPDX-License-Identifier: MIT
// The cache's directory: opened component by component, so that no link of another user is
// followed, and files replaced atomically by rename().
#ifndef _WIN32
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/mem.h"
#include "base/status.h"
#include "plugin/discover/search_path.h"
#include "plugin/probe/cache/probe_cache.h"

#define TEMPORARY_PREFIX "new-"

// errno as a status, with a message.
static enum ggml_host_status fail_with_errno(const char *name, const char *what) {
    enum ggml_host_status status = GGML_HOST_IO_ERROR;
    if (errno == ENOENT) status = GGML_HOST_NOT_FOUND;
    if (errno == EACCES || errno == EPERM || errno == ELOOP) status = GGML_HOST_PERMISSION_DENIED;
    return ggml_fail(status, "probe cache: '%s' can't be %s: %s", search_path_label(name), what,
                     strerror(errno));
}

// Nobody but the user can change it.
static bool is_private(const struct stat *info) {
    return info->st_uid == geteuid() && (info->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// --- directory -----------------------------------------------------------------------------------

static bool is_trusted(const struct stat *info) {
    return info->st_uid == geteuid() || info->st_uid == 0;
}

static int denied(void) {
    errno = EACCES;
    return -1;
}

// Opens the directory `name` in `parent`, creating it if there is none. Directories and links of
// users other than root and this one are not entered, and nothing is created in directories of
// others: root with another user's HOME in its environment must not write there.
static int enter(int parent, const char *name) {
    enum { HOW = O_RDONLY | O_DIRECTORY | O_CLOEXEC };
    struct stat info;
    if (ggml_fault(GGML_FAULT_OPEN)) return -1;
    int fd = openat(parent, name, HOW | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT) {
        if (fstat(parent, &info) != 0) return -1;
        if (info.st_uid != geteuid()) return denied();
        if (mkdirat(parent, name, S_IRWXU) != 0 && errno != EEXIST) return -1;
        fd = openat(parent, name, HOW | O_NOFOLLOW);
    } else if (fd < 0 && (errno == ELOOP || errno == ENOTDIR)) {
        if (fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) != 0) return -1;
        if (!S_ISLNK(info.st_mode) || !is_trusted(&info)) return denied();
        fd = openat(parent, name, HOW);
    }
    if (fd < 0) return -1;
    if (fstat(fd, &info) == 0 && is_trusted(&info)) return fd;
    close(fd);
    return denied();
}

// Opens a path component by component; -1 with errno set on failure.
static int walk(char *path) {
    int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char *rest = path;
    for (char *name; fd >= 0 && (name = strsep(&rest, "/")) != NULL;) {
        if (name[0] == '\0') continue;
        const int next = enter(fd, name);
        const int why = errno;
        close(fd);
        errno = why;
        fd = next;
    }
    return fd;
}

// Every component of the path is checked, without following links that others could change.
enum ggml_host_status probe_store_open(const char *dir, int *out_dir) {
    struct stat info;
    *out_dir = -1;
    char *path = ggml_mem_strdup(dir);
    if (!path) return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for the probe cache");
    const int fd = walk(path);
    const int why = errno;
    ggml_mem_free(path);
    errno = why;
    if (fd < 0) {
        const enum ggml_host_status status = fail_with_errno(dir, "opened");
        return status == GGML_HOST_NOT_FOUND ? GGML_HOST_IO_ERROR : status;
    }
    if (fstat(fd, &info) != 0 || !is_private(&info)) {
        close(fd);
        return ggml_fail(GGML_HOST_PERMISSION_DENIED,
                         "probe cache: '%s' belongs to or can be changed by others",
                         search_path_label(dir));
    }
    *out_dir = fd;
    return GGML_HOST_OK;
}

void probe_store_close(int dir) {
    close(dir);
}

// --- files ---------------------------------------------------------------------------------------

// Bounded by the size of the largest entry.
static bool read_all(int fd, struct probe_writer *out_bytes) {
    unsigned char block[4096];
    for (;;) {
        const ssize_t n = ggml_fault(GGML_FAULT_READ) ? -1 : read(fd, block, sizeof(block));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        if (n == 0) return true;
        probe_put_bytes(out_bytes, block, (size_t)n);
        if (out_bytes->failed || out_bytes->size > PROBE_ENTRY_MAX) return false;
    }
}

// A regular file of this user's; links are not followed.
enum ggml_host_status probe_store_read(int dir, const char *name, struct probe_writer *out_bytes) {
    struct stat info;
    const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    const int fd = ggml_fault(GGML_FAULT_OPEN) ? -1 : openat(dir, name, flags);
    if (fd < 0) return fail_with_errno(name, "opened");
    enum ggml_host_status status = GGML_HOST_OK;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || !is_private(&info)) {
        status = ggml_fail(GGML_HOST_PERMISSION_DENIED,
                           "probe cache: '%s' is not a file that only its user can change", name);
    } else if (!read_all(fd, out_bytes)) {
        status = fail_with_errno(name, "read");
    }
    close(fd);
    return status;
}

// write() may be interrupted or write less than it was asked to.
static bool write_all(int fd, const unsigned char *bytes, size_t size) {
    while (size > 0) {
        const ssize_t n = write(fd, bytes, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        bytes += n;
        size -= (size_t)n;
    }
    return true;
}

// Written under another name and renamed, so that readers see the old entry or the new one, never a
// part.
enum ggml_host_status probe_store_write(int dir, const char *name, const void *bytes, size_t size) {
    static atomic_uint n_written; // two threads write two files
    char temporary[64];
    snprintf(temporary, sizeof(temporary), TEMPORARY_PREFIX "%ld-%u", (long)getpid(),
             atomic_fetch_add(&n_written, 1));
    unlinkat(dir, temporary, 0); // of a process that had this number before
    const int fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                          S_IRUSR | S_IWUSR);
    if (fd < 0) return fail_with_errno(temporary, "created");
    bool good = write_all(fd, bytes, size);
    good = close(fd) == 0 && good;
    good = good && renameat(dir, temporary, dir, name) == 0;
    if (good) return GGML_HOST_OK;
    const enum ggml_host_status status = fail_with_errno(name, "written");
    unlinkat(dir, temporary, 0);
    return status;
}

static bool is_old(int dir, const char *name, time_t before) {
    struct stat info;
    if (fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) != 0) return false;
    return S_ISREG(info.st_mode) && info.st_mtime < before;
}

static const char *skip_digits(const char *text) {
    return text + strspn(text, "0123456789");
}

// Whether the name is one that probe_store_write() uses. The directory may contain other files,
// which are left alone.
static bool is_ours(const char *name) {
    const size_t length = strlen(name);
    if (strncmp(name, TEMPORARY_PREFIX, sizeof(TEMPORARY_PREFIX) - 1) == 0) {
        const char *process = name + sizeof(TEMPORARY_PREFIX) - 1;
        const char *dash = skip_digits(process);
        if (dash == process || *dash != '-') return false;
        return dash[1] != '\0' && *skip_digits(dash + 1) == '\0';
    }
    return length == 2 * GGML_SHA256_SIZE && strspn(name, "0123456789abcdef") == length;
}

// Also removes temporary files of processes that were killed.
void probe_store_prune(int dir, int64_t older_than_seconds) {
    const time_t before = time(NULL) - (time_t)older_than_seconds;
    const int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = copy >= 0 ? fdopendir(copy) : NULL;
    if (!stream && copy >= 0) close(copy);
    if (!stream) return;
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        if (is_ours(entry->d_name) && is_old(dir, entry->d_name, before))
            unlinkat(dir, entry->d_name, 0);
    }
    closedir(stream);
}
#endif
