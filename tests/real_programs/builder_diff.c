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
#include "builder_diff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_SHOWN = 3, CASE_SECONDS = 10 };

// --- the libraries -------------------------------------------------------------------------------

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
