// SPDX-License-Identifier: MIT
// For whoever is preloaded with it: nowhere can a temporary file be made, nor, where
// GGML_TEST_NO_MEMORY_FILE is set, one in memory by a tool.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT FILE *tmpfile(void);
EXPORT int memfd_create(const char *name, unsigned flags);

FILE *tmpfile(void) {
    errno = EROFS;
    return NULL;
}

#ifdef __GLIBC__ // programs with large files call it so
EXPORT FILE *tmpfile64(void);
FILE *tmpfile64(void) {
    return tmpfile();
}
#endif

int memfd_create(const char *name, unsigned flags) {
    if (getenv("GGML_TEST_NO_MEMORY_FILE") && strcmp(name, "ggml-scratch") == 0) {
        errno = ENOSYS;
        return -1;
    }
    return (int)syscall(SYS_memfd_create, name, flags);
}
