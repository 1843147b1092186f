/* SPDX-License-Identifier: Apache-2.0 */
/* Run slots: never more runs than slots, in FIFO order; and a submitted run is started by exactly
 * one party. */
#include "support.h"

#include <string.h>

#include "exec/run_slots.h"
#include "sched/subject.h"

typedef struct slots_world {
    sp_run_slots slots;
    uint32_t inside; /* plain: with one slot, the slot orders it */
    uint32_t order[3];
    uint32_t count;
    sp_atomic_u32 now;
    sp_run_request submitted;
    uint32_t started; /* plain: once, by the run's owner */
} slots_world;

static void enter_and_leave(void *arg)
{
    slots_world *w = arg;
    SP_SCHED_ASSERT(sp__run_slots_acquire(&w->slots, NULL) == SP_OK);
    SP_SCHED_ASSERT(w->inside == 0);
    w->inside = 1;
    w->count++;
    w->inside = 0;
    sp__wait_entry_resume(sp__run_slots_release(&w->slots, NULL));
}

static void enter_and_leave_twice(void *arg)
{
    enter_and_leave(arg);
    enter_and_leave(arg);
}

static void begin_slots(slots_world *w, uint32_t count)
{
    memset(w, 0, sizeof *w);
    sp__run_slots_init(&w->slots, count, count);
}

static void end_slots(slots_world *w, uint32_t count)
{
    SP_SCHED_ASSERT(sp__free_slots_word(&w->slots.free) == count);
    sp__run_slots_deinit(&w->slots);
    sp__subject_end();
}

static void subject_slots_one(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    slots_world w;
    begin_slots(&w, 1);
    sp__subject_run((const sp_thread_fn[]){enter_and_leave_twice, enter_and_leave, enter_and_leave},
                    threads, &w);
    SP_SCHED_ASSERT(w.count == threads + 1);
    end_slots(&w, 1);
}

static void enter_one_of_two(void *arg)
{
    slots_world *w = arg;
    SP_SCHED_ASSERT(sp__run_slots_acquire(&w->slots, NULL) == SP_OK);
    SP_SCHED_ASSERT(sp_fetch_add_relaxed(&w->now, 1) < 2);
    sp_fetch_sub_relaxed(&w->now, 1);
    sp__wait_entry_resume(sp__run_slots_release(&w->slots, NULL));
}

static void subject_slots_two(void *arg)
{
    (void)arg;
    slots_world w;
    begin_slots(&w, 2);
    sp__subject_run((const sp_thread_fn[]){enter_one_of_two, enter_one_of_two, enter_one_of_two}, 3,
                    &w);
    end_slots(&w, 2);
}

static void wait_until_in_line(slots_world *w, uint32_t count)
{
    while (sp__run_slots_waiting(&w->slots) < count) sp_spin_hint();
}

static void come_first(void *arg)
{
    slots_world *w = arg;
    SP_SCHED_ASSERT(sp__run_slots_acquire(&w->slots, NULL) == SP_OK);
    w->order[w->count++] = 1;
    sp__wait_entry_resume(sp__run_slots_release(&w->slots, NULL));
}

static void come_second(void *arg)
{
    slots_world *w = arg;
    wait_until_in_line(w, 1);
    SP_SCHED_ASSERT(sp__run_slots_acquire(&w->slots, NULL) == SP_OK);
    w->order[w->count++] = 2;
    sp__wait_entry_resume(sp__run_slots_release(&w->slots, NULL));
}

static void leave_last(void *arg)
{
    slots_world *w = arg;
    wait_until_in_line(w, 2);
    sp__wait_entry_resume(sp__run_slots_release(&w->slots, NULL));
}

static void subject_slots_order(void *arg)
{
    (void)arg;
    slots_world w;
    begin_slots(&w, 1);
    SP_SCHED_ASSERT(sp__run_slots_acquire(&w.slots, NULL) == SP_OK);
    sp__subject_run((const sp_thread_fn[]){come_first, come_second, leave_last}, 3, &w);
    SP_SCHED_ASSERT(w.count == 2 && w.order[0] == 1 && w.order[1] == 2);
    end_slots(&w, 1);
}

/* ---- submitted runs ---- */

/* Starts the run and releases its slot. */
static void start_submitted(sp_wait_entry *entry, sp_resume_list *ready)
{
    slots_world *w = SP_CONTAINER_OF(entry, slots_world, submitted.entry);
    w->started++;
    sp_wait_entry *next = sp__run_slots_release(&w->slots, NULL);
    SP_SCHED_ASSERT(next == NULL);
    sp__resume_list_add(ready, next);
}

static void leave_and_give(void *arg)
{
    slots_world *w = arg;
    sp_wait_entry *next = sp__run_slots_release(&w->slots, NULL);
    SP_SCHED_ASSERT(next == NULL || next == &w->submitted.entry);
    sp__wait_entry_resume(next);
}

static void submit_one(void *arg)
{
    slots_world *w = arg;
    w->submitted.entry.resume = start_submitted;
    w->submitted.finish = sp__subject_is_not_merged;
    SP_SCHED_ASSERT(sp__run_slots_submit(&w->slots, &w->submitted) == SP_OK);
}

static void take_out_of_line(void *arg)
{
    slots_world *w = arg;
    if (!sp__wait_entry_claim(&w->submitted.entry)) return;
    sp__run_slots_dequeue(&w->slots, &w->submitted);
    w->started++;
}

static void subject_slots_submitted(void *arg)
{
    (void)arg;
    slots_world w;
    begin_slots(&w, 1);
    SP_SCHED_ASSERT(sp__run_slots_acquire(&w.slots, NULL) == SP_OK);
    sp__subject_run((const sp_thread_fn[]){leave_and_give, submit_one, take_out_of_line}, 3, &w);
    SP_SCHED_ASSERT(w.started == 1);
    end_slots(&w, 1);
}

/* ---- the table ---- */

const sp_subject sp__subjects_slots[] = {
    {.name = "slots_one_2",
     .test = subject_slots_one,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "line_up_blindly"},
    {.name = "slots_one_3",
     .test = subject_slots_one,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "take_taken"},
    {.name = "slots_two", .test = subject_slots_two, .thread_count = 3, .planted = "take_taken"},
    {.name = "slots_order",
     .test = subject_slots_order,
     .thread_count = 3,
     .planted = "newest_first"},
    {.name = "slots_submitted",
     .test = subject_slots_submitted,
     .thread_count = 3,
     .planted = "leave_promised"},
    {0},
};
