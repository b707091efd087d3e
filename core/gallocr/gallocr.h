// SPDX-License-Identifier: MIT
// Inside the graph allocator: what the scheduler asks of it beside the public functions.
#ifndef GGML_GALLOCR_GALLOCR_H
#define GGML_GALLOCR_GALLOCR_H

#include "ggml-alloc.h"

enum gallocr_result { GALLOCR_BOUND, GALLOCR_DOES_NOT_FIT, GALLOCR_FAILED };

// Gives the tensors of a graph their places by the plan that was reserved, if it holds for the
// graph. Unless all went well no tensor is changed. A message tells of failures, but not of a plan
// that does not fit. `function` is the public function that is running. [stream]
enum gallocr_result gallocr_use_plan(ggml_gallocr_t galloc, struct ggml_cgraph *graph,
                                     const char *function);

#endif
