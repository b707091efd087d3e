// SPDX-License-Identifier: MIT
// Owners and permissions of every component of a path: who could have changed or exchanged the
// file.
#ifndef _WIN32
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/xattr.h>
#endif

#include "base/env.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/status.h"
#include "plugin/trust/trust.h"

enum { MAX_LINKS = 40, REASON_SIZE = 96, LABEL_SIZE = 200 };
// In a user namespace, files of all users outside of it, root included, seem to belong to this
// user.
enum { UNMAPPED_USER = 65534 };

// A path that is followed by hand, so that every directory and link on the way is seen.
struct walk {
    char at[PATH_MAX];   // without links; "" is the root
    char rest[PATH_MAX]; // still to follow
    int n_links;
    struct stat info; // of `at`
    char reason[REASON_SIZE];
    bool trusts_user; // and not only root
};

// --- who could write

// Returns whether files of the effective user are trusted besides root's. They are not when the
// process has, had or can take back rights that this user lacks: a plugin of the user's own would
// get them.
static bool trusts_user(void) {
    if (ggml_env_privileged()) return false;
#if defined(__linux__) || defined(__FreeBSD__)
    uid_t real, effective, saved;
    gid_t real_group, effective_group, saved_group;
    if (getresuid(&real, &effective, &saved) != 0) return false;
    if (getresgid(&real_group, &effective_group, &saved_group) != 0) return false;
    return real == effective && saved == effective && real_group == effective_group &&
           saved_group == effective_group;
#else
    return getuid() == geteuid() && getgid() == getegid();
#endif
}

// Returns whether the user of this name is the only one in /etc/passwd with this primary group.
// Users that only a directory service knows are not seen: one that is missing there is not alone.
static bool is_alone_in_group(const char *name, gid_t group) {
    char *line = NULL;
    size_t size = 0;
    bool found = false, alone = true;
    FILE *file = ggml_fault(GGML_FAULT_OPEN) ? NULL : fopen("/etc/passwd", "re");
    while (file && alone && getline(&line, &size, file) > 0) {
        char *rest = line;
        const char *user = strsep(&rest, ":");
        for (int i = 0; rest && i < 2; ++i)
            strsep(&rest, ":"); // password, number
        if (!rest || strtoul(rest, NULL, 10) != (unsigned long)group) continue;
        found = strcmp(user, name) == 0;
        alone = found;
    }
    free(line);
    if (file) fclose(file);
    return found && alone;
}

// Returns whether the group is the private one that some systems give each user, which makes umask
// 002 harmless: named after the user, without other members, and no other user's primary group.
static bool is_private_group(gid_t group) {
    enum { SIZE = 1 << 14 };
    struct passwd user_entry, *user = NULL;
    struct group group_entry, *found = NULL;
    bool is_private = false;
    char *text = ggml_mem_alloc(2 * SIZE);
    if (!text) return false;
    if (getpwuid_r(geteuid(), &user_entry, text, SIZE, &user) != 0 || !user) goto fail;
    if (user->pw_gid != group) goto fail;
    if (getgrgid_r(group, &group_entry, text + SIZE, SIZE, &found) != 0 || !found) goto fail;
    is_private = strcmp(found->gr_name, user->pw_name) == 0;
    for (char **member = found->gr_mem; is_private && *member; ++member) {
        is_private = strcmp(*member, user->pw_name) == 0;
    }
    is_private = is_private && is_alone_in_group(user->pw_name, group);
fail:
    ggml_mem_free(text);
    return is_private;
}

// Whether the file has an access control list, which shows as the group's permission, whoever it
// names.
static bool has_access_list(const char *path) {
#ifdef __linux__
    return getxattr(path, "system.posix_acl_access", NULL, 0) > 0;
#else
    (void)path;
    return false;
#endif
}

// Nobody can write there, whatever the permissions say.
static bool on_read_only_mount(const char *path) {
    struct statvfs info;
    return statvfs(path, &info) == 0 && (info.f_flag & ST_RDONLY) != 0;
}

