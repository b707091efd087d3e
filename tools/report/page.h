// SPDX-License-Identifier: MIT
// The pictures of the page, and what they share: each is an SVG whose colours are the page's.
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H

#include "report/report.h"

// Behind it the measurements stand in the page.
#define REPORT_DATA_TAG "<script type=\"application/json\" id=\"ggml-bench-report\">"

enum { PICTURE_WIDTH = 1080, REPORT_GROUPS = 6 };

// --- pictures

// Tokens per second of every shape on every device, beside the machine's limits and the earlier
// report (may be NULL).
void draw_tokens(const struct report *report, const struct report *earlier, FILE *stream);
// Every operation of a device below its limits.
void draw_roofline(const struct report_device *device, FILE *stream);
// How much faster each operation became; returns how many were compared, and draws nothing if
// there are none. `earlier` may be NULL.
size_t draw_change(const struct report_device *device, const struct report_device *earlier,
                   FILE *stream);

// --- what they share

// The kind of an operation, which gives its colour: class "gN" of the page.
int op_group(const char *op);
extern const char *const op_group_names[REPORT_GROUPS];
// Bytes per second that bound an operation; 0: not known.
double op_memory_limit(const struct report_device *device, const struct report_op *op);
// What the device's limits permit of an operation: its share, 0 to 1 or more; 0: not known.
double op_share(const struct report_device *device, const struct report_op *op);

// Text with the characters of markup replaced, in elements and in attributes.
void put_escaped(FILE *stream, const char *text);
// A number with three digits and a prefix: "1.23 TFLOP/s".
enum { QUANTITY_SIZE = 48 };
const char *quantity(char text[QUANTITY_SIZE], double value, const char *unit);
// A time: "12.3 ms".
const char *duration(char text[QUANTITY_SIZE], double seconds);

// From a logarithmic scale to a coordinate.
struct axis {
    double low, high; // values
    double from, to;  // coordinates of these
};
double axis_at(const struct axis *axis, double value);
// Widens [*low, *high] to whole powers of ten.
void axis_round(struct axis *axis);

#endif
