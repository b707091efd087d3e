// SPDX-License-Identifier: MIT
// The part of the CUDA driver's interface that is used, declared here so that no toolkit is needed
// to build, and found in libcuda.so.1 when the program runs. Names and types are the driver's;
// numbers are those of its binary interface.
#ifndef CUDA_BASE_DRIVER_API_H
#define CUDA_BASE_DRIVER_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUextMemory_st *CUexternalMemory;
typedef unsigned long long CUmemGenericAllocationHandle; // physical memory without an address
typedef struct {
    char bytes[16];
} CUuuid;

// Where physical memory lies, and what it may be exported as.
typedef struct {
    int type;
    int id;
} CUmemLocation;
typedef struct {
    int type;
    int requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType, gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
} CUmemAllocationProp;
typedef struct {
    CUmemLocation location;
    int flags;
} CUmemAccessDesc;
// Memory of another interface of the driver, such as Vulkan's.
typedef struct {
    int type;
    union {
        int fd;
        struct {
            void *handle;
            const void *name;
        } win32;
    } handle;
    unsigned long long size;
    unsigned flags;
    unsigned reserved[16];
} CUDA_EXTERNAL_MEMORY_HANDLE_DESC;
typedef struct {
    unsigned long long offset, size;
    unsigned flags;
    unsigned reserved[16];
} CUDA_EXTERNAL_MEMORY_BUFFER_DESC;

// A launch as a node of a graph: the first version of the struct, which drivers of all versions
// take by the symbols without a suffix.
typedef struct {
    CUfunction func;
    unsigned gridDimX, gridDimY, gridDimZ;
    unsigned blockDimX, blockDimY, blockDimZ;
    unsigned sharedMemBytes;
    void **kernelParams; // copied by the call
    void **extra;
} CUDA_KERNEL_NODE_PARAMS;

// When a node of a graph waits for another one.
typedef struct {
    unsigned char from_port, to_port, type;
    unsigned char reserved[5];
} CUgraphEdgeData;
enum { CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC = 1, CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC = 1 };

// Results that are told apart; every other one is a failure with its name (cuGetErrorName).
enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_ECC_UNCORRECTABLE = 214,
    CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217,
    CUDA_ERROR_NVLINK_UNCORRECTABLE = 220,
    CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221,
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    CUDA_ERROR_JIT_COMPILATION_DISABLED = 223,
    CUDA_ERROR_CONTAINED = 226, // a fault that the device keeps from other processes
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING = 703,
    CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
    CUDA_ERROR_PEER_ACCESS_NOT_ENABLED = 705,
    CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE = 708,
    CUDA_ERROR_TOO_MANY_PEERS = 711,
    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
    CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
    CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
    CUDA_ERROR_LAUNCH_FAILED = 719,
    CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_EXTERNAL_DEVICE = 911,
    CUDA_ERROR_UNKNOWN = 999,
};
// Whether the process can do no further work on the device after this result: those from 700 to 799
// but for the ones that are about a single call, and errors of memory, of links and of devices that
// share work with this one. The driver's documentation says so of each but the two that are called
// uncorrectable, after which what memory holds can't be relied on.
static inline bool cu_ends_context(CUresult result) {
    switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_EXTERNAL_DEVICE: return true;
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
    case CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING:
    case CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED:
    case CUDA_ERROR_PEER_ACCESS_NOT_ENABLED:
    case CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE:
    case CUDA_ERROR_TOO_MANY_PEERS:
    case CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED:
    case CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED:
    case CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE: return false;
    default: return result >= CUDA_ERROR_ILLEGAL_ADDRESS && result < 800;
    }
}

// Attributes of a device, all known before a context is made.
enum {
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_INTEGRATED = 18,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED = 99,
    CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
    CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103,
};
enum {
    CU_MEM_ALLOCATION_TYPE_PINNED = 1,
    CU_MEM_LOCATION_TYPE_DEVICE = 1,
    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1,
    CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
    CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD = 1,
};
// Of a pair of devices: whether atomic operations reach the other's memory, as over NVLink.
enum { CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED = 3 };
enum { CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8 };
enum { CU_STREAM_NON_BLOCKING = 1, CU_EVENT_DISABLE_TIMING = 2 };

