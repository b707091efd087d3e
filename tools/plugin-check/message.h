// SPDX-License-Identifier: MIT
// What a check's process writes to its parent: one message, once, smaller than PIPE_BUF.
#ifndef PLUGIN_CHECK_MESSAGE_H
#define PLUGIN_CHECK_MESSAGE_H

#include <stdint.h>

enum { CHECK_MESSAGE_TEXT = 480, CHECK_MESSAGE_FD = 3 };
#define CHECK_MESSAGE_MAGIC UINT32_C(0x4b484347)

struct check_message {
    uint32_t magic;
    uint32_t verdict;
    char text[CHECK_MESSAGE_TEXT];
};

#endif
