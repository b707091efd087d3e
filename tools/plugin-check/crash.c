// SPDX-License-Identifier: MIT
// Nothing here takes a lock or memory: the thread that crashes may hold any of them.
#define _GNU_SOURCE
#include "crash.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
enum { N_SIGNALS = sizeof(signals) / sizeof(signals[0]) };

static struct {
    const char *path; // of the plugin
    struct check_progress *progress;
    struct sigaction before[N_SIGNALS];
} watch;

// One line of /proc/self/maps.
struct mapping {
    uintptr_t start, end, offset; // offset: of the file
    bool executable;
    const char *path;
};

// What is looked for in these lines.
struct place {
    uintptr_t at, stack;
    struct mapping code; // of the plugin; end 0: not found
    uintptr_t stack_end;
};

// Instruction and stack pointer at the crash; 0 on other machines.
static void registers(const ucontext_t *context, uintptr_t *out_at, uintptr_t *out_stack) {
#if defined(__x86_64__)
    *out_at = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
    *out_stack = (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
    *out_at = (uintptr_t)context->uc_mcontext.pc;
    *out_stack = (uintptr_t)context->uc_mcontext.sp;
#else
    (void)context;
    *out_at = *out_stack = 0;
#endif
}

static const char *read_hex(const char *text, uintptr_t *out) {
    for (*out = 0;; ++text) {
        const int digit = *text >= '0' && *text <= '9'   ? *text - '0'
                          : *text >= 'a' && *text <= 'f' ? *text - 'a' + 10
                                                         : -1;
        if (digit < 0) return text;
        *out = *out << 4 | (uintptr_t)digit;
    }
}

// "start-end perm offset device inode   path"
static void parse(const char *line, struct mapping *out) {
    line = read_hex(line, &out->start);
    line = read_hex(line + (*line == '-'), &out->end);
    line += strspn(line, " ");
    out->executable = strlen(line) > 2 && line[2] == 'x';
    line += strcspn(line, " ");
    line = read_hex(line + strspn(line, " "), &out->offset);
    const char *slash = strchr(line, '/');
    out->path = slash ? slash : "";
}

// Notes the mapping of the stack and that of the plugin's code.
static void look(const char *line, struct place *place) {
    struct mapping mapping;
    parse(line, &mapping);
    if (place->stack >= mapping.start && place->stack < mapping.end) place->stack_end = mapping.end;
    if (!mapping.executable || strcmp(mapping.path, watch.path) != 0) return;
    const bool is_there = place->at >= mapping.start && place->at < mapping.end;
    if (place->code.end == 0 || is_there) place->code = mapping;
}

// Reads /proc/self/maps line by line into a fixed buffer, without stdio.
static void look_at_mappings(struct place *place) {
    static char text[4096 + 1024];
    size_t used = 0;
    const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    while (file >= 0) {
        const ssize_t n = read(file, text + used, sizeof(text) - 1 - used);
        if (n <= 0) break;
        used += (size_t)n;
        text[used] = '\0';
        char *line = text;
        for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            *end = '\0';
            look(line, place);
        }
        used = strlen(line);
        memmove(text, line, used);
        if (used == sizeof(text) - 1) used = 0; // longer than a line can be
    }
    if (file >= 0) close(file);
}

// An address of the plugin on the stack: what it called is where the process ended.
static uintptr_t find_caller(const struct place *place) {
    enum { DEPTH = 4096 };
    const uintptr_t *words = (const uintptr_t *)(place->stack & ~(uintptr_t)7);
    for (size_t i = 0; i < DEPTH && (uintptr_t)(words + i + 1) <= place->stack_end; ++i)
        if (words[i] >= place->code.start && words[i] < place->code.end) return words[i];
    return 0;
}

// Writes "HOW FILE at 0xOFFSET" into memory that the parent shares; the offset is the file's, as
// debuggers want it.
static void write_place(const char *how, uintptr_t address, const struct mapping *code) {
    static const char digits[] = "0123456789abcdef";
    const char *slash = strrchr(watch.path, '/');
    char *out = watch.progress->crash;
    const uintptr_t offset = address - code->start + code->offset;
    size_t n = 0;
    const char *const parts[] = {how, slash ? slash + 1 : watch.path, " at 0x"};
    for (size_t i = 0; i < 3; ++i)
        for (const char *c = parts[i]; *c && n < CHECK_CRASH_TEXT - 20; ++c)
            out[n++] = *c;
    int shift = 60;
    while (shift > 0 && (offset >> shift & 15) == 0)
        shift -= 4;
    for (; shift >= 0; shift -= 4)
        out[n++] = digits[offset >> shift & 15];
    out[n] = '\0';
}

// Returning executes the instruction again, now under the handler that the signal had before.
static void tell(int number, siginfo_t *info, void *context) {
    struct place place = {0};
    registers(context, &place.at, &place.stack);
    look_at_mappings(&place);
    const bool is_there = place.at >= place.code.start && place.at < place.code.end;
    const uintptr_t caller = is_there || place.code.end == 0 ? 0 : find_caller(&place);
    if (is_there) write_place(" in ", place.at, &place.code);
    if (caller) write_place(" in what is called by ", caller, &place.code);
    for (int i = 0; i < N_SIGNALS; ++i)
        if (signals[i] == number) sigaction(number, &watch.before[i], NULL);
    if (info->si_code <= 0) raise(number); // sent, not caused by an instruction
}

// Catches the signals of crashes from here on; what was installed before is called after it.
void crash_watch(const struct check_run *run) {
    struct sigaction action = {.sa_sigaction = tell, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    watch.path = run->path;
    watch.progress = run->progress;
    watch.progress->crash[0] = '\0';
    for (int i = 0; i < N_SIGNALS; ++i)
        sigaction(signals[i], &action, &watch.before[i]);
}
