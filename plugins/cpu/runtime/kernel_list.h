// SPDX-License-Identifier: MIT
// The look-up behind supports_op and dispatch.
#ifndef CPU_KERNEL_LIST_H
#define CPU_KERNEL_LIST_H

#include "base/kernel.h"
#include "lists/type_set.h"

// Values of the sub column beside sub-operations.
enum {
    ANY = -1,
    // What one kernel computes together is a sub-operation of the last node.
    CPU_SUB_FUSED = 1000,
    // a MUL that also computes the RMS_NORM which is one of its operands
    CPU_SUB_RMS_NORM_MUL = CPU_SUB_FUSED,
    // a CPY that also computes the recurrence whose new states it copies
    CPU_SUB_KEPT_STATES,
};

#define T_HALVES (T_F16 | T_BF16)
// Every type with block scales.
#define T_QUANTS                                                                                   \
    (TYPE_BIT(Q4_0) | TYPE_BIT(Q4_1) | TYPE_BIT(Q5_0) | TYPE_BIT(Q5_1) | TYPE_BIT(Q8_0) |          \
     TYPE_BIT(Q8_1) | TYPE_BIT(Q2_K) | TYPE_BIT(Q3_K) | TYPE_BIT(Q4_K) | TYPE_BIT(Q5_K) |          \
     TYPE_BIT(Q6_K) | TYPE_BIT(Q8_K) | TYPE_BIT(IQ2_XXS) | TYPE_BIT(IQ2_XS) | TYPE_BIT(IQ3_XXS) |  \
     TYPE_BIT(IQ1_S) | TYPE_BIT(IQ4_NL) | TYPE_BIT(IQ3_S) | TYPE_BIT(IQ2_S) | TYPE_BIT(IQ4_XS) |   \
     TYPE_BIT(IQ1_M) | TYPE_BIT(TQ1_0) | TYPE_BIT(TQ2_0) | TYPE_BIT(MXFP4) | TYPE_BIT(NVFP4) |     \
     TYPE_BIT(Q1_0) | TYPE_BIT(Q2_0))
// Results are not stored in types with grids: finding their points is for ggml_quantize_chunk().
#define T_ENCODED (T_QUANTS & ~T_GRIDS)
// Types that rows of quantised weights have dot products with: their vec_dot_type.
#define T_PARTNERS (TYPE_BIT(Q8_0) | TYPE_BIT(Q8_1) | TYPE_BIT(Q8_K))
#define T_ALL (T_PLAIN | T_QUANTS)

// A row of kernel_list.inl.
struct cpu_kernel {
    int16_t op;
    int16_t sub;
    uint64_t dst;
    uint64_t src[3];
    cpu_accepts_fn accepts;
    cpu_work_fn work;
    cpu_cost_fn cost;
    const char *entry; // name, for messages and tests
};

// All rows, in order; a level's table has the entry points in the same order. [any-thread]
const struct cpu_kernel *cpu_kernels(int *out_count);
// The row that computes the node, or NULL: not supported. Operands may be without buffers.
// [any-thread]
const struct cpu_kernel *cpu_kernel_find(const struct ggml_tensor *node);
// The same for a sub-operation that the node itself does not name.
const struct cpu_kernel *cpu_kernel_find_sub(const struct ggml_tensor *node, int sub);
// Index of a row.
int cpu_kernel_index(const struct cpu_kernel *kernel);
// Whether all operands and the result lie where kernels of the node read and write them: only
// weights of products may be repacked. [any-thread]
bool cpu_layouts_fit(const struct ggml_tensor *node);
// Whether the device computes the node, view operations included. [any-thread]
bool cpu_supports_op(const struct ggml_tensor *node);

// --- columns shared by several families ------------------------------------------------

bool cpu_accepts_binary(const struct ggml_tensor *node);
// Nothing. Of a kernel with the first one each thread's share is computed by itself, so that fewer
// threads than shares can do it.
size_t cpu_work_none(const struct ggml_tensor *node, int n_threads);
size_t cpu_work_barrier(const struct ggml_tensor *node, int n_threads);
// Elements of the result, of src0.
int64_t cpu_cost_dst(const struct ggml_tensor *node);
int64_t cpu_cost_src0(const struct ggml_tensor *node);
// Ten times as much, for transcendental functions.
int64_t cpu_cost_dst_heavy(const struct ggml_tensor *node);

#define CPU_KERNEL_ROW(op, sub, entry, dst, src0, src1, src2, accepts, work, cost)                 \
    bool accepts(const struct ggml_tensor *node);                                                  \
    size_t work(const struct ggml_tensor *node, int n_threads);                                    \
    int64_t cost(const struct ggml_tensor *node);
#include "runtime/kernel_list.inl"

#endif
