// SPDX-License-Identifier: MIT
// Numbers, texts, scales and colours of the pictures.
#include <math.h>
#include <string.h>

#include "json_text.h"
#include "report/page.h"

const char *const op_group_names[REPORT_GROUPS] = {
    "products", "attention", "convolution", "norms and softmax", "element by element", "moving"};

int op_group(const char *op) {
    static const struct {
        const char *op;
        int group;
    } groups[] = {{"MUL_MAT", 0},  {"MUL_MAT_ID", 0}, {"OUT_PROD", 0}, {"FLASH_ATTN_EXT", 1},
                  {"CONV_2D", 2},  {"IM2COL", 2},     {"RMS_NORM", 3}, {"NORM", 3},
                  {"SOFT_MAX", 3}, {"SUM_ROWS", 3},   {"CPY", 5},      {"CONT", 5},
                  {"GET_ROWS", 5}, {"SET_ROWS", 5},   {"CONCAT", 5},   {"ARGSORT", 5}};
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); ++i) {
        if (strcmp(groups[i].op, op) == 0) return groups[i].group;
    }
    return 4;
}

double op_memory_limit(const struct report_device *device, const struct report_op *op) {
    return op->cold && device->reads > 0 ? device->reads : device->copies;
}

double op_share(const struct report_device *device, const struct report_op *op) {
    const double memory = op_memory_limit(device, op);
    double least = memory > 0 ? op->bytes / memory : 0;
    if (device->flops > 0 && op->flops / device->flops > least) least = op->flops / device->flops;
    return op->seconds > 0 ? least / op->seconds : 0;
}

void put_escaped(FILE *stream, const char *text) {
    while (*text) {
        const size_t length = utf8_length(text);
        const unsigned char c = (unsigned char)*text;
        if (length == 0 || (c < 0x20 && c != '\t') || c == 0x7F || is_noncharacter(text)) {
            fputs("\xEF\xBF\xBD", stream); // U+FFFD
        } else if (strchr("<>&\"'", c)) {
            fprintf(stream, "&#%d;", c);
        } else {
            fwrite(text, 1, length, stream);
        }
        text += length > 0 ? length : 1;
    }
}

const char *quantity(char text[QUANTITY_SIZE], double value, const char *unit) {
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
    int prefix = 0;
    for (; value >= 999.5 && prefix < 6; ++prefix)
        value /= 1000;
    const int decimals = value >= 99.95 || value == 0 ? 0 : value >= 9.995 ? 1 : 2;
    snprintf(text, QUANTITY_SIZE, "%.*f %s%s", decimals, value, prefixes[prefix], unit);
    return text;
}

const char *duration(char text[QUANTITY_SIZE], double seconds) {
    static const char *const units[] = {"s", "ms", "µs", "ns"};
    int unit = 0;
    for (; seconds < 0.9995 && unit < 3; ++unit)
        seconds *= 1000;
    const int decimals = seconds >= 99.95 ? 0 : seconds >= 9.995 ? 1 : 2;
    snprintf(text, QUANTITY_SIZE, "%.*f %s", decimals, seconds, units[unit]);
    return text;
}

double axis_at(const struct axis *axis, double value) {
    const double low = log10(axis->low), high = log10(axis->high);
    return axis->from + (axis->to - axis->from) * (log10(value) - low) / (high - low);
}

void axis_round(struct axis *axis) {
    axis->low = pow(10, floor(log10(axis->low) + 1e-9));
    axis->high = pow(10, ceil(log10(axis->high) - 1e-9));
    if (axis->high <= axis->low) axis->high = 10 * axis->low;
}
