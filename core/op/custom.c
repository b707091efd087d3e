// SPDX-License-Identifier: MIT
// Nodes hold the address of a function and a pointer, which is only valid in this process: such
// operations carry GGML_OP_FLAG_HOST and only run on devices that call back.
// Operations that call a function of the application.
#include "op/op_rules.h"

// What op_params hold, byte for byte.
struct custom_params { // any of the four signatures; the operation tells which
    void (*fun)(void);
    int n_tasks;    // threads that may share the work, GGML_N_TASKS_MAX: as many as there are
    void *userdata; // passed to the function as it is
};

_Static_assert(sizeof(struct custom_params) <= GGML_MAX_OP_PARAMS,
               "custom_params fit into op_params");

// ggml_custom_4d() names a type and extents of its own; the others have those of source 0.
bool op_type_custom(struct op_call *call) {
    if (!call->typed) call->type = call->src[0]->type;
    return true;
}

// The parameters are unpacked from op_params, where a client could have changed them after the
// builder.
bool op_shape_custom(struct op_call *call) {
    struct custom_params p;
    memcpy(&p, call->params, sizeof(p));
    if (p.fun == NULL) return op_fail(call, "the function is NULL");
    if (p.n_tasks < 1 && p.n_tasks != GGML_N_TASKS_MAX) {
        return op_fail(call, "n_tasks = %d, it must be positive or GGML_N_TASKS_MAX", p.n_tasks);
    }
    return call->typed || op_set_ne_as(call, call->src[0]);
}

static struct ggml_tensor *build_custom(struct op_call *call, void (*fun)(void), int n_tasks,
                                        void *userdata, bool inplace) {
    struct custom_params p;
    memset(&p, 0, sizeof(p)); // the gap between its members is a parameter word without a meaning
    p.fun = fun;
    p.n_tasks = n_tasks;
    p.userdata = userdata;
    memcpy(call->params, &p, sizeof(p));
    return inplace ? op_build_inplace(call) : op_build(call);
}

#define MAP_CUSTOM1(suffix, inplace)                                                               \
    struct ggml_tensor *ggml_map_custom1##suffix(struct ggml_context *ctx, struct ggml_tensor *a,  \
                                                 ggml_custom1_op_t fun, int n_tasks,               \
                                                 void *userdata) {                                 \
        struct op_call call = {OP(ctx, MAP_CUSTOM1), .src = {a}};                                  \
        return build_custom(&call, (void (*)(void))fun, n_tasks, userdata, inplace);               \
    }
MAP_CUSTOM1(, false)
MAP_CUSTOM1(_inplace, true)

#define MAP_CUSTOM2(suffix, inplace)                                                               \
    struct ggml_tensor *ggml_map_custom2##suffix(struct ggml_context *ctx, struct ggml_tensor *a,  \
                                                 struct ggml_tensor *b, ggml_custom2_op_t fun,     \
                                                 int n_tasks, void *userdata) {                    \
        struct op_call call = {OP(ctx, MAP_CUSTOM2), .src = {a, b}};                               \
        return build_custom(&call, (void (*)(void))fun, n_tasks, userdata, inplace);               \
    }
MAP_CUSTOM2(, false)
MAP_CUSTOM2(_inplace, true)

#define MAP_CUSTOM3(suffix, inplace)                                                               \
    struct ggml_tensor *ggml_map_custom3##suffix(                                                  \
        struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,                    \
        struct ggml_tensor *c, ggml_custom3_op_t fun, int n_tasks, void *userdata) {               \
        struct op_call call = {OP(ctx, MAP_CUSTOM3), .src = {a, b, c}};                            \
        return build_custom(&call, (void (*)(void))fun, n_tasks, userdata, inplace);               \
    }
MAP_CUSTOM3(, false)
MAP_CUSTOM3(_inplace, true)

// Takes the sources from `args`, the first one into slot `first`; false after op_fail(). One slot
// less than GGML_MAX_SRC is accepted, as in ggml.
static bool take_args(struct op_call *call, struct ggml_tensor **args, int n_args, int first) {
    if (!op_need_range(call, "n_args", n_args, 0, GGML_MAX_SRC - 1 - first)) return false;
    if (n_args > 0 && args == NULL) return op_fail(call, "the list of arguments is NULL");
    for (int i = 0; i < n_args; ++i) {
        if (args[i] == NULL) return op_fail(call, "argument %d is NULL", i);
        call->src[first + i] = args[i];
    }
    return true;
}

// A node of any type and shape that the function fills in from up to nine sources.
struct ggml_tensor *ggml_custom_4d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0,
                                   int64_t ne1, int64_t ne2, int64_t ne3, struct ggml_tensor **args,
                                   int n_args, ggml_custom_op_t fun, int n_tasks, void *userdata) {
    struct op_call call = {OP(ctx, CUSTOM), .typed = true, .type = type,
                           .ne = {ne0, ne1, ne2, ne3}};
    if (!take_args(&call, args, n_args, 0)) return call.error;
    return build_custom(&call, (void (*)(void))fun, n_tasks, userdata, false);
}

// The function changes `a` in place.
struct ggml_tensor *ggml_custom_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                        struct ggml_tensor **args, int n_args, ggml_custom_op_t fun,
                                        int n_tasks, void *userdata) {
    struct op_call call = {OP(ctx, CUSTOM), .src = {a}};
    if (!take_args(&call, args, n_args, 1)) return call.error;
    if (a == NULL) {
        op_fail(&call, "src0 is NULL");
        return call.error;
    }
    return build_custom(&call, (void (*)(void))fun, n_tasks, userdata, true);
}
