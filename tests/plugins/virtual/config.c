// SPDX-License-Identifier: MIT
#include <stdlib.h>

#include "internal.h"

void config_default(struct virtual_config *out_config) {
    *out_config = (struct virtual_config){
#define VIRTUAL_OPTION(name, value, text) .name = value,
#include "option_list.inl"
    };
}

static int64_t *find_option(struct virtual_config *config, const char *key, size_t length) {
#define VIRTUAL_OPTION(name, value, text)                                                          \
    if (strlen(#name) == length && memcmp(#name, key, length) == 0) return &config->name;
#include "option_list.inl"
    return NULL;
}

// Decimal, with k, m or g for powers of 1024.
static bool read_number(const char **text, int64_t *out_value) {
    char *end;
    *out_value = strtoll(*text, &end, 10);
    if (end == *text) return false;
    const char *units = "kmg";
    const char *unit = *end ? strchr(units, *end) : NULL;
    if (unit) {
        *out_value *= (int64_t)1 << (10 * (unit - units + 1));
        ++end;
    }
    *text = end;
    return *end == ',' || *end == '\0';
}

size_t config_parse(const char *text, struct virtual_config *out_config) {
    int64_t n_devices = 4;
    config_default(out_config);
    while (text && *text) {
        const size_t length = strcspn(text, "=");
        int64_t *option = length == strlen("devices") && memcmp(text, "devices", length) == 0
                              ? &n_devices
                              : find_option(out_config, text, length);
        if (!option || text[length] != '=') return 0;
        text += length + 1;
        if (!read_number(&text, option)) return 0;
        if (*text == ',') ++text;
    }
    return n_devices >= 1 && n_devices <= VIRTUAL_MAX_DEVICES ? (size_t)n_devices : 0;
}