// Returns whether this process is in a user namespace that does not map the owner: files of all
// unmapped users seem to belong to that number there. Elsewhere it is an ordinary user ("nobody").
static bool is_unmapped(uid_t owner) {
#ifdef __linux__
    unsigned long long first, outside, count;
    bool mapped = false;
    FILE *file = ggml_fault(GGML_FAULT_OPEN) ? NULL : fopen("/proc/self/uid_map", "re");
    if (!file) return false;
    while (!mapped && fscanf(file, "%llu %llu %llu", &first, &outside, &count) == 3)
        mapped = owner >= first && owner - first < count;
    mapped |= ferror(file) != 0;
    fclose(file);
    return !mapped;
#else
    (void)owner;
    return false;
#endif
}

// Root and, unless the process has other rights, the user.
static bool owner_is_trusted(const struct walk *walk, const char *path) {
    const uid_t owner = walk->info.st_uid;
    if (owner == 0 || (walk->trusts_user && owner == geteuid())) return true;
    return owner == UNMAPPED_USER && on_read_only_mount(path) && is_unmapped(owner);
}

// Whether nobody else can change or exchange what is at walk->at; sets walk->reason otherwise.
static bool is_trusted(struct walk *walk) {
    const struct stat *info = &walk->info;
    const char *path = walk->at[0] ? walk->at : "/";
    if (!owner_is_trusted(walk, path)) {
        snprintf(walk->reason, sizeof(walk->reason), "belongs to user %ld", (long)info->st_uid);
        return false;
    }
    if (S_ISLNK(info->st_mode)) return true;
    // The sticky bit keeps users from renaming or deleting files of others.
    if (S_ISDIR(info->st_mode) && (info->st_mode & S_ISVTX)) return true;
    if (info->st_mode & S_IWOTH) {
        snprintf(walk->reason, sizeof(walk->reason), "can be written by everyone");
        return false;
    }
    if (!(info->st_mode & S_IWGRP)) return true;
    const bool known = info->st_gid == 0 || (walk->trusts_user && is_private_group(info->st_gid));
    if (known && !has_access_list(path)) return true;
    snprintf(walk->reason, sizeof(walk->reason), "can be written by group %ld%s",
             (long)info->st_gid, known ? " and an access list" : "");
    return false;
}

// --- along the path

static enum ggml_host_status too_long(void) {
    return ggml_fail(GGML_HOST_INVALID_ARGUMENT, "the path of a plugin is too long");
}

// Takes the next component off the rest; false at the end.
static bool next_component(struct walk *walk, char out_name[NAME_MAX + 1]) {
    const char *start = walk->rest + strspn(walk->rest, "/");
    const size_t length = strcspn(start, "/");
    out_name[0] = '\0';
    if (length == 0) return false;
    snprintf(out_name, NAME_MAX + 1, "%.*s", (int)(length > NAME_MAX ? NAME_MAX : length), start);
    memmove(walk->rest, start + length, strlen(start + length) + 1);
    return true;
}

// lstat(), so that links are seen as such.
static bool look(struct walk *walk) {
    if (ggml_fault(GGML_FAULT_STAT)) return false;
    return lstat(walk->at[0] ? walk->at : "/", &walk->info) == 0;
}

static void go_up(struct walk *walk) {
    char *slash = strrchr(walk->at, '/');
    if (slash) *slash = '\0';
}

// Replaces a link by its target in front of the rest. The link itself was checked: its owner can
// exchange it.
static enum ggml_host_status trust_walk_link(struct walk *walk) {
    char target[2 * PATH_MAX];
    const ssize_t length =
        ggml_fault(GGML_FAULT_READ) ? -1 : readlink(walk->at, target, PATH_MAX - 1);
    if (length < 0) return ggml_fail(GGML_HOST_IO_ERROR, "a link can't be read: %s", walk->at);
    if (++walk->n_links > MAX_LINKS) {
        return ggml_fail(GGML_HOST_IO_ERROR, "too many links: %s", walk->at);
    }
    target[length] = '\0';
    const size_t rest = strlen(walk->rest);
    if ((size_t)length + rest + 1 >= sizeof(walk->rest)) return too_long();
    memcpy(target + length, walk->rest, rest + 1);
    memcpy(walk->rest, target, (size_t)length + rest + 1);
    if (target[0] == '/') {
        walk->at[0] = '\0';
    } else {
        go_up(walk);
    }
    return GGML_HOST_OK;
}

