/* SPDX-License-Identifier: Apache-2.0 */
/* Run slots under real threads: exclusion, and a turn for each waiter. The protocol's interleavings
 * are in verify/subjects/subject_slots.c and subject_slot_calls.c. */
#include "exec/run_slots.h"

#include <stdlib.h>

#include <streampool/model.h>
#include <streampool/storage.h>

#include "base/clock.h"
#include "base/thread.h"
#include "device/thread_record.h"
#include "exec/run_tenure.h"
#include "support/test.h"

enum { SLOTS = 3, RUNNERS = 12 };

typedef struct slots_world {
    sp_run_slots slots;
    sp_atomic_u32 inside, most;
    sp_atomic_u64 runs;
    sp_atomic_u32 meek_done;
    uint32_t lanes; /* of run_often */
} slots_world;

static void world_begin(slots_world *w, uint32_t count)
{
    *w = (slots_world){0};
    sp__run_slots_init(&w->slots, count, count);
}

static void world_end(slots_world *w, uint32_t count)
{
    CHECK_EQ_U64(sp__free_slots_word(&w->slots.free), count); /* all free, nothing waits */
    sp__run_slots_deinit(&w->slots);
}

static void compute(slots_world *w)
{
    const uint32_t now = sp_fetch_add_relaxed(&w->inside, 1) + 1;
    uint32_t most = sp_load_relaxed(&w->most);
    while (most < now && !sp_cas_relaxed(&w->most, &most, now)) {
    }
    sp_fetch_add_relaxed(&w->runs, (uint64_t)1);
    sp_fetch_sub_relaxed(&w->inside, 1);
}

static void run_on(slots_world *w, const sp_run_terms *terms)
{
    CHECK_OK(sp__run_slots_acquire(&w->slots, terms));
    compute(w);
    sp__wait_entry_resume(sp__run_slots_release(&w->slots, terms));
}

static void run_once(slots_world *w)
{
    run_on(w, NULL);
}

/* Without lanes if there are none. */
static void run_often(void *arg, uint32_t index)
{
    slots_world *w = arg;
    const sp_run_terms terms = {.lane = w->lanes > 0 ? index % w->lanes : 0};
    for (uint64_t i = 0; i < test_count(100000, 3000); i++) {
        run_on(w, w->lanes > 0 ? &terms : NULL);
        if (index % 4 == 1 && i % 16 == 0) sp_thread_yield();
        if (index % 4 == 2 && i % 256 == 0) sp_clock_sleep(20000);
    }
}

static void check_no_more_runs_than_slots(uint32_t lanes)
{
    for (uint32_t count = 1; count <= SLOTS; count++) {
        slots_world w;
        world_begin(&w, count);
        w.lanes = lanes;
        test_threads(RUNNERS, run_often, &w);
        CHECK(sp_load_relaxed(&w.most) <= count);
        CHECK_EQ_U64(sp_load_relaxed(&w.runs), RUNNERS * test_count(100000, 3000));
        world_end(&w, count);
    }
}

TEST(no_more_runs_than_slots)
{
    check_no_more_runs_than_slots(0);
}

/* ---- kept slots ---- */

TEST(no_more_runs_than_slots_where_lanes_keep_them)
{
    check_no_more_runs_than_slots(5);
}

TEST(a_lane_keeps_its_slot_off_the_word)
{
    const sp_run_terms terms = {.lane = 1}, other = {.lane = 2};
    slots_world w;
    world_begin(&w, SLOTS);
    run_on(&w, &terms);
    const uint64_t word = sp_load_relaxed(&w.slots.free.word);
    CHECK_EQ_U64(word, SLOTS - 1);
    for (int i = 0; i < 10; i++) run_on(&w, &terms);
    CHECK_EQ_U64(sp_load_relaxed(&w.slots.free.word), word);
    run_on(&w, &other);
    CHECK_EQ_U64(sp_load_relaxed(&w.slots.free.word), word - 1);
    world_end(&w, SLOTS);
}

