// SPDX-License-Identifier: MIT
// Processes with more rights than their caller: copies of this program with the setuid or setgid
// bit, started by somebody without rights, and daemons that put their rights aside for a moment.
// The findings' numbers are those of a security review. Needs root.
#define _GNU_SOURCE
#include <endian.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/status.h"
#include "ggml-host.h"
#include "support/plugin_dir.h"

enum { STRANGER = 12345, GROUP = 54321 };
enum { CAPABLE = 1 << 20 }; // beyond the bits of a mode: a capability of the file
enum { HELD = 40, BROKEN = 41, NOT_PRIVILEGED = 42, NOT_STARTED = 43 };

static struct plugin_dir dir;
static const char *self; // this program

static int open_dir(void **state) {
    (void)state;
    plugin_dir_open(&dir);
    chmod(dir.path, 0755);
    return 0;
}

static int close_dir(void **state) {
    (void)state;
    plugin_dir_close(&dir);
    return 0;
}

// Whoever starts the file may open raw sockets. False where the file system has no such attribute.
static bool give_capability(const char *path) {
    const struct vfs_cap_data capability = {
        .magic_etc = htole32(VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE),
        .data = {{.permitted = htole32(UINT32_C(1) << CAP_NET_RAW)}},
    };
    return setxattr(path, "security.capability", &capability, XATTR_CAPS_SZ_2, 0) == 0;
}

// Runs a copy of this program with these mode bits and group as the stranger: its exit status.
static int run_as_stranger(mode_t mode, gid_t group, const char *what, const char *argument) {
    int status = 0;
    char copy[600];
    plugin_dir_add(&dir, self, "privileged-program");
    snprintf(copy, sizeof(copy), "%s", plugin_dir_path(&dir, "privileged-program"));
    assert_int_equal(chown(copy, 0, group), 0);
    assert_int_equal(chmod(copy, mode & 07777), 0);
    if (mode & CAPABLE && !give_capability(copy)) return NOT_PRIVILEGED;
    const pid_t child = fork();
    if (child == 0) {
        if (setgroups(0, NULL) == 0 && setgid(STRANGER) == 0 && setuid(STRANGER) == 0) {
            execl(copy, copy, what, argument, (char *)NULL);
        }
        _exit(NOT_STARTED);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    // Emulators can't start a copy.
    if (WEXITSTATUS(status) != NOT_PRIVILEGED && WEXITSTATUS(status) != NOT_STARTED)
        return WEXITSTATUS(status);
    print_message("# such rights have no effect here\n");
    return NOT_PRIVILEGED;
}

// What could not be tried is no success.
static void expect_status(int status, int expected) {
    if (status == NOT_PRIVILEGED) {
        print_message("# left out: what this needs is not permitted here\n");
        return;
    }
    assert_int_equal(status, expected);
}

// --- F1: hwloc's environment

static bool maps_library(const char *name) {
    char line[1024];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && !found && fgets(line, sizeof(line), maps))
        found = strstr(line, name) != NULL;
    if (maps) fclose(maps);
    return found;
}

// As the kernel has it, whatever the library thinks. File systems may ignore such bits.
static bool is_privileged(void) {
    return getauxval(AT_SECURE) != 0;
}

// HELD if the machine is what it is without the variables.
static int ask_for_topology(const char *n_threads) {
    struct ggml_host_topology facts = {.size = sizeof(facts)};
    if (!is_privileged()) return NOT_PRIVILEGED;
    if (ggml_host_get_topology(&facts) != GGML_HOST_OK) return BROKEN;
    if (maps_library("libhwloc")) return BROKEN;
    const bool same = ggml_host_default_threads() == atoi(n_threads) && facts.n_cores > 0 &&
                      facts.n_performance_cores <= facts.n_cores && facts.n_cores <= facts.n_pus;
    return same ? HELD : BROKEN;
}

static void test_f1_hwloc_reads_no_environment_in_a_privileged_process(void **state) {
    (void)state;
    char hall[600], n_threads[16];
    snprintf(n_threads, sizeof(n_threads), "%d", ggml_host_default_threads());
    snprintf(hall, sizeof(hall), "%s", plugin_dir_path(&dir, "hall"));
    assert_int_equal(mkdir(hall, 0755), 0);
    // Its constructor leaves a marker: hwloc maps whatever is called so in this directory.
    plugin_dir_add(&dir, FIXTURES "/ggml-marker.so", "hall/hwloc_marker.so");
    setenv("HWLOC_PLUGINS_PATH", hall, 1);
    setenv("HWLOC_SYNTHETIC", "pack:1 core:63 pu:1", 1);
    setenv("HWLOC_THISSYSTEM", "1", 1);
    const int status = run_as_stranger(04755, 0, "--topology", n_threads);
    unsetenv("HWLOC_PLUGINS_PATH");
    unsetenv("HWLOC_SYNTHETIC");
    unsetenv("HWLOC_THISSYSTEM");
    expect_status(status, HELD);
    assert_false(plugin_dir_was_mapped(&dir, "marker"));
}

// --- F3: whose plugins such a process loads

