// SPDX-License-Identifier: MIT
// Absolute paths and the files of a directory, on POSIX systems.
#ifndef _WIN32
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "base/fault.h"
#include "base/status.h"
#include "plugin/discover/search_path.h"

const char search_list_separator = ':';
const char search_path_separator = '/';

bool search_path_is_absolute(const char *path) {
    return path[0] == '/';
}

// errno decides the status; messages have the end of the path and the system's text.
static enum ggml_host_status fail_with_errno(const char *dir, const char *what) {
    enum ggml_host_status status = GGML_HOST_IO_ERROR;
    if (errno == ENOENT) status = GGML_HOST_NOT_FOUND;
    if (errno == EACCES || errno == EPERM) status = GGML_HOST_PERMISSION_DENIED;
    if (errno == ENOTDIR || errno == ENAMETOOLONG) status = GGML_HOST_INVALID_ARGUMENT;
    if (errno == ENOMEM) status = GGML_HOST_OUT_OF_MEMORY;
    return ggml_fail(status, "plugin directory %s: can't be %s: %s", search_path_label(dir), what,
                     strerror(errno));
}

enum ggml_host_status search_dir_visit(const char *dir,
                                       enum ggml_host_status (*visit)(const char *file_name,
                                                                      void *context),
                                       void *context) {
    DIR *stream = ggml_fault(GGML_FAULT_OPEN) ? NULL : opendir(dir);
    if (!stream) return fail_with_errno(dir, "opened");
    enum ggml_host_status status = GGML_HOST_OK;
    // errno distinguishes the end of the directory from a failure.
    while (status == GGML_HOST_OK) {
        errno = 0;
        const struct dirent *entry = ggml_fault(GGML_FAULT_READ) ? NULL : readdir(stream);
        if (!entry) {
            if (errno != 0) status = fail_with_errno(dir, "read");
            break;
        }
        status = visit(entry->d_name, context);
    }
    closedir(stream);
    return status;
}
#endif
