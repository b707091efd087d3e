// SPDX-License-Identifier: MIT
// UTF-8 and ASCII: validation and case-insensitive comparison.
#ifndef GGML_BASE_TEXT_H
#define GGML_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

// Whether the text is well-formed UTF-8 (no overlong forms, no surrogates) without control
// characters. [any-thread]
bool utf8_valid(const char *text);

// Whether the texts, or their first `length` characters, are equal but for the case of ASCII
// letters, whatever the locale. [any-thread]
bool ascii_equal(const char *a, const char *b);
bool ascii_equal_n(const char *a, const char *b, size_t length);

#endif
