// SPDX-License-Identifier: MIT
// Mapping, entry, shutdown, and what they leave behind.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "elf_view.h"
#include "exercise.h"
#include "ggml-host.h"
#include "state.h"
#include "subject.h"
#include "threads.h"

enum { N_RELOADS = 20, MAX_FAULTS = 400 };

// Maps the file as the host does; the check fails if the loader refuses it.
static void map(const struct check_run *run, struct subject *subject) {
    if (!subject_map(subject, run->path)) check_fail(run, "can't be mapped: %s", dlerror());
}

// Whether the note's flag keeps the file mapped after its shutdown.
static bool stays_mapped(const struct check_run *run) {
    struct ggml_plugin_note note;
    return elf_view_read_note(run, &note) && note.flags & GGML_PLUGIN_FLAG_NO_UNLOAD;
}

// --- state of the process ------------------------------------------------------------------------

// A text of one kind of the process' state (files, mappings, environment, ...); the caller frees
// it.
static char *state(const struct check_run *run, enum state_kind kind) {
    char *text = state_text(kind, run->path);
    if (!text) check_fail(run, "no memory to look at the process");
    return text;
}

// Names the first line of `after` that `before` does not have, or the other way round.
static void compare(const struct check_run *run, const char *before, const char *after) {
    size_t at = 0, line = 0;
    if (strcmp(before, after) == 0) return;
    for (; before[at] && before[at] == after[at]; ++at) {
        if (before[at] == '\n') line = at + 1;
    }
    check_fail(run, "was '%.*s', became '%.*s'", (int)strcspn(before + line, "\n"), before + line,
               (int)strcspn(after + line, "\n"), after + line);
}

// The whole life of a plugin, from mapping to unmapping, must leave this state of the process as
// it was. argument: enum state_kind.
void life_leaves(struct check_run *run) {
    const enum state_kind kind = (enum state_kind)run->check->argument;
    struct subject subject;
    if (kind == STATE_MAPPINGS && stays_mapped(run)) check_skip(run, "its flag NO_UNLOAD is set");
    const char *before = state(run, kind);
    subject_open(run, &subject);
    exercise(&subject);
    subject_shutdown(&subject);
    if (!stays_mapped(run)) subject_unmap(&subject);
    compare(run, before, state(run, kind));
}

void life_map(struct check_run *run) {
    struct subject subject;
    map(run, &subject);
}

// Mapping alone: constructors of the library may change nothing. argument: enum state_kind.
void life_map_leaves(struct check_run *run) {
    const enum state_kind kind = (enum state_kind)run->check->argument;
    struct subject subject;
    const char *before = state(run, kind);
    map(run, &subject);
    compare(run, before, state(run, kind));
}

// Standard output and error lead to a file in memory from here on.
static int catch_output(const struct check_run *run) {
    const int fd = memfd_create("output", MFD_CLOEXEC);
    const bool good = fd >= 0 && dup2(fd, STDOUT_FILENO) >= 0 && dup2(fd, STDERR_FILENO) >= 0;
    CHECK_THAT(run, good, "the output can't be caught");
    return fd;
}

// Fails the check with the first bytes that were written.
static void fail_if_caught(const struct check_run *run, int fd) {
    char text[200];
    fflush(stdout);
    fflush(stderr);
    const ssize_t n = pread(fd, text, sizeof(text), 0);
    CHECK_THAT(run, n == 0, "wrote '%.*s'", (int)(n > 0 ? n : 0), text);
}

void life_map_quiet(struct check_run *run) {
    struct subject subject;
    const int fd = catch_output(run);
    map(run, &subject);
    fail_if_caught(run, fd);
}

void life_quiet(struct check_run *run) {
    struct subject subject;
    const int fd = catch_output(run);
    subject_open(run, &subject);
    exercise(&subject);
    subject_shutdown(&subject);
    if (!stays_mapped(run)) subject_unmap(&subject);
    fail_if_caught(run, fd);
}

// Every block of the host's allocator is freed at shutdown.
void life_memory(struct check_run *run) {
    struct subject subject;
    subject_open(run, &subject);
    exercise(&subject);
    subject_shutdown(&subject);
    const long left = atomic_load(&host_counters.live_blocks);
    CHECK_THAT(run, left == 0, "%ld blocks of the host's memory were not freed", left);
}

// What is in a small file; empty if it can't be read.
static void read_line(const char *path, char *out, size_t size) {
    FILE *file = fopen(path, "re");
    out[0] = '\0';
    if (file && !fgets(out, (int)size, file)) out[0] = '\0';
    if (file) fclose(file);
}

