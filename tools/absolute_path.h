// SPDX-License-Identifier: MIT
// Paths that a person gives on a command line may be relative to where they are; the library's may
// not.
#ifndef TOOLS_ABSOLUTE_PATH_H
#define TOOLS_ABSOLUTE_PATH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if !defined(_WIN32)
#include <unistd.h>
#endif

// The absolute form of a path, whether or not there is such a file; valid until the next call. The
// path itself when that can't be told.
static inline const char *absolute_path(const char *path) {
    static char absolute[8192];
#if defined(_WIN32)
    return _fullpath(absolute, path, sizeof(absolute)) ? absolute : path;
#else
    if (path[0] == '/' || !getcwd(absolute, sizeof(absolute))) return path;
    const size_t length = strlen(absolute);
    if (length + strlen(path) + 2 > sizeof(absolute)) return path;
    snprintf(absolute + length, sizeof(absolute) - length, "/%s", path);
    return absolute;
#endif
}

#endif
