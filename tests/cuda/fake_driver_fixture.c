/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of the fake driver's tests. */
#include "fake_driver_fixture.h"

#include "base/atomic.h"
#include "base/thread.h"

static void run_add(const uint32_t grid[3], const uint32_t block[3], void **params)
{
    (void)block;
    uint32_t *target = *(uint32_t **)params[0];
    *target += *(const uint32_t *)params[1] * grid[0];
}

static void run_chain(const uint32_t grid[3], const uint32_t block[3], void **params)
{
    (void)grid, (void)block;
    uint32_t *target = *(uint32_t **)params[0];
    *target = *target * 2 + *(const uint32_t *)params[1];
}

static void run_await(const uint32_t grid[3], const uint32_t block[3], void **params)
{
    (void)grid, (void)block;
    sp_atomic_u32 *flag = *(sp_atomic_u32 **)params[0];
    while (sp_load_acquire(flag) == 0) sp_thread_yield();
}

static void run_fail(const uint32_t grid[3], const uint32_t block[3], void **params)
{
    (void)grid, (void)block, (void)params;
    fake_cuda_raise(CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void load_kernels(fixture *f)
{
    fake_cuda_register("add", run_add);
    fake_cuda_register("chain", run_chain);
    fake_cuda_register("await", run_await);
    fake_cuda_register("fail", run_fail);
    REQUIRE_CUDA(cuModuleLoadData(&f->module, "FAKE\nadd 8 4\nchain 8 4\nawait 8\nfail\n"));
    REQUIRE_CUDA(cuModuleGetFunction(&f->add, f->module, "add"));
    REQUIRE_CUDA(cuModuleGetFunction(&f->chain, f->module, "chain"));
    REQUIRE_CUDA(cuModuleGetFunction(&f->await, f->module, "await"));
    REQUIRE_CUDA(cuModuleGetFunction(&f->fail, f->module, "fail"));
}

void fixture_begin(fixture *f)
{
    *f = (fixture){0};
    fake_cuda_reset();
    REQUIRE_CUDA(cuInit(0));
    REQUIRE_CUDA(cuDevicePrimaryCtxRetain(&f->context, 0));
    REQUIRE_CUDA(cuCtxPushCurrent_v2(f->context));
    REQUIRE_CUDA(cuStreamCreate(&f->a, CU_STREAM_NON_BLOCKING));
    REQUIRE_CUDA(cuStreamCreate(&f->b, CU_STREAM_NON_BLOCKING));
    load_kernels(f);
}

void fixture_unload(fixture *f, CUresult expected)
{
    CHECK_CUDA(cuModuleUnload(f->module), expected);
    f->module = NULL;
}

void fixture_end_failed(fixture *f, CUresult expected)
{
    if (f->module != NULL) fixture_unload(f, expected);
    CHECK_CUDA(cuStreamDestroy_v2(f->a), expected);
    CHECK_CUDA(cuStreamDestroy_v2(f->b), expected);
    fake_cuda_drain();
    CHECK_CUDA(cuCtxPopCurrent_v2(NULL), CUDA_SUCCESS);
    CHECK_CUDA(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
    CHECK_EQ_U64(fake_cuda_live_all(), 0);
    fake_cuda_reset();
}

void fixture_end(fixture *f)
{
    fixture_end_failed(f, CUDA_SUCCESS);
}

CUresult launch_kernel(CUfunction function, CUstream stream, void *target, uint32_t number)
{
    void *params[] = {&target, &number};
    return cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL);
}
