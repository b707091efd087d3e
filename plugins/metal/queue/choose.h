// SPDX-License-Identifier: MIT
// The plugin's own kernels in the place of the shared ones, where they take a node.
#ifndef METAL_QUEUE_CHOOSE_H
#define METAL_QUEUE_CHOOSE_H

#include "queue/plan.h"

// Whether kernels can read rows of the tensor four elements at a time. [any-thread]
bool metal_takes_fours(const struct ggml_tensor *tensor);
// Takes the kernel, and tells it what it is specialised for. [any-thread]
void metal_specialise(struct metal_launch *launch, const struct metal_variant *variant);

// Replace the plain kernel, whose launch has been filled, by one that is faster, if one takes the
// node. [any-thread]
void metal_choose_product(struct metal_launch *launch, const struct ggml_tensor *node,
                          const struct metal_planner *planner);
void metal_choose_attention(struct metal_launch *launch, const struct ggml_tensor *node,
                            const struct metal_planner *planner);
// Fills the launch that adds up what `first` has written to scratch memory; false: it has not.
// [any-thread]
bool metal_merge_attention(struct metal_launch *out_launch, const struct metal_launch *first);

// Turn the launch of a product into one that also adds a tensor to it, or that computes two
// products and the function of a gated unit. False: its kernel does not. [any-thread]
bool metal_add_bias(struct metal_launch *launch, const struct ggml_tensor *bias,
                    const struct ggml_tensor *sum);
bool metal_add_gate(struct metal_launch *launch, const struct ggml_tensor *x,
                    const struct ggml_tensor *gate, const struct ggml_tensor *glu);

#endif
