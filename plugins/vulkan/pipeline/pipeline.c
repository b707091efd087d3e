// SPDX-License-Identifier: MIT
// A pipeline per shader, number of operands and values of its specialisation constants, compiled
// when a plan first needs it and kept as long as the context. A hash table with chains under one
// mutex, which is held while compiling too: another stream that needs the same pipelines has to
// wait for them anyway. The driver's cache, kept in a file, makes the second start of a program
// fast.
#include "pipeline/pipeline.h"

#include <stdio.h>

#include "pipeline/cache_file.h"
#include "pipeline/shaders.h"

enum { N_BUCKETS = 512, MAX_THREADS = 8 };

struct pipeline {
    enum gvk_shader shader;
    int n_operands;
    int n_specs;
    uint32_t specs[GVK_MAX_SPECS];
    VkPipeline handle;
    VkResult result;          // of compiling it
    struct pipeline *next;    // of the bucket
    struct pipeline *missing; // next one to be compiled
};

struct gvk_pipelines {
    struct gvk_context *context;
    VkPipelineCache cache;
    bool changed; // since it was saved
    pthread_mutex_t mutex;
    struct pipeline *buckets[N_BUCKETS];
};

// Starts the driver's cache with what the last process left in the file; the driver itself
// refuses data of another version.
static VkResult create_cache(struct gvk_pipelines *pipelines) {
    struct gvk_context *context = pipelines->context;
    size_t size;
    void *data = gvk_cache_file_read(context->probe, &size);
    const VkPipelineCacheCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                            .initialDataSize = size,
                                            .pInitialData = data};
    const VkResult result =
        context->api.vkCreatePipelineCache(context->device, &info, NULL, &pipelines->cache);
    ggml_aligned_free(data, size);
    return result;
}

// Starts with the driver's cache from disk, if there is one.
struct gvk_pipelines *gvk_pipelines_new(struct gvk_context *context) {
    struct gvk_pipelines *pipelines = ggml_aligned_malloc(sizeof(*pipelines));
    if (!pipelines) return NULL;
    memset(pipelines, 0, sizeof(*pipelines));
    pipelines->context = context;
    if (!gvk_context_check(context, create_cache(pipelines), "vkCreatePipelineCache")) {
        ggml_aligned_free(pipelines, sizeof(*pipelines));
        return NULL;
    }
    pthread_mutex_init(&pipelines->mutex, NULL);
    return pipelines;
}

// The driver guards its cache itself. The size may grow between the two calls when another thread
// compiles: the second then says INCOMPLETE, and nothing is written this time.
void gvk_pipelines_save(struct gvk_pipelines *pipelines) {
    struct gvk_context *context = pipelines->context;
    size_t size = 0;
    pthread_mutex_lock(&pipelines->mutex);
    const bool changed = pipelines->changed;
    pipelines->changed = false;
    pthread_mutex_unlock(&pipelines->mutex);
    if (!changed || !gvk_cache_file_wanted() || gvk_context_lost(context)) return;
    VkResult result =
        context->api.vkGetPipelineCacheData(context->device, pipelines->cache, &size, NULL);
    void *data = result == VK_SUCCESS && size > 0 ? ggml_aligned_malloc(size) : NULL;
    const size_t allocated = size;
    if (!data) return;
    result = context->api.vkGetPipelineCacheData(context->device, pipelines->cache, &size, data);
    if (result == VK_SUCCESS) gvk_cache_file_write(context->probe, data, size);
    ggml_aligned_free(data, allocated);
}

// Destroys a chain of pipelines.
static void free_list(struct gvk_context *context, struct pipeline *first) {
    while (first) {
        struct pipeline *next = first->next;
        if (first->handle) context->api.vkDestroyPipeline(context->device, first->handle, NULL);
        ggml_aligned_free(first, sizeof(*first));
        first = next;
    }
}

// Saves the driver's cache before it goes. No pipeline may be in use.
void gvk_pipelines_free(struct gvk_pipelines *pipelines) {
    if (!pipelines) return;
    struct gvk_context *context = pipelines->context;
    gvk_pipelines_save(pipelines);
    for (int i = 0; i < N_BUCKETS; ++i)
        free_list(context, pipelines->buckets[i]);
    context->api.vkDestroyPipelineCache(context->device, pipelines->cache, NULL);
    pthread_mutex_destroy(&pipelines->mutex);
    ggml_aligned_free(pipelines, sizeof(*pipelines));
}

