// SPDX-License-Identifier: MIT
// Which attentions kernels/attention_vector.cpp and attention_matrix.cpp take: what they ask of
// addresses and strides is known when a graph is computed. Whatever does not fit stays with the
// plain kernel.
#include "queue/choose.h"

#include "gpu/base/util.h"

enum {
    THREADS = 128,
    MAX_ROWS = 8,       // of a block of the vector kernel
    MAX_QUERIES = 2048, // rows times channels of K
    MAX_FOURS = 8,      // rows times fours of V's channels that a lane has
    FOURS_CHANNELS = 128,
    TILE = 32,             // rows of a block of the matrix kernel; channels at a time
    MATRIX_CHANNELS = 256, // of V, at most
    KEYS_UNIT = 128,       // that a part has a multiple of
    LEAST_KEYS = 256,      // of a part
    ENOUGH_BLOCKS = 128,   // for any of Apple's GPUs
    MAX_PARTS = 64,
};

static bool takes_cache(const struct ggml_tensor *t) {
    return metal_takes_fours(t) && t->ne[0] <= MAX_QUERIES;
}

static bool takes(const struct ggml_tensor *node) {
    const struct ggml_tensor *q = node->src[0], *k = node->src[1], *v = node->src[2];
    return takes_cache(k) && takes_cache(v) && k->ne[2] == v->ne[2] && k->ne[1] > 0 &&
           q->nb[0] == sizeof(float) && v->ne[0] <= MAX_FOURS * FOURS_CHANNELS &&
           k->ne[2] * k->ne[3] <= INT32_MAX;
}

static int64_t parts_of(int64_t n, int64_t size) {
    return (n + size - 1) / size;
}

// Keys of a part, so that there are as many blocks as a GPU may have at a time. It follows from the
// shapes alone: sums are the same on all devices.
static int64_t keys_of_part(int64_t blocks, int64_t n_keys) {
    const int64_t wanted = MIN(parts_of(ENOUGH_BLOCKS, blocks), MAX_PARTS);
    const int64_t parts = MAX(MIN(wanted, n_keys / LEAST_KEYS), 1);
    return parts_of(n_keys, parts * KEYS_UNIT) * KEYS_UNIT;
}

// Fills the launch for blocks of `rows` rows. values: as attention_parts.h has them.
static void launch(struct metal_launch *l, const struct ggml_tensor *node, int kernel, int rows,
                   int times, bool may_split) {
    const struct ggml_tensor *q = node->src[0], *k = node->src[1];
    struct simt_work *work = &l->step.work;
    metal_specialise(
        l, &(struct metal_variant){kernel, {(int)k->type, rows, (int)node->src[2]->type, times}});
    work->threads = THREADS;
    work->grid[0] = (unsigned)parts_of(q->ne[1] * (q->ne[2] / k->ne[2]), rows);
    work->grid[2] = (unsigned)(k->ne[2] * k->ne[3]);
    work->args.numbers[1] = q->ne[2] / k->ne[2];
    work->args.numbers[2] = may_split
                                ? keys_of_part((int64_t)work->grid[0] * work->grid[2], k->ne[1])
                                : parts_of(k->ne[1], KEYS_UNIT) * KEYS_UNIT;
    work->args.numbers[3] = parts_of(k->ne[1], work->args.numbers[2]);
    work->grid[1] = (unsigned)work->args.numbers[3];
    if (work->grid[1] > 1)
        work->scratch = (size_t)(ggml_nrows(q) * work->grid[1] * (node->ne[0] + 2)) * sizeof(float);
}

void metal_choose_attention(struct metal_launch *l, const struct ggml_tensor *node,
                            const struct metal_planner *planner) {
    if (node->op != GGML_OP_FLASH_ATTN_EXT || !takes(node)) return;
    const struct ggml_tensor *q = node->src[0], *k = node->src[1], *v = node->src[2];
    const int64_t rows = q->ne[1] * (q->ne[2] / k->ne[2]);
    const int64_t fours = parts_of(v->ne[0], FOURS_CHANNELS);
    const int64_t most = MIN(MIN(MAX_QUERIES / k->ne[0], MAX_FOURS / fours), MAX_ROWS);
    if (planner->has_matrices && rows > most && v->ne[0] <= MATRIX_CHANNELS)
        launch(l, node, METAL_KERNEL_attention_matrix, TILE, (int)parts_of(v->ne[0], TILE),
               planner->has_scratch);
    else
        launch(l, node, METAL_KERNEL_attention_vector, (int)MIN(rows, most), (int)fours,
               planner->has_scratch);
}

bool metal_merge_attention(struct metal_launch *l, const struct metal_launch *first) {
    const struct gpu_operand *q = &first->step.work.args.operands[1];
    if (first->step.work.scratch == 0) return false;
    *l = *first;
    metal_specialise(l, &(struct metal_variant){.kernel = METAL_KERNEL_attention_merge});
    l->step.work.grid[0] = (unsigned)(q->ne[1] * q->ne[2] * q->ne[3]);
    l->step.work.grid[1] = l->step.work.grid[2] = 1;
    return true;
}
