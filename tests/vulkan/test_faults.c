// SPDX-License-Identifier: MIT
// A run of everything, from the start of the plugin to its end, with each call of Vulkan failing in
// turn: a status and a message, nothing left behind, and the next run is right.
#include "queue/profile.h"
#include "support/vulkan_faults.h"
#include "support/vulkan_test.h"

#include "support/fault_sweep.h"

enum { N = 700, N_KEPT = 400, MOST_CALLS = 4000 };

static const char *debug_words = "";

// What failed says so.
static bool told(bool ok) {
    if (!ok && ggml_last_error()[0] == '\0') fail_msg("a failure without a message");
    return ok;
}

// As vulkan_graph_new() makes them, of an operation whose shader is small: with the one of NEG and
// ABS, which has all functions, four fifths of the time of each run would go into compiling it.
static bool graph_new(ggml_backend_buffer_type_t buft, int n_steps, struct vulkan_graph *out) {
    const struct ggml_init_params params = {
        .mem_size = (size_t)(n_steps + 4) * ggml_tensor_overhead() + ggml_graph_overhead(),
        .no_alloc = true};
    memset(out, 0, sizeof(*out));
    out->ctx = ggml_init(params);
    if (!out->ctx) return false;
    out->x = out->y = ggml_new_tensor_1d(out->ctx, GGML_TYPE_F32, N);
    for (int i = 0; i < n_steps; ++i)
        out->y = ggml_diag_mask_zero(out->ctx, out->y, N_KEPT - 1);
    out->graph = ggml_new_graph(out->ctx);
    ggml_build_forward_expand(out->graph, out->y);
    out->buffer = ggml_backend_alloc_ctx_tensors_from_buft(out->ctx, buft);
    return out->buffer != NULL;
}

static bool is_masked(const float *values) {
    for (int i = 0; i < N; ++i) {
        if (values[i] != (i < N_KEPT ? (float)(i + 1) : 0)) return false;
    }
    return true;
}

// Times of a graph of two nodes, or that they were lost.
static bool has_times(ggml_backend_t stream) {
    struct ggml_profile_slice slices[8];
    uint64_t n, lost;
    return gvk_profile_extension.read(stream, slices, 8, &n, &lost) == GGML_HOST_OK &&
           n + lost > 0 && gvk_profile_extension.end(stream) == GGML_HOST_OK;
}

static bool use_streams(ggml_backend_t first, ggml_backend_t second, struct vulkan_graph *a,
                        struct vulkan_graph *b, ggml_backend_event_t event) {
    float in[N], out[N], direct[N];
    for (int i = 0; i < N; ++i)
        in[i] = (float)(i + 1);
    memset(out, 0, sizeof(out));
    memset(direct, 0, sizeof(direct));
    const bool is_timed = gvk_profile_extension.begin(second, 8) == GGML_HOST_OK;
    told(is_timed);
    ggml_backend_tensor_set(a->x, in, 0, sizeof(in));
    ggml_backend_tensor_memset(b->x, 0, 0, ggml_nbytes(b->x));
    ggml_backend_tensor_set_async(first, a->x, in, 0, sizeof(in));
    bool ok = ggml_backend_graph_compute_async(first, a->graph) == GGML_STATUS_SUCCESS;
    ggml_backend_event_record(event, first);
    ggml_backend_event_wait(second, event);
    ggml_backend_tensor_copy_async(first, second, a->y, b->x);
    ok = ok && ggml_backend_graph_compute_async(second, b->graph) == GGML_STATUS_SUCCESS;
    ggml_backend_tensor_get_async(second, b->y, out, 0, sizeof(out));
    ggml_backend_synchronize(second);
    ggml_backend_event_synchronize(event);
    ggml_backend_tensor_get(b->y, direct, 0, sizeof(direct));
    return ok && is_masked(out) && is_masked(direct) && (!is_timed || has_times(second));
}

static bool use_device(ggml_backend_dev_t device) {
    ggml_backend_t first = ggml_backend_dev_init(device, NULL);
    ggml_backend_t second = told(first != NULL) ? ggml_backend_dev_init(device, NULL) : NULL;
    ggml_backend_event_t event = ggml_backend_event_new(device);
    struct vulkan_graph a, b;
    const bool made_a = graph_new(ggml_backend_dev_buffer_type(device), 4, &a);
    const bool made_b = graph_new(ggml_backend_dev_buffer_type(device), 2, &b);
    ggml_backend_buffer_t large =
        ggml_backend_buft_alloc_buffer(ggml_backend_dev_host_buffer_type(device), 8 << 20);
    bool ok = told(second && event && made_a && made_b && large);
    ok = ok && use_streams(first, second, &a, &b, event);
    ggml_backend_buffer_free(large);
    vulkan_graph_free(&a);
    vulkan_graph_free(&b);
    ggml_backend_event_free(event);
    ggml_backend_free(first);
    ggml_backend_free(second);
    return ok;
}

