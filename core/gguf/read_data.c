// SPDX-License-Identifier: MIT
// Tensors from the meta data, and their data.
#include "base/status.h"
#include "ggml-impl.h"
#include "gguf/gguf_impl.h"
#include "gguf/source.h"

// Bytes of a ggml context for all tensors and one more, which holds their data.
static bool context_size(const struct gguf_context *ctx, size_t data_size, size_t *out_size) {
    const size_t n = ctx->n_infos + 1; // the data itself is a tensor
    *out_size = 0;
    if (n > SIZE_MAX / 2 / ggml_tensor_overhead()) return false;
    const size_t tensors = n * ggml_tensor_overhead();
    if (data_size > SIZE_MAX / 2 - tensors - GGML_MEM_ALIGN) return false;
    *out_size = tensors + GGML_PAD(data_size, (size_t)GGML_MEM_ALIGN);
    return true;
}

// All data as one tensor, read in one piece; the tensors point into it.
static struct ggml_tensor *read_blob(const struct gguf_context *ctx, struct gguf_source *source,
                                     struct ggml_context *tensors) {
    struct ggml_tensor *blob = ggml_new_tensor_1d(tensors, GGML_TYPE_I8, (int64_t)ctx->data_size);
    if (ggml_tensor_is_error(blob)) return NULL;
    ggml_set_name(blob, "GGUF tensor data binary blob");
    return gguf_source_read(source, blob->data, ctx->data_size) ? blob : NULL;
}

// Tensors without data if `data` is NULL: for programs that only need the shapes, or load the data
// themselves.
static bool make_tensors(const struct gguf_context *ctx, struct ggml_context *tensors, char *data) {
    for (size_t i = 0; i < ctx->n_infos; ++i) {
        const struct gguf_info *info = &ctx->infos[i];
        struct ggml_tensor *tensor =
            ggml_new_tensor(tensors, info->tensor.type, GGML_MAX_DIMS, info->tensor.ne);
        if (ggml_tensor_is_error(tensor)) return false;
        ggml_set_name(tensor, info->tensor.name);
        if (data) tensor->data = data + info->offset;
    }
    return true;
}

// Checks that the data exists before memory for it is allocated.
bool gguf_read_tensors(const struct gguf_context *ctx, struct gguf_source *source,
                       struct gguf_init_params params) {
    struct ggml_tensor *blob = NULL;
    size_t size;
    const size_t data_size = params.no_alloc ? 0 : ctx->data_size;
    if (data_size > gguf_source_left(source)) {
        return gguf_source_damaged(source, "the tensors have %zu bytes, but %llu are left",
                                   data_size, (unsigned long long)gguf_source_left(source));
    }
    if (!context_size(ctx, data_size, &size)) {
        return gguf_source_damaged(source, "the tensors have more bytes than can be addressed");
    }
    struct ggml_context *tensors =
        ggml_init((struct ggml_init_params){.mem_size = size, .no_alloc = params.no_alloc});
    if (!tensors) return false;
    if (!params.no_alloc) {
        blob = read_blob(ctx, source, tensors);
        if (!blob) goto fail;
    }
    ggml_set_no_alloc(tensors, true);
    if (!make_tensors(ctx, tensors, blob ? blob->data : NULL)) goto fail;
    ggml_set_no_alloc(tensors, params.no_alloc);
    *params.ctx = tensors;
    return true;
fail:
    ggml_free(tensors);
    return false;
}
