// SPDX-License-Identifier: MIT
// Copies only those experts of a weight (MUL_MAT_ID) that the graph is about to use: the ids are
// read back before the copy.
#include "base/array.h"
#include "base/mem.h"
#include "base/status.h"
#include "sched/run.h"

// Kernels may read a little past the last expert that was copied: what they find must be numbers.
enum { TAIL_BYTES = 512 };

// Only weights in host memory are read in parts; a weight of experts has three extents, and lies
// expert after expert.
bool sched_is_expert_copy(const struct sched_graph *graph, const struct sched_copy *copy) {
    const struct ggml_tensor *weight = graph->values[copy->value].tensor;
    return copy->expert_ids >= 0 && sched_is_host_weight(graph, copy) && weight->ne[3] == 1 &&
           weight->nb[0] == ggml_type_size(weight->type) &&
           weight->nb[2] >= (size_t)(weight->ne[1] - 1) * weight->nb[1] +
                                ggml_row_size(weight->type, weight->ne[0]);
}

// Clears one flag per expert; false when memory runs out.
static bool make_room(struct sched_experts *known, int64_t count) {
    if (!ARRAY_GROW(known, used, count)) return false;
    memset(known->used, 0, (size_t)count);
    known->count = count;
    return true;
}

// Sets the flag of each expert that the ids name; false with a message if there is no such expert.
static bool mark(const struct sched_setup *setup, const struct ggml_tensor *ids, const char *data,
                 struct sched_experts *known) {
    for (int64_t i = 0; i < ids->ne[0] * ids->ne[1]; ++i) {
        const size_t offset =
            (size_t)(i % ids->ne[0]) * ids->nb[0] + (size_t)(i / ids->ne[0]) * ids->nb[1];
        int32_t expert;
        memcpy(&expert, data + offset, sizeof(expert));
        if (expert < 0 || expert >= known->count) {
            ggml_fail(GGML_HOST_OUT_OF_RANGE, "%s: '%s' names expert %d of %lld", setup->function,
                      ids->name, (int)expert, (long long)known->count);
            return false;
        }
        known->used[expert] = 1;
    }
    return true;
}

// Reads the ids back to the host, unless those of the last copy are the same: layers of experts
// have several weights with the same ids.
static bool read_ids(const struct sched_work *work, struct sched_runs *runs, int32_t value,
                     int64_t count, struct sched_experts *known) {
    const bool rewritten = work->partition->written[work->graph->values[value].root] >= 0;
    if (known->ids == value && known->count == count && !rewritten) return true;
    const struct ggml_tensor *ids = work->graph->values[value].tensor;
    const size_t bytes = ggml_nbytes(ids);
    const unsigned long failures_before = ggml_fail_count();
    known->ids = -1;
    char *data = ggml_mem_alloc(bytes > 0 ? bytes : 1);
    if (!data || !make_room(known, count)) {
        ggml_mem_free(data);
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory to read '%s'", work->setup->function,
                  ids->name);
        return false;
    }
    if (bytes > 0) {
        sched_wait(work->setup, runs, work->placement->placed[value].backend);
        sched_wait_for_users(work->setup, runs, sched_owner(work, value));
        ggml_backend_tensor_get(ids, data, 0, bytes);
    }
    const bool done = ggml_fail_count() == failures_before && mark(work->setup, ids, data, known);
    ggml_mem_free(data);
    if (done) known->ids = value;
    return done;
}

// Copies runs of neighbouring experts at once. O(experts + ids).
bool sched_copy_experts(const struct sched_work *work, struct sched_runs *runs, int32_t copy,
                        struct sched_experts *known) {
    const struct sched_copy *input = &work->partition->copies[copy];
    const struct sched_value *value = &work->graph->values[input->value];
    const struct ggml_tensor *weight = value->tensor;
    ggml_backend_t stream = work->setup->streams[input->backend].backend;
    struct ggml_tensor *dst = sched_copy_tensor(work->copies, copy);
    const int64_t count = weight->ne[2];
    const size_t stride = weight->nb[2], bytes = ggml_nbytes(weight);
    const unsigned long failures_before = ggml_fail_count();
    sched_wait(work->setup, runs, work->placement->placed[input->value].backend);
    if (!read_ids(work, runs, input->expert_ids, count, known)) return false;
    for (int64_t first = 0; first < count; ++first) {
        if (!known->used[first]) continue;
        int64_t end = first + 1;
        while (end < count && known->used[end]) {
            ++end;
        }
        const size_t offset = (size_t)first * stride;
        const size_t tail = end < count ? MIN(stride, (size_t)TAIL_BYTES) : 0;
        const size_t size = MIN((size_t)(end - first) * stride + tail, bytes - offset);
        ggml_backend_tensor_set_async(stream, dst, (const char *)weight->data + offset, offset,
                                      size);
        first = end;
    }
    return ggml_fail_count() == failures_before;
}
