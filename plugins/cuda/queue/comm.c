// SPDX-License-Identifier: MIT
// Each rank sums one slice of all parts, in the order of ranks, so that all get equal bits and each
// link carries 2 (n - 1) / n times the part, the least there is (reduce-scatter and all-gather,
// Rabenseifner 2004). Where devices reach each other's memory, one kernel per rank reads its slice
// of all parts and writes it to all: no copy, no scratch memory, and one wait before and after.
// Elsewhere, and in memory that is shared with other processes, slices are copied to scratch
// memory, added there, and copied to where they belong.
#include "queue/comm.h"

#include "device/loader.h"
#include "device/peer.h"
#include "memory/buffer.h"

enum { SLICE = 256 }; // elements that slices are multiples of

// --- groups --------------------------------------------------------------------------------------

// Ranks are streams of this plugin, each device's once or more often. Whether kernels may reach all
// memory is asked once here, for each pair.
static int32_t group_new(const struct ggml_comm_ranks *ranks, ggml_comm_group_t *out_group) {
    const int32_t status = ggml_sdk_comm_check_ranks(ranks, cuda_reg());
    if (status != GGML_HOST_OK) return status;
    if (ranks->n_ranks > CUDA_MAX_RANKS) return GGML_HOST_UNSUPPORTED;
    struct ggml_comm_group *group = ggml_aligned_malloc(sizeof(*group));
    if (!group) return ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "cuda: no memory for a group");
    *group = (struct ggml_comm_group){.n = ranks->n_ranks, .reaches_all = true};
    for (uint32_t i = 0; i < group->n; ++i) {
        group->backends[i] = ranks->streams[i];
        group->streams[i] = cuda_stream_of(ranks->streams[i]);
        group->scratches[i].is_in_pieces = true; // other devices copy to it
    }
    for (uint32_t i = 0; i < group->n; ++i) {
        for (uint32_t k = 0; k < group->n; ++k)
            group->reaches_all &=
                cuda_reaches(group->streams[i]->context, group->streams[k]->context);
    }
    *out_group = group;
    return GGML_HOST_OK;
}

// Freeing memory waits for the work that uses it.
static void group_free(ggml_comm_group_t group) {
    if (!group) return;
    cuda_comm_drop_messages(group);
    for (uint32_t i = 0; i < group->n; ++i) {
        struct cuda_context *context = group->streams[i]->context;
        if (group->scratches[i].n == 0 || !cuda_in_owner() ||
            cuda_api()->cuCtxPushCurrent(context->handle) != CUDA_SUCCESS)
            continue;
        cuda_scratch_free(context, &group->scratches[i]);
        cuda_context_leave();
    }
    ggml_aligned_free(group, sizeof(*group));
}

// A group that failed stays failed: its ranks may have done different parts of what was asked.
int32_t cuda_comm_begin(const struct ggml_comm_group *group) {
    if (group->failed == GGML_HOST_OK) return GGML_HOST_OK;
    return ggml_sdk_fail(group->failed, "cuda: the group has failed earlier");
}

// Notes a failure for later calls. Memory that ran out in the middle is a failure like any other:
// OUT_OF_MEMORY would promise that nothing was begun.
int32_t cuda_comm_end(ggml_comm_group_t group, enum ggml_host_status status) {
    if (status == GGML_HOST_OUT_OF_MEMORY) status = GGML_HOST_FAILED;
    if (status != GGML_HOST_OK) group->failed = status;
    return status;
}

int32_t cuda_comm_no_rank(uint32_t rank) {
    return ggml_sdk_fail(GGML_HOST_INVALID_ARGUMENT, "cuda: rank %u is not in the group", rank);
}

// Whether kernels of all ranks reach all parts. Memory that other processes or drivers can have too
// lies outside of what peers were admitted to, whatever the devices can.
static bool reaches_parts(const struct ggml_comm_group *group, struct ggml_tensor *const *parts) {
    bool reaches = group->reaches_all;
    for (uint32_t i = 0; i < group->n && reaches; ++i) {
        const struct cuda_buffer *buffer = cuda_buffer_of(parts[i]);
        reaches = buffer && !buffer->has_memory && !buffer->external;
    }
    return reaches;
}

static int32_t check(const struct ggml_comm_group *group,
                     const struct ggml_tensor *const *tensors) {
    return ggml_sdk_comm_check_tensors(group->backends, group->n, tensors);
}

// --- waiting -------------------------------------------------------------------------------------

