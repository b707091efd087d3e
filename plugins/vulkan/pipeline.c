// SPDX-License-Identifier: MIT
#include "pipeline.h"

#include "shaders.h"

enum { N_BUCKETS = 512 };

struct pipeline {
    enum vk_shader shader;
    int n_operands;
    int n_specs;
    uint32_t specs[VK_MAX_SPECS];
    VkPipeline handle;
    VkResult result;       // of compiling it
    struct pipeline *next; // of the bucket, or of those to be compiled
};

struct vk_pipelines {
    struct vk_context *context;
    VkPipelineCache cache;
    pthread_mutex_t mutex;
    struct pipeline *buckets[N_BUCKETS];
};

struct vk_pipelines *vk_pipelines_new(struct vk_context *context) {
    struct vk_pipelines *pipelines = ggml_aligned_malloc(sizeof(*pipelines));
    if (!pipelines) return NULL;
    memset(pipelines, 0, sizeof(*pipelines));
    pipelines->context = context;
    const VkPipelineCacheCreateInfo info = {.sType =
                                                VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    const VkResult result =
        context->api.vkCreatePipelineCache(context->device, &info, NULL, &pipelines->cache);
    if (!vk_context_check(context, result, "vkCreatePipelineCache")) {
        ggml_aligned_free(pipelines, sizeof(*pipelines));
        return NULL;
    }
    pthread_mutex_init(&pipelines->mutex, NULL);
    return pipelines;
}

static void free_list(struct vk_context *context, struct pipeline *first) {
    while (first) {
        struct pipeline *next = first->next;
        if (first->handle) context->api.vkDestroyPipeline(context->device, first->handle, NULL);
        ggml_aligned_free(first, sizeof(*first));
        first = next;
    }
}

void vk_pipelines_free(struct vk_pipelines *pipelines) {
    if (!pipelines) return;
    struct vk_context *context = pipelines->context;
    for (int i = 0; i < N_BUCKETS; ++i) free_list(context, pipelines->buckets[i]);
    context->api.vkDestroyPipelineCache(context->device, pipelines->cache, NULL);
    pthread_mutex_destroy(&pipelines->mutex);
    ggml_aligned_free(pipelines, sizeof(*pipelines));
}

// --- compiling -----------------------------------------------------------------------------------

static VkResult compile_module(struct vk_pipelines *pipelines, struct pipeline *pipeline,
                               VkShaderModule module) {
    struct vk_context *context = pipelines->context;
    VkSpecializationMapEntry entries[VK_MAX_SPECS];
    for (uint32_t i = 0; i < (uint32_t)pipeline->n_specs; ++i)
        entries[i] = (VkSpecializationMapEntry){i, i * (uint32_t)sizeof(uint32_t), sizeof(uint32_t)};
    const VkSpecializationInfo specs = {.mapEntryCount = (uint32_t)pipeline->n_specs,
                                        .pMapEntries = entries,
                                        .dataSize = sizeof(pipeline->specs),
                                        .pData = pipeline->specs};
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = "main",
                  .pSpecializationInfo = &specs},
        .layout = context->layouts[pipeline->n_operands]};
    const VkResult result = context->api.vkCreateComputePipelines(
        context->device, pipelines->cache, 1, &info, NULL, &pipeline->handle);
    if (result != VK_SUCCESS) pipeline->handle = VK_NULL_HANDLE;
    return result;
}

static void compile(struct vk_pipelines *pipelines, struct pipeline *pipeline) {
    struct vk_context *context = pipelines->context;
    const struct vk_shader_code *code = vk_shader_code(pipeline->shader);
    const VkShaderModuleCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                           .codeSize = code->bytes,
                                           .pCode = code->words};
    VkShaderModule module;
    pipeline->result = context->api.vkCreateShaderModule(context->device, &info, NULL, &module);
    if (pipeline->result != VK_SUCCESS) return;
    pipeline->result = compile_module(pipelines, pipeline, module);
    context->api.vkDestroyShaderModule(context->device, module, NULL);
}

// --- finding -------------------------------------------------------------------------------------

static uint32_t bucket_of(const struct vk_dispatch *d) {
    uint32_t hash = (uint32_t)d->shader * UINT32_C(2654435761);
    for (int i = 0; i < d->n_specs; ++i) hash = (hash ^ d->specs[i]) * UINT32_C(16777619);
    return (hash ^ hash >> 16) % N_BUCKETS;
}

static bool is_for(const struct pipeline *pipeline, const struct vk_dispatch *d) {
    return pipeline->shader == d->shader && pipeline->n_operands == d->n_operands &&
           pipeline->n_specs == d->n_specs &&
           memcmp(pipeline->specs, d->specs, (size_t)d->n_specs * sizeof(d->specs[0])) == 0;
}

static struct pipeline *find(struct pipeline *first, const struct vk_dispatch *d) {
    while (first && !is_for(first, d)) first = first->next;
    return first;
}

static struct pipeline *pipeline_new(const struct vk_dispatch *d) {
    struct pipeline *pipeline = ggml_aligned_malloc(sizeof(*pipeline));
    if (!pipeline) return NULL;
    *pipeline = (struct pipeline){
        .shader = d->shader, .n_operands = d->n_operands, .n_specs = d->n_specs};
    memcpy(pipeline->specs, d->specs, sizeof(pipeline->specs));
    return pipeline;
}

static enum ggml_status find_one(struct vk_pipelines *pipelines, const struct vk_dispatch *d,
                                 VkPipeline *out_handle) {
    struct pipeline **bucket = &pipelines->buckets[bucket_of(d)];
    struct pipeline *pipeline = find(*bucket, d);
    *out_handle = VK_NULL_HANDLE;
    if (!pipeline) {
        pipeline = pipeline_new(d);
        if (!pipeline) return GGML_STATUS_ALLOC_FAILED;
        compile(pipelines, pipeline);
        if (pipeline->result != VK_SUCCESS) {
            const VkResult result = pipeline->result;
            free_list(pipelines->context, pipeline);
            vk_context_check(pipelines->context, result, vk_shader_code(d->shader)->name);
            return GGML_STATUS_FAILED;
        }
        pipeline->next = *bucket;
        *bucket = pipeline;
    }
    *out_handle = pipeline->handle;
    return GGML_STATUS_SUCCESS;
}

enum ggml_status vk_pipelines_find(struct vk_pipelines *pipelines, const struct vk_plan *plan,
                                   VkPipeline *out_handles) {
    enum ggml_status status = GGML_STATUS_SUCCESS;
    pthread_mutex_lock(&pipelines->mutex);
    for (int i = 0; i < plan->n_dispatches && status == GGML_STATUS_SUCCESS; ++i)
        status = find_one(pipelines, &plan->dispatches[i], &out_handles[i]);
    pthread_mutex_unlock(&pipelines->mutex);
    return status;
}
