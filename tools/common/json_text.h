// SPDX-License-Identifier: MIT
// Texts and numbers of strangers in JSON that is printed piece by piece.
#ifndef TOOLS_JSON_TEXT_H
#define TOOLS_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

// Length of the valid UTF-8 sequence at text, 0 if there is none.
size_t utf8_length(const char *text);
bool valid_utf8(const char *text);
// Whether the sequence at text is one of those that no XML document may have: U+FFFE and U+FFFF.
bool is_noncharacter(const char *text);

// A string with its quotes; what is no UTF-8 becomes U+FFFD. NULL is null.
void json_text_print(FILE *stream, const char *text);
// A number, with a point in every locale; null if it is not finite.
void json_number_print(FILE *stream, double value);

#endif
