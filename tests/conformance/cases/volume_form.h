// SPDX-License-Identifier: MIT
// The convolutions over volumes that conv_3d and im2col_3d are tried with.
#ifndef CONFORMANCE_VOLUME_FORM_H
#define CONFORMANCE_VOLUME_FORM_H

#include <stdint.h>

struct volume_form {
    int64_t k[3], ne[3], channels, batch, out_channels;
    int s[3], p[3], d[3];
    int64_t further_channels; // of im2col_3d: too few for one more image
};

static const struct volume_form volumes[] = {
    {{3, 3, 3}, {6, 5, 4}, 2, 2, 3, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 0},
    {{1, 1, 1}, {1, 1, 1}, 1, 1, 1, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, 0},
    {{2, 3, 1}, {7, 9, 3}, 3, 1, 2, {2, 1, 3}, {0, 2, 0}, {1, 1, 1}, 0},
    {{3, 2, 2}, {11, 7, 6}, 1, 3, 4, {1, 2, 1}, {2, 1, 1}, {2, 1, 3}, 0},
    {{4, 4, 4}, {4, 4, 4}, 2, 1, 1, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, 0},
    {{3, 1, 2}, {13, 5, 5}, 5, 1, 7, {3, 2, 2}, {4, 0, 3}, {3, 1, 2}, 0},
    {{3, 2, 2}, {2, 2, 3}, 4, 2, 3, {2, 4, 1}, {0, 0, 1}, {1, 1, 0}, 3},
    {{2, 3, 1}, {9, 8, 5}, 3, 1, 2, {2, 1, 3}, {-2, 1, -1}, {1, 2, 1}, 2},
    // Kernels without elements; too few channels for an image.
    {{1, 0, 2}, {2, 2, 3}, 2, 1, 3, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, 0},
    {{2, 2, 1}, {4, 3, 2}, 3, 0, 2, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, 2},
};
enum { N_VOLUMES = sizeof(volumes) / sizeof(volumes[0]) };

#endif
