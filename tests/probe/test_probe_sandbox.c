// SPDX-License-Identifier: MIT
// What a plugin can do in a probe, with a plugin that tries: see trespass() in plugin.c.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/sanitizer.h"
#include "plugin/probe/helper/probe_sandbox.h"
#include "support/plugin_dir.h"

enum { TEXT_SIZE = 512, PLAIN_USER = 54321, LANDLOCK_CREATE_RULESET = 444, OLD_KERNEL = 1 << 30 };

static struct plugin_dir dir;

// What came out of one probe.
struct outcome {
    char did[TEXT_SIZE];     // of the plugin, "" if it was refused
    char missing[TEXT_SIZE]; // ggml_probe_report_not_sandboxed()
    bool written;            // a file of the user's was changed or made
};

static bool did(const struct outcome *outcome, const char *what) {
    char word[64];
    snprintf(word, sizeof(word), " %s ", what);
    return strstr(outcome->did, word) != NULL;
}

// Makes this process's kernel one that has neither, for it and what it starts.
static bool age_kernel(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, LANDLOCK_CREATE_RULESET, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_SECCOMP, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

// --- in a process of its own ---------------------------------------------------------------------

static void take(ggml_probe_report_t report, struct outcome *out_outcome) {
    snprintf(out_outcome->missing, TEXT_SIZE, "%s", ggml_probe_report_not_sandboxed(report));
    const struct ggml_probe_device *device = ggml_probe_report_device_get(report, 0);
    if (!device || strncmp(device->props.description, "did:", 4) != 0) return;
    snprintf(out_outcome->did, TEXT_SIZE, "%s ", device->props.description);
}

static bool exists(const char *folder, const char *name) {
    char path[700];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static bool is_untouched(const char *home) {
    char path[700];
    struct stat info;
    snprintf(path, sizeof(path), "%s/precious", home);
    return stat(path, &info) == 0 && info.st_size == 9 && (info.st_mode & 07777) == 0600 &&
           !exists(home, "written") && !exists(home, "work/written");
}

// A home that belongs to whoever probes, and the working directory in it.
static bool move_in(const char *home) {
    char path[700];
    snprintf(path, sizeof(path), "%s/precious", home);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, "precious\n", 9) != 9 || fchmod(fd, 0600) != 0) return false;
    close(fd);
    snprintf(path, sizeof(path), "%s/work", home);
    return mkdir(path, 0700) == 0 && chdir(path) == 0 && setenv("HOME", home, 1) == 0;
}

static int probe_as(uid_t user, uint32_t flags, const char *home, struct outcome *out_outcome) {
    const struct ggml_probe_options options = {
        .size = sizeof(options),
        .dir = dir.path,
        .helper = HELPER,
        .flags = GGML_PROBE_NO_CACHE | GGML_PROBE_ISOLATED_ONLY | (flags & ~OLD_KERNEL),
    };
    ggml_probe_report_t report = NULL;
    if (user != getuid() && (setresgid(user, user, user) != 0 || setresuid(user, user, user) != 0))
        return 77;
    if (access(HELPER, X_OK) != 0 || access(dir.path, X_OK) != 0) return 77;
    if ((flags & OLD_KERNEL) && !age_kernel()) return 77;
    if (!move_in(home)) return 2;
    if (ggml_plugin_probe(&options, &report) != GGML_HOST_OK) return 3;
    take(report, out_outcome);
    out_outcome->written = !is_untouched(home);
    ggml_probe_report_free(report);
    return 0;
}

