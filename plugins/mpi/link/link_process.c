// SPDX-License-Identifier: MIT
// Processes, by their numbers: those of one kernel and one space of such numbers know each other.
#define _GNU_SOURCE
#include "link_process.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// One name for as long as this kernel runs, also within containers.
static bool read_boot(char out_boot[WIRE_BOOT]) {
    memset(out_boot, 0, WIRE_BOOT);
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const ssize_t n = read(fd, out_boot, WIRE_BOOT - 1);
    close(fd);
    return n > 0;
}

bool link_process_self(struct wire_program *out) {
    struct stat space;
    *out = (struct wire_program){.process = (uint32_t)getpid()};
    if (!read_boot(out->boot) || stat("/proc/self/ns/pid", &space) != 0) return false;
    out->space = (uint64_t)space.st_ino;
    return true;
}

int link_process_open(const struct wire_program *program) {
    struct wire_program own;
    if (!link_process_self(&own) || own.space != program->space ||
        memcmp(own.boot, program->boot, sizeof(own.boot)) != 0) {
        return -1;
    }
#ifdef SYS_pidfd_open // since Linux 5.3
    return (int)syscall(SYS_pidfd_open, (pid_t)program->process, 0u);
#else
    return -1;
#endif
}
