// SPDX-License-Identifier: MIT
// ggml-shape.h: what plugins ask of a node before they compute it: how tensors lie in memory, and
// whether extents and parameters agree with what the builder in ggml-op.h promises. For supports_op
// entries and kernels, beside the layout questions of ggml.h.
//
// Rules for all functions. They only read the tensors that they are given, never their data, and
// may be called from any thread. Tensors may be without buffers, and are not NULL unless a contract
// says so. Extents are not negative. What ggml_fits_*() returns true for can be computed without
// reading or writing outside of a tensor and without dividing by an extent of 0; types and layouts
// that a contract does not name, and the values of index tensors, are the caller's to check.
//
// Why ask at all, where builders have checked? A node need not come from a builder of this host: a
// program may set src[] and op_params by hand, and a plugin may be given nodes that another process
// built. A plugin that trusts them reads out of bounds (docs/plugin-contract.md).
//
// Typical use, in the supports_op entry of a device:
//
//     static bool supports_op(ggml_backend_dev_t dev, const struct ggml_tensor *op) {
//         if (!ggml_node_is_known(op)) return false; // means something these headers don't have
//         switch (op->op) {
//         case GGML_OP_MUL:
//             return ggml_has_type(op, GGML_TYPE_F32) && ggml_rows_dense(op) &&
//                    ggml_has_type(op->src[0], GGML_TYPE_F32) && ggml_rows_dense(op->src[0]) &&
//                    ggml_has_type(op->src[1], GGML_TYPE_F32) && ggml_rows_dense(op->src[1]) &&
//                    ggml_fits_binary(op);
//         ...
//
// Below, a, b, c are src[0], src[1], src[2] of the node, "dense rows" is ggml_rows_dense() and
// "packed" ggml_is_packed().
#ifndef GGML_SHAPE_H
#define GGML_SHAPE_H

#include "ggml-impl.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- layout --------------------------------------------------------------------------------------

// Whether t is there and has this type. t may be NULL.
static inline bool ggml_has_type(const struct ggml_tensor *t, enum ggml_type type) {
    return t && t->type == type;
}

// Whether t has these four extents.
static inline bool ggml_has_shape(const struct ggml_tensor *t, int64_t ne0, int64_t ne1,
                                  int64_t ne2, int64_t ne3) {
    return t->ne[0] == ne0 && t->ne[1] == ne1 && t->ne[2] == ne2 && t->ne[3] == ne3;
}

// Whether a and b have equal extents from dimension `first` on.
static inline bool ggml_same_shape_from(const struct ggml_tensor *a, const struct ggml_tensor *b,
                                        int first) {
    for (int d = first; d < GGML_MAX_DIMS; ++d) {
        if (a->ne[d] != b->ne[d]) return false;
    }
    return true;
}

// Whether b, tiled, is as large as a: each extent of a is a multiple of b's, and 0 where b's is, so
// that an index of a modulo b's extent is one of b. Stricter than ggml_can_repeat() for empty a.
static inline bool ggml_repeats(const struct ggml_tensor *b, const struct ggml_tensor *a) {
    for (int d = 0; d < GGML_MAX_DIMS; ++d) {
        if (b->ne[d] == 0 ? a->ne[d] != 0 : a->ne[d] % b->ne[d] != 0) return false;
    }
    return true;
}

// Whether, from dimension `first` on, b has elements and a whole number of a's share each: the
// batches of a product, by i / (a.ne / b.ne), or of a mask, by i mod b.ne.
static inline bool ggml_is_shared_from(const struct ggml_tensor *b, const struct ggml_tensor *a,
                                       int first) {
    for (int d = first; d < GGML_MAX_DIMS; ++d) {
        if (b->ne[d] <= 0 || a->ne[d] % b->ne[d] != 0) return false;
    }
    return true;
}

// Whether rows are whole blocks of a known type. False for removed and unknown types.
static inline bool ggml_has_whole_blocks(const struct ggml_tensor *t) {
    const int64_t block = ggml_blck_size(t->type);
    return block > 0 && t->ne[0] % block == 0;
}

// Whether the elements (blocks) of each row lie side by side: nb[0] is the size of one. Higher
// strides are free.
static inline bool ggml_rows_dense(const struct ggml_tensor *t) {
    return t->nb[0] == ggml_type_size(t->type);
}

// Whether elements can be taken one by one (plain types, any strides), or else blocks, whole and
// from dense rows: what copies of any type need.
static inline bool ggml_rows_separable(const struct ggml_tensor *t) {
    return ggml_has_whole_blocks(t) && (ggml_blck_size(t->type) == 1 || ggml_rows_dense(t));
}

// Whether whole blocks lie side by side in logical order, without gaps: kernels may go through the
// data from begin to end.
static inline bool ggml_is_packed(const struct ggml_tensor *t) {
    return ggml_has_whole_blocks(t) && ggml_is_contiguous(t);
}

// --- what a node means ---------------------------------------------------------------------------

// From the lists (op_list.inl and others) as these headers have them: a plugin's answers are those
// of the contract that it was built for, also under a host that knows more.

