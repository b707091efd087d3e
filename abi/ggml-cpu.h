// SPDX-License-Identifier: MIT
// ggml-cpu.h: the CPU device: thread pools, plans, scalar access.
#ifndef GGML_CPU_H
#define GGML_CPU_H

#include "ggml-backend.h"
#include "ggml.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ggml_numa_strategy {
    GGML_NUMA_STRATEGY_DISABLED = 0,
    GGML_NUMA_STRATEGY_DISTRIBUTE = 1,
    GGML_NUMA_STRATEGY_ISOLATE = 2,
    GGML_NUMA_STRATEGY_NUMACTL = 3,
    GGML_NUMA_STRATEGY_MIRROR = 4,
    GGML_NUMA_STRATEGY_COUNT = 5,
};

// *s = dot product of n elements of x and y; with nrc == 2 four of them, at s[r + c * bs], of rows
// that are bx and by bytes apart.
typedef void (*ggml_vec_dot_t)(int n, float *GGML_RESTRICT s, size_t bs,
                               const void *GGML_RESTRICT x, size_t bx,
                               const void *GGML_RESTRICT y, size_t by, int nrc);

// How to compute a graph; see ggml_graph_plan().
struct ggml_cplan {
    size_t work_size;
    uint8_t *work_data; // allocated by the caller, work_size bytes
    int n_threads;
    struct ggml_threadpool *threadpool;
    ggml_abort_callback abort_callback;
    void *abort_callback_data;
    bool use_ref;
};

struct ggml_type_traits_cpu {
    ggml_from_float_t from_float;
    ggml_vec_dot_t vec_dot;
    enum ggml_type vec_dot_type;
    int64_t nrows;
};

// The CPU device is a plugin too. These functions find it in the registry (it is loaded on demand);
// where there is none they answer as on failure, with a message.

// --- NUMA ----------------------------------------------------------------------------------------

// How threads are spread over NUMA nodes; the first call decides, later ones do nothing. [init]
GGML_BACKEND_API void ggml_numa_init(enum ggml_numa_strategy numa);

// Whether the machine has several NUMA nodes that this process may use. [any-thread]
GGML_BACKEND_API bool ggml_is_numa(void);

// --- single values -------------------------------------------------------------------------------

// A tensor of one element with that value; an error tensor in a no_alloc context. [stream]
GGML_BACKEND_API struct ggml_tensor *ggml_new_i32(struct ggml_context *ctx, int32_t value);
GGML_BACKEND_API struct ggml_tensor *ggml_new_f32(struct ggml_context *ctx, float value);

// Set every element of a tensor in host memory, converted to its type (I8, I16, I32, F16, BF16,
// F32); answer the tensor. Other types and memory leave a message. [stream]
GGML_BACKEND_API struct ggml_tensor *ggml_set_i32(struct ggml_tensor *tensor, int32_t value);
GGML_BACKEND_API struct ggml_tensor *ggml_set_f32(struct ggml_tensor *tensor, float value);

// The element at flat logical index i, or at coordinates, of such a tensor, converted. Out of
// range: 0, and nothing is set. [stream]
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

// Starts n_threads - 1 workers (the thread that computes is the last) with the given affinity,
// priority and polling; the caller frees the pool. NULL on failure. [any-thread]
GGML_BACKEND_API struct ggml_threadpool *ggml_threadpool_new(struct ggml_threadpool_params *params);

// Stops and joins the workers; no compute may be running. NULL does nothing. Blocks. [stream]
GGML_BACKEND_API void ggml_threadpool_free(struct ggml_threadpool *threadpool);

// Threads including the one that computes; 0 for NULL. [any-thread]
GGML_BACKEND_API int ggml_threadpool_get_n_threads(struct ggml_threadpool *threadpool);

// Lets the workers sleep, or spin again as the polling level says. A compute resumes the pool.
// [stream]
GGML_BACKEND_API void ggml_threadpool_pause(struct ggml_threadpool *threadpool);
GGML_BACKEND_API void ggml_threadpool_resume(struct ggml_threadpool *threadpool);

// --- plans ---------------------------------------------------------------------------------------

// How to compute a graph with n_threads (<= 0: the pool's size, else the default): threads that can
// be used and bytes of work memory, which the caller then provides in work_data. All zero on
// failure. [any-thread]
GGML_BACKEND_API struct ggml_cplan ggml_graph_plan(const struct ggml_cgraph *cgraph, int n_threads,
                                                   struct ggml_threadpool *threadpool);

// Computes the graph with the plan on the calling thread and its workers; without a pool they end
// with the call. FAILED with a message, ALLOC_FAILED, or ABORTED by the callback. Blocks. [stream]
GGML_BACKEND_API enum ggml_status ggml_graph_compute(struct ggml_cgraph *cgraph,
                                                     struct ggml_cplan *cplan);

