// SPDX-License-Identifier: MIT
// Attention: kernels/attention.cpp, and on tensor cores attention_tensor.cpp of plugins/cuda.
#include "gpu/base/nodes.h"
#include "kernels/launch/products.h"
#include "simt/rows.h"

enum {
    MAX_CHANNELS = 1024, // as in kernels/attention.h
    ATTENTION_THREADS = 128,
    FEW_ROWS = 16, // of queries, that share K and V
    ROWS = 32,
    LEAST_KEYS = 256, // of a part of the keys
    KEYS_UNIT = 64,
    ENOUGH_BLOCKS = 512, // for any device
    MAX_PARTS = 64,
    MAX_BLOCKS_YZ = 65535,
};

// Rows of K or V: a whole number of query heads for each of their heads.
static bool accepts_cache(const struct ggml_tensor *t, const struct ggml_tensor *q) {
    return ggml_rows_separable(t) && t->ne[2] > 0 && t->ne[0] <= MAX_CHANNELS &&
           q->ne[2] % t->ne[2] == 0 && t->ne[3] == q->ne[3];
}

static bool accepts_mask(const struct ggml_tensor *mask, const struct ggml_tensor *q,
                         const struct ggml_tensor *k) {
    return (mask->type == GGML_TYPE_F16 || mask->type == GGML_TYPE_F32) &&
           mask->ne[0] >= k->ne[1] && mask->ne[1] >= q->ne[1] && mask->ne[2] > 0 &&
           mask->ne[3] > 0 && q->ne[2] % mask->ne[2] == 0 && q->ne[3] % mask->ne[3] == 0;
}

static bool accepts_sinks(const struct ggml_tensor *sinks, const struct ggml_tensor *q) {
    return sinks->type == GGML_TYPE_F32 && ggml_is_packed(sinks) && sinks->ne[0] >= q->ne[2];
}

bool simt_accepts_flash_attn(const struct ggml_tensor *node) {
    const struct ggml_tensor *q = node->src[0], *k = node->src[1], *v = node->src[2];
    const struct ggml_tensor *mask = node->src[3], *sinks = node->src[4];
    if (!v || !((T_FLOATS | T_CODED) >> v->type & 1)) return false;
    return accepts_cache(k, q) && accepts_cache(v, q) && (!mask || accepts_mask(mask, q, k)) &&
           (!sinks || accepts_sinks(sinks, q)) && k->ne[0] == q->ne[0] && v->ne[1] >= k->ne[1] &&
           node->ne[0] == v->ne[0] && node->ne[1] == q->ne[2] && node->ne[2] == q->ne[1] &&
           node->ne[3] == q->ne[3];
}

void simt_launch_flash_attn(struct simt_work *l, const struct ggml_tensor *node) {
    l->args.numbers[0] = gpu_power_of_two_within(node->src[0]->ne[2]);
    l->grid[0] = (unsigned)ggml_nrows(node->src[0]);
    l->threads = ATTENTION_THREADS;
}

// --- on tensor cores -----------------------------------------------------------------------------

static bool is_multiple(const struct ggml_tensor *t, size_t unit) {
    return (uintptr_t)t->data % unit == 0 && t->nb[1] % unit == 0 && t->nb[2] % unit == 0 &&
           t->nb[3] % unit == 0;
}

// Rows are copied 16 bytes at a time, and those with blocks decoded as these lie.
static bool takes_cache(const struct ggml_tensor *t, bool as_bf16) {
    if (as_bf16 || t->type == GGML_TYPE_F16)
        return t->type == (as_bf16 ? GGML_TYPE_BF16 : GGML_TYPE_F16) && t->nb[0] == 2 &&
               t->ne[0] % 8 == 0 && is_multiple(t, 16);
#define OR_TYPE_BIT(name) | TYPE_BIT(name)
    const uint64_t coded = 0 ATTENTION_CODED_TYPES(OR_TYPE_BIT);
    const size_t size = ggml_type_size(t->type);
    return (coded >> t->type & 1) && t->nb[0] == size && is_multiple(t, size % 4 == 0 ? 4 : 2);
}