// --- compiling -----------------------------------------------------------------------------------

// Compiles a module with the constants of a pipeline. This is what takes long, up to seconds.
static VkResult compile_module(struct gvk_pipelines *pipelines, struct pipeline *pipeline,
                               VkShaderModule module) {
    struct gvk_context *context = pipelines->context;
    VkSpecializationMapEntry entries[GVK_MAX_SPECS];
    for (uint32_t i = 0; i < (uint32_t)pipeline->n_specs; ++i)
        entries[i] =
            (VkSpecializationMapEntry){i, i * (uint32_t)sizeof(uint32_t), sizeof(uint32_t)};
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

// Compiles one pipeline; the result stays in it. Any thread, as the driver locks its own cache.
static void compile(struct gvk_pipelines *pipelines, struct pipeline *pipeline) {
    struct gvk_context *context = pipelines->context;
    const struct gvk_shader_code *code = gvk_shader_code(pipeline->shader);
    const VkShaderModuleCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                           .codeSize = code->bytes,
                                           .pCode = code->words};
    VkShaderModule module;
    pipeline->result = context->api.vkCreateShaderModule(context->device, &info, NULL, &module);
    if (pipeline->result != VK_SUCCESS) return;
    pipeline->result = compile_module(pipelines, pipeline, module);
    context->api.vkDestroyShaderModule(context->device, module, NULL);
}

// Missing pipelines are compiled by up to MAX_THREADS threads, the calling one among them; each
// takes the next one from a list, since compile times differ by orders of magnitude.
struct team {
    struct gvk_pipelines *pipelines;
    pthread_mutex_t mutex;
    struct pipeline *next; // to be compiled
};

static void *compile_some(void *argument);

static void *compile_in_thread(void *argument) {
    gpu_name_thread("ggml-vk-compile");
    return compile_some(argument);
}

// A thread of the team: takes pipelines from the list until there are none left.
static void *compile_some(void *argument) {
    struct team *team = argument;
    for (;;) {
        pthread_mutex_lock(&team->mutex);
        struct pipeline *pipeline = team->next;
        if (pipeline) team->next = pipeline->missing;
        pthread_mutex_unlock(&team->mutex);
        if (!pipeline) return NULL;
        compile(team->pipelines, pipeline);
    }
}

// A single pipeline needs no other thread. As many as the host gives to computing at most.
static int team_size(const struct pipeline *first) {
    struct ggml_host_topology topology = {.size = sizeof(topology)};
    int n = 0;
    for (; first && n < MAX_THREADS; first = first->missing)
        ++n;
    if (n < 2 || !ggml_sdk_topology(&topology)) return n ? 1 : 0;
    return MIN(n, MAX(1, (int)topology.default_threads));
}

// Compiles a list with as many threads as pay, this one included: compilers of drivers use one
// thread per pipeline. Fewer threads, or none, if they can't be started.
static void compile_all(struct gvk_pipelines *pipelines, struct pipeline *first) {
    struct team team = {.pipelines = pipelines, .next = first};
    pthread_t threads[MAX_THREADS];
    const int n = team_size(first);
    int n_started = 0;
    pthread_mutex_init(&team.mutex, NULL);
    while (n_started + 1 < n &&
           pthread_create(&threads[n_started], NULL, compile_in_thread, &team) == 0)
        ++n_started;
    compile_some(&team);
    for (int i = 0; i < n_started; ++i)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&team.mutex);
}

// --- finding -------------------------------------------------------------------------------------

// FNV-like over the constants; Knuth's multiplier spreads the number of the shader.
static uint32_t bucket_of(const struct gvk_dispatch *d) {
    uint32_t hash = (uint32_t)d->shader * UINT32_C(2654435761);
    for (int i = 0; i < d->n_specs; ++i)
        hash = (hash ^ d->specs[i]) * UINT32_C(16777619);
    return (hash ^ hash >> 16) % N_BUCKETS;
}

