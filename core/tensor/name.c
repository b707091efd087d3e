// SPDX-License-Identifier: MIT
// Joins names by copying bytes instead of formatting, since nearly every node gets such a name. The
// rest of the array is zeroed.
#include "tensor/name.h"

#include <string.h>

enum { MOST = GGML_MAX_NAME - 1 };

static size_t length_of(const char *text, size_t most) {
    const char *end = memchr(text, '\0', most);
    return end ? (size_t)(end - text) : most;
}

// `base` may be the tensor's own name.
void ggml_name_join(struct ggml_tensor *tensor, const char *base, const char *suffix) {
    const size_t n = length_of(base, MOST);
    const size_t more = length_of(suffix, MOST - n);
    if (n > 0) memmove(tensor->name, base, n);
    memcpy(tensor->name + n, suffix, more);
    memset(tensor->name + n + more, 0, GGML_MAX_NAME - n - more);
}

// Decimal digits from the right.
void ggml_name_number(struct ggml_tensor *tensor, const char *base, int number) {
    char digits[16];
    size_t i = sizeof(digits) - 1;
    unsigned rest = (unsigned)number;
    digits[i] = '\0';
    do {
        digits[--i] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    ggml_name_join(tensor, base, digits + i);
}
