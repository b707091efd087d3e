// SPDX-License-Identifier: MIT
// Products together with what follows them.
#ifndef GVK_MUL_MAT_H
#define GVK_MUL_MAT_H

#include "plan/kernel.h"

// Appends the launch of a mul_mat whose product is only added to `bias`, which is repeated to the
// shape of the sum. False: nothing was appended. [stream]
bool gvk_encode_mul_mat_bias(struct gvk_plan *plan, const struct ggml_tensor *product,
                             const struct ggml_tensor *bias, const struct ggml_tensor *sum);
// The same for two mul_mats of one operand of which only glu(x, gate) is used.
bool gvk_encode_mul_mat_glu(struct gvk_plan *plan, const struct ggml_tensor *x,
                            const struct ggml_tensor *gate, const struct ggml_tensor *glu);

#endif
