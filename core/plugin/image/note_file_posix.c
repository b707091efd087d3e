// SPDX-License-Identifier: MIT
// Opens a plugin file once, tells which file it is, and reads it within bounds, on POSIX systems.
#ifndef _WIN32
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/sendfile.h>
#endif

#include "base/fault.h"
#include "base/status.h"
#include "plugin/image/plugin_file.h"

enum { LABEL_SIZE = 200 }; // of a long path the end says most

// The end of a path, for messages.
static const char *label_of(const char *path) {
    const size_t length = strlen(path);
    return length > LABEL_SIZE ? path + length - LABEL_SIZE : path;
}

// Sets the error by errno, which the caller has from a call that just failed.
static enum ggml_host_status fail_with_errno(const char *path, const char *what) {
    enum ggml_host_status status = GGML_HOST_IO_ERROR;
    if (errno == ENOENT || errno == ENOTDIR) status = GGML_HOST_NOT_FOUND;
    if (errno == EACCES || errno == EPERM) status = GGML_HOST_PERMISSION_DENIED;
    if (errno == ENAMETOOLONG) status = GGML_HOST_INVALID_ARGUMENT;
    if (errno == ENOMEM) status = GGML_HOST_OUT_OF_MEMORY;
    return ggml_fail(status, "%s: can't be %s: %s", label_of(path), what, strerror(errno));
}

// Sets the error for what is no regular file; links were followed.
static enum ggml_host_status refuse_kind(const char *path, mode_t mode) {
    return ggml_fail(GGML_HOST_NOT_A_PLUGIN, "%s: %s, not a regular file", label_of(path),
                     S_ISDIR(mode)    ? "a directory"
                     : S_ISFIFO(mode) ? "a named pipe"
                     : S_ISSOCK(mode) ? "a socket"
                                      : "a device");
}

// Reads exactly `size` bytes at an offset. A file that ends before that has shrunk since it was
// opened, and is damaged.
static enum ggml_host_status read_fd(void *context, uint64_t offset, void *out, size_t size) {
    const int fd = (int)((const struct plugin_file *)context)->handle;
    size_t done = 0;
    while (done < size) {
        const ssize_t n = ggml_fault(GGML_FAULT_READ)
                              ? -1
                              : pread(fd, (char *)out + done, size - done, (off_t)(offset + done));
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

static int64_t nanoseconds(struct timespec when) {
    return (int64_t)((uint64_t)when.tv_sec * 1000000000u + (uint64_t)when.tv_nsec);
}

// Identity of a file: two equal ones mean the same unchanged file, as far as the file system's
// times tell.
static struct plugin_file_id identify(const struct stat *info) {
    struct plugin_file_id id;
    memset(&id, 0, sizeof(id));
    id.device = (uint64_t)info->st_dev;
    id.inode = (uint64_t)info->st_ino;
    id.size = (uint64_t)info->st_size;
#ifdef __APPLE__
    id.mtime_ns = nanoseconds(info->st_mtimespec);
    id.ctime_ns = nanoseconds(info->st_ctimespec);
#else
    id.mtime_ns = nanoseconds(info->st_mtim);
    id.ctime_ns = nanoseconds(info->st_ctim);
#endif
    return id;
}

// stat() of the descriptor if there is one, else of the path. False with errno set.
static bool ask(int fd, const char *path, struct stat *out_info) {
    if (ggml_fault(GGML_FAULT_STAT)) return false;
    return (fd >= 0 ? fstat(fd, out_info) : stat(path, out_info)) == 0;
}

bool plugin_file_identify(const char *path, struct plugin_file_id *out_id) {
    struct stat info;
    memset(out_id, 0, sizeof(*out_id));
    if (!ask(-1, path, &info)) return false;
    *out_id = identify(&info);
    return true;
}

// Opens a regular file. The type is checked before opening, since opening a device may already have
// an effect, and again on the descriptor, since the path may lead elsewhere by then.
enum ggml_host_status plugin_file_open(const char *path, struct plugin_file *out_file) {
    struct stat info;
    memset(out_file, 0, sizeof(*out_file));
    out_file->handle = out_file->original = -1;
    if (!ask(-1, path, &info)) return fail_with_errno(path, "found");
    if (!S_ISREG(info.st_mode)) return refuse_kind(path, info.st_mode);
    const int fd =
        ggml_fault(GGML_FAULT_OPEN) ? -1 : open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) return fail_with_errno(path, "opened");
    enum ggml_host_status status = GGML_HOST_OK;
    if (!ask(fd, path, &info)) {
        status = fail_with_errno(path, "asked for its state");
    } else if (!S_ISREG(info.st_mode)) {
        status = refuse_kind(path, info.st_mode);
    } else if ((uint64_t)info.st_size > PLUGIN_FILE_MAX) {
        status = ggml_fail(GGML_HOST_NOT_A_PLUGIN, "%s: larger than any plugin", label_of(path));
    } else {
        out_file->id = identify(&info);
        out_file->handle = fd;
    }
    if (status != GGML_HOST_OK) close(fd);
    return status;
}

void plugin_file_close(struct plugin_file *file) {
    if (!file || file->handle < 0) return;
    close((int)file->handle);
    if (file->original >= 0) close((int)file->original);
    file->handle = file->original = -1;
}

// A page that nobody can touch.
void *plugin_file_pin(const struct plugin_file *file) {
    if (file->original < 0) return NULL;
    void *pin = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE, (int)file->original, 0);
    return pin == MAP_FAILED ? NULL : pin;
}

