// SPDX-License-Identifier: MIT
// argsort and top_k by shaders/sort.comp, or sort_rank.comp on drivers that compute on the CPU.
// Rows that fit into a group's shared memory take one launch. Of longer rows top_k keeps the first
// items of each block until one block is left; argsort merges blocks in scratch memory.
#include "gpu/base/shape.h"
#include "plan/kernel.h"

enum {
    MAX_ITEMS = 4096, // of a block
    ITEM_BYTES = 8,
    RANK_GROUP = 8,        // of sort_rank.comp
    MAX_RANKED = 2048,     // numbers of a row for which that pays
    MAX_SCRATCH = 1 << 26, // bytes; more rows follow in chunks
};

enum mode { MODE_BLOCKS, MODE_STEP, MODE_MERGE };

struct sort {
    struct gvk_plan *plan;
    const struct ggml_tensor *node;
    uint32_t items;             // of a block
    uint64_t first_row, n_rows; // of the chunk
};

// One launch: where items come from and go to.
struct launch {
    enum mode mode;
    bool from_source, to_result, alternate;
    size_t from, to; // scratch memory
    size_t from_bytes, to_bytes;
    uint32_t n_from, stride_from, keep, stride_to, span, distance;
    uint64_t groups;
};

// The least power of two that is not below n.
static uint64_t power_above(uint64_t n) {
    uint64_t power = 1;
    while (power < n)
        power *= 2;
    return power;
}

// The limits: scratch memory for the items of a row, and shared memory for a block of at least 64.
bool gvk_accepts_top_k(const struct gvk_features *features, const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    return ggml_same_shape_from(node, a, 1) && node->ne[0] <= a->ne[0] && ggml_rows_dense(node) &&
           (uint64_t)a->ne[0] <= (MAX_SCRATCH / ITEM_BYTES) &&
           features->max_shared_bytes >= 64 * ITEM_BYTES;
}

bool gvk_accepts_argsort(const struct gvk_features *features, const struct ggml_tensor *node) {
    return node->ne[0] == node->src[0]->ne[0] && gvk_accepts_top_k(features, node);
}

// Invocations per group: half as many as items at most, as each compares two.
static uint32_t group_size(const struct sort *s) {
    const struct gvk_features *features = gvk_plan_features(s->plan);
    uint32_t size = features->cpu ? 32 : 256;
    while (size > features->max_group_size)
        size /= 2;
    return size < s->items / 2 ? size : s->items / 2;
}

static bool is_descending(const struct ggml_tensor *node) {
    return node->op == GGML_OP_TOP_K || node->op_params[0] == GGML_SORT_ORDER_DESC;
}

// One launch of sort.comp; its numbers are in the order of the shader's macros.
static void encode_launch(const struct sort *s, const struct launch *l) {
    struct gvk_dispatch *d = gvk_dispatch_new(s->plan, GVK_SHADER_sort, s->node, 1, group_size(s));
    if (!d) return;
    if (!l->to_result) gvk_dispatch_scratch(d, 0, l->to, l->to_bytes, true);
    if (!l->from_source) gvk_dispatch_scratch(d, 1, l->from, l->from_bytes, false);
    gvk_dispatch_spec(d, l->mode);
    gvk_dispatch_spec(d, s->items);
    gvk_dispatch_spec(d, l->from_source);
    gvk_dispatch_spec(d, l->to_result);
    gvk_dispatch_spec(d, is_descending(s->node));
    gvk_dispatch_spec(d, l->alternate);
    const uint32_t numbers[] = {(uint32_t)s->first_row,
                                (uint32_t)s->n_rows,
                                l->n_from,
                                l->stride_from,
                                l->keep,
                                l->stride_to,
                                l->span,
                                l->distance};
    for (int i = 0; i < 8; ++i)
        d->numbers[i] = numbers[i];
    gvk_dispatch_groups(s->plan, d, l->groups);
}

// Blocks keep their first items until one block has them all.
static void encode_selection(struct sort *s, size_t scratch[2], size_t bytes) {
    const uint32_t k = (uint32_t)s->node->ne[0];
    struct launch l = {.mode = MODE_BLOCKS,
                       .from_source = true,
                       .n_from = (uint32_t)s->node->src[0]->ne[0],
                       .from_bytes = bytes,
                       .to_bytes = bytes};
    for (int side = 0;; side = 1 - side) {
        const uint64_t blocks = gpu_groups_of(l.n_from, s->items);
        l.to_result = blocks <= 1;
        l.keep = l.to_result ? s->items : k;
        l.stride_to = (uint32_t)blocks * k;
        l.to = scratch[side];
        l.groups = s->n_rows * (blocks ? blocks : 1);
        encode_launch(s, &l);
        if (l.to_result) return;
        l.from_source = false;
        l.from = l.to;
        l.n_from = l.stride_from = l.stride_to;
    }
}

