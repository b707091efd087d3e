// SPDX-License-Identifier: MIT
// In memory by the system call that Linux has for it, otherwise by the C library.
#define _GNU_SOURCE
#include "scratch_file.h"

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

FILE *scratch_file(void) {
#ifdef __linux__
    const int fd = memfd_create("ggml-scratch", MFD_CLOEXEC);
    FILE *file = fd >= 0 ? fdopen(fd, "w+") : NULL;
    if (file) return file;
    if (fd >= 0) close(fd);
#endif
    return tmpfile();
}
