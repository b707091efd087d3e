// SPDX-License-Identifier: MIT
// Builds the plan of a graph. Partial sums are carried through linear operations as long as all
// their uses are known to be in this graph, so that they are added up as late, and as small, as
// possible.
#include "meta/plan.h"

#include "base/mem.h"

enum { WHOLE_ALIGNMENT = 4096 };

struct planner {
    struct meta_stream *stream;
    const struct ggml_graph *graph;
    const int32_t *counts; // 0 for each node: not known
    struct meta_plan *plan;
    struct meta_step *run; // that further nodes join, or NULL
};

// Memory for a part of the plan, which is freed with it. NULL after the error was set.
static void *take(struct planner *planner, size_t size) {
    void *memory = arena_alloc(&planner->plan->arena, size);
    if (!memory) ggml_fail(GGML_HOST_OUT_OF_MEMORY, "meta device: no memory for the plan");
    return memory;
}

// Appends a step. Any step ends the run before it: nodes after it may read what it makes.
static struct meta_step *add_step(struct planner *planner, enum meta_step_kind kind) {
    struct meta_plan *plan = planner->plan;
    struct meta_step *step = take(planner, sizeof(*step));
    if (!step) return NULL;
    step->kind = kind;
    if (kind != META_STEP_REDUCE) {
        step->graphs = take(planner, plan->n * sizeof(*step->graphs));
        if (!step->graphs) return NULL;
    }
    if (plan->last)
        plan->last->next = step;
    else
        plan->first = step;
    plan->last = step;
    planner->run = kind == META_STEP_RUN ? step : NULL;
    return step;
}

// --- all-reduce ----------------------------------------------------------------------------------

// Registers a view into memory of the plan, which is allocated at the end, when its size is known.
static bool add_late_view(struct planner *planner, struct ggml_tensor *tensor) {
    struct meta_late_view *view = take(planner, sizeof(*view));
    if (!view) return false;
    view->tensor = tensor;
    view->next = planner->plan->late_views;
    planner->plan->late_views = view;
    return true;
}

// Describes the node part += received.
static void describe_sum(struct ggml_tensor *sum, struct ggml_tensor *part,
                         struct ggml_tensor *received) {
    *sum = *part;
    sum->op = GGML_OP_ADD;
    sum->flags = GGML_TENSOR_FLAG_COMPUTE;
    sum->view_src = part;
    sum->src[0] = part;
    sum->src[1] = received;
}

// Prepares the tensors of an all-reduce. Parts are copies of the slices, whose COMPUTE flag says
// which of them count.
static bool fill_reduction(struct planner *planner, const struct meta_record *record,
                           struct meta_reduction *reduction) {
    const size_t n = planner->plan->n;
    struct ggml_tensor *tensors = take(planner, 3 * n * sizeof(*tensors));
    if (!tensors) return false;
    reduction->received = tensors + n;
    reduction->sums = tensors + 2 * n;
    for (size_t j = 0; j < n; ++j) {
        struct ggml_tensor *part = &tensors[j];
        const bool counts = !(record->zero_devices >> j & 1);
        *part = record->slices[j];
        part->op = GGML_OP_NONE;
        part->flags = counts ? GGML_TENSOR_FLAG_COMPUTE : 0;
        memset(part->src, 0, sizeof(part->src));
        reduction->parts[j] = part;
        reduction->received[j] = *part;
        reduction->received[j].buffer = NULL;
        reduction->received[j].data = NULL;
        describe_sum(&reduction->sums[j], part, &reduction->received[j]);
    }
    return true;
}

// Adds a step that sums a partial tensor. The received parts of all steps share one piece of
// memory, since steps run one after the other.
static bool reduce(struct planner *planner, const struct ggml_tensor *tensor) {
    struct meta_record *record = meta_record_get(meta_root(tensor));
    if (!record || !record->is_partial) return record != NULL;
    record->is_partial = false;
    if (planner->plan->n == 1) return true;
    struct meta_step *step = add_step(planner, META_STEP_REDUCE);
    if (!step || !fill_reduction(planner, record, &step->reduction)) return false;
    for (size_t j = 0; j < planner->plan->n; ++j) {
        const ggml_backend_buffer_t buffer = record->slices[j].buffer;
        if (!buffer) {
            ggml_fail(GGML_HOST_INVALID_ARGUMENT, "meta device: '%s' has no memory", tensor->name);
            return false;
        }
        const size_t bytes = ggml_backend_buft_get_alloc_size(buffer->buft, &record->slices[j]);
        planner->plan->received_bytes = MAX(planner->plan->received_bytes, bytes);
    }
    return true;
}

