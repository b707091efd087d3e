// SPDX-License-Identifier: MIT
// The list of kernels as a table, asked for claims and for launches alike.
#include "simt/kernels.h"

#include "simt/rows.h"

enum { WARP = 32, MAX_THREADS = 256 };

const char *const simt_kernel_names[SIMT_ALL_KERNELS] = {
#define SIMT_KERNEL(name) [SIMT_KERNEL_##name] = "kernel_" #name,
#define SIMT_TENSOR_KERNEL(name) [SIMT_KERNEL_##name] = "kernel_" #name,
#include "simt/kernel_list.inl"
};

// One SIMT_ROW, in the order of the list.
struct row {
    enum ggml_op op;
    enum simt_kernel kernel;
    uint64_t result, source0, source1;
    bool (*accepts)(const struct ggml_tensor *);
    void (*launch)(struct simt_work *, const struct ggml_tensor *);
};

static const struct row rows[] = {
#define SIMT_ROW(op, kernel, result, source0, source1, accepts, launch)                            \
    {GGML_OP_##op,           SIMT_KERNEL_##kernel, result, source0, source1,                       \
     simt_accepts_##accepts, simt_launch_##launch},
#include "simt/kernel_list.inl"
};

// Kernels count blocks of threads in 31 bits: up to 32 threads for an element, or a block for a
// row.
static bool is_countable(const struct ggml_tensor *t) {
    return !t || (ggml_nelements(t) < INT64_C(1) << 33 && ggml_nrows(t) <= INT32_MAX);
}

// A launch has the result and seven sources; nodes with more have no kernel.
static bool operands_fit(const struct ggml_tensor *node) {
    for (int i = GPU_MAX_OPERANDS - 1; i < GGML_MAX_SRC; ++i) {
        if (node->src[i]) return false;
    }
    return is_countable(node) && is_countable(node->src[0]);
}

// A linear search: about 150 rows, of which all but a few are left at the operation.
static const struct row *find_row(const struct ggml_tensor *node) {
    if (!operands_fit(node)) return NULL;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        const struct row *r = &rows[i];
        if (r->op == node->op && type_set_has(r->result, node) &&
            (r->source0 == T_ANY || type_set_has(r->source0, node->src[0])) &&
            (r->source1 == T_ANY || type_set_has(r->source1, node->src[1])) && r->accepts(node))
            return r;
    }
    return NULL;
}

bool simt_supports_op(const struct ggml_tensor *node) {
    if (!ggml_node_is_known(node)) return false;
    return ggml_op_is_empty(node->op) || find_row(node) != NULL;
}

void simt_operand(struct gpu_operand *o, const struct ggml_tensor *t) {
    memset(o, 0, sizeof(*o));
    if (!t) return;
    o->data = (unsigned long long)(uintptr_t)t->data;
    o->type = (int)t->type;
    for (int d = 0; d < GGML_MAX_DIMS; ++d) {
        o->ne[d] = t->ne[d];
        o->nb[d] = (long long)t->nb[d];
    }
}

// A node without elements is left with no blocks, and is not launched.
bool simt_kernel_prepare(struct simt_work *l, const struct ggml_tensor *node) {
    const struct row *row = find_row(node);
    if (!row) return false;
    memset(l->args.numbers, 0, sizeof(l->args.numbers));
    memset(l->args.reals, 0, sizeof(l->args.reals));
    simt_operand(&l->args.operands[0], node);
    for (int i = 1; i < GPU_MAX_OPERANDS; ++i)
        simt_operand(&l->args.operands[i], node->src[i - 1]);
    memcpy(l->args.params, node->op_params, sizeof(l->args.params));
    l->kernel = row->kernel;
    l->shared = 0;
    l->scratch = 0;
    l->grid[0] = 0;
    l->grid[1] = l->grid[2] = 1;
    l->threads = MAX_THREADS;
    if (ggml_nelements(node) > 0) row->launch(l, node);
    return true;
}

bool simt_kernel_prepare_for(struct simt_work *l, const struct ggml_tensor *node,
                             unsigned features) {
    if (!simt_kernel_prepare(l, node)) return false;
    if ((features & SIMT_TENSOR_F16) && l->grid[0] > 0) simt_use_tensor_cores(l, node, features);
    return true;
}

// --- launches that several families share --------------------------------------------------------

// Threads of a block: as many warps as n threads fill, up to the largest block.
static unsigned whole_warps(int64_t n) {
    const int64_t threads = (n + WARP - 1) / WARP * WARP;
    return threads < MAX_THREADS ? (unsigned)threads : (unsigned)MAX_THREADS;
}

void simt_launch_threads(struct simt_work *l, int64_t n) {
    if (n <= 0) return;
    l->threads = whole_warps(n);
    l->grid[0] = (unsigned)((n + l->threads - 1) / l->threads);
}

void simt_launch_row_blocks(struct simt_work *l, int64_t n, int64_t length) {
    l->threads = whole_warps(length > 0 ? length : 1);
    l->grid[0] = (unsigned)n;
}

void simt_launch_elements(struct simt_work *l, const struct ggml_tensor *node) {
    simt_launch_threads(l, ggml_nelements(node));
}

void simt_launch_blocks(struct simt_work *l, const struct ggml_tensor *node) {
    simt_launch_threads(l, ggml_nelements(node) / ggml_blck_size(node->type));
}

void simt_launch_warps(struct simt_work *l, const struct ggml_tensor *node) {
    simt_launch_threads(l, ggml_nelements(node) * WARP);
}

void simt_launch_row_threads(struct simt_work *l, const struct ggml_tensor *node) {
    simt_launch_threads(l, ggml_nrows(node->src[0]));
}

void simt_launch_one_block(struct simt_work *l, const struct ggml_tensor *node) {
    simt_launch_row_blocks(l, 1, ggml_nelements(node->src[0]));
}
