// SPDX-License-Identifier: MIT
// The tree as text, for Graphviz and as SVG.
#include <string.h>

#include "print.h"
#include "tree.h"

enum { MAX_DEPTH = 32 };

// `open[i]`: whether a sibling follows the ancestor at depth i.
static void draw_lines(const struct node *node, bool open[MAX_DEPTH], int depth, FILE *stream) {
    if (depth == MAX_DEPTH) return;
    for (const struct node *child = node->first_child; child; child = child->next) {
        for (int i = 0; i < depth; ++i) {
            fputs(open[i] ? "│  " : "   ", stream);
        }
        open[depth] = child->next != NULL;
        fprintf(stream, "%s%s%s\n", child->next ? "├─ " : "└─ ",
                child->kind == NODE_DEVICE ? "* " : "", child->label);
        draw_lines(child, open, depth + 1, stream);
    }
}

bool draw_tree(const struct inventory *inventory, FILE *stream) {
    bool open[MAX_DEPTH] = {false};
    struct node *root = tree_build(inventory);
    if (!root) return false;
    fprintf(stream, "%s\n", root->label);
    draw_lines(root, open, 0, stream);
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

// --- SVG: boxes in boxes; leaves beside each other, everything else stacked ---

enum { PADDING = 10, TITLE = 22, GAP = 8, CHARACTER = 7 };

struct extent {
    unsigned width, height;
};

static bool is_leaf(const struct node *node) {
    return node->first_child == NULL;
}

static struct extent measure(const struct node *node) {
    struct extent box = {(unsigned)strlen(node->label) * CHARACTER + 2 * PADDING, TITLE + PADDING};
    unsigned row_width = 0, row_height = 0;
    for (const struct node *child = node->first_child; child; child = child->next) {
        const struct extent inner = measure(child);
        row_width += inner.width + GAP;
        if (inner.height > row_height) row_height = inner.height;
        const bool row_goes_on = is_leaf(child) && child->next && is_leaf(child->next);
        if (row_goes_on) continue;
        if (row_width - GAP + 2 * PADDING > box.width) box.width = row_width - GAP + 2 * PADDING;
        box.height += row_height + GAP;
        row_width = row_height = 0;
    }
    return box;
}

static void svg_box(const struct node *node, unsigned x, unsigned y, struct extent box,
                    FILE *stream) {
    static const char *const entities[] = {"&lt;", "&gt;", "&amp;", "&quot;"};
    fprintf(
        stream,
        "<rect x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\" rx=\"4\" fill=\"%s\" stroke=\"#555\"/>",
        x, y, box.width, box.height, fill_colour(node->kind));
    fprintf(stream, "<text x=\"%u\" y=\"%u\">", x + PADDING, y + TITLE - 5);
    put_escaped(node->label, "<>&\"", entities, stream);
    fputs("</text>\n", stream);

    unsigned left = x + PADDING, top = y + TITLE + GAP / 2, row_height = 0;
    for (const struct node *child = node->first_child; child; child = child->next) {
        const struct extent inner = measure(child);
        svg_box(child, left, top, inner, stream);
        if (inner.height > row_height) row_height = inner.height;
        if (is_leaf(child) && child->next && is_leaf(child->next)) {
            left += inner.width + GAP;
            continue;
        }
        left = x + PADDING;
        top += row_height + GAP;
        row_height = 0;
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
