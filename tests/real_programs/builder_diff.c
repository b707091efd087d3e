// SPDX-License-Identifier: MIT
// Calls the graph builders of two libraries with the same random operands and compares what they
// make, and what their CPU devices compute from it. What the first builds and computes the second
// must build and compute too, with the same result.
//
// usage: builder_diff [--first N] [--cases N] [--seed N] [--only BUILDER] [--no-compute]
// [--verbose]
//                     THEIR-BASE THEIR-REGISTRY OUR-LIBRARY
//
// Each case runs in a process of its own: a crash of the second library is a failure, one of the
// first is not.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ggml-backend.h"
#include "ggml.h"

enum { MAX_ARGS = 16, MAX_SHOWN = 3, CASE_SECONDS = 10 };

// --- what is called, with what -------------------------------------------------------------------

union value {
    struct ggml_tensor *t;
    int64_t i;
    float f;
    int a[4];
    int64_t n[4];
};

struct builder {
    const char *name;
    struct ggml_tensor *(*call)(void *function, struct ggml_context *ctx,
                                const union value *values);
};

enum bounded { ANY_NUMBER, BOUND_NUMBER, BOUND_EXTENT, POSITIVE };

struct argument {
    char kind; // 't' tensor, 'i' whole number, 'f' number, 'a' four ints, 'n' four int64_t
    const char *type;
    int64_t ne[4];
    bool absent;
    bool distinct;  // no number twice
    bool fixed;     // is never changed
    bool was_float; // in the base case
    enum bounded bounded;
    int bound, bound_of, bound_dim;
    double number;
    int64_t array[4];
};

struct base_case {
    int builder;
    int n_args;
    struct argument args[MAX_ARGS];
};

#include "builder_calls.inl"

// --- random numbers ------------------------------------------------------------------------------

static uint64_t random_state;

static uint64_t next_random(void) { // splitmix64
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int below(int n) {
    return (int)(next_random() % (uint64_t)n);
}

static float uniform(float low, float high) {
    return low + (high - low) * (float)(next_random() >> 40) / (float)(1 << 24);
}

// --- the libraries -------------------------------------------------------------------------------

#define FUNCTIONS(X)                                                                               \
    X(ggml_init)                                                                                   \
    X(ggml_free)                                                                                   \
    X(ggml_new_tensor)                                                                             \
    X(ggml_view_4d)                                                                                \
    X(ggml_permute)                                                                                \
    X(ggml_new_graph)                                                                              \
    X(ggml_build_forward_expand)                                                                   \
    X(ggml_nbytes)                                                                                 \
    X(ggml_nelements)                                                                              \
    X(ggml_op_desc)                                                                                \
    X(ggml_type_name)                                                                              \
    X(ggml_get_type_traits)                                                                        \
    X(ggml_quantize_chunk) X(ggml_is_quantized) X(ggml_graph_n_nodes) X(ggml_graph_node)           \
        X(ggml_set_abort_callback) X(ggml_quantize_requires_imatrix) X(ggml_blck_size)             \
            X(ggml_row_size)

#define BACKEND_FUNCTIONS(X)                                                                       \
    X(ggml_backend_alloc_ctx_tensors)                                                              \
    X(ggml_backend_tensor_set)                                                                     \
    X(ggml_backend_tensor_get)                                                                     \
    X(ggml_backend_graph_compute)                                                                  \
    X(ggml_backend_dev_supports_op)                                                                \
    X(ggml_backend_buffer_free) X(ggml_backend_get_device) X(ggml_backend_buffer_clear)

struct library {
    const char *label;
    bool ours;
    void *base, *registry;
    ggml_backend_t cpu;
#define MEMBER(name) __typeof__(name) *name;
    FUNCTIONS(MEMBER) BACKEND_FUNCTIONS(MEMBER) void *functions[N_BUILDERS];
    bool (*is_error)(const struct ggml_tensor *);
    const char *(*last_error)(void);
};

static void *need(void *handle, const char *name) {
    void *symbol = dlsym(handle, name);
    if (symbol != NULL) return symbol;
    fprintf(stderr, "builder_diff: no function %s\n", name);
    exit(2);
}

static void *open_library(const char *path) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle != NULL) return handle;
    fprintf(stderr, "builder_diff: %s\n", dlerror());
    exit(2);
}

static void load(struct library *lib, const char *base, const char *registry) {
    lib->registry = open_library(registry);
    lib->base = open_library(base);
#define LOAD(name) lib->name = (__typeof__(lib->name))need(lib->base, #name);
    FUNCTIONS(LOAD)
    BACKEND_FUNCTIONS(LOAD)
    for (int i = 0; i < N_BUILDERS; ++i)
        lib->functions[i] = need(lib->base, builders[i].name);
    if (lib->ours) {
        lib->is_error =
            (bool (*)(const struct ggml_tensor *))need(lib->base, "ggml_tensor_is_error");
        lib->last_error = (const char *(*)(void))need(lib->base, "ggml_last_error");
    }
}

