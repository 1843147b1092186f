/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of the fake driver: a context with two streams, and kernels. */
#ifndef SP_TESTS_FAKE_DRIVER_FIXTURE_H
#define SP_TESTS_FAKE_DRIVER_FIXTURE_H

#include "fake_cuda.h"
#include "support/test.h"

#define CHECK_CUDA(call, expected) CHECK_EQ_INT((int64_t)(call), (int64_t)(expected))
#define REQUIRE_CUDA(call) REQUIRE_EQ_INT((int64_t)(call), CUDA_SUCCESS)

/* The context of device 0, current from fixture_begin to fixture_end, with two streams and kernels.
 * add: *target += number. chain: *target = *target * 2 + number, so that the result depends on the
 * order. await: waits until *target, an sp_atomic_u32, is not 0. fail: fails the context. */
typedef struct fixture {
    CUcontext context;
    CUstream a, b;
    CUmodule module; /* NULL: already unloaded */
    CUfunction add, chain, await, fail;
} fixture;

void fixture_begin(fixture *f);
/* Checks that no object is live. */
void fixture_end(fixture *f);
/* The same in a failed context: `expected` is the result of every call. */
void fixture_end_failed(fixture *f, CUresult expected);
/* Unloads the kernels' module before fixture_end. */
void fixture_unload(fixture *f, CUresult expected);

CUresult launch_kernel(CUfunction function, CUstream stream, void *target, uint32_t number);

#endif
