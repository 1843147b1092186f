/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that compute at the same time. The test's device checks it: before its commands it waits
 * until the given number of runs are inside a command at once. The model's in-flight count is no
 * evidence: it is raised before anything is submitted. */
#include <streampool/runtime.h>

#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "base/thread.h"
#include "device/queue/engine.h"
#include "device/queue/page_memory.h"
#include "run_fixture.h"
#include "runtime/runtime_state.h"

enum { WORKERS = 4, RUNNERS = 2, ROWS = 4 };

typedef struct meeting_device {
    sp_queue_device common;
    sp_atomic_u32 wanted; /* number of commands that meet; 0: none */
    sp_atomic_u32 inside; /* commands that have entered the meeting */
    sp_atomic_u32 alone;  /* commands whose wait timed out */
} meeting_device;

static sp_status before_command(sp_queue_device *common, const char *label)
{
    (void)label;
    meeting_device *device = SP_CONTAINER_OF(common, meeting_device, common);
    const uint32_t wanted = sp_load_acquire(&device->wanted);
    if (wanted == 0 || sp_fetch_add_acq_rel(&device->inside, 1) >= wanted) return SP_OK;
    const uint64_t deadline = sp_clock_deadline(INT64_C(10000000000));
    while (sp_load_acquire(&device->inside) < wanted) {
        if (sp_clock_now() > deadline) {
            sp_fetch_add_relaxed(&device->alone, 1);
            return SP_OK;
        }
        sp_thread_yield();
    }
    return SP_OK;
}

static void meeting_close(sp_dev *base)
{
    sp_queue_device *common = sp__queue_device(base);
    sp__queue_device_deinit(common);
    sp_free(SP_CONTAINER_OF(common, meeting_device, common));
}

static const sp_device_kind meeting_kind = {.name = "meeting", .numbering = SP_DEVICE_UNBOUNDED};

static const sp_device_vtable meeting_vtable = {
    SP_QUEUE_VTABLE,
    .kind = &meeting_kind,
    .close = meeting_close,
    .memory_create = sp__page_memory_create,
    .memory_destroy = sp__page_memory_destroy,
};

/* The runtime owns it until the process ends. */
static meeting_device *meeting_open(sp_device *handle)
{
    meeting_device *device = sp_aligned_malloc(SP_CACHE_LINE, sizeof *device);
    memset(device, 0, sizeof *device);
    device->common.base.limits = (sp_device_limits){
        .name = "meeting", .memory_bytes = 1 << 30, .width = WORKERS, .run_slots = RUNNERS};
    const sp_queue_device_options options = {.engine = &sp__host_engine,
                                             .worker_count = WORKERS,
                                             .queue_bytes = 1 << 20,
                                             .nap_ns = 200000,
                                             .before_command = before_command};
    sp_rt_device *added = NULL;
    CHECK_OK(sp__queue_device_init(&device->common, &meeting_vtable, &options));
    CHECK_OK(sp__runtime_add_device(&device->common.base, &added));
    *handle = sp__rt_device_handle(added);
    return device;
}

/* The next commands meet, one per runner. */
static void arrange_meeting(meeting_device *device)
{
    sp_store_relaxed(&device->inside, 0);
    sp_store_release(&device->wanted, RUNNERS);
}

typedef struct runners {
    sp_model model;
    float in[RUNNERS][ROWS][4];
    float alone[RUNNERS][ROWS][3]; /* the result of each without concurrent runs */
    float out[RUNNERS][ROWS][3];
} runners;

static sp_status run_one(sp_model model, float in[ROWS][4], float out[ROWS][3])
{
    const sp_host_tensor x = {
        .data = in, .bytes = ROWS * sizeof in[0], .dtype = SP_F32, .rank = 2, .shape = {ROWS, 4}};
    sp_host_tensor y = {.data = out, .capacity = ROWS * sizeof out[0]};
    return sp_model_run(model, &x, 1, &y, 1);
}

static void run_beside_others(void *arg, uint32_t index)
{
    runners *r = arg;
    CHECK_OK(run_one(r->model, r->in[index], r->out[index]));
}

TEST(two_runs_compute_at_the_same_time_each_in_a_context_of_its_own)
{
    sp_model_options options = {0};
    CHECK_OK(sp_init());
    meeting_device *device = meeting_open(&options.device);
    runners r = {.model = small_model(&options)};
    data_random random = {12};
    for (uint32_t i = 0; i < RUNNERS; i++) {
        data_fill(&random, &r.in[i][0][0], 16);
        CHECK_OK(run_one(r.model, r.in[i], r.alone[i]));
    }
    const uint64_t rounds = test_count(2000, 100);
    for (uint64_t round = 0; round < rounds; round++) {
        memset(r.out, 0xff, sizeof r.out);
        arrange_meeting(device);
        test_threads(RUNNERS, run_beside_others, &r);
        REQUIRE_EQ_U64(sp_load_relaxed(&device->alone), 0);
        REQUIRE_EQ_MEM(r.out, r.alone, sizeof r.out);
    }
    sp_model_info info;
    CHECK_OK(sp_model_get_info(r.model, &info));
    CHECK_EQ_U64(info.most_in_flight, RUNNERS);
    CHECK_EQ_U64(info.context_count, RUNNERS);
    CHECK_OK(sp_model_release(r.model));
    CHECK_OK(sp_device_close(options.device));
}

TEST_MAIN