// false: it can't be tried here.
static bool try(uid_t user, uint32_t flags, struct outcome *out_outcome) {
    static int n_homes;
    char home[600];
    int ends[2], status = 0;
    struct outcome outcome = {"", "", false};
    snprintf(home, sizeof(home), "%s/home%d", dir.path, n_homes++);
    assert_int_equal(mkdir(home, 0700), 0);
    if (user != getuid()) assert_int_equal(chown(home, user, user), 0);
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const int code = probe_as(user, flags, home, &outcome);
        const ssize_t n = write(ends[1], &outcome, sizeof(outcome));
        _exit(n == (ssize_t)sizeof(outcome) ? code : 4);
    }
    assert_int_equal(read(ends[0], out_outcome, sizeof(*out_outcome)), sizeof(*out_outcome));
    assert_int_equal(waitpid(child, &status, 0), child);
    close(ends[0]);
    close(ends[1]);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) return false;
    print_message("# %s; missing: %s\n", out_outcome->did, out_outcome->missing);
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_string_not_equal(out_outcome->did, "");
    return true;
}

// --- tests ---------------------------------------------------------------------------------------

static int open_dir(void **state) {
    (void)state;
    plugin_dir_open(&dir);
    assert_int_equal(chmod(dir.path, 0755), 0);
    plugin_dir_add(&dir, PLUGINS "/ggml-trespass.so", "ggml-trespass.so");
    assert_int_equal(chmod(plugin_dir_path(&dir, "ggml-trespass.so"), 0755), 0);
    return 0;
}

static int close_dir(void **state) {
    (void)state;
    plugin_dir_close(&dir);
    return 0;
}

// Version of Landlock here; 0: none.
static long landlock(void) {
    const long version = syscall(LANDLOCK_CREATE_RULESET, NULL, 0, 1);
    return version > 0 ? version : 0;
}

// By proot, for instance, which makes other calls of some and can't be nested.
static bool is_traced(void) {
    char line[128];
    long tracer = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "TracerPid: %ld", &tracer) == 1) break;
    }
    if (file) fclose(file);
    return tracer != 0;
}

static void check_confined(const struct outcome *outcome) {
    assert_true(did(outcome, "unix") && did(outcome, "null") && did(outcome, "memfd"));
    if (!strstr(outcome->missing, "seccomp")) {
        assert_false(did(outcome, "inet") || did(outcome, "inet6"));
        if (!is_traced()) assert_false(did(outcome, "chmod"));
#if !GGML_SANITIZED
        assert_false(did(outcome, "child"));
#endif
    }
    if (!strstr(outcome->missing, "Landlock")) {
        assert_false(did(outcome, "home") || did(outcome, "cwd") || did(outcome, "parent"));
        if (landlock() >= 3) assert_false(did(outcome, "truncate") || outcome->written);
        if (landlock() >= 6) assert_false(did(outcome, "signal"));
    }
}

// What the test's own process may do: proves that the plugin tries what it says.
static void check_free(const struct outcome *outcome) {
    static const char *const deeds[] = {"inet",     "unix",  "home",  "cwd",   "null",
                                        "truncate", "chmod", "memfd", "signal"};
    for (size_t i = 0; i < sizeof(deeds) / sizeof(deeds[0]); ++i)
        assert_true(did(outcome, deeds[i]));
#if !defined(EMULATED) && !GGML_SANITIZED
    if (!is_traced()) assert_true(did(outcome, "child"));
#endif
    assert_true(outcome->written);
    assert_string_equal(outcome->missing, "");
}

static void test_this_user_confined(void **state) {
    (void)state;
    struct outcome outcome;
    assert_true(try(getuid(), 0, &outcome));
    check_confined(&outcome);
}

static void test_this_user_free(void **state) {
    (void)state;
    struct outcome outcome;
    assert_true(try(getuid(), GGML_PROBE_NO_SANDBOX, &outcome));
    check_free(&outcome);
    assert_int_equal(setenv("GGML_PROBE_SANDBOX", "0", 1), 0);
    assert_true(try(getuid(), 0, &outcome));
    unsetenv("GGML_PROBE_SANDBOX");
    check_free(&outcome);
}

static void test_a_plain_user(void **state) {
    (void)state;
    struct outcome outcome;
    if (getuid() != 0 || !try(PLAIN_USER, 0, &outcome)) return; // only root can be another
    check_confined(&outcome);
    assert_true(try(PLAIN_USER, GGML_PROBE_NO_SANDBOX, &outcome));
    check_free(&outcome);
}

