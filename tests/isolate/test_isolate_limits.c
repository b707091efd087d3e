// SPDX-License-Identifier: MIT
// Devices that another process computes, in applications with little: limited sizes of files
// and memory, signals that come all the time, no standard error output, no time for a process that
// doesn't end.
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ggml-impl.h"
#include "isolated.h"

enum { MIB = 1 << 20 };

static ggml_backend_dev_t cpu(void) {
    return ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
}

// Errors of messages, 0: none. In the place of the C library's calls, also for the library, which
// is linked in.
static int send_error, recv_error;

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    if (send_error == 0) return syscall(SYS_sendmsg, fd, message, flags);
    errno = send_error;
    return -1;
}

ssize_t recv(int fd, void *bytes, size_t size, int flags) {
    if (recv_error == 0) return syscall(SYS_recvfrom, fd, bytes, size, flags, NULL, NULL);
    errno = recv_error;
    return -1;
}

// In a process of its own, whose limits may be changed: `run` returns the line where it failed, 0
// if it didn't.
static void expect_of_child(int (*run)(void)) {
    int left = -1;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) _exit(run());
    assert_int_equal(waitpid(child, &left, 0), child);
    if (WIFSIGNALED(left)) fail_msg("ended by signal %d", WTERMSIG(left));
    if (WEXITSTATUS(left) != 0) fail_msg("failed at line %d (modulo 256)", WEXITSTATUS(left));
}

#define REQUIRE(condition)                                                                         \
    if (!(condition)) return __LINE__ % 256 ? __LINE__ % 256 : 1

static bool can_allocate(ggml_backend_dev_t device, size_t size) {
    ggml_clear_error();
    ggml_backend_buffer_t buffer =
        ggml_backend_buft_alloc_buffer(ggml_backend_dev_buffer_type(device), size);
    ggml_backend_buffer_free(buffer);
    return buffer != NULL;
}

static ggml_backend_dev_t isolate_cpu(void) {
    ggml_backend_dev_t isolated = NULL;
    ggml_host_isolate(cpu(), NULL, &isolated);
    return isolated;
}

// Memory that is shared counts as a file, and larger ones end a process by a signal.
static int allocate_with_limited_files(void) {
    const struct rlimit limit = {MIB, RLIM_INFINITY};
    ggml_backend_dev_t isolated = isolate_cpu();
    REQUIRE(isolated);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    REQUIRE(!can_allocate(isolated, 2 * MIB));
    REQUIRE(ggml_last_status() == GGML_HOST_OUT_OF_MEMORY);
    REQUIRE(strstr(ggml_last_error(), strerror(EFBIG)));
    REQUIRE(can_allocate(isolated, MIB));
    REQUIRE(ggml_host_isolated_free(isolated) == GGML_HOST_OK);
    return 0;
}

static void test_limited_sizes_of_files(void **state) {
    (void)state;
    expect_of_child(allocate_with_limited_files);
}

static bool put(const char *folder, const char *name, const char *text) {
    char path[64];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    return file && fputs(text, file) >= 0 && fclose(file) == 0;
}

// The root of version 2, where it is mounted: that of all groups whose own files are not there.
static bool put_group(const char *folder) {
    return put(folder, "memory.max", "8388608\n") && put(folder, "memory.current", "7340032\n") &&
           put(folder, "memory.stat", "inactive_file 1048576\nactive_file 0\n");
}

// Instead of the system's control groups, for this process and those that it starts. False where
// that takes rights that the process has not.
static bool see_limited_memory(void) {
    static const char mount_point[] = "/sys/fs/cgroup", second[] = "/sys/fs/cgroup/unified";
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", mount_point, "tmpfs", 0, NULL) == 0 && mkdir(second, S_IRWXU) == 0 &&
           put_group(mount_point) && put_group(second);
}

// A control group that runs out of memory ends processes of the application's container.
static int allocate_in_limited_group(void) {
    ggml_backend_dev_t isolated = isolate_cpu();
    REQUIRE(isolated);
    if (see_limited_memory()) {
        REQUIRE(!can_allocate(isolated, 3 * MIB));
        REQUIRE(ggml_last_status() == GGML_HOST_OUT_OF_MEMORY);
        REQUIRE(strstr(ggml_last_error(), "control group leaves 2097152 bytes"));
        REQUIRE(can_allocate(isolated, 2 * MIB));
    } else {
        print_message("# left out: no file system can be mounted for the test alone\n");
        fflush(stdout);
    }
    REQUIRE(ggml_host_isolated_free(isolated) == GGML_HOST_OK);
    return 0;
}

