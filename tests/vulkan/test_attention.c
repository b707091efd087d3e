// SPDX-License-Identifier: MIT
// Which kernel of attention recorded devices choose, without one; and that those for GPUs compute
// what the CPU does.
#define _POSIX_C_SOURCE 200809L
#include <math.h>

#include "plan.h"
#include "recorded.h"
#include "shaders.h"
#include "vulkan_test.h"

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
        const struct vk_features features = recorded_features(choices[i].device);
        struct vk_plan plan;
        struct ggml_context *ctx = new_context();
        vk_plan_init(&plan, &features);
        assert_true(vk_plan_add(&plan, attention(ctx, &choices[i].shape)));
        const struct vk_dispatch *first = &plan.dispatches[0];
        const char *name = vk_shader_code(first->shader)->name;
        if (strcmp(name, choices[i].shader) != 0)
            fail_msg("choice %d: %s, not %s", i, name, choices[i].shader);
        if (choices[i].rows && ((int)first->specs[SPEC_ROWS] != choices[i].rows ||
                                (int)first->specs[SPEC_KEYS] != choices[i].keys))
            fail_msg("choice %d: %u x %u", i, first->specs[SPEC_ROWS], first->specs[SPEC_KEYS]);
        if (plan.n_dispatches != (choices[i].split ? 2 : 1))
            fail_msg("choice %d: %d launches", i, plan.n_dispatches);
        vk_plan_free(&plan);
        ggml_free(ctx);
    }
}

// --- results -------------------------------------------------------------------------------------

static const struct shape shapes[] = {
    {GGML_TYPE_F16, 64, 35, 4, 2, 200},  // tiles, the last not full
    {GGML_TYPE_F32, 40, 5, 2, 2, 70},    // channels that do not fill the lanes
    {GGML_TYPE_Q8_0, 128, 1, 8, 2, 600}, // heads as rows, keys in parts
    {GGML_TYPE_BF16, 32, 1, 2, 2, 800},  // single rows, keys in parts
};

static float number_of(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(*seed >> 8) / (float)(1 << 23) - 1;
}

static void set(struct ggml_tensor *t, const float *numbers) {
    char *data = malloc(ggml_nbytes(t));
    if (t->type == GGML_TYPE_F32)
        memcpy(data, numbers, ggml_nbytes(t));
    else
        ggml_quantize_chunk(t->type, numbers, data, 0, ggml_nrows(t), t->ne[0], NULL);
    ggml_backend_tensor_set(t, data, 0, ggml_nbytes(t));
    free(data);
}

static bool is_hidden(int64_t key) {
    return key % 128 >= 60;
}

// Of K or V; what is hidden is NaN where the type has that.
static void fill(struct ggml_tensor *t, uint32_t seed) {
    const int64_t n = ggml_nelements(t);
    float *numbers = malloc((size_t)n * sizeof(float));
    for (int64_t i = 0; i < n; ++i) {
        numbers[i] = number_of(&seed);
        if (t->type == GGML_TYPE_F32 && seed >> 31 && is_hidden(i / t->ne[0] % t->ne[1]))
            numbers[i] = NAN;
    }
    set(t, numbers);
    free(numbers);
}

static void fill_mask(struct ggml_tensor *mask) {
    const int64_t n = ggml_nelements(mask);
    float *numbers = malloc((size_t)n * sizeof(float));
    uint32_t seed = 4;
    for (int64_t i = 0; i < n; ++i) {
        const float x = number_of(&seed);
        numbers[i] = is_hidden(i % mask->ne[0]) || x > 0.8f ? -INFINITY : x;
    }
    set(mask, numbers);
    free(numbers);
}

static float *compute(ggml_backend_dev_t device, const struct shape *s) {
    struct ggml_context *ctx = new_context();
    struct ggml_tensor *y = attention(ctx, s);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, y);
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);
    assert_non_null(stream);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, stream);
    assert_non_null(buffer);
    float *numbers = malloc(ggml_nbytes(y->src[0]));
    uint32_t seed = 1;
    for (int64_t i = 0; i < ggml_nelements(y->src[0]); ++i)
        numbers[i] = number_of(&seed);
    set(y->src[0], numbers);
    fill(y->src[1], 2);
    fill(y->src[2], 3);
    fill_mask(y->src[3]);
    assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_SUCCESS);
    ggml_backend_tensor_get(y, numbers, 0, ggml_nbytes(y)); // as large as the queries
    ggml_backend_free(stream);
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);
    return numbers;
}

static void test_kernels_of_gpus(void **state) {
    ggml_backend_dev_t cpu, device = vulkan_device(vulkan_start("gpu", ""));
    (void)state;
    cpu = ggml_backend_dev_by_name("CPU");
    for (int i = 0; device && i < (int)(sizeof(shapes) / sizeof(shapes[0])); ++i) {
        float *got = compute(device, &shapes[i]), *wanted = compute(cpu, &shapes[i]);
        double error = 0, power = 0;
        for (int k = 0; k < shapes[i].channels * shapes[i].tokens * shapes[i].heads; ++k) {
            const double difference = (double)got[k] - (double)wanted[k];
            error += difference * difference;
            power += (double)wanted[k] * (double)wanted[k];
        }
        if (!(power > 0 && error <= 1e-5 * power)) fail_msg("shape %d: %g", i, error / power);
        free(got);
        free(wanted);
    }
    assert_int_equal(vulkan_n_messages(), 0);
    vulkan_stop();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_kernels_of_gpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
