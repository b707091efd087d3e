// SPDX-License-Identifier: MIT
// Each operation's time in the earlier report over that in this one: a row for each operation, a
// mark for each case, the median beside it.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/page.h"

enum { TOP = 46, ROW = 22, LEFT = 150, RIGHT = 960, MAX_ROWS = 64, MAX_CASES = 256 };

struct row {
    const char *op;
    double ratios[MAX_CASES];
    size_t n;
};

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// 0: not in both.
static double ratio_of(const struct report_op *op, const struct report_device *earlier) {
    const struct report_op *before = report_find_op(earlier, op);
    return before && op->seconds > 0 ? before->seconds / op->seconds : 0;
}

// Rows of operations that are in both reports.
static size_t collect(const struct report_device *device, const struct report_device *earlier,
                      struct row rows[MAX_ROWS]) {
    size_t n = 0;
    for (size_t i = 0; i < device->n_ops; ++i) {
        const double ratio = ratio_of(&device->ops[i], earlier);
        size_t row = 0;
        if (ratio <= 0) continue;
        while (row < n && strcmp(rows[row].op, device->ops[i].op) != 0)
            ++row;
        if (row == MAX_ROWS) continue;
        if (row == n) rows[n++] = (struct row){.op = device->ops[i].op};
        if (rows[row].n < MAX_CASES) rows[row].ratios[rows[row].n++] = ratio;
    }
    for (size_t row = 0; row < n; ++row)
        qsort(rows[row].ratios, rows[row].n, sizeof(double), compare_doubles);
    return n;
}

// Symmetric about 1, with every ratio in it.
static struct axis find_scale(const struct row *rows, size_t n) {
    double most = 1.25;
    for (size_t i = 0; i < n; ++i) {
        most = fmax(most, rows[i].ratios[rows[i].n - 1]);
        most = fmax(most, 1 / rows[i].ratios[0]);
    }
    most *= 1.05;
    return (struct axis){1 / most, most, LEFT, RIGHT};
}

static void draw_frame(const struct axis *axis, double bottom, FILE *stream) {
    static const double ticks[] = {0.1, 0.2, 0.5, 0.67, 0.8, 0.9, 1, 1.11, 1.25, 1.5, 2, 5, 10};
    const double left = axis_at(axis, 1 / 1.05), right = axis_at(axis, 1.05);
    double last = LEFT - 100;
    fprintf(stream, "<rect class=\"noise\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%.1f\"/>\n",
            left, TOP - 8, right - left, bottom - TOP + 8);
    for (size_t i = 0; i < sizeof(ticks) / sizeof(ticks[0]); ++i) {
        const double x =
            ticks[i] > axis->low && ticks[i] < axis->high ? axis_at(axis, ticks[i]) : 0;
        if (x < last + 34) continue;
        last = x;
        fprintf(stream,
                "<line class=\"%s\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%.1f\"/>"
                "<text class=\"small mid\" x=\"%.1f\" y=\"%d\">×%g</text>\n",
                ticks[i] == 1 ? "zero" : "grid", x, TOP - 8, x, bottom, x, TOP - 14, ticks[i]);
    }
    fprintf(stream,
            "<text class=\"small slower\" x=\"%d\" y=\"14\">◀ slower than before</text>"
            "<text class=\"small faster end\" x=\"%d\" y=\"14\">faster than before ▶</text>\n",
            LEFT, RIGHT);
}

static void draw_row(const struct axis *axis, const struct row *row, double y,
                     const struct report_device *device, const struct report_device *earlier,
                     FILE *stream) {
    const double median = row->ratios[row->n / 2], x = axis_at(axis, median);
    fputs("<text class=\"opname end\" x=\"140\" ", stream);
    fprintf(stream, "y=\"%.1f\">", y + 4);
    put_escaped(stream, row->op);
    fputs("</text>\n", stream);
    for (size_t i = 0; i < device->n_ops; ++i) {
        const struct report_op *op = &device->ops[i];
        const double ratio = ratio_of(op, earlier);
        if (ratio <= 0 || strcmp(op->op, row->op) != 0) continue;
        fprintf(stream, "<g class=\"mark g%d\"><title>", op_group(op->op));
        put_escaped(stream, op->name);
        fprintf(stream, ": ×%.2f</title><circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/></g>\n", ratio,
                axis_at(axis, ratio), y);
    }
    const char *class = median > 1.05 ? "faster" : median < 1 / 1.05 ? "slower" : "";
    fprintf(stream,
            "<line class=\"then\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>"
            "<text class=\"value %s\" x=\"%d\" y=\"%.1f\">×%.2f</text>\n",
            x, y - 8, x, y + 8, class, RIGHT + 18, y + 5, median);
}

size_t draw_change(const struct report_device *device, const struct report_device *earlier,
                   FILE *stream) {
    static struct row rows[MAX_ROWS];
    const size_t n = earlier ? collect(device, earlier, rows) : 0;
    size_t compared = 0;
    if (n == 0) return 0;
    const struct axis axis = find_scale(rows, n);
    const double bottom = TOP + (double)n * ROW;
    fprintf(stream, "<svg viewBox=\"0 0 %d %.0f\" role=\"img\" aria-label=\"Change of ",
            PICTURE_WIDTH, bottom + 10);
    put_escaped(stream, device->name);
    fputs("\">\n", stream);
    draw_frame(&axis, bottom, stream);
    for (size_t i = 0; i < n; ++i) {
        draw_row(&axis, &rows[i], TOP + ((double)i + 0.5) * ROW, device, earlier, stream);
        compared += rows[i].n;
    }
    fputs("</svg>\n", stream);
    return compared;
}
