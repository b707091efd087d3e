// SPDX-License-Identifier: MIT
// Which plugin files are loaded: who could have changed them, what they hold, and that the file
// that was looked at is the one that is mapped.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/data/sha256.h"
#include "base/env.h"
#include "base/fault.h"
#include "base/status.h"
#include "ggml-backend-impl.h"
#include "support/plugin_dir.h"

enum { STRANGER = 12345 };

static struct plugin_dir dir;
static const char *self; // this program

static int open_dir(void **state) {
    (void)state;
    plugin_dir_open(&dir);
    return 0;
}

static int close_dir(void **state) {
    (void)state;
    ggml_env_assume_privileged(false);
    ggml_fault_set_hook(NULL, NULL);
    ggml_plugin_set_policy(NULL);
    unsetenv("GGML_ALLOW_UNSAFE_PLUGINS");
    unsetenv("GGML_PLUGIN_SHA256");
    unsetenv("GGML_PLUGIN_PATH");
    unload_everything();
    plugin_dir_close(&dir);
    return 0;
}

static void add_as(const char *fixture, const char *file_name) {
    plugin_dir_add_from(&dir, FIXTURES, fixture, file_name);
}

static void expect(const char *file_name, enum ggml_host_status status, const char *word) {
    plugin_dir_expect(&dir, file_name, status, word);
}

// --- who could write

static void test_a_file_that_everyone_can_write_is_refused(void **state) {
    (void)state;
    add_as("ggml-marker.so", "ggml-marker.so");
    chmod(plugin_dir_path(&dir, "ggml-marker.so"), 0646);
    expect("ggml-marker.so", GGML_HOST_UNTRUSTED, "chmod go-w");
    assert_int_equal(plugin_dir_record(&dir, "ggml-marker.so")->status, GGML_HOST_UNTRUSTED);
    assert_int_equal(plugin_dir_record(&dir, "ggml-marker.so")->stage, GGML_PLUGIN_STAGE_FILE);
    assert_false(plugin_dir_was_mapped(&dir, "marker"));
    chmod(plugin_dir_path(&dir, "ggml-marker.so"), 0644);
    expect("ggml-marker.so", GGML_HOST_OK, "");
}

static void test_a_directory_that_everyone_can_write_is_refused(void **state) {
    (void)state;
    add_as("ggml-marker.so", "ggml-marker.so");
    chmod(dir.path, 0777);
    expect("ggml-marker.so", GGML_HOST_UNTRUSTED, dir.path);
    assert_int_equal(ggml_plugin_load_all(dir.path, NULL), GGML_HOST_UNTRUSTED);
    assert_non_null(strstr(ggml_last_error(), "GGML_ALLOW_UNSAFE_PLUGINS"));
    setenv("GGML_PLUGIN_PATH", dir.path, 1);
    assert_int_equal(ggml_plugin_load_all(NULL, NULL), GGML_HOST_OK);
    assert_false(plugin_dir_was_mapped(&dir, "marker"));
    chmod(dir.path, 01777); // as /tmp
    expect("ggml-marker.so", GGML_HOST_OK, "");
}

