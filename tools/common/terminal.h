// SPDX-License-Identifier: MIT
// What the standard output and the standard error are connected to.
#ifndef TOOLS_TERMINAL_H
#define TOOLS_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

// Columns of a terminal; 0 if the stream is none, or one that does not tell.
unsigned terminal_width(FILE *stream);
// Whether a terminal is behind the stream that moves its cursor and colours text.
bool terminal_is_capable(FILE *stream);
// Whether the locale's encoding has line-drawing characters. Sets the encoding of the process
// (LC_CTYPE) to that of the environment; call it before other threads run.
bool terminal_has_utf8(void);

// Columns that a text takes: one for each character of UTF-8.
unsigned text_columns(const char *text);
// How many bytes of a text that starts in `column` fit before `width`, without the blank after the
// last word: at least one word; width 0: all.
size_t text_fit(const char *text, unsigned column, unsigned width);
// Prints a text that starts in `column`, words beyond `width` on lines of their own that begin
// `indent` columns from the left; width 0: no limit. Returns the column it ends in.
unsigned text_wrap(FILE *stream, const char *text, unsigned column, unsigned indent,
                   unsigned width);

#endif
