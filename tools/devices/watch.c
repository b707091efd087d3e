// SPDX-License-Identifier: MIT
// The view that is drawn again and again. A terminal is left as it was found, whatever ends the
// program but SIGKILL.
#define _POSIX_C_SOURCE 200809L
#include "watch.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "terminal.h"

enum { BAR_CELLS = 20, LEAST_CELLS = 4, BAR_TEXT = BAR_CELLS + 5, LINE_SIZE = 512 };

// --- when it ends --------------------------------------------------------------------------------

static volatile sig_atomic_t ended, continued;

// Only sets flags: the loop looks at them after each wait.
static void on_signal(int number) {
    if (number == SIGCONT)
        continued = 1;
    else
        ended = 1;
}

// Without SA_RESTART, so that a signal ends the wait.
static void catch_signals(void) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGCONT};
    struct sigaction action = {.sa_handler = on_signal};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); ++i)
        sigaction(numbers[i], &action, NULL);
}

// Whether a terminal may be set: a process behind the one in front would be stopped for it.
static bool is_in_front(void) {
    const pid_t front = tcgetpgrp(STDIN_FILENO); // -1: of no terminal that stops anybody
    return front < 0 || front == getpgrp();
}

// Keys come at once and are not shown; Ctrl-C and Ctrl-Z go on to send signals.
static void read_keys(const struct termios *before) {
    struct termios keys = *before;
    keys.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &keys);
}

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

// Until the next drawing is due. *reads_keys becomes false when there are none to come.
static void wait_until(double due, bool *reads_keys, const struct termios *before) {
    while (!ended) {
        const double left = due - seconds_now();
        struct pollfd input = {.fd = *reads_keys ? STDIN_FILENO : -1, .events = POLLIN};
        char key;
        if (left <= 0) return;
        const int n = poll(&input, 1, (int)(left * 1e3) + 1);
        if (continued) {
            continued = 0;
            if (*reads_keys) read_keys(before);
        }
        if (n <= 0 || !*reads_keys) continue;
        if (read(STDIN_FILENO, &key, 1) != 1)
            *reads_keys = false;
        else if (key == 'q' || key == 'Q')
            ended = 1;
    }
}

// --- drawing -------------------------------------------------------------------------------------

// Lines of one drawing; on a terminal they replace those of the last.
struct canvas {
    const struct page *page;
    bool in_place;
    int n_lines;
};

static void canvas_line(struct canvas *canvas, const char *text) {
    char clean[LINE_SIZE];
    const unsigned width = canvas->page->width;
    sanitise(text, clean, sizeof(clean));
    // A line that the terminal broke would count as one and take two.
    for (size_t length = strlen(clean); width > 0 && text_columns(clean) >= width && length > 0;)
        clean[--length] = '\0';
    printf("%s%s\n", clean, canvas->in_place ? "\033[K" : "");
    ++canvas->n_lines;
}

// Goes up to where the last frame began.
static void canvas_begin(struct canvas *canvas) {
    if (canvas->in_place && canvas->n_lines > 0) printf("\033[%dA", canvas->n_lines);
    canvas->n_lines = 0;
}

// Clears what a longer frame has left below.
static void canvas_end(const struct canvas *canvas) {
    if (canvas->in_place) fputs("\033[J", stdout);
    fflush(stdout);
}

// Cells between brackets and two blanks behind, `part` of the cells filled: as many as `room`
// columns have place for, at most BAR_CELLS, and nothing where few would tell little.
static void format_bar(double part, int room, char out_text[BAR_TEXT]) {
    const int fitting = room - 4, cells = fitting < BAR_CELLS ? fitting : BAR_CELLS;
    const int n = (int)(part * cells + 0.5);
    out_text[0] = '\0';
    if (cells < LEAST_CELLS) return;
    out_text[0] = '[';
    for (int i = 0; i < cells; ++i)
        out_text[1 + i] = i < n ? '#' : '.';
    strcpy(out_text + 1 + cells, "]  ");
}

// Part of the time between two samples; below 0: not told.
static double busy_between(const struct watch_sample *before, const struct watch_sample *now) {
    if (now->busy >= 0) return now->busy;
    if (before->all_time == 0 || now->all_time <= before->all_time) return -1;
    if (now->busy_time < before->busy_time) return -1; // a process has gone with its time
    const double part =
        (double)(now->busy_time - before->busy_time) / (double)(now->all_time - before->all_time);
    return part < 1 ? part : 1;
}

