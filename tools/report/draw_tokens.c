// SPDX-License-Identifier: MIT
// Bars of tokens per second, single tokens on the left and prompts on the right; behind each bar
// what the machine's memory or processors permit.
#include <math.h>
#include <string.h>

#include "report/page.h"

enum { PANEL = 530, LABEL = 132, BARS = 250, ROW = 34, BAR = 18, TOP = 54, BOTTOM = 14 };

// One panel's view of the measurements.
struct panel {
    FILE *stream;
    bool prompts; // else single tokens
    double x;     // of its left edge
    double scale; // tokens per second at the right end of the bars
};

static double rate_of(const struct report_model *model, bool prompts) {
    return prompts ? (double)model->prompt / model->prompt_seconds : 1 / model->token_seconds;
}

// Tokens per second that the limits permit; 0: not known.
static double limit_of(const struct report_device *device, const struct report_model *model,
                       bool prompts) {
    if (prompts)
        return model->prompt_flops > 0 ? device->flops / model->prompt_flops * (double)model->prompt
                                       : 0;
    const double bytes = device->reads > 0 ? device->reads : device->copies;
    return model->weight_bytes > 0 ? bytes / model->weight_bytes : 0;
}

static double largest(const struct report *report, bool prompts) {
    double most = 0;
    for (size_t i = 0; i < report->n_devices; ++i) {
        const struct report_device *device = &report->devices[i];
        for (size_t k = 0; k < device->n_models; ++k) {
            const double rate = rate_of(&device->models[k], prompts);
            const double limit = limit_of(device, &device->models[k], prompts);
            if (rate > most) most = rate;
            if (limit > most) most = limit;
        }
    }
    return most;
}

static const char *tokens_text(char text[QUANTITY_SIZE], double rate) {
    snprintf(text, QUANTITY_SIZE, rate >= 99.95 ? "%.0f" : rate >= 9.995 ? "%.1f" : "%.2f", rate);
    return text;
}

// The earlier rate as a line across the bar, and how many times as fast it is now.
static void draw_earlier(const struct panel *panel, double y, double now, double then,
                         double text_x) {
    const double x = panel->x + LABEL + BARS * fmin(then / panel->scale, 1);
    fprintf(panel->stream,
            "<line class=\"then\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>"
            "<text class=\"small %s\" x=\"%.1f\" y=\"%.1f\">×%.2f</text>\n",
            x, y - 3, x, y + BAR + 3, now >= then ? "faster" : "slower", text_x, y + 13,
            now / then);
}

static void draw_bar(const struct panel *panel, double y, const struct report_device *device,
                     const struct report_model *model, const struct report_device *earlier,
                     size_t color) {
    char text[QUANTITY_SIZE];
    FILE *stream = panel->stream;
    const double rate = rate_of(model, panel->prompts);
    const double limit = limit_of(device, model, panel->prompts);
    const double left = panel->x + LABEL;
    const double width = fmax(BARS * rate / panel->scale, 2);
    const struct report_model *before = report_find_model(earlier, model);
    fputs("<g><title>", stream);
    put_escaped(stream, device->name);
    fprintf(stream, ": %s tokens per second", tokens_text(text, rate));
    if (limit > 0)
        fprintf(stream, ", %.0f %% of what its %s permit%s", 100 * rate / limit,
                panel->prompts ? "processors" : "memory", panel->prompts ? "" : "s");
    fputs("</title>", stream);
    if (limit > 0)
        fprintf(stream,
                "<rect class=\"limit\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" "
                "rx=\"3\"/>",
                left, y, BARS * limit / panel->scale, BAR);
    fprintf(stream,
            "<rect class=\"d%zu\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"3\"/>"
            "</g>",
            color % 6, left, y, width, BAR);
    const double end = left + fmax(width, limit > 0 ? BARS * limit / panel->scale : 0) + 8;
    fprintf(stream, "<text class=\"value\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", end, y + 14,
            tokens_text(text, rate));
    const double after = end + 8.2 * (double)strlen(text) + 10;
    if (before) {
        draw_earlier(panel, y, rate, rate_of(before, panel->prompts), after);
    } else if (limit > 0) {
        fprintf(stream, "<text class=\"small\" x=\"%.1f\" y=\"%.1f\">%.0f %%</text>\n", after,
                y + 13, 100 * rate / limit);
    }
}

