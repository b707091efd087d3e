// SPDX-License-Identifier: MIT
// The tree as text, for Graphviz and as SVG.
#include <string.h>

#include "print.h"
#include "terminal.h"
#include "tree.h"

enum { MAX_DEPTH = 32 };

// `open[i]`: whether a sibling follows the ancestor at depth i.
static void draw_lines(const struct node *node, bool open[MAX_DEPTH], int depth, bool utf8,
                       FILE *stream) {
    if (depth == MAX_DEPTH) return;
    for (const struct node *child = node->first_child; child; child = child->next) {
        for (int i = 0; i < depth; ++i) {
            fputs(!open[i] ? "   " : utf8 ? "│  " : "|  ", stream);
        }
        open[depth] = child->next != NULL;
        const char *branch = !utf8 ? (child->next ? "|- " : "`- ") : child->next ? "├─ " : "└─ ";
        fprintf(stream, "%s%s%s\n", branch, child->kind == NODE_DEVICE ? "* " : "", child->label);
        draw_lines(child, open, depth + 1, utf8, stream);
    }
}

bool draw_tree(const struct inventory *inventory, const struct page *page, FILE *stream) {
    bool open[MAX_DEPTH] = {false};
    struct node *root = tree_build(inventory);
    if (!root) return false;
    fprintf(stream, "%s\n", root->label);
    draw_lines(root, open, 0, page->utf8, stream);
    tree_free(root);
    return !ferror(stream);
}

// Text with the characters that `special` lists replaced by the entity or escape at the same
// position.
static void put_escaped(const char *text, const char *special, const char *const *replacements,
                        FILE *stream) {
    for (; *text; ++text) {
        const char *at = strchr(special, *text);
        if (at) {
            fputs(replacements[at - special], stream);
        } else {
            fputc(*text, stream);
        }
    }
}

static const char *fill_colour(enum node_kind kind) {
    static const char *const colours[] = {
        [NODE_MACHINE] = "#f7f7f7", [NODE_PACKAGE] = "#e3ecf7", [NODE_MEMORY] = "#f3e9d2",
        [NODE_CACHE] = "#ffffff",   [NODE_CORES] = "#d5e5d0",   [NODE_PCI] = "#e9e1f2",
        [NODE_DEVICE] = "#ffd8a8"};
    return colours[kind];
}

static unsigned dot_node(const struct node *node, unsigned *counter, FILE *stream) {
    static const char *const replacements[] = {"\\\"", "\\\\"};
    const unsigned id = (*counter)++;
    fprintf(stream, "  n%u [fillcolor=\"%s\" label=\"", id, fill_colour(node->kind));
    put_escaped(node->label, "\"\\", replacements, stream);
    fputs("\"];\n", stream);
    for (const struct node *child = node->first_child; child; child = child->next) {
        fprintf(stream, "  n%u -> n%u;\n", id, dot_node(child, counter, stream));
    }
    return id;
}

bool draw_dot(const struct inventory *inventory, FILE *stream) {
    struct node *root = tree_build(inventory);
    unsigned counter = 0;
    if (!root) return false;
    fputs("digraph ggml_devices {\n  node [shape=box style=filled fontname=\"sans-serif\"];\n  "
          "edge [dir=none];\n",
          stream);
    dot_node(root, &counter, stream);
    fputs("}\n", stream);
    tree_free(root);
    return !ferror(stream);
}

// --- SVG: boxes in boxes, leaves and what has boxes of its own in rows apart

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
    static const char *const entities[] = {"&lt;", "&gt;", "&amp;", "&quot;"};
    fprintf(stream,
            "<rect x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\" rx=\"4\" fill=\"%s\" "
            "stroke=\"#555\"/>",
            x, y, box.width, box.height, fill_colour(node->kind));
    fprintf(stream, "<text x=\"%u\" y=\"%u\" textLength=\"%u\" lengthAdjust=\"spacingAndGlyphs\">",
            x + PADDING, y + TITLE - 5, text_width(node->label));
    put_escaped(node->label, "<>&\"", entities, stream);
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

bool draw_svg(const struct inventory *inventory, FILE *stream) {
    struct node *root = tree_build(inventory);
    if (!root) return false;
    const struct extent box = measure(root);
    fprintf(stream,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
            "font-family=\"monospace\" "
            "font-size=\"12\">\n",
            box.width + 2 * GAP, box.height + 2 * GAP);
    svg_box(root, GAP, GAP, box, stream);
    fputs("</svg>\n", stream);
    tree_free(root);
    return !ferror(stream);
}