// Streams with work behind them, so that pools of threads are there.
static void use_streams(const struct devices *devices) {
    for (int i = 0; i < devices->n; ++i) {
        struct sum_graph sum;
        ggml_backend_t stream = make_stream(devices->items[i], NULL);
        if (stream && sum_graph_new(&sum, 1 << 20) && sum_graph_place(&sum, devices->items[i]) &&
            devices->items[i]->table->supports_op(devices->items[i], sum.sum))
            ggml_backend_graph_compute(stream, sum.graph);
    }
}

// A thread's name is inherited: one equal to the process' means that the plugin gave it none.
static void check_thread_name(const struct check_run *run, pid_t id) {
    char own[64], path[64], name[64];
    read_line("/proc/self/comm", own, sizeof(own));
    snprintf(path, sizeof(path), "/proc/self/task/%d/comm", (int)id);
    read_line(path, name, sizeof(name));
    CHECK_THAT(run, strcmp(name, own) != 0, "a thread has no name of its own");
}

// The host decides where threads run: they stay where it has bound them, and are not bound
// otherwise.
static void check_thread_affinity(const struct check_run *run, pid_t id, const cpu_set_t *allowed) {
    cpu_set_t wanted, used;
    if (sched_getaffinity(id, sizeof(used), &used) != 0) return;
    if (!subject_bound_to(id, &wanted)) {
        CHECK_THAT(run, CPU_EQUAL(&used, allowed), "a thread is bound, and not by the host");
    } else {
        CHECK_THAT(run, CPU_EQUAL(&used, &wanted), "a thread is not where the host has bound it");
    }
}

// Looks at threads that were started from the plugin's code; work of some size makes it start
// them. argument: 0 names, 1 affinity.
void life_threads(struct check_run *run) {
    struct devices devices;
    pid_t ids[MAX_WATCHED_THREADS];
    cpu_set_t allowed;
    CHECK_THAT(run, sched_getaffinity(0, sizeof(allowed), &allowed) == 0, "no affinity");
    host_counters.binds = true;
    if (!threads_watch(run->path)) check_skip(run, "not told with a sanitizer");
    devices_open(run, &devices);
    use_streams(&devices);
    const int n = threads_watched(ids);
    if (n == 0) check_skip(run, "it starts no thread");
    for (int i = 0; i < n; ++i)
        run->check->argument == 0 ? check_thread_name(run, ids[i])
                                  : check_thread_affinity(run, ids[i], &allowed);
}

// --- entry ---------------------------------------------------------------------------------------

void life_init(struct check_run *run) {
    struct subject subject;
    map(run, &subject);
    subject_init(&subject);
}

// Without its hardware a plugin returns a status that says so. Negative numbers are no statuses.
void life_init_status(struct check_run *run) {
    struct subject subject;
    map(run, &subject);
    const int32_t status = subject_init(&subject);
    CHECK_THAT(run, status >= 0, "returns the impossible status %d", status);
    CHECK_THAT(run, status == GGML_HOST_OK || subject_found_no_device(status),
               "returns status %d (%s): %s", status, status_text(status), host_counters.last_error);
}

// Initialised, but with nothing of the table looked at.
static const struct ggml_plugin_table *table_of(const struct check_run *run,
                                                struct subject *subject) {
    map(run, subject);
    const int32_t status = subject_init(subject);
    if (status != GGML_HOST_OK)
        check_skip(run, "no table with status %d (%s)", status, status_text(status));
    return subject->table;
}

void life_table(struct check_run *run) {
    struct subject subject;
    CHECK_THAT(run, table_of(run, &subject), "returns OK without a table");
}

// At least the slots of contract 1.0; an absurd size means that the member is not set.
void life_table_size(struct check_run *run) {
    struct subject subject;
    const uint32_t size = table_of(run, &subject)->size;
    CHECK_THAT(run, size >= offsetof(struct ggml_plugin_table, reserved) && size <= 1 << 16,
               "the table's size is %u", size);
}

void life_table_contract(struct check_run *run) {
    struct subject subject;
    struct ggml_plugin_note note;
    const struct ggml_plugin_table *table = table_of(run, &subject);
    elf_view_note(run, &note);
    CHECK_THAT(run,
               table->contract_major == note.contract_major &&
                   table->contract_minor == note.contract_minor,
               "the table says %u.%u, the note %u.%u", table->contract_major, table->contract_minor,
               note.contract_major, note.contract_minor);
}

void life_table_reg(struct check_run *run) {
    struct subject subject;
    CHECK_THAT(run, table_of(run, &subject)->reg, "the table has no backend");
}

