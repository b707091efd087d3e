// SPDX-License-Identifier: MIT
// Passes over a data set.
#include <math.h>

#include "base/status.h"
#include "ggml-impl.h"
#include "opt/opt.h"

// --- an epoch ------------------------------------------------------------------------------------

// One half of an epoch: training batches with gradients, or validation batches without.
struct part {
    bool train;
    int64_t first, end; // batches
    ggml_opt_result_t result;
    ggml_opt_epoch_callback callback;
};

// Stops at the first batch that fails, after recording why; the result holds what came before.
static bool run_part(ggml_opt_context_t opt, ggml_opt_dataset_t dataset, const struct part *part) {
    const int64_t start = ggml_time_us();
    for (int64_t i = part->first; i < part->end; ++i) {
        if (!opt_alloc(opt, part->train) || !opt_get_batch(dataset, opt->inputs, opt->labels, i) ||
            !opt_eval(opt, part->result)) {
            opt->ready = false;
            return false;
        }
        if (part->callback)
            part->callback(part->train, opt, dataset, part->result, i + 1 - part->first,
                           part->end - part->first, start);
    }
    return true;
}

// What is wrong with the arguments, or NULL.
static const char *complaint_about(ggml_opt_context_t opt, ggml_opt_dataset_t dataset,
                                   int64_t idata_split) {
    if (!opt || !dataset) return "the context or data set is NULL";
    if (!opt->static_graphs) return "it needs static graphs";
    const int64_t n_batch = opt->inputs->ne[1];
    const int64_t n_data = ggml_opt_dataset_ndata(dataset);
    if (n_batch < 1 || n_data % n_batch != 0 || idata_split > n_data)
        return "the data set must be whole batches, and the split within it";
    if (idata_split >= 0 && idata_split % n_batch != 0) return "the split must be whole batches";
    return NULL;
}

// Batches before the split train, those behind it validate; a negative split trains with all.
static bool run_epoch(ggml_opt_context_t opt, ggml_opt_dataset_t dataset, ggml_opt_result_t train,
                      ggml_opt_result_t eval, int64_t idata_split,
                      ggml_opt_epoch_callback callback_train,
                      ggml_opt_epoch_callback callback_eval) {
    const char *complaint = complaint_about(opt, dataset, idata_split);
    if (complaint) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_opt_epoch: %s", complaint);
        return false;
    }
    const int64_t n_batch = opt->inputs->ne[1];
    const int64_t n = ggml_opt_dataset_ndata(dataset) / n_batch;
    const int64_t split = idata_split < 0 ? n : idata_split / n_batch;
    const struct part parts[] = {{true, 0, split, train, callback_train},
                                 {false, split, n, eval, callback_eval}};
    return run_part(opt, dataset, &parts[0]) && run_part(opt, dataset, &parts[1]);
}

void ggml_opt_epoch(ggml_opt_context_t opt_ctx, ggml_opt_dataset_t dataset,
                    ggml_opt_result_t result_train, ggml_opt_result_t result_eval,
                    int64_t idata_split, ggml_opt_epoch_callback callback_train,
                    ggml_opt_epoch_callback callback_eval) {
    run_epoch(opt_ctx, dataset, result_train, result_eval, idata_split, callback_train,
              callback_eval);
}

// --- progress ------------------------------------------------------------------------------------

