// SPDX-License-Identifier: MIT
// ggml-impl.h: helpers under the names that backends use. In a plugin they come from the static
// helper library (SDK), in the core from the core itself.
//
// For authors of plugins, and of sources that include ggml's internal header. Programs need none of
// it. Nothing here is part of the binary contract but the layout of what the contract's own headers
// use (struct ggml_cgraph is not: plugins are given struct ggml_graph).
#ifndef GGML_IMPL_H
#define GGML_IMPL_H

#include <stdlib.h>
#include <string.h>

#include "ggml.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef MIN

// As everywhere: arguments are evaluated twice.
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#endif
#ifndef MAX
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#endif

// Alignment of tensors in host memory, in bytes: a vector of AVX2, and GGUF's default, so that
// tensors of mapped files need not be moved.
#define TENSOR_ALIGNMENT 32

// Set on the harmless tensor that a builder returns when its operands are impossible; its `extra`
// points to the message. It has no elements, no data, and every operation on it returns it again.
#define GGML_TENSOR_FLAG_ERROR (1 << 30)

// --- log -----------------------------------------------------------------------------------------

// Formats and logs; a message of any length (in one that can't be held in memory the end is cut
// off). In a plugin it goes to the host. Text without a newline is continued by GGML_LOG_CONT.
// [any-thread]
GGML_API void ggml_log_internal(enum ggml_log_level level, const char *format, ...)
    GGML_ATTRIBUTE_FORMAT(2, 3);

// Formats like printf, and logs at a level. A newline ends a message; GGML_LOG_CONT goes on with
// the one before. Whether anybody sees it, and where, is the application's matter: ggml_log_set().
#define GGML_LOG(...) ggml_log_internal(GGML_LOG_LEVEL_NONE, __VA_ARGS__) // text without a level
#define GGML_LOG_INFO(...) ggml_log_internal(GGML_LOG_LEVEL_INFO, __VA_ARGS__)
#define GGML_LOG_WARN(...) ggml_log_internal(GGML_LOG_LEVEL_WARN, __VA_ARGS__)
#define GGML_LOG_ERROR(...) ggml_log_internal(GGML_LOG_LEVEL_ERROR, __VA_ARGS__)
#define GGML_LOG_DEBUG(...) ggml_log_internal(GGML_LOG_LEVEL_DEBUG, __VA_ARGS__)
#define GGML_LOG_CONT(...) ggml_log_internal(GGML_LOG_LEVEL_CONT, __VA_ARGS__)

// --- memory and mutual exclusion -----------------------------------------------------------------

// size bytes aligned to 64, or NULL with a message; freed by ggml_aligned_free with the same size,
// on the same side (core or plugin). A size of 0 gives an address too; freeing NULL does nothing.
// [any-thread]
GGML_API void *ggml_aligned_malloc(size_t size);
GGML_API void ggml_aligned_free(void *ptr, size_t size);

// One process-wide (per core or plugin) recursion-free lock: taking it twice on a thread deadlocks.
// For set-up that must happen once. [any-thread]
GGML_API void ggml_critical_section_start(void);
GGML_API void ggml_critical_section_end(void);

// --- op_params -----------------------------------------------------------------------------------

// Word i of a node's parameters; which words an operation has is in op_list.inl. i is below 16: not
// checked.

static inline int32_t ggml_get_op_params_i32(const struct ggml_tensor *tensor, uint32_t i) {
    return tensor->op_params[i];
}

// Bits of word i as a float.
static inline float ggml_get_op_params_f32(const struct ggml_tensor *tensor, uint32_t i) {
    float value;
    memcpy(&value, &tensor->op_params[i], sizeof(value));
    return value;
}

// Sets the first size bytes; more than there are change nothing.
static inline void ggml_set_op_params(struct ggml_tensor *tensor, const void *params, size_t size) {
    if (size <= GGML_MAX_OP_PARAMS) memcpy(tensor->op_params, params, size);
}

