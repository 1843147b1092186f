/* SPDX-License-Identifier: Apache-2.0 */
/* A fake CUDA driver made of threads and host memory, for tests without a GPU. Programs that test
 * the device link it, or only name it in STREAMPOOL_CUDA_DRIVER; both get the same instance. It
 * behaves as the driver does, but stricter to find mistakes:
 * - the default stream (NULL) is refused, since it would order everything;
 * - memory is freed at once, even if still in use (AddressSanitizer reports the use);
 * - copies between devices need peer access, without which the driver copies by way of the host;
 * - graph nodes without an order between them run in another order than they were added. Each
 *   stream runs its commands on its own thread. Calls on different streams share no lock, so that
 *   ThreadSanitizer sees no order that the driver does not guarantee. */
#ifndef SP_TESTS_FAKE_CUDA_H
#define SP_TESTS_FAKE_CUDA_H

#include <stdbool.h>
#include <stdint.h>

#include "device/cuda/cuda_api.h"

#define FAKE_EXPORT __attribute__((visibility("default")))

/* NOLINTBEGIN(readability-identifier-naming): the driver's names */
#define FAKE_DECLARE(name, symbol, params) FAKE_EXPORT CUresult symbol params;
SP_CUDA_LIST(FAKE_DECLARE)
#undef FAKE_DECLARE
/* NOLINTEND(readability-identifier-naming) */

/* Results that the library has no names for. */
#define FAKE_ERROR_NOT_INITIALIZED ((CUresult)3)
#define FAKE_ERROR_INVALID_CONTEXT ((CUresult)201)
#define FAKE_ERROR_INVALID_HANDLE ((CUresult)400)
#define FAKE_ERROR_NOT_FOUND ((CUresult)500)
#define FAKE_ERROR_PEER_ACCESS_UNSUPPORTED ((CUresult)217)
#define FAKE_ERROR_PEER_ACCESS_NOT_ENABLED ((CUresult)705)

#define FAKE_DEVICES 2
#define FAKE_ARCHITECTURE 90
#define FAKE_MEMORY_BYTES (UINT64_C(4) << 30) /* of each device */
#define FAKE_RANGE_UNIT ((size_t)2 << 20)
#define FAKE_MAX_PARAMS 8
#define FAKE_QUEUE_LIMIT 1024 /* commands of a stream; one more blocks its caller */

/* A kernel, called once for the whole grid on the stream's thread; params as for a launch. */
typedef void (*fake_cuda_kernel)(const uint32_t grid[3], const uint32_t block[3], void **params);

/* Images for cuModuleLoadData are texts: "FAKE\n", then a line per entry, its name and the bytes of
 * each parameter: "scale 128 16\n". A module finds an entry only if a function was registered for
 * its name before the module was loaded; NULL unregisters. Anything else is not an image. */
FAKE_EXPORT void fake_cuda_register(const char *entry, fake_cuda_kernel kernel);
/* The text to use in place of anything that is not an image, such as a real cubin; NULL: none. Not
 * copied. Not undone by a reset, as registered kernels are not. */
FAKE_EXPORT void fake_cuda_set_image(const char *text);

typedef enum fake_cuda_object {
    FAKE_RETAIN, /* of primary contexts */
    FAKE_STREAM,
    FAKE_EVENT,
    FAKE_MODULE,
    FAKE_GRAPH,
    FAKE_GRAPH_EXEC,
    FAKE_DEVICE_MEMORY,
    FAKE_PINNED_MEMORY,
    FAKE_REGISTERED_MEMORY,
    FAKE_ADDRESS_RANGE,
    FAKE_RANGE_MEMORY, /* of a handle or a mapping */
    FAKE_OBJECT_COUNT
} fake_cuda_object;

/* Number of live objects of one kind, and of all kinds. */
FAKE_EXPORT uint64_t fake_cuda_live(fake_cuda_object object);
FAKE_EXPORT uint64_t fake_cuda_live_all(void);
/* Waits until destroyed streams have run what was queued. */
FAKE_EXPORT void fake_cuda_drain(void);

/* The nth call from now (1 is the next) of a function, by its name in SP_CUDA_LIST, does nothing
 * and returns `result`, and so do the following `times - 1` calls. */
FAKE_EXPORT void fake_cuda_fail_call(const char *name, uint64_t nth, uint64_t times,
                                     CUresult result);
/* The nth kernel from now, launched alone or in a graph, is not run and fails its context with
 * `result`: no queued command of the context runs any more, and every later call returns `result`.
 * Calls that destroy still destroy. */
FAKE_EXPORT void fake_cuda_fail_kernel(uint64_t nth, CUresult result);
/* Called by a kernel: fails the context it runs in. */
FAKE_EXPORT void fake_cuda_raise(CUresult result);

/* Called by each driver call before anything else, by its thread; NULL: nothing is. */
typedef void (*fake_cuda_observer)(sp_cuda_call call);
FAKE_EXPORT void fake_cuda_observe(fake_cuda_observer observer);

/* Delay of a stream's thread before each command. */
FAKE_EXPORT void fake_cuda_set_delay(uint64_t ns);
FAKE_EXPORT void fake_cuda_set_queue_limit(uint64_t commands);
/* While held, streams start no further command. */
FAKE_EXPORT void fake_cuda_hold(bool is_held);
/* While held, cuDevicePrimaryCtxRetain does not return; the number of calls inside it. */
FAKE_EXPORT void fake_cuda_hold_retain(bool is_held);
FAKE_EXPORT uint64_t fake_cuda_retaining(void);
/* The results of cuDeviceGetAttribute for each device, and of cuDeviceGetCount (before cuInit). */
FAKE_EXPORT void fake_cuda_set_attribute(int attribute, int value);
FAKE_EXPORT void fake_cuda_set_device_count(int count);
/* Whether the devices are peers, as they are at the start. */
FAKE_EXPORT void fake_cuda_set_peers(bool are_peers);
/* The architecture that functions' PTX was compiled for; 90 at the start. */
FAKE_EXPORT void fake_cuda_set_ptx(int architecture);
/* Undoes all of the above except registered kernels, and clears the failure of contexts, which the
 * real driver does only for a new process. */
FAKE_EXPORT void fake_cuda_reset(void);

#endif
