// SPDX-License-Identifier: MIT
// What the families of cases (op_*.c) are written with: one row per operation, operands, checks.
//
// A generator runs through its cases in loops. For each it asks conformance_case() with the rest of
// the name; where that returns true it makes operands and hands the node to conformance_check():
//
//     if (!conformance_case(c, "%s/%s", ggml_type_name(type), conformance_shape(c, ne))) continue;
//     conformance_check(c, ggml_sqr(c->ctx, conformance_input(c, type, ne, PACKED)));
//
// Up to its first '/' the rest of the name tells the types; results are summed up by it. Operands
// are filled with numbers that follow from the seed and the name alone.
#ifndef CONFORMANCE_CASE_H
#define CONFORMANCE_CASE_H

#include <string.h>

#include "ggml-backend.h"
#include "ggml-host.h"
#include "ggml.h"
#include "oracle/oracle.h"
#include "random.h"

enum { CONFORMANCE_MAX_OPERANDS = 24, CONFORMANCE_KINDS = 7 };

struct conformance;
struct conformance_options;
struct conformance_report;

// Everything there is to say about an operation, or about a sub-operation of UNARY or GLU.
struct conformance_op {
    const char *name;
    // The result from the definition, in logical order. The node and its sources are host copies
    // from before the run.
    oracle_fn oracle;
    void (*cases)(struct conformance *c);
    // Largest normalised mean square error in F32 arithmetic; 0: every element is exact. The square
    // of the rounding unit of a half-precision result is added to one that is not 0.
    double bound;
    const char *why; // what the bound follows from
    // Size of the terms that element i is the sum of, where they can cancel; errors are measured
    // against it.
    oracle_fn magnitude;
    // Makes a result of which several forms are right comparable, in place.
    void (*canonical)(const struct ggml_tensor *node, double *actual);
    // Sources that are written too, as a bit set, and what they hold then.
    unsigned written_sources;
    void (*source_oracle)(const struct ggml_tensor *node, int source, double *out);
};

// Defines the row of an operation. At the end come further members, or PLAIN.
#define CONFORMANCE_OP(NAME, ORACLE, CASES, BOUND, WHY, ...)                                       \
    extern const struct conformance_op conformance_op_##NAME;                                      \
    const struct conformance_op conformance_op_##NAME = {                                          \
        .name = #NAME, .oracle = ORACLE, .cases = CASES, .bound = BOUND, .why = WHY, __VA_ARGS__}
#define PLAIN .magnitude = NULL

// In an oracle's result: this element must not have been written.
#define ORACLE_UNTOUCHED (-0x1.8p1020)

// Rounding unit: half the distance from 1 to the next number.
#define UNIT_F32 0x1p-24
#define UNIT_F16 0x1p-11
#define UNIT_BF16 0x1p-8

struct conformance_extents {
    int64_t ne[GGML_MAX_DIMS];
};

enum conformance_layout {
    PACKED,
    GAPS,       // a window of a larger tensor: rows and planes are not adjacent
    PERMUTED,   // dims 1 and 2 exchanged in memory; rows are dense
    ROTATED,    // dims 1, 2, 3 stored as 2, 3, 1; rows are dense
    TRANSPOSED, // dims 0 and 1 exchanged in memory; unquantised types only
    N_LAYOUTS
};

enum conformance_fill_kind {
    FILL_UNIFORM,  // in [low, high)
    FILL_INTEGER,  // whole numbers in [low, high)
    FILL_DISTINCT, // whole numbers from low on, each once per row, in random order
    FILL_CYCLE,    // values[0], values[1], ...
    FILL_RAMP,     // low, low + high, low + 2 high, ...
};

struct conformance_fill {
    enum conformance_fill_kind kind;
    double low;
    double high;
    const double *values;
    int n_values;
};

struct conformance_operand {
    struct ggml_tensor *tensor;
    struct conformance_fill fill;
};

