// SPDX-License-Identifier: MIT
// Binds each operand as an aligned range of its buffer, puts the parameters of all dispatches into
// one buffer and records them with a barrier where one depends on those before it.
#include "queue/recording.h"

#include "memory/buffer_type.h"
#include "memory/grids.h"
#include "pipeline/pipeline.h"
#include "queue/timeline.h"

// Where an operand lies, as it is bound.
struct binding {
    const struct gvk_buffer *buffer;
    uint64_t offset, size; // aligned as the device wants it
    uint32_t inside;       // address of the first byte in the binding
    uint64_t bytes;        // that are touched from there
};

struct maker {
    const struct gvk_recipe *recipe;
    struct gvk_recording *recording;
    const struct gvk_buffer *grids; // NULL: the plan has no use for them
    VkPipeline *pipelines;
    VkDescriptorSet *sets;
    VkDescriptorSetLayout *layouts;
    uint32_t stride;  // between the parameters of two dispatches
    VkPipeline bound; // last
};

// The aligned range that holds an operand, and the operand's offset inside it. No buffer in the
// result where the operand is not in memory of this device, or the range is larger than a
// binding may be.
static struct binding place(const struct maker *maker, const struct gvk_operand *operand) {
    const uint64_t alignment = maker->recipe->context->features->min_storage_alignment;
    struct binding binding = {0};
    uint64_t offset = operand->scratch_offset;
    binding.bytes = operand->scratch_bytes;
    binding.buffer = maker->recipe->scratch;
    if (operand->grids) {
        binding.buffer = maker->grids;
        binding.bytes = gvk_grids_bytes();
    }
    if (operand->tensor) {
        const struct gvk_place at = gvk_place_of(operand->tensor);
        if (!at.buffer || at.buffer->context != maker->recipe->context) return (struct binding){0};
        binding.buffer = at.buffer;
        binding.bytes = ggml_nbytes(operand->tensor);
        offset = at.offset;
    }
    if (!binding.buffer || offset > binding.buffer->size) return (struct binding){0};
    binding.inside = (uint32_t)(offset % alignment);
    binding.offset = offset - binding.inside;
    // Whole vectors, as far as the buffer goes.
    const uint64_t size = (binding.inside + binding.bytes + 15) & ~UINT64_C(15);
    binding.size = MIN(size, binding.buffer->size - binding.offset);
    binding.size = MIN(binding.size, maker->recipe->context->features->max_range_bytes);
    if (binding.size < binding.inside + binding.bytes) return (struct binding){0};
    return binding;
}

// The error for an operand that no binding can hold.
static enum ggml_status fail_place(const struct gvk_operand *operand) {
    if (!operand->tensor) {
        return gpu_fail_graph(GGML_HOST_UNSUPPORTED,
                              "vulkan: a node needs %zu bytes of scratch memory, more than the "
                              "driver shows to a shader at once",
                              operand->scratch_bytes);
    }
    return gpu_fail_graph(
        GGML_HOST_UNSUPPORTED,
        "vulkan: '%.*s' does not lie in memory of this device: copy it there first", GGML_MAX_NAME,
        operand->tensor->name);
}

// --- parameters and descriptors ------------------------------------------------------------------

// Extents and strides in 32 bits, as the shaders count: gvk_kernel_find() has declined what is
// larger.
static void fill_parameters(struct gvk_parameters *to, const struct gvk_dispatch *d,
                            const struct binding *bindings) {
    memset(to, 0, sizeof(*to));
    for (int i = 0; i < d->n_operands; ++i) {
        const struct ggml_tensor *t = d->operands[i].tensor;
        to->tensors[i].at[0] = bindings[i].inside;
        for (int k = 0; t && k < GGML_MAX_DIMS; ++k) {
            to->tensors[i].ne[k] = (uint32_t)t->ne[k];
            to->tensors[i].nb[k] = (uint32_t)t->nb[k];
        }
        if (t) to->tensors[i].at[1] = (uint32_t)t->type;
    }
    memcpy(to->op_params, d->op_params, sizeof(to->op_params));
    memcpy(to->numbers, d->numbers, sizeof(to->numbers));
}

