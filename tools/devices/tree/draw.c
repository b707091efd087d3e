// SPDX-License-Identifier: MIT
// The tree as text and for Graphviz.
#include <string.h>

#include "print.h"
#include "terminal.h"
#include "tree.h"

enum { MAX_DEPTH = 32 };

// What is left of a line's own text: lines that go on to later nodes. `open[i]`: whether a sibling
// follows the ancestor at depth i.
static void draw_open(const bool open[MAX_DEPTH], int depth, const struct page *page,
                      FILE *stream) {
    for (int i = 0; i < depth; ++i)
        fputs(!open[i] ? "   " : page->utf8 ? "│  " : "|  ", stream);
}

// A label that begins in column `depth` * LEVEL. What does not fit goes on below it, two columns
// further right, where the line to its first child is.
static void draw_label(const struct node *node, const bool open[MAX_DEPTH], int depth,
                       const struct page *page, FILE *stream) {
    enum { LEVEL = 3, HANGING = 2 };
    const char *text = node->label;
    unsigned column = (unsigned)depth * LEVEL;
    if (node->kind == NODE_DEVICE) column += (unsigned)fprintf(stream, "* ");
    for (;;) {
        const size_t length = text_fit(text, column, page->width);
        fwrite(text, 1, length, stream);
        fputc('\n', stream);
        text += length + strspn(text + length, " ");
        if (*text == '\0') return;
        draw_open(open, depth, page, stream);
        fputs(!node->first_child ? "  " : page->utf8 ? "│ " : "| ", stream);
        column = (unsigned)depth * LEVEL + HANGING;
    }
}

static void draw_lines(const struct node *node, bool open[MAX_DEPTH], int depth,
                       const struct page *page, FILE *stream) {
    if (depth == MAX_DEPTH) return;
    for (const struct node *child = node->first_child; child; child = child->next) {
        const char *branch = !page->utf8   ? (child->next ? "|- " : "`- ")
                             : child->next ? "├─ "
                                           : "└─ ";
        draw_open(open, depth, page, stream);
        fputs(branch, stream);
        open[depth] = child->next != NULL;
        draw_label(child, open, depth + 1, page, stream);
        draw_lines(child, open, depth + 1, page, stream);
    }
}

bool draw_tree(const struct inventory *inventory, const struct page *page, FILE *stream) {
    bool open[MAX_DEPTH] = {false};
    struct node *root = tree_build(inventory);
    if (!root) return false;
    draw_label(root, open, 0, page, stream);
    draw_lines(root, open, 0, page, stream);
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
        [NODE_DEVICE] = "#ffd8a8",  [NODE_HOSTS] = "#ffffff",   [NODE_HOST] = "#f7f7f7",
        [NODE_NODE] = "#e3ecf7",    [NODE_LINKS] = "#ffffff",   [NODE_LINK] = "#ffffff"};
    return colours[kind];
}

// Quotes and backslashes with a backslash before them.
static void put_label(const char *text, FILE *stream) {
    static const char *const replacements[] = {"\\\"", "\\\\"};
    put_escaped(text, "\"\\", replacements, stream);
}

static void dot_node(struct node *node, unsigned *counter, FILE *stream) {
    node->id = (*counter)++;
    fprintf(stream, "  n%u [fillcolor=\"%s\" label=\"", node->id, fill_colour(node->kind));
    put_label(node->label, stream);
    fputs("\"];\n", stream);
    for (struct node *child = node->first_child; child; child = child->next) {
        if (child->kind == NODE_LINKS) continue;
        dot_node(child, counter, stream);
        fprintf(stream, "  n%u -> n%u;\n", node->id, child->id);
    }
}

// Links are edges between the nodes that they join, which don't order them.
static void dot_links(const struct node *root, FILE *stream) {
    for (const struct node *child = root->first_child; child; child = child->next) {
        if (child->kind != NODE_LINKS) continue;
        for (const struct node *link = child->first_child; link; link = link->next) {
            fprintf(stream, "  n%u -> n%u [style=dashed constraint=false label=\"",
                    link->ends[0]->id, link->ends[1]->id);
            put_label(link->more, stream);
            fputs("\"];\n", stream);
        }
    }
}

bool draw_dot(const struct inventory *inventory, FILE *stream) {
    struct node *root = tree_build(inventory);
    unsigned counter = 0;
    if (!root) return false;
    fputs("digraph ggml_devices {\n  node [shape=box style=filled fontname=\"sans-serif\"];\n  "
          "edge [dir=none];\n",
          stream);
    dot_node(root, &counter, stream);
    dot_links(root, stream);
    fputs("}\n", stream);
    tree_free(root);
    return !ferror(stream);
}
