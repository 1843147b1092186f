/* SPDX-License-Identifier: Apache-2.0 */
/* Loads libcuda and the kernels of the library. */
#include "cuda/cuda_driver.h"

#include <dlfcn.h>
#include <string.h>

#include "ops/cuda/cuda_kernels.h"
#include "support/test.h"

/* name of the symbol, name here, parameters; all return 0 for success */
#define DRIVER_LIST(X)                                                                             \
    X(cuInit, init, (unsigned))                                                                    \
    X(cuDeviceGet, device_get, (int *, int))                                                       \
    X(cuDevicePrimaryCtxRetain, retain, (void **, int))                                            \
    X(cuCtxSetCurrent, set_current, (void *))                                                      \
    X(cuCtxSynchronize, synchronize, (void))                                                       \
    X(cuModuleLoadData, load, (void **, const void *))                                             \
    X(cuModuleGetFunction, function, (void **, void *, const char *))                              \
    X(cuMemAlloc_v2, alloc, (uint64_t *, size_t))                                                  \
    X(cuMemcpyHtoD_v2, to_gpu, (uint64_t, const void *, size_t))                                   \
    X(cuMemcpyDtoH_v2, from_gpu, (void *, uint64_t, size_t))                                       \
    X(cuLaunchKernel, launch,                                                                      \
      (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,       \
       void **, void **))                                                                          \
    X(cuEventCreate, event_create, (void **, unsigned))                                            \
    X(cuEventRecord, event_record, (void *, void *))                                               \
    X(cuEventSynchronize, event_synchronize, (void *))                                             \
    X(cuEventElapsedTime, elapsed, (float *, void *, void *))

static struct {
#define DRIVER_MEMBER(symbol, name, parameters) int(*name) parameters;
    DRIVER_LIST(DRIVER_MEMBER)
#undef DRIVER_MEMBER
    void *functions[SP_KERNEL_COUNT];
    void *laps[2];
    bool has_lap;
} cu;

static bool find_symbols(void *library)
{
    void *symbol;
#define DRIVER_FIND(symbol_name, name, parameters)                                                 \
    symbol = dlsym(library, #symbol_name);                                                         \
    if (symbol == NULL) return false;                                                              \
    memcpy(&cu.name, &symbol, sizeof(symbol)); /* an object pointer becomes a function pointer */
    DRIVER_LIST(DRIVER_FIND)
#undef DRIVER_FIND
    return true;
}

bool cuda_driver_open(const char **why)
{
    *why = "libcuda.so.1 is not there";
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL || !find_symbols(library)) return false;
    *why = "this build has no binaries of the CUDA kernels";
    if (sp__cuda_program.binary == NULL) return false;
    int device;
    void *context, *module;
    *why = "there is no GPU";
    if (cu.init(0) != 0 || cu.device_get(&device, 0) != 0) return false;
    *why = "the GPU does not load the kernels";
    if (cu.retain(&context, device) != 0 || cu.set_current(context) != 0) return false;
    if (cu.load(&module, sp__cuda_program.binary) != 0) return false;
    for (int i = 0; i < SP_KERNEL_COUNT; i++) {
        const char *entry = sp__cuda_kernels()[i].gpu->entry;
        if (cu.function(&cu.functions[i], module, entry) != 0) return false;
    }
    return cu.event_create(&cu.laps[0], 0) == 0 && cu.event_create(&cu.laps[1], 0) == 0;
}

uint64_t cuda_driver_memory(uint64_t bytes)
{
    uint64_t address = 0;
    return cu.alloc(&address, (size_t)bytes) == 0 ? address : 0;
}

bool cuda_driver_to_gpu(uint64_t to, const void *from, uint64_t bytes)
{
    return bytes == 0 || cu.to_gpu(to, from, (size_t)bytes) == 0;
}

bool cuda_driver_from_gpu(void *to, uint64_t from, uint64_t bytes)
{
    return bytes == 0 || cu.from_gpu(to, from, (size_t)bytes) == 0;
}

bool cuda_driver_launch(const sp_dispatch *dispatch, const uint64_t *addresses)
{
    const sp_gpu_kernel *gpu = dispatch->kernel->gpu;
    uint64_t bindings[SP_MAX_BINDINGS] = {0};
    unsigned char constants[SP_MAX_CONSTANT_BYTES];
    memcpy(bindings, addresses, dispatch->binding_count * sizeof(*bindings));
    memcpy(constants, dispatch->constants, sizeof(constants));
    sp_launch_shape s;
    gpu->shape(constants, &s);
    if (s.grid[0] == 0 || s.grid[1] == 0 || s.grid[2] == 0) return true;
    void *parameters[] = {bindings, constants};
    return cu.launch(cu.functions[gpu->index], s.grid[0], s.grid[1], s.grid[2], s.block[0],
                     s.block[1], s.block[2], s.shared_bytes, NULL, parameters, NULL) == 0;
}

bool cuda_driver_synchronize(void)
{
    return cu.synchronize() == 0;
}

double cuda_driver_lap_us(void)
{
    float ms = 0;
    void *const before = cu.laps[0];
    cu.laps[0] = cu.laps[1];
    cu.laps[1] = before;
    cu.event_record(cu.laps[0], NULL);
    cu.event_synchronize(cu.laps[0]);
    if (cu.has_lap) cu.elapsed(&ms, cu.laps[1], cu.laps[0]);
    cu.has_lap = true;
    return (double)ms * 1000.0;
}
