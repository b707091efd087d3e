// SPDX-License-Identifier: MIT
// Computes a plan on the threads of a pool.
#include <limits.h>

#include "base/threadpool.h"
#include "base/util.h"
#include "ggml-shape.h"
#include "runtime/plan.h"

struct execution {
    const struct cpu_plan *plan;
    const struct cpu_run *run;
    struct cpu_team team; // all threads
    struct cpu_team solo; // thread 0 alone
    // Steps after this one are not computed. It is set before the next barrier and read after it,
    // so that every thread leaves at the same step.
    _Atomic int last_step;
    _Atomic int status;
    _Atomic uint64_t place; // where guests begin: the step of thread 0, and barriers until there
};

// Of several failures the status of the first is kept, and the earliest step is the last.
static void stop_after(struct execution *execution, int step, enum ggml_status status) {
    int expected = GGML_STATUS_SUCCESS;
    atomic_compare_exchange_strong(&execution->status, &expected, (int)status);
    int last = atomic_load(&execution->last_step);
    while (last > step && !atomic_compare_exchange_weak(&execution->last_step, &last, step)) {
    }
}

// Computes the shares of more threads than there are, as whoever is there takes them.
static enum ggml_status run_parts(const struct cpu_step *step, const struct cpu_task *task,
                                  struct cpu_team *solo) {
    enum { PARTS_PER_THREAD = 8 };
    const int n_parts = PARTS_PER_THREAD * task->nth;
    enum ggml_status status = GGML_STATUS_SUCCESS;
    struct cpu_range range = {0};
    while (cpu_task_take(task, n_parts, 1, &range)) {
        for (int64_t i = range.begin; i < range.end; ++i) {
            struct cpu_task part = *task;
            part.ith = (int)i;
            part.nth = n_parts;
            part.team = solo;
            part.guests = false;
            const enum ggml_status failure = step->kernel(&part);
            if (failure != GGML_STATUS_SUCCESS) status = failure;
        }
    }
    return status;
}

// Flags are looked at here and not when planning: the application may change them between two runs
// of a plan. Of nodes that are computed together those of the last one count.
static void run_step(struct execution *execution, int i, int ith, int nth) {
    const struct cpu_step *step = &execution->plan->steps[i];
    const bool guests = execution->team.guests;
    const bool shared = guests ? step->takes || step->splits : step->parallel;
    if (!(step->node->flags & GGML_TENSOR_FLAG_COMPUTE) || (!shared && ith != 0)) return;
    const struct cpu_task task = {
        .dst = step->node,
        .ith = ith,
        .nth = shared ? nth : 1,
        .work = execution->run->work,
        .work_size = execution->plan->work_size,
        .team = shared ? &execution->team : &execution->solo,
        .use_ref = execution->plan->use_ref,
        .exact = execution->plan->exact,
        .bf16 = execution->plan->bf16,
        .vnni = execution->plan->vnni,
        .guests = shared && guests,
    };
    const enum ggml_status status =
        guests && step->splits ? run_parts(step, &task, &execution->solo) : step->kernel(&task);
    if (status != GGML_STATUS_SUCCESS) stop_after(execution, i, status);
}

// A guest begins with the step that thread 0 is at.
static int first_step(struct execution *execution, int ith) {
    if (!execution->team.guests || ith == 0) return 0;
    const uint64_t place = atomic_load(&execution->place);
    cpu_guest_begin((uint32_t)place);
    return (int)(place >> 32);
}

// Thread 0 is at step i, behind the barrier before it.
static void tell_place(struct execution *execution, int i) {
    const uint32_t barriers = atomic_load(&execution->team.generation.word);
    atomic_store(&execution->place, (uint64_t)i << 32 | barriers);
}

// Compiled twice, so that graphs whose times nobody wants do not ask for it at each step.
static inline void run_steps(struct execution *execution, int ith, int nth,
                             struct cpu_profile *profile) {
    const struct cpu_run *run = execution->run;
    const int first = first_step(execution, ith);
    for (int i = first; i < execution->plan->n_steps; ++i) {
        if (execution->plan->steps[i].barrier && i > first) cpu_team_barrier(&execution->team, ith);
        if (cpu_guest_leaves(&execution->team, ith)) return;
        if (execution->team.guests && ith == 0) tell_place(execution, i);
        if (atomic_load(&execution->last_step) < i) {
            if (nth == 1) return;
            continue;
        }
        if (profile) cpu_profile_step(profile, &execution->plan->steps[i]);
        run_step(execution, i, ith, nth);
        if (ith == 0 && run->abort_callback && run->abort_callback(run->abort_data)) {
            stop_after(execution, i, GGML_STATUS_ABORTED);
        }
    }
}

