// SPDX-License-Identifier: MIT
// Set-up and teardown around a temporary directory.
#define _GNU_SOURCE
#include "support/temp_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char temp_folder[64];

int temp_folder_make(void **state) {
    (void)state;
    strcpy(temp_folder, "/tmp/ggml-test-XXXXXX");
    return mkdtemp(temp_folder) ? 0 : -1;
}

int temp_folder_remove(void **state) {
    char command[160];
    (void)state;
    snprintf(command, sizeof(command), "chmod -R u+rwx '%s'; rm -rf '%s'", temp_folder,
             temp_folder);
    return system(command);
}
