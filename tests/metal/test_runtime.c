// SPDX-License-Identifier: MIT
// The Metal plugin on the fake runtime: devices, streams, events and buffers together; each call
// failing in turn; low memory; children of the process.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "metal_test.h"

enum { N = 40 };

// --- what is computed ----------------------------------------------------------------------------

// z = soft_max(x y) + x on one stream, doubled by another that waits for an event.
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
    struct ggml_tensor *d = ggml_scale(w->context, c, 2.0f);
    struct ggml_cgraph *first = ggml_new_graph(w->context), *second = ggml_new_graph(w->context);
    ggml_build_forward_expand(first, c);
    ggml_graph_add_node(second, d);
    if (!(w->buffer = ggml_backend_alloc_ctx_tensors(w->context, w->streams[0]))) return false;
    ggml_backend_tensor_set_async(w->streams[0], a, y, 0, sizeof(y));
    ggml_backend_tensor_set_async(w->streams[0], b, x, 0, sizeof(x));
    if (ggml_backend_graph_compute_async(w->streams[0], first) != GGML_STATUS_SUCCESS) return false;
    ggml_backend_event_record(w->event, w->streams[0]);
    ggml_backend_event_wait(w->streams[1], w->event);
    d->flags |= GGML_TENSOR_FLAG_COMPUTE;
    if (ggml_backend_graph_compute_async(w->streams[1], second) != GGML_STATUS_SUCCESS)
        return false;
    ggml_backend_tensor_get_async(w->streams[1], d, w->out, 0, sizeof(w->out));
    ggml_backend_synchronize(w->streams[1]);
    ggml_backend_event_synchronize(w->event);
    ggml_backend_synchronize(w->streams[0]);
    // Rows of soft_max sum up to 1; y is the identity.
    for (int r = 0; r < N; ++r) {
        double sum = 0.0;
        for (int i = 0; i < N; ++i)
            sum += 0.5 * (double)w->out[r * N + i] - (double)x[r * N + i];
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
    ggml_backend_reg_t reg = metal_load();
    assert_non_null(reg);
    assert_int_equal(ggml_backend_reg_dev_count(reg), 2);
    for (size_t i = 0; i < 2; ++i) {
        struct ggml_backend_dev_props props;
        ggml_backend_dev_t device = ggml_backend_reg_dev_get(reg, i);
        ggml_backend_dev_get_props(device, &props);
        assert_string_equal(props.name, i ? "Metal1" : "Metal0");
        assert_string_equal(props.device_id,
                            i ? "metal:0000000100000124" : "metal:0000000100000123");
        assert_non_null(strstr(props.description, "unverified on hardware"));
        assert_int_equal(props.memory_total, 1 << 30);
        assert_int_equal(props.type, GGML_BACKEND_DEVICE_TYPE_IGPU);
        const bool right = compute(&work, device);
        ggml_backend_dev_get_props(device, &props);
        assert_true(props.memory_free < props.memory_total);
        end(&work);
        if (!right) fail_msg("wrong results on device %d: %s", (int)i, ggml_last_error());
    }
    metal_unload(reg);
    assert_int_equal(metal.live(), 0);
}

// Wherever a call fails, it is told, nothing is left, and the plugin works when it is loaded again.
static void sweep(int code) {
    static struct work work;
    int n_failed = 0;
    for (long n = 0;; ++n) {
        metal.fail_after(n, code);
        ggml_clear_error();
        ggml_backend_reg_t reg = metal_load();
        const bool right = reg && ggml_backend_reg_dev_count(reg) > 0 &&
                           compute(&work, ggml_backend_reg_dev_get(reg, 0));
        const bool told = ggml_last_status() != GGML_HOST_OK;
        const char *failed = metal.failed();
        if (!failed) metal.fail_after(-1, 0); // nor does any that frees
        end(&work);
        metal_unload(reg);
        if (metal.live() != 0)
            fail_msg("%ld objects left after a failure of %s", metal.live(), failed);
        metal.fail_after(-1, 0);
        if (!failed) {
            assert_true(right);
            break;
        }
        ++n_failed;
        // Without a list of devices there is the default one.
        if (!right && !told) fail_msg("a failure of %s is not told", failed);
    }
    assert_true(n_failed > 25);
}

static void test_faults(void **state) {
    sweep(FAKE_METAL_OUT_OF_MEMORY);
    sweep(FAKE_METAL_DEVICE_REMOVED);
    setenv("FAKE_METAL_UNIFIED", "0", 1); // copies of the device, staging memory
    sweep(FAKE_METAL_OUT_OF_MEMORY);
    sweep(FAKE_METAL_DEVICE_REMOVED);
    unsetenv("FAKE_METAL_UNIFIED");
    test_devices(state);
}

