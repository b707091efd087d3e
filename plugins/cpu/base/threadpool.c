// SPDX-License-Identifier: MIT
// Work is announced by a new epoch, whose low bits say how many threads take part: one atomic word,
// so that no worker joins with the count of one piece of work and the function of another. Pools
// that no stream uses are kept for the next one; the one that was not used for longest goes first.
#define _POSIX_C_SOURCE 200809L
#include "base/threadpool.h"

#include <limits.h>
#include <stdio.h>

#ifndef _WIN32
#include <unistd.h>
#endif

#include "base/crowd.h"
#include "base/kernel.h"
#include "base/platform.h"
#include "base/util.h"

enum {
    SPINS_PER_POLL = 1024,
    MAX_IDLE_POOLS = 4,
    // Low bits of the epoch: threads that take part, and whether all but the first are guests.
    EPOCH_SHIFT = 16,
    EPOCH_GUESTS = 1 << 15,
    DOOR_CLOSED = 1 << 30,
};

struct worker {
    struct ggml_threadpool *pool;
    pthread_t thread;
    int index; // in the team, from 1
};

struct sleepers {
    pthread_cond_t wake;
    int n;
};

struct ggml_threadpool {
    struct ggml_threadpool_head head;
    struct ggml_threadpool_params params;
    pthread_mutex_t use; // held while a graph is computed
    pthread_mutex_t lock;
    struct sleepers sleepers; // under lock: until the next piece of work
    struct sleepers spares;   // under lock: until one that they are needed for
    _Atomic uint64_t epoch;   // changes with every piece of work; low bits: its number of threads
    _Atomic bool paused;
    _Atomic bool stop;
    struct cpu_signal running; // workers that have not finished this piece of work
    struct cpu_signal door;    // guests at this piece of work; DOOR_CLOSED: no more come in
    struct cpu_team *team;
    cpu_share_fn share;
    void *context;
    struct worker *workers;
    int n_workers; // started
    bool started;
    bool caller_placed;
    bool is_fixed; // the way, whoever else wants the processors:
    struct cpu_way fixed;
    struct cpu_crowd crowd; // under use, as what follows
    int n_processors;       // that workers may run on; 0: unknown
    int n_until_count;      // graphs until that is asked again
    struct ggml_threadpool *next_idle;
    long process; // whose workers they are
};

static _Atomic bool spread_workers;

static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;

#ifdef __linux__
// A child must not find it held by a thread that it does not have.
static void hold_idle(void) {
    pthread_mutex_lock(&idle_lock);
}

// In the parent and the child of a fork, after hold_idle().
static void release_idle(void) {
    pthread_mutex_unlock(&idle_lock);
}

// The list of idle pools has to be consistent in a child, where the pools themselves are made
// again.
__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(hold_idle, release_idle, release_idle);
}
#endif

// --- workers ---------------------------------------------------------------------------

static int threads_of(uint64_t epoch) {
    return (int)(epoch & (EPOCH_GUESTS - 1));
}

// Whether the epoch is a new one, and one that the worker has to do with.
static bool is_called(const struct worker *worker, uint64_t epoch, uint64_t last_epoch) {
    return epoch != last_epoch &&
           (worker->index < threads_of(epoch) || atomic_load(&worker->pool->stop));
}

// Spins as long as the pool's parameter says, since the next step of a model mostly follows soon,
// then sleeps; at once if others work without it. The epoch is read again under the lock that
// wake_workers() holds: no wake-up is lost.
static uint64_t wait_for_work(const struct worker *worker, uint64_t last_epoch) {
    struct ggml_threadpool *pool = worker->pool;
    uint64_t epoch = last_epoch;
    const uint64_t spins = (uint64_t)pool->params.poll * SPINS_PER_POLL;
    for (uint64_t i = 0; i < spins && !atomic_load(&pool->paused) && epoch == last_epoch; ++i) {
        epoch = atomic_load_explicit(&pool->epoch, memory_order_acquire);
        if (is_called(worker, epoch, last_epoch)) return epoch;
        cpu_thread_pause();
    }
    pthread_mutex_lock(&pool->lock);
    while (!is_called(worker, epoch = atomic_load(&pool->epoch), last_epoch)) {
        struct sleepers *sleepers = epoch == last_epoch ? &pool->sleepers : &pool->spares;
        ++sleepers->n;
        pthread_cond_wait(&sleepers->wake, &pool->lock);
        --sleepers->n;
    }
    pthread_mutex_unlock(&pool->lock);
    return epoch;
}

