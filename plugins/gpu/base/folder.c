// SPDX-License-Identifier: MIT
// Walks a path folder by folder, by descriptors, as the host does for its own cache.
#define _GNU_SOURCE
#include "gpu/base/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Folders that may be passed through, but not listed, are enough where the system can open them.
#ifndef O_PATH
#define O_PATH O_RDONLY
#endif

// Only the user, or the system, may put something else in its place.
static bool is_trusted(const struct stat *about) {
    return about->st_uid == 0 || about->st_uid == geteuid();
}

static bool is_own(int folder) {
    struct stat about;
    return fstat(folder, &about) == 0 && about.st_uid == geteuid();
}

static bool is_trusted_link(int folder, const char *name) {
    struct stat about;
    return fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(about.st_mode) &&
           is_trusted(&about);
}

// A descriptor of the folder `name` in `parent`; -1 if there is none that may be entered. What is
// looked at is what was opened, so that nothing can change in between; a link is followed only if
// nobody else can have made it.
static int enter(int parent, const char *name, bool makes) {
    enum { HOW = O_PATH | O_DIRECTORY | O_CLOEXEC };
    struct stat about;
    int fd = openat(parent, name, HOW | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT && makes && is_own(parent)) {
        mkdirat(parent, name, S_IRWXU);
        fd = openat(parent, name, HOW | O_NOFOLLOW);
    } else if (fd < 0 && (errno == ELOOP || errno == ENOTDIR) && is_trusted_link(parent, name)) {
        fd = openat(parent, name, HOW);
    }
    if (fd >= 0 && fstat(fd, &about) == 0 && is_trusted(&about)) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

bool gpu_folder_is_trusted(const char *path, bool makes) {
    char name[256];
    int fd = *path == '/' ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    while (fd >= 0 && *(path += strspn(path, "/"))) {
        const size_t length = strcspn(path, "/");
        const int parent = fd;
        fd = -1;
        if (length < sizeof(name)) {
            memcpy(name, path, length);
            name[length] = '\0';
            fd = enter(parent, name, makes);
        }
        close(parent);
        path += length;
    }
    if (fd < 0) return false;
    close(fd);
    return true;
}
