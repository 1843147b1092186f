/* SPDX-License-Identifier: Apache-2.0 */
/* Litmus tests: the outcomes at level weak are exactly C11's, except those of load buffering (a
 * load never returns a later store). Each is explored by full search and by DPOR. */
#include <stdio.h>

#include "base/atomic.h"
#include "base/thread.h"
#include "subject.h"

#define THREADS_MAX 4
#define OUTCOMES_MAX 64

/* An outcome is the tuple of registers and final values, one decimal digit each. */
typedef struct litmus {
    const char *name;
    uint32_t thread_count;
    sp_thread_fn body[THREADS_MAX];
    uint32_t (*outcome)(void);
    uint32_t expected[OUTCOMES_MAX];
    uint32_t expected_count;
} litmus;

static struct {
    sp_atomic_u32 x;
    sp_atomic_u32 y;
    uint32_t r[THREADS_MAX]; /* each written by one thread, read after the join */
} shared;

/* A compare-and-swap; returns the value it found. */
#define CAS(order, a, expected, desired) cas_##order(&shared.a, expected, desired)
static uint32_t cas_relaxed(sp_atomic_u32 *place, uint32_t expected, uint32_t desired)
{
    (void)sp_cas_relaxed(place, &expected, desired);
    return expected;
}

static uint32_t cas_acquire(sp_atomic_u32 *place, uint32_t expected, uint32_t desired)
{
    (void)sp_cas_acquire(place, &expected, desired);
    return expected;
}

/* The outcomes of all runs of an exploration; the runs do not read it. */
static uint32_t seen[OUTCOMES_MAX];
static uint32_t seen_count;

__attribute__((no_sanitize("thread"))) static void note_outcome(uint32_t outcome)
{
    for (uint32_t i = 0; i < seen_count; i++) {
        if (seen[i] == outcome) return;
    }
    if (seen_count < OUTCOMES_MAX) seen[seen_count++] = outcome;
}

static void run_litmus(void *arg)
{
    const litmus *test = arg;
    sp_thread threads[THREADS_MAX];
    shared.x.value = 0;
    shared.y.value = 0;
    for (uint32_t i = 0; i < THREADS_MAX; i++) shared.r[i] = 0;
    for (uint32_t i = 0; i < test->thread_count; i++) {
        SP_SCHED_ASSERT(sp_thread_create(&threads[i], "", test->body[i], NULL) == SP_OK);
    }
    for (uint32_t i = 0; i < test->thread_count; i++) sp_thread_join(&threads[i]);
    note_outcome(test->outcome());
}

static uint32_t outcome_r01(void)
{
    return shared.r[0] * 10 + shared.r[1];
}

static uint32_t outcome_r0123(void)
{
    return shared.r[0] * 1000 + shared.r[1] * 100 + shared.r[2] * 10 + shared.r[3];
}

static uint32_t outcome_xy(void)
{
    return sp_load_relaxed(&shared.x) * 10 + sp_load_relaxed(&shared.y);
}

static uint32_t outcome_r0_x(void)
{
    return shared.r[0] * 10 + sp_load_relaxed(&shared.x);
}

static uint32_t outcome_y_r0(void)
{
    return sp_load_relaxed(&shared.y) * 10 + shared.r[0];
}

static uint32_t outcome_r01_x(void)
{
    return shared.r[0] * 100 + shared.r[1] * 10 + sp_load_relaxed(&shared.x);
}

static uint32_t outcome_r012(void)
{
    return shared.r[0] * 100 + shared.r[1] * 10 + shared.r[2];
}

#define BODY(name, ...)                                                                            \
    static void name(void *arg)                                                                    \
    {                                                                                              \
        (void)arg;                                                                                 \
        __VA_ARGS__                                                                                \
    }
#define LOAD(order, r_, a) shared.r[r_] = sp_load_##order(&shared.a);
#define STORE(order, a, v) sp_store_##order(&shared.a, v);
#define ADD(order, r_, a, v) shared.r[r_] = sp_fetch_add_##order(&shared.a, v);
#define SWAP(order, r_, a, v) shared.r[r_] = sp_exchange_##order(&shared.a, v);

