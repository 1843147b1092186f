/* SPDX-License-Identifier: Apache-2.0 */
/* Each kind of bug in a few lines: every search finds it, under the right name, and the schedule
 * string reproduces it. Correct variants of the bugs are not reported. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/macros.h"
#include "base/mutex.h"
#include "base/raw_heap.h"
#include "base/thread.h"
#include "base/wait.h"
#include "subject.h"

#define BODY(name) static void name(__attribute__((unused)) void *arg)

static struct {
    sp_mutex a;
    sp_mutex b;
    sp_cond cond;
    sp_atomic_u32 word;
    sp_atomic_u32 flag;
    sp_parker parker;
    uint32_t plain;
    uint32_t *block;
    uint32_t *never_set;
} shared;

/* --- locks --- */

BODY(lock_ab)
{
    sp_mutex_lock(&shared.a);
    sp_mutex_lock(&shared.b);
    sp_mutex_unlock(&shared.b);
    sp_mutex_unlock(&shared.a);
}

BODY(lock_ba)
{
    sp_mutex_lock(&shared.b);
    sp_mutex_lock(&shared.a);
    sp_mutex_unlock(&shared.a);
    sp_mutex_unlock(&shared.b);
}

BODY(increment_locked)
{
    sp_mutex_lock(&shared.a);
    shared.plain++;
    sp_mutex_unlock(&shared.a);
}

BODY(increment)
{
    shared.plain++;
}

SP_NO_LOCK_ANALYSIS BODY(unlock_only)
{
    sp_mutex_unlock(&shared.a);
}

SP_NO_LOCK_ANALYSIS BODY(lock_twice)
{
    sp_mutex_lock(&shared.a);
    sp_mutex_lock(&shared.a);
}

BODY(try_and_increment)
{
    if (!sp_mutex_try_lock(&shared.a)) return;
    shared.plain++;
    sp_mutex_unlock(&shared.a);
}

SP_NO_LOCK_ANALYSIS BODY(try_trusting)
{
    SP_SCHED_ASSERT(sp_mutex_try_lock(&shared.a));
    sp_mutex_unlock(&shared.a);
}

/* --- sleeping --- */

BODY(wait_in_loop)
{
    sp_mutex_lock(&shared.a);
    while (shared.plain == 0) sp_cond_wait(&shared.cond, &shared.a);
    sp_mutex_unlock(&shared.a);
}

BODY(wait_once)
{
    sp_mutex_lock(&shared.a);
    if (shared.plain == 0) sp_cond_wait(&shared.cond, &shared.a);
    SP_SCHED_ASSERT(shared.plain != 0);
    sp_mutex_unlock(&shared.a);
}

BODY(wait_once_timed)
{
    sp_mutex_lock(&shared.a);
    if (shared.plain == 0) {
        const uint64_t deadline = sp_clock_now() + 1000;
        SP_SCHED_ASSERT(sp_cond_wait_until(&shared.cond, &shared.a, deadline));
    }
    sp_mutex_unlock(&shared.a);
}

BODY(signal_locked)
{
    sp_mutex_lock(&shared.a);
    shared.plain = 1;
    sp_cond_signal(&shared.cond);
    sp_mutex_unlock(&shared.a);
}

BODY(wait_for_flag)
{
    sp_mutex_lock(&shared.a);
    while (sp_load_acquire(&shared.flag) == 0) sp_cond_wait(&shared.cond, &shared.a);
    sp_mutex_unlock(&shared.a);
}

BODY(signal_unlocked)
{
    sp_store_release(&shared.flag, 1);
    sp_cond_signal(&shared.cond);
}

BODY(word_sleep)
{
    while (sp_load_acquire(&shared.word) == 0) sp_word_wait(&shared.word, 0, SP_NO_DEADLINE);
}

BODY(word_sleep_timed)
{
    while (sp_load_acquire(&shared.word) == 0) {
        sp_word_wait(&shared.word, 0, sp_clock_now() + 1000000);
    }
}

BODY(store_and_wake)
{
    sp_store_release(&shared.word, 1);
    sp_word_wake(&shared.word, 1);
}

BODY(wake_and_store)
{
    sp_word_wake(&shared.word, 1);
    sp_store_release(&shared.word, 1);
}

BODY(park)
{
    sp_parker_park(&shared.parker, SP_NO_DEADLINE);
    SP_SCHED_ASSERT(shared.plain == 7);
}

BODY(unpark)
{
    shared.plain = 7;
    sp_parker_unpark(&shared.parker);
}

/* --- spins --- */

BODY(spin_on_flag)
{
    while (sp_load_acquire(&shared.flag) == 0) sp_spin_hint();
}

