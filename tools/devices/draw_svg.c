// SPDX-License-Identifier: MIT
// The tree as boxes in boxes, leaves and what has boxes of its own in rows apart: an SVG, and a
// page around it. A box tells more when the pointer rests on it. Colours are light or dark as the
// reader's system is.
#include <string.h>

#include "print.h"
#include "terminal.h"
#include "tree.h"

static const char style[] =
    "<style>.m{fill:#f7f8fa}.p{fill:#e3ecf7}.n{fill:#f6ecd2}.c{fill:#fff}.k{fill:#d8e9d2}"
    ".b{fill:#ebe3f5}.d{fill:#ffd8a8}rect{stroke:#5b6570;stroke-width:1}"
    "rect:hover{stroke:#000;stroke-width:2}text{fill:#15191d;pointer-events:none}"
    "@media(prefers-color-scheme:dark){.m{fill:#171d23}.p{fill:#1e2b3d}.n{fill:#3a3017}"
    ".c{fill:#11161b}.k{fill:#1f3a22}.b{fill:#32274a}.d{fill:#7a3f08}rect{stroke:#77828e}"
    "rect:hover{stroke:#fff}text{fill:#eceff2}}</style>\n";

static char kind_class(enum node_kind kind) {
    static const char classes[] = {
        [NODE_MACHINE] = 'm', [NODE_PACKAGE] = 'p', [NODE_MEMORY] = 'n', [NODE_CACHE] = 'c',
        [NODE_CORES] = 'k',   [NODE_PCI] = 'b',     [NODE_DEVICE] = 'd'};
    return classes[kind];
}

// Text with the characters of markup replaced.
static void put_text(const char *text, FILE *stream) {
    for (; *text; ++text) {
        if (strchr("<>&\"", *text)) {
            fprintf(stream, "&#%d;", *text);
        } else {
            fputc(*text, stream);
        }
    }
}

// A character of a monospaced font of 12 pixels takes 7.2; texts are fitted to that.
enum { PADDING = 10, TITLE = 22, GAP = 8, CHARACTER_TENTHS = 72, ROW_LIMIT = 1400 };

struct extent {
    unsigned width, height;
};

static unsigned text_width(const char *text) {
    return (text_columns(text) * CHARACTER_TENTHS + 9) / 10;
}

static bool is_leaf(const struct node *node) {
    return node->first_child == NULL;
}

// Where the children of a box are; rows are filled from the left.
struct rows {
    unsigned left, top, height; // of the next child and of its row
    struct extent used;
};

static void begin_rows(struct rows *rows) {
    *rows = (struct rows){.left = PADDING, .top = TITLE + GAP / 2};
}

// Finds the place of a child, relative to its parent.
static void place(struct rows *rows, const struct node *before, const struct node *child,
                  struct extent box, unsigned *out_x, unsigned *out_y) {
    const bool fits = rows->left + box.width + PADDING <= ROW_LIMIT;
    if (before && (!fits || is_leaf(before) != is_leaf(child))) {
        rows->left = PADDING;
        rows->top += rows->height + GAP;
        rows->height = 0;
    }
    *out_x = rows->left;
    *out_y = rows->top;
    rows->left += box.width + GAP;
    if (box.height > rows->height) rows->height = box.height;
    if (*out_x + box.width + PADDING > rows->used.width)
        rows->used.width = *out_x + box.width + PADDING;
    rows->used.height = rows->top + rows->height + PADDING;
}

static struct extent measure(const struct node *node) {
    struct extent box = {text_width(node->label) + 2 * PADDING, TITLE + PADDING};
    const struct node *before = NULL;
    struct rows rows;
    begin_rows(&rows);
    for (const struct node *child = node->first_child; child; child = child->next) {
        unsigned x, y;
        place(&rows, before, child, measure(child), &x, &y);
        before = child;
    }
    if (rows.used.width > box.width) box.width = rows.used.width;
    if (rows.used.height > box.height) box.height = rows.used.height;
    return box;
}

static void svg_box(const struct node *node, unsigned x, unsigned y, struct extent box,
                    FILE *stream) {
    fprintf(stream,
            "<rect class=\"%c\" x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\" rx=\"4\"><title>",
            kind_class(node->kind), x, y, box.width, box.height);
    put_text(node->label, stream);
    if (node->more[0] != '\0') fputc('\n', stream);
    put_text(node->more, stream);
    fprintf(stream,
            "</title></rect><text x=\"%u\" y=\"%u\" textLength=\"%u\" "
            "lengthAdjust=\"spacingAndGlyphs\">",
            x + PADDING, y + TITLE - 5, text_width(node->label));
    put_text(node->label, stream);
    fputs("</text>\n", stream);

    const struct node *before = NULL;
    struct rows rows;
    begin_rows(&rows);
    for (const struct node *child = node->first_child; child; child = child->next) {
        unsigned child_x, child_y;
        const struct extent inner = measure(child);
        place(&rows, before, child, inner, &child_x, &child_y);
        svg_box(child, x + child_x, y + child_y, inner, stream);
        before = child;
    }
}

static void put_svg(const struct node *root, FILE *stream) {
    const struct extent box = measure(root);
    const unsigned width = box.width + 2 * GAP, height = box.height + 2 * GAP;
    fprintf(stream,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
            "viewBox=\"0 0 %u %u\" font-family=\"monospace\" font-size=\"12\">\n%s",
            width, height, width, height, style);
    svg_box(root, GAP, GAP, box, stream);
    fputs("</svg>\n", stream);
}

bool draw_svg(const struct inventory *inventory, FILE *stream) {
    struct node *root = tree_build(inventory);
    if (!root) return false;
    put_svg(root, stream);
    tree_free(root);
    return !ferror(stream);
}

// The drawing in its own size, smaller where the window is.
bool draw_html(const struct inventory *inventory, FILE *stream) {
    struct node *root = tree_build(inventory);
    if (!root) return false;
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
          "<meta name=\"viewport\" content=\"width=device-width\"><title>",
          stream);
    put_text(root->label, stream);
    fputs(" - ggml-devices</title>\n<style>:root{color-scheme:light dark}body{margin:16px;"
          "font:14px system-ui,sans-serif}div{overflow-x:auto}svg{display:block;max-width:100%;"
          "min-width:640px;height:auto}p{color:#7a8490}</style></head>\n<body><div>\n",
          stream);
    put_svg(root, stream);
    fprintf(
        stream,
        "</div>\n<p>ggml-devices %s. Rest the pointer on a box to see more.</p>\n</body></html>\n",
        ggml_version());
    tree_free(root);
    return !ferror(stream);
}
