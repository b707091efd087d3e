// SPDX-License-Identifier: MIT
// Self-tests in a process of their own, so that what a device does to it is a line in the list.
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "print.h"

const bool selftest_is_apart = true;

enum {
    DEADLINE_SECONDS = 120,
    EXIT_NOT_FOUND = 3,
    EXIT_NOT_STARTED = 127,
};

static bool write_all(int fd, const void *data, size_t size) {
    const char *bytes = data;
    while (size > 0) {
        const ssize_t n = write(fd, bytes, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        bytes += n;
        size -= (size_t)n;
    }
    return true;
}

static bool read_all(int fd, void *data, size_t size) {
    char *bytes = data;
    while (size > 0) {
        const ssize_t n = read(fd, bytes, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        bytes += n;
        size -= (size_t)n;
    }
    return true;
}

// --- the child

static void send_result(void *context, const struct selftest_result *result) {
    write_all(*(const int *)context, result, sizeof(*result));
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

int selftest_child_main(int argc, char **argv) {
    if (argc != 5) return EXIT_NOT_FOUND;
    int fd = atoi(argv[2]);
    alarm(DEADLINE_SECONDS);
    ggml_backend_dev_t device = find_device(argv[3], strtoul(argv[4], NULL, 10));
    if (!device) {
        fprintf(stderr, "ggml-devices: %s: %s\n", argv[3], ggml_last_error());
        return EXIT_NOT_FOUND;
    }
    struct selftest_result results[SELFTEST_WORKLOADS];
    selftest_run(device, results, send_result, &fd);
    fflush(stdout);
    _exit(0); // what a driver does at the end of a process is not its devices' test
}

// --- the parent

static pid_t start(const struct device_entry *device, int *out_fd) {
    int ends[2];
    char fd[16], index[24];
    if (pipe(ends) != 0) return -1;
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        snprintf(fd, sizeof(fd), "%d", ends[1]);
        snprintf(index, sizeof(index), "%zu", device->index);
        dup2(STDERR_FILENO, STDOUT_FILENO); // what a plugin prints is no result
        execl("/proc/self/exe", "ggml-devices", SELFTEST_CHILD, fd, device->plugin_path, index,
              (char *)NULL);
        _exit(EXIT_NOT_STARTED);
    }
    close(ends[1]);
    *out_fd = ends[0];
    if (child < 0) close(ends[0]);
    return child;
}

static void explain(int status, char *out_text, size_t size) {
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
    } else {
        snprintf(out_text, size, "the process ended with exit status %d", WEXITSTATUS(status));
    }
}

bool selftest_run_apart(const struct device_entry *device,
                        struct selftest_result out_results[SELFTEST_WORKLOADS]) {
    int fd = -1, status = 0, n = 0;
    const pid_t child = start(device, &fd);
    if (child < 0) return false;
    while (n < SELFTEST_WORKLOADS && read_all(fd, &out_results[n], sizeof(out_results[n])))
        ++n;
    close(fd);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    for (int i = 0; i < SELFTEST_WORKLOADS; ++i)
        out_results[i].workload = selftest_workload(i);
    for (int i = n; i < SELFTEST_WORKLOADS; ++i) {
        out_results[i] = (struct selftest_result){
            .workload = selftest_workload(i),
            .verdict = i == n ? SELFTEST_FAILED : SELFTEST_NOT_RUN,
        };
        if (i == n) explain(status, out_results[i].message, sizeof(out_results[i].message));
    }
    return true;
}
