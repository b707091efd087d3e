// SPDX-License-Identifier: MIT
// FLASH_ATTN_EXT: what is computed, by which shader, and in how many launches.
#include "gpu/base/nodes.h"
#include "gpu/base/shape.h"
#include "plan/kernel.h"

enum {
    MAX_CHANNELS = 1024, // as many as flash_attn.comp keeps in shared memory
    MAX_LANE_CHANNELS = 256,
    LANE_ROWS = 4,
    TILE_GROUP = 128, // of flash_attn_tile.comp, in lines of TILE_LANES
    TILE_LANES = 16,
    TILE_LINES = TILE_GROUP / TILE_LANES,
    MIN_TILE_ROWS = 4,
    ROW_GROUP = 128,    // of flash_attn.comp
    CPU_ROW_GROUP = 32, // on drivers on the CPU
    PART_KEYS = 256,    // least that are worth a group of their own
    ENOUGH_GROUPS = 256,
    N_SOURCES = 5,
};

// Rows of K or V: dense, and a whole number of query heads for each of their heads.
static bool accepts_cache(const struct ggml_tensor *t, const struct ggml_tensor *q) {
    return ggml_rows_dense(t) && t->ne[0] % ggml_blck_size(t->type) == 0 && t->ne[2] > 0 &&
           t->ne[0] <= MAX_CHANNELS && q->ne[2] % t->ne[2] == 0 && t->ne[3] == q->ne[3];
}

// Whether the mask covers all keys and rows and repeats over heads and batches.
static bool accepts_mask(const struct ggml_tensor *mask, const struct ggml_tensor *q,
                         const struct ggml_tensor *k) {
    return (mask->type == GGML_TYPE_F16 || mask->type == GGML_TYPE_F32) && ggml_rows_dense(mask) &&
           mask->ne[0] >= k->ne[1] && mask->ne[1] >= q->ne[1] && mask->ne[2] > 0 &&
           mask->ne[3] > 0 && q->ne[2] % mask->ne[2] == 0 && q->ne[3] % mask->ne[3] == 0;
}

static bool accepts_sinks(const struct ggml_tensor *sinks, const struct ggml_tensor *q) {
    return sinks->type == GGML_TYPE_F32 && ggml_is_packed(sinks) && sinks->ne[0] >= q->ne[2];
}

// The same shapes as on the CPU: grouped-query attention, a mask that repeats over heads and
// sequences, an optional sink per head.
bool gvk_accepts_flash_attn(const struct gvk_features *features, const struct ggml_tensor *node) {
    const struct ggml_tensor *q = node->src[0];
    const struct ggml_tensor *k = node->src[1];
    const struct ggml_tensor *v = node->src[2];
    const struct ggml_tensor *mask = node->src[3];
    const struct ggml_tensor *sinks = node->src[4];
    (void)features;
    return accepts_cache(k, q) && accepts_cache(v, q) && (!mask || accepts_mask(mask, q, k)) &&
           (!sinks || accepts_sinks(sinks, q)) && ggml_rows_dense(q) && ggml_rows_dense(node) &&
           k->ne[0] == q->ne[0] && v->ne[1] >= k->ne[1] && node->ne[0] == v->ne[0] &&
           node->ne[1] == q->ne[2] && node->ne[2] == q->ne[1] && node->ne[3] == q->ne[3];
}

// Query heads that share a head of K and one of V.
static int64_t shared_heads(const struct ggml_tensor *node) {
    const int64_t heads = node->src[0]->ne[2];
    const int64_t per_k = heads / node->src[1]->ne[2];
    const int64_t per_v = heads / node->src[2]->ne[2];
    const int64_t fewer = per_k < per_v ? per_k : per_v;
    return (per_k < per_v ? per_v : per_k) % fewer == 0 ? fewer : 1;
}

