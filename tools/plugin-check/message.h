// SPDX-License-Identifier: MIT
// What a check's process tells its parent.
#ifndef PLUGIN_CHECK_MESSAGE_H
#define PLUGIN_CHECK_MESSAGE_H

#include <stdatomic.h>
#include <stdint.h>

enum {
    CHECK_MESSAGE_TEXT = 480,
    CHECK_PROGRESS_TEXT = 200,
    CHECK_CRASH_TEXT = 120,
    CHECK_KEY_SIZE = 16
};
#define CHECK_MESSAGE_MAGIC UINT32_C(0x4b484347)

// Its verdict, written to a pipe once; smaller than PIPE_BUF.
struct check_message {
    uint32_t magic;
    uint32_t verdict;
    uint8_t key[CHECK_KEY_SIZE]; // the process's own, so that what a plugin writes is no verdict
    char text[CHECK_MESSAGE_TEXT];
};

// What it is at, in memory that both see. The text is read when the process has ended.
struct check_progress {
    atomic_uint n_steps;
    char at[CHECK_PROGRESS_TEXT];
    char crash[CHECK_CRASH_TEXT]; // where in the plugin's file; "" if not known
};

#endif
