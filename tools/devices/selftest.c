// SPDX-License-Identifier: MIT
// A few small computations whose results are known in double precision.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ggml-alloc.h"
#include "ggml-impl.h"
#include "print.h"

enum { ROWS = 192, INNER = 256, COLUMNS = 24, REPETITIONS = 5 };

// Operands of a workload on the host, in single precision, and the expected result.
struct operands {
    float a[ROWS * INNER];    // ROWS rows of INNER
    float b[COLUMNS * INNER]; // COLUMNS rows of INNER
    double expected[COLUMNS * (ROWS > INNER ? ROWS : INNER)];
};

struct workload {
    const char *name;
    enum ggml_type type; // of the weights
    double bound;        // from the arithmetic: see expect_* and the types' precision
    int64_t n_results;
    struct ggml_tensor *(*build)(struct ggml_context *ctx, struct ggml_tensor *a,
                                 struct ggml_tensor *b);
    void (*expect)(struct operands *operands);
};

static struct ggml_tensor *build_product(struct ggml_context *ctx, struct ggml_tensor *a,
                                         struct ggml_tensor *b) {
    return ggml_mul_mat(ctx, a, b);
}

static struct ggml_tensor *build_sum(struct ggml_context *ctx, struct ggml_tensor *a,
                                     struct ggml_tensor *b) {
    (void)a;
    return ggml_add(ctx, b, b);
}

static void expect_sum(struct operands *operands) {
    for (int i = 0; i < COLUMNS * INNER; ++i)
        operands->expected[i] = 2.0 * operands->b[i];
}

// The product in double precision: O(ROWS * COLUMNS * INNER).
static void expect_product(struct operands *operands) {
    for (int column = 0; column < COLUMNS; ++column) {
        for (int row = 0; row < ROWS; ++row) {
            double sum = 0;
            for (int i = 0; i < INNER; ++i) {
                sum += (double)operands->a[row * INNER + i] * operands->b[column * INNER + i];
            }
            operands->expected[column * ROWS + row] = sum;
        }
    }
}

static struct ggml_tensor *build_attention_weights(struct ggml_context *ctx, struct ggml_tensor *a,
                                                   struct ggml_tensor *b) {
    (void)a;
    return ggml_soft_max(ctx, ggml_rms_norm(ctx, b, 1e-6f));
}

// RMS norm and soft_max of each row in double precision.
static void expect_attention_weights(struct operands *operands) {
    for (int row = 0; row < COLUMNS; ++row) {
        const float *x = operands->b + row * INNER;
        double *y = operands->expected + row * INNER;
        double squares = 0, sum = 0;
        for (int i = 0; i < INNER; ++i) {
            squares += (double)x[i] * x[i];
        }
        for (int i = 0; i < INNER; ++i) {
            sum += y[i] = exp(x[i] / sqrt(squares / INNER + 1e-6));
        }
        for (int i = 0; i < INNER; ++i) {
            y[i] /= sum;
        }
    }
}

// Bounds: F32 sums of 256 terms stay near 1e-13; F16 weights and activations round to 2^-11 (1e-7);
// Q8_0 activations round to 1/254 of a block's largest value (about 1e-5).
static const struct workload workloads[SELFTEST_WORKLOADS] = {
    {"addition, F32", GGML_TYPE_F32, 1e-10, (int64_t)INNER *COLUMNS, build_sum, expect_sum},
    {"matrix product, F32", GGML_TYPE_F32, 1e-10, (int64_t)ROWS *COLUMNS, build_product,
     expect_product},
    {"matrix product, F16", GGML_TYPE_F16, 1e-6, (int64_t)ROWS *COLUMNS, build_product,
     expect_product},
    {"matrix product, Q8_0", GGML_TYPE_Q8_0, 1e-4, (int64_t)ROWS *COLUMNS, build_product,
     expect_product},
    {"rms_norm and soft_max", GGML_TYPE_F32, 1e-9, (int64_t)INNER *COLUMNS, build_attention_weights,
     expect_attention_weights},
};

// Deterministic values in [-1, 1).
static void fill(float *values, int count, uint32_t seed) {
    for (int i = 0; i < count; ++i) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)(seed >> 8) / 8388608.0f - 1.0f;
    }
}

// Encodes a, and replaces it by what the encoding represents, so that only computing is measured.
static bool encode_weights(enum ggml_type type, float *a, void *encoded) {
    const struct ggml_type_traits *traits = ggml_get_type_traits(type);
    if (type == GGML_TYPE_F32) {
        memcpy(encoded, a, sizeof(float) * ROWS * INNER);
        return true;
    }
    if (!traits->from_float_ref || !traits->to_float) return false;
    traits->from_float_ref(a, encoded, (int64_t)ROWS * INNER);
    traits->to_float(encoded, a, (int64_t)ROWS * INNER);
    return true;
}

// Mean square error relative to the mean square of the expected numbers.
static double normalised_error(const float *result, const double *expected, int64_t count) {
    double error = 0, power = 0;
    for (int64_t i = 0; i < count; ++i) {
        const double difference = result[i] - expected[i];
        error += difference * difference;
        power += expected[i] * expected[i];
    }
    return error / power;
}

