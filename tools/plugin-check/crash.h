// SPDX-License-Identifier: MIT
// Where in the plugin's file a check's process was when a signal ended it.
#ifndef PLUGIN_CHECK_CRASH_H
#define PLUGIN_CHECK_CRASH_H

#include "check.h"
#include "message.h"

// From now on a crash writes its place to run->progress before it ends the process. The plugin's
// path and the progress stay valid. [init]
void crash_watch(const struct check_run *run);

#endif
