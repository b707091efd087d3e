// SPDX-License-Identifier: MIT
// plugins/cuda/kernels/gpu_warpgroup.h for the emulator. Copies are done when no thread can go on
// without them, products when they are waited for.
#ifndef SIMT_GPU_WARPGROUP_EMULATED_H
#define SIMT_GPU_WARPGROUP_EMULATED_H

#define GPU_HAS_WARPGROUPS 1

extern "C" {
void simt_barrier_init(const void *b, u32 n);
void simt_barrier_arrive(const void *b, u32 bytes);
void simt_barrier_wait(const void *b, u32 parity);
void simt_copy_arrive(const void *b);
void simt_bulk_copy(void *to, const void *from, u32 bytes, const void *b);
u64 simt_wgmma_operand(const void *tile);
u64 simt_wgmma_operand_turned(const void *tile, u32 panel);
void simt_fence_async(void);
void simt_wgmma(float *d, u32 n, const u32 *a, u64 operand, bool is_bf16, bool is_turned);
void simt_wgmma_commit(void);
void simt_wgmma_finish(void);
}

GPU_FN void gpu_barrier_init(u64 *b, u32 n) {
    simt_barrier_init(b, n);
}
GPU_FN void gpu_barrier_publish() {
}
GPU_FN void gpu_barrier_arrive(u64 *b) {
    simt_barrier_arrive(b, 0);
}
GPU_FN void gpu_barrier_expect(u64 *b, u32 bytes) {
    simt_barrier_arrive(b, bytes);
}
GPU_FN void gpu_barrier_wait(u64 *b, u32 parity) {
    simt_barrier_wait(b, parity);
}
GPU_FN void gpu_copy_arrive(u64 *b) {
    simt_copy_arrive(b);
}
GPU_FN void gpu_bulk_copy(void *to, const void *from, u32 bytes, u64 *b) {
    simt_bulk_copy(to, from, bytes, b);
}
GPU_FN u64 gpu_wgmma_operand(const void *tile) {
    return simt_wgmma_operand(tile);
}
GPU_FN u64 gpu_wgmma_operand_turned(const void *tile, u32 panel) {
    return simt_wgmma_operand_turned(tile, panel);
}
GPU_FN void gpu_fence_async() {
    simt_fence_async();
}
GPU_FN void gpu_wgmma_begin() {
}
template <int N, bool BF16> GPU_FN void gpu_wgmma(float (&d)[N / 2], const u32 *a, u64 operand) {
    simt_wgmma(d, N, a, operand, BF16, false);
}
template <int N, bool BF16>
GPU_FN void gpu_wgmma_turned(float (&d)[N / 2], const u32 *a, u64 operand) {
    simt_wgmma(d, N, a, operand, BF16, true);
}
GPU_FN void gpu_wgmma_commit() {
    simt_wgmma_commit();
}
template <int N> GPU_FN void gpu_wgmma_finish(float (&)[N]) {
    simt_wgmma_finish();
}
GPU_FN void gpu_opaque(u32 &) {
}
template <int N> GPU_FN void gpu_registers_fewer() {
}
template <int N> GPU_FN void gpu_registers_more() {
}

#endif
