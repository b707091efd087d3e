// SPDX-License-Identifier: MIT
// Chooses among the shaders for a product: dot products of bytes or of floats for few columns,
// tiles for many, with k in parts where there would be too few groups to fill the device.
#include "ops/mul_mat/mul_mat.h"

#include <string.h>

#include "gpu/base/shape.h"
#include "ops/tile.h"

enum {
    MAX_GROUP = 64,
    VECTOR_COLUMNS = 8, // most that mul_mat_vec.comp computes on a GPU
    MAX_MATRICES = 1024,
    GROUPED_COLUMNS = 4, // of a tile that mul_mat_vec.comp computes for pairs of one matrix
};

// Whether src1 may be rounded to `prec`. Where nothing is said of src1, F32 sums ask for F32 terms.
static bool may_round_src1(const struct ggml_tensor *node, enum ggml_prec prec) {
    const int32_t sums = ggml_get_op_params_i32(node, 0), src1 = ggml_get_op_params_i32(node, 3);
    return src1 == GGML_PREC_UNDEFINED ? sums != GGML_PREC_F32 : src1 >= (int32_t)prec;
}

// Whether sums may be halves.
static bool may_add_halves(const struct ggml_tensor *node) {
    const int32_t sums = ggml_get_op_params_i32(node, 0);
    return sums == GGML_PREC_UNDEFINED || sums >= GGML_PREC_F16;
}

// What an invocation of a tile keeps in registers.
struct tile {
    uint32_t rows, columns;
};

bool gvk_accepts_mul_mat(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_mul_mat(node) && ggml_rows_dense(node->src[0]) && ggml_rows_dense(node);
}

bool gvk_accepts_mul_mat_id(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_mul_mat_id(node) && node->src[0]->ne[2] > 0 && ggml_rows_dense(node->src[0]) &&
           ggml_rows_dense(node);
}

// What mul_mat_vec.comp computes besides a product.
struct extra {
    const struct ggml_tensor *dst;    // the result
    const struct ggml_tensor *second; // product with a matrix like src0 whose glu with it is taken
    const struct ggml_tensor *bias;   // is added
};

// Drivers on the CPU have many registers next to slow loads; GPUs need many groups more. Where
// there is little to compute, a large tile costs more to compile than it saves.
static struct tile choose_tile(const struct gvk_features *features, const struct ggml_tensor *node,
                               bool two) {
    const int64_t n = node->op == GGML_OP_MUL_MAT_ID ? 1 : node->ne[1];
    const double products = (double)gpu_nelements(node) * (double)node->src[0]->ne[0];
    const bool small = features->cpu && products < 16384;
    const uint32_t rows = features->cpu && node->ne[0] >= 8 && !small ? 8 : 2;
    return (struct tile){two ? rows / 2 : rows, n == 1 || small ? 1 : n == 2 ? 2 : 4};
}

// One subgroup: sums over it need no shared memory and no barrier. Without such arithmetic half as
// many invocations go through shared memory.
static uint32_t group_size(const struct gvk_features *features) {
    if (!features->subgroup_arithmetic || features->subgroup_size == 0) return MAX_GROUP / 2;
    return features->subgroup_size < MAX_GROUP ? features->subgroup_size : MAX_GROUP;
}

// What a shader for src0 has to know: plain types, blocks, or blocks with a grid.
enum kind { PLAIN, BLOCKS, GRID };

static enum kind kind_of(const struct ggml_tensor *a) {
    if (gvk_has_grid(a)) return GRID;
    return ggml_blck_size(a->type) > 1 ? BLOCKS : PLAIN;
}

// A shader per kind of src0 and not per type: the type is a specialisation constant, and the driver
// removes what the others would need.
static enum gvk_shader vector_shader(const struct gvk_features *features,
                                     const struct ggml_tensor *node) {
    static const enum gvk_shader shaders[2][3][2] = {
        {{GVK_SHADER_mul_mat_vec, GVK_SHADER_mul_mat_vec_sum},
         {GVK_SHADER_mul_mat_vec_blocks, GVK_SHADER_mul_mat_vec_blocks_sum},
         {GVK_SHADER_mul_mat_vec_blocks_grid, GVK_SHADER_mul_mat_vec_blocks_sum_grid}},
        {{GVK_SHADER_mul_mat_vec_id, GVK_SHADER_mul_mat_vec_id_sum},
         {GVK_SHADER_mul_mat_vec_id_blocks, GVK_SHADER_mul_mat_vec_id_blocks_sum},
         {GVK_SHADER_mul_mat_vec_id_blocks_grid, GVK_SHADER_mul_mat_vec_id_blocks_sum_grid}},
    };
    return shaders[node->op == GGML_OP_MUL_MAT_ID][kind_of(node->src[0])]
                  [features->subgroup_arithmetic];
}

