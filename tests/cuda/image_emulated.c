// SPDX-License-Identifier: MIT
// In place of kernels for GPUs: the fake driver has them built in. As of a new compiler, of one
// without code for sm_90a, and of an old one.
#include "device/image.h"

static const struct cuda_image images[] = {{".version 9.0 // emulated", 75, true, true},
                                           {".version 8.5 // emulated", 75, true, false},
                                           {".version 6.3 // emulated", 60, false, false}};

int cuda_n_images(void) {
    return sizeof(images) / sizeof(images[0]);
}

const struct cuda_image *cuda_image(int i) {
    return &images[i];
}

const char *cuda_images_text(void) {
    return "emulated";
}
