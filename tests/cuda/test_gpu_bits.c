/* SPDX-License-Identifier: Apache-2.0 */
/* On a GPU: the CUDA kernels give the CPU's bits, for random calls of every op. Skipped without. */
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "cuda/kernel_compare.h"
#include "device/cuda/cuda.h"
#include "device/thread_record.h"
#include "device/wait.h"
#include "ops/cuda/cuda_kernels.h"
#include "support/test.h"

#define ROOM_BYTES ((uint64_t)256 << 20)
#define KEPT_BITS 255u /* of addresses: alignment is part of a case */

typedef struct gpu {
    sp_dev *device;
    sp_queue *queue;
    sp_memory room; /* the operands of one dispatch, one behind the other */
} gpu;

static sp_status submit_and_wait(const gpu *g, const sp_command *command)
{
    const sp_submission submission = {
        .commands = command, .command_count = 1, .thread = sp__thread_record()->number};
    sp_point point;
    SP_TRY(g->device->vtable->submit(g->queue, &submission, &point));
    g->device->vtable->kick(g->queue);
    return sp__point_wait(point, SP_NO_DEADLINE);
}

static sp_status run_on_gpu(const sp_dispatch *dispatch, void *const *operands, void *context)
{
    const gpu *g = context;
    sp_binding bindings[SP_MAX_BINDINGS];
    uint64_t next = 0;
    for (uint32_t i = 0; i < dispatch->binding_count; i++) {
        const uint64_t bytes = dispatch->bindings[i].bytes;
        next = ((next + KEPT_BITS) & ~(uint64_t)KEPT_BITS) + ((uintptr_t)operands[i] & KEPT_BITS);
        if (next + bytes > ROOM_BYTES) return sp__fail(SP_EXHAUSTED, "the case is too large");
        bindings[i] = (sp_binding){.memory = &g->room, .offset = next, .bytes = bytes};
        if (bytes > 0) memcpy((char *)g->room.host + next, operands[i], bytes);
        next += bytes;
    }
    const sp_command command = {.type = SP_COMMAND_DISPATCH,
                                .kernel = dispatch->kernel,
                                .grid = {dispatch->grid[0], dispatch->grid[1], dispatch->grid[2]},
                                .bindings = bindings,
                                .binding_count = dispatch->binding_count,
                                .constants = dispatch->constants,
                                .constant_bytes = dispatch->constant_bytes};
    SP_TRY(submit_and_wait(g, &command));
    for (uint32_t i = 0; i < dispatch->binding_count; i++) {
        if (!dispatch->bindings[i].is_write || bindings[i].bytes == 0) continue;
        memcpy(operands[i], (char *)g->room.host + bindings[i].offset, bindings[i].bytes);
    }
    return SP_OK;
}

TEST(kernels_on_a_gpu_have_the_bits_of_the_cpu)
{
    gpu g;
    if (sp__cuda_open(0, &g.device) != SP_OK) SKIP("no GPU");
    const sp_device_vtable *vtable = g.device->vtable;
    CHECK_OK(vtable->queue_create(g.device, 0, &(sp_queue_options){true}, &g.queue));
    CHECK_OK(vtable->staging_create(g.device, ROOM_BYTES, &g.room));
    kernel_compare compare = {.kernels = sp__cuda_kernels(), .run = run_on_gpu, .context = &g};
    for (uint32_t kind = 0; kind < kernel_case_kinds(); kind++) {
        kernel_compare_calls(&compare, kind, 5000, test_count(20000, 400));
    }
    for (int i = 0; i < SP_KERNEL_COUNT; i++) CHECK(compare.runs[i] > 0);
    vtable->staging_destroy(&g.room);
    vtable->close(g.device);
}

TEST_MAIN
