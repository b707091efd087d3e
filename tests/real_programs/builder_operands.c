// SPDX-License-Identifier: MIT
// The calls of builder_diff: base cases, random changes of them, and their operands.
#include "builder_diff.h"

#include "builder_calls.inl"

// --- random numbers ------------------------------------------------------------------------------

uint64_t random_state;

static uint64_t next_random(void) { // splitmix64
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int below(int n) {
    return (int)(next_random() % (uint64_t)n);
}

float uniform(float low, float high) {
    return low + (high - low) * (float)(next_random() >> 40) / (float)(1 << 24);
}

// --- operands ------------------------------------------------------------------------------------

struct ggml_tensor *make_operand(const struct library *lib, struct ggml_context *ctx,
                                 const struct argument *arg, enum ggml_type type,
                                 struct operand *operand) {
    const int side = lib->ours;
    int64_t ne[4];
    memcpy(ne, arg->ne, sizeof(ne));
    if (operand->layout == PERMUTED) {
        for (int i = 0; i < 4; ++i)
            ne[operand->order[i]] = arg->ne[i];
        struct ggml_tensor *root = operand->root[side] = lib->ggml_new_tensor(ctx, type, 4, ne);
        // permute() says where each dimension of its operand goes
        int where[4];
        for (int i = 0; i < 4; ++i)
            where[operand->order[i]] = i;
        return lib->ggml_permute(ctx, root, where[0], where[1], where[2], where[3]);
    }
    if (operand->layout == GAPPED) {
        const int64_t block = lib->ggml_blck_size(type);
        ne[0] += block;
        ne[1] += 1;
        struct ggml_tensor *root = operand->root[side] = lib->ggml_new_tensor(ctx, type, 4, ne);
        return lib->ggml_view_4d(ctx, root, arg->ne[0], arg->ne[1], arg->ne[2], arg->ne[3],
                                 root->nb[1], root->nb[2], root->nb[3], 0);
    }
    return operand->root[side] = lib->ggml_new_tensor(ctx, type, 4, ne);
}

enum ggml_type find_type(const struct library *lib, const char *name) {
    for (int t = 0; t < GGML_TYPE_COUNT; ++t) {
        if (lib->ggml_blck_size((enum ggml_type)t) > 0 &&
            strcmp(lib->ggml_type_name((enum ggml_type)t), name) == 0) {
            return (enum ggml_type)t;
        }
    }
    fprintf(stderr, "builder_diff: no type %s\n", name);
    exit(2);
}

// --- random changes of a base case ---------------------------------------------------------------

static int64_t random_extent(void) {
    static const int64_t extents[] = {0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 31, 32, 33, 64, 100};
    return extents[below(sizeof(extents) / sizeof(extents[0]))];
}

static void change_tensor(struct base_case *c, struct argument *arg) {
    static const char *const types[] = {"f32",  "f32",  "f16", "f16", "bf16", "q8_0",  "q4_0",
                                        "q5_1", "q6_K", "i32", "i64", "i16",  "iq4_nl"};
    const int d = below(4);
    const int64_t old = arg->ne[d];
    switch (below(4)) {
    case 0: arg->ne[d] = random_extent(); break;
    case 1: arg->type = types[below(sizeof(types) / sizeof(types[0]))]; break;
    case 2: // every operand that agrees goes along
        arg->ne[d] = random_extent();
        for (int i = 0; i < c->n_args; ++i) {
            for (int e = 0; e < 4; ++e) {
                if (c->args[i].kind == 't' && c->args[i].ne[e] == old && old > 1)
                    c->args[i].ne[e] = arg->ne[d];
            }
        }
        break;
    default: { // two extents change places
        const int other = below(4);
        arg->ne[d] = arg->ne[other];
        arg->ne[other] = old;
    }
    }
}

static void change_number(struct argument *arg) {
    static const int64_t whole[] = {-1, 0, 1, 2, 3, 4, 5, 7, 8, 16, 31, 64};
    static const double real[] = {0, -1, 0.5, 1, 2, 8, 1e-5};
    const size_t n_whole = sizeof(whole) / sizeof(whole[0]);
    if (arg->kind == 'i') arg->number = (double)whole[below((int)n_whole)];
    if (arg->kind == 'f') arg->number = real[below(sizeof(real) / sizeof(real[0]))];
    if (arg->kind == 'a' || arg->kind == 'n') {
        arg->array[below(4)] = whole[below((int)n_whole)];
    }
}

struct base_case random_case(long number, uint64_t seed, const char *only) {
    random_state = seed * 1000003u + (uint64_t)number;
    const int n_bases = (int)(sizeof(base_cases) / sizeof(base_cases[0]));
    struct base_case c = base_cases[number % n_bases];
    while (only != NULL && strcmp(builders[c.builder].name, only) != 0)
        c = base_cases[below(n_bases)];
    for (int i = 0; i < c.n_args; ++i)
        c.args[i].was_float =
            c.args[i].kind == 't' && !c.args[i].absent && c.args[i].type[0] != 'i';
    const int n_changes = number < n_bases ? 0 : below(4);
    for (int i = 0; i < n_changes && c.n_args > 0; ++i) {
        struct argument *arg = &c.args[below(c.n_args)];
        if (arg->kind == 't') {
            if (!arg->absent) change_tensor(&c, arg);
        } else if (!arg->fixed) {
            change_number(arg);
        }
    }
    return c;
}

void random_layouts(const struct base_case *c, long number, struct operand *operands) {
    for (int i = 0; i < c->n_args; ++i) {
        const int choice = number < 1000 ? 0 : below(8);
        operands[i] = (struct operand){.layout = choice == 6   ? PERMUTED
                                                 : choice == 7 ? GAPPED
                                                               : PACKED};
        int *order = operands[i].order;
        for (int d = 0; d < 4; ++d)
            order[d] = d;
        for (int d = 3; d > 0; --d) {
            const int other = below(d + 1), kept = order[d];
            order[d] = order[other];
            order[other] = kept;
        }
    }
}

// Quantised rows can't be taken apart.
bool possible(const struct library *lib, const struct base_case *c, struct operand *operands) {
    for (int i = 0; i < c->n_args; ++i) {
        const struct argument *arg = &c->args[i];
        if (arg->kind != 't' || arg->absent) continue;
        const int64_t block = lib->ggml_blck_size(find_type(lib, arg->type));
        if (arg->ne[0] % block != 0) return false;
        if (operands[i].layout == PERMUTED && block > 1) operands[i].layout = PACKED;
        if (arg->ne[0] * arg->ne[1] * arg->ne[2] * arg->ne[3] > 1 << 18) return false;
    }
    return true;
}

void describe(const struct base_case *c, const struct operand *operands) {
    printf("%s(", builders[c->builder].name);
    for (int i = 0; i < c->n_args; ++i) {
        const struct argument *arg = &c->args[i];
        if (i > 0) printf(", ");
        if (arg->kind == 't' && arg->absent) {
            printf("NULL");
        } else if (arg->kind == 't') {
            printf("%s[%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "]", arg->type, arg->ne[0],
                   arg->ne[1], arg->ne[2], arg->ne[3]);
            if (operands != NULL && operands[i].layout == GAPPED) printf(" with gaps");
            if (operands != NULL && operands[i].layout == PERMUTED) {
                const int *order = operands[i].order;
                printf(" permuted %d%d%d%d", order[0], order[1], order[2], order[3]);
            }
        } else if (arg->kind == 'a' || arg->kind == 'n') {
            printf("{%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "}", arg->array[0],
                   arg->array[1], arg->array[2], arg->array[3]);
        } else {
            printf("%g", arg->number);
        }
    }
    printf(")\n");
}
