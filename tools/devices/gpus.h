// SPDX-License-Identifier: MIT
// GPUs that the system shows, whether or not a plugin serves them.
#ifndef DEVICES_GPUS_H
#define DEVICES_GPUS_H

#include <stdbool.h>
#include <stddef.h>

struct gpu {
    char address[16]; // "0000:01:00.0"
    unsigned vendor, device;
    char vendor_name[32]; // "" if not known
    char model[96];       // as the system's list of PCI devices has it; "" if not known
    char driver[32];      // kernel driver that is bound to it; "" if there is none
    bool display_only;    // shows pictures and computes nothing
};

// What became of the plugin that would serve a GPU.
enum gpu_plugin { GPU_PLUGIN_USED, GPU_PLUGIN_REFUSED, GPU_PLUGIN_MISSING };

// Reads the GPUs and accelerators below ROOT/sys ("": the system's own), by address. The caller
// frees *out_gpus. 0 and NULL where the system shows none.
size_t gpus_find(const char *root, struct gpu **out_gpus);
// The plugin that would serve it; NULL if none would.
const char *gpu_plugin_name(const struct gpu *gpu);
// What is missing for a GPU that has no device, and what to install.
void gpu_advise(const struct gpu *gpu, enum gpu_plugin plugin, char *out_text, size_t size);

#endif
