// SPDX-License-Identifier: MIT
// The roofline of a device (Williams, Waterman and Patterson, 2009): operations per second over
// operations per byte, below what memory and multiply-adds permit. What only moves data has no
// place there and stands beside it, in bytes per second.
#include <math.h>
#include <string.h>

#include "report/page.h"

enum { HEIGHT = 482, TOP = 22, BOTTOM = 420, LEFT = 92, RIGHT = 772, STRIP = 868, MARK = 5 };
enum { MAX_BOXES = 512, MAX_MOVERS = 24 };

struct box {
    double x, y, width, height;
};

struct plot {
    FILE *stream;
    const struct report_device *device;
    struct axis x, y;    // operations per byte, operations per second
    struct axis strip;   // bytes per second
    double peak, memory; // per second; 0: not known
    bool peak_is_seen;   // the fastest operation, as the limit is not known
    struct box taken[MAX_BOXES];
    size_t n_taken;
};

static bool has_place(const struct report_op *op) {
    return op->flops > 0 && op->bytes > 0;
}

static void widen(struct axis *axis, double value) {
    if (!(value > 0)) return;
    if (axis->low <= 0 || value < axis->low) axis->low = value;
    if (value > axis->high) axis->high = value;
}

// Scales that have every point and the limits in them.
static bool find_scales(struct plot *plot) {
    const struct report_device *device = plot->device;
    plot->x = (struct axis){.from = LEFT, .to = RIGHT};
    plot->y = (struct axis){.from = BOTTOM, .to = TOP};
    plot->strip = (struct axis){.from = BOTTOM, .to = TOP};
    plot->peak = device->flops;
    plot->memory = device->reads > 0 ? device->reads : device->copies;
    for (size_t i = 0; i < device->n_ops; ++i) {
        const struct report_op *op = &device->ops[i];
        if (has_place(op)) {
            const double rate = op->flops / op->seconds;
            widen(&plot->x, op->flops / op->bytes);
            widen(&plot->y, rate);
            if (device->flops <= 0 && rate > plot->peak) plot->peak = rate;
        } else {
            widen(&plot->strip, op->bytes / op->seconds);
        }
    }
    plot->peak_is_seen = device->flops <= 0;
    if (plot->x.low <= 0) return false;
    widen(&plot->y, plot->peak);
    widen(&plot->strip, plot->memory);
    if (plot->memory > 0) widen(&plot->x, plot->peak / plot->memory);
    axis_round(&plot->x);
    axis_round(&plot->y);
    if (plot->peak > plot->y.high * 0.7) plot->y.high *= 3; // room for the roof's name
    if (plot->strip.low > 0) axis_round(&plot->strip);
    return true;
}

// --- places that are taken

static void take(struct plot *plot, double x, double y, double width, double height) {
    if (plot->n_taken < MAX_BOXES) plot->taken[plot->n_taken++] = (struct box){x, y, width, height};
}

static bool is_free(const struct plot *plot, const struct box *box) {
    if (box->x < LEFT + 2 || box->x + box->width > RIGHT - 2 || box->y < TOP ||
        box->y + box->height > BOTTOM)
        return false;
    for (size_t i = 0; i < plot->n_taken; ++i) {
        const struct box *other = &plot->taken[i];
        const bool apart = box->x + box->width < other->x || other->x + other->width < box->x ||
                           box->y + box->height < other->y || other->y + other->height < box->y;
        if (!apart) return false;
    }
    return true;
}

static void take_points(struct plot *plot) {
    for (size_t i = 0; i < plot->device->n_ops; ++i) {
        const struct report_op *op = &plot->device->ops[i];
        if (!has_place(op)) continue;
        take(plot, axis_at(&plot->x, op->flops / op->bytes) - MARK,
             axis_at(&plot->y, op->flops / op->seconds) - MARK, 2 * MARK, 2 * MARK);
    }
}

// A text along a line, in steps; returns whether each is free. `claims`: takes them.
static bool try_text(struct plot *plot, double x, double y, double dx, double dy, double width,
                     bool claims) {
    enum { STEP = 10 };
    bool free = true;
    for (double at = 0; at < width && free; at += STEP) {
        const struct box box = {x + dx * at, y + dy * at - 6, STEP, 12};
        if (claims) take(plot, box.x, box.y, box.width, box.height);
        free = claims || is_free(plot, &box);
    }
    return free;
}

