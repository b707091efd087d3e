// SPDX-License-Identifier: MIT
// What a tool is busy with, in the last line of a terminal.
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

// From now on the standard error, if it is a terminal that can do it, has a line with the text and
// the seconds since, once that is a second ago. One at a time. Whole lines of the standard output
// may be written meanwhile.
void progress_begin(const char *text);
// Replaces the text.
void progress_set(const char *text);
// Removes the line.
void progress_end(void);

#endif
