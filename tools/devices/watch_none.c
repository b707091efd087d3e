// SPDX-License-Identifier: MIT
// Where terminals are others than POSIX has.
#include "watch.h"

bool watch(const struct inventory *inventory, const struct page *page, double seconds,
           const char *root) {
    (void)inventory;
    (void)page;
    (void)seconds;
    (void)root;
    fputs("ggml-devices: --watch is not there on this system\n", stderr);
    return false;
}
