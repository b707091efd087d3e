// SPDX-License-Identifier: MIT
// Finds the paragraphs of a help text again, which its source has broken into lines, and breaks
// them where the terminal ends.
#include "help.h"

#include <stdbool.h>
#include <string.h>

#include "terminal.h"

enum { LINE_SIZE = 1024, NARROW_HANGING = 6 };

// The paragraph that is being printed.
struct paragraph {
    bool is_open;
    unsigned column;
    unsigned source_hanging; // of its further lines in the text
    unsigned hanging;        // of its further lines on the terminal
};

static unsigned longest_line(const char *text) {
    unsigned longest = 0;
    char line[LINE_SIZE];
    while (*text) {
        const size_t length = strcspn(text, "\n");
        snprintf(line, sizeof(line), "%.*s", (int)length, text);
        if (text_columns(line) > longest) longest = text_columns(line);
        text += length + (text[length] == '\n');
    }
    return longest;
}

// Where the second column of "  --option VALUE  what it does" begins; 0: there is one column.
static unsigned second_column(const char *line, unsigned blanks) {
    const char *gap = blanks > 0 ? strstr(line + blanks, "  ") : NULL;
    return gap ? (unsigned)(gap - line) + (unsigned)strspn(gap, " ") : 0;
}

static void close_paragraph(struct paragraph *paragraph, FILE *stream) {
    if (paragraph->is_open) fputc('\n', stream);
    paragraph->is_open = false;
}

// The first line of a paragraph. A second column that leaves less than half of the width goes
// below the first.
static void open_paragraph(struct paragraph *paragraph, const char *line, unsigned blanks,
                           unsigned width, FILE *stream) {
    const unsigned second = second_column(line, blanks);
    const bool is_below = second > width / 2;
    unsigned first = second;
    *paragraph = (struct paragraph){.is_open = true,
                                    .source_hanging = second ? second : blanks,
                                    .hanging = second ? second : blanks};
    if (is_below) paragraph->hanging = NARROW_HANGING;
    if (strncmp(line, "Usage: ", strlen("Usage: ")) == 0)
        paragraph->source_hanging = paragraph->hanging = (unsigned)strlen("Usage: ");
    while (is_below && line[first - 1] == ' ')
        --first;
    fprintf(stream, "%.*s", (int)first, line);
    if (is_below) fprintf(stream, "\n%*s", NARROW_HANGING, "");
    paragraph->column = text_wrap(stream, line + second, second ? paragraph->hanging : 0,
                                  paragraph->hanging, width);
}

void print_help(const char *text, FILE *stream) {
    const unsigned width = terminal_width(stream);
    struct paragraph paragraph = {.is_open = false};
    if (width == 0 || longest_line(text) <= width) {
        fputs(text, stream);
        return;
    }
    while (*text) {
        char line[LINE_SIZE]; // with a blank before it, which parts words of lines that are joined
        const size_t length = strcspn(text, "\n");
        const unsigned blanks = (unsigned)strspn(text, " ");
        snprintf(line, sizeof(line), " %.*s", (int)length, text);
        text += length + (text[length] == '\n');
        if (line[1 + blanks] == '\0') {
            close_paragraph(&paragraph, stream);
            fputc('\n', stream);
        } else if (paragraph.is_open && blanks == paragraph.source_hanging) {
            paragraph.column =
                text_wrap(stream, line + blanks, paragraph.column, paragraph.hanging, width);
        } else {
            close_paragraph(&paragraph, stream);
            open_paragraph(&paragraph, line + 1, blanks, width, stream);
        }
    }
    close_paragraph(&paragraph, stream);
}
