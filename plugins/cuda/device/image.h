// SPDX-License-Identifier: MIT
// The compiled kernels. One file defines them for GPUs, another for the emulator of the tests.
#ifndef CUDA_DEVICE_IMAGE_H
#define CUDA_DEVICE_IMAGE_H

// A fatbin, or PTX as text.
const void *cuda_image(void);
// What they were compiled by and for, such as "nvcc sm_90a".
const char *cuda_image_text(void);

#endif