BODY(sb_0_relaxed, STORE(relaxed, x, 1) LOAD(relaxed, 0, y))
BODY(sb_1_relaxed, STORE(relaxed, y, 1) LOAD(relaxed, 1, x))
BODY(sb_0_acq_rel, STORE(release, x, 1) LOAD(acquire, 0, y))
BODY(sb_1_acq_rel, STORE(release, y, 1) LOAD(acquire, 1, x))
BODY(sb_0_seq_cst, STORE(seq_cst, x, 1) LOAD(seq_cst, 0, y))
BODY(sb_1_seq_cst, STORE(seq_cst, y, 1) LOAD(seq_cst, 1, x))
BODY(mp_write_relaxed, STORE(relaxed, x, 1) STORE(relaxed, y, 1))
BODY(mp_write_release, STORE(relaxed, x, 1) STORE(release, y, 1))
BODY(mp_read_relaxed, LOAD(relaxed, 0, y) LOAD(relaxed, 1, x))
BODY(mp_read_acquire, LOAD(acquire, 0, y) LOAD(relaxed, 1, x))
BODY(lb_0, LOAD(relaxed, 0, x) STORE(relaxed, y, 1))
BODY(lb_1, LOAD(relaxed, 1, y) STORE(relaxed, x, 1))
BODY(corr_write, STORE(relaxed, x, 1) STORE(relaxed, x, 2))
BODY(corr_read, LOAD(relaxed, 0, x) LOAD(relaxed, 1, x))
BODY(cowr_0, STORE(relaxed, x, 1) LOAD(relaxed, 0, x))
BODY(store_x_2, STORE(relaxed, x, 2))
BODY(w22_0_relaxed, STORE(relaxed, x, 1) STORE(relaxed, y, 2))
BODY(w22_1_relaxed, STORE(relaxed, y, 1) STORE(relaxed, x, 2))
BODY(w22_0_seq_cst, STORE(seq_cst, x, 1) STORE(seq_cst, y, 2))
BODY(w22_1_seq_cst, STORE(seq_cst, y, 1) STORE(seq_cst, x, 2))
BODY(s_0_relaxed, STORE(relaxed, x, 2) STORE(relaxed, y, 1))
BODY(s_1_relaxed, LOAD(relaxed, 0, y) STORE(relaxed, x, 1))
BODY(s_0_release, STORE(relaxed, x, 2) STORE(release, y, 1))
BODY(s_1_acquire, LOAD(acquire, 0, y) STORE(relaxed, x, 1))
BODY(r_0_relaxed, STORE(relaxed, x, 1) STORE(relaxed, y, 1))
BODY(r_1_relaxed, STORE(relaxed, y, 2) LOAD(relaxed, 0, x))
BODY(r_0_seq_cst, STORE(seq_cst, x, 1) STORE(seq_cst, y, 1))
BODY(r_1_seq_cst, STORE(seq_cst, y, 2) LOAD(seq_cst, 0, x))
BODY(rmw_0, shared.r[0] = sp_fetch_add_relaxed(&shared.x, 1);)
BODY(rmw_1, shared.r[1] = sp_fetch_add_relaxed(&shared.x, 1);)
BODY(rmw_add_2, shared.r[0] = sp_fetch_add_relaxed(&shared.x, 2);)
BODY(store_x_1, STORE(relaxed, x, 1))
BODY(relseq_rmw, sp_fetch_add_relaxed(&shared.y, 2);)
BODY(mp_read_add_relaxed, LOAD(relaxed, 0, y) ADD(relaxed, 1, x, 2))
BODY(mp_read_add_acquire, LOAD(acquire, 0, y) ADD(relaxed, 1, x, 2))
BODY(mp_read_swap_relaxed, LOAD(relaxed, 0, y) SWAP(relaxed, 1, x, 2))
BODY(mp_read_swap_acquire, LOAD(acquire, 0, y) SWAP(relaxed, 1, x, 2))
BODY(mp_write_swap_relaxed, STORE(relaxed, x, 1) SWAP(relaxed, 2, y, 1))
BODY(mp_write_swap_release, STORE(relaxed, x, 1) SWAP(release, 2, y, 1))
BODY(mp_swap_read_relaxed, SWAP(relaxed, 0, y, 2) LOAD(relaxed, 1, x))
BODY(mp_swap_read_acquire, SWAP(acquire, 0, y, 2) LOAD(relaxed, 1, x))
BODY(mp_pass_add, ADD(relaxed, 2, y, 2))
BODY(mp_pass_swap, SWAP(relaxed, 2, y, 2))
BODY(mp_pass_store, STORE(relaxed, y, 2))
BODY(w22_swap_0, SWAP(relaxed, 0, x, 1) SWAP(relaxed, 0, y, 2))
BODY(w22_swap_1, SWAP(relaxed, 1, y, 1) SWAP(relaxed, 1, x, 2))
BODY(w22_swap_acq_rel, SWAP(acq_rel, 0, x, 1) SWAP(acq_rel, 0, y, 2))
BODY(w22_store_release, STORE(release, y, 1) STORE(release, x, 2))
BODY(w22_last_swap_0, STORE(relaxed, x, 1) SWAP(relaxed, 0, y, 2))
BODY(w22_last_swap_1, STORE(relaxed, y, 1) SWAP(relaxed, 1, x, 2))
BODY(sb_0_add_relaxed, STORE(relaxed, x, 1) ADD(relaxed, 0, y, 0))
BODY(sb_1_add_relaxed, STORE(relaxed, y, 1) ADD(relaxed, 1, x, 0))
BODY(sb_0_add_seq_cst, STORE(seq_cst, x, 1) ADD(seq_cst, 0, y, 0))
BODY(sb_1_add_seq_cst, STORE(seq_cst, y, 1) ADD(seq_cst, 1, x, 0))
BODY(swap_x_2, SWAP(relaxed, 0, x, 2))
BODY(swap_x_3, SWAP(relaxed, 1, x, 3))
BODY(cas_x_1, shared.r[0] = CAS(relaxed, x, 0, 1);)
BODY(cas_x_2, shared.r[1] = CAS(relaxed, x, 0, 2);)
BODY(cas_in_vain_x, shared.r[1] = CAS(relaxed, x, 5, 6);)
BODY(mp_cas_relaxed, shared.r[0] = CAS(relaxed, y, 5, 6); shared.r[1] = CAS(relaxed, x, 5, 6);)
BODY(mp_cas_acquire, shared.r[0] = CAS(acquire, y, 5, 6); shared.r[1] = CAS(relaxed, x, 5, 6);)
BODY(mp_read_cas_relaxed, LOAD(relaxed, 0, y) shared.r[1] = CAS(relaxed, x, 0, 2);)
BODY(mp_read_cas_acquire, LOAD(acquire, 0, y) shared.r[1] = CAS(relaxed, x, 0, 2);)
BODY(iriw_write_x, STORE(release, x, 1))
BODY(iriw_write_y, STORE(release, y, 1))
BODY(iriw_read_xy, LOAD(acquire, 0, x) LOAD(acquire, 1, y))
BODY(iriw_read_yx, LOAD(acquire, 2, y) LOAD(acquire, 3, x))
BODY(iriw_write_x_sc, STORE(seq_cst, x, 1))
BODY(iriw_write_y_sc, STORE(seq_cst, y, 1))
BODY(iriw_read_xy_sc, LOAD(seq_cst, 0, x) LOAD(seq_cst, 1, y))
BODY(iriw_read_yx_sc, LOAD(seq_cst, 2, y) LOAD(seq_cst, 3, x))

