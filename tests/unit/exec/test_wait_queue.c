/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/wait_queue.h"

#include "support/test.h"

/* A single resource; each run that gets it releases it at once. */
typedef struct chain {
    sp_wait_queue queue;
    uint32_t depth, most_depth; /* depth of nested resume functions */
    uint32_t resumed;
} chain;

typedef struct chain_run {
    sp_wait_entry entry;
    chain *chain;
    uint32_t order; /* 0 until it is resumed */
} chain_run;

static void resume_run(sp_wait_entry *entry, sp_resume_list *ready)
{
    chain_run *run = SP_CONTAINER_OF(entry, chain_run, entry);
    chain *c = run->chain;
    c->depth++;
    if (c->depth > c->most_depth) c->most_depth = c->depth;
    run->order = ++c->resumed;
    sp__resume_list_add(ready, sp__wait_queue_pop(&c->queue));
    c->depth--;
}

enum { RUNS = 1000 };

static void chain_begin(chain *c, chain_run *runs, uint32_t count)
{
    *c = (chain){0};
    sp__wait_queue_init(&c->queue);
    for (uint32_t i = 0; i < count; i++) {
        runs[i] = (chain_run){.entry = {.resume = resume_run}, .chain = c};
        sp__wait_queue_push(&c->queue, &runs[i].entry);
    }
}

TEST(a_chain_of_resumed_runs_is_not_nested)
{
    chain c;
    static chain_run runs[RUNS];
    chain_begin(&c, runs, RUNS);
    sp__wait_entry_resume(sp__wait_queue_pop(&c.queue));
    CHECK_EQ_U64(c.resumed, RUNS);
    CHECK_EQ_U64(c.most_depth, 1);
    for (uint32_t i = 0; i < RUNS; i++) CHECK_EQ_U64(runs[i].order, i + 1);
    CHECK(sp__wait_queue_pop(&c.queue) == NULL);
    sp__wait_entry_resume(NULL);
}

TEST(cancelled_entries_are_skipped_and_the_order_of_the_others_stays)
{
    chain c;
    chain_run runs[4];
    chain_begin(&c, runs, 4);
    CHECK(sp__wait_entry_claim(&runs[0].entry));
    CHECK(!sp__wait_entry_claim(&runs[0].entry));
    CHECK(sp__wait_entry_claim(&runs[3].entry));
    CHECK(sp__wait_queue_pop(&c.queue) == &runs[1].entry);
    CHECK(!sp__wait_entry_claim(&runs[1].entry));
    sp__wait_queue_remove(&c.queue, &runs[3].entry);
    sp__wait_queue_push(&c.queue, &runs[1].entry);
    sp__wait_queue_remove(&c.queue, &runs[0].entry);
    CHECK(sp__wait_queue_pop(&c.queue) == &runs[2].entry);
    CHECK(sp__wait_queue_pop(&c.queue) == &runs[1].entry);
    CHECK(sp__wait_queue_pop(&c.queue) == NULL);
    sp__wait_queue_push(&c.queue, &runs[3].entry);
    CHECK(sp__wait_queue_pop(&c.queue) == &runs[3].entry);
}

TEST(a_thread_is_woken_while_runs_are_added)
{
    chain c;
    chain_run runs[1];
    sp_thread_waiter waiter;
    sp_resume_list ready = {0};
    chain_begin(&c, runs, 1);
    CHECK_OK(sp__thread_waiter_init(&waiter));
    sp__wait_queue_push(&c.queue, &waiter.entry);
    sp__resume_list_add(&ready, sp__wait_queue_pop(&c.queue));
    sp__resume_list_add(&ready, sp__wait_queue_pop(&c.queue));
    sp__thread_waiter_wait(&waiter);
    CHECK_EQ_U64(c.resumed, 0);
    sp__resume_list_run(&ready);
    CHECK_EQ_U64(c.resumed, 1);
}

static void resume_alone(sp_wait_entry *entry, sp_resume_list *ready)
{
    chain_run *run = SP_CONTAINER_OF(entry, chain_run, entry);
    (void)ready;
    CHECK(entry->next == NULL);
    run->order = ++run->chain->resumed;
}

TEST(entries_that_follow_a_popped_one_are_resumed_too)
{
    chain c;
    chain_run runs[4];
    chain_begin(&c, runs, 4);
    sp_wait_entry *popped[3];
    for (int i = 0; i < 3; i++) {
        runs[i].entry.resume = resume_alone;
        popped[i] = sp__wait_queue_pop(&c.queue);
        CHECK(popped[i] == &runs[i].entry && popped[i]->next == NULL); /* not the one behind it */
    }
    popped[0]->next = popped[2];
    popped[2]->next = popped[1];
    sp__wait_entry_resume(popped[0]);
    CHECK_EQ_U64(runs[0].order, 1);
    CHECK_EQ_U64(runs[2].order, 2);
    CHECK_EQ_U64(runs[1].order, 3);
    CHECK_EQ_U64(runs[3].order, 0);
    CHECK(sp__wait_queue_pop(&c.queue) == &runs[3].entry);
}

TEST_MAIN
