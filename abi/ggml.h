// SPDX-License-Identifier: MIT
// ggml.h: tensors, operations, graphs. Source-compatible with ggml 0.27.
//
// Compiles alone as C11 and as C++17.
//
// Thread tags used in every public header:
//   [any-thread]  may be called from any thread at any time
//   [stream]      one thread at a time per object (context, graph, stream, buffer, allocator ...);
//                 a library built with -Dthread_checks=true refuses others with GGML_HOST_BUSY
//   [init]        during start-up, before other threads use the library
//
// No call aborts the process, whatever it is given. One that fails says so by its result (NULL, 0,
// false, a status, an error tensor), changes nothing else unless its contract says so, and leaves a
// message for the calling thread: see ggml_last_error() in ggml-host.h. NULL objects and arguments
// out of range count as failures where nothing is said about them. Strings are UTF-8.
#ifndef GGML_H
#define GGML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// Present in this implementation only: lets sources that also build against ggml tell them apart.
#define GGML_HOST 1

#if defined(GGML_PLUGIN_BUILD) && !defined(_WIN32)
// Inside a plugin the helper library is linked in: nothing of it may be exported or interposed.
#define GGML_API __attribute__((visibility("hidden"))) extern
#elif defined(GGML_SHARED) && defined(_WIN32) && !defined(GGML_PLUGIN_BUILD)
#ifdef GGML_BUILD
#define GGML_API __declspec(dllexport) extern
#else
#define GGML_API __declspec(dllimport) extern
#endif
#elif defined(__GNUC__) && !defined(_WIN32)
#define GGML_API __attribute__((visibility("default"))) extern
#else
#define GGML_API extern
#endif

#ifdef __GNUC__
#define GGML_DEPRECATED(func, hint) func __attribute__((deprecated(hint)))
#elif defined(_MSC_VER)
#define GGML_DEPRECATED(func, hint) __declspec(deprecated(hint)) func
#else
#define GGML_DEPRECATED(func, hint) func
#endif

#if defined(__MINGW32__) && !defined(__clang__)
#define GGML_ATTRIBUTE_FORMAT(...) __attribute__((format(gnu_printf, __VA_ARGS__)))
#elif defined(__GNUC__)
#define GGML_ATTRIBUTE_FORMAT(...) __attribute__((format(printf, __VA_ARGS__)))
#else
#define GGML_ATTRIBUTE_FORMAT(...)
#endif

#ifdef __cplusplus
#define GGML_NORETURN [[noreturn]]
#elif defined(_MSC_VER)
#define GGML_NORETURN __declspec(noreturn)
#else
#define GGML_NORETURN _Noreturn
#endif

#if defined(__cplusplus) && defined(__GNUC__)
#define GGML_RESTRICT __restrict__
#elif defined(__cplusplus) || defined(_MSC_VER)
#define GGML_RESTRICT __restrict
#else
#define GGML_RESTRICT restrict
#endif

#define GGML_FILE_MAGIC 0x67676d6c
#define GGML_FILE_VERSION 2
#define GGML_QNT_VERSION 2
#define GGML_QNT_VERSION_FACTOR 1000

#define GGML_MAX_DIMS 4
#define GGML_MAX_PARAMS 2048
#define GGML_MAX_SRC 10
#define GGML_MAX_N_THREADS 512
#define GGML_MAX_OP_PARAMS 64

// Size of a tensor's name and so part of the layout of struct ggml_tensor: the same for everybody.
#if defined(GGML_MAX_NAME) && GGML_MAX_NAME != 64
#error "GGML_MAX_NAME is 64 in ggml-host: remove its definition, longer names are cut to fit"
#endif
#undef GGML_MAX_NAME
#define GGML_MAX_NAME 64

#define GGML_DEFAULT_N_THREADS 4
#define GGML_DEFAULT_GRAPH_SIZE 2048

#if UINTPTR_MAX == 0xFFFFFFFF
#define GGML_MEM_ALIGN 4
#elif defined(__EMSCRIPTEN__)
#define GGML_MEM_ALIGN 8
#else
#define GGML_MEM_ALIGN 16
#endif

#define GGML_EXIT_SUCCESS 0
#define GGML_EXIT_ABORTED 1

#define GGML_ROPE_TYPE_NORMAL 0
#define GGML_ROPE_TYPE_NEOX 2
#define GGML_ROPE_TYPE_MROPE 8
#define GGML_ROPE_TYPE_VISION 24
#define GGML_ROPE_TYPE_IMROPE 40
#define GGML_MROPE_SECTIONS 4

#define GGML_N_TASKS_MAX (-1)

#define GGML_UNUSED(x) (void)(x)

#ifdef __CUDACC__
template <typename... Args>
__host__ __device__ constexpr inline void ggml_unused_vars_impl(Args &&...) noexcept {
}
#define GGML_UNUSED_VARS(...) ggml_unused_vars_impl(__VA_ARGS__)
#else
#define GGML_UNUSED_VARS(...)                                                                      \
    do {                                                                                           \
        (void)sizeof((__VA_ARGS__, 0));                                                            \
    } while (0)
#endif