// A verdict without numbers, with the library's error as the reason.
static void give_up(struct selftest_result *result, enum selftest_verdict verdict,
                    const char *what) {
    result->verdict = verdict;
    snprintf(result->message, sizeof(result->message), "%s%s%s", what,
             ggml_last_error()[0] ? ": " : "", ggml_last_error());
}

// Whether the device claims every node.
static bool supports_graph(ggml_backend_dev_t device, struct ggml_cgraph *graph) {
    for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
        if (!ggml_backend_dev_supports_op(device, ggml_graph_node(graph, i))) return false;
    }
    return true;
}

// Computes several times and keeps the shortest time: the first one may compile kernels.
static bool compute(ggml_backend_t stream, struct ggml_cgraph *graph,
                    struct selftest_result *result) {
    result->milliseconds = INFINITY;
    for (int i = 0; i < REPETITIONS; ++i) {
        const int64_t start = ggml_time_us();
        if (ggml_backend_graph_compute(stream, graph) != GGML_STATUS_SUCCESS) return false;
        result->milliseconds =
            fmin(result->milliseconds, (double)(ggml_time_us() - start) / 1000.0);
    }
    return true;
}

// Builds, computes and judges one workload; whatever fails becomes its verdict.
static void run_on(ggml_backend_dev_t device, ggml_backend_t stream,
                   const struct workload *workload, struct operands *operands, void *encoded,
                   struct selftest_result *result) {
    const struct ggml_init_params params = {16 * ggml_tensor_overhead() + ggml_graph_overhead(),
                                            NULL, true};
    struct ggml_context *ctx = ggml_init(params);
    struct ggml_tensor *a = ggml_new_tensor_2d(ctx, workload->type, INNER, ROWS);
    struct ggml_tensor *b = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, INNER, COLUMNS);
    struct ggml_tensor *y = workload->build(ctx, a, b);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, y);
    ggml_backend_buffer_t memory = NULL;
    float *values = malloc(sizeof(float) * (size_t)workload->n_results);

    if (!ctx || !values) {
        give_up(result, SELFTEST_FAILED, "out of memory");
    } else if (!supports_graph(device, graph)) {
        give_up(result, SELFTEST_UNSUPPORTED, "not an operation of this device");
    } else if (!(memory = ggml_backend_alloc_ctx_tensors(ctx, stream))) {
        give_up(result, SELFTEST_FAILED, "no device memory");
    } else {
        ggml_backend_tensor_set(a, encoded, 0, ggml_nbytes(a));
        ggml_backend_tensor_set(b, operands->b, 0, ggml_nbytes(b));
        if (compute(stream, graph, result)) {
            ggml_backend_tensor_get(y, values, 0, ggml_nbytes(y));
            result->error = normalised_error(values, operands->expected, workload->n_results);
            result->verdict = result->error <= workload->bound ? SELFTEST_PASSED : SELFTEST_FAILED;
            snprintf(result->message, sizeof(result->message), "error %.2e is above %.0e",
                     result->error, workload->bound);
        } else {
            give_up(result, SELFTEST_FAILED, "computing failed");
        }
    }
    free(values);
    ggml_backend_buffer_free(memory);
    ggml_free(ctx);
}

const char *selftest_workload(int i) {
    return workloads[i].name;
}

// Prepares operands and expected numbers of a workload, then runs it.
static void run_workload(ggml_backend_dev_t device, ggml_backend_t stream,
                         const struct workload *workload, struct operands *operands, void *encoded,
                         struct selftest_result *result) {
    if (!operands || !encoded || !stream) {
        give_up(result, SELFTEST_FAILED, "no stream on the device");
        return;
    }
    fill(operands->a, ROWS * INNER, 1);
    fill(operands->b, COLUMNS * INNER, 2);
    if (!encode_weights(workload->type, operands->a, encoded)) {
        give_up(result, SELFTEST_UNSUPPORTED, "this build can't encode the type");
        return;
    }
    workload->expect(operands);
    ggml_clear_error();
    run_on(device, stream, workload, operands, encoded, result);
    if (result->verdict == SELFTEST_PASSED) result->message[0] = '\0';
}

void selftest_run(ggml_backend_dev_t device, struct selftest_result out_results[SELFTEST_WORKLOADS],
                  void (*done)(void *context, const struct selftest_result *result),
                  void *context) {
    struct operands *operands = malloc(sizeof(*operands));
    void *encoded = malloc(sizeof(operands->a));
    ggml_clear_error();
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);

    for (int i = 0; i < SELFTEST_WORKLOADS; ++i) {
        const struct workload *workload = &workloads[i];
        struct selftest_result *result = &out_results[i];
        *result = (struct selftest_result){.workload = workload->name, .bound = workload->bound};
        run_workload(device, stream, workload, operands, encoded, result);
        if (done) done(context, result);
    }
    ggml_backend_free(stream);
    free(encoded);
    free(operands);
}
