// SPDX-License-Identifier: MIT
// Groups as folders of the kernel's file system for them.
#define _GNU_SOURCE
#include "plugin/probe/process/probe_group.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#define NAME "ggml-helper-"

enum { NAME_SIZE = 40, PATH_SIZE = sizeof(((struct probe_group *)0)->folder) + 32 };
enum { UNIFIED_HIERARCHY = 0x63677270 }; // CGROUP2_SUPER_MAGIC

static struct {
    int fd; // of cgroup.kill, opened before the sandbox; -1: none
    struct stat info;
} own = {.fd = -1};

// Only version 2 has cgroup.kill.
static bool is_unified(const char *folder) {
    struct statfs info;
    return statfs(folder, &info) == 0 && info.f_type == UNIFIED_HIERARCHY;
}

// The folder of a group by its name in the kernel; false if it can't be seen. A path outside of
// what is mounted leads to no folder.
static bool find_folder(const char *name, struct probe_group *out_group) {
    static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    if (strstr(name, "/..")) return false; // outside of this namespace
    for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); ++i) {
        const int n = snprintf(out_group->folder, sizeof(out_group->folder), "%s%s", mounts[i],
                               strcmp(name, "/") == 0 ? "" : name);
        if (n > 0 && (size_t)n < sizeof(out_group->folder) && is_unified(out_group->folder))
            return true;
    }
    return false;
}

// The group of a process (a number, or "self") from /proc.
static bool find_group_of(const char *process, struct probe_group *out_group) {
    char path[64], line[PATH_SIZE];
    bool found = false;
    snprintf(path, sizeof(path), "/proc/%s/cgroup", process);
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof(line), file)) {
        char *end = strchr(line, '\n');
        if (!end || strncmp(line, "0::/", 4) != 0) continue;
        *end = '\0';
        found = find_folder(line + 3, out_group);
    }
    if (file) fclose(file);
    if (!found) out_group->folder[0] = '\0';
    return found;
}

static bool says_yes(const char *folder, const char *attribute) {
    char value[2] = "";
    return getxattr(folder, attribute, value, sizeof(value)) == 1 && value[0] == '1';
}

// Whether the manager of the groups has delegated this one, which systemd says by an extended
// attribute.
static bool is_delegated(const char *folder) {
    return says_yes(folder, "user.delegate") || says_yes(folder, "trusted.delegate");
}

// Writes a text to a control file.
static bool put(const char *folder, const char *name, const char *text) {
    char path[PATH_SIZE];
    const int n = snprintf(path, sizeof(path), "%s/%s", folder, name);
    const int fd = n > 0 && (size_t)n < sizeof(path) ? open(path, O_WRONLY | O_CLOEXEC) : -1;
    const bool done = fd >= 0 && write(fd, text, strlen(text)) > 0;
    if (fd >= 0) close(fd);
    return done;
}

// Whether a process has ended, also if it has not been collected yet.
static bool is_over(long process) {
    char path[64], text[512] = "";
    snprintf(path, sizeof(path), "/proc/%ld/stat", process);
    FILE *file = fopen(path, "re");
    if (!file) return errno == ENOENT;
    const char *line = fgets(text, sizeof(text), file);
    fclose(file);
    const char *rest = line ? strrchr(line, ')') : NULL;
    return rest && (strncmp(rest, ") Z", 3) == 0 || strncmp(rest, ") X", 3) == 0);
}

// Removes empty groups of helpers whose application was killed before it could.
static void sweep(const char *folder) {
    DIR *stream = opendir(folder);
    if (!stream) return;
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        if (strncmp(entry->d_name, NAME, sizeof(NAME) - 1) != 0) continue;
        const long process = strtol(entry->d_name + sizeof(NAME) - 1, NULL, 10);
        // only if it is empty
        if (process > 0 && is_over(process)) unlinkat(dirfd(stream), entry->d_name, AT_REMOVEDIR);
    }
    closedir(stream);
}

// Puts the helper into a control group of its own below its present one, so that everything it
// starts can be killed together. Does nothing where the group isn't delegated to the user.
void probe_group_enter(void) {
    struct probe_group above;
    char folder[PATH_SIZE], kill_file[PATH_SIZE + 16];
    if (!find_group_of("self", &above) || !is_delegated(above.folder)) return;
    sweep(above.folder);
    snprintf(folder, sizeof(folder), "%s/" NAME "%ld", above.folder, (long)getpid());
    if (mkdir(folder, S_IRWXU) != 0) return;
    snprintf(kill_file, sizeof(kill_file), "%s/cgroup.kill", folder);
    own.fd = open(kill_file, O_WRONLY | O_CLOEXEC);
    if (own.fd >= 0 && fstat(own.fd, &own.info) == 0 && put(folder, "cgroup.procs", "0")) return;
    if (own.fd >= 0) close(own.fd);
    own.fd = -1;
    rmdir(folder);
}

// The descriptor is compared with what was opened: the driver may have closed it, and its number
// may be another file's now.
void probe_group_end_own(void) {
    struct stat info;
    if (own.fd < 0 || fstat(own.fd, &info) != 0) return;
    if (info.st_dev != own.info.st_dev || info.st_ino != own.info.st_ino) return;
    const ssize_t n = write(own.fd, "1", 1);
    (void)n;
}

// Only a group that probe_group_enter() made, which has the process in its name.
void probe_group_find(long process, struct probe_group *out_group) {
    char number[24], name[NAME_SIZE];
    snprintf(number, sizeof(number), "%ld", process);
    snprintf(name, sizeof(name), "/" NAME "%ld", process);
    if (!find_group_of(number, out_group)) return;
    const char *last = strrchr(out_group->folder, '/');
    if (!last || strcmp(last, name) != 0) out_group->folder[0] = '\0';
}

void probe_group_kill(const struct probe_group *group) {
    if (group->folder[0] != '\0') put(group->folder, "cgroup.kill", "1");
}

// False while processes of the group are still ending.
bool probe_group_remove(const struct probe_group *group) {
    return group->folder[0] == '\0' || rmdir(group->folder) == 0 || errno == ENOENT;
}
