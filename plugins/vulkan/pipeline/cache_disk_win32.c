// SPDX-License-Identifier: MIT
// Whose a file is follows from the directory: a user's local data are the user's.
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include "pipeline/cache_disk.h"

enum { WIDE_PATH = 2048 };

static bool to_wide(const char *path, wchar_t out_wide[WIDE_PATH]) {
    return MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, out_wide, WIDE_PATH) > 0;
}

static FILE *open_file(const char *path, const wchar_t *mode) {
    wchar_t wide[WIDE_PATH];
    return to_wide(path, wide) ? _wfopen(wide, mode) : NULL;
}

bool gvk_disk_is_absolute(const char *path) {
    return path[0] && path[1] == ':' && (path[2] == '/' || path[2] == '\\');
}

// The cache folder of the user; empty if neither variable is an absolute path.
void gvk_disk_default_dir(char *out_path, size_t size) {
    static const wchar_t *const names[] = {L"XDG_CACHE_HOME", L"LOCALAPPDATA"};
    wchar_t wide[WIDE_PATH];
    char base[4 * WIDE_PATH];
    out_path[0] = '\0';
    for (int i = 0; i < 2 && out_path[0] == '\0'; ++i) {
        const DWORD length = GetEnvironmentVariableW(names[i], wide, WIDE_PATH);
        if (length == 0 || length >= WIDE_PATH ||
            WideCharToMultiByte(CP_UTF8, 0, wide, -1, base, sizeof(base), NULL, NULL) == 0 ||
            !gvk_disk_is_absolute(base)) {
            continue;
        }
        const int n = snprintf(out_path, size, "%s/ggml-host", base);
        if (n < 0 || (size_t)n >= size) out_path[0] = '\0';
    }
}

bool gvk_disk_enter(const char *dir, bool makes) {
    wchar_t wide[WIDE_PATH];
    if (!to_wide(dir, wide)) return false;
    // One level after the other; the first ones are there.
    for (wchar_t *end = wide; makes && (end = wcspbrk(end + 1, L"/\\"));) {
        const wchar_t separator = *end;
        *end = L'\0';
        CreateDirectoryW(wide, NULL);
        *end = separator;
    }
    if (makes) CreateDirectoryW(wide, NULL);
    return true;
}

FILE *gvk_disk_open_own(const char *path) {
    return open_file(path, L"rb");
}

FILE *gvk_disk_create_beside(const char *target, char *out_path, size_t size) {
    snprintf(out_path, size, "%s.%lu", target, GetCurrentProcessId());
    return open_file(out_path, L"wb");
}

bool gvk_disk_rename(const char *path, const char *target) {
    wchar_t wide[WIDE_PATH], wide_target[WIDE_PATH];
    return to_wide(path, wide) && to_wide(target, wide_target) &&
           MoveFileExW(wide, wide_target, MOVEFILE_REPLACE_EXISTING);
}

void gvk_disk_remove(const char *path) {
    wchar_t wide[WIDE_PATH];
    if (to_wide(path, wide)) DeleteFileW(wide);
}