// Hours, minutes and seconds.
static void format_time(char *text, size_t size, int64_t us) {
    const long long s = us / 1000000;
    snprintf(text, size, "%02lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
}

// A bar of eight cells with losses, accuracies and the remaining time, extrapolated from the mean
// of the batches so far.
void ggml_opt_epoch_callback_progress_bar(bool train, ggml_opt_context_t opt_ctx,
                                          ggml_opt_dataset_t dataset, ggml_opt_result_t result,
                                          int64_t ibatch, int64_t ibatch_max, int64_t t_start_us) {
    enum { CELLS = 8 };
    if (!opt_ctx || !dataset || !opt_ctx->inputs || ibatch < 1 || ibatch_max < ibatch) return;
    char bar[CELLS + 1] = "";
    for (int64_t i = 0; i < CELLS; ++i)
        bar[i] = i * ibatch_max < CELLS * ibatch ? '=' : ' ';
    double loss, loss_unc, accuracy, accuracy_unc;
    ggml_opt_result_loss(result, &loss, &loss_unc);
    ggml_opt_result_accuracy(result, &accuracy, &accuracy_unc);
    const int64_t n_batch = opt_ctx->inputs->ne[1];
    const int64_t elapsed = ggml_time_us() - t_start_us;
    char past[32], left[32];
    format_time(past, sizeof(past), elapsed);
    format_time(left, sizeof(left), elapsed / ibatch * (ibatch_max - ibatch));
    GGML_LOG_CONT("\r%s: [%s] data=%lld/%lld loss=%.5f±%.5f acc=%.2f±%.2f%% t=%s ETA=%s%s",
                  train ? "train" : "val", bar, (long long)(ibatch * n_batch),
                  (long long)(ibatch_max * n_batch), loss, loss_unc, 100.0 * accuracy,
                  100.0 * accuracy_unc, past, left, ibatch == ibatch_max ? "\n" : "");
}

// --- fit -----------------------------------------------------------------------------------------

struct fit {
    ggml_opt_context_t opt;
    ggml_opt_dataset_t dataset;
    ggml_opt_result_t train, eval;
    int64_t split; // points before the validation part
    bool silent;
};

// Training data is shuffled again in each epoch, the validation part never.
static bool fit_epoch(const struct fit *fit, int64_t epoch, int64_t n_epochs) {
    const ggml_opt_epoch_callback callback =
        fit->silent ? NULL : ggml_opt_epoch_callback_progress_bar;
    ggml_opt_dataset_shuffle(fit->opt, fit->dataset, fit->split);
    ggml_opt_result_reset(fit->train);
    ggml_opt_result_reset(fit->eval);
    if (!fit->silent)
        GGML_LOG_INFO("ggml_opt_fit: epoch %lld of %lld\n", (long long)epoch, (long long)n_epochs);
    return run_epoch(fit->opt, fit->dataset, fit->train, fit->eval, fit->split, callback, callback);
}

// Logical batches are what one optimiser step sees; each is n_logical / n_physical evaluations.
static bool fits(struct ggml_tensor *inputs, ggml_opt_dataset_t dataset, int64_t n_logical,
                 float val_split) {
    if (!inputs || !dataset || inputs->ne[1] < 1) return false;
    return n_logical >= 1 && n_logical % inputs->ne[1] == 0 &&
           ggml_opt_dataset_ndata(dataset) % n_logical == 0 && val_split >= 0.0f &&
           val_split < 1.0f && n_logical / inputs->ne[1] <= INT32_MAX;
}

// Trains for nepoch epochs. get_opt_pars gets a pointer to the epoch's number, so that it can
// follow a schedule. The first shuffle covers all points, which chooses the validation part at
// random.
void ggml_opt_fit(ggml_backend_sched_t backend_sched, struct ggml_context *ctx_compute,
                  struct ggml_tensor *inputs, struct ggml_tensor *outputs,
                  ggml_opt_dataset_t dataset, enum ggml_opt_loss_type loss_type,
                  enum ggml_opt_optimizer_type optimizer,
                  ggml_opt_get_optimizer_params get_opt_pars, int64_t nepoch,
                  int64_t nbatch_logical, float val_split, bool silent) {
    if (!fits(inputs, dataset, nbatch_logical, val_split)) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "ggml_opt_fit: the data set must be whole logical batches, these whole physical "
                  "ones, and the validation part less than all");
        return;
    }
    int64_t epoch = 1;
    struct ggml_opt_params params = ggml_opt_default_params(backend_sched, loss_type);
    params.ctx_compute = ctx_compute;
    params.inputs = inputs;
    params.outputs = outputs;
    params.opt_period = (int32_t)(nbatch_logical / inputs->ne[1]);
    params.get_opt_pars = get_opt_pars;
    params.get_opt_pars_ud = &epoch;
    params.optimizer = optimizer;
    const int64_t n_logical = ggml_opt_dataset_ndata(dataset) / nbatch_logical;
    struct fit fit = {.dataset = dataset, .silent = silent};
    fit.split = (int64_t)floor((1.0 - (double)val_split) * (double)n_logical) * nbatch_logical;
    fit.opt = ggml_opt_init(params);
    fit.train = ggml_opt_result_init();
    fit.eval = ggml_opt_result_init();
    bool ok = fit.opt && fit.train && fit.eval;
    if (ok) ggml_opt_dataset_shuffle(fit.opt, dataset, -1);
    for (; ok && epoch <= nepoch; ++epoch)
        ok = fit_epoch(&fit, epoch, nepoch);
    if (!ok)
        GGML_LOG_ERROR("ggml_opt_fit: stopped in epoch %lld: %s\n", (long long)epoch,
                       ggml_last_error());
    ggml_opt_result_free(fit.train);
    ggml_opt_result_free(fit.eval);
    ggml_opt_free(fit.opt);
}