TEST(kept_slots_are_free_for_others)
{
    slots_world w;
    world_begin(&w, SLOTS);
    for (uint32_t lane = 0; lane < SLOTS; lane++) {
        const sp_run_terms terms = {.lane = lane};
        CHECK_OK(sp__run_slots_acquire(&w.slots, &terms));
    }
    for (uint32_t lane = 0; lane < SLOTS; lane++) {
        const sp_run_terms terms = {.lane = lane};
        CHECK(sp__run_slots_use(&w.slots, SLOTS - lane));
        CHECK(!sp__run_slots_use(&w.slots, SLOTS - lane + 1));
        sp__wait_entry_resume(sp__run_slots_release(&w.slots, &terms));
    }
    CHECK_EQ_U64(sp_load_relaxed(&w.slots.free.word), 0);
    CHECK_EQ_U64(sp__free_slots_count(&w.slots.free), SLOTS);
    const sp_run_terms refused = {.lane = SLOTS, .is_refused = true},
                       high = {.lane = SLOTS, .is_counted = true, .priority = SP_PRIORITY_HIGH};
    CHECK(sp__run_slots_try_acquire(&w.slots, &refused));
    CHECK(sp__run_slots_try_acquire(&w.slots, &high));
    CHECK(sp__run_slots_try_acquire(&w.slots, NULL));
    CHECK_EQ_U64(sp__free_slots_count(&w.slots.free), 0);
    CHECK_STATUS(sp__run_slots_acquire(&w.slots, &refused), SP_BUSY);
    sp__wait_entry_resume(sp__run_slots_release(&w.slots, NULL));
    sp__wait_entry_resume(sp__run_slots_release(&w.slots, &high));
    sp__wait_entry_resume(sp__run_slots_release(&w.slots, &refused));
    world_end(&w, SLOTS);
}

/* The watcher reads the clock before it looks at all lanes, so an owner may leave its slot after
 * that: it has just been there. */
TEST(a_slot_is_overdue_when_it_was_left_long_ago_and_not_when_it_was_left_meanwhile)
{
    const uint64_t start = sp_clock_now(), hour = UINT64_C(3600000000000);
    const uint64_t step = SP_RUN_QUANTUM_NS / 8;
    for (uint64_t left = start; left < start + 3 * hour; left += hour / 7 + 1) {
        const sp_run_tenure tenure = {.observed = left};
        const uint32_t state = sp__run_tenure_left_state(&tenure);
        for (uint64_t ns = 0; ns <= step; ns += step / 50) {
            CHECK(!sp__run_tenure_is_overdue(state, left - ns));
            CHECK(!sp__run_tenure_is_overdue(state, left + ns));
        }
        CHECK(!sp__run_tenure_is_overdue(state, left - SP_RUN_QUANTUM_NS));
        CHECK(sp__run_tenure_is_overdue(state, left + SP_RUN_QUANTUM_NS));
        CHECK(sp__run_tenure_is_overdue(state, left + hour / 2));
    }
}

/* A thread that waits though slots are free: as many runs of its flow as may be have one. */
typedef struct limited_world {
    slots_world *world;
    sp_run_terms terms;
} limited_world;

static void run_beside_its_flow(void *arg)
{
    const limited_world *limited = arg;
    run_on(limited->world, &limited->terms);
}

TEST(slots_that_are_left_are_free_for_newcomers)
{
    slots_world w;
    world_begin(&w, 2);
    sp_run_flow flow = {.limit = 1};
    limited_world limited = {&w, {.lane = 1, .flow = &flow, .is_counted = true}};
    const sp_run_terms owner = {.lane = 0}, newcomer = {.lane = 2, .is_refused = true};
    CHECK_OK(sp__run_slots_acquire(&w.slots, &limited.terms));
    CHECK_OK(sp__run_slots_acquire(&w.slots, &owner));
    sp_thread thread;
    REQUIRE_OK(sp_thread_create(&thread, "limited", run_beside_its_flow, &limited));
    while (sp__run_slots_waiting(&w.slots) == 0) sp_thread_yield();
    sp__thread_record()->tenure.returns_soon = true;
    sp__wait_entry_resume(sp__run_slots_release(&w.slots, &owner));
    CHECK_EQ_U64(sp__run_slots_waiting(&w.slots), 1);
    CHECK_OK(sp__run_slots_acquire(&w.slots, &newcomer));
    sp__wait_entry_resume(sp__run_slots_release(&w.slots, &newcomer));
    sp__wait_entry_resume(sp__run_slots_release(&w.slots, &limited.terms));
    sp_thread_join(&thread);
    world_end(&w, 2);
}