// By the types of the caches, and how many channels the kernels are for. few: at most 16 rows.
enum { CACHE_F16, CACHE_BF16, CACHE_CODED, CACHE_KINDS };
#define KERNELS(name)                                                                              \
    {                                                                                              \
        SIMT_KERNEL_attention_##name##_F16, SIMT_KERNEL_attention_##name##_BF16,                   \
            SIMT_KERNEL_attention_##name##_coded                                                   \
    }
static const struct {
    int64_t n_k, n_v, rows; // of a block
    bool few;
    enum simt_kernel kernels[CACHE_KINDS];
} tensor_kernels[] = {
    {128, 128, FEW_ROWS, true, KERNELS(few_128)},
    {128, 128, ROWS, false, KERNELS(128)},
    {256, 256, FEW_ROWS, false, KERNELS(256)},
    {576, 512, FEW_ROWS, false, KERNELS(576)},
};

// Parts of the keys, for as many blocks as a device may have at a time, of at most `most` keys. It
// follows from the shapes: sums are the same on all devices.
static int64_t keys_of_part(int64_t blocks, int64_t n_keys, int64_t most) {
    const int64_t wanted = MIN((ENOUGH_BLOCKS + blocks - 1) / blocks, MAX_PARTS);
    const int64_t parts = MAX(MIN(wanted, n_keys / LEAST_KEYS), (n_keys + most - 1) / most);
    return (n_keys + parts * KEYS_UNIT - 1) / (parts * KEYS_UNIT) * KEYS_UNIT;
}

static void launch_parts(struct simt_work *l, const struct ggml_tensor *node, int64_t rows_of_block,
                         int64_t rows, int64_t most_keys) {
    const struct ggml_tensor *q = node->src[0], *k = node->src[1];
    const int64_t n_keys = k->ne[1];
    l->grid[0] = (unsigned)((rows + rows_of_block - 1) / rows_of_block);
    l->grid[2] = (unsigned)(k->ne[2] * k->ne[3]);
    l->args.numbers[1] = q->ne[2] / k->ne[2];
    l->args.numbers[2] = keys_of_part((int64_t)l->grid[0] * l->grid[2], n_keys, most_keys);
    l->args.numbers[3] = (n_keys + l->args.numbers[2] - 1) / l->args.numbers[2];
    l->grid[1] = (unsigned)l->args.numbers[3];
    if (l->grid[1] > 1)
        l->scratch = (size_t)(ggml_nrows(q) * l->grid[1] * (node->ne[0] + 2)) * sizeof(float);
}

