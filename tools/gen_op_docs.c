// SPDX-License-Identifier: MIT
// Writes docs/ops.md to standard output. Arguments: --check FILE compares with FILE instead, and
// DEVICE=PAGE adds a column from a page that ggml-conformance wrote (docs/ops-cpu.md).
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "op/op_table.h"

enum { MAX_COLUMNS = 8, MAX_LINE = 1024 };

static const char introduction[] =
    "# Operations\n"
    "\n"
    "Generated from `abi/op_list.inl` by `gen-op-docs`; a test compares them.\n"
    "\n"
    "*Sources* are the operands in `src[]`, those above the smaller number may be missing. "
    "*Parameters*\n"
    "are in `op_params`, after the `@` the 32-bit slot. Builders are named without `ggml_`; "
    "\"(+inplace)\"\n"
    "means that there is a form that writes into its first operand. Impossible operands "
    "give an error\n"
    "tensor (`ggml_tensor_is_error`).\n"
    "\n"
    "Flags: *reuse*: the result may take the memory of a source that has its layout; "
    "*view*: no data\n"
    "moves; *alias*: always writes into the memory of a source; *host*: calls a function of the\n"
    "application, so it runs on the CPU only.\n"
    "\n"
    "The last columns are devices: *yes* where cases of the operation were computed and "
    "found right; in\n"
    "which types is told by their pages.\n"
    "\n";

// A device and the page about it.
struct column {
    char *name;
    const char *path;
};

struct columns {
    struct column list[MAX_COLUMNS];
    int n;
};

static void print_flags(FILE *out, enum ggml_op_flag flags) {
    if ((flags & GGML_OP_FLAG_REUSE) != 0) fputs("reuse ", out);
    if ((flags & GGML_OP_FLAG_VIEW) != 0) fputs("view ", out);
    if ((flags & GGML_OP_FLAG_ALIAS) != 0) fputs("alias ", out);
    if ((flags & GGML_OP_FLAG_HOST) != 0) fputs("host ", out);
}

// Whether the page has a row of the operation with types in it.
static bool computes(const char *path, const char *op) {
    char line[MAX_LINE], start[64];
    bool found = false;
    FILE *page = fopen(path, "rb");
    snprintf(start, sizeof(start), "| %s | ", op);
    while (page != NULL && !found && fgets(line, sizeof(line), page) != NULL)
        found = strncmp(line, start, strlen(start)) == 0 && strstr(line, "not supported") == NULL;
    if (page != NULL) fclose(page);
    return found;
}

struct sub_op {
    enum ggml_op op;
    const char *name;
    const char *params;
};

static const struct sub_op sub_ops[] = {
#define GGML_OP_PARAM(text, word, n, since) text "@" #word ", "
#define GGML_UNARY_ROW(number, name, since, params) {GGML_OP_UNARY, #name, "" params},
#include "unary_list.inl"
#define GGML_OP_PARAM(text, word, n, since) text "@" #word ", "
#define GGML_GLU_ROW(number, name, since, params) {GGML_OP_GLU, #name, "" params},
#include "glu_list.inl"
};

// A list that ends in ", ".
static void print_list(FILE *out, const char *list) {
    if (list[0] != '\0') fprintf(out, "%.*s", (int)strlen(list) - 2, list);
}

// An operation's parameters, with those of its sub-operations behind.
static void print_params(FILE *out, const struct ggml_op_info *info, enum ggml_op op) {
    if (info->params[0] == '\0') {
        fputs(" | | ", out);
        return;
    }
    fputs(" | `", out);
    print_list(out, info->params);
    for (size_t i = 0; i < sizeof(sub_ops) / sizeof(sub_ops[0]); ++i) {
        if (sub_ops[i].op != op || sub_ops[i].params[0] == '\0') continue;
        fprintf(out, "; %s: ", sub_ops[i].name);
        print_list(out, sub_ops[i].params);
    }
    fputs("` | ", out);
}

static void print_head(FILE *out, const struct columns *columns) {
    fputs(introduction, out);
    fputs("| # | op | symbol | sources | parameters | flags | builders |", out);
    for (int i = 0; i < columns->n; ++i)
        fprintf(out, " %s |", columns->list[i].name);
    fputs("\n|---|---|---|---|---|---|---|", out);
    for (int i = 0; i < columns->n; ++i)
        fputs("---|", out);
    fputc('\n', out);
}

// One row per operation, from abi/op_list.inl.
static void print_table(FILE *out, const struct columns *columns) {
    print_head(out, columns);
    for (int i = 0; i < GGML_OP_COUNT; ++i) {
        const struct ggml_op_info *info = ggml_op_info((enum ggml_op)i);
        fprintf(out, "| %d | %s | `%s` | %d", i, info->name, info->symbol, info->min_src);
        if (info->max_src > info->min_src) fprintf(out, "-%d", info->max_src);
        print_params(out, info, (enum ggml_op)i);
        print_flags(out, info->flags);
        fprintf(out, "| %s |", info->builders);
        for (int c = 0; c < columns->n; ++c)
            fputs(computes(columns->list[c].path, info->name) ? " yes |" : " |", out);
        fputc('\n', out);
    }
}

// Compares the page with a file, byte by byte; names the first line that differs. Returns the
// exit status.
static int check(const char *path, const struct columns *columns) {
    FILE *expected = tmpfile();
    FILE *committed = fopen(path, "rb");
    int line = 1, a = 0, b = EOF;
    if (expected != NULL && committed != NULL) {
        print_table(expected, columns);
        rewind(expected);
        do {
            a = getc(expected);
            b = getc(committed);
            line += a == '\n';
        } while (a == b && a != EOF);
    }
    if (expected != NULL) fclose(expected);
    if (committed != NULL) fclose(committed);
    if (a == b) return 0;
    fprintf(stderr,
            "%s differs from abi/op_list.inl at line %d: run gen-op-docs "
            "CPU=docs/ops-cpu.md Vulkan=docs/ops-vulkan.md > %s\n",
            path, line, path);
    return 1;
}

static bool add_column(struct columns *columns, char *argument) {
    char *equals = strchr(argument, '=');
    if (equals == NULL || columns->n == MAX_COLUMNS) return false;
    *equals = '\0';
    columns->list[columns->n++] = (struct column){argument, equals + 1};
    return true;
}

int main(int argc, char **argv) {
    struct columns columns = {.n = 0};
    const char *compared = NULL;
    for (int i = 1; i < argc; ++i) {
        if (strcmp(argv[i], "--check") == 0 && i + 1 < argc) {
            compared = argv[++i];
        } else if (!add_column(&columns, argv[i])) {
            fputs("usage: gen-op-docs [--check FILE] [DEVICE=PAGE]...\n", stderr);
            return 2;
        }
    }
    if (compared != NULL) return check(compared, &columns);
    print_table(stdout, &columns);
    return ferror(stdout) != 0;
}