// Writes a name along a line from (x1, y1) to (x2, y2), beside it where there is room; where there
// is none, at the start.
static void name_line(struct plot *plot, double x1, double y1, double x2, double y2,
                      const char *name) {
    enum { TRIES = 20, FIRST = 12 };
    static const double sides[] = {-11, 11, -25, 25};
    const double length = hypot(x2 - x1, y2 - y1), dx = (x2 - x1) / length, dy = (y2 - y1) / length;
    const double width = 6.8 * (double)strlen(name), room = fmax(length - width - FIRST, 0);
    double at = FIRST, side = sides[0];
    bool found = false;
    for (int i = 0; i < 4 * TRIES && !found; ++i) {
        const double here = FIRST + room * (i % TRIES) / TRIES, off = sides[i / TRIES];
        found = try_text(plot, x1 + dx * here - dy * off, y1 + dy * here + dx * off, dx, dy, width,
                         false);
        if (!found) continue;
        at = here;
        side = off;
    }
    try_text(plot, x1 + dx * at - dy * side, y1 + dy * at + dx * side, dx, dy, width, true);
    fprintf(plot->stream,
            "<text class=\"small roofname\" transform=\"translate(%.1f %.1f) rotate(%.2f)\" "
            "y=\"%.0f\">%s</text>\n",
            x1 + dx * at, y1 + dy * at, atan2(dy, dx) * 180 / 3.14159265358979, side + 4, name);
}

// --- the frame

// "100 GFLOP/s": powers of ten have no decimals.
static const char *tick(char text[QUANTITY_SIZE], double value, const char *unit) {
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    int prefix = 0;
    for (; value > 999 && prefix < 5; ++prefix)
        value /= 1000;
    snprintf(text, QUANTITY_SIZE, "%g %s%s", value, prefixes[prefix], unit);
    return text;
}

static void draw_grid(const struct plot *plot) {
    char text[QUANTITY_SIZE];
    FILE *stream = plot->stream;
    for (double v = plot->x.low; v < plot->x.high * 1.01; v *= 10) {
        const double x = axis_at(&plot->x, v);
        fprintf(stream,
                "<line class=\"grid\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>"
                "<text class=\"small mid\" x=\"%.1f\" y=\"%d\">%g</text>\n",
                x, TOP, x, BOTTOM, x, BOTTOM + 18, v);
    }
    for (double v = plot->y.low; v < plot->y.high * 1.01; v *= 10) {
        const double y = axis_at(&plot->y, v);
        fprintf(stream,
                "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>"
                "<text class=\"small end\" x=\"%d\" y=\"%.1f\">%s</text>\n",
                LEFT, y, RIGHT, y, LEFT - 8, y + 4, tick(text, v, "FLOP/s"));
    }
    fprintf(stream,
            "<text class=\"small mid\" x=\"%d\" y=\"%d\">operations per byte of the operands"
            "</text>\n",
            (LEFT + RIGHT) / 2, BOTTOM + 40);
}

// A line of so many bytes per second, from the left edge to the peak.
static void draw_slope(struct plot *plot, double bytes, const char *class, const char *what) {
    char text[QUANTITY_SIZE], name[2 * QUANTITY_SIZE];
    const double ridge = fmin(plot->peak > 0 ? plot->peak / bytes : plot->x.high, plot->x.high);
    const double low = fmax(plot->x.low, plot->y.low / bytes);
    if (!(low < ridge)) return;
    const double x1 = axis_at(&plot->x, low), y1 = axis_at(&plot->y, low * bytes);
    const double x2 = axis_at(&plot->x, ridge), y2 = axis_at(&plot->y, ridge * bytes);
    fprintf(plot->stream, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>",
            class, x1, y1, x2, y2);
    snprintf(name, sizeof(name), "%s %s", what, quantity(text, bytes, "B/s"));
    name_line(plot, x1, y1, x2, y2, name);
}

static void draw_peak(struct plot *plot, double from, double y) {
    char text[QUANTITY_SIZE], name[2 * QUANTITY_SIZE];
    fprintf(plot->stream, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>",
            plot->peak_is_seen ? "roof2" : "roof", from, y, RIGHT, y);
    snprintf(name, sizeof(name), "%s %s", plot->peak_is_seen ? "fastest here," : "multiply-adds,",
             quantity(text, plot->peak, "FLOP/s"));
    name_line(plot, from, y, RIGHT, y, name);
}