// --- planted mistakes ----------------------------------------------------------------------------

enum { FOUND, NOT_FOUND, NOT_DROPPED, NO_PLUGIN };

// In a process of its own, which a mistake that the runtime sees ends.
static int without(const char *selector, long n) {
    static struct work work;
    metal.drop(selector, n);
    ggml_clear_error();
    ggml_backend_reg_t reg = metal_load();
    if (!reg) return NO_PLUGIN;
    const bool right = compute(&work, ggml_backend_reg_dev_get(reg, 0));
    const bool told = ggml_last_status() != GGML_HOST_OK;
    end(&work);
    ggml_plugin_unload(reg);
    if (!metal.dropped()) return NOT_DROPPED;
    return right && !told && metal.live() == 0 ? NOT_FOUND : FOUND;
}

// Whichever message of the plugin's is left out: the runtime says what is wrong, results are, a
// failure is told, or objects are left. Of references every third, as each costs a process.
static void test_planted(void **state) {
    static const struct {
        const char *selector;
        int step;
    } rows[] = {
        {"retain", 3},
        {"release", 3},
        {"commit", 1},
        {"endEncoding", 1},
        {"useResource:usage:", 1},
        {"encodeSignalEvent:value:", 1},
        {"encodeWaitForEvent:value:", 1},
        {"addAllocation:", 1},
        {"copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:", 1},
    };
    (void)state;
    setenv("FAKE_METAL_DEVICES", "1", 1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        long n = 0;
        for (int status = 0, code = FOUND; code != NOT_DROPPED; n += rows[i].step) {
            fflush(NULL);
            const pid_t child = fork();
            if (child == 0) {
                const bool quiet = freopen("/dev/null", "w", stderr) != NULL;
                signal(SIGABRT, SIG_DFL);
                _exit(quiet ? without(rows[i].selector, n) : NO_PLUGIN);
            }
            assert_int_equal(waitpid(child, &status, 0), child);
            code = WIFEXITED(status) ? WEXITSTATUS(status) : FOUND;
            if (code == NOT_FOUND || code == NO_PLUGIN)
                fail_msg("nobody misses message %ld of %s (%d)", n, rows[i].selector, code);
        }
        assert_true(n > rows[i].step);
    }
    setenv("FAKE_METAL_DEVICES", "2", 1);
}

// What Metal says of a command buffer, as a status.
static void test_codes(void **state) {
    static const struct {
        int code;
        enum ggml_host_status status;
    } rows[] = {
        {1, GGML_HOST_FAILED},        // internal
        {2, GGML_HOST_FAILED},        // timeout
        {3, GGML_HOST_FAILED},        // page fault
        {4, GGML_HOST_DEVICE_LOST},   // access revoked
        {7, GGML_HOST_FAILED},        // not permitted
        {8, GGML_HOST_OUT_OF_MEMORY}, // out of memory
        {11, GGML_HOST_DEVICE_LOST},  // device removed
    };
    static struct work work;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        ggml_backend_reg_t reg = metal_load();
        assert_true(compute(&work, metal_device(reg, 0)));
        metal.fail_after(1, rows[i].code); // after the command buffer is made
        ggml_backend_event_record(work.event, work.streams[0]);
        ggml_clear_error();
        ggml_backend_synchronize(work.streams[0]);
        assert_int_equal(ggml_last_status(), rows[i].status);
        metal.fail_after(-1, 0);
        ggml_clear_error();
        ggml_backend_event_record(work.event, work.streams[0]);
        ggml_backend_synchronize(work.streams[0]);
        assert_int_equal(ggml_last_status() == GGML_HOST_OK,
                         rows[i].status != GGML_HOST_DEVICE_LOST);
        end(&work);
        metal_unload(reg);
    }
}

// A device that is lost says so at every call, until the plugin is loaded again.
static void test_lost(void **state) {
    static struct work work;
    (void)state;
    ggml_backend_reg_t reg = metal_load();
    ggml_backend_dev_t device = ggml_backend_reg_dev_get(reg, 0);
    assert_true(compute(&work, device));
    struct ggml_tensor *a = ggml_get_first_tensor(work.context);
    metal.fail_after(1, FAKE_METAL_DEVICE_REMOVED); // after the command buffer is made
    ggml_backend_event_record(work.event, work.streams[0]);
    ggml_clear_error();
    ggml_backend_synchronize(work.streams[0]);
    assert_int_equal(ggml_last_status(), GGML_HOST_DEVICE_LOST);
    ggml_clear_error();
    ggml_backend_tensor_set(a, work.out, 0, sizeof(float));
    assert_int_equal(ggml_last_status(), GGML_HOST_DEVICE_LOST);
    end(&work);
    metal_unload(reg);
    metal.fail_after(-1, 0);
    test_devices(state);
}

