// SPDX-License-Identifier: MIT
// All-reduce: by the plugin's "ggml.comm", or with copies and additions. The generic algorithm is
// recursive doubling (a butterfly) over the largest power of two of the devices that take part
// (Thakur et al. 2005); the others add their part to a partner's before and receive the result
// afterwards.
#include "base/mem.h"
#include "device/check.h"
#include "ggml-host.h"
#include "meta/meta.h"

struct group {
    struct meta_stream *stream;
    struct meta_reduction *reduction;
    size_t members[META_MAX_DEVICES]; // devices whose part counts
    size_t n;
};

// Makes later work of `after` wait for what is queued on `before`, by an event where both devices
// have the same plugin.
static void order(struct meta_stream *stream, size_t after, size_t before) {
    const ggml_backend_dev_t *devices = stream->device->devices;
    if (stream->events[before] && devices[after]->reg == devices[before]->reg) {
        ggml_backend_event_record(stream->events[before], stream->streams[before]);
        ggml_backend_event_wait(stream->streams[after], stream->events[before]);
    } else {
        ggml_backend_synchronize(stream->streams[before]);
    }
}

// Adds the received part on member j, as a graph of one node.
static enum ggml_status add_received(struct group *group, size_t j) {
    struct ggml_tensor *sum = &group->reduction->sums[j];
    static const int32_t not_known = 0;
    const struct ggml_graph graph = {
        .size = sizeof(graph), .n_nodes = 1, .nodes = &sum, .use_counts = &not_known};
    return stream_graph_compute("meta device", group->stream->streams[j], &graph);
}

// Copies between pairs of members; with both directions listed they run at once. A copy waits for
// the receiver to be ready, and the sender's later work waits for the copy.
static void exchange(struct group *group, const size_t (*pairs)[2], size_t n_pairs, bool adds) {
    for (size_t i = 0; i < n_pairs; ++i)
        order(group->stream, pairs[i][0], pairs[i][1]);
    for (size_t i = 0; i < n_pairs; ++i) {
        const size_t from = pairs[i][0], to = pairs[i][1];
        ggml_backend_tensor_copy_async(
            group->stream->streams[from], group->stream->streams[to], group->reduction->parts[from],
            adds ? &group->reduction->received[to] : group->reduction->parts[to]);
    }
    for (size_t i = 0; i < n_pairs; ++i)
        order(group->stream, pairs[i][0], pairs[i][1]);
}

// Exchanges parts and adds them. All copies are queued before the first addition, so that they
// overlap.
static enum ggml_status exchange_and_add(struct group *group, const size_t (*pairs)[2],
                                         size_t n_pairs) {
    enum ggml_status status = GGML_STATUS_SUCCESS;
    exchange(group, pairs, n_pairs, true);
    for (size_t i = 0; i < n_pairs && status == GGML_STATUS_SUCCESS; ++i) {
        status = add_received(group, pairs[i][1]);
    }
    return status;
}

// log2(power) rounds, in which each member adds what a partner has; before them, one for members
// beyond the power of two.
static enum ggml_status butterfly(struct group *group, size_t power) {
    size_t pairs[META_MAX_DEVICES][2];
    enum ggml_status status = GGML_STATUS_SUCCESS;
    const size_t rest = group->n - power;
    for (size_t i = 0; i < rest; ++i) {
        pairs[i][0] = group->members[power + i];
        pairs[i][1] = group->members[i];
    }
    if (rest > 0) status = exchange_and_add(group, (const size_t(*)[2])pairs, rest);
    for (size_t offset = power / 2; offset > 0 && status == GGML_STATUS_SUCCESS; offset /= 2) {
        for (size_t i = 0; i < power; ++i) {
            pairs[i][0] = group->members[i];
            pairs[i][1] = group->members[i ^ offset];
        }
        status = exchange_and_add(group, (const size_t(*)[2])pairs, power);
    }
    return status;
}

