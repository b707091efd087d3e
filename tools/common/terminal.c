// SPDX-License-Identifier: MIT
// Width, control sequences and UTF-8 of a terminal, on POSIX systems and on Windows, and the
// columns that a text takes.
#define _DEFAULT_SOURCE
#include "terminal.h"

#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#include <io.h>
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <langinfo.h>
#include <locale.h>
#include <sys/ioctl.h>
#include <unistd.h>
#endif

#ifdef _WIN32
unsigned terminal_width(FILE *stream) {
    CONSOLE_SCREEN_BUFFER_INFO info;
    const HANDLE handle = (HANDLE)_get_osfhandle(_fileno(stream));
    if (!GetConsoleScreenBufferInfo(handle, &info)) return 0;
    return (unsigned)(info.srWindow.Right - info.srWindow.Left + 1);
}

bool terminal_is_capable(FILE *stream) {
    return _isatty(_fileno(stream)) != 0;
}

// What is printed is UTF-8 there: platform_win32.c.
bool terminal_has_utf8(void) {
    return true;
}
#else
// What progress.c has put in the standard output's place has no descriptor.
static int descriptor(FILE *stream) {
    const int fd = fileno(stream);
    return fd < 0 && stream == stdout ? STDOUT_FILENO : fd;
}

unsigned terminal_width(FILE *stream) {
    struct winsize size;
    const int fd = descriptor(stream);
    if (!isatty(fd)) return 0;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    const char *columns = getenv("COLUMNS");
    const long n = columns ? strtol(columns, NULL, 10) : 0;
    return n > 0 && n < 10000 ? (unsigned)n : 0;
}

bool terminal_is_capable(FILE *stream) {
    const char *kind = getenv("TERM");
    return isatty(fileno(stream)) == 1 && kind && kind[0] != '\0' && strcmp(kind, "dumb") != 0;
}

bool terminal_has_utf8(void) {
    setlocale(LC_CTYPE, "");
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}
#endif

unsigned text_columns(const char *text) {
    unsigned n = 0;
    for (; *text; ++text)
        n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

static unsigned word_columns(const char *word, size_t length) {
    unsigned n = 0;
    for (size_t i = 0; i < length; ++i)
        n += ((unsigned char)word[i] & 0xC0) != 0x80;
    return n;
}

size_t text_fit(const char *text, unsigned column, unsigned width) {
    size_t fitting = 0;
    while (text[fitting]) {
        const size_t blanks = strspn(text + fitting, " ");
        const size_t length = strcspn(text + fitting + blanks, " ");
        const unsigned columns = (unsigned)blanks + word_columns(text + fitting + blanks, length);
        if (width > 0 && fitting > 0 && column + columns > width) break;
        fitting += blanks + length;
        column += columns;
    }
    return fitting;
}

unsigned text_wrap(FILE *stream, const char *text, unsigned column, unsigned indent,
                   unsigned width) {
    while (*text) {
        const size_t blanks = strspn(text, " "), length = strcspn(text + blanks, " ");
        const unsigned columns = word_columns(text + blanks, length);
        if (width > 0 && column > indent && column + blanks + columns > width) {
            fprintf(stream, "\n%*s", (int)indent, "");
            column = indent;
        } else {
            fprintf(stream, "%*s", (int)blanks, "");
            column += (unsigned)blanks;
        }
        fwrite(text + blanks, 1, length, stream);
        column += columns;
        text += blanks + length;
    }
    return column;
}
