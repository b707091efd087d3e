// SPDX-License-Identifier: MIT
// Inside a plugin that offers "ggml.comm": checks of a call's arguments, and reductions in host
// memory.
#include "ggml-impl.h"
#include "ggml-plugin.h"

static int32_t refuse(const char *format, ...) GGML_ATTRIBUTE_FORMAT(1, 2);
// Sets the error and returns its status.
static int32_t refuse(const char *format, ...) {
    va_list args;
    va_start(args, format);
    ggml_sdk_fail_v(GGML_HOST_INVALID_ARGUMENT, format, args);
    va_end(args);
    return GGML_HOST_INVALID_ARGUMENT;
}

// --- arguments -----------------------------------------------------------------------------------

static bool is_stream_of(ggml_backend_t stream, ggml_backend_reg_t reg) {
    return stream && stream->device && stream->device->reg == reg;
}

// OK for a group within one process; UNSUPPORTED, without an error, if ranks are in other
// processes: a plugin that supports those carries on.
int32_t ggml_sdk_comm_check_ranks(const struct ggml_comm_ranks *ranks, ggml_backend_reg_t reg) {
    if (!ranks || ranks->size < sizeof(*ranks) || !ranks->streams || ranks->n_streams == 0)
        return refuse("comm group: no streams, or the size of the struct isn't set");
    // Written so that first + n_streams can't wrap around.
    if (ranks->n_streams > ranks->n_ranks || ranks->first > ranks->n_ranks - ranks->n_streams) {
        return refuse("comm group: ranks %u to %u of %u", ranks->first,
                      ranks->first + ranks->n_streams - 1, ranks->n_ranks);
    }
    for (uint32_t i = 0; i < ranks->n_streams; ++i) {
        if (!is_stream_of(ranks->streams[i], reg))
            // O(n^2), which is small: a stream per device.
            return refuse("comm group: stream %u is not of this plugin", i);
        for (uint32_t k = 0; k < i; ++k) {
            if (ranks->streams[k] == ranks->streams[i])
                return refuse("comm group: streams %u and %u are the same", k, i);
        }
    }
    return ranks->n_streams == ranks->n_ranks && !ranks->id ? GGML_HOST_OK : GGML_HOST_UNSUPPORTED;
}

static ggml_backend_buffer_t buffer_of(const struct ggml_tensor *tensor) {
    return tensor->view_src ? tensor->view_src->buffer : tensor->buffer;
}

// Whether the device can read and write the tensor's memory.
static bool is_in_reach(ggml_backend_dev_t device, const struct ggml_tensor *tensor) {
    const struct ggml_backend_buffer *buffer = buffer_of(tensor);
    return tensor->data && buffer && device->table->supports_buft(device, buffer->buft);
}

// All tensors have to be contiguous, in reach of their rank's device, and equal in type and number
// of elements.
int32_t ggml_sdk_comm_check_tensors(const ggml_backend_t *streams, uint32_t n,
                                    const struct ggml_tensor *const *tensors) {
    for (uint32_t i = 0; i < n; ++i) {
        if (!tensors || !tensors[i]) return refuse("comm: no tensor of rank %u", i);
        if (!ggml_is_contiguous(tensors[i]) || !is_in_reach(streams[i]->device, tensors[i])) {
            return refuse("comm: '%s' is not contiguous in memory of the device of rank %u",
                          tensors[i]->name, i);
        }
        if (tensors[i]->type != tensors[0]->type ||
            ggml_nelements(tensors[i]) != ggml_nelements(tensors[0])) {
            return refuse("comm: '%s' of rank %u differs from that of rank 0 in type or number",
                          tensors[i]->name, i);
        }
    }
    return GGML_HOST_OK;
}

