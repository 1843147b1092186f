/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of threads that share one stream: they leave it, unless they must follow what it has. There
 * is one stream besides the default one, which the main thread has. */
#include <streampool/stream.h>

#include "base/clock.h"
#include "base/thread.h"
#include "combining_fixture.h"
#include "device/device.h"
#include "run_fixture.h"
#include "runtime/runtime_state.h"
#include "support/malloc_count.h"

#define THREADS 3

typedef struct sharers {
    sp_model model;
    small_row expected;
    sp_stream stream; /* of the first thread */
    sp_atomic_u32 ready, lent, ended;
    uint32_t rounds;
    malloc_span span;
} sharers;

static sp_stream_ref stream_of(sp_stream stream)
{
    sp_stream_ref ref;
    CHECK_OK(sp__stream_find(stream, &ref));
    return ref;
}

static uint64_t submissions_of(sp_stream stream)
{
    sp_queue *queue = stream_of(stream).queue;
    return queue->device->vtable->last_value(queue);
}

/* Of submitted runs and batches: all queues exist. */
static uint64_t submissions_of_submit_queues(void)
{
    sp_rt_device *device = NULL;
    uint64_t sum = 0;
    CHECK_OK(sp__rt_device_find((sp_device){0}, &device));
    CHECK_OK(sp__submit_queues_open(device, SP_SUBMIT_QUEUES));
    for (uint32_t i = 0; i < sp__submit_queues_count(device); i++) {
        sum += device->dev->vtable->last_value(sp__submit_queue_at(device, i));
    }
    return sum;
}

/* Returns when all threads have the stream. */
static sp_stream stream_join(sharers *all)
{
    sp_stream stream;
    CHECK_OK(sp_stream_current((sp_device){0}, &stream));
    sp_fetch_add_acq_rel(&all->ready, 1);
    await_count(&all->ready, THREADS);
    CHECK(sp__stream_is_shared(stream_of(stream).stream));
    return stream;
}

/* The streams of threads that have ended would have one sharer less. */
static void stream_leave(sharers *all)
{
    sp_fetch_add_acq_rel(&all->ended, 1);
    await_count(&all->ended, THREADS);
}

static void check_run(const sharers *all)
{
    const small_row row = small_run(all->model);
    CHECK(small_is_same(&row, &all->expected));
}

static void run_apart(void *arg, uint32_t index)
{
    sharers *all = arg;
    (void)index;
    const sp_stream stream = stream_join(all);
    const uint64_t before = submissions_of(stream);
    check_run(all); /* the first run of a thread may allocate */
    malloc_span_start(&all->span);
    for (uint32_t i = 0; i < all->rounds; i++) check_run(all);
    malloc_span_end(&all->span);
    CHECK_EQ_U64(submissions_of(stream), before);
    stream_leave(all);
}

TEST(runs_of_threads_that_share_a_stream_do_not_use_it)
{
    sharers all = {.model = small_model(NULL),
                   .rounds = (uint32_t)test_count(20000, 1000),
                   .span = {.threads = THREADS}};
    all.expected = small_run(all.model);
    const uint64_t submitted = submissions_of_submit_queues();
    test_threads(THREADS, run_apart, &all);
    CHECK_EQ_U64(submissions_of_submit_queues(), submitted); /* nor what others wait behind */
    if (malloc_is_counted()) CHECK_EQ_U64(all.span.after - all.span.before, 0);
    CHECK_OK(sp_model_release(all.model));
}

static void run_on_lent(void *arg, uint32_t index)
{
    sharers *all = arg;
    const sp_stream own = stream_join(all);
    if (index == 0) all->stream = own;
    sp_fetch_add_acq_rel(&all->lent, 1);
    await_count(&all->lent, THREADS);
    if (index == 1) CHECK_OK(sp_stream_set_current(all->stream));
    sp_fetch_add_acq_rel(&all->lent, 1);
    await_count(&all->lent, 2 * THREADS);
    if (index < 2) {
        for (uint32_t i = 0; i < all->rounds; i++) check_run(all);
    }
    stream_leave(all);
}

