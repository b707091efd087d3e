// SPDX-License-Identifier: MIT
// A file without a name, for what a tool writes and reads again.
#ifndef TOOLS_SCRATCH_FILE_H
#define TOOLS_SCRATCH_FILE_H

#include <stdio.h>

// Empty, for reading and writing; it is gone once it is closed. In memory where the system has
// that, since no folder for temporary files may be writable. NULL with errno.
FILE *scratch_file(void);

#endif