/* Whether a thread that has had so many runs and quanta in a row, and whose quantum is over, keeps
 * its slot, while a run on the terms `waits` waits. */
static bool goes_on(const sp_run_terms *owner, const sp_run_terms *waits, uint32_t runs,
                    uint32_t quanta)
{
    slots_world w;
    world_begin(&w, 1);
    limited_world waiting = {&w, *waits};
    CHECK_OK(sp__run_slots_acquire(&w.slots, owner));
    sp_thread thread;
    sp_run_tenure *tenure = &sp__thread_record()->tenure;
    if (sp_thread_create(&thread, "waiting", run_beside_its_flow, &waiting) != SP_OK) abort();
    while (sp__run_slots_waiting(&w.slots) == 0) sp_thread_yield();
    *tenure = (sp_run_tenure){.since = sp_clock_now() - SP_RUN_QUANTUM_NS,
                              .returns_soon = true,
                              .runs = runs,
                              .quanta = quanta};
    sp__wait_entry_resume(sp__run_slots_release(&w.slots, owner));
    const bool has_quantum = tenure->since != 0;
    CHECK_EQ_U64(tenure->quanta, has_quantum ? quanta + 1 : quanta);
    sp_thread_join(&thread); /* at the latest the watcher finds the slot */
    world_end(&w, 1);
    return has_quantum;
}

TEST(short_runs_have_quanta_in_a_row)
{
    sp_run_flow flow = {0};
    const sp_run_terms own = {.flow = &flow};
    CHECK(goes_on(&own, &own, 400, 0));
    CHECK(!goes_on(&own, &own, 100, 0)); /* they are not short */
    CHECK(goes_on(&own, &own, 2500, 6));
    CHECK(!goes_on(&own, &own, 2500, 7)); /* that is enough, */
    CHECK(!goes_on(&own, &own, 5000, 3)); /* and so is this */
    CHECK(goes_on(&(sp_run_terms){0}, &(sp_run_terms){0}, 400, 0));
}

TEST(short_runs_have_one_quantum_beside_runs_of_others)
{
    sp_run_flow flow = {0}, other = {0};
    const sp_run_terms own = {.flow = &flow};
    CHECK(!goes_on(&own, &(sp_run_terms){.flow = &other}, 400, 0));
    CHECK(!goes_on(&own, &(sp_run_terms){0}, 400, 0));
}

/* Threads 0 and 1 run without a pause until thread 2 has had all its turns. */
static void run_beside_hogs(void *arg, uint32_t index)
{
    slots_world *w = arg;
    if (index < 2) {
        while (sp_load_relaxed(&w->meek_done) == 0) run_once(w);
        return;
    }
    for (uint64_t i = 0; i < test_count(2000, 100); i++) {
        run_once(w);
        sp_thread_yield();
    }
    sp_store_relaxed(&w->meek_done, 1);
}

TEST(threads_that_never_pause_do_not_keep_others_out)
{
    slots_world w;
    world_begin(&w, 1);
    test_threads(3, run_beside_hogs, &w);
    world_end(&w, 1);
}

/* Thread 0 leaves its slot free, as one that comes back at once, and ends. */
static void leave_for_good(void *arg, uint32_t index)
{
    slots_world *w = arg;
    if (index != 0) {
        run_once(w);
        return;
    }
    while (sp__run_slots_waiting(&w->slots) < RUNNERS - 1) sp_thread_yield();
    sp__thread_record()->tenure.returns_soon = true;
    sp__wait_entry_resume(sp__run_slots_release(&w->slots, NULL));
}

TEST(a_slot_that_is_left_free_is_found)
{
    for (uint64_t i = 0; i < test_count(200, 10); i++) {
        slots_world w;
        world_begin(&w, 1);
        CHECK_OK(sp__run_slots_acquire(&w.slots, NULL));
        test_threads(RUNNERS, leave_for_good, &w);
        CHECK_EQ_U64(sp_load_relaxed(&w.runs), RUNNERS - 1);
        world_end(&w, 1);
    }
}

/* ---- a thread with a check ---- */

typedef struct slot_check {
    slots_world *world;
    uint32_t calls, last;
    bool gives_up; /* at the last call; else the slot is released then */
} slot_check;

