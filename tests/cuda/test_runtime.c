// SPDX-License-Identifier: MIT
// The CUDA plugin on the fake driver: devices, streams, events and buffers together; each call of
// the driver failing in turn; children of the process; what CUDA_VISIBLE_DEVICES leaves.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_test.h"
#include "ggml-ext-device-info.h"

enum { N = 96, OUT_OF_MEMORY = 2, LAUNCH_FAILED = 719 };

// --- what is computed ----------------------------------------------------------------------------

// z = soft_max(x y) + x on one stream, read by another that waits for an event.
struct work {
    ggml_backend_t streams[2];
    ggml_backend_event_t event;
    struct ggml_context *context;
    ggml_backend_buffer_t buffer;
    float out[N * N];
};

static bool compute(struct work *w, ggml_backend_dev_t device) {
    static float x[N * N], y[N * N];
    for (int i = 0; i < N * N; ++i) {
        x[i] = (float)(i % 13) / 13.0f;
        y[i] = i % (N + 1) == 0 ? 1.0f : 0.0f;
    }
    for (int i = 0; i < 2; ++i) {
        if (!(w->streams[i] = ggml_backend_dev_init(device, NULL))) return false;
    }
    if (!(w->event = ggml_backend_event_new(device))) return false;
    w->context = ggml_init((struct ggml_init_params){1 << 20, NULL, true});
    struct ggml_tensor *a = ggml_new_tensor_2d(w->context, GGML_TYPE_F32, N, N);
    struct ggml_tensor *b = ggml_new_tensor_2d(w->context, GGML_TYPE_F32, N, N);
    struct ggml_tensor *c =
        ggml_add(w->context, ggml_soft_max(w->context, ggml_mul_mat(w->context, a, b)), b);
    struct ggml_cgraph *graph = ggml_new_graph(w->context);
    ggml_build_forward_expand(graph, c);
    if (!(w->buffer = ggml_backend_alloc_ctx_tensors(w->context, w->streams[0]))) return false;
    ggml_backend_tensor_set_async(w->streams[0], a, y, 0, sizeof(y));
    ggml_backend_tensor_set_async(w->streams[0], b, x, 0, sizeof(x));
    if (ggml_backend_graph_compute_async(w->streams[0], graph) != GGML_STATUS_SUCCESS) return false;
    ggml_backend_event_record(w->event, w->streams[0]);
    ggml_backend_event_wait(w->streams[1], w->event);
    ggml_backend_tensor_get_async(w->streams[1], c, w->out, 0, sizeof(w->out));
    ggml_backend_synchronize(w->streams[1]);
    ggml_backend_synchronize(w->streams[0]);
    // Rows of soft_max sum up to 1; y is the identity.
    for (int r = 0; r < N; ++r) {
        double sum = 0.0;
        for (int i = 0; i < N; ++i)
            sum += (double)w->out[r * N + i] - (double)x[r * N + i];
        if (!(sum > 0.999 && sum < 1.001)) return false;
    }
    return true;
}

static void end(struct work *w) {
    ggml_backend_buffer_free(w->buffer);
    ggml_free(w->context);
    ggml_backend_event_free(w->event);
    for (int i = 0; i < 2; ++i)
        ggml_backend_free(w->streams[i]);
    memset(w, 0, sizeof(*w));
}

static void test_devices(void **state) {
    static struct work work;
    (void)state;
    ggml_backend_reg_t reg = cuda_load();
    assert_non_null(reg);
    assert_int_equal(ggml_backend_reg_dev_count(reg), 2);
    for (size_t i = 0; i < 2; ++i) {
        struct ggml_backend_dev_props props;
        ggml_backend_dev_t device = ggml_backend_reg_dev_get(reg, i);
        ggml_backend_dev_get_props(device, &props);
        assert_string_equal(props.name, i ? "CUDA1" : "CUDA0");
        assert_string_equal(props.device_id, i ? "0000:e1:00.0" : "0000:e0:00.0");
        assert_non_null(strstr(props.description, "unverified on hardware"));
        assert_int_equal(props.memory_total, 1 << 30);
        assert_int_equal(props.type, GGML_BACKEND_DEVICE_TYPE_GPU);
        const bool right = compute(&work, device);
        end(&work);
        if (!right) fail_msg("wrong results on device %d: %s", (int)i, ggml_last_error());
    }
    assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_OK);
    assert_int_equal(driver.live(), 0);
}

// --- calls that fail -----------------------------------------------------------------------------

enum { MAX_CALLS = 4096 };
static const char *calls[MAX_CALLS]; // of the work, in its order
static long n_calls;

