// SPDX-License-Identifier: MIT
// Devices in a process of their own, so that what one does to it is a line in the list: self-tests,
// and what it supports.
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "print.h"

const bool has_device_children = true;

enum {
    DEADLINE_SECONDS = 120,
    EXIT_NOT_FOUND = 3,
    EXIT_NOT_STARTED = 127,
};

// --- the child

// Sent at once: the next test may end the process.
static void send_result(void *context, const struct selftest_result *result) {
    FILE *out = context;
    fwrite(result, sizeof(*result), 1, out);
    fflush(out);
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

static void do_job(enum child_job job, ggml_backend_dev_t device, FILE *out) {
    struct selftest_result results[SELFTEST_WORKLOADS];
    if (job == CHILD_TESTS)
        selftest_run(device, results, send_result, out);
    else
        tell_operations(device, out);
}

// Arguments: job, pipe, plugin, number of the device among its plugin's.
int device_child_main(int argc, char **argv) {
    if (argc != 6) return EXIT_NOT_FOUND;
    FILE *out = fdopen(atoi(argv[3]), "w");
    alarm(DEADLINE_SECONDS);
    ggml_backend_dev_t device = find_device(argv[4], strtoul(argv[5], NULL, 10));
    if (!device) {
        fprintf(stderr, "ggml-devices: %s: %s\n", argv[4], ggml_last_error());
        return EXIT_NOT_FOUND;
    }
    if (!out) return EXIT_NOT_STARTED;
    do_job((enum child_job)atoi(argv[2]), device, out);
    fclose(out);
    fflush(stdout);
    _exit(0); // what a driver does at the end of a process is not its devices' test
}

// --- the parent

bool device_child_start(const struct device_entry *device, enum child_job job,
                        struct device_child *out_child) {
    int ends[2];
    char fd[16], index[24], what[16];
    if (pipe(ends) != 0) return false;
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        snprintf(fd, sizeof(fd), "%d", ends[1]);
        snprintf(index, sizeof(index), "%zu", device->index);
        snprintf(what, sizeof(what), "%d", (int)job);
        dup2(STDERR_FILENO, STDOUT_FILENO); // what a plugin prints is no result
        execl("/proc/self/exe", "ggml-devices", DEVICE_CHILD, what, fd, device->plugin_path, index,
              (char *)NULL);
        _exit(EXIT_NOT_STARTED);
    }
    close(ends[1]);
    *out_child =
        (struct device_child){.process = child, .from = child < 0 ? NULL : fdopen(ends[0], "r")};
    if (!out_child->from) close(ends[0]); // a child that is there ends by itself
    return out_child->from != NULL;
}

static void explain(int status, char *out_text, size_t size) {
    out_text[0] = '\0';
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
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

void device_child_end(struct device_child *child, char *out_text, size_t size) {
    int status = 0;
    fclose(child->from);
    while (waitpid((pid_t)child->process, &status, 0) < 0 && errno == EINTR) {
    }
    explain(status, out_text, size);
}

bool selftest_run_apart(const struct device_entry *device,
                        struct selftest_result out_results[SELFTEST_WORKLOADS]) {
    struct device_child child;
    char how[256];
    int n = 0;
    if (!device_child_start(device, CHILD_TESTS, &child)) return false;
    while (n < SELFTEST_WORKLOADS &&
           fread(&out_results[n], sizeof(out_results[n]), 1, child.from) == 1)
        ++n;
    device_child_end(&child, how, sizeof(how));
    for (int i = 0; i < SELFTEST_WORKLOADS; ++i)
        out_results[i].workload = selftest_workload(i);
    for (int i = n; i < SELFTEST_WORKLOADS; ++i) {
        out_results[i] = (struct selftest_result){
            .workload = selftest_workload(i),
            .verdict = i == n ? SELFTEST_FAILED : SELFTEST_NOT_RUN,
        };
        if (i == n)
            snprintf(out_results[i].message, sizeof(out_results[i].message), "%s",
                     how[0] ? how : "the process ended with exit status 0");
    }
    return true;
}
