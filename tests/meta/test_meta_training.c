// SPDX-License-Identifier: MIT
// Training with static graphs, whose tensors are computed as copies, on a meta device: as on the
// CPU.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ggml-cpu.h"
#include "ggml-opt.h"
#include "meta_test.h"

enum { N_IN = 8, N_HIDDEN = 12, N_OUT = 6, N_BATCH = 4, N_STEPS = 6 };
enum { N_UP = N_IN * N_HIDDEN, N_DOWN = N_HIDDEN * N_OUT };
enum { N_TRAINED = N_UP + N_HIDDEN + N_DOWN, N_VALUES = N_TRAINED + 1 };

struct network {
    struct ggml_context *fixed, *compute;
    ggml_backend_buffer_t buffer;
    struct ggml_tensor *inputs, *up, *bias, *down, *outputs;
};

static void fill(struct ggml_tensor *tensor, uint32_t seed) {
    float values[N_UP];
    assert_true(ggml_nelements(tensor) <= N_UP);
    for (int64_t i = 0; i < ggml_nelements(tensor); ++i) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)((int)(seed >> 16) % 200 - 100) / 50.0f;
    }
    ggml_backend_tensor_set(tensor, values, 0, ggml_nbytes(tensor));
}

static struct ggml_tensor *leaf(struct network *net, const char *name, int64_t ne0, int64_t ne1) {
    return ggml_set_name(ggml_new_tensor_2d(net->fixed, GGML_TYPE_F32, ne0, ne1), name);
}

static struct network new_network(ggml_backend_t stream) {
    const struct ggml_init_params params = {.mem_size = 2 << 20, .no_alloc = true};
    struct network net = {.fixed = ggml_init(params), .compute = ggml_init(params)};
    net.inputs = leaf(&net, "inputs", N_IN, N_BATCH);
    net.up = leaf(&net, "up", N_IN, N_HIDDEN);
    net.bias = leaf(&net, "bias", N_HIDDEN, 1);
    net.down = leaf(&net, "down", N_HIDDEN, N_OUT);
    ggml_set_param(net.up);
    ggml_set_param(net.bias);
    ggml_set_param(net.down);
    net.buffer = ggml_backend_alloc_ctx_tensors(net.fixed, stream);
    assert_non_null(net.buffer);
    fill(net.up, 1);
    fill(net.bias, 2);
    fill(net.down, 3);
    struct ggml_tensor *x = ggml_mul_mat(net.compute, net.up, net.inputs);
    x = ggml_relu(net.compute, ggml_add(net.compute, x, net.bias));
    net.outputs = ggml_mul_mat(net.compute, net.down, x);
    return net;
}

struct recipe {
    enum ggml_opt_loss_type loss;
    enum ggml_opt_optimizer_type optimizer;
    int32_t period;
};

static struct ggml_opt_optimizer_params slow(void *userdata) {
    struct ggml_opt_optimizer_params params = ggml_opt_get_default_optimizer_params(userdata);
    params.adamw.alpha = params.sgd.alpha = 0.01f;
    return params;
}

static ggml_opt_context_t new_training(const struct network *net, ggml_backend_sched_t sched,
                                       const struct recipe *recipe) {
    struct ggml_opt_params params = ggml_opt_default_params(sched, recipe->loss);
    params.ctx_compute = net->compute;
    params.inputs = net->inputs;
    params.outputs = net->outputs;
    params.opt_period = recipe->period;
    params.optimizer = recipe->optimizer;
    params.get_opt_pars = slow;
    ggml_clear_error();
    ggml_opt_context_t opt = ggml_opt_init(params);
    if (!opt) fail_msg("%s", ggml_last_error());
    return opt;
}

// One of the evaluations is without gradients: another graph, on copies of the same tensors.
static void evaluate(ggml_opt_context_t opt, const struct network *net, int step) {
    float labels[N_OUT * N_BATCH];
    ggml_opt_alloc(opt, step != 3);
    fill(net->inputs, 10 + (uint32_t)step);
    for (int i = 0; i < N_OUT * N_BATCH; ++i)
        labels[i] = i % N_OUT == i / N_OUT ? 1.0f : 0.0f;
    if (ggml_opt_labels(opt))
        ggml_backend_tensor_set(ggml_opt_labels(opt), labels, 0, sizeof(labels));
    ggml_opt_eval(opt, NULL);
    if (*ggml_last_error()) fail_msg("step %d: %s", step, ggml_last_error());
}

