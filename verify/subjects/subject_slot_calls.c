/* SPDX-License-Identifier: Apache-2.0 */
/* Threads and run slots: a thread that returns soon keeps its slot for a quantum, then the oldest
 * waiter is called, claims, and gets the next slot; a slot that is left free for good is found. */
#include "support.h"

#include <string.h>

#include "base/clock.h"
#include "device/thread_record.h"
#include "exec/run_slots.h"
#include "sched/subject.h"

typedef struct calls_world {
    sp_run_slots slots; /* one, which the subject holds at first */
    uint32_t inside;    /* plain: the slot orders it */
    uint32_t used;      /* plain, likewise */
    sp_run_request submitted;
} calls_world;

static void calls_begin(calls_world *w)
{
    memset(w, 0, sizeof *w);
    sp__run_slots_init(&w->slots, 1, 1);
    SP_SCHED_ASSERT(sp__run_slots_acquire(&w->slots, NULL) == SP_OK);
}

static void calls_end(calls_world *w, uint32_t used)
{
    SP_SCHED_ASSERT(w->used == used);
    SP_SCHED_ASSERT(sp__free_slots_word(&w->slots.free) == 1);
    sp__run_slots_deinit(&w->slots);
    sp__subject_end();
}

static void compute(calls_world *w)
{
    SP_SCHED_ASSERT(w->inside == 0);
    w->inside = 1;
    w->used++;
    w->inside = 0;
}

static void use(void *arg)
{
    calls_world *w = arg;
    SP_SCHED_ASSERT(sp__run_slots_acquire(&w->slots, NULL) == SP_OK);
    compute(w);
    sp__wait_entry_resume(sp__run_slots_release(&w->slots, NULL));
}

static void wait_until_queued(const calls_world *w, uint32_t count)
{
    while (sp__run_slots_waiting(&w->slots) < count) sp_spin_hint();
}

/* As a thread does that has returned soon the last time. */
static void release_to_return(calls_world *w)
{
    sp__thread_record()->tenure.returns_soon = true;
    sp__wait_entry_resume(sp__run_slots_release(&w->slots, NULL));
}

static void leave_to_one(void *arg)
{
    calls_world *w = arg;
    wait_until_queued(w, 1);
    release_to_return(w);
}

static void leave_to_two(void *arg)
{
    calls_world *w = arg;
    wait_until_queued(w, 2);
    release_to_return(w);
}

static void subject_slots_left_2(void *arg)
{
    (void)arg;
    calls_world w;
    calls_begin(&w);
    sp__subject_run((const sp_thread_fn[]){leave_to_one, use}, 2, &w);
    calls_end(&w, 1);
}

static void subject_slots_left_3(void *arg)
{
    (void)arg;
    calls_world w;
    calls_begin(&w);
    sp__subject_run((const sp_thread_fn[]){leave_to_two, use, use}, 3, &w);
    calls_end(&w, 2);
}

/* Twice for a quantum: the waiter is called by the end of it, and its claim is not overtaken. */
static void keep_for_a_quantum(void *arg)
{
    calls_world *w = arg;
    wait_until_queued(w, 1);
    release_to_return(w);
    SP_SCHED_ASSERT(sp__run_slots_acquire(&w->slots, NULL) == SP_OK);
    compute(w);
    sp_clock_sleep(SP_RUN_QUANTUM_NS);
    release_to_return(w);
    SP_SCHED_ASSERT(sp__run_slots_waiting(&w->slots) == 0);
    use(w);
}

static void subject_slots_quantum(void *arg)
{
    (void)arg;
    calls_world w;
    calls_begin(&w);
    sp__subject_run((const sp_thread_fn[]){keep_for_a_quantum, use}, 2, &w);
    calls_end(&w, 3);
}

static void start_submitted(sp_wait_entry *entry, sp_resume_list *ready)
{
    calls_world *w = SP_CONTAINER_OF(entry, calls_world, submitted.entry);
    compute(w);
    sp__resume_list_add(ready, sp__run_slots_release_submitted(&w->slots, &w->submitted));
}

static void submit_one(void *arg)
{
    calls_world *w = arg;
    w->submitted.entry.resume = start_submitted;
    w->submitted.finish = sp__subject_is_not_merged;
    SP_SCHED_ASSERT(sp__run_slots_submit(&w->slots, &w->submitted) == SP_OK);
}

static void subject_slots_passed(void *arg)
{
    (void)arg;
    calls_world w;
    calls_begin(&w);
    sp__subject_run((const sp_thread_fn[]){leave_to_one, submit_one}, 2, &w);
    calls_end(&w, 1);
}

/* The thread is the watcher, so that the slot may be left to its owner, but for the submitted run.
 */
static void pass_beside_one(void *arg)
{
    calls_world *w = arg;
    leave_to_two(w);
    SP_SCHED_ASSERT(w->submitted.granted_ns != 0);
}

