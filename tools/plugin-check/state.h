// SPDX-License-Identifier: MIT
// What a plugin must leave alone in its process, as text that can be compared.
#ifndef PLUGIN_CHECK_STATE_H
#define PLUGIN_CHECK_STATE_H

enum state_kind {
    STATE_THREADS,
    STATE_FILES,
    STATE_MAPPINGS, // of the plugin's own file
    STATE_SIGNALS,
    STATE_SIGNAL_MASK,
    STATE_LOCALE,
    STATE_FP_MODE,
    STATE_UMASK,
    STATE_DIRECTORY,
    STATE_ENVIRONMENT,
    STATE_AFFINITY,
    STATE_STREAMS, // standard ones
    STATE_LIMITS,
    STATE_TIMERS,
    STATE_CHILDREN,
};

// The state at this moment, or NULL without memory; freed with free(). `plugin` is the path of the
// file. [init]
char *state_text(enum state_kind kind, const char *plugin);

#endif
