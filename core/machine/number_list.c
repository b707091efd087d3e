// SPDX-License-Identifier: MIT
// Lists of CPUs or NUMA nodes, of files below /sys and /proc.
#include "machine/number_list.h"

#include <stdlib.h>
#include <string.h>

void ggml_number_list_parse(const char *text, uint64_t *out_words, size_t n_words) {
    memset(out_words, 0, n_words * sizeof(*out_words));
    while (*text >= '0' && *text <= '9') {
        char *end;
        const unsigned long first = strtoul(text, &end, 10);
        const unsigned long last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
        for (unsigned long i = first; i <= last && i < n_words * 64; ++i)
            out_words[i / 64] |= UINT64_C(1) << i % 64;
        if (*end != ',') return;
        text = end + 1;
    }
}