static void test_what_is_missing_is_said(void **state) {
    (void)state;
    struct outcome outcome;
    assert_true(try(getuid(), 0, &outcome));
    if (landlock() == 0) assert_non_null(strstr(outcome.missing, "Landlock"));
    if (landlock() > 0) assert_null(strstr(outcome.missing, "Landlock"));
    if (!try(getuid(), OLD_KERNEL, &outcome)) return; // where no filter can stand for it
    assert_non_null(strstr(outcome.missing, "Landlock: "));
    assert_non_null(strstr(outcome.missing, "; seccomp: "));
    assert_true(did(&outcome, "inet") && did(&outcome, "home") && outcome.written);
}

// --- what has to be created first ----------------------------------------------------------------

static void make_file(const char *name, const char *text, mode_t mode) {
    char path[700];
    snprintf(path, sizeof(path), "%s/root%s", dir.path, name);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(path, mode), 0);
}

static void test_device_files_that_have_to_be_made_first(void **state) {
    (void)state;
    char root[600];
    snprintf(root, sizeof(root), "%s/root", dir.path);
    assert_false(probe_sandbox_prevents_devices(root));
    make_file("/usr/bin/nvidia-modprobe", "", 04755);
    make_file("/sys/bus/pci/devices/0000:00:02.0/vendor", "0x8086\n", 0644);
    assert_false(probe_sandbox_prevents_devices(root));
    make_file("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n", 0644);
    assert_true(probe_sandbox_prevents_devices(root));
    make_file("/dev/nvidiactl", "", 0666);
    assert_true(probe_sandbox_prevents_devices(root));
    make_file("/dev/nvidia-uvm", "", 0666);
    assert_false(probe_sandbox_prevents_devices(root));
}

// --- each call -----------------------------------------------------------------------------------

// What docs/security.md names, apart from the list that the sandbox is made of.
#define CALL(name)                                                                                 \
    { #name, SYS_##name }
static const struct call {
    const char *name;
    long number;
} forbidden[] = {
#if !GGML_SANITIZED
    CALL(ptrace),
#endif
    CALL(process_vm_readv),
    CALL(process_vm_writev),
    CALL(kcmp),
    CALL(pidfd_getfd),
#ifdef SYS_chmod
    CALL(chmod),
    CALL(chown),
    CALL(lchown),
#endif
    CALL(fchmod),
    CALL(fchmodat),
    {"fchmodat2", 452},
    CALL(fchown),
    CALL(fchownat),
    CALL(setxattr),
    CALL(lsetxattr),
    CALL(fsetxattr),
    {"setxattrat", 463},
    CALL(removexattr),
    CALL(lremovexattr),
    CALL(fremovexattr),
    {"removexattrat", 466},
    {"file_setattr", 469},
    CALL(open_by_handle_at),
    CALL(mount),
    CALL(umount2),
    CALL(pivot_root),
    CALL(chroot),
    CALL(open_tree),
    CALL(move_mount),
    CALL(fsopen),
    CALL(fsconfig),
    CALL(fsmount),
    CALL(fspick),
    {"mount_setattr", 442},
    CALL(unshare),
    CALL(setns),
    CALL(quotactl),
    {"quotactl_fd", 443},
    CALL(bpf),
    CALL(perf_event_open),
    CALL(userfaultfd),
    CALL(io_uring_setup),
    CALL(kexec_load),
    CALL(kexec_file_load),
    CALL(init_module),
    CALL(finit_module),
    CALL(delete_module),
    CALL(reboot),
    CALL(swapon),
    CALL(swapoff),
    CALL(acct),
    CALL(syslog),
    CALL(vhangup),
    CALL(sethostname),
    CALL(setdomainname),
    CALL(settimeofday),
    CALL(clock_settime),
    CALL(clock_adjtime),
    CALL(adjtimex),
#ifdef SYS_iopl
    CALL(iopl),
    CALL(ioperm),
#endif
    CALL(add_key),
    CALL(request_key),
    CALL(keyctl),
};
enum { N_FORBIDDEN = sizeof(forbidden) / sizeof(forbidden[0]) };

// errno of a call with arguments that none of them takes: it does nothing, whoever makes it.
static int error_of(long number) {
    errno = 0;
    return syscall(number, -1L, -1L, -1L, -1L, -1L, -1L) == -1 ? errno : 0;
}

static bool is_refused(const char *name, bool failed, int expected) {
    if (failed && errno == expected) return true;
    fprintf(stderr, "# %s: %s\n", name, failed ? strerror(errno) : "done");
    return false;
}

static bool calls_are_refused(void) {
    bool good = true;
    for (int i = 0; i < N_FORBIDDEN; ++i) {
        errno = error_of(forbidden[i].number);
        good = is_refused(forbidden[i].name, errno != 0, EPERM) && good;
    }
    errno = error_of(SYS_clone3);
    good = is_refused("clone3", errno != 0, ENOSYS) && good;
    const long made = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0L, 0L, 0L, 0L);
    if (made == 0) _exit(0);
    good = is_refused("clone", made == -1, EPERM) && good;
    good = is_refused("socket", socket(AF_NETLINK, SOCK_RAW, 0) == -1, EACCES) && good;
    return is_refused("ioctl", ioctl(-1, TIOCSTI, "x") == -1, EPERM) && good;
}

