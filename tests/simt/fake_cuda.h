// SPDX-License-Identifier: MIT
// What tests ask of the fake driver besides the driver's interface; found in the library by name.
#ifndef SIMT_FAKE_CUDA_H
#define SIMT_FAKE_CUDA_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

// Lets the call after `n` further ones return `error`; where that ends a context, or is unknown,
// all calls of contexts return it from then on. n below 0: no call fails, and lost contexts are
// well again.
void fake_cuda_fail(long n, int error);
// The function that was made to fail, or NULL.
const char *fake_cuda_failed(void);
// Objects that were made and not freed: memory, streams, events, modules, retained contexts.
long fake_cuda_live(void);
// How often a function of the driver was called, by its symbol.
long fake_cuda_calls(const char *name);
// How often a kernel ran, alone or as a node of a graph.
long fake_cuda_launches(const char *kernel);
// In which order nodes of graphs run, of those that their edges permit. 0: the last one that may.
void fake_cuda_set_seed(unsigned long seed);
// Leaves out the edge after `n` further ones of graphs that are made from now on; below 0: none. It
// is how tests plant a missing edge.
void fake_cuda_drop_edge(long n);
// Whether one was left out since.
bool fake_cuda_dropped(void);
// What an emulated kernel did wrong last, or "".
const char *fake_cuda_message(void);

#ifdef __cplusplus
}
#endif

#endif
