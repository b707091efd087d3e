// SPDX-License-Identifier: MIT
// UTF-8 outside, UTF-16 inside, and the system's messages. Only on Windows.
#ifndef GGML_BASE_WIN32_H
#define GGML_BASE_WIN32_H

#include <stddef.h>
#include <wchar.h>

enum { WIN32_MESSAGE_SIZE = 256, WIN32_PATH_MAX = 32768 };

// The text in UTF-16 with room for n_more characters after it, or NULL if it is no UTF-8 or memory
// gives out; freed with ggml_mem_free. [any-thread]
wchar_t *win32_wide(const char *text, size_t n_more);
// The same as a path for the system's calls: with backslashes. [any-thread]
wchar_t *win32_wide_path(const char *path, size_t n_more);
// The system's message for an error code, in UTF-8 and on one line, with the code. Returns
// out_text.
// [any-thread]
const char *win32_message(unsigned long code, char out_text[WIN32_MESSAGE_SIZE]);

#endif
