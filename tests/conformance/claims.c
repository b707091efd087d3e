// SPDX-License-Identifier: MIT
// Records which combinations of types the cases of an operation used, then tries the node with
// every other type that the device claims to support.
#include "claims.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "oracle/quant_bound.h"
#include "table.h"

// Slot 0 is the result, slot n + 1 source n; the types of sources above those vary little.
enum { N_SLOTS = 4, N_EXAMPLES = 6, MAX_SIGNATURES = 4096, NO_TYPE = GGML_TYPE_COUNT };

struct signature {
    uint8_t type[N_SLOTS];
};

// A node that passed, to be computed again with other types.
struct example {
    struct ggml_tensor node;
    struct ggml_tensor src[GGML_MAX_SRC];
    struct conformance_fill fill[GGML_MAX_SRC];
    double bound;
};

struct conformance_claims {
    struct signature signatures[MAX_SIGNATURES];
    int n_signatures;
    struct example examples[N_EXAMPLES];
    int n_examples;
    bool checking; // no more examples are taken
};

struct conformance_claims *conformance_claims_new(void) {
    return calloc(1, sizeof(struct conformance_claims));
}

void conformance_claims_free(struct conformance_claims *claims) {
    free(claims);
}

void conformance_claims_begin(struct conformance_claims *claims) {
    claims->n_signatures = 0;
    claims->n_examples = 0;
}

static struct signature signature_of(const struct ggml_tensor *node) {
    struct signature s = {{(uint8_t)node->type}};
    for (int i = 1; i < N_SLOTS; ++i)
        s.type[i] = node->src[i - 1] ? (uint8_t)node->src[i - 1]->type : NO_TYPE;
    return s;
}

static bool is_known(const struct conformance_claims *claims, struct signature s) {
    for (int i = 0; i < claims->n_signatures; ++i) {
        if (memcmp(&claims->signatures[i], &s, sizeof(s)) == 0) return true;
    }
    return false;
}

static void add_signature(struct conformance_claims *claims, struct signature s) {
    if (is_known(claims, s) || claims->n_signatures == MAX_SIGNATURES) return;
    claims->signatures[claims->n_signatures++] = s;
}

static bool same_sources(const struct ggml_tensor *a, const struct ggml_tensor *b) {
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
        if (!a->src[i] != !b->src[i]) return false;
    }
    return true;
}

// Rows that may be of any type: whole blocks.
static bool has_whole_blocks(const struct ggml_tensor *node) {
    bool whole = node->ne[0] % 256 == 0 && ggml_nelements(node) > 0;
    if (node->src[0]) whole = whole || (node->src[0]->ne[0] % 256 == 0 && node->ne[0] > 0);
    return whole;
}

static struct conformance_fill fill_of(const struct conformance *c,
                                       const struct ggml_tensor *tensor) {
    for (int i = 0; i < c->n_operands; ++i) {
        if (c->operands[i].tensor == tensor) return c->operands[i].fill;
    }
    return (struct conformance_fill){FILL_UNIFORM, -1, 1, NULL, 0};
}

static void copy_example(const struct conformance *c, struct example *out,
                         const struct ggml_tensor *node) {
    out->node = *node;
    out->bound = c->bound;
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
        if (!node->src[i]) continue;
        out->src[i] = *node->src[i];
        out->fill[i] = fill_of(c, node->src[i]);
        out->node.src[i] = &out->src[i];
    }
}

void conformance_claims_note(struct conformance *c, const struct ggml_tensor *node) {
    struct conformance_claims *claims = c->claims;
    // What has no elements is supported whatever its types are: that says nothing of others.
    if (claims->checking || ggml_nelements(node) == 0) return;
    add_signature(claims, signature_of(node));
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
        if (node->src[i] == node) return;
    }
    for (int i = 0; i < claims->n_examples; ++i) {
        if (!same_sources(&claims->examples[i].node, node)) continue;
        if (!has_whole_blocks(&claims->examples[i].node) && has_whole_blocks(node))
            copy_example(c, &claims->examples[i], node);
        return;
    }
    if (claims->n_examples < N_EXAMPLES)
        copy_example(c, &claims->examples[claims->n_examples++], node);
}

// The same extents, packed, in another type; false if its blocks do not fit.
static bool retype(struct ggml_tensor *t, enum ggml_type type) {
    if (ggml_blck_size(type) == 0 || t->ne[0] % ggml_blck_size(type) != 0) return false;
    t->type = type;
    t->nb[0] = ggml_type_size(type);
    t->nb[1] = ggml_row_size(type, t->ne[0]);
    t->nb[2] = t->nb[1] * (size_t)t->ne[1];
    t->nb[3] = t->nb[2] * (size_t)t->ne[2];
    return true;
}

// Whether the source is where the result goes, and so of its type.
static bool shares_memory(const struct ggml_tensor *node, const struct ggml_tensor *src) {
    const struct ggml_tensor *owner = src->view_src ? src->view_src : src;
    return node->view_src && (src->data == node->data || owner->data == node->view_src->data);
}

// Combination k of the types of all slots; false if there is no such.
static bool retype_all(struct ggml_tensor *const slot[N_SLOTS], int64_t k) {
    for (int i = 0; i < N_SLOTS; ++i) {
        if (!slot[i]) continue;
        const bool tied = i > 0 && shares_memory(slot[0], slot[i]);
        if (!retype(slot[i], tied ? slot[0]->type : (enum ggml_type)(k % GGML_TYPE_COUNT)))
            return false;
        if (!tied) k /= GGML_TYPE_COUNT;
    }
    return true;
}