// What lies below both limits is tinted.
static void draw_roof(struct plot *plot) {
    const double y = plot->peak > 0 ? axis_at(&plot->y, plot->peak) : TOP;
    const double ridge = plot->memory > 0 ? plot->peak / plot->memory : plot->x.low;
    const double from = axis_at(&plot->x, fmax(ridge, plot->x.low));
    if (plot->memory > 0 && plot->peak > 0) {
        const double low = fmax(plot->x.low, plot->y.low / plot->memory);
        const double left = axis_at(&plot->x, low);
        fprintf(plot->stream,
                "<polygon class=\"under\" points=\"%.1f,%d %.1f,%.1f %.1f,%.1f %d,%.1f %d,%d\"/>",
                left, BOTTOM, left, axis_at(&plot->y, low * plot->memory), from, y, RIGHT, y, RIGHT,
                BOTTOM);
    }
    if (plot->peak > 0) draw_peak(plot, from, y);
    if (plot->memory > 0)
        draw_slope(plot, plot->memory, "roof",
                   plot->device->reads > 0 ? "reading memory," : "copying,");
    if (plot->device->reads > 0 && plot->device->copies > 0)
        draw_slope(plot, plot->device->copies, "roof2", "copying,");
}

// --- points

static void put_tip(const struct plot *plot, const struct report_op *op) {
    char rate[QUANTITY_SIZE], bytes[QUANTITY_SIZE], time[QUANTITY_SIZE];
    const double share = op_share(plot->device, op);
    fputs("<title>", plot->stream);
    put_escaped(plot->stream, op->op);
    fputc(' ', plot->stream);
    put_escaped(plot->stream, op->name);
    fprintf(plot->stream, "\n%s, ", duration(time, op->seconds));
    if (op->flops > 0)
        fprintf(plot->stream, "%s, ", quantity(rate, op->flops / op->seconds, "FLOP/s"));
    fputs(quantity(bytes, op->bytes / op->seconds, "B/s"), plot->stream);
    if (share > 0) fprintf(plot->stream, "\n%.0f %% of the limit", 100 * share);
    fputs("</title>", plot->stream);
}

// A circle for a token, a diamond for a few columns, a square for many.
static void draw_mark(const struct plot *plot, double x, double y, const struct report_op *op) {
    FILE *stream = plot->stream;
    fprintf(stream, "<g class=\"mark g%d\">", op_group(op->op));
    put_tip(plot, op);
    if (op->columns <= 1) {
        fprintf(stream, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"/>", x, y, MARK);
    } else if (op->columns < 16) {
        fprintf(stream, "<path d=\"M%.1f %.1fl6 6l-6 6l-6 -6z\"/>", x, y - 6);
    } else {
        fprintf(stream, "<rect x=\"%.1f\" y=\"%.1f\" width=\"9\" height=\"9\" rx=\"1.5\"/>",
                x - 4.5, y - 4.5);
    }
    fputs("</g>\n", stream);
}

// The first place around a point where a name overlaps nothing, if there is one.
static void draw_name(struct plot *plot, const struct report_op *op) {
    const double width = 7.5 * (double)strlen(op->op), height = 12;
    const double x = axis_at(&plot->x, op->flops / op->bytes);
    const double y = axis_at(&plot->y, op->flops / op->seconds);
    const struct box places[] = {
        {x + 9, y - 6, width, height},          {x - 9 - width, y - 6, width, height},
        {x - width / 2, y - 20, width, height}, {x - width / 2, y + 9, width, height},
        {x + 7, y - 18, width, height},         {x + 7, y + 7, width, height},
        {x - 7 - width, y - 18, width, height}, {x - 7 - width, y + 7, width, height},
    };
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); ++i) {
        if (!is_free(plot, &places[i])) continue;
        fprintf(plot->stream, "<text class=\"opname\" x=\"%.1f\" y=\"%.1f\">", places[i].x,
                places[i].y + 10);
        put_escaped(plot->stream, op->op);
        fputs("</text>\n", plot->stream);
        take(plot, places[i].x, places[i].y, width, height);
        return;
    }
}