// What `after` queues from now on comes after what the ranks of the bits `before` have queued up to
// their marks.
static enum ggml_host_status wait_marks(const struct ggml_comm_group *group, uint32_t after,
                                        uint32_t before) {
    struct cuda_stream *stream = group->streams[after];
    enum ggml_host_status status = cuda_context_enter(stream->context);
    if (status != GGML_HOST_OK) return status;
    CUresult result = CUDA_SUCCESS;
    for (uint32_t k = 0; k < group->n && result == CUDA_SUCCESS; ++k) {
        if (k != after && (before >> k & 1))
            result = cuda_api()->cuStreamWaitEvent(stream->handle, group->streams[k]->mark, 0);
    }
    status = cuda_context_check(stream->context, result, "cuStreamWaitEvent");
    cuda_context_leave();
    return status;
}

// The ranks of the bits `after` wait for those of the bits `before`.
static enum ggml_host_status fence(const struct ggml_comm_group *group, uint32_t after,
                                   uint32_t before) {
    enum ggml_host_status status = GGML_HOST_OK;
    for (uint32_t k = 0; k < group->n && status == GGML_HOST_OK; ++k) {
        if (before >> k & 1) status = cuda_stream_mark(group->streams[k]);
    }
    for (uint32_t k = 0; k < group->n && status == GGML_HOST_OK; ++k) {
        if (after >> k & 1) status = wait_marks(group, k, before);
    }
    return status;
}

// The bits of all ranks.
static uint32_t all_of(const struct ggml_comm_group *group) {
    return (1u << group->n) - 1;
}

// --- copies and sums -----------------------------------------------------------------------------

// Queues a copy on `stream`, which reads memory of the device that `from_stream` is of.
static enum ggml_host_status copy(const struct cuda_stream *stream, CUdeviceptr to,
                                  const struct cuda_stream *from_stream, CUdeviceptr from,
                                  size_t size) {
    if (size == 0) return GGML_HOST_OK;
    enum ggml_host_status status = cuda_context_enter(stream->context);
    if (status != GGML_HOST_OK) return status;
    status = cuda_context_check(
        stream->context,
        cuda_copy(to, stream->context, from, from_stream->context, size, stream->handle),
        "a copy between devices");
    cuda_context_leave();
    return status;
}

static CUdeviceptr address(const struct ggml_tensor *tensor) {
    return (CUdeviceptr)(uintptr_t)tensor->data;
}

// Elements of the slice that a rank sums.
struct slice {
    int64_t begin, end;
};

// Slices differ by at most SLICE elements; of few elements the last ranks have none.
static struct slice slice_of(const struct ggml_comm_group *group, uint32_t rank, int64_t n) {
    const int64_t slices = (n + SLICE - 1) / SLICE;
    const struct slice s = {slices * rank / group->n * SLICE,
                            slices * (rank + 1) / group->n * SLICE};
    return (struct slice){MIN(s.begin, n), MIN(s.end, n)};
}

// Queues the kernel that adds up, or takes the largest of, some operands.
static enum ggml_host_status combine(const struct cuda_stream *stream,
                                     const struct ggml_tensor *const *operands,
                                     const struct simt_combine *what) {
    struct simt_work work;
    void *params[] = {&work.args};
    simt_prepare_combine(&work, operands, what);
    if (work.grid[0] == 0) return GGML_HOST_OK;
    enum ggml_host_status status = cuda_context_enter(stream->context);
    if (status != GGML_HOST_OK) return status;
    status = cuda_context_check(stream->context,
                                cuda_api()->cuLaunchKernel(stream->context->functions[work.kernel],
                                                           work.grid[0], work.grid[1], work.grid[2],
                                                           work.threads, 1, 1, 0, stream->handle,
                                                           params, NULL),
                                "a sum over devices");
    cuda_context_leave();
    return status;
}

// A row of n elements at an address.
static struct ggml_tensor row_at(enum ggml_type type, CUdeviceptr at, int64_t n) {
    struct ggml_tensor row = {.type = type, .ne = {n, 1, 1, 1}, .data = (void *)(uintptr_t)at};
    row.nb[0] = ggml_type_size(type);
    row.nb[1] = row.nb[2] = row.nb[3] = row.nb[0] * (size_t)n;
    return row;
}

// `terms`: bits of the operands that count; `results`: of those that are written.
static struct simt_combine how(enum ggml_comm_reduction reduction, unsigned terms,
                               unsigned results) {
    return (struct simt_combine){.terms = terms,
                                 .results = results,
                                 .function = reduction == GGML_COMM_MAX ? SIMT_COMBINE_MAX
                                                                        : SIMT_COMBINE_SUM};
}

