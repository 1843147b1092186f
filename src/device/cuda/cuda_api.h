/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA driver, loaded at run time: one build works with and without a GPU, and needs no
 * toolkit. The declarations are ours, of the driver's binary interface (CUDA driver API, versions
 * 12 and later); names are the driver's.
 *
 * Calls go through one table, which counts them, so tests can assert which calls a steady state
 * makes.
 *
 *     SP_CUDA(cuMemAlloc)(&address, bytes)   the function, counted; a CUresult */
#ifndef SP_DEVICE_CUDA_API_H
#define SP_DEVICE_CUDA_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <streampool/status.h>

#include "base/atomic.h"

/* NOLINTBEGIN(readability-identifier-naming): the driver's names */
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

typedef enum CUresult {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_DEINITIALIZED = 4,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_ECC_UNCORRECTABLE = 214,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_ERROR_LAUNCH_TIMEOUT = 702,
    CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
    CUDA_ERROR_ASSERT = 710,
    CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
    CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
    CUDA_ERROR_MISALIGNED_ADDRESS = 716,
    CUDA_ERROR_INVALID_ADDRESS_SPACE = 717,
    CUDA_ERROR_INVALID_PC = 718,
    CUDA_ERROR_LAUNCH_FAILED = 719
} CUresult;

enum {
    CU_CTX_SCHED_AUTO = 0,
    CU_STREAM_NON_BLOCKING = 1,
    CU_EVENT_DEFAULT = 0,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_MEMHOSTALLOC_PORTABLE = 1,
    CU_MEMHOSTALLOC_DEVICEMAP = 2,
    CU_MEMHOSTREGISTER_PORTABLE = 1,
    CU_MEMHOSTREGISTER_DEVICEMAP = 2,
    CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
    CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
    CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
    CU_MEM_ALLOCATION_TYPE_PINNED = 1,
    CU_MEM_LOCATION_TYPE_DEVICE = 1,
    CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
    CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
    CU_FUNC_ATTRIBUTE_PTX_VERSION = 5,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC = 1,
    CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC = 1
};

typedef struct CUgraphEdgeData {
    unsigned char from_port, to_port, type, reserved[5];
} CUgraphEdgeData;

typedef unsigned long long CUmemGenericAllocationHandle;

typedef struct CUmemLocation {
    int type, id;
} CUmemLocation;

typedef struct CUmemAllocationProp {
    int type, requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    unsigned char allocFlags[8];
} CUmemAllocationProp;

typedef struct CUmemAccessDesc {
    CUmemLocation location;
    int flags;
} CUmemAccessDesc;

