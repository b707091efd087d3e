// SPDX-License-Identifier: MIT
// The fake Metal runtime, Objective-C's runtime and Metal without a Mac, and what tests ask of it.
// What a program does wrong ends it, or is counted where FAKE_METAL_TOLERANT is set: messages to
// objects that are gone or that don't understand them, encoders left open, buffers freed while work
// that is queued uses them, objects given to no autorelease pool, limits that are exceeded.
//
// FAKE_METAL_DEVICES    how many devices there are (1)
// FAKE_METAL_MEMORY     bytes of each (1 GiB)
// FAKE_METAL_MAX_BUFFER bytes of the largest buffer (as much as there is)
// FAKE_METAL_UNIFIED    whether host and device share memory (1)
// FAKE_METAL_AVAILABLE  bytes that the system leaves to the process (0: it doesn't say)
// FAKE_METAL_FAMILY     whether they are of Metal 3 (1)
// FAKE_METAL_APPLE      family of Apple's GPUs (7, the first with matrices), 0: none of Apple's
// FAKE_METAL_WIDTH      lanes of a SIMD group (32)
// FAKE_METAL_SYSTEM     macOS, of which 15 has residency sets (15)
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
// The n-th of the following messages with this selector is dropped: nothing is done, and 0 returned
// (by "retain" the object). Negative: none.
void fake_metal_drop(const char *selector, long n);
// Whether that has come.
bool fake_metal_dropped(void);

#ifdef __cplusplus
}
#endif

#endif