static inline void ggml_set_op_params_i32(struct ggml_tensor *tensor, uint32_t i, int32_t value) {
    tensor->op_params[i] = value;
}

static inline void ggml_set_op_params_f32(struct ggml_tensor *tensor, uint32_t i, float value) {
    memcpy(&tensor->op_params[i], &value, sizeof(value));
}

// Same type, extents and strides: data can be copied byte by byte, and in-place results can share
// memory. [any-thread]
GGML_API bool ggml_are_same_layout(const struct ggml_tensor *a, const struct ggml_tensor *b);

// Whether the result may take the memory of a source with the same layout: REUSE in op_list.inl. A
// kernel of such an operation must work with dst->data equal to the data of any of its sources.
// [any-thread]
GGML_API bool ggml_op_can_inplace(enum ggml_op op);

// --- grids of the types IQ1, IQ2 and IQ3 ---------------------------------------------------------

// grid_list.inl as bytes: the coordinates of a point, the first one lowest; those of IQ1, which
// IQ1_S and IQ1_M share, times 8, in two's complement.
extern const uint64_t ggml_grid_iq1[2048];    // eight coordinates each
extern const uint64_t ggml_grid_iq2_xxs[256]; // eight
extern const uint64_t ggml_grid_iq2_xs[512];  // eight
extern const uint64_t ggml_grid_iq2_s[1024];  // eight
extern const uint32_t ggml_grid_iq3_xxs[256]; // four
extern const uint32_t ggml_grid_iq3_s[512];   // four

// --- scalar conversions --------------------------------------------------------------------------

// In line for kernels; rows are faster by the functions of ggml.h. Bit by bit the same as those.

// IEEE binary16 from binary32: round to nearest even, subnormals kept, NaN becomes quiet.
static inline ggml_fp16_t ggml_compute_fp32_to_fp16(float f) {
    uint32_t x;
    memcpy(&x, &f, sizeof(x));
    const uint32_t sign = (x >> 16) & 0x8000u;
    const uint32_t mag = x & 0x7FFFFFFFu; // without the sign: ordered like the magnitudes
    if (mag > 0x7F800000u) return (ggml_fp16_t)(sign | 0x7E00u);    // NaN, made quiet
    if (mag >= 0x477FF000u) return (ggml_fp16_t)(sign | 0x7C00u);   // rounds to 2^16 or above
    if (mag >= 0x38800000u) {                                       // normal
        const uint32_t rounded = mag + 0xFFFu + ((mag >> 13) & 1u); // ties to the even neighbour
        return (ggml_fp16_t)(sign | ((rounded - 0x38000000u) >> 13));
    }
    float scaled; // subnormal: the addition of 0.5 lets the hardware round at 2^-24
    memcpy(&scaled, &mag, sizeof(scaled));
    scaled += 0.5f; // of which the last bit is 2^-24, as the smallest subnormal
    uint32_t bits;
    memcpy(&bits, &scaled, sizeof(bits));
    return (ggml_fp16_t)(sign | (bits - 0x3F000000u));
}

// IEEE binary32 from binary16: exact; NaN keeps its upper bits.
static inline float ggml_compute_fp16_to_fp32(ggml_fp16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    const uint32_t mag = h & 0x7FFFu;
    uint32_t x;
    if (mag >= 0x7C00u) {
        x = sign | 0x7F800000u | ((mag & 0x3FFu) << 13); // infinity and NaN
    } else if (mag >= 0x0400u) {
        x = sign | ((mag << 13) + 0x38000000u); // the exponent's bias grows by 112
    } else {                                    // subnormal: exact in binary32
        const float value = (float)mag * 5.9604644775390625e-8f;
        memcpy(&x, &value, sizeof(x));
        x |= sign;
    }
    float f;
    memcpy(&f, &x, sizeof(f));
    return f;
}

