// SPDX-License-Identifier: MIT
// How a builder makes a node: it describes what the caller asked for, and the rules of the op's row
// check it and complete it. An impossible request gives the context's error tensor.
#ifndef GGML_OP_OP_BUILD_H
#define GGML_OP_OP_BUILD_H

#include "ggml-impl.h"

#define OP_MAX_PARAMS (GGML_MAX_OP_PARAMS / (int)sizeof(int32_t))

// A request for a node. The builder fills in the first part; type and shape rules complete type,
// extents and strides, and may refuse.
struct op_call {
    struct ggml_context *ctx;
    const char *builder; // named in messages
    enum ggml_op op;
    struct ggml_tensor *src[GGML_MAX_SRC];
    int32_t params[OP_MAX_PARAMS]; // in the slots that the row of op_list.inl documents
    struct ggml_tensor *alias;     // the result is a view of it; NULL: memory of its own
    bool window;                   // the view has its own extents and starts at `offset`
    size_t offset;                 // bytes from the start of `alias`, for rules that take one
    struct ggml_tensor *like;      // gives only the extents of the result; "like" in messages
    bool has_like;
    int self_slot; // source slot > 0 that will hold the result itself
    bool typed;    // the builder has set `type` although the rule would derive it
    enum ggml_type type;
    int64_t ne[GGML_MAX_DIMS];
    bool strided; // `nb` holds the strides of the result; otherwise packed, or those of `alias`
    size_t nb[GGML_MAX_DIMS];
    const struct ggml_tensor *named_after; // with `suffix`: what the name of the result begins with
    const char *suffix;                    // NULL: " (view)" behind the name of `alias`, if any
    struct ggml_tensor *error;             // set by op_fail()
};

// First members of an initialiser of struct op_call inside the public function that builds NAME.
#define OP(context, NAME) .ctx = (context), .builder = __func__, .op = GGML_OP_##NAME

// Checks the call by the rules of its row and makes the node; the error tensor on failure, never
// NULL.
struct ggml_tensor *op_build(struct op_call *call);
// op_build() for a result in the memory of source 0.
struct ggml_tensor *op_build_inplace(struct op_call *call);

// Records "<builder>: <message>" and returns false.
bool op_fail(struct op_call *call, const char *format, ...) GGML_ATTRIBUTE_FORMAT(2, 3);

// The context's error tensor for an operand in error. What was recorded last stays, if it is of
// this context, so that a chain reports the call that began it.
struct ggml_tensor *op_pass_on(struct ggml_context *ctx, const struct ggml_tensor *bad);

// Error tensors have no elements and are no operand of a valid node.
static inline bool op_is_error(const struct ggml_tensor *tensor) {
    return (tensor->flags & GGML_TENSOR_FLAG_ERROR) != 0;
}

// Whether a setter may change `node`: one of that op. Otherwise records the failure.
bool op_may_set(const char *setter, const struct ggml_tensor *node, enum ggml_op op);

// Sets or, with NULL, clears the attention sinks of a node: f32, one per head. Records a failure.
void op_set_sinks(const char *setter, struct ggml_tensor *node, int slot, struct ggml_tensor *sinks,
                  int64_t n_head);

// Bits of a float, for op_params.
static inline int32_t op_bits(float value) {
    int32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline float op_float(const struct op_call *call, int slot) {
    float value;
    memcpy(&value, &call->params[slot], sizeof(value));
    return value;
}

// --- extents -------------------------------------------------------------------------------------

// Product and sum of extents; INT64_MAX where they do not fit, which op_build() refuses.
int64_t op_mul(int64_t a, int64_t b);
int64_t op_add(int64_t a, int64_t b);

// Whether a shape has no elements. Such tensors are valid everywhere and cost nothing.
static inline bool op_is_empty(const int64_t ne[GGML_MAX_DIMS]) {
    return ne[0] == 0 || ne[1] == 0 || ne[2] == 0 || ne[3] == 0;
}

// Sets the extents of the result; returns true.
bool op_set_ne(struct op_call *call, int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3);
bool op_set_ne_as(struct op_call *call, const struct ggml_tensor *tensor);

// Bytes from the first to the last element of a region, or SIZE_MAX if they do not fit.
size_t op_region_size(enum ggml_type type, const int64_t ne[GGML_MAX_DIMS],
                      const size_t nb[GGML_MAX_DIMS]);

// Strides of a packed tensor; SIZE_MAX where they do not fit.
void op_packed_strides(enum ggml_type type, const int64_t ne[GGML_MAX_DIMS],
                       size_t nb[GGML_MAX_DIMS]);

// --- checks of sources: false after op_fail() ----------------------------------------------------

// Each of them names the source and both values in its message, so that a wrong operand can be
// found without a debugger.
bool op_need_type(struct op_call *call, int src, enum ggml_type type);
bool op_need_type2(struct op_call *call, int src, enum ggml_type one, enum ggml_type other);
bool op_need_same_type(struct op_call *call, int src, int other);
bool op_need_same_shape(struct op_call *call, int src, int other);
// Extent `dim` of source `src` equals `expected`, which `what` explains.
bool op_need_ne(struct op_call *call, int src, int dim, int64_t expected, const char *what);
// All four extents.
bool op_need_shape(struct op_call *call, int src, int64_t ne0, int64_t ne1, int64_t ne2,
                   int64_t ne3);
// Extent `dim` of source `src` is a multiple of extent `dim2` of source `other`.
bool op_need_multiple(struct op_call *call, int src, int dim, int other, int dim2);
// Source `src` is a whole number of times source `other`, in every dimension.
bool op_need_repeats(struct op_call *call, int src, int other);
// Elements without gaps, in the order of the extents.
bool op_need_contiguous(struct op_call *call, int src);
// The elements of each row lie side by side; rows may lie anywhere.
bool op_need_contiguous_rows(struct op_call *call, int src);
// Strides of dimensions 0 and 1 are in rising order.
bool op_need_not_transposed(struct op_call *call, int src);
// Contiguous but for padding at the ends of rows.
bool op_need_padded_1d(struct op_call *call, int src);
// At most `n` dimensions have an extent other than 1.
bool op_need_dims(struct op_call *call, int src, int n);
// The result has as many elements as `tensor`, and no negative extent.
bool op_need_elements(struct op_call *call, const struct ggml_tensor *tensor);
// Parameter `name` lies in [low, high].
bool op_need_range(struct op_call *call, const char *name, int64_t value, int64_t low,
                   int64_t high);

#endif
