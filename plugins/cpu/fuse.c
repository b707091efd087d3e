// SPDX-License-Identifier: MIT
#include "fuse.h"

struct cpu_fusion cpu_fuse(const struct ggml_cgraph *cgraph, int i) {
    (void)cgraph;
    (void)i;
    return (struct cpu_fusion){0};
}
