// SPDX-License-Identifier: MIT
// Text from strangers, such as names that a driver gives, without what a terminal would obey.
#include <string.h>

#include "json_text.h"
#include "print.h"

void sanitise(const char *text, char *out_text, size_t size) {
    const unsigned char *from = (const unsigned char *)text;
    size_t used = 0;
    while (*from) {
        const size_t length = utf8_length((const char *)from);
        const bool control =
            *from < 0x20 || *from == 0x7F || (length == 2 && from[0] == 0xC2 && from[1] < 0xA0);
        const size_t step = length ? length : 1;
        if (used + step >= size) break;
        if (length == 0 || control) {
            out_text[used++] = '?';
        } else {
            memcpy(out_text + used, from, step);
            used += step;
        }
        from += step;
    }
    out_text[used] = '\0';
}
