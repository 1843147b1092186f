/* SPDX-License-Identifier: Apache-2.0 */
/* Threads submit, run, wait for, take, drop and share runs of models that go through several plans,
 * in callbacks too: each accepted run ends once, with the bits of a lone run or its failure. */
#include "stress.h"

#include <string.h>

#include <streampool/future.h>

#include "partial_cases.h"

enum { THREADS = 12, BURST = 10, SEEDS = 7, LIMITED = CASE_KINDS, MODELS = CASE_KINDS + 1 };

typedef struct storm {
    sp_model models[MODELS]; /* the last one is CASE_LOOP with too few iterations: it fails */
    partial_case cases[CASE_KINDS][SEEDS];
    sp_host_tensor expected[CASE_KINDS][SEEDS][CASE_OUTPUTS];
    uint64_t rounds;
    sp_atomic_u64 accepted, done, failed, called;
} storm;

/* A run of a thread: its model, its input, and what a callback does. */
typedef struct request {
    storm *all;
    uint32_t model, seed;
    uint32_t action; /* of the callback */
    bool is_called, is_cancelled;
    sp_future future;
    sp_atomic_u32 calls;
} request;

static case_kind kind_of(const request *r)
{
    return r->model == LIMITED ? CASE_LOOP : (case_kind)r->model;
}

static const partial_case *case_of(const request *r)
{
    return &r->all->cases[kind_of(r)][r->seed];
}

static void outcome_check(request *r, sp_status status, bool takes)
{
    const partial_case *c = case_of(r);
    if (r->is_cancelled && status == SP_CANCELLED) return;
    if (r->model == LIMITED) {
        CHECK_STATUS(status, SP_EXHAUSTED);
        return;
    }
    sp_host_tensor taken[CASE_OUTPUTS] = {0};
    CHECK_OK(status);
    if (!takes || status != SP_OK) return;
    partial_case_take(c, r->future, taken);
    CHECK(partial_is_same(c, taken, r->all->expected[kind_of(r)][r->seed]));
    partial_free(c, taken);
}

static void request_call(void *ctx, sp_status status)
{
    request *r = ctx;
    storm *all = r->all;
    outcome_check(r, status, r->action == 0);
    if (r->action == 1) { /* a run that a callback waits for */
        sp_host_tensor outputs[CASE_OUTPUTS] = {0};
        sp_future future;
        CHECK_OK(partial_case_submit(all->models[CASE_FOUND], &all->cases[CASE_FOUND][r->seed],
                                     outputs, &future));
        CHECK_OK(sp_future_wait(future));
        CHECK_OK(sp_future_release(future));
    }
    sp_fetch_add_relaxed(&all->called, (uint64_t)1);
    sp_fetch_add_acq_rel(&r->calls, 1);
}

static void request_submit(request *r, storm *all, uint64_t *random)
{
    sp_host_tensor outputs[CASE_OUTPUTS] = {0};
    *r = (request){.all = all,
                   .model = random_next(random) % MODELS,
                   .seed = random_next(random) % SEEDS,
                   .action = random_next(random) % 3,
                   .is_called = random_next(random) % 2 == 0,
                   .is_cancelled = random_next(random) % 8 == 0};
    CHECK_OK(partial_case_submit(all->models[r->model], case_of(r), outputs, &r->future));
    sp_fetch_add_relaxed(&all->accepted, (uint64_t)1);
    if (r->is_called) CHECK_OK(sp_future_on_complete(r->future, request_call, r));
}

static void request_end(request *r, uint64_t *random)
{
    if (r->is_cancelled) CHECK_OK(sp_future_cancel(r->future));
    const bool waits_shortly = random_next(random) % 4 == 0;
    if (waits_shortly) (void)sp_future_wait_for(r->future, 10000);
    const sp_status status = sp_future_wait(r->future);
    const bool is_taken_here = !r->is_called || r->action != 0;
    outcome_check(r, status, is_taken_here && random_next(random) % 4 != 0);
    while (r->is_called && sp_load_acquire(&r->calls) == 0) sp_thread_yield();
    sp_fetch_add_relaxed(status == SP_OK ? &r->all->done : &r->all->failed, (uint64_t)1);
    CHECK_OK(sp_future_release(r->future));
}

static void submit_rounds(void *arg, uint32_t index)
{
    storm *all = arg;
    uint64_t random = random_seed(index);
    static request requests[THREADS][BURST];
    request *mine = requests[index];
    for (uint64_t round = 0; round < all->rounds; round++) {
        for (uint32_t i = 0; i < BURST; i++) request_submit(&mine[i], all, &random);
        if (random_next(&random) % 3 == 0) { /* beside runs of the thread itself */
            const uint32_t kind = random_next(&random) % CASE_KINDS;
            sp_host_tensor outputs[CASE_OUTPUTS] = {0};
            CHECK_OK(partial_case_run(all->models[kind], &all->cases[kind][0], outputs));
            CHECK(partial_is_same(&all->cases[kind][0], outputs, all->expected[kind][0]));
            partial_free(&all->cases[kind][0], outputs);
        }
        for (uint32_t i = 0; i < BURST; i++) request_end(&mine[i], &random);
    }
}

static void storm_begin(storm *all, uint32_t max_plans)
{
    const sp_model_options options = {.max_plans = max_plans};
    memset(all, 0, sizeof *all);
    for (uint32_t k = 0; k < CASE_KINDS; k++) {
        all->models[k] = partial_model((case_kind)k, &options);
        for (uint32_t s = 0; s < SEEDS; s++) {
            partial_case_make(&all->cases[k][s], (case_kind)k, s);
            CHECK_OK(partial_case_run(all->models[k], &all->cases[k][s], all->expected[k][s]));
        }
    }
    all->models[LIMITED] =
        partial_model(CASE_LOOP, &(sp_model_options){.max_plans = max_plans, .max_loop_trips = 1});
}

static void storm_end(storm *all)
{
    CHECK_EQ_U64(sp_load_relaxed(&all->done) + sp_load_relaxed(&all->failed),
                 sp_load_relaxed(&all->accepted));
    for (uint32_t m = 0; m < MODELS; m++) CHECK_OK(sp_model_release(all->models[m]));
    for (uint32_t k = 0; k < CASE_KINDS; k++) {
        for (uint32_t s = 0; s < SEEDS; s++) partial_free(&all->cases[k][s], all->expected[k][s]);
    }
}

TEST(every_submitted_run_ends_once_with_its_bits)
{
    static storm all;
    static const uint32_t plans[] = {0, 2};
    for (int i = 0; i < 2; i++) {
        storm_begin(&all, plans[i]);
        all.rounds = test_count(400, 6);
        test_threads(THREADS, submit_rounds, &all);
        test_note("%llu runs, %llu failed, %llu callbacks",
                  (unsigned long long)sp_load_relaxed(&all.accepted),
                  (unsigned long long)sp_load_relaxed(&all.failed),
                  (unsigned long long)sp_load_relaxed(&all.called));
        storm_end(&all);
    }
}

TEST_MAIN
