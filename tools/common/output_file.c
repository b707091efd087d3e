// SPDX-License-Identifier: MIT
// Writes beside the file and renames, so that a full disk costs no earlier file and leaves no half
// of one. What is no ordinary file (a device, a pipe, a link, another user's) is written to
// directly, as on Windows.
#define _POSIX_C_SOURCE 200809L
#include "output_file.h"

#include <errno.h>
#include <string.h>

#include "ggml.h"

#ifndef _WIN32
#include <sys/stat.h>
#include <unistd.h>

// The name of the file beside; false where the path itself has to be written. An earlier file's
// permissions are *out_mode, 0 if there is none.
static bool name_beside(struct output_file *file, mode_t *out_mode) {
    struct stat there;
    const bool is_there = lstat(file->path, &there) == 0;
    *out_mode = 0;
    // Its owner and other names are to stay as well.
    const bool is_own = is_there && S_ISREG(there.st_mode) && there.st_uid == geteuid() &&
                        there.st_nlink == 1 && access(file->path, W_OK) == 0;
    if (is_there && !is_own) return false;
    if (is_there) *out_mode = there.st_mode & 0777;
    const int length =
        snprintf(file->beside, sizeof(file->beside), "%s.%ld.part", file->path, (long)getpid());
    return length > 0 && (size_t)length < sizeof(file->beside);
}

static FILE *open_beside(struct output_file *file) {
    mode_t mode;
    if (!name_beside(file, &mode)) return NULL;
    FILE *stream = fopen(file->beside, "wx");
    if (stream && mode != 0) fchmod(fileno(stream), mode);
    return stream;
}

static bool put_in_place(const struct output_file *file) {
    return rename(file->beside, file->path) == 0;
}
#else
static FILE *open_beside(struct output_file *file) {
    (void)file;
    return NULL;
}

static bool put_in_place(const struct output_file *file) {
    (void)file;
    return true;
}
#endif

bool output_file_open(struct output_file *file, const char *program, const char *path) {
    *file = (struct output_file){.program = program, .path = path};
    if (strcmp(path, "-") == 0) {
        file->stream = stdout;
        return true;
    }
    file->stream = open_beside(file);
    if (!file->stream) {
        // The folder may be another's.
        file->beside[0] = '\0';
        file->stream = ggml_fopen(path, "w");
    }
    if (!file->stream) fprintf(stderr, "%s: can't write %s: %s\n", program, path, strerror(errno));
    return file->stream != NULL;
}

bool output_file_close(struct output_file *file, bool good) {
    // Of the standard output finish_output() says it.
    if (file->stream == stdout) return fflush(stdout) == 0 && !ferror(stdout) && good;
    const bool wrote = !ferror(file->stream);
    bool closed = fclose(file->stream) == 0;
    if (closed && wrote && good && file->beside[0]) closed = put_in_place(file);
    const int reason = errno;
    if (file->beside[0] && !(closed && wrote && good)) remove(file->beside);
    if (!closed || !wrote)
        fprintf(stderr, "%s: writing %s failed: %s\n", file->program, file->path,
                strerror(reason ? reason : EIO));
    return closed && wrote && good;
}
