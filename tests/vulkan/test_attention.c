// SPDX-License-Identifier: MIT
// Which kernel of attention recorded devices choose, without one; and that those for GPUs compute
// what the CPU does.
#define _POSIX_C_SOURCE 200809L
#include <math.h>

#include "pipeline/shaders.h"
#include "plan/plan.h"
#include "support/recorded.h"
#include "support/vulkan_test.h"

struct shape {
    enum ggml_type type;
    int channels, tokens, heads, kv_heads, keys;
};

static struct ggml_tensor *attention(struct ggml_context *ctx, const struct shape *s) {
    return ggml_flash_attn_ext(
        ctx, ggml_new_tensor_3d(ctx, GGML_TYPE_F32, s->channels, s->tokens, s->heads),
        ggml_new_tensor_3d(ctx, s->type, s->channels, s->keys, s->kv_heads),
        ggml_new_tensor_3d(ctx, s->type, s->channels, s->keys, s->kv_heads),
        ggml_new_tensor_2d(ctx, GGML_TYPE_F16, s->keys, s->tokens), 1 / sqrtf((float)s->channels),
        0, 0);
}

static struct ggml_context *new_context(void) {
    const struct ggml_init_params params = {.mem_size = 1 << 18, .no_alloc = true};
    return ggml_init(params);
}

// --- choices -------------------------------------------------------------------------------------

enum { SPEC_ROWS = 12, SPEC_KEYS = 13 }; // of flash_attn_tile.comp

static const struct {
    const char *device;
    struct shape shape;
    const char *shader; // of the first launch
    int rows, keys;     // of an invocation, if it is a tile
    bool split;
} choices[] = {
    {"nvidia_rtx_4090", {GGML_TYPE_F16, 128, 512, 32, 8, 4096}, "flash_attn_tile", 4, 2, false},
    {"nvidia_rtx_4090", {GGML_TYPE_Q8_0, 128, 1, 32, 8, 4096}, "flash_attn_tile", 1, 2, true},
    {"nvidia_rtx_4090", {GGML_TYPE_F16, 128, 1, 32, 32, 4096}, "flash_attn", 0, 0, true},
    {"nvidia_rtx_4090", {GGML_TYPE_F16, 128, 1, 32, 32, 300}, "flash_attn", 0, 0, false},
    {"nvidia_rtx_4090", {GGML_TYPE_F16, 256, 64, 16, 4, 1024}, "flash_attn_tile", 2, 1, true},
    {"nvidia_rtx_4090", {GGML_TYPE_F16, 576, 64, 16, 4, 64}, "flash_attn", 0, 0, false},
    {"nvidia_rtx_4090", {GGML_TYPE_F16, 66, 64, 4, 4, 64}, "flash_attn", 0, 0, false},
    {"amd_rx_6800", {GGML_TYPE_F16, 576, 64, 16, 4, 64}, "flash_attn_tile", 1, 1, false},
    {"intel_uhd_620", {GGML_TYPE_Q4_0, 64, 5, 4, 2, 64}, "flash_attn_tile", 2, 2, false},
    {"llvmpipe", {GGML_TYPE_F16, 128, 512, 32, 8, 4096}, "flash_attn_lanes", 0, 0, false},
    {"llvmpipe", {GGML_TYPE_F16, 128, 1, 2, 2, 600}, "flash_attn", 0, 0, false},
};

static void test_choices(void **state) {
    (void)state;
    for (int i = 0; i < (int)(sizeof(choices) / sizeof(choices[0])); ++i) {
        const struct gvk_features features = recorded_features(choices[i].device);
        struct gvk_plan plan;
        struct ggml_context *ctx = new_context();
        gvk_plan_init(&plan, &features);
        assert_true(gvk_plan_add(&plan, attention(ctx, &choices[i].shape)));
        const struct gvk_dispatch *first = gvk_plan_at(&plan, 0);
        const char *name = gvk_shader_code(first->shader)->name;
        if (strcmp(name, choices[i].shader) != 0)
            fail_msg("choice %d: %s, not %s", i, name, choices[i].shader);
        if (choices[i].rows && ((int)first->specs[SPEC_ROWS] != choices[i].rows ||
                                (int)first->specs[SPEC_KEYS] != choices[i].keys))
            fail_msg("choice %d: %u x %u", i, first->specs[SPEC_ROWS], first->specs[SPEC_KEYS]);
        if (gvk_plan_count(&plan) != (choices[i].split ? 2 : 1))
            fail_msg("choice %d: %d launches", i, gvk_plan_count(&plan));
        gvk_plan_free(&plan);
        ggml_free(ctx);
    }
}

// Keys in parts for so many rows that what they find does not fit into an operand: several launches
// have the same scratch memory one after the other.
static const struct shape many_rows = {GGML_TYPE_F16, 576, 172, 128, 1, 8192};

