// SPDX-License-Identifier: MIT
// ggml-cpu.h: the CPU device: thread pools, plans, scalar access.
//
// The CPU device is a plugin too. These functions find it in the registry (it is loaded on demand);
// where there is none they return what they return on failure, with a message.
//
// Programs for all devices need none of this: they use a stream of a CPU device like any other
// (ggml-backend.h). What is here serves programs written for ggml's CPU functions, as this one,
// whose context holds the data:
//
//     struct ggml_init_params params = {.mem_size = 16u << 20}; // data in the arena
//     struct ggml_context *ctx = ggml_init(params);
//     struct ggml_tensor *a = ggml_set_f32(ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4), 2.0f);
//     struct ggml_tensor *b = ggml_sqr(ctx, a);
//     struct ggml_cgraph *graph = ggml_new_graph(ctx);
//     ggml_build_forward_expand(graph, b);
//     if (ggml_graph_compute_with_ctx(ctx, graph, 4) == GGML_STATUS_SUCCESS)
//         printf("%g\n", ggml_get_f32_1d(b, 0)); // 4
//     ggml_free(ctx);
#ifndef GGML_CPU_H
#define GGML_CPU_H

#include "ggml-backend.h"
#include "ggml.h"

#ifdef __cplusplus
extern "C" {
#endif

// How threads are spread over NUMA nodes: ggml_numa_init().
enum ggml_numa_strategy {
    GGML_NUMA_STRATEGY_DISABLED = 0,   // where the system puts them
    GGML_NUMA_STRATEGY_DISTRIBUTE = 1, // each worker on a core of its own, over all nodes
    GGML_NUMA_STRATEGY_ISOLATE = 2,    // as DISABLED: start the process on one node (numactl)
    GGML_NUMA_STRATEGY_NUMACTL = 3,    // as DISABLED: the process's own affinity holds
    GGML_NUMA_STRATEGY_MIRROR = 4,     // as DISABLED; in ggml too
    GGML_NUMA_STRATEGY_COUNT = 5,      // how many there are
};

// *s = dot product of n elements of x and y; with nrc == 2 four of them, at s[r + c * bs], of rows
// that are bx and by bytes apart. n is whole blocks of x's type; y is of its vec_dot_type.
typedef void (*ggml_vec_dot_t)(int n, float *GGML_RESTRICT s, size_t bs,
                               const void *GGML_RESTRICT x, size_t bx, const void *GGML_RESTRICT y,
                               size_t by, int nrc);

// How to compute a graph; made by ggml_graph_plan(), completed and kept by the caller.
struct ggml_cplan {
    size_t work_size;   // bytes of work memory that the graph needs; may be 0
    uint8_t *work_data; // allocated by the caller, work_size bytes; NULL if that is 0
    int n_threads;      // that can be used, at most those asked for; 0: planning failed
    struct ggml_threadpool *threadpool; // or NULL: threads that the device keeps
    ggml_abort_callback abort_callback; // asked between nodes; NULL: none
    void *abort_callback_data;          // its argument
    bool use_ref;                       // as ggml_backend_cpu_set_use_ref()
};

// How the CPU device computes with a type.
struct ggml_type_traits_cpu {
    ggml_from_float_t from_float; // encoder, perhaps faster than the reference; NULL: none
    ggml_vec_dot_t vec_dot;       // NULL: none
    enum ggml_type vec_dot_type;  // type that the other operand is rounded to for it
    int64_t nrows;                // rows per call: 1, or 2 where nrc may be 2
};

// --- NUMA ----------------------------------------------------------------------------------------

// How threads are spread over NUMA nodes; the first call decides, later ones do nothing. Loads the
// CPU backend. [init]
GGML_BACKEND_API void ggml_numa_init(enum ggml_numa_strategy numa);

// Whether the machine has several NUMA nodes that this process may use; whatever ggml_numa_init()
// was told. The first call may take milliseconds. [any-thread]
GGML_BACKEND_API bool ggml_is_numa(void);

// --- single values -------------------------------------------------------------------------------

// For tests and small programs: each call looks for the element. Whole tensors are faster by
// ggml_backend_tensor_set() and _get(), which also reach devices.

// A tensor [1] with that value; an error tensor in a no_alloc context, which has no data to set.
// [stream]
GGML_BACKEND_API struct ggml_tensor *ggml_new_i32(struct ggml_context *ctx, int32_t value);
GGML_BACKEND_API struct ggml_tensor *ggml_new_f32(struct ggml_context *ctx, float value);

// Set every element of a tensor in host memory, converted to its type (I8, I16, I32, F16, BF16,
// F32); return the tensor. Any strides. Other types and memory leave a message. [stream]
GGML_BACKEND_API struct ggml_tensor *ggml_set_i32(struct ggml_tensor *tensor, int32_t value);
GGML_BACKEND_API struct ggml_tensor *ggml_set_f32(struct ggml_tensor *tensor, float value);

// The element at flat logical index i (dimension 0 fastest, whatever the strides), or at
// coordinates, of such a tensor, converted: floats to integers by truncation, what does not fit to
// the nearest that does, NaN to 0. Out of range: 0 with a message, and nothing is set. Setting I8
// and I16 keeps the lowest bits. [stream]
GGML_BACKEND_API int32_t ggml_get_i32_1d(const struct ggml_tensor *tensor, int i);
GGML_BACKEND_API int32_t ggml_get_i32_nd(const struct ggml_tensor *tensor, int i0, int i1, int i2,
                                         int i3);
GGML_BACKEND_API void ggml_set_i32_1d(const struct ggml_tensor *tensor, int i, int32_t value);
GGML_BACKEND_API void ggml_set_i32_nd(const struct ggml_tensor *tensor, int i0, int i1, int i2,
                                      int i3, int32_t value);
GGML_BACKEND_API float ggml_get_f32_1d(const struct ggml_tensor *tensor, int i);
GGML_BACKEND_API float ggml_get_f32_nd(const struct ggml_tensor *tensor, int i0, int i1, int i2,
                                       int i3);
GGML_BACKEND_API void ggml_set_f32_1d(const struct ggml_tensor *tensor, int i, float value);
GGML_BACKEND_API void ggml_set_f32_nd(const struct ggml_tensor *tensor, int i0, int i1, int i2,
                                      int i3, float value);

// --- thread pools --------------------------------------------------------------------------------

// Streams have pools of their own; a program makes one to choose CPUs and priorities, or to share
// its threads between streams that it does not use at the same time.

// A pool of n_threads - 1 workers (the thread that computes is the last) with the given affinity,
// priority and polling, which start with its first graph; the caller frees the pool. params is
// needed during the call only. NULL on failure: no CPU device, or parameters out of range. Threads
// that the system does not give are left out, with a warning in the log. [any-thread]
GGML_BACKEND_API struct ggml_threadpool *ggml_threadpool_new(struct ggml_threadpool_params *params);

// Stops and joins the workers; waits for a graph that is being computed. Streams and plans that use
// it must not afterwards. NULL does nothing. Blocks. [stream]
GGML_BACKEND_API void ggml_threadpool_free(struct ggml_threadpool *threadpool);

// Threads including the one that computes; 0 for NULL. [any-thread]
GGML_BACKEND_API int ggml_threadpool_get_n_threads(struct ggml_threadpool *threadpool);

// Lets the workers sleep, or spin again as the polling level says. A compute resumes the pool. For
// times when the program needs the cores for something else. NULL does nothing. [stream]
GGML_BACKEND_API void ggml_threadpool_pause(struct ggml_threadpool *threadpool);
GGML_BACKEND_API void ggml_threadpool_resume(struct ggml_threadpool *threadpool);

// --- plans ---------------------------------------------------------------------------------------

// How to compute a graph with n_threads (<= 0: the pool's size, else the default): threads that can
// be used and bytes of work memory, which the caller then provides in work_data. All zero on
// failure. The graph must not change between planning and computing. [any-thread]
GGML_BACKEND_API struct ggml_cplan ggml_graph_plan(const struct ggml_cgraph *cgraph, int n_threads,
                                                   struct ggml_threadpool *threadpool);

// Computes the graph with the plan on the calling thread and its workers; tensors are in host
// memory, of contexts or buffers. Without a pool idle threads of the device are used, which stay
// for the next call. FAILED with a message, ALLOC_FAILED, or ABORTED by the callback. Two threads
// may compute different graphs at the same time; on one pool they take turns. Blocks. [stream]
GGML_BACKEND_API enum ggml_status ggml_graph_compute(struct ggml_cgraph *cgraph,
                                                     struct ggml_cplan *cplan);

// The same with a plan of its own and work memory of its own: nothing is taken from ctx (in ggml
// 0.27 the work memory is). Blocks. [stream]
GGML_BACKEND_API enum ggml_status
ggml_graph_compute_with_ctx(struct ggml_context *ctx, struct ggml_cgraph *cgraph, int n_threads);

// --- features ------------------------------------------------------------------------------------

// What the kernels in use employ, not what the machine has: ggml_host_cpu_features() says that.
// Loads the CPU backend.

// 1 if the kernels in use employ the instruction set, 0 if not, as for those of other machines.
// [any-thread]
GGML_BACKEND_API int ggml_cpu_has_sse3(void);        // x86-64
GGML_BACKEND_API int ggml_cpu_has_ssse3(void);       // byte shuffles
GGML_BACKEND_API int ggml_cpu_has_avx(void);         // 256-bit floats
GGML_BACKEND_API int ggml_cpu_has_avx_vnni(void);    // dot products of bytes, 256-bit encoding
GGML_BACKEND_API int ggml_cpu_has_avx2(void);        // 256-bit integers
GGML_BACKEND_API int ggml_cpu_has_bmi2(void);        // bit fields
GGML_BACKEND_API int ggml_cpu_has_f16c(void);        // conversions of binary16
GGML_BACKEND_API int ggml_cpu_has_fma(void);         // fused multiply and add
GGML_BACKEND_API int ggml_cpu_has_avx512(void);      // 512-bit vectors
GGML_BACKEND_API int ggml_cpu_has_avx512_vbmi(void); // byte permutations
GGML_BACKEND_API int ggml_cpu_has_avx512_vnni(void); // dot products of bytes
GGML_BACKEND_API int ggml_cpu_has_avx512_bf16(void); // dot products of bfloat16
GGML_BACKEND_API int ggml_cpu_has_amx_int8(void);    // tile products of bytes
GGML_BACKEND_API int ggml_cpu_has_neon(void);        // Arm, from here on
GGML_BACKEND_API int ggml_cpu_has_arm_fma(void);     // fused multiply and add
GGML_BACKEND_API int ggml_cpu_has_fp16_va(void);     // arithmetic of binary16
GGML_BACKEND_API int ggml_cpu_has_dotprod(void);     // dot products of bytes
GGML_BACKEND_API int ggml_cpu_has_matmul_int8(void); // 2 x 2 products of bytes
GGML_BACKEND_API int ggml_cpu_has_sve(void);         // scalable vectors
GGML_BACKEND_API int ggml_cpu_has_sme(void);         // scalable matrices
GGML_BACKEND_API int ggml_cpu_has_sme2(void);        // their second edition; 0, as what follows
GGML_BACKEND_API int ggml_cpu_has_riscv_v(void);     // RISC-V vectors
GGML_BACKEND_API int ggml_cpu_has_vsx(void);         // POWER
GGML_BACKEND_API int ggml_cpu_has_vxe(void);         // IBM Z
GGML_BACKEND_API int ggml_cpu_has_wasm_simd(void);   // WebAssembly
GGML_BACKEND_API int ggml_cpu_has_llamafile(void);   // matrix kernels of that project

// Bytes of an SVE / RISC-V vector register; 0 without. [any-thread]
GGML_BACKEND_API int ggml_cpu_get_sve_cnt(void);
GGML_BACKEND_API int ggml_cpu_get_rvv_vlen(void);

// Encoder and dot product of a type; static. NULL for a number out of range, or without a CPU
// backend; members may be NULL. [any-thread]
GGML_BACKEND_API const struct ggml_type_traits_cpu *ggml_get_type_traits_cpu(enum ggml_type type);

// --- stream and device ---------------------------------------------------------------------------

// Kept for ggml's clients: loads the CPU backend if that has not happened. [any-thread]
GGML_BACKEND_API void ggml_cpu_init(void);

// A stream on the CPU, which the caller frees; NULL on failure. The same as ggml_backend_dev_init()
// of the CPU device. It computes before it returns: nothing queues. [any-thread]
GGML_BACKEND_API ggml_backend_t ggml_backend_cpu_init(void);

// Whether the stream is one of the CPU; false for NULL. [any-thread]
GGML_BACKEND_API bool ggml_backend_is_cpu(ggml_backend_t backend);

// Number of threads from the next compute on, at most the pool's; <= 0: the pool's size, else the
// default, default_threads of struct ggml_host_topology. Fewer compute than that, unless threads
// are bound, where there are fewer processors, and where that is faster beside other programs;
// results are the same. [stream]
GGML_BACKEND_API void ggml_backend_cpu_set_n_threads(ggml_backend_t backend_cpu, int n_threads);

// The pool to compute with, which stays the caller's and must outlive its use; NULL: the device's
// own. The pool used before is paused. One of another CPU plugin leaves a message. [stream]
GGML_BACKEND_API void ggml_backend_cpu_set_threadpool(ggml_backend_t backend_cpu,
                                                      ggml_threadpool_t threadpool);

// Asked between nodes; true ends the compute with ABORTED. NULL: none. The data is the caller's and
// lives as long as the callback is set. [stream]
GGML_BACKEND_API void ggml_backend_cpu_set_abort_callback(ggml_backend_t backend_cpu,
                                                          ggml_abort_callback abort_callback,
                                                          void *abort_callback_data);

// Plain kernels only, without fusion and shortcuts: the side to compare with. Slower; results may
// differ in rounding. [stream]
GGML_BACKEND_API void ggml_backend_cpu_set_use_ref(ggml_backend_t backend_cpu, bool use_ref);

// The CPU backend, or NULL. With several the first. [any-thread]
GGML_BACKEND_API ggml_backend_reg_t ggml_backend_cpu_reg(void);

// --- row conversions -----------------------------------------------------------------------------

// Convert n elements from x to y, which do not overlap; n <= 0 does nothing. To half precision with
// rounding to nearest even; to an integer by truncation, what does not fit to the nearest that
// does, NaN to 0. [any-thread]
GGML_BACKEND_API void ggml_cpu_fp32_to_fp32(const float *x, float *y, int64_t n);
GGML_BACKEND_API void ggml_cpu_fp32_to_i32(const float *x, int32_t *y, int64_t n);
GGML_BACKEND_API void ggml_cpu_fp32_to_fp16(const float *x, ggml_fp16_t *y, int64_t n);
GGML_BACKEND_API void ggml_cpu_fp16_to_fp32(const ggml_fp16_t *x, float *y, int64_t n);
GGML_BACKEND_API void ggml_cpu_fp32_to_bf16(const float *x, ggml_bf16_t *y, int64_t n);
GGML_BACKEND_API void ggml_cpu_bf16_to_fp32(const ggml_bf16_t *x, float *y, int64_t n);

#ifdef __cplusplus
}
#endif

#endif
