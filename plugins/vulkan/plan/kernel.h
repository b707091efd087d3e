// SPDX-License-Identifier: MIT
// How a kernel says what it computes and which shaders do it. Nothing here touches Vulkan: a plan
// is made from a graph and a device's features alone, so that the choice of shaders can be tested
// without a device.
#ifndef GVK_KERNEL_H
#define GVK_KERNEL_H

#include "ggml-graph.h"
#include "ggml-impl.h"
#include "lists/type_set.h"

// What the choice of kernels depends on; read off the device once.
struct gvk_features {
    bool fp16;                // arithmetic in half precision
    bool bf16;                // conversions and dot products in hardware
    bool int_dot;             // packed 4x8-bit dot products, accelerated
    bool coopmat;             // cooperative matrices of half precision, accumulated in float
    bool subgroup_arithmetic; // reductions over a subgroup
    bool cpu;                 // a driver that computes on the CPU
    uint32_t subgroup_size;
    uint32_t max_group_size;        // invocations
    uint32_t max_groups[3];         // per dispatch
    uint32_t max_shared_bytes;      // of one group
    uint64_t max_range_bytes;       // one operand
    uint32_t min_storage_alignment; // of an operand's offset
    uint32_t max_iterations;        // of all loops of an invocation together; 0: no limit
};

enum gvk_shader {
#define GVK_SHADER_ROW(name) GVK_SHADER_##name,
#include "shader_list.inl"
    GVK_SHADER_COUNT,
};

enum {
    GVK_MAX_OPERANDS = 9,
    GVK_MAX_SPECS = 16,
    GVK_MAX_NUMBERS = 16,
};

// A tensor, bytes of the stream's scratch memory, or the grids, that a shader reads or writes.
struct gvk_operand {
    const struct ggml_tensor *tensor; // NULL: scratch memory or the grids
    size_t scratch_offset;
    size_t scratch_bytes;
    bool grids; // what grids.h holds
};

// One launch of a shader. Its interface is in shaders/common.glsl: operand i is binding i + 1.
struct gvk_dispatch {
    enum gvk_shader shader;
    int n_operands;
    uint32_t writes; // bit i: operand i is written; the others are only read
    struct gvk_operand operands[GVK_MAX_OPERANDS];
    int n_specs;
    uint32_t specs[GVK_MAX_SPECS];     // specialisation constants by id; 0 to 2: the group's size
    int32_t op_params[16];             // copied from the node
    uint32_t numbers[GVK_MAX_NUMBERS]; // whatever else the shader wants to know
    uint32_t groups[3];
};

struct gvk_plan; // a list of dispatches, see plan.h

// Starts a dispatch of `shader` for the node: operand 0 is the node, written, then its sources up
// to and including n_sources, written where the node updates them; a source that is absent takes
// the node's place, so that every binding is valid. The group's size is (group_size, 1, 1).
// op_params are copied. NULL when memory ran out, which the plan remembers. The result is valid
// until the next call for this plan.
struct gvk_dispatch *gvk_dispatch_new(struct gvk_plan *plan, enum gvk_shader shader,
                                      const struct ggml_tensor *node, int n_sources,
                                      uint32_t group_size);
// Appends a specialisation constant, a number.
void gvk_dispatch_spec(struct gvk_dispatch *dispatch, uint32_t value);
// Sets the groups so that there are at least n of them, spread over dimensions within the device's
// limits; shaders count them with group_linear() and must check it against their own bound.
void gvk_dispatch_groups(const struct gvk_plan *plan, struct gvk_dispatch *dispatch, uint64_t n);
// Replaces or appends operand i by bytes of scratch memory.
void gvk_dispatch_scratch(struct gvk_dispatch *dispatch, int i, size_t offset, size_t bytes,
                          bool written);
// Where `t` is of a type with a grid, makes operand i the grids: what shaders named <name>_grid
// want behind their other operands.
void gvk_dispatch_grids(struct gvk_dispatch *dispatch, int i, const struct ggml_tensor *t);
// Reserves scratch memory until the end of this node; returns its offset (256-byte aligned).
size_t gvk_plan_scratch(struct gvk_plan *plan, size_t bytes);
// Of the device that the plan is for.
const struct gvk_features *gvk_plan_features(const struct gvk_plan *plan);

// Iterations that an invocation may take before the driver leaves its loops.
static inline uint64_t gvk_most_iterations(const struct gvk_features *features) {
    return features->max_iterations ? features->max_iterations : UINT64_MAX;
}
// Whether no invocation of the node's shaders takes more. [any-thread]
bool gvk_within_iterations(const struct gvk_features *features, const struct ggml_tensor *node);

// A row of kernel_list.inl.
typedef bool (*gvk_accepts_fn)(const struct gvk_features *features, const struct ggml_tensor *node);
typedef void (*gvk_encode_fn)(struct gvk_plan *plan, const struct ggml_tensor *node);
struct gvk_kernel {
    int16_t op;
    int16_t sub;
    uint64_t dst;
    uint64_t src[3];
    gvk_accepts_fn accepts;
    gvk_encode_fn encode;
    const char *name; // for messages and tests
};

// All rows, in order.
const struct gvk_kernel *gvk_kernels(int *out_count);
// The row that computes the node, or NULL: not supported. Operands may be without buffers.
// [any-thread]
const struct gvk_kernel *gvk_kernel_find(const struct gvk_features *features,
                                         const struct ggml_tensor *node);
// Whether the device computes the node, view operations included. [any-thread]
bool gvk_supports_op(const struct gvk_features *features, const struct ggml_tensor *node);

// --- columns of kernel_list.inl ------------------------------------------------------------------

enum { ANY = -1 };

// Types with block scales that shaders unpack (shaders/unpack.glsl).
#define T_QUANTS                                                                                   \
    (TYPE_BIT(Q4_0) | TYPE_BIT(Q4_1) | TYPE_BIT(Q5_0) | TYPE_BIT(Q5_1) | TYPE_BIT(Q8_0) |          \
     TYPE_BIT(Q2_K) | TYPE_BIT(Q3_K) | TYPE_BIT(Q4_K) | TYPE_BIT(Q5_K) | TYPE_BIT(Q6_K) |          \
     TYPE_BIT(IQ4_NL) | TYPE_BIT(IQ4_XS) | TYPE_BIT(MXFP4))
// All block types that shaders/unpack.glsl knows.
#define T_CODED                                                                                    \
    (T_QUANTS | TYPE_BIT(Q8_1) | TYPE_BIT(TQ1_0) | TYPE_BIT(TQ2_0) | TYPE_BIT(NVFP4) |             \
     TYPE_BIT(Q1_0) | TYPE_BIT(Q2_0))

// Types with grids have shaders of their own (shaders/unpack_grid.glsl).
static inline bool gvk_has_grid(const struct ggml_tensor *t) {
    return T_GRIDS >> t->type & 1;
}

#define GVK_KERNEL_ROW(op, sub, name, dst, src0, src1, src2, accepts, encode)                      \
    bool accepts(const struct gvk_features *features, const struct ggml_tensor *node);             \
    void encode(struct gvk_plan *plan, const struct ggml_tensor *node);
#include "plan/kernel_list.inl"

#endif