// By warpgroups: as tensor_kernels, and by whether there are blocks the most keys of a part and
// bytes of shared memory.
static const struct wide_form {
    int64_t n_k, n_v, keys[2];
    unsigned shared[2];
    enum simt_kernel kernels[CACHE_KINDS];
} wide_forms[] = {
#define WIDE_FORM(n_k, n_v, keys, stages, coded_keys, coded_stages)                                \
    {n_k,                                                                                          \
     n_v,                                                                                          \
     {(int64_t)(keys)*ATTENTION_WIDE_TILES, (int64_t)(coded_keys)*ATTENTION_WIDE_TILES},           \
     {ATTENTION_WIDE_SHARED(false, n_k, n_v, keys, stages),                                        \
      ATTENTION_WIDE_SHARED(true, n_k, n_v, coded_keys, coded_stages)},                            \
     KERNELS(wide_##n_k)},
    ATTENTION_WIDE_FORMS(WIDE_FORM)};
enum { N_WIDE_FORMS = sizeof(wide_forms) / sizeof(wide_forms[0]) };

unsigned simt_wide_attention_shared(enum simt_kernel kernel) {
    for (int i = 0; i < N_WIDE_FORMS * CACHE_KINDS; ++i) {
        const int kind = i % CACHE_KINDS;
        if (wide_forms[i / CACHE_KINDS].kernels[kind] == kernel)
            return wide_forms[i / CACHE_KINDS].shared[kind == CACHE_CODED];
    }
    return 0;
}

// Many rows against a cache with 65 to 256 channels, or NULL. Masks are of halves, shared by the
// heads, and read eight keys at a time.
static const struct wide_form *wide_form_of(const struct ggml_tensor *node, int64_t rows) {
    const struct ggml_tensor *k = node->src[1], *v = node->src[2], *mask = node->src[3];
    const int64_t least = 64;
    if (rows <= least || k->ne[0] <= least || v->ne[0] <= least) return NULL;
    if (mask && (mask->type != GGML_TYPE_F16 || mask->nb[0] != 2 || mask->ne[2] != 1 ||
                 !is_multiple(mask, 16) || k->ne[1] % 8 != 0))
        return NULL;
    for (int i = 0; i < N_WIDE_FORMS; ++i) {
        if (k->ne[0] <= wide_forms[i].n_k && v->ne[0] <= wide_forms[i].n_v) return &wide_forms[i];
    }
    return NULL;
}

void simt_use_tensor_attention(struct simt_work *l, const struct ggml_tensor *node,
                               unsigned features) {
    const struct ggml_tensor *q = node->src[0], *k = node->src[1], *v = node->src[2];
    const int kind = k->type == GGML_TYPE_BF16                              ? CACHE_BF16
                     : k->type == GGML_TYPE_F16 && v->type == GGML_TYPE_F16 ? CACHE_F16
                                                                            : CACHE_CODED;
    const int64_t rows = q->ne[1] * (q->ne[2] / k->ne[2]);
    if ((kind == CACHE_BF16 && !(features & SIMT_TENSOR_BF16)) ||
        !takes_cache(k, kind == CACHE_BF16) || !takes_cache(v, kind == CACHE_BF16) ||
        k->ne[2] != v->ne[2] || q->nb[0] != sizeof(float) || !is_multiple(q, 16) ||
        node->nb[0] != sizeof(float) || !is_multiple(node, 8) || k->ne[1] == 0 ||
        k->ne[2] * k->ne[3] > MAX_BLOCKS_YZ)
        return;
    const struct wide_form *wide = features & SIMT_WARPGROUPS ? wide_form_of(node, rows) : NULL;
    if (wide) {
        l->kernel = wide->kernels[kind];
        l->threads = ATTENTION_WIDE_THREADS;
        l->shared = wide->shared[kind == CACHE_CODED];
        launch_parts(l, node, ATTENTION_WIDE_ROWS, rows, wide->keys[kind == CACHE_CODED]);
        return;
    }
    for (size_t i = 0; i < sizeof(tensor_kernels) / sizeof(tensor_kernels[0]); ++i) {
        if (k->ne[0] > tensor_kernels[i].n_k || v->ne[0] > tensor_kernels[i].n_v ||
            (tensor_kernels[i].few && rows > FEW_ROWS))
            continue;
        l->kernel = tensor_kernels[i].kernels[kind];
        if (l->kernel == SIMT_KERNEL_attention_576_coded) l->shared = ATTENTION_576_SHARED;
        launch_parts(l, node, tensor_kernels[i].rows, rows, INT32_MAX);
        return;
    }
}

bool simt_kernel_finish(struct simt_work *l, const struct simt_work *first) {
    if (first->scratch == 0) return false;
    const struct gpu_operand *q = &first->args.operands[1];
    *l = *first;
    if (first->kernel == SIMT_KERNEL_wide_columns) {
        simt_finish_wide(l);
        return true;
    }
    l->kernel = SIMT_KERNEL_attention_join;
    l->shared = 0;
    l->grid[0] = (unsigned)(q->ne[1] * q->ne[2] * q->ne[3]);
    l->grid[1] = l->grid[2] = 1;
    l->threads = ATTENTION_THREADS;
    return true;
}
