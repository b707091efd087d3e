// SPDX-License-Identifier: MIT
// What --help prints.
#ifndef TOOLS_HELP_H
#define TOOLS_HELP_H

#include <stdio.h>

// Prints a text of paragraphs and of options with what they do in a column of its own. On a
// terminal that is narrower than the text, paragraphs and that column are refilled.
void print_help(const char *text, FILE *stream);

#endif