// Sorts blocks up and down in turn, then merges them.
static void encode_merges(struct sort *s, size_t scratch, size_t bytes) {
    const uint32_t all = (uint32_t)power_above((uint64_t)s->node->src[0]->ne[0]);
    const uint64_t blocks = all / s->items;
    struct launch l = {.mode = MODE_BLOCKS,
                       .from_source = true,
                       .alternate = true,
                       .n_from = (uint32_t)s->node->src[0]->ne[0],
                       .keep = s->items,
                       .stride_to = all,
                       .from = scratch,
                       .to = scratch,
                       .from_bytes = bytes,
                       .to_bytes = bytes,
                       .groups = s->n_rows * blocks};
    encode_launch(s, &l);
    l.from_source = false;
    l.n_from = l.stride_from = all;
    for (l.span = 2 * s->items; l.span <= all; l.span *= 2) {
        l.mode = MODE_STEP;
        l.groups = gpu_groups_of(s->n_rows * (all / 2), group_size(s));
        for (l.distance = l.span / 2; l.distance >= s->items; l.distance /= 2)
            encode_launch(s, &l);
        l.mode = MODE_MERGE;
        l.to_result = l.span == all;
        l.groups = s->n_rows * blocks;
        encode_launch(s, &l);
    }
}

// Items that a group sorts in shared memory: a power of two, as bitonic sorting wants.
static uint32_t block_items(const struct gvk_features *features, uint64_t n) {
    uint64_t items = MAX_ITEMS;
    while (items * ITEM_BYTES > features->max_shared_bytes)
        items /= 2;
    const uint64_t needed = power_above(n);
    return (uint32_t)(needed > items ? items : needed < 64 ? 64 : needed);
}

// A launch of sort_rank.comp, with so many numbers per invocation as the row's length suggests.
static void encode_ranks(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const uint64_t n = (uint64_t)node->src[0]->ne[0];
    const uint32_t held = n <= 8 * RANK_GROUP ? 8 : n <= 16 * RANK_GROUP ? 16 : 32;
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_sort_rank, node, 1, RANK_GROUP);
    if (!d) return;
    gvk_dispatch_spec(d, is_descending(node));
    gvk_dispatch_spec(d, held);
    gvk_dispatch_groups(plan, d, gpu_nrows(node) * gpu_groups_of(n, (uint64_t)RANK_GROUP * held));
}

// Rows are taken in chunks whose items fit in MAX_SCRATCH bytes. `selects`: few enough items are
// wanted to keep only the first ones of each block.
void gvk_encode_sort(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const uint64_t n = (uint64_t)node->src[0]->ne[0];
    const uint64_t rows = gpu_nrows(node);
    if (gpu_nelements(node) == 0) return;
    if (gvk_plan_features(plan)->cpu && n <= MAX_RANKED) {
        encode_ranks(plan, node);
        return;
    }
    struct sort s = {plan, node, block_items(gvk_plan_features(plan), n), 0, 0};
    const bool fits = n <= s.items;
    const bool selects = fits || (uint64_t)node->ne[0] <= s.items / 4;
    const uint64_t row_items = fits      ? 0
                               : selects ? gpu_groups_of(n, s.items) * (uint64_t)node->ne[0]
                                         : power_above(n);
    const uint64_t per_chunk = fits ? rows : MAX_SCRATCH / (row_items * ITEM_BYTES);
    const uint64_t most_rows = rows < per_chunk ? rows : per_chunk;
    const size_t bytes = (size_t)(most_rows * row_items * ITEM_BYTES);
    size_t scratch[2] = {0, 0};
    if (!fits) {
        scratch[0] = gvk_plan_scratch(plan, bytes);
        scratch[1] = selects ? gvk_plan_scratch(plan, bytes) : scratch[0];
    }
    for (; s.first_row < rows; s.first_row += s.n_rows) {
        s.n_rows = rows - s.first_row < per_chunk ? rows - s.first_row : per_chunk;
        if (selects)
            encode_selection(&s, scratch, bytes);
        else
            encode_merges(&s, scratch[0], bytes);
    }
}
