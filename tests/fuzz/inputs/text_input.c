// SPDX-License-Identifier: MIT
// Runs the readers of SHA-256 sums, of GGML_DEVICES and of cgroup files on the input.
#include "fuzz/inputs/text_input.h"

#include <stdlib.h>
#include <string.h>

#include "base/data/arena.h"
#include "base/status.h"
#include "machine/cgroup.h"
#include "plugin/discover/filter.h"
#include "plugin/trust/sum_list.h"

static void require(bool holds) {
    if (!holds) abort();
}

void run_sums_input(const unsigned char *data, size_t size) {
    struct arena arena = {0};
    struct sum_list list;
    ggml_clear_error();
    const enum ggml_host_status status =
        sum_list_parse((const char *)data, size, "input", &arena, &list);
    require(status == GGML_HOST_OK || status == GGML_HOST_INVALID_ARGUMENT);
    require(status == GGML_HOST_OK || ggml_last_error()[0] != '\0');
    require(list.count * 2 * GGML_SHA256_SIZE <= size + 2 * GGML_SHA256_SIZE);
    if (status == GGML_HOST_OK) {
        for (size_t i = 0; i < list.count; ++i)
            require(sum_list_has(&list, list.sums[i]));
    }
    arena_free(&arena);
}

// Cuts the next line out of a text that is modified; NULL at its end.
static char *next_line(char **text) {
    char *line = *text;
    if (!line) return NULL;
    char *end = strchr(line, '\n');
    if (end) *end = '\0';
    *text = end ? end + 1 : NULL;
    return line;
}

static char *copy_text(const unsigned char *data, size_t size) {
    char *text = malloc(size + 1);
    require(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

void run_devices_input(const unsigned char *data, size_t size) {
    struct arena arena = {0};
    struct device_filter filter;
    char *text = copy_text(data, size);
    char *rest = text;
    const char *value = next_line(&rest);
    require(filter_parse(&filter, value, &arena));
    require(filter.n_wanted + filter.n_excluded <= size + 1);
    for (const char *line; (line = next_line(&rest)) != NULL;) {
        const char *names[] = {line};
        filter.plugin_names = names;
        filter.n_plugin_names = 1;
        const bool plugin = filter_allows_plugin(&filter, line);
        const bool device = filter_allows_device(&filter, line, line, "0000:01:00.0");
        // Of a plugin that was not even started, no device is wanted by its name.
        if (!plugin && filter.n_wanted == 0) require(!device);
    }
    arena_free(&arena);
    free(text);
}

void run_cgroup_input(const unsigned char *data, size_t size) {
    char *text = copy_text(data, size);
    const size_t first = strlen(text);
    struct cgroup_view view = {.root = "/nonexistent", .self_cgroup = text};
    if (first < size) view.mountinfo = text + first + 1;
    require(cgroup_cpu_limit(&view) >= 0);
    require(cgroup_memory_left(&view) == UINT64_MAX);
    free(text);
}
