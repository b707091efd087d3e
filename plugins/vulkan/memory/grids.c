// SPDX-License-Identifier: MIT
// The codes are uploaded once for each device, when the first plan with one of these types is
// recorded.
#include "memory/grids.h"

#include <assert.h>

// The codes of the points, in the order that shaders/unpack_grid.glsl knows.
#define ROW(...) __VA_ARGS__,
static const uint16_t codes[] = {
#define GGML_GRID_IQ1_S ROW
#include "grid_list.inl"
#define GGML_GRID_IQ2_XXS ROW
#include "grid_list.inl"
#define GGML_GRID_IQ2_XS ROW
#include "grid_list.inl"
#define GGML_GRID_IQ2_S ROW
#include "grid_list.inl"
#define GGML_GRID_IQ3_XXS ROW
#include "grid_list.inl"
#define GGML_GRID_IQ3_S ROW
#include "grid_list.inl"
};
static_assert(sizeof(codes) == 4608 * sizeof(uint16_t), "shaders/unpack_grid.glsl counts on it");

size_t gvk_grids_bytes(void) {
    return sizeof(codes);
}

// Uploads the lattice tables of the IQ types: a few KiB, read by every shader that unpacks them.
static enum ggml_status make(struct gvk_context *context) {
    struct gvk_buffer *buffer;
    const enum ggml_status status =
        gvk_buffer_new(context, sizeof(codes), GVK_MEMORY_UPLOAD, &buffer);
    if (status != GGML_STATUS_SUCCESS) return status;
    memcpy(buffer->mapped, codes, sizeof(codes));
    context->grids = buffer;
    return GGML_STATUS_SUCCESS;
}

// Made on first use and kept for the context's life; several streams may ask at once.
enum ggml_status gvk_grids_get(struct gvk_context *context, const struct gvk_buffer **out_grids) {
    enum ggml_status status = GGML_STATUS_SUCCESS;
    pthread_mutex_lock(&context->grids_mutex);
    if (!context->grids) status = make(context);
    *out_grids = context->grids;
    pthread_mutex_unlock(&context->grids_mutex);
    return status;
}
