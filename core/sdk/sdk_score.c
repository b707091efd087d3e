// SPDX-License-Identifier: MIT
// In an object of its own, so that a plugin's own ggml_sdk_score replaces it.
#include "ggml-plugin.h"

int ggml_sdk_score(void) {
    return 1;
}
