// SPDX-License-Identifier: MIT
// Finds a tensor's split state, its slices, and whether its node can be computed split.
#include "base/array.h"
#include "base/mem.h"
#include "meta/meta.h"

static struct meta_device *device_with(const struct ggml_tensor *tensor) {
    return meta_buffer_with(tensor)->device;
}

// --- state ---------------------------------------------------------------------------------------

static meta_state plain(enum ggml_backend_meta_split_axis axis) {
    return meta_state_plain(axis);
}

// Asks the application for a split; one that doesn't fit the tensor is an error.
static bool ask(const struct ggml_tensor *tensor, meta_state *out_state) {
    const struct meta_device *device = device_with(tensor);
    *out_state = plain(GGML_BACKEND_SPLIT_AXIS_MIRRORED);
    if (tensor->buffer->usage == GGML_BACKEND_BUFFER_USAGE_COMPUTE || ggml_is_empty(tensor)) {
        return true;
    }
    *out_state = device->get_split_state(tensor, device->user_data);
    if (meta_state_fits(out_state, tensor, device->n)) return true;
    ggml_fail(
        GGML_HOST_INVALID_ARGUMENT,
        "meta device: the split of '%s' along axis %s does not add up to its extents in whole "
        "blocks",
        tensor->name, ggml_backend_meta_split_axis_name(out_state->axis));
    return false;
}

// The split of a view, from that of the memory it is in.
static meta_state state_of_view(const struct ggml_tensor *view) {
    const struct ggml_tensor *root = view->view_src;
    const struct meta_record *record = meta_record_get(root);
    if (!record || !record->is_resolved) return plain(GGML_BACKEND_SPLIT_AXIS_UNKNOWN);
    if (!meta_is_axis(&record->state)) return record->state;
    const struct meta_layout from = meta_layout_of(root);
    const struct meta_layout to = meta_layout_of(view);
    meta_state state = plain(GGML_BACKEND_SPLIT_AXIS_UNKNOWN);
    if (ggml_is_contiguous(root)) {
        meta_view_state(&from, &record->state, &to, device_with(view)->n, &state);
    }
    return state;
}

// Whether the tensor holds partial sums in static memory, where they can't be added up.
static bool is_static_partial(const struct meta_record *record) {
    return record->state.axis == GGML_BACKEND_SPLIT_AXIS_PARTIAL &&
           meta_root(record->tensor)->op == GGML_OP_NONE;
}

// Collects the operands' states for the operation's rule. Partial sums count as mirrored: the plan
// sums them before, or carries them through linear operations. A node that names itself, as a
// conversion does for its type, has no operand there.
static void read_operands(struct meta_record *record, struct meta_operand *out_operands) {
    record->reads_partial = false;
    for (int k = 0; k < GGML_MAX_SRC; ++k) {
        const struct ggml_tensor *src = record->tensor->src[k];
        if (src == record->tensor) src = NULL;
        out_operands[k] = (struct meta_operand){.tensor = src, .cut_axis = -1};
        out_operands[k].state = plain(GGML_BACKEND_SPLIT_AXIS_MIRRORED);
        struct meta_record *other = src ? meta_record_get(src) : NULL;
        if (!other) continue;
        if (is_static_partial(other))
            record->reads_partial = true;
        else if (other->state.axis != GGML_BACKEND_SPLIT_AXIS_PARTIAL) {
            out_operands[k].state = other->state;
        }
    }
}

// Whether partial results can be summed: ADD works in F32, and a result of another type would be
// rounded once per device.
static bool can_sum(const meta_state *state, enum ggml_type type) {
    return state->axis != GGML_BACKEND_SPLIT_AXIS_PARTIAL || type == GGML_TYPE_F32;
}

// Whether a result of that state may be written to that memory. Sums that are added up in place
// later go into whole slices, which a view is not sure to have.
static bool fits_memory(const struct meta_record *record, const meta_state *memory, size_t n) {
    if (meta_state_equal(&record->state, memory, n)) return true;
    return record->owner && record->state.axis == GGML_BACKEND_SPLIT_AXIS_PARTIAL &&
           memory->axis == GGML_BACKEND_SPLIT_AXIS_MIRRORED;
}

