// SPDX-License-Identifier: MIT
// Small buffers are pieces of blocks: Vulkan guarantees no more than 4,096 allocations at a time
// (maxMemoryAllocationCount). Within a block the first gap that fits is taken, in order of address,
// and gaps are joined when a piece comes back; a block has few pieces, so that lists are enough.
// One mutex guards all blocks of a context. Memory that can be mapped stays mapped: Vulkan maps an
// allocation only once, and pieces share it.
#include "memory/memory.h"

#include "device/context.h"

#define BLOCK_BYTES (UINT64_C(32) << 20)
#define SMALL_BYTES (UINT64_C(4) << 20) // larger ones get an allocation of their own

// Free bytes of a block.
struct gap {
    uint64_t begin, end;
    struct gap *next; // behind it
};

struct gvk_block {
    VkDeviceMemory handle;
    uint32_t type;
    char *mapped;
    int n_used;
    struct gap *gaps;
    struct gvk_block *next;
};

void gvk_memory_pool_init(struct gvk_memory_pool *pool) {
    pool->blocks = NULL;
    pthread_mutex_init(&pool->mutex, NULL);
}

// --- kinds of memory -----------------------------------------------------------------------------

struct memory_preference {
    VkMemoryPropertyFlags has, lacks;
};

enum {
    LOCAL = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
    VISIBLE = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
    MAPPED = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
    CACHED = VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
    MAX_PREFERENCES = 3,
};

// The first type that is allowed, has some properties and lacks others; drivers list faster ones
// first. -1: none.
static int find_type(const VkPhysicalDeviceMemoryProperties *memory, uint32_t allowed,
                     struct memory_preference memory_preference) {
    for (uint32_t i = 0; i < memory->memoryTypeCount; ++i) {
        const VkMemoryPropertyFlags flags = memory->memoryTypes[i].propertyFlags;
        if ((allowed >> i & 1) && (flags & memory_preference.has) == memory_preference.has &&
            !(flags & memory_preference.lacks))
            return (int)i;
    }
    return -1;
}

// By preference, first to last. Device memory that the host sees (BAR) is small on some GPUs:
// buffers of tensors leave it to uploads, unless host and device share all memory anyway.
int gvk_memory_choose(const struct gvk_context *context, uint32_t allowed,
                      enum gvk_memory_use use) {
    static const struct memory_preference local[MAX_PREFERENCES] = {
        {LOCAL, VISIBLE}, {LOCAL, 0}, {0, 0}};
    static const struct memory_preference shared[MAX_PREFERENCES] = {
        {LOCAL | MAPPED, 0}, {LOCAL, 0}, {0, 0}};
    static const struct memory_preference upload[MAX_PREFERENCES] = {
        {LOCAL | MAPPED, 0}, {MAPPED, 0}, {MAPPED, 0}};
    static const struct memory_preference host[MAX_PREFERENCES] = {
        {MAPPED | CACHED, 0}, {MAPPED, 0}, {MAPPED, 0}};
    const struct memory_preference *preferences = use == GVK_MEMORY_UPLOAD ? upload
                                                  : use == GVK_MEMORY_HOST ? host
                                                  : context->direct        ? shared
                                                                           : local;
    int type = -1;
    for (int i = 0; i < MAX_PREFERENCES && type < 0; ++i)
        type = find_type(&context->probe->memory, allowed, preferences[i]);
    return type;
}

// --- allocations ---------------------------------------------------------------------------------

// One allocation of the driver, mapped where the host can see it. *out_handle is valid also
// after a failed mapping, for the owner to free.
static enum ggml_status allocate(struct gvk_context *context, int type, uint64_t size,
                                 const void *next, VkDeviceMemory *out_handle, char **out_mapped) {
    const VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                       .pNext = next,
                                       .allocationSize = size,
                                       .memoryTypeIndex = (uint32_t)type};
    void *mapped = NULL;
    *out_handle = VK_NULL_HANDLE;
    *out_mapped = NULL;
    VkResult result = context->api.vkAllocateMemory(context->device, &info, NULL, out_handle);
    if (result != VK_SUCCESS) {
        *out_handle = VK_NULL_HANDLE;
        gvk_context_check(context, result, "vkAllocateMemory");
        return gpu_fail_graph(GGML_HOST_OUT_OF_MEMORY,
                              "vkAllocateMemory: no %llu bytes of memory (%s): free buffers, use a "
                              "smaller model or fewer layers on this device",
                              (unsigned long long)size, gvk_result_name(result));
    }
    // Coherent memory only: what is written needs no flushing, what is read no invalidating.
    const VkMemoryPropertyFlags flags = context->probe->memory.memoryTypes[type].propertyFlags;
    if ((flags & MAPPED) != MAPPED) return GGML_STATUS_SUCCESS;
    result = context->api.vkMapMemory(context->device, *out_handle, 0, VK_WHOLE_SIZE, 0, &mapped);
    if (result != VK_SUCCESS) return gvk_fail_call(result, "vkMapMemory"); // freed with its owner
    *out_mapped = mapped;
    return GGML_STATUS_SUCCESS;
}