static enum ggml_host_status enter(struct walk *walk, const char *name) {
    const size_t length = strlen(walk->at);
    if (length + strlen(name) + 2 > sizeof(walk->at)) return too_long();
    walk->at[length] = '/';
    memcpy(walk->at + length + 1, name, strlen(name) + 1);
    return GGML_HOST_OK;
}

static const char *label_of(const char *path) {
    const size_t length = strlen(path);
    return length > LABEL_SIZE ? path + length - LABEL_SIZE : path;
}

// The advice depends on whether files of the user count.
static enum ggml_host_status distrust(const char *path, const struct walk *walk) {
    const char *at = walk->at[0] ? label_of(walk->at) : "/";
    if (!walk->trusts_user) {
        return ggml_fail(GGML_HOST_UNTRUSTED,
                         "%s is not loaded: %s %s; as this process has other rights than its user, "
                         "only root may be able to change it: use chmod go-w or chown",
                         label_of(path), at, walk->reason);
    }
    return ggml_fail(GGML_HOST_UNTRUSTED,
                     "%s is not loaded: %s %s; only root and you (user %ld) may be able to change "
                     "it: use chmod go-w or chown, or allow it with GGML_ALLOW_UNSAFE_PLUGINS=1",
                     label_of(path), at, walk->reason, (long)geteuid());
}

// Walks the whole path, checking each directory, link and file. On success `walk` is at the end of
// the path. NOT_FOUND if that does not exist.
static enum ggml_host_status trust_walk(const char *path, struct walk *walk) {
    char name[NAME_MAX + 1];
    memset(walk, 0, sizeof(*walk));
    walk->trusts_user = trusts_user();
    if (strlen(path) >= sizeof(walk->rest)) return too_long();
    memcpy(walk->rest, path, strlen(path) + 1);
    do {
        if (!look(walk)) {
            const bool missing = errno == ENOENT || errno == ENOTDIR;
            return ggml_fail(missing ? GGML_HOST_NOT_FOUND : GGML_HOST_IO_ERROR, "%s: %s",
                             label_of(path), strerror(errno));
        }
        if (!is_trusted(walk)) return distrust(path, walk);
        enum ggml_host_status status = GGML_HOST_OK;
        if (S_ISLNK(walk->info.st_mode)) status = trust_walk_link(walk);
        if (status != GGML_HOST_OK) return status;
        // A link to the root, or one that ends here, leaves nothing to enter but something to see.
        if (!next_component(walk, name)) {
            if (!S_ISLNK(walk->info.st_mode)) return GGML_HOST_OK;
            continue;
        }
        if (strcmp(name, "..") == 0) {
            go_up(walk);
        } else if (strcmp(name, ".") != 0) {
            status = enter(walk, name);
        }
        if (status != GGML_HOST_OK) return status;
    } while (true);
}

// The file that was opened must be what the checked path leads to.
enum ggml_host_status trust_check_file(const char *path, const struct plugin_file *file) {
    struct walk walk;
    const enum ggml_host_status status = trust_walk(path, &walk);
    if (status != GGML_HOST_OK) return status;
    if ((uint64_t)walk.info.st_dev == file->id.device &&
        (uint64_t)walk.info.st_ino == file->id.inode) {
        return GGML_HOST_OK;
    }
    return ggml_fail(GGML_HOST_DAMAGED_FILE, "'%s' changed while it was being loaded: try again",
                     label_of(path));
}

// A missing directory is no danger: a parent that others could write to would have failed.
enum ggml_host_status trust_check_dir(const char *path) {
    struct walk walk;
    const enum ggml_host_status status = trust_walk(path, &walk);
    return status == GGML_HOST_NOT_FOUND ? GGML_HOST_OK : status;
}
#endif
