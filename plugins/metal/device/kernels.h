// SPDX-License-Identifier: MIT
// All kernels of the plugin: those of plugins/gpu, which go by their numbers there, and its own,
// which are specialised for a type of weights and a number of columns.
#ifndef METAL_DEVICE_KERNELS_H
#define METAL_DEVICE_KERNELS_H

#include "simt/kernels.h"

enum metal_kernel {
    METAL_BEFORE_KERNELS = SIMT_KERNEL_COUNT - 1,
#define METAL_KERNEL(name) METAL_KERNEL_##name,
#include "kernels/metal_kernel_list.inl"
    METAL_ALL_KERNELS
};

enum {
    METAL_OWN_KERNELS = METAL_ALL_KERNELS - SIMT_KERNEL_COUNT,
    METAL_MAX_COLUMNS = 8,
};

// A kernel, and what it is specialised for: 0 and 0 for those of plugins/gpu.
struct metal_variant {
    int kernel;  // enum simt_kernel or enum metal_kernel
    int type;    // of the weights
    int columns; // at most METAL_MAX_COLUMNS
};

// Of the function in the library. [any-thread]
const char *metal_kernel_name(int kernel);

#endif
