// SPDX-License-Identifier: MIT
// A small network learns a task that is made here, is written as GGUF, read again and evaluated.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "conformance/random.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-host.h"
#include "gguf.h"
#include "training/cpu_stream.h"

typedef struct ggml_tensor *tensor_t;

enum { N_WEIGHTS = 6, N_CLASSES = 2, SEED = 20240607, GRAPH_SIZE = 256 };

static const char *const weight_names[N_WEIGHTS] = {"w1", "b1", "w2", "b2", "w3", "b3"};

struct task {
    int64_t n_in;
    int64_t n_hidden;
    int64_t n_points;
    const float *points;
    const float *labels; // one-hot
};

struct network {
    tensor_t weights[N_WEIGHTS];
};

struct training {
    struct ggml_context *fixed;   // weights, momenta, inputs
    struct ggml_context *compute; // the graph
    ggml_backend_buffer_t buffer;
    ggml_gallocr_t allocator;
    struct ggml_cgraph *graph;
    struct network network;
    tensor_t points, labels, loss, optimiser;
};

static tensor_t layer(struct ggml_context *ctx, tensor_t w, tensor_t b, tensor_t x) {
    return ggml_add(ctx, ggml_mul_mat(ctx, w, x), b);
}

static tensor_t logits_of(struct ggml_context *ctx, const struct network *n, tensor_t x) {
    const tensor_t *w = n->weights;
    tensor_t h1 = ggml_silu(ctx, layer(ctx, w[0], w[1], x));
    tensor_t h2 = ggml_silu(ctx, layer(ctx, w[2], w[3], h1));
    return layer(ctx, w[4], w[5], h2);
}

static struct ggml_context *new_context(bool no_alloc) {
    return ggml_init((struct ggml_init_params){.mem_size = 4 << 20, .no_alloc = no_alloc});
}

static void new_weights(struct training *t, const struct task *task) {
    const int64_t h = task->n_hidden;
    const int64_t shapes[N_WEIGHTS][2] = {{task->n_in, h}, {h, 1},         {h, h},
                                          {h, 1},          {h, N_CLASSES}, {N_CLASSES, 1}};
    for (int i = 0; i < N_WEIGHTS; ++i) {
        tensor_t w = ggml_new_tensor_2d(t->fixed, GGML_TYPE_F32, shapes[i][0], shapes[i][1]);
        ggml_set_name(w, weight_names[i]);
        ggml_set_param(w);
        t->network.weights[i] = w;
    }
}

static void fill_weights(struct training *t) {
    struct test_random random = {SEED};
    for (int i = 0; i < N_WEIGHTS; ++i) {
        tensor_t w = t->network.weights[i];
        const float size = i % 2 == 0 ? sqrtf(2.0f / (float)w->ne[0]) : 0.0f;
        for (int64_t k = 0; k < ggml_nelements(w); ++k) {
            const float value = size * random_normal(&random);
            ggml_backend_tensor_set(w, &value, (size_t)k * sizeof(value), sizeof(value));
        }
    }
}

// Appends the optimiser's steps after all gradients.
static void add_steps(struct training *t, tensor_t (*momenta)[2]) {
    for (int i = 0; i < N_WEIGHTS; ++i) {
        tensor_t w = t->network.weights[i];
        tensor_t grad = ggml_graph_get_grad(t->graph, w);
        assert_non_null(grad);
        tensor_t step = momenta ? ggml_opt_step_adamw(t->compute, w, grad, momenta[i][0],
                                                      momenta[i][1], t->optimiser)
                                : ggml_opt_step_sgd(t->compute, w, grad, t->optimiser);
        ggml_build_forward_expand(t->graph, step);
    }
}

static struct training start_training(const struct task *task, bool adamw) {
    struct training t = {.fixed = new_context(true), .compute = new_context(true)};
    tensor_t momenta[N_WEIGHTS][2];
    tensor_t accumulators[GRAPH_SIZE] = {NULL};
    new_weights(&t, task);
    for (int i = 0; i < N_WEIGHTS; ++i) {
        momenta[i][0] = ggml_dup_tensor(t.fixed, t.network.weights[i]);
        momenta[i][1] = ggml_dup_tensor(t.fixed, t.network.weights[i]);
    }
    t.points = ggml_new_tensor_2d(t.fixed, GGML_TYPE_F32, task->n_in, task->n_points);
    t.labels = ggml_new_tensor_2d(t.fixed, GGML_TYPE_F32, N_CLASSES, task->n_points);
    t.optimiser = ggml_new_tensor_1d(t.fixed, GGML_TYPE_F32, adamw ? 7 : 2);
    tensor_t loss_grad = ggml_new_tensor_1d(t.fixed, GGML_TYPE_F32, 1);
    t.buffer = ggml_backend_alloc_ctx_tensors(t.fixed, cpu);
    assert_non_null(t.buffer);