static struct gap *gap_new(uint64_t begin, uint64_t end, struct gap *next) {
    struct gap *gap = ggml_aligned_malloc(sizeof(*gap));
    if (gap) *gap = (struct gap){begin, end, next};
    return gap;
}

// Frees a block and its list of gaps.
static void block_free(struct gvk_context *context, struct gvk_block *block) {
    while (block->gaps) {
        struct gap *next = block->gaps->next;
        ggml_aligned_free(block->gaps, sizeof(*next));
        block->gaps = next;
    }
    if (block->handle) context->api.vkFreeMemory(context->device, block->handle, NULL);
    ggml_aligned_free(block, sizeof(*block));
}

// A block of one gap.
static enum ggml_status block_new(struct gvk_context *context, int type,
                                  struct gvk_block **out_block) {
    struct gvk_block *block = ggml_aligned_malloc(sizeof(*block));
    *out_block = NULL;
    if (!block) return GGML_STATUS_ALLOC_FAILED;
    *block = (struct gvk_block){.type = (uint32_t)type};
    block->gaps = gap_new(0, BLOCK_BYTES, NULL);
    const enum ggml_status status =
        block->gaps ? allocate(context, type, BLOCK_BYTES, NULL, &block->handle, &block->mapped)
                    : GGML_STATUS_ALLOC_FAILED;
    if (status != GGML_STATUS_SUCCESS) {
        block_free(context, block);
        return status;
    }
    *out_block = block;
    return GGML_STATUS_SUCCESS;
}

// Frees the pool's blocks. All buffers in them have to be freed before.
void gvk_memory_pool_free(struct gvk_context *context) {
    struct gvk_memory_pool *pool = &context->memory;
    while (pool->blocks) {
        struct gvk_block *next = pool->blocks->next;
        block_free(context, pool->blocks);
        pool->blocks = next;
    }
    pthread_mutex_destroy(&pool->mutex);
}

// --- pieces of a block ---------------------------------------------------------------------------

static uint64_t align_up(uint64_t value, uint64_t alignment) {
    return (value + alignment - 1) & ~(alignment - 1);
}

// Cuts [begin, begin + size) out of the gap at *link. False: no memory to remember two gaps.
static bool cut(struct gap **link, uint64_t begin, uint64_t size) {
    struct gap *gap = *link;
    const uint64_t end = begin + size;
    if (begin > gap->begin && end < gap->end) {
        struct gap *behind = gap_new(end, gap->end, gap->next);
        if (!behind) return false;
        gap->end = begin;
        gap->next = behind;
    } else if (begin > gap->begin) {
        gap->end = begin;
    } else if (end < gap->end) {
        gap->begin = end;
    } else {
        *link = gap->next;
        ggml_aligned_free(gap, sizeof(*gap));
    }
    return true;
}

// First fit: the lowest gap that holds the aligned piece. O(gaps). False if none does, or
// without memory for the rest of a gap.
static bool take_piece(struct gvk_block *block, uint64_t size, uint64_t alignment,
                       struct gvk_memory *out_memory) {
    for (struct gap **link = &block->gaps; *link; link = &(*link)->next) {
        const uint64_t begin = align_up((*link)->begin, alignment);
        if (begin > (*link)->end || (*link)->end - begin < size) continue;
        if (!cut(link, begin, size)) return false;
        *out_memory = (struct gvk_memory){.handle = block->handle,
                                          .offset = begin,
                                          .size = size,
                                          .mapped = block->mapped ? block->mapped + begin : NULL,
                                          .block = block};
        block->n_used++;
        return true;
    }
    return false;
}

