// SPDX-License-Identifier: MIT
// The emulator: what kernels compute in any order of threads, and that each planted defect is
// found.
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../core/base/sanitizer.h"
#include "simt.h"
#include "test_kernels.h"

enum { ROWS = 3, N = 100, GAP = 16 };

static float x[ROWS * N + GAP], y[ROWS + GAP]; // kernels have no right to the gaps
static char message[300];

static bool run(const char *kernel, unsigned threads) {
    const struct sum_args args = {(uintptr_t)x, (uintptr_t)y, N};
    const struct simt_launch launch = {kernel, {ROWS, 1, 1}, threads, &args, 0};
    simt_memory_add(x, ROWS * N * sizeof(x[0]));
    simt_memory_add(y, ROWS * sizeof(y[0]));
    for (int i = 0; i < ROWS * N; ++i)
        x[i] = (float)(i % 17) - 3.0f;
    message[0] = '\0';
    const bool ok = simt_run(&launch, message, sizeof(message));
    simt_memory_remove(x);
    simt_memory_remove(y);
    return ok;
}

static void test_sums(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 10; ++seed) {
        simt_set_seed(seed);
        for (unsigned threads = 32; threads <= 256; threads *= 2) {
            if (!run("sum_rows_good", threads)) fail_msg("seed %d: %s", (int)seed, message);
            for (int r = 0; r < ROWS; ++r) {
                float sum = 0.0f;
                for (int i = 0; i < N; ++i)
                    sum += x[r * N + i];
                assert_true(y[r] == sum);
            }
        }
    }
    simt_set_seed(0);
}

static void test_defects(void **state) {
    static const struct {
        const char *kernel, *says;
    } defects[] = {
        {"sum_rows_no_barrier", "race"},
        {"sum_rows_no_second_barrier", "race"},
        {"sum_rows_past_end", "reads 4 bytes of global memory outside"},
        {"sum_rows_past_shared", "bytes of shared memory outside"},
        {"sum_rows_some_wait", "deadlock"},
        {"sum_rows_some_lanes", "deadlock"},
        {"sum_rows_misaligned", "no multiple"},
        {"sum_rows_never_waits", "ends without waiting for the launches before"},
        {"sum_rows_writes_early", "writes device memory before it has waited"},
    };
    (void)state;
#if GGML_THREAD_SANITIZER
    print_message("# not with libtsan, which checks memory then\n");
    return;
#endif
    for (uint64_t seed = 0; seed < 4; ++seed) {
        simt_set_seed(seed);
        for (size_t i = 0; i < sizeof(defects) / sizeof(defects[0]); ++i) {
            if (run(defects[i].kernel, 64))
                fail_msg("%s: not found, seed %d", defects[i].kernel, (int)seed);
            if (!strstr(message, defects[i].says)) fail_msg("%s: %s", defects[i].kernel, message);
        }
        // The emulator goes on after each.
        assert_true(run("sum_rows_good", 64));
    }
    simt_set_seed(0);
}

// What CUDA orders and Metal does not.
static void test_metal_rules(void **state) {
    static const struct {
        const char *kernel, *says; // NULL: nothing
    } rows[] = {
        {"global_good", NULL},
        {"global_bytes", NULL},
        {"global_bytes_apart", NULL},
        {"sum_rows_good", NULL},
        {"global_bytes_read", "device memory that thread 1 of block"},
        {"global_weak_barrier", "device memory that thread"},
        {"global_blocks", "device memory that thread 0 of block"},
        {"shared_exchange", "race"},
    };
    (void)state;
#if GGML_THREAD_SANITIZER
    return;
#endif
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        for (uint64_t seed = 0; seed < 3; ++seed) {
            simt_set_seed(seed);
            simt_use_metal_rules(false);
            assert_true(run(rows[i].kernel, 64));
            simt_use_metal_rules(true);
            assert_int_equal(run(rows[i].kernel, 64), !rows[i].says);
            if (rows[i].says && !strstr(message, rows[i].says))
                fail_msg("%s: %s", rows[i].kernel, message);
        }
    }
    simt_set_seed(0);
    simt_use_metal_rules(false);
}

// --- launches that begin before others have ended ------------------------------------------------