// Adds a launch of mul_mat_vec, with what is fused into it: a bias, or a second product and a
// GLU. The order of the specialisation constants is that of the shader. NULL without memory.
static struct gvk_dispatch *encode_vector(struct gvk_plan *plan, const struct ggml_tensor *node,
                                          const struct extra *extra, struct tile tile,
                                          enum gvk_shader shader) {
    struct gvk_dispatch *d =
        gvk_dispatch_new(plan, shader, node, 3, group_size(gvk_plan_features(plan)));
    if (!d) return NULL;
    gvk_dispatch_spec(d, node->src[0]->type);
    gvk_dispatch_spec(d, node->src[1]->type);
    gvk_dispatch_spec(d, tile.rows);
    gvk_dispatch_spec(d, tile.columns);
    gvk_dispatch_spec(d, gpu_is_wide(node->src[0]) &&
                             (!extra->second || gpu_is_wide(extra->second->src[0])));
    gvk_dispatch_spec(d, gpu_is_wide(node->src[1]));
    gvk_dispatch_spec(d, extra->bias != NULL);
    gvk_dispatch_spec(d, extra->second ? (uint32_t)extra->dst->op_params[0] : 0);
    d->operands[0].tensor = extra->dst;
    if (extra->second) d->operands[3].tensor = extra->second->src[0];
    if (extra->bias) d->operands[3].tensor = extra->bias;
    if (!node->src[2] && !extra->second && !extra->bias) d->operands[3].tensor = extra->dst;
    gvk_dispatch_grids(d, 4, node->src[0]);
    memcpy(d->op_params, extra->dst->op_params, sizeof(d->op_params));
    gvk_dispatch_groups(plan, d,
                        gpu_groups_of((uint64_t)node->ne[0], tile.rows) *
                            gpu_groups_of((uint64_t)node->ne[1], tile.columns) *
                            (uint64_t)node->ne[2] * (uint64_t)node->ne[3]);
    return d;
}

// A product with mul_mat_vec alone, for every type and layout that the device accepts.
static void encode_plain(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const struct extra extra = {.dst = node};
    const struct gvk_features *features = gvk_plan_features(plan);
    encode_vector(plan, node, &extra, choose_tile(features, node, false),
                  vector_shader(features, node));
}

// --- packed products of bytes --------------------------------------------------------------------

// Rounds src1, which is worth it for few columns of types whose digits are fewer still.
static bool suits_dot(const struct gvk_features *features, const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const bool type =
        a->type == GGML_TYPE_Q8_0 || a->type == GGML_TYPE_Q4_0 || a->type == GGML_TYPE_Q4_K;
    return features->int_dot && features->subgroup_arithmetic && type && gpu_is_wide(a) &&
           node->ne[1] <= VECTOR_COLUMNS && node->src[1]->type == GGML_TYPE_F32 &&
           ggml_rows_dense(node->src[1]) && may_round_src1(node, GGML_PREC_Q8);
}

// A product with packed dot products of bytes: one launch turns the columns into bytes in
// scratch memory, the next multiplies. Twice as many launches, but integer products are several
// times as fast where the device accelerates them.
static void encode_dot(struct gvk_plan *plan, const struct ggml_tensor *node) {
    enum { GROUP = 64, GROUP_BYTES = 48 }; // of 32 elements, as quantize_columns.comp writes them
    const struct ggml_tensor *b = node->src[1];
    const uint64_t groups = gpu_nelements(b) / 32;
    const size_t bytes = (size_t)groups * GROUP_BYTES;
    const size_t offset = gvk_plan_scratch(plan, bytes);
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_quantize_columns, node, 1, GROUP);
    if (!d) return;
    gvk_dispatch_scratch(d, 0, offset, bytes, true);
    d->operands[1].tensor = b;
    gvk_dispatch_groups(plan, d, gpu_groups_of(groups, GROUP));

    const uint32_t rows = 2, columns = node->ne[1] > 2 ? 4 : (uint32_t)node->ne[1];
    d = gvk_dispatch_new(plan, GVK_SHADER_mul_mat_dot, node, 1,
                         group_size(gvk_plan_features(plan)));
    if (!d) return;
    gvk_dispatch_scratch(d, 2, offset, bytes, false);
    gvk_dispatch_spec(d, node->src[0]->type);
    gvk_dispatch_spec(d, rows);
    gvk_dispatch_spec(d, columns);
    gvk_dispatch_groups(plan, d,
                        gpu_groups_of((uint64_t)node->ne[0], rows) *
                            gpu_groups_of((uint64_t)node->ne[1], columns) * (uint64_t)node->ne[2] *
                            (uint64_t)node->ne[3]);
}

