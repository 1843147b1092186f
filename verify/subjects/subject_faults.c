/* SPDX-License-Identifier: Apache-2.0 */
/* Failures: no command runs on data that a failed one should have written, whichever threads
 * execute, report, overwrite or adopt concurrently; after the report a thread's commands run. */
#include "support.h"

#include <string.h>

#include <streampool/storage.h>

#include "device/fault.h"
#include "device/host_executor.h"
#include "runtime/storage.h"
#include "runtime/submit.h"
#include "sched/subject.h"

#define GARBAGE 99u
#define GOOD 7u

/* ---- leases of one queue ---- */

typedef struct lease_world {
    sp_queue_device *common;
    sp_command_queue *queue;
} lease_world;

static sp_status always_fail(const sp_tile *tile)
{
    (void)tile;
    return SP_FAILED;
}

static const sp_kernel failing_kernel = {.name = "fail", .run = always_fail};

/* A submission with untracked bindings, failing or empty; its fault, once this thread or another
 * has run it. */
static sp_fault run_on_lease(lease_world *w, uint64_t lease, uint64_t thread, bool is_failing)
{
    const sp_command command = {
        .type = SP_COMMAND_DISPATCH, .kernel = &failing_kernel, .grid = {1, 1, 1}};
    const sp_submission submission = {.commands = &command,
                                      .command_count = is_failing ? 1 : 0,
                                      .thread = thread,
                                      .lease = lease,
                                      .is_untracked = true};
    sp_point point;
    SP_SCHED_ASSERT(sp__queue_submit(&w->queue->base, &submission, &point) == SP_OK);
    sp__subject_poll(w->common, 1, point);
    return sp__point_fault(point);
}

/* What sp_stream_synchronize does once everything has completed. */
static sp_fault tell(lease_world *w, uint64_t thread)
{
    sp_timeline *timeline = &w->queue->base.timeline;
    const uint64_t done = sp_load_acquire(&timeline->done);
    const sp_fault fault = sp__timeline_take_failures(timeline, done, thread);
    if (fault != SP_NO_FAULT) sp__lease_faults_told(&w->queue->base.lease_faults, thread, done);
    return fault;
}

static void fail_as_first(void *arg)
{
    SP_SCHED_ASSERT(run_on_lease(arg, 11, 1, true) != SP_NO_FAULT);
    SP_SCHED_ASSERT(run_on_lease(arg, 11, 1, false) != SP_NO_FAULT);
    SP_SCHED_ASSERT(tell(arg, 1) != SP_NO_FAULT);
    SP_SCHED_ASSERT(run_on_lease(arg, 11, 1, false) == SP_NO_FAULT);
}

/* The failure is reported before any command consumes it. */
static void fail_as_second(void *arg)
{
    SP_SCHED_ASSERT(run_on_lease(arg, 12, 2, true) != SP_NO_FAULT);
    SP_SCHED_ASSERT(tell(arg, 2) != SP_NO_FAULT);
    SP_SCHED_ASSERT(run_on_lease(arg, 12, 2, false) == SP_NO_FAULT);
}

static void run_as_third(void *arg)
{
    SP_SCHED_ASSERT(run_on_lease(arg, 13, 3, false) == SP_NO_FAULT);
}

static void lease_begin(lease_world *w)
{
    w->common = sp__subject_device(0);
    w->queue = sp__subject_queue(w->common, 0, true);
}

static void lease_end(lease_world *w)
{
    sp__subject_device_free(w->common);
    sp__subject_end();
}

/* Leases are independent, and after the report a thread's commands run, whichever thread executes.
 */
static void subject_lease_faults(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    lease_world w;
    lease_begin(&w);
    sp__subject_run((const sp_thread_fn[]){fail_as_first, fail_as_second, run_as_third}, threads,
                    &w);
    SP_SCHED_ASSERT(sp_load_relaxed(&w.queue->base.lease_faults.count) == 0);
    lease_end(&w);
}

/* One lease for all. */
static void fail_untold(void *arg)
{
    SP_SCHED_ASSERT(run_on_lease(arg, 10, 1, true) != SP_NO_FAULT);
    SP_SCHED_ASSERT(run_on_lease(arg, 10, 1, false) != SP_NO_FAULT);
}

static void consume_and_be_told(lease_world *w, uint64_t number)
{
    const bool is_failed = run_on_lease(w, 10, number, false) != SP_NO_FAULT;
    SP_SCHED_ASSERT((tell(w, number) != SP_NO_FAULT) == is_failed);
}

static void consume_as_second(void *arg)
{
    consume_and_be_told(arg, 2);
}

static void consume_as_third(void *arg)
{
    consume_and_be_told(arg, 3);
}

