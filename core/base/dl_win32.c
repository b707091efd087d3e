// SPDX-License-Identifier: MIT
#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <stdio.h>
#include <string.h>

#include "base/dl.h"

enum { MAX_WIDE = 32768 }; // longest path that the system accepts

static bool to_wide(const char *text, wchar_t *out_wide) {
    return MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, out_wide, MAX_WIDE) > 0;
}

struct dl_library *dl_open(const char *path, char *out_message, size_t size) {
    static _Thread_local wchar_t wide[MAX_WIDE];
    HMODULE module = NULL;
    if (to_wide(path, wide)) {
        DWORD old_mode;
        SetThreadErrorMode(SEM_FAILCRITICALERRORS | SEM_NOOPENFILEERRORBOX, &old_mode);
        module = LoadLibraryExW(wide, NULL, LOAD_WITH_ALTERED_SEARCH_PATH);
        SetThreadErrorMode(old_mode, NULL);
    }
    if (!module && out_message) {
        snprintf(out_message, size, "LoadLibrary failed with error %lu", GetLastError());
    }
    return (struct dl_library *)module;
}

bool dl_can_open_file(intptr_t file, const char *path) {
    (void)file;
    (void)path;
    return false;
}

struct dl_library *dl_open_file(intptr_t file, const char *path, char *out_message, size_t size) {
    (void)file;
    return dl_open(path, out_message, size);
}

void *dl_symbol(struct dl_library *library, const char *name) {
    FARPROC address = GetProcAddress((HMODULE)library, name);
    void *symbol;
    memcpy(&symbol, &address, sizeof(symbol));
    return symbol;
}

void dl_close(struct dl_library *library) {
    if (library) FreeLibrary((HMODULE)library);
}

static bool directory_of(HMODULE module, char *out_path, size_t size) {
    static _Thread_local wchar_t wide[MAX_WIDE];
    const DWORD length = GetModuleFileNameW(module, wide, MAX_WIDE);
    if (length == 0 || length >= MAX_WIDE) return false;
    if (WideCharToMultiByte(CP_UTF8, 0, wide, -1, out_path, (int)size, NULL, NULL) == 0)
        return false;
    char *slash = strrchr(out_path, '\\');
    if (!slash) return false;
    *slash = '\0';
    return true;
}

bool dl_executable_dir(char *out_path, size_t size) {
    return directory_of(NULL, out_path, size);
}

bool dl_module_dir(const void *address, char *out_path, size_t size) {
    HMODULE module = NULL;
    const DWORD flags = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS |
                        GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
    return GetModuleHandleExW(flags, (LPCWSTR)address, &module) &&
           directory_of(module, out_path, size);
}
#endif