// clang-format off
#define GGML_WORD_BITS(word, n) (((1u << (n)) - 1u) << (word))

// The words of op_params that an operation gives a meaning to, as bits: bit i is word i. 0: none,
// or the operation is not in these headers.
static inline uint32_t ggml_words_of_op(int op) {
    switch (op) {
#define GGML_OP_PARAM(text, word, n, since) | GGML_WORD_BITS(word, n)
#define GGML_OP_ROW(number, name, symbol, min, max, type, shape, cost, flops, flags, builders,     \
                    since, more)                                                                   \
    case number: return 0u more;
#include "op_list.inl"
    default: return 0;
    }
}

// How many of its slots for sources have a meaning; -1: these headers don't have the operation.
// Those up to its least number may not be empty.
static inline int ggml_sources_of_op(int op) {
    switch (op) {
#define GGML_OP_ROW(number, name, symbol, min, max, ...)                                           \
    case number: return max;
#include "op_list.inl"
    default: return -1;
    }
}

// The words of a unary or gated operation, its number among them; 0: these headers don't have it.
static inline uint32_t ggml_words_of_unary(int32_t op) {
    switch (op) {
#define GGML_OP_PARAM(text, word, n, since) | GGML_WORD_BITS(word, n)
#define GGML_UNARY_ROW(number, name, since, params)                                                \
    case number: return 1u params;
#include "unary_list.inl"
    default: return 0;
    }
}

// The same of a gated operation.
static inline uint32_t ggml_words_of_glu(int32_t op) {
    switch (op) {
#define GGML_OP_PARAM(text, word, n, since) | GGML_WORD_BITS(word, n)
#define GGML_GLU_ROW(number, name, since, params)                                                  \
    case number: return 1u params;
#include "glu_list.inl"
    default: return 0;
    }
}

#undef GGML_WORD_BITS

// Whether n bits of a word, from bit `first` on, are a number below 64 that is in the set.
static inline bool ggml_is_value(int32_t word, int first, int n, uint64_t set) {
    const uint32_t value = (uint32_t)word >> first & (0xffffffffu >> (32 - n));
    return value < 64 && (set >> value & 1) != 0;
}

// Whether every parameter that is a number from a list, or flags, is one that these headers give a
// meaning to for the node's operation. True for operations that they don't have.
static inline bool ggml_values_are_known(const struct ggml_tensor *node) {
    uint64_t asked = 0, met = 0; // bit 2 w: from bit 0 of word w on; bit 2 w + 1: from a higher one
    switch ((int)node->op) {
#define GGML_OP_VALUES(word, first, n, set, since)                                                 \
    asked |= 1ull << (2 * (word) + ((first) != 0));                                                \
    met |= (uint64_t)ggml_is_value(node->op_params[word], first, n, set)                           \
           << (2 * (word) + ((first) != 0));
#define GGML_OP_ROW(number, name, symbol, min, max, type, shape, cost, flops, flags, builders,     \
                    since, more)                                                                   \
    case number: more break;
#include "op_list.inl"
    default: break;
    }
    return asked == met;
}
// clang-format on

// Whether these headers know the type and the flags that must be understood
// (GGML_TENSOR_FLAGS_STRICT), and nothing extends the tensor through its padding. Says nothing
// about the operation.
static inline bool ggml_tensor_is_known(const struct ggml_tensor *t) {
#define GGML_TENSOR_FLAG_ROW(value, name, since) | (uint32_t)(value)
    const uint32_t known = 0u
#include "flag_list.inl"
        ;
    uint64_t extension;
    memcpy(&extension, t->padding, sizeof(extension));
    const uint32_t strange = (uint32_t)t->flags & GGML_TENSOR_FLAGS_STRICT & ~known;
    return (extension | strange | ((unsigned)t->type >= GGML_TYPE_COUNT)) == 0;
}

// Whether every word of op_params that is not 0 has a meaning for the operation and sub-operation.
// A new parameter of a later contract is 0 where it changes nothing, so a plugin without it need
// not care.
static inline bool ggml_words_are_known(const struct ggml_tensor *node) {
    enum { N_WORDS = GGML_MAX_OP_PARAMS / 4 };
    uint32_t known = ggml_words_of_op((int)node->op), used = 0;
    if (known == 0) {                         // most operations: without parameters
        uint64_t pairs[N_WORDS / 2], any = 0; // two words at a time
        memcpy(pairs, node->op_params, sizeof(pairs));
        for (int i = 0; i < N_WORDS / 2; ++i) {
            any |= pairs[i];
        }
        return any == 0;
    }
    if (node->op == GGML_OP_UNARY || node->op == GGML_OP_GLU) {
        const int32_t sub_op = node->op_params[0];
        const uint32_t words =
            node->op == GGML_OP_UNARY ? ggml_words_of_unary(sub_op) : ggml_words_of_glu(sub_op);
        if (words == 0) return false;
        known |= words;
    }
    for (int i = 0; i < N_WORDS; ++i) {
        used |= (uint32_t)(node->op_params[i] != 0) << i;
    }
    return (used & ~known) == 0;
}

