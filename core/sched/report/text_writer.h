// SPDX-License-Identifier: MIT
// Text that grows: what a scheduler says of a graph, for a person and as JSON.
#ifndef GGML_SCHED_TEXT_WRITER_H
#define GGML_SCHED_TEXT_WRITER_H

#include <stdbool.h>
#include <stddef.h>

#include "ggml-impl.h"

// Zero-initialised is empty. Functions that write do nothing after a failure, so that only the end
// has to be checked.
struct text_writer {
    char *text;
    size_t length, capacity;
    bool failed;
};

// As printf. [stream]
void text_put(struct text_writer *writer, const char *format, ...) GGML_ATTRIBUTE_FORMAT(2, 3);
// A JSON string; bytes that can't stand in one are replaced. [stream]
void text_put_string(struct text_writer *writer, const char *text);
// A JSON member and a comma. [stream]
void text_put_member(struct text_writer *writer, const char *name, const char *text);
// What was written, also in *out_text, which is the caller's; NULL after recording that memory ran
// out. [stream]
const char *text_finish(struct text_writer *writer, const char *function, char **out_text);

#endif
