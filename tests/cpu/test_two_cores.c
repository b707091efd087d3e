// SPDX-License-Identifier: MIT
// Two copies of the core in one process, one linked and one opened: both load the CPU plugin and
// compute with it, one after the other and at the same time.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ggml-alloc.h"
#include "ggml-host.h"

enum { INNER = 64, ROWS = 8, COLUMNS = 3, ROUNDS = 50 };

// The functions of a copy of the core that this test calls.
#define CORE_FUNCTIONS(X)                                                                          \
    X(ggml_plugin_load)                                                                            \
    X(ggml_plugin_unload)                                                                          \
    X(ggml_init)                                                                                   \
    X(ggml_free)                                                                                   \
    X(ggml_new_tensor_2d)                                                                          \
    X(ggml_mul_mat)                                                                                \
    X(ggml_new_graph)                                                                              \
    X(ggml_build_forward_expand)

#define BACKEND_FUNCTIONS(X)                                                                       \
    X(ggml_backend_init_by_name)                                                                   \
    X(ggml_backend_free)                                                                           \
    X(ggml_backend_alloc_ctx_tensors)                                                              \
    X(ggml_backend_buffer_free)                                                                    \
    X(ggml_backend_tensor_set)                                                                     \
    X(ggml_backend_tensor_get)                                                                     \
    X(ggml_backend_graph_compute)

#define DECLARE(name) __typeof__(name) *name;
#define TAKE_LINKED(name) core->name = name;
#define TAKE_OPENED(name) take(library, #name, &core->name);

struct core {
    CORE_FUNCTIONS(DECLARE)
    BACKEND_FUNCTIONS(DECLARE)
    ggml_backend_reg_t reg;
    int wrong; // results that differ
};

static void take(void *library, const char *name, void *out_function) {
    void *symbol = dlsym(library, name);
    assert_non_null(symbol);
    memcpy(out_function, &symbol, sizeof(symbol));
}

static void open_cores(struct core *linked, struct core *opened) {
    struct core *core = linked;
    void *library = dlopen(SHARED_CORE, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail_msg("%s", dlerror());
    CORE_FUNCTIONS(TAKE_LINKED)
    BACKEND_FUNCTIONS(TAKE_LINKED)
    core = opened;
    CORE_FUNCTIONS(TAKE_OPENED)
    BACKEND_FUNCTIONS(TAKE_OPENED)
    assert_true(linked->ggml_init != opened->ggml_init);
    assert_int_equal(linked->ggml_plugin_load(CPU_PLUGIN, &linked->reg), GGML_HOST_OK);
    assert_int_equal(opened->ggml_plugin_load(CPU_PLUGIN, &opened->reg), GGML_HOST_OK);
    assert_ptr_equal(linked->reg, opened->reg);
}

// One product of small integers, exact in single precision. Returns the number of wrong
// elements.
static int multiply(struct core *core) {
    const struct ggml_init_params params = {1 << 20, NULL, true};
    float a[ROWS * INNER], b[COLUMNS * INNER], y[COLUMNS * ROWS];
    struct ggml_context *ctx = core->ggml_init(params);
    struct ggml_tensor *ta = core->ggml_new_tensor_2d(ctx, GGML_TYPE_F32, INNER, ROWS);
    struct ggml_tensor *tb = core->ggml_new_tensor_2d(ctx, GGML_TYPE_F32, INNER, COLUMNS);
    struct ggml_tensor *ty = core->ggml_mul_mat(ctx, ta, tb);
    struct ggml_cgraph *graph = core->ggml_new_graph(ctx);
    core->ggml_build_forward_expand(graph, ty);
    ggml_backend_t stream = core->ggml_backend_init_by_name("CPU", NULL);
    ggml_backend_buffer_t memory = core->ggml_backend_alloc_ctx_tensors(ctx, stream);
    for (int i = 0; i < ROWS * INNER; ++i)
        a[i] = (float)(i % 7 - 3);
    for (int i = 0; i < COLUMNS * INNER; ++i)
        b[i] = (float)(i % 5 - 2);
    core->ggml_backend_tensor_set(ta, a, 0, sizeof(a));
    core->ggml_backend_tensor_set(tb, b, 0, sizeof(b));
    int wrong = core->ggml_backend_graph_compute(stream, graph) != GGML_STATUS_SUCCESS;
    core->ggml_backend_tensor_get(ty, y, 0, sizeof(y));
    for (int i = 0; i < ROWS * COLUMNS; ++i) {
        float expected = 0;
        for (int k = 0; k < INNER; ++k)
            expected += a[i % ROWS * INNER + k] * b[i / ROWS * INNER + k];
        wrong += y[i] != expected;
    }
    core->ggml_backend_buffer_free(memory);
    core->ggml_backend_free(stream);
    core->ggml_free(ctx);
    return wrong;
}

static void *multiply_often(void *argument) {
    struct core *core = argument;
    for (int i = 0; i < ROUNDS; ++i)
        core->wrong += multiply(core);
    return NULL;
}

static void test_both_compute(void **state) {
    (void)state;
    static struct core linked, opened;
    pthread_t thread;
    open_cores(&linked, &opened);
    assert_int_equal(multiply(&linked), 0);
    assert_int_equal(multiply(&opened), 0);

    assert_int_equal(pthread_create(&thread, NULL, multiply_often, &opened), 0);
    multiply_often(&linked);
    pthread_join(thread, NULL);
    assert_int_equal(linked.wrong, 0);
    assert_int_equal(opened.wrong, 0);

    assert_int_equal(opened.ggml_plugin_unload(opened.reg), GGML_HOST_OK);
    assert_int_equal(multiply(&linked), 0);
    assert_int_equal(linked.ggml_plugin_unload(linked.reg), GGML_HOST_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_compute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
