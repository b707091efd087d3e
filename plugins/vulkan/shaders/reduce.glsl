// SPDX-License-Identifier: MIT
// Sums and maxima over a workgroup of (n, 1, 1) invocations, n a power of two of at most 256, in
// shared memory: in the same order on every device.
#ifndef REDUCE_GLSL
#define REDUCE_GLSL

shared float reduce_values[256];

float group_sum(const float value) {
    const uint i = gl_LocalInvocationID.x;
    barrier();
    reduce_values[i] = value;
    for (uint half_size = gl_WorkGroupSize.x / 2; half_size > 0; half_size /= 2) {
        barrier();
        if (i < half_size) reduce_values[i] += reduce_values[i + half_size];
    }
    barrier();
    return reduce_values[0];
}

float group_max(const float value) {
    const uint i = gl_LocalInvocationID.x;
    barrier();
    reduce_values[i] = value;
    for (uint half_size = gl_WorkGroupSize.x / 2; half_size > 0; half_size /= 2) {
        barrier();
        if (i < half_size) reduce_values[i] = max(reduce_values[i], reduce_values[i + half_size]);
    }
    barrier();
    return reduce_values[0];
}

#endif