// Derives the state of a computed tensor. If it writes into the memory of another one, or into
// slices that it has already, the derived split must be that of the memory; otherwise it becomes a
// fallback.
static void derive(struct meta_record *record, struct meta_operand *operands) {
    const struct ggml_tensor *tensor = record->tensor;
    const size_t n = device_with(tensor)->n;
    meta_state memory = plain(GGML_BACKEND_SPLIT_AXIS_MIRRORED);
    if (tensor->view_src || record->owner) {
        memory = tensor->view_src ? state_of_view(tensor) : record->state;
        if (memory.axis == GGML_BACKEND_SPLIT_AXIS_PARTIAL)
            memory.axis = GGML_BACKEND_SPLIT_AXIS_MIRRORED;
    }
    bool derived = !record->is_fallback && meta_derive(tensor, operands, n, &record->state) &&
                   can_sum(&record->state, tensor->type);
    if (derived && (tensor->view_src || record->owner)) derived = fits_memory(record, &memory, n);
    if (derived) return;
    record->is_fallback = true;
    record->state = memory;
}

// The tensor's state: without an operation the one that the application gives, for a pure view that
// of its memory, otherwise derived from the operands.
static bool find_state(struct meta_record *record, struct meta_operand *operands) {
    const struct ggml_tensor *tensor = record->tensor;
    if (record->owner) {
        derive(record, operands);
        return true;
    }
    if (tensor->op == GGML_OP_NONE && !tensor->view_src) return ask(tensor, &record->state);
    if (ggml_op_is_empty(tensor->op) && tensor->view_src)
        record->state = state_of_view(tensor);
    else
        derive(record, operands);
    return true;
}

// --- slices --------------------------------------------------------------------------------------

// The shape of a slice; what is computed in it comes from dress().
static void describe(struct ggml_tensor *slice, const struct ggml_tensor *tensor,
                     const struct meta_layout *layout) {
    memset(slice, 0, sizeof(*slice));
    slice->type = tensor->type;
    memcpy(slice->ne, layout->ne, sizeof(slice->ne));
    memcpy(slice->nb, layout->nb, sizeof(slice->nb));
}

// Slices to refer to: those of an owner stay, those of a record with that memory may not.
static struct ggml_tensor *slices_of(const struct meta_record *record) {
    return record->owner ? record->owner->slices : record->slices;
}

// Places the slice of a view in the slice of its root. Without memory yet, it is resolved again
// when there is some.
static bool place_view(struct meta_record *record, size_t j, size_t offset) {
    struct ggml_tensor *slice = &record->slices[j];
    slice->view_src = &slices_of(meta_record_get(record->tensor->view_src))[j];
    slice->view_offs = offset;
    if (!slice->view_src->buffer) return true;
    return ggml_backend_view_init(slice) == GGML_STATUS_SUCCESS;
}

// Places a slice that owns memory: the same offset on every device, as graphs are planned once, for
// placeholder addresses.
static bool place_owner(struct meta_record *record, size_t j) {
    const struct meta_buffer *buffer = meta_buffer_with(record->tensor);
    if (!buffer->bases[j] || !record->tensor->data) return true;
    const size_t offset = (size_t)((char *)record->tensor->data - META_BASE);
    return ggml_backend_tensor_alloc(buffer->members[j][0], &record->slices[j],
                                     buffer->bases[j] + offset) == GGML_STATUS_SUCCESS;
}

// Makes the part of the tensor on device j, all of it for mirrored tensors.
static bool make_slice(struct meta_record *record, size_t j) {
    const struct ggml_tensor *tensor = record->tensor;
    const size_t n = device_with(tensor)->n;
    struct meta_layout layout = meta_layout_of(tensor);
    if (!tensor->view_src) {
        if (meta_is_axis(&record->state)) layout = meta_root_slice(&layout, &record->state, n, j);
        describe(&record->slices[j], tensor, &layout);
        return place_owner(record, j);
    }
    const struct meta_record *root = meta_record_get(tensor->view_src);
    const struct meta_layout from = meta_layout_of(tensor->view_src);
    layout = meta_view_slice(&from, &root->state, &layout, &record->state, n, j);
    describe(&record->slices[j], tensor, &layout);
    return place_view(record, j, layout.offset);
}

