// SPDX-License-Identifier: MIT
// In place of print_json.c where there is no jansson.
#include "print.h"

bool print_json(const struct inventory *inventory, const struct selftest_result *results,
                FILE *stream) {
    (void)inventory;
    (void)results;
    (void)stream;
    fputs("ggml-devices: built without jansson, which --json needs\n", stderr);
    return false;
}