/* While it is asked, the thread waits for nothing. */
static sp_status check_slots(void *ctx)
{
    slot_check *self = ctx;
    CHECK_EQ_U64(sp__run_slots_waiting(&self->world->slots), 0);
    if (++self->calls < self->last) return SP_OK;
    if (self->gives_up) return SP_CANCELLED;
    if (self->calls == self->last) {
        sp__wait_entry_resume(sp__run_slots_release(&self->world->slots, NULL));
        run_once(self->world);
    }
    return SP_OK;
}

TEST(a_wait_for_a_slot_is_given_up_or_goes_on)
{
    for (uint32_t i = 0; i < 2; i++) {
        slots_world w;
        sp_run_flow flow = {.most_queued = 1};
        sp_run_terms terms = {.flow = &flow, .is_bounded = true};
        slot_check check = {.world = &w, .last = 3, .gives_up = i == 0};
        world_begin(&w, 1);
        CHECK_OK(sp__run_slots_acquire(&w.slots, NULL));
        CHECK_OK(sp_thread_set_wait_check(check_slots, &check));
        const sp_status status = sp__run_slots_acquire(&w.slots, &terms);
        CHECK_OK(sp_thread_set_wait_check(NULL, NULL));
        if (i == 0) CHECK_STATUS(status, SP_CANCELLED);
        else CHECK_OK(status);
        CHECK_EQ_U64(check.calls, 3);
        sp__wait_entry_resume(sp__run_slots_release(&w.slots, i == 0 ? NULL : &terms));
        world_end(&w, 1);
    }
}

typedef struct slot_waiter {
    slots_world *world;
    bool asks;
    sp_atomic_u32 calls, turn; /* of the check; pairs: written before the thread ends */
    sp_atomic_u32 *turns;
    sp_thread thread;
} slot_waiter;

static sp_status count_call(void *ctx)
{
    sp_fetch_add_acq_rel((sp_atomic_u32 *)ctx, 1);
    return SP_OK;
}

static void wait_for_turn(void *arg)
{
    slot_waiter *self = arg;
    if (self->asks) CHECK_OK(sp_thread_set_wait_check(count_call, &self->calls));
    CHECK_OK(sp__run_slots_acquire(&self->world->slots, NULL));
    sp_store_release(&self->turn, sp_fetch_add_acq_rel(self->turns, 1));
    sp__wait_entry_resume(sp__run_slots_release(&self->world->slots, NULL));
    if (self->asks) CHECK_OK(sp_thread_set_wait_check(NULL, NULL));
}

TEST(a_thread_that_asks_its_check_does_not_overtake)
{
    slots_world w;
    sp_atomic_u32 turns = {0};
    slot_waiter waiters[3] = {{.world = &w}, {.world = &w, .asks = true}, {.world = &w}};
    world_begin(&w, 1);
    CHECK_OK(sp__run_slots_acquire(&w.slots, NULL));
    for (uint32_t i = 0; i < 3; i++) {
        waiters[i].turns = &turns;
        CHECK_OK(sp_thread_create(&waiters[i].thread, "waiter", wait_for_turn, &waiters[i]));
        while (sp_load_acquire(&waiters[1].calls) < 2 && sp__run_slots_waiting(&w.slots) != i + 1) {
            sp_thread_yield();
        }
    }
    while (sp_load_acquire(&waiters[1].calls) < 3) sp_thread_yield();
    sp__wait_entry_resume(sp__run_slots_release(&w.slots, NULL));
    for (uint32_t i = 0; i < 3; i++) sp_thread_join(&waiters[i].thread);
    CHECK_EQ_U64(sp_load_acquire(&waiters[0].turn), 0);
    world_end(&w, 1);
}

/* ---- submitted runs ---- */

typedef struct submitted_run {
    sp_run_request request;
    slots_world *world;
    sp_atomic_u32 is_done;
} submitted_run;

static void submitted_start(sp_wait_entry *entry, sp_resume_list *ready)
{
    submitted_run *run = SP_CONTAINER_OF(entry, submitted_run, request.entry);
    slots_world *w = run->world;
    compute(w);
    sp__resume_list_add(ready, sp__run_slots_release_submitted(&w->slots, &run->request));
    sp_store_release(&run->is_done, 1); /* pairs with the acquire of its submitter; last access */
}

