// SPDX-License-Identifier: MIT
// ggml-opt.h: training over the graph API.
//
// The short way is ggml_opt_fit(), the long one a loop over ggml_opt_alloc() and ggml_opt_eval():
//
//     // inputs [n, n_batch] and outputs [n_classes, n_batch] are in ctx, which is no_alloc;
//     // parameters are marked with ggml_set_param(); both and the inputs are allocated and set
//     ggml_opt_dataset_t data = ggml_opt_dataset_init(GGML_TYPE_F32, GGML_TYPE_F32, n, n_classes,
//                                                     n_points, n_batch);
//     fill(ggml_opt_dataset_data(data), ggml_opt_dataset_labels(data));
//     struct ggml_opt_params params =
//         ggml_opt_default_params(sched, GGML_OPT_LOSS_TYPE_CROSS_ENTROPY);
//     params.ctx_compute = ctx;
//     params.inputs = inputs;
//     params.outputs = outputs;
//     ggml_opt_context_t opt = ggml_opt_init(params);
//     ggml_opt_result_t result = ggml_opt_result_init();
//     for (int epoch = 0; epoch < 10; ++epoch) {
//         double loss;
//         ggml_opt_dataset_shuffle(opt, data, -1);
//         ggml_opt_result_reset(result);
//         ggml_opt_epoch(opt, data, result, NULL, -1, NULL, NULL); // -1: trains on all points
//         ggml_opt_result_loss(result, &loss, NULL);
//         printf("%d: loss %g\n", epoch, loss);
//     }
//     ggml_opt_result_free(result);
//     ggml_opt_free(opt);
//     ggml_opt_dataset_free(data);
//
// Words. A point is one example; an evaluation computes one (physical) batch of inputs->ne[1]
// points; opt_period evaluations make a logical batch, after which the optimiser steps once; an
// epoch is one pass over the data set. Failures of functions that return nothing show in
// ggml_last_status() (ggml 0.27 aborts, or goes on).
#ifndef GGML_OPT_H
#define GGML_OPT_H

#include "ggml-backend.h"
#include "ggml.h"

