// SPDX-License-Identifier: MIT
// Confines the helper: Landlock for files and signals, a seccomp filter for system calls. Both work
// without privileges and can't be undone.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sanitizer.h"
#include "plugin/probe/helper/probe_sandbox.h"

enum { PATH_SIZE = 512 };

// Numbers that older headers lack; they are the same on every machine.
#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup 425
#endif
#ifndef SYS_open_tree
#define SYS_open_tree 428
#define SYS_move_mount 429
#define SYS_fsopen 430
#define SYS_fsconfig 431
#define SYS_fsmount 432
#define SYS_fspick 433
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_setxattrat
#define SYS_setxattrat 463
#define SYS_removexattrat 466
#endif
#ifndef SYS_file_setattr
#define SYS_file_setattr 469
#endif

// Appends a reason why something could not be confined, for the report.
static void lacks(char *out_missing, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// Appends a missing protection to the list for the report.
static void lacks(char *out_missing, size_t size, const char *format, ...) {
    const size_t used = strlen(out_missing);
    va_list args;
    va_start(args, format);
    if (used > 0) snprintf(out_missing + used, size - used, "; ");
    const size_t start = strlen(out_missing);
    vsnprintf(out_missing + start, size - start, format, args);
    va_end(args);
}

// --- files: Landlock -----------------------------------------------------------------------------

// The kernel's structures: headers may be older than the kernel that runs.
struct ruleset {
    uint64_t files;
    uint64_t networks;
    uint64_t scopes;
};

struct __attribute__((packed)) rule {
    uint64_t allowed;
    int32_t parent;
};

enum {
    GET_VERSION = 1,
    RULE_PATH_BENEATH = 1,
    WRITE_FILE = 1 << 1,
    REMOVE_DIR = 1 << 4,
    REMOVE_FILE = 1 << 5,
    MAKE_CHAR = 1 << 6,
    MAKE_DIR = 1 << 7,
    MAKE_FILE = 1 << 8,
    MAKE_SOCKET = 1 << 9,
    MAKE_FIFO = 1 << 10,
    MAKE_BLOCK = 1 << 11,
    MAKE_LINK = 1 << 12,
    MOVE = 1 << 13,     // version 2
    TRUNCATE = 1 << 14, // version 3
    SCOPE_ABSTRACT_SOCKETS = 1 << 0,
    SCOPE_SIGNALS = 1 << 1, // version 6
};

// A rule set under construction.
struct landlock {
    int ruleset;
    uint64_t known; // rights that this kernel has
};

// Permits rights below a path; paths that don't exist are skipped.
static void allow(const struct landlock *landlock, const char *path, uint64_t rights) {
    const int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0) return; // a system without it
    struct rule rule = {.allowed = rights & landlock->known, .parent = fd};
    syscall(SYS_landlock_add_rule, landlock->ruleset, RULE_PATH_BENEATH, &rule, 0);
    close(fd);
}

// Permits writing to the files of a directory whose names have the prefix: device files.
static void allow_beginning(const struct landlock *landlock, const char *dir, const char *text) {
    char path[PATH_SIZE];
    DIR *stream = opendir(dir);
    if (!stream) return;
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        if (strncmp(entry->d_name, text, strlen(text)) != 0) continue;
        const int n = snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
        if (n > 0 && n < PATH_SIZE) allow(landlock, path, WRITE_FILE | TRUNCATE);
    }
    closedir(stream);
}

// Permits the paths that drivers write to, listed in probe_sandbox_list.inl.
static void allow_listed(const struct landlock *landlock) {
#define SANDBOX_WRITE(path) allow(landlock, path, WRITE_FILE | TRUNCATE);
#define SANDBOX_MAKE(path) allow(landlock, path, WRITE_FILE | TRUNCATE | MAKE_FILE | REMOVE_FILE);
#define SANDBOX_DEVICES(dir, text) allow_beginning(landlock, dir, text);
#include "plugin/probe/helper/probe_sandbox_list.inl"
}

// Restricts files with Landlock: nothing may be written but what the list permits. Rights that an
// older kernel doesn't know are left out, as it would refuse the whole rule set.
static void confine_files(char *out_missing, size_t size) {
    struct ruleset wanted = {
        .files = WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_CHAR | MAKE_DIR | MAKE_FILE |
                 MAKE_SOCKET | MAKE_FIFO | MAKE_BLOCK | MAKE_LINK,
    };
    const long version = syscall(SYS_landlock_create_ruleset, NULL, 0, GET_VERSION);
    if (version < 1) {
        lacks(out_missing, size, "Landlock: %s", strerror(errno));
        return;
    }
    if (version >= 2) wanted.files |= MOVE;
    if (version >= 3) wanted.files |= TRUNCATE;
    if (version >= 6) wanted.scopes = SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS;
    const size_t wanted_size = version >= 6 ? sizeof(wanted) : sizeof(wanted.files);
    const long fd = syscall(SYS_landlock_create_ruleset, &wanted, wanted_size, 0);
    const struct landlock landlock = {(int)fd, wanted.files};
    if (fd >= 0) allow_listed(&landlock);
    if (fd < 0 || syscall(SYS_landlock_restrict_self, fd, 0) != 0)
        lacks(out_missing, size, "Landlock: %s", strerror(errno));
    if (fd >= 0) close((int)fd);
}

// --- system calls: seccomp -----------------------------------------------------------------------

