/* SPDX-License-Identifier: Apache-2.0 */
/* The searches themselves: DPOR with sleep sets visits exactly the Mazurkiewicz traces of the full
 * search, without redundant runs; PCT reaches depth 3; state that survives a run is detected. */
#include <stdio.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/macros.h"
#include "base/mutex.h"
#include "base/raw_heap.h"
#include "base/tagged_stack.h"
#include "base/thread.h"
#include "base/wait.h"
#include "portfolio.h"

#define BODY(name) static void name(__attribute__((unused)) void *arg)
#define THREADS_MAX 3

static struct {
    sp_mutex a;
    sp_mutex b;
    sp_cond cond;
    sp_atomic_u32 x;
    sp_atomic_u32 y;
    sp_atomic_u32 z[THREADS_MAX];
    sp_tagged_stack stack;
    sp_atomic_u32 links[2];
    uint32_t plain;
} shared;

BODY(write_x)
{
    sp_store_release(&shared.x, 1);
}

BODY(read_x)
{
    (void)sp_load_acquire(&shared.x);
}

BODY(x_then_y)
{
    sp_store_release(&shared.x, 1);
    (void)sp_load_acquire(&shared.y);
    sp_store_release(&shared.x, 2);
}

BODY(y_then_x)
{
    sp_store_release(&shared.y, 1);
    (void)sp_load_acquire(&shared.x);
    sp_store_release(&shared.y, 2);
}

BODY(add_x)
{
    uint32_t seen = sp_load_relaxed(&shared.x);
    if (!sp_cas_acq_rel(&shared.x, &seen, seen + 1)) sp_fetch_add_relaxed(&shared.y, 1);
}

BODY(count_locked)
{
    sp_mutex_lock(&shared.a);
    shared.plain++;
    sp_mutex_unlock(&shared.a);
    sp_mutex_lock(&shared.b);
    shared.plain += 0;
    sp_mutex_unlock(&shared.b);
}

BODY(both_locks)
{
    sp_mutex_lock(&shared.a);
    sp_mutex_lock(&shared.b);
    shared.plain++;
    sp_mutex_unlock(&shared.b);
    sp_mutex_unlock(&shared.a);
}

BODY(lock_b_only)
{
    sp_mutex_lock(&shared.b);
    sp_store_relaxed(&shared.x, 1);
    sp_mutex_unlock(&shared.b);
    (void)sp_load_relaxed(&shared.y);
}

BODY(try_a)
{
    if (!sp_mutex_try_lock(&shared.a)) return;
    sp_store_relaxed(&shared.y, 1);
    sp_mutex_unlock(&shared.a);
}

BODY(wait_for_count)
{
    sp_mutex_lock(&shared.a);
    while (shared.plain == 0) sp_cond_wait(&shared.cond, &shared.a);
    sp_mutex_unlock(&shared.a);
}

BODY(count_and_signal)
{
    sp_mutex_lock(&shared.a);
    shared.plain++;
    sp_mutex_unlock(&shared.a);
    sp_cond_broadcast(&shared.cond);
}

BODY(word_waiter)
{
    while (sp_load_acquire(&shared.x) == 0) sp_word_wait(&shared.x, 0, UINT64_MAX);
    sp_store_release(&shared.y, 1);
}

BODY(word_waker)
{
    sp_store_release(&shared.x, 1);
    sp_word_wake(&shared.x, 2);
    (void)sp_load_acquire(&shared.y);
}

static sp_atomic_u32 *link_of(void *ctx, uint32_t slot)
{
    (void)ctx;
    return &shared.links[slot];
}

BODY(pop_and_push)
{
    uint32_t slot;
    if (!sp_tagged_stack_pop(&shared.stack, link_of, NULL, &slot)) return;
    sp_tagged_stack_push(&shared.stack, link_of, NULL, slot);
}

/* Three orders must hold: x's 1 before the read, y's 1 before the read, x's 2 before the last read.
 * The other threads' steps in between make each unlikely. */
static void steps_of_others(uint32_t thread)
{
    for (int i = 0; i < 6; i++) sp_store_relaxed(&shared.z[thread], 1);
}

BODY(depth_3_first)
{
    steps_of_others(0);
    sp_store_release(&shared.x, 1);
    if (sp_load_acquire(&shared.y) == 1) sp_store_release(&shared.x, 2);
    steps_of_others(0);
}