BODY(set_flag)
{
    sp_store_release(&shared.flag, 1);
}

static void spin_lock(void)
{
    for (;;) {
        uint32_t seen = 0;
        if (sp_cas_acquire(&shared.word, &seen, 1)) return;
        sp_spin_hint();
    }
}

BODY(spin_and_increment)
{
    spin_lock();
    shared.plain++;
    sp_store_release(&shared.word, 0);
}

BODY(spin_and_unlock_relaxed)
{
    spin_lock();
    shared.plain++;
    sp_store_relaxed(&shared.word, 0);
}

/* --- publication --- */

void __tsan_atomic_thread_fence(int order); /* called by name: gcc warns about the builtin */

BODY(publish_release)
{
    shared.plain = 1;
    sp_store_release(&shared.flag, 1);
}

BODY(publish_too_early)
{
    sp_store_release(&shared.flag, 1);
    shared.plain = 1;
}

BODY(read_if_told)
{
    if (sp_load_acquire(&shared.flag) != 0) (void)*(volatile uint32_t *)&shared.plain;
}

BODY(publish_relaxed)
{
    shared.plain = 1;
    sp_store_relaxed(&shared.flag, 1);
}

BODY(read_and_tell_relaxed)
{
    SP_SCHED_ASSERT(shared.plain == 0);
    sp_store_relaxed(&shared.flag, 1);
}

BODY(write_when_told)
{
    if (sp_load_acquire(&shared.flag) != 0) shared.plain = 1;
}

BODY(publish_fenced)
{
    shared.plain = 1;
    __tsan_atomic_thread_fence(__ATOMIC_RELEASE);
    sp_store_relaxed(&shared.flag, 1);
}

BODY(consume_acquire)
{
    if (sp_load_acquire(&shared.flag) != 0) SP_SCHED_ASSERT(shared.plain == 1);
}

BODY(consume_relaxed)
{
    if (sp_load_relaxed(&shared.flag) != 0) SP_SCHED_ASSERT(shared.plain == 1);
}

BODY(consume_fenced)
{
    if (sp_load_relaxed(&shared.flag) == 0) return;
    __tsan_atomic_thread_fence(__ATOMIC_ACQUIRE);
    SP_SCHED_ASSERT(shared.plain == 1);
}

BODY(add_in_two_steps)
{
    const uint32_t before = sp_load_relaxed(&shared.flag);
    sp_store_relaxed(&shared.flag, before + 1);
}

/* The stores that are read depend on the schedule, and the search leaves out stale values. */
BODY(tell_twice)
{
    sp_store_relaxed(&shared.flag, 1);
    sp_store_relaxed(&shared.word, 1);
}

BODY(see_one_of_two)
{
    const uint32_t first = sp_load_relaxed(&shared.flag);
    const uint32_t second = sp_load_relaxed(&shared.word);
    SP_SCHED_ASSERT(first == 0 || second == 1);
}

/* --- the heap --- */

BODY(read_and_drop)
{
    SP_SCHED_ASSERT(shared.block[1] == 2);
    if (sp_fetch_add_acq_rel(&shared.flag, 1) == 1) sp__raw_free(shared.block);
}

BODY(free_and_tell)
{
    sp__raw_free(shared.block);
    sp_store_release(&shared.flag, 1);
}

BODY(read_when_told)
{
    if (sp_load_acquire(&shared.flag) != 0) SP_SCHED_ASSERT(shared.block[1] == 2);
}

BODY(free_when_told)
{
    if (sp_load_acquire(&shared.flag) != 0) sp__raw_free(shared.block);
}

BODY(free_unless_told)
{
    if (sp_load_relaxed(&shared.flag) == 0) sp__raw_free(shared.block);
}

BODY(read_past_end)
{
    SP_SCHED_ASSERT(shared.block[2] != 0);
}

BODY(follow_null_when_told)
{
    if (sp_load_relaxed(&shared.flag) != 0) shared.plain = *shared.never_set;
}

BODY(never_join)
{
    sp_thread thread;
    SP_SCHED_ASSERT(sp_thread_create(&thread, "", increment, NULL) == SP_OK);
}

typedef struct verdict_test {
    const char *name;
    sp_thread_fn bodies[2];
    sp_sched_verdict expected;
    sp_sched_verdict or_else; /* verdict of other schedules of the same bug */
    uint32_t sum;             /* if not 0: the value of plain + flag at the end */
    bool has_block;
    sp_explore_options options;
} verdict_test;

