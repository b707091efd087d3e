// SPDX-License-Identifier: MIT
// Lists of SHA-256 sums, as `sha256sum` writes them.
#ifndef GGML_PLUGIN_TRUST_SUM_LIST_H
#define GGML_PLUGIN_TRUST_SUM_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/data/arena.h"
#include "base/data/sha256.h"
#include "ggml-plugin.h"

enum { SUM_LIST_MAX_BYTES = 1 << 20 };

struct sum_list {
    uint8_t (*sums)[GGML_SHA256_SIZE];
    size_t count;
};

// 64 hexadecimal digits, of either case; false for anything else. [any-thread]
bool sum_parse(const char *text, size_t length, uint8_t out_sum[GGML_SHA256_SIZE]);
// Lines "SUM  NAME" or "SUM *NAME", where the name does not matter; empty ones and those that begin
// with '#' are ignored, a '\' before the sum too. `text` needs no end; `label` names it in
// messages. INVALID_ARGUMENT names the first line that is something else; OUT_OF_MEMORY. The sums
// are the arena's. [any-thread]
enum ggml_host_status sum_list_parse(const char *text, size_t size, const char *label,
                                     struct arena *arena, struct sum_list *out_list);
bool sum_list_has(const struct sum_list *list, const uint8_t sum[GGML_SHA256_SIZE]);

#endif
