// SPDX-License-Identifier: MIT
// Which memory MPI takes besides the host's.
#ifndef GGML_MPI_LINK_MEMORY_H
#define GGML_MPI_LINK_MEMORY_H

#include <stdbool.h>

// Whether this MPI says, while it runs, that it sends and receives from and to addresses of CUDA's
// device memory. After MPI was started, by the thread that may call it.
bool link_memory_has_cuda(void);

#endif