// Copies operation, parameters, flags and name to the slice.
static void dress(struct meta_record *record, size_t j) {
    const struct ggml_tensor *tensor = record->tensor;
    struct ggml_tensor *slice = &record->slices[j];
    slice->op = tensor->op;
    slice->flags = tensor->flags;
    memcpy(slice->op_params, tensor->op_params, sizeof(slice->op_params));
    memcpy(slice->name, tensor->name, sizeof(slice->name));
    memset(slice->src, 0, sizeof(slice->src));
}

// A view of the part of a mirrored operand k that device j uses.
static struct ggml_tensor *cut(struct meta_record *record, int k,
                               const struct meta_operand *operand, struct ggml_tensor *whole,
                               size_t n, size_t j) {
    if (!record->cuts[k]) record->cuts[k] = ggml_mem_calloc(n, sizeof(*record->cuts[k]));
    if (!record->cuts[k]) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "meta device: no memory for the operands of '%s'",
                  record->tensor->name);
        return NULL;
    }
    struct ggml_tensor *part = &record->cuts[k][j];
    int64_t start = 0;
    for (size_t i = 0; i < j; ++i)
        start += operand->cut.ne[i];
    if (operand->cut_axis == 0) start /= ggml_blck_size(whole->type);
    *part = *whole;
    part->op = GGML_OP_VIEW;
    part->buffer = NULL;
    part->data = NULL;
    memset(part->src, 0, sizeof(part->src));
    part->src[0] = whole;
    part->view_src = whole->view_src ? whole->view_src : whole;
    part->ne[operand->cut_axis] = operand->cut.ne[j];
    part->view_offs =
        (whole->view_src ? whole->view_offs : 0) + (size_t)start * whole->nb[operand->cut_axis];
    if (part->ne[operand->cut_axis] == 0) part->view_offs = whole->view_src ? whole->view_offs : 0;
    if (!part->view_src->buffer) return part;
    return ggml_backend_view_init(part) == GGML_STATUS_SUCCESS ? part : NULL;
}

// A node without work there: what it would read need not fit together.
static void disconnect(struct ggml_tensor *slice) {
    slice->flags &= ~GGML_TENSOR_FLAG_COMPUTE;
    slice->op = GGML_OP_NONE;
    memset(slice->src, 0, sizeof(slice->src));
}

// Sets the sources of device j's slice. The node is not computed where its result, or a source that
// is not empty as a whole, is empty on this device.
static bool connect(struct meta_record *record, const struct meta_operand *operands, size_t n,
                    size_t j) {
    struct ggml_tensor *slice = &record->slices[j];
    bool runs = !ggml_is_empty(slice);
    for (int k = 0; k < GGML_MAX_SRC; ++k) {
        struct ggml_tensor *src = record->tensor->src[k];
        if (!src) continue;
        struct meta_record *other = src == record->tensor ? record : meta_record_get(src);
        const bool is_leaf = other && src->op == GGML_OP_NONE;
        slice->src[k] = !other ? src : is_leaf ? &slices_of(other)[j] : &other->slices[j];
        if (!other) continue;
        if (operands[k].cut_axis >= 0) {
            slice->src[k] = cut(record, k, &operands[k], slice->src[k], n, j);
            if (!slice->src[k]) return false;
        }
        if (ggml_is_empty(slice->src[k]) && !ggml_is_empty(src)) runs = false;
    }
    if (!runs) disconnect(slice);
    return true;
}

// Asks each device about its own slice: support for whole extents says nothing about parts.
static bool is_supported(const struct meta_record *record) {
    const struct meta_device *device = device_with(record->tensor);
    for (size_t j = 0; j < device->n; ++j) {
        const struct ggml_tensor *slice = &record->slices[j];
        if (!(slice->flags & GGML_TENSOR_FLAG_COMPUTE)) continue;
        if (!ggml_backend_dev_supports_op(device->devices[j], slice)) return false;
    }
    return true;
}