// A line for the device and one for each process that uses it.
static void draw_device(struct canvas *canvas, const struct device_entry *device,
                        const struct watch_sample *before, const struct watch_sample *now,
                        unsigned name_width) {
    const double gib = 1024.0 * 1024.0 * 1024.0;
    char line[LINE_SIZE], figures[96], bar[BAR_TEXT], busy[32] = "";
    size_t free_bytes = 0, total = 0;
    ggml_backend_dev_memory(device->handle, &free_bytes, &total);
    const double part = busy_between(before, now);
    if (part >= 0) snprintf(busy, sizeof(busy), "  busy %3.0f %%", part * 100);
    if (total > 0 && free_bytes <= total) {
        const int used = snprintf(figures, sizeof(figures), "%6.1f of %.1f GiB used%s",
                                  (double)(total - free_bytes) / gib, (double)total / gib, busy);
        // A line is shorter than the terminal is wide.
        const int width = canvas->page->width > 0 ? (int)canvas->page->width - 1 : LINE_SIZE;
        format_bar((double)(total - free_bytes) / (double)total,
                   width - (4 + (int)name_width + used), bar);
        snprintf(line, sizeof(line), "  %-*.64s  %s%s", (int)name_width, device->props.name, bar,
                 figures);
    } else {
        snprintf(line, sizeof(line), "  %-*.64s  memory unknown%s", (int)name_width,
                 device->props.name, busy);
    }
    canvas_line(canvas, line);
    for (int i = 0; i < now->n_processes; ++i) {
        const struct watch_process *process = &now->processes[i];
        snprintf(line, sizeof(line), "  %-*s  %8ld %-16s %6.1f GiB", (int)name_width, "",
                 process->pid, process->name, (double)process->bytes / gib);
        canvas_line(canvas, line);
    }
    if (now->n_more > 0) {
        snprintf(line, sizeof(line), "  %-*s  and %d more processes", (int)name_width, "",
                 now->n_more);
        canvas_line(canvas, line);
    }
}

// CPUs and GPUs with a PCI address have figures of the system; others stay without.
static void take_sample(const struct device_entry *device, const char *root,
                        struct watch_sample *out_sample) {
    const char *id = device->props.device_id;
    char address[16];
    *out_sample = (struct watch_sample){.busy = -1};
    // Of "0000:01:00.0#part" the address; anything else is no name of a file.
    const size_t length = id ? strspn(id, "0123456789abcdef:.") : 0;
    const bool is_address = length == strlen("0000:01:00.0") && strchr(id, ':');
    if (is_address) snprintf(address, sizeof(address), "%.*s", (int)length, id);
    if (device->props.type == GGML_BACKEND_DEVICE_TYPE_CPU)
        watch_sample_cpu(root, out_sample);
    else if (is_address)
        watch_sample_gpu(root, address, (uint64_t)(seconds_now() * 1e9), out_sample);
}

static void draw(struct canvas *canvas, const struct inventory *inventory, double seconds,
                 const char *root, struct watch_sample *samples) {
    char line[LINE_SIZE], clock[32] = "";
    unsigned name_width = 0;
    const time_t now = time(NULL);
    struct tm local;
    if (localtime_r(&now, &local)) strftime(clock, sizeof(clock), "%H:%M:%S", &local);
    for (size_t i = 0; i < inventory->n_devices; ++i) {
        const unsigned width = (unsigned)strlen(inventory->devices[i].props.name);
        if (width > name_width) name_width = width < 64 ? width : 64;
    }
    canvas_begin(canvas);
    snprintf(line, sizeof(line), "%s, every %g s%s", clock, seconds,
             canvas->in_place ? "; q ends" : "");
    canvas_line(canvas, line);
    for (size_t i = 0; i < inventory->n_devices; ++i) {
        const struct device_entry *device = &inventory->devices[i];
        struct watch_sample sample;
        if (!device->handle) continue;
        take_sample(device, root, &sample);
        draw_device(canvas, device, &samples[i], &sample, name_width);
        samples[i] = sample;
    }
    canvas_end(canvas);
}

// Sleeps until absolute times, so that drawing doesn't make frames late. False without memory.
bool watch(const struct inventory *inventory, const struct page *page, double seconds,
           const char *root) {
    struct termios before;
    struct canvas canvas = {.page = page, .in_place = terminal_is_capable(stdout)};
    bool reads_keys = canvas.in_place && is_in_front() && tcgetattr(STDIN_FILENO, &before) == 0;
    const bool restores = reads_keys;
    struct watch_sample *samples = calloc(inventory->n_devices + 1, sizeof(*samples));
    if (!samples) return false;
    catch_signals();
    if (reads_keys) read_keys(&before);
    for (double due = seconds_now(); !ended && !ferror(stdout);) {
        draw(&canvas, inventory, seconds, root, samples);
        due += seconds;
        if (due < seconds_now()) due = seconds_now() + seconds; // stopped, or a slow driver
        wait_until(due, &reads_keys, &before);
    }
    if (restores && is_in_front()) tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    free(samples);
    return true;
}
