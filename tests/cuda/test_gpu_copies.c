/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between a GPU and the host, and between two GPUs: by which calls of the driver, and what
 * happens when these fail. On real GPUs, or on the fake driver. */
#include <streampool/tensor.h>

#include <string.h>

#include "gpus_fixture.h"
#include "support/own_memory.h"

/* ---- host ---- */

TEST(pageable_memory_is_copied_through_pinned_memory_on_a_stream_of_either)
{
    gpus g;
    if (!gpus_begin(&g, 1)) SKIP("no GPU");
    const sp_storage host = new_storage_on(CPU, BYTES, false);
    const sp_storage gpu = new_storage_on(g.devices[0], BYTES, false);
    const sp_stream streams[] = {g.streams[0], current_stream()};
    for (int i = 0; i < 4; i++) {
        const sp_stream stream = streams[i % 2];
        fill(streams[1], host, (uint8_t)(i + 1));
        copy(stream, gpu, host);
        fill(streams[1], host, 99); /* waits until it has been read */
        CHECK_EQ_INT(first_other(gpu, (uint8_t)(i + 1)), -1);
        fill(g.streams[0], gpu, (uint8_t)(i + 50));
        copy(stream, host, gpu);
        fill(g.streams[0], gpu, 98);
        CHECK_EQ_INT(first_other(host, (uint8_t)(i + 50)), -1);
    }
    CHECK_OK(sp_storage_release(host));
    CHECK_OK(sp_storage_release(gpu));
    gpus_end(&g);
}

TEST(pinned_memory_is_copied_by_one_command_of_the_gpus_stream)
{
    gpus g;
    pinned p;
    if (!gpus_begin(&g, 1)) SKIP("no GPU");
    pinned_begin(&p, g.devices[0]);
    const sp_storage gpu = new_storage_on(g.devices[0], BYTES, false);
    for (int i = 0; i < 4; i++) {
        fill(current_stream(), p.storage, (uint8_t)(i + 1));
        CHECK_OK(sp_stream_synchronize(current_stream()));
        const uint64_t before = calls_of(SP_CUDA_CALL_cuMemcpyAsync);
        copy(g.streams[0], gpu, p.storage);
        CHECK_OK(sp_stream_synchronize(g.streams[0]));
        CHECK_EQ_U64(calls_of(SP_CUDA_CALL_cuMemcpyAsync), before + 1);
        fill(current_stream(), p.storage, 77);
        copy(g.streams[0], p.storage, gpu);
        CHECK_OK(sp_stream_synchronize(g.streams[0]));
        CHECK_EQ_U64(calls_of(SP_CUDA_CALL_cuMemcpyAsync), before + 2);
        CHECK_EQ_INT(first_other(p.storage, (uint8_t)(i + 1)), -1);
    }
    CHECK_OK(sp_storage_release(gpu));
    pinned_end(&p);
    gpus_end(&g);
}

/* The host can access both. */
TEST(pinned_memory_of_the_gpu_is_copied_from_pageable_memory_by_the_host)
{
    gpus g;
    if (!gpus_begin(&g, 1)) SKIP("no GPU");
    void *data = NULL;
    sp_storage adopted;
    sp_atomic_u32 releases = {0};
    const sp_adopt_options options = {.release = no_free, .ctx = &releases};
    CHECK_OK(sp_host_alloc(g.devices[0], BYTES, &data));
    CHECK_OK(sp_storage_adopt(g.devices[0], data, BYTES, &options, &adopted));
    const sp_storage host = new_storage_on(CPU, BYTES, false);
    fill(current_stream(), host, 5);
    copy(g.streams[0], adopted, host);
    CHECK_EQ_INT(first_other(adopted, 5), -1);
    fill(g.streams[0], adopted, 6);
    copy(g.streams[0], host, adopted);
    CHECK_EQ_INT(first_other(host, 6), -1);
    CHECK_OK(sp_storage_release(adopted));
    CHECK_OK(sp_storage_release(host));
    await_at_least(&releases, 1);
    CHECK_OK(sp_host_free(data));
    gpus_end(&g);
}

/* Memory of no bytes has no host pointer either, whatever device it is of. */
TEST(nothing_is_copied_between_empty_storages)
{
    gpus g;
    if (!gpus_begin(&g, 1)) SKIP("no GPU");
    const uint64_t before = calls_of(SP_CUDA_CALL_cuMemcpyPeerAsync);
    const sp_storage gpu = new_storage_on(g.devices[0], 0, false);
    const sp_storage own = new_storage_on(open_own_memory(false), 0, false);
    sp_storage host;
    CHECK_OK(sp_storage_adopt(CPU, NULL, 0, NULL, &host));
    const sp_storage others[] = {own, host};
    for (int i = 0; i < 2; i++) {
        copy(g.streams[0], gpu, others[i]);
        copy(g.streams[0], others[i], gpu);
        CHECK_OK(sp_stream_synchronize(g.streams[0]));
        CHECK_OK(sp_storage_release(others[i]));
    }
    CHECK_EQ_U64(calls_of(SP_CUDA_CALL_cuMemcpyPeerAsync), before);
    CHECK_OK(sp_storage_release(gpu));
    gpus_end(&g);
}

