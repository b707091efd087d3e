// SPDX-License-Identifier: MIT
// Graphs of the shapes that models have, to measure allocators with.
#ifndef GGML_BENCH_FAMILIES_H
#define GGML_BENCH_FAMILIES_H

#include <stddef.h>

#include "ggml-backend.h"

enum family {
    FAMILY_TRANSFORMER,
    FAMILY_FLASH,
    FAMILY_MOE,
    FAMILY_UNET,
    FAMILY_SAMPLER,
    FAMILY_GUIDED,
    FAMILY_TWO_UNETS,
    FAMILY_AUTOENCODER,
    FAMILY_ENCODER_DECODER,
    FAMILY_WIDE,
    FAMILY_RANDOM,
    FAMILY_COUNT
};

const char *family_name(enum family family);
// What `size` counts, and sizes that are usual for the family, ended by 0.
const char *family_unit(enum family family);
const int *family_sizes(enum family family);

// A graph in the context, which must have room (family_context()) and not allocate. Its weights lie
// in the buffer, all at one address. NULL with a message on failure.
struct ggml_cgraph *family_build(struct ggml_context *ctx, enum family family, int size,
                                 ggml_backend_buffer_t weights);
// A context for one such graph. The caller frees it.
struct ggml_context *family_context(enum family family, int size);

// The largest sum of the places of tensors that live at once, in an allocated graph, where each
// place is counted in multiples of the alignment; 0 when memory runs out. Tensors that share a
// place because one overwrites the other count once.
size_t family_bound(struct ggml_cgraph *graph, size_t alignment);

#endif