// Sends the result to the devices outside of the butterfly, its members taking turns.
static void spread(struct group *group, size_t power) {
    size_t pairs[META_MAX_DEVICES][2];
    size_t n_pairs = 0;
    for (size_t j = 0; j < group->stream->device->n; ++j) {
        bool has_it = false;
        for (size_t i = 0; i < power; ++i)
            has_it = has_it || group->members[i] == j;
        if (has_it) continue;
        pairs[n_pairs][0] = group->members[n_pairs % power];
        pairs[n_pairs++][1] = j;
    }
    exchange(group, (const size_t(*)[2])pairs, n_pairs, false);
}

static void synchronize_all(struct meta_stream *stream) {
    for (size_t j = 0; j < stream->device->n; ++j)
        ggml_backend_synchronize(stream->streams[j]);
}

// Adds one part to the sum: `raw` has room for it as it is stored, `part` for its numbers.
static void add_part(const struct ggml_tensor *tensor, void *raw, float *part, float *sum) {
    const int64_t n = ggml_nelements(tensor);
    const bool stored = tensor->type != GGML_TYPE_F32;
    ggml_backend_tensor_get(tensor, stored ? raw : part, 0, ggml_nbytes(tensor));
    if (stored) ggml_get_type_traits(tensor->type)->to_float(raw, part, n);
    for (int64_t k = 0; k < n; ++k)
        sum[k] += part[k];
}

// Reads all parts, adds them in F32 and writes the sum to each device. `sum` holds 2 * n floats,
// `raw` n elements of the type.
static void add_up(struct group *group, void *raw, float *sum, int64_t n) {
    const enum ggml_type type = group->reduction->parts[0]->type;
    const void *result = type == GGML_TYPE_F32 ? sum : raw;
    synchronize_all(group->stream);
    for (size_t i = 0; i < group->n; ++i) {
        add_part(group->reduction->parts[group->members[i]], raw, sum + n, sum);
    }
    if (type != GGML_TYPE_F32) ggml_get_type_traits(type)->from_float_ref(sum, raw, n);
    for (size_t j = 0; j < group->stream->device->n; ++j) {
        struct ggml_tensor *part = group->reduction->parts[j];
        ggml_backend_tensor_set(part, result, 0, ggml_nbytes(part));
    }
}

// Sums on the host: for devices that can't add, or if no part counts.
static enum ggml_status reduce_on_host(struct group *group) {
    const struct ggml_tensor *first = group->reduction->parts[0];
    const struct ggml_type_traits *traits = ggml_get_type_traits(first->type);
    const size_t n = (size_t)ggml_nelements(first);
    const unsigned long errors_before = ggml_fail_count();
    if (first->type != GGML_TYPE_F32 && (!traits->to_float || !traits->from_float_ref)) {
        ggml_fail(GGML_HOST_UNSUPPORTED, "meta device: '%s' of type %s can't be added up",
                  first->name, traits->type_name);
        return GGML_STATUS_FAILED;
    }
    float *sum = ggml_mem_calloc(n, 2 * sizeof(*sum));
    void *raw = ggml_mem_alloc(ggml_nbytes(first));
    const bool allocated = sum && raw;
    if (allocated) {
        add_up(group, raw, sum, (int64_t)n);
    } else {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "meta device: no memory to add up %zu elements", n);
    }
    ggml_mem_free(sum);
    ggml_mem_free(raw);
    if (!allocated) return GGML_STATUS_ALLOC_FAILED;
    return ggml_fail_count() == errors_before ? GGML_STATUS_SUCCESS : GGML_STATUS_FAILED;
}

// Whether each member computes its own addition; otherwise the host adds.
static bool can_add(const struct group *group) {
    for (size_t i = 0; i < group->n; ++i) {
        const size_t j = group->members[i];
        if (!ggml_backend_dev_supports_op(group->stream->device->devices[j],
                                          &group->reduction->sums[j])) {
            return false;
        }
    }
    return group->n > 0;
}

// --- by the plugin -------------------------------------------------------------------------------