// Whether flash_attn_lanes.comp reads rows of the type: whole loads from aligned addresses.
static bool has_lane_rows(const struct ggml_tensor *t) {
    const bool blocks = t->type == GGML_TYPE_Q4_0 || t->type == GGML_TYPE_Q4_1 ||
                        t->type == GGML_TYPE_Q5_0 || t->type == GGML_TYPE_Q5_1 ||
                        t->type == GGML_TYPE_Q8_0 || t->type == GGML_TYPE_IQ4_NL;
    return t->ne[0] <= MAX_LANE_CHANNELS && gpu_is_wide(t) &&
           (blocks || ggml_blck_size(t->type) == 1);
}

// Large products only: the code is unrolled by the number of channels and long to compile.
static bool suits_lanes(const struct gvk_features *features, const struct ggml_tensor *node) {
    const struct ggml_tensor *k = node->src[1];
    const struct ggml_tensor *v = node->src[2];
    const bool blocks = ggml_blck_size(k->type) > 1 || ggml_blck_size(v->type) > 1;
    const int64_t step = blocks ? 32 : 8;
    const double products = (double)gpu_nelements(node->src[0]) * (double)k->ne[1];
    return features->cpu && features->subgroup_arithmetic && features->subgroup_size == 8 &&
           products >= 262144 && k->ne[0] % step == 0 && v->ne[0] % step == 0 && has_lane_rows(k) &&
           has_lane_rows(v) && gpu_is_wide(node->src[0]);
}

// A launch of any of the shaders, with the constants that they share (attention.glsl). NULL
// without memory.
static struct gvk_dispatch *begin(struct gvk_plan *plan, const struct ggml_tensor *node,
                                  enum gvk_shader shader, uint32_t group_size) {
    const struct ggml_tensor *mask = node->src[3];
    struct gvk_dispatch *d = gvk_dispatch_new(plan, shader, node, N_SOURCES, group_size);
    if (!d) return NULL;
    gvk_dispatch_spec(d, node->src[1]->type);
    gvk_dispatch_spec(d, node->src[2]->type);
    gvk_dispatch_spec(d, mask ? mask->type : 0);
    gvk_dispatch_spec(d, mask != NULL);
    gvk_dispatch_spec(d, ggml_get_op_params_f32(node, 2) != 0.0f);
    gvk_dispatch_spec(d, node->src[4] != NULL);
    d->numbers[0] = gpu_power_of_two_within(node->src[0]->ne[2]);
    return d;
}

// For drivers that run on the CPU: a subgroup per LANE_ROWS rows, or per row where there are
// few.
static void encode_lanes(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const struct ggml_tensor *q = node->src[0];
    const bool blocks =
        ggml_blck_size(node->src[1]->type) > 1 || ggml_blck_size(node->src[2]->type) > 1;
    const int64_t heads = shared_heads(node);
    const int64_t rows = q->ne[1] * heads;
    const uint32_t tile = rows >= LANE_ROWS ? LANE_ROWS : 1;
    struct gvk_dispatch *d =
        begin(plan, node, blocks ? GVK_SHADER_flash_attn_lanes_blocks : GVK_SHADER_flash_attn_lanes,
              gvk_plan_features(plan)->subgroup_size);
    if (!d) return;
    gvk_dispatch_spec(d, (uint32_t)(node->src[1]->ne[0] / 4));
    gvk_dispatch_spec(d, (uint32_t)(node->src[2]->ne[0] / 4));
    gvk_dispatch_spec(d, tile);
    d->numbers[1] = (uint32_t)heads;
    gvk_dispatch_groups(plan, d,
                        gpu_groups_of((uint64_t)rows, tile) * (uint64_t)(q->ne[2] / heads) *
                            (uint64_t)q->ne[3]);
}

// --- GPUs ----------------------------------------------------------------------------------------

// What an invocation of flash_attn_tile.comp takes; 0 rows: it does not suit.
struct tile {
    uint32_t rows, keys;
};

static uint32_t quads_of(const struct ggml_tensor *t) {
    return (uint32_t)(t->ne[0] / 4);
}

