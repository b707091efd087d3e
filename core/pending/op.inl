// SPDX-License-Identifier: MIT
// Public functions of this area that are declared but not implemented yet: each answers `failure` and
// leaves a message. Rows only ever leave this list.
//
// GGML_PENDING(type, name, (parameters), failure)    GGML_PENDING_VOID(name, (parameters))
GGML_PENDING(struct ggml_tensor *, ggml_dup, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_dup_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_add, (struct ggml_context *ctx, struct ggml_tensor *a,
             struct ggml_tensor *b), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_add_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *b), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_add_cast, (struct ggml_context *ctx, struct ggml_tensor *a,
             struct ggml_tensor *b, enum ggml_type type), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_add_id, (struct ggml_context *ctx, struct ggml_tensor *a,
             struct ggml_tensor *b, struct ggml_tensor *ids), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_add1, (struct ggml_context *ctx, struct ggml_tensor *a,
             struct ggml_tensor *b), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_add1_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *b), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_acc, (struct ggml_context *ctx, struct ggml_tensor *a,
             struct ggml_tensor *b, size_t nb1, size_t nb2, size_t nb3, size_t offset), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_acc_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *b, size_t nb1, size_t nb2, size_t nb3, size_t offset), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_sub, (struct ggml_context *ctx, struct ggml_tensor *a,
             struct ggml_tensor *b), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_sub_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *b), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_mul, (struct ggml_context *ctx, struct ggml_tensor *a,
             struct ggml_tensor *b), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_mul_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *b), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_div, (struct ggml_context *ctx, struct ggml_tensor *a,
             struct ggml_tensor *b), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_div_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *b), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_sqr, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_sqr_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_sqrt, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_sqrt_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_log, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_log_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_expm1, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_expm1_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_softplus, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_softplus_inplace, (struct ggml_context *ctx, struct
             ggml_tensor *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_sin, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_sin_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_cos, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_cos_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_sum, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_sum_rows, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_cumsum, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_mean, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_argmax, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_count_equal, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *b), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_repeat, (struct ggml_context *ctx, struct ggml_tensor *a,
             struct ggml_tensor *b), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_repeat_4d, (struct ggml_context *ctx, struct ggml_tensor *a,
             int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_repeat_back, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *b), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_concat, (struct ggml_context *ctx, struct ggml_tensor *a,
             struct ggml_tensor *b, int dim), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_abs, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_abs_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_sgn, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_sgn_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_neg, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_neg_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_step, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_step_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_tanh, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_tanh_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_elu, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_elu_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_relu, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_leaky_relu, (struct ggml_context *ctx, struct ggml_tensor
             *a, float negative_slope, bool inplace), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_relu_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_sigmoid, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_sigmoid_inplace, (struct ggml_context *ctx, struct
             ggml_tensor *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_gelu, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_gelu_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_gelu_erf, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_gelu_erf_inplace, (struct ggml_context *ctx, struct
             ggml_tensor *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_gelu_quick, (struct ggml_context *ctx, struct ggml_tensor
             *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_gelu_quick_inplace, (struct ggml_context *ctx, struct
             ggml_tensor *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_silu, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_silu_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_silu_back, (struct ggml_context *ctx, struct ggml_tensor *a,
             struct ggml_tensor *b), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_hardswish, (struct ggml_context *ctx, struct ggml_tensor
             *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_hardsigmoid, (struct ggml_context *ctx, struct ggml_tensor
             *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_exp, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_exp_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_floor, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_floor_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_ceil, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_ceil_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_round, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_round_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_trunc, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_trunc_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_xielu, (struct ggml_context *ctx, struct ggml_tensor *a,
             float alpha_n, float alpha_p, float beta, float eps), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_glu, (struct ggml_context *ctx, struct ggml_tensor *a, enum
             ggml_glu_op op, bool swapped), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_reglu, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_reglu_swapped, (struct ggml_context *ctx, struct ggml_tensor
             *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_geglu, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_geglu_swapped, (struct ggml_context *ctx, struct ggml_tensor
             *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_swiglu, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_swiglu_swapped, (struct ggml_context *ctx, struct
             ggml_tensor *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_geglu_erf, (struct ggml_context *ctx, struct ggml_tensor
             *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_geglu_erf_swapped, (struct ggml_context *ctx, struct
             ggml_tensor *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_geglu_quick, (struct ggml_context *ctx, struct ggml_tensor
             *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_geglu_quick_swapped, (struct ggml_context *ctx, struct
             ggml_tensor *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_glu_split, (struct ggml_context *ctx, struct ggml_tensor *a,
             struct ggml_tensor *b, enum ggml_glu_op op), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_reglu_split, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *b), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_geglu_split, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *b), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_swiglu_split, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *b), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_geglu_erf_split, (struct ggml_context *ctx, struct
             ggml_tensor *a, struct ggml_tensor *b), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_geglu_quick_split, (struct ggml_context *ctx, struct
             ggml_tensor *a, struct ggml_tensor *b), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_swiglu_oai, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *b, float alpha, float limit), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_norm, (struct ggml_context *ctx, struct ggml_tensor *a,
             float eps), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_norm_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a, float eps), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_rms_norm, (struct ggml_context *ctx, struct ggml_tensor *a,
             float eps), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_rms_norm_inplace, (struct ggml_context *ctx, struct
             ggml_tensor *a, float eps), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_group_norm, (struct ggml_context *ctx, struct ggml_tensor
             *a, int n_groups, float eps), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_group_norm_inplace, (struct ggml_context *ctx, struct
             ggml_tensor *a, int n_groups, float eps), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_l2_norm, (struct ggml_context *ctx, struct ggml_tensor *a,
             float eps), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_l2_norm_inplace, (struct ggml_context *ctx, struct
             ggml_tensor *a, float eps), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_rms_norm_back, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *b, float eps), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_mul_mat, (struct ggml_context *ctx, struct ggml_tensor *a,
             struct ggml_tensor *b), NULL)
GGML_PENDING_VOID(ggml_mul_mat_set_prec, (struct ggml_tensor *a, enum ggml_prec prec))
GGML_PENDING_VOID(ggml_mul_mat_set_hint, (struct ggml_tensor *a, enum ggml_op_hint hint))
GGML_PENDING(struct ggml_tensor *, ggml_mul_mat_id, (struct ggml_context *ctx, struct ggml_tensor
             *as, struct ggml_tensor *b, struct ggml_tensor *ids), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_out_prod, (struct ggml_context *ctx, struct ggml_tensor *a,
             struct ggml_tensor *b), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_scale, (struct ggml_context *ctx, struct ggml_tensor *a,
             float s), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_scale_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a, float s), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_scale_bias, (struct ggml_context *ctx, struct ggml_tensor
             *a, float s, float b), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_scale_bias_inplace, (struct ggml_context *ctx, struct
             ggml_tensor *a, float s, float b), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_set, (struct ggml_context *ctx, struct ggml_tensor *a,
             struct ggml_tensor *b, size_t nb1, size_t nb2, size_t nb3, size_t offset), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_set_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *b, size_t nb1, size_t nb2, size_t nb3, size_t offset), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_set_1d, (struct ggml_context *ctx, struct ggml_tensor *a,
             struct ggml_tensor *b, size_t offset), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_set_1d_inplace, (struct ggml_context *ctx, struct
             ggml_tensor *a, struct ggml_tensor *b, size_t offset), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_set_2d, (struct ggml_context *ctx, struct ggml_tensor *a,
             struct ggml_tensor *b, size_t nb1, size_t offset), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_set_2d_inplace, (struct ggml_context *ctx, struct
             ggml_tensor *a, struct ggml_tensor *b, size_t nb1, size_t offset), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_cpy, (struct ggml_context *ctx, struct ggml_tensor *a,
             struct ggml_tensor *b), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_cast, (struct ggml_context *ctx, struct ggml_tensor *a, enum
             ggml_type type), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_cont, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_cont_1d, (struct ggml_context *ctx, struct ggml_tensor *a,
             int64_t ne0), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_cont_2d, (struct ggml_context *ctx, struct ggml_tensor *a,
             int64_t ne0, int64_t ne1), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_cont_3d, (struct ggml_context *ctx, struct ggml_tensor *a,
             int64_t ne0, int64_t ne1, int64_t ne2), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_cont_4d, (struct ggml_context *ctx, struct ggml_tensor *a,
             int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_reshape, (struct ggml_context *ctx, struct ggml_tensor *a,
             struct ggml_tensor *b), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_reshape_1d, (struct ggml_context *ctx, struct ggml_tensor
             *a, int64_t ne0), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_reshape_2d, (struct ggml_context *ctx, struct ggml_tensor
             *a, int64_t ne0, int64_t ne1), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_reshape_3d, (struct ggml_context *ctx, struct ggml_tensor
             *a, int64_t ne0, int64_t ne1, int64_t ne2), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_reshape_4d, (struct ggml_context *ctx, struct ggml_tensor
             *a, int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_view_1d, (struct ggml_context *ctx, struct ggml_tensor *a,
             int64_t ne0, size_t offset), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_view_2d, (struct ggml_context *ctx, struct ggml_tensor *a,
             int64_t ne0, int64_t ne1, size_t nb1, size_t offset), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_view_3d, (struct ggml_context *ctx, struct ggml_tensor *a,
             int64_t ne0, int64_t ne1, int64_t ne2, size_t nb1, size_t nb2, size_t offset), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_view_4d, (struct ggml_context *ctx, struct ggml_tensor *a,
             int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3, size_t nb1, size_t nb2, size_t nb3,
             size_t offset), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_permute, (struct ggml_context *ctx, struct ggml_tensor *a,
             int axis0, int axis1, int axis2, int axis3), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_transpose, (struct ggml_context *ctx, struct ggml_tensor
             *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_get_rows, (struct ggml_context *ctx, struct ggml_tensor *a,
             struct ggml_tensor *b), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_get_rows_back, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *b, struct ggml_tensor *c), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_set_rows, (struct ggml_context *ctx, struct ggml_tensor *a,
             struct ggml_tensor *b, struct ggml_tensor *c), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_diag, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_diag_mask_inf, (struct ggml_context *ctx, struct ggml_tensor
             *a, int n_past), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_diag_mask_inf_inplace, (struct ggml_context *ctx, struct
             ggml_tensor *a, int n_past), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_diag_mask_zero, (struct ggml_context *ctx, struct
             ggml_tensor *a, int n_past), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_diag_mask_zero_inplace, (struct ggml_context *ctx, struct
             ggml_tensor *a, int n_past), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_soft_max, (struct ggml_context *ctx, struct ggml_tensor *a),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_soft_max_inplace, (struct ggml_context *ctx, struct
             ggml_tensor *a), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_soft_max_ext, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *mask, float scale, float max_bias), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_soft_max_ext_inplace, (struct ggml_context *ctx, struct
             ggml_tensor *a, struct ggml_tensor *mask, float scale, float max_bias), NULL)
GGML_PENDING_VOID(ggml_soft_max_add_sinks, (struct ggml_tensor *a, struct ggml_tensor *sinks))
GGML_PENDING(struct ggml_tensor *, ggml_soft_max_ext_back, (struct ggml_context *ctx, struct
             ggml_tensor *a, struct ggml_tensor *b, float scale, float max_bias), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_soft_max_ext_back_inplace, (struct ggml_context *ctx, struct
             ggml_tensor *a, struct ggml_tensor *b, float scale, float max_bias), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_rope, (struct ggml_context *ctx, struct ggml_tensor *a,
             struct ggml_tensor *b, int n_dims, int mode), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_rope_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *b, int n_dims, int mode), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_rope_ext, (struct ggml_context *ctx, struct ggml_tensor *a,
             struct ggml_tensor *b, struct ggml_tensor *c, int n_dims, int mode, int n_ctx_orig,
             float freq_base, float freq_scale, float ext_factor, float attn_factor, float
             beta_fast, float beta_slow), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_rope_multi, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *b, struct ggml_tensor *c, int n_dims, int
             sections[GGML_MROPE_SECTIONS], int mode, int n_ctx_orig, float freq_base, float
             freq_scale, float ext_factor, float attn_factor, float beta_fast, float beta_slow),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_rope_ext_inplace, (struct ggml_context *ctx, struct
             ggml_tensor *a, struct ggml_tensor *b, struct ggml_tensor *c, int n_dims, int mode, int
             n_ctx_orig, float freq_base, float freq_scale, float ext_factor, float attn_factor,
             float beta_fast, float beta_slow), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_rope_multi_inplace, (struct ggml_context *ctx, struct
             ggml_tensor *a, struct ggml_tensor *b, struct ggml_tensor *c, int n_dims, int
             sections[GGML_MROPE_SECTIONS], int mode, int n_ctx_orig, float freq_base, float
             freq_scale, float ext_factor, float attn_factor, float beta_fast, float beta_slow),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_rope_custom, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *b, int n_dims, int mode, int n_ctx_orig, float freq_base, float
             freq_scale, float ext_factor, float attn_factor, float beta_fast, float beta_slow),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_rope_custom_inplace, (struct ggml_context *ctx, struct
             ggml_tensor *a, struct ggml_tensor *b, int n_dims, int mode, int n_ctx_orig, float
             freq_base, float freq_scale, float ext_factor, float attn_factor, float beta_fast,
             float beta_slow), NULL)
GGML_PENDING_VOID(ggml_rope_yarn_corr_dims, (int n_dims, int n_ctx_orig, float freq_base, float
             beta_fast, float beta_slow, float dims[2]))
GGML_PENDING(struct ggml_tensor *, ggml_rope_ext_back, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *b, struct ggml_tensor *c, int n_dims, int mode, int n_ctx_orig,
             float freq_base, float freq_scale, float ext_factor, float attn_factor, float
             beta_fast, float beta_slow), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_rope_multi_back, (struct ggml_context *ctx, struct
             ggml_tensor *a, struct ggml_tensor *b, struct ggml_tensor *c, int n_dims, int
             sections[4], int mode, int n_ctx_orig, float freq_base, float freq_scale, float
             ext_factor, float attn_factor, float beta_fast, float beta_slow), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_rope_set_offset, (struct ggml_tensor *a, int n_offs), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_clamp, (struct ggml_context *ctx, struct ggml_tensor *a,
             float min, float max), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_im2col, (struct ggml_context *ctx, struct ggml_tensor *a,
             struct ggml_tensor *b, int s0, int s1, int p0, int p1, int d0, int d1, bool is_2D, enum
             ggml_type dst_type), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_im2col_back, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *b, int64_t *ne, int s0, int s1, int p0, int p1, int d0, int d1,
             bool is_2D), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_col2im_1d, (struct ggml_context *ctx, struct ggml_tensor *a,
             int s0, int oc, int p0), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_conv_1d, (struct ggml_context *ctx, struct ggml_tensor *a,
             struct ggml_tensor *b, int s0, int p0, int d0), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_conv_1d_ph, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *b, int s, int d), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_conv_1d_dw, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *b, int s0, int p0, int d0), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_conv_1d_dw_ph, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *b, int s0, int d0), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_conv_transpose_1d, (struct ggml_context *ctx, struct
             ggml_tensor *a, struct ggml_tensor *b, int s0, int p0, int d0), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_conv_2d, (struct ggml_context *ctx, struct ggml_tensor *a,
             struct ggml_tensor *b, int s0, int s1, int p0, int p1, int d0, int d1), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_im2col_3d, (struct ggml_context *ctx, struct ggml_tensor *a,
             struct ggml_tensor *b, int64_t IC, int s0, int s1, int s2, int p0, int p1, int p2, int
             d0, int d1, int d2, enum ggml_type dst_type), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_conv_3d, (struct ggml_context *ctx, struct ggml_tensor *a,
             struct ggml_tensor *b, int64_t IC, int s0, int s1, int s2, int p0, int p1, int p2, int
             d0, int d1, int d2), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_conv_2d_sk_p0, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *b), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_conv_2d_s1_ph, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *b), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_conv_2d_dw, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *b, int s0, int s1, int p0, int p1, int d0, int d1), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_conv_2d_dw_direct, (struct ggml_context *ctx, struct
             ggml_tensor *a, struct ggml_tensor *b, int stride0, int stride1, int pad0, int pad1,
             int dilation0, int dilation1), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_conv_transpose_2d_p0, (struct ggml_context *ctx, struct
             ggml_tensor *a, struct ggml_tensor *b, int stride), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_conv_2d_direct, (struct ggml_context *ctx, struct
             ggml_tensor *a, struct ggml_tensor *b, int s0, int s1, int p0, int p1, int d0, int d1),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_conv_3d_direct, (struct ggml_context *ctx, struct
             ggml_tensor *a, struct ggml_tensor *b, int s0, int s1, int s2, int p0, int p1, int p2,
             int d0, int d1, int d2, int n_channels, int n_batch, int n_channels_out), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_pool_1d, (struct ggml_context *ctx, struct ggml_tensor *a,
             enum ggml_op_pool op, int k0, int s0, int p0), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_pool_2d, (struct ggml_context *ctx, struct ggml_tensor *a,
             enum ggml_op_pool op, int k0, int k1, int s0, int s1, float p0, float p1), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_pool_2d_back, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *af, enum ggml_op_pool op, int k0, int k1, int s0, int s1, float
             p0, float p1), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_upscale, (struct ggml_context *ctx, struct ggml_tensor *a,
             int scale_factor, enum ggml_scale_mode mode), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_upscale_ext, (struct ggml_context *ctx, struct ggml_tensor
             *a, int ne0, int ne1, int ne2, int ne3, enum ggml_scale_mode mode), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_interpolate, (struct ggml_context *ctx, struct ggml_tensor
             *a, int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3, uint32_t mode), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_pad, (struct ggml_context *ctx, struct ggml_tensor *a, int
             p0, int p1, int p2, int p3), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_pad_circular, (struct ggml_context *ctx, struct ggml_tensor
             *a, int p0, int p1, int p2, int p3), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_pad_ext, (struct ggml_context *ctx, struct ggml_tensor *a,
             int lp0, int rp0, int lp1, int rp1, int lp2, int rp2, int lp3, int rp3), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_pad_ext_circular, (struct ggml_context *ctx, struct
             ggml_tensor *a, int lp0, int rp0, int lp1, int rp1, int lp2, int rp2, int lp3, int
             rp3), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_pad_reflect_1d, (struct ggml_context *ctx, struct
             ggml_tensor *a, int p0, int p1), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_roll, (struct ggml_context *ctx, struct ggml_tensor *a, int
             shift0, int shift1, int shift2, int shift3), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_tri, (struct ggml_context *ctx, struct ggml_tensor *a, enum
             ggml_tri_type type), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_fill, (struct ggml_context *ctx, struct ggml_tensor *a,
             float c), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_fill_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a, float c), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_timestep_embedding, (struct ggml_context *ctx, struct
             ggml_tensor *timesteps, int dim, int max_period), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_argsort, (struct ggml_context *ctx, struct ggml_tensor *a,
             enum ggml_sort_order order), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_argsort_top_k, (struct ggml_context *ctx, struct ggml_tensor
             *a, int k), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_top_k, (struct ggml_context *ctx, struct ggml_tensor *a, int
             k), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_arange, (struct ggml_context *ctx, float start, float stop,
             float step), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_flash_attn_ext, (struct ggml_context *ctx, struct
             ggml_tensor *q, struct ggml_tensor *k, struct ggml_tensor *v, struct ggml_tensor *mask,
             float scale, float max_bias, float logit_softcap), NULL)