// Whether all went well.
static bool run(void) {
    ggml_clear_error();
    ggml_backend_reg_t reg = vulkan_start(debug_words, "0");
    const bool ok = told(reg != NULL) && told(use_device(vulkan_device(reg)));
    vulkan_stop();
    return ok;
}

static void sweep(const char *words, VkResult result, int step) {
    const char *name;
    long n = 0;
    int n_failed = 0;
    debug_words = words;
    for (;; n += step) {
        assert_true(n < MOST_CALLS);
        vulkan_faults_arm(n, result);
        const bool ok = run();
        const bool reached = vulkan_faults_reached(&name);
        vulkan_faults_arm(-1, VK_SUCCESS);
        if (vulkan_faults_n_live() != 0)
            fail_msg("%ld objects are left after call %ld (%s) failed", vulkan_faults_n_live(), n,
                     reached ? name : "none");
        if (!reached) {
            assert_true(ok);
            break;
        }
        n_failed += !ok;
    }
    printf("# %ld calls, %d runs failed\n", n, n_failed);
    assert_true(n_failed > 0);
    assert_true(run());
}

static void test_out_of_memory_at_any_call(void **state) {
    (void)state;
    sweep("", VK_ERROR_OUT_OF_DEVICE_MEMORY, 1);
}

static void test_out_of_memory_with_staging(void **state) {
    (void)state;
    sweep("staging", VK_ERROR_OUT_OF_HOST_MEMORY, 1);
}

static void test_device_lost_at_any_call(void **state) {
    (void)state;
    sweep("staging", VK_ERROR_DEVICE_LOST, 1);
}

// Allocations of the host, the driver's left out.
static void test_no_memory_of_the_host(void **state) {
    (void)state;
    debug_words = "staging";
    for (long n = 0;; n += 5) {
        fault_arm(n);
        const bool ok = run();
        const bool failed = fault_disarm();
        assert_int_equal(vulkan_faults_n_live(), 0);
        if (failed) continue;
        assert_true(ok);
        break;
    }
}

// --- submissions ---------------------------------------------------------------------------------

static void fail_submissions(bool fail) {
    vulkan_faults_arm_function(fail ? "vkQueueSubmit" : NULL, VK_ERROR_OUT_OF_HOST_MEMORY);
}

// More than the staging memory holds, while submissions fail, and then one that is made.
static void test_staging_memory_of_failed_submissions(void **state) {
    enum { UPLOAD = 4 << 20, UPLOADS = 5 };
    const struct ggml_init_params params = {.mem_size = 2 * ggml_tensor_overhead(),
                                            .no_alloc = true};
    struct ggml_context *ctx = ggml_init(params);
    ggml_backend_dev_t device = vulkan_device(vulkan_start("staging", "0"));
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);
    struct ggml_tensor *x = ggml_new_tensor_1d(ctx, GGML_TYPE_I8, UPLOAD);
    ggml_backend_buffer_t buffer =
        ggml_backend_alloc_ctx_tensors_from_buft(ctx, ggml_backend_dev_buffer_type(device));
    char *bytes = malloc(UPLOAD), *back = calloc(1, UPLOAD);
    (void)state;
    assert_true(stream && buffer && bytes && back);
    fail_submissions(true);
    for (int i = 0; i < UPLOADS; ++i) {
        memset(bytes, i + 1, UPLOAD);
        ggml_clear_error();
        ggml_backend_tensor_set_async(stream, x, bytes, 0, UPLOAD);
        told(false);
    }
    fail_submissions(false);
    ggml_clear_error();
    ggml_backend_tensor_set_async(stream, x, bytes, 0, UPLOAD);
    ggml_backend_synchronize(stream);
    assert_string_equal(ggml_last_error(), "");
    ggml_backend_tensor_get(x, back, 0, UPLOAD);
    assert_memory_equal(back, bytes, UPLOAD);
    free(bytes);
    free(back);
    ggml_backend_buffer_free(buffer);
    ggml_backend_free(stream);
    ggml_free(ctx);
    vulkan_stop();
}

// Work that another stream has to have done before what follows.
static void wait_for(ggml_backend_t stream, ggml_backend_t other, ggml_backend_event_t event,
                     struct vulkan_graph *g) {
    const float zeros[N] = {0};
    ggml_backend_tensor_set(g->x, zeros, 0, sizeof(zeros));
    assert_int_equal(ggml_backend_graph_compute_async(other, g->graph), GGML_STATUS_SUCCESS);
    ggml_backend_event_record(event, other);
    fail_submissions(true);
    ggml_backend_event_wait(stream, event);
    fail_submissions(false);
}

