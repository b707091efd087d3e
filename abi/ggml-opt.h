// SPDX-License-Identifier: MIT
// ggml-opt.h: training over the graph API.
#ifndef GGML_OPT_H
#define GGML_OPT_H

#include "ggml-backend.h"
#include "ggml.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ggml_opt_dataset *ggml_opt_dataset_t;
typedef struct ggml_opt_context *ggml_opt_context_t;
typedef struct ggml_opt_result *ggml_opt_result_t;

enum ggml_opt_loss_type {
    GGML_OPT_LOSS_TYPE_MEAN = 0,
    GGML_OPT_LOSS_TYPE_SUM = 1,
    GGML_OPT_LOSS_TYPE_CROSS_ENTROPY = 2,
    GGML_OPT_LOSS_TYPE_MEAN_SQUARED_ERROR = 3,
};

enum ggml_opt_build_type {
    GGML_OPT_BUILD_TYPE_FORWARD = 10,
    GGML_OPT_BUILD_TYPE_GRAD = 20,
    GGML_OPT_BUILD_TYPE_OPT = 30,
};

enum ggml_opt_optimizer_type {
    GGML_OPT_OPTIMIZER_TYPE_ADAMW = 0,
    GGML_OPT_OPTIMIZER_TYPE_SGD = 1,
    GGML_OPT_OPTIMIZER_TYPE_COUNT = 2,
};

struct ggml_opt_optimizer_params {
    struct {
        float alpha; // learning rate
        float beta1;
        float beta2;
        float eps;
        float wd; // weight decay
    } adamw;
    struct {
        float alpha; // learning rate
        float wd;    // weight decay
    } sgd;
};

// Asked before each optimiser step.
typedef struct ggml_opt_optimizer_params (*ggml_opt_get_optimizer_params)(void *userdata);

struct ggml_opt_params {
    ggml_backend_sched_t backend_sched;
    struct ggml_context *ctx_compute;
    struct ggml_tensor *inputs;
    struct ggml_tensor *outputs;
    enum ggml_opt_loss_type loss_type;
    enum ggml_opt_build_type build_type;
    int32_t opt_period;
    ggml_opt_get_optimizer_params get_opt_pars;
    void *get_opt_pars_ud;
    enum ggml_opt_optimizer_type optimizer;
};

// Called after each batch (ibatch of ibatch_max) of training or evaluation.
typedef void (*ggml_opt_epoch_callback)(bool train, ggml_opt_context_t opt_ctx,
                                        ggml_opt_dataset_t dataset, ggml_opt_result_t result,
                                        int64_t ibatch, int64_t ibatch_max, int64_t t_start_us);

// --- data set ------------------------------------------------------------------------------------

// ndata points of ne_datapoint values with ne_label labels each (0: none) in host memory, in shards
// of ndata_shard points that are shuffled as a whole; points that fill no shard are in no batch. NULL
// on failure. The caller frees it and fills the tensors. [any-thread]
GGML_API ggml_opt_dataset_t ggml_opt_dataset_init(enum ggml_type type_data,
                                                  enum ggml_type type_label, int64_t ne_datapoint,
                                                  int64_t ne_label, int64_t ndata,
                                                  int64_t ndata_shard);

// Ends it with its tensors; NULL does nothing. [stream]
GGML_API void ggml_opt_dataset_free(ggml_opt_dataset_t dataset);

// Number of points; tensor [ne_datapoint, ndata]; tensor [ne_label, ndata] or NULL. [any-thread]
GGML_API int64_t ggml_opt_dataset_ndata(ggml_opt_dataset_t dataset);
GGML_API struct ggml_tensor *ggml_opt_dataset_data(ggml_opt_dataset_t dataset);
GGML_API struct ggml_tensor *ggml_opt_dataset_labels(ggml_opt_dataset_t dataset);

// Shuffles the shards of the first idata points (negative: of all) with the context's generator,
// whose seed is fixed. [stream]
GGML_API void ggml_opt_dataset_shuffle(ggml_opt_context_t opt_ctx, ggml_opt_dataset_t dataset,
                                       int64_t idata);

// Copies batch ibatch into tensors of the data set's types (labels may be NULL); a batch is whole
// shards. Blocks. [stream]
GGML_API void ggml_opt_dataset_get_batch(ggml_opt_dataset_t dataset, struct ggml_tensor *data_batch,
                                         struct ggml_tensor *labels_batch, int64_t ibatch);

// The same into host memory; nb_data_batch: bytes of data, which give the batch size. [stream]
GGML_API void ggml_opt_dataset_get_batch_host(ggml_opt_dataset_t dataset, void *data_batch,
                                              size_t nb_data_batch, void *labels_batch,
                                              int64_t ibatch);

// --- parameters ----------------------------------------------------------------------------------

// AdamW 0.001, 0.9, 0.999, 1e-8, 0; SGD 0.001, 0. userdata is not used. [any-thread]
GGML_API struct ggml_opt_optimizer_params ggml_opt_get_default_optimizer_params(void *userdata);

// A copy of the struct ggml_opt_optimizer_params at userdata; the defaults for NULL. [any-thread]
GGML_API struct ggml_opt_optimizer_params ggml_opt_get_constant_optimizer_params(void *userdata);