TEST(tensors_go_to_the_gpu_and_back)
{
    gpus g;
    if (!gpus_begin(&g, 1)) SKIP("no GPU");
    static float values[3000], got[3000];
    for (int i = 0; i < 3000; i++) values[i] = (float)i;
    sp_tensor here, there, back;
    CHECK_OK(sp_tensor_from_host(CPU, SP_F32, 2, (const int64_t[]){30, 100}, values, sizeof values,
                                 &here));
    CHECK_OK(sp_tensor_to(here, g.devices[0], &there));
    CHECK_OK(sp_tensor_to(there, CPU, &back));
    CHECK_OK(sp_tensor_read(back, got, sizeof got));
    CHECK_EQ_MEM(got, values, sizeof got);
    CHECK_OK(sp_tensor_release(here));
    CHECK_OK(sp_tensor_release(there));
    CHECK_OK(sp_tensor_release(back));
    gpus_end(&g);
}

/* ---- two GPUs ---- */

static void check_both_ways(const gpus *g)
{
    const sp_storage sides[] = {new_storage_on(g->devices[0], BYTES, false),
                                new_storage_on(g->devices[1], BYTES, false)};
    for (int i = 0; i < 4; i++) {
        const int from = i % 2;
        fill(g->streams[from], sides[from], (uint8_t)(i + 1));
        copy(g->streams[i / 2 % 2], sides[1 - from], sides[from]);
        fill(g->streams[from], sides[from], 90);
        CHECK_EQ_INT(first_other(sides[1 - from], (uint8_t)(i + 1)), -1);
    }
    for (int i = 0; i < 2; i++) CHECK_OK(sp_storage_release(sides[i]));
}

TEST(peers_copy_by_one_command_and_are_asked_once)
{
    gpus g;
    if (!gpus_begin(&g, 2)) SKIP("no two GPUs");
    const uint64_t copies = calls_of(SP_CUDA_CALL_cuMemcpyPeerAsync);
    const uint64_t asked = calls_of(SP_CUDA_CALL_cuDeviceCanAccessPeer);
    check_both_ways(&g);
    check_both_ways(&g);
    CHECK_EQ_U64(calls_of(SP_CUDA_CALL_cuDeviceCanAccessPeer), asked + 2);
    const uint64_t made = calls_of(SP_CUDA_CALL_cuMemcpyPeerAsync) - copies;
    if (gpu_is_fake()) CHECK_EQ_U64(made, 8);
    else test_note("%llu of 8 copies between peers", (unsigned long long)made);
    gpus_end(&g);
}

TEST(gpus_that_are_no_peers_copy_through_pinned_memory)
{
    gpus g;
    if (!gpus_begin(&g, 2)) SKIP("no two GPUs");
    if (!gpu_is_fake()) SKIP("it needs the fake driver");
    fake_cuda_set_peers(false);
    const uint64_t copies = calls_of(SP_CUDA_CALL_cuMemcpyPeerAsync);
    check_both_ways(&g);
    CHECK_EQ_U64(calls_of(SP_CUDA_CALL_cuMemcpyPeerAsync), copies);
    gpus_end(&g);
}

/* Other code in the process has enabled the access; or the driver has no room for it. */
TEST(access_may_be_enabled_already_or_fail)
{
    gpus g;
    if (!gpus_begin(&g, 2)) SKIP("no two GPUs");
    if (!gpu_is_fake()) SKIP("it needs the fake driver");
    CUcontext contexts[2];
    for (int i = 0; i < 2; i++) {
        CHECK_EQ_INT(SP_CUDA(cuDevicePrimaryCtxRetain)(&contexts[i], i), CUDA_SUCCESS);
    }
    fake_cuda_fail_call("cuCtxEnablePeerAccess", 1, 4, CUDA_ERROR_OUT_OF_MEMORY);
    check_both_ways(&g);
    CHECK_EQ_INT(SP_CUDA(cuCtxPushCurrent)(contexts[0]), CUDA_SUCCESS);
    const CUresult enabled = SP_CUDA(cuCtxEnablePeerAccess)(contexts[1], 0);
    CHECK(enabled == CUDA_SUCCESS || enabled == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    CUcontext popped;
    CHECK_EQ_INT(SP_CUDA(cuCtxPopCurrent)(&popped), CUDA_SUCCESS);
    const uint64_t copies = calls_of(SP_CUDA_CALL_cuMemcpyPeerAsync);
    check_both_ways(&g);
    CHECK_EQ_U64(calls_of(SP_CUDA_CALL_cuMemcpyPeerAsync), copies + 4);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ_INT(SP_CUDA(cuDevicePrimaryCtxRelease)(i), CUDA_SUCCESS);
    }
    gpus_end(&g);
}

/* ---- failures ---- */

