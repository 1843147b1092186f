/* SPDX-License-Identifier: Apache-2.0 */
/* The lock order: allowed orders pass; violations end a debug build with a message that names both
 * locks. Each violation runs in its own child process. */
#include "base/mutex.h"

#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "base/wait.h"
#include "support/child.h"
#include "support/test.h"

static sp_mutex storage = SP_MUTEX_INIT(SP_LOCK_STORAGE);
static sp_mutex queue = SP_MUTEX_INIT(SP_LOCK_QUEUE);
static sp_mutex timeline = SP_MUTEX_INIT(SP_LOCK_TIMELINE);
static sp_mutex records = SP_MUTEX_INIT(SP_LOCK_RECORDS);
static sp_mutex foreign = SP_MUTEX_INIT(SP_LOCK_FOREIGN);
static sp_mutex other_foreign = SP_MUTEX_INIT(SP_LOCK_FOREIGN);
static sp_mutex placed[3];
static sp_cond cond;

static void lock_both(sp_mutex *outer, sp_mutex *inner) SP_NO_LOCK_ANALYSIS
{
    sp_mutex_lock(outer);
    sp_mutex_lock(inner);
    sp_mutex_unlock(inner);
    sp_mutex_unlock(outer);
}

static void place_mutexes(void)
{
    for (uint32_t i = 0; i < SP_COUNT_OF(placed); i++) {
        sp_mutex_init(&placed[i], SP_LOCK_STORAGE);
        sp_mutex_set_place(&placed[i], i + 1);
    }
}

/* ---- allowed orders ---- */

TEST(locks_are_taken_in_the_order_of_their_ranks)
{
    lock_both(&storage, &queue);
    lock_both(&queue, &timeline);
    lock_both(&storage, &records);
}

TEST(locks_with_places_are_taken_in_growing_order)
{
    place_mutexes();
    lock_both(&placed[0], &placed[1]);
    lock_both(&placed[0], &placed[2]);
}

TEST(locks_may_be_given_back_in_any_order) SP_NO_LOCK_ANALYSIS
{
    place_mutexes();
    for (int i = 0; i < 3; i++) sp_mutex_lock(&placed[i]);
    sp_mutex_unlock(&placed[1]);
    sp_mutex_unlock(&placed[0]);
    sp_mutex_lock(&queue);
    sp_mutex_unlock(&placed[2]);
    sp_mutex_unlock(&queue);
    sp_lock_check_none("a test"); /* no lock is recorded as held */
    lock_both(&storage, &queue);
}

TEST(a_foreign_lock_may_be_taken_and_held_anywhere)
{
    lock_both(&timeline, &foreign);
    lock_both(&other_foreign, &storage);
    sp_parker parker = {{1}};
    sp_mutex_lock(&foreign);
    CHECK(sp_parker_park(&parker, SP_NO_DEADLINE));
    sp_mutex_unlock(&foreign);
}

TEST(a_thread_may_sleep_with_the_mutex_of_the_condition)
{
    sp_mutex_lock(&timeline);
    while (sp_cond_wait_until(&cond, &timeline, sp_clock_now() + 1000000)) {
    }
    sp_mutex_unlock(&timeline);
    sp_lock_check_none("a test");
}

static void lock_storage(void *arg)
{
    (void)arg;
    sp_mutex_lock(&storage);
    sp_mutex_unlock(&storage);
}

TEST(what_one_thread_holds_is_nothing_to_another)
{
    sp_thread thread;
    sp_mutex_lock(&timeline);
    const sp_status status = sp_thread_create(&thread, "locks", lock_storage, NULL);
    if (status == SP_OK) sp_thread_join(&thread); /* locked while this thread holds its lock */
    sp_mutex_unlock(&timeline);
    CHECK_OK(status);
}

/* ---- violations ---- */

/* Runs fn in a child, which must end as debug builds do, with this message. */
static void must_be_caught(void (*fn)(void), const char *message)
{
    char text[4096];
    CHECK_EQ_INT(child_capture(fn, text, sizeof text), 1000 + SIGABRT);
    const bool is_named = strstr(text, message) != NULL;
    CHECK(is_named);
    if (!is_named) test_note("expected \"%s\", got \"%s\"", message, text);
}

/* A violation, in its own child process; builds without assertions have no check. */
#if SP_LOCK_CHECKS
#define FORBIDDEN(name, message)                                                                   \
    static void violate_##name(void);                                                              \
    TEST(name)                                                                                     \
    {                                                                                              \
        must_be_caught(violate_##name, "broken invariant: lock order: " message);                  \
    }                                                                                              \
    static SP_NO_LOCK_ANALYSIS void violate_##name(void)
#else
#define FORBIDDEN(name, message)                                                                   \
    static void violate_##name(void);                                                              \
    TEST(name)                                                                                     \
    {                                                                                              \
        (void)must_be_caught, (void)violate_##name;                                                \
        SKIP("builds without assertions do not check locks");                                      \
    }                                                                                              \
    static SP_NO_LOCK_ANALYSIS void violate_##name(void)
#endif

FORBIDDEN(the_wrong_way_round_is_caught,
          "sp_rt_storage.lock (rank 3) is taken inside sp_command_queue.lock (rank 5)")
{
    lock_both(&queue, &storage);
}

FORBIDDEN(one_rank_twice_is_caught,
          "sp_rt_storage.lock (rank 3) is taken inside sp_rt_storage.lock (rank 3)")
{
    sp_mutex another = SP_MUTEX_INIT(SP_LOCK_STORAGE);
    lock_both(&storage, &another);
}

FORBIDDEN(one_mutex_twice_is_caught_and_no_deadlock,
          "sp_command_queue.lock (rank 5) is taken inside sp_command_queue.lock (rank 5)")
{
    lock_both(&queue, &queue);
}

FORBIDDEN(falling_places_are_caught, "sp_rt_storage.lock (rank 3, place 1) is taken inside "
                                     "sp_rt_storage.lock (rank 3, place 3)")
{
    place_mutexes();
    lock_both(&placed[2], &placed[0]);
}

FORBIDDEN(a_lock_inside_a_leaf_is_caught,
          "records.lock (leaf) is taken inside sp_timeline.lock (leaf)")
{
    lock_both(&timeline, &records);
}

FORBIDDEN(an_older_lock_counts_too,
          "graph.lock (rank 4) is taken inside sp_command_queue.lock (rank 5)")
{
    sp_mutex graph = SP_MUTEX_INIT(SP_LOCK_WAIT_GRAPH);
    sp_mutex_lock(&queue);
    if (sp_mutex_try_lock(&storage)) sp_mutex_lock(&graph); /* the newest lock would allow it */
}

FORBIDDEN(parking_with_a_lock_held_is_caught, "parking inside sp_timeline.lock (leaf)")
{
    sp_parker parker = {{1}}; /* even if it would not sleep */
    sp_mutex_lock(&timeline);
    sp_parker_park(&parker, SP_NO_DEADLINE);
}

FORBIDDEN(a_wait_on_a_word_with_a_lock_held_is_caught,
          "a wait on a word inside sp_timeline.lock (leaf)")
{
    sp_atomic_u32 word = {1};
    sp_mutex_lock(&timeline);
    sp_word_wait(&word, 0, SP_NO_DEADLINE);
}

FORBIDDEN(a_wait_for_a_condition_with_another_lock_held_is_caught,
          "a wait for a condition inside sp_command_queue.lock (rank 5)")
{
    sp_mutex_lock(&queue);
    sp_mutex_lock(&timeline);
    sp_cond_wait(&cond, &timeline);
}

TEST_MAIN