static void test_memory(void **state) {
    (void)state;
    setenv("FAKE_METAL_MEMORY", "1048576", 1);
    ggml_backend_reg_t reg = metal_load();
    ggml_backend_dev_t device = ggml_backend_reg_dev_get(reg, 0);
    ggml_backend_buffer_type_t buft = ggml_backend_dev_buffer_type(device);
    size_t free_bytes, total;
    ggml_backend_buffer_t half = ggml_backend_buft_alloc_buffer(buft, 600000);
    assert_non_null(half);
    ggml_backend_dev_memory(device, &free_bytes, &total);
    assert_int_equal(total, 1048576);
    assert_true(free_bytes <= total - 600000);
    assert_null(ggml_backend_buft_alloc_buffer(buft, 600000));
    assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_MEMORY);
    assert_null(ggml_backend_buft_alloc_buffer(buft, 2 << 20));
    assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_MEMORY);
    ggml_backend_buffer_free(half);
    half = ggml_backend_buft_alloc_buffer(buft, 1000000);
    assert_non_null(half);
    ggml_backend_buffer_free(half);
    metal_unload(reg);
    unsetenv("FAKE_METAL_MEMORY");
    assert_int_equal(metal.live(), 0);
}

// --- memory of the application's -----------------------------------------------------------------

// A sum of two tensors that lie in the application's memory, written there as well.
static bool add_in_place(ggml_backend_t stream, ggml_backend_buffer_t buffer, float *memory,
                         size_t at_a, size_t at_b) {
    struct ggml_context *context = ggml_init((struct ggml_init_params){1 << 20, NULL, true});
    struct ggml_tensor *a = ggml_new_tensor_1d(context, GGML_TYPE_F32, N);
    struct ggml_tensor *b = ggml_new_tensor_1d(context, GGML_TYPE_F32, N);
    struct ggml_tensor *sum = ggml_add_inplace(context, a, b);
    struct ggml_cgraph *graph = ggml_new_graph(context);
    ggml_build_forward_expand(graph, sum);
    for (int i = 0; i < N; ++i) {
        memory[at_a + (size_t)i] = (float)i;
        memory[at_b + (size_t)i] = 100.0f;
    }
    bool right = ggml_backend_tensor_alloc(buffer, a, memory + at_a) == GGML_STATUS_SUCCESS &&
                 ggml_backend_tensor_alloc(buffer, b, memory + at_b) == GGML_STATUS_SUCCESS &&
                 ggml_backend_view_init(sum) == GGML_STATUS_SUCCESS &&
                 ggml_backend_graph_compute(stream, graph) == GGML_STATUS_SUCCESS;
    for (int i = 0; i < N && right; ++i)
        right = memory[at_a + (size_t)i] == 100.0f + (float)i && memory[at_b + (size_t)i] == 100.0f;
    ggml_free(context);
    return right;
}

// The device's largest buffer is a quarter of the memory: tensors lie in different windows, and one
// at the end of a window lies wholly in the next.
static void test_host_memory(void **state) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), n_pages = 16;
    float *memory = aligned_alloc(page, n_pages * page);
    char text[32];
    (void)state;
    snprintf(text, sizeof(text), "%zu", n_pages / 4 * page);
    setenv("FAKE_METAL_MAX_BUFFER", text, 1);
    ggml_backend_reg_t reg = metal_load();
    ggml_backend_dev_t device = ggml_backend_reg_dev_get(reg, 0);
    struct ggml_backend_dev_props props;
    ggml_backend_dev_get_props(device, &props);
    assert_true(props.caps.buffer_from_host_ptr && props.caps.mmap_support);
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);
    // The last page is not full.
    const size_t size = n_pages * page - 256;
    ggml_backend_buffer_t buffer =
        ggml_backend_dev_buffer_from_host_ptr(device, memory, size, N * sizeof(float));
    assert_non_null(buffer);
    assert_ptr_equal(ggml_backend_buffer_get_base(buffer), memory);
    const size_t floats = page / sizeof(float), end = size / sizeof(float) - N;
    assert_true(add_in_place(stream, buffer, memory, 0, N));
    assert_true(add_in_place(stream, buffer, memory, 0, end));
    for (size_t at = 4; at < end - N; at += floats - 8)
        assert_true(add_in_place(stream, buffer, memory, at, at + N));
    ggml_backend_buffer_free(buffer);
    // Refused: no beginning of a page; tensors that no window would show whole.
    assert_null(ggml_backend_dev_buffer_from_host_ptr(device, memory + 1, page, page));
    assert_int_equal(ggml_last_status(), GGML_HOST_INVALID_ARGUMENT);
    assert_null(ggml_backend_dev_buffer_from_host_ptr(device, memory, size, n_pages / 4 * page));
    assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_MEMORY);
    metal.fail_after(2, FAKE_METAL_OUT_OF_MEMORY); // the third window
    assert_null(ggml_backend_dev_buffer_from_host_ptr(device, memory, size, 64));
    metal.fail_after(-1, 0);
    ggml_backend_free(stream);
    metal_unload(reg);
    assert_int_equal(metal.live(), 0);
    unsetenv("FAKE_METAL_MAX_BUFFER");
    free(memory);
}

