// SPDX-License-Identifier: MIT
// Groups of the CPU's streams that exchange tensors (extension "ggml.comm").
#ifndef CPU_COMM_H
#define CPU_COMM_H

#include "ggml-ext-comm.h"

extern const struct ggml_extension_comm cpu_comm;

#endif
