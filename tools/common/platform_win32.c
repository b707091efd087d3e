// SPDX-License-Identifier: MIT
// Arguments, paths and environment in UTF-8 on Windows, which has them in UTF-16.
#include "platform.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>
// After windows.h.
#include <shellapi.h>

// --- conversion

static char *to_utf8(const wchar_t *wide) {
    const int size = WideCharToMultiByte(CP_UTF8, 0, wide, -1, NULL, 0, NULL, NULL);
    char *text = size > 0 ? malloc((size_t)size) : NULL;
    if (text) WideCharToMultiByte(CP_UTF8, 0, wide, -1, text, size, NULL, NULL);
    return text;
}

static wchar_t *to_wide(const char *text) {
    const int size = MultiByteToWideChar(CP_UTF8, 0, text, -1, NULL, 0);
    wchar_t *wide = size > 0 ? malloc((size_t)size * sizeof(*wide)) : NULL;
    if (wide) MultiByteToWideChar(CP_UTF8, 0, text, -1, wide, size);
    return wide;
}

// --- what the tools ask for

// The arguments live as long as the process.
void use_utf8(int *argc, char ***argv) {
    int count = 0;
    wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), &count);
    char **texts = wide ? calloc((size_t)count + 1, sizeof(*texts)) : NULL;
    bool ok = texts != NULL;
    for (int i = 0; ok && i < count; ++i) {
        texts[i] = to_utf8(wide[i]);
        ok = texts[i] != NULL;
    }
    LocalFree(wide);
    SetConsoleOutputCP(CP_UTF8);
    SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX | SEM_NOOPENFILEERRORBOX);
    if (!ok) return;
    *argc = count;
    *argv = texts;
}

const char *absolute_path(const char *path) {
    static char absolute[8192];
    wchar_t *wide = to_wide(path);
    wchar_t *full = wide ? _wfullpath(NULL, wide, 0) : NULL;
    const bool fits = full && WideCharToMultiByte(CP_UTF8, 0, full, -1, absolute, sizeof(absolute),
                                                  NULL, NULL) > 0;
    free(full);
    free(wide);
    return fits ? absolute : path;
}

bool set_variable(const char *name, const char *value) {
    wchar_t *wide_name = to_wide(name);
    wchar_t *wide_value = to_wide(value);
    const bool set = wide_name && wide_value && _wputenv_s(wide_name, wide_value) == 0;
    free(wide_value);
    free(wide_name);
    return set;
}
