// SPDX-License-Identifier: MIT
// A file that a tool writes: whole, or not at all.
#ifndef TOOLS_OUTPUT_FILE_H
#define TOOLS_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

enum { OUTPUT_PATH_SIZE = 4096 };

struct output_file {
    FILE *stream;
    const char *program, *path;
    char beside[OUTPUT_PATH_SIZE]; // that takes the path's place when it is complete; "": none
};

// Opens what is to become the file at `path`, which stays as it is until output_file_close(); "-"
// is the standard output. False after a message that begins with `program`. The strings must
// outlive the file.
bool output_file_open(struct output_file *file, const char *program, const char *path);
// Closes it, and puts it in place if `good` and nothing failed; otherwise removes it. Returns
// whether it is there, after a message if it could not be written.
bool output_file_close(struct output_file *file, bool good);

#endif