BODY(depth_3_second)
{
    if (sp_load_acquire(&shared.x) != 1) return;
    sp_store_release(&shared.y, 1);
    SP_SCHED_ASSERT(sp_load_acquire(&shared.x) != 2);
}

BODY(depth_3_noise)
{
    steps_of_others(2);
}

typedef struct program {
    const char *name;
    sp_thread_fn bodies[THREADS_MAX];
    uint32_t traces; /* if known by hand; else 0 */
} program;

static const program programs[] = {
    {"write, write", {write_x, write_x}, 2},
    {"write, read, read", {write_x, read_x, read_x}, 4},
    {"write, write, write", {write_x, write_x, write_x}, 6},
    {"independent", {write_x, depth_3_noise}, 1},
    {"crossed", {x_then_y, y_then_x}, 7},
    {"crossed, with a reader", {x_then_y, y_then_x, read_x}, 0},
    {"compare and swap", {add_x, add_x}, 4},
    {"compare and swap, 3", {add_x, add_x, add_x}, 0},
    {"locks", {count_locked, count_locked}, 0},
    {"locks, 3", {both_locks, lock_b_only, lock_b_only}, 0},
    {"try_lock", {try_a, both_locks}, 0},
    {"try_lock, 3", {try_a, both_locks, try_a}, 0},
    {"cond", {wait_for_count, count_and_signal}, 0},
    {"cond, 3", {wait_for_count, count_and_signal, wait_for_count}, 0},
    {"word", {word_waiter, word_waker}, 0},
    {"word, 3", {word_waiter, word_waker, word_waiter}, 0},
    {"stack", {pop_and_push, pop_and_push}, 0},
};

static void run_program(void *arg)
{
    const program *p = arg;
    sp_thread threads[THREADS_MAX];
    shared.plain = 0;
    sp_mutex_init(&shared.a, SP_LOCK_FOREIGN);
    sp_mutex_init(&shared.b, SP_LOCK_FOREIGN);
    shared.x.value = shared.y.value = 0;
    for (int i = 0; i < THREADS_MAX; i++) shared.z[i].value = 0;
    shared.stack.head.value = 2;
    shared.links[0].value = 0;
    shared.links[1].value = 1;
    for (int i = 0; i < THREADS_MAX && p->bodies[i] != NULL; i++) {
        SP_SCHED_ASSERT(sp_thread_create(&threads[i], "", p->bodies[i], NULL) == SP_OK);
    }
    for (int i = 0; i < THREADS_MAX && p->bodies[i] != NULL; i++) sp_thread_join(&threads[i]);
}

/* --- trace hashes --- */

#define TRACE_SLOTS (1u << 16)

typedef struct trace_set {
    uint64_t hashes[TRACE_SLOTS]; /* 0: free */
    uint32_t count;
} trace_set;

static void add_trace(void *ctx, uint64_t hash)
{
    trace_set *set = ctx;
    if (set->count > TRACE_SLOTS / 2) return;
    if (hash == 0) hash = 1;
    uint32_t i = (uint32_t)(hash >> 40) % TRACE_SLOTS;
    while (set->hashes[i] != 0 && set->hashes[i] != hash) i = (i + 1) % TRACE_SLOTS;
    set->count += set->hashes[i] == 0;
    set->hashes[i] = hash;
}

static bool is_subset(const trace_set *part, const trace_set *whole)
{
    for (uint32_t i = 0; i < TRACE_SLOTS; i++) {
        if (part->hashes[i] == 0) continue;
        uint32_t k = (uint32_t)(part->hashes[i] >> 40) % TRACE_SLOTS;
        while (whole->hashes[k] != 0 && whole->hashes[k] != part->hashes[i]) {
            k = (k + 1) % TRACE_SLOTS;
        }
        if (whole->hashes[k] == 0) return false;
    }
    return true;
}

static trace_set *collect(const program *p, sp_sched_search search, sp_sched_level level,
                          sp_explore_result *result)
{
    trace_set *set = calloc(1, sizeof *set);
    const sp_explore_options options = {.search = search,
                                        .level = level,
                                        .preemption_bound = SP_SCHED_NO_BOUND,
                                        .keeps_equivalent_choices = true,
                                        .max_seconds = 5,
                                        .on_trace = add_trace,
                                        .on_trace_ctx = set};
    sp_explore(run_program, (void *)(uintptr_t)p, &options, result);
    return set;
}

