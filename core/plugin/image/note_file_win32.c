// SPDX-License-Identifier: MIT
// Opens a plugin file once, tells which file it is, and reads it within bounds, on Windows.
#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/win32.h"
#include "plugin/image/plugin_file.h"

enum { LABEL_SIZE = 200 }; // of a long path the end says most

// As on POSIX systems.
static const char *label_of(const char *path) {
    const size_t length = strlen(path);
    return length > LABEL_SIZE ? path + length - LABEL_SIZE : path;
}

// Windows' error codes as statuses.
static enum ggml_host_status fail_with_code(const char *path, const char *what, DWORD code) {
    enum ggml_host_status status = GGML_HOST_IO_ERROR;
    if (code == ERROR_FILE_NOT_FOUND || code == ERROR_PATH_NOT_FOUND) status = GGML_HOST_NOT_FOUND;
    if (code == ERROR_ACCESS_DENIED) status = GGML_HOST_PERMISSION_DENIED;
    if (code == ERROR_INVALID_NAME || code == ERROR_FILENAME_EXCED_RANGE) {
        status = GGML_HOST_INVALID_ARGUMENT;
    }
    char text[WIN32_MESSAGE_SIZE];
    return ggml_fail(status, "%s: can't be %s: %s", label_of(path), what,
                     win32_message(code, text));
}

// Reads exactly `size` bytes at an offset, without moving the file position.
static enum ggml_host_status read_handle(void *context, uint64_t offset, void *out, size_t size) {
    OVERLAPPED place;
    DWORD n = 0;
    memset(&place, 0, sizeof(place));
    place.Offset = (DWORD)offset;
    place.OffsetHigh = (DWORD)(offset >> 32);
    if (!ReadFile((HANDLE)((const struct plugin_file *)context)->handle, out, (DWORD)size, &n,
                  &place) ||
        n != size) {
        char text[WIN32_MESSAGE_SIZE];
        return ggml_fail(GGML_HOST_IO_ERROR, "reading a plugin file: %s",
                         win32_message(GetLastError(), text));
    }
    return GGML_HOST_OK;
}

// Opens for reading without permitting others to write, rename or delete: that is Windows' way of
// sealing.
static enum ggml_host_status open_regular(const char *path, HANDLE *out_file) {
    *out_file = INVALID_HANDLE_VALUE;
    wchar_t *wide = win32_wide_path(path, 0);
    if (!wide) {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the path is not UTF-8", label_of(path));
    }
    const DWORD attributes = GetFileAttributesW(wide);
    enum ggml_host_status status = GGML_HOST_OK;
    if (attributes == INVALID_FILE_ATTRIBUTES) {
        status = fail_with_code(path, "found", GetLastError());
    } else if (attributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_DEVICE)) {
        status = ggml_fail(GGML_HOST_NOT_A_PLUGIN, "%s: not a regular file", label_of(path));
    } else {
        // While it is open, nobody can write, rename or delete it.
        *out_file = CreateFileW(wide, GENERIC_READ, FILE_SHARE_READ, NULL, OPEN_EXISTING,
                                FILE_ATTRIBUTE_NORMAL, NULL);
        if (*out_file == INVALID_HANDLE_VALUE)
            status = fail_with_code(path, "opened", GetLastError());
    }
    ggml_mem_free(wide);
    return status;
}

static uint64_t join(DWORD high, DWORD low) {
    return (uint64_t)high << 32 | low;
}

// Volume serial number and file index identify a file, as device and inode do elsewhere.
enum ggml_host_status plugin_file_open(const char *path, struct plugin_file *out_file) {
    BY_HANDLE_FILE_INFORMATION info;
    HANDLE file;
    memset(out_file, 0, sizeof(*out_file));
    out_file->handle = out_file->original = -1;
    const enum ggml_host_status status = open_regular(path, &file);
    if (status != GGML_HOST_OK) return status;
    if (!GetFileInformationByHandle(file, &info) || GetFileType(file) != FILE_TYPE_DISK) {
        CloseHandle(file);
        return ggml_fail(GGML_HOST_NOT_A_PLUGIN, "%s: not a regular file", label_of(path));
    }
    out_file->id.device = info.dwVolumeSerialNumber;
    out_file->id.inode = join(info.nFileIndexHigh, info.nFileIndexLow);
    out_file->id.size = join(info.nFileSizeHigh, info.nFileSizeLow);
    out_file->id.mtime_ns =
        (int64_t)(join(info.ftLastWriteTime.dwHighDateTime, info.ftLastWriteTime.dwLowDateTime) *
                  100);
    out_file->handle = (intptr_t)file;
    return GGML_HOST_OK;
}

void plugin_file_close(struct plugin_file *file) {
    if (!file || file->handle == -1) return;
    CloseHandle((HANDLE)file->handle);
    file->handle = -1;
}

// There are no sealed copies.
void *plugin_file_pin(const struct plugin_file *file) {
    (void)file;
    return NULL;
}

void plugin_file_unpin(void *pin) {
    (void)pin;
}

struct image_source plugin_file_source(const struct plugin_file *file, const char *path) {
    return (struct image_source){read_handle, (void *)(uintptr_t)file, file->id.size,
                                 label_of(path)};
}

enum ggml_host_status plugin_file_seal(struct plugin_file *file, const char *path) {
    (void)file;
    (void)path;
    return GGML_HOST_OK; // nobody can write to it while it is open
}

// Nothing to compare: Windows keeps an open file as it is.
enum ggml_host_status plugin_file_unchanged(const struct plugin_file *file, const char *path,
                                            bool by_path) {
    (void)file;
    (void)path;
    (void)by_path;
    return GGML_HOST_OK;
}
#endif