static void start_cpu(struct library *lib) {
    ((void (*)(void))need(lib->registry, "ggml_backend_load_all"))();
    lib->cpu = ((ggml_backend_t(*)(const char *, const char *))need(
        lib->registry, "ggml_backend_init_by_name"))("CPU", NULL);
    if (lib->cpu != NULL) return;
    fprintf(stderr, "builder_diff: %s has no CPU device\n", lib->label);
    exit(2);
}

// --- progress, shared with the child -------------------------------------------------------------

enum finding { REFUSED, DIFFERENT, UNSUPPORTED, WRONG, CRASHED, N_FINDINGS };
static const char *const finding_names[] = {"refused", "different", "unsupported", "wrong",
                                            "crashed"};

struct progress {
    long current;        // case under way
    bool in_ours;        // the second library is at work
    bool theirs_has_run; // and may have damaged memory
    long compared, computed, refused_by_both, accepted_by_ours_only, crashes_of_theirs;
    long theirs_at_fault; // with operands that are not packed
    long found[N_BUILDERS][N_FINDINGS];
};
static struct progress *progress;
static bool verbose;

enum layout { PACKED, PERMUTED, GAPPED };

struct operand {
    enum layout layout;
    int order[4]; // PERMUTED: dimension i of the operand is dimension order[i] of its storage
    struct ggml_tensor *root[2];
};

static void describe(const struct base_case *c, const struct operand *operands);

__attribute__((format(printf, 4, 5))) static void report(const struct base_case *c,
                                                         enum finding finding,
                                                         const struct operand *operands,
                                                         const char *format, ...) {
    if (progress->found[c->builder][finding]++ >= MAX_SHOWN && !verbose) return;
    printf("%s: %s: case %ld: ", builders[c->builder].name, finding_names[finding],
           progress->current);
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n    ");
    describe(c, operands);
    fflush(stdout);
}

// --- refusals of the first library are aborts ----------------------------------------------------

static jmp_buf refused;
static bool may_refuse;

static void on_abort(const char *message) {
    (void)message;
    if (may_refuse) longjmp(refused, 1);
    _exit(77); // while it computes: the case is nobody's failure
}

static struct ggml_tensor *call_builder(const struct library *lib, const struct base_case *c,
                                        struct ggml_context *ctx, const union value *values) {
    struct ggml_tensor *volatile result = NULL;
    progress->in_ours = lib->ours;
    may_refuse = !lib->ours;
    if (!lib->ours && setjmp(refused) != 0) {
        may_refuse = false;
        return NULL;
    }
    result = builders[c->builder].call(lib->functions[c->builder], ctx, values);
    may_refuse = false;
    progress->in_ours = false;
    return lib->is_error != NULL && lib->is_error(result) ? NULL : result;
}

// --- operands ------------------------------------------------------------------------------------

