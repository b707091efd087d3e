#version 450
// SPDX-License-Identifier: MIT
// A kernel that does nothing: `ggml-bench` measures with it what a launch costs by itself.
layout(local_size_x = 1) in;

void main() {}
