// SPDX-License-Identifier: MIT
// Where there is nothing to decode instructions with.
#include "check.h"

void file_instructions(struct check_run *run) {
    check_skip(run, "built without Capstone");
}
