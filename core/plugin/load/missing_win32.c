// SPDX-License-Identifier: MIT
// Windows reports that something is missing, not what: the imports are tried one by one.
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/win32.h"
#include "plugin/discover/search_path.h"
#include "plugin/load/missing.h"

// A path that can be asked for; directories count too, which no import names.
static bool is_file(const char *path) {
    wchar_t *wide = win32_wide_path(path, 0);
    const DWORD attributes = wide ? GetFileAttributesW(wide) : INVALID_FILE_ATTRIBUTES;
    ggml_mem_free(wide);
    return attributes != INVALID_FILE_ATTRIBUTES;
}

// Whether the linker would find a library, beside the plugin or elsewhere. It is mapped as data at
// most, so that none of its code runs.
static bool is_there(const char *plugin, const char *name) {
    char beside[4096];
    const int dir_length = (int)(search_path_file_name(plugin) - plugin);
    const int n = snprintf(beside, sizeof(beside), "%.*s%s", dir_length, plugin, name);
    // A path that is too long can't be checked, and is not blamed.
    if (n < 0 || (size_t)n >= sizeof(beside) || is_file(beside)) return true;
    // Names of interfaces, which the linker knows files for.
    if (strncmp(name, "api-ms-", 7) == 0 || strncmp(name, "ext-ms-", 7) == 0) return true;
    wchar_t *wide = win32_wide(name, 0);
    if (!wide || GetModuleHandleW(wide)) {
        ggml_mem_free(wide);
        return true;
    }
    HMODULE module =
        LoadLibraryExW(wide, NULL, LOAD_LIBRARY_AS_DATAFILE | LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
    if (module) FreeLibrary(module);
    ggml_mem_free(wide);
    return module != NULL;
}

// The first import that isn't found; usually the only one.
bool missing_import(const struct plugin_file *file, const char *path, char *out_name, size_t size) {
    const struct image_source source = plugin_file_source(file, path);
    for (unsigned i = 0; image_import_pe(&source, i, out_name, size); ++i) {
        if (!is_there(path, out_name)) return true;
    }
    if (size > 0) out_name[0] = '\0';
    return false;
}