static void run_share(void *context, int ith, int nth) {
    run_steps(context, ith, nth, NULL);
}

// Only the first thread records.
static void run_share_timed(void *context, int ith, int nth) {
    struct execution *execution = context;
    run_steps(execution, ith, nth, ith == 0 ? execution->run->profile : NULL);
    // The others may still be busy with the last step: on a pool it ends when they do.
    if (nth == 1) cpu_profile_stop(execution->run->profile);
}

static bool has_data(const struct ggml_tensor *tensor) {
    return !tensor || tensor->data || ggml_nelements(tensor) == 0;
}

static bool has_all_data(const struct ggml_tensor *node) {
    bool present = has_data(node);
    for (int s = 0; s < GGML_MAX_SRC && present; ++s)
        present = has_data(node->src[s]);
    return present;
}

// The kernels take data for granted. Steps that aren't run need none.
static enum ggml_status check_data(const struct cpu_plan *plan) {
    for (int i = 0; i < plan->n_steps; ++i) {
        const struct cpu_step *step = &plan->steps[i];
        if (!(step->node->flags & GGML_TENSOR_FLAG_COMPUTE)) continue;
        const struct ggml_tensor *node = has_all_data(step->node) ? step->first : step->node;
        if (!has_all_data(node)) {
            return cpu_fail(GGML_STATUS_FAILED, GGML_HOST_INVALID_ARGUMENT,
                            "node '%.*s' (%s) or an operand has no data: allocate the graph before "
                            "computing it",
                            GGML_MAX_NAME, node->name, ggml_op_name(node->op));
        }
    }
    return GGML_STATUS_SUCCESS;
}

// Threads have nowhere to tell anything: the thread that asked tells it when all have ended.
static enum ggml_status report(struct execution *execution) {
    const enum ggml_status status = (enum ggml_status)atomic_load(&execution->status);
    if (status == GGML_STATUS_SUCCESS) return status;
    const struct ggml_tensor *node =
        execution->plan->steps[atomic_load(&execution->last_step)].node;
    if (status == GGML_STATUS_ABORTED) {
        return cpu_fail(status, GGML_HOST_ABORTED,
                        "the abort callback ended the graph after node '%.*s'", GGML_MAX_NAME,
                        node->name);
    }
    return cpu_fail(status,
                    status == GGML_STATUS_ALLOC_FAILED ? GGML_HOST_OUT_OF_MEMORY : GGML_HOST_FAILED,
                    "the kernel of node '%.*s' (%s) failed: its operands hold invalid values",
                    GGML_MAX_NAME, node->name, ggml_op_name(node->op));
}

// Of graphs that follow each other for the same model, those of a token look alike, and those of a
// prompt need more memory for work.
static uint64_t kind_of(const struct cpu_plan *plan) {
    return ((uint64_t)plan->work_size << 20 ^ (uint64_t)plan->n_steps) + 1;
}

// The pool may have fewer threads than the plan: each step divides its work by the number that it
// gets.
static enum ggml_status run_on_pool(struct execution *execution, struct ggml_threadpool *pool) {
    const int n = cpu_threadpool_begin(pool, execution->plan->n_threads);
    if (n < 1) return GGML_STATUS_FAILED;
    struct cpu_profile *profile = execution->run->profile;
    cpu_threadpool_run(pool, &execution->team, n, kind_of(execution->plan),
                       profile ? run_share_timed : run_share, execution);
    if (profile) cpu_profile_stop(profile);
    cpu_threadpool_end(pool);
    return report(execution);
}

// Plans without a parallel step take no pool: small graphs wake nobody.
enum ggml_status cpu_plan_run(const struct cpu_plan *plan, const struct cpu_run *run) {
    struct execution execution = {.plan = plan, .run = run, .team = {.n = 1}, .solo = {.n = 1}};
    atomic_init(&execution.last_step, INT_MAX);
    atomic_init(&execution.status, GGML_STATUS_SUCCESS);
    atomic_init(&execution.place, 0);
    const enum ggml_status status = check_data(plan);
    if (status != GGML_STATUS_SUCCESS) return status;
    if (!plan->parallel) {
        (run->profile ? run_share_timed : run_share)(&execution, 0, 1);
        return report(&execution);
    }
    if (run->pool) return run_on_pool(&execution, run->pool);
    struct ggml_threadpool *pool = cpu_threadpool_borrow(plan->n_threads);
    if (!pool) return GGML_STATUS_ALLOC_FAILED;
    const enum ggml_status result = run_on_pool(&execution, pool);
    cpu_threadpool_give_back(pool);
    return result;
}