// What is wrong with the folder of a plugin that runs is said for as long as it is true, and what
// is wrong with the policy until the file is loaded again.
static void test_what_was_wrong_with_a_running_plugins_path(void **state) {
    (void)state;
    static const char *const none[] = {
        "0000000000000000000000000000000000000000000000000000000000000000"};
    const struct ggml_plugin_policy strict = {
        .size = sizeof(strict), .sha256 = none, .n_sha256 = 1};
    char path[600];
    add_as("ggml-marker.so", "ggml-marker.so");
    snprintf(path, sizeof(path), "%s", plugin_dir_path(&dir, "ggml-marker.so"));
    assert_int_equal(ggml_plugin_load(path, NULL), GGML_HOST_OK);
    for (int i = 0; i < 2; ++i) {
        chmod(dir.path, 0777);
        assert_int_equal(ggml_plugin_load(path, NULL), GGML_HOST_UNTRUSTED);
        assert_non_null(strstr(find_record(path)->message, "can be written by everyone"));
        chmod(dir.path, 0755);
        ggml_clear_error();
        assert_string_equal(find_record(path)->message, "");
        assert_int_equal(ggml_last_status(), GGML_HOST_OK);
    }
    assert_int_equal(ggml_plugin_set_policy(&strict), GGML_HOST_OK);
    assert_int_equal(ggml_plugin_load(path, NULL), GGML_HOST_UNTRUSTED);
    assert_non_null(strstr(find_record(path)->message, "SHA-256"));
    assert_int_equal(ggml_plugin_set_policy(NULL), GGML_HOST_OK);
    assert_int_equal(ggml_plugin_load(path, NULL), GGML_HOST_DUPLICATE);
    assert_string_equal(find_record(path)->message, "");
}

static const struct ggml_plugin_record *record_of(ggml_plugin_report_t report, const char *path) {
    const struct ggml_plugin_record *record = NULL;
    for (size_t i = 0; (record = ggml_plugin_report_get(report, i)) != NULL; ++i)
        if (strcmp(record->path, path) == 0) return record;
    return NULL;
}

static const struct ggml_plugin_record *probed_record_of(ggml_probe_report_t report,
                                                         const char *path) {
    const struct ggml_probe_record *probed = NULL;
    for (size_t i = 0; (probed = ggml_probe_report_get(report, i)) != NULL; ++i)
        if (strcmp(probed->plugin->path, path) == 0) return probed->plugin;
    return NULL;
}

static void test_a_directory_that_is_refused_has_a_record_that_says_why(void **state) {
    (void)state;
    const struct ggml_probe_options options = {
        .size = sizeof(options), .flags = GGML_PROBE_NO_CACHE | GGML_PROBE_IN_PROCESS};
    add_as("ggml-marker.so", "ggml-marker.so");
    chmod(dir.path, 0777);
    setenv("GGML_PLUGIN_PATH", dir.path, 1);
    assert_int_equal(ggml_plugin_load_all(NULL, NULL), GGML_HOST_OK);
    ggml_plugin_report_t report = ggml_plugin_report_new();
    const struct ggml_plugin_record *record = record_of(report, dir.path);
    assert_non_null(record);
    assert_int_equal(record->status, GGML_HOST_UNTRUSTED);
    assert_int_equal(record->stage, GGML_PLUGIN_STAGE_FOUND);
    assert_non_null(strstr(record->message, "can be written by everyone"));
    assert_non_null(strstr(record->message, "chmod go-w"));
    ggml_plugin_report_free(report);

    ggml_probe_report_t probed = NULL;
    assert_int_equal(ggml_plugin_probe(&options, &probed), GGML_HOST_OK);
    record = probed_record_of(probed, dir.path);
    assert_non_null(record);
    assert_int_equal(record->status, GGML_HOST_UNTRUSTED);
    assert_non_null(strstr(record->message, "can be written by everyone"));
    ggml_probe_report_free(probed);

    chmod(dir.path, 0755);
    assert_int_equal(ggml_plugin_load_all(NULL, NULL), GGML_HOST_OK);
    report = ggml_plugin_report_new();
    assert_null(record_of(report, dir.path));
    assert_non_null(record_of(report, plugin_dir_path(&dir, "ggml-marker.so")));
    ggml_plugin_report_free(report);
}