// Binding 0 is the block of parameters, of which each dispatch has its own at a dynamic offset;
// operand i is binding i + 1.
static void write_set(const struct maker *maker, VkDescriptorSet set,
                      const struct binding *bindings, int n) {
    struct gvk_context *context = maker->recipe->context;
    VkWriteDescriptorSet writes[GVK_MAX_OPERANDS + 1];
    VkDescriptorBufferInfo infos[GVK_MAX_OPERANDS + 1];
    for (int i = 0; i <= n; ++i) {
        if (i == 0)
            infos[i] = (VkDescriptorBufferInfo){maker->recording->parameters->handle, 0,
                                                sizeof(struct gvk_parameters)};
        else
            infos[i] = (VkDescriptorBufferInfo){bindings[i - 1].buffer->handle,
                                                bindings[i - 1].offset, bindings[i - 1].size};
        writes[i] = (VkWriteDescriptorSet){.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                           .dstSet = set,
                                           .dstBinding = (uint32_t)i,
                                           .descriptorCount = 1,
                                           .descriptorType =
                                               i == 0 ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC
                                                      : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                           .pBufferInfo = &infos[i]};
    }
    context->api.vkUpdateDescriptorSets(context->device, (uint32_t)n + 1, writes, 0, NULL);
}

// A pool of exactly this size per recording, freed as a whole with it.
static bool allocate_sets(struct maker *maker) {
    const struct gvk_plan *plan = maker->recipe->plan;
    struct gvk_context *context = maker->recipe->context;
    const uint32_t n = (uint32_t)gvk_plan_count(plan);
    VkDescriptorPoolSize sizes[2] = {{VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC, n},
                                     {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 0}};
    for (uint32_t i = 0; i < n; ++i) {
        maker->layouts[i] = context->set_layouts[gvk_plan_at(plan, i)->n_operands];
        sizes[1].descriptorCount += (uint32_t)gvk_plan_at(plan, i)->n_operands;
    }
    const VkDescriptorPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                             .maxSets = n,
                                             .poolSizeCount = 2,
                                             .pPoolSizes = sizes};
    VkDescriptorPool *pool = &maker->recording->pool;
    VkResult result = context->api.vkCreateDescriptorPool(context->device, &info, NULL, pool);
    if (result != VK_SUCCESS) *pool = VK_NULL_HANDLE;
    if (!gvk_context_check(context, result, "vkCreateDescriptorPool")) return false;
    const VkDescriptorSetAllocateInfo sets = {.sType =
                                                  VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                              .descriptorPool = *pool,
                                              .descriptorSetCount = n,
                                              .pSetLayouts = maker->layouts};
    result = context->api.vkAllocateDescriptorSets(context->device, &sets, maker->sets);
    return gvk_context_check(context, result, "vkAllocateDescriptorSets");
}

// --- commands ------------------------------------------------------------------------------------

// Allocates and begins the command buffer. SIMULTANEOUS_USE: a graph may be submitted again
// while its last run is under way.
static bool begin(struct maker *maker) {
    struct gvk_context *context = maker->recipe->context;
    const VkCommandBufferAllocateInfo info = {.sType =
                                                  VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                              .commandPool = maker->recipe->command_pool,
                                              .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                              .commandBufferCount = 1};
    VkCommandBuffer *commands = &maker->recording->commands;
    VkResult result = context->api.vkAllocateCommandBuffers(context->device, &info, commands);
    if (result != VK_SUCCESS) *commands = VK_NULL_HANDLE;
    if (!gvk_context_check(context, result, "vkAllocateCommandBuffers")) return false;
    // The next submission may come before the last one is done.
    const VkCommandBufferBeginInfo start = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                            .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT};
    result = context->api.vkBeginCommandBuffer(*commands, &start);
    if (!gvk_context_check(context, result, "vkBeginCommandBuffer")) return false;
    gvk_barrier_full(context, *commands);
    gpu_tracker_clear(maker->recipe->tracker);
    if (maker->recording->times) gvk_times_begin(context, maker->recording->times, *commands);
    return true;
}