// Symbols with a suffix (_v2) are what cuda.h's macros make of the plain names: the plain symbols
// are an older binary interface with 32-bit sizes, kept in the library for programs of that time.
// CU_FUNCTION(name, symbol, parameters): what it is called here, in the library.
#define CU_FUNCTIONS(CU_FUNCTION)                                                                  \
    CU_FUNCTION(cuInit, cuInit, (unsigned flags))                                                  \
    CU_FUNCTION(cuDriverGetVersion, cuDriverGetVersion, (int *out_version))                        \
    CU_FUNCTION(cuGetErrorName, cuGetErrorName, (CUresult error, const char **out_name))           \
    CU_FUNCTION(cuDeviceGetCount, cuDeviceGetCount, (int *out_count))                              \
    CU_FUNCTION(cuDeviceGet, cuDeviceGet, (CUdevice * out_device, int index))                      \
    CU_FUNCTION(cuDeviceGetName, cuDeviceGetName, (char *out_name, int size, CUdevice device))     \
    CU_FUNCTION(cuDeviceGetAttribute, cuDeviceGetAttribute,                                        \
                (int *out_value, int attribute, CUdevice device))                                  \
    CU_FUNCTION(cuDeviceGetUuid, cuDeviceGetUuid_v2, (CUuuid * out_uuid, CUdevice device))         \
    CU_FUNCTION(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId,                                          \
                (char *out_address, int size, CUdevice device))                                    \
    CU_FUNCTION(cuDeviceTotalMem, cuDeviceTotalMem_v2, (size_t * out_bytes, CUdevice device))      \
    CU_FUNCTION(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain,                                \
                (CUcontext * out_context, CUdevice device))                                        \
    CU_FUNCTION(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (CUdevice device))        \
    CU_FUNCTION(cuCtxPushCurrent, cuCtxPushCurrent_v2, (CUcontext context))                        \
    CU_FUNCTION(cuCtxPopCurrent, cuCtxPopCurrent_v2, (CUcontext * out_context))                    \
    CU_FUNCTION(cuCtxSynchronize, cuCtxSynchronize, (void))                                        \
    CU_FUNCTION(cuMemGetInfo, cuMemGetInfo_v2, (size_t * out_free, size_t * out_total))            \
    CU_FUNCTION(cuMemAlloc, cuMemAlloc_v2, (CUdeviceptr * out_pointer, size_t size))               \
    CU_FUNCTION(cuMemFree, cuMemFree_v2, (CUdeviceptr pointer))                                    \
    CU_FUNCTION(cuMemHostAlloc, cuMemHostAlloc, (void **out_pointer, size_t size, unsigned flags)) \
    CU_FUNCTION(cuMemFreeHost, cuMemFreeHost, (void *pointer))                                     \
    CU_FUNCTION(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2,                                           \
                (CUdeviceptr to, const void *from, size_t size, CUstream stream))                  \
    CU_FUNCTION(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2,                                           \
                (void *to, CUdeviceptr from, size_t size, CUstream stream))                        \
    CU_FUNCTION(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2,                                           \
                (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream))                  \
    CU_FUNCTION(cuMemsetD8Async, cuMemsetD8Async,                                                  \
                (CUdeviceptr to, unsigned char value, size_t size, CUstream stream))               \
    CU_FUNCTION(cuStreamCreate, cuStreamCreate, (CUstream * out_stream, unsigned flags))           \
    CU_FUNCTION(cuStreamDestroy, cuStreamDestroy_v2, (CUstream stream))                            \
    CU_FUNCTION(cuStreamSynchronize, cuStreamSynchronize, (CUstream stream))                       \
    CU_FUNCTION(cuStreamWaitEvent, cuStreamWaitEvent,                                              \
                (CUstream stream, CUevent event, unsigned flags))                                  \
    CU_FUNCTION(cuEventCreate, cuEventCreate, (CUevent * out_event, unsigned flags))               \
    CU_FUNCTION(cuEventRecord, cuEventRecord, (CUevent event, CUstream stream))                    \
    CU_FUNCTION(cuEventQuery, cuEventQuery, (CUevent event))                                       \
    CU_FUNCTION(cuEventSynchronize, cuEventSynchronize, (CUevent event))                           \
    CU_FUNCTION(cuEventDestroy, cuEventDestroy_v2, (CUevent event))                                \
    CU_FUNCTION(cuModuleLoadData, cuModuleLoadData, (CUmodule * out_module, const void *image))    \
    CU_FUNCTION(cuModuleUnload, cuModuleUnload, (CUmodule module))                                 \
    CU_FUNCTION(cuModuleGetFunction, cuModuleGetFunction,                                          \
                (CUfunction * out_function, CUmodule module, const char *name))                    \
    CU_FUNCTION(cuFuncSetAttribute, cuFuncSetAttribute,                                            \
                (CUfunction function, int attribute, int value))                                   \
    CU_FUNCTION(cuLaunchKernel, cuLaunchKernel,                                                    \
                (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,           \
                 unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,      \
                 CUstream stream, void **params, void **extra))                                    \
    CU_FUNCTION(cuGraphCreate, cuGraphCreate, (CUgraph * out_graph, unsigned flags))               \
    CU_FUNCTION(cuGraphDestroy, cuGraphDestroy, (CUgraph graph))                                   \
    CU_FUNCTION(cuGraphAddKernelNode, cuGraphAddKernelNode,                                        \
                (CUgraphNode * out_node, CUgraph graph, const CUgraphNode *before,                 \
                 size_t n_before, const CUDA_KERNEL_NODE_PARAMS *params))                          \
    CU_FUNCTION(cuGraphAddEventRecordNode, cuGraphAddEventRecordNode,                              \
                (CUgraphNode * out_node, CUgraph graph, const CUgraphNode *before,                 \
                 size_t n_before, CUevent event))                                                  \
    CU_FUNCTION(cuGraphInstantiate, cuGraphInstantiateWithFlags,                                   \
                (CUgraphExec * out_exec, CUgraph graph, unsigned long long flags))                 \
    CU_FUNCTION(cuGraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams,                    \
                (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params))       \
    CU_FUNCTION(cuGraphLaunch, cuGraphLaunch, (CUgraphExec exec, CUstream stream))                 \
    CU_FUNCTION(cuGraphExecDestroy, cuGraphExecDestroy, (CUgraphExec exec))                        \
    CU_FUNCTION(cuEventElapsedTime, cuEventElapsedTime,                                            \
                (float *out_milliseconds, CUevent begin, CUevent end))                             \
    CU_FUNCTION(cuDeviceCanAccessPeer, cuDeviceCanAccessPeer,                                      \
                (int *out_can, CUdevice device, CUdevice peer))                                    \
    CU_FUNCTION(cuDeviceGetP2PAttribute, cuDeviceGetP2PAttribute,                                  \
                (int *out_value, int attribute, CUdevice device, CUdevice peer))                   \
    CU_FUNCTION(cuCtxEnablePeerAccess, cuCtxEnablePeerAccess, (CUcontext peer, unsigned flags))    \
    CU_FUNCTION(cuMemcpyPeerAsync, cuMemcpyPeerAsync,                                              \
                (CUdeviceptr to, CUcontext context_to, CUdeviceptr from, CUcontext context_from,   \
                 size_t size, CUstream stream))                                                    \
    CU_FUNCTION(cuMemHostRegister, cuMemHostRegister_v2,                                           \
                (void *pointer, size_t size, unsigned flags))                                      \
    CU_FUNCTION(cuMemHostUnregister, cuMemHostUnregister, (void *pointer))                         \
    CU_FUNCTION(cuMemGetAllocationGranularity, cuMemGetAllocationGranularity,                      \
                (size_t * out_bytes, const CUmemAllocationProp *about, int option))                \
    CU_FUNCTION(cuMemAddressReserve, cuMemAddressReserve,                                          \
                (CUdeviceptr * out_begin, size_t size, size_t alignment, CUdeviceptr near,         \
                 unsigned long long flags))                                                        \
    CU_FUNCTION(cuMemAddressFree, cuMemAddressFree, (CUdeviceptr begin, size_t size))              \
    CU_FUNCTION(cuMemCreate, cuMemCreate,                                                          \
                (CUmemGenericAllocationHandle * out_memory, size_t size,                           \
                 const CUmemAllocationProp *about, unsigned long long flags))                      \
    CU_FUNCTION(cuMemRelease, cuMemRelease, (CUmemGenericAllocationHandle memory))                 \
    CU_FUNCTION(cuMemMap, cuMemMap,                                                                \
                (CUdeviceptr at, size_t size, size_t offset, CUmemGenericAllocationHandle memory,  \
                 unsigned long long flags))                                                        \
    CU_FUNCTION(cuMemUnmap, cuMemUnmap, (CUdeviceptr at, size_t size))                             \
    CU_FUNCTION(cuMemSetAccess, cuMemSetAccess,                                                    \
                (CUdeviceptr at, size_t size, const CUmemAccessDesc *who, size_t n))               \
    CU_FUNCTION(cuMemExportToShareableHandle, cuMemExportToShareableHandle,                        \
                (void *out_handle, CUmemGenericAllocationHandle memory, int type,                  \
                 unsigned long long flags))                                                        \
    CU_FUNCTION(cuMemImportFromShareableHandle, cuMemImportFromShareableHandle,                    \
                (CUmemGenericAllocationHandle * out_memory, void *handle, int type))               \
    CU_FUNCTION(cuImportExternalMemory, cuImportExternalMemory,                                    \
                (CUexternalMemory * out_memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *about))    \
    CU_FUNCTION(cuExternalMemoryGetMappedBuffer, cuExternalMemoryGetMappedBuffer,                  \
                (CUdeviceptr * out_pointer, CUexternalMemory memory,                               \
                 const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *about))                                   \
    CU_FUNCTION(cuDestroyExternalMemory, cuDestroyExternalMemory, (CUexternalMemory memory))

// Those that drivers of the least version don't have: NULL there.
#define CU_LATER_FUNCTIONS(CU_FUNCTION)                                                            \
    CU_FUNCTION(cuGraphAddDependencies, cuGraphAddDependencies_v2, /* 12.3 */                      \
                (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,                    \
                 const CUgraphEdgeData *edges, size_t n))

// Filled once before any thread can use it, constant afterwards: reading needs no lock.
struct cu_api {
#define CU_FUNCTION_MEMBER(name, symbol, parameters) CUresult(*name) parameters;
    CU_FUNCTIONS(CU_FUNCTION_MEMBER)
    CU_LATER_FUNCTIONS(CU_FUNCTION_MEMBER)
#undef CU_FUNCTION_MEMBER
};

#endif
