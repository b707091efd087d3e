// SPDX-License-Identifier: MIT
// Temporary directories, and the mappings, files and threads of this process as /proc shows
// them.
#define _GNU_SOURCE
#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/plugin_dir.h"
#include "support/temp_dir.h"

const char temp_dir_separator = '/';

bool temp_dir_make(char *out_path, size_t size) {
    const char *base = getenv("TMPDIR");
    snprintf(out_path, size, "%s/ggml-test-XXXXXX", base ? base : "/tmp");
    return mkdtemp(out_path) != NULL;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *where) {
    (void)info;
    (void)type;
    (void)where;
    return remove(path);
}

void temp_dir_remove(const char *path) {
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static size_t count_lines(const char *path, const char *wanted) {
    char line[1024];
    size_t count = 0;
    FILE *file = fopen(path, "r");
    if (!file) abort();
    while (fgets(line, sizeof(line), file))
        count += !wanted || strstr(line, wanted) != NULL;
    fclose(file);
    return count;
}

bool is_mapped(const char *file_name) {
    return count_lines("/proc/self/maps", file_name) > 0;
}

size_t count_mappings(void) {
    return count_lines("/proc/self/maps", NULL);
}

static size_t count_entries(const char *path) {
    size_t count = 0;
    DIR *dir = opendir(path);
    if (!dir) abort();
    while (readdir(dir))
        ++count;
    closedir(dir);
    return count;
}

size_t count_open_files(void) {
    return count_entries("/proc/self/fd");
}

size_t count_threads(void) {
    return count_entries("/proc/self/task");
}