// The call after n further ones fails: it is told, nothing is left. Returns its name; NULL if there
// are no more calls, and all went well then.
static const char *check_fault(long n, int error) {
    static struct work work;
    driver.fail_after(n, error);
    ggml_clear_error();
    ggml_backend_reg_t reg = cuda_load();
    const bool right = reg && ggml_backend_reg_dev_count(reg) == 2 &&
                       compute(&work, ggml_backend_reg_dev_get(reg, 0));
    const bool told = ggml_last_status() != GGML_HOST_OK;
    const char *failed = driver.failed();
    if (!failed) driver.fail_after(-1, 0); // nor does any that frees
    end(&work);
    if (reg) assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_OK);
    if (driver.live() != 0)
        fail_msg("%ld objects left after a failure of %s (%d)", driver.live(), failed, error);
    driver.fail_after(-1, 0);
    if (!failed) assert_true(right);
    // Without a device's UUID or address it is the same device.
    if (failed && !right && reg && !told && ggml_backend_reg_dev_count(reg) == 2)
        fail_msg("a failure of %s (%d) is not told", failed, error);
    return failed;
}

static void test_faults(void **state) {
    static const int errors[] = {OUT_OF_MEMORY, LAUNCH_FAILED};
    (void)state;
    for (int e = 0; e < 2; ++e) {
        n_calls = 0;
        while (n_calls < MAX_CALLS && (calls[n_calls] = check_fault(n_calls, errors[e])))
            ++n_calls;
        assert_in_range(n_calls, 60, MAX_CALLS - 1);
    }
    test_devices(state);
}

// y = x * x on the CPU, which has nothing to do with the driver.
static bool cpu_goes_on(ggml_backend_t cpu) {
    float x[4] = {1.0f, -2.0f, 3.0f, 0.5f}, y[4] = {0};
    struct ggml_context *ctx = cuda_context();
    struct ggml_tensor *from = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4), *to = ggml_sqr(ctx, from);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, to);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, cpu);
    ggml_backend_tensor_set(from, x, 0, sizeof(x));
    const bool computed = ggml_backend_graph_compute(cpu, graph) == GGML_STATUS_SUCCESS;
    ggml_backend_tensor_get(to, y, 0, sizeof(y));
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);
    return computed && y[1] == 4.0f && y[2] == 9.0f;
}

static bool is_among(const char *call, long begin, long end) {
    for (long n = begin; n < end; ++n)
        if (strcmp(calls[n], call) == 0) return true;
    return false;
}

// What drivers report beside these, at the first and the last call of each function: a device that
// is lost says so from then on, one that fails for no reason that is known fails.
static void test_other_faults(void **state) {
    static const struct {
        int error;
        enum ggml_host_status status;
    } rows[] = {
        {214, GGML_HOST_DEVICE_LOST}, // memory that can't be corrected
        {220, GGML_HOST_DEVICE_LOST}, // the same of a link
        {226, GGML_HOST_DEVICE_LOST}, // a fault that was contained
        {304, GGML_HOST_FAILED},      // a call of the operating system
        {700, GGML_HOST_DEVICE_LOST}, // an illegal address
        {702, GGML_HOST_DEVICE_LOST}, // a launch that takes too long
        {714, GGML_HOST_DEVICE_LOST}, // the hardware's stack
        {716, GGML_HOST_DEVICE_LOST}, // a misaligned address
        {999, GGML_HOST_FAILED},      // unknown
    };
    (void)state;
    ggml_backend_t cpu =
        ggml_backend_dev_init(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU), NULL);
    assert_non_null(cpu);
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); ++r) {
        int n_said = 0;
        for (long n = 0; n < n_calls; ++n) {
            if (is_among(calls[n], 0, n) && is_among(calls[n], n + 1, n_calls)) continue;
            assert_string_equal(check_fault(n, rows[r].error), calls[n]);
            n_said += ggml_last_status() == rows[r].status;
            assert_true(cpu_goes_on(cpu));
        }
        assert_true(n_said > 20);
    }
    ggml_backend_free(cpu);
    test_devices(state);
}

// Whether the driver is asked for anything of a device that this process has not used yet.
static bool start_other(ggml_backend_reg_t reg) {
    ggml_backend_dev_t other = ggml_backend_reg_dev_get(reg, 1);
    const long retained = driver.calls("cuDevicePrimaryCtxRetain");
    ggml_clear_error();
    ggml_backend_t stream = ggml_backend_dev_init(other, NULL);
    return stream || !strstr(ggml_last_error(), "child") ||
           driver.calls("cuDevicePrimaryCtxRetain") != retained;
}