static const verdict_test tests[] = {
    {"locks in order", {lock_ab, lock_ab}, .expected = SP_SCHED_OK},
    {"one of two stores", {tell_twice, see_one_of_two}, .expected = SP_SCHED_ASSERTION},
    {"inverted locks", {lock_ab, lock_ba}, .expected = SP_SCHED_DEADLOCK},
    {"recursive lock", {lock_twice, set_flag}, .expected = SP_SCHED_DEADLOCK},
    {"locked counter", {increment_locked, increment_locked}, .sum = 2},
    {"unlocked counter", {increment, increment}, .expected = SP_SCHED_RACE},
    {"half locked counter", {increment_locked, increment}, .expected = SP_SCHED_RACE},
    {"unlock without lock", {increment_locked, unlock_only}, .expected = SP_SCHED_MISUSE},
    {"try_lock", {try_and_increment, increment_locked}, .expected = SP_SCHED_OK},
    {"try_lock that fails", {try_trusting, increment_locked}, .expected = SP_SCHED_ASSERTION},
    {"cond", {wait_in_loop, signal_locked}, .expected = SP_SCHED_OK},
    {"cond, spurious", {wait_in_loop, signal_locked}, .options = {.spurious_wakeups = 2}},
    {"signal without the mutex",
     {wait_for_flag, signal_unlocked},
     .expected = SP_SCHED_LOST_WAKEUP},
    {"wait without a loop", {wait_once, signal_locked}, .expected = SP_SCHED_OK},
    {"the same, spurious",
     {wait_once, signal_locked},
     .expected = SP_SCHED_ASSERTION,
     .options = {.spurious_wakeups = 1}},
    {"time-out forgotten", {wait_once_timed, signal_locked}, .expected = SP_SCHED_OK},
    {"the same, time-outs are choices",
     {wait_once_timed, signal_locked},
     .expected = SP_SCHED_ASSERTION,
     .options = {.timeouts_are_choices = true}},
    {"word", {word_sleep, store_and_wake}, .expected = SP_SCHED_OK},
    {"word, spurious", {word_sleep, store_and_wake}, .options = {.spurious_wakeups = 2}},
    {"wake before store", {word_sleep, wake_and_store}, .expected = SP_SCHED_LOST_WAKEUP},
    {"the same, timed", {word_sleep_timed, wake_and_store}, .expected = SP_SCHED_OK},
    {"the same, time-outs are choices",
     {word_sleep_timed, wake_and_store},
     .options = {.timeouts_are_choices = true}},
    {"parker", {park, unpark}, .expected = SP_SCHED_OK},
    {"spin that ends", {spin_on_flag, set_flag}, .expected = SP_SCHED_OK},
    {"spin without end", {spin_on_flag, increment}, .expected = SP_SCHED_LIVELOCK},
    {"spin lock", {spin_and_increment, spin_and_increment}, .sum = 2},
    {"relaxed spin lock", {spin_and_unlock_relaxed, spin_and_increment}, .expected = SP_SCHED_RACE},
    {"publish by release", {publish_release, consume_acquire}, .expected = SP_SCHED_OK},
    {"write after the release", {publish_too_early, read_if_told}, .expected = SP_SCHED_RACE},
    {"publish relaxed", {publish_relaxed, consume_acquire}, .expected = SP_SCHED_RACE},
    {"consume relaxed", {publish_release, consume_relaxed}, .expected = SP_SCHED_RACE},
    {"read before an unordered write",
     {read_and_tell_relaxed, write_when_told},
     .expected = SP_SCHED_RACE},
    {"publish by fences", {publish_fenced, consume_fenced}, .expected = SP_SCHED_OK},
    {"publish by half a fence", {publish_fenced, consume_relaxed}, .expected = SP_SCHED_RACE},
    {"lost update", {add_in_two_steps, add_in_two_steps}, .expected = SP_SCHED_ASSERTION, .sum = 2},
    {"the last one frees", {read_and_drop, read_and_drop}, .has_block = true},
    {"use after free",
     {free_and_tell, read_when_told},
     .expected = SP_SCHED_USE_AFTER_FREE,
     .has_block = true},
    {"unordered free",
     {free_and_tell, read_and_drop},
     .expected = SP_SCHED_USE_AFTER_FREE,
     .or_else = SP_SCHED_RACE,
     .has_block = true},
    {"double free",
     {free_and_tell, free_when_told},
     .expected = SP_SCHED_DOUBLE_FREE,
     .has_block = true},
    {"leak", {free_unless_told, set_flag}, .expected = SP_SCHED_LEAK, .has_block = true},
    {"out of bounds",
     {read_past_end, set_flag},
     .expected = SP_SCHED_OUT_OF_BOUNDS,
     .has_block = true},
    {"null pointer", {follow_null_when_told, set_flag}, .expected = SP_SCHED_CRASH},
    {"thread never joined", {never_join, set_flag}, .expected = SP_SCHED_LEAK},
};