static void test_limited_memory_of_a_control_group(void **state) {
    (void)state;
    expect_of_child(allocate_in_limited_group);
}

// The lowest number that is free.
static int next_descriptor(void) {
    const int fd = dup(STDOUT_FILENO);
    if (fd >= 0) close(fd);
    return fd;
}

static bool limit_descriptors(int count) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
    limit.rlim_cur = (rlim_t)count;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

// Neither the helper nor the call is what is wrong, whatever part of starting lacks a descriptor.
static int isolate_with_few_descriptors(void) {
    ggml_backend_dev_t isolated = isolate_cpu();
    REQUIRE(isolated);
    REQUIRE(ggml_host_isolated_free(isolated) == GGML_HOST_OK);
    const int first = next_descriptor();
    for (int more = 0; more < 24; ++more) {
        REQUIRE(limit_descriptors(first + more));
        isolated = isolate_cpu();
        if (!isolated && !strstr(ggml_last_error(), strerror(EMFILE))) {
            print_message("# %d descriptors: %s\n", more, ggml_last_error());
            fflush(stdout);
            return more + 1;
        }
        if (isolated) REQUIRE(ggml_host_isolated_free(isolated) == GGML_HOST_OK);
    }
    return 0;
}

static void test_few_descriptors(void **state) {
    (void)state;
    expect_of_child(isolate_with_few_descriptors);
}

// Memory comes with a descriptor.
static int share_with_a_process_without_descriptors(void) {
    const struct rlimit limit = {4, 4};
    ggml_backend_dev_t isolated = isolate_cpu();
    REQUIRE(isolated);
    REQUIRE(prlimit((pid_t)ggml_host_isolated_process(isolated), RLIMIT_NOFILE, &limit, NULL) == 0);
    REQUIRE(!can_allocate(isolated, MIB));
    REQUIRE(ggml_last_status() == GGML_HOST_OUT_OF_MEMORY);
    REQUIRE(strstr(ggml_last_error(), strerror(EMFILE)));
    REQUIRE(!ggml_host_isolated_lost(isolated));
    REQUIRE(ggml_host_isolated_free(isolated) == GGML_HOST_OK);
    return 0;
}

static void test_a_process_without_descriptors(void **state) {
    (void)state;
    expect_of_child(share_with_a_process_without_descriptors);
}

// To ask for the limits takes a descriptor too.
static int allocate_in_limited_group_with_one_descriptor(void) {
    ggml_backend_dev_t isolated = isolate_cpu();
    REQUIRE(isolated);
    if (!see_limited_memory()) return 0; // left out, as above
    REQUIRE(limit_descriptors(next_descriptor() + 1));
    REQUIRE(!can_allocate(isolated, 3 * MIB));
    REQUIRE(strstr(ggml_last_error(), "control group leaves"));
    REQUIRE(can_allocate(isolated, 2 * MIB));
    REQUIRE(ggml_host_isolated_free(isolated) == GGML_HOST_OK);
    return 0;
}

static void test_limited_memory_with_one_descriptor(void **state) {
    (void)state;
    expect_of_child(allocate_in_limited_group_with_one_descriptor);
}

static int lose_by_an_error(int *error, int number) {
    ggml_backend_dev_t isolated = isolate_cpu();
    REQUIRE(isolated);
    *error = number;
    REQUIRE(!ggml_backend_dev_init(isolated, NULL));
    *error = 0;
    REQUIRE(ggml_last_status() == GGML_HOST_DEVICE_LOST);
    REQUIRE(strstr(ggml_last_error(), strerror(number)));
    REQUIRE(!strstr(ggml_last_error(), "closed its connection"));
    REQUIRE(ggml_host_isolated_free(isolated) == GGML_HOST_OK);
    return 0;
}