TEST(a_copy_of_the_driver_that_fails_poisons_the_destination)
{
    gpus g;
    if (!gpus_begin(&g, 2)) SKIP("no two GPUs");
    if (!gpu_is_fake()) SKIP("the driver works");
    const sp_storage a = new_storage_on(g.devices[0], BYTES, false);
    const sp_storage b = new_storage_on(g.devices[1], BYTES, false);
    const sp_storage host = new_storage_on(CPU, BYTES, false);
    fill(g.streams[0], a, 1);
    copy(g.streams[0], b, a);
    copy(g.streams[0], host, a);
    CHECK_OK(sp_stream_synchronize(g.streams[0]));
    fake_cuda_fail_call("cuMemcpyPeerAsync", 1, 1, CUDA_ERROR_INVALID_VALUE);
    copy(g.streams[0], b, a);
    check_poisoned(b, SP_FAILED, "copy on stream 1 of cuda:0: cuMemcpyPeerAsync: CUDA_ERROR_INVAL");
    CHECK_STATUS(sp_stream_synchronize(g.streams[0]), SP_FAILED);
    for (uint64_t nth = 1; nth < 4; nth++) {
        fake_cuda_fail_call("cuMemcpyAsync", nth, 1, CUDA_ERROR_INVALID_VALUE);
        copy(g.streams[0], host, a);
        check_poisoned(host, SP_FAILED, "copy from cuda:0 to cpu: copy on cuda:0: cuMemcpyAsync: ");
        CHECK_STATUS(sp_stream_synchronize(g.streams[0]), SP_FAILED);
    }
    copy(g.streams[0], host, a);
    copy(g.streams[0], b, a);
    CHECK_EQ_INT(first_other(host, 1), -1);
    CHECK_EQ_INT(first_other(b, 1), -1);
    CHECK_OK(sp_storage_release(a));
    CHECK_OK(sp_storage_release(b));
    CHECK_OK(sp_storage_release(host));
    gpus_end(&g);
}

TEST(without_pinned_memory_the_copy_fails)
{
    gpus g;
    if (!gpus_begin(&g, 1)) SKIP("no GPU");
    if (!gpu_is_fake()) SKIP("it needs the fake driver");
    const sp_storage gpu = new_storage_on(g.devices[0], BYTES, false);
    const sp_storage host = new_storage_on(CPU, BYTES, false);
    fill(current_stream(), host, 3);
    fake_cuda_fail_call("cuMemHostAlloc", 1, 1000, CUDA_ERROR_OUT_OF_MEMORY);
    copy(g.streams[0], gpu, host);
    CHECK_STATUS(sp_stream_synchronize(g.streams[0]), SP_OUT_OF_MEMORY);
    CHECK_MESSAGE("copy from cpu to cuda:0: ");
    CHECK_MESSAGE("pinned memory");
    fake_cuda_reset();
    check_poisoned(gpu, SP_OUT_OF_MEMORY, "pinned memory");
    copy(g.streams[0], gpu, host);
    CHECK_EQ_INT(first_other(gpu, 3), -1);
    CHECK_OK(sp_storage_release(gpu));
    CHECK_OK(sp_storage_release(host));
    gpus_end(&g);
}

/* More copies than a GPU's queue has in flight. */
TEST(many_copies_to_a_peer_are_in_flight)
{
    gpus g;
    if (!gpus_begin(&g, 2)) SKIP("no two GPUs");
    const sp_storage a = new_storage_on(g.devices[0], 64, false);
    const sp_storage b = new_storage_on(g.devices[1], 64, false);
    for (int i = 0; i < 1500; i++) {
        fill(g.streams[0], a, (uint8_t)i);
        copy(g.streams[0], b, a);
    }
    CHECK_EQ_INT(first_other(b, (uint8_t)1499), -1);
    CHECK_OK(sp_storage_release(a));
    CHECK_OK(sp_storage_release(b));
    gpus_end(&g);
}

/* ---- threads ---- */

typedef struct crossing {
    const gpus *g;
    sp_storage sides[2];
    uint32_t rounds;
} crossing;

static void cross(void *arg, uint32_t index)
{
    const crossing *c = arg;
    const uint32_t to = index % 2;
    for (uint32_t i = 0; i < c->rounds; i++) {
        sp_stream stream;
        CHECK_OK(sp_stream_current(c->g->devices[(index / 2 + i) % 2], &stream));
        copy(stream, c->sides[to], c->sides[1 - to]);
        if (i % 16 == 15) CHECK_OK(sp_stream_synchronize(stream));
    }
}

TEST(threads_copy_in_opposite_directions)
{
    for (int are_peers = 0; are_peers < 2; are_peers++) {
        gpus g;
        if (!gpus_begin(&g, 2)) SKIP("no two GPUs");
        if (gpu_is_fake()) fake_cuda_set_peers(are_peers != 0);
        crossing c = {.g = &g, .rounds = (uint32_t)test_count(1000, 50)};
        for (int i = 0; i < 2; i++) {
            c.sides[i] = new_storage_on(g.devices[i], BYTES, false);
            fill(g.streams[i], c.sides[i], 8);
        }
        test_threads(4, cross, &c);
        for (int i = 0; i < 2; i++) {
            CHECK_EQ_INT(first_other(c.sides[i], 8), -1);
            CHECK_OK(sp_storage_release(c.sides[i]));
        }
        gpus_end(&g);
    }
}

TEST_MAIN