// --- fallback ------------------------------------------------------------------------------------

// Sums in static memory, such as weights of an accumulating optimiser.
static bool is_static_partial(const struct meta_record *record) {
    return record->state.axis == GGML_BACKEND_SPLIT_AXIS_PARTIAL &&
           record->tensor->op == GGML_OP_NONE;
}

// The whole copy of a root in this step, made on the first call. Copies lie one after the other.
static struct meta_whole *whole_of(struct planner *planner, struct meta_step *step,
                                   struct ggml_tensor *root) {
    const size_t n = planner->plan->n;
    size_t offset = 0;
    struct meta_whole *whole = step->wholes;
    for (; whole; whole = whole->next) {
        if (whole->root == root) return whole;
        offset = MAX(offset, whole->offset + GGML_PAD(ggml_nbytes(whole->root) + WHOLE_ALIGNMENT,
                                                      WHOLE_ALIGNMENT));
    }
    whole = take(planner, sizeof(*whole));
    if (!whole) return NULL;
    whole->root = root;
    whole->offset = offset;
    whole->copies = take(planner, n * sizeof(*whole->copies));
    if (!whole->copies) return NULL;
    for (size_t j = 0; j < n; ++j) {
        struct ggml_tensor *copy = &whole->copies[j];
        copy->type = root->type;
        memcpy(copy->ne, root->ne, sizeof(copy->ne));
        memcpy(copy->nb, root->nb, sizeof(copy->nb));
        memcpy(copy->name, root->name, sizeof(copy->name));
    }
    whole->next = step->wholes;
    step->wholes = whole;
    const size_t bytes = GGML_PAD(ggml_nbytes(root) + WHOLE_ALIGNMENT, WHOLE_ALIGNMENT);
    planner->plan->whole_bytes = MAX(planner->plan->whole_bytes, offset + bytes);
    return whole;
}

// The tensor inside of a whole copy, on one device.
static struct ggml_tensor *in_whole(struct planner *planner, const struct ggml_tensor *tensor,
                                    struct ggml_tensor *copy) {
    struct ggml_tensor *view;
    if (!tensor->view_src) return copy;
    view = take(planner, sizeof(*view));
    if (!view || !add_late_view(planner, view)) return NULL;
    *view = *tensor;
    view->buffer = NULL;
    view->data = NULL;
    view->extra = NULL;
    view->view_src = copy;
    memset(view->src, 0, sizeof(view->src));
    return view;
}

// Whether a device has only a part of the tensor, or of its sum.
static bool needs_whole(const struct ggml_tensor *tensor) {
    const struct meta_record *root = meta_record_get(meta_root(tensor));
    return root && (meta_is_axis(&root->state) || is_static_partial(root));
}

// The tensor to use for `tensor` on device j: itself, its slice, or a place in a whole copy.
static struct ggml_tensor *stand_in(struct planner *planner, struct meta_step *step,
                                    struct ggml_tensor *tensor, size_t j) {
    if (!meta_buffer_with(tensor)) return tensor;
    if (!needs_whole(tensor)) return &meta_record_get(tensor)->slices[j];
    struct ggml_tensor *root = tensor->view_src ? tensor->view_src : tensor;
    struct meta_whole *whole = whole_of(planner, step, root);
    return whole ? in_whole(planner, tensor, &whole->copies[j]) : NULL;
}

// The node on device j with whole operands: every device computes the same.
static struct ggml_tensor *fallback_node(struct planner *planner, struct meta_step *step,
                                         struct ggml_tensor *node, size_t j) {
    struct ggml_tensor *result = stand_in(planner, step, node, j);
    if (!result) return NULL;
    for (int k = 0; k < GGML_MAX_SRC; ++k) {
        if (!node->src[k]) continue;
        result->src[k] = node->src[k] == node ? result : stand_in(planner, step, node->src[k], j);
        if (!result->src[k]) return NULL;
    }
    return result;
}

// Whether the node writes into that memory: its own, and AdamW's into that of its moments.
static bool writes_to(const struct ggml_tensor *node, const struct ggml_tensor *root) {
    if (root == meta_root(node)) return true;
    return node->op == GGML_OP_OPT_STEP_ADAMW &&
           (root == meta_root(node->src[2]) || root == meta_root(node->src[3]));
}

// Marks the copies that the node writes, which are scattered back to the slices.
static void mark_written(struct meta_step *step, const struct ggml_tensor *node) {
    for (struct meta_whole *whole = step->wholes; whole; whole = whole->next) {
        if (writes_to(node, whole->root)) whole->is_written = true;
    }
}

