/* SPDX-License-Identifier: Apache-2.0 */
/* The tagged stack as a free list of slots: a slot is in the stack or belongs to one thread, and
 * its contents travel with it (plain accesses, so that a publish too weak is a race). */
#include "base/tagged_stack.h"

#include "base/thread.h"
#include "sched/explore.h"
#include "sched/subject.h"

#define SLOTS 3u

typedef struct free_list {
    sp_tagged_stack stack;
    sp_atomic_u32 links[SLOTS];
    uint32_t owner[SLOTS]; /* 0: in the stack; only the owner touches it */
} free_list;

static sp_atomic_u32 *link_of(void *ctx, uint32_t slot)
{
    free_list *list = ctx;
    return &list->links[slot];
}

static bool take(free_list *list, uint32_t owner, uint32_t *slot)
{
    if (!sp_tagged_stack_pop(&list->stack, link_of, list, slot)) return false;
    SP_SCHED_ASSERT(*slot < SLOTS && list->owner[*slot] == 0);
    list->owner[*slot] = owner;
    return true;
}

static void give(free_list *list, uint32_t owner, uint32_t slot)
{
    SP_SCHED_ASSERT(list->owner[slot] == owner);
    list->owner[slot] = 0;
    sp_tagged_stack_push(&list->stack, link_of, list, slot);
}

static void fill(free_list *list)
{
    sp_store_relaxed(&list->stack.head, 0);
    for (uint32_t i = 0; i < SLOTS; i++) {
        list->owner[i] = 1;
        give(list, 1, i);
    }
}

/* At the end no slot is owned: each is in the stack exactly once. */
static void check_full(free_list *list)
{
    uint32_t slot;
    for (uint32_t i = 0; i < SLOTS; i++) SP_SCHED_ASSERT(take(list, 1, &slot));
    SP_SCHED_ASSERT(!take(list, 1, &slot));
}

static void take_one_and_give(void *arg)
{
    uint32_t slot;
    if (!take(arg, 2, &slot)) return;
    give(arg, 2, slot);
}

/* Two out and the first back: what brings an old top back with another slot below it. */
static void take_two_and_give(void *arg)
{
    uint32_t first;
    uint32_t second;
    const bool has_first = take(arg, 3, &first);
    const bool has_second = take(arg, 3, &second);
    if (has_first) give(arg, 3, first);
    if (has_second) give(arg, 3, second);
}

static void take_and_give_twice(void *arg)
{
    uint32_t slot;
    for (int i = 0; i < 2; i++) {
        if (take(arg, 4, &slot)) give(arg, 4, slot);
    }
}

static void run(const sp_thread_fn *fns, uint32_t count)
{
    free_list list;
    sp_thread threads[3];
    fill(&list);
    for (uint32_t i = 0; i < count; i++) {
        SP_SCHED_ASSERT(sp_thread_create(&threads[i], "", fns[i], &list) == SP_OK);
    }
    for (uint32_t i = 0; i < count; i++) sp_thread_join(&threads[i]);
    check_full(&list);
}

static void subject_tagged_stack_2(void *arg)
{
    (void)arg;
    run((const sp_thread_fn[]){take_one_and_give, take_two_and_give}, 2);
}

static void subject_tagged_stack_3(void *arg)
{
    (void)arg;
    run((const sp_thread_fn[]){take_one_and_give, take_two_and_give, take_and_give_twice}, 3);
}

/* ---- the table ---- */

const sp_subject sp__subjects_tagged_stack[] = {
    {.name = "tagged_stack_2",
     .test = subject_tagged_stack_2,
     .thread_count = 2,
     .planted = "aba relaxed_pop relaxed_push"},
    {.name = "tagged_stack_3",
     .test = subject_tagged_stack_3,
     .thread_count = 3,
     .planted = "aba relaxed_pop relaxed_push"},
    {0},
};