// Shared memory that flash_attn_tile needs for a tile, as the shader declares it.
static uint64_t shared_bytes(const struct ggml_tensor *node, struct tile tile) {
    const uint64_t k = quads_of(node->src[1]) | 1, v = quads_of(node->src[2]) | 1;
    const uint64_t rows = TILE_LINES * tile.rows, keys = TILE_LANES * tile.keys;
    return 16 * (rows * k + keys * (k > v ? k : v)) + 4 * rows * (keys + TILE_LANES) + 16;
}

// The largest tile that is not more than half empty and fits into shared memory.
static struct tile choose_tile(const struct gvk_features *features,
                               const struct ggml_tensor *node) {
    static const struct tile tiles[] = {{4, 2}, {4, 1}, {2, 2}, {2, 1}, {1, 2}, {1, 1}};
    const struct tile none = {0, 0};
    const int64_t rows = node->src[0]->ne[1] * shared_heads(node);
    if (features->cpu || features->max_group_size < TILE_GROUP || rows < MIN_TILE_ROWS ||
        node->src[1]->ne[0] % 4 != 0 || node->src[2]->ne[0] % 4 != 0)
        return none;
    for (size_t i = 0; i < sizeof(tiles) / sizeof(tiles[0]); ++i) {
        const bool filled = rows > TILE_LINES * (int64_t)tiles[i].rows / 2;
        if ((filled || tiles[i].rows == 1) &&
            shared_bytes(node, tiles[i]) <= features->max_shared_bytes)
            return tiles[i];
    }
    return none;
}

// Keys over several groups, where there are fewer groups than a GPU needs.
struct split {
    uint32_t parts, keys;
    uint64_t rows;        // of a launch: those whose parts fit into scratch memory
    size_t offset, bytes; // of what they find, in scratch memory
};

// Iterations of flash_attn.comp on a driver on the CPU per block of keys; finding the largest score
// and the sum of weights takes some.
static uint64_t block_iterations(const struct ggml_tensor *node) {
    const uint64_t k_quads = gpu_groups_of((uint64_t)node->src[1]->ne[0], 4);
    const uint64_t v_quads = gpu_groups_of((uint64_t)node->src[2]->ne[0], 4);
    return k_quads + gpu_groups_of(v_quads, CPU_ROW_GROUP) * (CPU_ROW_GROUP + 1) + 64;
}

// How many groups share the keys of a row. On a GPU as many as fill the device, each with
// PART_KEYS keys at least (split keys, as in Flash-Decoding); on the CPU as few as its limit on
// iterations allows.
static uint64_t choose_parts(const struct gvk_features *features, const struct ggml_tensor *node,
                             uint64_t groups) {
    const uint64_t n_keys = (uint64_t)node->src[1]->ne[1];
    if (features->cpu) {
        const uint64_t iterations = gpu_groups_of(n_keys, CPU_ROW_GROUP) * block_iterations(node);
        // Parts are rounded up to ROW_GROUP keys.
        return features->max_iterations ? 2 * iterations / features->max_iterations + 1 : 1;
    }
    const uint64_t wanted = groups ? ENOUGH_GROUPS / groups : 0, most = n_keys / PART_KEYS;
    return wanted < most ? wanted : most;
}

// The split of a launch, with scratch memory for its parts: per part a row's sums, then the
// largest score and the sum of weights. An operand holds all rows of a GPU's split, which has few.
static struct split choose_split(struct gvk_plan *plan, const struct ggml_tensor *node,
                                 uint64_t groups) {
    const uint64_t n_keys = (uint64_t)node->src[1]->ne[1];
    const uint64_t parts = choose_parts(gvk_plan_features(plan), node, groups);
    struct split split = {1, (uint32_t)n_keys, gpu_nrows(node->src[0]), 0, 0};
    if (parts < 2) return split;
    split.keys = (uint32_t)(gpu_groups_of(gpu_groups_of(n_keys, parts), ROW_GROUP) * ROW_GROUP);
    split.parts = (uint32_t)gpu_groups_of(n_keys, split.keys);
    const uint64_t row_bytes =
        split.parts * (gpu_groups_of((uint64_t)node->src[2]->ne[0], 4) + 1) * 16;
    const uint64_t most = gvk_plan_features(plan)->max_range_bytes / row_bytes;
    split.rows = MIN(split.rows, MAX(most, 1));
    split.bytes = (size_t)(split.rows * row_bytes);
    split.offset = gvk_plan_scratch(plan, split.bytes);
    return split;
}

