// SPDX-License-Identifier: MIT
// Absolute paths and the files of a directory, on Windows.
#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/win32.h"
#include "plugin/discover/search_path.h"

const char search_list_separator = ';';
const char search_path_separator = '\\';

// "C:\" or "C:/", or a UNC path; "\dir" depends on the current drive and is not absolute.
bool search_path_is_absolute(const char *path) {
    const char drive = (char)(path[0] | 0x20);
    if (path[0] == '\\' && path[1] == '\\') return true;
    return drive >= 'a' && drive <= 'z' && path[1] == ':' && (path[2] == '\\' || path[2] == '/');
}

// The system's error as a status with a message.
static enum ggml_host_status fail_with_code(const char *dir, DWORD code) {
    enum ggml_host_status status = GGML_HOST_IO_ERROR;
    if (code == ERROR_FILE_NOT_FOUND || code == ERROR_PATH_NOT_FOUND) status = GGML_HOST_NOT_FOUND;
    if (code == ERROR_ACCESS_DENIED) status = GGML_HOST_PERMISSION_DENIED;
    if (code == ERROR_DIRECTORY || code == ERROR_INVALID_NAME ||
        code == ERROR_FILENAME_EXCED_RANGE) {
        status = GGML_HOST_INVALID_ARGUMENT;
    }
    char text[WIN32_MESSAGE_SIZE];
    return ggml_fail(status, "plugin directory %s: can't be read: %s", search_path_label(dir),
                     win32_message(code, text));
}

// The pattern dir\* in UTF-16; freed by the caller, NULL on failure.
static wchar_t *pattern_of(const char *dir) {
    wchar_t *pattern = win32_wide_path(dir, 2);
    if (pattern) wcscat(pattern, L"\\*");
    return pattern;
}

enum ggml_host_status search_dir_visit(const char *dir,
                                       enum ggml_host_status (*visit)(const char *file_name,
                                                                      void *context),
                                       void *context) {
    WIN32_FIND_DATAW entry;
    char name[4 * MAX_PATH];
    wchar_t *pattern = pattern_of(dir);
    if (!pattern) return fail_with_code(dir, ERROR_INVALID_NAME);
    HANDLE search = FindFirstFileW(pattern, &entry);
    const DWORD code = GetLastError();
    ggml_mem_free(pattern);
    if (search == INVALID_HANDLE_VALUE) return fail_with_code(dir, code);
    enum ggml_host_status status = GGML_HOST_OK;
    // Names that UTF-8 can't represent are skipped: no plugin has one.
    do {
        const bool fits = WideCharToMultiByte(CP_UTF8, 0, entry.cFileName, -1, name, sizeof(name),
                                              NULL, NULL) > 0;
        if (fits) status = visit(name, context);
    } while (status == GGML_HOST_OK && FindNextFileW(search, &entry));
    FindClose(search);
    return status;
}
#endif
