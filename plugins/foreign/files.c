// SPDX-License-Identifier: MIT
// Expands GGML_FOREIGN_PATH into files; each must pass the same checks of trust and of its image as
// a plugin, and a trial in a helper process, before it is opened.
#define _GNU_SOURCE
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ggml-plugin.h"
#include "plugin/image/image_load.h"
#include "plugin/trust/trust.h"
#include "trial.h"

// The same variable, read through the host, that lifts the checks for plugins: in a privileged
// process it is ignored.
static bool may_be_unsafe(void) {
    const char *value = ggml_sdk_config("GGML_ALLOW_UNSAFE_PLUGINS");
    return value && strcmp(value, "1") == 0;
}

// The host's rule for plugins; it says by itself what is wrong.
bool foreign_is_trusted(const char *path, char out_message[FOREIGN_MESSAGE_SIZE]) {
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) {
        foreign_say(out_message, "%s: %s", path, errno ? strerror(errno) : "not a file");
        return false;
    }
    struct plugin_file file = {.handle = -1, .original = -1};
    file.id.device = (uint64_t)info.st_dev;
    file.id.inode = (uint64_t)info.st_ino;
    if (may_be_unsafe() || trust_check_file(path, &file) == GGML_HOST_OK) return true;
    foreign_say(
        out_message,
        "%s, or a folder that leads to it, can be changed by others: use chmod go-w or chown, "
        "or allow it with GGML_ALLOW_UNSAFE_PLUGINS=1",
        path);
    return false;
}

// Reads all of it or fails: a file that shrinks meanwhile is an error, not a short image.
static enum ggml_host_status read_image(void *context, uint64_t offset, void *out, size_t size) {
    const int fd = *(const int *)context;
    for (size_t done = 0; done < size;) {
        const ssize_t n = pread(fd, (char *)out + done, size - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return GGML_HOST_IO_ERROR;
        done += (size_t)n;
    }
    return GGML_HOST_OK;
}

// What the dynamic linker is told, as for plugins: nothing damaged, no executable stack, no
// libraries by relative paths, which would come from the working directory.
static bool is_sound(const char *path, char *out_message) {
    struct image_needs needs;
    struct stat info;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    bool sound = false;
    if (strchr(path, '$')) { // which the linker would replace
        foreign_say(out_message, "%s has a '$' in its path", path);
    } else if (fd < 0 || fstat(fd, &info) != 0) {
        foreign_say(out_message, "%s: %s", path, strerror(errno));
    } else {
        int given = fd;
        const struct image_source source = {read_image, &given, (uint64_t)info.st_size, path};
        sound = plugin_image_check(&source, &needs) == GGML_HOST_OK;
        if (!sound) {
            foreign_say(out_message,
                        "%s is damaged, wants an executable stack, or libraries by relative paths",
                        path);
        }
    }
    if (fd >= 0) close(fd);
    return sound;
}

// Order matters for messages only: who may write a file is asked before what is in it.
static bool may_be_mapped(const char *path, char *out_message) {
    return foreign_is_trusted(path, out_message) && is_sound(path, out_message);
}

// Checks the file and its libggml-base, then runs it in the helper. Returns the score, or 0 with a
// message.
static int try_file(const char *path, char *out_message) {
    char base[PATH_MAX];
    if (path[0] != '/') {
        foreign_say(out_message, "%s is not an absolute path", path);
        return 0;
    }
    if (!may_be_mapped(path, out_message)) return 0;
    if (!foreign_base_find(path, base, out_message) || !may_be_mapped(base, out_message)) return 0;
    return foreign_trial(path, NULL, out_message);
}

struct foreign_binary *foreign_file_open(const char *path, char out_message[FOREIGN_MESSAGE_SIZE]) {
    return try_file(path, out_message) > 0 ? foreign_binary_open(path, out_message) : NULL;
}

// --- folders -------------------------------------------------------------------------------------

// The "cpu" of libggml-cpu-haswell.so; false for other files, and for libraries that are no
// backend.
static bool backend_of(const char *file_name, char *out_backend, size_t size) {
    static const char prefix[] = "libggml-";
    const char *name = file_name + sizeof(prefix) - 1;
    const char *end = strstr(file_name, ".so");
    if (strncmp(file_name, prefix, sizeof(prefix) - 1) != 0 || !end || end[3] != '\0') return false;
    const size_t length = strcspn(name, "-.");
    snprintf(out_backend, size, "%.*s", (int)length, name);
    return length > 0 && length < size && strcmp(out_backend, "base") != 0;
}

// Filter for scandir().
static int is_backend(const struct dirent *entry) {
    char backend[64];
    return backend_of(entry->d_name, backend, sizeof(backend));
}

// The best file of one backend so far: folders of distributions hold a dozen builds of the CPU
// backend, of which one is opened.
struct choice {
    char backend[64];
    char path[PATH_MAX];
    int score;
};

// Files that lost are not opened in this process at all.
static void open_choice(struct choice *choice, foreign_file_fn report, void *context) {
    char message[FOREIGN_MESSAGE_SIZE];
    if (choice->score > 0) {
        struct foreign_binary *binary = foreign_binary_open(choice->path, message);
        report(choice->path, binary, message, context);
    }
    choice->score = 0;
}

// Entries are sorted, so the files of one backend are neighbours: each group is tried in turn and
// its best is opened when the next group begins.
static void open_folder(const char *folder, foreign_file_fn report, void *context) {
    struct dirent **entries = NULL;
    struct choice best = {.score = 0};
    char message[FOREIGN_MESSAGE_SIZE];
    const int count = scandir(folder, &entries, is_backend, alphasort);
    if (count <= 0) report(folder, NULL, "no libggml-NAME.so in this folder", context);
    for (int i = 0; i < count; ++i) {
        char backend[64], path[PATH_MAX];
        backend_of(entries[i]->d_name, backend, sizeof(backend));
        const int length = snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        free(entries[i]);
        if (length >= (int)sizeof(path)) continue;
        if (strcmp(backend, best.backend) != 0) open_choice(&best, report, context);
        memcpy(best.backend, backend, sizeof(backend));
        const int score = try_file(path, message);
        if (score <= 0) report(path, NULL, message, context);
        if (score <= best.score) continue;
        memcpy(best.path, path, sizeof(path));
        best.score = score;
    }
    open_choice(&best, report, context);
    free(entries);
}

void foreign_files_open(const char *list, foreign_file_fn report, void *context) {
    while (*list) {
        char path[PATH_MAX], message[FOREIGN_MESSAGE_SIZE];
        struct stat info;
        const size_t length = strcspn(list, ":");
        snprintf(path, sizeof(path), "%.*s", (int)length, list);
        list += length + (list[length] == ':');
        if (length == 0) continue;
        if (length >= sizeof(path)) {
            report(path, NULL, "the path is too long", context);
        } else if (path[0] == '/' && stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
            open_folder(path, report, context);
        } else {
            struct foreign_binary *binary = foreign_file_open(path, message);
            report(path, binary, message, context);
        }
    }
}
