/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the fake driver share: a context with two streams, and kernels. */
#ifndef SP_TESTS_FAKE_DRIVER_FIXTURE_H
#define SP_TESTS_FAKE_DRIVER_FIXTURE_H

#include "fake_cuda.h"
#include "support/test.h"

#define CHECK_CUDA(call, expected) CHECK_EQ_INT((int64_t)(call), (int64_t)(expected))
#define REQUIRE_CUDA(call) REQUIRE_EQ_INT((int64_t)(call), CUDA_SUCCESS)

/* The context of device 0, current from fixture_begin to fixture_end, and in it two streams and
 * kernels. add: *target += number. chain: *target = *target * 2 + number, so that the result tells
 * the order. await: waits until *target, an sp_atomic_u32, is not 0. fail: fails the context. */
typedef struct fixture {
    CUcontext context;
    CUstream a, b;
    CUmodule module; /* NULL: unloaded before the end */
    CUfunction add, chain, await, fail;
} fixture;

void fixture_begin(fixture *f);
/* Nothing is left. */
void fixture_end(fixture *f);
/* The same in a failed context: `expected` is what every call returns by now. */
void fixture_end_failed(fixture *f, CUresult expected);
/* The kernels' module, where a test does not leave that to the end. */
void fixture_unload(fixture *f, CUresult expected);

CUresult launch_kernel(CUfunction function, CUstream stream, void *target, uint32_t number);

#endif