static void test_child(void **state) {
    static struct work work;
    (void)state;
    ggml_backend_reg_t reg = cuda_load();
    assert_non_null(reg);
    ggml_backend_dev_t device = ggml_backend_reg_dev_get(reg, 0);
    assert_true(compute(&work, device));
    const pid_t child = fork();
    if (child == 0) {
        static struct work other;
        size_t free_bytes = 0, total = 0;
        const bool computed = compute(&other, device);
        const bool refused = strstr(ggml_last_error(), "child");
        const long entered = driver.calls("cuCtxPushCurrent_v2");
        ggml_backend_dev_memory(device, &free_bytes, &total);
        const bool asked = driver.calls("cuCtxPushCurrent_v2") != entered || total == 0;
        const bool started = start_other(reg);
        end(&work);
        _exit(computed ? 1 : !refused ? 2 : asked ? 3 : started ? 4 : 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    end(&work);
    assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_OK);
    assert_int_equal(driver.live(), 0);
}

// --- in children, before the driver starts here --------------------------------------------------

// How many devices there are with this setting; 100 if the plugin says why there is none.
static int count_with(const char *name, const char *value) {
    int status;
    const pid_t child = fork();
    if (child == 0) {
        setenv(name, value, 1);
        ggml_backend_reg_t reg = cuda_load();
        _exit(reg                                         ? (int)ggml_backend_reg_dev_count(reg)
              : ggml_last_status() == GGML_HOST_NO_DEVICE ? 100
                                                          : 101);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_visible(void **state) {
    (void)state;
    assert_int_equal(count_with("CUDA_VISIBLE_DEVICES", "1"), 1);
    assert_int_equal(count_with("CUDA_VISIBLE_DEVICES", "1,0"), 2);
    assert_int_equal(count_with("CUDA_VISIBLE_DEVICES", "0,7,1"), 1);
    assert_int_equal(count_with("CUDA_VISIBLE_DEVICES", ""), 100);
    assert_int_equal(count_with("CUDA_VISIBLE_DEVICES", "-1"), 100);
    assert_int_equal(count_with("CUDA_VISIBLE_DEVICES", "0,0"), 100);
    assert_int_equal(count_with("CUDA_VISIBLE_DEVICES", "what"), 100);
    assert_int_equal(count_with("FAKE_CUDA_VERSION", "11000"), 100);
}

// What a child prints: the plugin's message if it has no device, else what a stream of its first
// one says ("" if there is one) and its detail `key`.
static void say_with(const char *name, const char *value, const char *key, char *out, size_t size) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        char text[1024] = "";
        setenv(name, value, 1);
        ggml_backend_reg_t reg = cuda_load();
        ggml_backend_t stream =
            reg ? ggml_backend_dev_init(ggml_backend_reg_dev_get(reg, 0), NULL) : NULL;
        const struct ggml_extension_device_info *info =
            reg ? ggml_backend_reg_get_extension(reg, GGML_EXTENSION_DEVICE_INFO, 1) : NULL;
        if (!stream) snprintf(text, sizeof(text), "%s", ggml_last_error());
        for (const struct ggml_backend_feature *f =
                 info ? info->info(ggml_backend_reg_dev_get(reg, 0)) : NULL;
             f && f->name; ++f) {
            if (strcmp(f->name, key) == 0) strncat(text, f->value, sizeof(text) - strlen(text) - 1);
        }
        _exit(write(ends[1], text, strlen(text) + 1) < 0);
    }
    const ssize_t n = read(ends[0], out, size - 1);
    out[n > 0 ? n : 0] = '\0';
    close(ends[0]);
    close(ends[1]);
    waitpid(child, NULL, 0);
}

static void expect_said(const char *name, const char *value, const char *what) {
    char text[1024];
    say_with(name, value, "uuid", text, sizeof(text));
    if (!strstr(text, what)) fail_msg("with %s=%s: \"%s\" without \"%s\"", name, value, text, what);
}

// Kernels of a new compiler, of an old one, and none that the driver takes; a device that is too
// old; a part of a device.
static void test_old_drivers_and_devices(void **state) {
    (void)state;
    expect_said("FAKE_CUDA_PTX", "90", "GPU-5a5a5a5a");
    expect_said("FAKE_CUDA_PTX", "74", "GPU-5a5a5a5a");
    expect_said("FAKE_CUDA_PTX", "60",
                "the driver, of CUDA 13.0, takes none of the plugin's kernels");
    expect_said("FAKE_CUDA_CAPABILITY", "60", "GPU-5a5a5a5a");
    expect_said("FAKE_CUDA_CAPABILITY", "52", "has compute capability 5.2");
    expect_said("FAKE_CUDA_CAPABILITY", "52", "need 6.0 or later");
    expect_said("FAKE_CUDA_VERSION", "11030", "the CUDA driver is of version 11.3, 11.4 is needed");
    expect_said("FAKE_CUDA_MIG", "1", "MIG-5a5a5a5a");
}

// --- an application that uses the driver as well -------------------------------------------------

static void *symbol(const char *name) {
    void *found = dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);
    assert_non_null(found);
    return found;
}