#if defined(__x86_64__) && defined(__LP64__)
#define MACHINE AUDIT_ARCH_X86_64
#elif defined(__aarch64__) && defined(__AARCH64EL__)
#define MACHINE AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define MACHINE AUDIT_ARCH_RISCV64
#endif

#ifdef MACHINE

#define FIELD(name) (uint32_t) offsetof(struct seccomp_data, name) // low half: little-endian
#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)
#define SKIP_UNLESS(value, n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), 0, n)
#define SKIP_IF(value, n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), n, 0)
#define ANSWER(what) BPF_STMT(BPF_RET | BPF_K, what)
#define FAIL(number) ANSWER(SECCOMP_RET_ERRNO | (number))

enum {
    OTHER_NUMBERS = 0x40000000, // x32: the same calls once more
    NEW_NAMESPACES = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                     CLONE_NEWPID | CLONE_NEWNET,
};

// Installs a seccomp filter that refuses other architectures, the listed calls, new namespaces,
// non-local sockets, and typing into the terminal. All other calls are permitted: drivers use many.
static void confine_calls(char *out_missing, size_t size) {
    struct sock_filter filter[] = {
        LOAD(FIELD(arch)),
        SKIP_IF(MACHINE, 1),
        FAIL(EPERM),
        LOAD(FIELD(nr)),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, OTHER_NUMBERS, 0, 1),
        FAIL(EPERM),
#define SANDBOX_FORBID(name) SKIP_UNLESS(name, 1), FAIL(EPERM),
#include "plugin/probe/helper/probe_sandbox_list.inl"
        // Its flags lie in memory that a filter can't read; C libraries go on with clone.
        SKIP_UNLESS(SYS_clone3, 1),
        FAIL(ENOSYS),
        SKIP_UNLESS(SYS_clone, 4),
        LOAD(FIELD(args[0])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NEW_NAMESPACES, 0, 1),
        FAIL(EPERM),
        ANSWER(SECCOMP_RET_ALLOW),
        SKIP_UNLESS(SYS_socket, 4),
        LOAD(FIELD(args[0])),
        SKIP_IF(AF_UNIX, 1),
        FAIL(EACCES),
        ANSWER(SECCOMP_RET_ALLOW),
        // Text typed into a terminal.
        SKIP_UNLESS(SYS_ioctl, 3),
        LOAD(FIELD(args[1])),
        SKIP_UNLESS(TIOCSTI, 1),
        FAIL(EPERM),
        ANSWER(SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0)
        lacks(out_missing, size, "seccomp: %s", strerror(errno));
}

#else

static void confine_calls(char *out_missing, size_t size) {
    lacks(out_missing, size, "seccomp: no filter for this machine");
}

#endif

// --- all of it -----------------------------------------------------------------------------------

static bool has_device_file(const char *root, const char *name) {
    char path[PATH_SIZE];
    const int n = snprintf(path, sizeof(path), "%s/dev/%s", root, name);
    return n > 0 && n < PATH_SIZE && access(path, F_OK) == 0;
}

static bool is_set_uid(const char *root, const char *name) {
    char path[PATH_SIZE];
    struct stat info;
    const int n = snprintf(path, sizeof(path), "%s%s", root, name);
    return n > 0 && n < PATH_SIZE && stat(path, &info) == 0 && (info.st_mode & S_ISUID) != 0;
}

// Whether the PCI device has this vendor id, given as text such as 0x10de.
static bool is_of_vendor(const char *dir, const char *device, const char *vendor) {
    char path[PATH_SIZE], text[16] = "";
    const int n = snprintf(path, sizeof(path), "%s/%s/vendor", dir, device);
    FILE *file = n > 0 && n < PATH_SIZE ? fopen(path, "re") : NULL;
    if (!file) return false;
    const bool read = fgets(text, sizeof(text), file) != NULL;
    fclose(file);
    return read && strncmp(text, vendor, strlen(vendor)) == 0;
}

// Whether /sys lists a PCI device of the vendor.
static bool any_of_vendor(const char *root, const char *vendor) {
    char dir[PATH_SIZE];
    bool found = false;
    const int n = snprintf(dir, sizeof(dir), "%s/sys/bus/pci/devices", root);
    DIR *stream = n > 0 && n < PATH_SIZE ? opendir(dir) : NULL;
    if (!stream) return false;
    for (const struct dirent *entry; !found && (entry = readdir(stream)) != NULL;)
        found = entry->d_name[0] != '.' && is_of_vendor(dir, entry->d_name, vendor);
    closedir(stream);
    return found;
}

// NVIDIA's driver creates its device files by a set-user-ID program, which can't run in the
// sandbox.
bool probe_sandbox_prevents_devices(const char *root) {
    if (!is_set_uid(root, "/usr/bin/nvidia-modprobe") || !any_of_vendor(root, "0x10de"))
        return false;
    return !has_device_file(root, "nvidiactl") || !has_device_file(root, "nvidia-uvm");
}

// Confines the process as far as the system can. `out_missing` says what could not be confined,
// which is no failure.
void probe_sandbox_enter(char *out_missing, size_t size) {
    out_missing[0] = '\0';
    if (probe_sandbox_prevents_devices("")) {
        lacks(out_missing, size, "nvidia-modprobe has to create device files of NVIDIA's driver");
        return;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        lacks(out_missing, size, "no_new_privs: %s", strerror(errno));
        return;
    }
    confine_files(out_missing, size);
    confine_calls(out_missing, size);
}
