// SPDX-License-Identifier: MIT
// The kernels for GPUs, as the build compiled them: CUDA_IMAGE_FILE, for devices from
// CUDA_IMAGE_LEAST on, and perhaps CUDA_PTX_FILE, for drivers that are too old for the first:
// CUDA_IMAGE_TEXT.
#include "device/image.h"

#include "image_stamp.h" // which the build makes of the files below

// .incbin instead of an array in C: the image has megabytes, which a compiler takes long over. The
// zero at the end is for PTX, which the driver reads as a string.
#define INCLUDE(name, file)                                                                        \
    __asm__(".section .rodata\n"                                                                   \
            ".balign 64\n" #name ":\n"                                                             \
            ".incbin \"" file "\"\n"                                                               \
            ".byte 0\n"                                                                            \
            ".previous\n");                                                                        \
    extern const char name[] __attribute__((visibility("hidden")))

INCLUDE(cuda_image_begin, CUDA_IMAGE_FILE);
#ifdef CUDA_PTX_FILE
INCLUDE(cuda_ptx_begin, CUDA_PTX_FILE);
#endif

static const struct cuda_image images[] = {
    {cuda_image_begin, CUDA_IMAGE_LEAST, CUDA_IMAGE_TENSOR_CORES, CUDA_IMAGE_WARPGROUPS},
#ifdef CUDA_PTX_FILE
    {cuda_ptx_begin, CUDA_PTX_LEAST, false, false},
#endif
};

int cuda_n_images(void) {
    return (int)(sizeof(images) / sizeof(images[0]));
}

const struct cuda_image *cuda_image(int i) {
    return &images[i];
}

const char *cuda_images_text(void) {
    return CUDA_IMAGE_TEXT;
}
