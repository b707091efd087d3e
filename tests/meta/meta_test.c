// SPDX-License-Identifier: MIT
// Fills leaves by a hash of their name, shares them out by the plan's rules, and compares the
// result of one device with that of the meta device.
#include "meta_test.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct split_rule *find_rule(const struct split_plan *plan, const char *name) {
    for (int i = 0; i < META_TEST_MAX_RULES && plan->rules[i].prefix; ++i) {
        const size_t length = strlen(plan->rules[i].prefix);
        if (strncmp(name, plan->rules[i].prefix, length) == 0) return &plan->rules[i];
    }
    return NULL;
}

// Shares of n_steps by weight; the last ones get what rounding leaves.
static void share_out(const struct split_plan *plan, int64_t n_steps, int64_t step, int64_t *out) {
    int64_t total = 0, sum = 0, done = 0;
    for (size_t j = 0; j < plan->n_devices; ++j)
        total += plan->weights[j];
    for (size_t j = 0; j < plan->n_devices; ++j) {
        sum += plan->weights[j];
        const int64_t end = n_steps * sum / total;
        out[j] = (end - done) * step;
        done = end;
    }
}

struct ggml_backend_meta_split_state meta_test_split(const struct ggml_tensor *tensor,
                                                     void *userdata) {
    const struct split_plan *plan = userdata;
    const struct split_rule *rule = find_rule(plan, tensor->name);
    struct ggml_backend_meta_split_state state = {.axis = GGML_BACKEND_SPLIT_AXIS_MIRRORED,
                                                  .n_segments = 1};
    state.nr[0] = 1;
    if (!rule) return state;
    state.axis = (enum ggml_backend_meta_split_axis)rule->axis;
    if (rule->axis > 3) return state;
    const int64_t step = rule->step ? rule->step : 1;
    state.n_segments = (uint32_t)(rule->n_segments ? rule->n_segments : 1);
    for (uint32_t s = 0; s < state.n_segments; ++s) {
        state.nr[s] = 1;
        share_out(plan, tensor->ne[rule->axis] / step / state.n_segments, step,
                  &state.ne[s * plan->n_devices]);
    }
    return state;
}

static uint64_t hash_name(const char *name) {
    uint64_t hash = 14695981039346656037u;
    for (; *name; ++name)
        hash = (hash ^ (uint64_t)*name) * 1099511628211u;
    return hash;
}

static float uniform(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(*state >> 32) / 2147483648.0f;
}

// Integers count up; "ids..." ones are taken modulo 4. A mask is 0 or -infinity.
static void fill(struct ggml_tensor *tensor) {
    const int64_t n = ggml_nelements(tensor);
    uint64_t state = hash_name(tensor->name);
    float *values = malloc((size_t)n * sizeof(*values));
    char *data = calloc(1, ggml_nbytes(tensor));
    assert_non_null(values);
    assert_non_null(data);
    const bool mask = strncmp(tensor->name, "mask", 4) == 0;
    for (int64_t i = 0; i < n; ++i) {
        values[i] = uniform(&state);
        if (mask) values[i] = values[i] > 0.8f ? -INFINITY : 0.0f;
    }
    for (int64_t i = 0; i < n; ++i) {
        const int32_t number =
            (int32_t)(strncmp(tensor->name, "ids", 3) == 0 ? (i * 7 + 1) % 4 : i);
        if (tensor->type == GGML_TYPE_I32) ((int32_t *)(void *)data)[i] = number;
        if (tensor->type == GGML_TYPE_I64) ((int64_t *)(void *)data)[i] = number;
    }
    if (tensor->type != GGML_TYPE_I32 && tensor->type != GGML_TYPE_I64) {
        const int64_t rows = ggml_nrows(tensor);
        ggml_quantize_chunk(tensor->type, values, data, 0, rows, tensor->ne[0], NULL);
    }
    if (tensor->type == GGML_TYPE_F32) memcpy(data, values, ggml_nbytes(tensor));
    ggml_backend_tensor_set(tensor, data, 0, ggml_nbytes(tensor));
    free(values);
    free(data);
}

