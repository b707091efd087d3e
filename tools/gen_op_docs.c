// SPDX-License-Identifier: MIT
// Writes docs/ops.md to standard output; with the name of a file, checks that it holds just that.
#include <stdio.h>

#include "op/op_table.h"

static const char introduction[] =
    "# Operations\n"
    "\n"
    "Generated from `abi/op_list.inl` by `gen-op-docs`; a test compares them.\n"
    "\n"
    "*Sources* are the operands in `src[]`, those above the smaller number may be missing. *Parameters*\n"
    "are in `op_params`, after the `@` the 32-bit slot. Builders are named without `ggml_`; \"(+inplace)\"\n"
    "means that there is a form that writes into its first operand. Impossible operands give an error\n"
    "tensor (`ggml_tensor_is_error`).\n"
    "\n"
    "Flags: *reuse*: the result may take the memory of a source that has its layout; *view*: no data\n"
    "moves; *alias*: always writes into the memory of a source; *host*: calls a function of the\n"
    "application, so it runs on the CPU only.\n"
    "\n"
    "| # | op | symbol | sources | parameters | flags | builders |\n"
    "|---|---|---|---|---|---|---|\n";

static void print_flags(FILE *out, enum ggml_op_flag flags) {
    if ((flags & GGML_OP_FLAG_REUSE) != 0) fputs("reuse ", out);
    if ((flags & GGML_OP_FLAG_VIEW) != 0) fputs("view ", out);
    if ((flags & GGML_OP_FLAG_ALIAS) != 0) fputs("alias ", out);
    if ((flags & GGML_OP_FLAG_HOST) != 0) fputs("host ", out);
}

static void print_table(FILE *out) {
    fputs(introduction, out);
    for (int i = 0; i < GGML_OP_COUNT; ++i) {
        const struct ggml_op_info *info = ggml_op_info((enum ggml_op)i);
        fprintf(out, "| %d | %s | `%s` | %d", i, info->name, info->symbol, info->min_src);
        if (info->max_src > info->min_src) fprintf(out, "-%d", info->max_src);
        fprintf(out, info->params[0] != '\0' ? " | `%s` | " : " | %s| ", info->params);
        print_flags(out, info->flags);
        fprintf(out, "| %s |\n", info->builders);
    }
}

static int check(const char *path) {
    FILE *expected = tmpfile();
    FILE *committed = fopen(path, "rb");
    int line = 1, a = 0, b = EOF;
    if (expected != NULL && committed != NULL) {
        print_table(expected);
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
    fprintf(stderr, "%s differs from abi/op_list.inl at line %d: run gen-op-docs > %s\n", path, line,
            path);
    return 1;
}

int main(int argc, char **argv) {
    if (argc > 1) return check(argv[1]);
    print_table(stdout);
    return ferror(stdout) != 0;
}