#define EXPECT(...)                                                                                \
    .expected = {__VA_ARGS__},                                                                     \
    .expected_count = sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)

static const litmus tests[] = {
    {"SB relaxed", 2, {sb_0_relaxed, sb_1_relaxed}, outcome_r01, EXPECT(0, 1, 10, 11)},
    {"SB acquire-release", 2, {sb_0_acq_rel, sb_1_acq_rel}, outcome_r01, EXPECT(0, 1, 10, 11)},
    {"SB seq_cst", 2, {sb_0_seq_cst, sb_1_seq_cst}, outcome_r01, EXPECT(1, 10, 11)},
    {"MP relaxed", 2, {mp_write_relaxed, mp_read_relaxed}, outcome_r01, EXPECT(0, 1, 10, 11)},
    {"MP release only", 2, {mp_write_release, mp_read_relaxed}, outcome_r01, EXPECT(0, 1, 10, 11)},
    {"MP acquire-release", 2, {mp_write_release, mp_read_acquire}, outcome_r01, EXPECT(0, 1, 11)},
    {"LB without 11", 2, {lb_0, lb_1}, outcome_r01, EXPECT(0, 1, 10)},
    {"CoRR", 2, {corr_write, corr_read}, outcome_r01, EXPECT(0, 1, 2, 11, 12, 22)},
    {"CoWR", 2, {cowr_0, store_x_2}, outcome_r0_x, EXPECT(11, 12, 22)},
    {"2+2W relaxed", 2, {w22_0_relaxed, w22_1_relaxed}, outcome_xy, EXPECT(11, 12, 21, 22)},
    {"2+2W seq_cst", 2, {w22_0_seq_cst, w22_1_seq_cst}, outcome_xy, EXPECT(12, 21, 22)},
    {"S relaxed", 2, {s_0_relaxed, s_1_relaxed}, outcome_r0_x, EXPECT(1, 2, 11, 12)},
    {"S acquire-release", 2, {s_0_release, s_1_acquire}, outcome_r0_x, EXPECT(1, 2, 11)},
    {"R relaxed", 2, {r_0_relaxed, r_1_relaxed}, outcome_y_r0, EXPECT(10, 11, 20, 21)},
    {"R seq_cst", 2, {r_0_seq_cst, r_1_seq_cst}, outcome_y_r0, EXPECT(10, 11, 21)},
    {"RMW atomicity", 2, {rmw_0, rmw_1}, outcome_r01_x, EXPECT(12, 102)},
    {"RMW and store", 2, {rmw_add_2, store_x_1}, outcome_r0_x, EXPECT(1, 13)},
    {"release sequence",
     3,
     {mp_write_release, relseq_rmw, mp_read_acquire},
     outcome_r01,
     EXPECT(0, 1, 11, 20, 21, 31)},
    /* The message is read by a read-modify-write, which may miss it; it then precedes the store. */
    {"MP read by add, relaxed",
     2,
     {mp_write_relaxed, mp_read_add_relaxed},
     outcome_r01_x,
     EXPECT(1, 13, 101, 113)},
    {"MP read by add, acquire-release",
     2,
     {mp_write_release, mp_read_add_acquire},
     outcome_r01_x,
     EXPECT(1, 13, 113)},
    {"MP read by exchange, relaxed",
     2,
     {mp_write_relaxed, mp_read_swap_relaxed},
     outcome_r01_x,
     EXPECT(1, 12, 101, 112)},
    {"MP read by exchange, acquire-release",
     2,
     {mp_write_release, mp_read_swap_acquire},
     outcome_r01_x,
     EXPECT(1, 12, 112)},
    /* The flag is exchanged on both sides. */
    {"MP flag by exchange, relaxed",
     2,
     {mp_write_swap_relaxed, mp_swap_read_relaxed},
     outcome_r01,
     EXPECT(0, 1, 10, 11)},
    {"MP flag by exchange, acquire-release",
     2,
     {mp_write_swap_release, mp_swap_read_acquire},
     outcome_r01,
     EXPECT(0, 1, 11)},
    /* A third thread passes the flag on: a read-modify-write continues the release sequence if it
     * read it (r2 == 1), a store ends it. */
    {"MP through add",
     3,
     {mp_write_release, mp_pass_add, mp_read_acquire},
     outcome_r012,
     EXPECT(0, 1, 10, 11, 110, 111, 200, 210, 311)},
    {"MP through exchange",
     3,
     {mp_write_release, mp_pass_swap, mp_read_acquire},
     outcome_r012,
     EXPECT(0, 1, 10, 11, 110, 111, 200, 210, 211)},
    {"MP through store",
     3,
     {mp_write_release, mp_pass_store, mp_read_acquire},
     outcome_r01,
     EXPECT(0, 1, 11, 20, 21)},
    /* With exchanges alone, outcome 11 requires each to read a later store of the other: load
     * buffering. */
    {"2+2W exchanges", 2, {w22_swap_0, w22_swap_1}, outcome_xy, EXPECT(12, 21, 22)},
    {"2+2W exchanges and stores",
     2,
     {w22_swap_0, w22_1_relaxed},
     outcome_xy,
     EXPECT(11, 12, 21, 22)},
    {"2+2W exchanges last",
     2,
     {w22_last_swap_0, w22_last_swap_1},
     outcome_xy,
     EXPECT(11, 12, 21, 22)},
    {"2+2W exchanges and stores, acquire-release",
     2,
     {w22_swap_acq_rel, w22_store_release},
     outcome_xy,
     EXPECT(12, 21, 22)},
    {"SB read by add, relaxed",
     2,
     {sb_0_add_relaxed, sb_1_add_relaxed},
     outcome_r01,
     EXPECT(0, 1, 10, 11)},
    {"SB read by add, seq_cst",
     2,
     {sb_0_add_seq_cst, sb_1_add_seq_cst},
     outcome_r01,
     EXPECT(1, 10, 11)},
    {"exchanges and a store",
     3,
     {store_x_1, swap_x_2, swap_x_3},
     outcome_r01_x,
     EXPECT(13, 21, 102, 123, 301, 312)},
    {"CAS atomicity", 2, {cas_x_1, cas_x_2}, outcome_r01_x, EXPECT(11, 202)},
    /* A failed compare-and-swap is a load: it may read a store that another read-modify-write has
     * read. */
    {"CAS in vain beside an exchange",
     3,
     {store_x_1, swap_x_2, cas_in_vain_x},
     outcome_r01_x,
     EXPECT(1, 11, 21, 102, 112, 122)},
    {"MP read by CAS in vain, relaxed",
     2,
     {mp_write_relaxed, mp_cas_relaxed},
     outcome_r01,
     EXPECT(0, 1, 10, 11)},
    {"MP read by CAS in vain, acquire-release",
     2,
     {mp_write_release, mp_cas_acquire},
     outcome_r01,
     EXPECT(0, 1, 11)},
    {"MP read by CAS, relaxed",
     2,
     {mp_write_relaxed, mp_read_cas_relaxed},
     outcome_r01_x,
     EXPECT(1, 11, 101, 111)},
    {"MP read by CAS, acquire-release",
     2,
     {mp_write_release, mp_read_cas_acquire},
     outcome_r01_x,
     EXPECT(1, 11, 111)},
    {"IRIW acquire-release",
     4,
     {iriw_write_x, iriw_write_y, iriw_read_xy, iriw_read_yx},
     outcome_r0123,
     EXPECT(0, 1, 10, 11, 100, 101, 110, 111, 1000, 1001, 1010, 1011, 1100, 1101, 1110, 1111)},
    {"IRIW seq_cst",
     4,
     {iriw_write_x_sc, iriw_write_y_sc, iriw_read_xy_sc, iriw_read_yx_sc},
     outcome_r0123,
     EXPECT(0, 1, 10, 11, 100, 101, 110, 111, 1000, 1001, 1011, 1100, 1101, 1110, 1111)},
};

