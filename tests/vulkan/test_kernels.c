// SPDX-License-Identifier: MIT
// Which kernels of convolutions and sorting recorded devices choose, without one; and that those
// for GPUs compute what the CPU does; functions of infinities.
#define _POSIX_C_SOURCE 200809L
#include <math.h>

#include "pipeline/shaders.h"
#include "plan/plan.h"
#include "support/recorded.h"
#include "support/vulkan_test.h"

static struct ggml_context *new_context(void) {
    const struct ggml_init_params params = {.mem_size = 1 << 18, .no_alloc = true};
    return ggml_init(params);
}

// A 3x3 convolution of an image of `size` pixels squared, two of them.
static struct ggml_tensor *convolution(struct ggml_context *ctx, int channels, int size) {
    return ggml_conv_2d_direct(
        ctx, ggml_new_tensor_4d(ctx, GGML_TYPE_F16, 3, 3, channels, channels),
        ggml_new_tensor_4d(ctx, GGML_TYPE_F32, size, size, channels, 2), 2, 1, 1, 0, 1, 1);
}

static struct ggml_tensor *sorted(struct ggml_context *ctx, int n, int rows) {
    return ggml_argsort(ctx, ggml_new_tensor_2d(ctx, GGML_TYPE_F32, n, rows), GGML_SORT_ORDER_ASC);
}

typedef struct ggml_tensor *(*make_fn)(struct ggml_context *ctx, int a, int b);

static const struct {
    const char *device;
    make_fn make;
    int a, b;
    const char *shader; // of the first launch
} choices[] = {
    {"nvidia_rtx_4090", convolution, 64, 64, "conv_tile"},
    {"nvidia_rtx_4090", convolution, 8, 64, "conv_direct"},
    {"intel_uhd_620", convolution, 16, 9, "conv_tile"},
    {"llvmpipe", convolution, 64, 64, "conv_direct"},
    {"amd_rx_6800", sorted, 128, 64, "sort"},
    {"llvmpipe", sorted, 128, 64, "sort_rank"},
    {"llvmpipe", sorted, 4096, 64, "sort"},
};

static void test_choices(void **state) {
    (void)state;
    for (int i = 0; i < (int)(sizeof(choices) / sizeof(choices[0])); ++i) {
        const struct gvk_features features = recorded_features(choices[i].device);
        struct gvk_plan plan;
        struct ggml_context *ctx = new_context();
        gvk_plan_init(&plan, &features);
        assert_true(gvk_plan_add(&plan, choices[i].make(ctx, choices[i].a, choices[i].b)));
        const char *name = gvk_shader_code(gvk_plan_at(&plan, 0)->shader)->name;
        if (strcmp(name, choices[i].shader) != 0)
            fail_msg("choice %d: %s, not %s", i, name, choices[i].shader);
        assert_true(gvk_plan_at(&plan, 0)->specs[0] <= features.max_group_size);
        gvk_plan_free(&plan);
        ggml_free(ctx);
    }
}

// Numbers of matrices are 0. What recurrences have besides two operands is small, and the same for
// all tokens, so that their states neither grow nor vanish.
static void fill_other(struct ggml_tensor *x) {
    const float number = -1.0f / 16;
    ggml_backend_tensor_memset(x, 0, 0, ggml_nbytes(x));
    for (int64_t i = 0; x->type == GGML_TYPE_F32 && i < ggml_nelements(x); ++i)
        ggml_backend_tensor_set(x, &number, (size_t)i * sizeof(number), sizeof(number));
}

static void fill(struct ggml_tensor *y) {
    vulkan_fill(y->src[0], 1);
    if (y->src[1]) vulkan_fill(y->src[1], 2);
    for (int i = 2; i < GGML_MAX_SRC && y->src[i]; ++i)
        fill_other(y->src[i]);
}