typedef struct CUDA_KERNEL_NODE_PARAMS {
    CUfunction func;
    unsigned int gridDimX, gridDimY, gridDimZ;
    unsigned int blockDimX, blockDimY, blockDimZ;
    unsigned int sharedMemBytes;
    void **kernelParams;
    void **extra;
    void *kern;
    CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;

typedef struct CUDA_MEMSET_NODE_PARAMS {
    CUdeviceptr dst;
    size_t pitch; /* of rows of `width` elements, in bytes */
    unsigned int value, elementSize;
    size_t width, height;
} CUDA_MEMSET_NODE_PARAMS;

typedef enum CUmemorytype {
    CU_MEMORYTYPE_HOST = 1,
    CU_MEMORYTYPE_DEVICE = 2,
    CU_MEMORYTYPE_UNIFIED = 4
} CUmemorytype;

typedef struct CUDA_MEMCPY3D {
    size_t srcXInBytes, srcY, srcZ, srcLOD;
    CUmemorytype srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    void *srcArray, *reserved0;
    size_t srcPitch, srcHeight;
    size_t dstXInBytes, dstY, dstZ, dstLOD;
    CUmemorytype dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    void *dstArray, *reserved1;
    size_t dstPitch, dstHeight;
    size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D;

/* name, exported symbol, parameters: what every driver has */
#define SP_CUDA_REQUIRED_LIST(X)                                                                   \
    X(cuInit, cuInit, (unsigned int flags))                                                        \
    X(cuGetErrorName, cuGetErrorName, (CUresult error, const char **name))                         \
    X(cuGetErrorString, cuGetErrorString, (CUresult error, const char **text))                     \
    X(cuDeviceGetCount, cuDeviceGetCount, (int *count))                                            \
    X(cuDeviceGet, cuDeviceGet, (CUdevice * device, int ordinal))                                  \
    X(cuDeviceTotalMem, cuDeviceTotalMem_v2, (size_t *bytes, CUdevice device))                     \
    X(cuDeviceGetAttribute, cuDeviceGetAttribute, (int *value, int attribute, CUdevice device))    \
    X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))  \
    X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (CUdevice device))                  \
    X(cuCtxPushCurrent, cuCtxPushCurrent_v2, (CUcontext context))                                  \
    X(cuCtxPopCurrent, cuCtxPopCurrent_v2, (CUcontext * context))                                  \
    X(cuDeviceCanAccessPeer, cuDeviceCanAccessPeer,                                                \
      (int *can_access, CUdevice device, CUdevice peer))                                           \
    X(cuCtxEnablePeerAccess, cuCtxEnablePeerAccess, (CUcontext peer, unsigned int flags))          \
    X(cuMemAlloc, cuMemAlloc_v2, (CUdeviceptr * address, size_t bytes))                            \
    X(cuMemFree, cuMemFree_v2, (CUdeviceptr address))                                              \
    X(cuMemAddressReserve, cuMemAddressReserve,                                                    \
      (CUdeviceptr * address, size_t bytes, size_t alignment, CUdeviceptr wanted,                  \
       unsigned long long flags))                                                                  \
    X(cuMemAddressFree, cuMemAddressFree, (CUdeviceptr address, size_t bytes))                     \
    X(cuMemGetAllocationGranularity, cuMemGetAllocationGranularity,                                \
      (size_t *bytes, const CUmemAllocationProp *properties, int option))                          \
    X(cuMemCreate, cuMemCreate,                                                                    \
      (CUmemGenericAllocationHandle * memory, size_t bytes, const CUmemAllocationProp *properties, \
       unsigned long long flags))                                                                  \
    X(cuMemRelease, cuMemRelease, (CUmemGenericAllocationHandle memory))                           \
    X(cuMemMap, cuMemMap,                                                                          \
      (CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle memory,      \
       unsigned long long flags))                                                                  \
    X(cuMemSetAccess, cuMemSetAccess,                                                              \
      (CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count))            \
    X(cuMemUnmap, cuMemUnmap, (CUdeviceptr address, size_t bytes))                                 \
    X(cuMemHostAlloc, cuMemHostAlloc, (void **address, size_t bytes, unsigned int flags))          \
    X(cuMemFreeHost, cuMemFreeHost, (void *address))                                               \
    X(cuMemHostRegister, cuMemHostRegister_v2, (void *address, size_t bytes, unsigned int flags))  \
    X(cuMemHostUnregister, cuMemHostUnregister, (void *address))                                   \
    X(cuPointerGetAttribute, cuPointerGetAttribute,                                                \
      (void *value, int attribute, CUdeviceptr address))                                           \
    X(cuMemcpyAsync, cuMemcpyAsync,                                                                \
      (CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream))                     \
    X(cuMemcpyPeerAsync, cuMemcpyPeerAsync,                                                        \
      (CUdeviceptr target, CUcontext target_context, CUdeviceptr source, CUcontext source_context, \
       size_t bytes, CUstream stream))                                                             \
    X(cuMemsetD8Async, cuMemsetD8Async,                                                            \
      (CUdeviceptr target, unsigned char value, size_t count, CUstream stream))                    \
    X(cuMemsetD16Async, cuMemsetD16Async,                                                          \
      (CUdeviceptr target, unsigned short value, size_t count, CUstream stream))                   \
    X(cuMemsetD32Async, cuMemsetD32Async,                                                          \
      (CUdeviceptr target, unsigned int value, size_t count, CUstream stream))                     \
    X(cuMemsetD2D32Async, cuMemsetD2D32Async,                                                      \
      (CUdeviceptr target, size_t pitch, unsigned int value, size_t width, size_t height,          \
       CUstream stream))                                                                           \
    X(cuModuleLoadData, cuModuleLoadData, (CUmodule * module, const void *image))                  \
    X(cuModuleUnload, cuModuleUnload, (CUmodule module))                                           \
    X(cuModuleGetFunction, cuModuleGetFunction,                                                    \
      (CUfunction * function, CUmodule module, const char *name))                                  \
    X(cuFuncGetAttribute, cuFuncGetAttribute, (int *value, int attribute, CUfunction function))    \
    X(cuFuncSetAttribute, cuFuncSetAttribute, (CUfunction function, int attribute, int value))     \
    X(cuLaunchKernel, cuLaunchKernel,                                                              \
      (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,         \
       unsigned int block_x, unsigned int block_y, unsigned int block_z,                           \
       unsigned int shared_bytes, CUstream stream, void **params, void **extra))                   \
    X(cuStreamCreate, cuStreamCreate, (CUstream * stream, unsigned int flags))                     \
    X(cuStreamDestroy, cuStreamDestroy_v2, (CUstream stream))                                      \
    X(cuStreamSynchronize, cuStreamSynchronize, (CUstream stream))                                 \
    X(cuStreamWaitEvent, cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags))  \
    X(cuEventCreate, cuEventCreate, (CUevent * event, unsigned int flags))                         \
    X(cuEventDestroy, cuEventDestroy_v2, (CUevent event))                                          \
    X(cuEventRecord, cuEventRecord, (CUevent event, CUstream stream))                              \
    X(cuEventQuery, cuEventQuery, (CUevent event))                                                 \
    X(cuEventSynchronize, cuEventSynchronize, (CUevent event))                                     \
    X(cuEventElapsedTime, cuEventElapsedTime,                                                      \
      (float *milliseconds, CUevent first, CUevent second))                                        \
    X(cuGraphCreate, cuGraphCreate, (CUgraph * graph, unsigned int flags))                         \
    X(cuGraphDestroy, cuGraphDestroy, (CUgraph graph))                                             \
    X(cuGraphAddKernelNode, cuGraphAddKernelNode_v2,                                               \
      (CUgraphNode * node, CUgraph graph, const CUgraphNode *behind, size_t behind_count,          \
       const CUDA_KERNEL_NODE_PARAMS *params))                                                     \
    X(cuGraphAddMemcpyNode, cuGraphAddMemcpyNode,                                                  \
      (CUgraphNode * node, CUgraph graph, const CUgraphNode *behind, size_t behind_count,          \
       const CUDA_MEMCPY3D *params, CUcontext context))                                            \
    X(cuGraphAddMemsetNode, cuGraphAddMemsetNode,                                                  \
      (CUgraphNode * node, CUgraph graph, const CUgraphNode *behind, size_t behind_count,          \
       const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context))                                  \
    X(cuGraphInstantiate, cuGraphInstantiateWithFlags,                                             \
      (CUgraphExec * exec, CUgraph graph, unsigned long long flags))                               \
    X(cuGraphExecDestroy, cuGraphExecDestroy, (CUgraphExec exec))                                  \
    X(cuGraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams_v2,                           \
      (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params))                 \
    X(cuGraphUpload, cuGraphUpload, (CUgraphExec exec, CUstream stream))                           \
    X(cuGraphLaunch, cuGraphLaunch, (CUgraphExec exec, CUstream stream))