// An empty mask means that threads are not bound to CPUs.
static bool mask_is_empty(const bool *mask) {
    for (int i = 0; i < GGML_MAX_N_THREADS; ++i) {
        if (mask[i]) return false;
    }
    return true;
}

// The set bit for thread `index` when every thread gets a CPU of its own; wraps around.
static int strict_cpu(const bool *mask, int index) {
    for (int i = 0, n_set = 0;; i = (i + 1) % GGML_MAX_N_THREADS) {
        if (mask[i] && n_set++ == index) return i;
    }
}

// Failing is no reason not to compute.
static void bind_to_mask(const struct ggml_host_table *host, const struct ggml_threadpool *pool,
                         int index) {
    const bool *mask = pool->params.cpumask;
    uint64_t words[GGML_MAX_N_THREADS / 64] = {0};
    const int only = pool->params.strict_cpu ? strict_cpu(mask, index) : -1;
    for (int i = 0; i < GGML_MAX_N_THREADS; ++i) {
        if (mask[i] && (only < 0 || only == i)) words[i / 64] |= UINT64_C(1) << (i % 64);
    }
    if (host->bind_thread_mask(host, words, GGML_MAX_N_THREADS / 64) != GGML_HOST_OK) {
        GGML_LOG_WARN("CPU thread pool: worker %d can't be bound to the CPUs of its mask\n", index);
    }
}

// By the application's mask; else each on a core of its own, if that was asked for; else wherever
// the system puts it.
static void place_thread(const struct ggml_threadpool *pool, int index) {
    const struct ggml_host_table *host = ggml_sdk_host_hold();
    if (!host) return;
    if (!mask_is_empty(pool->params.cpumask)) {
        bind_to_mask(host, pool, index);
    } else if (pool->params.strict_cpu || atomic_load(&spread_workers)) {
        host->bind_thread(host, (uint32_t)index, (uint32_t)pool->params.n_threads);
    }
    ggml_sdk_host_release(host);
}

// Whether the graph that is being computed has guests; nothing of it changes until they left.
static bool come_in(struct ggml_threadpool *pool) {
    uint32_t inside = atomic_load(&pool->door.word);
    while (!(inside & DOOR_CLOSED)) {
        if (atomic_compare_exchange_weak(&pool->door.word, &inside, inside + 1)) return true;
    }
    return false;
}

static void go_out(struct ggml_threadpool *pool) {
    if (atomic_fetch_sub(&pool->door.word, 1) == DOOR_CLOSED + 1) cpu_signal_tell(&pool->door);
}

// Comes back until the graph is computed, or one that followed meanwhile: that one may be for fewer
// threads.
static void be_guest(const struct worker *worker) {
    struct ggml_threadpool *pool = worker->pool;
    for (bool leaves = true; leaves;) {
        int place;
        cpu_guest_rest();
        if (!come_in(pool)) return;
        const bool is_meant = worker->index < pool->team->n;
        const bool stays = !is_meant || cpu_guest_enter(pool->team, &place);
        if (is_meant && stays) pool->share(pool->context, worker->index, pool->team->n);
        leaves = is_meant && (!stays || cpu_guest_leaves(pool->team, worker->index));
        go_out(pool);
        if (!stays) cpu_thread_move_off(&place, 1);
    }
}

// The pool that this thread is a worker of.
static _Thread_local struct ggml_threadpool *works_for;

// Workers that do not take part read nothing but the epoch: share and context may belong to the
// next piece of work by then.
static void *worker_main(void *argument) {
    const struct worker *worker = argument;
    struct ggml_threadpool *pool = works_for = worker->pool;
    char name[16];
    snprintf(name, sizeof(name), "ggml-cpu-%d", worker->index);
    cpu_thread_name(name);
    place_thread(pool, worker->index);
    if (!cpu_thread_priority(pool->params.prio) && worker->index == 1) {
        GGML_LOG_WARN("CPU thread pool: no permission for priority %d\n", (int)pool->params.prio);
    }
    uint64_t last_epoch = 0;
    for (;;) {
        last_epoch = wait_for_work(worker, last_epoch);
        if (atomic_load(&pool->stop)) return NULL;
        if (last_epoch & EPOCH_GUESTS) {
            be_guest(worker);
            continue;
        }
        cpu_team_join(pool->team, worker->index);
        pool->share(pool->context, worker->index, threads_of(last_epoch));
        if (atomic_fetch_sub(&pool->running.word, 1) == 1) cpu_signal_tell(&pool->running);
    }
}

