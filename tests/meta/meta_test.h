// SPDX-License-Identifier: MIT
// A graph computed on one virtual device and on a meta device over several, and compared.
//
// Tensors without an operation are filled with numbers that depend on their name only. Splits are
// given by name too.
#ifndef META_TEST_H
#define META_TEST_H

#include "virtual_host.h"

enum { META_TEST_MAX_RULES = 16 };

struct split_rule {
    const char *prefix; // of the tensor's name
    int axis;           // 0..3, or GGML_BACKEND_SPLIT_AXIS_PARTIAL
    int64_t step;       // shares are multiples of it; 0: 1
    int n_segments;     // equal ones; 0: 1
};

// How much each device gets, relative to the others.
struct split_plan {
    size_t n_devices;
    int weights[16];
    struct split_rule rules[META_TEST_MAX_RULES];
};

struct meta_run {
    struct ggml_context *leafs, *nodes;
    ggml_backend_t stream;
    ggml_backend_buffer_t memory; // of the leafs
    ggml_gallocr_t galloc;
    struct ggml_cgraph *graph;
    struct ggml_tensor *result;
};

// Makes leafs with meta_leaf() and nodes in run->nodes; returns the result. May expand the graph
// with nodes that the result does not need.
typedef struct ggml_tensor *(*build_fn)(struct meta_run *run, void *user);

struct ggml_tensor *meta_leaf(struct meta_run *run, const char *name, enum ggml_type type,
                              int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3);

// On the first device (plan NULL) or on a meta device. Filled and allocated, not computed.
void meta_run_begin(struct meta_run *run, const struct virtual_host *host, struct split_plan *plan,
                    build_fn build, void *user);
void meta_run_end(struct meta_run *run);
// Computes and reads the result (F32); the caller frees it.
float *meta_run_result(struct meta_run *run);

// Computes on one device and with the plan; returns the largest difference relative to the
// largest value, and fails the test when something else goes wrong.
double meta_test_compare(const struct virtual_host *host, struct split_plan *plan, build_fn build,
                         void *user);

// Callback of the meta device; userdata is the plan.
struct ggml_backend_meta_split_state meta_test_split(const struct ggml_tensor *tensor,
                                                     void *userdata);

#endif
