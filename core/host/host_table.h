// SPDX-License-Identifier: MIT
// What the host offers to plugins.
#ifndef GGML_HOST_HOST_TABLE_H
#define GGML_HOST_HOST_TABLE_H

#include "ggml-plugin.h"

// The table handed to every plugin; lives as long as the process. [any-thread]
const struct ggml_host_table *host_table(void);

#endif