// Shapes in the order in which they come first, on whatever device.
static bool came_before(const struct report *report, size_t device, size_t index) {
    const struct report_model *model = &report->devices[device].models[index];
    for (size_t i = 0; i < device; ++i) {
        if (report_find_model(&report->devices[i], model)) return true;
    }
    return false;
}

// The bars of one shape, a row for each device that has it. Returns where the next row begins.
static double draw_shape(const struct panel *panel, double y, const struct report *report,
                         const struct report *earlier, const struct report_model *model) {
    bool first = true;
    for (size_t i = 0; i < report->n_devices; ++i) {
        const struct report_device *device = &report->devices[i];
        const struct report_model *here = report_find_model(device, model);
        if (!here) continue;
        if (first) {
            fprintf(panel->stream, "<text class=\"name\" x=\"%.1f\" y=\"%.1f\">", panel->x, y + 14);
            put_escaped(panel->stream, model->size);
            fputs(" <tspan class=\"small\">", panel->stream);
            put_escaped(panel->stream, model->type);
            fputs("</tspan></text>\n", panel->stream);
        }
        fprintf(panel->stream, "<text class=\"small end\" x=\"%.1f\" y=\"%.1f\">",
                panel->x + LABEL - 8, y + 13);
        put_escaped(panel->stream, report->n_devices > 1 ? device->name : "");
        fputs("</text>\n", panel->stream);
        draw_bar(panel, y, device, here, earlier ? report_find_device(earlier, device->name) : NULL,
                 i);
        first = false;
        y += ROW - 8;
    }
    return y + 10;
}

// All shapes; stream NULL: only where they end.
static double draw_panel(struct panel *panel, const struct report *report,
                         const struct report *earlier) {
    double y = TOP;
    panel->scale = largest(report, panel->prompts);
    if (panel->stream)
        fprintf(panel->stream,
                "<text class=\"head\" x=\"%.1f\" y=\"20\">%s</text>"
                "<text class=\"small\" x=\"%.1f\" y=\"38\">tokens per second%s</text>\n",
                panel->x, panel->prompts ? "Reading a prompt" : "Writing token after token",
                panel->x,
                panel->prompts ? "; pale: as many as the multiply-adds permit"
                               : "; pale: as many as reading the weights permits");
    for (size_t i = 0; i < report->n_devices; ++i) {
        for (size_t k = 0; k < report->devices[i].n_models; ++k) {
            const struct report_model *model = &report->devices[i].models[k];
            size_t rows = 0;
            if (came_before(report, i, k)) continue;
            for (size_t d = 0; d < report->n_devices; ++d)
                rows += report_find_model(&report->devices[d], model) != NULL;
            if (panel->stream) draw_shape(panel, y, report, earlier, model);
            y += (double)rows * (ROW - 8) + 10;
        }
    }
    return y;
}

void draw_tokens(const struct report *report, const struct report *earlier, FILE *stream) {
    struct panel panel = {.stream = NULL};
    const double height = draw_panel(&panel, report, NULL) + BOTTOM;
    if (largest(report, false) <= 0) return;
    fprintf(stream, "<svg viewBox=\"0 0 %d %.0f\" role=\"img\" aria-label=\"Tokens per second\">\n",
            PICTURE_WIDTH, height);
    for (int prompts = 0; prompts < 2; ++prompts) {
        panel = (struct panel){
            .stream = stream, .prompts = prompts != 0, .x = prompts ? PICTURE_WIDTH - PANEL : 0};
        draw_panel(&panel, report, earlier);
    }
    fputs("</svg>\n", stream);
}