// Checks the large tensor of a gather or scatter: n_parts times the elements of `part`, without
// overlap.
int32_t ggml_sdk_comm_check_copy(const struct ggml_tensor *part, uint32_t n_parts,
                                 const struct ggml_tensor *to) {
    if (to->type != part->type || ggml_nelements(to) / n_parts != ggml_nelements(part) ||
        ggml_nbytes(to) != n_parts * ggml_nbytes(part)) {
        return refuse("comm: '%s' has not the type and %u times the elements of '%s'", to->name,
                      n_parts, part->name);
    }
    const char *a = part->data, *b = to->data;
    // Within one buffer only: addresses of different buffers may be of different devices.
    if (buffer_of(part) == buffer_of(to) && a < b + ggml_nbytes(to) && b < a + ggml_nbytes(part))
        return refuse("comm: '%s' overlaps '%s'", to->name, part->name);
    return GGML_HOST_OK;
}

// --- reductions ----------------------------------------------------------------------------------

bool ggml_sdk_comm_combines(enum ggml_comm_reduction reduction, enum ggml_type type) {
    return (reduction == GGML_COMM_SUM || reduction == GGML_COMM_MAX) &&
           (type == GGML_TYPE_F32 || type == GGML_TYPE_F16 || type == GGML_TYPE_BF16);
}

enum { BLOCK = 512 }; // numbers that are combined at a time

// Elements `at` to `at + n` as F32: in place, or in `room`.
static const float *load(enum ggml_type type, const void *data, size_t at, size_t n, float *room) {
    const ggml_fp16_t *halves = (const ggml_fp16_t *)data + at;
    const ggml_bf16_t *brains = (const ggml_bf16_t *)data + at;
    if (type == GGML_TYPE_F32) return (const float *)data + at;
    if (type == GGML_TYPE_F16) {
        for (size_t i = 0; i < n; ++i)
            room[i] = ggml_compute_fp16_to_fp32(halves[i]);
    } else {
        for (size_t i = 0; i < n; ++i)
            room[i] = ggml_compute_bf16_to_fp32(brains[i]);
    }
    return room;
}

// Rounds F32 to the type, to nearest.
static void store(enum ggml_type type, void *data, size_t at, size_t n, const float *values) {
    ggml_fp16_t *halves = (ggml_fp16_t *)data + at;
    ggml_bf16_t *brains = (ggml_bf16_t *)data + at;
    if (type == GGML_TYPE_F16) {
        for (size_t i = 0; i < n; ++i)
            halves[i] = ggml_compute_fp32_to_fp16(values[i]);
    } else if (type == GGML_TYPE_BF16) {
        for (size_t i = 0; i < n; ++i)
            brains[i] = ggml_compute_fp32_to_bf16(values[i]);
    } else {
        memmove((float *)data + at, values, n * sizeof(*values)); // they may be there already
    }
}

// Combines element by element, in the order of ranks, so that all ranks get bit-identical results.
// `out` may be `values`, nothing else overlaps.
static void combine(enum ggml_comm_reduction reduction, const float *values, const float *part,
                    size_t n, float *out) {
    if (reduction == GGML_COMM_SUM) {
        for (size_t i = 0; i < n; ++i)
            out[i] = values[i] + part[i];
    } else {
        for (size_t i = 0; i < n; ++i)
            out[i] = part[i] > values[i] ? part[i] : values[i];
    }
}

// Elements [begin, end) of the result. A missing part (NULL) counts as 0 of a sum and is left out
// of a maximum; without any part the result is 0. Sums are accumulated in F32 and rounded once.
void ggml_sdk_comm_combine(enum ggml_comm_reduction reduction, enum ggml_type type,
                           const void *const *parts, size_t n_parts, size_t begin, size_t end,
                           void *out) {
    for (size_t at = begin; at < end; at += BLOCK) {
        float sum[BLOCK], room[BLOCK];
        const size_t n = end - at < BLOCK ? end - at : BLOCK;
        const float *values = NULL; // so far: a part of F32, or `sum`
        for (size_t k = 0; k < n_parts; ++k) {
            if (!parts[k]) continue;
            const float *part = load(type, parts[k], at, n, values ? room : sum);
            if (values) combine(reduction, values, part, n, sum);
            values = values ? sum : part;
        }
        if (!values) values = memset(sum, 0, n * sizeof(sum[0]));
        store(type, out, at, n, values);
    }
}
