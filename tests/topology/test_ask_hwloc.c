// SPDX-License-Identifier: MIT
// F24 of a security review: hwloc runs in another process, where its failure costs a line of the
// log; what it says is checked and remembered. A libhwloc.so.15 of the tests is in place of hwloc.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/env.h"
#include "ggml-host.h"
#include "ggml.h"
#include "machine/topology/topology_plain.h"
#include "plugin/probe/probe_machine.h"
#include "support/temp_folder.h"

enum { FAKE_CPUS = 64, FAKE_CACHE = 7 << 10 };

static char logged[2048];

static void keep_log(enum ggml_log_level level, const char *text, void *context) {
    (void)context;
    if (level >= GGML_LOG_LEVEL_WARN && level != GGML_LOG_LEVEL_CONT)
        snprintf(logged, sizeof(logged), "%s", text);
}

// A cache of its own for each test, so that nothing is remembered.
static void begin(const char *name, const char *habit) {
    char folder[sizeof(temp_folder) + 64];
    snprintf(folder, sizeof(folder), "%s/%s", temp_folder, name);
    setenv("GGML_PROBE_CACHE", folder, 1);
    setenv("PLANTED_HWLOC", habit, 1);
    logged[0] = '\0';
}

static bool ask(struct topology_table *out_table) {
    topology_table_clear(out_table);
    return probe_machine_ask(out_table);
}

// How many kilobytes of cache the first CPU has in the answer; 0: there is none.
static uint32_t answered(void) {
    static struct topology_table table;
    return ask(&table) ? table.cpus[0].cache_kib[0] << 10 : 0;
}

static void test_the_answer_is_remembered(void **state) {
    (void)state;
    struct ggml_host_topology facts, plain;
    const struct topology_plain_source asked = {.root = "", .ask = probe_machine_ask};
    const struct topology_plain_source read = {.root = ""};
    begin("good", "good");
    assert_int_equal(topology_plain_discover(&read, &plain), GGML_HOST_OK);
    if (plain.n_pus > FAKE_CPUS) {
        print_message("# left out: the machine has more processors than the false one\n");
        return;
    }
    assert_int_equal(topology_plain_discover(&asked, &facts), GGML_HOST_OK);
    assert_int_equal(facts.l1d_bytes, FAKE_CACHE);
    assert_int_equal(facts.n_pus, plain.n_pus); // the affinity is this process's
    setenv("PLANTED_HWLOC", "crash", 1);
    assert_int_equal(answered(), FAKE_CACHE); // by nobody who could crash
    assert_string_equal(logged, "");
    // Another helper may have another answer.
    char copy[sizeof(temp_folder) + 64], command[2 * sizeof(copy) + 4096];
    const char *helper = getenv("GGML_PROBE_HELPER");
    snprintf(copy, sizeof(copy), "%s/ggml-probe", temp_folder);
    snprintf(command, sizeof(command), "cp '%s' '%s'", helper, copy);
    assert_int_equal(system(command), 0);
    char *kept = strdup(helper);
    setenv("GGML_PROBE_HELPER", copy, 1);
    assert_int_equal(answered(), 0);
    setenv("GGML_PROBE_HELPER", kept, 1);
    free(kept);
}

static void check_failure(const char *habit, const char *words) {
    begin(habit, habit);
    assert_int_equal(answered(), 0);
    if (!strstr(logged, words)) fail_msg("%s: \"%s\"", habit, logged);
    // For an hour nobody tries again.
    logged[0] = '\0';
    setenv("PLANTED_HWLOC", "good", 1);
    assert_int_equal(answered(), 0);
    assert_string_equal(logged, "");
}

static void test_f24_a_failure_of_hwloc_costs_a_line(void **state) {
    (void)state;
    struct ggml_host_topology facts;
    const struct topology_plain_source asked = {.root = "", .ask = probe_machine_ask};
    check_failure("crash", "signal 11 (bad address) while hwloc read the machine");
    check_failure("hang", "no answer within 2 s");
    check_failure("exit", "ended with exit status 0 while hwloc read the machine");
    check_failure("lie", "is no answer");
    check_failure("fail", ""); // as if it weren't installed
    assert_int_equal(topology_plain_discover(&asked, &facts), GGML_HOST_OK);
    assert_true(facts.n_pus > 0 && facts.l1d_bytes != FAKE_CACHE);
}

static void test_f1_who_has_other_rights_does_not_ask(void **state) {
    (void)state;
    begin("privileged", "good");
    ggml_env_assume_privileged(true);
    const uint32_t answer = answered();
    ggml_env_assume_privileged(false);
    assert_int_equal(answer, 0);
}

static void test_nobody_is_asked_where_nothing_is_remembered(void **state) {
    (void)state;
    begin("off", "good");
    setenv("GGML_PROBE_CACHE", "off", 1);
    assert_int_equal(answered(), 0);
    begin("helper", "good");
    const char *helper = getenv("GGML_PROBE_HELPER");
    char *kept = helper ? strdup(helper) : NULL;
    assert_non_null(kept);
    setenv("GGML_PROBE_HELPER", "/nowhere/ggml-probe", 1);
    assert_int_equal(answered(), 0);
    setenv("GGML_PROBE_HELPER", "/bin/false", 1); // a program that isn't one
    assert_int_equal(answered(), 0);
    setenv("GGML_PROBE_HELPER", kept, 1);
    assert_int_equal(answered(), FAKE_CACHE);
    free(kept);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_answer_is_remembered),
        cmocka_unit_test(test_f24_a_failure_of_hwloc_costs_a_line),
        cmocka_unit_test(test_f1_who_has_other_rights_does_not_ask),
        cmocka_unit_test(test_nobody_is_asked_where_nothing_is_remembered),
    };
    // None of hwloc's own variables reaches it.
    setenv("HWLOC_SYNTHETIC", "pack:1 core:3 pu:1", 1);
    setenv("HWLOC_PLUGINS_PATH", "/tmp", 1);
    ggml_log_set(keep_log, NULL);
    return cmocka_run_group_tests(tests, temp_folder_make, temp_folder_remove);
}
