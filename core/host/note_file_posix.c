// SPDX-License-Identifier: MIT
#ifndef _WIN32
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "host/note.h"

enum { LABEL_SIZE = 200 }; // of a long path the end says most

static const char *label_of(const char *path) {
    const size_t length = strlen(path);
    return length > LABEL_SIZE ? path + length - LABEL_SIZE : path;
}

static enum ggml_host_status fail_with_errno(const char *path, const char *what) {
    enum ggml_host_status status = GGML_HOST_IO_ERROR;
    if (errno == ENOENT || errno == ENOTDIR) status = GGML_HOST_NOT_FOUND;
    if (errno == EACCES || errno == EPERM) status = GGML_HOST_PERMISSION_DENIED;
    if (errno == ENAMETOOLONG) status = GGML_HOST_INVALID_ARGUMENT;
    if (errno == ENOMEM) status = GGML_HOST_OUT_OF_MEMORY;
    return ggml_fail(status, "%s: can't be %s: %s", label_of(path), what, strerror(errno));
}

static enum ggml_host_status refuse_kind(const char *path, mode_t mode) {
    return ggml_fail(GGML_HOST_NOT_A_PLUGIN, "%s: %s, not a regular file", label_of(path),
                     S_ISDIR(mode)    ? "a directory"
                     : S_ISFIFO(mode) ? "a named pipe"
                     : S_ISSOCK(mode) ? "a socket"
                                      : "a device");
}

static enum ggml_host_status read_fd(void *context, uint64_t offset, void *out, size_t size) {
    const int fd = *(const int *)context;
    size_t done = 0;
    while (done < size) {
        const ssize_t n = pread(fd, (char *)out + done, size - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            return ggml_fail(GGML_HOST_IO_ERROR, "reading a plugin file: %s", strerror(errno));
        }
        if (n == 0) {
            return ggml_fail(GGML_HOST_DAMAGED_FILE, "a plugin file shrank while it was read");
        }
        done += (size_t)n;
    }
    return GGML_HOST_OK;
}

static int64_t modified_ns(const struct stat *info) {
#ifdef __APPLE__
    const struct timespec when = info->st_mtimespec;
#else
    const struct timespec when = info->st_mtim;
#endif
    return (int64_t)((uint64_t)when.tv_sec * 1000000000u + (uint64_t)when.tv_nsec);
}

// Looks before it opens, because opening a device can already have an effect, and again afterwards.
static enum ggml_host_status open_regular(const char *path, struct stat *out_info, int *out_fd) {
    *out_fd = -1;
    if (stat(path, out_info) != 0) return fail_with_errno(path, "found");
    if (!S_ISREG(out_info->st_mode)) return refuse_kind(path, out_info->st_mode);
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) return fail_with_errno(path, "opened");
    if (fstat(fd, out_info) != 0 || !S_ISREG(out_info->st_mode)) {
        close(fd);
        return refuse_kind(path, out_info->st_mode);
    }
    *out_fd = fd;
    return GGML_HOST_OK;
}

enum ggml_host_status
note_file_visit(const char *path, struct plugin_file_id *out_id,
                enum ggml_host_status (*use)(const struct image_source *source, void *context),
                void *context) {
    struct stat info;
    int fd;
    memset(out_id, 0, sizeof(*out_id));
    enum ggml_host_status status = open_regular(path, &info, &fd);
    if (status != GGML_HOST_OK) return status;
    out_id->device = (uint64_t)info.st_dev;
    out_id->inode = (uint64_t)info.st_ino;
    out_id->size = (uint64_t)info.st_size;
    out_id->mtime_ns = modified_ns(&info);
    const struct image_source source = {read_fd, &fd, (uint64_t)info.st_size, label_of(path)};
    status = use(&source, context);
    close(fd);
    return status;
}
#endif