static void test_what_a_stranger_owns_or_shares_is_refused(void **state) {
    (void)state;
    if (geteuid() != 0) return; // nobody else can give files away
    add_as("ggml-marker.so", "ggml-marker.so");
    const char *path = plugin_dir_path(&dir, "ggml-marker.so");
    assert_int_equal(chown(path, STRANGER, 0), 0);
    expect("ggml-marker.so", GGML_HOST_UNTRUSTED, "belongs to user 12345");
    assert_int_equal(chown(path, 0, STRANGER), 0);
    expect("ggml-marker.so", GGML_HOST_OK, "");
    chmod(path, 0664);
    expect("ggml-marker.so", GGML_HOST_UNTRUSTED, "group 12345");
    assert_int_equal(chown(path, 0, 0), 0);
    expect("ggml-marker.so", GGML_HOST_OK, ""); // the group of root alone
    assert_int_equal(chown(dir.path, STRANGER, 0), 0);
    expect("ggml-marker.so", GGML_HOST_UNTRUSTED, "belongs to user 12345");
    assert_int_equal(chown(dir.path, 0, 0), 0);
}

static void test_links_are_followed_with_open_eyes(void **state) {
    (void)state;
    char target[600], hall[600], link[600];
    add_as("ggml-marker.so", "ggml-marker.so");
    snprintf(target, sizeof(target), "%s", plugin_dir_path(&dir, "ggml-marker.so"));
    snprintf(hall, sizeof(hall), "%s", plugin_dir_path(&dir, "hall"));
    assert_int_equal(mkdir(hall, 0755), 0);
    snprintf(link, sizeof(link), "%s", plugin_dir_path(&dir, "hall/ggml-link.so"));
    assert_int_equal(symlink("../hall/./middle", link), 0);
    assert_int_equal(symlink(target, plugin_dir_path(&dir, "hall/middle")), 0);
    expect("hall/ggml-link.so", GGML_HOST_OK, "");
    // A second name leads through the directory that everyone can write.
    assert_int_equal(symlink("hall/middle", plugin_dir_path(&dir, "ggml-door.so")), 0);
    chmod(hall, 0777);
    expect("ggml-door.so", GGML_HOST_UNTRUSTED, hall);
    chmod(hall, 0755);
    expect("ggml-door.so", GGML_HOST_OK, "");
    if (geteuid() != 0) return;
    assert_int_equal(lchown(plugin_dir_path(&dir, "ggml-door.so"), STRANGER, 0), 0);
    expect("ggml-door.so", GGML_HOST_UNTRUSTED, "belongs to user 12345");
}

static void test_the_rule_can_be_put_aside(void **state) {
    (void)state;
    struct ggml_plugin_policy policy = {.size = sizeof(policy), .allow_unsafe = true};
    add_as("ggml-marker.so", "ggml-marker.so");
    chmod(plugin_dir_path(&dir, "ggml-marker.so"), 0666);
    assert_int_equal(ggml_plugin_set_policy(&policy), GGML_HOST_OK);
    expect("ggml-marker.so", GGML_HOST_OK, "");
    assert_int_equal(ggml_plugin_set_policy(NULL), GGML_HOST_OK);
    setenv("GGML_ALLOW_UNSAFE_PLUGINS", "0", 1);
    expect("ggml-marker.so", GGML_HOST_UNTRUSTED, "everyone");
    setenv("GGML_ALLOW_UNSAFE_PLUGINS", "1", 1);
    expect("ggml-marker.so", GGML_HOST_OK, "");
    ggml_env_assume_privileged(true); // which trusts root alone
    expect("ggml-marker.so", GGML_HOST_UNTRUSTED, geteuid() == 0 ? "everyone" : "belongs to");
}

// --- sums

static void sum_of(const char *file_name, char out_text[2 * GGML_SHA256_SIZE + 1]) {
    uint8_t digest[GGML_SHA256_SIZE], chunk[4096];
    struct ggml_sha256 sum;
    size_t n;
    FILE *file = fopen(plugin_dir_path(&dir, file_name), "rb");
    assert_non_null(file);
    ggml_sha256_init(&sum);
    while ((n = fread(chunk, 1, sizeof(chunk), file)) > 0)
        ggml_sha256_update(&sum, chunk, n);
    fclose(file);
    ggml_sha256_final(&sum, digest);
    for (size_t i = 0; i < sizeof(digest); ++i)
        snprintf(out_text + 2 * i, 3, "%02x", digest[i]);
}

