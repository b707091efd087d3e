// SPDX-License-Identifier: MIT
// The compiled kernels. One file defines them for GPUs, another for the emulator of the tests.
#ifndef CUDA_DEVICE_IMAGE_H
#define CUDA_DEVICE_IMAGE_H

#include <stdbool.h>

struct cuda_image {
    const void *data;     // a fatbin, or PTX as text
    int least_capability; // of devices that it may run on: 10 * major + minor
    // Whether every device of capability 7.5 or later finds code in it that uses its tensor cores.
    bool has_tensor_cores;
    bool has_warpgroups; // whether devices of capability 9.0 find code for sm_90a
};

// Of one source, the one that is to be tried first at first. [any-thread]
int cuda_n_images(void);
const struct cuda_image *cuda_image(int i);
// What they were compiled by and for, such as "nvcc sm_90a". [any-thread]
const char *cuda_images_text(void);

#endif
