// SPDX-License-Identifier: MIT
// Steps are in the order of the plan. The dispatches of an encoder run at the same time, but for
// those that a barrier separates: one comes where a step touches bytes that an earlier one since
// the last barrier writes, or writes bytes that one reads. Command buffers of a queue are ordered
// by Metal, which is told of the buffers that each uses.
#include "queue/recording.h"

#include "memory/buffer.h"
#include "queue/plan.h"

void metal_recording_free(struct metal_recording *r) {
    if (!r) return;
    gpu_graph_key_free(&r->key);
    if (metal_in_owner()) mtl_release(r->scratch);
    ggml_aligned_free(r->steps, (size_t)r->room * sizeof(*r->steps));
    ggml_aligned_free(r->used, (size_t)r->room_used * sizeof(*r->used));
    ggml_aligned_free(r, sizeof(*r));
}

// Kernels get addresses, so Metal has to be told which buffers they lie in. Linear: graphs use a
// few.
static bool use(struct metal_recording *r, mtl_id buffer) {
    for (int i = 0; i < r->n_used; ++i) {
        if (r->used[i] == buffer) return true;
    }
    if (r->n_used == r->room_used) {
        const int room = 2 * r->room_used + 16;
        mtl_id *more = ggml_aligned_malloc((size_t)room * sizeof(*more));
        if (!more) return false;
        if (r->used) memcpy(more, r->used, (size_t)r->n_used * sizeof(*more));
        ggml_aligned_free(r->used, (size_t)r->room_used * sizeof(*r->used));
        r->used = more;
        r->room_used = room;
    }
    r->used[r->n_used++] = buffer;
    return true;
}

static bool use_windows(struct metal_recording *r, const struct ggml_tensor *tensor) {
    int i = 0;
    for (mtl_id window; (window = metal_next_window(tensor, &i));) {
        if (!use(r, window)) return false;
    }
    return true;
}

// Where the tensors of a launch lie, and what it touches of them.
static enum ggml_host_status find_places(struct metal_recording *r,
                                         const struct metal_context *context,
                                         const struct simt_step *launch, struct metal_place *places,
                                         struct gpu_tracker_touch *touches) {
    for (int k = 0; k < launch->n_tensors; ++k) {
        const struct ggml_tensor *t = launch->tensors[k];
        if (!metal_place_of(t, &places[k]) || places[k].context != context)
            return ggml_sdk_fail(
                GGML_HOST_INVALID_ARGUMENT,
                "metal: '%.*s', which '%.*s' uses, does not lie in memory of this device",
                GGML_MAX_NAME, t->name, GGML_MAX_NAME, launch->tensors[0]->name);
        if (!use_windows(r, t)) return GGML_HOST_OUT_OF_MEMORY;
        const uint64_t begin = (uintptr_t)t->data;
        touches[k] = (struct gpu_tracker_touch){0, begin, begin + ggml_nbytes(t),
                                                (launch->writes >> k & 1) != 0};
    }
    return GGML_HOST_OK;
}

// The place of the operand that begins at that address: that of the largest tensor of the launch
// which begins there. All such lie in the same buffer, as those of a device all count from
// addresses of one kind, but the window of a smaller one need not show all of a larger one.
static const struct metal_place *place_of(const struct simt_step *launch,
                                          const struct metal_place *places, gpu_word address) {
    const struct metal_place *place = NULL;
    size_t most = 0;
    for (int t = 0; t < launch->n_tensors; ++t) {
        const size_t bytes = ggml_nbytes(launch->tensors[t]);
        if ((gpu_word)(uintptr_t)launch->tensors[t]->data != address || (place && bytes <= most))
            continue;
        place = &places[t];
        most = bytes;
    }
    GGML_ASSERT(place);
    return place;
}

// Replaces tensors' addresses by the device's.
static void set_addresses(struct gpu_args *args, const struct simt_step *launch,
                          const struct metal_place *places) {
    for (int k = 0; k < GPU_MAX_OPERANDS; ++k) {
        const gpu_word address = args->operands[k].data;
        if (address != 0) args->operands[k].data = place_of(launch, places, address)->address;
    }
}

// Scratch memory is the last operand of those that use it, all of it. Returns how many touches
// there are.
static int use_scratch(const struct metal_recording *r, const struct metal_launch *l,
                       struct gpu_args *args, struct gpu_tracker_touch *touches) {
    const int n = l->step.n_tensors;
    if (l->step.work.scratch == 0) return n;
    args->operands[GPU_MAX_OPERANDS - 1].data = mtl_gpu_address(r->scratch);
    touches[n] = (struct gpu_tracker_touch){1, 0, l->step.work.scratch,
                                            l->variant.kernel != METAL_KERNEL_attention_merge};
    return n + 1;
}