static void write_list(const char *first, const char *sum, const char *last) {
    FILE *file = fopen(plugin_dir_path(&dir, "sums"), "w");
    assert_non_null(file);
    fprintf(file, "%s%s%s", first, sum, last);
    fclose(file);
    setenv("GGML_PLUGIN_SHA256", plugin_dir_path(&dir, "sums"), 1);
}

static void test_only_sums_of_the_list_are_loaded(void **state) {
    (void)state;
    char sum[2 * GGML_SHA256_SIZE + 1];
    const char *const sums[] = {sum};
    struct ggml_plugin_policy policy = {.size = sizeof(policy), .sha256 = sums, .n_sha256 = 1};
    add_as("ggml-marker.so", "ggml-marker.so");
    add_as("ggml-other.so", "ggml-other.so");
    sum_of("ggml-marker.so", sum);
    assert_int_equal(ggml_plugin_set_policy(&policy), GGML_HOST_OK);
    expect("ggml-other.so", GGML_HOST_UNTRUSTED, "SHA-256");
    assert_string_equal(plugin_dir_record(&dir, "ggml-other.so")->name, "other");
    assert_int_equal(plugin_dir_record(&dir, "ggml-other.so")->stage, GGML_PLUGIN_STAGE_NOTE);
    assert_false(plugin_dir_was_mapped(&dir, "other"));
    expect("ggml-marker.so", GGML_HOST_OK, "");
    policy.n_sha256 = 0;
    assert_int_equal(ggml_plugin_set_policy(&policy), GGML_HOST_OK);
    expect("ggml-marker.so", GGML_HOST_UNTRUSTED, "SHA-256");
    sum[5] = 'x';
    policy.n_sha256 = 1;
    assert_int_equal(ggml_plugin_set_policy(&policy), GGML_HOST_INVALID_ARGUMENT);
    policy.size = 3;
    assert_int_equal(ggml_plugin_set_policy(&policy), GGML_HOST_INVALID_ARGUMENT);
    expect("ggml-marker.so", GGML_HOST_UNTRUSTED, "SHA-256"); // as it was
}

// A descriptor of it may be closed by a program that closes all, and be the program's own when the
// plugin is unloaded. The file isn't given back meanwhile: another one would get its inode.
static void test_a_plugin_keeps_its_file_and_no_descriptor(void **state) {
    (void)state;
    char sum[2 * GGML_SHA256_SIZE + 1], path[600];
    ggml_backend_reg_t reg;
    add_as("ggml-marker.so", "ggml-marker.so");
    sum_of("ggml-marker.so", sum);
    write_list("", sum, "  ggml-marker.so\n");
    snprintf(path, sizeof(path), "%s", plugin_dir_path(&dir, "ggml-marker.so"));
    const size_t before = count_open_files();
    assert_int_equal(ggml_plugin_load(path, &reg), GGML_HOST_OK);
    assert_int_equal(count_open_files(), before);
    assert_true(is_mapped(path));
    assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_OK);
    assert_false(is_mapped(path));
}

static void test_only_sums_of_the_listed_file_are_loaded(void **state) {
    (void)state;
    char sum[2 * GGML_SHA256_SIZE + 1];
    add_as("ggml-marker.so", "ggml-marker.so");
    add_as("ggml-other.so", "ggml-other.so");
    sum_of("ggml-marker.so", sum);
    write_list("# mine\n\n", sum, "  /somewhere/ggml-marker.so\n");
    expect("ggml-marker.so", GGML_HOST_OK, "");
    expect("ggml-other.so", GGML_HOST_UNTRUSTED, "SHA-256");
    write_list("\\", sum, " *strange\\nname");
    expect("ggml-marker.so", GGML_HOST_OK, "");
    // A list that can't be used forbids everything.
    write_list("", sum, "  a\nnonsense\n");
    expect("ggml-marker.so", GGML_HOST_INVALID_ARGUMENT, "line 2");
    assert_int_equal(ggml_plugin_load_all(dir.path, NULL), GGML_HOST_INVALID_ARGUMENT);
    chmod(plugin_dir_path(&dir, "sums"), 0666);
    expect("ggml-marker.so", GGML_HOST_UNTRUSTED, "everyone");
    setenv("GGML_PLUGIN_SHA256", "sums", 1);
    expect("ggml-marker.so", GGML_HOST_INVALID_ARGUMENT, "absolute");
    setenv("GGML_PLUGIN_SHA256", plugin_dir_path(&dir, "no-such-list"), 1);
    expect("ggml-marker.so", GGML_HOST_NOT_FOUND, "no-such-list");
    assert_false(plugin_dir_was_mapped(&dir, "other"));
}

