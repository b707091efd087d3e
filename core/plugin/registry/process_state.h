// SPDX-License-Identifier: MIT
// Process state that constructors, linker flags and drivers change for the whole process or the
// calling thread, though a plugin should not.
#ifndef GGML_PLUGIN_REGISTRY_PROCESS_STATE_H
#define GGML_PLUGIN_REGISTRY_PROCESS_STATE_H

#include <fenv.h>
#include <stdbool.h>
#include <stdint.h>

#ifndef _WIN32
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#endif

enum { PROCESS_MAX_LIMITS = 32 };

struct process_state {
    fenv_t floats;        // rounding, masks, flushing of denormals
    uint64_t float_modes; // the same without flags, as far as they are known
    bool has_floats;
#ifndef _WIN32
    sigset_t signals; // blocked for this thread
    int umask;        // -1: unknown
    int directory;    // descriptor; -1: unknown
    struct stat directory_info;
    struct rlimit limits[PROCESS_MAX_LIMITS];
    bool has_limit[PROCESS_MAX_LIMITS];
#endif
};

// Between both calls other threads should not change directory, umask or limits: that would be
// undone. [any-thread]
void process_state_save(struct process_state *out_state);
// Puts back what changed, and warns of that with the plugin's name and when it happened. What the
// system does not let be put back (hard limits) is warned of too. Frees what the state holds.
// [any-thread]
void process_state_restore(struct process_state *state, const char *plugin, const char *when);

#endif
