// SPDX-License-Identifier: MIT
// Every message that is sent to Metal's and Foundation's objects, once, with its C types: a call has to be made with
// exactly these, as the calling convention for variadic functions is another one.
//
// MTL_GET(result, name, "selector")                             without arguments
// MTL_ASK(result, name, "selector", (parameters), (arguments))
// MTL_DO(name, "selector")                                      without arguments and result
// MTL_TELL(name, "selector", (parameters), (arguments))
#ifndef MTL_GET
#define MTL_GET(...)
#endif
#ifndef MTL_ASK
#define MTL_ASK(...)
#endif
#ifndef MTL_DO
#define MTL_DO(...)
#endif
#ifndef MTL_TELL
#define MTL_TELL(...)
#endif
// clang-format off

// Any object; strings, arrays, errors.
MTL_GET(mtl_id, retain, "retain")
MTL_DO(release, "release")
MTL_ASK(mtl_id, string, "stringWithUTF8String:", (const char *text), (text))
MTL_GET(const char *, utf8, "UTF8String")
MTL_GET(mtl_word, count, "count")
MTL_ASK(mtl_id, object_at, "objectAtIndex:", (mtl_word index), (index))
MTL_GET(mtl_id, localized_description, "localizedDescription")
MTL_GET(mtl_number, code, "code")

MTL_ASK(mtl_id, array_of, "arrayWithObject:", (mtl_id object), (object))
MTL_ASK(mtl_id, url_of_path, "fileURLWithPath:", (mtl_id path), (path))

// MTLDevice.
MTL_GET(mtl_id, name, "name")
MTL_GET(uint64_t, registry_id, "registryID")
MTL_GET(uint64_t, working_set, "recommendedMaxWorkingSetSize")
MTL_GET(mtl_word, allocated, "currentAllocatedSize")
MTL_GET(mtl_word, max_buffer_length, "maxBufferLength")
MTL_GET(bool, has_unified_memory, "hasUnifiedMemory")
MTL_ASK(bool, supports_family, "supportsFamily:", (mtl_number family), (family))
MTL_GET(mtl_id, new_queue, "newCommandQueue")
MTL_GET(mtl_id, new_event, "newSharedEvent")
MTL_ASK(mtl_id, new_buffer, "newBufferWithLength:options:", (mtl_word length, mtl_word options), (length, options))
MTL_ASK(mtl_id, new_buffer_no_copy, "newBufferWithBytesNoCopy:length:options:deallocator:", (void *memory, mtl_word length, mtl_word options, mtl_id deallocator), (memory, length, options, deallocator))
MTL_ASK(mtl_id, new_buffer_with_bytes, "newBufferWithBytes:length:options:", (const void *bytes, mtl_word length, mtl_word options), (bytes, length, options))
MTL_ASK(mtl_id, new_residency_set, "newResidencySetWithDescriptor:error:", (mtl_id descriptor, mtl_id *out_error), (descriptor, out_error))
MTL_ASK(mtl_id, new_library, "newLibraryWithSource:options:error:", (mtl_id source, mtl_id options, mtl_id *out_error), (source, options, out_error))
MTL_ASK(mtl_id, new_pipeline, "newComputePipelineStateWithFunction:error:", (mtl_id function, mtl_id *out_error), (function, out_error))

MTL_ASK(mtl_id, new_pipeline_of, "newComputePipelineStateWithDescriptor:options:reflection:error:", (mtl_id descriptor, mtl_word options, mtl_id *out_reflection, mtl_id *out_error), (descriptor, options, out_reflection, out_error))
MTL_ASK(mtl_id, new_archive, "newBinaryArchiveWithDescriptor:error:", (mtl_id descriptor, mtl_id *out_error), (descriptor, out_error))