// The result, of 32-bit numbers, and how many.
static void *compute(ggml_backend_dev_t device, make_fn make, int a, int b, int64_t *out_n) {
    struct ggml_context *ctx = new_context();
    struct ggml_tensor *y = make(ctx, a, b);
    *out_n = ggml_nelements(y);
    return vulkan_compute(device, ctx, y, fill);
}

static void check_convolution(ggml_backend_dev_t device, ggml_backend_dev_t cpu, int channels,
                              int size) {
    int64_t n;
    float *got = compute(device, convolution, channels, size, &n);
    float *wanted = compute(cpu, convolution, channels, size, &n);
    const double error = vulkan_error(got, wanted, n);
    if (!(error <= 1e-6)) fail_msg("%d channels, %d pixels: %g", channels, size, error);
    free(got);
    free(wanted);
}

// --- long loops ----------------------------------------------------------------------------------

static struct ggml_tensor *image(struct ggml_context *ctx, int width, int height, int channels) {
    return ggml_new_tensor_4d(ctx, GGML_TYPE_F32, width, height, channels, 1);
}

// Of one window, with a pixel per line.
static struct ggml_tensor *tall(struct ggml_context *ctx, int height, int channels) {
    return ggml_conv_2d_direct(ctx, image(ctx, 1, height, channels),
                               image(ctx, 1, height, channels), 1, 1, 0, 0, 1, 1);
}

static struct ggml_tensor *square(struct ggml_context *ctx, int size, int channels) {
    return ggml_conv_2d_direct(ctx, image(ctx, size, size, channels),
                               image(ctx, size, size, channels), 1, 1, 0, 0, 1, 1);
}

static struct ggml_tensor *deep(struct ggml_context *ctx, int size, int channels) {
    return ggml_conv_3d_direct(ctx, ggml_new_tensor_4d(ctx, GGML_TYPE_F32, 1, 1, size, channels),
                               ggml_new_tensor_4d(ctx, GGML_TYPE_F32, 1, 1, size, channels), 1, 1,
                               1, 0, 0, 0, 1, 1, 1, channels, 1, 1);
}

static struct ggml_tensor *per_channel(struct ggml_context *ctx, int width, int height) {
    return ggml_conv_2d_dw_direct(ctx, image(ctx, width, height, 1), image(ctx, width, height, 1),
                                  1, 1, 0, 0, 1, 1);
}

static struct ggml_tensor *pooled(struct ggml_context *ctx, int width, int height) {
    return ggml_pool_2d(ctx, image(ctx, width, height, 1), GGML_OP_POOL_AVG, width, height, width,
                        height, 0, 0);
}

// The gradient of a window of which one element lies in the image, which every window covers.
static struct ggml_tensor *padded(struct ggml_context *ctx, int window, int size) {
    const int n = size + 2 * (window - 1) - window + 1; // of windows, each way
    return ggml_pool_2d_back(ctx, image(ctx, n, n, 1), image(ctx, size, size, 1), GGML_OP_POOL_MAX,
                             window, window, 1, 1, (float)(window - 1), (float)(window - 1));
}

static struct ggml_tensor *shrunk(struct ggml_context *ctx, int size, int flags) {
    return ggml_interpolate(ctx, image(ctx, size, size, 1), 2, 2, 1, 1,
                            GGML_SCALE_MODE_BILINEAR | (uint32_t)flags);
}

static struct ggml_tensor *outer(struct ggml_context *ctx, int width, int n) {
    return ggml_out_prod(ctx, image(ctx, width, n, 1), image(ctx, 4, n, 1));
}

static struct ggml_tensor *by_matrix(struct ggml_context *ctx, int n_tokens, int n_matrices) {
    return ggml_mul_mat_id(ctx, image(ctx, 8, 2, n_matrices), image(ctx, 8, 1, n_tokens),
                           ggml_new_tensor_2d(ctx, GGML_TYPE_I32, 2, n_tokens));
}