// Needs one plugin with all devices and the extension.
void meta_group_begin(struct meta_stream *stream) {
    const struct meta_device *device = stream->device;
    ggml_backend_reg_t reg = device->devices[0]->reg;
    for (size_t j = 1; j < device->n; ++j) {
        if (device->devices[j]->reg != reg) return;
    }
    if (device->n < 2 || !reg || stream->group) return;
    const struct ggml_extension_comm *comm =
        ggml_backend_reg_get_extension(reg, GGML_EXTENSION_COMM, GGML_EXTENSION_COMM_REVISION);
    if (!comm || comm->size < sizeof(*comm)) return;
    if (!comm->group_new || !comm->group_free || !comm->all_reduce) return;
    const struct ggml_comm_ranks ranks = {.size = sizeof(ranks),
                                          .n_ranks = (uint32_t)device->n,
                                          .n_streams = (uint32_t)device->n,
                                          .streams = stream->streams};
    ggml_comm_group_t group = NULL;
    const int32_t status = comm->group_new(&ranks, &group);
    // Another status than OK is no failure of the stream, which adds up without a group.
    stream->group = status == GGML_HOST_OK ? group : NULL;
    stream->comm = status == GGML_HOST_UNSUPPORTED ? NULL : comm;
}

void meta_group_end(struct meta_stream *stream) {
    if (stream->group) stream->comm->group_free(stream->group);
    stream->group = NULL;
}

// Sums by the plugin. UNSUPPORTED means that nothing was done. A group that fails is replaced at
// the next sum.
static enum ggml_host_status reduce_by_plugin(struct meta_stream *stream,
                                              const struct meta_reduction *reduction) {
    uint8_t counts[META_MAX_DEVICES];
    if (stream->comm && !stream->group) meta_group_begin(stream);
    if (!stream->group) return GGML_HOST_UNSUPPORTED;
    for (size_t j = 0; j < stream->device->n; ++j) {
        if (!ggml_is_contiguous(reduction->parts[j])) return GGML_HOST_UNSUPPORTED;
        counts[j] = (reduction->parts[j]->flags & GGML_TENSOR_FLAG_COMPUTE) != 0;
    }
    const unsigned long errors_before = ggml_fail_count();
    const int32_t status =
        stream->comm->all_reduce(stream->group, GGML_COMM_SUM, reduction->parts, counts);
    if (status == GGML_HOST_OK || status == GGML_HOST_UNSUPPORTED)
        return (enum ggml_host_status)status;
    meta_group_end(stream);
    return device_check_status(status, errors_before, "meta device", "the plugin's sum");
}

// All-reduce: by the plugin's own communicator if it has one, otherwise by recursive doubling
// between the devices (butterfly), otherwise on the host.
enum ggml_status meta_reduce(struct meta_stream *stream, struct meta_reduction *reduction) {
    struct group group = {.stream = stream, .reduction = reduction};
    const size_t n = stream->device->n;
    const enum ggml_host_status by_plugin = reduce_by_plugin(stream, reduction);
    if (by_plugin == GGML_HOST_OK) return GGML_STATUS_SUCCESS;
    if (by_plugin == GGML_HOST_OUT_OF_MEMORY) return GGML_STATUS_ALLOC_FAILED;
    if (by_plugin != GGML_HOST_UNSUPPORTED) return GGML_STATUS_FAILED;
    for (size_t j = 0; j < n; ++j) {
        if (reduction->parts[j]->flags & GGML_TENSOR_FLAG_COMPUTE) group.members[group.n++] = j;
    }
    if (!can_add(&group)) return reduce_on_host(&group);
    // Largest power of two of devices that fits; the others send their part first and get the sum
    // at the end.
    size_t power = 1;
    while (2 * power <= group.n)
        power *= 2;
    const unsigned long errors_before = ggml_fail_count();
    const enum ggml_status status = butterfly(&group, power);
    if (status != GGML_STATUS_SUCCESS) return status;
    spread(&group, power);
    return ggml_fail_count() == errors_before ? GGML_STATUS_SUCCESS : GGML_STATUS_FAILED;
}