// Numbers of operations, sub-operations and types from here on are never used by the contract: each
// vendor's own, declined by everybody else.
#define GGML_FIRST_PRIVATE 0x10000

// Of a tensor's flags those that must be understood.
#define GGML_TENSOR_FLAGS_STRICT 0xffff0000u

// Rounds x up to a multiple of n; n must be a power of two.
#define GGML_PAD(x, n) (((x) + (n)-1) & ~((n)-1))

#if defined(__GNUC__) || defined(__clang__)
#define GGML_UNREACHABLE() __builtin_unreachable()
#elif defined(_MSC_VER)
#define GGML_UNREACHABLE() __assume(0)
#else
#define GGML_UNREACHABLE() ((void)0)
#endif

// For clients' own checks: prints and aborts. The library itself uses them for its own bugs only.
#define GGML_ABORT(...) ggml_abort(__FILE__, __LINE__, __VA_ARGS__)
#define GGML_ASSERT(x)                                                                             \
    do {                                                                                           \
        if (!(x)) GGML_ABORT("GGML_ASSERT(%s) failed", #x);                                        \
    } while (0)

// Declare prefix0..prefix3 from an array member of a tensor; all 0 when the tensor is NULL.
#define GGML_TENSOR_LOCALS_1(type, prefix, pointer, array)                                         \
    const type prefix##0 = (pointer) ? (pointer)->array[0] : 0;                                    \
    GGML_UNUSED(prefix##0);
#define GGML_TENSOR_LOCALS_2(type, prefix, pointer, array)                                         \
    GGML_TENSOR_LOCALS_1(type, prefix, pointer, array)                                             \
    const type prefix##1 = (pointer) ? (pointer)->array[1] : 0;                                    \
    GGML_UNUSED(prefix##1);
#define GGML_TENSOR_LOCALS_3(type, prefix, pointer, array)                                         \
    GGML_TENSOR_LOCALS_2(type, prefix, pointer, array)                                             \
    const type prefix##2 = (pointer) ? (pointer)->array[2] : 0;                                    \
    GGML_UNUSED(prefix##2);
#define GGML_TENSOR_LOCALS(type, prefix, pointer, array)                                           \
    GGML_TENSOR_LOCALS_3(type, prefix, pointer, array)                                             \
    const type prefix##3 = (pointer) ? (pointer)->array[3] : 0;                                    \
    GGML_UNUSED(prefix##3);

#define GGML_TENSOR_UNARY_OP_LOCALS                                                                \
    GGML_TENSOR_LOCALS(int64_t, ne0, src0, ne)                                                     \
    GGML_TENSOR_LOCALS(size_t, nb0, src0, nb)                                                      \
    GGML_TENSOR_LOCALS(int64_t, ne, dst, ne)                                                       \
    GGML_TENSOR_LOCALS(size_t, nb, dst, nb)

#define GGML_TENSOR_BINARY_OP_LOCALS01                                                             \
    GGML_TENSOR_LOCALS(int64_t, ne0, src0, ne)                                                     \
    GGML_TENSOR_LOCALS(size_t, nb0, src0, nb)                                                      \
    GGML_TENSOR_LOCALS(int64_t, ne1, src1, ne)                                                     \
    GGML_TENSOR_LOCALS(size_t, nb1, src1, nb)

#define GGML_TENSOR_BINARY_OP_LOCALS                                                               \
    GGML_TENSOR_BINARY_OP_LOCALS01                                                                 \
    GGML_TENSOR_LOCALS(int64_t, ne, dst, ne)                                                       \
    GGML_TENSOR_LOCALS(size_t, nb, dst, nb)

#define GGML_TENSOR_TERNARY_OP_LOCALS                                                              \
    GGML_TENSOR_BINARY_OP_LOCALS01                                                                 \
    GGML_TENSOR_LOCALS(int64_t, ne2, src2, ne)                                                     \
    GGML_TENSOR_LOCALS(size_t, nb2, src2, nb)                                                      \
    GGML_TENSOR_LOCALS(int64_t, ne, dst, ne)                                                       \
    GGML_TENSOR_LOCALS(size_t, nb, dst, nb)

#ifdef __cplusplus
extern "C" {
#endif

struct ggml_object;
struct ggml_context;
struct ggml_cgraph;
struct ggml_backend_buffer;
struct ggml_threadpool;

// IEEE 754 binary16, as bits.
typedef uint16_t ggml_fp16_t;

// Upper half of an IEEE 754 binary32, as bits.
typedef struct {
    uint16_t bits;
} ggml_bf16_t;

enum ggml_op {
#define GGML_OP_ROW(number, name, ...) GGML_OP_##name = number,
#include "op_list.inl"
    GGML_OP_COUNT = 101,
};

enum ggml_unary_op {
#define GGML_UNARY_ROW(number, name, ...) GGML_UNARY_OP_##name = number,
#include "unary_list.inl"
    GGML_UNARY_OP_COUNT = 22,
};

enum ggml_glu_op {
#define GGML_GLU_ROW(number, name, ...) GGML_GLU_OP_##name = number,
#include "glu_list.inl"
    GGML_GLU_OP_COUNT = 7,
};

enum ggml_type {
#define GGML_TYPE_ROW(number, name, ...) GGML_TYPE_##name = number,
#include "type_list.inl"
    GGML_TYPE_COUNT = 43,
};

enum ggml_status {
    GGML_STATUS_ALLOC_FAILED = -2,
    GGML_STATUS_FAILED = -1,
    GGML_STATUS_SUCCESS = 0,
    GGML_STATUS_ABORTED = 1,
};

// How precisely an operation must be computed: a smaller number demands more. What each grade means
// for an accumulator and for a source is said at ggml_prec_set_acc() and ggml_prec_set_src().
enum ggml_prec {
    GGML_PREC_UNDEFINED = 0, // the implementation's choice
    GGML_PREC_DEFAULT = 0,   // older name of GGML_PREC_UNDEFINED
    GGML_PREC_F32 = 10,
    GGML_PREC_BF16 = 15,
    GGML_PREC_F16 = 20,
    GGML_PREC_Q8 = 30,
    GGML_PREC_Q4 = 40,
};

enum ggml_op_hint {
    GGML_HINT_NONE = 0,
    GGML_HINT_SRC0_IS_HADAMARD = 1,
};

enum ggml_ftype {
    GGML_FTYPE_UNKNOWN = -1,
    GGML_FTYPE_ALL_F32 = 0,
    GGML_FTYPE_MOSTLY_F16 = 1,
    GGML_FTYPE_MOSTLY_Q4_0 = 2,
    GGML_FTYPE_MOSTLY_Q4_1 = 3,
    GGML_FTYPE_MOSTLY_Q4_1_SOME_F16 = 4,
    GGML_FTYPE_MOSTLY_Q8_0 = 7,
    GGML_FTYPE_MOSTLY_Q5_0 = 8,
    GGML_FTYPE_MOSTLY_Q5_1 = 9,
    GGML_FTYPE_MOSTLY_Q2_K = 10,
    GGML_FTYPE_MOSTLY_Q3_K = 11,
    GGML_FTYPE_MOSTLY_Q4_K = 12,
    GGML_FTYPE_MOSTLY_Q5_K = 13,
    GGML_FTYPE_MOSTLY_Q6_K = 14,
    GGML_FTYPE_MOSTLY_IQ2_XXS = 15,
    GGML_FTYPE_MOSTLY_IQ2_XS = 16,
    GGML_FTYPE_MOSTLY_IQ3_XXS = 17,
    GGML_FTYPE_MOSTLY_IQ1_S = 18,
    GGML_FTYPE_MOSTLY_IQ4_NL = 19,
    GGML_FTYPE_MOSTLY_IQ3_S = 20,
    GGML_FTYPE_MOSTLY_IQ2_S = 21,
    GGML_FTYPE_MOSTLY_IQ4_XS = 22,
    GGML_FTYPE_MOSTLY_IQ1_M = 23,
    GGML_FTYPE_MOSTLY_BF16 = 24,
    GGML_FTYPE_MOSTLY_MXFP4 = 25,
    GGML_FTYPE_MOSTLY_NVFP4 = 26,
    GGML_FTYPE_MOSTLY_Q1_0 = 27,
    GGML_FTYPE_MOSTLY_Q2_0 = 28,
};

enum ggml_object_type {
    GGML_OBJECT_TYPE_TENSOR = 0,
    GGML_OBJECT_TYPE_GRAPH = 1,
    GGML_OBJECT_TYPE_WORK_BUFFER = 2,
};

enum ggml_log_level {
    GGML_LOG_LEVEL_NONE = 0,
    GGML_LOG_LEVEL_DEBUG = 1,
    GGML_LOG_LEVEL_INFO = 2,
    GGML_LOG_LEVEL_WARN = 3,
    GGML_LOG_LEVEL_ERROR = 4,
    GGML_LOG_LEVEL_CONT = 5,
};

// Bits 0 to 15 may be ignored by those who don't know them; the others must be understood.
enum ggml_tensor_flag {
#define GGML_TENSOR_FLAG_ROW(value, name, since) GGML_TENSOR_FLAG_##name = value,
#include "flag_list.inl"
};

enum ggml_tri_type {
    GGML_TRI_TYPE_UPPER_DIAG = 0,
    GGML_TRI_TYPE_UPPER = 1,
    GGML_TRI_TYPE_LOWER_DIAG = 2,
    GGML_TRI_TYPE_LOWER = 3,
};

enum ggml_op_pool {
    GGML_OP_POOL_MAX = 0,
    GGML_OP_POOL_AVG = 1,
    GGML_OP_POOL_COUNT = 2,
};

enum ggml_scale_mode {
    GGML_SCALE_MODE_NEAREST = 0,
    GGML_SCALE_MODE_BILINEAR = 1,
    GGML_SCALE_MODE_BICUBIC = 2,
    GGML_SCALE_MODE_COUNT = 3,
};

enum ggml_scale_flag {
    GGML_SCALE_FLAG_ALIGN_CORNERS = 256,
    GGML_SCALE_FLAG_ANTIALIAS = 512,
};

enum ggml_sort_order {
    GGML_SORT_ORDER_ASC = 0,
    GGML_SORT_ORDER_DESC = 1,
};

enum ggml_sched_priority {
    GGML_SCHED_PRIO_LOW = -1,
    GGML_SCHED_PRIO_NORMAL = 0,
    GGML_SCHED_PRIO_MEDIUM = 1,
    GGML_SCHED_PRIO_HIGH = 2,
    GGML_SCHED_PRIO_REALTIME = 3,
};

// Parameters of ggml_init().
struct ggml_init_params {
    size_t mem_size;  // bytes of the context's arena
    void *mem_buffer; // the caller's memory, GGML_MEM_ALIGN aligned, or NULL: allocated and owned
    bool no_alloc;    // tensors get no data
};

// An n-dimensional array or view. Index 0 is the fastest dimension. Field order is part of the
// contract.
struct ggml_tensor {
    enum ggml_type type;
    struct ggml_backend_buffer *buffer; // NULL until allocated by a backend
    int64_t ne[GGML_MAX_DIMS];          // extents, in elements
    size_t nb[GGML_MAX_DIMS];           // strides, in bytes; nb[0] = size of a block
    enum ggml_op op;                    // what computes it; GGML_OP_NONE for leafs
    int32_t op_params[GGML_MAX_OP_PARAMS / sizeof(int32_t)];
    int32_t flags; // enum ggml_tensor_flag
    struct ggml_tensor *src[GGML_MAX_SRC];
    struct ggml_tensor *view_src; // owner of the memory, never itself a view
    size_t view_offs;             // bytes from view_src->data
    void *data;                   // address on its device; NULL: not allocated
    char name[GGML_MAX_NAME];
    void *extra; // the backend's
    // Zero. A later minor of the contract may put the address of a struct there that says more of
    // the tensor: what does not know that struct must not compute with such a tensor.
    char padding[8];
};

static const size_t GGML_TENSOR_SIZE = sizeof(struct ggml_tensor);

// Receives the message of ggml_abort(); when it returns the process ends.
typedef void (*ggml_abort_callback_t)(const char *error_message);
// Answers true to stop a computation.
typedef bool (*ggml_abort_callback)(void *data);

typedef uint8_t ggml_guid[16];
typedef ggml_guid *ggml_guid_t;

// Receives a piece of log text; see ggml_log_set().
typedef void (*ggml_log_callback)(enum ggml_log_level level, const char *text, void *user_data);

// Decode and encode a row of k elements, whole blocks.
typedef void (*ggml_to_float_t)(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k);
typedef void (*ggml_from_float_t)(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, int64_t k);

struct ggml_type_traits {
    const char *type_name;
    int64_t blck_size;
    int64_t blck_size_interleave;
    size_t type_size;
    bool is_quantized;
    ggml_to_float_t to_float;
    ggml_from_float_t from_float_ref;
};

struct ggml_threadpool_params {
    bool cpumask[GGML_MAX_N_THREADS]; // all false: inherit
    int n_threads;
    enum ggml_sched_priority prio;
    uint32_t poll; // 0: sleep at once ... 100: spin longest before sleeping
    bool strict_cpu;
    bool paused;
};

typedef struct ggml_threadpool *ggml_threadpool_t;

// --- failure -------------------------------------------------------------------------------------

// Sets what ggml_abort() calls before it ends the process; NULL: print to stderr. Answers the one
// before, or NULL. The library never aborts over its input, so this serves the client's own
// assertions. [any-thread]
GGML_API ggml_abort_callback_t ggml_set_abort_callback(ggml_abort_callback_t callback);

// Ends the process after "file:line: message" went to the abort callback or to stderr. For
// GGML_ABORT and GGML_ASSERT; no other function of this library reaches it. [any-thread]
GGML_NORETURN GGML_API void ggml_abort(const char *file, int line, const char *fmt, ...)
    GGML_ATTRIBUTE_FORMAT(3, 4);

// Constant text of a status, never NULL. [any-thread]
GGML_API const char *ggml_status_to_string(enum ggml_status status);

// --- scalar conversions --------------------------------------------------------------------------

// binary16 <-> binary32: round to nearest even, subnormals kept, overflow gives an infinity, NaN
// becomes quiet. Rows: n elements from x to y, which do not overlap; n <= 0 does nothing.
// [any-thread]
GGML_API float ggml_fp16_to_fp32(ggml_fp16_t x);
GGML_API ggml_fp16_t ggml_fp32_to_fp16(float x);
GGML_API void ggml_fp16_to_fp32_row(const ggml_fp16_t *x, float *y, int64_t n);
GGML_API void ggml_fp32_to_fp16_row(const float *x, ggml_fp16_t *y, int64_t n);

// bfloat16 <-> binary32: round to nearest even, NaN is made quiet. Rows as above; the _ref row is
// the scalar twin of the plain one and answers the same bits. [any-thread]
GGML_API ggml_bf16_t ggml_fp32_to_bf16(float x);
GGML_API float ggml_bf16_to_fp32(ggml_bf16_t x);
GGML_API void ggml_bf16_to_fp32_row(const ggml_bf16_t *x, float *y, int64_t n);
GGML_API void ggml_fp32_to_bf16_row_ref(const float *x, ggml_bf16_t *y, int64_t n);
GGML_API void ggml_fp32_to_bf16_row(const float *x, ggml_bf16_t *y, int64_t n);

// --- services ------------------------------------------------------------------------------------

// Whether two identities are equal. [any-thread]
GGML_API bool ggml_guid_matches(ggml_guid_t guid_a, ggml_guid_t guid_b);

// Version ("0.27.0") and source revision of the library; constant, never NULL. [any-thread]
GGML_API const char *ggml_version(void);
GGML_API const char *ggml_commit(void);

// Kept for ggml's clients: nothing has to be prepared. [any-thread]
GGML_API void ggml_time_init(void);

// Monotonic time since an arbitrary start, in milliseconds and microseconds. [any-thread]
GGML_API int64_t ggml_time_ms(void);
GGML_API int64_t ggml_time_us(void);

// Processor time used by the process, and how many of its ticks make a millisecond. [any-thread]
GGML_API int64_t ggml_cycles(void);
GGML_API int64_t ggml_cycles_per_ms(void);

// fopen() with a UTF-8 path on every system. NULL on failure; the caller closes the file. Blocks on
// the file system. [any-thread]
GGML_API FILE *ggml_fopen(const char *fname, const char *mode);

// Receives log text at a level; NULL restores the default, stderr. While a callback is set nothing
// is written to stdout or stderr. Text may be a fragment that GGML_LOG_LEVEL_CONT continues; the
// callback must be callable from any thread and may not call back into this function. [any-thread]
GGML_API void ggml_log_set(ggml_log_callback log_callback, void *user_data);

// The callback in use and its user data; either pointer may be NULL. [any-thread]
GGML_API void ggml_log_get(ggml_log_callback *log_callback, void **user_data);

// --- types ---------------------------------------------------------------------------------------

// Elements (1 for plain types) and bytes of a block; 0 for numbers that name no type. [any-thread]
GGML_API int64_t ggml_blck_size(enum ggml_type type);
GGML_API size_t ggml_type_size(enum ggml_type type);

// Bytes of a row of ne elements, 0 if negative, SIZE_MAX / 2 if it does not fit. [any-thread]
GGML_API size_t ggml_row_size(enum ggml_type type, int64_t ne);

// Bytes per element as a fraction; 0 for numbers that name no type. [any-thread]
GGML_API GGML_DEPRECATED(double ggml_type_sizef(enum ggml_type type), "use ggml_row_size");

// "f32", "q4_K" ...; a removed type answers why it is gone, no type "NONE". Constant. [any-thread]
GGML_API const char *ggml_type_name(enum ggml_type type);

// Whether blocks of the type share scales; false for numbers that name no type. [any-thread]
GGML_API bool ggml_is_quantized(enum ggml_type type);

// Type of most tensors of a file type; GGML_TYPE_COUNT where there is none (UNKNOWN,
// MOSTLY_Q4_1_SOME_F16). [any-thread]
GGML_API enum ggml_type ggml_ftype_to_ggml_type(enum ggml_ftype ftype);

// Name, block and row conversions of a type; static, never NULL: "NONE" with a block of 0 for a
// number out of range. to_float or from_float_ref is NULL where there is none. [any-thread]
GGML_API const struct ggml_type_traits *ggml_get_type_traits(enum ggml_type type);

// Whether nbytes of data are whole blocks of the type without NaN or infinity in values and scales.
// Integers have nothing to check. The message names the first bad block. [any-thread]
GGML_API bool ggml_validate_row_data(enum ggml_type type, const void *data, size_t nbytes);

// --- names of operations -------------------------------------------------------------------------

// Name without prefix ("MUL_MAT"), and formula-like symbol ("X*Y"); constant, "UNKNOWN" and
// "unknown" for numbers out of range. [any-thread]
GGML_API const char *ggml_op_name(enum ggml_op op);
GGML_API const char *ggml_op_symbol(enum ggml_op op);

// Names of sub-operations ("GELU"); constant, "UNKNOWN" for numbers out of range. [any-thread]
GGML_API const char *ggml_unary_op_name(enum ggml_unary_op op);
GGML_API const char *ggml_glu_op_name(enum ggml_glu_op op);

// Name of the sub-operation of a UNARY or GLU node, of the operation otherwise. [any-thread]
GGML_API const char *ggml_op_desc(const struct ggml_tensor *t);

// Sub-operation of a UNARY or GLU node; the enum's COUNT for any other tensor. [any-thread]
GGML_API enum ggml_unary_op ggml_get_unary_op(const struct ggml_tensor *tensor);
GGML_API enum ggml_glu_op ggml_get_glu_op(const struct ggml_tensor *tensor);

// --- shape and layout ----------------------------------------------------------------------------

// These only read a tensor's type, ne and nb; NULL and error tensors answer 0 or false.

// Product of all extents; product of ne[1..3]. [any-thread]
GGML_API int64_t ggml_nelements(const struct ggml_tensor *tensor);
GGML_API int64_t ggml_nrows(const struct ggml_tensor *tensor);

// Bytes from the first to past the last element, gaps of a strided view included; 0 when empty. The
// _pad form rounds up to GGML_MEM_ALIGN. [any-thread]
GGML_API size_t ggml_nbytes(const struct ggml_tensor *tensor);
GGML_API size_t ggml_nbytes_pad(const struct ggml_tensor *tensor);

// Bytes of one block of the tensor's type. [any-thread]
GGML_API size_t ggml_element_size(const struct ggml_tensor *tensor);

// Index of the last extent above 1, plus 1; at least 1. [any-thread]
GGML_API int ggml_n_dims(const struct ggml_tensor *tensor);

// Whether all extents / ne[1..3] / ne[2..3] / ne[3] are 1. [any-thread]
GGML_API bool ggml_is_scalar(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_vector(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_matrix(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_3d(const struct ggml_tensor *tensor);

// Whether some extent is 0. [any-thread]
GGML_API bool ggml_is_empty(const struct ggml_tensor *tensor);

// Whether the memory belongs to another tensor (view_src). [any-thread]
GGML_API bool ggml_is_view(const struct ggml_tensor *tensor);

// Whether nb[0] > nb[1]; whether any stride exceeds the next. [any-thread]
GGML_API bool ggml_is_transposed(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_permuted(const struct ggml_tensor *tensor);

// Whether the elements are packed in index order. _0 is the same; with _1 and _2 the strides of
// dimensions up to 1 and 2 are free as long as higher ones are packed on top of them (dimension 0
// stays packed). [any-thread]
GGML_API bool ggml_is_contiguous(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_contiguous_0(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_contiguous_1(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_contiguous_2(const struct ggml_tensor *tensor);

// The check of ggml_is_contiguous() for dimensions below 1, 2, 3 only. [any-thread]
GGML_API bool ggml_is_contiguous_to_1(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_contiguous_to_2(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_contiguous_to_3(const struct ggml_tensor *tensor);

// Whether there are no gaps, in whatever order of dimensions. [any-thread]
GGML_API bool ggml_is_contiguously_allocated(const struct ggml_tensor *tensor);

// Whether memory order is channel, width, height (dimension 2 fastest). [any-thread]
GGML_API bool ggml_is_contiguous_channels(const struct ggml_tensor *tensor);

// Whether each row is packed: nb[0] is a block, or the row is one block. [any-thread]
GGML_API bool ggml_is_contiguous_rows(const struct ggml_tensor *tensor);

// Whether all extents / all strides are equal. [any-thread]
GGML_API bool ggml_are_same_shape(const struct ggml_tensor *t0, const struct ggml_tensor *t1);
GGML_API bool ggml_are_same_stride(const struct ggml_tensor *t0, const struct ggml_tensor *t1);

// Whether t1 is a whole number of repetitions of t0 in every dimension. [any-thread]
GGML_API bool ggml_can_repeat(const struct ggml_tensor *t0, const struct ggml_tensor *t1);

// Coordinates of flat logical index i (dimension 0 fastest); any output may be NULL. The last one
// takes what exceeds the tensor. [any-thread]
GGML_API void ggml_unravel_index(const struct ggml_tensor *tensor, int64_t i, int64_t *i0,
                                 int64_t *i1, int64_t *i2, int64_t *i3);

// Bytes that a tensor without data takes of a context's arena. [any-thread]
GGML_API size_t ggml_tensor_overhead(void);

// --- context -------------------------------------------------------------------------------------

// A context: an arena of params.mem_size bytes that owns the tensors and graphs made in it. Size it
// with ggml_tensor_overhead() and ggml_graph_overhead(). NULL when memory runs out or
// params.mem_buffer is not aligned; the caller's buffer stays the caller's. [any-thread]
GGML_API struct ggml_context *ggml_init(struct ggml_init_params params);

// Forgets every tensor and graph, keeps the arena: pointers into it become invalid. [stream]
GGML_API void ggml_reset(struct ggml_context *ctx);

// Ends the context and what was made in it, but no backend buffers. NULL does nothing. [stream]
GGML_API void ggml_free(struct ggml_context *ctx);

// Arena: bytes used so far, its address, its size. [stream]
GGML_API size_t ggml_used_mem(const struct ggml_context *ctx);
GGML_API void *ggml_get_mem_buffer(const struct ggml_context *ctx);
GGML_API size_t ggml_get_mem_size(const struct ggml_context *ctx);

// Whether new tensors get no data. Setting affects later tensors only. [stream]
GGML_API bool ggml_get_no_alloc(struct ggml_context *ctx);
GGML_API void ggml_set_no_alloc(struct ggml_context *ctx, bool no_alloc);

// Largest ggml_nbytes() among the context's tensors. [stream]
GGML_API size_t ggml_get_max_tensor_size(const struct ggml_context *ctx);

// Describe one object, or all of a context's, in the log. For debugging. [stream]
GGML_API void ggml_print_object(const struct ggml_object *obj);
GGML_API void ggml_print_objects(const struct ggml_context *ctx);

// --- making tensors ------------------------------------------------------------------------------

// All functions that answer a tensor of a context: it belongs to the context and lives as long.
// They never answer NULL: for impossible arguments (NULL context or operand, unknown type, negative
// or overflowing extents, partial blocks) and when the arena is full they answer the context's
// error tensor (ggml_tensor_is_error() in ggml-host.h), which can be passed on safely but not
// computed.

// A packed tensor with n_dims (1..4) extents; missing ones are 1. Zero extents are legal. Its data
// follows in the arena unless the context is no_alloc, and is not initialised. [stream]
GGML_API struct ggml_tensor *ggml_new_tensor(struct ggml_context *ctx, enum ggml_type type,
                                             int n_dims, const int64_t *ne);
GGML_API struct ggml_tensor *ggml_new_tensor_1d(struct ggml_context *ctx, enum ggml_type type,
                                                int64_t ne0);
GGML_API struct ggml_tensor *ggml_new_tensor_2d(struct ggml_context *ctx, enum ggml_type type,
                                                int64_t ne0, int64_t ne1);
GGML_API struct ggml_tensor *ggml_new_tensor_3d(struct ggml_context *ctx, enum ggml_type type,
                                                int64_t ne0, int64_t ne1, int64_t ne2);
GGML_API struct ggml_tensor *ggml_new_tensor_4d(struct ggml_context *ctx, enum ggml_type type,
                                                int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3);

// A packed tensor of src's type and extents; data, operation and name are not taken over. [stream]
GGML_API struct ggml_tensor *ggml_dup_tensor(struct ggml_context *ctx,
                                             const struct ggml_tensor *src);

// A tensor over src's memory with its extents and strides, without an operation. [stream]
GGML_API struct ggml_tensor *ggml_view_tensor(struct ggml_context *ctx, struct ggml_tensor *src);

// nbytes of the arena, aligned to GGML_MEM_ALIGN; NULL when it is full. [stream]
GGML_API void *ggml_new_buffer(struct ggml_context *ctx, size_t nbytes);

// --- tensors of a context ------------------------------------------------------------------------

// The context's tensors in order of creation; NULL past the last. [stream]
GGML_API struct ggml_tensor *ggml_get_first_tensor(const struct ggml_context *ctx);
GGML_API struct ggml_tensor *ggml_get_next_tensor(const struct ggml_context *ctx,
                                                  struct ggml_tensor *tensor);

// The first tensor of that name, or NULL without a message. [stream]
GGML_API struct ggml_tensor *ggml_get_tensor(struct ggml_context *ctx, const char *name);

// Data address as it is, and the same for F32 tensors; NULL where there is none, or where the type
// is another. Only dereference it if the buffer is host memory. [any-thread]
GGML_API void *ggml_get_data(const struct ggml_tensor *tensor);
GGML_API float *ggml_get_data_f32(const struct ggml_tensor *tensor);

// The tensor's name; "" if it has none, never NULL. [any-thread]
GGML_API const char *ggml_get_name(const struct ggml_tensor *tensor);

// Set the name, cut to GGML_MAX_NAME - 1 bytes; answer the tensor. [stream]
GGML_API struct ggml_tensor *ggml_set_name(struct ggml_tensor *tensor, const char *name);
GGML_API struct ggml_tensor *ggml_format_name(struct ggml_tensor *tensor, const char *fmt, ...)
    GGML_ATTRIBUTE_FORMAT(2, 3);

// Sets every byte to 0 through the tensor's buffer, or directly if it has none; answers the tensor.
// Blocks. A tensor without data leaves a message and is not touched. [stream]
GGML_API struct ggml_tensor *ggml_set_zero(struct ggml_tensor *tensor);

// Input: allocated before anything is computed, not overwritten until its last use. [stream]
GGML_API void ggml_set_input(struct ggml_tensor *tensor);

// Output: never overwritten by later nodes; marks the memory's owner too. [stream]
GGML_API void ggml_set_output(struct ggml_tensor *tensor);

// Trainable parameter: a tensor without operation. Any other leaves a message. [stream]
GGML_API void ggml_set_param(struct ggml_tensor *tensor);

// Term of the loss: an F32 scalar. Any other leaves a message. [stream]
GGML_API void ggml_set_loss(struct ggml_tensor *tensor);

// --- graphs --------------------------------------------------------------------------------------

// A graph that holds an error tensor, or that ran out of room, is in error: it stays a valid
// object, every compute function refuses it, and ggml_graph_error() in ggml-host.h says why.

// An empty graph in the context, for GGML_DEFAULT_GRAPH_SIZE nodes without gradients, or for `size`
// nodes and as many leafs. NULL when the arena is full. [stream]
GGML_API struct ggml_cgraph *ggml_new_graph(struct ggml_context *ctx);
GGML_API struct ggml_cgraph *ggml_new_graph_custom(struct ggml_context *ctx, size_t size,
                                                   bool grads);

// Bytes that these take of the arena; 0 if size is too large. [any-thread]
GGML_API size_t ggml_graph_overhead(void);
GGML_API size_t ggml_graph_overhead_custom(size_t size, bool grads);

// Adds the tensor and everything that it depends on, each once, dependencies first, and flags what
// is newly reached as to be computed. Deep graphs do not exhaust the stack. [stream]
GGML_API void ggml_build_forward_expand(struct ggml_cgraph *cgraph, struct ggml_tensor *tensor);

// The same without the flag: fixes the order only. [stream]
GGML_API void ggml_build_forward_order(struct ggml_cgraph *cgraph, struct ggml_tensor *tensor);

// Adds all n_tensors, flags only what tensors[idx] depends on, and answers tensors[idx]; the shape
// of the graph does not depend on idx. Out of range: an error tensor and a graph in error. [stream]
GGML_API struct ggml_tensor *ggml_build_forward_select(struct ggml_cgraph *cgraph,
                                                       struct ggml_tensor **tensors, int n_tensors,
                                                       int idx);

// Appends the gradient computation to a graph made with grads. grad_accs: accumulators by node
// index, or NULL; missing ones are made in ctx for loss nodes. Needs at least one parameter and one
// loss. An operation without a backward rule puts the graph in error. [stream]
GGML_API void ggml_build_backward_expand(struct ggml_context *ctx, struct ggml_cgraph *cgraph,
                                         struct ggml_tensor **grad_accs);

// A copy in ctx that shares the tensors; with gradients if the source has them or force_grads. NULL
// when the arena is full. [stream]
GGML_API struct ggml_cgraph *ggml_graph_dup(struct ggml_context *ctx, struct ggml_cgraph *cgraph,
                                            bool force_grads);

// Replaces dst's content by src's, sharing tensors; a dst that is too small is in error. [stream]
GGML_API void ggml_graph_cpy(struct ggml_cgraph *src, struct ggml_cgraph *dst);

// Before an optimiser step: zeroes momenta and gradient accumulators, sets the loss's to 1. Needs a
// graph with gradients, allocated; NULL does nothing. Blocks. [stream]
GGML_API void ggml_graph_reset(struct ggml_cgraph *cgraph);

// Removes every node and leaf; an error is forgotten too. [stream]
GGML_API void ggml_graph_clear(struct ggml_cgraph *cgraph);

// Capacity in nodes; number of nodes; the node array, valid until the graph changes. [stream]
GGML_API int ggml_graph_size(struct ggml_cgraph *cgraph);
GGML_API int ggml_graph_n_nodes(struct ggml_cgraph *cgraph);
GGML_API struct ggml_tensor **ggml_graph_nodes(struct ggml_cgraph *cgraph);

// Node i; a negative i counts from the end. NULL with a message when out of range. [stream]
GGML_API struct ggml_tensor *ggml_graph_node(struct ggml_cgraph *cgraph, int i);

// Appends the tensor as it is: no dependencies, no flag, never fused. [stream]
GGML_API void ggml_graph_add_node(struct ggml_cgraph *cgraph, struct ggml_tensor *tensor);

// The first leaf or node of that name, or NULL. [stream]
GGML_API struct ggml_tensor *ggml_graph_get_tensor(const struct ggml_cgraph *cgraph,
                                                   const char *name);

// Gradient of a node, and its accumulator; NULL if it has none. [stream]
GGML_API struct ggml_tensor *ggml_graph_get_grad(const struct ggml_cgraph *cgraph,
                                                 const struct ggml_tensor *node);
GGML_API struct ggml_tensor *ggml_graph_get_grad_acc(const struct ggml_cgraph *cgraph,
                                                     const struct ggml_tensor *node);

// Describes the nodes and leafs in the log. [stream]
GGML_API void ggml_graph_print(const struct ggml_cgraph *cgraph);

// Writes the graph for Graphviz; nodes that only gb holds are drawn as gradients. cgraph may be
// NULL. A file that can't be written leaves a message. Blocks. [stream]
GGML_API void ggml_graph_dump_dot(const struct ggml_cgraph *gb, const struct ggml_cgraph *cgraph,
                                  const char *filename);

// --- quantisation --------------------------------------------------------------------------------

// Prepares the tables of a type, which quantising does by itself; idempotent. [any-thread]
GGML_API void ggml_quantize_init(enum ggml_type type);

// Frees those tables; no quantisation may be running. [init]
GGML_API void ggml_quantize_free(void);

// Whether ggml_quantize_chunk() needs an importance matrix for the type. [any-thread]
GGML_API bool ggml_quantize_requires_imatrix(enum ggml_type type);

// Encodes nrows rows of n_per_row floats from src + start into their place in dst (row start /
// n_per_row). start and n_per_row are whole blocks, start a whole number of rows. Answers the bytes
// written; 0 with a message on failure. imatrix NULL: bit-exact with the reference encoders; or
// n_per_row weights of squared errors. Different rows may be encoded concurrently. [any-thread]
GGML_API size_t ggml_quantize_chunk(enum ggml_type type, const float *src, void *dst, int64_t start,
                                    int64_t nrows, int64_t n_per_row, const float *imatrix);

// --- thread pool parameters ----------------------------------------------------------------------

// Defaults for n_threads: normal priority, poll level 50, no affinity, running. [any-thread]
GGML_API struct ggml_threadpool_params ggml_threadpool_params_default(int n_threads);
GGML_API void ggml_threadpool_params_init(struct ggml_threadpool_params *p, int n_threads);

// Whether pools made from either are interchangeable; `paused` is not compared. [any-thread]
GGML_API bool ggml_threadpool_params_match(const struct ggml_threadpool_params *p0,
                                           const struct ggml_threadpool_params *p1);

#ifdef __cplusplus
}
#endif

#include "ggml-op-image.h"
#include "ggml-op.h"

#endif
