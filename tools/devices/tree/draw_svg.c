// SPDX-License-Identifier: MIT
// The tree as boxes in boxes, leaves and what has boxes of its own in rows apart: an SVG, and a
// page around it. Links between hosts have a box where each end is a column and each link a line. A
// box tells more when the pointer rests on it. Colours are light or dark as the reader's system is.
#include <string.h>

#include "print.h"
#include "terminal.h"
#include "tree.h"

static const char style[] =
    "<style>.m{fill:#f7f8fa}.p{fill:#e3ecf7}.n{fill:#f6ecd2}.c{fill:#fff}.k{fill:#d8e9d2}"
    ".b{fill:#ebe3f5}.d{fill:#ffd8a8}line{stroke:#5b6570}.l{stroke:#d9480f;stroke-width:2}rect{"
    "stroke:#5b6570;stroke-width:1}"
    "rect:hover{stroke:#000;stroke-width:2}text{fill:#15191d;pointer-events:none}"
    "@media(prefers-color-scheme:dark){.m{fill:#171d23}.p{fill:#1e2b3d}.n{fill:#3a3017}"
    ".c{fill:#11161b}.k{fill:#1f3a22}.b{fill:#32274a}.d{fill:#7a3f08}rect,line{stroke:#77828e}"
    ".l{stroke:#ff922b}"
    "rect:hover{stroke:#fff}text{fill:#eceff2}}</style>\n";

static char kind_class(enum node_kind kind) {
    static const char classes[] = {
        [NODE_MACHINE] = 'm', [NODE_PACKAGE] = 'p', [NODE_MEMORY] = 'n', [NODE_CACHE] = 'c',
        [NODE_CORES] = 'k',   [NODE_PCI] = 'b',     [NODE_DEVICE] = 'd', [NODE_HOSTS] = 'c',
        [NODE_HOST] = 'm',    [NODE_NODE] = 'p',    [NODE_LINKS] = 'c',  [NODE_LINK] = 'c'};
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

// --- links

enum { LINK_ROW = 24 };

// Of a column: the widest name of an end, or what a link between neighbours has written on it.
static unsigned column_width(const struct node *links) {
    unsigned widest = 0;
    for (const struct node *link = links->first_child; link; link = link->next) {
        const char *const texts[] = {link->more, tree_end_name(link->ends[0]),
                                     tree_end_name(link->ends[1])};
        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i)
            if (text_width(texts[i]) > widest) widest = text_width(texts[i]);
    }
    return widest + 2 * GAP;
}

static struct extent measure_links(const struct node *links) {
    struct extent box = {links->count * column_width(links) + 2 * PADDING, 2 * TITLE + PADDING};
    for (const struct node *link = links->first_child; link; link = link->next)
        box.height += LINK_ROW;
    return box;
}

static void put_words(const char *text, unsigned x, unsigned y, FILE *stream) {
    fprintf(stream, "<text x=\"%u\" y=\"%u\" textLength=\"%u\" lengthAdjust=\"spacingAndGlyphs\">",
            x, y, text_width(text));
    put_text(text, stream);
    fputs("</text>\n", stream);
}

static void put_line(const char *class_name, const unsigned from[2], const unsigned to[2],
                     FILE *stream) {
    fprintf(stream, "<line class=\"%s\" x1=\"%u\" y1=\"%u\" x2=\"%u\" y2=\"%u\"/>\n", class_name,
            from[0], from[1], to[0], to[1]);
}

// Ends from left to right, each with its name once; below them the links from end to end, with what
// they take written right of the left end, where no other end is.
static void svg_links(const struct node *links, unsigned x, unsigned y, FILE *stream) {
    const unsigned width = column_width(links), bottom = y + measure_links(links).height - PADDING;
    const unsigned left = x + PADDING + GAP, top = y + 2 * TITLE;
    const struct node *named = NULL;
    unsigned row = top;
    for (unsigned number = 0; number < links->count; ++number) {
        named = NULL;
        for (const struct node *link = links->first_child; link; link = link->next) {
            for (int i = 0; i < 2; ++i)
                if (link->ends[i]->number == number) named = link->ends[i];
        }
        if (!named) continue;
        const unsigned at = left + number * width;
        put_words(tree_end_name(named), at, top - 5, stream);
        put_line("e", (unsigned[]){at, top}, (unsigned[]){at, bottom}, stream);
    }
    for (const struct node *link = links->first_child; link; link = link->next) {
        const unsigned from = left + link->ends[0]->number * width;
        const unsigned to = left + link->ends[1]->number * width;
        row += LINK_ROW;
        put_line("l", (unsigned[]){from, row - 2}, (unsigned[]){to, row - 2}, stream);
        put_words(link->more, from + GAP, row - 6, stream);
    }
}

// --- boxes

static struct extent measure(const struct node *node) {
    if (node->kind == NODE_LINKS) return measure_links(node);
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
    fputs("</title></rect>", stream);
    put_words(node->label, x + PADDING, y + TITLE - 5, stream);
    if (node->kind == NODE_LINKS) {
        svg_links(node, x, y, stream);
        return;
    }

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

// The drawing in its own size, smaller where the window is, down to what can be read.
bool draw_html(const struct inventory *inventory, FILE *stream) {
    enum { READABLE_WIDTH = 640 };
    struct node *root = tree_build(inventory);
    if (!root) return false;
    const unsigned width = measure(root).width + 2 * GAP;
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
          "<meta name=\"viewport\" content=\"width=device-width\"><title>",
          stream);
    put_text(root->label, stream);
    fprintf(stream,
            " - ggml-devices</title>\n<style>:root{color-scheme:light dark}body{margin:16px;"
            "font:14px system-ui,sans-serif}div{overflow-x:auto}svg{display:block;max-width:100%%;"
            "min-width:%upx;height:auto}p{color:#7a8490}</style></head>\n<body><div>\n",
            width < READABLE_WIDTH ? width : READABLE_WIDTH);
    put_svg(root, stream);
    fprintf(
        stream,
        "</div>\n<p>ggml-devices %s. Rest the pointer on a box to see more.</p>\n</body></html>\n",
        ggml_version());
    tree_free(root);
    return !ferror(stream);
}
