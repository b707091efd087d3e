// SPDX-License-Identifier: MIT
// Replays control groups from files that it writes below a folder of its own.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "ggml-host.h"
#include "machine/cgroup.h"
#include "support/temp_folder.h"

// Creates the folders that the path lies in.
static void make_parents(char *path) {
    for (char *p = path + 1; (p = strchr(p, '/')); ++p) {
        *p = '\0';
        mkdir(path, 0700);
        *p = '/';
    }
}

static void write_file(const char *root, const char *row, size_t length) {
    char path[512];
    const char *content = memchr(row, '=', length);
    snprintf(path, sizeof(path), "%s%.*s", root, (int)(content - row), row);
    make_parents(path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (const char *p = content + 1; p < row + length; ++p)
        fputc(*p == '|' ? '\n' : *p, file);
    fclose(file);
}

static void write_files(const char *root, const char *files) {
    while (*files) {
        const size_t length = strcspn(files, ";");
        write_file(root, files, length);
        files += length + (files[length] == ';' ? 1 : 0);
    }
}

static void test_control_groups(void **state) {
    (void)state;
    static const struct {
        const char *name;
        const char *self_cgroup;
        const char *mountinfo;
        const char *files;
        double limit;
    } rows[] = {
#define CGROUP_ROW(name, self_cgroup, mountinfo, files, limit)                                     \
    {name, self_cgroup, mountinfo, files, limit},
#include "topology/data/cgroup_list.inl"
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        char root[96];
        snprintf(root, sizeof(root), "%s/%zu", temp_folder, i);
        write_files(root, rows[i].files);
        const struct cgroup_view view = {root, rows[i].self_cgroup, rows[i].mountinfo};
        print_message("# %s\n", rows[i].name);
        assert_float_equal(cgroup_cpu_limit(&view), rows[i].limit, 1e-9);
    }
}

static void test_memory(void **state) {
    (void)state;
    static const struct {
        const char *name;
        const char *self_cgroup;
        const char *mountinfo;
        const char *files;
        uint64_t left;
    } rows[] = {
#define CGROUP_MEMORY_ROW(name, self_cgroup, mountinfo, files, left)                               \
    {name, self_cgroup, mountinfo, files, left},
#include "topology/data/cgroup_memory_list.inl"
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        char root[96];
        snprintf(root, sizeof(root), "%s/memory-%zu", temp_folder, i);
        write_files(root, rows[i].files);
        const struct cgroup_view view = {root, rows[i].self_cgroup, rows[i].mountinfo};
        print_message("# %s\n", rows[i].name);
        assert_int_equal(cgroup_memory_left(&view), rows[i].left);
    }
    const struct cgroup_view none = {"", NULL, NULL};
    assert_int_equal(cgroup_memory_left(&none), UINT64_MAX);
}

static void test_lines_of_any_length(void **state) {
    (void)state;
    static char text[100001];
    memset(text, 'a', sizeof(text) - 1);
    memcpy(text, "0::/", 4);
    const struct cgroup_view long_group = {temp_folder, text, text};
    assert_float_equal(cgroup_cpu_limit(&long_group), 0, 0);
    text[4095] = '\n';
    const struct cgroup_view nearly = {temp_folder, text, NULL};
    assert_float_equal(cgroup_cpu_limit(&nearly), 0, 0);
    memset(text, '/', 4094);
    memcpy(text, "0::/", 4);
    assert_float_equal(cgroup_cpu_limit(&nearly), 0, 0);
    const struct cgroup_view none = {"", NULL, NULL};
    assert_float_equal(cgroup_cpu_limit(&none), 0, 0);
}

#ifdef __linux__
// F24 of a security review: what hwloc does is not done to this process, which is not linked with
// it.
static void test_f24_hwloc_is_not_mapped(void **state) {
    (void)state;
    struct ggml_host_topology facts = {.size = sizeof(facts)};
    char line[1024];
    assert_int_equal(ggml_host_get_topology(&facts), GGML_HOST_OK);
    assert_true(facts.n_pus > 0);
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps))
        assert_null(strstr(line, "libhwloc"));
    fclose(maps);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_control_groups),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_lines_of_any_length),
#ifdef __linux__
        cmocka_unit_test(test_f24_hwloc_is_not_mapped),
#endif
    };
    return cmocka_run_group_tests(tests, temp_folder_make, temp_folder_remove);
}
