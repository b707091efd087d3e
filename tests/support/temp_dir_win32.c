// SPDX-License-Identifier: MIT
// Temporary directories and the modules of this process, for Windows.
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <stdio.h>

#include "support/plugin_dir.h"
#include "support/temp_dir.h"

const char temp_dir_separator = '\\';

bool temp_dir_make(char *out_path, size_t size) {
    static unsigned serial;
    char base[MAX_PATH];
    const DWORD length = GetTempPathA(sizeof(base), base);
    if (length == 0 || length >= sizeof(base)) return false;
    snprintf(out_path, size, "%sggml-test-%lu-%u", base, GetCurrentProcessId(), serial++);
    return CreateDirectoryA(out_path, NULL);
}

// A library that is still mapped stays.
void temp_dir_remove(const char *path) {
    char name[2 * MAX_PATH];
    WIN32_FIND_DATAA entry;
    snprintf(name, sizeof(name), "%s\\*", path);
    HANDLE search = FindFirstFileA(name, &entry);
    if (search == INVALID_HANDLE_VALUE) return;
    do {
        snprintf(name, sizeof(name), "%s\\%s", path, entry.cFileName);
        if (entry.cFileName[0] == '.') continue;
        if (!DeleteFileA(name)) RemoveDirectoryA(name);
    } while (FindNextFileA(search, &entry));
    FindClose(search);
    RemoveDirectoryA(path);
}

bool is_mapped(const char *file_name) {
    return GetModuleHandleA(file_name) != NULL;
}