// The system may refuse a message: the process has not hung up then.
static int lose_by_errors_of_the_system(void) {
    static const int errors[] = {ENOBUFS, ENOMEM, EMSGSIZE, ETOOMANYREFS};
    int line = 0;
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]) && line == 0; ++i)
        line = lose_by_an_error(&send_error, errors[i]);
    return line != 0 ? line : lose_by_an_error(&recv_error, ENOMEM);
}

static void test_errors_of_the_system_are_named(void **state) {
    (void)state;
    expect_of_child(lose_by_errors_of_the_system);
}

static void do_nothing(int number) {
    (void)number;
}

// As a profiler sends them. They end the call that takes pages on Linux before 6.11.
static int allocate_while_signals_come(void) {
    const struct sigaction action = {.sa_handler = do_nothing, .sa_flags = SA_RESTART};
    const struct itimerval often = {{.tv_usec = 500}, {.tv_usec = 500}};
    ggml_backend_dev_t isolated = isolate_cpu();
    REQUIRE(isolated);
    REQUIRE(sigaction(SIGALRM, &action, NULL) == 0);
    REQUIRE(setitimer(ITIMER_REAL, &often, NULL) == 0);
    for (int i = 0; i < 3; ++i)
        REQUIRE(can_allocate(isolated, 64 * MIB));
    REQUIRE(ggml_host_isolated_free(isolated) == GGML_HOST_OK);
    return 0;
}

static void test_signals_while_memory_is_taken(void **state) {
    (void)state;
    expect_of_child(allocate_while_signals_come);
}

// What the driver logs must not get into a file that it opens.
static int isolate_without_standard_error(void) {
    char path[64], target[PATH_MAX] = "";
    close(STDERR_FILENO);
    ggml_backend_dev_t isolated = isolate_cpu();
    REQUIRE(isolated);
    snprintf(path, sizeof(path), "/proc/%ld/fd/2", (long)ggml_host_isolated_process(isolated));
    REQUIRE(readlink(path, target, sizeof(target) - 1) > 0);
    REQUIRE(strcmp(target, "/dev/null") == 0);
    REQUIRE(ggml_host_isolated_free(isolated) == GGML_HOST_OK);
    return 0;
}

static void test_no_standard_error(void **state) {
    (void)state;
    expect_of_child(isolate_without_standard_error);
}

// Whether the process ignores the signal.
static bool ignores(int64_t process, int number) {
    char path[64], line[256];
    unsigned long long mask = 0;
    snprintf(path, sizeof(path), "/proc/%ld/status", (long)process);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "SigIgn: %llx", &mask) == 1) break;
    if (file) fclose(file);
    return mask >> (number - 1) & 1;
}

// A warning of the driver that nobody reads any more is no reason to lose its device.
static void test_nobody_reads_standard_error(void **state) {
    (void)state;
    ggml_backend_dev_t isolated = isolate(cpu(), 0);
    assert_true(ignores(ggml_host_isolated_process(isolated), SIGPIPE));
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
}

// Not counted in pauses, each of which takes longer than it should.
static void test_a_process_that_does_not_end(void **state) {
    const struct ggml_isolate_options options = {.size = sizeof(options), .helper = FAULTY_HELPER};
    ggml_backend_dev_t isolated;
    (void)state;
    setenv("GGML_TEST_ISOLATE", "stay", 1);
    assert_int_equal(ggml_host_isolate(cpu(), &options, &isolated), GGML_HOST_OK);
    unsetenv("GGML_TEST_ISOLATE");
    const pid_t process = (pid_t)ggml_host_isolated_process(isolated);
    const int64_t start = ggml_time_us();
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
    assert_true(ggml_time_us() - start < 3500000); // two seconds, and what a busy machine adds
    assert_int_equal(kill(process, 0), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limited_sizes_of_files),
        cmocka_unit_test(test_limited_memory_of_a_control_group),
        cmocka_unit_test(test_few_descriptors),
        cmocka_unit_test(test_a_process_without_descriptors),
        cmocka_unit_test(test_limited_memory_with_one_descriptor),
        cmocka_unit_test(test_errors_of_the_system_are_named),
        cmocka_unit_test(test_signals_while_memory_is_taken),
        cmocka_unit_test(test_no_standard_error),
        cmocka_unit_test(test_nobody_reads_standard_error),
        cmocka_unit_test(test_a_process_that_does_not_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
