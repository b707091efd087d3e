// SPDX-License-Identifier: MIT
// The look-up behind supports_op and dispatch.
#ifndef CPU_KERNEL_LIST_H
#define CPU_KERNEL_LIST_H

#include "base/kernel.h"

// Values of the sub column beside sub-operations.
enum {
    ANY = -1,
    CPU_SUB_RMS_NORM_MUL =
        1000, // a MUL that also computes the RMS_NORM which is one of its operands
};

// Sets of types: one bit per type number, bit 63 for an absent operand.
#define CPU_T(name) (UINT64_C(1) << GGML_TYPE_##name)
#define T_NONE (UINT64_C(1) << 63)
#define T_ANY (~UINT64_C(0))
#define T_F32 CPU_T(F32)
#define T_F16 CPU_T(F16)
#define T_BF16 CPU_T(BF16)
#define T_F64 CPU_T(F64)
#define T_I8 CPU_T(I8)
#define T_I16 CPU_T(I16)
#define T_I32 CPU_T(I32)
#define T_I64 CPU_T(I64)
#define T_FLOATS (T_F32 | T_F16 | T_BF16)
#define T_HALVES (T_F16 | T_BF16)
#define T_INTS (T_I8 | T_I16 | T_I32 | T_I64)
// Every type with block scales.
#define T_QUANTS                                                                                   \
    (CPU_T(Q4_0) | CPU_T(Q4_1) | CPU_T(Q5_0) | CPU_T(Q5_1) | CPU_T(Q8_0) | CPU_T(Q8_1) |           \
     CPU_T(Q2_K) | CPU_T(Q3_K) | CPU_T(Q4_K) | CPU_T(Q5_K) | CPU_T(Q6_K) | CPU_T(Q8_K) |           \
     CPU_T(IQ2_XXS) | CPU_T(IQ2_XS) | CPU_T(IQ3_XXS) | CPU_T(IQ1_S) | CPU_T(IQ4_NL) |              \
     CPU_T(IQ3_S) | CPU_T(IQ2_S) | CPU_T(IQ4_XS) | CPU_T(IQ1_M) | CPU_T(TQ1_0) | CPU_T(TQ2_0) |    \
     CPU_T(MXFP4) | CPU_T(NVFP4) | CPU_T(Q1_0) | CPU_T(Q2_0))
// Of these, the ones that results are not stored in: finding the points of grids is for
// ggml_quantize_chunk().
#define T_GRIDS                                                                                    \
    (CPU_T(IQ2_XXS) | CPU_T(IQ2_XS) | CPU_T(IQ3_XXS) | CPU_T(IQ1_S) | CPU_T(IQ3_S) |               \
     CPU_T(IQ2_S) | CPU_T(IQ1_M))
#define T_ENCODED (T_QUANTS & ~T_GRIDS)
// Types that rows of quantised weights have dot products with: their vec_dot_type.
#define T_PARTNERS (CPU_T(Q8_0) | CPU_T(Q8_1) | CPU_T(Q8_K))
// Types without blocks.
#define T_PLAIN (T_FLOATS | T_F64 | T_INTS)
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
// Whether the device computes the node, view operations included. [any-thread]
bool cpu_supports_op(const struct ggml_tensor *node);

// --- columns shared by several families ------------------------------------------------

bool cpu_accepts_binary(const struct ggml_tensor *node);
size_t cpu_work_none(const struct ggml_tensor *node, int n_threads);
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