static bool has_equal_traces(const program *p, sp_sched_level level)
{
    sp_explore_result full_result;
    sp_explore_result dpor_result;
    trace_set *full = collect(p, SP_SEARCH_BOUNDED, level, &full_result);
    trace_set *dpor = collect(p, SP_SEARCH_DPOR, level, &dpor_result);
    const bool is_whole =
        full_result.is_exhausted && dpor_result.is_exhausted && full->count <= TRACE_SLOTS / 2;
    const bool is_equal =
        full->count == dpor->count && is_subset(full, dpor) && is_subset(dpor, full);
    const bool is_known = p->traces == 0 || level == SP_LEVEL_WEAK || full->count == p->traces;
    const bool is_right = is_whole && is_equal && is_known;
    if (!is_right) {
        printf("  %s: full %u traces in %llu runs (%s %s); dpor %u in %llu + %llu (%s %s)\n",
               p->name, full->count, (unsigned long long)full_result.schedules,
               full_result.is_exhausted ? "exhausted" : "not exhausted", full_result.message,
               dpor->count, (unsigned long long)dpor_result.schedules,
               (unsigned long long)dpor_result.pruned,
               dpor_result.is_exhausted ? "exhausted" : "not exhausted", dpor_result.message);
    } else if (getenv("SP_SCHED_VERBOSE") != NULL) {
        printf("  %-24s %6u traces: full %8llu runs, dpor %6llu + %llu pruned\n", p->name,
               full->count, (unsigned long long)full_result.schedules,
               (unsigned long long)dpor_result.schedules, (unsigned long long)dpor_result.pruned);
    }
    free(full);
    free(dpor);
    return is_right;
}

static bool traces_hb(void)
{
    bool is_right = true;
    for (size_t i = 0; i < SP_COUNT_OF(programs); i++) {
        is_right = has_equal_traces(&programs[i], SP_LEVEL_HB) && is_right;
    }
    return is_right;
}

static bool traces_weak(void)
{
    bool is_right = true;
    for (size_t i = 0; i < SP_COUNT_OF(programs); i++) {
        if (programs[i].bodies[2] != NULL) continue;
        is_right = has_equal_traces(&programs[i], SP_LEVEL_WEAK) && is_right;
    }
    return is_right;
}

/* --- PCT --- */

static bool pct_depth_3(void)
{
    static const program p = {"depth 3", {depth_3_first, depth_3_second, depth_3_noise}, 0};
    for (uint64_t seed = 1; seed <= 5; seed++) {
        const sp_explore_options options = {
            .search = SP_SEARCH_PCT, .seed = seed, .pct_depth = 3, .max_schedules = 20000};
        sp_explore_result result;
        sp_explore(run_program, (void *)(uintptr_t)&p, &options, &result);
        if (result.verdict == SP_SCHED_ASSERTION) continue;
        printf("  seed %llu: %s after %llu schedules\n", (unsigned long long)seed,
               sp_sched_verdict_name(result.verdict), (unsigned long long)result.schedules);
        return false;
    }
    return true;
}

/* --- state that survives a run --- */

static uint32_t runs_so_far;

static void forgetful_test(void *arg)
{
    sp_thread threads[2];
    const bool is_odd = runs_so_far++ % 2 != 0;
    (void)arg;
    for (int i = 0; i < 2; i++) {
        SP_SCHED_ASSERT(sp_thread_create(&threads[i], "", is_odd ? write_x : x_then_y, NULL) ==
                        SP_OK);
    }
    for (int i = 0; i < 2; i++) sp_thread_join(&threads[i]);
}

static bool notices_hidden_state(void)
{
    const sp_sched_search searches[] = {SP_SEARCH_BOUNDED, SP_SEARCH_DPOR};
    for (size_t i = 0; i < SP_COUNT_OF(searches); i++) {
        const sp_explore_options options = {.search = searches[i], .max_seconds = 1};
        sp_explore_result result;
        sp_explore(forgetful_test, NULL, &options, &result);
        if (result.verdict == SP_SCHED_NONDETERMINISM) continue;
        printf("  %s: %s\n", sp_sched_search_name(searches[i]),
               sp_sched_verdict_name(result.verdict));
        return false;
    }
    return true;
}

/* --- spins --- */

