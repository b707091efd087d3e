#version 450
// SPDX-License-Identifier: MIT
// As many invocations as the plugin's element-wise kernels have, four numbers each.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) buffer Numbers { vec4 numbers[]; };

void main() {
    if (gl_GlobalInvocationID.x < 4) numbers[gl_GlobalInvocationID.x] *= 0.5;
}
