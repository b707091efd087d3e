// SPDX-License-Identifier: MIT
// The CPU plugin as a file: loaded beside the built-in one, it computes the same and unloads.
#define _GNU_SOURCE
#include "cpu_test.h"

#include "ggml-plugin-cpu.h"
#if defined(__linux__)
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

static float compute_on(ggml_backend_t stream) {
    struct ggml_context *ctx = test_context(8);
    struct ggml_tensor *x =
        test_tensor(ctx, GGML_TYPE_F32, (struct extents){{1000, 100, 1, 1}}, 1, -1, 1);
    struct ggml_tensor *y = ggml_sum(ctx, ggml_silu(ctx, ggml_rms_norm(ctx, x, 1e-5f)));
    assert_int_equal(ggml_backend_graph_compute(stream, test_graph(ctx, y)), GGML_STATUS_SUCCESS);
    const float sum = ggml_get_f32_1d(y, 0);
    ggml_free(ctx);
    return sum;
}

static void test_module_computes_and_unloads(void **state) {
    (void)state;
    ggml_backend_t built_in = ggml_backend_cpu_init();
    const float expected = compute_on(built_in);
    ggml_backend_reg_t reg = NULL;
    if (ggml_plugin_load(CPU_MODULE, &reg) != GGML_HOST_OK) fail_msg("%s", ggml_last_error());
    assert_ptr_not_equal(reg, ggml_backend_cpu_reg());
    ggml_backend_dev_t dev = ggml_backend_reg_dev_get(reg, 0);
    assert_int_equal(ggml_backend_dev_type(dev), GGML_BACKEND_DEVICE_TYPE_CPU);
    ggml_backend_t stream = ggml_backend_dev_init(dev, NULL);
    assert_true(ggml_backend_is_cpu(stream));
    ggml_backend_cpu_set_n_threads(stream, 2);
    assert_float_equal(compute_on(stream), expected, 0);
    struct ggml_threadpool_params params = ggml_threadpool_params_default(2);
    struct ggml_threadpool *pool = ggml_threadpool_new(&params);
    ggml_clear_error();
    ggml_backend_cpu_set_threadpool(stream, pool);
    assert_int_equal(ggml_last_status(), GGML_HOST_INVALID_ARGUMENT);
    ggml_threadpool_free(pool);
    assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_BUSY);
    ggml_backend_free(stream);
    assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_OK);
    assert_float_equal(compute_on(built_in), expected, 0);
    ggml_backend_free(built_in);
}

static void test_device_describes_itself(void **state) {
    (void)state;
    struct ggml_backend_dev_props props;
    ggml_backend_dev_get_props(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU), &props);
    assert_string_equal(props.name, "CPU");
    assert_true(strlen(props.description) > 2);
    assert_true(props.memory_total > 0);
    assert_true(props.memory_free > 0 && props.memory_free <= props.memory_total);
    assert_true(props.caps.buffer_from_host_ptr);
    assert_false(props.caps.async);
}

#if defined(__linux__)
enum { KNOWN, UNKNOWN, NO_RIGHT };

// What a process whose root is an empty folder learns about memory.
static int ask_in(const char *empty) {
    if (chroot(empty) != 0 && (unshare(CLONE_NEWUSER) != 0 || chroot(empty) != 0)) return NO_RIGHT;
    size_t free = 0, total = 0;
    ggml_backend_dev_memory(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU), &free, &total);
    return free > 0 && total >= free ? KNOWN : UNKNOWN;
}

// Programs in a chroot or a sandbox often have no /proc.
static void test_memory_without_proc(void **state) {
    (void)state;
    char empty[] = "empty-XXXXXX";
    int status = -1;
    assert_non_null(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU));
    assert_non_null(mkdtemp(empty));
    const pid_t child = fork();
    if (child == 0) _exit(ask_in(empty));
    const bool ended = child > 0 && waitpid(child, &status, 0) == child;
    rmdir(empty);
    assert_true(ended && WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_RIGHT) {
        print_message("# not without the right to another root\n");
        return;
    }
    assert_int_equal(WEXITSTATUS(status), KNOWN);
}
#endif

static void test_named_functions(void **state) {
    (void)state;
    static const char *const names[] = {"ggml_backend_set_n_threads",
                                        "ggml_backend_set_abort_callback",
                                        "ggml_backend_get_features",
                                        "ggml_backend_dev_get_extra_bufts",
                                        "ggml_threadpool_new",
                                        "ggml_threadpool_free",
                                        "ggml_backend_cpu_set_threadpool",
                                        "ggml_backend_cpu_numa_init",
                                        "ggml_backend_cpu_is_numa",
                                        "ggml_backend_cpu_set_use_ref"};
    ggml_backend_reg_t reg = ggml_backend_cpu_reg();
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i)
        assert_non_null(ggml_backend_reg_get_proc_address(reg, names[i]));
    assert_null(ggml_backend_reg_get_proc_address(reg, "no_such_function"));
    const struct ggml_cpu_api *api = ggml_backend_reg_get_proc_address(reg, GGML_CPU_API_PROC);
    assert_int_equal(api->size, sizeof(*api));
    assert_non_null(ggml_get_type_traits_cpu(GGML_TYPE_F32));
    assert_null(ggml_get_type_traits_cpu((enum ggml_type)4711));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_module_computes_and_unloads),
        cmocka_unit_test(test_device_describes_itself),
        cmocka_unit_test(test_named_functions),
#if defined(__linux__)
        cmocka_unit_test(test_memory_without_proc),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
