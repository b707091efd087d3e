// SPDX-License-Identifier: MIT
// libFuzzer target: graphs of random calls, computed.
#include <stdint.h>

#include "fuzz/inputs/build_input.h"
#include "ggml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void keep_quiet(enum ggml_log_level level, const char *text, void *context) {
    (void)level;
    (void)text;
    (void)context;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ggml_log_set(keep_quiet, NULL);
    run_build_input(data, size);
    return 0;
}
