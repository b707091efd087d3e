// SPDX-License-Identifier: MIT
// Decodes strictly: overlong forms, surrogates and numbers above U+10FFFF are malformed.
#include "base/data/text.h"

#include <stdint.h>

// Bytes of the sequence that starts here, 0 if malformed; *out_code is its code point.
static int decode(const unsigned char *s, uint32_t *out_code) {
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    const int length = s[0] < 0x80       ? 1
                       : s[0] >> 5 == 6  ? 2
                       : s[0] >> 4 == 14 ? 3
                       : s[0] >> 3 == 30 ? 4
                                         : 0;
    if (length == 0) return 0;
    uint32_t code = length == 1 ? s[0] : s[0] & (0x7Fu >> length);
    for (int i = 1; i < length; ++i) {
        if ((s[i] & 0xC0) != 0x80) return 0; // also stops at the final NUL
        code = code << 6 | (s[i] & 0x3Fu);
    }
    *out_code = code;
    const bool surrogate = code >= 0xD800 && code < 0xE000;
    return length > 1 && (code < smallest[length] || code > 0x10FFFF || surrogate) ? 0 : length;
}

bool utf8_valid(const char *text) {
    const unsigned char *s = (const unsigned char *)text;
    while (*s) {
        uint32_t code;
        const int length = decode(s, &code);
        if (length == 0 || code < 0x20 || code == 0x7F) return false;
        s += length;
    }
    return true;
}

static unsigned char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (unsigned char)(c - 'A' + 'a') : (unsigned char)c;
}

bool ascii_equal_n(const char *a, const char *b, size_t length) {
    for (size_t i = 0; i < length; ++i) {
        if (lower(a[i]) != lower(b[i])) return false;
        if (a[i] == '\0') return true;
    }
    return true;
}

bool ascii_equal(const char *a, const char *b) {
    return ascii_equal_n(a, b, (size_t)-1);
}
