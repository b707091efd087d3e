// SPDX-License-Identifier: MIT
// Lists of CPUs or NUMA nodes as Linux writes them.
#ifndef GGML_MACHINE_NUMBER_LIST_H
#define GGML_MACHINE_NUMBER_LIST_H

#include <stddef.h>
#include <stdint.h>

// The numbers of a list such as "0-3,8" as bits of n_words words; those beyond are left out. A
// malformed text gives what comes before the error. [any-thread]
void ggml_number_list_parse(const char *text, uint64_t *out_words, size_t n_words);

#endif
