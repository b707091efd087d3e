// SPDX-License-Identifier: MIT
// Opening libraries by LoadLibraryEx(), and finding the directory of the running program.
#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <stdio.h>
#include <string.h>

#include "base/dl/dl.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/win32.h"

// A library that lacks something is a status, not a dialog box. What it needs is looked for beside
// it, beside the executable and among the system's: not in the working directory, nor along PATH.
static HMODULE load(const char *path, DWORD *out_code) {
    DWORD old_mode = 0;
    HMODULE module = NULL;
    wchar_t *wide = win32_wide_path(path, 0);
    *out_code = ERROR_INVALID_NAME;
    if (!wide) return NULL;
    SetThreadErrorMode(SEM_FAILCRITICALERRORS | SEM_NOOPENFILEERRORBOX, &old_mode);
    module = LoadLibraryExW(wide, NULL,
                            LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
    *out_code = module ? ERROR_SUCCESS : GetLastError();
    SetThreadErrorMode(old_mode, NULL);
    ggml_mem_free(wide);
    return module;
}

struct dl_library *dl_open(const char *path, char *out_message, size_t size) {
    char text[WIN32_MESSAGE_SIZE];
    DWORD code = ERROR_ACCESS_DENIED;
    HMODULE module = ggml_fault(GGML_FAULT_LINK) ? NULL : load(path, &code);
    if (!module && out_message) {
        snprintf(out_message, size, "%s%s", win32_message(code, text),
                 code == ERROR_MOD_NOT_FOUND ? ": it or a library that it needs is missing" : "");
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

bool dl_takes_path(const char *path) {
    (void)path;
    return true;
}

enum ggml_host_status dl_check_mapping(struct dl_library *library, intptr_t file,
                                       const char *path) {
    (void)library;
    (void)file;
    (void)path;
    return GGML_HOST_OK; // the file is open without sharing
}

void *dl_symbol(struct dl_library *library, const char *name) {
    FARPROC address = GetProcAddress((HMODULE)library, name);
    void *symbol;
    // A function's address becomes a data pointer: a cast is not ISO C.
    memcpy(&symbol, &address, sizeof(symbol));
    return symbol;
}

void dl_close(struct dl_library *library) {
    if (library) FreeLibrary((HMODULE)library);
}

// Directory of the module's file in UTF-8; false if the name is longer than WIN32_PATH_MAX.
static bool directory_of(HMODULE module, char *out_path, size_t size) {
    bool known = false;
    wchar_t *wide = ggml_mem_alloc(WIN32_PATH_MAX * sizeof(*wide));
    const DWORD length = wide ? GetModuleFileNameW(module, wide, WIN32_PATH_MAX) : 0;
    wchar_t *slash = length > 0 && length < WIN32_PATH_MAX ? wcsrchr(wide, L'\\') : NULL;
    if (slash) {
        *slash = L'\0';
        known = WideCharToMultiByte(CP_UTF8, WC_ERR_INVALID_CHARS, wide, -1, out_path, (int)size,
                                    NULL, NULL) > 0;
    }
    ggml_mem_free(wide);
    return known;
}

bool dl_executable_dir(char *out_path, size_t size) {
    return directory_of(NULL, out_path, size);
}

bool dl_module_dir(const void *address, char *out_path, size_t size) {
    HMODULE module = NULL;
    const DWORD flags =
        GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
    return GetModuleHandleExW(flags, (LPCWSTR)address, &module) &&
           directory_of(module, out_path, size);
}
#endif
