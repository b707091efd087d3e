// SPDX-License-Identifier: MIT
// Replaces control characters, those of two bytes (U+0080 to U+009F) too, and what a drawing can't
// have.
#include "sanitise.h"

#include <string.h>

#include "json_text.h"

void sanitise(const char *text, char *out_text, size_t size) {
    const unsigned char *from = (const unsigned char *)text;
    size_t used = 0;
    while (*from) {
        const size_t length = utf8_length((const char *)from);
        const bool control =
            *from < 0x20 || *from == 0x7F || (length == 2 && from[0] == 0xC2 && from[1] < 0xA0);
        const size_t step = length ? length : 1;
        if (used + step >= size) break;
        if (length == 0 || control || is_noncharacter((const char *)from)) {
            out_text[used++] = '?';
        } else {
            memcpy(out_text + used, from, step);
            used += step;
        }
        from += step;
    }
    out_text[used] = '\0';
}