static void subject_slots_mixed(void *arg)
{
    (void)arg;
    calls_world w;
    calls_begin(&w);
    sp__subject_run((const sp_thread_fn[]){pass_beside_one, use, submit_one}, 3, &w);
    calls_end(&w, 2);
}

/* ---- no starvation ---- */

#define RUN_NS (SP_RUN_QUANTUM_NS / 2)
/* What the threads' other steps take. */
#define SLACK_NS (SP_RUN_QUANTUM_NS / 4)
#define NO_USER UINT32_MAX

/* Threads that keep a slot for as long as they may, and return at once until they have lost it. */
typedef struct fair_world {
    sp_run_slots slots; /* one */
    uint32_t waiters;   /* constant; numbered in their order */
    /* Plain: ordered by the slot. */
    uint64_t start;
    uint32_t called;
    uint32_t last; /* the user that has released the slot to a claim */
} fair_world;

/* The waiters that were called since the last release. Each is called after at most as many quanta
 * as there were threads ahead, with the owner. A quantum ends with a run, and the owner may compute
 * once more until the called thread is awake. */
static void calls_check(fair_world *w)
{
    const uint64_t now = sp_clock_now();
    while (w->called < w->waiters - sp__run_slots_waiting(&w->slots)) {
        const uint64_t ahead = w->called++;
        const uint64_t quanta = (ahead + 1) * (SP_RUN_QUANTUM_NS + RUN_NS);
        SP_SCHED_ASSERT(now - w->start <= quanta + ahead * RUN_NS + SLACK_NS);
    }
}

static bool is_called(fair_world *w)
{
    sp_mutex_lock(&w->slots.lock);
    const bool is_any = w->slots.called > 0;
    sp_mutex_unlock(&w->slots.lock);
    return is_any;
}

static bool has_claim(fair_world *w)
{
    sp_mutex_lock(&w->slots.lock);
    const bool is_any = w->slots.claims.first != NULL;
    sp_mutex_unlock(&w->slots.lock);
    return is_any;
}

/* In the slot, which the user releases. Waits until a called thread is awake: a wake-up is shorter
 * than a quantum. */
static void use_once(fair_world *w, uint32_t user)
{
    SP_SCHED_ASSERT(w->last != user);
    calls_check(w);
    while (w->called > 0 && is_called(w)) sp_spin_hint();
    sp_clock_sleep(RUN_NS);
    w->last = has_claim(w) ? user : NO_USER;
    sp__thread_record()->tenure.returns_soon = true;
    sp__wait_entry_resume(sp__run_slots_release(&w->slots, NULL));
}

/* Until the slot has gone to another thread, or for three quanta. */
static void use_for_long(fair_world *w, uint32_t user)
{
    for (uint32_t i = 0; i < 6; i++) {
        use_once(w, user);
        if (!sp__run_slots_try_acquire(&w->slots, NULL)) return;
    }
    SP_SCHED_ASSERT(w->last != user);
    calls_check(w);
    sp__thread_record()->tenure.returns_soon = false;
    sp__wait_entry_resume(sp__run_slots_release(&w->slots, NULL));
}

static void fair_owner(void *arg)
{
    fair_world *w = arg;
    while (sp__run_slots_waiting(&w->slots) < w->waiters) sp_spin_hint();
    w->start = sp_clock_now();
    use_for_long(w, 0);
}

static void fair_first(void *arg)
{
    fair_world *w = arg;
    SP_SCHED_ASSERT(sp__run_slots_acquire(&w->slots, NULL) == SP_OK);
    use_for_long(w, 1);
}

static void fair_second(void *arg)
{
    fair_world *w = arg;
    while (sp__run_slots_waiting(&w->slots) < 1) sp_spin_hint();
    SP_SCHED_ASSERT(sp__run_slots_acquire(&w->slots, NULL) == SP_OK);
    use_for_long(w, 2);
}

static void subject_slots_fair(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    fair_world w = {.waiters = threads - 1, .last = NO_USER};
    sp__run_slots_init(&w.slots, 1, 1);
    SP_SCHED_ASSERT(sp__run_slots_acquire(&w.slots, NULL) == SP_OK);
    sp__subject_run((const sp_thread_fn[]){fair_owner, fair_first, fair_second}, threads, &w);
    SP_SCHED_ASSERT(w.called == w.waiters);
    SP_SCHED_ASSERT(sp__free_slots_word(&w.slots.free) == 1);
    sp__run_slots_deinit(&w.slots);
    sp__subject_end();
}

/* ---- owners that do not come back ---- */

static const sp_run_terms first_lane = {.lane = 0};

static void release_on_lane(calls_world *w)
{
    sp__thread_record()->tenure.returns_soon = true;
    sp__wait_entry_resume(sp__run_slots_release(&w->slots, &first_lane));
}