// Of one head, with n elements of the state for an invocation.
static struct ggml_tensor *scanned(struct ggml_context *ctx, int n, int n_tokens) {
    return ggml_ssm_scan(ctx, image(ctx, n, 1, 1), image(ctx, 1, 1, n_tokens),
                         ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 1, n_tokens), image(ctx, 1, 1, 1),
                         image(ctx, n, 1, n_tokens), image(ctx, n, 1, n_tokens),
                         ggml_new_tensor_1d(ctx, GGML_TYPE_I32, 1), 1);
}

static struct ggml_tensor *wkv6(struct ggml_context *ctx, int n, int n_tokens) {
    struct ggml_tensor *x[4];
    for (int i = 0; i < 4; ++i)
        x[i] = image(ctx, n, 1, n_tokens);
    return ggml_rwkv_wkv6(ctx, x[0], x[1], x[2], image(ctx, n, 1, 1), x[3],
                          image(ctx, n * n, 1, 1));
}

static struct ggml_tensor *wkv7(struct ggml_context *ctx, int n, int n_tokens) {
    struct ggml_tensor *x[6];
    for (int i = 0; i < 6; ++i)
        x[i] = image(ctx, n, 1, n_tokens);
    return ggml_rwkv_wkv7(ctx, x[0], x[1], x[2], x[3], x[4], x[5], image(ctx, n * n, 1, 1));
}

static struct ggml_tensor *delta_net(struct ggml_context *ctx, int n, int n_tokens) {
    struct ggml_tensor *x[3];
    for (int i = 0; i < 3; ++i)
        x[i] = image(ctx, n, 1, n_tokens);
    return ggml_gated_delta_net(ctx, x[0], x[1], x[2], image(ctx, 1, 1, n_tokens),
                                image(ctx, 1, 1, n_tokens), image(ctx, n, n, 1), 1);
}

enum { SMOOTH = GGML_SCALE_FLAG_ANTIALIAS, ENDS = SMOOTH | GGML_SCALE_FLAG_ALIGN_CORNERS };

// Claimed for a driver that leaves loops after 64,512 iterations, or above that.
static const struct {
    make_fn make;
    int a, b;
    bool claimed;
} long_loops[] = {
    {tall, 10000, 1, true},         {tall, 11000, 1, false},       {tall, 50, 1000, true},
    {square, 125, 2, true},         {square, 130, 3, false},       {square, 240, 1, false},
    {deep, 500, 100, true},         {deep, 9000, 6, false},        {per_channel, 1, 21000, true},
    {per_channel, 1, 22500, false}, {per_channel, 60000, 1, true}, {pooled, 1, 21000, true},
    {pooled, 1, 22500, false},      {pooled, 60000, 1, true},      {shrunk, 240, SMOOTH, true},
    {shrunk, 260, SMOOTH, false},   {shrunk, 260, 0, true},        {shrunk, 300, ENDS, false},
    {outer, 3, 12000, true},        {outer, 3, 14000, false},      {outer, 4, 32000, true},
    {outer, 4, 33000, false},       {by_matrix, 150000, 2, true},  {padded, 100, 1, true},
    {padded, 300, 1, false},        {scanned, 16, 4000, true},     {scanned, 32, 4000, true},
    {wkv6, 16, 4000, true},         {wkv6, 32, 4000, true},        {wkv7, 16, 4000, true},
    {wkv7, 32, 4000, true},         {delta_net, 16, 4000, true},   {delta_net, 32, 4000, true},
};

static void test_long_loops_are_not_claimed(void **state) {
    struct gvk_features features = recorded_features("llvmpipe");
    features.max_iterations = 64512;
    (void)state;
    for (int i = 0; i < (int)(sizeof(long_loops) / sizeof(long_loops[0])); ++i) {
        struct ggml_context *ctx = new_context();
        struct ggml_tensor *node = long_loops[i].make(ctx, long_loops[i].a, long_loops[i].b);
        if (gvk_supports_op(&features, node) != long_loops[i].claimed)
            fail_msg("loop %d: claimed is not %d", i, long_loops[i].claimed);
        ggml_free(ctx);
    }
}