// Trained parameters and the last loss.
static void train(ggml_backend_dev_t device, const struct recipe *recipe, float *out_values) {
    ggml_backend_t streams[] = {ggml_backend_dev_init(device, NULL), ggml_backend_cpu_init()};
    ggml_backend_sched_t sched = ggml_backend_sched_new(streams, NULL, 2, 2048, false, true);
    struct network net = new_network(streams[0]);
    ggml_opt_context_t opt = new_training(&net, sched, recipe);
    for (int step = 0; step < N_STEPS; ++step)
        evaluate(opt, &net, step);
    float *values = out_values;
    ggml_backend_tensor_get(net.up, values, 0, ggml_nbytes(net.up));
    ggml_backend_tensor_get(net.bias, values + N_UP, 0, ggml_nbytes(net.bias));
    ggml_backend_tensor_get(net.down, values + N_UP + N_HIDDEN, 0, ggml_nbytes(net.down));
    ggml_backend_tensor_get(ggml_opt_loss(opt), values + N_TRAINED, 0, sizeof(float));
    assert_string_equal(ggml_last_error(), "");
    ggml_opt_free(opt);
    ggml_backend_sched_free(sched);
    ggml_backend_buffer_free(net.buffer);
    ggml_free(net.compute);
    ggml_free(net.fixed);
    ggml_backend_free(streams[1]);
    ggml_backend_free(streams[0]);
}

static const struct split_rule splits[][4] = {
    {{.prefix = "up", .axis = 1}, {.prefix = "bias", .axis = 0}, {.prefix = "down", .axis = 0}},
    {{.prefix = "up", .axis = 0}, {.prefix = "down", .axis = 1}},
    {{.prefix = "down", .axis = 0}},
    {{.prefix = "up", .axis = 1}, {.prefix = "down", .axis = 1}},
    {{.prefix = "inputs", .axis = 1}, {.prefix = "labels", .axis = 1}},
};
enum { N_SPLITS = sizeof(splits) / sizeof(splits[0]) };

// Sums have another order; six steps at small rates don't amplify that.
static int differences(const struct recipe *recipe, struct split_plan *plan,
                       const float *expected) {
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    ggml_backend_dev_t devices[] = {cpu, cpu, cpu};
    float values[N_VALUES];
    double largest = 0;
    int n_off = 0;
    train(ggml_backend_meta_device(devices, plan->n_devices, meta_test_split, plan), recipe,
          values);
    for (int i = 0; i < N_VALUES; ++i) {
        const double difference = fabs((double)values[i] - (double)expected[i]);
        assert_true(isfinite(expected[i]));
        n_off += !(difference < 1e-4); // NaN too
        largest = fmax(largest, difference);
    }
    if (n_off == 0) return 0;
    print_message(
        "# loss %d, optimiser %d, period %d on %zu devices, '%s' axis %d: %d off, by %g\n",
        (int)recipe->loss, (int)recipe->optimizer, (int)recipe->period, plan->n_devices,
        plan->rules[0].prefix, plan->rules[0].axis, n_off, largest);
    return 1;
}

static void test_training(void **state) {
    const enum ggml_opt_loss_type loss = *(const enum ggml_opt_loss_type *)*state;
    static struct split_plan plans[2][N_SPLITS]; // meta devices live for the process
    int failures = 0;
    for (int i = 0; i < 4; ++i) {
        const struct recipe recipe = {.loss = loss,
                                      .optimizer = i % 2 ? GGML_OPT_OPTIMIZER_TYPE_SGD
                                                         : GGML_OPT_OPTIMIZER_TYPE_ADAMW,
                                      .period = 1 + i / 2};
        float expected[N_VALUES];
        train(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU), &recipe, expected);
        for (int k = 0; k < 2 * N_SPLITS; ++k) {
            struct split_plan *plan = &plans[k % 2][k / 2];
            *plan = (struct split_plan){.n_devices = 2 + (size_t)k % 2, .weights = {1, 1, 1}};
            memcpy(plan->rules, splits[k / 2], sizeof(splits[0]));
            failures += differences(&recipe, plan, expected);
        }
    }
    assert_int_equal(failures, 0);
}

static void ignore(enum ggml_log_level level, const char *text, void *user) {
    (void)level;
    (void)text;
    (void)user;
}

int main(void) {
    static enum ggml_opt_loss_type losses[] = {GGML_OPT_LOSS_TYPE_MEAN, GGML_OPT_LOSS_TYPE_SUM,
                                               GGML_OPT_LOSS_TYPE_CROSS_ENTROPY,
                                               GGML_OPT_LOSS_TYPE_MEAN_SQUARED_ERROR};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_training, &losses[0]),
        cmocka_unit_test_prestate(test_training, &losses[1]),
        cmocka_unit_test_prestate(test_training, &losses[2]),
        cmocka_unit_test_prestate(test_training, &losses[3]),
    };
    ggml_log_set(ignore, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