// Whether the pipeline is the dispatch's: same shader, operands and constants.
static bool is_for(const struct pipeline *pipeline, const struct gvk_dispatch *d) {
    return pipeline->shader == d->shader && pipeline->n_operands == d->n_operands &&
           pipeline->n_specs == d->n_specs &&
           memcmp(pipeline->specs, d->specs, (size_t)d->n_specs * sizeof(d->specs[0])) == 0;
}

static struct pipeline *find(struct pipeline *first, const struct gvk_dispatch *d) {
    while (first && !is_for(first, d))
        first = first->next;
    return first;
}

// A pipeline that is not compiled yet; NULL without memory.
static struct pipeline *pipeline_new(const struct gvk_dispatch *d) {
    struct pipeline *pipeline = ggml_aligned_malloc(sizeof(*pipeline));
    if (!pipeline) return NULL;
    *pipeline =
        (struct pipeline){.shader = d->shader, .n_operands = d->n_operands, .n_specs = d->n_specs};
    memcpy(pipeline->specs, d->specs, sizeof(pipeline->specs));
    return pipeline;
}

// Adds what the plan lacks, uncompiled, and returns it as a list.
static struct pipeline *add_missing(struct gvk_pipelines *pipelines, const struct gvk_plan *plan,
                                    enum ggml_status *out_status) {
    struct pipeline *missing = NULL;
    *out_status = GGML_STATUS_SUCCESS;
    for (int i = 0; i < gvk_plan_count(plan); ++i) {
        struct pipeline **bucket = &pipelines->buckets[bucket_of(gvk_plan_at(plan, i))];
        if (find(*bucket, gvk_plan_at(plan, i))) continue;
        struct pipeline *pipeline = pipeline_new(gvk_plan_at(plan, i));
        if (!pipeline) {
            *out_status = GGML_STATUS_ALLOC_FAILED;
            break;
        }
        pipeline->result = VK_NOT_READY;
        pipeline->next = *bucket;
        *bucket = pipeline;
        pipeline->missing = missing;
        missing = pipeline;
    }
    return missing;
}

// Takes a pipeline that failed out of its bucket, so that a later graph tries again.
// O(pipelines).
static void remove_pipeline(struct gvk_pipelines *pipelines, struct pipeline *pipeline) {
    for (int i = 0; i < N_BUCKETS; ++i) {
        struct pipeline **link = &pipelines->buckets[i];
        while (*link && *link != pipeline)
            link = &(*link)->next;
        if (!*link) continue;
        *link = pipeline->next;
        pipeline->next = NULL;
        free_list(pipelines->context, pipeline);
        return;
    }
}

// Takes those out again that could not be compiled.
static enum ggml_status check_compiled(struct gvk_pipelines *pipelines, struct pipeline *first,
                                       enum ggml_status status) {
    while (first) {
        struct pipeline *next = first->missing;
        const VkResult result = first->result;
        if (result == VK_SUCCESS) {
            pipelines->changed = true;
        } else {
            char text[96];
            snprintf(text, sizeof(text), "compiling the shader %.60s",
                     gvk_shader_code(first->shader)->name);
            remove_pipeline(pipelines, first);
            if (status == GGML_STATUS_SUCCESS) {
                gvk_context_check(pipelines->context, result, text);
                status = GGML_STATUS_FAILED;
            }
        }
        first = next;
    }
    return status;
}

// Compiles what the plan lacks, then fills one handle per dispatch. If any fails, none is valid.
enum ggml_status gvk_pipelines_find(struct gvk_pipelines *pipelines, const struct gvk_plan *plan,
                                    VkPipeline *out_handles) {
    enum ggml_status status;
    pthread_mutex_lock(&pipelines->mutex);
    struct pipeline *missing = add_missing(pipelines, plan, &status);
    if (missing) compile_all(pipelines, missing);
    status = check_compiled(pipelines, missing, status);
    for (int i = 0; i < gvk_plan_count(plan) && status == GGML_STATUS_SUCCESS; ++i) {
        const struct gvk_dispatch *d = gvk_plan_at(plan, i);
        out_handles[i] = find(pipelines->buckets[bucket_of(d)], d)->handle;
    }
    pthread_mutex_unlock(&pipelines->mutex);
    return status;
}