static bool is_whole(enum ggml_type type) {
    return type == GGML_TYPE_I8 || type == GGML_TYPE_I16 || type == GGML_TYPE_I32 ||
           type == GGML_TYPE_I64;
}

// What the types of the node allow for, given what an example with others is allowed.
static double bound_of(const struct ggml_tensor *node, const struct example *base) {
    double bound = base->bound, unit = 0;
    bool quantised = false;
    for (int i = 0; i < GGML_MAX_SRC && node->src[i]; ++i) {
        // Read as F32 first, so rounded twice.
        if (node->src[i]->type == GGML_TYPE_F64 && node->type != GGML_TYPE_F64 &&
            !is_whole(node->type) && bound == 0)
            bound = UNIT_F32 * UNIT_F32;
        quantised = quantised || ggml_is_quantized(node->src[i]->type);
        if (node->src[i]->type != GGML_TYPE_F32)
            unit = fmax(unit, conformance_unit(node->src[i]->type));
    }
    if (is_whole(node->type)) return bound;
    if (ggml_is_quantized(node->type)) {
        if (node->src[0] && node->src[0]->type == node->type && bound == 0) return 0;
        // Sums and products of decoded blocks have longer tails than uniform numbers.
        return fmin(0.95, fmax(bound, 16 * conformance_quant_bound(node->type)));
    }
    if (base->node.op == GGML_OP_MUL_MAT || base->node.op == GGML_OP_MUL_MAT_ID ||
        base->node.op == GGML_OP_OUT_PROD || base->node.op == GGML_OP_FLASH_ATTN_EXT) {
        return fmax(bound, quantised ? 2.5e-4 : unit * unit);
    }
    return bound == 0 && quantised ? 64 * UNIT_F32 * UNIT_F32 : bound;
}

// Numbers for source i: those of the example, but not fractions for a whole type.
static struct conformance_fill fill_for(const struct example *base, const struct ggml_tensor *node,
                                        int i) {
    struct conformance_fill fill = base->fill[i];
    if (fill.kind == FILL_UNIFORM && (is_whole(node->type) || is_whole(node->src[i]->type)) &&
        fill.high - fill.low < 100) {
        fill.low *= 50;
        fill.high *= 50;
    }
    return fill;
}

// Makes the node described by `like`, packed, with operands of its own.
static struct ggml_tensor *make_node(struct conformance *c, const struct example *base,
                                     const struct ggml_tensor *like) {
    struct ggml_tensor *src[GGML_MAX_SRC] = {NULL};
    struct ggml_tensor *node = NULL;
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
        if (!like->src[i]) continue;
        src[i] = ggml_new_tensor(c->ctx, like->src[i]->type, GGML_MAX_DIMS, like->src[i]->ne);
        conformance_fill(c, src[i], fill_for(base, like, i));
        if (shares_memory(&base->node, &base->src[i])) node = ggml_view_tensor(c->ctx, src[i]);
    }
    if (!node) node = ggml_new_tensor(c->ctx, like->type, GGML_MAX_DIMS, like->ne);
    node->op = like->op;
    memcpy(node->op_params, like->op_params, sizeof(node->op_params));
    memcpy(node->src, src, sizeof(src));
    return node;
}

static void compute_claim(struct conformance *c, const struct example *base,
                          const struct ggml_tensor *like) {
    const struct signature s = signature_of(like);
    char types[64];
    int n = snprintf(types, sizeof(types), "%s", ggml_type_name(like->type));
    for (int i = 1; i < N_SLOTS && s.type[i] != NO_TYPE; ++i)
        n += snprintf(types + n, sizeof(types) - (size_t)n, ",%s",
                      ggml_type_name((enum ggml_type)s.type[i]));
    if (!conformance_case(c, "claimed/%s", types)) return;
    for (int i = 0; i < N_SLOTS; ++i) {
        const uint8_t zeros[512] = {0};
        if (s.type[i] != NO_TYPE && isnan(oracle_element((enum ggml_type)s.type[i], zeros, 0))) {
            conformance_fail(c, "claimed to be supported, but the type has no oracle");
            return;
        }
    }
    conformance_bound(c, bound_of(like, base));
    conformance_check(c, make_node(c, base, like));
}

static void check_example(struct conformance *c, const struct example *base) {
    struct example e = *base;
    for (int i = 0; i < GGML_MAX_SRC; ++i)
        e.node.src[i] = base->node.src[i] ? &e.src[i] : NULL;
    struct ggml_tensor *slot[N_SLOTS] = {&e.node, e.node.src[0], e.node.src[1], e.node.src[2]};
    int64_t n = 1;
    for (int i = 0; i < N_SLOTS; ++i)
        n *= slot[i] && !(i > 0 && shares_memory(&e.node, slot[i])) ? GGML_TYPE_COUNT : 1;
    for (int64_t k = 0; k < n; ++k) {
        if (!retype_all(slot, k) || !ggml_backend_dev_supports_op(c->device, &e.node)) continue;
        const struct signature claimed = signature_of(&e.node);
        if (is_known(c->claims, claimed)) continue;
        add_signature(c->claims, claimed);
        compute_claim(c, base, &e.node);
    }
}

bool conformance_claims_checking(const struct conformance_claims *claims) {
    return claims->checking;
}

void conformance_claims_check(struct conformance *c) {
    c->claims->checking = true;
    for (int i = 0; i < c->claims->n_examples; ++i)
        check_example(c, &c->claims->examples[i]);
    c->claims->checking = false;
}