// bfloat16 from binary32: round to nearest even, NaN made quiet.
static inline ggml_bf16_t ggml_compute_fp32_to_bf16(float f) {
    uint32_t x;
    memcpy(&x, &f, sizeof(x));
    ggml_bf16_t h;
    if ((x & 0x7FFFFFFFu) > 0x7F800000u) {
        h.bits = (uint16_t)((x >> 16) | 64u); // the bit that makes NaN quiet
    } else {
        h.bits = (uint16_t)((x + 0x7FFFu + ((x >> 16) & 1u)) >> 16); // ties to the even neighbour
    }
    return h;
}

// binary32 from bfloat16: exact.
static inline float ggml_compute_bf16_to_fp32(ggml_bf16_t h) {
    const uint32_t x = (uint32_t)h.bits << 16;
    float f;
    memcpy(&f, &x, sizeof(f));
    return f;
}

// E8M0 byte: 2^(x - 127), 2^-127 (a subnormal) for 0; 255, which means NaN in files, gives
// infinity. The half form is half of that, for the values of MXFP4 that are stored doubled.
static inline float ggml_e8m0_to_fp32(uint8_t x) {
    const uint32_t bits = x == 0 ? 0x00400000u : (uint32_t)x << 23; // 2^-127 is subnormal
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

static inline float ggml_e8m0_to_fp32_half(uint8_t x) {
    // so are 2^-128 and 2^-127
    const uint32_t bits = x < 2 ? 0x00200000u << x : (uint32_t)(x - 1) << 23;
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

// The same under the names that ggml's backends use.
#define GGML_FP32_TO_FP16(x) ggml_compute_fp32_to_fp16(x)
#define GGML_FP16_TO_FP32(x) ggml_compute_fp16_to_fp32(x)
#define GGML_COMPUTE_FP32_TO_FP16(x) ggml_compute_fp32_to_fp16(x)
#define GGML_COMPUTE_FP16_TO_FP32(x) ggml_compute_fp16_to_fp32(x)
#define GGML_FP32_TO_BF16(x) ggml_compute_fp32_to_bf16(x)
#define GGML_BF16_TO_FP32(x) ggml_compute_bf16_to_fp32(x)
#define GGML_E8M0_TO_FP32(x) ggml_e8m0_to_fp32(x)
#define GGML_E8M0_TO_FP32_HALF(x) ggml_e8m0_to_fp32_half(x)

// --- hash set of tensors -------------------------------------------------------------------------

// Open addressing with linear probing, keyed by address; entries are never removed singly. Parallel
// arrays are indexed by the slots. Sizes are primes.

// A word of a set of bits.
typedef uint32_t ggml_bitset_t;

// A set of tensors; made by ggml_hash_set_new(), or part of a graph.
struct ggml_hash_set {
    size_t size;               // slots; 0: none, everything is full
    ggml_bitset_t *used;       // whether a slot is taken
    struct ggml_tensor **keys; // by slot; undefined where the slot is free
};

// What functions return instead of a slot: there is no free one; and the key was there before.
#define GGML_HASHSET_FULL ((size_t)-1)           // no free slot
#define GGML_HASHSET_ALREADY_EXISTS ((size_t)-2) // of ggml_hash_insert() only

// Bit i; setting it; words that n bits take.
static inline bool ggml_bitset_get(const ggml_bitset_t *bits, size_t i) {
    return (bits[i / 32] >> (i % 32)) & 1u;
}

static inline void ggml_bitset_set(ggml_bitset_t *bits, size_t i) {
    bits[i / 32] |= (ggml_bitset_t)1 << (i % 32);
}

static inline size_t ggml_bitset_size(size_t n) {
    return (n + 31) / 32;
}

// Allocated set for at least min_sz entries; size 0 on failure, with a message. [any-thread]
GGML_API struct ggml_hash_set ggml_hash_set_new(size_t min_sz);

// Frees the arrays of a set that ggml_hash_set_new() made. [stream]
GGML_API void ggml_hash_set_free(struct ggml_hash_set *hash_set);

// Smallest table size used for min_sz entries: the first prime above a power of 2 that is large
// enough. For tables that stay fast ask for twice the entries. [any-thread]
GGML_API size_t ggml_hash_size(size_t min_sz);
// Forgets every entry. [stream]
GGML_API void ggml_hash_set_reset(struct ggml_hash_set *hash_set);

// Slot of the key, or the free slot where it belongs, or GGML_HASHSET_FULL. Which of the first two
// tells ggml_bitset_get(set->used, slot).
static inline size_t ggml_hash_find(const struct ggml_hash_set *set,
                                    const struct ggml_tensor *key) {
    if (set->size == 0) return GGML_HASHSET_FULL;
    const size_t home = ((uintptr_t)key >> 4) % set->size; // tensors are 16 bytes apart at least
    size_t i = home;
    while (ggml_bitset_get(set->used, i) && set->keys[i] != key) {
        i = i + 1 == set->size ? 0 : i + 1;      // linear probing
        if (i == home) return GGML_HASHSET_FULL; // all slots are others'
    }
    return i;
}

// Whether the set has the key.
static inline bool ggml_hash_contains(const struct ggml_hash_set *set, struct ggml_tensor *key) {
    const size_t i = ggml_hash_find(set, key);
    return i != GGML_HASHSET_FULL && ggml_bitset_get(set->used, i);
}

// Slot of the new entry, GGML_HASHSET_ALREADY_EXISTS or GGML_HASHSET_FULL (where ggml aborts).
static inline size_t ggml_hash_insert(struct ggml_hash_set *set, struct ggml_tensor *key) {
    const size_t i = ggml_hash_find(set, key);
    if (i == GGML_HASHSET_FULL) return i;
    if (ggml_bitset_get(set->used, i)) return GGML_HASHSET_ALREADY_EXISTS;
    ggml_bitset_set(set->used, i);
    set->keys[i] = key;
    return i;
}

// Slot of the key, inserted if it was absent; GGML_HASHSET_FULL when there is no room.
static inline size_t ggml_hash_find_or_insert(struct ggml_hash_set *set, struct ggml_tensor *key) {
    const size_t i = ggml_hash_find(set, key);
    if (i != GGML_HASHSET_FULL && !ggml_bitset_get(set->used, i)) {
        ggml_bitset_set(set->used, i);
        set->keys[i] = key;
    }
    return i;
}

// --- graph ---------------------------------------------------------------------------------------

// In which order the sources of a node are visited when a graph is built, which decides what is
// computed first where there is a choice.
enum ggml_cgraph_eval_order {
    GGML_CGRAPH_EVAL_ORDER_LEFT_TO_RIGHT = 0, // src[0] first; what new graphs have
    GGML_CGRAPH_EVAL_ORDER_RIGHT_TO_LEFT,     // src[9] first
    GGML_CGRAPH_EVAL_ORDER_COUNT              // how many there are
};

// As applications build it. Plugins are given a struct ggml_graph instead. Arrays lie behind it in
// the context's arena. Members up to uid are in ggml's order, since programs initialise it by
// braces.
struct ggml_cgraph {
    int size;                       // capacity of nodes and of leafs; 0: a view of another graph
    int n_nodes;                    // tensors with an operation, and parameters
    int n_leafs;                    // tensors without one
    struct ggml_tensor **nodes;     // in an order that respects dependencies
    struct ggml_tensor **grads;     // by slot of visited_hash_set, or NULL
    struct ggml_tensor **grad_accs; // by slot of visited_hash_set, or NULL
    struct ggml_tensor **leafs;     // inputs and weights
    int32_t *use_counts;            // by slot of visited_hash_set: how often a source
    struct ggml_hash_set visited_hash_set; // what was reached
    enum ggml_cgraph_eval_order order;     // of visiting sources
    uint64_t uid; // as of struct ggml_graph; code that changes the graph or its nodes sets it to 0
    const char *error; // why it can't be computed (an error tensor, no room), or NULL
};

// Graph over nodes [i0, i1) of another one; shares its arrays, so that what is written to `nodes`
// of one is seen in the other. size is 0: nothing can be added; no leafs and gradients; uid 0. A
// range that is not inside the graph gives an empty one in error. [any-thread]
GGML_API struct ggml_cgraph ggml_graph_view(struct ggml_cgraph *cgraph, int i0, int i1);

// Process-wide counter, from 1: a number that no graph had before. [any-thread]
GGML_API uint64_t ggml_graph_next_uid(void);

// Whether the op moves no data: NONE, RESHAPE, VIEW, PERMUTE, TRANSPOSE. Streams skip such nodes.
static inline bool ggml_op_is_empty(enum ggml_op op) {
    return op == GGML_OP_NONE || op == GGML_OP_RESHAPE || op == GGML_OP_VIEW ||
           op == GGML_OP_PERMUTE || op == GGML_OP_TRANSPOSE;
}

// --- fusion queries ------------------------------------------------------------------------------

// Whether a backend may compute several nodes as one without anybody missing the results between.
// For sources written for ggml; plugins use those of ggml-graph.h. A graph that was made of parts
// (as views are) knows less than it might: then these return false.

// Uses of node i inside the graph; 0 if it was added without being visited, or there is no such
// node. [any-thread]
GGML_API int32_t ggml_node_get_use_count(const struct ggml_cgraph *cgraph, int node_idx);

// Exactly n_uses, not a view, not an output. [any-thread]
GGML_API bool ggml_node_has_n_uses(const struct ggml_cgraph *cgraph, int node_idx, int32_t n_uses);

// Whether the nodes at node_idxs form the chain `ops`, each feeding only the next, all of one shape
// and flagged to be computed. [any-thread]
GGML_API bool ggml_can_fuse_ext(const struct ggml_cgraph *cgraph, const int *node_idxs,
                                const enum ggml_op *ops, int num_ops);
// The same for consecutive nodes from node_idx. [any-thread]
GGML_API bool ggml_can_fuse(const struct ggml_cgraph *cgraph, int node_idx, const enum ggml_op *ops,
                            int num_ops);

// Whether the nodes form the subgraph `ops` that nothing outside uses except its outputs, whose
// indices in the graph `outputs` lists. [any-thread]
GGML_API bool ggml_can_fuse_subgraph_ext(const struct ggml_cgraph *cgraph, const int *node_idxs,
                                         int count, const enum ggml_op *ops, const int *outputs,
                                         int num_outputs);
// The same for consecutive nodes from node_idx. [any-thread]
GGML_API bool ggml_can_fuse_subgraph(const struct ggml_cgraph *cgraph, int node_idx, int count,
                                     const enum ggml_op *ops, const int *outputs, int num_outputs);

// Whether the nodes are connected as the edges say: edges[k] = {destination, source slot, origin},
// offsets from start_idx, means that node start_idx + destination has node start_idx + origin in
// that slot of src[]. [any-thread]
GGML_API bool ggml_check_edges(const struct ggml_cgraph *cgraph, int start_idx,
                               const int (*edges)[3], int num_edges);

#ifdef __cplusplus
}

#include <array>
#include <initializer_list>
#include <vector>

inline bool ggml_can_fuse(const struct ggml_cgraph *cgraph, int node_idx,
                          std::initializer_list<enum ggml_op> ops) {
    return ggml_can_fuse(cgraph, node_idx, ops.begin(), (int)ops.size());
}

inline bool ggml_can_fuse_subgraph(const struct ggml_cgraph *cgraph, int start_idx,
                                   std::initializer_list<enum ggml_op> ops,
                                   std::initializer_list<int> outputs = {}) {
    return ggml_can_fuse_subgraph(cgraph, start_idx, (int)ops.size(), ops.begin(), outputs.begin(),
                                  (int)outputs.size());
}

inline bool ggml_check_edges(const struct ggml_cgraph *cgraph, int start_idx,
                             std::initializer_list<std::array<int, 3>> edges) {
    for (const auto &edge : edges) {
        const int raw[1][3] = {{edge[0], edge[1], edge[2]}};
        if (!ggml_check_edges(cgraph, start_idx, raw, 1)) return false;
    }
    return true;
}
#endif

#endif
