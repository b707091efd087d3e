// SPDX-License-Identifier: MIT
// Threads that compute graphs. Workers start with the first graph that needs them, spin a while for
// the next one and then sleep. The thread that computes a graph is thread 0 of its team.
#ifndef CPU_THREADPOOL_H
#define CPU_THREADPOOL_H

#include "base/team.h"
#include "ggml-plugin-cpu.h"

// Work of one thread: 0 <= ith < nth.
typedef void (*cpu_share_fn)(void *context, int ith, int nth);

// Its head has no table of functions: what hands it to an application sets it. [any-thread]
struct ggml_threadpool *cpu_threadpool_new(const struct ggml_threadpool_params *params);
void cpu_threadpool_free(struct ggml_threadpool *pool);
int cpu_threadpool_get_n_threads(struct ggml_threadpool *pool);
void cpu_threadpool_pause(struct ggml_threadpool *pool);
void cpu_threadpool_resume(struct ggml_threadpool *pool);

// Locks the pool for one graph and starts its workers if need be; returns the number of threads
// that can run, at most n_threads; 0 (after telling why) inside a graph on the same pool.
// cpu_threadpool_end() unlocks it. Blocks while another thread's graph runs.
int cpu_threadpool_begin(struct ggml_threadpool *pool, int n_threads);
// Runs share on n_threads threads, the caller included; n_threads as returned. Where another
// program wants a processor they may be fewer, and change it, unless they are bound. Graphs of one
// kind take about the same time.
void cpu_threadpool_run(struct ggml_threadpool *pool, struct cpu_team *team, int n_threads,
                        uint64_t kind, cpu_share_fn share, void *context);
void cpu_threadpool_end(struct ggml_threadpool *pool);

// A pool that nobody uses, with at least n_threads, kept between graphs; NULL: no memory.
// [any-thread]
struct ggml_threadpool *cpu_threadpool_borrow(int n_threads);
void cpu_threadpool_give_back(struct ggml_threadpool *pool);
// Ends all that are kept. [init]
void cpu_threadpool_shutdown(void);

// The number of threads when nobody says one: the host's default. The first call may take
// milliseconds.
int cpu_default_threads(void);
// Spreads the workers of pools over NUMA nodes from now on. [init]
void cpu_threadpool_set_spread(bool spread);

#endif