static void subject_lease_shared(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    lease_world w;
    lease_begin(&w);
    sp__subject_run((const sp_thread_fn[]){fail_untold, consume_as_second, consume_as_third},
                    threads, &w);
    SP_SCHED_ASSERT(run_on_lease(&w, 10, 1, false) != SP_NO_FAULT);
    for (uint64_t number = 1; number <= 3; number++) tell(&w, number);
    SP_SCHED_ASSERT(run_on_lease(&w, 10, 1, false) == SP_NO_FAULT);
    lease_end(&w);
}

/* ---- data ---- */

typedef struct world {
    sp_queue_device *common;
    sp_rt_device *device;
    sp_stream leases[3];
    sp_stream_ref streams[3];
    sp_storage x, y, z; /* z: of adopt_refused */
    sp_point ready;
    uint32_t memory[3]; /* plain: the storages' memory */
    uint32_t seen;      /* plain: what the reader's command found */
} world;

static sp_storage adopt(uint32_t *data, sp_stream ready_after)
{
    const sp_adopt_options options = {.ready_after = ready_after};
    sp_storage storage;
    SP_SCHED_ASSERT(sp_storage_adopt((sp_device){0}, data, sizeof *data, &options, &storage) ==
                    SP_OK);
    return storage;
}

static void begin(world *w)
{
    memset(w, 0, sizeof *w);
    w->common = sp__subject_device(0);
    w->device = sp__subject_runtime(w->common);
    for (uint32_t i = 0; i < 3; i++) w->streams[i] = sp__subject_stream(w->device, &w->leases[i]);
    w->y = adopt(&w->memory[1], (sp_stream){0});
}

static void end(world *w)
{
    SP_SCHED_ASSERT(sp__host_executor_start() == SP_OK);
    SP_SCHED_ASSERT(sp_storage_release(w->x) == SP_OK);
    SP_SCHED_ASSERT(sp_storage_release(w->y) == SP_OK);
    for (uint32_t i = 0; i < 3; i++) sp__stream_lease_release(w->leases[i]);
    sp__subject_runtime_down();
}

static sp_status write_garbage(const sp_tile *tile)
{
    *(uint32_t *)tile->bindings[0] = GARBAGE;
    return SP_FAILED;
}

static sp_status write_good(const sp_tile *tile)
{
    *(uint32_t *)tile->bindings[0] = GOOD;
    return SP_OK;
}

static sp_status copy_and_show(const sp_tile *tile)
{
    world *w;
    memcpy(&w, tile->constants, sizeof(world *));
    w->seen = *(const uint32_t *)tile->bindings[1];
    *(uint32_t *)tile->bindings[0] = w->seen;
    return SP_OK;
}

static const sp_kernel garbage_kernel = {.name = "garbage", .run = write_garbage};
static const sp_kernel good_kernel = {.name = "good", .run = write_good};
static const sp_kernel copy_kernel = {.name = "copy", .run = copy_and_show};

static sp_point submit(world *w, uint32_t stream, const sp_kernel *kernel, const sp_use *uses,
                       uint32_t use_count)
{
    sp_command command = {.type = SP_COMMAND_DISPATCH,
                          .kernel = kernel,
                          .grid = {1, 1, 1},
                          .constants = &w,
                          .constant_bytes = sizeof(world *)};
    sp_point point;
    SP_SCHED_ASSERT(
        sp__submit_command(&w->streams[stream], &command, uses, use_count, NULL, &point) == SP_OK);
    return point;
}

static sp_use use_of(sp_storage storage, sp_access access)
{
    return (sp_use){.storage = storage,
                    .bytes = sizeof(uint32_t),
                    .access = access,
                    .is_overwritten = access == SP_WRITE};
}

static sp_point write_x(world *w, uint32_t stream, const sp_kernel *kernel)
{
    const sp_use use = use_of(w->x, SP_WRITE);
    return submit(w, stream, kernel, &use, 1);
}

/* Whether the copy of x to y succeeded; the data that it read is then valid. */
static bool copy_x(world *w)
{
    const sp_use uses[2] = {use_of(w->y, SP_WRITE), use_of(w->x, SP_READ)};
    const sp_point point = submit(w, 1, &copy_kernel, uses, 2);
    sp__subject_poll(w->common, 4, point);
    const bool is_good = sp__point_fault(point) == SP_NO_FAULT;
    if (is_good) SP_SCHED_ASSERT(w->seen != GARBAGE && w->memory[1] == w->seen);
    return is_good;
}

static void fail_x(void *arg)
{
    world *w = arg;
    const sp_point point = write_x(w, 0, &garbage_kernel);
    sp__subject_poll(w->common, 4, point);
    SP_SCHED_ASSERT(sp__point_fault(point) != SP_NO_FAULT);
}

static void overwrite_x(void *arg)
{
    world *w = arg;
    const sp_point point = write_x(w, 2, &good_kernel);
    sp__subject_poll(w->common, 4, point);
    SP_SCHED_ASSERT(sp__point_fault(point) == SP_NO_FAULT);
}

static void consume_x(void *arg)
{
    copy_x(arg);
}

