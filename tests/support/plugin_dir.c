// SPDX-License-Identifier: MIT
// Copies fixtures into a temporary directory, patches bytes of their notes, and looks up what
// was reported about them.
#define _POSIX_C_SOURCE 200809L
#include "support/plugin_dir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/setenv.h"
#include "support/temp_dir.h"

static void require(bool condition, const char *what) {
    if (condition) return;
    perror(what);
    abort();
}

void plugin_dir_open(struct plugin_dir *dir) {
    require(temp_dir_make(dir->path, sizeof(dir->path)), "making a directory");
    snprintf(dir->marker, sizeof(dir->marker), "%s%cmarker", dir->path, temp_dir_separator);
    setenv("GGML_TEST_MARKER", dir->marker, 1);
}

void plugin_dir_close(struct plugin_dir *dir) {
    temp_dir_remove(dir->path);
    unsetenv("GGML_TEST_MARKER");
}

const char *plugin_dir_path(struct plugin_dir *dir, const char *file_name) {
    snprintf(dir->joined, sizeof(dir->joined), "%s%c%s", dir->path, temp_dir_separator, file_name);
    return dir->joined;
}

static unsigned char *read_file(const char *path, size_t *out_size) {
    FILE *file = fopen(path, "rb");
    require(file != NULL, path);
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    unsigned char *data = malloc((size_t)size + 1);
    require(data && fread(data, 1, (size_t)size, file) == (size_t)size, path);
    fclose(file);
    *out_size = (size_t)size;
    return data;
}

static void write_file(const char *path, const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    require(file != NULL, path);
    require(fwrite(data, 1, size, file) == size && fclose(file) == 0, path);
}

void plugin_dir_add(struct plugin_dir *dir, const char *built_path, const char *file_name) {
    size_t size;
    unsigned char *data = read_file(built_path, &size);
    write_file(plugin_dir_path(dir, file_name), data, size);
    free(data);
}

void plugin_dir_add_from(struct plugin_dir *dir, const char *folder, const char *fixture,
                         const char *file_name) {
    char path[600];
    snprintf(path, sizeof(path), "%s/%s", folder, fixture);
    plugin_dir_add(dir, path, file_name);
}

void plugin_dir_expect(struct plugin_dir *dir, const char *file_name, enum ggml_host_status status,
                       const char *word) {
    const enum ggml_host_status answer = ggml_plugin_load(plugin_dir_path(dir, file_name), NULL);
    if (answer != status) print_message("%s: %s\n", file_name, ggml_last_error());
    assert_int_equal(answer, status);
    if (status != GGML_HOST_OK && !strstr(ggml_last_error(), word))
        fail_msg("no '%s': %s", word, ggml_last_error());
    unload_everything();
}

static unsigned char *find_bytes(unsigned char *data, size_t size, const char *wanted,
                                 size_t length) {
    for (size_t i = 0; i + length <= size; ++i) {
        if (memcmp(data + i, wanted, length) == 0) return data + i;
    }
    return NULL;
}

void plugin_dir_patch(struct plugin_dir *dir, const char *file_name, size_t note_offset,
                      const void *bytes, size_t size) {
    size_t file_size;
    const char *path = plugin_dir_path(dir, file_name);
    unsigned char *data = read_file(path, &file_size);
    unsigned char *note = find_bytes(data, file_size, GGML_PLUGIN_MAGIC, GGML_PLUGIN_MAGIC_SIZE);
    require(note != NULL, "no note");
    memcpy(note + note_offset, bytes, size);
    write_file(path, data, file_size);
    free(data);
}

void plugin_dir_replace(struct plugin_dir *dir, const char *file_name, const char *text,
                        const char *replacement) {
    size_t size;
    const size_t length = strlen(text);
    const char *path = plugin_dir_path(dir, file_name);
    unsigned char *data = read_file(path, &size);
    unsigned char *found = data;
    require(strlen(replacement) == length, "lengths differ");
    while ((found = find_bytes(found, size - (size_t)(found - data), text, length)) != NULL) {
        memcpy(found, replacement, length);
    }
    write_file(path, data, size);
    free(data);
}

bool plugin_dir_was_mapped(const struct plugin_dir *dir, const char *plugin_name) {
    char line[256];
    bool found = false;
    FILE *file = fopen(dir->marker, "r");
    if (!file) return false;
    while (!found && fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = '\0';
        found = strcmp(line, plugin_name) == 0;
    }
    fclose(file);
    return found;
}

const struct ggml_plugin_record *find_record(const char *path) {
    static ggml_plugin_report_t report;
    static const struct ggml_plugin_record none = {.status = (enum ggml_host_status) - 1,
                                                   .path = "",
                                                   .name = "",
                                                   .variant = "",
                                                   .version = "",
                                                   .message = "",
                                                   .missing = ""};
    ggml_plugin_report_free(report);
    report = ggml_plugin_report_new();
    for (size_t i = 0; i < ggml_plugin_report_count(report); ++i) {
        const struct ggml_plugin_record *record = ggml_plugin_report_get(report, i);
        if (strcmp(record->path, path) == 0) return record;
    }
    return &none;
}

const struct ggml_plugin_record *plugin_dir_record(struct plugin_dir *dir, const char *file_name) {
    return find_record(plugin_dir_path(dir, file_name));
}

void unload_everything(void) {
    for (size_t i = ggml_backend_reg_count(); i > 0; --i) {
        require(ggml_plugin_unload(ggml_backend_reg_get(i - 1)) == GGML_HOST_OK, ggml_last_error());
    }
}