// Whether these headers give a meaning to all that the node says: its operation and sub-operation,
// every word of op_params that is not 0, the values of those that are numbers from a list or flags,
// every source that is there, and the types and flags of the node and of its sources. Where not, a
// later contract or a vendor does, and what computes the node by these headers computes something
// else: the first thing to ask in supports_op.
static inline bool ggml_node_is_known(const struct ggml_tensor *node) {
    const int n_src = ggml_sources_of_op((int)node->op);
    if (n_src < 0 || !ggml_words_are_known(node) || !ggml_values_are_known(node)) return false;
    if (!ggml_tensor_is_known(node)) return false;
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
        const struct ggml_tensor *src = node->src[i];
        if (src && (i >= n_src || !ggml_tensor_is_known(src))) return false;
    }
    return true;
}

// --- rows ----------------------------------------------------------------------------------------

// The indices of a row in dimensions 1 to 3.
struct ggml_row {
    int64_t i1, i2, i3;
};

// Row 0 <= row < ggml_nrows(t), counted with dimension 1 fastest: for dividing the rows of a result
// among threads.
static inline struct ggml_row ggml_row_at(const struct ggml_tensor *t, int64_t row) {
    const int64_t above = row / t->ne[1]; // rows of whole matrices before it
    const struct ggml_row at = {row % t->ne[1], above % t->ne[2], above / t->ne[2]};
    return at;
}

// Its first byte; t has data in memory that the caller can address. Not checked: at is inside t.
static inline char *ggml_row_data(const struct ggml_tensor *t, struct ggml_row at) {
    return (char *)t->data + (size_t)at.i1 * t->nb[1] + (size_t)at.i2 * t->nb[2] +
           (size_t)at.i3 * t->nb[3];
}

// The same in a tensor that is repeated along the dimensions above 0: ggml_repeats().
static inline char *ggml_row_data_repeated(const struct ggml_tensor *t, struct ggml_row at) {
    const struct ggml_row own = {at.i1 % t->ne[1], at.i2 % t->ne[2], at.i3 % t->ne[3]};
    return ggml_row_data(t, own);
}

// --- nodes: element-wise, rows -------------------------------------------------------------------

// add, sub, mul, div: a like the node, b repeats in all dimensions.
static inline bool ggml_fits_binary(const struct ggml_tensor *node) {
    return ggml_are_same_shape(node, node->src[0]) && ggml_repeats(node->src[1], node->src[0]);
}

// add_id:
//   a     like the node, [n, U, T]
//   b     [n, E], at least one batch: b's higher dimensions are not walked
//   ids   [U, T]; values below E are for the kernel to check
static inline bool ggml_fits_add_id(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *b = node->src[1];
    return ggml_are_same_shape(node, a) && b->ne[0] == a->ne[0] && b->ne[2] > 0 && b->ne[3] > 0 &&
           ggml_has_shape(node->src[2], a->ne[1], a->ne[2], 1, 1);
}

// get_rows:
//   a     [n, rows, B1, B2], rows of whole blocks
//   ids   [R, B1, B2]; values below a.ne1 are for the kernel to check
//   node  [n, R, B1, B2]
static inline bool ggml_fits_get_rows(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *ids = node->src[1];
    return ggml_has_whole_blocks(a) && ids->ne[3] == 1 &&
           ggml_has_shape(node, a->ne[0], ids->ne[0], ids->ne[1], ids->ne[2]) &&
           a->ne[2] == ids->ne[1] && a->ne[3] == ids->ne[2];
}

// get_rows_back:
//   a     [n, >= R], rows of whole blocks
//   ids   [R]; values below node.ne1 are for the kernel to check
//   node  [n, rows]
static inline bool ggml_fits_get_rows_back(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *ids = node->src[1];
    return ggml_has_whole_blocks(a) && a->ne[0] == node->ne[0] && a->ne[1] >= ids->ne[0] &&
           ggml_nrows(a) == a->ne[1] && ggml_nrows(node) == node->ne[1] && ggml_nrows(ids) == 1;
}

// set_rows, whose sources are the rows b, ids and the tensor written to, of which the node is a
// view:
//   b     [n, R, B1, B2]
//   ids   [R, b1, b2], b1 and b2 dividing B1 and B2; values below node.ne1 are for the kernel to
//         check
//   node  [n, rows, B1, B2], rows of whole blocks
static inline bool ggml_fits_set_rows(const struct ggml_tensor *node) {
    const struct ggml_tensor *b = node->src[0];
    const struct ggml_tensor *ids = node->src[1];
    return ggml_has_whole_blocks(node) && node->ne[0] == b->ne[0] &&
           ggml_same_shape_from(node, b, 2) && ids->ne[0] == b->ne[1] && ids->ne[1] > 0 &&
           ids->ne[2] > 0 && b->ne[2] % ids->ne[1] == 0 && b->ne[3] % ids->ne[2] == 0 &&
           ids->ne[3] == 1;
}