void life_table_reserved(struct check_run *run) {
    struct subject subject;
    const struct ggml_plugin_table *table = table_of(run, &subject);
    if (elf_view_is_newer(run)) check_skip(run, "the plugin may know more than this program");
    for (int i = 0; i < 8; ++i)
        CHECK_THAT(run, !table->reserved[i], "reserved slot %d is not zero", i);
}

void life_table_constant(struct check_run *run) {
    struct subject subject;
    struct ggml_plugin_table before;
    subject_open(run, &subject);
    const struct ggml_plugin_table *table = subject.table;
    before = *table;
    exercise(&subject);
    CHECK_THAT(run, memcmp(&before, table, sizeof(before)) == 0, "the table changed in use");
}

void life_score(struct check_run *run) {
    struct subject subject;
    subject_open(run, &subject);
    if (!subject.table->score) check_skip(run, "it has no score");
    const int score = subject.table->score(subject.table);
    CHECK_THAT(run, score >= 0, "returns %d", score);
    CHECK_THAT(run, subject.table->score(subject.table) == score, "returns different scores");
}

// An unknown extension is NULL: a host would call the table of another one.
void life_extension(struct check_run *run) {
    struct subject subject;
    subject_open(run, &subject);
    if (!subject.table->get_extension) check_skip(run, "it has no extensions");
    CHECK_THAT(run, !subject.table->get_extension(subject.table, "no.such-extension", 1),
               "returns an extension that does not exist");
    CHECK_THAT(run, !subject.table->get_extension(subject.table, "", 0),
               "returns an extension without a name");
}

// Loads the plugin by the host library itself, with all its tests; known reasons not to are
// skipped.
void life_host_load(struct check_run *run) {
    ggml_backend_reg_t reg = NULL;
    const enum ggml_host_status status = ggml_plugin_load(run->path, &reg);
    if (status == GGML_HOST_DUPLICATE) check_skip(run, "the host library has it built in");
    if (status == GGML_HOST_NO_DEVICE) check_skip(run, "no device on this machine");
    if (status == GGML_HOST_UNSUPPORTED) check_skip(run, "its score here is 0");
    CHECK_THAT(run, status == GGML_HOST_OK && reg, "the host refuses it: %s", ggml_last_error());
}

void life_host_unload(struct check_run *run) {
    ggml_backend_reg_t reg = NULL;
    const enum ggml_host_status status = ggml_plugin_load(run->path, &reg);
    if (status != GGML_HOST_OK) check_skip(run, "not loaded: %s", ggml_last_error());
    CHECK_THAT(run, ggml_plugin_unload(reg) == GGML_HOST_OK, "%s", ggml_last_error());
    CHECK_THAT(run, ggml_plugin_load(run->path, &reg) == GGML_HOST_OK, "again: %s",
               ggml_last_error());
}

// --- again, and several hosts --------------------------------------------------------------------

// Whether as many devices work as before.
static void expect_good(const struct check_run *run, const struct subject *subject, int n_good,
                        const char *when) {
    const int n = exercise(subject);
    CHECK_THAT(run, n == n_good, "%s %d devices work instead of %d", when, n, n_good);
}

// The entry works after a shutdown in the same mapping, with as many devices as before.
void life_init_again(struct check_run *run) {
    struct subject subject;
    subject_open(run, &subject);
    const int n_good = exercise(&subject);
    subject_shutdown(&subject);
    const int32_t status = subject_init(&subject);
    CHECK_THAT(run, status == GGML_HOST_OK && subject.table,
               "after its shutdown the entry returns status %d (%s): %s", status,
               status_text(status), host_counters.last_error);
    expect_good(run, &subject, n_good, "after its shutdown");
    subject_shutdown(&subject);
}

// A second host in the same process, as two libraries of one program that both use plugins.
static void attach_second(const struct check_run *run, struct subject hosts[2]) {
    hosts[1] = (struct subject){.library = hosts[0].library, .init = hosts[0].init};
    const int32_t status = subject_init(&hosts[1]);
    CHECK_THAT(run, status == GGML_HOST_OK && hosts[1].table,
               "a second host gets status %d (%s): %s", status, status_text(status),
               host_counters.last_error);
}

// Whichever of two hosts goes first, the other's devices work on. argument: the host that goes
// first.
void life_two_hosts(struct check_run *run) {
    struct subject hosts[2];
    subject_open(run, &hosts[0]);
    const int n_good = exercise(&hosts[0]);
    attach_second(run, hosts);
    const int first = run->check->argument;
    expect_good(run, &hosts[1 - first], n_good, "with two hosts");
    subject_shutdown(&hosts[first]);
    expect_good(run, &hosts[1 - first], n_good, "once one of two hosts has gone");
    subject_shutdown(&hosts[1 - first]);
}