// An upload that a wait could not submit fails the graph that it was for, once.
static void lose_upload(const char *devices) {
    ggml_backend_reg_t reg = vulkan_start("staging", devices);
    ggml_backend_dev_t device = vulkan_device(reg), other = reg->table->get_device(reg, 0);
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);
    ggml_backend_t second = ggml_backend_dev_init(other, NULL);
    ggml_backend_event_t event = ggml_backend_event_new(other);
    struct vulkan_graph a, b;
    float in[N], out[N];
    assert_true(stream && second && event);
    assert_true(graph_new(ggml_backend_dev_buffer_type(device), 1, &a));
    assert_true(graph_new(ggml_backend_dev_buffer_type(other), 1, &b));
    for (int i = 0; i < N; ++i)
        in[i] = (float)(i + 1);
    ggml_backend_tensor_memset(a.x, 0, 0, ggml_nbytes(a.x));
    ggml_backend_tensor_set_async(stream, a.x, in, 0, sizeof(in));
    ggml_clear_error();
    wait_for(stream, second, event, &b);
    told(false);
    assert_int_not_equal(ggml_backend_graph_compute(stream, a.graph), GGML_STATUS_SUCCESS);
    ggml_backend_tensor_set_async(stream, a.x, in, 0, sizeof(in));
    assert_int_equal(ggml_backend_graph_compute(stream, a.graph), GGML_STATUS_SUCCESS);
    // A graph that fails itself with what was queued before it says so, once.
    ggml_backend_tensor_set_async(stream, a.x, in, 0, sizeof(in));
    fail_submissions(true);
    assert_int_not_equal(ggml_backend_graph_compute(stream, a.graph), GGML_STATUS_SUCCESS);
    fail_submissions(false);
    assert_int_equal(ggml_backend_graph_compute(stream, a.graph), GGML_STATUS_SUCCESS);
    // What a wait of the host has told no graph tells again.
    ggml_backend_tensor_set_async(stream, a.x, in, 0, sizeof(in));
    fail_submissions(true);
    ggml_clear_error();
    ggml_backend_synchronize(stream);
    assert_int_not_equal(ggml_last_status(), GGML_HOST_OK);
    fail_submissions(false);
    assert_int_equal(ggml_backend_graph_compute(stream, a.graph), GGML_STATUS_SUCCESS);
    ggml_backend_tensor_get(a.y, out, 0, sizeof(out));
    assert_true(is_masked(out));
    ggml_backend_event_free(event);
    ggml_backend_free(stream);
    ggml_backend_free(second);
    vulkan_graph_free(&a);
    vulkan_graph_free(&b);
    vulkan_stop();
}

static void test_lost_uploads_fail_the_next_graph(void **state) {
    (void)state;
    lose_upload("0");
    lose_upload("0,0");
}

// The transfer is lost with the device, and the next graph says which of the two it was.
static void test_graph_after_a_transfer_on_a_lost_device(void **state) {
    const float in[N] = {1};
    struct vulkan_graph g;
    (void)state;
    ggml_backend_dev_t device = vulkan_device(vulkan_start("staging", "0"));
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);
    ggml_backend_event_t event = ggml_backend_event_new(device);
    assert_true(stream && event && graph_new(ggml_backend_dev_buffer_type(device), 1, &g));
    ggml_backend_tensor_set_async(stream, g.x, in, 0, sizeof(in));
    vulkan_faults_arm_function("vkQueueSubmit", VK_ERROR_DEVICE_LOST);
    ggml_backend_event_record(event, stream);
    vulkan_faults_arm_function(NULL, VK_SUCCESS);
    for (int i = 0; i < 2; ++i) {
        ggml_clear_error();
        assert_int_not_equal(ggml_backend_graph_compute_async(stream, g.graph),
                             GGML_STATUS_SUCCESS);
        assert_int_equal(ggml_last_status(), GGML_HOST_DEVICE_LOST);
    }
    ggml_backend_event_free(event);
    ggml_backend_free(stream);
    vulkan_graph_free(&g);
    vulkan_stop();
}

static int install(void **state) {
    (void)state;
    vulkan_faults_install();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_staging_memory_of_failed_submissions),
        cmocka_unit_test(test_lost_uploads_fail_the_next_graph),
        cmocka_unit_test(test_graph_after_a_transfer_on_a_lost_device),
        cmocka_unit_test(test_out_of_memory_at_any_call),
        cmocka_unit_test(test_out_of_memory_with_staging),
        cmocka_unit_test(test_device_lost_at_any_call),
        cmocka_unit_test(test_no_memory_of_the_host),
    };
    return cmocka_run_group_tests(tests, install, NULL);
}
