// SPDX-License-Identifier: MIT
// Vulkan's functions that a test makes fail.
//
// FAULT_CREATE(Name, Info, Handle)  vkCreate<Name>(device, info, allocator, out), vkDestroy<Name>
// FAULT_CALL(Name, (parameters), (arguments))  any other that returns a VkResult
FAULT_CREATE(Buffer, VkBufferCreateInfo, VkBuffer)
FAULT_CREATE(CommandPool, VkCommandPoolCreateInfo, VkCommandPool)
FAULT_CREATE(DescriptorPool, VkDescriptorPoolCreateInfo, VkDescriptorPool)
FAULT_CREATE(DescriptorSetLayout, VkDescriptorSetLayoutCreateInfo, VkDescriptorSetLayout)
FAULT_CREATE(PipelineCache, VkPipelineCacheCreateInfo, VkPipelineCache)
FAULT_CREATE(PipelineLayout, VkPipelineLayoutCreateInfo, VkPipelineLayout)
FAULT_CREATE(QueryPool, VkQueryPoolCreateInfo, VkQueryPool)
FAULT_CREATE(Semaphore, VkSemaphoreCreateInfo, VkSemaphore)
FAULT_CREATE(ShaderModule, VkShaderModuleCreateInfo, VkShaderModule)
FAULT_CALL(AllocateCommandBuffers,
           (VkDevice device, const VkCommandBufferAllocateInfo *info, VkCommandBuffer *out),
           (device, info, out))
FAULT_CALL(AllocateDescriptorSets,
           (VkDevice device, const VkDescriptorSetAllocateInfo *info, VkDescriptorSet *out),
           (device, info, out))
FAULT_CALL(BeginCommandBuffer, (VkCommandBuffer commands, const VkCommandBufferBeginInfo *info),
           (commands, info))
FAULT_CALL(BindBufferMemory,
           (VkDevice device, VkBuffer buffer, VkDeviceMemory memory, VkDeviceSize offset),
           (device, buffer, memory, offset))
FAULT_CALL(EndCommandBuffer, (VkCommandBuffer commands), (commands))
FAULT_CALL(GetMemoryHostPointerPropertiesEXT,
           (VkDevice device, VkExternalMemoryHandleTypeFlagBits type, const void *pointer,
            VkMemoryHostPointerPropertiesEXT *out),
           (device, type, pointer, out))
FAULT_CALL(GetPipelineCacheData,
           (VkDevice device, VkPipelineCache cache, size_t *size, void *data),
           (device, cache, size, data))
FAULT_CALL(GetQueryPoolResults,
           (VkDevice device, VkQueryPool pool, uint32_t first, uint32_t n, size_t size, void *out,
            VkDeviceSize stride, VkQueryResultFlags flags),
           (device, pool, first, n, size, out, stride, flags))
FAULT_CALL(GetSemaphoreCounterValue, (VkDevice device, VkSemaphore semaphore, uint64_t *out),
           (device, semaphore, out))
FAULT_CALL(MapMemory,
           (VkDevice device, VkDeviceMemory memory, VkDeviceSize offset, VkDeviceSize size,
            VkMemoryMapFlags flags, void **out),
           (device, memory, offset, size, flags, out))
FAULT_CALL(QueueSubmit,
           (VkQueue queue, uint32_t n, const VkSubmitInfo *infos, VkFence fence),
           (queue, n, infos, fence))
FAULT_CALL(SignalSemaphore, (VkDevice device, const VkSemaphoreSignalInfo *info), (device, info))
FAULT_CALL(WaitSemaphores, (VkDevice device, const VkSemaphoreWaitInfo *info, uint64_t timeout),
           (device, info, timeout))
#undef FAULT_CREATE
#undef FAULT_CALL
