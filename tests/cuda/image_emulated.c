// SPDX-License-Identifier: MIT
// In place of kernels for GPUs: the fake driver has them built in.
#include "device/image.h"

const void *cuda_image(void) {
    return ".version 7.0 // emulated";
}

const char *cuda_image_text(void) {
    return "emulated";
}
