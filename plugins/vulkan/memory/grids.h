// SPDX-License-Identifier: MIT
// The grids of the types IQ1, IQ2 and IQ3 in memory of a device, for shaders/unpack_grid.glsl.
#ifndef GVK_GRIDS_H
#define GVK_GRIDS_H

#include "memory/buffer.h"

// Bytes of all grids.
size_t gvk_grids_bytes(void);
// The buffer of the context, which is made by the first call. [any-thread]
enum ggml_status gvk_grids_get(struct gvk_context *context, const struct gvk_buffer **out_grids);

#endif