struct conformance {
    const struct conformance_options *options;
    struct conformance_report *report;
    const struct conformance_op *op;
    struct ggml_context *ctx; // emptied for each case; tensors get memory in conformance_check()
    ggml_backend_dev_t device;
    ggml_backend_t stream;
    struct test_random random;
    int64_t n_seen;    // cases that went by, selected or not
    int64_t n_claimed; // of this row
    // Combinations of kinds of types (of the result and three sources) that cases of this row had.
    bool has_kinds[CONFORMANCE_KINDS * CONFORMANCE_KINDS * CONFORMANCE_KINDS * CONFORMANCE_KINDS];
    uint64_t *seen; // hashes of their names
    size_t n_names;
    char name[192];
    char text[8][48];
    int n_text;
    struct conformance_operand operands[CONFORMANCE_MAX_OPERANDS];
    int n_operands;
    double bound;                               // of this case; starts as the op's
    struct conformance_memory *memory;          // table.h
    struct conformance_claims *claims;          // claims.h; NULL unless asked for
    ggml_backend_set_n_threads_t set_n_threads; // NULL unless results of thread counts are compared
};

// Begins the case of that name (after the op's and a '/'). False if it is not to be run.
bool conformance_case(struct conformance *c, const char *format, ...) GGML_ATTRIBUTE_FORMAT(2, 3);
// Another bound for this case, where it depends on extents or types.
void conformance_bound(struct conformance *c, double bound);
// Computes the node and what it depends on, and checks and counts it.
void conformance_check(struct conformance *c, struct ggml_tensor *node);

// Operands. Unquantised numbers are uniform in [-1, 1) unless a range is given; blocks of quantised
// types are random bits with sane scales.
struct ggml_tensor *conformance_input(struct conformance *c, enum ggml_type type,
                                      struct conformance_extents extents,
                                      enum conformance_layout layout);
struct ggml_tensor *conformance_range(struct conformance *c, enum ggml_type type,
                                      struct conformance_extents extents,
                                      enum conformance_layout layout, double low, double high);
// Whole numbers below n in I32 or I64 (or any other unquantised type).
struct ggml_tensor *conformance_indices(struct conformance *c, enum ggml_type type,
                                        struct conformance_extents extents,
                                        enum conformance_layout layout, int64_t n);
struct ggml_tensor *conformance_filled(struct conformance *c, enum ggml_type type,
                                       struct conformance_extents extents,
                                       enum conformance_layout layout,
                                       struct conformance_fill fill);
// Has the elements of a tensor made otherwise (a view of something) filled.
void conformance_fill(struct conformance *c, struct ggml_tensor *tensor,
                      struct conformance_fill fill);

// Whether such a tensor can be made at all: whole blocks, rows of blocks not cut.
bool conformance_can_lay_out(enum ggml_type type, struct conformance_extents extents,
                             enum conformance_layout layout);
const char *conformance_layout_name(enum conformance_layout layout);
// "33x5x3x2", without extents of 1 at the end; valid until the end of the case.
const char *conformance_shape(struct conformance *c, struct conformance_extents extents);

static inline struct conformance_extents extents(int64_t ne0, int64_t ne1, int64_t ne2,
                                                 int64_t ne3) {
    return (struct conformance_extents){{ne0, ne1, ne2, ne3}};
}

// Extents that cover: one element, odd, prime, block multiples, more planes, many elements, none.
extern const struct conformance_extents conformance_shapes[];
extern const int conformance_n_shapes;
// The first ones of them are enough for types and layouts that differ little.
enum { CONFORMANCE_FEW_SHAPES = 5 };

// Rows so long that a loop over them in one piece, or shared by a few invocations, is cut by
// drivers that limit loops. For operations whose result or sums run along dimension 0.
extern const struct conformance_extents conformance_long_rows[];
extern const int conformance_n_long_rows;

// Every type whose blocks the oracle can decode and that can be a weight.
extern const enum ggml_type conformance_quants[];
extern const int conformance_n_quants;
// F32, F16, BF16.
extern const enum ggml_type conformance_floats[3];

static inline double conformance_unit(enum ggml_type type) {
    return type == GGML_TYPE_F16 ? UNIT_F16 : type == GGML_TYPE_BF16 ? UNIT_BF16 : UNIT_F32;
}

static inline float conformance_param_f32(const struct ggml_tensor *node, int slot) {
    float value;
    memcpy(&value, &node->op_params[slot], sizeof(value));
    return value;
}

#endif
