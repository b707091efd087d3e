// SPDX-License-Identifier: MIT
// Nodes are recorded; the policy of memory is asked of the kernel, on the nodes that there are.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "machine/topology/numa.h"

enum { OF_ADDRESS = 2, INTERLEAVE = 3 }; // of the kernel's numbers

static int policy_of(void *address) {
    int policy = -1;
    assert_int_equal(syscall(SYS_get_mempolicy, &policy, NULL, 0UL, address, OF_ADDRESS), 0);
    return policy;
}

static void test_nodes_of_machines(void **state) {
    (void)state;
    static const struct {
        const char *has_cpu, *mems_allowed;
        unsigned n;
        uint64_t first_word;
    } rows[] = {
        {"0\n", "0\n", 1, 1},
        {"0-1\n", "0-1\n", 2, 3},
        {"0-7\n", "2-3\n", 2, 0xc},      // numactl --membind, or a control group
        {"0,2\n", "0-3\n", 2, 5},        // nodes of memory without processors: CXL, HBM
        {"0-1,64-65\n", "0-65\n", 4, 3}, // more than a word
        {"0-1\n", "", 0, 0},
        {"", "0-1\n", 0, 0},
        {"0-4294967296\n", "0-3\n", 4, 0xf},
        {"1-0\n", "0-1\n", 0, 0},
        {"x\n", "0\n", 0, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        uint64_t words[GGML_NUMA_WORDS];
        const unsigned n = ggml_numa_nodes(rows[i].has_cpu, rows[i].mems_allowed, words);
        if (n != rows[i].n) print_error("%s and %s", rows[i].has_cpu, rows[i].mems_allowed);
        assert_int_equal(n, rows[i].n);
        assert_true(words[0] == rows[i].first_word);
    }
}

static void test_policy_of_memory(void **state) {
    (void)state;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = 64 * page;
    char *memory = NULL;
    const uint64_t first[GGML_NUMA_WORDS] = {1};
    if (syscall(SYS_get_mempolicy, NULL, NULL, 0UL, NULL, 0UL) != 0) return; // in some containers
    assert_int_equal(posix_memalign((void **)&memory, page, size), 0);
    // What begins and ends within pages is left alone there.
    const int status = ggml_numa_interleave(memory + page + 1, size - 3 * page, first);
    if (status == EPERM || status == ENOSYS) {
        free(memory);
        return;
    }
    assert_int_equal(status, 0);
    assert_int_equal(policy_of(memory + page), 0);
    assert_int_equal(policy_of(memory + 2 * page), INTERLEAVE);
    assert_int_equal(policy_of(memory + size - 3 * page), INTERLEAVE);
    assert_int_equal(policy_of(memory + size - 2 * page), 0);
    memory[2 * page] = 1;
    // Less than a page: nothing to do.
    assert_int_equal(ggml_numa_interleave(memory + 1, page, first), 0);
    assert_int_equal(policy_of(memory), 0);
    // No node at all is refused.
    const uint64_t none[GGML_NUMA_WORDS] = {0};
    assert_int_not_equal(ggml_numa_interleave(memory, size, none), 0);
    free(memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes_of_machines),
        cmocka_unit_test(test_policy_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