static void test_scratch_memory_fits_into_an_operand(void **state) {
    struct gvk_features features = recorded_features("llvmpipe");
    struct gvk_plan plan;
    struct ggml_context *ctx = new_context();
    (void)state;
    features.max_iterations = 64512;
    struct ggml_tensor *node = attention(ctx, &many_rows);
    assert_true(gvk_supports_op(&features, node));
    gvk_plan_init(&plan, &features);
    assert_true(gvk_plan_add(&plan, node));
    assert_int_equal(gvk_plan_count(&plan), 4);
    for (int i = 0; i < 4; ++i) {
        const struct gvk_operand *scratch = &gvk_plan_at(&plan, i)->operands[i % 2 ? 2 : 0];
        assert_null(scratch->tensor);
        assert_true(scratch->scratch_bytes > 0);
        assert_true(scratch->scratch_bytes <= features.max_range_bytes);
    }
    gvk_plan_free(&plan);
    ggml_free(ctx);
}

// --- results -------------------------------------------------------------------------------------

static const struct shape shapes[] = {
    {GGML_TYPE_F16, 64, 35, 4, 2, 200},  // tiles, the last not full
    {GGML_TYPE_F32, 40, 5, 2, 2, 70},    // channels that do not fill the lanes
    {GGML_TYPE_Q8_0, 128, 1, 8, 2, 600}, // heads as rows, keys in parts
    {GGML_TYPE_BF16, 32, 1, 2, 2, 800},  // single rows, keys in parts
};

static bool is_hidden(int64_t key) {
    return key % 128 >= 60;
}

// K or V; what is hidden is NaN now and then where the type has that.
static void fill_cache(struct ggml_tensor *t, uint32_t seed) {
    const int64_t n = ggml_nelements(t);
    float *numbers = malloc((size_t)n * sizeof(float));
    for (int64_t i = 0; i < n; ++i) {
        numbers[i] = vulkan_number(&seed);
        if (t->type == GGML_TYPE_F32 && seed >> 31 && is_hidden(i / t->ne[0] % t->ne[1]))
            numbers[i] = NAN;
    }
    vulkan_set(t, numbers);
    free(numbers);
}

static void fill_mask(struct ggml_tensor *mask) {
    const int64_t n = ggml_nelements(mask);
    float *numbers = malloc((size_t)n * sizeof(float));
    uint32_t seed = 4;
    for (int64_t i = 0; i < n; ++i) {
        const float x = vulkan_number(&seed);
        numbers[i] = is_hidden(i % mask->ne[0]) || x > 0.8f ? -INFINITY : x;
    }
    vulkan_set(mask, numbers);
    free(numbers);
}

static void fill(struct ggml_tensor *y) {
    vulkan_fill(y->src[0], 1);
    fill_cache(y->src[1], 2);
    fill_cache(y->src[2], 3);
    fill_mask(y->src[3]);
}

static float *compute(ggml_backend_dev_t device, const struct shape *s) {
    struct ggml_context *ctx = new_context();
    return vulkan_compute(device, ctx, attention(ctx, s), fill);
}

static void test_kernels_of_gpus(void **state) {
    ggml_backend_dev_t cpu, device = vulkan_device(vulkan_start("gpu", ""));
    (void)state;
    cpu = ggml_backend_dev_by_name("CPU");
    for (int i = 0; device && i < (int)(sizeof(shapes) / sizeof(shapes[0])); ++i) {
        float *got = compute(device, &shapes[i]), *wanted = compute(cpu, &shapes[i]);
        const double error =
            vulkan_error(got, wanted, shapes[i].channels * shapes[i].tokens * shapes[i].heads);
        if (!(error <= 1e-5)) fail_msg("shape %d: %g", i, error);
        free(got);
        free(wanted);
    }
    assert_int_equal(vulkan_n_messages(), 0);
    vulkan_stop();
}

// On a driver with limits so low that rows are computed in several launches.
static void test_rows_in_several_launches(void **state) {
    static const struct shape shape = {GGML_TYPE_F16, 66, 40, 4, 1, 600};
    ggml_backend_dev_t device = vulkan_device(vulkan_start("record", ""));
    (void)state;
    if (device && gvk_device_of(device)->features.cpu) {
        struct gvk_features *features = &gvk_device_of(device)->features;
        features->max_iterations = 1000;
        features->max_range_bytes = 100000;
        float *got = compute(device, &shape);
        assert_int_equal(vulkan_n_dispatches(), 6);
        float *wanted = compute(ggml_backend_dev_by_name("CPU"), &shape);
        const double error = vulkan_error(got, wanted, shape.channels * shape.tokens * shape.heads);
        if (!(error <= 1e-5)) fail_msg("%g", error);
        free(got);
        free(wanted);
    }
    vulkan_stop();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_scratch_memory_fits_into_an_operand),
        cmocka_unit_test(test_kernels_of_gpus),
        cmocka_unit_test(test_rows_in_several_launches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