// HELD if the plugin is refused for its owner.
static int load_plugin(const char *path) {
    const enum ggml_host_status status = ggml_plugin_load(path, NULL);
    if (status == GGML_HOST_UNTRUSTED && strstr(ggml_last_error(), "only root")) return HELD;
    fprintf(stderr, "# status %d: %s\n", (int)status, ggml_last_error());
    return BROKEN;
}

// The stranger's plugin in the stranger's folder.
static const char *add_plugin_of_stranger(void) {
    static char path[600];
    snprintf(path, sizeof(path), "%s", plugin_dir_path(&dir, "hall"));
    assert_int_equal(mkdir(path, 0755), 0);
    assert_int_equal(chown(path, STRANGER, STRANGER), 0);
    plugin_dir_add(&dir, FIXTURES "/ggml-marker.so", "hall/ggml-marker.so");
    snprintf(path, sizeof(path), "%s", plugin_dir_path(&dir, "hall/ggml-marker.so"));
    assert_int_equal(chown(path, STRANGER, STRANGER), 0);
    assert_int_equal(chmod(path, 0644), 0);
    return path;
}

static void test_f3_a_setgid_program_trusts_root_alone(void **state) {
    (void)state;
    const char *path = add_plugin_of_stranger();
    expect_status(run_as_stranger(02755, GROUP, "--load-privileged", path), HELD);
    assert_false(plugin_dir_was_mapped(&dir, "marker"));
}

// All its ids are the stranger's, who would get the capability.
static void test_f3_a_file_with_capabilities_trusts_root_alone(void **state) {
    (void)state;
    const char *path = add_plugin_of_stranger();
    expect_status(run_as_stranger(CAPABLE | 0755, 0, "--load-privileged", path), HELD);
    assert_false(plugin_dir_was_mapped(&dir, "marker"));
}

// Without any bit the same plugin is the user's own.
static void test_f3_an_ordinary_program_trusts_its_user(void **state) {
    (void)state;
    const char *path = add_plugin_of_stranger();
    const int status = run_as_stranger(0755, 0, "--load", path);
    expect_status(status, BROKEN); // it was loaded
}

static int wait_for(pid_t child) {
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_f3_rights_that_were_put_aside_count(void **state) {
    (void)state;
    const char *path = add_plugin_of_stranger();
    pid_t child = fork();
    if (child == 0) {
        const bool aside = setegid(STRANGER) == 0 && seteuid(STRANGER) == 0;
        _exit(aside ? load_plugin(path) : NOT_STARTED);
    }
    assert_int_equal(wait_for(child), HELD);
    child = fork();
    if (child == 0) {
        const bool aside = setresuid(STRANGER, STRANGER, 0) == 0;
        _exit(aside ? load_plugin(path) : NOT_STARTED);
    }
    assert_int_equal(wait_for(child), HELD);
    child = fork();
    if (child == 0) { // of a group only
        const bool aside =
            setresgid(STRANGER, STRANGER, 0) == 0 && setresuid(STRANGER, STRANGER, STRANGER) == 0;
        _exit(aside ? load_plugin(path) : NOT_STARTED);
    }
    assert_int_equal(wait_for(child), HELD);
    assert_false(plugin_dir_was_mapped(&dir, "marker"));
}

// --- F9, F10: users as they are defined

static bool write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    if (!file) return false;
    const bool written = fputs(text, file) >= 0;
    return (fclose(file) == 0) & written;
}

// In a mount namespace of its own, with these users and groups.
static bool replace_users(const char *users, const char *groups) {
    char path[600];
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        return false;
    }
    snprintf(path, sizeof(path), "%s", plugin_dir_path(&dir, "passwd"));
    if (!write_text(path, users) || mount(path, "/etc/passwd", NULL, MS_BIND, NULL) != 0) {
        return false;
    }
    snprintf(path, sizeof(path), "%s", plugin_dir_path(&dir, "group"));
    return write_text(path, groups) && mount(path, "/etc/group", NULL, MS_BIND, NULL) == 0;
}

// Status of loading, as alice, her plugin that her group can write.
static int load_as_alice(const char *path, const char *users, const char *groups) {
    const pid_t child = fork();
    if (child == 0) {
        if (!replace_users(users, groups)) _exit(NOT_PRIVILEGED);
        if (setgroups(0, NULL) != 0 || setgid(STRANGER) != 0 || setuid(STRANGER) != 0) {
            _exit(NOT_STARTED);
        }
        _exit((int)ggml_plugin_load(path, NULL));
    }
    return wait_for(child);
}

static void test_f9_a_group_is_private_if_it_is_nobody_elses_primary_one(void **state) {
    (void)state;
    static const char alone[] = "root:x:0:0:root:/root:/bin/sh\nalice:x:12345:12345::/:/bin/sh\n";
    static const char own[] = "root:x:0:\nalice:x:12345:alice\n";
    static const char two[] = "alice:x:12345:12345::/:/bin/sh\nbob:x:12346:12345::/:/bin/sh\n";
    const char *path = add_plugin_of_stranger();
    assert_int_equal(chmod(path, 0664), 0);
    const int status = load_as_alice(path, alone, own);
    expect_status(status, GGML_HOST_OK); // skipped without namespaces
    assert_int_equal(load_as_alice(path, two, own), GGML_HOST_UNTRUSTED);
    assert_int_equal(load_as_alice(path, alone, "alice:x:12345:bob\n"), GGML_HOST_UNTRUSTED);
    assert_int_equal(load_as_alice(path, alone, "staff:x:12345:\n"), GGML_HOST_UNTRUSTED);
}

