// SPDX-License-Identifier: MIT
// What a kernel of the CPU plugin sees, and how kernels are listed.
//
// Every source of cpu_kernels is compiled once per instruction-set level, with that level's flags
// and CPU_LEVEL defined to its name; it names its functions with CPU_FN so that the copies do not
// collide. kernel_list.inl has one row per kernel; "is this node supported" and "run this node" are
// one look-up in it.
#ifndef CPU_KERNEL_H
#define CPU_KERNEL_H

#include "ggml-impl.h"

#define CPU_PASTE_(a, b) a##_##b
#define CPU_PASTE(a, b) CPU_PASTE_(a, b)
#define CPU_FN(name) CPU_PASTE(name, CPU_LEVEL)

// Put before a loop whose iterations are independent: operands may be the same memory, never
// shifted.
#if defined(__clang__)
#define CPU_INDEPENDENT _Pragma("clang loop vectorize(assume_safety) interleave(assume_safety)")
#elif defined(__GNUC__)
#define CPU_INDEPENDENT _Pragma("GCC ivdep")
#else
#define CPU_INDEPENDENT
#endif

struct cpu_team; // the threads that compute one graph

// One thread's share of one node.
struct cpu_task {
    struct ggml_tensor *dst; // the node; operands in dst->src
    int ith;                 // this thread, 0 <= ith < nth
    int nth;
    void *work; // shared by the node's threads, 64-byte aligned, as large as the kernel's work
                // function asked
    size_t work_size;
    struct cpu_team *team;
    bool use_ref; // no fusion, no shortcuts
    bool exact;   // operands are not rounded, whatever the node permits
    bool bf16;    // products of BF16 numbers may be used, where the level has them
    bool vnni;    // AVX-VNNI likewise
    bool guests;  // other threads than 0 come and go, see cpu_task_take()
};

// Waits for the node's other threads; ith is the calling one. Every thread of the task calls it the
// same number of times, also one that failed. [stream]
void cpu_team_barrier(struct cpu_team *team, int ith);

// Runs this thread's share; all nth threads of the task call it. The result must not depend on nth.
// A failure is told by any one of them.
typedef enum ggml_status (*cpu_kernel_fn)(const struct cpu_task *task);
// Whether the kernel computes this node, beyond the types that its row lists: shapes, layout and
// limits. Operands may be without buffers.
typedef bool (*cpu_accepts_fn)(const struct ggml_tensor *node);
// Bytes of work memory for n_threads; must not shrink when n_threads grows.
typedef size_t (*cpu_work_fn)(const struct ggml_tensor *node, int n_threads);
// Rough number of elementary operations. A node below CPU_COST_PARALLEL runs on one thread (nth ==
// 1), any other on all threads of the graph.
typedef int64_t (*cpu_cost_fn)(const struct ggml_tensor *node);

#define CPU_COST_PARALLEL 16384

// This thread's half-open range of n items, split evenly; thread 0 has all where others come and
// go.
static inline void cpu_task_range(const struct cpu_task *task, int64_t n, int64_t *out_begin,
                                  int64_t *out_end) {
    if (task->guests) {
        *out_begin = 0;
        *out_end = task->ith == 0 ? n : 0;
        return;
    }
    *out_begin = n * task->ith / task->nth;
    *out_end = n * (task->ith + 1) / task->nth;
}

// Items [begin, end).
struct cpu_range {
    int64_t begin, end;
};

// Of n items of a node those that this thread computes next, so that a thread which is held up
// leaves the rest to others; false when none are left. `range` begins as {0}. Three quarters are
// even parts; pieces of the rest become smaller and smaller (guided self-scheduling:
// Polychronopoulos and Kuck, 1987), but have `least` items where that leaves some for every thread.
// Between two barriers only one kind of items is shared out so. Where threads come and go, all are
// small pieces, and a thread that was away may ask for items of a node that is done with: what it
// reads before it is given any must be the node and what its operands are, not what they hold.
// [stream]
bool cpu_task_take(const struct cpu_task *task, int64_t n, int64_t least, struct cpu_range *range);

// Some items of a part of them.
struct cpu_piece {
    struct cpu_range part, items;
};

// As cpu_task_take(), for items that are best computed where the thread left off: each thread has a
// part, which it computes from the beginning on; when nothing is left of it, it helps others with
// the ends of theirs. Where threads come and go, every piece is a part. `piece` begins as {0}.
// [stream]
bool cpu_task_take_near(const struct cpu_task *task, int64_t n, int64_t least,
                        struct cpu_piece *piece);

// Another process or thread may write to the memory that a number was read from: the compiler may
// not read it again behind this, so that what is checked is what is used.
#define CPU_READ_ONCE(number) __asm__("" : "+r"(number))

// Whether tensors with elements have bytes in common, or gaps of the one have some of the other.
static inline bool cpu_overlap(const struct ggml_tensor *a, const struct ggml_tensor *b) {
    const uintptr_t a0 = (uintptr_t)a->data, b0 = (uintptr_t)b->data;
    return a0 < b0 + ggml_nbytes(b) && b0 < a0 + ggml_nbytes(a);
}

#ifdef CPU_LEVEL
// Every entry of this level.
#define CPU_KERNEL_ROW(op, sub, entry, ...)                                                        \
    enum ggml_status CPU_FN(entry)(const struct cpu_task *task);
#include "runtime/kernel_list.inl"
#endif

#endif