    t.graph = ggml_new_graph_custom(t.compute, GRAPH_SIZE, true);
    t.loss =
        ggml_cross_entropy_loss(t.compute, logits_of(t.compute, &t.network, t.points), t.labels);
    ggml_set_loss(t.loss);
    ggml_set_output(t.loss);
    ggml_build_forward_expand(t.graph, t.loss);
    accumulators[ggml_graph_n_nodes(t.graph) - 1] = loss_grad;
    ggml_build_backward_expand(t.compute, t.graph, accumulators);
    add_steps(&t, adamw ? momenta : NULL);
    if (ggml_graph_error(t.graph)) fail_msg("%s", ggml_graph_error(t.graph));

    t.allocator = ggml_gallocr_new(ggml_backend_get_default_buffer_type(cpu));
    assert_true(ggml_gallocr_alloc_graph(t.allocator, t.graph));
    fill_weights(&t);
    ggml_backend_tensor_set(t.points, task->points, 0, ggml_nbytes(t.points));
    ggml_backend_tensor_set(t.labels, task->labels, 0, ggml_nbytes(t.labels));
    ggml_graph_reset(t.graph); // momenta to 0, the loss's gradient to 1
    return t;
}

static void end_training(struct training *t) {
    ggml_gallocr_free(t->allocator);
    ggml_backend_buffer_free(t->buffer);
    ggml_free(t->compute);
    ggml_free(t->fixed);
}

static float run_step(struct training *t, int step, float rate) {
    const float beta1 = 0.9f;
    const float beta2 = 0.999f;
    const float values[7] = {rate,
                             beta1,
                             beta2,
                             1e-8f,
                             1e-4f,
                             1.0f / (1.0f - powf(beta1, (float)step)),
                             1.0f / (1.0f - powf(beta2, (float)step))};
    const float sgd[2] = {rate, 0.0f};
    float loss;
    const bool is_sgd = t->optimiser->ne[0] == 2;
    ggml_backend_tensor_set(t->optimiser, is_sgd ? sgd : values, 0, ggml_nbytes(t->optimiser));
    assert_int_equal(ggml_backend_graph_compute(cpu, t->graph), GGML_STATUS_SUCCESS);
    ggml_backend_tensor_get(t->loss, &loss, 0, sizeof(loss));
    return loss;
}

// --- the tasks -----------------------------------------------------------------------------------

enum { N_SPIRAL = 192 };

// Point i of two spirals that are wound around each other once and a half; `shift` moves along
// them.
static void make_spirals(float *points, float *labels, float shift) {
    for (int i = 0; i < N_SPIRAL; ++i) {
        const float along = ((float)(i / 2) + shift) / (N_SPIRAL / 2);
        const float angle = 9.4f * along + (i % 2 ? 3.14159265f : 0.0f);
        points[2 * i] = (0.1f + along) * 2.0f * cosf(angle);
        points[2 * i + 1] = (0.1f + along) * 2.0f * sinf(angle);
        labels[2 * i] = i % 2 ? 0.0f : 1.0f;
        labels[2 * i + 1] = i % 2 ? 1.0f : 0.0f;
    }
}

enum { N_BITS = 4, N_PATTERNS = 1 << N_BITS };

static void make_parity(float *points, float *labels) {
    for (int i = 0; i < N_PATTERNS; ++i) {
        int parity = 0;
        for (int k = 0; k < N_BITS; ++k) {
            points[N_BITS * i + k] = (i >> k) & 1 ? 1.0f : -1.0f;
            parity ^= (i >> k) & 1;
        }
        labels[2 * i] = parity ? 0.0f : 1.0f;
        labels[2 * i + 1] = parity ? 1.0f : 0.0f;
    }
}

// --- files ---------------------------------------------------------------------------------------

static FILE *write_network(const struct training *t, float loss, enum ggml_type w2_type) {
    FILE *file = tmpfile();
    struct gguf_context *gguf = gguf_init_empty();
    float values[64 * 64];
    unsigned char packed[sizeof(values)];
    const tensor_t w2 = t->network.weights[2];
    assert_non_null(file);
    assert_true(ggml_nbytes(w2) <= sizeof(values));
    gguf_set_val_str(gguf, "general.architecture", "spirals");
    gguf_set_val_f32(gguf, "training.loss", loss);
    for (int i = 0; i < N_WEIGHTS; ++i) {
        gguf_add_tensor(gguf, t->network.weights[i]);
    }
    if (w2_type != GGML_TYPE_F32) {
        ggml_backend_tensor_get(w2, values, 0, ggml_nbytes(w2));
        assert_true(ggml_quantize_chunk(w2_type, values, packed, 0, w2->ne[1], w2->ne[0], NULL) >
                    0);
        gguf_set_tensor_type(gguf, "w2", w2_type);
        gguf_set_tensor_data(gguf, "w2", packed);
    }
    assert_true(gguf_write_to_file_ptr(gguf, file, false));
    gguf_free(gguf);
    rewind(file);
    return file;
}

