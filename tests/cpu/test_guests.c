// SPDX-License-Identifier: MIT
// Threads that come and go while others compute: each item once, none without its barrier, and
// nobody who waits for a thread that is away.
#define _GNU_SOURCE
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/kernel.h"
#include "base/team.h"
#include "cpu_test.h"
#include "support/setenv.h"

enum { N_THREADS = 4, N = 100, ROUNDS = 500 };

// What all threads share. `last` is not atomic: the sanitizer sees a barrier that orders nothing.
struct shared {
    struct cpu_team team;
    _Atomic int times[ROUNDS]; // items taken in a round
    int last[N];               // round of each item
    _Atomic bool done;
    _Atomic int64_t of_guests; // items
};

struct thread {
    struct shared *shared;
    int ith;
};

// A round of the graph: each item adds to what the one before left. Returns the items taken.
static int take_all(struct shared *s, int ith, int round) {
    const struct cpu_task task = {.ith = ith, .nth = N_THREADS, .team = &s->team, .guests = true};
    struct cpu_range range = {0};
    int taken = 0;
    while (cpu_task_take(&task, N, 1, &range)) {
        for (int64_t i = range.begin; i < range.end; ++i) {
            // Items move by one each round, so that threads see what others wrote.
            int *item = &s->last[(i + round) % N];
            if (*item == round) ++*item;
            ++taken;
        }
        atomic_fetch_add(&s->times[round], (int)(range.end - range.begin));
    }
    return taken;
}

// Enters again and again, and leaves somewhere.
static void *visit(void *argument) {
    const struct thread *thread = argument;
    struct shared *s = thread->shared;
    unsigned seed = (unsigned)thread->ith;
    while (!atomic_load(&s->done)) {
        int place;
        seed = seed * 1103515245 + 12345;
        const int most = (int)(seed >> 16) % ROUNDS;
        cpu_guest_enter(&s->team, &place);
        for (int round = 0; round < most && !cpu_guest_leaves(&s->team, thread->ith); ++round) {
            if (round > 0) cpu_team_barrier(&s->team, thread->ith);
            atomic_fetch_add(&s->of_guests, take_all(s, thread->ith, round));
        }
    }
    return NULL;
}

static void run(struct shared *s, int n_guests) {
    struct thread threads[N_THREADS];
    pthread_t handles[N_THREADS];
    memset(s, 0, sizeof(*s));
    s->team.n = N_THREADS;
    s->team.guests = true;
    for (int i = 1; i <= n_guests; ++i) {
        threads[i] = (struct thread){s, i};
        assert_int_equal(pthread_create(&handles[i], NULL, visit, &threads[i]), 0);
    }
    // On a busy machine all rounds would be over before a guest comes.
    while (n_guests > 0 && atomic_load(&s->of_guests) == 0)
        sched_yield();
    for (int round = 0; round < ROUNDS; ++round) {
        if (round > 0) cpu_team_barrier(&s->team, 0);
        take_all(s, 0, round);
        if (round > 0) assert_int_equal(atomic_load(&s->times[round - 1]), N);
    }
    cpu_team_end(&s->team);
    for (int i = 0; i < N; ++i)
        assert_int_equal(s->last[i], ROUNDS);
    atomic_store(&s->done, true);
    for (int i = 1; i <= n_guests; ++i)
        pthread_join(handles[i], NULL);
    assert_int_equal(atomic_load(&s->times[ROUNDS - 1]), N);
}

static void test_each_item_once(void **state) {
    static struct shared shared;
    (void)state;
    for (int i = 0; i < 4; ++i)
        run(&shared, N_THREADS - 1);
}

// Thread 0 waits for none that does not come.
static void test_without_guests(void **state) {
    static struct shared shared;
    (void)state;
    run(&shared, 0);
}

// Products whose work is shared out to guests in pieces, nodes that are computed in parts, and a
// sum whose threads wait for each other, which thread 0 computes alone.
static struct ggml_cgraph *layers(struct ggml_context *ctx, enum ggml_type type, int columns) {
    enum { WIDTH = 512, LAYERS = 8 };
    struct ggml_tensor *x =
        test_tensor(ctx, GGML_TYPE_F32, (struct extents){{WIDTH, columns, 1, 1}}, 1, -1, 1);
    struct ggml_tensor *from =
        test_tensor(ctx, GGML_TYPE_F32, (struct extents){{WIDTH, WIDTH, 1, 1}}, 2, -1, 1);
    struct ggml_tensor *weights = ggml_new_tensor_2d(ctx, type, WIDTH, WIDTH);
    ggml_quantize_chunk(type, from->data, weights->data, 0, WIDTH, WIDTH, NULL);
    // The last rows, so that threads add to what others copied.
    const int64_t rows = (columns + 1) / 2;
    struct ggml_tensor *part =
        test_tensor(ctx, GGML_TYPE_F32, (struct extents){{WIDTH, rows, 1, 1}}, 3, -1, 1);
    for (int i = 0; i < LAYERS; ++i) {
        x = ggml_silu(ctx, ggml_rms_norm(ctx, ggml_mul_mat(ctx, weights, x), 1e-5f));
        x = ggml_acc(ctx, x, part, x->nb[1], x->nb[2], x->nb[3],
                     (size_t)(columns - rows) * x->nb[1]);
    }
    return test_graph(ctx, x);
}

// Results are those of one thread, whoever takes part.
static void compute_the_same(enum ggml_type type, int columns) {
    struct ggml_context *ctx = test_context(16);
    struct ggml_cgraph *graph = layers(ctx, type, columns);
    struct ggml_tensor *y = ggml_graph_node(graph, -1);
    struct ggml_threadpool_params params = ggml_threadpool_params_default(3);
    setenv("GGML_CPU_ALL_THREADS", "guests", 1);
    struct ggml_threadpool *pool = ggml_threadpool_new(&params);
    setenv("GGML_CPU_ALL_THREADS", "1", 1);
    ggml_backend_t stream = ggml_backend_cpu_init();
    ggml_backend_cpu_set_threadpool(stream, pool);
    assert_int_equal(test_compute(graph, 1), GGML_STATUS_SUCCESS);
    void *expected = malloc(ggml_nbytes(y));
    memcpy(expected, y->data, ggml_nbytes(y));
    for (int i = 0; i < 10; ++i) {
        memset(y->data, 0, ggml_nbytes(y));
        ggml_backend_cpu_set_n_threads(stream, 3 - i % 2); // a guest of before may come late
        assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_SUCCESS);
        assert_memory_equal(expected, y->data, ggml_nbytes(y));
    }
    free(expected);
    ggml_backend_free(stream);
    ggml_threadpool_free(pool);
    ggml_free(ctx);
}

static void test_same_results(void **state) {
    (void)state;
    for (int columns = 1; columns <= 96; columns += 95) {
        compute_the_same(GGML_TYPE_F32, columns);
        compute_the_same(GGML_TYPE_BF16, columns);
        compute_the_same(GGML_TYPE_Q8_0, columns);
        compute_the_same(GGML_TYPE_Q4_K, columns);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_item_once),
        cmocka_unit_test(test_without_guests),
        cmocka_unit_test(test_same_results),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