// Parameters for dynamic graphs, build type OPT, period 1, AdamW with defaults. [any-thread]
GGML_API struct ggml_opt_params ggml_opt_default_params(ggml_backend_sched_t backend_sched,
                                                        enum ggml_opt_loss_type loss_type);

// "adamw", "sgd", else "undefined"; constant. [any-thread]
GGML_API const char *ggml_opt_optimizer_name(enum ggml_opt_optimizer_type type);

// --- context -------------------------------------------------------------------------------------

// A training context. With params.ctx_compute the graphs are static and built once from inputs and
// outputs; without, each step starts with ggml_opt_prepare_alloc(). The scheduler and that context
// stay the caller's and must outlive it. NULL on failure. [any-thread]
GGML_API ggml_opt_context_t ggml_opt_init(struct ggml_opt_params params);

// Ends it; NULL does nothing. [stream]
GGML_API void ggml_opt_free(ggml_opt_context_t opt_ctx);

// Zeroes gradients and loss; with `optimizer` momenta and the step count too. [stream]
GGML_API void ggml_opt_reset(ggml_opt_context_t opt_ctx, bool optimizer);

// Whether graphs are static. [any-thread]
GGML_API bool ggml_opt_static_graphs(ggml_opt_context_t opt_ctx);

// Tensors of the context; NULL where the loss type or build type has none. [stream]
GGML_API struct ggml_tensor *ggml_opt_inputs(ggml_opt_context_t opt_ctx);
GGML_API struct ggml_tensor *ggml_opt_outputs(ggml_opt_context_t opt_ctx);
GGML_API struct ggml_tensor *ggml_opt_labels(ggml_opt_context_t opt_ctx);
GGML_API struct ggml_tensor *ggml_opt_loss(ggml_opt_context_t opt_ctx);
GGML_API struct ggml_tensor *ggml_opt_pred(ggml_opt_context_t opt_ctx);
GGML_API struct ggml_tensor *ggml_opt_ncorrect(ggml_opt_context_t opt_ctx);

// Gradient accumulator of a node of the forward graph, or NULL. [stream]
GGML_API struct ggml_tensor *ggml_opt_grad_acc(ggml_opt_context_t opt_ctx,
                                               struct ggml_tensor *node);

// Kind of optimiser. [any-thread]
GGML_API enum ggml_opt_optimizer_type ggml_opt_context_optimizer_type(ggml_opt_context_t opt_ctx);

// --- results -------------------------------------------------------------------------------------

// An empty result, which the caller frees; NULL when memory runs out. [any-thread]
GGML_API ggml_opt_result_t ggml_opt_result_init(void);

// Ends a result; NULL does nothing. [stream]
GGML_API void ggml_opt_result_free(ggml_opt_result_t result);

// Empties it. [stream]
GGML_API void ggml_opt_result_reset(ggml_opt_result_t result);

// Points evaluated; loss and accuracy with their uncertainties (NaN where they are not known; unc
// may be NULL; that of a summed loss is the deviation of one evaluation); predictions, one per point.
// [stream]
GGML_API void ggml_opt_result_ndata(ggml_opt_result_t result, int64_t *ndata);
GGML_API void ggml_opt_result_loss(ggml_opt_result_t result, double *loss, double *unc);
GGML_API void ggml_opt_result_pred(ggml_opt_result_t result, int32_t *pred);
GGML_API void ggml_opt_result_accuracy(ggml_opt_result_t result, double *accuracy, double *unc);

// --- computing -----------------------------------------------------------------------------------

// The graph of the next step, for dynamic graphs. All arguments stay the caller's. [stream]
GGML_API void ggml_opt_prepare_alloc(ggml_opt_context_t opt_ctx, struct ggml_context *ctx_compute,
                                     struct ggml_cgraph *gf, struct ggml_tensor *inputs,
                                     struct ggml_tensor *outputs);

// Chooses and allocates the graph of the next evaluation: forward only, or with `backward`
// gradients and at the end of a period the optimiser step. Then set the inputs. A failure shows in
// ggml_last_status(). [stream]
GGML_API void ggml_opt_alloc(ggml_opt_context_t opt_ctx, bool backward);

// Computes it and adds to the result, which may be NULL. Needs ggml_opt_alloc() before. Blocks.
// [stream]
GGML_API void ggml_opt_eval(ggml_opt_context_t opt_ctx, ggml_opt_result_t result);

// One pass over the data set (static graphs): trains on the first idata_split points (negative:
// all), evaluates the rest. Results and callbacks may be NULL. Blocks. [stream]
GGML_API void ggml_opt_epoch(ggml_opt_context_t opt_ctx, ggml_opt_dataset_t dataset,
                             ggml_opt_result_t result_train, ggml_opt_result_t result_eval,
                             int64_t idata_split, ggml_opt_epoch_callback callback_train,
                             ggml_opt_epoch_callback callback_eval);

// A callback for it that logs progress, loss and accuracy at level CONT. [stream]
GGML_API void ggml_opt_epoch_callback_progress_bar(bool train, ggml_opt_context_t opt_ctx,
                                                   ggml_opt_dataset_t dataset,
                                                   ggml_opt_result_t result, int64_t ibatch,
                                                   int64_t ibatch_max, int64_t t_start_us);

// Trains for nepoch epochs with logical batches of nbatch_logical points; the last part val_split
// of the data set is for validation. get_opt_pars receives a pointer to the epoch (int64_t).
// Blocks. [stream]
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