// --- what is mapped

// Called where the linker is about to be asked.
static bool exchange(enum ggml_fault_point point, void *context) {
    char from[600];
    if (point != GGML_FAULT_LINK) return true;
    snprintf(from, sizeof(from), "%s", plugin_dir_path(&dir, "waiting"));
    *(bool *)context = rename(from, plugin_dir_path(&dir, "ggml-marker.so")) == 0;
    return true;
}

static void test_the_file_that_was_checked_is_mapped(void **state) {
    (void)state;
    bool exchanged = false;
    add_as("ggml-marker.so", "ggml-marker.so");
    add_as("ggml-other.so", "waiting");
    ggml_fault_set_hook(exchange, &exchanged);
    assert_int_equal(ggml_plugin_load(plugin_dir_path(&dir, "ggml-marker.so"), NULL),
                     GGML_HOST_DAMAGED_FILE);
    ggml_fault_set_hook(NULL, NULL);
    assert_true(exchanged);
    assert_true(plugin_dir_was_mapped(&dir, "marker"));
    assert_false(plugin_dir_was_mapped(&dir, "other"));
    assert_false(is_mapped("ggml-marker.so"));
    expect("ggml-marker.so", GGML_HOST_OK, ""); // which is the other one now
    assert_true(plugin_dir_was_mapped(&dir, "other"));
}

static void point_link_at(const char *folder) {
    char next[600];
    snprintf(next, sizeof(next), "%s", plugin_dir_path(&dir, "next"));
    assert_int_equal(symlink(folder, next), 0);
    assert_int_equal(rename(next, plugin_dir_path(&dir, "link")), 0);
}

// Lets a link lead elsewhere for just the time in which the linker follows it.
static bool lead_astray(enum ggml_fault_point point, void *context) {
    int *n_changes = context;
    if (point == GGML_FAULT_LINK && *n_changes == 0) {
        point_link_at("there");
        ++*n_changes;
    } else if (*n_changes == 1) {
        point_link_at("here");
        ++*n_changes;
    }
    return true;
}

// F2 of a security review: what was mapped is compared with what was checked. Whoever looks at the
// path before and after sees nothing.
static void test_f2_what_a_path_led_to_meanwhile_is_refused(void **state) {
    (void)state;
    int n_changes = 0;
    assert_int_equal(mkdir(plugin_dir_path(&dir, "here"), 0755), 0);
    assert_int_equal(mkdir(plugin_dir_path(&dir, "there"), 0755), 0);
    add_as("ggml-needy.so", "here/ggml-needy.so"); // its run path is $ORIGIN, so it goes by path
    add_as("libfixture-helper.so", "here/libfixture-helper.so");
    add_as("ggml-marker.so", "there/ggml-needy.so");
    point_link_at("here");
    ggml_fault_set_hook(lead_astray, &n_changes);
    const enum ggml_host_status status =
        ggml_plugin_load(plugin_dir_path(&dir, "link/ggml-needy.so"), NULL);
    ggml_fault_set_hook(NULL, NULL);
    assert_int_equal(n_changes, 2);
    assert_int_equal(status, GGML_HOST_DAMAGED_FILE);
    assert_non_null(strstr(ggml_last_error(), "mapped another file"));
    assert_true(plugin_dir_was_mapped(&dir, "marker"));
    assert_int_equal(ggml_backend_dev_count(), 0);
    expect("link/ggml-needy.so", GGML_HOST_OK, "");
}