// Each rank in place, in the memory of all.
static enum ggml_host_status reduce_in_place(const struct ggml_comm_group *group,
                                             enum ggml_comm_reduction reduction,
                                             struct ggml_tensor *const *parts, unsigned terms) {
    const struct ggml_tensor *operands[GPU_MAX_OPERANDS] = {NULL};
    struct ggml_tensor rows[CUDA_MAX_RANKS];
    struct simt_combine what = how(reduction, terms, all_of(group));
    const int64_t n = ggml_nelements(parts[0]);
    for (uint32_t k = 0; k < group->n; ++k) {
        rows[k] = row_at(parts[0]->type, address(parts[k]), n);
        operands[k] = &rows[k];
    }
    enum ggml_host_status status = fence(group, all_of(group), all_of(group));
    for (uint32_t i = 0; i < group->n && status == GGML_HOST_OK; ++i) {
        const struct slice s = slice_of(group, i, n);
        what.begin = s.begin;
        what.end = s.end;
        status = combine(group->streams[i], operands, &what);
    }
    return status == GGML_HOST_OK ? fence(group, all_of(group), all_of(group)) : status;
}

// Room for the slices of others.
static enum ggml_host_status reserve(struct ggml_comm_group *group, uint32_t rank, size_t bytes) {
    struct cuda_context *context = group->streams[rank]->context;
    CUdeviceptr ignored;
    if (bytes <= group->scratches[rank].bytes) return GGML_HOST_OK;
    enum ggml_host_status status = cuda_context_enter(context);
    if (status != GGML_HOST_OK) return status;
    status = cuda_scratch_get(context, &group->scratches[rank], bytes, &ignored);
    cuda_context_leave();
    return status;
}

// The rank's slice of all parts, added up where its own is.
static enum ggml_host_status reduce_slice(const struct ggml_comm_group *group, uint32_t i,
                                          enum ggml_comm_reduction reduction,
                                          struct ggml_tensor *const *parts, unsigned terms) {
    const struct slice s = slice_of(group, i, ggml_nelements(parts[0]));
    const size_t size = ggml_type_size(parts[0]->type), bytes = size * (size_t)(s.end - s.begin);
    const struct ggml_tensor *operands[GPU_MAX_OPERANDS] = {NULL};
    struct ggml_tensor rows[CUDA_MAX_RANKS];
    struct simt_combine what = how(reduction, terms, 1u << i);
    what.end = s.end - s.begin;
    CUdeviceptr at = cuda_scratch_at(&group->scratches[i]);
    enum ggml_host_status status = GGML_HOST_OK;
    for (uint32_t k = 0; k < group->n && status == GGML_HOST_OK; ++k) {
        const CUdeviceptr part = address(parts[k]) + size * (size_t)s.begin;
        rows[k] = row_at(parts[0]->type, k == i ? part : at, what.end);
        operands[k] = &rows[k];
        if (k == i || !(terms >> k & 1)) continue;
        status = copy(group->streams[i], at, group->streams[k], part, bytes);
        at += bytes;
    }
    return status == GGML_HOST_OK ? combine(group->streams[i], operands, &what) : status;
}

// The slices that others have added up.
static enum ggml_host_status gather_slices(const struct ggml_comm_group *group, uint32_t i,
                                           struct ggml_tensor *const *parts) {
    const size_t size = ggml_type_size(parts[0]->type);
    enum ggml_host_status status = GGML_HOST_OK;
    for (uint32_t k = 0; k < group->n && status == GGML_HOST_OK; ++k) {
        const struct slice s = slice_of(group, k, ggml_nelements(parts[0]));
        const size_t begin = size * (size_t)s.begin, bytes = size * (size_t)(s.end - s.begin);
        if (k != i)
            status = copy(group->streams[i], address(parts[i]) + begin, group->streams[k],
                          address(parts[k]) + begin, bytes);
    }
    return status;
}

// Three waits for all: before slices are read, before sums are read, and before the application
// goes on with them.
static enum ggml_host_status reduce_by_copies(const struct ggml_comm_group *group,
                                              enum ggml_comm_reduction reduction,
                                              struct ggml_tensor *const *parts, unsigned terms) {
    const uint32_t all = all_of(group);
    enum ggml_host_status status = fence(group, all, all);
    for (uint32_t i = 0; i < group->n && status == GGML_HOST_OK; ++i)
        status = reduce_slice(group, i, reduction, parts, terms);
    if (status == GGML_HOST_OK) status = fence(group, all, all);
    for (uint32_t i = 0; i < group->n && status == GGML_HOST_OK; ++i)
        status = gather_slices(group, i, parts);
    return status == GGML_HOST_OK ? fence(group, all, all) : status;
}

