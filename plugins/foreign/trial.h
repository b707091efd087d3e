// SPDX-License-Identifier: MIT
// Trying a binary in a helper process: what aborts, crashes or hangs there is not opened here.
#ifndef FOREIGN_TRIAL_H
#define FOREIGN_TRIAL_H

#include "binary.h"

#define FOREIGN_TRIAL_HELPER "ggml-foreign-probe"
enum { FOREIGN_TRIAL_SECONDS = 20 };

// Runs the helper, which lies beside this plugin: it opens the binary, adds the server to it unless
// that is NULL, and asks the devices. Returns the binary's score, at least 1; 0 with a message
// if it failed, died or did not finish in time. Blocks. [any-thread]
int foreign_trial(const char *path, const char *server, char out_message[FOREIGN_MESSAGE_SIZE]);

#endif