GGML_PENDING_VOID(ggml_flash_attn_ext_set_prec, (struct ggml_tensor *a, enum ggml_prec prec))
GGML_PENDING(enum ggml_prec, ggml_flash_attn_ext_get_prec, (const struct ggml_tensor *a), 0)
GGML_PENDING_VOID(ggml_flash_attn_ext_add_sinks, (struct ggml_tensor *a, struct ggml_tensor *sinks))
GGML_PENDING(struct ggml_tensor *, ggml_flash_attn_back, (struct ggml_context *ctx, struct
             ggml_tensor *q, struct ggml_tensor *k, struct ggml_tensor *v, struct ggml_tensor *d,
             bool masked), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_ssm_conv, (struct ggml_context *ctx, struct ggml_tensor *sx,
             struct ggml_tensor *c), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_ssm_scan, (struct ggml_context *ctx, struct ggml_tensor *s,
             struct ggml_tensor *x, struct ggml_tensor *dt, struct ggml_tensor *A, struct
             ggml_tensor *B, struct ggml_tensor *C, struct ggml_tensor *ids, int64_t K), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_win_part, (struct ggml_context *ctx, struct ggml_tensor *a,
             int w), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_win_unpart, (struct ggml_context *ctx, struct ggml_tensor
             *a, int w0, int h0, int w), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_unary, (struct ggml_context *ctx, struct ggml_tensor *a,
             enum ggml_unary_op op), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_unary_inplace, (struct ggml_context *ctx, struct ggml_tensor
             *a, enum ggml_unary_op op), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_get_rel_pos, (struct ggml_context *ctx, struct ggml_tensor
             *a, int qh, int kh), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_add_rel_pos, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *pw, struct ggml_tensor *ph), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_add_rel_pos_inplace, (struct ggml_context *ctx, struct
             ggml_tensor *a, struct ggml_tensor *pw, struct ggml_tensor *ph), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_rwkv_wkv6, (struct ggml_context *ctx, struct ggml_tensor *k,
             struct ggml_tensor *v, struct ggml_tensor *r, struct ggml_tensor *tf, struct
             ggml_tensor *td, struct ggml_tensor *state), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_gated_linear_attn, (struct ggml_context *ctx, struct
             ggml_tensor *k, struct ggml_tensor *v, struct ggml_tensor *q, struct ggml_tensor *g,
             struct ggml_tensor *state, float scale), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_rwkv_wkv7, (struct ggml_context *ctx, struct ggml_tensor *r,
             struct ggml_tensor *w, struct ggml_tensor *k, struct ggml_tensor *v, struct ggml_tensor
             *a, struct ggml_tensor *b, struct ggml_tensor *state), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_solve_tri, (struct ggml_context *ctx, struct ggml_tensor *a,
             struct ggml_tensor *b, bool left, bool lower, bool uni), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_gated_delta_net, (struct ggml_context *ctx, struct
             ggml_tensor *q, struct ggml_tensor *k, struct ggml_tensor *v, struct ggml_tensor *g,
             struct ggml_tensor *beta, struct ggml_tensor *state, int64_t K), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_lightning_indexer, (struct ggml_context *ctx, struct
             ggml_tensor *q, struct ggml_tensor *k, struct ggml_tensor *weights, struct ggml_tensor
             *mask), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_dsv4_hc_comb, (struct ggml_context *ctx, struct ggml_tensor
             *mixes, struct ggml_tensor *scale, struct ggml_tensor *base, float eps, int32_t
             n_iter), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_dsv4_hc_pre, (struct ggml_context *ctx, struct ggml_tensor
             *x, struct ggml_tensor *weights), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_dsv4_hc_post, (struct ggml_context *ctx, struct ggml_tensor
             *x, struct ggml_tensor *residual, struct ggml_tensor *post, struct ggml_tensor *comb),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_map_custom1, (struct ggml_context *ctx, struct ggml_tensor
             *a, ggml_custom1_op_t fun, int n_tasks, void *userdata), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_map_custom1_inplace, (struct ggml_context *ctx, struct
             ggml_tensor *a, ggml_custom1_op_t fun, int n_tasks, void *userdata), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_map_custom2, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *b, ggml_custom2_op_t fun, int n_tasks, void *userdata), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_map_custom2_inplace, (struct ggml_context *ctx, struct
             ggml_tensor *a, struct ggml_tensor *b, ggml_custom2_op_t fun, int n_tasks, void
             *userdata), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_map_custom3, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *b, struct ggml_tensor *c, ggml_custom3_op_t fun, int n_tasks,
             void *userdata), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_map_custom3_inplace, (struct ggml_context *ctx, struct
             ggml_tensor *a, struct ggml_tensor *b, struct ggml_tensor *c, ggml_custom3_op_t fun,
             int n_tasks, void *userdata), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_custom_4d, (struct ggml_context *ctx, enum ggml_type type,
             int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3, struct ggml_tensor **args, int
             n_args, ggml_custom_op_t fun, int n_tasks, void *userdata), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_custom_inplace, (struct ggml_context *ctx, struct
             ggml_tensor *a, struct ggml_tensor **args, int n_args, ggml_custom_op_t fun, int
             n_tasks, void *userdata), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_cross_entropy_loss, (struct ggml_context *ctx, struct
             ggml_tensor *a, struct ggml_tensor *b), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_cross_entropy_loss_back, (struct ggml_context *ctx, struct
             ggml_tensor *a, struct ggml_tensor *b, struct ggml_tensor *c), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_opt_step_adamw, (struct ggml_context *ctx, struct
             ggml_tensor *a, struct ggml_tensor *grad, struct ggml_tensor *m, struct ggml_tensor *v,
             struct ggml_tensor *adamw_params), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_opt_step_sgd, (struct ggml_context *ctx, struct ggml_tensor
             *a, struct ggml_tensor *grad, struct ggml_tensor *sgd_params), NULL)
