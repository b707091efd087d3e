// SPDX-License-Identifier: MIT
// What tests ask of the fake driver besides the driver's interface; found in the library by name.
#ifndef SIMT_FAKE_CUDA_H
#define SIMT_FAKE_CUDA_H

#ifdef __cplusplus
extern "C" {
#endif

// Lets the call after `n` further ones return `error`; from 700 on the context is lost from then
// on. n below 0: no call fails, and lost contexts are well again.
void fake_cuda_fail(long n, int error);
// The function that was made to fail, or NULL.
const char *fake_cuda_failed(void);
// Objects that were made and not freed: memory, streams, events, modules, retained contexts.
long fake_cuda_live(void);
// What an emulated kernel did wrong last, or "".
const char *fake_cuda_message(void);

#ifdef __cplusplus
}
#endif

#endif