static struct ggml_tensor *make_operand(const struct library *lib, struct ggml_context *ctx,
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

static enum ggml_type find_type(const struct library *lib, const char *name) {
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

static struct base_case random_case(long number, uint64_t seed, const char *only) {
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

static void random_layouts(const struct base_case *c, long number, struct operand *operands) {
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
static bool possible(const struct library *lib, const struct base_case *c,
                     struct operand *operands) {
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

static void describe(const struct base_case *c, const struct operand *operands) {
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

// --- comparing nodes -----------------------------------------------------------------------------

static const char *node_difference(const struct library *a, const struct ggml_tensor *t,
                                   const struct ggml_tensor *o) {
    static char text[256];
    if (t->type != o->type) {
        snprintf(text, sizeof(text), "type %s, ours %s", a->ggml_type_name(t->type),
                 a->ggml_type_name(o->type));
        return text;
    }
    if (t->op != o->op) {
        snprintf(text, sizeof(text), "op %d, ours %d", t->op, o->op);
        return text;
    }
    for (int i = 0; i < 4; ++i) {
        if (t->ne[i] == o->ne[i] && t->nb[i] == o->nb[i]) continue;
        snprintf(text, sizeof(text), "ne%d %" PRId64 " nb%d %zu, ours %" PRId64 " and %zu", i,
                 t->ne[i], i, t->nb[i], o->ne[i], o->nb[i]);
        return text;
    }
    for (int i = 0; i < GGML_MAX_OP_PARAMS / 4; ++i) {
        if (t->op_params[i] == o->op_params[i]) continue;
        snprintf(text, sizeof(text), "op_params[%d] %d, ours %d", i, t->op_params[i],
                 o->op_params[i]);
        return text;
    }
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
        if ((t->src[i] == NULL) == (o->src[i] == NULL)) continue;
        snprintf(text, sizeof(text), "src[%d] %s, ours %s", i, t->src[i] ? "set" : "NULL",
                 o->src[i] ? "set" : "NULL");
        return text;
    }
    if ((t->view_src == NULL) != (o->view_src == NULL)) {
        snprintf(text, sizeof(text), "%s, ours %s", t->view_src ? "a view" : "no view",
                 o->view_src ? "is one" : "is none");
        return text;
    }
    if (t->view_offs != o->view_offs) return "view_offs";
    if (t->flags != o->flags) return "flags";
    if (strcmp(t->name, o->name) != 0) {
        snprintf(text, sizeof(text), "name '%s', ours '%s'", t->name, o->name);
        return text;
    }
    return NULL;
}

// --- computing -----------------------------------------------------------------------------------

struct side {
    const struct library *lib;
    struct ggml_context *ctx;
    union value values[MAX_ARGS];
    struct ggml_tensor *result;
    struct ggml_cgraph *graph;
    ggml_backend_buffer_t buffer;
};

static bool is_whole(enum ggml_type type) {
    return type == GGML_TYPE_I8 || type == GGML_TYPE_I16 || type == GGML_TYPE_I32 ||
           type == GGML_TYPE_I64;
}

// A random row of an operand in its type.
static void random_row(const struct library *lib, const struct base_case *c,
                       const struct argument *arg, enum ggml_type type, float *floats,
                       const float *importance, char *out_row) {
    const int64_t n = arg->ne[0];
    int64_t limit = 4;
    if (arg->bounded == BOUND_NUMBER) limit = arg->bound;
    if (arg->bounded == BOUND_EXTENT) limit = c->args[arg->bound_of].ne[arg->bound_dim];
    const int start = below(1 << 20);
    for (int64_t i = 0; i < n; ++i) {
        const int64_t whole = arg->distinct ? (start + i) % (limit > 0 ? limit : 1)
                                            : below((int)(limit > 0 ? limit : 1));
        floats[i] = arg->bounded == POSITIVE ? uniform(0.1f, 2) : uniform(-2, 2);
        switch ((int)type) {
        case GGML_TYPE_I8: ((int8_t *)out_row)[i] = (int8_t)whole; break;
        case GGML_TYPE_I16: ((int16_t *)out_row)[i] = (int16_t)whole; break;
        case GGML_TYPE_I32: ((int32_t *)out_row)[i] = (int32_t)whole; break;
        case GGML_TYPE_I64: ((int64_t *)out_row)[i] = whole; break;
        case GGML_TYPE_F64: ((double *)out_row)[i] = (double)floats[i]; break;
        default: break;
        }
    }
    if (!is_whole(type) && type != GGML_TYPE_F64) {
        lib->ggml_quantize_chunk(type, floats, out_row, 0, 1, n,
                                 lib->ggml_quantize_requires_imatrix(type) ? importance : NULL);
    }
}

// Strides by which the operand lies in its storage.
static void strides_in_root(const struct operand *operand, const struct ggml_tensor *root,
                            size_t out_nb[4]) {
    for (int d = 0; d < 4; ++d)
        out_nb[d] = root->nb[operand->layout == PERMUTED ? operand->order[d] : d];
}

// The storage of an operand, with the same numbers in every layout; the caller frees it. NULL:
// there is nothing.
static char *random_bytes(const struct library *lib, const struct base_case *c,
                          const struct argument *arg, const struct operand *operand,
                          size_t *out_size) {
    const struct ggml_tensor *root = operand->root[0];
    const int64_t *ne = arg->ne;
    const size_t block = (size_t)lib->ggml_blck_size(root->type);
    const size_t unit = lib->ggml_row_size(root->type, (int64_t)block);
    size_t nb[4];
    *out_size = lib->ggml_nbytes(root);
    if (ne[0] * ne[1] * ne[2] * ne[3] == 0) return NULL;
    char *data = calloc(1, *out_size + 64);
    char *row = calloc((size_t)ne[0] / block + 1, unit);
    float *floats = malloc((size_t)ne[0] * sizeof(float));
    float *importance = malloc((size_t)ne[0] * sizeof(float));
    for (int64_t i = 0; i < ne[0]; ++i)
        importance[i] = 1;
    strides_in_root(operand, root, nb);
    for (int64_t r = 0; r < ne[1] * ne[2] * ne[3]; ++r) {
        const size_t offset = (size_t)(r % ne[1]) * nb[1] + (size_t)(r / ne[1] % ne[2]) * nb[2] +
                              (size_t)(r / ne[1] / ne[2]) * nb[3];
        random_row(lib, c, arg, root->type, floats, importance, row);
        for (size_t i = 0; i < (size_t)ne[0] / block; ++i)
            memcpy(data + offset + i * nb[0], row + i * unit, unit);
    }
    free(row);
    free(floats);
    free(importance);
    return data;
}

// The value of every element, in logical order.
static double *values_of(const struct library *lib, const struct ggml_tensor *t) {
    const int64_t n = lib->ggml_nelements(t);
    const size_t size = lib->ggml_nbytes(t);
    const int64_t block = lib->ggml_blck_size(t->type);
    double *values = malloc((size_t)(n > 0 ? n : 1) * sizeof(double));
    char *data = malloc(size + 64);
    float *row = malloc((size_t)(t->ne[0] + 1) * sizeof(float));
    if (n > 0) lib->ggml_backend_tensor_get(t, data, 0, size);
    int64_t at = 0;
    for (int64_t i3 = 0; i3 < t->ne[3] && n > 0; ++i3) {
        for (int64_t i2 = 0; i2 < t->ne[2]; ++i2) {
            for (int64_t i1 = 0; i1 < t->ne[1]; ++i1) {
                const char *from =
                    data + (size_t)i1 * t->nb[1] + (size_t)i2 * t->nb[2] + (size_t)i3 * t->nb[3];
                if (block > 1) lib->ggml_get_type_traits(t->type)->to_float(from, row, t->ne[0]);
                for (int64_t i0 = 0; i0 < t->ne[0]; ++i0, ++at) {
                    const char *p = from + (size_t)i0 * t->nb[0];
                    switch ((int)t->type) {
                    case GGML_TYPE_F32: values[at] = (double)*(const float *)p; break;
                    case GGML_TYPE_F64: values[at] = *(const double *)p; break;
                    case GGML_TYPE_I8: values[at] = *(const int8_t *)p; break;
                    case GGML_TYPE_I16: values[at] = *(const int16_t *)p; break;
                    case GGML_TYPE_I32: values[at] = *(const int32_t *)p; break;
                    case GGML_TYPE_I64: values[at] = (double)*(const int64_t *)p; break;
                    default:
                        if (block == 1) {
                            float one;
                            lib->ggml_get_type_traits(t->type)->to_float(p, &one, 1);
                            values[at] = (double)one;
                        } else {
                            values[at] = (double)row[i0];
                        }
                    }
                }
            }
        }
    }
    free(row);
    free(data);
    return values;
}

// Quantised operands, and results in few bits, are rounded in ways that may differ.
static double bound_of(const struct library *lib, const struct base_case *c,
                       const struct ggml_tensor *result) {
    double bound = 1e-9;
    switch (c->builder) { // computed by tables in half precision
    case BUILDER_gelu:
    case BUILDER_gelu_inplace:
    case BUILDER_gelu_quick:
    case BUILDER_geglu_swapped:
    case BUILDER_geglu_quick:
    case BUILDER_glu:
    case BUILDER_glu_split:
    case BUILDER_unary:
    case BUILDER_conv_1d: // of patches in half precision
    case BUILDER_conv_1d_dw:
    case BUILDER_conv_1d_dw_ph:
    case BUILDER_conv_2d:
    case BUILDER_conv_2d_dw:
    case BUILDER_conv_2d_sk_p0:
    case BUILDER_conv_2d_s1_ph:
    case BUILDER_conv_3d: bound = 1e-6; break;
    case BUILDER_flash_attn_ext: bound = 1e-5; break; // sums in half precision
    default: break;
    }
    for (int i = 0; i < c->n_args; ++i) {
        if (c->args[i].kind != 't' || c->args[i].absent) continue;
        const enum ggml_type type = find_type(lib, c->args[i].type);
        if (lib->ggml_is_quantized(type)) bound = fmax(bound, 5e-4);

        if (type == GGML_TYPE_F16) bound = fmax(bound, 1e-6);
        if (type == GGML_TYPE_BF16) bound = fmax(bound, 5e-5);
    }
    // A number in the middle between two may go either way.
    if (lib->ggml_is_quantized(result->type)) bound = fmax(bound, 1e-2);
    if (result->type == GGML_TYPE_F16) bound = fmax(bound, 1e-6);
    if (result->type == GGML_TYPE_BF16) bound = fmax(bound, 5e-5);
    return bound;
}

// Whether both are as close as the types allow; otherwise out_what says how far they are apart.
static bool agree(const double *theirs, const double *ours, int64_t n, double bound,
                  char out_what[256]) {
    double error = 0, power = 0;
    for (int64_t i = 0; i < n; ++i) {
        const bool same = theirs[i] == ours[i] || (isnan(theirs[i]) && isnan(ours[i]));
        if (!same && (!isfinite(theirs[i]) || !isfinite(ours[i]))) {
            snprintf(out_what, 256, "element %" PRId64 " is %g, ours %g", i, theirs[i], ours[i]);
            return false;
        }
        if (!same) error += (theirs[i] - ours[i]) * (theirs[i] - ours[i]);
        if (isfinite(theirs[i])) power += theirs[i] * theirs[i];
    }
    snprintf(out_what, 256, "relative squared error %.3g", error / power);
    return error <= bound * power || error <= 1e-12 * (double)n;
}

static void build_graph(struct side *side) {
    progress->in_ours = side->lib->ours;
    side->graph = side->lib->ggml_new_graph(side->ctx);
    side->lib->ggml_build_forward_expand(side->graph, side->result);
    progress->in_ours = false;
}

static bool is_supported(const struct side *side) {
    const struct library *lib = side->lib;
    for (int i = 0; i < lib->ggml_graph_n_nodes(side->graph); ++i) {
        if (!lib->ggml_backend_dev_supports_op(lib->ggml_backend_get_device(lib->cpu),
                                               lib->ggml_graph_node(side->graph, i))) {
            return false;
        }
    }
    return true;
}

// Gives the tensors of the first `n` libraries memory and the operands equal numbers.
static bool prepare(const struct base_case *c, struct side *sides, int n,
                    struct operand *operands) {
    for (int s = 0; s < n; ++s) {
        const struct library *lib = sides[s].lib;
        progress->in_ours = s;
        sides[s].buffer = lib->ggml_backend_alloc_ctx_tensors(sides[s].ctx, lib->cpu);
        if (sides[s].buffer == NULL) return false;
        lib->ggml_backend_buffer_clear(sides[s].buffer, 0);
    }
    progress->in_ours = false;
    random_state = (uint64_t)progress->current * 7919 + 13; // the same numbers in every layout
    for (int i = 0; i < c->n_args; ++i) {
        size_t size;
        if (c->args[i].kind != 't' || c->args[i].absent) continue;
        char *data = random_bytes(sides[0].lib, c, &c->args[i], &operands[i], &size);
        for (int s = 0; s < n && data != NULL; ++s)
            sides[s].lib->ggml_backend_tensor_set(operands[i].root[s], data, 0, size);
        free(data);
    }
    return true;
}

// --- one case ------------------------------------------------------------------------------------

static void build_operands(struct side *side, const struct base_case *c, struct operand *operands) {
    for (int i = 0; i < c->n_args; ++i) {
        const struct argument *arg = &c->args[i];
        union value *value = &side->values[i];
        switch (arg->kind) {
        case 't':
            value->t = arg->absent ? NULL
                                   : make_operand(side->lib, side->ctx, arg,
                                                  find_type(side->lib, arg->type), &operands[i]);
            break;
        case 'f': value->f = (float)arg->number; break;
        case 'i': value->i = (int64_t)arg->number; break;
        case 'a':
            for (int k = 0; k < 4; ++k)
                value->a[k] = (int)arg->array[k];
            break;
        default: memcpy(value->n, arg->array, sizeof(value->n));
        }
    }
}

// What is different in the graphs, or NULL. A composition may be made of other nodes.
static const char *compare_graphs(struct side sides[2]) {
    static char what[300];
    const struct library *a = sides[0].lib, *b = sides[1].lib;
    const struct ggml_tensor *t = sides[0].result, *o = sides[1].result;
    const int n = a->ggml_graph_n_nodes(sides[0].graph);
    if (n != b->ggml_graph_n_nodes(sides[1].graph)) {
        return memcmp(t->ne, o->ne, sizeof(t->ne)) != 0 || memcmp(t->nb, o->nb, sizeof(t->nb)) != 0
                   ? "another layout from other nodes"
                   : NULL;
    }
    for (int i = 0; i < n; ++i) {
        const char *difference = node_difference(a, a->ggml_graph_node(sides[0].graph, i),
                                                 b->ggml_graph_node(sides[1].graph, i));
        if (difference == NULL) continue;
        snprintf(what, sizeof(what), "node %d: %s", i, difference);
        return what;
    }
    return NULL;
}

enum stage {
    BOTH_REFUSED,
    OURS_ACCEPTED,
    OURS_REFUSED, // what theirs computes, if that was asked for
    BUILT_OTHERWISE,
    THEIRS_NOT_COMPUTED,
    OURS_UNSUPPORTED,
    OURS_FAILED,
    COMPUTED,
};

struct outcome {
    enum stage stage;
    char what[512];
    double *values[2]; // of the result
    int64_t n;
    double bound;
};

static bool run_graph(const struct side *side) {
    progress->in_ours = side->lib->ours;
    const enum ggml_status status =
        side->lib->ggml_backend_graph_compute(side->lib->cpu, side->graph);
    progress->in_ours = false;
    return status == GGML_STATUS_SUCCESS;
}

// A view whose strides reach beyond its tensor's end may be made, but not be read.
static bool is_readable(const struct library *lib, const struct ggml_tensor *t) {
    return t->view_src == NULL ||
           t->view_offs + lib->ggml_nbytes(t) <= lib->ggml_nbytes(t->view_src);
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The order of the indices in a row is not defined.
static void sort_rows(double *values, int64_t n, int64_t row) {
    for (int64_t i = 0; row > 0 && i + row <= n; i += row)
        qsort(values + i, (size_t)row, sizeof(values[0]), by_value);
}

// Computes what theirs supports, with ours too if that has been built and supports it.
static void compute(const struct base_case *c, struct side sides[2], struct operand *operands,
                    struct outcome *outcome) {
    const struct library *theirs = sides[0].lib, *ours = sides[1].lib;
    const bool built = sides[1].result != NULL;
    outcome->stage = THEIRS_NOT_COMPUTED;
    if (!is_supported(&sides[0]) || !is_readable(theirs, sides[0].result)) return;
    const bool supported = built && is_supported(&sides[1]);
    if (!prepare(c, sides, supported ? 2 : 1, operands)) return;
    // Ours first: theirs may write out of bounds.
    const bool ours_done = supported && run_graph(&sides[1]);
    if (ours_done) outcome->values[1] = values_of(ours, sides[1].result);
    snprintf(outcome->what, sizeof(outcome->what), "not computed: %s", ours->last_error());
    if (!run_graph(&sides[0])) return;
    outcome->n = theirs->ggml_nelements(sides[0].result);
    outcome->bound = bound_of(theirs, c, sides[0].result);
    outcome->values[0] = values_of(theirs, sides[0].result);
    outcome->stage = !built       ? OURS_REFUSED
                     : !supported ? OURS_UNSUPPORTED
                     : !ours_done ? OURS_FAILED
                                  : COMPUTED;
    for (int i = 0; i < 2 && c->builder == BUILDER_top_k && outcome->values[i] != NULL; ++i)
        sort_rows(outcome->values[i], outcome->n, sides[0].result->ne[0]);
}

static struct outcome attempt(struct library libs[2], const struct base_case *c,
                              struct operand *operands, bool computes) {
    struct side sides[2];
    struct outcome outcome = {.stage = BOTH_REFUSED};
    const struct ggml_init_params size = {8 << 20, NULL, true};
    for (int s = 0; s < 2; ++s) {
        sides[s] = (struct side){.lib = &libs[s], .ctx = libs[s].ggml_init(size)};
        build_operands(&sides[s], c, operands);
        sides[s].result = call_builder(&libs[s], c, sides[s].ctx, sides[s].values);
        if (sides[s].result != NULL) build_graph(&sides[s]);
    }
    if (sides[0].result == NULL) {
        if (sides[1].result != NULL) outcome.stage = OURS_ACCEPTED;
    } else if (sides[1].result == NULL) {
        outcome.stage = OURS_REFUSED;
        snprintf(outcome.what, sizeof(outcome.what), "%s", libs[1].last_error());
        if (computes) compute(c, sides, operands, &outcome);
    } else {
        const char *difference = compare_graphs(sides);
        outcome.stage = difference != NULL ? BUILT_OTHERWISE : THEIRS_NOT_COMPUTED;
        if (difference != NULL) {
            snprintf(outcome.what, sizeof(outcome.what), "%s", difference);
        } else if (computes) {
            compute(c, sides, operands, &outcome);
        }
    }
    for (int s = 0; s < 2; ++s) {
        libs[s].ggml_backend_buffer_free(sides[s].buffer);
        libs[s].ggml_free(sides[s].ctx);
    }
    return outcome;
}

static void free_outcome(struct outcome *outcome) {
    free(outcome->values[0]);
    free(outcome->values[1]);
}

// Whether an outcome that speaks against ours does so with packed operands too. Where it does not,
// ours must compute the same from both layouts, or theirs must: else theirs is at fault.
static bool theirs_is_at_fault(struct library libs[2], const struct base_case *c,
                               const struct operand *operands, const struct outcome *outcome) {
    struct operand packed[MAX_ARGS];
    bool all_packed = true;
    char what[256];
    for (int i = 0; i < c->n_args; ++i) {
        packed[i] = operands[i];
        packed[i].layout = PACKED;
        all_packed &= operands[i].layout == PACKED || c->args[i].kind != 't';
    }
    if (all_packed) return false;
    progress->theirs_has_run = true;
    struct outcome again = attempt(libs, c, packed, true);
    bool fault = false;
    if (outcome->stage == COMPUTED) {
        fault = again.stage == COMPUTED &&
                agree(again.values[0], again.values[1], again.n, again.bound, what) &&
                agree(outcome->values[1], again.values[1], again.n, again.bound, what);
    } else {
        fault = again.values[0] == NULL ||
                !agree(outcome->values[0], again.values[0], again.n, again.bound, what);
    }
    free_outcome(&again);
    return fault;
}

// Reasons to refuse what would read or write out of bounds, overflow or divide by zero, and numbers
// that name no operation. theirs may survive it.
static const char *const good_reasons[] = {
    "reach beyond its",                // views
    "overflow",                        // strides
    "is negative",                     // extents
    "does not fit",                    // regions, windows, strides in op_params
    "is larger than the padded",       // windows that leave a negative extent
    "the block of",                    // rows of a quantised result that are no whole blocks
    "must have the same shape",        // gradients
    "src0 is [",                       // gradients of convolutions and pooling, windows
    "src1 is [",                       // states
    "src2 is [",                       // ids
    "src3 is [",                       // gates
    "src4 is [",                       // gates
    "the cache length = ",             // more keys than values
    "src3 ne1 = ",                     // fewer rows of a mask than queries
    "the rows of src0 that are added", // more than there are
    "stride = ",
    "src1 ne0 = 0",              // no filter
    "s0 = -",                    // division
    "the windows = ",            // fewer than are put together
    "there is nothing to scale", // from no element
    "a stride = ",               // division
    "n_groups = 0",              //
    "n_groups = -",              //
    "a window = ",               //
    "w = ",                      //
    "w0 = ",                     //
    "h0 = ",                     //
    "p0 = -",                    // pooling outside of the source
    "a padding = ",              // of more than there is to repeat, or a negative result
    "an extent = -",             //
    "k = ",                      // more than there are
    "dim = -",                   //
    "op = ",                     // no such operation, order or mode
    "order = ",                  //
    "type = ",                   //
    "channels must agree",       // gradients
    "must be a multiple of",     // shared heads and sequences
    "it must have one per channel",
    "it has too many dimensions", // of operands whose elements are counted
    "it must be f32",             // narrower types read as F32
};

static bool is_good_reason(const char *message) {
    for (size_t i = 0; i < sizeof(good_reasons) / sizeof(good_reasons[0]); ++i) {
        if (strstr(message, good_reasons[i]) != NULL) return true;
    }
    return false;
}

// Operations that ggml's CPU computes from rows that are not dense. Of others some are right by
// chance: nothing is checked.
static bool takes_any_layout(int builder) {
    switch (builder) {
    case BUILDER_add:
    case BUILDER_sub:
    case BUILDER_mul:
    case BUILDER_div:
    case BUILDER_dup:
    case BUILDER_cpy:
    case BUILDER_cast:
    case BUILDER_cont:
    case BUILDER_concat:
    case BUILDER_repeat:
    case BUILDER_get_rows:
    case BUILDER_mul_mat:
    case BUILDER_mul_mat_id:
    case BUILDER_out_prod:
    case BUILDER_rope_ext:
    case BUILDER_flash_attn_ext:
    case BUILDER_sum: return true;
    default: return false;
    }
}

// Cases in which theirs is not to be followed: results known to be wrong, or that depend on the
// order in which elements are written; numbers of one type read as another's.
static bool is_known(const struct base_case *c, const struct operand *operands,
                     const struct outcome *outcome) {
    const struct argument *args = c->args;
    for (int i = 0; i < c->n_args; ++i) {
        if (args[i].kind != 't' || args[i].absent) continue;
        const bool whole = args[i].type[0] == 'i' && strncmp(args[i].type, "iq", 2) != 0;
        if (args[i].was_float && whole) return true;
        if (outcome->stage == OURS_UNSUPPORTED && operands[i].layout == PERMUTED &&
            !takes_any_layout(c->builder)) {
            return true;
        }
    }
    switch (c->builder) {
    case BUILDER_acc:
    case BUILDER_acc_inplace:
    case BUILDER_set:
    case BUILDER_set_inplace:
    case BUILDER_set_1d:
    case BUILDER_set_2d: return args[1].ne[0] > args[0].ne[0]; // rows overlap
    case BUILDER_add1: // another type is read as F32; blocks of later matrices aren't written
        return strcmp(args[1].type, "f32") != 0 || args[0].type[0] == 'q';
    case BUILDER_add_id: return args[1].ne[2] * args[1].ne[3] == 0; // read although empty
    case BUILDER_conv_transpose_1d:
    case BUILDER_conv_transpose_2d_p0:
        return args[2].number == 0 || args[0].ne[0] * args[0].ne[1] == 0; // no stride
    case BUILDER_count_equal: return args[0].ne[2] * args[0].ne[3] > 1;   // some rows twice
    case BUILDER_cpy: return args[0].ne[0] % 32 != 0;           // rows that are no whole blocks
    case BUILDER_cross_entropy_loss: return args[0].ne[1] == 0; // mean of nothing
    case BUILDER_cross_entropy_loss_back:
    case BUILDER_pool_2d_back:
    case BUILDER_silu_back: // everything is read as F32
        for (int i = 0; i < c->n_args; ++i) {
            if (args[i].kind == 't' && strcmp(args[i].type, "f32") != 0) return true;
        }
        return c->builder == BUILDER_silu_back && operands[0].layout == PERMUTED;
    case BUILDER_flash_attn_ext: return strcmp(args[0].type, "f32") != 0;
    case BUILDER_conv_1d:
    case BUILDER_conv_1d_dw:
    case BUILDER_conv_1d_dw_ph:
    case BUILDER_conv_2d:
    case BUILDER_conv_2d_dw:
    case BUILDER_conv_2d_dw_direct:
    case BUILDER_conv_2d_direct:
    case BUILDER_conv_3d:
    case BUILDER_conv_3d_direct:
    case BUILDER_im2col:
    case BUILDER_im2col_3d:
        for (int i = 2; i < c->n_args; ++i) { // negative dilations
            if (args[i].number < 0) return true;
        }
        return strcmp(args[1].type, "f32") != 0; // read as F32
    case BUILDER_rwkv_wkv6:
    case BUILDER_rwkv_wkv7:
    case BUILDER_gated_linear_attn:
        return args[0].ne[2] == 0; // no token: not even the state is set
    case BUILDER_set_rows: return args[1].ne[1] > args[0].ne[1]; // a row twice
    default: return false;
    }
}

static void run_case(struct library libs[2], const struct base_case *c, struct operand *operands,
                     bool computes) {
    static const enum finding findings[] = {
        [OURS_REFUSED] = REFUSED,
        [BUILT_OTHERWISE] = DIFFERENT,
        [OURS_UNSUPPORTED] = UNSUPPORTED,
        [OURS_FAILED] = WRONG,
        [COMPUTED] = WRONG,
    };
    struct outcome outcome = attempt(libs, c, operands, computes);
    char what[256];
    ++progress->compared;
    progress->computed += outcome.stage == COMPUTED;
    progress->refused_by_both += outcome.stage == BOTH_REFUSED;
    progress->accepted_by_ours_only += outcome.stage == OURS_ACCEPTED;
    const bool of_nothing = outcome.values[0] != NULL && outcome.n == 0;
    const bool fine = of_nothing || outcome.stage == BOTH_REFUSED ||
                      outcome.stage == OURS_ACCEPTED || outcome.stage == THEIRS_NOT_COMPUTED ||
                      (outcome.stage == OURS_REFUSED && is_good_reason(outcome.what)) ||
                      (outcome.stage == COMPUTED &&
                       agree(outcome.values[0], outcome.values[1], outcome.n, outcome.bound, what));
    if (!fine && outcome.stage != BUILT_OTHERWISE && computes &&
        (is_known(c, operands, &outcome) || theirs_is_at_fault(libs, c, operands, &outcome))) {
        ++progress->theirs_at_fault;
    } else if (!fine) {
        report(c, findings[outcome.stage], operands, "%s",
               outcome.stage == COMPUTED ? what : outcome.what);
    }
    free_outcome(&outcome);
}

// --- all of them ---------------------------------------------------------------------------------

struct options {
    long first, cases;
    uint64_t seed;
    const char *only;
    bool computes;
    const char *paths[3];
};

static void open_libraries(struct library libs[2], const struct options *options) {
    libs[0] = (struct library){.label = "the first library"};
    libs[1] = (struct library){.label = "the second library", .ours = true};
    load(&libs[0], options->paths[0], options->paths[1]);
    load(&libs[1], options->paths[2], options->paths[2]);
    for (int i = 0; i < 2 && options->computes; ++i)
        start_cpu(&libs[i]);
    libs[0].ggml_set_abort_callback(on_abort);
}

// Runs one case and ends the process: what theirs writes out of bounds is forgotten with it.
static void work(struct library libs[2], const struct options *options, long number) {
    struct operand operands[MAX_ARGS];
    alarm(CASE_SECONDS);
    const struct base_case c = random_case(number, options->seed, options->only);
    random_layouts(&c, number, operands);
    if (possible(&libs[0], &c, operands)) run_case(libs, &c, operands, options->computes);
    fflush(stdout);
    _exit(0);
}

static void note_end(const struct options *options, int status) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    if (!progress->in_ours || progress->theirs_has_run) {
        ++progress->crashes_of_theirs;
        return;
    }
    const struct base_case c = random_case(progress->current, options->seed, options->only);
    report(&c, CRASHED, NULL, "signal %d", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

static bool parse(int argc, char **argv, struct options *options) {
    int n_paths = 0;
    for (int i = 1; i < argc; ++i) {
        if (strcmp(argv[i], "--first") == 0 && i + 1 < argc) {
            options->first = atol(argv[++i]);
        } else if (strcmp(argv[i], "--cases") == 0 && i + 1 < argc) {
            options->cases = atol(argv[++i]);
        } else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
            options->seed = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
            options->only = argv[++i];
        } else if (strcmp(argv[i], "--no-compute") == 0) {
            options->computes = false;
        } else if (strcmp(argv[i], "--verbose") == 0) {
            verbose = true;
        } else if (argv[i][0] != '-' && n_paths < 3) {
            options->paths[n_paths++] = argv[i];
        } else {
            return false;
        }
    }
    return n_paths == 3;
}

static long summary(const struct options *options) {
    long failures = 0;
    for (int b = 0; b < N_BUILDERS; ++b) {
        for (int f = 0; f < N_FINDINGS; ++f) {
            if (progress->found[b][f] == 0) continue;
            printf("%s: %s %ld times\n", builders[b].name, finding_names[f], progress->found[b][f]);
            failures += progress->found[b][f];
        }
    }
    printf("seed %" PRIu64
           ": %ld calls compared, %ld computed; %ld refused by both, %ld accepted by "
           "ours only, %ld ended by theirs, %ld wrong in theirs\n%ld findings\n",
           options->seed, progress->compared, progress->computed, progress->refused_by_both,
           progress->accepted_by_ours_only, progress->crashes_of_theirs, progress->theirs_at_fault,
           failures);
    return failures;
}

int main(int argc, char **argv) {
    struct options options = {.cases = 20000, .seed = 1, .computes = true};
    if (!parse(argc, argv, &options)) {
        fprintf(stderr, "usage: builder_diff [--first N] [--cases N] [--seed N] [--only BUILDER] "
                        "[--no-compute] "
                        "[--verbose] THEIR-BASE THEIR-REGISTRY OUR-LIBRARY\n");
        return 2;
    }
    progress =
        mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (progress == MAP_FAILED) return 2;
    struct library libs[2];
    open_libraries(libs, &options); // once: children inherit them
    for (long i = options.first; i < options.first + options.cases; ++i) {
        fflush(stdout);
        progress->current = i;
        progress->in_ours = progress->theirs_has_run = false;
        const pid_t child = fork();
        if (child == 0) work(libs, &options, i);
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) < 0) return 2;
        note_end(&options, status);
    }
    return summary(&options) == 0 ? 0 : 1;
}
