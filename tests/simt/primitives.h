// SPDX-License-Identifier: MIT
// Arguments of the kernels of primitives.cu, which one warp runs.
#ifndef SIMT_PRIMITIVES_H
#define SIMT_PRIMITIVES_H

struct primitive_args {
    unsigned long long x, y, z, out; // addresses of what the kernel reads and writes
    long long n;
};

#endif
