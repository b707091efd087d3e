// SPDX-License-Identifier: MIT
// Functions of the application, which run on host data.
#include "case.h"
#include "oracle/oracle_store.h"

static const char why_custom[] = "sums of small whole numbers";

// What every function computes: offset + sum of (k + 1) times element i of operand k.
enum { OFFSET = 5 };

static double combine(const struct ggml_tensor *const *sources, int n, int64_t i) {
    double sum = OFFSET;
    for (int k = 0; k < n; ++k) {
        int64_t i0, i1, i2, i3;
        ggml_unravel_index(sources[k], i, &i0, &i1, &i2, &i3);
        sum += (k + 1) * oracle_value(sources[k], i0, i1, i2, i3);
    }
    return sum;
}

static int count_sources(const struct ggml_tensor *node) {
    int n = 0;
    while (n < GGML_MAX_SRC && node->src[n])
        ++n;
    return n;
}

static void oracle_custom(const struct ggml_tensor *node, double *out) {
    const struct ggml_tensor *sources[GGML_MAX_SRC];
    const int n = count_sources(node);
    for (int k = 0; k < n; ++k)
        sources[k] = node->src[k];
    for (int64_t i = 0; i < ggml_nelements(node); ++i)
        out[i] = combine(sources, n, i);
}

// --- the functions -------------------------------------------------------------------------------

// The userdata of a call that has to arrive.
static const int expected_userdata = OFFSET;

static void run(struct ggml_tensor *dst, const struct ggml_tensor *const *sources, int n, int ith,
                int nth, const void *userdata) {
    if (userdata != &expected_userdata) return;
    for (int64_t i = ith; i < ggml_nelements(dst); i += nth) {
        int64_t i0, i1, i2, i3;
        ggml_unravel_index(dst, i, &i0, &i1, &i2, &i3);
        oracle_store(dst->type,
                     (char *)dst->data + (size_t)i0 * dst->nb[0] + (size_t)i1 * dst->nb[1] +
                         (size_t)i2 * dst->nb[2] + (size_t)i3 * dst->nb[3],
                     combine(sources, n, i));
    }
}

static void custom1(struct ggml_tensor *dst, const struct ggml_tensor *a, int ith, int nth,
                    void *userdata) {
    run(dst, &a, 1, ith, nth, userdata);
}

static void custom2(struct ggml_tensor *dst, const struct ggml_tensor *a,
                    const struct ggml_tensor *b, int ith, int nth, void *userdata) {
    run(dst, (const struct ggml_tensor *[]){a, b}, 2, ith, nth, userdata);
}

static void custom3(struct ggml_tensor *dst, const struct ggml_tensor *a,
                    const struct ggml_tensor *b, const struct ggml_tensor *d, int ith, int nth,
                    void *userdata) {
    run(dst, (const struct ggml_tensor *[]){a, b, d}, 3, ith, nth, userdata);
}

static void custom_any(struct ggml_tensor *dst, int ith, int nth, void *userdata) {
    const struct ggml_tensor *sources[GGML_MAX_SRC];
    const int n = count_sources(dst);
    for (int k = 0; k < n; ++k)
        sources[k] = dst->src[k];
    run(dst, sources, n, ith, nth, userdata);
}

// --- cases ---------------------------------------------------------------------------------------

struct custom_form {
    enum ggml_type type;
    struct conformance_extents ne;
    int n_args;
    bool inplace;
    int n_tasks;
};

static struct ggml_tensor *build(struct ggml_context *ctx, const char *op,
                                 const struct custom_form *f, struct ggml_tensor **args) {
    void *data = (void *)(uintptr_t)&expected_userdata;
    const int n = f->n_tasks;
    if (strcmp(op, "MAP_CUSTOM1") == 0) {
        return (f->inplace ? ggml_map_custom1_inplace : ggml_map_custom1)(ctx, args[0], custom1, n,
                                                                          data);
    }
    if (strcmp(op, "MAP_CUSTOM2") == 0) {
        return (f->inplace ? ggml_map_custom2_inplace : ggml_map_custom2)(ctx, args[0], args[1],
                                                                          custom2, n, data);
    }
    if (strcmp(op, "MAP_CUSTOM3") == 0) {
        return (f->inplace ? ggml_map_custom3_inplace
                           : ggml_map_custom3)(ctx, args[0], args[1], args[2], custom3, n, data);
    }
    if (f->inplace)
        return ggml_custom_inplace(ctx, args[0], args + 1, f->n_args - 1, custom_any, n, data);
    return ggml_custom_4d(ctx, f->type, f->ne.ne[0], f->ne.ne[1], f->ne.ne[2], f->ne.ne[3], args,
                          f->n_args, custom_any, n, data);
}

static void custom_case(struct conformance *c, const struct custom_form *f,
                        enum conformance_layout layout) {
    struct ggml_tensor *args[GGML_MAX_SRC];
    if (!conformance_case(c, "%s/%d%s/tasks=%d/%s/%s", ggml_type_name(f->type), f->n_args,
                          f->inplace ? "-inplace" : "", f->n_tasks, conformance_shape(c, f->ne),
                          conformance_layout_name(layout))) {
        return;
    }
    for (int k = 0; k < f->n_args; ++k)
        args[k] = conformance_indices(c, f->type, f->ne, layout, 20);
    conformance_check(c, build(c->ctx, c->op->name, f, args));
}

static void custom_cases(struct conformance *c, int n_args) {
    static const enum ggml_type types[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_I32,
                                           GGML_TYPE_F64};
    static const int tasks[] = {GGML_N_TASKS_MAX, 1, 2, 64};
    for (int m = 0; m < 2 * 4; ++m) {
        for (int s = 0; s < 8; ++s) {
            const struct custom_form f = {types[(m + s) % 4], conformance_shapes[s], n_args,
                                          m % 2 == 1 && n_args > 0, tasks[m / 2]};
            custom_case(c, &f, (enum conformance_layout)((m + s) % N_LAYOUTS));
        }
    }
}

static void cases_custom1(struct conformance *c) {
    custom_cases(c, 1);
}

static void cases_custom2(struct conformance *c) {
    custom_cases(c, 2);
}

static void cases_custom3(struct conformance *c) {
    custom_cases(c, 3);
}

static void cases_custom(struct conformance *c) {
    for (int n_args = 1; n_args <= 9; n_args += 2)
        custom_cases(c, n_args);
}

CONFORMANCE_OP(MAP_CUSTOM1, oracle_custom, cases_custom1, 0, why_custom, PLAIN);
CONFORMANCE_OP(MAP_CUSTOM2, oracle_custom, cases_custom2, 0, why_custom, PLAIN);
CONFORMANCE_OP(MAP_CUSTOM3, oracle_custom, cases_custom3, 0, why_custom, PLAIN);
CONFORMANCE_OP(CUSTOM, oracle_custom, cases_custom, 0, why_custom, PLAIN);
