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
// Behind & stands the state that the object has to be in, or with ! must not be in, as in
// [stream & recording]. The header says what the state is: "State recording: ...".
//
// No call aborts the process, whatever it is given. One that fails says so by its result (NULL, 0,
// false, a status, an error tensor), changes nothing else unless its contract says so, and leaves a
// message for the calling thread: see ggml_last_error() in ggml-host.h. NULL objects and arguments
// out of range count as failures where nothing is said about them. ggml 0.27 aborts in most of
// these cases. Strings are UTF-8.
//
// How the parts belong together. A context (ggml_init()) is an arena for the descriptions of
// tensors and graphs. Builders (ggml-op.h) describe operations on tensors; nothing is computed by
// them. A graph (ggml_build_forward_expand()) lists what a result depends on. Memory for data comes
// from a buffer of some device (ggml-alloc.h), and a stream on a device computes the graph
// (ggml-backend.h), or a scheduler on several. A complete program:
//
//     #include "ggml-alloc.h"
//     #include "ggml-backend.h"
//
//     struct ggml_init_params params = {
//         .mem_size = 8 * ggml_tensor_overhead() + ggml_graph_overhead(),
//         .no_alloc = true, // memory for data comes from the device, below
//     };
//     struct ggml_context *ctx = ggml_init(params);
//     struct ggml_tensor *w = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 3, 2); // 3 inputs, 2 outputs
//     struct ggml_tensor *x = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 3);
//     struct ggml_tensor *y = ggml_relu(ctx, ggml_mul_mat(ctx, w, x)); // [2]
//     struct ggml_cgraph *graph = ggml_new_graph(ctx);
//     ggml_build_forward_expand(graph, y);
//
//     ggml_backend_load_all();                        // plugins along the search path
//     ggml_backend_t stream = ggml_backend_init_best(); // a GPU, else the CPU
//     ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, stream);
//     if (!buffer) return fail(ggml_last_error()); // ggml-host.h
//     ggml_backend_tensor_set(w, weights, 0, ggml_nbytes(w));
//     ggml_backend_tensor_set(x, input, 0, ggml_nbytes(x));
//     if (ggml_backend_graph_compute(stream, graph) == GGML_STATUS_SUCCESS)
//         ggml_backend_tensor_get(y, output, 0, ggml_nbytes(y));
//
//     ggml_backend_buffer_free(buffer);
//     ggml_backend_free(stream);
//     ggml_free(ctx);
//
// Errors need no check per call: an error tensor makes what is built from it one, the graph refuses
// to be computed, and the message names the call that began it.
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

// Marks a declaration: compilers warn with the hint. The function keeps working within a major
// version.
#define GGML_DEPRECATED(func, hint) func __attribute__((deprecated(hint)))
#elif defined(_MSC_VER)
#define GGML_DEPRECATED(func, hint) __declspec(deprecated(hint)) func
#else
#define GGML_DEPRECATED(func, hint) func
#endif

#if defined(__MINGW32__) && !defined(__clang__)

// Lets compilers check the arguments of functions like printf: number of the format, number of the
// first argument, both from 1.
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

// Kept for ggml's clients: magic number and version of files before GGUF. See gguf.h.
#define GGML_FILE_MAGIC 0x67676d6c
#define GGML_FILE_VERSION 2

// Version of the coded types' layouts; files say it in "general.quantization_version". The factor
// is of files before GGUF, which held version * factor + file type.
#define GGML_QNT_VERSION 2
#define GGML_QNT_VERSION_FACTOR 1000

// Limits, which are part of the layout of struct ggml_tensor:
//   GGML_MAX_DIMS       dimensions of a tensor
//   GGML_MAX_PARAMS     kept for ggml's clients; nothing here is limited by it
//   GGML_MAX_SRC        sources of a node
//   GGML_MAX_N_THREADS  CPUs in a mask of affinity
//   GGML_MAX_OP_PARAMS  bytes of an operation's parameters, 16 words
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

// What programs take that have no reason for another number of threads. The CPU device itself
// starts with what the machine allows: default_threads of struct ggml_host_topology.
#define GGML_DEFAULT_N_THREADS 4

// Nodes, and as many leafs, of the graphs that ggml_new_graph() makes.
#define GGML_DEFAULT_GRAPH_SIZE 2048

#if UINTPTR_MAX == 0xFFFFFFFF
#define GGML_MEM_ALIGN 4
#elif defined(__EMSCRIPTEN__)
#define GGML_MEM_ALIGN 8
#else
#define GGML_MEM_ALIGN 16
#endif

// Kept for ggml's clients: exit codes of its examples.
#define GGML_EXIT_SUCCESS 0
#define GGML_EXIT_ABORTED 1

