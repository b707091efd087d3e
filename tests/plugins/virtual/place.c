// SPDX-License-Identifier: MIT
// Hosts that the devices are said to be in, and links between these, by options.
#include <math.h>
#include <stdio.h>

#include "internal.h"

// Devices 0, 1, 2, 3 of two hosts are in those numbered 0, 1, 0, 1. -1: in the program's.
static int64_t host_of(struct virtual_device *device) {
    const int64_t hosts = device_config(device).hosts;
    return hosts > 0 ? device->index % hosts : -1;
}

void device_place(struct virtual_device *device) {
    const int64_t host = host_of(device);
    if (host < 0) return;
    snprintf(device->place, sizeof(device->place), "host-%d", (int)host);
    device->info[0] = (struct ggml_backend_feature){"host", device->place};
    device->info[1] = (struct ggml_backend_feature){"node", device->name};
}

const struct ggml_backend_feature *device_info(ggml_backend_dev_t handle) {
    const struct virtual_device *device = virtual_device_of(handle);
    return device && device->info[0].name ? device->info : NULL;
}

int32_t device_link(ggml_backend_dev_t from, ggml_backend_dev_t to,
                    struct ggml_device_link *out_link) {
    struct virtual_device *a = virtual_device_of(from ? from : to);
    struct virtual_device *b = virtual_device_of(to ? to : from);
    if (!a || !b) return GGML_HOST_INVALID_ARGUMENT;
    const struct virtual_config one = device_config(a), other = device_config(b);
    const int64_t delay = MAX(one.far_delay_us, other.far_delay_us);
    const int64_t per_kib = MAX(one.far_ns_per_kib, other.far_ns_per_kib);
    const bool far = from && to ? host_of(a) != host_of(b) : host_of(a) >= 0;
    if (!far || (delay == 0 && per_kib == 0)) return GGML_HOST_UNSUPPORTED;
    out_link->seconds = one.hostile_link || other.hostile_link ? NAN : (double)delay * 1e-6;
    out_link->bytes_per_second = per_kib > 0 ? 1024e9 / (double)per_kib : 1e15;
    return GGML_HOST_OK;
}
