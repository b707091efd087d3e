// SPDX-License-Identifier: MIT
// What the device says it supports, held against the types of the cases that passed.
#ifndef CONFORMANCE_CLAIMS_H
#define CONFORMANCE_CLAIMS_H

#include "case.h"

struct conformance_claims;

// NULL when memory runs out.
struct conformance_claims *conformance_claims_new(void);
void conformance_claims_free(struct conformance_claims *claims);

// Forgets the operation before.
void conformance_claims_begin(struct conformance_claims *claims);
// Remembers the types of a node that was computed rightly, or that is claimed and left out of the
// sample. It must have been placed.
void conformance_claims_note(struct conformance *c, const struct ggml_tensor *node);
// Whether the function below is under way.
bool conformance_claims_checking(const struct conformance_claims *claims);
// Asks the device about nodes like those, with all other types, and computes each that it claims to
// support although no case had its types.
void conformance_claims_check(struct conformance *c);

#endif