#ifdef __cplusplus
extern "C" {
#endif

// Handles: data sets, training contexts and results of evaluations. Each is made and freed by the
// caller.
typedef struct ggml_opt_dataset *ggml_opt_dataset_t; // points and labels
typedef struct ggml_opt_context *ggml_opt_context_t; // what a training keeps
typedef struct ggml_opt_result *ggml_opt_result_t;   // losses and predictions

// What is minimised, with n = number of elements of the outputs of an evaluation.
enum ggml_opt_loss_type {
    GGML_OPT_LOSS_TYPE_MEAN = 0,          // sum of outputs / n; no labels
    GGML_OPT_LOSS_TYPE_SUM = 1,           // sum of outputs; no labels
    GGML_OPT_LOSS_TYPE_CROSS_ENTROPY = 2, // outputs are logits, labels probabilities; per point
    GGML_OPT_LOSS_TYPE_MEAN_SQUARED_ERROR = 3, // sum of (outputs - labels)^2 / n
};

// What a context can compute; each includes those before.
enum ggml_opt_build_type {
    GGML_OPT_BUILD_TYPE_FORWARD = 10, // outputs and loss
    GGML_OPT_BUILD_TYPE_GRAD = 20,    // gradients of parameters
    GGML_OPT_BUILD_TYPE_OPT = 30,     // steps of the optimiser
};

// How parameters are stepped; formulas at ggml_opt_step_adamw() and ggml_opt_step_sgd() in
// ggml-op.h.
enum ggml_opt_optimizer_type {
    GGML_OPT_OPTIMIZER_TYPE_ADAMW = 0, // two momenta per parameter: three times its memory
    GGML_OPT_OPTIMIZER_TYPE_SGD = 1,   // no state
    GGML_OPT_OPTIMIZER_TYPE_COUNT = 2, // how many there are
};

// Parameters of both optimisers; only those of the one in use are looked at, and must be in range:
// else the evaluation fails before it computes.
struct ggml_opt_optimizer_params {
    struct {
        float alpha; // learning rate
        float beta1; // decay of the mean gradient, 0 to 1, typically 0.9
        float beta2; // decay of its square, 0 to 1, typically 0.999
        float eps;   // against division by 0, >= 0, typically 1e-8
        float wd;    // weight decay
    } adamw;
    struct {
        float alpha; // learning rate
        float wd;    // weight decay
    } sgd;
};

// Asked before each optimiser step, for schedules of the learning rate. userdata is
// get_opt_pars_ud.
typedef struct ggml_opt_optimizer_params (*ggml_opt_get_optimizer_params)(void *userdata);

// Parameters of ggml_opt_init(); start from ggml_opt_default_params(). Pointers stay the caller's.
struct ggml_opt_params {
    // computes; its first stream's memory holds momenta and gradients
    ggml_backend_sched_t backend_sched;
    struct ggml_context *ctx_compute;    // static graphs: holds what is built; NULL: dynamic graphs
    struct ggml_tensor *inputs;          // static graphs: allocated, [.., points of a batch]
    struct ggml_tensor *outputs;         // static graphs: computed from inputs and parameters
    enum ggml_opt_loss_type loss_type;   // what is minimised
    enum ggml_opt_build_type build_type; // FORWARD: evaluates only; OPT: trains
    // Evaluations with gradients per step, >= 1: gradients are added up meanwhile and begin at 0
    // after it, with GRAD too, which takes no step. Evaluations without gradients don't count.
    int32_t opt_period;
    ggml_opt_get_optimizer_params get_opt_pars; // not NULL
    void *get_opt_pars_ud;                      // its userdata
    enum ggml_opt_optimizer_type optimizer;     // how parameters are stepped
};

// Called after each batch (ibatch of ibatch_max, from 1) of training or evaluation; t_start_us is
// the time of the first by ggml_time_us(). May read results, may not compute with opt_ctx.
typedef void (*ggml_opt_epoch_callback)(bool train, ggml_opt_context_t opt_ctx,
                                        ggml_opt_dataset_t dataset, ggml_opt_result_t result,
                                        int64_t ibatch, int64_t ibatch_max, int64_t t_start_us);

// --- data set ------------------------------------------------------------------------------------

// Points and labels in host memory, of any size that fits there. Batches are copied from it.

// ndata points of ne_datapoint values with ne_label labels each (0: none) in host memory, in shards
// of ndata_shard points that are shuffled as a whole (1: single points); points that fill no shard
// are in no batch. Batches must be whole shards. NULL on failure. The caller frees it and fills the
// tensors, whose content is undefined. [any-thread]
GGML_API ggml_opt_dataset_t ggml_opt_dataset_init(enum ggml_type type_data,
                                                  enum ggml_type type_label, int64_t ne_datapoint,
                                                  int64_t ne_label, int64_t ndata,
                                                  int64_t ndata_shard);

// Ends it with its tensors, which no graph may use then; NULL does nothing. [stream]
GGML_API void ggml_opt_dataset_free(ggml_opt_dataset_t dataset);

// Number of points; tensor [ne_datapoint, ndata]; tensor [ne_label, ndata] or NULL. [any-thread]
GGML_API int64_t ggml_opt_dataset_ndata(ggml_opt_dataset_t dataset);
GGML_API struct ggml_tensor *ggml_opt_dataset_data(ggml_opt_dataset_t dataset);
GGML_API struct ggml_tensor *ggml_opt_dataset_labels(ggml_opt_dataset_t dataset);

// Shuffles the shards of the first idata points (negative: of all), which are whole shards, with
// the context's generator, whose seed is fixed: runs repeat each other. Data stays where it is, an
// order is shuffled. (The order differs from ggml's, whose generator is another.) [stream]
GGML_API void ggml_opt_dataset_shuffle(ggml_opt_context_t opt_ctx, ggml_opt_dataset_t dataset,
                                       int64_t idata);

// Copies batch ibatch into contiguous tensors of the data set's types (labels may be NULL); a batch
// is as many whole shards as data_batch holds. What does not fit leaves a message. Blocks. [stream]
GGML_API void ggml_opt_dataset_get_batch(ggml_opt_dataset_t dataset, struct ggml_tensor *data_batch,
                                         struct ggml_tensor *labels_batch, int64_t ibatch);

// The same into host memory; nb_data_batch: bytes of data, which give the batch size. labels_batch
// may be NULL. [stream]
GGML_API void ggml_opt_dataset_get_batch_host(ggml_opt_dataset_t dataset, void *data_batch,
                                              size_t nb_data_batch, void *labels_batch,
                                              int64_t ibatch);

// --- parameters ----------------------------------------------------------------------------------

// AdamW with alpha 0.001, betas 0.9 and 0.999, eps 1e-8, weight decay 0; SGD with 0.001 and 0.
// userdata is not used. [any-thread]
GGML_API struct ggml_opt_optimizer_params ggml_opt_get_default_optimizer_params(void *userdata);

// A copy of the struct ggml_opt_optimizer_params at userdata; the defaults for NULL. [any-thread]
GGML_API struct ggml_opt_optimizer_params ggml_opt_get_constant_optimizer_params(void *userdata);

// Parameters for dynamic graphs, build type OPT, period 1, AdamW with defaults. Set ctx_compute,
// inputs and outputs for static graphs. [any-thread]
GGML_API struct ggml_opt_params ggml_opt_default_params(ggml_backend_sched_t backend_sched,
                                                        enum ggml_opt_loss_type loss_type);

// "adamw", "sgd", else "undefined"; constant. [any-thread]
GGML_API const char *ggml_opt_optimizer_name(enum ggml_opt_optimizer_type type);

// --- context -------------------------------------------------------------------------------------

// A training context has the tensors that outlive a step: gradients, momenta, labels. With static
// graphs, the forward graph is the same each time and built once; with dynamic graphs the program
// builds one for each evaluation, with the same parameters in the same places.

// A training context. With params.ctx_compute the graphs are static and built once from inputs and
// outputs, in that context, which needs room for gradients, steps and three graphs; without, each
// step starts with ggml_opt_prepare_alloc(). The scheduler and that context stay the caller's and
// must outlive it. NULL on failure. [any-thread]
GGML_API ggml_opt_context_t ggml_opt_init(struct ggml_opt_params params);

// Ends it with its momenta and gradients; parameters, which are the program's, keep their values.
// NULL does nothing. [stream]
GGML_API void ggml_opt_free(ggml_opt_context_t opt_ctx);

// Zeroes gradients and starts a new period; with `optimizer` momenta and the step count too, as for
// a new training. Parameters stay. [stream]
GGML_API void ggml_opt_reset(ggml_opt_context_t opt_ctx, bool optimizer);

// Whether graphs are static. [any-thread]
GGML_API bool ggml_opt_static_graphs(ggml_opt_context_t opt_ctx);

// Tensors of the context; NULL where the loss type or build type has none. loss is an F32 scalar;
// pred I32 [points] and ncorrect an I64 scalar exist for cross entropy only; labels are like the
// outputs. With dynamic graphs they are those of the last ggml_opt_prepare_alloc(). [stream]
GGML_API struct ggml_tensor *ggml_opt_inputs(ggml_opt_context_t opt_ctx);
GGML_API struct ggml_tensor *ggml_opt_outputs(ggml_opt_context_t opt_ctx);
GGML_API struct ggml_tensor *ggml_opt_labels(ggml_opt_context_t opt_ctx);
GGML_API struct ggml_tensor *ggml_opt_loss(ggml_opt_context_t opt_ctx);
GGML_API struct ggml_tensor *ggml_opt_pred(ggml_opt_context_t opt_ctx);
GGML_API struct ggml_tensor *ggml_opt_ncorrect(ggml_opt_context_t opt_ctx);

// Gradient accumulator of a node of the forward graph, or NULL: with static graphs and a period of
// 1 parameters have none. [stream]
GGML_API struct ggml_tensor *ggml_opt_grad_acc(ggml_opt_context_t opt_ctx,
                                               struct ggml_tensor *node);

// Kind of optimiser. [any-thread]
GGML_API enum ggml_opt_optimizer_type ggml_opt_context_optimizer_type(ggml_opt_context_t opt_ctx);

// --- results -------------------------------------------------------------------------------------

// An empty result, which the caller frees; NULL when memory runs out. It collects evaluations until
// it is reset; all should be of one context. [any-thread]
GGML_API ggml_opt_result_t ggml_opt_result_init(void);

// Ends a result; NULL does nothing. [stream]
GGML_API void ggml_opt_result_free(ggml_opt_result_t result);

// Empties it, keeping its memory. NULL does nothing. [stream]
GGML_API void ggml_opt_result_reset(ggml_opt_result_t result);

// Points evaluated. [stream]
GGML_API void ggml_opt_result_ndata(ggml_opt_result_t result, int64_t *ndata);

// Mean loss per point, of SUM the total; unc (may be NULL) is its standard error, of SUM the
// standard deviation of one evaluation. Without evaluations the loss is 0; where too few were made
// unc is NaN. [stream]
GGML_API void ggml_opt_result_loss(ggml_opt_result_t result, double *loss, double *unc);

// Predictions, one per point in the order of evaluation; `pred` has room for them. [stream]
GGML_API void ggml_opt_result_pred(ggml_opt_result_t result, int32_t *pred);

// Share of right predictions, 0 to 1, with its standard error (may be NULL); NaN where there are
// none, as with losses other than cross entropy. [stream]
GGML_API void ggml_opt_result_accuracy(ggml_opt_result_t result, double *accuracy, double *unc);

// --- computing -----------------------------------------------------------------------------------

// The graph of the next step, for dynamic graphs; gf was made with gradients for build types above
// FORWARD. All arguments stay the caller's and must live until the evaluation. [stream]
GGML_API void ggml_opt_prepare_alloc(ggml_opt_context_t opt_ctx, struct ggml_context *ctx_compute,
                                     struct ggml_cgraph *gf, struct ggml_tensor *inputs,
                                     struct ggml_tensor *outputs);

// Chooses and allocates the graph of the next evaluation: forward only, or with `backward`
// gradients and at the end of a period the optimiser step. Then set the inputs (and
// ggml_opt_labels()). A failure, as calling it twice without ggml_opt_eval(), shows in
// ggml_last_status(); a dynamic graph has to be made and prepared anew after one. [stream]
GGML_API void ggml_opt_alloc(ggml_opt_context_t opt_ctx, bool backward);

// Computes it and adds to the result, which may be NULL. Needs ggml_opt_alloc() before. Parameters
// are changed by it if the step is due. Blocks. [stream]
GGML_API void ggml_opt_eval(ggml_opt_context_t opt_ctx, ggml_opt_result_t result);

// One pass over the data set (static graphs): trains on the first idata_split points (negative:
// all), evaluates the rest. Both parts are whole batches of inputs->ne[1] points. Results and
// callbacks may be NULL. Does not shuffle. A failure ends it. Blocks. [stream]
GGML_API void ggml_opt_epoch(ggml_opt_context_t opt_ctx, ggml_opt_dataset_t dataset,
                             ggml_opt_result_t result_train, ggml_opt_result_t result_eval,
                             int64_t idata_split, ggml_opt_epoch_callback callback_train,
                             ggml_opt_epoch_callback callback_eval);

// A callback for it that logs progress, loss and accuracy at level CONT, in one line that
// overwrites itself. [stream]
GGML_API void ggml_opt_epoch_callback_progress_bar(bool train, ggml_opt_context_t opt_ctx,
                                                   ggml_opt_dataset_t dataset,
                                                   ggml_opt_result_t result, int64_t ibatch,
                                                   int64_t ibatch_max, int64_t t_start_us);

// Trains for nepoch epochs with logical batches of nbatch_logical points (a multiple of
// inputs->ne[1], which divides the data set); the last part val_split (0 <= val_split < 1, rounded
// up to whole logical batches) of the data set is for validation. All points are shuffled once,
// those for training before each epoch. get_opt_pars receives a pointer to the epoch (int64_t, from
// 1). Unless `silent` it logs progress. A failure ends it with an error in the log. Blocks.
// [stream]
GGML_API void ggml_opt_fit(ggml_backend_sched_t backend_sched, struct ggml_context *ctx_compute,
                           struct ggml_tensor *inputs, struct ggml_tensor *outputs,
                           ggml_opt_dataset_t dataset, enum ggml_opt_loss_type loss_type,
                           enum ggml_opt_optimizer_type optimizer,
                           ggml_opt_get_optimizer_params get_opt_pars, int64_t nepoch,
                           int64_t nbatch_logical, float val_split, bool silent);

#ifdef __cplusplus
}
#endif

#endif
