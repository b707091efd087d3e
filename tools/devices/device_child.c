// SPDX-License-Identifier: MIT
// Devices in a process of their own, so that what one does to it is a line in the list: self-tests,
// and what it supports.
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "print.h"
#include "scratch_file.h"

const bool has_device_children = true;

enum {
    DEADLINE_SECONDS = 120,
    TICK_MS = 50,
    MOST_BYTES = 1 << 20, // that a child may say
    EXIT_NOT_FOUND = 3,
    EXIT_NOT_STARTED = 127,
};

// A result as it is sent. The plugin shares the child's descriptors and memory, so that anything
// may be in the pipe: the key tells what this program wrote.
struct message {
    uint64_t key;
    struct selftest_result result;
};

struct sink {
    FILE *out;
    uint64_t key;
};

// --- the child

// Sent at once: the next test may end the process.
static void send_result(void *context, const struct selftest_result *result) {
    const struct sink *sink = context;
    struct message message;
    memset(&message, 0, sizeof(message));
    message.key = sink->key;
    message.result = *result;
    fwrite(&message, sizeof(message), 1, sink->out);
    fflush(sink->out);
}

static ggml_backend_dev_t find_device(const char *plugin_path, size_t index) {
    if (plugin_path[0] == '/' && ggml_plugin_load(plugin_path, NULL) != GGML_HOST_OK) return NULL;
    for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
        struct ggml_device_info info = {.size = sizeof(info)};
        ggml_backend_dev_t device = ggml_backend_dev_get(i);
        if (ggml_backend_dev_info(device, &info) != GGML_HOST_OK) continue;
        if (strcmp(info.plugin_path, plugin_path) == 0 && index-- == 0) return device;
    }
    return NULL;
}

static void do_job(enum child_job job, ggml_backend_dev_t device, struct sink *sink) {
    struct selftest_result results[SELFTEST_WORKLOADS];
    if (job == CHILD_TESTS)
        selftest_run(device, results, send_result, sink);
    else
        tell_operations(device, sink->out);
}

// Arguments: job, pipe, plugin, number of the device among its plugin's, key.
int device_child_main(int argc, char **argv) {
    if (argc != 7) return EXIT_NOT_FOUND;
    struct sink sink = {fdopen(atoi(argv[3]), "w"), strtoull(argv[6], NULL, 16)};
    ggml_backend_dev_t device = find_device(argv[4], strtoul(argv[5], NULL, 10));
    if (!device) {
        fprintf(stderr, "ggml-devices: %s: %s\n", argv[4], ggml_last_error());
        return EXIT_NOT_FOUND;
    }
    if (!sink.out) return EXIT_NOT_STARTED;
    do_job((enum child_job)atoi(argv[2]), device, &sink);
    fclose(sink.out);
    fflush(stdout);
    _exit(0); // what a driver does at the end of a process is not its devices' test
}

// --- the parent

// In the child: a session of its own, so that the parent can end it with what it starts; a parent
// that is killed can't, so a plugin that hangs goes with it.
_Noreturn static void begin_child(const struct device_entry *device, enum child_job job, int out,
                                  uint64_t key, pid_t parent) {
    char fd[16], index[24], what[16], secret[24];
    setsid();
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (getppid() != parent) _exit(EXIT_NOT_STARTED);
    snprintf(fd, sizeof(fd), "%d", out);
    snprintf(index, sizeof(index), "%zu", device->index);
    snprintf(what, sizeof(what), "%d", (int)job);
    snprintf(secret, sizeof(secret), "%llx", (unsigned long long)key);
    dup2(STDERR_FILENO, STDOUT_FILENO); // what a plugin prints is no result
    execl("/proc/self/exe", "ggml-devices", DEVICE_CHILD, what, fd, device->plugin_path, index,
          secret, (char *)NULL);
    _exit(EXIT_NOT_STARTED);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

// Whether the process has ended; it stays to be collected.
static bool has_ended(pid_t child) {
    siginfo_t info = {.si_pid = 0};
    const int error = waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT);
    return error == 0 ? info.si_pid != 0 : errno != EINTR;
}

// Takes what the child says until it ends; false if it is late. The end of the pipe does not tell:
// what a plugin starts may have it too, and outlive the child.
static bool collect(pid_t child, int from, FILE *to) {
    char bytes[4096];
    size_t total = 0;
    for (const double start = now(); now() - start < DEADLINE_SECONDS;) {
        struct pollfd polled = {.fd = total < MOST_BYTES ? from : -1, .events = POLLIN};
        const bool ended = has_ended(child); // before the look: what comes later is not its output
        const int ready = poll(&polled, 1, ended ? 0 : TICK_MS);
        if (ready == 0 && ended) return true;
        const ssize_t n = ready > 0 ? read(from, bytes, sizeof(bytes)) : 0;
        if (n > 0) total += fwrite(bytes, 1, (size_t)n, to);
        if (ready > 0 && n == 0) total = MOST_BYTES;
    }
    return false;
}

