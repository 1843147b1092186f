/* SPDX-License-Identifier: Apache-2.0 */
/* The lock and the condition that the library's mutexes are made of. Here they run on the words of
 * the controlled scheduler, whose own mutexes are modelled. */
#include "support.h"

#include <string.h>

#include "base/clock.h"
#include "base/word_lock.h"
#include "sched/subject.h"

typedef struct world {
    sp_word_lock lock;
    sp_word_cond changed;
    uint32_t count; /* plain: guarded by lock, like the others */
    uint32_t items;
    bool is_open;
} world;

/* ---- the lock ---- */

static void count_up(void *arg)
{
    world *w = arg;
    sp_word_lock_acquire(&w->lock);
    w->count++;
    sp_word_lock_release(&w->lock);
}

static void subject_word_lock(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    world w;
    memset(&w, 0, sizeof w);
    sp__subject_run((const sp_thread_fn[]){count_up, count_up, count_up}, threads, &w);
    SP_SCHED_ASSERT(w.count == threads);
    SP_SCHED_ASSERT(sp_word_try_lock(&w.lock));
}

/* ---- the condition ---- */

static void pass(void *arg)
{
    world *w = arg;
    sp_word_lock_acquire(&w->lock);
    while (!w->is_open) sp_word_cond_wait(&w->changed, &w->lock, SP_NO_DEADLINE);
    w->count++;
    sp_word_lock_release(&w->lock);
}

static void open_gate(void *arg)
{
    world *w = arg;
    sp_word_lock_acquire(&w->lock);
    w->is_open = true;
    sp_word_lock_release(&w->lock);
    sp_word_cond_broadcast(&w->changed);
}

/* All threads pass the gate. */
static void subject_word_cond(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    world w;
    memset(&w, 0, sizeof w);
    sp__subject_run((const sp_thread_fn[]){open_gate, pass, pass}, threads, &w);
    SP_SCHED_ASSERT(w.count == threads - 1);
    SP_SCHED_ASSERT(sp_load_relaxed(&w.changed.waiters) == 0);
}

static void put(void *arg)
{
    world *w = arg;
    sp_word_lock_acquire(&w->lock);
    w->items++;
    sp_word_lock_release(&w->lock);
    sp_word_cond_signal(&w->changed);
}

static void get(void *arg)
{
    world *w = arg;
    sp_word_lock_acquire(&w->lock);
    while (w->items == 0) sp_word_cond_wait(&w->changed, &w->lock, SP_NO_DEADLINE);
    w->items--;
    sp_word_lock_release(&w->lock);
}

static void put_two(void *arg)
{
    put(arg);
    put(arg);
}

/* Two takers, two items: each signal reaches one of them. */
static void subject_word_cond_hand_over(void *arg)
{
    (void)arg;
    world w;
    memset(&w, 0, sizeof w);
    sp__subject_run((const sp_thread_fn[]){put_two, get, get}, 3, &w);
    SP_SCHED_ASSERT(w.items == 0);
}

static void get_in_time(void *arg)
{
    world *w = arg;
    const uint64_t deadline = sp_clock_now() + 1000;
    sp_word_lock_acquire(&w->lock);
    while (w->items == 0 && sp_word_cond_wait(&w->changed, &w->lock, deadline)) {
    }
    if (w->items > 0) {
        w->items--;
        w->count++;
    }
    sp_word_lock_release(&w->lock);
}

static void subject_word_cond_timeout(void *arg)
{
    (void)arg;
    world w;
    memset(&w, 0, sizeof w);
    sp__subject_run((const sp_thread_fn[]){put, get_in_time}, 2, &w);
    SP_SCHED_ASSERT(w.items + w.count == 1);
}

/* ---- the table ---- */

const sp_subject sp__subjects_word_lock[] = {
    {.name = "word_lock_2",
     .test = subject_word_lock,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "relaxed_unlock"},
    {.name = "word_lock_3",
     .test = subject_word_lock,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "held_after_sleep"},
    {.name = "word_cond_2",
     .test = subject_word_cond,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "look_after_unlock"},
    {.name = "word_cond_3",
     .test = subject_word_cond,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "look_after_unlock"},
    {.name = "word_cond_hand_over",
     .test = subject_word_cond_hand_over,
     .thread_count = 3,
     .planted = "look_after_unlock"},
    {.name = "word_cond_timeout",
     .test = subject_word_cond_timeout,
     .thread_count = 2,
     .planted = "held_after_sleep",
     .options = {.timeouts_are_choices = true}},
    {0},
};
