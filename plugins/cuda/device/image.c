// SPDX-License-Identifier: MIT
// The kernels for GPUs, as the build compiled them: CUDA_IMAGE_FILE, made by CUDA_IMAGE_TEXT.
#include "device/image.h"

// .incbin instead of an array in C: the image has megabytes, which a compiler takes long over. The
// zero at the end is for PTX, which the driver reads as a string.
__asm__(".section .rodata\n"
        ".balign 64\n"
        "cuda_image_begin:\n"
        ".incbin \"" CUDA_IMAGE_FILE "\"\n"
        ".byte 0\n"
        ".previous\n");

extern const char cuda_image_begin[] __attribute__((visibility("hidden")));

const void *cuda_image(void) {
    return cuda_image_begin;
}

const char *cuda_image_text(void) {
    return CUDA_IMAGE_TEXT;
}
