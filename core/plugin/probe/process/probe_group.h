// SPDX-License-Identifier: MIT
// A control group (version 2) for each helper process, which nothing that a plugin starts can leave
// by a session of its own. Linux only, and only below a group that was delegated to the
// application; elsewhere nothing happens.
#ifndef GGML_PLUGIN_PROBE_PROBE_GROUP_H
#define GGML_PLUGIN_PROBE_PROBE_GROUP_H

#include <stdbool.h>

struct probe_group {
    char folder[512]; // "" if there is none
};

// Puts the calling process, a helper, into a group of its own below the one it is in, and removes
// empty ones of helpers whose application was killed. [init]
void probe_group_enter(void);
// Kills all that is in the group which probe_group_enter() made, the calling process included.
// Returns if there is none. [any-thread]
void probe_group_end_own(void);

// The group of a helper that has not been collected. [any-thread]
void probe_group_find(long process, struct probe_group *out_group);
// Kills all that is in it. [any-thread]
void probe_group_kill(const struct probe_group *group);
// Removes it; whether that is done. A moment after its last process was killed. [any-thread]
bool probe_group_remove(const struct probe_group *group);

#endif