static struct chain {
    const char *kernels[SIMT_MAX_DEPTH];
    unsigned n; // how many
    float memory[SIMT_MAX_DEPTH + 1];
    int n_run;
} chain;

// Each kernel of the chain puts the sum of one number, its predecessor's result, into the next.
static void run_chain(void *data) {
    const unsigned i = *(const unsigned *)data;
    unsigned before = i - 1;
    const struct sum_args args = {(uintptr_t)&chain.memory[i], (uintptr_t)&chain.memory[i + 1], 1};
    const struct simt_launch launch = {chain.kernels[i], {1, 1, 1}, 64, &args, 0};
    ++chain.n_run;
    if (!simt_run_early(&launch, i > 0 ? run_chain : NULL, &before, message, sizeof(message)))
        fail_msg("%s", message);
}

// The last one's result; the kernel at `late` waits too late, below 0: none.
static float run_early(unsigned n, int late) {
    unsigned last = n - 1;
    chain = (struct chain){.n = n};
    simt_memory_add(chain.memory, sizeof(chain.memory));
    chain.memory[0] = 5.0f;
    for (int i = 0; i < (int)n; ++i)
        chain.kernels[i] = i == late ? "sum_rows_waits_late"
                           : i % 2   ? "sum_rows_early"
                                     : "sum_rows_good";
    run_chain(&last);
    simt_memory_remove(chain.memory);
    assert_int_equal(chain.n_run, n);
    return chain.memory[n];
}

static void test_early(void **state) {
    (void)state;
#if GGML_THREAD_SANITIZER
    return; // who reads too early is a race
#endif
    for (uint64_t seed = 0; seed < 3; ++seed) {
        simt_set_seed(seed);
        for (int n = 1; n <= SIMT_MAX_DEPTH; ++n) {
            assert_true(run_early((unsigned)n, -1) == 5.0f);
            for (int late = 1; late < n; ++late)
                assert_true(isnan(run_early((unsigned)n, late)));
        }
    }
    simt_set_seed(0);
}

static void test_poison(void **state) {
    (void)state;
    assert_true(run("sum_rows_not_set", 64));
    assert_true(isnan(y[0]));
}

static void test_launches(void **state) {
    (void)state;
    assert_false(run("no_such_kernel", 32));
    assert_false(run("sum_rows_good", 512));
    assert_non_null(strstr(message, "too many threads"));
    assert_false(run("sum_rows_good", 48));
    assert_non_null(strstr(message, "a warp of 16 lanes"));
}

#if !GGML_THREAD_SANITIZER
enum { LANES = 32, TURNS = 8 };

static struct simt_traffic count_turns(const char *kernel) {
    static _Alignas(32) float from[TURNS * LANES], to[TURNS * LANES];
    const struct sum_args args = {(uintptr_t)from, (uintptr_t)to, TURNS};
    const struct simt_launch launch = {kernel, {1, 1, 1}, LANES, &args, 0};
    struct simt_traffic traffic;
    simt_memory_add(from, sizeof(from));
    simt_memory_add(to, sizeof(to));
    simt_traffic_start();
    if (!simt_run(&launch, message, sizeof(message))) fail_msg("%s", message);
    simt_traffic_stop(&traffic);
    simt_memory_remove(from);
    simt_memory_remove(to);
    return traffic;
}
#endif

// Lanes that leave out a turn of a loop, or have fewer turns of an inner one, are with the others
// again in the next: a row of 32 numbers is four sectors.
static void test_turns(void **state) {
    (void)state;
#if !GGML_THREAD_SANITIZER
    struct simt_traffic t = count_turns("copy_rows_with_gaps");
    assert_int_equal(t.read_sectors, 4 * TURNS);
    assert_int_equal(t.write_sectors, 4 * TURNS);
    assert_int_equal(t.write_least, 4 * TURNS); // of 28 numbers
    t = count_turns("sum_ragged_rows");
    assert_int_equal(t.read_sectors, 4 * 4 * TURNS);
    assert_int_equal(t.write_sectors, 4 * TURNS);
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),        cmocka_unit_test(test_defects),
        cmocka_unit_test(test_metal_rules), cmocka_unit_test(test_poison),
        cmocka_unit_test(test_launches),    cmocka_unit_test(test_early),
        cmocka_unit_test(test_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