// concat: the extents add up along dimension op_params[0] and are equal in the others. Of one type,
// and ggml_rows_separable().
static inline bool ggml_fits_concat(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *b = node->src[1];
    const int32_t dim = node->op_params[0];
    if (dim < 0 || dim >= GGML_MAX_DIMS || a->type != node->type || b->type != node->type)
        return false;
    for (int d = 0; d < GGML_MAX_DIMS; ++d) {
        const int64_t expected = d == dim ? a->ne[d] + b->ne[d] : a->ne[d];
        if (node->ne[d] != expected || (d != dim && b->ne[d] != a->ne[d])) return false;
    }
    return ggml_rows_separable(node) && ggml_rows_separable(a) && ggml_rows_separable(b);
}

// diag: a has one row per matrix, the node [n, n, ..]. Of one type.
static inline bool ggml_fits_diag(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    return a->type == node->type && a->ne[1] == 1 &&
           ggml_has_shape(node, a->ne[0], a->ne[0], a->ne[2], a->ne[3]);
}

// tri: a like the node, and op_params[0] is an enum ggml_tri_type.
static inline bool ggml_fits_tri(const struct ggml_tensor *node) {
    return node->op_params[0] >= GGML_TRI_TYPE_UPPER_DIAG &&
           node->op_params[0] <= GGML_TRI_TYPE_LOWER && ggml_are_same_shape(node, node->src[0]);
}

// argmax: a is a matrix, the node [a.ne1]; indices fit the I32 of the result.
static inline bool ggml_fits_argmax(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    return ggml_has_shape(node, a->ne[1], 1, 1, 1) && a->ne[2] == 1 && a->ne[3] == 1 &&
           a->ne[0] <= INT32_MAX;
}

// soft_max, whose mask b and sinks c may be missing:
//   a     like the node, [n, r, H, B]
//   mask  [n, >= r, h, b], h and b dividing H and B, dense rows
//   sinks [>= H], packed
static inline bool ggml_fits_soft_max(const struct ggml_tensor *node) {
    const struct ggml_tensor *mask = node->src[1];
    const struct ggml_tensor *sinks = node->src[2];
    if (!ggml_are_same_shape(node, node->src[0])) return false;
    // one per head
    if (sinks && !(ggml_is_packed(sinks) && sinks->ne[0] >= node->ne[2])) return false;
    return !mask || (ggml_rows_dense(mask) && mask->ne[0] == node->ne[0] &&
                     mask->ne[1] >= node->ne[1] && ggml_is_shared_from(mask, node, 2));
}

// Words of op_params of rope and rope_back; 0 and 3 are free.
enum ggml_rope_slot {
    GGML_ROPE_SLOT_N_DIMS = 1,      // channels that are rotated
    GGML_ROPE_SLOT_MODE = 2,        // GGML_ROPE_TYPE_*
    GGML_ROPE_SLOT_N_CTX_ORIG = 4,  // for YaRN's ramp
    GGML_ROPE_SLOT_FREQ_BASE = 5,   // f32, as the next five
    GGML_ROPE_SLOT_FREQ_SCALE = 6,  // of the angle
    GGML_ROPE_SLOT_EXT_FACTOR = 7,  // 0: no YaRN
    GGML_ROPE_SLOT_ATTN_FACTOR = 8, // magnitude
    GGML_ROPE_SLOT_BETA_FAST = 9,   // begin of the ramp
    GGML_ROPE_SLOT_BETA_SLOW = 10,  // its end
    GGML_ROPE_SLOT_SECTIONS = 11,   // GGML_MROPE_SECTIONS of them
    GGML_ROPE_SLOT_N_OFFS = 15,     // first channel that is rotated
};

// Part of ggml_fits_rope(): a mode of this contract, n_dims even, and the first element of each
// pair and its partner within the row.
static inline bool ggml_fits_rope_pairs(const struct ggml_tensor *node) {
    const int32_t n_dims = node->op_params[GGML_ROPE_SLOT_N_DIMS];
    const int32_t n_offs = node->op_params[GGML_ROPE_SLOT_N_OFFS];
    if (n_dims < 0 || n_dims % 2 != 0 || n_offs < 0) return false;
    switch (node->op_params[GGML_ROPE_SLOT_MODE]) {
    case GGML_ROPE_TYPE_NORMAL:
    case GGML_ROPE_TYPE_NEOX:
    case GGML_ROPE_TYPE_MROPE:
    case GGML_ROPE_TYPE_IMROPE: return (int64_t)n_offs + n_dims <= node->ne[0];
    // the whole row
    case GGML_ROPE_TYPE_VISION: return n_offs == 0 && (int64_t)n_dims * 2 == node->ne[0];
    default: return false;
    }
}

// Part of ggml_fits_rope(): sections are not negative, and there are some but no more than
// channels.
static inline bool ggml_fits_rope_sections(const struct ggml_tensor *node) {
    int64_t sum = 0;
    for (int s = 0; s < GGML_MROPE_SECTIONS; ++s) {
        const int32_t size = node->op_params[GGML_ROPE_SLOT_SECTIONS + s];
        if (size < 0) return false;
        sum += size;
    }
    return sum > 0 && sum <= node->ne[0];
}