TEST(runs_of_threads_that_have_made_one_stream_current_stay_on_it)
{
    sharers all = {.model = small_model(NULL), .rounds = (uint32_t)test_count(2000, 200)};
    all.expected = small_run(all.model);
    sp_stream stream;
    CHECK_OK(sp_stream_from_pool((sp_device){0}, &stream)); /* a further lease of the one stream */
    const uint64_t before = submissions_of(stream);
    test_threads(THREADS, run_on_lent, &all);
    CHECK_EQ_U64(submissions_of(stream), before + 2 * all.rounds);
    CHECK_OK(sp_stream_release(stream));
    CHECK_OK(sp_model_release(all.model));
}

/* ---- failures ---- */

static void run_failing(void *arg, uint32_t index)
{
    sharers *all = arg;
    (void)index;
    (void)stream_join(all);
    const int64_t wrong = TABLE_ROWS;
    float out[TABLE_WIDTH];
    const sp_host_tensor x = table_input(&wrong);
    sp_host_tensor y = output_y(out, TABLE_WIDTH);
    for (uint32_t i = 0; i < all->rounds; i++) {
        CHECK_STATUS(sp_model_run(all->model, &x, 1, &y, 1), SP_INVALID);
        CHECK_MESSAGE(" on cpu: ");
    }
    stream_leave(all);
}

/* Nobody else asks for them: they would fill a log for each queue. */
TEST(failures_of_runs_that_have_left_their_stream_are_not_kept)
{
    sharers all = {.model = table_model(NULL), .rounds = (uint32_t)test_count(2000, 100)};
    test_threads(THREADS, run_failing, &all);
    sp_rt_device *device = NULL;
    CHECK_OK(sp__rt_device_find((sp_device){0}, &device));
    for (uint32_t i = 0; i < device->dev->limits.run_slots; i++) {
        sp_fault first;
        sp_queue *queue = sp__run_queue_at(device, i);
        CHECK(queue != NULL);
        if (queue == NULL) continue;
        CHECK_EQ_U64(sp__timeline_unreported(&queue->timeline, &first), 0);
    }
    CHECK_OK(sp_model_release(all.model));
}

/* ---- order ---- */

typedef struct pause {
    sharers all;
    sp_atomic_u32 is_submitted;
    sp_atomic_u32 has_run;    /* the run that is to follow has returned */
    sp_atomic_u32 has_passed; /* so has the host function */
} pause;

/* Long enough for a run that does not follow it. */
static void pause_pass(void *ctx, sp_status status)
{
    pause *p = ctx;
    CHECK_OK(status);
    const uint64_t until = sp_clock_now() + 20000000u;
    while (sp_load_acquire(&p->has_run) == 0 && sp_clock_now() < until) sp_thread_yield();
    sp_store_release(&p->has_passed, 1);
}

static void run_behind(void *arg, uint32_t index)
{
    pause *p = arg;
    const sp_stream stream = stream_join(&p->all);
    if (index == 0) {
        CHECK_OK(sp_stream_host_function(stream, pause_pass, p));
        sp_store_release(&p->is_submitted, 1);
    } else {
        await_count(&p->is_submitted, 1);
        check_run(&p->all);
        CHECK_EQ_U64(sp_load_acquire(&p->has_passed), 1);
        sp_store_release(&p->has_run, 1);
    }
    stream_leave(&p->all);
}

TEST(a_run_on_a_shared_stream_follows_what_another_thread_has_submitted_to_it)
{
    for (uint64_t i = 0; i < test_count(50, 3); i++) {
        pause p = {.all.model = small_model(NULL)};
        p.all.expected = small_run(p.all.model);
        test_threads(THREADS, run_behind, &p);
        CHECK_OK(sp_model_release(p.all.model));
    }
}

TEST_MAIN