// A full memory barrier, not one per buffer: most drivers flush the same caches for either, and one
// costs the less to record.
static void order(struct maker *maker, const struct gvk_dispatch *d,
                  const struct binding *bindings) {
    struct gpu_tracker *tracker = maker->recipe->tracker;
    struct gpu_tracker_touch touches[GVK_MAX_OPERANDS];
    for (int i = 0; i < d->n_operands; ++i) {
        // All that is bound, since shaders read whole vectors and words.
        touches[i] = (struct gpu_tracker_touch){bindings[i].buffer->id, bindings[i].offset,
                                                bindings[i].offset + bindings[i].size,
                                                (d->writes >> i & 1) != 0};
    }
    if (gpu_tracker_conflicts(tracker, touches, d->n_operands)) {
        gvk_barrier_full(maker->recipe->context, maker->recording->commands);
        gpu_tracker_clear(tracker);
        maker->recording->n_barriers++;
    }
    gpu_tracker_add(tracker, touches, d->n_operands);
}

// Records dispatch i: parameters, descriptor set, barrier where it depends on earlier ones,
// pipeline if it changes, and the launch. A dispatch without groups (an empty result) is left
// out.
static enum ggml_status add_dispatch(struct maker *maker, uint32_t i) {
    struct gvk_context *context = maker->recipe->context;
    const struct gvk_dispatch *d = gvk_plan_at(maker->recipe->plan, i);
    const VkCommandBuffer commands = maker->recording->commands;
    const uint32_t offset = i * maker->stride;
    struct binding bindings[GVK_MAX_OPERANDS];
    for (int k = 0; k < d->n_operands; ++k) {
        bindings[k] = place(maker, &d->operands[k]);
        if (!bindings[k].buffer) return fail_place(&d->operands[k]);
    }
    if (d->groups[0] == 0 || d->groups[1] == 0 || d->groups[2] == 0) return GGML_STATUS_SUCCESS;
    fill_parameters((struct gvk_parameters *)(maker->recording->parameters->mapped + offset), d,
                    bindings);
    write_set(maker, maker->sets[i], bindings, d->n_operands);
    order(maker, d, bindings);
    if (maker->bound != maker->pipelines[i])
        context->api.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                                       maker->pipelines[i]);
    maker->bound = maker->pipelines[i];
    context->api.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                                         context->layouts[d->n_operands], 0, 1, &maker->sets[i], 1,
                                         &offset);
    context->api.vkCmdDispatch(commands, d->groups[0], d->groups[1], d->groups[2]);
    return GGML_STATUS_SUCCESS;
}

// After the last dispatch of a span.
static void mark_time(struct maker *maker, uint32_t i) {
    const struct gpu_plan *plan = &maker->recipe->plan->base;
    struct gvk_recording *recording = maker->recording;
    const bool is_last = (int)i + 1 == plan->n_launches ||
                         plan->spans[i + 1].first_node != plan->spans[i].first_node;
    if (recording->times && is_last)
        gvk_times_mark(recording->context, recording->times, recording->commands, &plan->spans[i]);
}

// Records the whole plan. The barrier at the end makes results visible to the host and to
// transfers.
static enum ggml_status record(struct maker *maker) {
    struct gvk_context *context = maker->recipe->context;
    const uint32_t n = (uint32_t)gvk_plan_count(maker->recipe->plan);
    enum ggml_status status =
        allocate_sets(maker) && begin(maker) ? GGML_STATUS_SUCCESS : GGML_STATUS_FAILED;
    for (uint32_t i = 0; i < n && status == GGML_STATUS_SUCCESS; ++i) {
        status = add_dispatch(maker, i);
        mark_time(maker, i);
    }
    if (status != GGML_STATUS_SUCCESS) return status;
    gvk_barrier_full(context, maker->recording->commands);
    const VkResult result = context->api.vkEndCommandBuffer(maker->recording->commands);
    return gvk_context_check(context, result, "vkEndCommandBuffer") ? GGML_STATUS_SUCCESS
                                                                    : GGML_STATUS_FAILED;
}

// Where a dispatch has the grids, they are its last operand.
static bool wants_grids(const struct gvk_plan *plan) {
    for (int i = 0; i < gvk_plan_count(plan); ++i) {
        const struct gvk_dispatch *d = gvk_plan_at(plan, i);
        if (d->operands[d->n_operands - 1].grids) return true;
    }
    return false;
}