// What can't be started is left out: the graph then runs on fewer threads.
static void start_workers(struct ggml_threadpool *pool) {
    pool->started = true;
    while (pool->n_workers < pool->params.n_threads - 1) {
        struct worker *worker = &pool->workers[pool->n_workers];
        *worker = (struct worker){.pool = pool, .index = pool->n_workers + 1};
        if (cpu_thread_start(&worker->thread, worker_main, worker) != 0) {
            GGML_LOG_WARN("CPU thread pool: only %d of %d threads could be started\n",
                          pool->n_workers + 1, pool->params.n_threads);
            return;
        }
        ++pool->n_workers;
    }
}

// The lock is taken even if nobody sleeps: a worker between its last look and its sleep would miss
// the change. No thread: all end.
static void wake_workers(struct ggml_threadpool *pool, int n_threads, bool guests) {
    pthread_mutex_lock(&pool->lock);
    const uint64_t last = atomic_load(&pool->epoch), count = (last >> EPOCH_SHIFT) + 1;
    atomic_store(&pool->epoch,
                 count << EPOCH_SHIFT | (guests ? EPOCH_GUESTS : 0) | (uint64_t)n_threads);
    if (pool->sleepers.n > 0) pthread_cond_broadcast(&pool->sleepers.wake);
    if (pool->spares.n > 0 && (n_threads > threads_of(last) || n_threads == 0))
        pthread_cond_broadcast(&pool->spares.wake);
    pthread_mutex_unlock(&pool->lock);
}

// --- pool ------------------------------------------------------------------------------

// One that notices when its owner wants it again.
static void init_graph_lock(pthread_mutex_t *mutex) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

// Identifies the process, to notice a fork: the child has none of the parent's workers.
static long this_process(void) {
#ifdef _WIN32
    return 0; // where there is no fork
#else
    return (long)getpid();
#endif
}

// In the child of a fork the workers are not there, and who held a lock isn't either: starts over.
static void take_over(struct ggml_threadpool *pool) {
    if (pool->process == this_process()) return;
    pthread_mutex_lock(&idle_lock);
    if (pool->process != this_process()) {
        init_graph_lock(&pool->use);
        pthread_mutex_init(&pool->lock, NULL);
        pthread_cond_init(&pool->sleepers.wake, NULL);
        pthread_cond_init(&pool->spares.wake, NULL);
        atomic_store(&pool->epoch, 0); // or new workers would take the parent's work for theirs
        atomic_store(&pool->running.word, 0);
        atomic_store(&pool->running.sleepers, 0);
        atomic_store(&pool->door.word, DOOR_CLOSED);
        atomic_store(&pool->door.sleepers, 0);
        pool->sleepers.n = pool->spares.n = 0;
        pool->n_workers = 0;
        pool->started = pool->caller_placed = false;
        pool->process = this_process();
    }
    pthread_mutex_unlock(&idle_lock);
}

// Of the environment.
static void read_way(struct ggml_threadpool *pool) {
    const char *value = ggml_sdk_config("GGML_CPU_ALL_THREADS");
    pool->fixed.guests = value && strcmp(value, "guests") == 0;
    pool->is_fixed = pool->fixed.guests || (value && strcmp(value, "1") == 0);
}

