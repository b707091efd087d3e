// SPDX-License-Identifier: MIT
// A buffer that doubles. When memory runs out the text is dropped, and the failure is told once, by
// text_finish().
#include "sched/report/text_writer.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/array.h"
#include "base/data/text.h"
#include "base/mem.h"
#include "base/status.h"

// Room for `more` bytes and the end. false from the first failure on, so that callers may go on
// without asking.
static bool make_room(struct text_writer *writer, size_t more) {
    writer->failed = writer->failed ||
                     !array_extend(&writer->text, &writer->capacity, writer->length, more + 1, 1);
    return !writer->failed;
}

// Formats twice, first for the length: no text is cut off.
void text_put(struct text_writer *writer, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0 || !make_room(writer, (size_t)length)) return;
    va_start(args, format);
    vsnprintf(writer->text + writer->length, (size_t)length + 1, format, args);
    va_end(args);
    writer->length += (size_t)length;
}

// By RFC 8259. A text that is not UTF-8 keeps its ASCII characters, and each other byte becomes
// U+FFFD: names of tensors may hold anything.
void text_put_string(struct text_writer *writer, const char *text) {
    const bool is_utf8 = utf8_valid(text);
    text_put(writer, "\"");
    for (; *text; ++text) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') {
            text_put(writer, "\\%c", c);
        } else if (c < 0x20 || c == 0x7F || (c > 0x7F && !is_utf8)) {
            text_put(writer, "\\u%04x", c < 0x20 ? c : 0xFFFD);
        } else {
            text_put(writer, "%c", c);
        }
    }
    text_put(writer, "\"");
}

// The comma behind it suits objects whose last member is a number, which callers put themselves.
void text_put_member(struct text_writer *writer, const char *name, const char *text) {
    text_put(writer, "\"%s\": ", name);
    text_put_string(writer, text);
    text_put(writer, ", ");
}

// The caller keeps the text, and frees it with the object that it belongs to.
const char *text_finish(struct text_writer *writer, const char *function, char **out_text) {
    if (writer->failed) {
        ggml_mem_free(writer->text);
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory to write it", function);
        return NULL;
    }
    *out_text = writer->text;
    return writer->text;
}