// Both hosts or none are told of a failure; it is provoked by a buffer of half the address
// space.
void life_two_hosts_told(struct check_run *run) {
    struct subject hosts[2];
    bool any = false;
    subject_open(run, &hosts[0]);
    attach_second(run, hosts);
    ggml_backend_reg_t reg = hosts[0].table->reg;
    for (int i = 0; i < 2; ++i)
        host_counters.hosts[i] = hosts[i].host;
    for (size_t i = 0; i < reg->table->get_device_count(reg); ++i) {
        ggml_backend_dev_t device = reg->table->get_device(reg, i);
        ggml_backend_buffer_type_t buft = device->table->get_buffer_type(device);
        ggml_backend_buffer_t buffer = NULL;
        for (int j = 0; j < 2; ++j)
            atomic_store(&host_counters.n_told[j], 0);
        buft->table->alloc_buffer(buft, SIZE_MAX / 2 + 1, &buffer);
        const bool told[2] = {atomic_load(&host_counters.n_told[0]) > 0,
                              atomic_load(&host_counters.n_told[1]) > 0};
        any = any || told[0] || told[1];
        CHECK_THAT(run, told[0] == told[1], "%s: only the %s of two hosts is told of a failure",
                   label(device), told[0] ? "first" : "second");
    }
    if (!any) check_skip(run, "no device tells why there is no such buffer");
}

// What a thread of the application does that ends after the plugin has gone.
static void *load_use_and_unload(void *argument) {
    struct subject subject;
    subject_open(argument, &subject);
    exercise(&subject);
    subject_shutdown(&subject);
    subject_unmap(&subject);
    return NULL;
}

// Loads, uses and unloads in threads that end after the unmapping: a destructor of a thread's
// variables would then run code that is gone.
void life_reload(struct check_run *run) {
    struct subject subject;
    pthread_t thread;
    if (stays_mapped(run)) check_skip(run, "its flag NO_UNLOAD is set");
    subject_open(run, &subject);
    subject_shutdown(&subject);
    subject_unmap(&subject);
    for (int i = 0; i < 2; ++i) {
        CHECK_THAT(run, pthread_create(&thread, NULL, load_use_and_unload, run) == 0, "no thread");
        pthread_join(thread, NULL);
    }
}

// --- without shutdown, and in a child ------------------------------------------------------------

// Waits for the child; a signal or an exit status fails the check.
static void expect_ended(const struct check_run *run, pid_t child, const char *what) {
    int status = 0;
    CHECK_THAT(run, child > 0 && waitpid(child, &status, 0) == child, "no process");
    CHECK_THAT(run, !WIFSIGNALED(status), "%s: signal %d ends it", what, WTERMSIG(status));
    CHECK_THAT(run, WEXITSTATUS(status) == 0, "%s: its exit status is %d", what,
               WEXITSTATUS(status));
}

// The check's own process maps nothing, so that only the child has what the plugin leaves to
// exit().
void life_exit(struct check_run *run) {
    check_step(run, "a process that ends without shutdown");
    const pid_t child = fork();
    if (child == 0) {
        struct subject subject;
        if (!subject_map(&subject, run->path) || subject_init(&subject) != GGML_HOST_OK) _exit(0);
        exercise(&subject);
        exit(0);
    }
    expect_ended(run, child, "a process that ends without shutdown");
}

// The child of a fork has no threads but this one: it may find locks taken and threads missing,
// and must not crash or hang.
void life_fork(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    use_streams(&devices);
    check_step(run, "the child of a fork");
    const pid_t child = fork();
    if (child == 0) {
        exercise(&devices.subject);
        _exit(0);
    }
    expect_ended(run, child, "the child of a fork");
}

// Compares after the second and the last of N_RELOADS loads: what grows with each load is a
// leak, what the first one leaves may be the loader's. argument: enum state_kind that may not
// grow.
void life_reload_often(struct check_run *run) {
    const enum state_kind kind = (enum state_kind)run->check->argument;
    struct subject subject;
    const char *before = NULL;
    if (stays_mapped(run)) check_skip(run, "its flag NO_UNLOAD is set");
    for (int i = 0; i < N_RELOADS; ++i) {
        subject_open(run, &subject);
        subject_shutdown(&subject);
        subject_unmap(&subject);
        if (i == 1) before = state(run, kind);
    }
    compare(run, before, state(run, kind));
}

// --- poor hosts ----------------------------------------------------------------------------------

