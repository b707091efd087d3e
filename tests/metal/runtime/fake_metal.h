// SPDX-License-Identifier: MIT
// What tests ask of the fake Metal runtime. What a program does wrong ends it, or is counted where
// FAKE_METAL_TOLERANT is set: messages to objects that are gone or that don't understand them,
// encoders left open, buffers freed while work that is queued uses them, objects given to no
// autorelease pool.
#ifndef FAKE_METAL_H
#define FAKE_METAL_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { FAKE_METAL_OUT_OF_MEMORY = 8, FAKE_METAL_DEVICE_REMOVED = 11 };

// The n-th of the following calls that can fail does: what makes an object returns none, what is
// queued fails with the code. Negative: none.
void fake_metal_fail(long n, int code);
// Which one did, NULL: none so far.
const char *fake_metal_failed(void);
// Objects that live.
long fake_metal_live(void);
// Wrong things so far.
long fake_metal_faults(void);
// Messages with this selector so far.
long fake_metal_calls(const char *selector);
// Pipelines that were compiled for an archive so far.
long fake_metal_compiled(void);
// Threads that have encoded dispatches so far.
long fake_metal_threads(void);
// The n-th of the following barriers is left out. Negative: none.
void fake_metal_drop_barrier(long n);
// Whether that has come.
bool fake_metal_dropped(void);

#ifdef __cplusplus
}
#endif

#endif
