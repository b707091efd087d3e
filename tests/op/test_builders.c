// SPDX-License-Identifier: MIT
// Every builder: what it makes of good operands, and what of impossible ones.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "ggml-host.h"
#include "op/op_table.h"
#include "tensor/error_tensor.h"

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

struct expectation {
    enum ggml_op op;
    enum ggml_type type;
    int64_t ne[GGML_MAX_DIMS];
    struct ggml_tensor *src[GGML_MAX_SRC];
    struct ggml_tensor *alias;
    int32_t params[16];
};

struct op_case {
    const char *builder;
    struct ggml_tensor *(*good)(struct ggml_context *c, const struct fixture *f);
    struct ggml_tensor *(*bad)(struct ggml_context *c, const struct fixture *f);
    struct expectation (*expect)(const struct fixture *f);
};

static struct ggml_tensor composed;
#define COMPOSED &composed
#define UNWRAP(...) __VA_ARGS__
#define SECTIONS                                                                                   \
    (int[4]) {                                                                                     \
        1, 1, 0, 2                                                                                 \
    }
#define IMAGE2_NE                                                                                  \
    (int64_t[4]) {                                                                                 \
        10, 12, 5, 2                                                                               \
    }

static int32_t F(float value) {
    int32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

#define OP_CASE(builder, call, OP, TYPE, extents, sources, root, values, impossible)               \
    static struct ggml_tensor *good_##builder(struct ggml_context *c, const struct fixture *f) {   \
        (void)f;                                                                                   \
        return ggml_##builder call;                                                                \
    }                                                                                              \
    static struct ggml_tensor *bad_##builder(struct ggml_context *c, const struct fixture *f) {    \
        (void)f;                                                                                   \
        return ggml_##builder impossible;                                                          \
    }                                                                                              \
    static struct expectation expect_##builder(const struct fixture *f) {                          \
        (void)f;                                                                                   \
        return (struct expectation){.op = GGML_OP_##OP,                                            \
                                    .type = GGML_TYPE_##TYPE,                                      \
                                    .ne = {UNWRAP extents},                                        \
                                    .src = {UNWRAP sources},                                       \
                                    .alias = root,                                                 \
                                    .params = {UNWRAP values}};                                    \
    }
#include "case_list.inl"

static const struct op_case cases[] = {
#define OP_CASE(builder, ...) {"ggml_" #builder, good_##builder, bad_##builder, expect_##builder},
#include "case_list.inl"
};
#define N_CASES (sizeof(cases) / sizeof(cases[0]))

struct setup {
    struct ggml_context *ctx;
    struct ggml_context *other;
    struct fixture f;
};

static int set_up(void **state) {
    static struct setup s;
    s.ctx = fixture_context();
    s.other = fixture_context();
    assert_non_null(s.ctx);
    fixture_fill(&s.f, s.ctx);
    s.f.error = ggml_error_tensor(s.other, "the first failure");
    *state = &s;
    return 0;
}

static int tear_down(void **state) {
    struct setup *s = *state;
    ggml_free(s->ctx);
    ggml_free(s->other);
    return 0;
}

static bool names_builder(const char *builder) {
    const size_t length = strlen(builder);
    const char *message = ggml_last_error();
    return strncmp(message, builder, length) == 0 && message[length] == ':';
}

static void check_layout(const struct op_case *c, const struct expectation *e,
                         const struct ggml_tensor *result) {
    char name[GGML_MAX_NAME + 8];
    if (e->alias == &composed) return;
    assert_memory_equal(result->src, e->src, sizeof(e->src));
    assert_memory_equal(result->op_params, e->params, sizeof(e->params));
    assert_ptr_equal(result->view_src, e->alias);
    if (e->alias == NULL) {
        assert_true(ggml_is_contiguous(result));
        assert_int_equal(result->nb[0], ggml_type_size(e->type));
        return;
    }
    assert_memory_equal(result->nb, e->alias->nb, sizeof(result->nb));
    if (strcmp(c->builder, "ggml_cpy") == 0) return;
    snprintf(name, sizeof(name), "%s (view)", e->alias->name);
    assert_string_equal(result->name, name);
}

