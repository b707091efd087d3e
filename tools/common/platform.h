// SPDX-License-Identifier: MIT
// Where systems differ for a command-line tool. Text is UTF-8 everywhere.
#ifndef TOOLS_PLATFORM_H
#define TOOLS_PLATFORM_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)

// What Windows and its C library have to be told and asked for that: platform_win32.c.
void use_utf8(int *argc, char ***argv);
const char *absolute_path(const char *path);
bool set_variable(const char *name, const char *value);

#else
#include <unistd.h>

// Makes the arguments UTF-8, and what is printed read as that. First thing of main().
static inline void use_utf8(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
}

// Paths that a person gives on a command line may be relative to where they are; the library's may
// not. The absolute form of a path, whether or not there is such a file; valid until the next call.
// The path itself when that can't be told.
static inline const char *absolute_path(const char *path) {
    static char absolute[8192];
    if (path[0] == '/' || !getcwd(absolute, sizeof(absolute))) return path;
    const size_t length = strlen(absolute);
    if (length + strlen(path) + 2 > sizeof(absolute)) return path;
    snprintf(absolute + length, sizeof(absolute) - length, "/%s", path);
    return absolute;
}

// Sets a variable of the environment.
static inline bool set_variable(const char *name, const char *value) {
    return setenv(name, value, 1) == 0;
}

#endif

// What is left in the standard output's buffer is written; a full disk may show only then. Returns
// the exit status, or after a message 4, which is "another error" in every tool.
static inline int finish_output(const char *program, int status) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return status;
    fprintf(stderr, "%s: writing failed: %s\n", program, strerror(errno));
    return 4;
}

#endif
