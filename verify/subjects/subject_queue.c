/* SPDX-License-Identifier: Apache-2.0 */
/* The claim of a queue: every submission runs exactly once and whole, in the order of its value,
 * by one thread at a time; and the sleeping worker is woken whenever no other thread knows of work.
 */
#include "support.h"

#include "base/clock.h"
#include "sched/subject.h"

typedef struct world {
    sp_queue_device *device;
    sp_command_queue *queue;
    sp_subject_log log;
    uint64_t values[SP_LOG_ITEMS]; /* of the submission of each item; by its submitter */
    sp_queue_worker sleeper;
    sp_atomic_u32 done_count; /* commands that ran, where a thread sleeps on it */
} world;

static uint64_t submit(world *w, uint32_t item)
{
    sp_point point;
    SP_SCHED_ASSERT(sp__subject_append(w->queue, &w->log, item, NULL, 0, &point) == SP_OK);
    w->values[item] = point.value;
    return point.value;
}

/* ---- the claim alone: threads of the subject take turns as the one worker ---- */

/* A sleeping worker without a thread: a thread that finds its token does one round of its work, by
 * the rules of workers.c. */
static void fall_asleep(world *w)
{
    w->device->workers = &w->sleeper;
    w->sleeper.device = w->device;
    sp_store_relaxed(&w->device->sleeping, 1);
}

static void work_if_woken(world *w)
{
    if (!sp_parker_park(&w->sleeper.parker, 0)) return;
    for (;;) {
        while (sp__subject_work(w->device, 1)) {
        }
        sp_fetch_or_seq_cst(&w->device->sleeping, (uint64_t)1);
        if (!sp__queue_has_work(w->queue)) return;
        sp_fetch_and_seq_cst(&w->device->sleeping, ~(uint64_t)1);
    }
}

static void check_log(world *w, uint32_t count)
{
    SP_SCHED_ASSERT(w->log.count == count);
    SP_SCHED_ASSERT(sp_load_relaxed(&w->queue->base.timeline.done) == count);
    for (uint32_t i = 0; i < count; i++) SP_SCHED_ASSERT(w->values[w->log.items[i]] == i + 1);
}

static void begin(world *w, uint32_t worker_count, bool is_batching)
{
    *w = (world){0};
    w->device = sp__subject_device(worker_count);
    w->queue = sp__subject_queue(w->device, 0, is_batching);
}

static void submit_two(void *arg)
{
    world *w = arg;
    submit(w, 1);
    work_if_woken(w);
    submit(w, 2);
    work_if_woken(w);
}

/* A helper: stops when its own point has passed, and then does not poll again. */
static void help_until(world *w, uint64_t value)
{
    const sp_point point = {&w->queue->base.timeline, value};
    const sp_executor executor = {.kind = SP_WORKER, .until = value, .budget = UINT32_MAX};
    while (!sp__point_has_passed(point)) {
        if (sp__queue_claim(w->queue)) {
            sp__queue_drain(w->queue, &executor);
        } else {
            sp_spin_hint();
        }
    }
}

static void submit_and_help(world *w, uint32_t item)
{
    const uint64_t value = submit(w, item);
    help_until(w, value);
    SP_SCHED_ASSERT(w->log.items[value - 1] == item); /* plain: visible, and never moved */
}

static void help_3(void *arg)
{
    submit_and_help(arg, 3);
}

/* Beside a thread that helps. */
static void claim_with(sp_thread_fn fn)
{
    world w;
    begin(&w, 0, true);
    void *none = w.device->workers;
    fall_asleep(&w);
    sp__subject_run((const sp_thread_fn[]){fn, help_3}, 2, &w);
    work_if_woken(&w); /* its token came after the last poll */
    check_log(&w, 3);
    w.device->workers = none;
    sp_store_relaxed(&w.device->sleeping, 0);
    sp__subject_device_free(w.device);
    sp__subject_end();
}

static void subject_queue_claim(void *arg)
{
    (void)arg;
    claim_with(submit_two);
}

/* A thread that claims the queue with its publication, if it is empty. */
static void submit_and_run(world *w, uint32_t item)
{
    sp_point point;
    SP_SCHED_ASSERT(sp__subject_append_and_run(w->queue, &w->log, item, &point) == SP_OK);
    w->values[item] = point.value;
    help_until(w, point.value);
    SP_SCHED_ASSERT(w->log.items[point.value - 1] == item);
}

static void run_two(void *arg)
{
    submit_and_run(arg, 1);
    work_if_woken(arg);
    submit_and_run(arg, 2);
    work_if_woken(arg);
}

static void subject_queue_run(void *arg)
{
    (void)arg;
    claim_with(run_two);
}

/* ---- helpers: each runs up to its own point and leaves the rest to others ---- */

static void help_1(void *arg)
{
    submit_and_help(arg, 1);
}

static void help_2(void *arg)
{
    submit_and_help(arg, 2);
}