static void test_results_are_as_documented(void **state) {
    struct setup *s = *state;
    for (size_t i = 0; i < N_CASES; ++i) {
        const struct op_case *c = &cases[i];
        const struct expectation e = c->expect(&s->f);
        const struct ggml_tensor *result = c->good(s->ctx, &s->f);
        if (ggml_tensor_is_error(result)) fail_msg("%s: %s", c->builder, ggml_last_error());
        if (result->op != e.op || result->type != e.type ||
            memcmp(result->ne, e.ne, sizeof(e.ne)) != 0) {
            fail_msg("%s gave %s %s [%d, %d, %d, %d]", c->builder, ggml_op_name(result->op),
                     ggml_type_name(result->type), (int)result->ne[0], (int)result->ne[1],
                     (int)result->ne[2], (int)result->ne[3]);
        }
        check_layout(c, &e, result);
        assert_int_equal(result->flags, 0);
    }
}

static void test_impossible_operands_give_error_tensors(void **state) {
    struct setup *s = *state;
    for (size_t i = 0; i < N_CASES; ++i) {
        const struct op_case *c = &cases[i];
        ggml_clear_error();
        const struct ggml_tensor *result = c->bad(s->ctx, &s->f);
        const bool propagated = strcmp(ggml_last_error(), "the first failure") == 0;
        if (!ggml_tensor_is_error(result)) fail_msg("%s accepted impossible operands", c->builder);
        if (!propagated && !names_builder(c->builder)) {
            fail_msg("%s said '%s'", c->builder, ggml_last_error());
        }
        assert_int_equal(ggml_nelements(result), 0);
    }
}

// Sources and shape donors alike: whatever the good call reads, once NULL and once in error.
static void test_every_operand_is_checked(void **state) {
    struct setup *s = *state;
    for (size_t i = 0; i < N_CASES; ++i) {
        const struct op_case *c = &cases[i];
        const struct expectation e = c->expect(&s->f);
        const int n = ggml_op_info(e.op)->min_src;
        for (int slot = 0; slot < n && e.alias != &composed; ++slot) {
            const struct fixture without = fixture_with(&s->f, e.src[slot], NULL);
            ggml_clear_error();
            if (!ggml_tensor_is_error(c->good(s->ctx, &without)) || !names_builder(c->builder)) {
                fail_msg("%s without source %d: '%s'", c->builder, slot, ggml_last_error());
            }
            const struct fixture broken = fixture_with(&s->f, e.src[slot], s->f.error);
            assert_true(ggml_tensor_is_error(c->good(s->ctx, &broken)));
            assert_string_equal(ggml_last_error(), "the first failure");
        }
    }
}

static void test_null_everywhere(void **state) {
    struct setup *s = *state;
    const struct fixture nothing = {0};
    for (size_t i = 0; i < N_CASES; ++i) {
        const struct op_case *c = &cases[i];
        ggml_clear_error();
        if (!ggml_tensor_is_error(c->good(NULL, &s->f)) || !names_builder(c->builder)) {
            fail_msg("%s without a context: '%s'", c->builder, ggml_last_error());
        }
        assert_true(ggml_tensor_is_error(c->good(NULL, &nothing)));
        if (strcmp(c->builder, "ggml_arange") == 0) continue;
        ggml_clear_error();
        if (!ggml_tensor_is_error(c->good(s->ctx, &nothing)) || !names_builder(c->builder)) {
            fail_msg("%s without operands: '%s'", c->builder, ggml_last_error());
        }
    }
}

// With no room left, each builder reports that instead.
static void test_full_context(void **state) {
    struct setup *s = *state;
    struct ggml_context *full =
        ggml_init((struct ggml_init_params){ggml_tensor_overhead(), NULL, true});
    ggml_new_tensor_1d(full, GGML_TYPE_F32, 1);
    for (size_t i = 0; i < N_CASES; ++i) {
        assert_true(ggml_tensor_is_error(cases[i].good(full, &s->f)));
    }
    assert_int_equal(ggml_last_status() != GGML_HOST_OK, 1);
    ggml_free(full);
}

static void test_costs_are_finite(void **state) {
    struct setup *s = *state;
    for (size_t i = 0; i < N_CASES; ++i) {
        const struct ggml_tensor *result = cases[i].good(s->ctx, &s->f);
        const struct ggml_op_cost cost = ggml_op_cost(result);
        const bool moves = (ggml_op_info(result->op)->flags & GGML_OP_FLAG_VIEW) == 0;
        if (!isfinite(cost.flops) || cost.flops < 0 || cost.bytes_read < 0 ||
            (cost.bytes_written > 0) != moves) {
            fail_msg("%s: %g flops, %g bytes read, %g written", cases[i].builder, cost.flops,
                     cost.bytes_read, cost.bytes_written);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_results_are_as_documented, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_impossible_operands_give_error_tensors, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_every_operand_is_checked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_null_everywhere, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_full_context, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_costs_are_finite, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("op builders", tests, NULL, NULL);
}