static void run_bodies(void *arg)
{
    const verdict_test *test = arg;
    sp_thread threads[2];
    memset(&shared, 0, sizeof shared);
    sp_mutex_init(&shared.a, SP_LOCK_FOREIGN);
    sp_mutex_init(&shared.b, SP_LOCK_FOREIGN);
    if (test->has_block) {
        shared.block = sp__raw_malloc(2 * sizeof *shared.block);
        shared.block[0] = 1;
        shared.block[1] = 2;
    }
    for (int i = 0; i < 2; i++) {
        SP_SCHED_ASSERT(sp_thread_create(&threads[i], "", test->bodies[i], NULL) == SP_OK);
    }
    for (int i = 0; i < 2; i++) sp_thread_join(&threads[i]);
    if (test->sum != 0) {
        SP_SCHED_ASSERT(shared.plain + sp_load_relaxed(&shared.flag) == test->sum);
    }
}

static bool complain(const verdict_test *test, const char *how, const sp_explore_result *result)
{
    printf("  %s, %s: %s (%s), expected %s\n", test->name, how,
           sp_sched_verdict_name(result->verdict), result->message,
           sp_sched_verdict_name(test->expected));
    return false;
}

static bool replays(const verdict_test *test, const sp_explore_options *options,
                    const sp_explore_result *found)
{
    char *schedule = strdup(found->schedule);
    sp_explore_result again;
    sp_explore_replay(run_bodies, (void *)(uintptr_t)test, options, schedule, NULL, &again);
    free(schedule);
    if (again.verdict == found->verdict && strcmp(again.message, found->message) == 0) return true;
    return complain(test, "replayed", &again);
}

static bool has_verdict(const verdict_test *test, sp_sched_search search, sp_sched_level level,
                        uint64_t seed, bool use_os_threads)
{
    const bool is_random = search == SP_SEARCH_PCT || search == SP_SEARCH_WALK;
    sp_explore_options options = test->options;
    options.search = search;
    options.level = level;
    options.seed = seed;
    options.use_os_threads = use_os_threads;
    options.max_steps = 1000;
    options.max_seconds = 10;
    if (is_random) options.max_schedules = use_os_threads ? 300 : 2000;
    sp_explore_result result;
    sp_explore(run_bodies, (void *)(uintptr_t)test, &options, &result);
    const bool is_right = result.verdict == test->expected ||
                          (test->or_else != SP_SCHED_OK && result.verdict == test->or_else);
    if (!is_right) return complain(test, sp_sched_search_name(search), &result);
    if (result.verdict != SP_SCHED_OK) return replays(test, &options, &result);
    if (is_random || result.is_exhausted) return true;
    return complain(test, "not exhausted", &result);
}

static bool all_have_verdicts(sp_sched_search search, sp_sched_level level, uint64_t seed,
                              bool use_os_threads)
{
    bool is_right = true;
    for (size_t i = 0; i < SP_COUNT_OF(tests); i++) {
        is_right = has_verdict(&tests[i], search, level, seed, use_os_threads) && is_right;
    }
    return is_right;
}

static bool verdicts_exhaustive(void)
{
    const bool bounded = all_have_verdicts(SP_SEARCH_BOUNDED, SP_LEVEL_HB, 0, false);
    const bool dpor = all_have_verdicts(SP_SEARCH_DPOR, SP_LEVEL_HB, 0, false);
    const bool weak = all_have_verdicts(SP_SEARCH_DPOR, SP_LEVEL_WEAK, 0, false);
    return bounded && dpor && weak;
}

static bool verdicts_random(void)
{
    bool is_right = true;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        is_right = all_have_verdicts(SP_SEARCH_PCT, SP_LEVEL_HB, seed, false) && is_right;
        is_right = all_have_verdicts(SP_SEARCH_WALK, SP_LEVEL_WEAK, seed, false) && is_right;
    }
    return is_right;
}

static bool verdicts_os_threads(void)
{
    return all_have_verdicts(SP_SEARCH_DPOR, SP_LEVEL_HB, 0, true) &&
           all_have_verdicts(SP_SEARCH_WALK, SP_LEVEL_HB, 1, true);
}

const sp_selftest sp__selftests_verdicts[] = {
    {"verdicts, bounded and dpor", verdicts_exhaustive},
    {"verdicts, pct and walk", verdicts_random},
    {"verdicts, token between threads", verdicts_os_threads},
    {NULL, NULL},
};