// rope, rope_back:
//   a          like the node, [ne0, heads, tokens, ..]
//   positions  at least one per token, or four in modes with sections; packed
//   factors    missing, or at least one per pair; packed
// Mode, pairs and sections by the two functions above.
static inline bool ggml_fits_rope(const struct ggml_tensor *node) {
    const struct ggml_tensor *positions = node->src[1];
    const struct ggml_tensor *factors = node->src[2];
    const int32_t mode = node->op_params[GGML_ROPE_SLOT_MODE];
    const bool multi = (mode & GGML_ROPE_TYPE_MROPE) != 0;
    if (!ggml_are_same_shape(node, node->src[0]) || !ggml_fits_rope_pairs(node)) return false;
    if (multi && !ggml_fits_rope_sections(node)) return false;
    const int64_t n_dims = node->op_params[GGML_ROPE_SLOT_N_DIMS];
    const int64_t n_pairs = mode == GGML_ROPE_TYPE_VISION ? n_dims : n_dims / 2; // and so factors
    return ggml_is_packed(positions) &&
           ggml_nelements(positions) >= node->ne[2] * (multi ? GGML_MROPE_SECTIONS : 1) &&
           (!factors || (ggml_is_packed(factors) && factors->ne[0] >= n_pairs));
}

// --- nodes: products -----------------------------------------------------------------------------

// mul_mat:
//   a     [k, m, B1, B2], rows of whole blocks
//   b     [k, n, C1, C2], multiples of B1 and B2, which are not 0
//   node  [m, n, C1, C2]
static inline bool ggml_fits_mul_mat(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *b = node->src[1];
    return ggml_has_whole_blocks(a) && a->ne[0] == b->ne[0] && ggml_is_shared_from(a, b, 2) &&
           ggml_has_shape(node, a->ne[1], b->ne[1], b->ne[2], b->ne[3]);
}

// mul_mat_id:
//   a     [k, m, E], rows of whole blocks
//   b     [k, r, T], r above 0
//   ids   [U, T], U a multiple of r; values below E are for the kernel to check
//   node  [m, U, T]
static inline bool ggml_fits_mul_mat_id(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *b = node->src[1];
    const struct ggml_tensor *ids = node->src[2];
    return ggml_has_whole_blocks(a) && a->ne[0] == b->ne[0] && a->ne[3] == 1 && b->ne[3] == 1 &&
           b->ne[1] > 0 && ggml_has_shape(ids, ids->ne[0], b->ne[2], 1, 1) &&
           ids->ne[0] % b->ne[1] == 0 && ggml_has_shape(node, a->ne[1], ids->ne[0], ids->ne[1], 1);
}

// solve_tri, all packed:
//   a     [n, n, B1, B2]
//   b     [k, n, B1, B2], like the node
static inline bool ggml_fits_solve_tri(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *b = node->src[1];
    return ggml_has_shape(a, b->ne[1], b->ne[1], b->ne[2], b->ne[3]) &&
           ggml_are_same_shape(node, b) && ggml_is_packed(a) && ggml_is_packed(b) &&
           ggml_is_packed(node);
}

// --- nodes: images -------------------------------------------------------------------------------

// pool_1d, pool_2d and, with out and in exchanged, pool_2d_back: whether each window of `dims`
// dimensions begins inside the padded image. params is op_params:
//   0           enum ggml_op_pool
//   1 ..        windows k, above 0, one per dimension
//   then        strides s, above 0
//   then        paddings p, rounded down from what may have been fractions, hence p + 1 here
// Extents of dimensions above are equal.
static inline bool ggml_fits_pool(const struct ggml_tensor *out, const struct ggml_tensor *in,
                                  const int32_t *params, int dims) {
    if (params[0] != GGML_OP_POOL_MAX && params[0] != GGML_OP_POOL_AVG) return false;
    for (int d = 0; d < dims; ++d) {
        const int64_t k = params[1 + d], s = params[1 + dims + d], p = params[1 + 2 * dims + d];
        if (k <= 0 || s <= 0 || p < 0) return false;
        if (out->ne[d] - 1 > (in->ne[d] + 2 * (p + 1) - k) / s) return false; // begins too late
    }
    return ggml_same_shape_from(out, in, dims);
}

// upscale: op_params[0] is a known mode with known flags. Of one type, from at least one element.
static inline bool ggml_fits_upscale(const struct ggml_tensor *node) {
    const uint32_t flags = GGML_SCALE_FLAG_ALIGN_CORNERS | GGML_SCALE_FLAG_ANTIALIAS;
    const uint32_t bits = (uint32_t)node->op_params[0];
    const uint32_t mode = bits & ~flags;
    if ((bits & GGML_SCALE_FLAG_ANTIALIAS) && mode != GGML_SCALE_MODE_BILINEAR) return false;
    return mode < GGML_SCALE_MODE_COUNT && node->type == node->src[0]->type &&
           ggml_nelements(node->src[0]) > 0;
}