/* No run of this test is merged. */
static void submitted_finish(sp_run_request *request, sp_resume_list *ready)
{
    (void)request;
    (void)ready;
    CHECK(false);
}

static void run_or_submit(void *arg, uint32_t index)
{
    slots_world *w = arg;
    for (uint64_t i = 0; i < test_count(50000, 2000); i++) {
        if (index % 2 == 0) {
            run_once(w);
            continue;
        }
        submitted_run run = {
            .request = {.entry = {.resume = submitted_start}, .finish = submitted_finish},
            .world = w};
        CHECK_OK(sp__run_slots_submit(&w->slots, &run.request));
        while (sp_load_acquire(&run.is_done) == 0) sp_thread_yield();
    }
}

TEST(submitted_runs_and_threads_share_the_slots)
{
    slots_world w;
    world_begin(&w, 2);
    test_threads(8, run_or_submit, &w);
    CHECK(sp_load_relaxed(&w.most) <= 2);
    CHECK_EQ_U64(sp_load_relaxed(&w.runs), 8 * test_count(50000, 2000));
    world_end(&w, 2);
}

/* Runs of a flow with one place, which begin in order of arrival whether they have a thread or not.
 */
typedef struct turn_world {
    slots_world slots;
    sp_run_flow flow;
    sp_atomic_u32 turns, ended;
} turn_world;

typedef struct turn_thread {
    turn_world *world;
    uint32_t turn;
    sp_thread thread;
} turn_thread;

typedef struct turn_submitted {
    sp_run_request request;
    turn_world *world;
    uint32_t turn;
} turn_submitted;

/* Longer than a quantum, so that the slot is passed on. */
static uint32_t turn_take(turn_world *w)
{
    const uint64_t until_ns = sp_clock_deadline(3 * SP_RUN_QUANTUM_NS);
    while (sp_clock_now() < until_ns) sp_thread_yield();
    return sp_fetch_add_acq_rel(&w->turns, 1);
}

static void turn_thread_main(void *arg)
{
    turn_thread *self = arg;
    turn_world *w = self->world;
    const sp_run_terms terms = {.flow = &w->flow, .is_counted = true};
    CHECK_OK(sp__run_slots_acquire(&w->slots.slots, &terms));
    self->turn = turn_take(w);
    sp__wait_entry_resume(sp__run_slots_release(&w->slots.slots, &terms));
    sp_fetch_add_acq_rel(&w->ended, 1);
}

static void turn_submitted_start(sp_wait_entry *entry, sp_resume_list *ready)
{
    turn_submitted *self = SP_CONTAINER_OF(entry, turn_submitted, request.entry);
    turn_world *w = self->world;
    self->turn = turn_take(w);
    sp__resume_list_add(ready, sp__run_slots_release_submitted(&w->slots.slots, &self->request));
    sp_fetch_add_acq_rel(&w->ended, 1);
}

TEST(a_submitted_run_of_a_flow_with_one_place_has_its_turn_among_threads)
{
    turn_world w = {.flow = {.limit = 1}};
    turn_thread threads[4];
    turn_submitted submitted = {
        .request = {.entry = {.resume = turn_submitted_start},
                    .finish = submitted_finish,
                    .terms = {.flow = &w.flow, .is_counted = true, .is_submitted = true}},
        .world = &w};
    const sp_run_terms terms = {.flow = &w.flow, .is_counted = true};
    world_begin(&w.slots, 2);
    CHECK_OK(sp__run_slots_acquire(&w.slots.slots, &terms));
    for (uint32_t i = 0; i < 4; i++) {
        threads[i] = (turn_thread){.world = &w};
        if (i == 2) CHECK_OK(sp__run_slots_submit(&w.slots.slots, &submitted.request));
        CHECK_OK(sp_thread_create(&threads[i].thread, "turn", turn_thread_main, &threads[i]));
        while (sp__run_slots_waiting(&w.slots.slots) != i + 1 + (i >= 2)) sp_thread_yield();
    }
    (void)turn_take(&w);
    sp__wait_entry_resume(sp__run_slots_release(&w.slots.slots, &terms));
    for (uint32_t i = 0; i < 4; i++) sp_thread_join(&threads[i].thread);
    while (sp_load_acquire(&w.ended) != 5) sp_thread_yield();
    CHECK(submitted.turn > threads[0].turn);
    CHECK(submitted.turn < threads[3].turn);
    world_end(&w.slots, 2);
}