static void explain(int status, bool late, char *out_text, size_t size) {
    out_text[0] = '\0';
    if (late) {
        snprintf(out_text, size, "did not end within %d s", DEADLINE_SECONDS);
    } else if (WIFSIGNALED(status)) {
        snprintf(out_text, size, "the process ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    } else if (WEXITSTATUS(status) == EXIT_NOT_STARTED) {
        snprintf(out_text, size,
                 "no process for it: this program is started again through /proc/self/exe, which "
                 "is missing here (is /proc mounted?)");
    } else if (WEXITSTATUS(status) == EXIT_NOT_FOUND) {
        snprintf(out_text, size, "the process that was to test it did not find the device");
    } else if (WEXITSTATUS(status) != 0) {
        snprintf(out_text, size, "the process ended with exit status %d", WEXITSTATUS(status));
    }
}

// Ends what the child left in its session, and says how it ended itself. Where the system collects
// children by itself, their numbers may be others' by now.
static void end_child(pid_t child, bool late, char *out_text, size_t size) {
    int status = 0;
    siginfo_t info;
    if (waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0) {
        kill(-child, SIGKILL);
        kill(child, SIGKILL);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
    }
    explain(status, late, out_text, size);
}

// Why there is no process; errno says it.
static void explain_start(struct device_child *out_child) {
    snprintf(out_child->how, sizeof(out_child->how), "no process for it: %s", strerror(errno));
}

bool device_child_run(const struct device_entry *device, enum child_job job,
                      struct device_child *out_child) {
    int ends[2];
    uint64_t key = (uint64_t)getpid();
    const pid_t parent = getpid();
    FILE *told = scratch_file();
    if (!told || pipe(ends) != 0) {
        explain_start(out_child);
        if (told) fclose(told);
        return false;
    }
    const int unknown = getentropy(&key, sizeof(key)); // the number above serves too
    (void)unknown;
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        begin_child(device, job, ends[1], key, parent);
    }
    close(ends[1]);
    if (child > 0) {
        const bool in_time = collect(child, ends[0], told);
        end_child(child, !in_time, out_child->how, sizeof(out_child->how));
        rewind(told);
        out_child->told = told;
        out_child->key = key;
    } else {
        explain_start(out_child);
        fclose(told);
    }
    close(ends[0]);
    return child > 0;
}

void device_child_free(struct device_child *child) {
    fclose(child->told);
}

// Whether it is what this program wrote: a process that shares its memory may have written into
// that.
static bool is_result(const struct message *message, uint64_t key) {
    const struct selftest_result *result = &message->result;
    const bool is_known = message->key == key && result->verdict <= SELFTEST_UNSUPPORTED &&
                          memchr(result->message, '\0', sizeof(result->message)) != NULL;
    return is_known &&
           (result->verdict != SELFTEST_PASSED ||
            (isfinite(result->milliseconds) && isfinite(result->error) && isfinite(result->bound)));
}

bool selftest_run_apart(const struct device_entry *device,
                        struct selftest_result out_results[SELFTEST_WORKLOADS]) {
    struct device_child child;
    struct message message;
    int n = 0;
    bool good = true;
    const bool has_run = device_child_run(device, CHILD_TESTS, &child);
    while (has_run && good && n < SELFTEST_WORKLOADS &&
           fread(&message, sizeof(message), 1, child.told) == 1) {
        good = is_result(&message, child.key);
        if (good) out_results[n++] = message.result;
    }
    if (has_run) device_child_free(&child);
    if (!good)
        snprintf(child.how, sizeof(child.how), "%s",
                 "something wrote to descriptors that are not its own");
    else if (!child.how[0])
        snprintf(child.how, sizeof(child.how), "%s", "the process ended with exit status 0");
    for (int i = 0; i < n; ++i)
        out_results[i].workload = selftest_workload(i);
    for (int i = n; i < SELFTEST_WORKLOADS; ++i) {
        out_results[i] = (struct selftest_result){
            .workload = selftest_workload(i),
            .verdict = i == n ? SELFTEST_FAILED : SELFTEST_NOT_RUN,
        };
        if (i == n)
            snprintf(out_results[i].message, sizeof(out_results[i].message), "%s", child.how);
    }
    return true;
}