static void leave_lane_to_two(void *arg)
{
    calls_world *w = arg;
    wait_until_queued(w, 2);
    release_on_lane(w);
}

/* A slot that the owner has left long ago. */
static void desert_to_two(void *arg)
{
    calls_world *w = arg;
    wait_until_queued(w, 2);
    const uint64_t now = sp_clock_now();
    sp__thread_record()->tenure = (sp_run_tenure){
        .since = now, .observed = now - SP_RUN_QUANTUM_NS, .stride = 1, .returns_soon = true};
    sp__wait_entry_resume(sp__run_slots_release(&w->slots, &first_lane));
}

/* Who finds a slot that was left for long does not leave it in its turn: the other is called at
 * once. */
static void use_deserted(void *arg)
{
    calls_world *w = arg;
    SP_SCHED_ASSERT(sp__run_slots_acquire(&w->slots, &first_lane) == SP_OK);
    const bool is_deserted = sp_load_relaxed(&w->slots.is_deserted) != 0;
    compute(w);
    release_on_lane(w);
    SP_SCHED_ASSERT(!is_deserted || sp__run_slots_waiting(&w->slots) == 0);
}

static void subject_slots_deserted(void *arg)
{
    (void)arg;
    calls_world w;
    calls_begin(&w);
    sp__subject_run((const sp_thread_fn[]){desert_to_two, use_deserted, use_deserted}, 3, &w);
    calls_end(&w, 2);
}

/* An owner that comes back soon, while others wait, is expected to again, and so are others. */
static void come_back(void *arg)
{
    calls_world *w = arg;
    sp_store_relaxed(&w->slots.is_deserted, 1);
    leave_lane_to_two(w);
    SP_SCHED_ASSERT(sp__run_slots_acquire(&w->slots, &first_lane) == SP_OK);
    const sp_run_tenure *tenure = &sp__thread_record()->tenure;
    const bool came_soon = tenure->released == 0 && tenure->returns_soon;
    SP_SCHED_ASSERT(!came_soon || sp_load_relaxed(&w->slots.is_deserted) == 0);
    compute(w);
    sp__thread_record()->tenure.returns_soon = false;
    sp__wait_entry_resume(sp__run_slots_release(&w->slots, &first_lane));
}

static void use_on_lane(void *arg)
{
    calls_world *w = arg;
    SP_SCHED_ASSERT(sp__run_slots_acquire(&w->slots, &first_lane) == SP_OK);
    compute(w);
    sp__wait_entry_resume(sp__run_slots_release(&w->slots, &first_lane));
}

static void subject_slots_come_back(void *arg)
{
    (void)arg;
    calls_world w;
    calls_begin(&w);
    sp__subject_run((const sp_thread_fn[]){come_back, use_on_lane, use_on_lane}, 3, &w);
    calls_end(&w, 3);
}

/* ---- the table ---- */

const sp_subject sp__subjects_slot_calls[] = {
    {.name = "slots_left_2",
     .test = subject_slots_left_2,
     .thread_count = 2,
     .planted = "no_watch watch_once",
     .options = SP_SLEEPERS},
    {.name = "slots_left_3",
     .test = subject_slots_left_3,
     .thread_count = 3,
     .planted = "no_watch watch_once",
     .options = SP_SLEEPERS},
    {.name = "slots_quantum",
     .test = subject_slots_quantum,
     .thread_count = 2,
     .planted = "no_quantum forget_claim relaxed_grant",
     .inexhaustible = SP_ENDLESS_WATCH,
     .inexhaustible_weak = SP_ENDLESS_WATCH,
     .options = SP_SLEEPERS},
    {.name = "slots_passed",
     .test = subject_slots_passed,
     .thread_count = 2,
     .planted = "stays_counted"},
    {.name = "slots_mixed",
     .test = subject_slots_mixed,
     .thread_count = 3,
     .planted = "stays_counted submitted_left",
     .options = SP_SLEEPERS},
    {.name = "slots_fair_2",
     .test = subject_slots_fair,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "no_quantum forget_claim",
     .inexhaustible = SP_ENDLESS_CLAIM,
     .inexhaustible_weak = SP_ENDLESS_CLAIM,
     .options = SP_SPINNERS},
    {.name = "slots_fair_3",
     .test = subject_slots_fair,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "no_quantum forget_claim",
     .options = SP_SPINNERS},
    {.name = "slots_deserted",
     .test = subject_slots_deserted,
     .thread_count = 3,
     .planted = "owner_expected",
     .options = SP_SLEEPERS},
    {.name = "slots_come_back",
     .test = subject_slots_come_back,
     .thread_count = 3,
     .planted = "deserted_for_ever",
     .options = SP_SLEEPERS},
    {0},
};
