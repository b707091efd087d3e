// SPDX-License-Identifier: MIT
// One hook for the whole process, for tests alone; a call that it refuses fails with the errno
// that the system would have set.
#include "base/fault.h"

#include <errno.h>
#include <stddef.h>

// Not atomic: tests set it before they start threads.
static bool (*fault_hook)(enum ggml_fault_point point, void *context);
static void *fault_context;

void ggml_fault_set_hook(bool (*may_call)(enum ggml_fault_point point, void *context),
                         void *context) {
    fault_hook = may_call;
    fault_context = context;
}

bool ggml_fault(enum ggml_fault_point point) {
    if (!fault_hook || fault_hook(point, fault_context)) return false;
    switch (point) {
    case GGML_FAULT_OPEN:
    case GGML_FAULT_PIPE: errno = EMFILE; break;
    case GGML_FAULT_SPAWN: errno = EAGAIN; break;
    case GGML_FAULT_READ:
    case GGML_FAULT_STAT:
    case GGML_FAULT_LINK: errno = EIO; break;
    case GGML_FAULT_WRITE: errno = EPIPE; break;
    case GGML_FAULT_MAP: errno = ENOMEM; break;
    }
    return true;
}