// Starts no threads: the first graph that uses several starts as many as it needs. NULL with a
// message.
struct ggml_threadpool *cpu_threadpool_new(const struct ggml_threadpool_params *params) {
    if (params->n_threads < 1 || params->n_threads > GGML_MAX_N_THREADS ||
        params->prio < GGML_SCHED_PRIO_LOW || params->prio > GGML_SCHED_PRIO_REALTIME) {
        cpu_fail(GGML_STATUS_FAILED, GGML_HOST_INVALID_ARGUMENT,
                 "ggml_threadpool_new: %d threads, priority %d; 1 to %d threads are possible",
                 params->n_threads, (int)params->prio, GGML_MAX_N_THREADS);
        return NULL;
    }
    struct ggml_threadpool *pool = ggml_aligned_malloc(sizeof(*pool));
    if (!pool) return NULL;
    memset(pool, 0, sizeof(*pool));
    pool->params = *params;
    pool->workers = ggml_aligned_malloc((size_t)params->n_threads * sizeof(*pool->workers));
    if (!pool->workers) {
        ggml_aligned_free(pool, sizeof(*pool));
        return NULL;
    }
    init_graph_lock(&pool->use);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->sleepers.wake, NULL);
    pthread_cond_init(&pool->spares.wake, NULL);
    atomic_store(&pool->paused, params->paused);
    pool->process = this_process();
    atomic_store(&pool->door.word, DOOR_CLOSED);
    read_way(pool);
    return pool;
}

// Waits for a graph that is being computed, stops the workers and joins them. Nothing for NULL.
void cpu_threadpool_free(struct ggml_threadpool *pool) {
    if (!pool) return;
    take_over(pool);
    pthread_mutex_lock(&pool->use);
    atomic_store(&pool->stop, true);
    wake_workers(pool, 0, false);
    for (int i = 0; i < pool->n_workers; ++i)
        pthread_join(pool->workers[i].thread, NULL);
    pthread_mutex_unlock(&pool->use);
    pthread_cond_destroy(&pool->sleepers.wake);
    pthread_cond_destroy(&pool->spares.wake);
    pthread_mutex_destroy(&pool->lock);
    pthread_mutex_destroy(&pool->use);
    ggml_aligned_free(pool->workers, (size_t)pool->params.n_threads * sizeof(*pool->workers));
    ggml_aligned_free(pool, sizeof(*pool));
}

int cpu_threadpool_get_n_threads(struct ggml_threadpool *pool) {
    return pool->params.n_threads;
}

// Only ends spinning: workers sleep until there is work, which resumes the pool.
void cpu_threadpool_pause(struct ggml_threadpool *pool) {
    atomic_store(&pool->paused, true);
}

void cpu_threadpool_resume(struct ggml_threadpool *pool) {
    atomic_store(&pool->paused, false);
}

// A kernel, or a custom operation, that computes a graph on its own pool would wait for itself for
// ever: the thread that owns the lock is told so by it, the workers know whose they are.
int cpu_threadpool_begin(struct ggml_threadpool *pool, int n_threads) {
    take_over(pool);
    if (works_for == pool || pthread_mutex_lock(&pool->use) != 0) {
        cpu_fail(GGML_STATUS_FAILED, GGML_HOST_BUSY,
                 "a graph can't be computed from inside another one on the same thread pool");
        return 0;
    }
    atomic_store(&pool->paused, false);
    if (n_threads > 1 && !pool->started) start_workers(pool);
    if (!pool->caller_placed && !mask_is_empty(pool->params.cpumask)) place_thread(pool, 0);
    pool->caller_placed = true;
    return MAX(1, MIN(n_threads, pool->n_workers + 1));
}

static void wait_until(struct cpu_signal *signal, uint32_t value, struct cpu_team *team) {
    uint32_t now;
    while ((now = atomic_load(&signal->word)) != value)
        team->waited += cpu_signal_wait(signal, now);
}

static void see_off(struct ggml_threadpool *pool, struct cpu_team *team) {
    cpu_team_end(team);
    atomic_fetch_or(&pool->door.word, DOOR_CLOSED);
    wait_until(&pool->door, DOOR_CLOSED, team);
}

// running is set before the epoch changes, so that no worker can count itself off too early.
static void run_shares(struct ggml_threadpool *pool, struct cpu_team *team, cpu_share_fn share,
                       void *context) {
    if (team->n > 1) {
        pool->team = team;
        pool->share = share;
        pool->context = context;
        cpu_team_join(team, 0);
        if (team->guests)
            atomic_store(&pool->door.word, 0);
        else
            atomic_store(&pool->running.word, (uint32_t)team->n - 1);
        wake_workers(pool, team->n, team->guests);
    }
    share(context, 0, team->n);
    if (team->n > 1 && team->guests)
        see_off(pool, team);
    else if (team->n > 1)
        wait_until(&pool->running, 0, team);
}