// Adds a fallback: gathers what is split, computes the node on every device, and scatters the
// result. Correct for any operation, and slow.
static bool add_fallback(struct planner *planner, struct ggml_tensor *node) {
    const size_t n = planner->plan->n;
    struct meta_step *step = add_step(planner, META_STEP_FALLBACK);
    struct ggml_tensor **nodes = take(planner, n * sizeof(*nodes));
    if (!step || !nodes) return false;
    for (size_t j = 0; j < n; ++j) {
        nodes[j] = fallback_node(planner, step, node, j);
        if (!nodes[j]) return false;
        step->graphs[j] = (struct ggml_graph){.size = sizeof(step->graphs[j]),
                                              .n_nodes = 1,
                                              .nodes = &nodes[j],
                                              .use_counts = planner->counts};
    }
    mark_written(step, node);
    GGML_LOG_DEBUG("meta device: '%s' (op %s) is computed from gathered operands\n", node->name,
                   ggml_op_name(node->op));
    return true;
}

// --- nodes ---------------------------------------------------------------------------------------

// Adds the node to the current run. Nodes without communication between them form one graph per
// device, which its plugin can plan and fuse as a whole.
static bool add_to_run(struct planner *planner, const struct meta_record *record) {
    struct meta_plan *plan = planner->plan;
    if (!planner->run) {
        struct meta_step *step = add_step(planner, META_STEP_RUN);
        if (!step) return false;
        for (size_t j = 0; j < plan->n; ++j) {
            step->graphs[j].size = sizeof(step->graphs[j]);
            step->graphs[j].nodes = plan->nodes[j] + plan->n_nodes;
            step->graphs[j].use_counts = planner->counts;
            step->graphs[j].uid = ggml_graph_next_uid();
        }
    }
    for (size_t j = 0; j < plan->n; ++j) {
        plan->nodes[j][plan->n_nodes] = &record->slices[j];
        ++planner->run->graphs[j].n_nodes;
    }
    ++plan->n_nodes;
    return true;
}

// Whether only nodes of this graph can see the node's value.
static bool is_inner(const struct planner *planner, int i, const struct meta_record *record) {
    const struct ggml_tensor *node = planner->graph->nodes[i];
    return !(node->flags & GGML_TENSOR_FLAG_OUTPUT) && record->n_uses > 0 &&
           record->n_uses == planner->graph->use_counts[i];
}

// Bit mask of the operands that are partial sums; *out_zero has the devices on which they are not
// written.
static unsigned partial_operands(const struct ggml_tensor *node, uint32_t *out_zero,
                                 bool *out_mixed) {
    unsigned partial = 0;
    *out_zero = 0;
    *out_mixed = false;
    for (int k = 0; k < GGML_MAX_SRC; ++k) {
        if (!node->src[k] || !meta_buffer_with(node->src[k])) continue;
        const struct meta_record *root = meta_record_get(meta_root(node->src[k]));
        if (!root || (!root->is_partial && !is_static_partial(root))) continue;
        const uint32_t zero = root->is_partial ? root->zero_devices : 0;
        *out_mixed = *out_mixed || (partial && zero != *out_zero);
        *out_zero = zero;
        partial |= 1u << k;
    }
    return partial;
}

// Whether the node may work on parts that are summed later: f(a) + f(b) = f(a + b). The devices
// with an unwritten part must be the same for all partial operands, since the node is not computed
// there. A result in static memory that holds a sum must stay one, and not be added up there.
static bool is_carried(const struct meta_record *record, unsigned partial, bool mixed) {
    const struct meta_record *root = meta_record_get(meta_root(record->tensor));
    return partial && !mixed && root && !is_static_partial(root) && !record->is_fallback &&
           meta_is_linear(record->tensor, partial) &&
           record->state.axis == GGML_BACKEND_SPLIT_AXIS_MIRRORED;
}

// Sums the operands first. Sums in static memory can't be added up in place; a node that reads them
// falls back.
static bool reduce_operands(struct planner *planner, struct meta_record *record) {
    const struct ggml_tensor *node = record->tensor;
    for (int k = 0; k < GGML_MAX_SRC; ++k) {
        if (!node->src[k] || !meta_buffer_with(node->src[k])) continue;
        if (!reduce(planner, node->src[k])) return false;
    }
    return !record->reads_partial || record->is_fallback || meta_resolve_fallback(record);
}

// Devices that don't compute the node. Their part is unwritten and must not be read.
static uint32_t idle_devices(const struct meta_record *record, size_t n) {
    uint32_t idle = 0;
    for (size_t j = 0; j < n; ++j) {
        if (!(record->slices[j].flags & GGML_TENSOR_FLAG_COMPUTE)) idle |= UINT32_C(1) << j;
    }
    return idle;
}

