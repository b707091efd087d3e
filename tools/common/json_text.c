// SPDX-License-Identifier: MIT
// Escapes what JSON wants escaped, and '<', so that JSON can stand in HTML; replaces what is not
// UTF-8; numbers have a point in every locale.
#include "json_text.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

size_t utf8_length(const char *from) {
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } forms[] = {{0x80, 0x00, 0x0}, {0xE0, 0xC0, 0x80}, {0xF0, 0xE0, 0x800}, {0xF8, 0xF0, 0x10000}};
    const unsigned char *text = (const unsigned char *)from;
    for (size_t length = 1; length <= 4; ++length) {
        if ((text[0] & forms[length - 1].mask) != forms[length - 1].lead) continue;
        uint32_t code = text[0] & (unsigned char)~forms[length - 1].mask;
        for (size_t i = 1; i < length; ++i) {
            if ((text[i] & 0xC0) != 0x80) return 0;
            code = code << 6 | (text[i] & 0x3F);
        }
        const bool surrogate = code >= 0xD800 && code < 0xE000;
        return code >= forms[length - 1].least && code < 0x110000 && !surrogate ? length : 0;
    }
    return 0;
}

bool valid_utf8(const char *text) {
    for (size_t length; *text; text += length) {
        length = utf8_length(text);
        if (length == 0) return false;
    }
    return true;
}

bool is_noncharacter(const char *text) {
    return strncmp(text, "\xEF\xBF\xBE", 3) == 0 || strncmp(text, "\xEF\xBF\xBF", 3) == 0;
}

void json_text_print(FILE *stream, const char *text) {
    if (!text) {
        fputs("null", stream);
        return;
    }
    fputc('"', stream);
    while (*text) {
        const unsigned char c = (unsigned char)*text;
        const size_t length = utf8_length(text);
        if (length == 0 || c < 0x20 || c == 0x7F || c == '<') {
            fprintf(stream, "\\u%04x", length == 0 ? 0xFFFDu : c);
        } else {
            if (c == '"' || c == '\\') fputc('\\', stream);
            fwrite(text, 1, length, stream);
        }
        text += length > 0 ? length : 1;
    }
    fputc('"', stream);
}

void json_number_print(FILE *stream, double value) {
    char text[64];
    if (!isfinite(value)) {
        fputs("null", stream);
        return;
    }
    snprintf(text, sizeof(text), "%.9g", value);
    const size_t whole = strspn(text, "+-0123456789"),
                 rest = whole + strcspn(text + whole, "0123456789e");
    fwrite(text, 1, whole, stream);
    if (rest > whole) fputc('.', stream);
    fputs(text + rest, stream);
}
