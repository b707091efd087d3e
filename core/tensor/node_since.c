// SPDX-License-Identifier: MIT
// Which contract minor a node needs: tables from the lists of operations give the minor of each
// operation, parameter, source and value. A node needs the newest of those that it uses; parameters
// of 0 count as unused.
#include "tensor/node_since.h"

#include <stdbool.h>

#include "ggml-plugin.h"
#include "ggml-shape.h"

enum {
    N_WORDS = GGML_MAX_OP_PARAMS / (int)sizeof(int32_t),
    NOT_KNOWN = GGML_CONTRACT_MINOR + 1,
};

enum part_kind { PART_WORDS, PART_SOURCE, PART_VALUES };

// Parameter words of a node, a source that came after the operation, or values that some bits of a
// word may have. n = 0 ends a list.
struct node_part {
    uint8_t kind;  // enum part_kind
    uint8_t first; // word or slot
    uint8_t n;     // words; sources, 1; bits
    uint8_t since;
    uint8_t first_bit; // of values
    uint64_t values;   // bit v: v has a meaning
};

struct op_parts {
    bool known; // false: the number is not in use
    uint8_t since;
    uint8_t max_src;
    struct node_part parts[N_WORDS + GGML_MAX_SRC + 1];
};

#define GGML_OP_PARAM(text, word, n, since) {PART_WORDS, word, n, since, 0, 0},
#define GGML_OP_SRC(slot, since) {PART_SOURCE, slot, 1, since, 0, 0},
#define GGML_OP_VALUES(word, first, n, set, since) {PART_VALUES, word, n, since, first, set},
#define GGML_OP_ROW(number, name, symbol, min, max, type, shape, cost, flops, flags, builders,     \
                    since, more)                                                                   \
    [number] = {true, since, max, {more{0}}},
static const struct op_parts op_parts[GGML_OP_COUNT] = {
#include "op_list.inl"
};

#define GGML_OP_PARAM(text, word, n, since) {PART_WORDS, word, n, since, 0, 0},
#define GGML_UNARY_ROW(number, name, since, params) [number] = {true, since, 0, {params{0}}},
static const struct op_parts unary_parts[GGML_UNARY_OP_COUNT] = {
#include "unary_list.inl"
};

#define GGML_OP_PARAM(text, word, n, since) {PART_WORDS, word, n, since, 0, 0},
#define GGML_GLU_ROW(number, name, since, params) [number] = {true, since, 0, {params{0}}},
static const struct op_parts glu_parts[GGML_GLU_OP_COUNT] = {
#include "glu_list.inl"
};

// Whether the node uses the part.
static bool is_used(const struct node_part *part, const struct ggml_tensor *node) {
    if (part->kind == PART_SOURCE) return node->src[part->first] != NULL;
    for (int i = part->first; i < part->first + part->n; ++i)
        if (node->op_params[i] != 0) return true;
    return false;
}

// Values of the same bits of a word, which rows of several minors extend.
static bool is_same_word(const struct node_part *a, const struct node_part *b) {
    return b->kind == PART_VALUES && a->first == b->first && a->first_bit == b->first_bit;
}

// The earliest minor in which the value has a meaning; `part` is the first row for its bits.
static int value_needs(const struct node_part *part, const struct ggml_tensor *node) {
    const int32_t word = node->op_params[part->first];
    int needs = NOT_KNOWN;
    for (const struct node_part *row = part; row->n != 0; ++row)
        if (is_same_word(part, row) && ggml_is_value(word, row->first_bit, row->n, row->values))
            needs = MIN(needs, row->since);
    return needs;
}

// Each group of rows is evaluated once, at its first row.
static bool is_first_row(const struct node_part *parts, const struct node_part *part) {
    for (; parts < part; ++parts)
        if (is_same_word(part, parts)) return false;
    return true;
}

// The newest minor among the parts that the node uses; adds their words to *known_words.
static int parts_need(const struct op_parts *op, const struct ggml_tensor *node,
                      uint32_t *known_words) {
    int needs = op->since;
    for (const struct node_part *part = op->parts; part->n != 0; ++part) {
        if (part->kind == PART_VALUES) {
            if (is_first_row(op->parts, part)) needs = MAX(needs, value_needs(part, node));
            continue;
        }
        if (part->kind == PART_WORDS) *known_words |= ((UINT32_C(1) << part->n) - 1) << part->first;
        if (part->since > needs && is_used(part, node)) needs = part->since;
    }
    return needs;
}

// Parts of node->op; NULL if this host does not know the operation.
static const struct op_parts *find_op(const struct ggml_tensor *node) {
    const int op = (int)node->op;
    return op >= 0 && op < GGML_OP_COUNT && op_parts[op].known ? &op_parts[op] : NULL;
}

// Parts of the sub-operation of UNARY or GLU; NULL if it is unknown.
static const struct op_parts *find_sub_op(const struct ggml_tensor *node) {
    const int sub = ggml_get_op_params_i32(node, 0);
    const int count = node->op == GGML_OP_UNARY ? GGML_UNARY_OP_COUNT : GGML_GLU_OP_COUNT;
    if (sub < 0 || sub >= count) return NULL;
    const struct op_parts *parts = node->op == GGML_OP_UNARY ? unary_parts : glu_parts;
    return parts[sub].known ? &parts[sub] : NULL;
}

// Numbers for private use, which the contract never assigns.
static bool is_private(const struct ggml_tensor *node) {
    const bool has_sub_op = node->op == GGML_OP_UNARY || node->op == GGML_OP_GLU;
    return (int)node->op >= GGML_FIRST_PRIVATE ||
           (has_sub_op && ggml_get_op_params_i32(node, 0) >= GGML_FIRST_PRIVATE);
}

// A non-zero parameter that no list mentions has an unknown meaning.
static bool has_unknown_word(const struct ggml_tensor *node, uint32_t known_words) {
    for (int i = 0; i < N_WORDS; ++i)
        if (node->op_params[i] != 0 && !(known_words >> i & 1)) return true;
    return false;
}

// What operation, parameters and number of sources need.
static int op_needs(const struct ggml_tensor *node) {
    uint32_t known_words = 0;
    if (is_private(node)) return 0;
    const struct op_parts *op = find_op(node);
    if (!op) return NOT_KNOWN;
    int needs = parts_need(op, node, &known_words);
    if (node->op == GGML_OP_UNARY || node->op == GGML_OP_GLU) {
        const struct op_parts *sub_op = find_sub_op(node);
        if (!sub_op) return NOT_KNOWN;
        needs = MAX(needs, parts_need(sub_op, node, &known_words));
    }
    for (int i = op->max_src; i < GGML_MAX_SRC; ++i)
        if (node->src[i]) return NOT_KNOWN;
    return has_unknown_word(node, known_words) ? NOT_KNOWN : needs;
}

// O(parameters + sources); called only for plugins older than this host.
int op_needs_minor(const struct ggml_tensor *node) {
    int needs = MAX(op_needs(node), op_tensor_needs_minor(node));
    for (int i = 0; i < GGML_MAX_SRC; ++i)
        if (node->src[i]) needs = MAX(needs, op_tensor_needs_minor(node->src[i]));
    return needs;
}
