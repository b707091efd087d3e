// SPDX-License-Identifier: MIT
// Options of the virtual devices: their defaults, their parser ("name=value,..."), and the
// figures that a device reports by them.
#include <stdlib.h>

#include "internal.h"

void config_default(struct virtual_config *out_config) {
    *out_config = (struct virtual_config){
#define VIRTUAL_OPTION(name, value, text) .name = value,
#include "option_list.inl"
    };
}

// A rate for nanoseconds per so many units; without a delay one that is never what counts.
static double rate(int64_t nanoseconds, double units) {
    return nanoseconds > 0 ? units * 1e9 / (double)nanoseconds : 1e15;
}

bool device_figures(struct virtual_device *device, struct ggml_device_figures *out_figures) {
    const struct virtual_config config = device_config(device);
    const int64_t known = config.node_delay_us | config.node_ns_per_kib | config.copy_delay_us |
                          config.node_ns_per_mflop | config.quant_ns_per_mflop |
                          config.copy_ns_per_kib;
    if (known == 0) return false;
    if (config.peer_copy && config.events) out_figures->flags = GGML_DEVICE_FIGURES_DIRECT_COPY;
    out_figures->flops = rate(config.node_ns_per_mflop, 1e6);
    out_figures->bytes_per_second = rate(config.node_ns_per_kib, 1024);
    out_figures->launch_seconds = (double)config.node_delay_us * 1e-6;
    out_figures->link_bytes_per_second = rate(config.copy_ns_per_kib, 1024);
    out_figures->link_seconds = (double)config.copy_delay_us * 1e-6;
    out_figures->memory_bytes = (uint64_t)config.memory;
    if (config.quant_ns_per_mflop == 0 || out_figures->size < sizeof(*out_figures)) return true;
    for (int type = 0; type < GGML_TYPE_COUNT; ++type) {
        if (!ggml_is_quantized((enum ggml_type)type)) continue;
        out_figures->flops_of[type] = rate(config.quant_ns_per_mflop, 1e6);
    }
    return true;
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