// --- entries -------------------------------------------------------------------------------------

// Parts whose count is 0 don't count as terms, and get the result too. Scratch memory is there
// before anything is queued.
static int32_t all_reduce(ggml_comm_group_t group, enum ggml_comm_reduction reduction,
                          struct ggml_tensor *const *parts, const uint8_t *counts) {
    int32_t status = cuda_comm_begin(group);
    if (status == GGML_HOST_OK) status = check(group, (const struct ggml_tensor *const *)parts);
    if (status != GGML_HOST_OK) return status;
    if (!ggml_sdk_comm_combines(reduction, parts[0]->type)) return GGML_HOST_UNSUPPORTED;
    unsigned terms = 0;
    for (uint32_t i = 0; i < group->n; ++i)
        terms |= (unsigned)(!counts || counts[i]) << i;
    const int64_t n = ggml_nelements(parts[0]);
    if (n == 0) return GGML_HOST_OK;
    if (reaches_parts(group, parts))
        return cuda_comm_end(group, reduce_in_place(group, reduction, parts, terms));
    for (uint32_t i = 0; i < group->n; ++i) {
        const struct slice s = slice_of(group, i, n);
        const size_t bytes = ggml_type_size(parts[0]->type) * (size_t)(s.end - s.begin);
        status = reserve(group, i, bytes * (group->n - 1));
        if (status == GGML_HOST_OUT_OF_MEMORY) return status;
        if (status != GGML_HOST_OK) return cuda_comm_end(group, status);
    }
    return cuda_comm_end(group, reduce_by_copies(group, reduction, parts, terms));
}

// Ranks copy at once, each when its own earlier work is done; the root's later work waits for them.
static int32_t broadcast(ggml_comm_group_t group, uint32_t root,
                         struct ggml_tensor *const *tensors) {
    int32_t begun = cuda_comm_begin(group);
    if (begun != GGML_HOST_OK) return begun;
    if (root >= group->n) return cuda_comm_no_rank(root);
    begun = check(group, (const struct ggml_tensor *const *)tensors);
    if (begun != GGML_HOST_OK) return begun;
    const uint32_t all = all_of(group), others = all & ~(1u << root);
    enum ggml_host_status status = fence(group, others, 1u << root);
    for (uint32_t i = 0; i < group->n && status == GGML_HOST_OK; ++i) {
        if (i != root)
            status = copy(group->streams[i], address(tensors[i]), group->streams[root],
                          address(tensors[root]), ggml_nbytes(tensors[root]));
    }
    if (status == GGML_HOST_OK) status = fence(group, 1u << root, others);
    return cuda_comm_end(group, status);
}

// All parts one after the other in the result of rank i, its own included.
static enum ggml_host_status gather(const struct ggml_comm_group *group, uint32_t i,
                                    const struct ggml_tensor *const *parts,
                                    const struct ggml_tensor *result) {
    const size_t size = ggml_nbytes(parts[0]);
    enum ggml_host_status status = GGML_HOST_OK;
    for (uint32_t k = 0; k < group->n && status == GGML_HOST_OK; ++k)
        status = copy(group->streams[i], address(result) + k * size, group->streams[k],
                      address(parts[k]), size);
    return status;
}

// Each rank fetches by itself: copies of several ranks go on at once.
static int32_t all_gather(ggml_comm_group_t group, const struct ggml_tensor *const *parts,
                          struct ggml_tensor *const *results) {
    int32_t begun = cuda_comm_begin(group);
    if (begun == GGML_HOST_OK) begun = check(group, parts);
    if (begun == GGML_HOST_OK) begun = check(group, (const struct ggml_tensor *const *)results);
    for (uint32_t i = 0; i < group->n && begun == GGML_HOST_OK; ++i)
        begun = ggml_sdk_comm_check_copy(parts[i], group->n, results[i]);
    if (begun != GGML_HOST_OK) return begun;
    const uint32_t all = all_of(group);
    enum ggml_host_status status = fence(group, all, all);
    for (uint32_t i = 0; i < group->n && status == GGML_HOST_OK; ++i)
        status = gather(group, i, parts, results[i]);
    if (status == GGML_HOST_OK) status = fence(group, all, all);
    return cuda_comm_end(group, status);
}

const struct ggml_extension_comm cuda_comm = {
    .size = sizeof(cuda_comm),
    .revision = GGML_EXTENSION_COMM_REVISION,
    .group_new = group_new,
    .group_free = group_free,
    .all_reduce = all_reduce,
    .broadcast = broadcast,
    .all_gather = all_gather,
    .send = cuda_comm_send,
    .receive = cuda_comm_receive,
};