// Whether the step waits. A barrier orders all that came before, and so does the end of a command
// buffer: the tracker begins anew.
static bool order(struct gpu_tracker *tracker, const struct metal_recording *r,
                  const struct gpu_tracker_touch *touches, int n) {
    const bool first = r->n % METAL_STEPS_PER_COMMIT == 0;
    const bool waits = !first && gpu_tracker_conflicts(tracker, touches, n);
    if (first || waits) gpu_tracker_clear(tracker);
    gpu_tracker_add(tracker, touches, n);
    return waits;
}

static enum ggml_host_status add_step(struct metal_recording *r, struct metal_context *context,
                                      const struct metal_launch *l, struct gpu_tracker *tracker) {
    const struct simt_step *launch = &l->step;
    struct metal_place places[GPU_MAX_TOUCHES];
    struct gpu_tracker_touch touches[GPU_MAX_TOUCHES + 1];
    struct metal_step *step = &r->steps[r->n];
    enum ggml_host_status status = find_places(r, context, launch, places, touches);
    if (status == GGML_HOST_OK)
        status = metal_context_pipeline(context, &l->variant, &step->pipeline);
    if (status != GGML_HOST_OK) return status;
    if (launch->work.threads > mtl_max_threads(step->pipeline))
        return ggml_sdk_fail(GGML_HOST_UNSUPPORTED, "metal: %s can't have %u threads",
                             metal_kernel_name(l->variant.kernel), launch->work.threads);
    memcpy(step->grid, launch->work.grid, sizeof(step->grid));
    step->threads = launch->work.threads;
    step->args = launch->work.args;
    set_addresses(&step->args, launch, places);
    step->waits = order(tracker, r, touches, use_scratch(r, l, &step->args, touches));
    r->n++;
    return GGML_HOST_OK;
}

// Launches without work, as of an empty result, are left out.
static enum ggml_host_status add_steps(struct metal_recording *r, struct metal_context *context,
                                       const struct gpu_plan *plan, struct gpu_tracker *tracker) {
    enum ggml_host_status status = GGML_HOST_OK;
    for (int i = 0; i < plan->n_launches && status == GGML_HOST_OK; ++i) {
        if (metal_plan_at(plan, i)->step.work.grid[0] > 0)
            status = add_step(r, context, metal_plan_at(plan, i), tracker);
    }
    return status;
}

enum ggml_host_status metal_recording_new(struct metal_context *context,
                                          const struct gpu_plan *plan,
                                          const struct gpu_graph_key *key, mtl_id scratch,
                                          struct gpu_tracker *tracker,
                                          struct metal_recording **out_recording) {
    struct metal_recording *r = ggml_aligned_malloc(sizeof(*r));
    if (!r) return GGML_HOST_OUT_OF_MEMORY;
    memset(r, 0, sizeof(*r));
    r->room = plan->n_launches > 0 ? plan->n_launches : 1;
    r->scratch = mtl_retain(scratch);
    r->steps = ggml_aligned_malloc((size_t)r->room * sizeof(*r->steps));
    const bool has_memory =
        r->steps && (!key || gpu_graph_key_copy(&r->key, key)) && (!scratch || use(r, scratch));
    const enum ggml_host_status status =
        has_memory ? add_steps(r, context, plan, tracker) : GGML_HOST_OUT_OF_MEMORY;
    if (status == GGML_HOST_OK)
        *out_recording = r;
    else
        metal_recording_free(r);
    return status;
}

enum ggml_host_status metal_recording_encode(const struct metal_recording *r, int first, int end,
                                             mtl_id commands) {
    const mtl_id encoder = mtl_compute_encoder(commands, MTL_DISPATCH_CONCURRENT);
    if (!encoder) return GGML_HOST_OUT_OF_MEMORY;
    for (int i = 0; i < r->n_used; ++i)
        mtl_use_resource(encoder, r->used[i], MTL_USAGE_READ | MTL_USAGE_WRITE);
    for (int i = first; i < end; ++i) {
        const struct metal_step *s = &r->steps[i];
        if (s->waits) mtl_memory_barrier(encoder, MTL_SCOPE_BUFFERS);
        mtl_set_pipeline(encoder, s->pipeline);
        mtl_set_bytes(encoder, &s->args, sizeof(s->args), 0);
        mtl_dispatch(encoder, (struct mtl_size){s->grid[0], s->grid[1], s->grid[2]},
                     (struct mtl_size){s->threads, 1, 1});
    }
    mtl_end_encoding(encoder);
    return GGML_HOST_OK;
}
