// SPDX-License-Identifier: MIT
// Which nodes are computed, by which kernel, with what arguments.
#ifndef GPU_SIMT_KERNELS_H
#define GPU_SIMT_KERNELS_H

#include "ggml-impl.h"
#include "gpu/graph/fuse.h"
#include "kernels/args.h"

enum simt_kernel {
#define SIMT_KERNEL(name) SIMT_KERNEL_##name,
#include "simt/kernel_list.inl"
    SIMT_KERNEL_COUNT,
    SIMT_BEFORE_TENSOR_KERNELS = SIMT_KERNEL_COUNT - 1,
#define SIMT_TENSOR_KERNEL(name) SIMT_KERNEL_##name,
#include "simt/kernel_list.inl"
    SIMT_ALL_KERNELS
};

// Of the functions in the module.
extern const char *const simt_kernel_names[SIMT_ALL_KERNELS];

// What a device and its module have beside what every kernel needs.
enum simt_feature {
    SIMT_TENSOR_F16 = 1,  // mma.sync of F16: sm_75 and later
    SIMT_TENSOR_BF16 = 2, // of BF16, too: sm_80 and later
    SIMT_WARPGROUPS = 4,  // wgmma: sm_90a
    SIMT_TENSOR_CORES = SIMT_TENSOR_F16 | SIMT_TENSOR_BF16,
};

struct simt_work {
    enum simt_kernel kernel;
    unsigned grid[3]; // blocks; 0: there is nothing to compute
    unsigned threads; // of a block
    unsigned shared;  // bytes of shared memory that the kernel has beside its own; often none
    size_t scratch; // bytes of device memory, at multiples of 16, for the last operand; often none
    struct gpu_args args;
};

// The most bytes of struct simt_work's `shared` that a kernel has on a device with some of enum
// simt_feature, where that is chosen. [any-thread]
unsigned simt_kernel_shared(enum simt_kernel kernel, unsigned features);

// Whether the node is computed. Its tensors may have no buffers yet. [any-thread]
bool simt_supports_op(const struct ggml_tensor *node);
// Fills the launch for a node; false: it isn't computed. [any-thread]
bool simt_kernel_prepare(struct simt_work *out_launch, const struct ggml_tensor *node);
// The same for a device with some of enum simt_feature: a kernel that is faster there, if one fits
// the node's types, shapes, addresses and the precision it asks for. [any-thread]
bool simt_kernel_prepare_for(struct simt_work *out_launch, const struct ggml_tensor *node,
                             unsigned features);
// Fills the launch that ends what `first`, with the same scratch memory, began; false: that is all.
// [any-thread]
bool simt_kernel_finish(struct simt_work *out_launch, const struct simt_work *first);
// Lets the launch read its weights, operand 1, before the launches that it depends on have ended;
// false: its kernel reads nothing then. [any-thread]
bool simt_read_weights_early(struct simt_work *launch);
// Fills the launch for nodes that one kernel computes, on a device with some of enum simt_feature;
// false: none does. Where the result is made in place of an operand (struct gpu_fused's
// `indirect`), copying it is left to the caller. [any-thread]
bool simt_fuse_prepare(struct simt_work *out_launch, const struct gpu_fused *fused,
                       unsigned features);

// What kernel_combine does: elements [begin, end) of the operands of the bits `terms` are added up
// in order, or the largest is found, and written to those of the bits `results`.
struct simt_combine {
    int64_t begin, end;
    unsigned terms, results;
    enum { SIMT_COMBINE_SUM, SIMT_COMBINE_MAX } function;
};
// Fills the launch for GPU_MAX_OPERANDS operands, of which some may be NULL; the others are packed
// and of one number of elements, F32, F16 or BF16. [any-thread]
void simt_prepare_combine(struct simt_work *out_launch, const struct ggml_tensor *const *operands,
                          const struct simt_combine *combine);

#endif