static ggml_backend_dev_t choose_device(const struct virtual_host *host, struct split_plan *plan) {
    ggml_backend_dev_t devices[16];
    if (!plan) return virtual_device(host, 0);
    for (size_t j = 0; j < plan->n_devices; ++j)
        devices[j] = virtual_device(host, j);
    return ggml_backend_meta_device(devices, plan->n_devices, meta_test_split, plan);
}

struct ggml_tensor *meta_leaf(struct meta_run *run, const char *name, enum ggml_type type,
                              int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3) {
    return ggml_set_name(ggml_new_tensor_4d(run->leafs, type, ne0, ne1, ne2, ne3), name);
}

void meta_run_begin(struct meta_run *run, const struct virtual_host *host, struct split_plan *plan,
                    build_fn build, void *user) {
    const struct ggml_init_params params = {.mem_size = 128 << 10, .no_alloc = true};
    *run = (struct meta_run){.leafs = ggml_init(params), .nodes = ggml_init(params)};
    run->stream = ggml_backend_dev_init(choose_device(host, plan), NULL);
    assert_non_null(run->stream);
    run->graph = ggml_new_graph_custom(run->nodes, 256, false);
    run->result = build(run, user);
    if (ggml_tensor_is_error(run->result)) fail_msg("%s", ggml_tensor_error(run->result));
    ggml_set_output(run->result);
    ggml_build_forward_expand(run->graph, run->result);
    ggml_backend_buffer_type_t buft = ggml_backend_get_default_buffer_type(run->stream);
    run->memory = ggml_backend_alloc_ctx_tensors_from_buft(run->leafs, buft);
    if (!run->memory) fail_msg("%s", ggml_last_error());
    for (struct ggml_tensor *t = ggml_get_first_tensor(run->leafs); t;
         t = ggml_get_next_tensor(run->leafs, t)) {
        fill(t);
    }
    run->galloc = ggml_gallocr_new(buft);
    if (!ggml_gallocr_alloc_graph(run->galloc, run->graph)) fail_msg("%s", ggml_last_error());
}

void meta_run_end(struct meta_run *run) {
    ggml_backend_free(run->stream);
    ggml_gallocr_free(run->galloc);
    ggml_backend_buffer_free(run->memory);
    ggml_free(run->nodes);
    ggml_free(run->leafs);
}

float *meta_run_result(struct meta_run *run) {
    float *values = malloc(ggml_nbytes(run->result));
    assert_non_null(values);
    ggml_clear_error();
    if (ggml_backend_graph_compute(run->stream, run->graph) != GGML_STATUS_SUCCESS) {
        fail_msg("%s", ggml_last_error());
    }
    ggml_backend_tensor_get(run->result, values, 0, ggml_nbytes(run->result));
    assert_string_equal(ggml_last_error(), "");
    return values;
}

double meta_test_compare(const struct virtual_host *host, struct split_plan *plan, build_fn build,
                         void *user) {
    struct meta_run one, many;
    double largest = 0, difference = 0;
    meta_run_begin(&one, host, NULL, build, user);
    float *expected = meta_run_result(&one);
    const int64_t n = ggml_nelements(one.result);
    meta_run_end(&one);
    host->log_clear();
    meta_run_begin(&many, host, plan, build, user);
    float *values = meta_run_result(&many);
    meta_run_end(&many);
    for (int64_t i = 0; i < n; ++i) {
        if (!isfinite(expected[i]) || !isfinite(values[i])) {
            difference = isnan(expected[i]) == isnan(values[i]) ? difference : INFINITY;
            continue;
        }
        largest = fmax(largest, fabs((double)expected[i]));
        difference = fmax(difference, fabs((double)expected[i] - (double)values[i]));
    }
    free(expected);
    free(values);
    assert_int_equal(virtual_print_violations(host), 0);
    return largest > 0 ? difference / largest : difference;
}
