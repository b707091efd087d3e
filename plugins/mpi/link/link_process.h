// SPDX-License-Identifier: MIT
// Which process the program is, and when it is gone: MPI says nothing of a process of the same
// machine that was killed, whose memory and connections it shares.
#ifndef GGML_MPI_LINK_PROCESS_H
#define GGML_MPI_LINK_PROCESS_H

#include <stdbool.h>

#include "wire/wire.h"

// This process, as others of this machine know it. False: the system does not tell.
bool link_process_self(struct wire_program *out);
// A descriptor that can be read from when that process is gone, -1: it is no process that can be
// seen from here.
int link_process_open(const struct wire_program *program);

#endif
