// SPDX-License-Identifier: MIT
// The tree as text and for Graphviz.
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
