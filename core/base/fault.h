// SPDX-License-Identifier: MIT
// Calls of the operating system that tests can make fail. Memory has its own hook in mem.h.
#ifndef GGML_BASE_FAULT_H
#define GGML_BASE_FAULT_H

#include <stdbool.h>

enum ggml_fault_point {
    GGML_FAULT_OPEN,  // a file or directory
    GGML_FAULT_READ,  // of an open file, directory, link or pipe
    GGML_FAULT_STAT,  // asking for the state of a file
    GGML_FAULT_LINK,  // the dynamic linker
    GGML_FAULT_SPAWN, // a process
    GGML_FAULT_PIPE,
    GGML_FAULT_WRITE, // to a socket
    GGML_FAULT_MAP,   // memory that is shared, or addresses
};

// Asked before each such call: true when it must be left out and count as failed; errno is set
// then. [any-thread]
bool ggml_fault(enum ggml_fault_point point);

// For tests: false makes the call fail. NULL turns it off. [init]
void ggml_fault_set_hook(bool (*may_call)(enum ggml_fault_point point, void *context),
                         void *context);

#endif
