// SPDX-License-Identifier: MIT
// Arguments of the kernels of test_kernels.cu.
#ifndef SIMT_TEST_KERNELS_H
#define SIMT_TEST_KERNELS_H

// y[r]: the sum of row r of x, rows of n floats.
struct sum_args {
    unsigned long long x, y;
    long long n;
};

#endif