// Of the owner, user 0 and the group, who may write; false where the file system has no such lists.
static bool add_access_list(const char *path) {
    const struct {
        uint16_t tag, permissions;
        uint32_t id;
    } entries[] = {{1, 6, UINT32_MAX},
                   {2, 6, 0},
                   {4, 6, UINT32_MAX},
                   {16, 6, UINT32_MAX},
                   {32, 4, UINT32_MAX}};
    unsigned char list[4 + sizeof(entries)] = {2}; // version 2, little-endian as all of it
    if (htole16(1) != 1) return false;
    memcpy(list + 4, entries, sizeof(entries));
    return setxattr(path, "system.posix_acl_access", list, sizeof(list), 0) == 0;
}

// Whom a list names does not show in the mode: of root's group alone it would be accepted.
static void test_what_an_access_list_lets_write_is_refused(void **state) {
    (void)state;
    const char *path = plugin_dir_path(&dir, "ggml-marker.so");
    plugin_dir_add(&dir, FIXTURES "/ggml-marker.so", "ggml-marker.so");
    assert_int_equal(chmod(path, 0664), 0);
    assert_int_equal(chown(path, 0, 0), 0);
    if (!add_access_list(path)) {
        print_message("# left out: files have no access lists here\n");
        return;
    }
    assert_int_equal(ggml_plugin_load(path, NULL), GGML_HOST_UNTRUSTED);
    assert_non_null(strstr(ggml_last_error(), "an access list"));
    assert_int_equal(removexattr(path, "system.posix_acl_access"), 0);
    assert_int_equal(ggml_plugin_load(path, NULL), GGML_HOST_OK);
}

// Status of loading a plugin of this owner from a mount of its own.
static int load_from_mount(uid_t owner, bool read_only, bool in_user_namespace) {
    const char *path = add_plugin_of_stranger();
    char hall[600];
    snprintf(hall, sizeof(hall), "%s", plugin_dir_path(&dir, "hall"));
    assert_int_equal(chown(path, owner, 0), 0);
    assert_int_equal(chown(hall, owner, 0), 0);
    const pid_t child = fork();
    if (child == 0) {
        if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
            mount(hall, hall, NULL, MS_BIND, NULL) != 0 ||
            mount("none", hall, NULL, MS_REMOUNT | MS_BIND | (read_only ? MS_RDONLY : 0), NULL) !=
                0) {
            _exit(NOT_PRIVILEGED);
        }
        if (in_user_namespace &&
            (unshare(CLONE_NEWUSER) != 0 || !write_text("/proc/self/uid_map", "0 0 1") ||
             !write_text("/proc/self/setgroups", "deny") ||
             !write_text("/proc/self/gid_map", "0 0 1"))) {
            _exit(NOT_PRIVILEGED);
        }
        _exit((int)ggml_plugin_load(path, NULL));
    }
    return wait_for(child);
}

static void test_f10_nobody_is_nobody_where_he_is_a_user(void **state) {
    (void)state;
    const int status = load_from_mount(65534, true, false);
    expect_status(status, GGML_HOST_UNTRUSTED);
}

static void test_f10_what_lies_outside_a_user_namespace_is_accepted(void **state) {
    (void)state;
    const int status = load_from_mount(STRANGER, true, true);
    expect_status(status, GGML_HOST_OK);
}

static void test_f10_but_not_where_it_can_be_written(void **state) {
    (void)state;
    const int status = load_from_mount(STRANGER, false, true);
    expect_status(status, GGML_HOST_UNTRUSTED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_dir, close_dir)

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "--topology") == 0) return ask_for_topology(argv[2]);
    if (argc > 2 && strcmp(argv[1], "--load") == 0) return load_plugin(argv[2]);
    if (argc > 2 && strcmp(argv[1], "--load-privileged") == 0)
        return is_privileged() ? load_plugin(argv[2]) : NOT_PRIVILEGED;
    self = argv[0];
    if (geteuid() != 0) {
        puts("1..0 # SKIP needs root");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        TEST(test_f1_hwloc_reads_no_environment_in_a_privileged_process),
        TEST(test_f3_a_setgid_program_trusts_root_alone),
        TEST(test_f3_a_file_with_capabilities_trusts_root_alone),
        TEST(test_f3_an_ordinary_program_trusts_its_user),
        TEST(test_f3_rights_that_were_put_aside_count),
        TEST(test_f9_a_group_is_private_if_it_is_nobody_elses_primary_one),
        TEST(test_what_an_access_list_lets_write_is_refused),
        TEST(test_f10_nobody_is_nobody_where_he_is_a_user),
        TEST(test_f10_what_lies_outside_a_user_namespace_is_accepted),
        TEST(test_f10_but_not_where_it_can_be_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
