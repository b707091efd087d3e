// SPDX-License-Identifier: MIT
// The library that some defective plugins link against, built under several names: one that is
// found, one that is not there, one with a relative path.
__attribute__((visibility("default"))) const char *defective_missing(void);
const char *defective_missing(void) {
    return "";
}
