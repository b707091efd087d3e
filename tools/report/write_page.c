// SPDX-License-Identifier: MIT
// One file that needs no other: pictures first, tables below, the measurements themselves at the
// end.
#include <string.h>

#include "report/page.h"

extern const char report_style[];

// --- the top

// Share of the processors' time from which on other programs are told of: some always run.
static const double notable_load = 0.1;

// The processor, or whatever device comes first.
static const char *machine_name(const struct report *report) {
    for (size_t i = 0; i < report->n_devices; ++i) {
        if (strcmp(report->devices[i].type, "CPU") == 0) return report->devices[i].description;
    }
    return report->n_devices > 0 ? report->devices[0].description : "no device";
}

// "2026-03-04 05:06 UTC"
static void put_time(FILE *stream, const char *time) {
    char text[20];
    snprintf(text, sizeof(text), "%.16s", time);
    if (strlen(text) == 16 && text[10] == 'T') text[10] = ' ';
    put_escaped(stream, text);
    fputs(" UTC", stream);
}

static void put_top(const struct report *report, const struct report *earlier,
                    const char *earlier_name, FILE *stream) {
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
          "<meta name=\"viewport\" content=\"width=device-width\"><title>",
          stream);
    put_escaped(stream, machine_name(report));
    fprintf(stream, " - ggml-bench report</title>\n<style>%s</style></head>\n<body><main>\n<h1>",
            report_style);
    put_escaped(stream, machine_name(report));
    fprintf(stream, "</h1>\n<p class=\"muted\">%zu device%s, %d thread%s · ", report->n_devices,
            report->n_devices == 1 ? "" : "s", (int)report->threads,
            report->threads == 1 ? "" : "s");
    put_time(stream, report->time);
    fputs(" · ggml-host ", stream);
    put_escaped(stream, report->version);
    fputs(report->quick ? " · measured quickly, so figures vary</p>\n" : "</p>\n", stream);
    if (report->other_load >= notable_load) {
        fprintf(stream,
                "<p class=\"bad\">Other programs took %.0f %% of the processors' time meanwhile: "
                "figures are lower than the machine's, and the limits as well.</p>\n",
                100.0 * report->other_load);
    }
    if (!earlier) return;
    fputs("<p class=\"muted\">Compared with ", stream);
    put_escaped(stream, earlier_name);
    fputs(": ", stream);
    put_time(stream, earlier->time);
    fputs(", ggml-host ", stream);
    put_escaped(stream, earlier->version);
    fputs(". Lines across bars are the earlier rates; ×2 is twice as fast.</p>\n", stream);
}

static void put_picture(const struct report *report, const struct report *earlier, FILE *stream) {
    fputs("<div class=\"picture\">\n", stream);
    draw_tokens(report, earlier, stream);
    fputs("</div>\n", stream);
}

// --- a device

static void put_card(FILE *stream, double value, const char *unit, const char *what) {
    char text[QUANTITY_SIZE];
    if (value <= 0) return;
    fprintf(stream, "<div><b>%s</b><span>%s</span></div>", quantity(text, value, unit), what);
}

static void put_cards(const struct report_device *device, FILE *stream) {
    char text[QUANTITY_SIZE];
    fputs("<div class=\"cards\">", stream);
    put_card(stream, device->flops, "FLOP/s", "multiply-adds");
    put_card(stream, device->reads, "B/s", "reading memory");
    put_card(stream, device->copies, "B/s", "copying");
    if (device->launch > 0)
        fprintf(stream, "<div><b>%s</b><span>launching a node</span></div>",
                duration(text, device->launch));
    if (device->memory > 0)
        fprintf(stream, "<div><b>%.1f GiB</b><span>memory</span></div>",
                device->memory / 1073741824.0);
    fputs("</div>\n", stream);
}

