// SPDX-License-Identifier: MIT
// The table of operations, and the steps of a run that share its state.
#ifndef CONFORMANCE_TABLE_H
#define CONFORMANCE_TABLE_H

#include "case.h"
#include "conformance.h"

extern const struct conformance_op *const conformance_table[];
extern const int conformance_table_size;

// --- report.c

// Counts the outcome of the case c->name: an error and what it may be, or a message. The node is
// NULL where the case is about none.
void conformance_pass(struct conformance *c, const struct ggml_tensor *node, double error,
                      double bound);
void conformance_fail(struct conformance *c, const char *format, ...) GGML_ATTRIBUTE_FORMAT(2, 3);
void conformance_unsupported(struct conformance *c);
// Notes the types of a node that the device claims, whether it is computed or not.
void conformance_claimed(struct conformance *c, const struct ggml_tensor *node);

// --- memory.c

// Where the tensors of a case lie: one buffer of the device, and images of it on the host.
struct conformance_memory {
    ggml_backend_buffer_t buffer;
    struct ggml_context *ctx; // holds `all`
    struct ggml_tensor *all;  // bytes of the whole buffer
    size_t size;
    size_t used; // by this case, guards included
    uint8_t *before;
    uint8_t *after;
    uint8_t *again; // after a run with another number of threads
};

// Places every tensor of c->ctx with guards around it and poisons the image. False after
// conformance_fail().
bool conformance_place(struct conformance *c);
// Fills the operands in the image `before` and copies it to the device.
void conformance_upload(struct conformance *c);
void conformance_download(struct conformance *c);
// The tensor in an image.
struct ggml_tensor conformance_mirror(const struct conformance *c, const struct ggml_tensor *tensor,
                                      uint8_t *image);
void conformance_memory_free(struct conformance_memory *memory);

// --- operand.c

// Writes the operand's elements; `tensor` is a mirror of it.
void conformance_write_operand(struct conformance *c, const struct conformance_operand *operand,
                               const struct ggml_tensor *tensor);

#endif
