// SPDX-License-Identifier: MIT
// The kernels as one text, which Metal compiles when the device is used first.
#include "device/context.h"

static const char source[] = {
#include "kernels.inl"
    , 0};

const char *metal_source(void) {
    return source;
}