void plugin_file_unpin(void *pin) {
    if (pin) munmap(pin, 1);
}

#if defined(__linux__) && defined(F_SEAL_WRITE)
// Copies a file inside the kernel; false with errno set.
static bool copy_all(int from, int to, uint64_t size) {
    off_t at = 0;
    errno = EIO; // if it ends too soon
    while ((uint64_t)at < size) {
        const ssize_t n = ggml_fault(GGML_FAULT_READ)
                              ? -1
                              : sendfile(to, from, &at, (size_t)(size - (uint64_t)at));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
    }
    return true;
}

// A descriptor of an empty memory file named after the plugin, so that debuggers show the name; -1
// with errno set.
static int make_memory_file(const char *path) {
    const char *slash = strrchr(path, '/');
    char name[64];
    snprintf(name, sizeof(name), "%s", slash ? slash + 1 : path);
    // Without the flag, systems with vm.memfd_noexec=1 create files that can't be mapped as code.
    const unsigned may_be_mapped_as_code = 0x10; // MFD_EXEC, which older systems don't know
    const int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | may_be_mapped_as_code);
    if (fd >= 0 || errno != EINVAL) return fd;
    return memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

// Seals make the copy immutable, for this process too.
enum ggml_host_status plugin_file_seal(struct plugin_file *file, const char *path) {
    if (file->original >= 0) return GGML_HOST_OK;
    const int copy = ggml_fault(GGML_FAULT_OPEN) ? -1 : make_memory_file(path);
    if (copy < 0) {
        // Where memory files don't exist the file itself is used; only lack of resources is a
        // failure.
        if (errno != EMFILE && errno != ENFILE && errno != ENOMEM) return GGML_HOST_OK;
        return fail_with_errno(path, "copied into memory");
    }
    const int seals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
    if (!copy_all((int)file->handle, copy, file->id.size) || fcntl(copy, F_ADD_SEALS, seals) != 0) {
        const enum ggml_host_status status = fail_with_errno(path, "copied into memory");
        close(copy);
        return status;
    }
    file->original = file->handle;
    file->handle = copy;
    return GGML_HOST_OK;
}
#else
enum ggml_host_status plugin_file_seal(struct plugin_file *file, const char *path) {
    (void)file;
    (void)path;
    return GGML_HOST_OK;
}
#endif

struct image_source plugin_file_source(const struct plugin_file *file, const char *path) {
    return (struct image_source){read_fd, (void *)(uintptr_t)file, file->id.size, label_of(path)};
}

// A sealed copy can't change. With by_path the path is compared too, since the linker will open it
// again.
enum ggml_host_status plugin_file_unchanged(const struct plugin_file *file, const char *path,
                                            bool by_path) {
    struct stat info;
    if (file->original >= 0 && !by_path) return GGML_HOST_OK; // nobody can change the copy
    const intptr_t fd = file->original >= 0 ? file->original : file->handle;
    if (!ask((int)fd, path, &info)) return fail_with_errno(path, "asked for its state");
    struct plugin_file_id id = identify(&info);
    bool same = plugin_file_is_same(&id, &file->id);
    if (same && by_path) {
        if (!ask(-1, path, &info)) return fail_with_errno(path, "found");
        id = identify(&info);
        same = plugin_file_is_same(&id, &file->id);
    }
    if (same) return GGML_HOST_OK;
    return ggml_fail(GGML_HOST_DAMAGED_FILE, "'%s' changed while it was being loaded: try again",
                     label_of(path));
}
#endif
