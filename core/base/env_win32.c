// SPDX-License-Identifier: MIT
// getenv() returns text in the system's code page, which loses what that lacks.
#ifdef _WIN32
#include "base/env_win32.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <pthread.h>
#include <string.h>

#include "base/mem.h"
#include "base/win32.h"

// Values are never freed: a caller may still read the pointer that it got earlier. Equal values are
// stored once, so that the list grows only with changes.
struct value {
    struct value *older;
    char text[];
};

static struct value *known[GGML_ENV_COUNT + 1]; // the last: of variables that plugins name
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static wchar_t *read_wide(const char *name) {
    wchar_t *wide_name = win32_wide(name, 0);
    const DWORD size = wide_name ? GetEnvironmentVariableW(wide_name, NULL, 0) : 0;
    wchar_t *value = size > 0 ? ggml_mem_alloc(size * sizeof(*value)) : NULL;
    if (value) {
        const DWORD length = GetEnvironmentVariableW(wide_name, value, size);
        if (length >= size) value[0] = L'\0'; // changed in between
    }
    ggml_mem_free(wide_name);
    return value;
}

static struct value *find(enum ggml_env variable, const char *text) {
    struct value *value = known[variable];
    while (value && strcmp(value->text, text) != 0)
        value = value->older;
    return value;
}

// Returns the stored value of the same text, or stores `fresh`. Takes ownership of `fresh`.
static const char *keep(enum ggml_env variable, struct value *fresh) {
    pthread_mutex_lock(&lock);
    struct value *value = find(variable, fresh->text);
    if (value) {
        ggml_mem_free(fresh);
    } else {
        value = fresh;
        value->older = known[variable];
        known[variable] = value;
    }
    pthread_mutex_unlock(&lock);
    return value->text;
}

const char *env_read(enum ggml_env variable, const char *name) {
    wchar_t *wide = read_wide(name);
    if (!wide) return NULL;
    const int size = WideCharToMultiByte(CP_UTF8, 0, wide, -1, NULL, 0, NULL, NULL);
    struct value *fresh = size > 0 ? ggml_mem_alloc(sizeof(*fresh) + (size_t)size) : NULL;
    if (fresh) WideCharToMultiByte(CP_UTF8, 0, wide, -1, fresh->text, size, NULL, NULL);
    ggml_mem_free(wide);
    return fresh ? keep(variable, fresh) : NULL;
}
#endif