static void subject_queue_helpers(void *arg)
{
    const uint32_t count = *(const uint32_t *)arg;
    world w;
    begin(&w, 0, true);
    sp__subject_run((const sp_thread_fn[]){help_1, help_2, help_3}, count, &w);
    check_log(&w, count);
    sp__subject_device_free(w.device);
    sp__subject_end();
}

/* ---- chunks: written by one, emptied by the other, used again ---- */

#define BIG_BYTES (SP_CHUNK_BYTES - 512)

static sp_status count_one(const sp_tile *tile)
{
    uint32_t *count = tile->bindings[0];
    (*count)++;
    return SP_OK;
}

/* Each of these fills a chunk of its own. */
static uint64_t submit_big(world *w, uint32_t item)
{
    static const unsigned char constants[BIG_BYTES];
    static const sp_kernel kernel = {.name = "count", .run = count_one};
    static sp_memory memory[SP_LOG_ITEMS];
    sp_binding binding;
    sp_point point;
    sp_command command = sp__subject_dispatch(&kernel, &binding, &memory[item], &w->log.count,
                                              sizeof w->log.count, NULL);
    command.constants = constants;
    command.constant_bytes = BIG_BYTES;
    SP_SCHED_ASSERT(sp__subject_submit(w->queue, &command, NULL, 0, &point) == SP_OK);
    return point.value;
}

static void fill_chunks(void *arg)
{
    world *w = arg;
    for (uint32_t i = 0; i < 3; i++) submit_big(w, i);
}

static void empty_chunks(void *arg)
{
    world *w = arg;
    sp__subject_poll(w->device, 1, (sp_point){&w->queue->base.timeline, 3});
}

static void subject_queue_grow(void *arg)
{
    (void)arg;
    world w;
    begin(&w, 0, true);
    sp__subject_run((const sp_thread_fn[]){fill_chunks, empty_chunks}, 2, &w);
    SP_SCHED_ASSERT(w.log.count == 3);
    sp__subject_device_free(w.device);
    sp__subject_end();
}

/* ---- real workers; the submitter sleeps on a word of its own and makes no more calls ---- */

static sp_status tell(const sp_tile *tile)
{
    world *w = tile->bindings[0];
    w->log.items[*(const uint32_t *)tile->constants]++;
    sp_fetch_add_acq_rel(&w->done_count, 1);
    sp_word_wake(&w->done_count, SP_WAKE_ALL);
    return SP_OK;
}

static const sp_kernel tell_kernel = {.name = "tell", .run = tell};
static sp_memory tell_memory[SP_LOG_ITEMS];

static void submit_tell(world *w, sp_command_queue *queue, uint32_t item)
{
    sp_binding binding;
    sp_point point;
    const sp_command command =
        sp__subject_dispatch(&tell_kernel, &binding, &tell_memory[item], w, 0, &item);
    SP_SCHED_ASSERT(sp__subject_submit(queue, &command, NULL, 0, &point) == SP_OK);
}

static void await(world *w, uint32_t count)
{
    for (;;) {
        const uint32_t seen = sp_load_acquire(&w->done_count);
        if (seen >= count) return;
        sp_word_wait(&w->done_count, seen, SP_NO_DEADLINE);
    }
}

static void subject_worker_sleeps(void *arg)
{
    (void)arg;
    world w;
    begin(&w, 1, true);
    submit_tell(&w, w.queue, 1);
    await(&w, 1);
    submit_tell(&w, w.queue, 2); /* the worker polls, naps or sleeps by now */
    await(&w, 2);
    SP_SCHED_ASSERT(w.log.items[1] == 1 && w.log.items[2] == 1);
    sp__subject_device_free(w.device);
    sp__subject_end();
}

static void subject_worker_flush(void *arg)
{
    (void)arg;
    world w;
    begin(&w, 1, false);
    submit_tell(&w, w.queue, 1);
    submit_tell(&w, w.queue, 2);
    await(&w, 2);
    SP_SCHED_ASSERT(w.log.items[1] == 1 && w.log.items[2] == 1);
    sp__subject_device_free(w.device);
    sp__subject_end();
}

static void submit_to_other(void *arg)
{
    world *w = arg;
    submit_tell(w, sp_load_acquire(&w->device->queues[1]), 2);
}

static void on_two_queues(uint32_t worker_count)
{
    world w;
    begin(&w, worker_count, true);
    sp__subject_queue(w.device, 1, true);
    sp_thread other;
    SP_SCHED_ASSERT(sp_thread_create(&other, "", submit_to_other, &w) == SP_OK);
    submit_tell(&w, w.queue, 1);
    await(&w, 2);
    sp_thread_join(&other);
    SP_SCHED_ASSERT(w.log.items[1] == 1 && w.log.items[2] == 1);
    sp__subject_device_free(w.device);
    sp__subject_end();
}

static void subject_worker_two_queues(void *arg)
{
    (void)arg;
    on_two_queues(1);
}

static void subject_workers_two(void *arg)
{
    (void)arg;
    on_two_queues(2);
}

/* A command that takes long: no other queue waits for the worker that runs it. */
static sp_status tell_behind_the_other(const sp_tile *tile)
{
    await(tile->bindings[0], 1);
    return tell(tile);
}