// The application's context is current before and after, and stays when the plugin is gone.
static void test_context_of_the_application(void **state) {
    static struct work work;
    int (*retain)(void **context, int device), (*push)(void *context), (*pop)(void **context),
        (*release)(int device), (*init)(unsigned flags);
    void *own = NULL, *current = NULL;
    (void)state;
    *(void **)&init = symbol("cuInit");
    *(void **)&retain = symbol("cuDevicePrimaryCtxRetain");
    *(void **)&push = symbol("cuCtxPushCurrent_v2");
    *(void **)&pop = symbol("cuCtxPopCurrent_v2");
    *(void **)&release = symbol("cuDevicePrimaryCtxRelease_v2");
    assert_int_equal(init(0), 0);
    assert_int_equal(retain(&own, 1), 0);
    assert_int_equal(push(own), 0);
    ggml_backend_reg_t reg = cuda_load();
    assert_non_null(reg);
    for (size_t i = 0; i < 2; ++i) {
        assert_true(compute(&work, ggml_backend_reg_dev_get(reg, i)));
        end(&work);
    }
    assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_OK);
    assert_int_equal(pop(&current), 0);
    assert_ptr_equal(current, own);
    assert_int_not_equal(pop(&current), 0); // the only one
    assert_int_equal(driver.live(), 1);
    assert_int_equal(release(1), 0);
}

// --- memory of the application -------------------------------------------------------------------

static void test_registered_memory(void **state) {
    static float memory[4 * N], out[N];
    struct ggml_backend_dev_props props;
    (void)state;
    ggml_backend_reg_t reg = cuda_load();
    ggml_backend_dev_get_props(ggml_backend_reg_dev_get(reg, 0), &props);
    assert_false(props.caps.buffer_from_host_ptr);
    assert_true(props.caps.host_buffer);
    assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_OK);
    setenv("GGML_CUDA_REGISTER_HOST", "1", 1);
    setenv("GGML_CUDA_NO_PINNED", "1", 1);
    reg = cuda_load();
    unsetenv("GGML_CUDA_REGISTER_HOST");
    unsetenv("GGML_CUDA_NO_PINNED");
    ggml_backend_dev_t device = ggml_backend_reg_dev_get(reg, 0);
    ggml_backend_dev_get_props(device, &props);
    assert_true(props.caps.buffer_from_host_ptr);
    assert_false(props.caps.host_buffer);
    assert_null(ggml_backend_dev_host_buffer_type(device));
    ggml_backend_buffer_t buffer =
        ggml_backend_dev_buffer_from_host_ptr(device, memory, sizeof(memory), sizeof(memory));
    assert_non_null(buffer);
    assert_true(ggml_backend_buffer_is_host(buffer));
    // Twice is once too often, and no reason to give the device up.
    assert_null(
        ggml_backend_dev_buffer_from_host_ptr(device, memory, sizeof(memory), sizeof(memory)));
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);
    assert_non_null(stream);
    struct ggml_context *ctx = cuda_context();
    struct ggml_tensor *here = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, N);
    ggml_backend_buffer_t there = ggml_backend_alloc_ctx_tensors(ctx, stream);
    memory[3] = 5.0f;
    ggml_backend_tensor_set(here, memory, 0, sizeof(out));
    ggml_backend_tensor_get(here, out, 0, sizeof(out));
    assert_true(out[3] == 5.0f);
    ggml_backend_buffer_free(there);
    ggml_free(ctx);
    ggml_backend_free(stream);
    ggml_backend_buffer_free(buffer);
    assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_OK);
    assert_int_equal(driver.live(), 0);
}

static void test_no_driver(void **state) {
    (void)state;
    assert_null(cuda_load());
    assert_int_equal(ggml_last_status(), GGML_HOST_NO_DEVICE);
    assert_non_null(strstr(ggml_last_error(), "no CUDA driver"));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_visible),
        cmocka_unit_test(test_old_drivers_and_devices),
        cmocka_unit_test(test_context_of_the_application),
        cmocka_unit_test(test_registered_memory),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_child),
        cmocka_unit_test(test_other_faults),
    };
    const struct CMUnitTest without[] = {cmocka_unit_test(test_no_driver)};
    if (argc > 1 && strcmp(argv[1], "no-driver") == 0)
        return cmocka_run_group_tests(without, NULL, NULL);
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    cuda_find_driver();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
