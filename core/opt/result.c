// SPDX-License-Identifier: MIT
// What evaluations came to: losses, predictions, accuracy.
#include <math.h>

#include "base/array.h"
#include "base/mem.h"
#include "base/status.h"
#include "ggml-impl.h"
#include "opt/opt.h"

ggml_opt_result_t ggml_opt_result_init(void) {
    struct ggml_opt_result *result = ggml_mem_calloc(1, sizeof(*result));
    if (!result) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "ggml_opt_result_init: out of memory");
        return NULL;
    }
    ggml_opt_result_reset(result);
    return result;
}

void ggml_opt_result_free(ggml_opt_result_t result) {
    if (!result) return;
    ggml_mem_free(result->losses);
    ggml_mem_free(result->pred);
    ggml_mem_free(result);
}

void ggml_opt_result_reset(ggml_opt_result_t result) {
    if (!result) return;
    result->n_losses = 0;
    result->n_pred = 0;
    result->n_data = 0;
    result->n_correct = 0;
    result->period = 1;
    result->per_datapoint = false;
}

// --- adding --------------------------------------------------------------------------------------

// Predictions and losses are read from the device at once: the next evaluation overwrites them.
static bool add_pred(struct ggml_opt_result *result, const struct ggml_tensor *pred) {
    const int64_t n = ggml_nelements(pred);
    if (!array_extend(&result->pred, &result->max_pred, (size_t)result->n_pred, (size_t)n,
                      sizeof(result->pred[0]))) {
        return false;
    }
    ggml_backend_tensor_get(pred, result->pred + result->n_pred, 0, ggml_nbytes(pred));
    result->n_pred += n;
    return true;
}

// One number per batch; the array grows as needed.
static bool add_loss(struct ggml_opt_result *result, const struct ggml_tensor *loss) {
    if (!array_extend(&result->losses, &result->max_losses, (size_t)result->n_losses, 1,
                      sizeof(result->losses[0]))) {
        return false;
    }
    ggml_backend_tensor_get(loss, &result->losses[result->n_losses++], 0, sizeof(float));
    return true;
}

// The first evaluation fixes period and kind of the loss, which loss_at() needs.
bool opt_result_add(struct ggml_opt_result *result, const struct ggml_opt_context *opt) {
    if (result->n_losses == 0) {
        result->period = opt->period;
        result->per_datapoint = opt->loss_type != GGML_OPT_LOSS_TYPE_SUM;
    }
    if (!add_loss(result, opt->loss) || (opt->pred && !add_pred(result, opt->pred))) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "ggml_opt_eval: no memory for the result");
        return false;
    }
    result->n_data += opt->outputs->ne[1];
    int64_t n_correct = -1;
    if (opt->ncorrect) ggml_backend_tensor_get(opt->ncorrect, &n_correct, 0, sizeof(n_correct));
    result->n_correct = n_correct < 0 || result->n_correct < 0 ? -1 : result->n_correct + n_correct;
    return true;
}

// --- reading -------------------------------------------------------------------------------------

void ggml_opt_result_ndata(ggml_opt_result_t result, int64_t *ndata) {
    if (ndata) *ndata = result ? result->n_data : 0;
}

// A loss per point was divided by the period for each evaluation.
static double loss_at(const struct ggml_opt_result *result, int64_t i) {
    const double loss = (double)result->losses[i];
    return result->per_datapoint ? loss * result->period : loss;
}

// Mean and standard error of the losses by Welford's method, which does not cancel where losses
// differ little.
void ggml_opt_result_loss(ggml_opt_result_t result, double *loss, double *unc) {
    const int64_t n = result ? result->n_losses : 0;
    double mean = 0.0, squares = 0.0; // of deviations from the mean (Welford)
    for (int64_t i = 0; i < n; ++i) {
        const double deviation = loss_at(result, i) - mean;
        mean += deviation / (double)(i + 1);
        squares += deviation * (loss_at(result, i) - mean);
    }
    const double variance = n > 1 ? squares / (double)(n - 1) : (double)NAN;
    const bool per_datapoint = result && result->per_datapoint;
    if (loss) *loss = n == 0 ? 0.0 : per_datapoint ? mean : mean * (double)n;
    // As ggml, the uncertainty of a sum is that of one evaluation.
    if (unc) *unc = per_datapoint ? sqrt(variance / (double)n) : sqrt(variance);
}

void ggml_opt_result_pred(ggml_opt_result_t result, int32_t *pred) {
    if (result && pred && result->n_pred > 0)
        memcpy(pred, result->pred, (size_t)result->n_pred * sizeof(pred[0]));
}

// The uncertainty is that of a binomial proportion.
void ggml_opt_result_accuracy(ggml_opt_result_t result, double *accuracy, double *unc) {
    const int64_t n = result ? result->n_data : 0;
    const double share =
        n > 0 && result->n_correct >= 0 ? (double)result->n_correct / (double)n : (double)NAN;
    if (accuracy) *accuracy = share;
    if (unc) *unc = n > 1 ? sqrt(share * (1.0 - share) / (double)(n - 1)) : (double)NAN;
}
