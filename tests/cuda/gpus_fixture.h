/* SPDX-License-Identifier: Apache-2.0 */
/* One GPU or two in the runtime, and pinned memory, for tests of copies between devices. */
#ifndef SP_TESTS_GPUS_FIXTURE_H
#define SP_TESTS_GPUS_FIXTURE_H

#include "device/cuda/cuda_api.h"
#include "gpu_fixture.h"
#include "runtime_fixture.h"

#define PIECE ((uint64_t)2 << 20) /* of a copy through pinned memory */
#define BYTES (2 * PIECE + 1000)

typedef struct gpus {
    sp_device devices[2]; /* the second one: zero without a second GPU */
    sp_stream streams[2];
} gpus;

static inline bool gpus_begin(gpus *g, int wanted)
{
    runtime_begin();
    *g = (gpus){0};
    static const char *const names[] = {"cuda:0", "cuda:1"};
    for (int i = 0; i < wanted; i++) {
        if (sp_device_open(names[i], &g->devices[i]) != SP_OK) {
            runtime_end();
            return false;
        }
    }
    for (int i = 0; i < wanted; i++) g->streams[i] = new_stream_on(g->devices[i]);
    return true;
}

static inline void gpus_end(const gpus *g)
{
    if (gpu_is_fake()) fake_cuda_reset();
    for (int i = 0; i < 2 && g->devices[i].bits != 0; i++) {
        CHECK_OK(sp_stream_release(g->streams[i]));
        CHECK_OK(sp_device_close(g->devices[i]));
    }
    runtime_end();
    if (gpu_is_fake()) CHECK_EQ_U64(fake_cuda_live_all(), 0);
}

static inline uint64_t calls_of(sp_cuda_call call)
{
    return sp__cuda_call_count(call);
}

static inline void no_free(void *ctx, void *data)
{
    (void)data;
    raise_by_one(ctx);
}

/* A storage of cpu over pinned memory. */
typedef struct pinned {
    sp_storage storage;
    void *data;
    sp_atomic_u32 releases;
} pinned;

static inline void pinned_begin(pinned *p, sp_device device)
{
    CHECK_OK(sp_host_alloc(device, BYTES, &p->data));
    sp_store_relaxed(&p->releases, 0);
    const sp_adopt_options options = {.release = no_free, .ctx = &p->releases};
    CHECK_OK(sp_storage_adopt(CPU, p->data, BYTES, &options, &p->storage));
}

static inline void pinned_end(pinned *p)
{
    CHECK_OK(sp_storage_release(p->storage));
    await_at_least(&p->releases, 1);
    CHECK_OK(sp_host_free(p->data));
}

static inline void check_poisoned(sp_storage storage, sp_status status, const char *message)
{
    void *data;
    const sp_status actual = sp_storage_host_begin(storage, SP_READ, &data);
    CHECK_STATUS(actual, status);
    CHECK_MESSAGE(message);
    if (actual == SP_OK) CHECK_OK(sp_storage_host_end(storage, SP_READ));
}

#endif
