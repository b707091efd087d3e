// SPDX-License-Identifier: MIT
// Data of tensors that lie in host memory, and setting tensors to zero.
#include "base/status.h"
#include "ggml-backend.h"
#include "ggml-impl.h"

void *ggml_get_data(const struct ggml_tensor *tensor) {
    return tensor ? tensor->data : NULL;
}

float *ggml_get_data_f32(const struct ggml_tensor *tensor) {
    if (!tensor || tensor->type != GGML_TYPE_F32) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_get_data_f32: '%s' is not of type f32",
                  ggml_get_name(tensor));
        return NULL;
    }
    return tensor->data;
}

struct ggml_tensor *ggml_set_zero(struct ggml_tensor *tensor) {
    if (!tensor || ggml_is_empty(tensor)) return tensor;
    if (tensor->buffer) {
        ggml_backend_tensor_memset(tensor, 0, 0, ggml_nbytes(tensor));
    } else if (tensor->data) {
        memset(tensor->data, 0, ggml_nbytes(tensor));
    } else {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_set_zero: '%s' has no memory yet",
                  tensor->name);
    }
    return tensor;
}
