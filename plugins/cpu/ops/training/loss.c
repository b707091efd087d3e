// SPDX-License-Identifier: MIT
// cross_entropy_loss, the mean over rows of -sum(target * log softmax(logits)), and its gradient.
#include "ggml-shape.h"
#include "simd/sums.h"
#include "simd/vmath.h"

// Subtracted before exponentials, which then can't overflow.
static float largest_of(const float *x, int64_t n) {
    float largest = -INFINITY;
    for (int64_t i = 0; i < n; ++i)
        largest = x[i] > largest ? x[i] : largest;
    return largest;
}

// Sum of e^(x - largest).
static double sum_of_exponentials(const float *x, float largest, int64_t n) {
    float buffer[CPU_CHUNK];
    double sum = 0.0;
    for (int64_t i0 = 0; i0 < n; i0 += CPU_CHUNK) {
        const int64_t count = MIN(n - i0, CPU_CHUNK);
        CPU_INDEPENDENT
        for (int64_t i = 0; i < count; ++i)
            buffer[i] = cpu_expf(x[i0 + i] - largest);
        sum += cpu_sum(buffer, count);
    }
    return sum;
}

// Subtracts the largest logit first, so that no exponential overflows.
static double row_loss(const float *logits, const float *targets, int64_t n) {
    const float largest = largest_of(logits, n);
    const double log_sum = log(sum_of_exponentials(logits, largest, n));
    double loss = 0.0;
    for (int64_t i = 0; i < n; ++i)
        loss -= (double)targets[i] * ((double)logits[i] - (double)largest - log_sum);
    return loss;
}

// The rows' losses are added in order by one thread, so that the number of threads does not matter.
enum ggml_status CPU_FN(cpu_cross_entropy_loss)(const struct cpu_task *task) {
    const struct ggml_tensor *logits = task->dst->src[0];
    const struct ggml_tensor *targets = task->dst->src[1];
    const int64_t n_rows = ggml_nrows(logits);
    double *losses = task->work;
    int64_t begin, end;
    cpu_task_range(task, n_rows, &begin, &end);
    for (int64_t r = begin; r < end; ++r) {
        const struct ggml_row at = ggml_row_at(logits, r);
        losses[r] =
            row_loss((const float *)(const void *)ggml_row_data(logits, at),
                     (const float *)(const void *)ggml_row_data(targets, at), logits->ne[0]);
    }
    cpu_team_barrier(task->team, task->ith);
    if (task->ith != 0) return GGML_STATUS_SUCCESS;
    double total = 0.0;
    for (int64_t r = 0; r < n_rows; ++r)
        total += losses[r];
    *(float *)task->dst->data = n_rows > 0 ? (float)(total / (double)n_rows) : 0.0f;
    return GGML_STATUS_SUCCESS;
}

// (softmax(logits) - targets) times the loss' gradient, divided by the number of rows.
enum ggml_status CPU_FN(cpu_cross_entropy_loss_back)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const int64_t n = dst->ne[0];
    // The loss is a mean over rows, hence the division.
    const float scale = *(const float *)dst->src[0]->data / (float)ggml_nrows(dst);
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(dst), &begin, &end);
    for (int64_t r = begin; r < end; ++r) {
        const struct ggml_row at = ggml_row_at(dst, r);
        const float *logits = (const float *)(const void *)ggml_row_data(dst->src[1], at);
        const float *targets = (const float *)(const void *)ggml_row_data(dst->src[2], at);
        float *y = (float *)(void *)ggml_row_data(dst, at);
        const float largest = largest_of(logits, n);
        const float inverse = (float)(1.0 / sum_of_exponentials(logits, largest, n));
        CPU_INDEPENDENT
        for (int64_t i = 0; i < n; ++i)
            y[i] = (cpu_expf(logits[i] - largest) * inverse - targets[i]) * scale;
    }
    return GGML_STATUS_SUCCESS;
}
