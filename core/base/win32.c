// SPDX-License-Identifier: MIT
// Malformed UTF-8 fails to convert instead of getting replacement characters: otherwise another
// file than the named one could be opened.
#ifdef _WIN32
#include "base/win32.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

wchar_t *win32_wide(const char *text, size_t n_more) {
    const int length = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, NULL, 0);
    if (length <= 0) return NULL;
    wchar_t *wide = ggml_mem_alloc(((size_t)length + n_more) * sizeof(*wide));
    if (wide) MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, wide, length);
    return wide;
}

wchar_t *win32_wide_path(const char *path, size_t n_more) {
    wchar_t *wide = win32_wide(path, n_more);
    for (wchar_t *c = wide; c && *c; ++c) {
        if (*c == L'/') *c = L'\\';
    }
    return wide;
}

const char *win32_message(unsigned long code, char out_text[WIN32_MESSAGE_SIZE]) {
    wchar_t wide[WIN32_MESSAGE_SIZE];
    char text[WIN32_MESSAGE_SIZE] = "";
    const DWORD flags =
        FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS | FORMAT_MESSAGE_MAX_WIDTH_MASK;
    // A quarter of the size: a UTF-16 unit becomes at most 3 bytes of UTF-8.
    DWORD n = FormatMessageW(flags, NULL, code, 0, wide, WIN32_MESSAGE_SIZE / 4, NULL);
    // Without the final full stop and line break.
    while (n > 0 && (wide[n - 1] <= L' ' || wide[n - 1] == L'.'))
        --n;
    const int length =
        WideCharToMultiByte(CP_UTF8, 0, wide, (int)n, text, WIN32_MESSAGE_SIZE - 1, NULL, NULL);
    text[length > 0 ? length : 0] = '\0';
    // At most 200 bytes of it: the code has to fit after it.
    snprintf(out_text, WIN32_MESSAGE_SIZE, "%.200s%serror %lu%s", text, *text ? " (" : "", code,
             *text ? ")" : "");
    return out_text;
}
#endif