// --- tiles in shared memory ----------------------------------------------------------------------

// The kernel of which `plain`, `fp16` and `coopmat` are the variants.
struct tile_shaders {
    enum gvk_shader plain, fp16, coopmat;
};

#define TILE_SHADERS(name, grid)                                                                   \
    { GVK_SHADER_##name##grid, GVK_SHADER_##name##_fp16##grid, GVK_SHADER_##name##_coopmat##grid }

// Halves suffice where src0 has no more digits than they; sums of halves only for blocks.
static enum gvk_shader tile_shader(const struct gvk_features *features,
                                   const struct ggml_tensor *node,
                                   const struct tile_shaders *shaders) {
    const enum ggml_type type = node->src[0]->type;
    const bool blocks = ggml_blck_size(type) > 1;
    if (!may_round_src1(node, GGML_PREC_F16) || !(blocks || type == GGML_TYPE_F16))
        return shaders->plain;
    if (features->coopmat && features->subgroup_size == 32) return shaders->coopmat;
    return features->fp16 && blocks && may_add_halves(node) ? shaders->fp16 : shaders->plain;
}

// The tile of a shader: that of cooperative matrices is fixed, others depend on how many tiles
// there are to fill the device.
static struct gvk_tile tile_for(enum gvk_shader shader, const struct ggml_tensor *node,
                                uint64_t columns, uint64_t products) {
    if (shader == GVK_SHADER_mul_mat_tile_coopmat || shader == GVK_SHADER_mul_mat_tile_id_coopmat ||
        shader == GVK_SHADER_mul_mat_tile_coopmat_grid ||
        shader == GVK_SHADER_mul_mat_tile_id_coopmat_grid)
        return gvk_tile_coopmat();
    return gvk_tile_for((uint64_t)node->ne[0], columns, products);
}

// Without its groups.
static struct gvk_dispatch *begin_tile(struct gvk_plan *plan, const struct ggml_tensor *node,
                                       enum gvk_shader shader, const struct gvk_tile *tile) {
    struct gvk_dispatch *d =
        gvk_dispatch_new(plan, shader, node, node->src[2] ? 3 : 2, tile->group);
    if (!d) return NULL;
    gvk_dispatch_spec(d, node->src[0]->type);
    gvk_dispatch_spec(d, node->src[1]->type);
    gvk_dispatch_spec(d, gpu_is_wide(node->src[0]));
    gvk_dispatch_spec(d, gpu_is_wide(node->src[1]));
    gvk_dispatch_spec(d, tile->span);
    return d;
}

// Parts of k for groups of their own where a GPU needs more groups than there are.
static uint32_t parts_of_k(const struct ggml_tensor *node, uint64_t groups) {
    enum { ENOUGH_GROUPS = 256, LEAST = 512 };
    const uint64_t wanted = groups ? ENOUGH_GROUPS / groups : 0,
                   most = (uint64_t)node->src[0]->ne[0] / LEAST;
    const uint64_t parts = wanted < most ? wanted : most;
    return parts < 2 ? 1 : (uint32_t)parts;
}

// Makes the launch leave its parts in scratch memory and adds one that joins them.
static void split(struct gvk_plan *plan, struct gvk_dispatch *d, const struct ggml_tensor *node,
                  uint32_t parts) {
    enum { GROUP = 256, STEP = 32 };
    const uint64_t n = gpu_nelements(node), k = (uint64_t)node->src[0]->ne[0];
    const size_t bytes = (size_t)n * parts * sizeof(float);
    const size_t offset = gvk_plan_scratch(plan, bytes);
    gvk_dispatch_scratch(d, 3, offset, bytes, true);
    d->numbers[0] = parts;
    d->numbers[1] = (uint32_t)(gpu_groups_of(gpu_groups_of(k, parts), STEP) * STEP);
    d = gvk_dispatch_new(plan, GVK_SHADER_mul_mat_join, node, 1, GROUP);
    if (!d) return;
    gvk_dispatch_scratch(d, 1, offset, bytes, false);
    d->numbers[0] = parts;
    gvk_dispatch_groups(plan, d, gpu_groups_of(n, GROUP));
}

// A product by tiles in shared memory. Where there are too few tiles for the device, k is split
// into parts that another launch adds up.
static void encode_tile(struct gvk_plan *plan, const struct ggml_tensor *node) {
    static const struct tile_shaders shaders[2] = {TILE_SHADERS(mul_mat_tile, ),
                                                   TILE_SHADERS(mul_mat_tile, _grid)};
    const enum gvk_shader shader =
        tile_shader(gvk_plan_features(plan), node, &shaders[gvk_has_grid(node->src[0])]);
    const uint64_t rows = (uint64_t)node->ne[0], columns = (uint64_t)node->ne[1];
    const uint64_t products = (uint64_t)node->ne[2] * (uint64_t)node->ne[3];
    const struct gvk_tile tile = tile_for(shader, node, columns, products);
    const uint64_t groups =
        gpu_groups_of(rows, tile.rows) * gpu_groups_of(columns, tile.columns) * products;
    const uint32_t parts = parts_of_k(node, groups);
    struct gvk_dispatch *d = begin_tile(plan, node, shader, &tile);
    if (!d) return;
    d->operands[3].tensor = node;
    d->n_operands = 4;
    gvk_dispatch_grids(d, 4, node->src[0]);
    gvk_dispatch_spec(d, parts > 1);
    gvk_dispatch_groups(plan, d, groups * parts);
    if (parts > 1) split(plan, d, node, parts);
}

// Whether shared memory pays: on GPUs, when columns enough share what was unpacked.
static bool suits_tile(const struct gvk_features *features, const struct ggml_tensor *node) {
    return gvk_has_tiles(features) && node->ne[1] > VECTOR_COLUMNS;
}

// Tiles for many columns, packed dot products for few ones of a fitting type, otherwise vectors.
void gvk_encode_mul_mat(struct gvk_plan *plan, const struct ggml_tensor *node) {
    if (suits_tile(gvk_plan_features(plan), node))
        encode_tile(plan, node);
    else if (suits_dot(gvk_plan_features(plan), node))
        encode_dot(plan, node);
    else
        encode_plain(plan, node);
}

// Whether the node is computed by mul_mat_vec.comp.
static bool is_vector(const struct gvk_plan *plan, const struct ggml_tensor *node) {
    const struct gvk_features *features = gvk_plan_features(plan);
    return gvk_kernel_find(features, node) != NULL && !suits_tile(features, node) &&
           !suits_dot(features, node);
}

// False where the product doesn't go by vectors, which alone can add a bias: then nothing is
// encoded.
bool gvk_encode_mul_mat_bias(struct gvk_plan *plan, const struct ggml_tensor *product,
                             const struct ggml_tensor *bias, const struct ggml_tensor *sum) {
    const struct extra extra = {.dst = sum, .bias = bias};
    const struct gvk_features *features = gvk_plan_features(plan);
    return is_vector(plan, product) &&
           encode_vector(plan, product, &extra, choose_tile(features, product, false),
                         vector_shader(features, product)) != NULL;
}

static bool is_like(const struct ggml_tensor *a, const struct ggml_tensor *b) {
    return a->type == b->type && ggml_are_same_shape(a, b);
}

// Both products of a gated unit and its function in one launch: src1 is read once, and neither
// product goes to memory. False where they are not alike or don't go by vectors.
bool gvk_encode_mul_mat_glu(struct gvk_plan *plan, const struct ggml_tensor *x,
                            const struct ggml_tensor *gate, const struct ggml_tensor *glu) {
    const struct extra extra = {.dst = glu, .second = gate};
    static const enum gvk_shader shaders[] = {GVK_SHADER_mul_mat_vec_glu_sum,
                                              GVK_SHADER_mul_mat_vec_glu_blocks_sum,
                                              GVK_SHADER_mul_mat_vec_glu_blocks_sum_grid};
    return gvk_plan_features(plan)->subgroup_arithmetic && is_vector(plan, x) &&
           is_vector(plan, gate) && is_like(x->src[0], gate->src[0]) &&
           ggml_are_same_shape(x, glu) &&
           encode_vector(plan, x, &extra, choose_tile(gvk_plan_features(plan), x, true),
                         shaders[kind_of(x->src[0])]) != NULL;
}

// --- mul_mat_id ----------------------------------------------------------------------------------

// The table that group_pairs.comp writes: a bound of its tiles, and where in scratch memory it is.
struct pairs {
    uint64_t n_tiles;
    size_t offset, bytes;
};

static uint64_t most_tiles(uint64_t n_pairs, uint64_t n_matrices, uint32_t columns) {
    return n_pairs / columns + n_matrices + 1;
}

// Whether an invocation of group_pairs.comp may take as many iterations as it does where all pairs
// have the same matrix: it writes all tiles then, and its share of all else.
static bool can_sort_pairs(const struct gvk_features *features, uint64_t n_pairs,
                           uint64_t n_matrices) {
    const uint64_t tiles = most_tiles(n_pairs, n_matrices, GROUPED_COLUMNS);
    const uint64_t shared = 2 * n_pairs + 5 * tiles;
    return tiles + shared / MAX_GROUP + MAX_GROUP <= gvk_most_iterations(features);
}

// Whether enough columns share a matrix to be sorted by it; more pairs or matrices than
// group_pairs.comp counts are not.
static bool suits_grouping(const struct gvk_features *features, const struct ggml_tensor *node) {
    const uint64_t n_pairs = gpu_nelements(node->src[2]);
    return features->subgroup_arithmetic && n_pairs >= VECTOR_COLUMNS &&
           node->src[0]->ne[2] <= MAX_MATRICES &&
           can_sort_pairs(features, n_pairs, (uint64_t)node->src[0]->ne[2]);
}

// Whether tiles in shared memory pay: as many columns per matrix, taking an even spread.
static bool suits_tile_id(const struct gvk_features *features, const struct ggml_tensor *node) {
    const uint64_t n_matrices = (uint64_t)node->src[0]->ne[2];
    return gvk_has_tiles(features) && n_matrices <= MAX_MATRICES &&
           gpu_nelements(node->src[2]) >= VECTOR_COLUMNS * n_matrices;
}

// Sorts the pairs by matrix. False when memory ran out.
static bool encode_pairs(struct gvk_plan *plan, const struct ggml_tensor *node, uint32_t columns,
                         struct pairs *out_pairs) {
    const struct ggml_tensor *ids = node->src[2];
    const uint64_t n_pairs = gpu_nelements(ids), n_matrices = (uint64_t)node->src[0]->ne[2];
    const struct gvk_features *features = gvk_plan_features(plan);
    const bool many = !features->cpu && features->max_group_size >= 256;
    out_pairs->n_tiles = most_tiles(n_pairs, n_matrices, columns);
    out_pairs->bytes = (size_t)(3 * out_pairs->n_tiles + n_pairs) * sizeof(uint32_t);
    out_pairs->offset = gvk_plan_scratch(plan, out_pairs->bytes);
    struct gvk_dispatch *d =
        gvk_dispatch_new(plan, GVK_SHADER_group_pairs, node, 1, many ? 256 : MAX_GROUP);
    if (!d) return false;
    gvk_dispatch_scratch(d, 0, out_pairs->offset, out_pairs->bytes, true);
    d->operands[1].tensor = ids;
    d->numbers[0] = (uint32_t)out_pairs->n_tiles;
    d->numbers[1] = (uint32_t)n_matrices;
    gvk_dispatch_spec(d, columns);
    return true;
}

// Makes a dispatch compute the tiles of the table.
static void use_pairs(const struct gvk_plan *plan, struct gvk_dispatch *d,
                      const struct pairs *pairs, const struct ggml_tensor *node, uint32_t rows) {
    gvk_dispatch_scratch(d, 4, pairs->offset, pairs->bytes, false);
    gvk_dispatch_grids(d, 5, node->src[0]);
    d->numbers[0] = (uint32_t)pairs->n_tiles;
    gvk_dispatch_groups(plan, d, gpu_groups_of((uint64_t)node->ne[0], rows) * pairs->n_tiles);
}

// mul_mat_id for some tokens: pairs are sorted by matrix first, so that each matrix is read once
// per tile of columns instead of once per token.
static void encode_grouped(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const struct gvk_features *features = gvk_plan_features(plan);
    static const enum gvk_shader shaders[] = {GVK_SHADER_mul_mat_vec_grouped_sum,
                                              GVK_SHADER_mul_mat_vec_grouped_blocks_sum,
                                              GVK_SHADER_mul_mat_vec_grouped_blocks_sum_grid};
    const struct tile tile = {features->cpu && node->ne[0] >= 8 ? 8 : 2, GROUPED_COLUMNS};
    const struct extra extra = {.dst = node};
    struct pairs pairs;
    if (!encode_pairs(plan, node, tile.columns, &pairs)) return;
    struct gvk_dispatch *d =
        encode_vector(plan, node, &extra, tile, shaders[kind_of(node->src[0])]);
    if (d) use_pairs(plan, d, &pairs, node, tile.rows);
}

// mul_mat_id for many tokens: the same pairs, multiplied by tiles. The tile is chosen for the
// mean number of tokens per matrix.
static void encode_tile_id(struct gvk_plan *plan, const struct ggml_tensor *node) {
    static const struct tile_shaders shaders[2] = {TILE_SHADERS(mul_mat_tile_id, ),
                                                   TILE_SHADERS(mul_mat_tile_id, _grid)};
    const enum gvk_shader shader =
        tile_shader(gvk_plan_features(plan), node, &shaders[gvk_has_grid(node->src[0])]);
    const uint64_t n_matrices = (uint64_t)node->src[0]->ne[2];
    const struct gvk_tile tile =
        tile_for(shader, node, gpu_nelements(node->src[2]) / n_matrices, n_matrices);
    struct pairs pairs;
    if (!encode_pairs(plan, node, tile.columns, &pairs)) return;
    struct gvk_dispatch *d = begin_tile(plan, node, shader, &tile);
    if (d) use_pairs(plan, d, &pairs, node, tile.rows);
}

// Kernels for routed experts: tiles of pairs that share an expert for prompts, grouped pairs for
// batches of medium size, one product per pair for single tokens.
void gvk_encode_mul_mat_id(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const struct gvk_features *features = gvk_plan_features(plan);
    if (suits_tile_id(features, node))
        encode_tile_id(plan, node);
    else if (suits_grouping(features, node))
        encode_grouped(plan, node);
    else
        encode_plain(plan, node);
}

// --- outer products ------------------------------------------------------------------------------

// As on the CPU: src0 is repeated over the batches of src1.
bool gvk_accepts_out_prod(const struct gvk_features *features, const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *b = node->src[1];
    (void)features;
    return ggml_rows_dense(node) && ggml_rows_dense(a) && a->ne[0] % ggml_blck_size(a->type) == 0 &&
           a->ne[1] == b->ne[1] && a->ne[2] > 0 && a->ne[3] > 0 && b->ne[2] % a->ne[2] == 0 &&
           b->ne[3] % a->ne[3] == 0 && node->ne[0] == a->ne[0] && node->ne[1] == b->ne[0] &&
           node->ne[2] == b->ne[2] && node->ne[3] == b->ne[3];
}

// An invocation computes ROWS x COLUMNS elements of the result.
void gvk_encode_out_prod(struct gvk_plan *plan, const struct ggml_tensor *node) {
    enum { GROUP = 64, ROWS = 4, COLUMNS = 8 };
    const enum gvk_shader shader =
        gvk_has_grid(node->src[0]) ? GVK_SHADER_out_prod_grid : GVK_SHADER_out_prod;
    struct gvk_dispatch *d = gvk_dispatch_new(plan, shader, node, 2, GROUP);
    if (!d) return;
    gvk_dispatch_grids(d, 3, node->src[0]);
    gvk_dispatch_spec(d, node->src[0]->type);
    gvk_dispatch_spec(d, node->src[1]->type);
    const uint64_t tiles =
        gpu_groups_of((uint64_t)node->ne[0], ROWS) * gpu_groups_of((uint64_t)node->ne[1], COLUMNS);
    gvk_dispatch_groups(
        plan, d, gpu_groups_of(tiles * (uint64_t)node->ne[2] * (uint64_t)node->ne[3], GROUP));
}
