// SPDX-License-Identifier: MIT
__attribute__((visibility("default"))) const char *defective_missing(void);
const char *defective_missing(void) {
    return "";
}