// From moment n_left on a link leads elsewhere. A moment is where a call could fail.
struct moment {
    int n_left;
    const char *to;
    bool is_early; // not where the linker is asked
};

static bool lead_elsewhere(enum ggml_fault_point point, void *context) {
    struct moment *moment = context;
    if (moment->is_early && point == GGML_FAULT_LINK) return true;
    if (moment->n_left-- == 0) point_link_at(moment->to);
    return true;
}

// Loads link/ggml-needy.so with the link turned at each moment; returns the last status, of the
// link that was not turned.
static enum ggml_host_status turn_at_each_moment(const char *from, struct moment turn) {
    enum { LEAST = 5, MOST = 1000 };
    for (int n = 0;; ++n) {
        struct moment moment = turn;
        moment.n_left = n;
        assert_in_range(n, 0, MOST);
        point_link_at(from);
        ggml_fault_set_hook(lead_elsewhere, &moment);
        const enum ggml_host_status status =
            ggml_plugin_load(plugin_dir_path(&dir, "link/ggml-needy.so"), NULL);
        ggml_fault_set_hook(NULL, NULL);
        assert_false(plugin_dir_was_mapped(&dir, "marker"));
        if (moment.n_left < 0) continue;
        assert_in_range(n, LEAST, MOST);
        return status;
    }
}

static void make_here_and_there(void) {
    assert_int_equal(mkdir(plugin_dir_path(&dir, "here"), 0755), 0);
    assert_int_equal(mkdir(plugin_dir_path(&dir, "there"), 0755), 0);
    add_as("ggml-marker.so", "there/ggml-needy.so");
}

// Everyone can write the file that was opened; nobody the one that the path leads to by then.
static void test_the_file_that_was_opened_is_the_one_that_is_trusted(void **state) {
    (void)state;
    make_here_and_there();
    add_as("ggml-other.so", "here/ggml-needy.so");
    assert_int_equal(chmod(plugin_dir_path(&dir, "there/ggml-needy.so"), 0666), 0);
    assert_int_equal(turn_at_each_moment("there", (struct moment){.to = "here"}),
                     GGML_HOST_UNTRUSTED);
}

// Not even the constructors run of a file that is not on the list, unless the path leads to it in
// the very moment in which the linker follows it.
static void test_a_path_is_compared_before_the_linker_has_it(void **state) {
    (void)state;
    char sum[2 * GGML_SHA256_SIZE + 1];
    make_here_and_there();
    add_as("ggml-needy.so", "here/ggml-needy.so"); // goes by path
    add_as("libfixture-helper.so", "here/libfixture-helper.so");
    sum_of("here/ggml-needy.so", sum);
    write_list("", sum, "  needy\n");
    const struct moment turn = {.to = "there", .is_early = true};
    assert_int_equal(turn_at_each_moment("here", turn), GGML_HOST_OK);
}

static bool overwrite(enum ggml_fault_point point, void *context) {
    if (point != GGML_FAULT_LINK) return true;
    const int32_t priority = 77;
    plugin_dir_patch(&dir, "ggml-marker.so", offsetof(struct ggml_plugin_note, priority), &priority,
                     sizeof(priority));
    *(bool *)context = true;
    return true;
}

static void test_a_file_that_is_written_meanwhile_is_refused(void **state) {
    (void)state;
    bool written = false;
    add_as("ggml-marker.so", "ggml-marker.so");
    ggml_fault_set_hook(overwrite, &written);
    assert_int_equal(ggml_plugin_load(plugin_dir_path(&dir, "ggml-marker.so"), NULL),
                     GGML_HOST_DAMAGED_FILE);
    ggml_fault_set_hook(NULL, NULL);
    assert_true(written);
    assert_false(is_mapped("ggml-marker.so"));
    assert_int_equal(ggml_backend_dev_count(), 0);
}