/* A failed write, a reader, and a write of everything, in any order. */
static void subject_poison(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    world w;
    begin(&w);
    w.x = adopt(&w.memory[0], (sp_stream){0});
    sp__subject_run((const sp_thread_fn[]){fail_x, consume_x, overwrite_x}, threads, &w);
    const bool is_good = copy_x(&w);
    SP_SCHED_ASSERT(is_good == (w.memory[0] == GOOD));
    end(&w);
}

/* ---- memory that is adopted behind a failure ---- */

static void run_producer(void *arg)
{
    world *w = arg;
    sp__subject_poll(w->common, 4, w->ready);
}

static void consume_adopted(void *arg)
{
    world *w = arg;
    if (copy_x(w)) SP_SCHED_ASSERT(w->seen == GOOD);
}

static void adopt_x_behind_failure(world *w)
{
    const sp_command command = {
        .type = SP_COMMAND_DISPATCH, .kernel = &failing_kernel, .grid = {1, 1, 1}};
    const sp_submission submission = {.commands = &command, .command_count = 1};
    SP_SCHED_ASSERT(sp__submit_plain(&w->streams[0], &submission, &w->ready) == SP_OK);
    w->memory[0] = GARBAGE;
    w->x = adopt(&w->memory[0], w->leases[0]);
}

/* Whether the producer has failed before a use is submitted or after. */
static void subject_adopt_ready(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    world w;
    begin(&w);
    adopt_x_behind_failure(&w);
    sp__subject_run((const sp_thread_fn[]){run_producer, consume_adopted, overwrite_x}, threads,
                    &w);
    const bool is_good = copy_x(&w);
    SP_SCHED_ASSERT(is_good == (threads == 3));
    end(&w);
}

/* A host write of x that is refused: it is behind a command that waits for this thread. */
static void be_refused(void *arg)
{
    world *w = arg;
    void *data;
    SP_SCHED_ASSERT(sp_storage_host_begin(w->z, SP_READ, &data) == SP_OK);
    const sp_use uses[2] = {use_of(w->z, SP_WRITE), use_of(w->x, SP_READ)};
    const sp_point point = submit(w, 2, &copy_kernel, uses, 2);
    SP_SCHED_ASSERT(sp_storage_host_begin(w->x, SP_WRITE, &data) == SP_DEADLOCK);
    SP_SCHED_ASSERT(sp_storage_host_end(w->z, SP_READ) == SP_OK);
    sp__subject_poll(w->common, 4, point);
    SP_SCHED_ASSERT(sp__point_fault(point) != SP_NO_FAULT);
}

static void consume_unwritten(void *arg)
{
    SP_SCHED_ASSERT(!copy_x(arg));
}

/* Nothing overwrites the memory, so every use gets the failure, also what came during the call. */
static void subject_adopt_refused(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    w.z = adopt(&w.memory[2], (sp_stream){0});
    adopt_x_behind_failure(&w);
    sp__subject_run((const sp_thread_fn[]){be_refused, consume_unwritten}, 2, &w);
    SP_SCHED_ASSERT(!copy_x(&w));
    SP_SCHED_ASSERT(sp_storage_release(w.z) == SP_OK);
    end(&w);
}

/* ---- the table ---- */

const sp_subject sp__subjects_faults[] = {
    {.name = "lease_faults_2",
     .test = subject_lease_faults,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_RUNTIME,
     .planted = "one_lease_fault late_lease_fault",
     .options = SP_SPINNERS,
     .seconds = 0.4},
    {.name = "lease_faults_3",
     .test = subject_lease_faults,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "one_lease_fault late_lease_fault",
     .options = SP_SPINNERS,
     .seconds = 0.4},
    {.name = "lease_shared_2",
     .test = subject_lease_shared,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_RUNTIME,
     .planted = "told_for_all",
     .options = SP_SPINNERS,
     .seconds = 0.4},
    {.name = "lease_shared_3",
     .test = subject_lease_shared,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "told_for_all",
     .options = SP_SPINNERS,
     .seconds = 0.4},
    {.name = "poison_2",
     .test = subject_poison,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_RUNTIME,
     .planted = "no_poison",
     .options = SP_SPINNERS,
     .seconds = 0.4},
    {.name = "poison_3",
     .test = subject_poison,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "no_poison",
     .options = SP_SPINNERS,
     .seconds = 0.4},
    {.name = "adopt_ready_2",
     .test = subject_adopt_ready,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_RUNTIME,
     .planted = "ready_is_forgotten ready_without_fault",
     .options = SP_SPINNERS,
     .seconds = 0.4},
    {.name = "adopt_ready_3",
     .test = subject_adopt_ready,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "ready_is_forgotten ready_without_fault",
     .options = SP_SPINNERS,
     .seconds = 0.4},
    {.name = "adopt_ready_refused",
     .test = subject_adopt_refused,
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_RUNTIME,
     .planted = "refused_is_ready",
     .options = SP_SPINNERS,
     .seconds = 0.4},
    {0},
};