// Each way to change a folder.
static bool folder_is_kept(void) {
    const struct sockaddr_un place = {.sun_family = AF_UNIX, .sun_path = "socket"};
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    const bool bound = bind(fd, (const struct sockaddr *)&place, sizeof(place)) == 0;
    bool good = is_refused("bind", !bound, EACCES);
    good = is_refused("open", open("file", O_WRONLY) == -1, EACCES) && good;
    good = is_refused("create", open("new", O_WRONLY | O_CREAT, 0600) == -1, EACCES) && good;
    good = is_refused("unlink", unlink("file") == -1, EACCES) && good;
    good = is_refused("rename", rename("file", "other") == -1, EACCES) && good;
    good = is_refused("mkdir", mkdir("new", 0700) == -1, EACCES) && good;
    good = is_refused("rmdir", rmdir("folder") == -1, EACCES) && good;
    good = is_refused("symlink", symlink("file", "new") == -1, EACCES) && good;
    good = is_refused("link", link("file", "new") == -1, EACCES) && good;
    good = is_refused("mkfifo", mkfifo("new", 0600) == -1, EACCES) && good;
    good = is_refused("mknod", mknod("new", S_IFCHR | 0600, 0x103) == -1, EACCES) && good;
    return is_refused("mknod", mknod("new", S_IFBLK | 0600, 0x103) == -1, EACCES) && good;
}

static int be_confined(const char *folder) {
    char missing[TEXT_SIZE];
    setsid(); // so that there is no terminal to hang up
    if (chdir(folder) != 0 || mkdir("folder", 0700) != 0) return 2;
    const int fd = open("file", O_WRONLY | O_CREAT, 0600);
    if (fd < 0) return 2;
    probe_sandbox_enter(missing, sizeof(missing));
    bool good = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 || missing[0] != '\0';
    if (!strstr(missing, "seccomp")) good = calls_are_refused() && good;
    if (!strstr(missing, "Landlock")) good = folder_is_kept() && good;
    return good ? 0 : 1;
}

static void test_each_call_that_is_named_is_refused(void **state) {
    (void)state;
    int status = 0;
    if (is_traced()) return;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) _exit(be_confined(dir.path));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

#define WITH_DIR(function) cmocka_unit_test_setup_teardown(function, open_dir, close_dir)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DIR(test_this_user_confined),
        WITH_DIR(test_this_user_free),
        WITH_DIR(test_a_plain_user),
        WITH_DIR(test_what_is_missing_is_said),
        WITH_DIR(test_each_call_that_is_named_is_refused),
        WITH_DIR(test_device_files_that_have_to_be_made_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