static void put_legend(const struct report_device *device, FILE *stream) {
    bool used[REPORT_GROUPS] = {false};
    for (size_t i = 0; i < device->n_ops; ++i)
        used[op_group(device->ops[i].op)] = true;
    fputs("<div class=\"legend\">", stream);
    for (int group = 0; group < REPORT_GROUPS; ++group) {
        if (!used[group]) continue;
        fprintf(stream,
                "<span><svg viewBox=\"0 0 12 12\" aria-hidden=\"true\"><rect class=\"g%d\" "
                "width=\"12\" height=\"12\" rx=\"3\"/></svg>%s</span>",
                group, op_group_names[group]);
    }
    fputs("<span><svg viewBox=\"0 0 12 12\" aria-hidden=\"true\"><circle class=\"shape\" cx=\"6\" "
          "cy=\"6\" r=\"5\"/></svg>one column</span>"
          "<span><svg viewBox=\"0 0 12 12\" aria-hidden=\"true\"><path class=\"shape\" "
          "d=\"M6 0l6 6l-6 6l-6 -6z\"/></svg>a few</span>"
          "<span><svg viewBox=\"0 0 12 12\" aria-hidden=\"true\"><rect class=\"shape\" x=\"1\" "
          "y=\"1\" width=\"10\" height=\"10\" rx=\"1.5\"/></svg>many</span>"
          "</div>\n",
          stream);
}

static void put_device(const struct report_device *device, FILE *stream) {
    fputs("<h2>", stream);
    put_escaped(stream, device->name);
    fputs(" <small>", stream);
    put_escaped(stream, device->description);
    fputs("</small></h2>\n", stream);
    if (device->failure[0] != '\0') {
        fputs("<p class=\"bad\">It failed, and what follows is what was measured before: ", stream);
        put_escaped(stream, device->failure);
        fputs("</p>\n", stream);
    }
    put_cards(device, stream);
    if (device->n_ops > 0) {
        put_legend(device, stream);
        fputs("<div class=\"picture\">\n", stream);
        draw_roofline(device, stream);
        fputs("</div>\n", stream);
    }
    if (device->note[0] != '\0') {
        fputs("<p class=\"muted\">", stream);
        put_escaped(stream, device->note);
        fputs("</p>\n", stream);
    }
}

// --- what became of it

static void put_changes(const struct report *report, const struct report *earlier, FILE *stream) {
    for (size_t i = 0; i < report->n_devices; ++i) {
        const struct report_device *device = &report->devices[i];
        fputs("<h2>Since then: ", stream);
        put_escaped(stream, device->name);
        fputs(" <small>time of each operation before, over that of now; within the band is 5 %"
              "</small></h2>\n<div class=\"picture\">\n",
              stream);
        const size_t n = draw_change(device, report_find_device(earlier, device->name), stream);
        fputs("</div>\n", stream);
        if (n == 0)
            fputs("<p class=\"muted\">The earlier report has no operation of this device in the "
                  "same sizes.</p>\n",
                  stream);
    }
}

// --- tables

static void put_cell(FILE *stream, const char *text) {
    fputs("<td class=\"t\">", stream);
    put_escaped(stream, text);
    fputs("</td>", stream);
}

static void put_ratio(FILE *stream, double before, double now) {
    if (before > 0 && now > 0)
        fprintf(stream, "<td class=\"%s\">×%.2f</td>",
                before > 1.05 * now   ? "faster"
                : now > 1.05 * before ? "slower"
                                      : "",
                before / now);
    else
        fputs("<td></td>", stream);
}

static void put_model_rows(const struct report_device *device, const struct report_device *earlier,
                           bool compares, FILE *stream) {
    for (size_t i = 0; i < device->n_models; ++i) {
        const struct report_model *m = &device->models[i];
        const struct report_model *before = report_find_model(earlier, m);
        fputs("<tr>", stream);
        put_cell(stream, device->name);
        put_cell(stream, m->size);
        put_cell(stream, m->type);
        fprintf(stream, "<td>%.2f</td><td>%.1f ms</td><td>%.1f GB/s</td>", 1 / m->token_seconds,
                m->token_seconds * 1e3, m->weight_bytes / m->token_seconds / 1e9);
        if (compares) put_ratio(stream, before ? before->token_seconds : 0, m->token_seconds);
        fprintf(stream, "<td>%.1f</td><td>%d</td><td>%.1f GFLOP/s</td>",
                (double)m->prompt / m->prompt_seconds, (int)m->prompt,
                m->prompt_flops / m->prompt_seconds / 1e9);
        if (compares) put_ratio(stream, before ? before->prompt_seconds : 0, m->prompt_seconds);
        fputs("</tr>\n", stream);
    }
}