// The same with a plan of its own and work memory of its own: nothing is taken from ctx. [stream]
GGML_BACKEND_API enum ggml_status
ggml_graph_compute_with_ctx(struct ggml_context *ctx, struct ggml_cgraph *cgraph, int n_threads);

// --- features ------------------------------------------------------------------------------------

// 1 if the kernels in use employ the instruction set, 0 if not. [any-thread]
GGML_BACKEND_API int ggml_cpu_has_sse3(void);
GGML_BACKEND_API int ggml_cpu_has_ssse3(void);
GGML_BACKEND_API int ggml_cpu_has_avx(void);
GGML_BACKEND_API int ggml_cpu_has_avx_vnni(void);
GGML_BACKEND_API int ggml_cpu_has_avx2(void);
GGML_BACKEND_API int ggml_cpu_has_bmi2(void);
GGML_BACKEND_API int ggml_cpu_has_f16c(void);
GGML_BACKEND_API int ggml_cpu_has_fma(void);
GGML_BACKEND_API int ggml_cpu_has_avx512(void);
GGML_BACKEND_API int ggml_cpu_has_avx512_vbmi(void);
GGML_BACKEND_API int ggml_cpu_has_avx512_vnni(void);
GGML_BACKEND_API int ggml_cpu_has_avx512_bf16(void);
GGML_BACKEND_API int ggml_cpu_has_amx_int8(void);
GGML_BACKEND_API int ggml_cpu_has_neon(void);
GGML_BACKEND_API int ggml_cpu_has_arm_fma(void);
GGML_BACKEND_API int ggml_cpu_has_fp16_va(void);
GGML_BACKEND_API int ggml_cpu_has_dotprod(void);
GGML_BACKEND_API int ggml_cpu_has_matmul_int8(void);
GGML_BACKEND_API int ggml_cpu_has_sve(void);
GGML_BACKEND_API int ggml_cpu_has_sme(void);
GGML_BACKEND_API int ggml_cpu_has_sme2(void);
GGML_BACKEND_API int ggml_cpu_has_riscv_v(void);
GGML_BACKEND_API int ggml_cpu_has_vsx(void);
GGML_BACKEND_API int ggml_cpu_has_vxe(void);
GGML_BACKEND_API int ggml_cpu_has_wasm_simd(void);
GGML_BACKEND_API int ggml_cpu_has_llamafile(void);

// Bytes of an SVE / RISC-V vector register; 0 without. [any-thread]
GGML_BACKEND_API int ggml_cpu_get_sve_cnt(void);
GGML_BACKEND_API int ggml_cpu_get_rvv_vlen(void);

// Encoder and dot product of a type; static. NULL for a number out of range; members may be NULL.
// [any-thread]
GGML_BACKEND_API const struct ggml_type_traits_cpu *ggml_get_type_traits_cpu(enum ggml_type type);

// --- stream and device ---------------------------------------------------------------------------

// Kept for ggml's clients: loads the CPU backend if that has not happened. [any-thread]
GGML_BACKEND_API void ggml_cpu_init(void);

// A stream on the CPU, which the caller frees; NULL on failure. [any-thread]
GGML_BACKEND_API ggml_backend_t ggml_backend_cpu_init(void);

// Whether the stream is one of the CPU; false for NULL. [any-thread]
GGML_BACKEND_API bool ggml_backend_is_cpu(ggml_backend_t backend);

// Number of threads from the next compute on; <= 0: the pool's size, else the default. [stream]
GGML_BACKEND_API void ggml_backend_cpu_set_n_threads(ggml_backend_t backend_cpu, int n_threads);

// The pool to compute with, which stays the caller's and must outlive its use; NULL: the stream's
// own. The pool used before is paused. [stream]
GGML_BACKEND_API void ggml_backend_cpu_set_threadpool(ggml_backend_t backend_cpu,
                                                      ggml_threadpool_t threadpool);

// Asked between nodes; true ends the compute with ABORTED. NULL: none. [stream]
GGML_BACKEND_API void ggml_backend_cpu_set_abort_callback(ggml_backend_t backend_cpu,
                                                          ggml_abort_callback abort_callback,
                                                          void *abort_callback_data);

// Plain kernels only, without fusion and shortcuts: the side to compare with. [stream]
GGML_BACKEND_API void ggml_backend_cpu_set_use_ref(ggml_backend_t backend_cpu, bool use_ref);

// The CPU backend, or NULL. [any-thread]
GGML_BACKEND_API ggml_backend_reg_t ggml_backend_cpu_reg(void);

// --- row conversions -----------------------------------------------------------------------------

// Convert n elements from x to y; to an integer by truncation. [any-thread]
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
