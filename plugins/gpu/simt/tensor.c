// SPDX-License-Identifier: MIT
// Products on tensor cores: which nodes, and their launches. What they ask of addresses and strides
// is known when a graph is computed, not when support is asked for; whatever does not fit stays
// with the plain kernel.
#include "kernels/launch/products.h"
#include "simt/rows.h"

enum {
    FEW_ROWS = 16,
    FEW_COLUMNS = 8,
    TILE_ROWS = 128,
    TILE_COLUMNS = 64,
    TENSOR_THREADS = 128,
    TENSOR_GROUP = 16, // elements of k
    MAX_BLOCKS_YZ = 65535,
    ENOUGH_TILES = 128, // with 256 columns, for a device of sm_90a to be busy
};

// The kernel for weights of a type among a family's, which lie in the order of tensor_types.inl.
static bool kernel_of_type(enum simt_kernel first, enum ggml_type type,
                           enum simt_kernel *out_kernel) {
    static const enum ggml_type types[] = {
#define TENSOR_TYPE(name, elements, bytes) GGML_TYPE_##name,
#include "kernels/tensor_types.inl"
    };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); ++i) {
        if (types[i] != type) continue;
        *out_kernel = (enum simt_kernel)(first + (int)i);
        return true;
    }
    return false;
}

static bool is_multiple(const struct ggml_tensor *t, size_t unit) {
    return (uintptr_t)t->data % unit == 0 && t->nb[1] % unit == 0 && t->nb[2] % unit == 0 &&
           t->nb[3] % unit == 0;
}

// Rows of weights are copied 16 bytes at a time from wherever they begin; what is decoded in words
// lies as its blocks do, at multiples of 2 or 4 bytes, and the types without blocks in eights.
static bool takes_weights(const struct ggml_tensor *a) {
    const bool has_blocks = ggml_blck_size(a->type) > 1;
    const size_t size = ggml_type_size(a->type);
    if (a->ne[0] % TENSOR_GROUP != 0 || a->nb[0] != size) return false;
    return is_multiple(a, !has_blocks ? 8 : size % 4 == 0 ? 4 : size % 2 == 0 ? 2 : 1);
}

static bool takes_activations(const struct ggml_tensor *b) {
    return (T_FLOATS >> b->type & 1) && b->nb[0] == ggml_type_size(b->type) &&
           is_multiple(b, b->type == GGML_TYPE_F32 ? 16 : 8);
}

// Sums are in F32. Activations are rounded to F16, or to BF16 where `to_bf16`: not for a node that
// asks for more, of them or, since nothing else tells exact sums from good ones, of its sums.
static bool may_round(const struct ggml_tensor *node, bool to_bf16) {
    const enum ggml_prec sums = (enum ggml_prec)node->op_params[0],
                         activations = (enum ggml_prec)node->op_params[3];
    return sums != GGML_PREC_F32 && activations != GGML_PREC_F32 &&
           !(activations == GGML_PREC_F16 && to_bf16);
}

// A block of threads for 16 rows and all columns, or for 16 rows and one column with its expert.
static void launch_few(struct simt_work *l, const struct ggml_tensor *node, int64_t blocks) {
    l->grid[0] = (unsigned)((node->ne[0] + FEW_ROWS - 1) / FEW_ROWS);
    l->grid[1] = (unsigned)blocks;
    l->grid[2] = 1;
}

// A block for a tile of the result; with experts, for the columns of one expert, most often. The
// last plane is of columns without an expert.
static void launch_tile(struct simt_work *l, const struct ggml_tensor *node, bool with_experts) {
    const int64_t planes = with_experts ? node->src[0]->ne[2] + 1 : node->ne[2] * node->ne[3];
    const int64_t columns = with_experts ? node->ne[1] * node->ne[2] / planes : node->ne[1];
    l->grid[0] = (unsigned)((node->ne[0] + TILE_ROWS - 1) / TILE_ROWS);
    l->grid[1] = (unsigned)((columns + TILE_COLUMNS - 1) / TILE_COLUMNS);
    l->grid[2] = (unsigned)planes;
    l->args.numbers[1] = l->grid[1];
}

// --- products of warpgroups ----------------------------------------------------------------------

#define MAX_WIDE_SCRATCH ((size_t)256 << 20)

