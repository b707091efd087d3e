// SPDX-License-Identifier: MIT
// Sums and maxima over the invocations of a group, whose size is a power of two up to 1024.
#ifndef REDUCE_GLSL
#define REDUCE_GLSL

#include "common.glsl"

shared float reduce_values[gl_WorkGroupSize.x];

// Every invocation of the group has to call these; each gets the result.
float group_sum(const float x) {
    const uint i = gl_LocalInvocationID.x;
    barrier(); // a former result may still be read
    reduce_values[i] = x;
    barrier();
    for (uint step = gl_WorkGroupSize.x / 2; step > 0; step /= 2) {
        if (i < step) reduce_values[i] += reduce_values[i + step];
        barrier();
    }
    return reduce_values[0];
}

float group_max(const float x) {
    const uint i = gl_LocalInvocationID.x;
    barrier();
    reduce_values[i] = x;
    barrier();
    for (uint step = gl_WorkGroupSize.x / 2; step > 0; step /= 2) {
        if (i < step) {
            const float other = reduce_values[i + step];
            if (other > reduce_values[i]) reduce_values[i] = other;
        }
        barrier();
    }
    return reduce_values[0];
}

#endif