// What is claimed is right.
static void test_long_loops(void **state) {
    (void)state;
    ggml_backend_dev_t device = vulkan_device(vulkan_start("none", ""));
    ggml_backend_dev_t cpu = ggml_backend_dev_by_name("CPU");
    for (int i = 0; device && i < (int)(sizeof(long_loops) / sizeof(long_loops[0])); ++i) {
        struct ggml_context *ctx = new_context();
        const bool claimed = ggml_backend_dev_supports_op(
            device, long_loops[i].make(ctx, long_loops[i].a, long_loops[i].b));
        ggml_free(ctx);
        if (!claimed) continue;
        int64_t n;
        float *got = compute(device, long_loops[i].make, long_loops[i].a, long_loops[i].b, &n);
        float *wanted = compute(cpu, long_loops[i].make, long_loops[i].a, long_loops[i].b, &n);
        const double error = vulkan_error(got, wanted, n);
        if (!(error <= 1e-6)) fail_msg("loop %d: %g", i, error);
        free(got);
        free(wanted);
    }
    vulkan_stop();
}

// --- results -------------------------------------------------------------------------------------

static void check_sort(ggml_backend_dev_t device, ggml_backend_dev_t cpu, int n_items) {
    int64_t n;
    int32_t *got = compute(device, sorted, n_items, 3, &n);
    int32_t *wanted = compute(cpu, sorted, n_items, 3, &n);
    assert_memory_equal(got, wanted, (size_t)n * sizeof(int32_t));
    free(got);
    free(wanted);
}

static struct ggml_tensor *gelu(struct ggml_context *ctx, int form, int n) {
    struct ggml_tensor *x = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, n);
    struct ggml_tensor *g = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, n);
    switch (form) {
    case 0: return ggml_gelu(ctx, x);
    case 1: return ggml_gelu_erf(ctx, x);
    case 2: return ggml_geglu_split(ctx, x, g);
    default: return ggml_geglu_erf_split(ctx, x, g);
    }
}

static void fill_infinities(struct ggml_tensor *y) {
    static const float numbers[] = {-INFINITY, INFINITY, NAN, -1e30f}, ones[] = {1, 1, 1, 1};
    vulkan_set(y->src[0], numbers);
    if (y->src[1]) vulkan_set(y->src[1], ones);
}

// Of minus infinity it is 0, also where it is a gate's, as on the CPU; the others go as they go.
static void test_gelu_of_infinities(void **state) {
    (void)state;
    ggml_backend_dev_t device = vulkan_device(vulkan_start("none", ""));
    for (int form = 0; device && form < 4; ++form) {
        struct ggml_context *ctx = new_context();
        float *out = vulkan_compute(device, ctx, gelu(ctx, form, 4), fill_infinities);
        assert_true(out[0] == 0 && out[1] == INFINITY && isnan(out[2]) && out[3] == 0);
        free(out);
    }
    assert_int_equal(vulkan_n_messages(), 0);
    vulkan_stop();
}

static void test_results(void **state) {
    (void)state;
    for (int gpu = 0; gpu < 2; ++gpu) {
        ggml_backend_dev_t device = vulkan_device(vulkan_start(gpu ? "gpu" : "none", ""));
        ggml_backend_dev_t cpu = ggml_backend_dev_by_name("CPU");
        if (device) {
            check_convolution(device, cpu, 20, 12); // tiles not full, the last window's batch
            check_convolution(device, cpu, 70, 6);  // two tiles of filters
            check_convolution(device, cpu, 5, 70);  // pixels in registers
            if (gpu) check_convolution(device, cpu, 130, 80); // large tiles
            check_sort(device, cpu, 100);
            check_sort(device, cpu, 700);
            check_sort(device, cpu, 5000);
        }
        assert_int_equal(vulkan_n_messages(), 0);
        vulkan_stop();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_long_loops_are_not_claimed),
        cmocka_unit_test(test_long_loops),
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_gelu_of_infinities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