// Whether no other case of the operation is faster.
static bool is_best(const struct report_device *device, size_t index) {
    const struct report_op *op = &device->ops[index];
    for (size_t i = 0; i < device->n_ops; ++i) {
        const struct report_op *other = &device->ops[i];
        if (strcmp(other->op, op->op) != 0 || !has_place(other)) continue;
        const double difference = other->flops / other->seconds - op->flops / op->seconds;
        if (difference > 0 || (difference == 0 && i < index)) return false;
    }
    return true;
}

static void draw_points(struct plot *plot) {
    const struct report_device *device = plot->device;
    for (size_t i = 0; i < device->n_ops; ++i) {
        const struct report_op *op = &device->ops[i];
        if (!has_place(op)) continue;
        const double x = axis_at(&plot->x, op->flops / op->bytes);
        const double y = axis_at(&plot->y, op->flops / op->seconds);
        draw_mark(plot, x, y, op);
    }
    for (size_t i = 0; i < device->n_ops; ++i) {
        if (has_place(&device->ops[i]) && is_best(device, i)) draw_name(plot, &device->ops[i]);
    }
}

// --- what only moves

static void draw_strip_limit(const struct plot *plot, double bytes, const char *class) {
    const double y = bytes > 0 ? axis_at(&plot->strip, bytes) : 0;
    if (bytes > 0)
        fprintf(plot->stream, "<line class=\"%s\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>\n",
                class, STRIP, y, PICTURE_WIDTH - 8, y);
}

// Names of operations without arithmetic, each once.
static size_t list_movers(const struct report_device *device, const char *names[MAX_MOVERS]) {
    size_t n = 0;
    for (size_t i = 0; i < device->n_ops && n < MAX_MOVERS; ++i) {
        size_t k = 0;
        while (k < n && strcmp(names[k], device->ops[i].op) != 0)
            ++k;
        if (k == n && !has_place(&device->ops[i])) names[n++] = device->ops[i].op;
    }
    return n;
}

static void draw_movers(const struct plot *plot) {
    const char *names[MAX_MOVERS];
    const struct report_device *device = plot->device;
    const size_t n = list_movers(device, names);
    for (size_t k = 0; k < n; ++k) {
        const double x = STRIP + (PICTURE_WIDTH - 8 - STRIP) * ((double)k + 0.5) / (double)n;
        for (size_t i = 0; i < device->n_ops; ++i) {
            const struct report_op *op = &device->ops[i];
            if (has_place(op) || strcmp(op->op, names[k]) != 0 || op->bytes <= 0) continue;
            draw_mark(plot, x, axis_at(&plot->strip, op->bytes / op->seconds), op);
        }
        fprintf(plot->stream,
                "<text class=\"opname end\" transform=\"translate(%.1f %d) rotate(-40)\">", x + 4,
                BOTTOM + 14);
        put_escaped(plot->stream, names[k]);
        fputs("</text>\n", plot->stream);
    }
}

static void draw_strip(const struct plot *plot) {
    char text[QUANTITY_SIZE];
    if (plot->strip.low <= 0) return;
    for (double v = plot->strip.low; v < plot->strip.high * 1.01; v *= 10) {
        const double y = axis_at(&plot->strip, v);
        fprintf(plot->stream,
                "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>"
                "<text class=\"small end\" x=\"%d\" y=\"%.1f\">%s</text>\n",
                STRIP, y, PICTURE_WIDTH - 8, y, STRIP - 8, y + 4, tick(text, v, "B/s"));
    }
    fprintf(plot->stream, "<text class=\"small\" x=\"%d\" y=\"%d\">what only moves data</text>\n",
            STRIP, TOP - 8);
    draw_strip_limit(plot, plot->device->reads, "roof");
    draw_strip_limit(plot, plot->device->copies, plot->device->reads > 0 ? "roof2" : "roof");
    draw_movers(plot);
}

void draw_roofline(const struct report_device *device, FILE *stream) {
    struct plot plot = {.stream = stream, .device = device};
    if (!find_scales(&plot)) return;
    fprintf(stream, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"Roofline of ",
            PICTURE_WIDTH, HEIGHT);
    put_escaped(stream, device->name);
    fputs("\">\n", stream);
    draw_grid(&plot);
    take_points(&plot);
    draw_roof(&plot);
    draw_points(&plot);
    draw_strip(&plot);
    fputs("</svg>\n", stream);
}