// A device with memory of its own would read the host's across a bus.
static void test_separate_memory(void **state) {
    struct ggml_backend_dev_props props;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *memory = aligned_alloc(page, page);
    (void)state;
    setenv("FAKE_METAL_UNIFIED", "0", 1);
    ggml_backend_reg_t reg = metal_load();
    ggml_backend_dev_t device = ggml_backend_reg_dev_get(reg, 0);
    ggml_backend_dev_get_props(device, &props);
    assert_int_equal(props.type, GGML_BACKEND_DEVICE_TYPE_GPU);
    assert_false(props.caps.buffer_from_host_ptr);
    assert_null(ggml_backend_dev_buffer_from_host_ptr(device, memory, page, page));
    metal_unload(reg);
    unsetenv("FAKE_METAL_UNIFIED");
    free(memory);
}

static void test_child(void **state) {
    static struct work work;
    (void)state;
    ggml_backend_reg_t reg = metal_load();
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
    metal_unload(reg);
    assert_int_equal(metal.live(), 0);
}

// Devices that kernels can't run on are left out, with a reason.
static void test_unfit(void **state) {
    static struct work work;
    (void)state;
    setenv("FAKE_METAL_FAMILY", "0", 1);
    assert_null(metal_load());
    assert_int_equal(ggml_last_status(), GGML_HOST_NO_DEVICE);
    unsetenv("FAKE_METAL_FAMILY");
    setenv("FAKE_METAL_APPLE", "0", 1); // shares memory and is none of Apple's: Intel's
    assert_null(metal_load());
    assert_int_equal(ggml_last_status(), GGML_HOST_NO_DEVICE);
    unsetenv("FAKE_METAL_APPLE");
    setenv("FAKE_METAL_WIDTH", "16", 1);
    ggml_backend_reg_t reg = metal_load();
    assert_non_null(reg);
    assert_false(compute(&work, ggml_backend_reg_dev_get(reg, 0)));
    assert_non_null(strstr(ggml_last_error(), "16 lanes"));
    end(&work);
    metal_unload(reg);
    unsetenv("FAKE_METAL_WIDTH");
    assert_int_equal(metal.live(), 0);
}

// Of AMD's: memory of its own, SIMD groups of 64 lanes, no matrices.
static void test_amd(void **state) {
    (void)state;
    setenv("FAKE_METAL_APPLE", "0", 1);
    setenv("FAKE_METAL_UNIFIED", "0", 1);
    setenv("FAKE_METAL_WIDTH", "64", 1);
    static struct work work;
    ggml_backend_reg_t reg = metal_load();
    ggml_backend_dev_t device = metal_device(reg, 0);
    if (!compute(&work, device)) fail_msg("%s", ggml_last_error());
    assert_int_equal(ggml_backend_dev_type(device), GGML_BACKEND_DEVICE_TYPE_GPU);
    end(&work);
    metal_unload(reg);
    assert_int_equal(metal.live(), 0);
    unsetenv("FAKE_METAL_WIDTH");
    unsetenv("FAKE_METAL_UNIFIED");
    unsetenv("FAKE_METAL_APPLE");
}

static void test_no_metal(void **state) {
    (void)state;
    assert_null(metal_load());
    assert_int_equal(ggml_last_status(), GGML_HOST_NO_DEVICE);
    assert_non_null(strstr(ggml_last_error(), "no Metal"));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices),     cmocka_unit_test(test_faults),
        cmocka_unit_test(test_lost),        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_child),       cmocka_unit_test(test_unfit),
        cmocka_unit_test(test_host_memory), cmocka_unit_test(test_separate_memory),
        cmocka_unit_test(test_amd),         cmocka_unit_test(test_codes),
        cmocka_unit_test(test_planted),
    };
    const struct CMUnitTest without[] = {cmocka_unit_test(test_no_metal)};
    if (argc > 1 && strcmp(argv[1], "no-metal") == 0)
        return cmocka_run_group_tests(without, NULL, NULL);
    setenv("FAKE_METAL_DEVICES", "2", 1);
    metal_find_runtime();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
