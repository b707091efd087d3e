// SPDX-License-Identifier: MIT
// The CUDA plugin on the fake driver: devices, streams, events and buffers together; each call of
// the driver failing in turn; children of the process; what CUDA_VISIBLE_DEVICES leaves.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_test.h"

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

// Wherever a call fails, it is told, nothing is left, and the plugin works when it is loaded again.
static void test_faults(void **state) {
    static const int errors[] = {OUT_OF_MEMORY, LAUNCH_FAILED};
    static struct work work;
    (void)state;
    for (int e = 0; e < 2; ++e) {
        int n_failed = 0;
        for (long n = 0;; ++n) {
            driver.fail_after(n, errors[e]);
            ggml_clear_error();
            ggml_backend_reg_t reg = cuda_load();
            const bool right = reg && ggml_backend_reg_dev_count(reg) == 2 &&
                               compute(&work, ggml_backend_reg_dev_get(reg, 0));
            const bool told = ggml_last_status() != GGML_HOST_OK;
            const char *failed = driver.failed();
            char where[64];
            snprintf(where, sizeof(where), "%s", failed ? failed : "");
            if (!failed) driver.fail_after(-1, 0); // nor does any that frees
            end(&work);
            if (reg) assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_OK);
            if (driver.live() != 0)
                fail_msg("%ld objects left after a failure of %s", driver.live(), where);
            driver.fail_after(-1, 0);
            if (!failed) {
                assert_true(right);
                break;
            }
            ++n_failed;
            // Without a device's UUID or address it is the same device.
            if (!right && reg && !told && ggml_backend_reg_dev_count(reg) == 2)
                fail_msg("a failure of %s is not told", where);
        }
        assert_true(n_failed > 60);
    }
    test_devices(state);
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
        const bool computed = compute(&other, device);
        end(&work);
        _exit(computed ? 1 : strstr(ggml_last_error(), "child") ? 0 : 2);
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

static void test_no_driver(void **state) {
    (void)state;
    assert_null(cuda_load());
    assert_int_equal(ggml_last_status(), GGML_HOST_NO_DEVICE);
    assert_non_null(strstr(ggml_last_error(), "no CUDA driver"));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_visible),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_child),
    };
    const struct CMUnitTest without[] = {cmocka_unit_test(test_no_driver)};
    if (argc > 1 && strcmp(argv[1], "no-driver") == 0)
        return cmocka_run_group_tests(without, NULL, NULL);
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    cuda_find_driver();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