/* ---- places in the queue ---- */

static sp_status wait_on(slots_world *w, sp_run_request *request)
{
    bool is_done;
    const sp_status status = sp__run_slots_wait(&w->slots, request, &is_done);
    CHECK(!is_done);
    return status;
}

static sp_run_request bounded_request(sp_run_flow *flow)
{
    return (sp_run_request){.terms = {.flow = flow, .is_bounded = true}};
}

static void release_when_one_waits(void *arg)
{
    slots_world *w = arg;
    while (sp__run_slots_waiting(&w->slots) == 0) sp_thread_yield();
    sp__wait_entry_resume(sp__run_slots_release(&w->slots, NULL));
}

TEST(a_reserved_place_is_refused_to_others_until_it_is_used_or_returned)
{
    slots_world w;
    sp_thread releaser;
    sp_run_flow flow = {.most_queued = 1};
    sp_run_request request = bounded_request(&flow), other = bounded_request(&flow);
    sp_run_request third = bounded_request(&flow);
    world_begin(&w, 1);
    CHECK_OK(sp__run_slots_acquire(&w.slots, NULL));
    CHECK(sp__run_slots_reserve(&w.slots, &request));
    CHECK(!sp__run_slots_reserve(&w.slots, &other));
    CHECK_STATUS(wait_on(&w, &other), SP_BUSY);
    CHECK_MESSAGE("1 runs of the model wait for a run slot");
    sp__run_slots_unreserve(&w.slots, &request);
    sp__run_slots_unreserve(&w.slots, &request);      /* there is none */
    REQUIRE(sp__run_slots_reserve(&w.slots, &other)); /* else no thread would wait */
    CHECK_OK(sp_thread_create(&releaser, "releaser", release_when_one_waits, &w));
    CHECK_OK(wait_on(&w, &other));
    sp_thread_join(&releaser);
    CHECK(sp__run_slots_reserve(&w.slots, &third));
    sp__run_slots_unreserve(&w.slots, &third);
    CHECK_EQ_U64(flow.reserved + flow.queued, 0);
    sp__wait_entry_resume(sp__run_slots_release(&w.slots, NULL));
    world_end(&w, 1);
}

/* Parts of a run that has been accepted may be queued meanwhile, which no limit refuses. */
TEST(a_reserved_place_outlives_a_line_that_becomes_too_long)
{
    slots_world w;
    sp_thread releaser;
    sp_run_flow flow = {.most_queued = 1};
    sp_run_request request = bounded_request(&flow);
    world_begin(&w, 1);
    CHECK_OK(sp__run_slots_acquire(&w.slots, NULL));
    CHECK(sp__run_slots_reserve(&w.slots, &request));
    flow.reserved++;
    CHECK_OK(sp_thread_create(&releaser, "releaser", release_when_one_waits, &w));
    CHECK_OK(wait_on(&w, &request));
    sp_thread_join(&releaser);
    CHECK_EQ_U64(flow.reserved, 1);
    sp__wait_entry_resume(sp__run_slots_release(&w.slots, NULL));
    world_end(&w, 1);
}

TEST(an_owner_yields_a_few_times_for_callers_that_do_not_return)
{
    sp_run_group group = {0};
    CHECK(!sp__run_group_has_others(&group));
    CHECK(!sp__run_group_expects(&group));
    sp__run_group_finished(&group, 3);
    CHECK(sp__run_group_has_others(&group));
    uint32_t yields = 0;
    while (yields < 100 && sp__run_group_expects(&group)) yields++;
    CHECK(yields > 0 && yields < 20);
    CHECK(!sp__run_group_has_others(&group)); /* so later runs do not look any more */
}

TEST(an_owner_does_not_yield_for_callers_that_have_returned)
{
    sp_run_group group = {0};
    sp__run_group_finished(&group, 3);
    sp_store_relaxed(&group.count, 3);
    CHECK(!sp__run_group_expects(&group));
    sp_store_relaxed(&group.count, 2);
    CHECK(sp__run_group_expects(&group));
}

TEST_MAIN