// Modes of ggml_rope(): which channels make a pair, and how many positions a token has.
#define GGML_ROPE_TYPE_NORMAL 0  // neighbours: 2i and 2i + 1
#define GGML_ROPE_TYPE_NEOX 2    // halves: i and i + n_dims / 2
#define GGML_ROPE_TYPE_MROPE 8   // as NEOX, four positions, in sections one after the other
#define GGML_ROPE_TYPE_VISION 24 // two positions (height, width) of four, on the whole row
#define GGML_ROPE_TYPE_IMROPE 40 // as MROPE, sections interleaved
#define GGML_MROPE_SECTIONS 4    // time, height, width, extra

// As n_tasks of a custom operation: as many tasks as there are threads.
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

// For clients' own checks: print and abort, GGML_ASSERT() where the condition is false, also in
// release builds. The library itself uses them for its own bugs only.
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

// Declare the extents and strides of src0, src1, src2 and dst as ne00.., nb00.., ne0.., nb0.. where
// variables of these names are in scope: for kernels.
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

// Opaque here: the header of each object in a context's arena, contexts, graphs (ggml-impl.h),
// buffers (ggml-backend-impl.h) and thread pools.
struct ggml_object;         // header of each object in an arena
struct ggml_context;        // ggml_init()
struct ggml_cgraph;         // ggml_new_graph(); ggml-impl.h has its members
struct ggml_backend_buffer; // memory of a device: ggml-backend.h
struct ggml_threadpool;     // ggml_threadpool_new() in ggml-cpu.h

// IEEE 754 binary16, as bits.
typedef uint16_t ggml_fp16_t;

// Upper half of an IEEE 754 binary32, as bits.
typedef struct {
    uint16_t bits; // sign, eight bits of exponent, seven of fraction
} ggml_bf16_t;

// What computes a tensor. Names, sources, parameters and rules of each are in op_list.inl; the
// builders, with formulas, in ggml-op.h. GGML_OP_NONE: nothing does, the tensor is a leaf. Numbers
// never change within a major version (in ggml they move between releases: don't store them in
// files).
enum ggml_op {
#define GGML_OP_ROW(number, name, ...) GGML_OP_##name = number,
#include "op_list.inl"
    GGML_OP_COUNT = 101, // how many there are, as in the following
};

// Element-wise functions of GGML_OP_UNARY, which op_params[0] holds.
enum ggml_unary_op {
#define GGML_UNARY_ROW(number, name, ...) GGML_UNARY_OP_##name = number,
#include "unary_list.inl"
    GGML_UNARY_OP_COUNT = 22,
};

// Activations of GGML_OP_GLU, which op_params[0] holds.
enum ggml_glu_op {
#define GGML_GLU_ROW(number, name, ...) GGML_GLU_OP_##name = number,
#include "glu_list.inl"
    GGML_GLU_OP_COUNT = 7,
};

// How elements are stored: plain numbers, or blocks of several that share scales ("coded").
// type_list.inl has the sizes, ggml-common.h the layouts of blocks. The numbers are those in GGUF
// files. Operations say which types they take; ggml_backend_dev_supports_op() says which a device
// does.
enum ggml_type {
#define GGML_TYPE_ROW(number, name, ...) GGML_TYPE_##name = number,
#include "type_list.inl"
    GGML_TYPE_COUNT = 43, // more than there are: some are retired
};

// What became of a computation. The reason for anything but SUCCESS is in ggml_last_error().
enum ggml_status {
    GGML_STATUS_ALLOC_FAILED = -2, // memory ran out; smaller graphs may still work
    GGML_STATUS_FAILED = -1,       // anything else: a bad graph, a device that failed
    GGML_STATUS_SUCCESS = 0,       // done; of an asynchronous call: queued
    GGML_STATUS_ABORTED = 1,       // an abort callback returned true; results are incomplete
};

// How precisely an operation must be computed: a smaller number demands more. What each grade means
// for an accumulator and for a source is said at ggml_prec_set_acc() and ggml_prec_set_src().
enum ggml_prec {
    GGML_PREC_UNDEFINED = 0, // the implementation's choice
    GGML_PREC_DEFAULT = 0,   // older name of GGML_PREC_UNDEFINED
    GGML_PREC_F32 = 10,      // 24 bits of precision
    GGML_PREC_BF16 = 15,     // 8 bits, F32's range
    GGML_PREC_F16 = 20,      // 11 bits, range 65504
    GGML_PREC_Q8 = 30,       // 8-bit blocks; of sources only
    GGML_PREC_Q4 = 40,       // 4-bit blocks; of sources only
};

// What ggml_mul_mat_set_hint() may promise of a product.
enum ggml_op_hint {
    GGML_HINT_NONE = 0,             // nothing; withdraws a hint
    GGML_HINT_SRC0_IS_HADAMARD = 1, // src0 is a scaled Hadamard matrix and need not be read
};