// pad: op_params holds left and right of each dimension, then whether it is circular; extents add
// up. Of one type; what a circular form repeats is there once. A negative padding cuts off.
static inline bool ggml_fits_pad(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const bool circular = node->op_params[8] != 0; // filled from the other end
    for (int d = 0; d < GGML_MAX_DIMS; ++d) {
        const int64_t left = node->op_params[2 * d];
        const int64_t right = node->op_params[2 * d + 1];
        if (node->ne[d] != a->ne[d] + left + right) return false;
        if (circular && (left > a->ne[d] || right > a->ne[d])) return false;
    }
    return node->type == a->type;
}

// pad_reflect_1d: left and right in op_params[0..1] are below ne0, and extents add up.
static inline bool ggml_fits_pad_reflect_1d(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const int64_t left = node->op_params[0];
    const int64_t right = node->op_params[1];
    return left >= 0 && right >= 0 && left < a->ne[0] && right < a->ne[0] &&
           node->ne[0] == a->ne[0] + left + right && ggml_same_shape_from(node, a, 1);
}

// roll: a like the node, shifts in op_params[0..3] below the extents either way, so that one
// addition brings an index back into range. Of one type.
static inline bool ggml_fits_roll(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    for (int d = 0; d < GGML_MAX_DIMS; ++d) {
        const int64_t shift = node->op_params[d];
        if (shift <= -a->ne[d] || shift >= a->ne[d]) return false;
    }
    return node->type == a->type && ggml_are_same_shape(node, a);
}

// Whether `parts` are the windows of w x w of `whole`. Of one type.
static inline bool ggml_fits_windows(const struct ggml_tensor *parts,
                                     const struct ggml_tensor *whole, int64_t w) {
    if (w <= 0 || whole->ne[3] != 1 || parts->type != whole->type) return false;
    const int64_t n_x = (whole->ne[1] + w - 1) / w; // windows along dimension 1
    const int64_t n_y = (whole->ne[2] + w - 1) / w; // and along dimension 2
    return ggml_has_shape(parts, whole->ne[0], w, w, n_x * n_y);
}

// win_part:
//   a     [C, W, H]
//   node  [C, w, w, windows], all that cover a
// op_params: windows along dimension 1, along dimension 2 (which follows), w.
static inline bool ggml_fits_win_part(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const int64_t w = node->op_params[2];
    return ggml_fits_windows(node, a, w) && node->op_params[0] == (a->ne[1] + w - 1) / w;
}

// win_unpart:
//   a     [C, w, w, >= windows], w = op_params[0]; there may be more than are needed
//   node  [C, W, H]
static inline bool ggml_fits_win_unpart(const struct ggml_tensor *node) {
    struct ggml_tensor used = *node->src[0];
    const int64_t w = node->op_params[0];
    const int64_t needed = w > 0 ? (node->ne[1] + w - 1) / w * ((node->ne[2] + w - 1) / w) : 0;
    if (used.ne[3] > needed) used.ne[3] = needed; // the others are not read
    return ggml_fits_windows(&used, node, w);
}

// get_rel_pos:
//   a     [C, 2 n - 1]
//   node  [C, n, n]
static inline bool ggml_fits_get_rel_pos(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const int64_t n = node->ne[1];
    return node->ne[2] == n && node->ne[3] == 1 && a->ne[0] == node->ne[0] && a->ne[1] == 2 * n - 1;
}

// add_rel_pos, all packed:
//   a       [n n, H W, B], like the node
//   pw, ph  [n, H, W, B]
static inline bool ggml_fits_add_rel_pos(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *pw = node->src[1];
    const struct ggml_tensor *ph = node->src[2];
    return ggml_are_same_shape(pw, ph) && ggml_are_same_shape(node, a) &&
           ggml_has_shape(a, pw->ne[0] * pw->ne[0], pw->ne[1] * pw->ne[2], pw->ne[3], 1) &&
           ggml_is_packed(node) && ggml_is_packed(a) && ggml_is_packed(pw) && ggml_is_packed(ph);
}

// --- nodes: recurrences and special forms --------------------------------------------------------

// ssm_conv:
//   x       [d_conv - 1 + T, d_inner, S]
//   filter  [d_conv, d_inner], d_conv from 1
//   node    [d_inner, T, S]
static inline bool ggml_fits_ssm_conv(const struct ggml_tensor *node) {
    const struct ggml_tensor *x = node->src[0];
    const struct ggml_tensor *filter = node->src[1];
    return filter->ne[0] >= 1 && filter->ne[0] <= x->ne[0] && filter->ne[1] == x->ne[1] &&
           ggml_has_shape(node, x->ne[1], x->ne[0] - filter->ne[0] + 1, x->ne[2], 1);
}

