// SPDX-License-Identifier: MIT
// Parses lists of SHA-256 sums as sha256sum writes them, with or without file names. Empty lines
// and those with '#' are skipped; any other line makes the whole list an error, so that a damaged
// list permits nothing.
#include "plugin/trust/sum_list.h"

#include <string.h>

#include "base/status.h"

enum { DIGITS = 2 * GGML_SHA256_SIZE };

static int digit_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool sum_parse(const char *text, size_t length, uint8_t out_sum[GGML_SHA256_SIZE]) {
    memset(out_sum, 0, GGML_SHA256_SIZE);
    if (length != DIGITS) return false;
    for (size_t i = 0; i < DIGITS; ++i) {
        const int value = digit_value(text[i]);
        if (value < 0) return false;
        out_sum[i / 2] = (uint8_t)(out_sum[i / 2] << 4 | value);
    }
    return true;
}

// "SUM", "SUM  NAME" or "SUM *NAME", where * marks binary mode.
static bool parse_line(const char *line, size_t length, uint8_t out_sum[GGML_SHA256_SIZE]) {
    if (length > 0 && line[0] == '\\') { // how sha256sum marks a name with escapes
        ++line;
        --length;
    }
    if (length < DIGITS || !sum_parse(line, DIGITS, out_sum)) return false;
    if (length == DIGITS) return true;
    return length > DIGITS + 2 && line[DIGITS] == ' ' &&
           (line[DIGITS + 1] == ' ' || line[DIGITS + 1] == '*');
}

static size_t count_lines(const char *text, size_t size) {
    size_t count = 1;
    for (size_t i = 0; i < size; ++i)
        count += text[i] == '\n';
    return count;
}

// Two passes: the number of lines bounds the number of sums.
enum ggml_host_status sum_list_parse(const char *text, size_t size, const char *label,
                                     struct arena *arena, struct sum_list *out_list) {
    memset(out_list, 0, sizeof(*out_list));
    out_list->sums = arena_alloc(arena, count_lines(text, size) * sizeof(*out_list->sums));
    if (!out_list->sums) {
        return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for the sums of %s", label);
    }
    size_t number = 0;
    for (const char *line = text, *end = text + size; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t length = (size_t)((stop ? stop : end) - line);
        const char *next = stop ? stop + 1 : end;
        ++number;
        if (length > 0 && line[length - 1] == '\r') --length;
        if (length > 0 && line[0] != '#' &&
            !parse_line(line, length, out_list->sums[out_list->count++])) {
            return ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                             "%s, line %zu: not a SHA-256 sum, two spaces and a file name", label,
                             number);
        }
        line = next;
    }
    return GGML_HOST_OK;
}

// Linear: lists are short, and hashing the file takes far longer.
bool sum_list_has(const struct sum_list *list, const uint8_t sum[GGML_SHA256_SIZE]) {
    for (size_t i = 0; i < list->count; ++i) {
        if (memcmp(list->sums[i], sum, GGML_SHA256_SIZE) == 0) return true;
    }
    return false;
}
