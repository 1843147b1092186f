/* SPDX-License-Identifier: Apache-2.0 */
/* DLPack: zero-copy exchange of tensors with other libraries (PyTorch, NumPy, JAX, CuPy ...). The
 * structs are those of DLPack 1.x, byte for byte, with our own names, so a program may include the
 * original header too and cast the pointers.
 *
 * The C structs carry no stream, so each call takes a stream or event for the order. */
#ifndef STREAMPOOL_DLPACK_H
#define STREAMPOOL_DLPACK_H

#include <stdint.h>

#include <streampool/tensor.h>

SP_EXTERN_C_BEGIN

#define SP_DLPACK_MAJOR 1
#define SP_DLPACK_MINOR 0

/* Device types (DLDeviceType); only those used here. */
#define SP_DLPACK_CPU 1
#define SP_DLPACK_CUDA 2
#define SP_DLPACK_CUDA_HOST 3 /* pinned memory of the host */
#define SP_DLPACK_CUDA_MANAGED 13

/* Element type codes (DLDataTypeCode). */
#define SP_DLPACK_INT 0
#define SP_DLPACK_UINT 1
#define SP_DLPACK_FLOAT 2
#define SP_DLPACK_BFLOAT 4
#define SP_DLPACK_BOOL 6

#define SP_DLPACK_READ_ONLY ((uint64_t)1) /* flags of a managed tensor */
#define SP_DLPACK_IS_COPIED ((uint64_t)2)

/* DLDevice, DLDataType, DLTensor, DLPackVersion, DLManagedTensorVersioned. */
typedef struct sp_dlpack_device {
    int32_t device_type;
    int32_t device_id;
} sp_dlpack_device;

typedef struct sp_dlpack_dtype {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
} sp_dlpack_dtype;

typedef struct sp_dlpack_view {
    void *data;
    sp_dlpack_device device;
    int32_t ndim;
    sp_dlpack_dtype dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: contiguous */
    uint64_t byte_offset;
} sp_dlpack_view;

typedef struct sp_dlpack_version {
    uint32_t major;
    uint32_t minor;
} sp_dlpack_version;

typedef struct sp_dlpack_managed {
    sp_dlpack_version version;
    void *manager_ctx;
    void (*deleter)(struct sp_dlpack_managed *self);
    uint64_t flags;
    sp_dlpack_view dl_tensor;
} sp_dlpack_managed;

typedef struct sp_dlpack_import_options {
    sp_device device;      /* that will use the memory; zero: cpu. For GPU memory its cuda device */
    sp_event ready;        /* as in sp_adopt_options: when the producer has written the elements; */
    sp_stream ready_after; /* at most one of the two; none: they are ready now */
} sp_dlpack_import_options;

/* A tensor in the producer's memory, without a copy. On success the library owns `managed`: it
 * calls the deleter, on one of its host threads, when the last use of the memory has completed and
 * all tensors over it are released (never after sp_shutdown has returned). On failure `managed`
 * still belongs to the caller. With the read-only flag the storage is frozen, and the call waits
 * until the elements are ready. NULL options are all defaults.
 * Errors: SP_UNSUPPORTED for another major version, memory of another device than the options name,
 * elements without an sp_dtype (complex, 4 bits, several lanes);
 * SP_MISMATCH for a shape with a negative size or more than SP_MAX_RANK dimensions; SP_INVALID for
 * memory not aligned for its elements, addresses that wrap; those of sp_storage_adopt. */
SP_API sp_status sp_tensor_from_dlpack(sp_dlpack_managed *managed,
                                       const sp_dlpack_import_options *options, sp_tensor *out);

/* The tensor for a consumer, without a copy; the read-only flag says that the storage is frozen.
 * `*out` keeps a reference to the tensor until its deleter is called: once, by any thread, also
 * after sp_shutdown, when the consumer's work on the memory is done or ordered on our streams.
 * Memory of a cuda device is CUDA, or CUDA_HOST if it is adopted pinned memory; all other is CPU.
 *
 * With the zero `consumer` the call waits for all uses of the storage submitted before, so the
 * elements may be read and written at once from anywhere. Otherwise it returns at once, and only
 * work submitted to the stream `consumer` afterwards (host functions, for instance) is ordered
 * after those uses, and before later ones; the stream must be of the tensor's device.
 * Errors: a failed command that wrote the storage, for a stream one that has failed by then, since
 * later failures do not reach the consumer; those of sp_storage_host_begin. */
SP_API sp_status sp_tensor_to_dlpack(sp_tensor tensor, sp_stream consumer, sp_dlpack_managed **out);

/* The same for a consumer with a CUDA stream of the tensor's GPU, a CUstream of other code: the
 * call returns at once, and what that stream is given afterwards is ordered after the uses
 * submitted before. When the deleter is called, the memory is kept until what the stream has then
 * is done, so the consumer need not wait. Where uses wait for host functions or accesses, the call
 * waits for them. Later uses of the storage do not follow what the consumer writes: let a stream of
 * ours (sp_stream_info.native) follow the consumer's before them. SP_UNSUPPORTED for a tensor that
 * is not on a cuda device. */
SP_API sp_status sp_tensor_to_dlpack_cuda(sp_tensor tensor, void *cuda_stream,
                                          sp_dlpack_managed **out);

SP_EXTERN_C_END

#endif
