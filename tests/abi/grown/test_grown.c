// SPDX-License-Identifier: MIT
// A core whose lists have grown by a minor, with a plugin of contract 1.0 and one of that minor
// that both claim what they are asked about: the older one must not get a node that means what it
// can't know, neither by a question nor from the scheduler.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ggml-backend-impl.h"
#include "ggml-host.h"
#include "ggml-impl.h"
#include "ggml-plugin.h"
#include "tensor/node_since.h"

enum { NEWER = GGML_CONTRACT_MINOR };

static ggml_backend_dev_t frozen, grown;

static ggml_backend_dev_t load(const char *path) {
    ggml_backend_reg_t reg = NULL;
    if (ggml_plugin_load(path, &reg) != GGML_HOST_OK) fail_msg("%s", ggml_last_error());
    return ggml_backend_reg_dev_get(reg, 0);
}

static int load_both(void **state) {
    (void)state;
    frozen = load(FROZEN_PLUGIN);
    grown = load(GROWN_PLUGIN);
    return 0;
}

static int unload_both(void **state) {
    (void)state;
    const enum ggml_host_status first = ggml_plugin_unload(ggml_backend_dev_backend_reg(frozen));
    const enum ggml_host_status second = ggml_plugin_unload(ggml_backend_dev_backend_reg(grown));
    return first == GGML_HOST_OK && second == GGML_HOST_OK ? 0 : -1;
}

// A graph's context with the operands that the nodes are made of.
struct operands {
    struct ggml_context *ctx;
    struct ggml_tensor *a, *b, *positions;
};

static struct operands operands_new(void) {
    struct operands o;
    o.ctx = ggml_init((struct ggml_init_params){1 << 20, NULL, true});
    assert_non_null(o.ctx);
    o.a = ggml_new_tensor_3d(o.ctx, GGML_TYPE_F32, 32, 4, 4);
    o.b = ggml_new_tensor_3d(o.ctx, GGML_TYPE_F32, 32, 4, 4);
    o.positions = ggml_new_tensor_1d(o.ctx, GGML_TYPE_I32, 4);
    return o;
}

// Gives a node a meaning of the later minor.
typedef struct ggml_tensor *(*grow_fn)(struct operands *o);

static struct ggml_tensor *new_parameter(struct operands *o) {
    struct ggml_tensor *node = ggml_rope(o->ctx, o->a, o->positions, 32, 0);
    node->op_params[3] = 1;
    return node;
}

static struct ggml_tensor *new_parameter_of_sub_op(struct operands *o) {
    struct ggml_tensor *node = ggml_reglu(o->ctx, o->a);
    node->op_params[4] = 1;
    return node;
}

static struct ggml_tensor *new_value(struct operands *o) {
    struct ggml_tensor *node = ggml_argsort(o->ctx, o->a, GGML_SORT_ORDER_ASC);
    node->op_params[0] = 2;
    return node;
}

static struct ggml_tensor *new_source(struct operands *o) {
    struct ggml_tensor *node = ggml_soft_max(o->ctx, o->a);
    node->src[3] = o->b;
    return node;
}

static struct ggml_tensor *new_op(struct operands *o) {
    struct ggml_tensor *node = ggml_sqr(o->ctx, o->a);
    node->op = GGML_OP_GROWN;
    return node;
}

static struct ggml_tensor *new_unary(struct operands *o) {
    return ggml_unary(o->ctx, o->a, GGML_UNARY_OP_GROWN);
}

static struct ggml_tensor *new_glu(struct operands *o) {
    return ggml_glu(o->ctx, o->a, GGML_GLU_OP_GROWN, false);
}

static struct ggml_tensor *new_type(struct operands *o) {
    struct ggml_tensor *node = ggml_sqr(o->ctx, o->a);
    node->type = GGML_TYPE_GROWN;
    return node;
}

static struct ggml_tensor *new_source_type(struct operands *o) {
    return ggml_sqr(o->ctx, ggml_new_tensor_1d(o->ctx, GGML_TYPE_GROWN, 32));
}

static struct ggml_tensor *new_flag(struct operands *o) {
    struct ggml_tensor *node = ggml_sqr(o->ctx, o->a);
    node->flags |= GGML_TENSOR_FLAG_GROWN;
    return node;
}

static struct ggml_tensor *new_source_flag(struct operands *o) {
    o->a->flags |= GGML_TENSOR_FLAG_GROWN;
    return ggml_sqr(o->ctx, o->a);
}

static const struct {
    const char *what;
    grow_fn grow;
} cases[] = {
    {"a parameter word of ROPE", new_parameter},
    {"a parameter word of REGLU", new_parameter_of_sub_op},
    {"an order of ARGSORT", new_value},
    {"a source of SOFT_MAX", new_source},
    {"an operation", new_op},
    {"a unary", new_unary},
    {"a gated unit", new_glu},
    {"a type", new_type},
    {"a source's type", new_source_type},
    {"a flag", new_flag},
    {"a source's flag", new_source_flag},
};
enum { N_CASES = sizeof(cases) / sizeof(cases[0]) };

