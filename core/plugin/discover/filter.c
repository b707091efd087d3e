// SPDX-License-Identifier: MIT
// Parses and applies GGML_DEVICES. Entries are separated by commas; those with a minus exclude. An
// empty value filters nothing.
#include "plugin/discover/filter.h"

#include <string.h>

#include "base/data/text.h"

// Blanks around entries are ignored, as users write lists with them.
static const char *skip_spaces(const char *text) {
    while (*text == ' ' || *text == '\t')
        ++text;
    return text;
}

// Cuts the next entry out of a list that is modified; NULL at its end. Entries may be empty.
static char *next_entry(char **list) {
    if (!*list) return NULL;
    char *entry = *list;
    char *comma = strchr(entry, ',');
    *list = comma ? comma + 1 : NULL;
    if (comma) *comma = '\0';
    entry += skip_spaces(entry) - entry;
    size_t length = strlen(entry);
    while (length > 0 && (entry[length - 1] == ' ' || entry[length - 1] == '\t'))
        --length;
    entry[length] = '\0';
    return entry;
}

// One pass over a copy of the value. Both lists have room for every entry, so that no list grows.
bool filter_parse(struct device_filter *out_filter, const char *value, struct arena *arena) {
    memset(out_filter, 0, sizeof(*out_filter));
    if (!value) return true;
    size_t capacity = 1;
    for (const char *p = value; *p; ++p)
        capacity += *p == ',';
    char *list = arena_strdup(arena, value);
    out_filter->wanted = arena_alloc(arena, capacity * sizeof(*out_filter->wanted));
    out_filter->excluded = arena_alloc(arena, capacity * sizeof(*out_filter->excluded));
    if (!list || !out_filter->wanted || !out_filter->excluded) return false;

    for (char *entry; (entry = next_entry(&list)) != NULL;) {
        if (entry[0] == '-' && entry[1] != '\0') {
            out_filter->excluded[out_filter->n_excluded++] = skip_spaces(entry + 1);
        } else if (entry[0] != '\0' && entry[0] != '-') {
            out_filter->wanted[out_filter->n_wanted++] = entry;
        }
    }
    return true;
}

// Case-insensitive, as users write CUDA0 and cuda0. An empty text matches nothing.
static bool contains(const char *const *list, size_t count, const char *text) {
    for (size_t i = 0; i < count; ++i) {
        if (text[0] != '\0' && ascii_equal(list[i], text)) return true;
    }
    return false;
}

// Whether an entry means the plugin: its name, or its name and a number, as "CUDA0" for the plugin
// "cuda".
static bool speaks_of(const char *entry, const char *plugin_name) {
    const size_t length = strlen(plugin_name);
    if (length == 0 || !ascii_equal_n(entry, plugin_name, length)) return false;
    const char *rest = entry + length;
    return rest[strspn(rest, "0123456789")] == '\0';
}

// An entry that is another plugin's name can't mean a device of this one; any other entry might.
static bool could_mean(const struct device_filter *filter, const char *entry,
                       const char *plugin_name) {
    if (speaks_of(entry, plugin_name)) return true;
    for (size_t i = 0; i < filter->n_plugin_names; ++i) {
        if (speaks_of(entry, filter->plugin_names[i])) return false;
    }
    return true;
}

// Exclusion wins over inclusion.
bool filter_allows_plugin(const struct device_filter *filter, const char *plugin_name) {
    if (contains(filter->excluded, filter->n_excluded, plugin_name)) return false;
    for (size_t i = 0; i < filter->n_wanted; ++i) {
        if (could_mean(filter, filter->wanted[i], plugin_name)) return true;
    }
    return filter->n_wanted == 0;
}

// Whether an entry is the device's hardware id. "0000:01:00.0" matches every part of that hardware,
// as "0000:01:00.0#1".
static bool contains_id(const char *const *list, size_t count, const char *device_id) {
    const size_t length = strcspn(device_id, "#");
    for (size_t i = 0; i < count && length > 0; ++i) {
        if (ascii_equal(list[i], device_id)) return true;
        if (strlen(list[i]) == length && ascii_equal_n(list[i], device_id, length)) return true;
    }
    return false;
}

static bool names_device(const char *const *list, size_t count, const char *plugin_name,
                         const char *device_name, const char *device_id) {
    return contains(list, count, plugin_name) || contains(list, count, device_name) ||
           contains_id(list, count, device_id);
}

// A device is matched by its plugin's name, its own name or its id; exclusion wins.
bool filter_allows_device(const struct device_filter *filter, const char *plugin_name,
                          const char *device_name, const char *device_id) {
    if (names_device(filter->excluded, filter->n_excluded, plugin_name, device_name, device_id)) {
        return false;
    }
    return filter->n_wanted == 0 ||
           names_device(filter->wanted, filter->n_wanted, plugin_name, device_name, device_id);
}