static void subject_workers_long(void *arg)
{
    (void)arg;
    static const sp_kernel kernel = {.name = "tell later", .run = tell_behind_the_other};
    world w;
    begin(&w, 2, true);
    sp_command_queue *other = sp__subject_queue(w.device, 1, true);
    sp_binding binding;
    sp_point point;
    const uint32_t item = 1;
    const sp_command command =
        sp__subject_dispatch(&kernel, &binding, &tell_memory[item], &w, 0, &item);
    SP_SCHED_ASSERT(sp__subject_submit(w.queue, &command, NULL, 0, &point) == SP_OK);
    submit_tell(&w, other, 2);
    await(&w, 2);
    SP_SCHED_ASSERT(w.log.items[1] == 1 && w.log.items[2] == 1);
    sp__subject_device_free(w.device);
    sp__subject_end();
}

/* A queue below others that the worker knows: it has to see it appear. */
static void subject_worker_new_queue(void *arg)
{
    (void)arg;
    world w = {0};
    w.device = sp__subject_device(1);
    sp__subject_queue(w.device, 1, true);
    w.queue = sp__subject_queue(w.device, 0, true);
    submit_tell(&w, w.queue, 1);
    await(&w, 1);
    SP_SCHED_ASSERT(w.log.items[1] == 1);
    sp__subject_device_free(w.device);
    sp__subject_end();
}

/* ---- a command list: its maker lets go of it while it runs ---- */

static void submit_list(void *arg)
{
    world *w = arg;
    static const sp_kernel kernel = {.name = "count", .run = count_one};
    static sp_memory memory;
    sp_binding binding;
    sp_list *list;
    sp_point point;
    const sp_command inside =
        sp__subject_dispatch(&kernel, &binding, &memory, &w->log.count, sizeof w->log.count, NULL);
    SP_SCHED_ASSERT(sp__queue_list_create(&w->device->base, &inside, 1, 0, &list) == SP_OK);
    const sp_command command = {.type = SP_COMMAND_LIST, .list = list};
    SP_SCHED_ASSERT(sp__subject_submit(w->queue, &command, NULL, 0, &point) == SP_OK);
    sp__queue_list_release(list);
}

static void run_list(void *arg)
{
    world *w = arg;
    sp__subject_poll(w->device, 1, (sp_point){&w->queue->base.timeline, 1});
}

static void subject_list_release(void *arg)
{
    (void)arg;
    world w;
    begin(&w, 0, true);
    sp__subject_run((const sp_thread_fn[]){submit_list, run_list}, 2, &w);
    SP_SCHED_ASSERT(w.log.count == 1);
    sp__subject_device_free(w.device);
    sp__subject_end();
}

/* ---- the table ---- */

const sp_subject sp__subjects_queue[] = {
    {.name = "queue_claim",
     .test = subject_queue_claim,
     .thread_count = 2,
     .dpor_seconds = 30,
     .planted = "no_second_look check_then_act publish_before_data relaxed_look",
     .seconds = 0.5},
    {.name = "queue_run",
     .test = subject_queue_run,
     .thread_count = 2,
     .dpor_seconds = 16,
     .planted = "claims_blindly publish_before_data",
     .seconds = 0.5},
    {.name = "queue_helpers_2",
     .test = subject_queue_helpers,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .dpor_seconds = 3,
     .planted = "check_then_act",
     .seconds = 0.5},
    {.name = "queue_helpers_3",
     .test = subject_queue_helpers,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "check_then_act",
     .seconds = 0.5},
    {.name = "queue_grow",
     .test = subject_queue_grow,
     .thread_count = 2,
     .dpor_seconds = 10,
     .planted = "relaxed_retire",
     .seconds = 0.4},
    {.name = "worker_sleeps",
     .test = subject_worker_sleeps,
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_NAPS,
     .planted = "relaxed_look",
     .options = SP_SLEEPERS,
     .seconds = 0.5},
    {.name = "worker_flush",
     .test = subject_worker_flush,
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_NAPS,
     .planted = "publish_before_data",
     .options = SP_SLEEPERS,
     .seconds = 0.5},
    {.name = "worker_new_queue",
     .test = subject_worker_new_queue,
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_NAPS,
     .planted = "relaxed_queue_at",
     .options = SP_SLEEPERS,
     .seconds = 0.5},
    {.name = "list_release",
     .test = subject_list_release,
     .thread_count = 2,
     .planted = "list_is_lent",
     .seconds = 0.5},
    {.name = "worker_two_queues",
     .test = subject_worker_two_queues,
     .thread_count = 3,
     .planted = "publish_before_data",
     .options = SP_SLEEPERS,
     .seconds = 0.5},
    {.name = "workers_two",
     .test = subject_workers_two,
     .thread_count = 3,
     .planted = "publish_before_data check_then_act",
     .options = SP_SLEEPERS,
     .seconds = 0.5},
    {.name = "workers_long",
     .test = subject_workers_long,
     .thread_count = 3,
     .planted = "keeps_work",
     .options = SP_SLEEPERS,
     .seconds = 0.5},
    {0},
};
