// SPDX-License-Identifier: MIT
// Sums and maxima over the invocations of a group, whose size is a power of two up to 1024: first
// over 32 columns, then every invocation over those, so that few barriers are needed.
#ifndef REDUCE_GLSL
#define REDUCE_GLSL

#include "shaders/common.glsl"

const uint REDUCE_COLUMNS = 32;
shared float reduce_values[gl_WorkGroupSize.x];
shared float reduce_columns[REDUCE_COLUMNS];

float larger(const float a, const float b) { return b > a ? b : a; }

// Every invocation of the group has to call these; each gets the result.
float group_sum(const float x) {
    const uint i = gl_LocalInvocationID.x, columns = min(gl_WorkGroupSize.x, REDUCE_COLUMNS);
    barrier(); // a former result may still be read
    reduce_values[i] = x;
    barrier();
    if (i < columns) {
        float column = 0.0;
        for (uint k = i; k < gl_WorkGroupSize.x; k += columns) column += reduce_values[k];
        reduce_columns[i] = column;
    }
    barrier();
    vec2 sum = vec2(0);
    for (uint k = 0; k < columns; k += 2) sum += vec2(reduce_columns[k], reduce_columns[k + 1]);
    return sum.x + sum.y;
}

// Like group_sum(), the largest. What becomes of NaN depends on its place: callers look for it
// themselves.
float group_max(const float x) {
    const uint i = gl_LocalInvocationID.x, columns = min(gl_WorkGroupSize.x, REDUCE_COLUMNS);
    barrier();
    reduce_values[i] = x;
    barrier();
    if (i < columns) {
        float column = x;
        for (uint k = i; k < gl_WorkGroupSize.x; k += columns)
            column = larger(column, reduce_values[k]);
        reduce_columns[i] = column;
    }
    barrier();
    float largest = reduce_columns[0];
    for (uint k = 1; k < columns; ++k) largest = larger(largest, reduce_columns[k]);
    return largest;
}

#endif