// Devices with a bit in `idle` have an empty slice and skip the node.
static void set_idle(struct meta_record *record, uint32_t idle, size_t n) {
    for (size_t j = 0; j < n; ++j) {
        if (idle >> j & 1) record->slices[j].flags &= ~GGML_TENSOR_FLAG_COMPUTE;
    }
}

// Chooses between carrying sums, summing the operands first, and the fallback; sums the result if
// anything outside of this graph may see it.
static bool plan_computed(struct planner *planner, int i, struct meta_record *record) {
    uint32_t zero;
    bool mixed;
    struct ggml_tensor *node = planner->graph->nodes[i];
    const unsigned partial = partial_operands(node, &zero, &mixed);
    const bool carried = is_carried(record, partial, mixed);
    if (carried)
        set_idle(record, zero, planner->plan->n);
    else if (partial && !reduce_operands(planner, record))
        return false;
    if (record->is_fallback ? !add_fallback(planner, node) : !add_to_run(planner, record)) {
        return false;
    }
    struct meta_record *root = meta_record_get(meta_root(node));
    if (!root) return false;
    root->is_partial =
        carried || (!record->is_fallback && record->state.axis == GGML_BACKEND_SPLIT_AXIS_PARTIAL);
    root->zero_devices = idle_devices(record, planner->plan->n);
    return is_inner(planner, i, record) || reduce(planner, node);
}

// Plans one node. Nodes without work are resolved too, since others read them.
static bool plan_node(struct planner *planner, int i) {
    struct ggml_tensor *node = planner->graph->nodes[i];
    const bool computes = !ggml_op_is_empty(node->op) && !ggml_is_empty(node) &&
                          (node->flags & GGML_TENSOR_FLAG_COMPUTE);
    if (!meta_buffer_with(node)) {
        if (!computes) return true;
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "meta device: node '%s' is in other memory",
                  node->name);
        return false;
    }
    struct meta_record *record = meta_resolve(node);
    if (!record) return false;
    if (computes) return plan_computed(planner, i, record);
    return is_inner(planner, i, record) || reduce(planner, node);
}

// --- the whole -----------------------------------------------------------------------------------

// Keeps a record that would go while the plan has its slices.
static bool keep(struct planner *planner, struct meta_record *record) {
    struct meta_plan_record *kept;
    if (!meta_buffer_with(record->tensor)->is_static) return true;
    kept = take(planner, sizeof(*kept));
    if (!kept) return false;
    meta_record_ref(record);
    kept->record = record;
    kept->next = planner->plan->records;
    planner->plan->records = kept;
    return true;
}

// Whether deriving it again would give the same: a view of static memory, whose split stays. Its
// slices may be in use by the plan of another stream, which must not see them change.
static bool is_settled(const struct ggml_tensor *tensor) {
    if (!tensor->view_src || !ggml_op_is_empty(tensor->op)) return false;
    const struct meta_record *root = meta_record_get(tensor->view_src);
    return root && root->owner;
}

// Resets a record for this plan. States of the graph's nodes are derived again; those of other
// operands stay.
static bool forget(struct planner *planner, const struct ggml_tensor *tensor, bool derived) {
    if (!meta_buffer_with(tensor)) return true;
    struct meta_record *record = meta_record_get(tensor);
    if (!record || !keep(planner, record)) return false;
    record->is_partial = false;
    record->n_uses = 0;
    if (derived && !is_settled(tensor)) record->is_resolved = false;
    return true;
}

// Resets the records of all tensors in the graph and counts their uses, for which they exist then.
static bool prepare(struct planner *planner) {
    const struct ggml_graph *graph = planner->graph;
    for (int i = 0; i < graph->n_nodes; ++i) {
        const struct ggml_tensor *node = graph->nodes[i];
        if (!forget(planner, node, true) || !forget(planner, meta_root(node), false)) return false;
        for (int k = 0; k < GGML_MAX_SRC; ++k) {
            if (!node->src[k]) continue;
            if (!forget(planner, node->src[k], false) ||
                !forget(planner, meta_root(node->src[k]), false)) {
                return false;
            }
        }
    }
    for (int i = 0; i < graph->n_nodes; ++i) {
        for (int k = 0; k < GGML_MAX_SRC; ++k) {
            const struct ggml_tensor *src = graph->nodes[i]->src[k];
            if (src && meta_buffer_with(src)) ++meta_record_get(src)->n_uses;
        }
    }
    return true;
}