static bool outcomes_contain(const uint32_t *set, uint32_t count, uint32_t outcome)
{
    for (uint32_t i = 0; i < count; i++) {
        if (set[i] == outcome) return true;
    }
    return false;
}

static bool has_exact_outcomes(const litmus *test, sp_sched_search search)
{
    const sp_explore_options options = {.search = search,
                                        .level = SP_LEVEL_WEAK,
                                        .preemption_bound = SP_SCHED_NO_BOUND,
                                        .max_seconds = 10};
    sp_explore_result result;
    seen_count = 0;
    sp_explore(run_litmus, (void *)(uintptr_t)test, &options, &result);
    bool is_right = result.verdict == SP_SCHED_OK && result.is_exhausted;
    if (!is_right) {
        printf("  %s, %s: %s %s\n", test->name, sp_sched_search_name(search),
               sp_sched_verdict_name(result.verdict), result.message);
    }
    for (uint32_t i = 0; i < test->expected_count; i++) {
        if (outcomes_contain(seen, seen_count, test->expected[i])) continue;
        printf("  %s, %s: outcome %u is never seen\n", test->name, sp_sched_search_name(search),
               test->expected[i]);
        is_right = false;
    }
    for (uint32_t i = 0; i < seen_count; i++) {
        if (outcomes_contain(test->expected, test->expected_count, seen[i])) continue;
        printf("  %s, %s: outcome %u is forbidden\n", test->name, sp_sched_search_name(search),
               seen[i]);
        is_right = false;
    }
    return is_right;
}

static bool litmus_run_all(sp_sched_search search)
{
    bool is_right = true;
    for (uint32_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        is_right = has_exact_outcomes(&tests[i], search) && is_right;
    }
    return is_right;
}

static bool litmus_full(void)
{
    return litmus_run_all(SP_SEARCH_BOUNDED);
}

static bool litmus_dpor(void)
{
    return litmus_run_all(SP_SEARCH_DPOR);
}

const sp_selftest sp__selftests_litmus[] = {
    {"litmus sets, full search", litmus_full},
    {"litmus sets, dpor", litmus_dpor},
    {NULL, NULL},
};