// What most tensors of a model file are stored as ("general.file_type", where programs define
// further numbers). ggml_ftype_to_ggml_type() gives the type. The gaps are retired formats.
enum ggml_ftype {
    GGML_FTYPE_UNKNOWN = -1,    // the file doesn't say
    GGML_FTYPE_ALL_F32 = 0,     // no exceptions
    GGML_FTYPE_MOSTLY_F16 = 1,  // but for vectors, which are F32 in all of these
    GGML_FTYPE_MOSTLY_Q4_0 = 2, // each of the following names a type of type_list.inl
    GGML_FTYPE_MOSTLY_Q4_1 = 3,
    GGML_FTYPE_MOSTLY_Q4_1_SOME_F16 = 4, // embedding and output in F16
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

// Kinds of objects in a context's arena; see ggml_print_objects().
enum ggml_object_type {
    GGML_OBJECT_TYPE_TENSOR = 0,      // struct ggml_tensor, and its data unless no_alloc
    GGML_OBJECT_TYPE_GRAPH = 1,       // struct ggml_cgraph and its arrays
    GGML_OBJECT_TYPE_WORK_BUFFER = 2, // ggml_new_buffer()
};

// How important a piece of log text is. A callback filters by it; the default prints everything.
enum ggml_log_level {
    GGML_LOG_LEVEL_NONE = 0,  // text without a level
    GGML_LOG_LEVEL_DEBUG = 1, // for developers
    GGML_LOG_LEVEL_INFO = 2,  // what goes on
    GGML_LOG_LEVEL_WARN = 3,  // works, but not as it should
    GGML_LOG_LEVEL_ERROR = 4, // something did not work
    GGML_LOG_LEVEL_CONT = 5,  // continues the text before, at its level
};

// Properties of a tensor beyond its shape. Bits 0 to 15 may be ignored by those who don't know
// them; the others must be understood. INPUT, OUTPUT, PARAM and LOSS are set by ggml_set_*() below,
// COMPUTE by building a graph: streams skip nodes without it.
enum ggml_tensor_flag {
#define GGML_TENSOR_FLAG_ROW(value, name, since) GGML_TENSOR_FLAG_##name = value,
#include "flag_list.inl"
};

// Which part ggml_tri() keeps of a square matrix; row r, column i.
enum ggml_tri_type {
    GGML_TRI_TYPE_UPPER_DIAG = 0, // i >= r
    GGML_TRI_TYPE_UPPER = 1,      // i > r
    GGML_TRI_TYPE_LOWER_DIAG = 2, // i <= r
    GGML_TRI_TYPE_LOWER = 3,      // i < r
};

// What ggml_pool_1d() and ggml_pool_2d() make of a window.
enum ggml_op_pool {
    GGML_OP_POOL_MAX = 0, // the largest element
    GGML_OP_POOL_AVG = 1, // the mean
    GGML_OP_POOL_COUNT = 2,
};

// How ggml_interpolate() finds a value between elements.
enum ggml_scale_mode {
    GGML_SCALE_MODE_NEAREST = 0,  // the element at or before the place
    GGML_SCALE_MODE_BILINEAR = 1, // between 2 x 2
    GGML_SCALE_MODE_BICUBIC = 2,  // between 4 x 4, Keys' kernel with a = -0.75
    GGML_SCALE_MODE_COUNT = 3,
};

// Or-ed to a mode.
enum ggml_scale_flag {
    GGML_SCALE_FLAG_ALIGN_CORNERS = 256, // the first and last elements of both grids coincide
    GGML_SCALE_FLAG_ANTIALIAS = 512,     // average over what an element covers; BILINEAR only
};

// Order of ggml_argsort().
enum ggml_sort_order {
    GGML_SORT_ORDER_ASC = 0,  // the smallest first
    GGML_SORT_ORDER_DESC = 1, // the largest first
};

// Scheduling of a pool's threads by the operating system. What the system refuses (above NORMAL it
// may need privileges) leaves a warning in the log, and the threads run on as they were.
enum ggml_sched_priority {
    GGML_SCHED_PRIO_LOW = -1,     // gives way to everything else
    GGML_SCHED_PRIO_NORMAL = 0,   // as the process
    GGML_SCHED_PRIO_MEDIUM = 1,   // above normal
    GGML_SCHED_PRIO_HIGH = 2,     // above that
    GGML_SCHED_PRIO_REALTIME = 3, // before everything: can make a machine unresponsive
};

// Parameters of ggml_init().
struct ggml_init_params {
    size_t mem_size; // bytes of the context's arena; 0: the smallest
    // mem_size bytes of the caller's, GGML_MEM_ALIGN aligned, or NULL: allocated and owned
    void *mem_buffer;
    bool no_alloc; // tensors get no data: buffers give them memory later
};

// An n-dimensional array, a view of one, or the description of an operation's result: which, the
// members tell. Index 0 is the fastest dimension; unused dimensions have the extent 1.
//
// The element (for coded types: the block that holds it) at index i lies at
//   (char *)data + i[0] / block * nb[0] + i[1] * nb[1] + i[2] * nb[2] + i[3] * nb[3]
// Strides of packed tensors: nb[0] = ggml_type_size(), nb[1] = nb[0] * (ne[0] / block), nb[2] =
// nb[1] * ne[1], nb[3] = nb[2] * ne[2]; no row is padded. Views may have any.
//
// Programs read all members, and write through functions. Field order is part of the contract. 336
// bytes on 64-bit machines (layout_pins.inl).
struct ggml_tensor {
    enum ggml_type type; // of the elements
    // NULL until a buffer gave it memory, and for data in a context's arena
    struct ggml_backend_buffer *buffer;
    int64_t ne[GGML_MAX_DIMS]; // extents, in elements; 0 is legal
    size_t nb[GGML_MAX_DIMS];  // strides, in bytes; nb[0] = size of a block
    enum ggml_op op;           // what computes it; GGML_OP_NONE for leafs
    int32_t op_params[GGML_MAX_OP_PARAMS / sizeof(int32_t)]; // by op_list.inl; unused words are 0
    int32_t flags;                                           // enum ggml_tensor_flag
    struct ggml_tensor *src[GGML_MAX_SRC]; // operands; NULL: none. A scheduler may redirect them
    struct ggml_tensor *view_src; // owner of the memory, never itself a view; NULL: its own
    size_t view_offs;             // bytes from view_src->data; 0 unless a view
    void *data;               // address on its device, not always the host's; NULL: not allocated
    char name[GGML_MAX_NAME]; // NUL-terminated, for people and look-ups; need not be unique
    void *extra;              // the device's, set by a buffer's init_tensor
    // Zero. A later minor of the contract may put the address of a struct there that says more of
    // the tensor: what does not know that struct must not compute with such a tensor.
    char padding[8];
};

static const size_t GGML_TENSOR_SIZE = sizeof(struct ggml_tensor);

// Receives the message of ggml_abort(); when it returns the process ends. It may leave by longjmp()
// or a C++ exception.
typedef void (*ggml_abort_callback_t)(const char *error_message);

// Returns true to stop a computation. Called often, between nodes, perhaps from threads of a pool:
// it must be fast and not call back into the library. `data` is what was given with the callback.
typedef bool (*ggml_abort_callback)(void *data);

typedef uint8_t ggml_guid[16];

// The same as an argument; it names a kind of stream. NULL: none.
typedef ggml_guid *ggml_guid_t;

// Receives a piece of log text, UTF-8, needed during the call only; see ggml_log_set().
typedef void (*ggml_log_callback)(enum ggml_log_level level, const char *text, void *user_data);

// Decode and encode a row of k elements, whole blocks; x and y do not overlap.
typedef void (*ggml_to_float_t)(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k);
typedef void (*ggml_from_float_t)(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, int64_t k);

// Properties of a type, by ggml_get_type_traits(). Static.
struct ggml_type_traits {
    const char *type_name;        // as ggml_type_name()
    int64_t blck_size;            // elements per block; 1: plain; 0: no such type
    int64_t blck_size_interleave; // kept for ggml's clients: 0
    size_t type_size;             // bytes per block
    bool is_quantized;            // blocks share scales
    ggml_to_float_t to_float;     // decoder; NULL: none, as of integers
    // the reference encoder, bit by bit the same everywhere; NULL: none, as of F32
    ggml_from_float_t from_float_ref;
};

// How the threads of a pool run; start from ggml_threadpool_params_default(). See
// ggml_threadpool_new() in ggml-cpu.h.
struct ggml_threadpool_params {
    // by logical CPU: the pool's threads may run there; all false: inherit
    bool cpumask[GGML_MAX_N_THREADS];
    int n_threads;                 // including the one that computes; 1 to GGML_MAX_N_THREADS
    enum ggml_sched_priority prio; // of the workers; the thread that computes keeps its own
    uint32_t poll;                 // 0: sleep at once ... 100: spin longest before sleeping
    bool strict_cpu;               // each thread on one CPU of the mask rather than all of them
    bool paused;                   // starts asleep: the first graph wakes it
};

typedef struct ggml_threadpool *ggml_threadpool_t; // NULL: none

// --- failure -------------------------------------------------------------------------------------

// For the client's own assertions only: nothing in the library ends the process for what a program
// did.

// Sets what ggml_abort() calls before it ends the process; NULL: print to stderr, with a backtrace
// where the system has one (not with GGML_NO_BACKTRACE set). Returns the one before, or NULL. One
// for the process. [any-thread]
GGML_API ggml_abort_callback_t ggml_set_abort_callback(ggml_abort_callback_t callback);

// Ends the process after "file:line: message" went to the abort callback or to stderr. For
// GGML_ABORT and GGML_ASSERT; no other function of this library reaches it. [any-thread]
GGML_NORETURN GGML_API void ggml_abort(const char *file, int line, const char *fmt, ...)
    GGML_ATTRIBUTE_FORMAT(3, 4);

// Constant text of a status ("GGML status: error (operation failed)"), also of unknown numbers;
// never NULL. [any-thread]
GGML_API const char *ggml_status_to_string(enum ggml_status status);

// --- scalar conversions --------------------------------------------------------------------------

// binary16 <-> binary32: round to nearest even, subnormals kept, overflow gives an infinity, NaN
// becomes quiet. Rows: n elements from x to y, which do not overlap; n <= 0 does nothing. Rows and
// single values give the same bits, on every machine. [any-thread]
GGML_API float ggml_fp16_to_fp32(ggml_fp16_t x);
GGML_API ggml_fp16_t ggml_fp32_to_fp16(float x);
GGML_API void ggml_fp16_to_fp32_row(const ggml_fp16_t *x, float *y, int64_t n);
GGML_API void ggml_fp32_to_fp16_row(const float *x, ggml_fp16_t *y, int64_t n);

// bfloat16 <-> binary32: round to nearest even, NaN is made quiet. Rows as above; the _ref row is
// the scalar twin of the plain one and gives the same bits. [any-thread]
GGML_API ggml_bf16_t ggml_fp32_to_bf16(float x);
GGML_API float ggml_bf16_to_fp32(ggml_bf16_t x);
GGML_API void ggml_bf16_to_fp32_row(const ggml_bf16_t *x, float *y, int64_t n);
GGML_API void ggml_fp32_to_bf16_row_ref(const float *x, ggml_bf16_t *y, int64_t n);
GGML_API void ggml_fp32_to_bf16_row(const float *x, ggml_bf16_t *y, int64_t n);

// --- services ------------------------------------------------------------------------------------

// Whether two identities are equal; false if one is NULL. [any-thread]
GGML_API bool ggml_guid_matches(ggml_guid_t guid_a, ggml_guid_t guid_b);

// Version ("0.27.0") and source revision of the library; constant, never NULL. [any-thread]
GGML_API const char *ggml_version(void);
GGML_API const char *ggml_commit(void);

// Kept for ggml's clients: nothing has to be prepared. [any-thread]
GGML_API void ggml_time_init(void);

// Monotonic time since an arbitrary start, in milliseconds and microseconds; differences count.
// [any-thread]
GGML_API int64_t ggml_time_ms(void);
GGML_API int64_t ggml_time_us(void);

// Processor time used by the process, and how many of its ticks make a millisecond. [any-thread]
GGML_API int64_t ggml_cycles(void);
GGML_API int64_t ggml_cycles_per_ms(void);

// fopen() with a UTF-8 path on every system. NULL on failure; the caller closes the file. Blocks on
// the file system. [any-thread]
GGML_API FILE *ggml_fopen(const char *fname, const char *mode);

// Receives all log text of the library and of plugins, with its level; NULL restores the default,
// stderr, which prints every level. While a callback is set nothing is written to stdout or stderr.
// Text may be a fragment without a newline, which GGML_LOG_LEVEL_CONT continues. The callback must
// be callable from any thread, several at a time, and may not call back into this function; it
// stays in use until another is set, and a call that has begun may still end after that. One for
// the process. [any-thread]
GGML_API void ggml_log_set(ggml_log_callback log_callback, void *user_data);

// The callback in use, never NULL (the default is a function too), and its user data; either
// pointer may be NULL. [any-thread]
GGML_API void ggml_log_get(ggml_log_callback *log_callback, void **user_data);

// --- types ---------------------------------------------------------------------------------------

// Elements (1 for plain types) and bytes of a block; 0 for numbers that name no type. [any-thread]
GGML_API int64_t ggml_blck_size(enum ggml_type type);
GGML_API size_t ggml_type_size(enum ggml_type type);

// Bytes of a packed row of ne elements, 0 if negative, SIZE_MAX / 2 if it does not fit. For coded
// types ne is whole blocks. [any-thread]
GGML_API size_t ggml_row_size(enum ggml_type type, int64_t ne);

// Bytes per element as a fraction; 0 for numbers that name no type. [any-thread]
GGML_API GGML_DEPRECATED(double ggml_type_sizef(enum ggml_type type), "use ggml_row_size");

// "f32", "q4_K" ...; of a removed type why it is gone, of none "NONE". Constant. [any-thread]
GGML_API const char *ggml_type_name(enum ggml_type type);

// Whether blocks of the type share scales; false for numbers that name no type. [any-thread]
GGML_API bool ggml_is_quantized(enum ggml_type type);

// Type of most tensors of a file type; GGML_TYPE_COUNT where there is none (UNKNOWN,
// MOSTLY_Q4_1_SOME_F16). [any-thread]
GGML_API enum ggml_type ggml_ftype_to_ggml_type(enum ggml_ftype ftype);

// Name, block and row conversions of a type; static, never NULL: "NONE" with a block of 0 for a
// number out of range. to_float or from_float_ref is NULL where there is none. [any-thread]
GGML_API const struct ggml_type_traits *ggml_get_type_traits(enum ggml_type type);

// Whether nbytes of data are whole blocks of the type without NaN or infinity in values and scales:
// for checking files before use. Integers have nothing to check. The message names the first bad
// block. Reads all of it; blocks for as long as that takes. [any-thread]
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

// Examples, with F32 elements of 4 bytes:
//
//                                          ne            nb              contiguous  rows
//   t = new_tensor_2d(ctx, F32, 8, 4)      8, 4, 1, 1    4, 32, 128, 128   yes       packed
//   view_2d(ctx, t, 2, 4, t->nb[1], 0)     2, 4, 1, 1    4, 32, 128, 128   no        packed
//   transpose(ctx, t)                      4, 8, 1, 1    32, 4, 128, 128   no        strided

// These only read a tensor's type, ne and nb; NULL and error tensors give 0 or false.

// Product of all extents; product of ne[1..3]. Extents of real tensors never overflow it.
// [any-thread]
GGML_API int64_t ggml_nelements(const struct ggml_tensor *tensor);
GGML_API int64_t ggml_nrows(const struct ggml_tensor *tensor);

// Bytes from the first to past the last element, gaps of a strided view included; 0 when empty. So
// it is what a transfer of the whole tensor moves, and the least that a buffer gives it
// (ggml_backend_buft_get_alloc_size() may be more). The _pad form rounds up to GGML_MEM_ALIGN.
// [any-thread]
GGML_API size_t ggml_nbytes(const struct ggml_tensor *tensor);
GGML_API size_t ggml_nbytes_pad(const struct ggml_tensor *tensor);

// Bytes of one block of the tensor's type. [any-thread]
GGML_API size_t ggml_element_size(const struct ggml_tensor *tensor);

// Index of the last extent above 1, plus 1; at least 1. So [5, 1, 1, 1] has one, and so has a
// scalar. [any-thread]
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

// Whether nb[0] > nb[1]; whether any stride exceeds the next. By strides only: a [1, n] matrix can
// be transposed and look as before. [any-thread]
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

// Whether there are no gaps, in whatever order of dimensions: a permuted packed tensor is.
// [any-thread]
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

// Contexts are independent of each other: different threads may use different ones. Objects in one
// are never freed singly.
//
// How large: one ggml_tensor_overhead() per tensor, views and results of builders included, plus
// ggml_graph_overhead() per graph; unless no_alloc also ggml_nbytes_pad() of each tensor that is no
// view.

// A context: an arena of params.mem_size bytes that owns the tensors and graphs made in it. Size it
// with ggml_tensor_overhead() and ggml_graph_overhead(). NULL when memory runs out or
// params.mem_buffer is not aligned; the caller's buffer stays the caller's and outlives the
// context. The memory is not cleared. End it with ggml_free(). [any-thread]
GGML_API struct ggml_context *ggml_init(struct ggml_init_params params);

// Forgets every tensor and graph, keeps the arena: pointers into it become invalid, buffers that
// were allocated for its tensors are not freed. For a graph that is built again for each token.
// NULL does nothing. [stream]
GGML_API void ggml_reset(struct ggml_context *ctx);

// Ends the context and what was made in it, but no backend buffers. NULL does nothing. [stream]
GGML_API void ggml_free(struct ggml_context *ctx);

// Arena: bytes used so far, its address, its size (of an owned one rounded up to GGML_MEM_ALIGN). 0
// and NULL for NULL. [stream]
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

// The number of dimensions of the last four is in their names; ggml_new_tensor() takes it.

// All functions that return a tensor of a context: it belongs to the context and lives as long.
// They never return NULL: for impossible arguments (NULL context or operand, unknown type, negative
// or overflowing extents, partial blocks) and when the arena is full they return the context's
// error tensor (ggml_tensor_is_error() in ggml-host.h), which can be passed on safely but not
// computed.

// A packed tensor with n_dims (1..4) extents; missing ones are 1. Zero extents are legal; ne[0]
// must be whole blocks of the type. Its data follows in the arena unless the context is no_alloc,
// and is not initialised. Its op is GGML_OP_NONE: it is a leaf, an input or weight. [stream]
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

// A tensor over src's memory with its extents and strides, without an operation: a graph does not
// see that it depends on src. Named "NAME (view)". [stream]
GGML_API struct ggml_tensor *ggml_view_tensor(struct ggml_context *ctx, struct ggml_tensor *src);

// nbytes of the arena, aligned to GGML_MEM_ALIGN, which live as long as the context; NULL when it
// is full. Not to be confused with buffers of devices. [stream]
GGML_API void *ggml_new_buffer(struct ggml_context *ctx, size_t nbytes);

// --- tensors of a context ------------------------------------------------------------------------

// The context's tensors in order of creation, views and results too; NULL past the last, and with a
// message for a tensor that is of no such context. Each step takes constant time.
//   for (t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) ...
// [stream]
GGML_API struct ggml_tensor *ggml_get_first_tensor(const struct ggml_context *ctx);
GGML_API struct ggml_tensor *ggml_get_next_tensor(const struct ggml_context *ctx,
                                                  struct ggml_tensor *tensor);

// The first tensor of that name, or NULL without a message. Compares all names: programs with many
// look-ups keep a table. [stream]
GGML_API struct ggml_tensor *ggml_get_tensor(struct ggml_context *ctx, const char *name);

// Data address as it is, and the same for F32 tensors; NULL where there is none, or where the type
// is another. Only dereference it if the buffer is host memory. [any-thread]
GGML_API void *ggml_get_data(const struct ggml_tensor *tensor);
GGML_API float *ggml_get_data_f32(const struct ggml_tensor *tensor);

// The tensor's name; "" if it has none, never NULL. [any-thread]
GGML_API const char *ggml_get_name(const struct ggml_tensor *tensor);

// Set the name, cut to GGML_MAX_NAME - 1 bytes; return the tensor, also a NULL one. NULL text: no
// name. Tensors without a name get "leaf_N" or "node_N" when they are added to a graph. [stream]
GGML_API struct ggml_tensor *ggml_set_name(struct ggml_tensor *tensor, const char *name);
GGML_API struct ggml_tensor *ggml_format_name(struct ggml_tensor *tensor, const char *fmt, ...)
    GGML_ATTRIBUTE_FORMAT(2, 3);

// Sets every byte to 0 through the tensor's buffer, or directly if it has none; returns the tensor.
// Blocks. A tensor without data leaves a message and is not touched; an empty one or NULL is left
// alone. [stream]
GGML_API struct ggml_tensor *ggml_set_zero(struct ggml_tensor *tensor);

// Input: the program sets its data between allocating and computing. It is allocated before
// anything is computed and not overwritten until its last use; after that it may be, so set it
// again for each compute. [stream]
GGML_API void ggml_set_input(struct ggml_tensor *tensor);

// Output: the program reads its data after computing, so later nodes never overwrite it. Marks the
// memory's owner too, if it is a view. Without the flag only the last nodes of a graph are sure to
// keep their data. [stream]
GGML_API void ggml_set_output(struct ggml_tensor *tensor);

// Trainable parameter: a tensor without operation, for which gradients are built. Any other leaves
// a message. Call it before the graph is built: parameters are nodes, not leafs. [stream]
GGML_API void ggml_set_param(struct ggml_tensor *tensor);

// Term of the loss: an F32 scalar whose gradient is 1. Any other leaves a message. [stream]
GGML_API void ggml_set_loss(struct ggml_tensor *tensor);

// --- graphs --------------------------------------------------------------------------------------

// A graph lists nodes (tensors with an operation, and parameters) in an order in which each comes
// after its sources, and leafs (tensors without one). It owns neither tensors nor data.

// A graph that holds an error tensor, or that ran out of room, is in error: it stays a valid
// object, every compute function refuses it, and ggml_graph_error() in ggml-host.h says why.

// An empty graph in the context, for GGML_DEFAULT_GRAPH_SIZE nodes without gradients, or for `size`
// nodes and as many leafs. `grads`: with room for gradients, as ggml_build_backward_expand() needs.
// It takes ggml_graph_overhead_custom() bytes of the arena. NULL when that is full or `size` is
// above INT_MAX. [stream]
GGML_API struct ggml_cgraph *ggml_new_graph(struct ggml_context *ctx);
GGML_API struct ggml_cgraph *ggml_new_graph_custom(struct ggml_context *ctx, size_t size,
                                                   bool grads);

// Bytes that these take of the arena; SIZE_MAX / 2 with a message if `size` is too large, which no
// arena has. [any-thread]
GGML_API size_t ggml_graph_overhead(void);
GGML_API size_t ggml_graph_overhead_custom(size_t size, bool grads);

// Adds the tensor and everything that it depends on through src[], each once, dependencies first,
// and flags what is newly reached as to be computed. May be called for several results. Time is
// linear in what is reached; deep graphs do not exhaust the stack (in ggml 0.27 they may). A full
// graph, NULL or an error tensor puts the graph in error. [stream]
GGML_API void ggml_build_forward_expand(struct ggml_cgraph *cgraph, struct ggml_tensor *tensor);

// The same without the flag: fixes the order only. What is never flagged is not computed. [stream]
GGML_API void ggml_build_forward_order(struct ggml_cgraph *cgraph, struct ggml_tensor *tensor);

// Adds all n_tensors, flags only what tensors[idx] depends on, and returns tensors[idx]; the shape
// of the graph does not depend on idx, so that memory planned for one choice serves all. Out of
// range: an error tensor and a graph in error. [stream]
GGML_API struct ggml_tensor *ggml_build_forward_select(struct ggml_cgraph *cgraph,
                                                       struct ggml_tensor **tensors, int n_tensors,
                                                       int idx);

// Appends the gradient computation to a graph made with grads: for every parameter
// (ggml_set_param()) the derivative of the sum of all losses (ggml_set_loss()). grad_accs:
// accumulators by node index, or NULL; missing ones are made in ctx for loss nodes. New tensors
// come from ctx, which needs room for several per node. Needs at least one parameter and one loss.
// An operation without a backward rule puts the graph in error (ggml 0.27 aborts). Before
// computing, ggml_graph_reset(). [stream]
GGML_API void ggml_build_backward_expand(struct ggml_context *ctx, struct ggml_cgraph *cgraph,
                                         struct ggml_tensor **grad_accs);

// A copy in ctx that shares the tensors, of as many nodes as the source has room for; with
// gradients if the source has them or force_grads. NULL when the arena is full. [stream]
GGML_API struct ggml_cgraph *ggml_graph_dup(struct ggml_context *ctx, struct ggml_cgraph *cgraph,
                                            bool force_grads);

// Replaces dst's content by src's, sharing tensors. A dst that is too small, or has no gradients
// where src has some, is in error and empty. Note the order of the arguments. [stream]
GGML_API void ggml_graph_cpy(struct ggml_cgraph *src, struct ggml_cgraph *dst);

// Before an optimiser step: zeroes momenta and gradient accumulators, sets the loss's to 1. Needs a
// graph with gradients, allocated; NULL does nothing. Writes through buffers. Blocks. [stream]
GGML_API void ggml_graph_reset(struct ggml_cgraph *cgraph);

// Removes every node and leaf; an error is forgotten too. [stream]
GGML_API void ggml_graph_clear(struct ggml_cgraph *cgraph);

// Capacity in nodes; the node array, valid until the graph changes; number of nodes. 0 and NULL for
// NULL. [stream]
GGML_API int ggml_graph_size(struct ggml_cgraph *cgraph);
GGML_API int ggml_graph_n_nodes(struct ggml_cgraph *cgraph);
GGML_API struct ggml_tensor **ggml_graph_nodes(struct ggml_cgraph *cgraph);

// Node i; a negative i counts from the end. NULL with a message when out of range. [stream]
GGML_API struct ggml_tensor *ggml_graph_node(struct ggml_cgraph *cgraph, int i);

// Appends the tensor as it is: no dependencies, no flag, never fused; a stream computes it only if
// it was flagged before. For those who make graphs of parts of others. [stream]
GGML_API void ggml_graph_add_node(struct ggml_cgraph *cgraph, struct ggml_tensor *tensor);

// The first leaf, else the first node, of that name; NULL without a message if there is none.
// Compares all names. [stream]
GGML_API struct ggml_tensor *ggml_graph_get_tensor(const struct ggml_cgraph *cgraph,
                                                   const char *name);

// Gradient of a node, and its accumulator; NULL if it has none or is not in the graph. [stream]
GGML_API struct ggml_tensor *ggml_graph_get_grad(const struct ggml_cgraph *cgraph,
                                                 const struct ggml_tensor *node);
GGML_API struct ggml_tensor *ggml_graph_get_grad_acc(const struct ggml_cgraph *cgraph,
                                                     const struct ggml_tensor *node);

// Describes the nodes and leafs in the log, at level INFO, one a line. [stream]
GGML_API void ggml_graph_print(const struct ggml_cgraph *cgraph);

// Writes the graph for Graphviz; nodes that only gb holds are drawn as gradients. cgraph may be
// NULL. A file that can't be written leaves a message. Blocks. [stream]
GGML_API void ggml_graph_dump_dot(const struct ggml_cgraph *gb, const struct ggml_cgraph *cgraph,
                                  const char *filename);

// --- quantisation --------------------------------------------------------------------------------

// Encoding floats as coded types, for files. Devices decode while they compute; ggml_cpy() encodes
// too, but without the search for good scales that these functions do for some types.

// Prepares the tables of a type, which quantising does by itself; idempotent. For types without
// tables it does nothing. [any-thread]
GGML_API void ggml_quantize_init(enum ggml_type type);

// Frees those tables; no quantisation may be running. The next one makes them again. [init]
GGML_API void ggml_quantize_free(void);

// Whether ggml_quantize_chunk() needs an importance matrix for the type: IQ2_XXS, IQ2_XS, IQ1_S.
// [any-thread]
GGML_API bool ggml_quantize_requires_imatrix(enum ggml_type type);

// Encodes nrows rows of n_per_row floats from src + start into their place in dst (row start /
// n_per_row). start and n_per_row are whole blocks, start a whole number of rows. Returns the bytes
// written, nrows * ggml_row_size(); 0 with a message on failure. imatrix NULL: bit-exact with the
// reference encoders; or n_per_row weights of squared errors, one per column. F32, F16 and BF16 are
// "encoded" too. Different rows may be encoded concurrently: give each thread a range of rows of
// the same src and dst. Blocks. [any-thread]
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
