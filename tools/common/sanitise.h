// SPDX-License-Identifier: MIT
// Texts of strangers, such as names that a driver gives or a file has, on their way to a terminal.
#ifndef TOOLS_SANITISE_H
#define TOOLS_SANITISE_H

#include <stddef.h>

// Copies the text without what a terminal would obey: control characters and what is no UTF-8
// become '?'. Cut to what fits, never within a character.
void sanitise(const char *text, char *out_text, size_t size);

#endif
