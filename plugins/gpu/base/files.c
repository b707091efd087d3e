// SPDX-License-Identifier: MIT
// Files of a file system, pipes and sockets are no memory, nor is what is too short; drivers use
// anonymous files, whose seals can be asked for, and files of devices.
#define _GNU_SOURCE
#include "gpu/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>

bool gpu_file_may_be_memory(int fd, uint64_t bytes) {
    struct stat about;
    if (fd < 0 || fstat(fd, &about) != 0 || S_ISDIR(about.st_mode) || S_ISFIFO(about.st_mode) ||
        S_ISSOCK(about.st_mode))
        return false;
    if (!S_ISREG(about.st_mode)) return true;
#ifdef F_GET_SEALS
    if (fcntl(fd, F_GET_SEALS) < 0) return false;
#endif
    return about.st_size >= 0 && (uint64_t)about.st_size >= bytes;
}