// ssm_scan, with N state size, P head size, H heads, G groups that divide them:
//   0 state   [N, P, H, states], packed
//   1 x       [P, H, T, S]
//   2 dt      [H, T, S]
//   3 A       F32 [1 or N, H], dense rows; N only with one snapshot
//   4 B, 5 C  F32 [N, G, T, S], dense rows
//   6 ids     I32 [S]; values below the number of states are for the kernel to check
//   node      packed, as many elements as x and op_params[0] >= 1 snapshots of N P H S
static inline bool ggml_fits_ssm_scan(const struct ggml_tensor *node) {
    struct ggml_tensor *const *src = node->src;
    for (int i = 3; i < 6; ++i) {
        if (!ggml_has_type(src[i], GGML_TYPE_F32) || !ggml_rows_dense(src[i])) return false;
    }
    if (!ggml_has_type(src[6], GGML_TYPE_I32)) return false;
    const int64_t n = src[0]->ne[0], rows = src[0]->ne[1], heads = src[0]->ne[2];
    const int64_t tokens = src[1]->ne[2], sequences = src[1]->ne[3], groups = src[4]->ne[1];
    const int64_t snapshots = node->op_params[0];
    const bool shared_rate = src[3]->ne[0] == 1; // one decay per head (Mamba-2)
    return ggml_has_shape(src[1], rows, heads, tokens, sequences) &&
           ggml_has_shape(src[2], heads, tokens, sequences, 1) &&
           ggml_has_shape(src[3], shared_rate ? 1 : n, heads, 1, 1) &&
           ggml_has_shape(src[4], n, groups, tokens, sequences) &&
           ggml_are_same_shape(src[5], src[4]) && ggml_has_shape(src[6], sequences, 1, 1, 1) &&
           groups > 0 && heads % groups == 0 && snapshots >= 1 && (shared_rate || snapshots == 1) &&
           ggml_is_packed(src[0]) && ggml_is_packed(node) &&
           ggml_nelements(node) ==
               ggml_nelements(src[1]) + snapshots * n * rows * heads * sequences;
}

// rwkv_wkv6, rwkv_wkv7, gated_linear_attn: F32, packed; src[state] is the state [S S H, sequences],
// the sources before it have the shape of source 0, but for `bonus` (-1: none), which has one row
// of it. Tokens divide evenly among the sequences.
static inline bool ggml_fits_linear_attention(const struct ggml_tensor *node, int state,
                                              int bonus) {
    const struct ggml_tensor *k = node->src[0];
    for (int i = 0; i <= state; ++i) {
        const struct ggml_tensor *src = node->src[i];
        if (!ggml_has_type(src, GGML_TYPE_F32) || !ggml_is_packed(src)) return false;
        if (i != state && i != bonus && !ggml_are_same_shape(src, k)) return false;
    }
    const int64_t sequences = node->src[state]->ne[1];
    if (sequences < 1 || k->ne[2] % sequences != 0 || k->ne[3] != 1) return false;
    if (bonus >= 0 && ggml_nelements(node->src[bonus]) != k->ne[0] * k->ne[1]) return false;
    // S x S per head and sequence
    const int64_t states = k->ne[0] * k->ne[0] * k->ne[1] * sequences;
    return ggml_nelements(node->src[state]) == states &&
           ggml_has_shape(node, k->ne[0] * k->ne[1], k->ne[2] + k->ne[0] * sequences, 1, 1) &&
           ggml_is_packed(node);
}

// Whether each head and sequence of t, q or k, serves a whole number of those of v. Dense rows.
static inline bool ggml_fits_delta_net_shared(const struct ggml_tensor *t,
                                              const struct ggml_tensor *v) {
    return t->ne[0] == v->ne[0] && t->ne[2] == v->ne[2] && t->ne[1] > 0 && t->ne[3] > 0 &&
           v->ne[1] % t->ne[1] == 0 && v->ne[3] % t->ne[3] == 0 && ggml_rows_dense(t);
}

// gated_delta_net, with S channels, H heads, T tokens, B sequences:
//   0 q, 1 k  [S, h, T, b], h and b dividing H and B, dense rows
//   2 v       [S, H, T, B]
//   3 g       F32 [1 or S, H, T, B], dense rows
//   4 beta    F32 [1, H, T, B]
//   5 state   F32, S S H B elements, packed
//   node      packed, as many elements as v and op_params[0] >= 1 snapshots of the state
static inline bool ggml_fits_gated_delta_net(const struct ggml_tensor *node) {
    struct ggml_tensor *const *src = node->src;
    const struct ggml_tensor *v = src[2];
    const int64_t snapshots = node->op_params[0];
    for (int i = 3; i < 6; ++i) {
        if (!ggml_has_type(src[i], GGML_TYPE_F32)) return false;
    }
    const int64_t rates = src[3]->ne[0] == 1 ? 1 : v->ne[0]; // per head, or per channel
    const int64_t states = v->ne[0] * v->ne[0] * v->ne[1] * v->ne[3];
    return snapshots >= 1 && ggml_fits_delta_net_shared(src[0], v) &&
           ggml_fits_delta_net_shared(src[1], v) && ggml_rows_dense(src[3]) &&
           ggml_has_shape(src[3], rates, v->ne[1], v->ne[2], v->ne[3]) &&
           ggml_has_shape(src[4], 1, v->ne[1], v->ne[2], v->ne[3]) && ggml_is_packed(src[5]) &&
           ggml_nelements(src[5]) == states && ggml_is_packed(node) &&
           ggml_nelements(node) == ggml_nelements(v) + snapshots * states;
}

