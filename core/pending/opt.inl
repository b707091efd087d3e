// SPDX-License-Identifier: MIT
// Public functions of this area that are declared but not implemented yet: each answers `failure` and
// leaves a message. Rows only ever leave this list.
//
// GGML_PENDING(type, name, (parameters), failure)    GGML_PENDING_VOID(name, (parameters))
GGML_PENDING(ggml_opt_dataset_t, ggml_opt_dataset_init, (enum ggml_type type_data, enum ggml_type
             type_label, int64_t ne_datapoint, int64_t ne_label, int64_t ndata, int64_t
             ndata_shard), NULL)
GGML_PENDING_VOID(ggml_opt_dataset_free, (ggml_opt_dataset_t dataset))
GGML_PENDING(int64_t, ggml_opt_dataset_ndata, (ggml_opt_dataset_t dataset), 0)
GGML_PENDING(struct ggml_tensor *, ggml_opt_dataset_data, (ggml_opt_dataset_t dataset), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_opt_dataset_labels, (ggml_opt_dataset_t dataset), NULL)
GGML_PENDING_VOID(ggml_opt_dataset_shuffle, (ggml_opt_context_t opt_ctx, ggml_opt_dataset_t dataset,
             int64_t idata))
GGML_PENDING_VOID(ggml_opt_dataset_get_batch, (ggml_opt_dataset_t dataset, struct ggml_tensor
             *data_batch, struct ggml_tensor *labels_batch, int64_t ibatch))
GGML_PENDING_VOID(ggml_opt_dataset_get_batch_host, (ggml_opt_dataset_t dataset, void *data_batch,
             size_t nb_data_batch, void *labels_batch, int64_t ibatch))
GGML_PENDING(struct ggml_opt_optimizer_params, ggml_opt_get_default_optimizer_params, (void
             *userdata), (struct ggml_opt_optimizer_params){0})
GGML_PENDING(struct ggml_opt_optimizer_params, ggml_opt_get_constant_optimizer_params, (void
             *userdata), (struct ggml_opt_optimizer_params){0})
GGML_PENDING(struct ggml_opt_params, ggml_opt_default_params, (ggml_backend_sched_t backend_sched,
             enum ggml_opt_loss_type loss_type), (struct ggml_opt_params){0})
GGML_PENDING(ggml_opt_context_t, ggml_opt_init, (struct ggml_opt_params params), NULL)
GGML_PENDING_VOID(ggml_opt_free, (ggml_opt_context_t opt_ctx))
GGML_PENDING_VOID(ggml_opt_reset, (ggml_opt_context_t opt_ctx, bool optimizer))
GGML_PENDING(bool, ggml_opt_static_graphs, (ggml_opt_context_t opt_ctx), false)
GGML_PENDING(struct ggml_tensor *, ggml_opt_inputs, (ggml_opt_context_t opt_ctx), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_opt_outputs, (ggml_opt_context_t opt_ctx), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_opt_labels, (ggml_opt_context_t opt_ctx), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_opt_loss, (ggml_opt_context_t opt_ctx), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_opt_pred, (ggml_opt_context_t opt_ctx), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_opt_ncorrect, (ggml_opt_context_t opt_ctx), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_opt_grad_acc, (ggml_opt_context_t opt_ctx, struct
             ggml_tensor *node), NULL)
GGML_PENDING(enum ggml_opt_optimizer_type, ggml_opt_context_optimizer_type, (ggml_opt_context_t
             arg0), 0)
GGML_PENDING(const char *, ggml_opt_optimizer_name, (enum ggml_opt_optimizer_type arg0), NULL)
GGML_PENDING(ggml_opt_result_t, ggml_opt_result_init, (void), NULL)
GGML_PENDING_VOID(ggml_opt_result_free, (ggml_opt_result_t result))
GGML_PENDING_VOID(ggml_opt_result_reset, (ggml_opt_result_t result))
GGML_PENDING_VOID(ggml_opt_result_ndata, (ggml_opt_result_t result, int64_t *ndata))
GGML_PENDING_VOID(ggml_opt_result_loss, (ggml_opt_result_t result, double *loss, double *unc))
GGML_PENDING_VOID(ggml_opt_result_pred, (ggml_opt_result_t result, int32_t *pred))
GGML_PENDING_VOID(ggml_opt_result_accuracy, (ggml_opt_result_t result, double *accuracy, double
             *unc))
GGML_PENDING_VOID(ggml_opt_prepare_alloc, (ggml_opt_context_t opt_ctx, struct ggml_context
             *ctx_compute, struct ggml_cgraph *gf, struct ggml_tensor *inputs, struct ggml_tensor
             *outputs))
GGML_PENDING_VOID(ggml_opt_alloc, (ggml_opt_context_t opt_ctx, bool backward))
GGML_PENDING_VOID(ggml_opt_eval, (ggml_opt_context_t opt_ctx, ggml_opt_result_t result))
GGML_PENDING_VOID(ggml_opt_epoch, (ggml_opt_context_t opt_ctx, ggml_opt_dataset_t dataset,
             ggml_opt_result_t result_train, ggml_opt_result_t result_eval, int64_t idata_split,
             ggml_opt_epoch_callback callback_train, ggml_opt_epoch_callback callback_eval))
GGML_PENDING_VOID(ggml_opt_epoch_callback_progress_bar, (bool train, ggml_opt_context_t opt_ctx,
             ggml_opt_dataset_t dataset, ggml_opt_result_t result, int64_t ibatch, int64_t
             ibatch_max, int64_t t_start_us))
GGML_PENDING_VOID(ggml_opt_fit, (ggml_backend_sched_t backend_sched, struct ggml_context
             *ctx_compute, struct ggml_tensor *inputs, struct ggml_tensor *outputs,
             ggml_opt_dataset_t dataset, enum ggml_opt_loss_type loss_type, enum
             ggml_opt_optimizer_type optimizer, ggml_opt_get_optimizer_params get_opt_pars, int64_t
             nepoch, int64_t nbatch_logical, float val_split, bool silent))