/* What drivers since 12.3 have; NULL in others. */
#define SP_CUDA_OPTIONAL_LIST(X)                                                                   \
    X(cuGraphAddDependencies, cuGraphAddDependencies_v2,                                           \
      (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,                              \
       const CUgraphEdgeData *edges, size_t count))

#define SP_CUDA_LIST(X) SP_CUDA_REQUIRED_LIST(X) SP_CUDA_OPTIONAL_LIST(X)

typedef enum sp_cuda_call {
#define SP_CUDA_ENUMERATOR(name, symbol, params) SP_CUDA_CALL_##name,
    SP_CUDA_LIST(SP_CUDA_ENUMERATOR)
#undef SP_CUDA_ENUMERATOR
        SP_CUDA_CALL_COUNT
} sp_cuda_call;

typedef struct sp_cuda_api {
#define SP_CUDA_MEMBER(name, symbol, params) CUresult(*name) params;
    SP_CUDA_LIST(SP_CUDA_MEMBER)
#undef SP_CUDA_MEMBER
} sp_cuda_api;
/* NOLINTEND(readability-identifier-naming) */

/* The driver's functions, and the number of calls of each: relaxed, they order nothing. */
extern sp_cuda_api sp__cuda_api;
extern sp_atomic_u64 sp__cuda_calls[SP_CUDA_CALL_COUNT];

/* Opens the driver once per process. SP_UNSUPPORTED with the reason if there is no driver or no
 * device. The library is STREAMPOOL_CUDA_DRIVER, or the system's libcuda.so.1. */
sp_status sp__cuda_api_open(void);

/* Number of calls of one function so far. */
uint64_t sp__cuda_call_count(sp_cuda_call call);

/* SP_OK, or the error as a status: SP_OUT_OF_MEMORY, SP_DEVICE_LOST for errors that make a context
 * unusable, SP_FAILED; the message has the call, the error and `what` (may be NULL). */
sp_status sp__cuda_check(CUresult result, const char *call, const char *what);

#define SP_CUDA(name)                                                                              \
    (sp_fetch_add_relaxed(&sp__cuda_calls[SP_CUDA_CALL_##name], (uint64_t)1), sp__cuda_api.name)

/* Calls, and returns from the function with the status if it is not SP_OK. */
#define SP_CUDA_TRY(name, ...) SP_TRY(sp__cuda_check(SP_CUDA(name)(__VA_ARGS__), #name, NULL))

#endif
