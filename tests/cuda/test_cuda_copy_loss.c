/* SPDX-License-Identifier: Apache-2.0 */
/* The loss of one of two GPUs, on the fake driver: copies between them fail, whichever of the two
 * issues them, and the other GPU works on. And calls that fail where commands wait for others. */
#include "gpus_fixture.h"
#include "runtime_gpu.h"

/* The stream of cuda:1 reports the loss of cuda:0; what it writes later is right. */
static void check_works_again(const gpus *g, sp_storage storage)
{
    CHECK_STATUS(sp_stream_synchronize(g->streams[1]), SP_DEVICE_LOST);
    fill(g->streams[1], storage, 4);
    CHECK_EQ_INT(first_other(storage, 4), -1);
    (void)sp_stream_synchronize(g->streams[0]);
}

TEST(the_loss_of_one_gpu_fails_copies_of_the_other_and_nothing_else)
{
    gpus g;
    REQUIRE(gpus_begin(&g, 2));
    fake_cuda_set_peers(false);
    const sp_storage a = new_storage_on(g.devices[0], BYTES, false);
    const sp_storage b = new_storage_on(g.devices[1], BYTES, false);
    const sp_storage other = new_storage_on(g.devices[0], BYTES, false);
    fill(g.streams[0], a, 1);
    fill(g.streams[1], b, 2);
    CHECK_OK(sp_stream_synchronize(g.streams[1]));
    gate g1 = gate_closed(g.devices[1]);
    gate_hold(&g1, g.streams[1]);
    copy(g.streams[1], b, a);
    CHECK_OK(sp_stream_synchronize(g.streams[0]));
    fake_cuda_fail_call("cuMemsetD8Async", 1, 1, CUDA_ERROR_ILLEGAL_ADDRESS);
    fill(g.streams[0], other, 3); /* `a` is held by the copy */
    CHECK_STATUS(sp_stream_synchronize(g.streams[0]), SP_DEVICE_LOST);
    gate_open(&g1);
    check_poisoned(b, SP_DEVICE_LOST, "cuda:0");
    CHECK_STATUS(sp_stream_synchronize(g.streams[1]), SP_DEVICE_LOST);
    CHECK_STATUS(sp_storage_copy_async(g.streams[1], whole(b), whole(a)), SP_DEVICE_LOST);
    CHECK_STATUS(sp_storage_copy_async(g.streams[1], whole(a), whole(b)), SP_DEVICE_LOST);
    fill(g.streams[1], b, 4); /* the other one works */
    CHECK_EQ_INT(first_other(b, 4), -1);
    gate_destroy(&g1);
    CHECK_OK(sp_storage_release(a));
    CHECK_OK(sp_storage_release(b));
    CHECK_OK(sp_storage_release(other));
    gpus_end(&g);
}