BODY(spin_and_count)
{
    while (sp_load_acquire(&shared.x) == 0) {
        sp_fetch_add_relaxed(&shared.y, 1);
        sp_spin_hint();
    }
}

static void add_by_retry(uint32_t times)
{
    for (uint32_t i = 0; i < times; i++) {
        uint32_t seen = sp_load_relaxed(&shared.x);
        while (!sp_cas_relaxed(&shared.x, &seen, seen + 1)) sp_spin_hint();
    }
}

BODY(add_once)
{
    add_by_retry(1);
}

BODY(add_often)
{
    add_by_retry(4);
}

static uint32_t count_traces(const program *p, sp_sched_level level, uint32_t free_spins)
{
    trace_set *set = calloc(1, sizeof *set);
    const sp_explore_options options = {.search = SP_SEARCH_DPOR,
                                        .level = level,
                                        .free_spins = free_spins,
                                        .max_seconds = 5,
                                        .on_trace = add_trace,
                                        .on_trace_ctx = set};
    sp_explore_result result;
    sp_explore(run_program, (void *)(uintptr_t)p, &options, &result);
    const uint32_t count = result.is_exhausted ? set->count : 0;
    free(set);
    return count;
}

/* Excluding a thread after a hint must not lose a schedule of a retry loop. */
static bool hints_hide_nothing(void)
{
    static const program p = {"retry", {add_once, add_often}, 0};
    const sp_sched_level levels[] = {SP_LEVEL_HB, SP_LEVEL_WEAK};
    for (size_t i = 0; i < SP_COUNT_OF(levels); i++) {
        const uint32_t with_rule = count_traces(&p, levels[i], 0);
        const uint32_t without = count_traces(&p, levels[i], 1000);
        if (with_rule == without && without != 0) continue;
        printf("  %u traces of %u\n", with_rule, without);
        return false;
    }
    return true;
}

/* Two spinning threads that change something in each iteration enable each other: the third must
 * run in every schedule. */
static bool is_fair_to_third(void)
{
    static const program p = {"fairness", {spin_and_count, spin_and_count, write_x}, 0};
    const sp_explore_options options = {.preemption_bound = 1, .max_steps = 500, .max_seconds = 5};
    sp_explore_result result;
    sp_explore(run_program, (void *)(uintptr_t)&p, &options, &result);
    if (result.verdict == SP_SCHED_OK && result.is_exhausted) return true;
    printf("  %s after %llu schedules\n", sp_sched_verdict_name(result.verdict),
           (unsigned long long)result.schedules);
    return false;
}

/* Takes another path once an earlier run of the process has set the variable. */
static void learning_test(void *arg)
{
    static const char variable[] = "SP_SCHED_WAS_HERE";
    (void)arg;
    if (getenv(variable) != NULL) sp_store_relaxed(&shared.x, 1);
    setenv(variable, "1", 1);
    sp_store_relaxed(&shared.x, 2);
}

static void steady_test(void *arg)
{
    (void)arg;
    sp_store_relaxed(&shared.x, 2);
}

static bool notices_first_run(void)
{
    static const sp_subject learning = {.name = "learns", .test = learning_test};
    static const sp_subject steady = {.name = "does not", .test = steady_test};
    const sp_portfolio_options options = {.seed = 1, .scale = 1};
    return !sp__portfolio_repeats(&learning, &options) && sp__portfolio_repeats(&steady, &options);
}

/* --- limits --- */

static bool tells_limit_from_end(void)
{
    static const program p = {"crossed", {x_then_y, y_then_x}, 0};
    const sp_explore_options options = {.max_schedules = 3};
    sp_explore_result result;
    sp_explore(run_program, (void *)(uintptr_t)&p, &options, &result);
    return result.verdict == SP_SCHED_OK && !result.is_exhausted && result.schedules == 3;
}

const sp_selftest sp__selftests_search[] = {
    {"dpor visits the traces of the full search", traces_hb},
    {"the same at level weak", traces_weak},
    {"pct finds a bug of depth 3", pct_depth_3},
    {"hidden state is noticed", notices_hidden_state},
    {"a first run unlike the others is noticed", notices_first_run},
    {"spinning threads let others run", is_fair_to_third},
    {"spin hints hide nothing", hints_hide_nothing},
    {"limit is not exhausted", tells_limit_from_end},
    {NULL, NULL},
};
