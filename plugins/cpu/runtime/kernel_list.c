// SPDX-License-Identifier: MIT
// The lists of all families as one table. Rows of an operation are chained, so that a look-up
// passes only those of the node's own operation; the first that fits is taken.
#include "runtime/kernel_list.h"

#include <pthread.h>
#include <stdatomic.h>

#include "ggml-shape.h"
#include "types/repacked.h"

// Neither list of the quantised types may forget one.
#define GGML_TYPE_ROW(number, name, text, block, size, quantized, since)                           \
    _Static_assert(((T_QUANTS >> number) & 1) == quantized, "T_QUANTS and " #name);
#include "type_list.inl"

static const struct cpu_kernel kernels[] = {
#define CPU_KERNEL_ROW(op, sub, entry, dst, src0, src1, src2, accepts, work, cost)                 \
    {GGML_OP_##op, sub, dst, {src0, src1, src2}, accepts, work, cost, #entry},
#include "runtime/kernel_list.inl"
};

enum { N_KERNELS = sizeof(kernels) / sizeof(kernels[0]) };

// Chains the rows of each op, so that a look-up sees no others; index + 1, 0 ends the chain.
static int16_t first_row[GGML_OP_COUNT];
static int16_t next_row[N_KERNELS];
static pthread_once_t chain_once = PTHREAD_ONCE_INIT;
static atomic_bool chained; // spares look-ups the call

// Links the kernels of each operation into a list, so that a search looks only at those. Built back
// to front, which keeps the order of the table: the first fitting kernel wins. Entries are index +
// 1; 0 ends a list.
static void chain_rows(void) {
    for (int i = N_KERNELS - 1; i >= 0; --i) {
        next_row[i] = first_row[kernels[i].op];
        first_row[kernels[i].op] = (int16_t)(i + 1);
    }
    atomic_store_explicit(&chained, true, memory_order_release);
}

const struct cpu_kernel *cpu_kernels(int *out_count) {
    *out_count = N_KERNELS;
    return kernels;
}

int cpu_kernel_index(const struct cpu_kernel *kernel) {
    return (int)(kernel - kernels);
}

static bool fits(const struct cpu_kernel *kernel, const struct ggml_tensor *node) {
    return type_set_has(kernel->dst, node) && type_set_has(kernel->src[0], node->src[0]) &&
           type_set_has(kernel->src[1], node->src[1]) &&
           type_set_has(kernel->src[2], node->src[2]) && kernel->accepts(node);
}

// The first kernel of the operation that accepts types and layouts, or NULL. O(kernels of the
// operation).
const struct cpu_kernel *cpu_kernel_find_sub(const struct ggml_tensor *node, int sub) {
    if (node->op < 0 || node->op >= GGML_OP_COUNT || node->flags & GGML_TENSOR_FLAG_ERROR)
        return NULL;
    if (!atomic_load_explicit(&chained, memory_order_acquire))
        pthread_once(&chain_once, chain_rows);
    for (int i = first_row[node->op]; i != 0; i = next_row[i - 1]) {
        const struct cpu_kernel *kernel = &kernels[i - 1];
        // A kernel for ANY variant does not stand for fused ones, which are several nodes.
        if ((kernel->sub == ANY ? sub < CPU_SUB_FUSED : kernel->sub == sub) && fits(kernel, node)) {
            return kernel;
        }
    }
    return NULL;
}

const struct cpu_kernel *cpu_kernel_find(const struct ggml_tensor *node) {
    const bool has_sub = node->op == GGML_OP_UNARY || node->op == GGML_OP_GLU;
    const int sub = has_sub ? ggml_get_op_params_i32(node, 0) : 0;
    return sub < CPU_SUB_FUSED ? cpu_kernel_find_sub(node, sub) : NULL;
}

// Tensors in memory of repacked weights that are not repacked fit nothing.
bool cpu_layouts_fit(const struct ggml_tensor *node) {
    const bool is_product = node->op == GGML_OP_MUL_MAT || node->op == GGML_OP_MUL_MAT_ID;
    bool fits = cpu_layout_of(node) == CPU_LAYOUT_PLAIN;
    for (int i = 0; i < GGML_MAX_SRC && fits; ++i) {
        if (!node->src[i]) continue;
        const enum cpu_layout layout = cpu_layout_of(node->src[i]);
        fits =
            layout == CPU_LAYOUT_PLAIN || (is_product && i == 0 && layout == CPU_LAYOUT_REPACKED);
    }
    return fits;
}

// Nodes without a kernel are supported if there is nothing to compute: views, and empty results.
bool cpu_supports_op(const struct ggml_tensor *node) {
    if (!ggml_node_is_known(node)) return false;
    const bool nothing_to_do =
        ggml_op_is_empty(node->op) || (node->op < GGML_OP_COUNT && ggml_nelements(node) == 0);
    return nothing_to_do || (cpu_layouts_fit(node) && cpu_kernel_find(node) != NULL);
}
