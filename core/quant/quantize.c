// SPDX-License-Identifier: MIT
// ggml_quantize_chunk() and its companions. Where an importance matrix is given, scales are
// searched that leave the least weighted error.
#include "base/status.h"
#include "ggml-common.h"
#include "ggml-impl.h"
#include "quant/grid_search.h"
#include "quant/quant.h"

// Encoders ask for these tables themselves.
void ggml_quantize_init(enum ggml_type type) {
    switch (type) {
    case GGML_TYPE_IQ1_S:
    case GGML_TYPE_IQ1_M: quant_grid(QUANT_GRID_IQ1); break;
    case GGML_TYPE_IQ2_XXS: quant_grid(QUANT_GRID_IQ2_XXS); break;
    case GGML_TYPE_IQ2_XS: quant_grid(QUANT_GRID_IQ2_XS); break;
    case GGML_TYPE_IQ2_S: quant_grid(QUANT_GRID_IQ2_S); break;
    case GGML_TYPE_IQ3_XXS: quant_grid(QUANT_GRID_IQ3_XXS); break;
    case GGML_TYPE_IQ3_S: quant_grid(QUANT_GRID_IQ3_S); break;
    default: break;
    }
}

// The tables are not on the heap.
void ggml_quantize_free(void) {
}

// Types with so few bits that an encoder without importance would be useless; ggml refuses them as
// well.
bool ggml_quantize_requires_imatrix(enum ggml_type type) {
    return type == GGML_TYPE_IQ2_XXS || type == GGML_TYPE_IQ2_XS || type == GGML_TYPE_IQ1_S;
}

typedef void (*weighted_encoder)(const float *x, const float *w, void *y, int64_t k);

static const weighted_encoder weighted_encoders[GGML_TYPE_COUNT] = {
#define GGML_CODEC_ROW(id, decode, encode, weighted) [GGML_TYPE_##id] = weighted,
#include "quant/codec_list.inl"
};

// Returns 0, which is no size of a valid call.
static size_t refuse(const char *why, long long value) {
    ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_quantize_chunk: %s (got %lld)", why, value);
    return 0;
}

// Encodes rows start / n_per_row and following; returns the bytes written, 0 on failure. All
// arguments are checked before anything is written; the importance matrix is one row, used for
// every row.
size_t ggml_quantize_chunk(enum ggml_type type, const float *src, void *dst, int64_t start,
                           int64_t nrows, int64_t n_per_row, const float *imatrix) {
    const struct ggml_type_traits *traits = ggml_get_type_traits(type);
    const weighted_encoder weighted = traits->type_size > 0 ? weighted_encoders[type] : NULL;
    if (type != GGML_TYPE_F32 && !traits->from_float_ref && !weighted) {
        ggml_fail(GGML_HOST_UNSUPPORTED,
                  "ggml_quantize_chunk: there is no encoder for type %s (%d)", traits->type_name,
                  (int)type);
        return 0;
    }
    if (!imatrix && ggml_quantize_requires_imatrix(type))
        return refuse("the type needs an importance matrix", (long long)type);
    if (!src || !dst) return refuse("source and destination must not be NULL", 0);
    if (nrows < 0 || start < 0)
        return refuse("start and nrows must not be negative", MIN(nrows, start));
    if (n_per_row <= 0 || n_per_row % traits->blck_size != 0) {
        return refuse("a row must be a positive multiple of the type's block", n_per_row);
    }
    if (start % n_per_row != 0) return refuse("start must be the first element of a row", start);
    const size_t row_size = ggml_row_size(type, n_per_row);
    // Neither the count of elements nor the bytes may overflow, nor exceed what an object can have.
    if (nrows > INT64_MAX / n_per_row - start / n_per_row ||
        (uint64_t)(start / n_per_row + nrows) > SIZE_MAX / 2 / row_size) {
        return refuse("so many rows do not fit into memory", nrows);
    }
    char *out = (char *)dst + (size_t)(start / n_per_row) * row_size;
    if (type == GGML_TYPE_F32) {
        memcpy(out, src + start, (size_t)nrows * row_size);
    } else if (imatrix && weighted) {
        for (int64_t i = 0; i < nrows; ++i)
            weighted(src + start + i * n_per_row, imatrix, out + (size_t)i * row_size, n_per_row);
    } else {
        traits->from_float_ref(src + start, out, nrows * n_per_row);
    }
    return (size_t)nrows * row_size;
}