// Device that the scheduler, to which the older one comes first, gives the node to.
static ggml_backend_dev_t scheduled(struct operands *o, struct ggml_tensor *node) {
    ggml_backend_t streams[] = {ggml_backend_dev_init(frozen, NULL),
                                ggml_backend_dev_init(grown, NULL)};
    ggml_backend_sched_t sched = ggml_backend_sched_new(streams, NULL, 2, 16, false, false);
    assert_non_null(sched);
    struct ggml_cgraph *graph = ggml_new_graph(o->ctx);
    ggml_build_forward_expand(graph, node);
    if (!ggml_backend_sched_alloc_graph(sched, graph)) fail_msg("%s", ggml_last_error());
    ggml_backend_t stream = ggml_backend_sched_get_tensor_backend(sched, node);
    ggml_backend_dev_t device = stream ? ggml_backend_get_device(stream) : NULL;
    ggml_backend_sched_free(sched);
    ggml_backend_free(streams[0]);
    ggml_backend_free(streams[1]);
    return device;
}

static void goes_to_the_newer_plugin(void **state) {
    (void)state;
    for (int i = 0; i < N_CASES; ++i) {
        struct operands o = operands_new();
        struct ggml_tensor *node = cases[i].grow(&o);
        print_message("# %s\n", cases[i].what);
        assert_int_equal(op_needs_minor(node), NEWER);
        assert_true(ggml_backend_dev_supports_op(grown, node));
        assert_false(ggml_backend_dev_supports_op(frozen, node));
        assert_ptr_equal(scheduled(&o, node), grown);
        ggml_free(o.ctx);
    }
}

static void what_did_not_grow_goes_to_the_older_plugin(void **state) {
    (void)state;
    for (int i = 0; i < 5; ++i) {
        struct operands o = operands_new();
        struct ggml_tensor *const nodes[] = {ggml_rope(o.ctx, o.a, o.positions, 32, 0),
                                             ggml_soft_max(o.ctx, o.a), ggml_reglu(o.ctx, o.a),
                                             ggml_silu(o.ctx, o.a), ggml_sqr(o.ctx, o.a)};
        // One that may be ignored keeps nobody away.
        if (i == 4) nodes[i]->flags |= GGML_TENSOR_FLAG_GROWN_HINT;
        assert_int_equal(op_needs_minor(nodes[i]), 0);
        assert_true(ggml_backend_dev_supports_op(frozen, nodes[i]));
        assert_ptr_equal(scheduled(&o, nodes[i]), frozen);
        ggml_free(o.ctx);
    }
}

static void what_nobody_knows_needs_a_later_minor(void **state) {
    (void)state;
    struct operands o = operands_new();
    struct ggml_tensor node = *ggml_rope(o.ctx, o.a, o.positions, 32, 0);
    node.op_params[0] = 1;
    assert_int_equal(op_needs_minor(&node), NEWER + 1);
    node.op_params[0] = 0;
    node.src[9] = o.b;
    assert_int_equal(op_needs_minor(&node), NEWER + 1);
    node.src[9] = NULL;
    node.flags |= 1 << 20;
    assert_int_equal(op_needs_minor(&node), NEWER + 1);
    node.flags &= ~(1 << 20);
    node.padding[5] = 1;
    assert_int_equal(op_needs_minor(&node), NEWER + 1);
    node.padding[5] = 0;
    o.a->padding[0] = 1;
    assert_int_equal(op_needs_minor(&node), NEWER + 1);
    assert_false(ggml_backend_dev_supports_op(frozen, &node));
    o.a->padding[0] = 0;
    node.op = (enum ggml_op)GGML_OP_COUNT;
    assert_int_equal(op_needs_minor(&node), NEWER + 1);
    assert_int_equal(op_needs_minor(ggml_sqr(o.ctx, o.b)), 0);
    ggml_free(o.ctx);
}

static void private_numbers_need_no_minor(void **state) {
    (void)state;
    struct operands o = operands_new();
    struct ggml_tensor node = *ggml_sqr(o.ctx, o.a);
    node.op = (enum ggml_op)GGML_FIRST_PRIVATE;
    node.op_params[15] = 1;
    node.src[9] = o.b;
    assert_int_equal(op_needs_minor(&node), 0);
    o.b->type = GGML_TYPE_GROWN;
    assert_int_equal(op_needs_minor(&node), NEWER);
    ggml_free(o.ctx);
}

// An older plugin can't know the size of a newer type, and is no bad one for that.
static void sizes_of_newer_types_are_the_hosts(void **state) {
    (void)state;
    struct operands o = operands_new();
    ggml_backend_buffer_type_t buft = ggml_backend_dev_host_buffer_type(frozen);
    struct ggml_tensor *newer = ggml_new_tensor_1d(o.ctx, GGML_TYPE_GROWN, 32);
    struct ggml_tensor *wide = ggml_new_tensor_1d(o.ctx, GGML_TYPE_F64, 32);
    ggml_clear_error();
    assert_int_equal(ggml_backend_buft_get_alloc_size(buft, newer), 32 * 4);
    assert_int_equal(ggml_last_status(), GGML_HOST_OK);
    assert_int_equal(ggml_backend_buft_get_alloc_size(buft, wide), 32 * 8);
    assert_int_equal(ggml_last_status(), GGML_HOST_BAD_PLUGIN);
    ggml_clear_error();
    ggml_free(o.ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_to_the_newer_plugin),
        cmocka_unit_test(what_did_not_grow_goes_to_the_older_plugin),
        cmocka_unit_test(what_nobody_knows_needs_a_later_minor),
        cmocka_unit_test(private_numbers_need_no_minor),
        cmocka_unit_test(sizes_of_newer_types_are_the_hosts),
    };
    return cmocka_run_group_tests(tests, load_both, unload_both);
}