// Whether the entry got along with the n-th allocation failing. Sets *out_reached if there was one.
static int32_t init_with_fault(struct subject *subject, long n, bool *out_reached) {
    atomic_store(&host_counters.n_allocs, 0);
    atomic_store(&host_counters.n_errors, 0);
    atomic_store(&host_counters.fail_at, n);
    const int32_t status = subject_init(subject);
    *out_reached = atomic_load(&host_counters.n_allocs) >= n;
    atomic_store(&host_counters.fail_at, 0);
    return status;
}

// Lets the n-th allocation of the entry fail, for n = 1, 2, ... until none is left to fail: no
// table with a failure, nothing left allocated, and with memory again it starts.
void life_out_of_memory(struct check_run *run) {
    struct subject subject;
    bool reached = true;
    map(run, &subject);
    for (long n = 1; n <= MAX_FAULTS && reached; ++n) {
        const int32_t status = init_with_fault(&subject, n, &reached);
        if (status == GGML_HOST_OK) {
            subject_shutdown(&subject);
        } else {
            CHECK_THAT(run, !subject.table, "a table with status %d (%s)", status,
                       status_text(status));
        }
        const long left = atomic_load(&host_counters.live_blocks);
        CHECK_THAT(run, left == 0, "%ld blocks are left after allocation %ld failed", left, n);
    }
    const int32_t status = subject_init(&subject);
    if (subject_found_no_device(status)) return;
    CHECK_THAT(run, status == GGML_HOST_OK, "with memory again: status %d (%s): %s", status,
               status_text(status), host_counters.last_error);
}

// As above, but asks for a message with each failure.
void life_failure_told(struct check_run *run) {
    struct subject subject;
    bool reached = true;
    map(run, &subject);
    for (long n = 1; n <= MAX_FAULTS && reached; ++n) {
        const int32_t status = init_with_fault(&subject, n, &reached);
        CHECK_THAT(run, status == GGML_HOST_OK || atomic_load(&host_counters.n_errors) > 0,
                   "status %d (%s) without a message", status, status_text(status));
        subject_shutdown(&subject);
    }
}

// Starts and uses the plugin with a host of other size or version; `what` names it in messages.
static void use_with(const struct check_run *run, struct ggml_host_table *host, const char *what) {
    struct subject subject;
    CHECK_THAT(run, host, "no memory");
    map(run, &subject);
    subject.host = host;
    const int32_t status = subject_init(&subject);
    if (subject_found_no_device(status)) check_skip(run, "no device on this machine");
    CHECK_THAT(run, status == GGML_HOST_OK, "%s gets status %d (%s)", what, status,
               status_text(status));
    exercise(&subject);
    subject_shutdown(&subject);
}

static uint16_t lower(uint16_t a, uint16_t b) {
    return a < b ? a : b;
}

// The oldest that the plugin says it works with, and nothing more than its size says.
void life_small_host(struct check_run *run) {
    struct ggml_plugin_note note = {.contract_min_minor = 0};
    elf_view_read_note(run, &note);
    const uint16_t minor = lower(note.contract_min_minor, GGML_CONTRACT_MINOR);
    host_counters.small = true;
    use_with(run, subject_new_host(offsetof(struct ggml_host_table, reserved), minor),
             "the oldest host that the note names");
}

void life_later_host(struct check_run *run) {
    const size_t size = sizeof(struct ggml_host_table) + 16 * sizeof(void (*)(void));
    use_with(run, subject_new_host(size, GGML_CONTRACT_MINOR + 7), "a host of a later minor");
}

// The host's table counts structs whose size member was not set before they were given to be
// filled.
void life_sizes_told(struct check_run *run) {
    struct subject subject;
    subject_open(run, &subject);
    exercise(&subject);
    CHECK_THAT(run, atomic_load(&host_counters.n_unsized) == 0,
               "a struct was given to be filled without its size");
}

// Extensions of the host are optional: without any the plugin must start or refuse, not crash.
void life_no_extensions(struct check_run *run) {
    struct subject subject;
    map(run, &subject);
    host_counters.no_extensions = true;
    if (subject_init(&subject) != GGML_HOST_OK || !subject.table) return;
    ggml_backend_reg_t reg = subject.table->reg;
    for (size_t i = 0; i < reg->table->get_device_count(reg); ++i) {
        ggml_backend_dev_t device = reg->table->get_device(reg, i);
        device->table->get_buffer_type(device);
    }
    subject_shutdown(&subject);
}

void life_shutdown(struct check_run *run) {
    struct subject subject;

    subject_open(run, &subject);
    subject_shutdown(&subject);
}