// `groups` of them do all keys.
static void use_split(const struct gvk_plan *plan, struct gvk_dispatch *d,
                      const struct split *split, uint64_t groups) {
    gvk_dispatch_spec(d, split->parts > 1);
    d->numbers[2] = split->parts;
    d->numbers[3] = split->keys;
    if (split->parts > 1) gvk_dispatch_scratch(d, 0, split->offset, split->bytes, true);
    gvk_dispatch_groups(plan, d, groups * split->parts);
}

// The second launch of a split, which merges the parts of `rows` rows from the first on; nothing
// without a split.
static void encode_merge(struct gvk_plan *plan, const struct ggml_tensor *node,
                         const struct split *split, uint64_t first, uint64_t rows) {
    if (split->parts <= 1) return;
    struct gvk_dispatch *d = begin(plan, node, GVK_SHADER_flash_attn_merge, 64);
    if (!d) return;
    gvk_dispatch_scratch(d, 2, split->offset, split->bytes, false);
    d->numbers[2] = split->parts;
    d->numbers[4] = (uint32_t)first;
    d->numbers[5] = (uint32_t)rows;
    gvk_dispatch_groups(plan, d, rows);
}

// For GPUs: tiles of query rows, and a split of the keys if there are few of these.
static void encode_tile(struct gvk_plan *plan, const struct ggml_tensor *node, struct tile tile) {
    const struct ggml_tensor *q = node->src[0];
    const int64_t heads = shared_heads(node);
    const uint64_t groups =
        gpu_groups_of((uint64_t)(q->ne[1] * heads), (uint64_t)TILE_LINES * tile.rows) *
        (uint64_t)(q->ne[2] / heads) * (uint64_t)q->ne[3];
    const struct split split = choose_split(plan, node, groups);
    struct gvk_dispatch *d = begin(plan, node, GVK_SHADER_flash_attn_tile, TILE_GROUP);
    if (!d) return;
    d->numbers[1] = (uint32_t)heads;
    use_split(plan, d, &split, groups);
    gvk_dispatch_spec(d, quads_of(node->src[1]));
    gvk_dispatch_spec(d, quads_of(node->src[2]));
    gvk_dispatch_spec(d, tile.rows);
    gvk_dispatch_spec(d, tile.keys);
    gvk_dispatch_spec(d, gpu_is_wide(node->src[1]));
    gvk_dispatch_spec(d, gpu_is_wide(node->src[2]));
    encode_merge(plan, node, &split, 0, gpu_nrows(q));
}

// For what the others don't take: a query row per group, all types and layouts. More rows than
// scratch memory has room for follow in launches of their own.
static void encode_rows(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const uint64_t all = gpu_nrows(node->src[0]);
    const struct split split = choose_split(plan, node, all);
    uint64_t rows;
    for (uint64_t first = 0; first < all; first += rows) {
        rows = MIN(split.rows, all - first);
        struct gvk_dispatch *d = begin(plan, node, GVK_SHADER_flash_attn,
                                       gvk_plan_features(plan)->cpu ? CPU_ROW_GROUP : ROW_GROUP);
        if (!d) return;
        d->numbers[4] = (uint32_t)first;
        d->numbers[5] = (uint32_t)rows;
        use_split(plan, d, &split, rows);
        encode_merge(plan, node, &split, first, rows);
    }
}

// Three kernels: one key per lane for few query rows, tiles of query rows against blocks of keys
// for prompts, and one group per query row for everything else.
void gvk_encode_flash_attn(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const struct gvk_features *features = gvk_plan_features(plan);
    const struct tile tile = choose_tile(features, node);
    if (suits_lanes(features, node))
        encode_lanes(plan, node);
    else if (tile.rows > 0)
        encode_tile(plan, node, tile);
    else
        encode_rows(plan, node);
}
