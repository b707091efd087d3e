// SPDX-License-Identifier: MIT
// All kernels of the plugin: those of plugins/gpu, which go by their numbers there, and its own,
// which are specialised for types and small numbers.
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
    METAL_SPECIAL = 4,       // values that a kernel is specialised for
    METAL_FIRST_SPECIAL = 4, // of the arguments' numbers, which have them too
};

// A kernel, and what it is specialised for: zeros for those of plugins/gpu.
struct metal_variant {
    int kernel; // enum simt_kernel or enum metal_kernel
    int values[METAL_SPECIAL];
};

// Of the function in the library. [any-thread]
const char *metal_kernel_name(int kernel);

#endif