// Threads that are bound are where the application or the user wants them, and stay there.
static bool is_bound(const struct ggml_threadpool *pool) {
    return pool->params.strict_cpu || atomic_load(&spread_workers) ||
           !mask_is_empty(pool->params.cpumask);
}

// More threads than processors only wait for each other. Which processors a process may use can
// change while it runs.
static int most_threads(struct ggml_threadpool *pool, int n_threads) {
    enum { COUNT_EVERY = 256 };
    if (pool->n_until_count-- == 0) {
        pool->n_until_count = COUNT_EVERY;
        pool->n_processors = cpu_thread_count_processors(pool->workers[0].thread);
    }
    return pool->n_processors > 0 ? MIN(n_threads, pool->n_processors) : n_threads;
}

void cpu_threadpool_run(struct ggml_threadpool *pool, struct cpu_team *team, int n_threads,
                        uint64_t kind, cpu_share_fn share, void *context) {
    const bool may_move = n_threads > 1 && !is_bound(pool);
    const bool may_choose = may_move && !pool->is_fixed;
    const int n = may_choose ? most_threads(pool, n_threads) : n_threads;
    const struct cpu_way way = may_choose ? cpu_crowd_way(&pool->crowd, kind, n) : pool->fixed;
    team->may_move = may_move;
    team->n = n - way.less;
    team->guests = way.guests && n > 1;
    const uint64_t start = cpu_clock_ns();
    run_shares(pool, team, share, context);
    if (may_choose)
        cpu_crowd_note(&pool->crowd, n, (int64_t)(cpu_clock_ns() - start), team->waited);
}

// Ends what begins with a graph: another thread may then use the pool.
void cpu_threadpool_end(struct ggml_threadpool *pool) {
    pthread_mutex_unlock(&pool->use);
}

// --- pools that are kept ---------------------------------------------------------------

static struct ggml_threadpool *idle; // last used first

// The first that is large enough, which is the one used last of these: its threads may still be
// spinning.
struct ggml_threadpool *cpu_threadpool_borrow(int n_threads) {
    pthread_mutex_lock(&idle_lock);
    struct ggml_threadpool **link = &idle;
    while (*link && (*link)->params.n_threads < n_threads)
        link = &(*link)->next_idle;
    struct ggml_threadpool *pool = *link;
    if (pool) *link = pool->next_idle;
    pthread_mutex_unlock(&idle_lock);
    if (pool) return pool;
    const struct ggml_threadpool_params params = {.n_threads = MIN(n_threads, GGML_MAX_N_THREADS),
                                                  .poll = 50};
    return cpu_threadpool_new(&params);
}

// Keeps the pool for the next graph without a pool of its own. More than MAX_IDLE_POOLS idle pools
// are not kept: the one that has been idle longest is freed, outside the lock, since that joins
// threads.
void cpu_threadpool_give_back(struct ggml_threadpool *pool) {
    pthread_mutex_lock(&idle_lock);
    pool->next_idle = idle;
    idle = pool;
    struct ggml_threadpool **link = &idle;
    for (int i = 0; i < MAX_IDLE_POOLS && *link; ++i)
        // Walks to the first pool beyond the limit, if there is one.
        link = &(*link)->next_idle;
    struct ggml_threadpool *surplus = *link;
    *link = NULL;
    pthread_mutex_unlock(&idle_lock);
    cpu_threadpool_free(surplus);
}

// One at a time, without the lock while its threads are joined.
void cpu_threadpool_shutdown(void) {
    for (;;) {
        pthread_mutex_lock(&idle_lock);
        struct ggml_threadpool *pool = idle;
        if (pool) idle = pool->next_idle;
        pthread_mutex_unlock(&idle_lock);
        if (!pool) return;
        cpu_threadpool_free(pool);
    }
}

// Kept once known. Two threads may find it out at the same time: they find the same.
int cpu_default_threads(void) {
    static _Atomic int threads;
    int n = atomic_load(&threads);
    if (n > 0) return n;
    struct ggml_host_topology topology = {.size = sizeof(topology)};
    const bool known = ggml_sdk_topology(&topology);
    n = known && topology.default_threads > 0 ? (int)topology.default_threads : 1;
    n = MIN(n, GGML_MAX_N_THREADS);
    atomic_store(&threads, n);
    return n;
}

void cpu_threadpool_set_spread(bool spread) {
    atomic_store(&spread_workers, spread);
}