// lightning_indexer:
//   q        [D, H, T, S], dense rows
//   k        [D, 1, KV, S], dense rows of whole blocks
//   weights  [H, T, 1, S]
//   mask     F16 [KV, T, 1, s], s dividing S
//   node     [KV, T, 1, S]
static inline bool ggml_fits_lightning_indexer(const struct ggml_tensor *node) {
    const struct ggml_tensor *q = node->src[0];
    const struct ggml_tensor *k = node->src[1];
    const struct ggml_tensor *mask = node->src[3];
    if (!ggml_has_type(mask, GGML_TYPE_F16) || mask->ne[3] < 1 || q->ne[3] % mask->ne[3] != 0)
        return false;
    return ggml_rows_dense(k) && ggml_has_whole_blocks(k) && ggml_rows_dense(q) &&
           ggml_has_shape(k, q->ne[0], 1, k->ne[2], q->ne[3]) &&
           ggml_has_shape(node->src[2], q->ne[1], q->ne[2], 1, q->ne[3]) &&
           ggml_has_shape(mask, k->ne[2], q->ne[2], 1, mask->ne[3]) &&
           ggml_has_shape(node, k->ne[2], q->ne[2], 1, q->ne[3]);
}

// dsv4_hc_comb:
//   mixes  [24, T]
//   scale  [>= 3]
//   base   [24]
//   node   [4, 4, T]
static inline bool ggml_fits_dsv4_hc_comb(const struct ggml_tensor *node) {
    const int64_t tokens = node->src[0]->ne[1];
    return ggml_has_shape(node->src[0], 24, tokens, 1, 1) && node->src[1]->ne[0] >= 3 &&
           node->src[2]->ne[0] == 24 && ggml_has_shape(node, 4, 4, tokens, 1);
}

// dsv4_hc_pre:
//   x        [E, hc, T]
//   weights  [hc, T], or like x if op_params[1] says that it is a gate
//   node     [E, T]
static inline bool ggml_fits_dsv4_hc_pre(const struct ggml_tensor *node) {
    const struct ggml_tensor *x = node->src[0];
    const bool gated = ggml_get_op_params_i32(node, 1) != 0; // dsv4_hc_pre_gated
    return (gated ? ggml_are_same_shape(node->src[1], x)
                  : ggml_has_shape(node->src[1], x->ne[1], x->ne[2], 1, 1)) &&
           x->ne[3] == 1 && ggml_has_shape(node, x->ne[0], x->ne[2], 1, 1);
}

// dsv4_hc_post:
//   x         [E, T]
//   residual  [E, hc, T], like the node
//   post      [hc, T]
//   comb      F32 [hc, hc, T], or missing
static inline bool ggml_fits_dsv4_hc_post(const struct ggml_tensor *node) {
    const struct ggml_tensor *r = node->src[1];
    const struct ggml_tensor *comb = node->src[3];
    return r->ne[3] == 1 && ggml_has_shape(node->src[0], r->ne[0], r->ne[2], 1, 1) &&
           ggml_has_shape(node->src[2], r->ne[1], r->ne[2], 1, 1) &&
           (comb == NULL || (ggml_has_type(comb, GGML_TYPE_F32) &&
                             ggml_has_shape(comb, r->ne[1], r->ne[1], r->ne[2], 1))) &&
           ggml_are_same_shape(node, r);
}

// --- nodes: gated linear units
// ---------------------------------------------------------------------

// glu: two operands like the result, or one of twice its width; an odd row has one element more.
// Rows are dense.
static inline bool ggml_fits_glu(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *b = node->src[1];
    if (!ggml_rows_dense(node) || !ggml_rows_dense(a)) return false;
    if (b != NULL) {
        return ggml_rows_dense(b) && ggml_are_same_shape(node, a) && ggml_are_same_shape(node, b);
    }
    return a->ne[0] / 2 == node->ne[0] &&
           ggml_has_shape(a, a->ne[0], node->ne[1], node->ne[2], node->ne[3]);
}

// --- nodes: training -----------------------------------------------------------------------------

// opt_step_adamw, opt_step_sgd: all F32, parameter, gradient and momenta like the node; the
// hyperparameters, at least 7 or 2, lie side by side.
static inline bool ggml_fits_opt_step(const struct ggml_tensor *node) {
    const bool adamw = node->op == GGML_OP_OPT_STEP_ADAMW; // else SGD
    const struct ggml_tensor *params = node->src[adamw ? 4 : 2];
    for (int i = 0; i < (adamw ? 4 : 2); ++i) {
        const struct ggml_tensor *src = node->src[i];
        if (!ggml_has_type(src, GGML_TYPE_F32) || !ggml_are_same_shape(src, node)) return false;
    }
    return ggml_has_type(params, GGML_TYPE_F32) && ggml_rows_dense(params) &&
           params->ne[0] >= (adamw ? 7 : 2);
}

#ifdef __cplusplus
}
#endif

#endif
