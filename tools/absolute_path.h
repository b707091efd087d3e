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

// The absolute form of a path, whether or not there is such a file; lives as long as the process.
// The path itself when that can't be told.
static inline const char *absolute_path(const char *path) {
#if defined(_WIN32)
    const char *absolute = _fullpath(NULL, path, 0);
    return absolute ? absolute : path;
#else
    char here[4096];
    if (path[0] == '/' || !getcwd(here, sizeof(here))) return path;
    const size_t size = strlen(here) + strlen(path) + 2;
    char *absolute = malloc(size);
    if (!absolute) return path;
    snprintf(absolute, size, "%s/%s", here, path);
    return absolute;
#endif
}

#endif