static void expect_known_by(ggml_backend_reg_t reg, const char *path) {
    Dl_info info;
    void *address;
    memcpy(&address, &reg->table->get_name, sizeof(address));
    assert_int_not_equal(dladdr(address, &info), 0);
    assert_string_equal(info.dli_fname, path);
}

static void test_plugins_know_where_they_lie(void **state) {
    (void)state;
    static const char *const fixtures[] = {"ggml-marker.so", "ggml-gpu.so", "ggml-other.so"};
    for (int round = 0; round < 3; ++round) {
        for (size_t i = 0; i < sizeof(fixtures) / sizeof(fixtures[0]); ++i) {
            ggml_backend_reg_t reg = NULL;
            char path[600];
            add_as(fixtures[i], fixtures[i]);
            snprintf(path, sizeof(path), "%s", plugin_dir_path(&dir, fixtures[i]));
            assert_int_equal(ggml_plugin_load(path, &reg), GGML_HOST_OK);
            expect_known_by(reg, path);
            if (round == 1) assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_OK);
        }
        unload_everything();
    }
}

static void test_libraries_beside_the_plugin_are_found(void **state) {
    (void)state;
    ggml_backend_reg_t reg = NULL;
    add_as("ggml-needy.so", "ggml-needy.so"); // its run path is $ORIGIN
    // Under a name that LD_LIBRARY_PATH does not lead to.
    plugin_dir_replace(&dir, "ggml-needy.so", "libfixture-helper.so", "libfixture-beside.so");
    add_as("libfixture-helper.so", "libfixture-beside.so");
    assert_int_equal(ggml_plugin_load(plugin_dir_path(&dir, "ggml-needy.so"), &reg), GGML_HOST_OK);
    assert_true(is_mapped(plugin_dir_path(&dir, "libfixture-beside.so")));
    expect_known_by(reg, plugin_dir_path(&dir, "ggml-needy.so"));
}

static void test_linker_messages_show_the_path(void **state) {
    (void)state;
    add_as("ggml-marker.so", "ggml-marker.so");
    plugin_dir_replace(&dir, "ggml-marker.so", "libc.so.6", "libq.so.6");
    expect("ggml-marker.so", GGML_HOST_MISSING_DEPENDENCY, "libq.so.6");
    assert_null(strstr(ggml_last_error(), "/proc/"));
}

// F4 of a security review: the library is found by a relative path, then the program goes
// elsewhere.
static int load_all_elsewhere(void) {
    char folder[600], name[300];
    enum ggml_host_status (*load_all)(const char *dir, size_t *out_loaded);
    const char *slash = strrchr(SHARED_CORE, '/');
    snprintf(folder, sizeof(folder), "%.*s", (int)(slash - SHARED_CORE), SHARED_CORE);
    snprintf(name, sizeof(name), ".%s", slash);
    void *library = chdir(folder) == 0 ? dlopen(name, RTLD_NOW | RTLD_LOCAL) : NULL;
    void *symbol = library ? dlsym(library, "ggml_plugin_load_all") : NULL;
    if (!symbol || chdir(dir.path) != 0) return 1;
    memcpy(&load_all, &symbol, sizeof(symbol));
    load_all(NULL, NULL);
    return 0;
}

static void test_f4_the_library_is_where_it_was_when_it_was_mapped(void **state) {
    (void)state;
    int status = 0;
    assert_int_equal(mkdir(plugin_dir_path(&dir, "ggml-plugins"), 0755), 0);
    add_as("ggml-marker.so", "ggml-plugins/ggml-marker.so");
    FILE *file = fopen(plugin_dir_path(&dir, strrchr(SHARED_CORE, '/') + 1), "w");
    assert_non_null(file);
    fclose(file);
    const pid_t child = fork();
    if (child == 0) _exit(load_all_elsewhere());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_false(plugin_dir_was_mapped(&dir, "marker"));
}

// --- privileged processes

