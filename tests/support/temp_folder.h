// SPDX-License-Identifier: MIT
// A temporary folder for a test: set-up and teardown functions of cmocka.
#ifndef TESTS_SUPPORT_TEMP_FOLDER_H
#define TESTS_SUPPORT_TEMP_FOLDER_H

// Its absolute path, between the two.
extern char temp_folder[64];

int temp_folder_make(void **state);
// With everything in it, also what may not be read.
int temp_folder_remove(void **state);

#endif
