// SPDX-License-Identifier: MIT
// plugins/metal/kernels/gpu_matrix.h for the emulator: what Metal specialises a pipeline for is
// read from the arguments, whose last four numbers it is too.
#ifndef SIMT_GPU_MATRIX_EMULATED_H
#define SIMT_GPU_MATRIX_EMULATED_H

struct gpu_matrix {
    float own[2]; // of this lane
};

#define GPU_SPECIAL(p, i) ((int)(p).numbers[4 + i])

extern "C" {
void simt_matrix_load(float *own, const float *p, u32 pitch, bool turned);
void simt_matrix_store(const float *own, float *p, u32 pitch);
void simt_matrix_multiply(float *sums, const float *a, const float *b);
}

GPU_FN void gpu_matrix_zero(gpu_matrix &m) {
    m.own[0] = m.own[1] = 0.0f;
}
GPU_FN void gpu_matrix_load(gpu_matrix &m, const float *p, u32 pitch) {
    simt_matrix_load(m.own, p, pitch, false);
}
GPU_FN void gpu_matrix_load_turned(gpu_matrix &m, const float *p, u32 pitch) {
    simt_matrix_load(m.own, p, pitch, true);
}
GPU_FN void gpu_matrix_store(gpu_matrix &m, float *p, u32 pitch) {
    simt_matrix_store(m.own, p, pitch);
}
GPU_FN void gpu_matrix_multiply(gpu_matrix &sums, gpu_matrix &a, gpu_matrix &b) {
    simt_matrix_multiply(sums.own, a.own, b.own);
}

#endif