static bool is_view(const struct ggml_tensor *tensor) {
    return ggml_op_is_empty(tensor->op);
}

// Makes all slices. Fallbacks get no sources here, since the plan gathers their operands.
static bool build(struct meta_record *record, struct meta_operand *operands) {
    const size_t n = device_with(record->tensor)->n;
    for (size_t j = 0; j < n; ++j) {
        if (!record->owner && !make_slice(record, j)) return false;
        dress(record, j);
        if (record->is_fallback || is_view(record->tensor)) continue;
        if (!connect(record, operands, n, j)) return false;
    }
    return true;
}

// Resolves a tensor whose operands are resolved: split if possible, and as a fallback if a device
// can't compute its slice.
static bool resolve_one(struct meta_record *record) {
    struct meta_operand operands[GGML_MAX_SRC];
    if (record->owner && record->tensor->op == GGML_OP_NONE) {
        record->is_resolved = true;
        return true;
    }
    read_operands(record, operands);
    if (!find_state(record, operands)) return false;
    record->is_resolved = true;
    if (record->state.axis == GGML_BACKEND_SPLIT_AXIS_UNKNOWN) return true;
    if (!build(record, operands)) return false;
    if (record->is_fallback || is_view(record->tensor) || is_supported(record)) return true;
    return meta_resolve_fallback(record);
}

// The tensor's own node is computed whole, and its result is split as the state says.
bool meta_resolve_fallback(struct meta_record *record) {
    record->is_fallback = true;
    return resolve_one(record);
}

// --- operands first ------------------------------------------------------------------------------

// Tensors that are being resolved.
struct stack {
    const struct ggml_tensor **items;
    size_t count;
    int32_t capacity;
};

// Pushes onto an explicit stack, as graphs may be too deep for the stack of a thread.
static bool push(struct stack *stack, const struct ggml_tensor *tensor) {
    if (!array_grow(&stack->items, &stack->capacity, (int64_t)stack->count + 1,
                    sizeof(stack->items[0]))) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "meta device: no memory to follow the operands of '%s'",
                  tensor->name);
        return false;
    }
    stack->items[stack->count++] = tensor;
    return true;
}

// Pushes a tensor that still has to be resolved; those in other memory need no record.
static bool push_if_open(struct stack *stack, const struct ggml_tensor *tensor,
                         const struct ggml_tensor *self) {
    if (!tensor || tensor == self || !meta_buffer_with(tensor)) return true;
    const struct meta_record *record = meta_record_get(tensor);
    if (!record) return false;
    return record->is_resolved || push(stack, tensor);
}

// Pushes what the top tensor depends on.
static bool push_needed(struct stack *stack) {
    const struct ggml_tensor *tensor = stack->items[stack->count - 1];
    if (!push_if_open(stack, tensor->view_src, tensor)) return false;
    for (int k = 0; k < GGML_MAX_SRC; ++k) {
        if (!push_if_open(stack, tensor->src[k], tensor)) return false;
    }
    return true;
}

// Depth first: a tensor stays on the stack until all that it needs is resolved. O(tensors + edges).
static bool resolve_stack(struct stack *stack) {
    while (stack->count > 0) {
        const size_t count = stack->count;
        struct meta_record *record = meta_record_get(stack->items[count - 1]);
        if (!record) return false;
        if (!record->is_resolved) {
            if (!push_needed(stack)) return false;
            if (stack->count > count) continue;
            record->is_fallback = false;
            if (!resolve_one(record)) {
                record->is_resolved = false;
                return false;
            }
        }
        --stack->count;
    }
    return true;
}

// Determines the states of the tensor and of all it depends on, without recursion. NULL after
// recording a failure.
struct meta_record *meta_resolve(const struct ggml_tensor *tensor) {
    struct meta_record *record = meta_record_get(tensor);
    struct stack stack = {0};
    if (!record || record->is_resolved) return record;
    const bool resolved = push(&stack, tensor) && resolve_stack(&stack);
    ggml_mem_free(stack.items);
    return resolved ? record : NULL;
}