// MTLComputePipelineDescriptor, MTLBinaryArchiveDescriptor, MTLBinaryArchive.
MTL_TELL(set_function, "setComputeFunction:", (mtl_id function), (function))
MTL_TELL(set_archives, "setBinaryArchives:", (mtl_id archives), (archives))
MTL_TELL(set_url, "setUrl:", (mtl_id url), (url))
MTL_ASK(bool, add_to_archive, "addComputePipelineFunctionsWithDescriptor:error:", (mtl_id descriptor, mtl_id *out_error), (descriptor, out_error))
MTL_ASK(bool, serialize, "serializeToURL:error:", (mtl_id url, mtl_id *out_error), (url, out_error))

// MTLCompileOptions, MTLLibrary, MTLFunctionConstantValues, MTLComputePipelineState.
MTL_GET(mtl_id, new, "new")
MTL_TELL(set_fast_math, "setFastMathEnabled:", (bool enabled), (enabled))
MTL_ASK(mtl_id, new_function, "newFunctionWithName:", (mtl_id name), (name))
MTL_ASK(mtl_id, new_function_with, "newFunctionWithName:constantValues:error:", (mtl_id name, mtl_id values, mtl_id *out_error), (name, values, out_error))
MTL_TELL(set_constant, "setConstantValue:type:atIndex:", (const void *value, mtl_word type, mtl_word index), (value, type, index))
MTL_GET(mtl_word, max_threads, "maxTotalThreadsPerThreadgroup")
MTL_GET(mtl_word, simd_width, "threadExecutionWidth")

// MTLBuffer.
MTL_GET(void *, contents, "contents")
MTL_GET(uint64_t, gpu_address, "gpuAddress")

// MTLResidencySet, of macOS 15; MTLCommandQueue likewise. "commit" is below.
MTL_TELL(add_allocation, "addAllocation:", (mtl_id allocation), (allocation))
MTL_TELL(remove_allocation, "removeAllocation:", (mtl_id allocation), (allocation))
MTL_DO(request_residency, "requestResidency")
MTL_TELL(add_residency_set, "addResidencySet:", (mtl_id set), (set))

// MTLCommandQueue, MTLCommandBuffer.
MTL_GET(mtl_id, command_buffer, "commandBuffer")
MTL_ASK(mtl_id, compute_encoder, "computeCommandEncoderWithDispatchType:", (mtl_word type), (type))
MTL_GET(mtl_id, blit_encoder, "blitCommandEncoder")
MTL_TELL(encode_signal, "encodeSignalEvent:value:", (mtl_id event, uint64_t value), (event, value))
MTL_TELL(encode_wait, "encodeWaitForEvent:value:", (mtl_id event, uint64_t value), (event, value))
MTL_DO(commit, "commit")
MTL_DO(wait_until_completed, "waitUntilCompleted")
MTL_GET(mtl_word, status, "status")
MTL_GET(mtl_id, error, "error")

// MTLBlitCommandEncoder. On macOS offsets and sizes are multiples of 4.
MTL_TELL(copy_bytes, "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:", (mtl_id from, mtl_word from_offset, mtl_id to, mtl_word to_offset, mtl_word size), (from, from_offset, to, to_offset, size))
MTL_TELL(fill_bytes, "fillBuffer:range:value:", (mtl_id buffer, struct mtl_range range, uint8_t value), (buffer, range, value))

// MTLComputeCommandEncoder; "endEncoding" is the blit encoder's too.
MTL_TELL(set_pipeline, "setComputePipelineState:", (mtl_id pipeline), (pipeline))
MTL_TELL(set_bytes, "setBytes:length:atIndex:", (const void *bytes, mtl_word length, mtl_word index), (bytes, length, index))
MTL_TELL(use_resource, "useResource:usage:", (mtl_id resource, mtl_word usage), (resource, usage))
MTL_TELL(dispatch, "dispatchThreadgroups:threadsPerThreadgroup:", (struct mtl_size groups, struct mtl_size threads), (groups, threads))
MTL_TELL(memory_barrier, "memoryBarrierWithScope:", (mtl_word scope), (scope))
MTL_DO(end_encoding, "endEncoding")
// clang-format on
#undef MTL_GET
#undef MTL_ASK
#undef MTL_DO
#undef MTL_TELL
