// SPDX-License-Identifier: MIT
// Copies of tensors for a foreign backend: the same tensor with that backend's own buffer in place
// of ours. Only the nodes given and their direct sources are copied, never a whole graph; an object
// that occurs twice in a node stays one object.
#include "foreign.h"

void foreign_shadow_copy(const struct foreign_binary *binary, const struct ggml_tensor *tensor,
                         struct ggml_tensor *out_shadow) {
    const struct foreign_buffer *own = foreign_buffer_own(tensor->buffer);
    memcpy(out_shadow, tensor, sizeof(*out_shadow));
    out_shadow->buffer = foreign_buffer_theirs(binary, tensor->buffer);
    out_shadow->view_src = NULL;
    memset(out_shadow->src, 0, sizeof(out_shadow->src));
    if (!own || own->binary->base != binary->base) out_shadow->extra = NULL;
}

struct ggml_tensor *foreign_shadow(const struct foreign_binary *binary,
                                   const struct ggml_tensor *tensor,
                                   struct foreign_shadow *out_shadow) {
    foreign_shadow_copy(binary, tensor, &out_shadow->tensor);
    if (tensor->view_src) {
        foreign_shadow_copy(binary, tensor->view_src, &out_shadow->owner);
        out_shadow->tensor.view_src = &out_shadow->owner;
    }
    return &out_shadow->tensor;
}

struct ggml_tensor *foreign_shadow_node(const struct foreign_binary *binary,
                                        const struct ggml_tensor *node,
                                        struct foreign_node *out_node) {
    struct ggml_tensor *shadow = foreign_shadow(binary, node, &out_node->node);
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
        const struct ggml_tensor *src = node->src[i];
        if (!src) continue;
        for (int j = 0; j < i && !shadow->src[i]; ++j) { // the same object twice stays the same
            if (node->src[j] == src) shadow->src[i] = shadow->src[j];
        }
        if (src == node->view_src) shadow->src[i] = &out_node->node.owner;
        if (!shadow->src[i]) shadow->src[i] = foreign_shadow(binary, src, &out_node->src[i]);
    }
    return shadow;
}