// A piece of a block of that type, of a new one if all are full.
static enum ggml_status take_small(struct gvk_context *context, int type,
                                   const VkMemoryRequirements *needs,
                                   struct gvk_memory *out_memory) {
    struct gvk_memory_pool *pool = &context->memory;
    // Pieces end where others may begin, so that gaps stay aligned.
    const uint64_t alignment = MAX(needs->alignment, 256);
    const uint64_t size = align_up(needs->size, alignment);
    enum ggml_status status = GGML_STATUS_SUCCESS;
    bool found = false;
    pthread_mutex_lock(&pool->mutex);
    // Blocks that are full are passed over in a few steps: their list of gaps is empty.
    for (struct gvk_block *b = pool->blocks; b && !found; b = b->next)
        found = b->type == (uint32_t)type && take_piece(b, size, alignment, out_memory);
    if (!found) {
        struct gvk_block *block;
        status = block_new(context, type, &block);
        if (block) {
            block->next = pool->blocks;
            pool->blocks = block;
            if (!take_piece(block, size, alignment, out_memory)) status = GGML_STATUS_ALLOC_FAILED;
        }
    }
    pthread_mutex_unlock(&pool->mutex);
    return status;
}

// Small memory is a piece of a block, large memory an allocation of its own.
enum ggml_status gvk_memory_take(struct gvk_context *context, const VkMemoryRequirements *needs,
                                 enum gvk_memory_use use, struct gvk_memory *out_memory) {
    const int type = gvk_memory_choose(context, needs->memoryTypeBits, use);
    *out_memory = (struct gvk_memory){0};
    if (type < 0)
        return gpu_fail_graph(GGML_HOST_FAILED,
                              "vulkan: the driver offers no fitting kind of memory");
    if (needs->size <= SMALL_BYTES && needs->alignment <= SMALL_BYTES)
        return take_small(context, type, needs, out_memory);
    return gvk_memory_allocate(context, type, needs->size, NULL, out_memory);
}

enum ggml_status gvk_memory_allocate(struct gvk_context *context, int type, uint64_t size,
                                     const void *next, struct gvk_memory *out_memory) {
    *out_memory = (struct gvk_memory){.size = size};
    return allocate(context, type, size, next, &out_memory->handle, &out_memory->mapped);
}

// Joins the piece with the gaps beside it. False: no memory to remember it, it stays lost until the
// block is freed.
static bool put_gap(struct gvk_block *block, uint64_t begin, uint64_t end) {
    struct gap **link = &block->gaps;
    struct gap *before = NULL;
    while (*link && (*link)->end <= begin) {
        before = *link;
        link = &before->next;
    }
    struct gap *behind = *link;
    if (before && before->end == begin) {
        before->end = end;
        if (!behind || behind->begin != end) return true;
        before->end = behind->end;
        before->next = behind->next;
        ggml_aligned_free(behind, sizeof(*behind));
        return true;
    }
    if (behind && behind->begin == end) {
        behind->begin = begin;
        return true;
    }
    struct gap *gap = gap_new(begin, end, behind);
    if (gap) *link = gap;
    return gap != NULL;
}

// Empty blocks but the first are freed.
static void drop_if_empty(struct gvk_context *context, struct gvk_block *block) {
    struct gvk_memory_pool *pool = &context->memory;
    int n_same = 0;
    for (const struct gvk_block *b = pool->blocks; b; b = b->next)
        n_same += b->type == block->type;
    if (block->n_used > 0 || n_same < 2) return;
    struct gvk_block **link = &pool->blocks;
    while (*link != block)
        link = &(*link)->next;
    *link = block->next;
    block_free(context, block);
}

// Gives a piece back to its block, or frees the allocation. The memory may not be in use.
void gvk_memory_give_back(struct gvk_context *context, struct gvk_memory *memory) {
    if (!memory->handle) return;
    if (memory->block) {
        pthread_mutex_lock(&context->memory.mutex);
        memory->block->n_used--;
        put_gap(memory->block, memory->offset, memory->offset + memory->size);
        drop_if_empty(context, memory->block);
        pthread_mutex_unlock(&context->memory.mutex);
    } else {
        context->api.vkFreeMemory(context->device, memory->handle, NULL);
    }
    *memory = (struct gvk_memory){0};
}