static void put_models(const struct report *report, const struct report *earlier, FILE *stream) {
    const char *change = earlier ? "<th>since then</th>" : "";
    fprintf(stream,
            "<h2>Models</h2>\n<div class=\"table\"><table><tr><th class=\"t\">device</th>"
            "<th class=\"t\">size</th><th class=\"t\">weights</th><th>tokens/s</th>"
            "<th>a token</th><th>weights read</th>%s<th>prompt, tokens/s</th><th>of</th>"
            "<th>computed</th>%s</tr>\n",
            change, change);
    for (size_t i = 0; i < report->n_devices; ++i) {
        const struct report_device *device = &report->devices[i];
        put_model_rows(device, earlier ? report_find_device(earlier, device->name) : NULL,
                       earlier != NULL, stream);
    }
    fputs("</table></div>\n", stream);
}

static void put_op_row(const struct report_device *device, const struct report_op *op,
                       const struct report_device *earlier, bool compares, FILE *stream) {
    char text[QUANTITY_SIZE];
    const double share = op_share(device, op);
    const struct report_op *before = report_find_op(earlier, op);
    fputs("<tr>", stream);
    put_cell(stream, op->op);
    put_cell(stream, op->name);
    fprintf(stream, "<td>%s</td>", duration(text, op->seconds));
    fprintf(stream, "<td>%s</td>", duration(text, op->median));
    fprintf(stream, "<td>%s</td>",
            op->flops > 0 ? quantity(text, op->flops / op->seconds, "FLOP/s") : "");
    fprintf(stream, "<td>%s</td>", quantity(text, op->bytes / op->seconds, "B/s"));
    fprintf(stream, share > 0 ? "<td>%.0f %%</td>" : "<td></td>", 100 * share);
    if (compares) put_ratio(stream, before ? before->seconds : 0, op->seconds);
    fputs("</tr>\n", stream);
}

static void put_ops(const struct report_device *device, const struct report_device *earlier,
                    bool compares, FILE *stream) {
    fputs("<details><summary>", stream);
    put_escaped(stream, device->name);
    fprintf(stream,
            ": %zu measurements</summary>\n<div class=\"table\"><table><tr>"
            "<th class=\"t\">operation</th><th class=\"t\">case</th><th>least time</th>"
            "<th>median</th><th>computed</th><th>moved</th><th>of the limit</th>%s</tr>\n",
            device->n_ops, compares ? "<th>since then</th>" : "");
    for (size_t i = 0; i < device->n_ops; ++i)
        put_op_row(device, &device->ops[i], earlier, compares, stream);
    fputs("</table></div></details>\n", stream);
}

static const char explanation[] =
    "<footer><p>Times of operations are the shortest of several runs, those of models medians. "
    "Bytes are those of the operands, each counted once; operations are counted as the table of "
    "operations has them, a multiplication and an addition as two. For few columns weights come "
    "from memory, as in use; what is small works from caches and can lie above the line of memory, "
    "and products that round "
    "to 8 bits above that of multiply-adds. "
    "Weights of models are no meaningful numbers. The pale bars and the lines are this machine's "
    "own limits, measured in the same run; a device that is not the processors themselves has no "
    "measured limit of computing. The measurements stand in this file as JSON: ggml-bench report "
    "--compare reads them.</p></footer>\n";

bool report_write_page(const struct report *report, const struct report *earlier,
                       const char *earlier_name, FILE *stream) {
    bool any_model = false;
    put_top(report, earlier, earlier_name, stream);
    for (size_t i = 0; i < report->n_devices; ++i)
        any_model = any_model || report->devices[i].n_models > 0;
    if (any_model) put_picture(report, earlier, stream);
    for (size_t i = 0; i < report->n_devices; ++i)
        put_device(&report->devices[i], stream);
    if (earlier) put_changes(report, earlier, stream);
    if (any_model) put_models(report, earlier, stream);
    fputs("<h2>Operations</h2>\n", stream);
    for (size_t i = 0; i < report->n_devices; ++i) {
        const struct report_device *device = &report->devices[i];
        put_ops(device, earlier ? report_find_device(earlier, device->name) : NULL, earlier != NULL,
                stream);
    }
    fputs(explanation, stream);
    fputs("</main>\n" REPORT_DATA_TAG, stream);
    report_write_json(report, stream);
    fputs("</script>\n</body></html>\n", stream);
    return !ferror(stream);
}
