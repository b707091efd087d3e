// SPDX-License-Identifier: MIT
// What real devices say of themselves, as far as choices depend on it.
#ifndef VULKAN_RECORDED_H
#define VULKAN_RECORDED_H

#include "probe.h"

struct recorded {
    const char *name;
    bool usable;
    const char *reason; // part of it, if not
    enum ggml_backend_dev_type type;
    const char *id;
    void (*fill)(struct vk_probe *out_probe);
};

extern const struct recorded recorded_devices[];
extern const int n_recorded_devices;

#endif