static const char *const variables[] = {
#define GGML_ENV_ROW(name, fallback, text) #name,
#include "base/env_list.inl"
};
enum { N_VARIABLES = sizeof(variables) / sizeof(variables[0]) };

static size_t count_visible(void) {
    size_t count = 0;
    for (size_t i = 0; i < N_VARIABLES; ++i)
        count += ggml_env((enum ggml_env)i) != NULL;
    return count;
}

static void test_privileged_processes_read_no_variable(void **state) {
    (void)state;
    for (size_t i = 0; i < N_VARIABLES; ++i)
        setenv(variables[i], "1", 1);
    assert_int_equal(count_visible(), N_VARIABLES);
    ggml_env_assume_privileged(true);
    assert_int_equal(count_visible(), 0);
    for (size_t i = 0; i < N_VARIABLES; ++i)
        unsetenv(variables[i]);
}

enum { SEES_NOTHING = 40, NOT_PRIVILEGED = 41, SEES_SOMETHING = 42, NOT_STARTED = 43 };

// Not by the library's word, which is what is tested.
static int run_as_child(void) {
    if (getuid() == geteuid()) return NOT_PRIVILEGED;
    return count_visible() == 0 ? SEES_NOTHING : SEES_SOMETHING;
}

// A copy of this program with the setuid bit, started by somebody without rights. Where the file
// system ignores that bit there is nothing to see.
static void test_a_setuid_program_reads_no_variable(void **state) {
    (void)state;
    int status = 0;
    char copy[600];
    if (geteuid() != 0) return;
    plugin_dir_add(&dir, self, "setuid-program");
    snprintf(copy, sizeof(copy), "%s", plugin_dir_path(&dir, "setuid-program"));
    chmod(dir.path, 0755);
    assert_int_equal(chmod(copy, 04755), 0);
    setenv("GGML_DEVICES", "1", 1);
    const pid_t child = fork();
    if (child == 0) {
        if (setgid(STRANGER) == 0 && setuid(STRANGER) == 0) {
            execl(copy, copy, "--child", (char *)NULL);
        }
        _exit(NOT_STARTED);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    unsetenv("GGML_DEVICES");
    assert_true(WIFEXITED(status));
    assert_int_not_equal(WEXITSTATUS(status), SEES_SOMETHING);
    if (WEXITSTATUS(status) != SEES_NOTHING) {
        print_message("# setuid is not effective here: %d\n", WEXITSTATUS(status));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_dir, close_dir)

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--child") == 0) return run_as_child();
    self = argv[0];
    const struct CMUnitTest tests[] = {
        TEST(test_a_file_that_everyone_can_write_is_refused),
        TEST(test_a_directory_that_everyone_can_write_is_refused),
        TEST(test_what_was_wrong_with_a_running_plugins_path),
        TEST(test_a_directory_that_is_refused_has_a_record_that_says_why),
        TEST(test_what_a_stranger_owns_or_shares_is_refused),
        TEST(test_links_are_followed_with_open_eyes),
        TEST(test_the_rule_can_be_put_aside),
        TEST(test_only_sums_of_the_list_are_loaded),
        TEST(test_only_sums_of_the_listed_file_are_loaded),
        TEST(test_a_plugin_keeps_its_file_and_no_descriptor),
        TEST(test_the_file_that_was_checked_is_mapped),
        TEST(test_f2_what_a_path_led_to_meanwhile_is_refused),
        TEST(test_the_file_that_was_opened_is_the_one_that_is_trusted),
        TEST(test_a_path_is_compared_before_the_linker_has_it),
        TEST(test_a_file_that_is_written_meanwhile_is_refused),
        TEST(test_plugins_know_where_they_lie),
        TEST(test_libraries_beside_the_plugin_are_found),
        TEST(test_linker_messages_show_the_path),
        TEST(test_f4_the_library_is_where_it_was_when_it_was_mapped),
        TEST(test_privileged_processes_read_no_variable),
        TEST(test_a_setuid_program_reads_no_variable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
