// SPDX-License-Identifier: MIT
// libFuzzer target: the GGUF reader.
#include <stdint.h>

#include "fuzz/inputs/gguf_input.h"
#include "ggml.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ignore_log(enum ggml_log_level level, const char *text, void *user_data) {
    (void)level;
    (void)text;
    (void)user_data;
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    ggml_log_set(ignore_log, NULL);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    run_gguf_input(data, size);
    return 0;
}