static struct ggml_context *read_network(FILE *file, struct network *out_network, float *out_loss) {
    struct ggml_context *ctx = NULL;
    struct gguf_context *gguf =
        gguf_init_from_file_ptr(file, (struct gguf_init_params){.ctx = &ctx});
    fclose(file);
    assert_non_null(gguf);
    *out_loss = gguf_get_val_f32(gguf, gguf_find_key(gguf, "training.loss"));
    gguf_free(gguf);
    for (int i = 0; i < N_WEIGHTS; ++i) {
        out_network->weights[i] = ggml_get_tensor(ctx, weight_names[i]);
        assert_non_null(out_network->weights[i]);
    }
    return ctx;
}

// Loss and number of points on the right side.
static float evaluate(const struct network *network, const struct task *task, int *out_right) {
    struct ggml_context *ctx = new_context(false);
    tensor_t points = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, task->n_in, task->n_points);
    tensor_t labels = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, N_CLASSES, task->n_points);
    memcpy(points->data, task->points, ggml_nbytes(points));
    memcpy(labels->data, task->labels, ggml_nbytes(labels));
    tensor_t logits = logits_of(ctx, network, points);
    tensor_t loss = ggml_cross_entropy_loss(ctx, logits, labels);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, loss);
    assert_int_equal(ggml_backend_graph_compute(cpu, graph), GGML_STATUS_SUCCESS);
    const float *y = logits->data;
    *out_right = 0;
    for (int64_t i = 0; i < task->n_points; ++i) {
        *out_right += (y[2 * i] > y[2 * i + 1]) == (task->labels[2 * i] > 0.5f);
    }
    const float value = *(const float *)loss->data;
    ggml_free(ctx);
    return value;
}

// --- the runs ------------------------------------------------------------------------------------

static float points[2 * N_SPIRAL];
static float labels[N_CLASSES * N_SPIRAL];

// The network that was read gives the loss that it was written with, and is right between the
// points that it has seen.
static void check_file(const struct training *t, const struct task *task, enum ggml_type type,
                       float tolerance) {
    struct network network;
    float written;
    int right;
    float now = evaluate(&t->network, task, &right);
    struct ggml_context *ctx = read_network(write_network(t, now, type), &network, &written);
    assert_true(written == now);
    assert_int_equal(network.weights[2]->type, type);
    now = evaluate(&network, task, &right);
    assert_true(fabsf(now - written) <= tolerance);
    make_spirals(points, labels, 0.5f);
    evaluate(&network, task, &right);
    assert_in_range(right, N_SPIRAL - 4, N_SPIRAL);
    make_spirals(points, labels, 0.0f);
    ggml_free(ctx);
}

static void test_two_spirals_with_adamw(void **state) {
    (void)state;
    const struct task task = {2, 32, N_SPIRAL, points, labels};
    float loss = INFINITY;
    int step = 0;
    make_spirals(points, labels, 0.0f);
    struct training t = start_training(&task, true);
    const float first = run_step(&t, ++step, 0.01f);
    while (step < 1500 && !(loss < 0.01f)) {
        loss = run_step(&t, ++step, 0.01f);
    }
    print_message("# two spirals: loss %g, after %d steps %g\n", (double)first, step, (double)loss);
    assert_true(first > 0.4f);
    assert_true(loss < 0.01f);
    check_file(&t, &task, GGML_TYPE_F32, 0.0f);
    check_file(&t, &task, GGML_TYPE_Q8_0, 0.02f);
    end_training(&t);
}

static void test_parity_with_sgd(void **state) {
    (void)state;
    const struct task task = {N_BITS, 16, N_PATTERNS, points, labels};
    float loss = INFINITY;
    int step = 0;
    int right;
    make_parity(points, labels);
    struct training t = start_training(&task, false);
    while (step < 4000 && !(loss < 0.02f)) {
        loss = run_step(&t, ++step, 0.3f);
    }
    print_message("# parity: loss after %d steps %g\n", step, (double)loss);
    assert_true(loss < 0.02f);
    evaluate(&t.network, &task, &right);
    assert_int_equal(right, N_PATTERNS);
    end_training(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_spirals_with_adamw),
        cmocka_unit_test(test_parity_with_sgd),
    };
    return cmocka_run_group_tests(tests, cpu_stream_open, cpu_stream_close);
}