/* A kernel of the GPU is lost with it, behind or in front of a copy that is issued already. */
static void loss_begin(gpus *g)
{
    runtime_gpu_begin();
    REQUIRE(gpus_begin(g, 2));
    fake_cuda_hold(true);
    fake_cuda_fail_kernel(1, CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* What the lost GPU should have written is in memory of another device, which works. */
TEST(a_lost_gpu_poisons_what_it_should_have_written_elsewhere)
{
    gpus g;
    loss_begin(&g);
    pinned p;
    pinned_begin(&p, g.devices[1]);
    const sp_storage a = new_storage_on(g.devices[0], BYTES, false);
    const sp_storage b = new_storage_on(g.devices[1], BYTES, false);
    const sp_storage seen = new_storage_on(g.devices[1], BYTES, false);
    fill(current_stream(), p.storage, 2);
    CHECK_OK(sp_stream_synchronize(current_stream()));
    submit_slow_fill(g.streams[0], a, 3, 0);
    copy(g.streams[0], b, a);
    copy(g.streams[0], p.storage, a);
    copy(g.streams[1], seen, b);
    fake_cuda_hold(false);
    check_poisoned(b, SP_DEVICE_LOST, "kernel slow_fill");
    check_poisoned(p.storage, SP_DEVICE_LOST, "kernel slow_fill");
    check_poisoned(seen, SP_DEVICE_LOST, "kernel slow_fill");
    check_works_again(&g, b);
    CHECK_OK(sp_storage_release(a));
    CHECK_OK(sp_storage_release(b));
    CHECK_OK(sp_storage_release(seen));
    pinned_end(&p);
    gpus_end(&g);
}

TEST(a_gpu_copies_nothing_that_a_lost_one_should_have_written)
{
    gpus g;
    loss_begin(&g);
    const sp_storage a = new_storage_on(g.devices[0], BYTES, false);
    const sp_storage b = new_storage_on(g.devices[1], BYTES, false);
    submit_slow_fill(g.streams[0], a, 3, 0);
    copy(g.streams[1], b, a);
    fake_cuda_hold(false);
    check_poisoned(b, SP_DEVICE_LOST, "kernel slow_fill");
    check_works_again(&g, b);
    CHECK_OK(sp_storage_release(a));
    CHECK_OK(sp_storage_release(b));
    gpus_end(&g);
}

/* Waits for the driver's stream, whatever the library knows of it. */
static void drain(const gpus *g, int gpu)
{
    CUcontext context, popped;
    CHECK_EQ_INT(SP_CUDA(cuDevicePrimaryCtxRetain)(&context, gpu), CUDA_SUCCESS);
    CHECK_EQ_INT(SP_CUDA(cuCtxPushCurrent)(context), CUDA_SUCCESS);
    CHECK_EQ_INT(SP_CUDA(cuStreamSynchronize)(info_of(g->streams[gpu]).native), CUDA_SUCCESS);
    CHECK_EQ_INT(SP_CUDA(cuCtxPopCurrent)(&popped), CUDA_SUCCESS);
    CHECK_EQ_INT(SP_CUDA(cuDevicePrimaryCtxRelease)(gpu), CUDA_SUCCESS);
}

/* Of an event of cuda:0 by a stream of cuda:1. */
static void wait_while_a_call_fails(const char *call, const char *lost, sp_status waiting)
{
    gpus g;
    sp_event event;
    REQUIRE(gpus_begin(&g, 2));
    const sp_storage a = new_storage_on(g.devices[0], BYTES, false);
    const sp_storage b = new_storage_on(g.devices[1], BYTES, false);
    CHECK_OK(sp_event_create(NULL, &event));
    fake_cuda_hold(true);
    fill(g.streams[0], a, 1);
    CHECK_OK(sp_event_record(event, g.streams[0]));
    fake_cuda_fail_call(call, 1, 1, CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_OK(sp_stream_wait_event(g.streams[1], event));
    fake_cuda_hold(false);
    drain(&g, 0); /* it only seems to be lost: its memory is in use still */
    CHECK_STATUS(sp_storage_fill_async(g.streams[1], whole(b), "x", 1), waiting);
    if (waiting != SP_OK) CHECK_MESSAGE(lost);
    (void)sp_stream_synchronize(g.streams[1]);
    const sp_status other = waiting == SP_OK ? SP_DEVICE_LOST : SP_OK;
    CHECK_STATUS(sp_storage_fill_async(g.streams[0], whole(a), "x", 1), other);
    if (other != SP_OK) CHECK_MESSAGE(lost);
    (void)sp_stream_synchronize(g.streams[0]);
    CHECK_OK(sp_event_release(event));
    CHECK_OK(sp_storage_release(a));
    CHECK_OK(sp_storage_release(b));
    gpus_end(&g);
}

TEST(a_wait_for_another_gpu_loses_the_gpu_whose_call_has_failed)
{
    wait_while_a_call_fails("cuStreamWaitEvent", "cuStreamWaitEvent", SP_DEVICE_LOST);
    wait_while_a_call_fails("cuEventRecord", "cuEventRecord", SP_OK);
}

/* The driver does not tell whether what comes before the copy is done. */
TEST(a_copy_that_cannot_be_ordered_fails)
{
    gpus g;
    REQUIRE(gpus_begin(&g, 1));
    static const char *const calls[] = {"cuEventRecord", "cuEventQuery"};
    for (int i = 0; i < 2; i++) {
        const sp_storage gpu = new_storage_on(g.devices[0], BYTES, false);
        const sp_storage host = new_storage_on(CPU, BYTES, false);
        fill(g.streams[0], gpu, 1);
        CHECK_OK(sp_stream_synchronize(g.streams[0]));
        fake_cuda_hold(true);
        fill(g.streams[0], gpu, 2);
        fake_cuda_fail_call(calls[i], 1, 1, CUDA_ERROR_INVALID_VALUE);
        copy(g.streams[0], host, gpu);
        fake_cuda_hold(false);
        check_poisoned(host, SP_FAILED, "before a host function");
        CHECK_STATUS(sp_stream_synchronize(g.streams[0]), SP_FAILED);
        copy(g.streams[0], host, gpu);
        CHECK_EQ_INT(first_other(host, 2), -1);
        CHECK_OK(sp_storage_release(gpu));
        CHECK_OK(sp_storage_release(host));
    }
    gpus_end(&g);
}

TEST_MAIN