struct wide_type {
    enum ggml_type type;
    bool has_blocks;
    enum simt_kernel kernels[2]; // for tiles of 128 columns, of 256
    unsigned shared[2];
};
#define WIDE_ROW(name, elements, bytes)                                                            \
    {GGML_TYPE_##name,                                                                             \
     (elements) > 1,                                                                               \
     {SIMT_KERNEL_wide_128_##name, SIMT_KERNEL_wide_256_##name},                                   \
     {WIDE_BYTES(elements, bytes, 128), WIDE_BYTES(elements, bytes, 256)}},
static const struct wide_type wide_types[] = {WIDE_TYPES(WIDE_ROW)};

static const struct wide_type *wide_type_of(enum ggml_type type) {
    for (size_t i = 0; i < sizeof(wide_types) / sizeof(wide_types[0]); ++i) {
        if (wide_types[i].type == type) return &wide_types[i];
    }
    return NULL;
}

unsigned simt_kernel_shared(enum simt_kernel kernel, unsigned features) {
    if (kernel == SIMT_KERNEL_attention_576_coded)
        return features & SIMT_TENSOR_F16 ? (unsigned)ATTENTION_576_SHARED : 0;
    if (!(features & SIMT_WARPGROUPS)) return 0;
    if (simt_wide_attention_shared(kernel) > 0) return simt_wide_attention_shared(kernel);
    for (size_t i = 0; i < sizeof(wide_types) / sizeof(wide_types[0]); ++i) {
        for (int k = 0; k < 2; ++k) {
            if (wide_types[i].kernels[k] == kernel) return wide_types[i].shared[k];
        }
    }
    return 0;
}

static int64_t divide_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

// Columns are rounded by a launch of their own, to scratch memory that holds them all: steps of
// tiles, then a word per column. False: they are few, or would take too much of it.
static bool launch_wide(struct simt_work *l, const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const struct wide_type *type = wide_type_of(a->type);
    if (!type || node->ne[1] <= TILE_COLUMNS || a->ne[0] < WIDE_STEP ||
        (!type->has_blocks && !is_multiple(a, 16)))
        return false;
    const int64_t planes = node->ne[2] * node->ne[3], steps = divide_up(a->ne[0], WIDE_STEP);
    const int64_t rows = divide_up(node->ne[0], WIDE_ROWS);
    const int64_t columns = rows * divide_up(node->ne[1], 256) * planes >= ENOUGH_TILES ? 256 : 128;
    const int64_t tiles = divide_up(node->ne[1], columns), n = planes * tiles * columns;
    if (n > (int64_t)(MAX_WIDE_SCRATCH / (2 * WIDE_STEP)) / steps || tiles > MAX_BLOCKS_YZ)
        return false;
    l->kernel = SIMT_KERNEL_wide_columns;
    l->grid[0] = (unsigned)(tiles * columns);
    l->grid[1] = (unsigned)planes;
    l->grid[2] = 1;
    l->threads = WIDE_COLUMN_THREADS;
    l->args.numbers[WIDE_COLUMNS] = columns;
    l->args.numbers[WIDE_TILES] = tiles;
    l->args.numbers[WIDE_STEPS] = steps;
    l->args.numbers[WIDE_EXPONENTS] = n * steps * 2 * WIDE_STEP;
    l->args.numbers[WIDE_AS_BF16] = a->type == GGML_TYPE_BF16;
    l->scratch = (size_t)(l->args.numbers[WIDE_EXPONENTS] + n * 4);
    return true;
}

void simt_finish_wide(struct simt_work *l) {
    const struct wide_type *type = wide_type_of((enum ggml_type)l->args.operands[1].type);
    const int wide = l->args.numbers[WIDE_COLUMNS] == 256;
    l->kernel = type->kernels[wide];
    l->shared = type->shared[wide];
    l->threads = WIDE_THREADS;
    l->grid[2] = l->grid[1]; // planes
    l->grid[0] = (unsigned)divide_up(l->args.operands[0].ne[0], WIDE_ROWS);
    l->grid[1] = (unsigned)l->args.numbers[WIDE_TILES];
}

bool simt_read_weights_early(struct simt_work *l) {
    if (l->kernel < SIMT_KERNEL_few_F16 || l->kernel >= SIMT_KERNEL_tile_F16 ||
        l->args.numbers[FEW_EXPERTS]) // which ones is known afterwards
        return false;
    l->args.numbers[FEW_EARLY] = 1;
    return true;
}

void simt_use_tensor_cores(struct simt_work *l, const struct ggml_tensor *node, unsigned features) {
    if (node->op == GGML_OP_FLASH_ATTN_EXT) simt_use_tensor_attention(l, node, features);
    if (node->op != GGML_OP_MUL_MAT && node->op != GGML_OP_MUL_MAT_ID) return;
    const struct ggml_tensor *a = node->src[0], *b = node->src[1];
    const bool to_bf16 = a->type == GGML_TYPE_BF16 || a->type == GGML_TYPE_MXFP4;
    enum simt_kernel first;
    if ((to_bf16 && !(features & SIMT_TENSOR_BF16)) || !may_round(node, to_bf16) || a->ne[0] == 0 ||
        !takes_weights(a) || !takes_activations(b) ||
        !kernel_of_type(SIMT_KERNEL_few_F16, a->type, &first))
        return;
    const bool with_experts = node->op == GGML_OP_MUL_MAT_ID;
    const int64_t pairs = with_experts ? node->ne[1] * node->ne[2] : node->ne[2] * node->ne[3];
    // Weights are read once for each column with an expert, or once for each expert.
    const bool few = with_experts ? pairs <= 2 * a->ne[2] : node->ne[1] <= FEW_COLUMNS;
    if (pairs > MAX_BLOCKS_YZ || a->ne[2] >= MAX_BLOCKS_YZ ||
        node->ne[1] > (int64_t)MAX_BLOCKS_YZ * TILE_COLUMNS)
        return;
    if ((features & SIMT_WARPGROUPS) && !few && !with_experts && launch_wide(l, node)) return;
    if (few)
        launch_few(l, node, pairs);
    else
        launch_tile(l, node, with_experts);
    if (!few) kernel_of_type(SIMT_KERNEL_tile_F16, a->type, &first);
    l->kernel = first;
    l->threads = TENSOR_THREADS;
    l->args.numbers[FEW_EXPERTS] = with_experts;
}
