// SPDX-License-Identifier: MIT
// Names that the library gives, which most nodes get: put together without formatting.
#ifndef GGML_TENSOR_NAME_H
#define GGML_TENSOR_NAME_H

#include "ggml-impl.h"

// As ggml_format_name(tensor, "%s%s", base, suffix); `base` is the name of a tensor, of which no
// more than GGML_MAX_NAME bytes are read. [stream]
void ggml_name_join(struct ggml_tensor *tensor, const char *base, const char *suffix);
// As ggml_format_name(tensor, "%s%d", base, number), for numbers that are not negative. [stream]
void ggml_name_number(struct ggml_tensor *tensor, const char *base, int number);

#endif
