// SPDX-License-Identifier: MIT
// Data in and out of meta tensors: split ones in the pieces that their devices hold.
#include "meta/meta.h"

// One transfer between host memory and a meta tensor.
struct access {
    ggml_backend_t *streams; // NULL: blocking
    const struct meta_record *record;
    char *data;
    bool writes; // true: from `data` to the devices
};

// Transfers n_rows rows of `size` bytes between device j's slice and host memory, each side with
// its own stride between rows. Nothing to do is no call.
static void copy(const struct access *access, size_t j, size_t slice_offset, char *data,
                 size_t size, size_t n_rows, size_t slice_stride, size_t data_stride) {
    struct ggml_tensor *slice = &access->record->slices[j];
    if (size == 0 || n_rows == 0) return;
    if (access->streams && access->writes) {
        ggml_backend_tensor_set_2d_async(access->streams[j], slice, data, slice_offset, size,
                                         n_rows, slice_stride, data_stride);
    } else if (access->streams) {
        ggml_backend_tensor_get_2d_async(access->streams[j], slice, data, slice_offset, size,
                                         n_rows, slice_stride, data_stride);
    } else if (access->writes) {
        ggml_backend_tensor_set_2d(slice, data, slice_offset, size, n_rows, slice_stride,
                                   data_stride);
    } else {
        ggml_backend_tensor_get_2d(slice, data, slice_offset, size, n_rows, slice_stride,
                                   data_stride);
    }
}

// Iterates over the pieces of one row in memory order: segments, their repetitions, and in each
// repetition one piece per device. `local` advances along each device's own row.
struct piece {
    size_t segment, device;
    uint32_t repetition;
    size_t size;                    // bytes
    size_t start;                   // in the row of the whole
    size_t local[META_MAX_DEVICES]; // where the device's next piece goes in its row
    size_t unit_bytes;
    int64_t unit; // elements of unit_bytes
};

// Moves to the next piece; false behind the last one. A device without a share gets a piece of 0
// bytes, which copy() skips.
static bool next_piece(const meta_state *state, size_t n, struct piece *piece, bool first) {
    if (!first) {
        piece->start += piece->size;
        piece->local[piece->device] += piece->size;
        if (++piece->device == n) {
            piece->device = 0;
            if (++piece->repetition >= state->nr[piece->segment]) {
                piece->repetition = 0;
                ++piece->segment;
            }
        }
    }
    while (piece->segment < state->n_segments && state->nr[piece->segment] == 0)
        ++piece->segment;
    if (piece->segment >= state->n_segments) return false;
    const int64_t ne = state->ne[piece->segment * n + piece->device];
    piece->size = (size_t)(ne / piece->unit) * piece->unit_bytes;
    return true;
}

// A split tensor is treated as rows of whole strides of the split axis: everything outside of the
// axis is one row after the other, with the same pieces in each.
struct rows {
    size_t bytes;                         // of a row of the whole
    size_t slice_bytes[META_MAX_DEVICES]; // of a device's row
    struct piece first;
};

// A unit is a block along dimension 0, which can't be cut, and otherwise one index of the axis with
// all that lies below it.
static struct rows rows_of(const struct meta_record *record, size_t n) {
    const struct ggml_tensor *tensor = record->tensor;
    const int axis = (int)record->state.axis;
    struct rows rows = {0};
    rows.first.unit = axis == 0 ? ggml_blck_size(tensor->type) : 1;
    rows.first.unit_bytes = tensor->nb[axis];
    rows.bytes = tensor->nb[axis] * (size_t)(tensor->ne[axis] / rows.first.unit);
    for (size_t j = 0; j < n; ++j) {
        rows.slice_bytes[j] =
            (size_t)(meta_share(&record->state, n, j) / rows.first.unit) * tensor->nb[axis];
    }
    return rows;
}

// Rows [first, first + count), whole: one strided transfer per piece, whatever the count.
static void copy_rows(const struct access *access, const struct rows *rows, size_t n, size_t first,
                      size_t count, char *data) {
    struct piece piece = rows->first;
    for (bool more = next_piece(&access->record->state, n, &piece, true); more;
         more = next_piece(&access->record->state, n, &piece, false)) {
        const size_t j = piece.device;
        copy(access, j, first * rows->slice_bytes[j] + piece.local[j], data + piece.start,
             piece.size, count, rows->slice_bytes[j], rows->bytes);
    }
}

