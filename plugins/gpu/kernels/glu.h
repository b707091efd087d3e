// SPDX-License-Identifier: MIT
// The functions of gated units.
#ifndef GPU_KERNELS_GLU_H
#define GPU_KERNELS_GLU_H

#include "tensor.h"

GPU_FN float gpu_limited(float x, float limit) {
    const float high = x > -limit ? x : -limit;
    return high < limit ? high : limit;
}
// By GGML_GLU_OP_x, the node's parameters in p.
GPU_FN float gpu_glu(GPU_ARGS gpu_args &p, float x, float g) {
    const float limit = gpu_param(p, 3);
    switch (p.params[0]) {
    case 0: return (x > 0.0f ? x : 0.0f) * g;
    case 1: return gpu_gelu(x) * g;
    case 2: return gpu_silu(x) * g;
    case 3: {
        const float low = x < limit ? x : limit;
        return low / (1.0f + gpu_exp(-gpu_param(p, 2) * low)) * (gpu_limited(g, limit) + 1.0f);
    }
    case 4: return gpu_gelu_erf(x) * g;
    case 5: return gpu_gelu_quick(x) * g;
    default: return gpu_silu(x < limit ? x : limit) * gpu_limited(g, limit);
    }
}

#endif
