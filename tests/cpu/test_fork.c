// SPDX-License-Identifier: MIT
// Forks while other threads take pools of workers and give them back: the child takes one too.
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/sanitizer.h"
#include "base/threadpool.h"

enum { N_THREADS = 3, N_FORKS = 400, DEADLINE_SECONDS = 10 };

static atomic_bool stop;

static void use_pool(void) {
    struct ggml_threadpool *pool = cpu_threadpool_borrow(1);
    if (pool) cpu_threadpool_give_back(pool);
}

static void *use_pools(void *unused) {
    while (!atomic_load(&stop))
        use_pool();
    return unused;
}

static void test_child_takes_a_pool(void **state) {
    pthread_t threads[N_THREADS];
    int n_good = 0;
    (void)state;
    // Its allocator keeps the lock of a thread that the child does not have, and waits for ever.
    if (GGML_ADDRESS_SANITIZER) {
        print_message("# not with the address sanitizer\n");
        return;
    }
    for (int i = 0; i < N_THREADS; ++i)
        assert_int_equal(pthread_create(&threads[i], NULL, use_pools, NULL), 0);
    for (int i = 0; i < N_FORKS && n_good == i; ++i) {
        int status = -1;
        const pid_t child = fork();
        if (child == 0) {
            alarm(DEADLINE_SECONDS); // ends one that waits for a thread that it does not have
            use_pool();
            _exit(0);
        }
        n_good += child > 0 && waitpid(child, &status, 0) == child && status == 0;
    }
    atomic_store(&stop, true);
    for (int i = 0; i < N_THREADS; ++i)
        pthread_join(threads[i], NULL);
    assert_int_equal(n_good, N_FORKS);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_child_takes_a_pool)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
