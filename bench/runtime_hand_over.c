/* SPDX-License-Identifier: Apache-2.0 */
/* Latency of a command to an awake worker, and to a sleeping one. */
#include "base/clock.h"
#include "base/macros.h"
#include "base/thread.h"
#include "base/wait.h"
#include "bench.h"
#include "bench_futex.h"
#include "device/device.h"
#include "device/wait.h"
#include "runtime_cases.h"

#define HAND_OVERS 301
#define FALLS_ASLEEP_NS 3000000 /* three naps of a worker */

/* Wakes a sleeping thread and sleeps until that thread wakes it. */
static double sample_futex(void *ctx)
{
    sp_clock_sleep(FALLS_ASLEEP_NS);
    const uint64_t start = sp_clock_now();
    bench_futex_round(ctx);
    return (double)(sp_clock_now() - start);
}

static double futex_ping_pong_ns(void)
{
    bench_futex pair;
    bench_futex_start(&pair);
    const double ns = bench_samples(sample_futex, &pair, HAND_OVERS).median;
    bench_futex_stop(&pair);
    return ns;
}

/* A submitter that sleeps until a worker has run its command, and does not help. */
typedef struct sleeping_submitter {
    sp_stream_ref ref;
    sp_waiter waiter;
    sp_parker parker;
} sleeping_submitter;

static void wake_submitter(sp_waiter *waiter)
{
    sp_parker_unpark(&SP_CONTAINER_OF(waiter, sleeping_submitter, waiter)->parker);
}

/* Submits an empty command and flushes, so that a worker runs it. */
static sp_point submit_for_worker(const sp_stream_ref *ref)
{
    const sp_submission nothing = {0};
    sp_point point = {0};
    bench_check(sp__submit_plain(ref, &nothing, &point) == SP_OK, "submit");
    ref->queue->device->vtable->flush(ref->queue);
    return point;
}

static double sample_sleeping_worker(void *ctx)
{
    sleeping_submitter *submitter = ctx;
    sp_clock_sleep(FALLS_ASLEEP_NS);
    const uint64_t start = sp_clock_now();
    const sp_point point = submit_for_worker(&submitter->ref);
    submitter->waiter = (sp_waiter){.value = point.value, .fire = wake_submitter};
    if (sp__timeline_register(point.timeline, &submitter->waiter)) {
        sp_parker_park(&submitter->parker, SP_NO_DEADLINE);
    }
    return (double)(sp_clock_now() - start);
}

/* Submits each command when the previous one has passed: the worker that ran it is still polling
 * for work. */
static void hand_over_awake(void *ctx, uint64_t count)
{
    const sp_stream_ref *ref = ctx;
    for (uint64_t i = 0; i < count; i++) {
        const sp_point point = submit_for_worker(ref);
        while (!sp__point_has_passed(point)) sp_spin_hint();
    }
}

void bench_hand_over(void)
{
    sleeping_submitter submitter = {.ref = bench_current_ref()};
    const bench_figure awake = bench_ns(hand_over_awake, &submitter.ref);
    bench_print("hand_over_to_awake_worker", &awake, NULL, 0, 5000);
    const double bare = futex_ping_pong_ns();
    const bench_figure asleep = bench_samples(sample_sleeping_worker, &submitter, HAND_OVERS);
    bench_print("hand_over_to_sleeping_worker", &asleep, "futex ping-pong", bare, 1.5 * bare);
}