// Bytes [begin, end) of one row: the overlap with each piece.
static void copy_part(const struct access *access, const struct rows *rows, size_t n, size_t row,
                      size_t begin, size_t end, char *data) {
    struct piece piece = rows->first;
    for (bool more = next_piece(&access->record->state, n, &piece, true); more;
         more = next_piece(&access->record->state, n, &piece, false)) {
        const size_t j = piece.device;
        const size_t low = MAX(begin, piece.start);
        const size_t high = MIN(end, piece.start + piece.size);
        if (low >= high) continue;
        copy(access, j, row * rows->slice_bytes[j] + piece.local[j] + (low - piece.start),
             data + (low - begin), high - low, 1, 0, 0);
    }
}

// Cuts a byte range into a partial row, whole rows, and another partial row. O(pieces), independent
// of the rows.
static void copy_split(const struct access *access, size_t n, size_t offset, size_t size) {
    const struct rows rows = rows_of(access->record, n);
    char *data = access->data;
    size_t done = 0;
    while (done < size) {
        const size_t row = (offset + done) / rows.bytes;
        const size_t begin = (offset + done) % rows.bytes;
        const size_t whole = begin == 0 ? (size - done) / rows.bytes : 0;
        if (whole > 0) {
            copy_rows(access, &rows, n, row, whole, data + done);
            done += whole * rows.bytes;
            continue;
        }
        const size_t end = MIN(rows.bytes, begin + (size - done));
        copy_part(access, &rows, n, row, begin, end, data + done);
        done += end - begin;
    }
}

// A tensor that every device has in full. A sum in static memory is written to device 0 and zeroed
// on the others, so that their sum is the value; reads come from device 0. A computed sum has been
// added up on all devices, and nodes that read it later take it as it is there.
static void copy_whole(const struct access *access, size_t n, size_t offset, size_t size) {
    const bool partial = access->record->state.axis == GGML_BACKEND_SPLIT_AXIS_PARTIAL &&
                         meta_root(access->record->tensor)->op == GGML_OP_NONE;
    copy(access, 0, offset, access->data, size, 1, 0, 0);
    for (size_t j = 1; j < n && access->writes; ++j) {
        if (partial)
            ggml_backend_tensor_memset(&access->record->slices[j], 0, offset, size);
        else
            copy(access, j, offset, access->data, size, 1, 0, 0);
    }
}

// Copies the range, as the record's state says.
static bool copy_range(const struct access *access, const struct ggml_tensor *tensor, size_t offset,
                       size_t size) {
    const meta_state *state = &access->record->state;
    const size_t n = meta_buffer_with(tensor)->device->n;
    const unsigned long errors_before = ggml_fail_count();
    if (state->axis == GGML_BACKEND_SPLIT_AXIS_UNKNOWN ||
        (meta_is_axis(state) && !ggml_is_contiguous(tensor))) {
        ggml_fail(GGML_HOST_UNSUPPORTED,
                  "meta device: '%s' is a view with gaps or across devices of split memory: access "
                  "the tensor that it views",
                  tensor->name);
        return false;
    }
    if (meta_is_axis(state))
        copy_split(access, n, offset, size);
    else
        copy_whole(access, n, offset, size);
    return ggml_fail_count() == errors_before;
}

// Resolves the tensor first, as states of views may change with their roots. Views that cut through
// devices have no slices: their root has to be accessed instead. The lock is not kept while bytes
// are copied, which may take long.
static bool transfer(struct access *access, const struct ggml_tensor *tensor, size_t offset,
                     size_t size) {
    meta_lock();
    struct meta_record *record = meta_resolve(tensor);
    if (record) meta_record_ref(record);
    meta_unlock();
    if (!record) return false;
    access->record = record;
    const bool copied = copy_range(access, tensor, offset, size);
    meta_lock();
    meta_record_unref(record);
    meta_unlock();
    return copied;
}

// Entry points for writing and reading; they block if `streams` is NULL.
bool meta_set(ggml_backend_t *streams, struct ggml_tensor *tensor, const void *data, size_t offset,
              size_t size) {
    struct access access = {.streams = streams, .data = (char *)(uintptr_t)data, .writes = true};
    return transfer(&access, tensor, offset, size);
}

bool meta_get(ggml_backend_t *streams, const struct ggml_tensor *tensor, void *data, size_t offset,
              size_t size) {
    struct access access = {.streams = streams, .data = data};
    return transfer(&access, tensor, offset, size);
}