// Gives a tensor its address in the plan's memory, whose base may be aligned less than needed.
static bool place_tensor(struct meta_plan *plan, size_t j, struct ggml_tensor *tensor,
                         size_t offset) {
    const uintptr_t base = (uintptr_t)ggml_backend_buffer_get_base(plan->memory[j]);
    const uintptr_t address = GGML_PAD(base, WHOLE_ALIGNMENT) + offset;
    return ggml_backend_tensor_alloc(plan->memory[j], tensor, (void *)address) ==
           GGML_STATUS_SUCCESS;
}

// Assigns a step's tensors their places in the plan's memory of device j. false on
// failure.
static bool place_step(struct meta_plan *plan, const struct meta_step *step, size_t j,
                       size_t wholes) {
    if (step->kind == META_STEP_REDUCE) {
        return place_tensor(plan, j, &step->reduction.received[j], 0);
    }
    for (const struct meta_whole *whole = step->wholes; whole; whole = whole->next) {
        if (!place_tensor(plan, j, &whole->copies[j], wholes + whole->offset)) return false;
    }
    return true;
}

// Allocates the plan's memory and assigns addresses: received parts first, whole copies behind
// them.
static bool place_all(struct planner *planner) {
    struct meta_plan *plan = planner->plan;
    const size_t wholes = GGML_PAD(plan->received_bytes, WHOLE_ALIGNMENT);
    const size_t size = wholes + plan->whole_bytes;
    for (size_t j = 0; j < plan->n && size > 0; ++j) {
        plan->memory[j] =
            ggml_backend_alloc_buffer(planner->stream->streams[j], size + 2 * WHOLE_ALIGNMENT);
        if (!plan->memory[j]) return false;
        for (const struct meta_step *step = plan->first; step; step = step->next) {
            if (!place_step(plan, step, j, wholes)) return false;
        }
    }
    for (const struct meta_late_view *view = plan->late_views; view; view = view->next) {
        if (ggml_backend_view_init(view->tensor) != GGML_STATUS_SUCCESS) return false;
    }
    return true;
}

// Makes the plan in O(nodes x devices), but for its memory, whose size is known then. [under the
// lock]
static bool make(struct planner *planner) {
    struct meta_plan *plan = planner->plan;
    for (size_t j = 0; j < plan->n && planner->graph->n_nodes > 0; ++j) {
        plan->nodes[j] = take(planner, (size_t)planner->graph->n_nodes * sizeof(*plan->nodes[j]));
        if (!plan->nodes[j]) return false;
    }
    planner->counts = take(planner, MAX((size_t)planner->graph->n_nodes, 1) * sizeof(int32_t));
    if (!planner->counts || !prepare(planner)) return false;
    for (int i = 0; i < planner->graph->n_nodes; ++i) {
        if (!plan_node(planner, i)) return false;
    }
    return true;
}

// Plans the steps of a graph: runs of nodes between reductions and fallbacks. The plan is valid
// while uid and generation stay the same.
enum ggml_status meta_plan_new(struct meta_stream *stream, const struct ggml_graph *graph,
                               struct meta_plan **out_plan) {
    struct meta_plan *plan = ggml_mem_calloc(1, sizeof(*plan));
    struct planner planner = {.stream = stream, .graph = graph, .plan = plan};
    *out_plan = NULL;
    if (!plan) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "meta device: no memory for the plan");
        return GGML_STATUS_ALLOC_FAILED;
    }
    plan->n = stream->device->n;
    plan->uid = graph->uid;
    meta_lock();
    const bool made = make(&planner);
    meta_unlock();
    if (!made || !place_all(&planner)) { // devices may take long to allocate
        meta_plan_free(plan);
        return ggml_last_status() == GGML_HOST_OUT_OF_MEMORY ? GGML_STATUS_ALLOC_FAILED
                                                             : GGML_STATUS_FAILED;
    }
    plan->generation = meta_generation();
    *out_plan = plan;
    return GGML_STATUS_SUCCESS;
}

// Whether the plan can be used again: same graph number, and no buffer has come or gone since.
// Graphs without a number are planned each time.
bool meta_plan_is_for(const struct meta_plan *plan, const struct ggml_graph *graph) {
    return plan && plan->uid != 0 && plan->uid == graph->uid &&
           plan->generation == meta_generation();
}

void meta_plan_free(struct meta_plan *plan) {
    if (!plan) return;
    meta_lock();
    for (struct meta_plan_record *kept = plan->records; kept; kept = kept->next)
        meta_record_unref(kept->record);
    meta_unlock();
    for (size_t j = 0; j < plan->n; ++j)
        ggml_backend_buffer_free(plan->memory[j]);
    arena_free(&plan->arena);
    ggml_mem_free(plan);
}