// Gets what recording needs and may fail: pipelines (compiled here if need be), tables, queries,
// and one buffer for the parameters of all dispatches.
static enum ggml_status prepare(struct maker *maker) {
    const struct gvk_recipe *recipe = maker->recipe;
    struct gvk_context *context = recipe->context;
    const uint64_t least = context->probe->properties.limits.minUniformBufferOffsetAlignment;
    const uint64_t stride = (sizeof(struct gvk_parameters) + least - 1) / least * least;
    // Dynamic offsets are 32 bits wide.
    const uint64_t bytes = stride * (uint64_t)gvk_plan_count(recipe->plan);
    if (bytes > UINT32_MAX)
        return gpu_fail_graph(GGML_HOST_OUT_OF_RANGE,
                              "vulkan: a graph of %d dispatches is too large",
                              gvk_plan_count(recipe->plan));
    maker->stride = (uint32_t)stride;
    if (!gpu_graph_key_copy(&maker->recording->key, recipe->key)) return GGML_STATUS_ALLOC_FAILED;
    enum ggml_status status =
        gvk_pipelines_find(context->pipelines, recipe->plan, maker->pipelines);
    if (status == GGML_STATUS_SUCCESS && wants_grids(recipe->plan))
        status = gvk_grids_get(context, &maker->grids);
    if (status != GGML_STATUS_SUCCESS) return status;
    if (recipe->has_times) {
        maker->recording->times = gvk_times_new(context, &recipe->plan->base);
        if (!maker->recording->times) return GGML_STATUS_ALLOC_FAILED;
    }
    return gvk_buffer_new(context, bytes, GVK_MEMORY_UPLOAD, &maker->recording->parameters);
}

// Arrays that only recording needs are freed before it returns. *out_recording is NULL on
// failure.
enum ggml_status gvk_recording_new(const struct gvk_recipe *recipe,
                                   struct gvk_recording **out_recording) {
    const size_t n = (size_t)gvk_plan_count(recipe->plan);
    struct maker maker = {.recipe = recipe,
                          .recording = ggml_aligned_malloc(sizeof(*maker.recording)),
                          .pipelines = ggml_aligned_malloc(n * sizeof(*maker.pipelines)),
                          .sets = ggml_aligned_malloc(n * sizeof(*maker.sets)),
                          .layouts = ggml_aligned_malloc(n * sizeof(*maker.layouts))};
    enum ggml_status status = GGML_STATUS_ALLOC_FAILED;
    *out_recording = NULL;
    if (maker.recording)
        *maker.recording =
            (struct gvk_recording){.context = recipe->context,
                                   .command_pool = recipe->command_pool,
                                   .scratch_id = recipe->scratch ? recipe->scratch->id : 0};
    if (maker.recording && maker.pipelines && maker.sets && maker.layouts) status = prepare(&maker);
    if (status == GGML_STATUS_SUCCESS) status = record(&maker);
    ggml_aligned_free(maker.layouts, n * sizeof(*maker.layouts));
    ggml_aligned_free(maker.sets, n * sizeof(*maker.sets));
    ggml_aligned_free(maker.pipelines, n * sizeof(*maker.pipelines));
    if (status == GGML_STATUS_SUCCESS)
        *out_recording = maker.recording;
    else
        gvk_recording_free(maker.recording);
    return status;
}

// Works for a recording of which only a part was made. The device must have finished with it.
void gvk_recording_free(struct gvk_recording *recording) {
    if (!recording) return;
    struct gvk_context *context = recording->context;
    if (recording->commands)
        context->api.vkFreeCommandBuffers(context->device, recording->command_pool, 1,
                                          &recording->commands);
    if (recording->pool)
        context->api.vkDestroyDescriptorPool(context->device, recording->pool, NULL);
    gvk_times_free(context, recording->times);
    gvk_buffer_free(recording->parameters);
    gpu_graph_key_free(&recording->key);
    gpu_graph_key_free(&recording->places);
    ggml_aligned_free(recording, sizeof(*recording));
}
