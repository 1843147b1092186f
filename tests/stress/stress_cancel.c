/* SPDX-License-Identifier: Apache-2.0 */
/* 31 threads run and submit two models, and cancel at random: by futures, from several threads, by
 * tokens that many runs share, beside releases, waits and callbacks. Each accepted run ends once:
 * with the right bits, or SP_CANCELLED. */
#include "stress.h"

#include <string.h>

#include <streampool/future.h>

#include "batch/batch_builder.h"
#include "cancel_fixture.h"
#include "combining_fixture.h"

enum { THREADS = 31, BURST = 10, ROWS = 32, TOKENS = 4 };

typedef struct storm {
    sp_model cpu, null;
    float expected[ROWS][SMALL_OUT]; /* by row */
    uint64_t runs;                   /* of each thread */
    /* Handles of futures in flight, for cancels by other threads: current or stale. */
    sp_atomic_u64 futures[THREADS];
    /* Shared tokens; a thread that finds one cancelled replaces it. */
    sp_atomic_u64 tokens[TOKENS];
    sp_atomic_u64 accepted, refused, done, cancelled, called;
} storm;

typedef struct request {
    storm *all;
    float x[SMALL_IN], y[SMALL_OUT];
    uint32_t row;
    sp_atomic_u32 calls; /* of its callback */
    sp_future future;
} request;

static void request_draw(request *r, storm *all, uint64_t *random)
{
    *r = (request){.all = all, .row = random_next(random) % ROWS};
    small_fill_rows(r->x, r->row, 1);
    memset(r->y, 0xff, sizeof r->y);
}

static void request_end(request *r, sp_status status)
{
    if (status == SP_CANCELLED) {
        CHECK_MESSAGE("the run was cancelled");
        sp_fetch_add_relaxed(&r->all->cancelled, (uint64_t)1);
        return;
    }
    CHECK_OK(status);
    CHECK_EQ_MEM((const void *)r->y, (const void *)r->all->expected[r->row], sizeof r->y);
    sp_fetch_add_relaxed(&r->all->done, (uint64_t)1);
}

static void count_call(void *ctx, sp_status status)
{
    request *r = ctx;
    CHECK(status == SP_OK || status == SP_CANCELLED);
    sp_fetch_add_relaxed(&r->all->called, (uint64_t)1);
    sp_fetch_add_release(&r->calls, 1); /* the last access */
}

/* ---- tokens ---- */

/* A reference to a shared token, or the zero handle. */
static sp_cancel_token token_borrow(storm *all, uint64_t *random)
{
    sp_atomic_u64 *place = &all->tokens[random_next(random) % TOKENS];
    uint64_t bits = sp_load_acquire(place);
    if (random_next(random) % 3 == 0) return (sp_cancel_token){0};
    if (sp_cancel_token_retain((sp_cancel_token){bits}) != SP_OK) return (sp_cancel_token){0};
    bool is_cancelled;
    CHECK_OK(sp_cancel_token_is_cancelled((sp_cancel_token){bits}, &is_cancelled));
    if (!is_cancelled || random_next(random) % 8 == 0) return (sp_cancel_token){bits};
    CHECK_OK(sp_cancel_token_release((sp_cancel_token){bits}));
    const sp_cancel_token fresh = token_create();
    CHECK_OK(sp_cancel_token_retain(fresh));
    uint64_t former = bits;
    const bool is_mine = sp_cas_acq_rel(place, &former, fresh.bits);
    CHECK_OK(sp_cancel_token_release(is_mine ? (sp_cancel_token){bits} : fresh));
    return fresh;
}

static void cancel_any(storm *all, uint64_t *random)
{
    const uint64_t future = sp_load_acquire(&all->futures[random_next(random) % THREADS]);
    sp_status status = sp_future_cancel((sp_future){future});
    CHECK(status == SP_OK || status == SP_INVALID);
    if (random_next(random) % 8 != 0) return;
    const uint64_t token = sp_load_acquire(&all->tokens[random_next(random) % TOKENS]);
    status = sp_cancel_token_cancel((sp_cancel_token){token});
    CHECK(status == SP_OK || status == SP_INVALID);
}

/* ---- runs ---- */

static sp_host_tensor request_input(const request *r)
{
    return (sp_host_tensor){.data = (void *)(uintptr_t)r->x,
                            .bytes = sizeof r->x,
                            .dtype = SP_F32,
                            .rank = 2,
                            .shape = {1, SMALL_IN}};
}

static void request_run(request *r, uint64_t *random)
{
    const sp_run_options options = {.cancel_token = token_borrow(r->all, random)};
    const sp_host_tensor x = request_input(r);
    sp_host_tensor y = output_y(r->y, SMALL_OUT);
    const sp_model model = random_next(random) % 2 == 0 ? r->all->cpu : r->all->null;
    sp_fetch_add_relaxed(&r->all->accepted, (uint64_t)1);
    request_end(r, sp_model_run_with(model, &options, &x, 1, &y, 1));
    CHECK_OK(sp_cancel_token_release(options.cancel_token));
}

static bool request_submit(request *r, uint64_t *random)
{
    const sp_run_options options = {.cancel_token = token_borrow(r->all, random)};
    const sp_host_tensor x = request_input(r);
    sp_host_tensor y = output_y(r->y, SMALL_OUT);
    const sp_model model = random_next(random) % 2 == 0 ? r->all->cpu : r->all->null;
    const sp_status status = sp_model_submit_with(model, &options, &x, 1, &y, 1, &r->future);
    CHECK_OK(sp_cancel_token_release(options.cancel_token));
    if (status == SP_OK) {
        CHECK_OK(sp_future_on_complete(r->future, count_call, r));
        sp_fetch_add_relaxed(&r->all->accepted, (uint64_t)1);
        return true;
    }
    CHECK_STATUS(status, SP_CANCELLED);
    sp_fetch_add_relaxed(&r->all->refused, (uint64_t)1);
    return false;
}

static void requests_submit(request *requests, uint32_t count, uint32_t index, uint64_t *random)
{
    bool is_accepted[BURST];
    for (uint32_t i = 0; i < count; i++) {
        request *r = &requests[i];
        is_accepted[i] = request_submit(r, random);
        if (is_accepted[i]) sp_store_release(&r->all->futures[index], r->future.bits);
        if (random_next(random) % 2 == 0) cancel_any(r->all, random);
    }
    for (uint32_t i = 0; i < count; i++) {
        request *r = &requests[i];
        if (!is_accepted[i]) continue;
        if (random_next(random) % 4 == 0) CHECK_OK(sp_future_cancel(r->future));
        if (i % 3 == 2) await_count(&r->calls, 1);
        request_end(r, sp_future_wait(r->future));
        CHECK_OK(sp_future_cancel(r->future));
        CHECK_OK(sp_future_release(r->future));
        await_count(&r->calls, 1);
        CHECK_EQ_U64(sp_load_acquire(&r->calls), 1);
    }
}

static void run_storm(void *arg, uint32_t index)
{
    storm *all = arg;
    uint64_t random = random_seed(index);
    request requests[BURST];
    for (uint64_t i = 0; i < all->runs;) {
        const uint32_t count = random_next(&random) % 3 == 0 ? 1 + random_next(&random) % BURST : 0;
        for (uint32_t k = 0; k < BURST; k++) request_draw(&requests[k], all, &random);
        if (count > 0) requests_submit(requests, count, index, &random);
        else request_run(&requests[0], &random);
        i += count > 0 ? count : 1;
        if (random_next(&random) % 16 == 0) sp_thread_yield();
    }
}

TEST(every_run_ends_once_with_its_bits_or_cancelled)
{
    static storm all;
    null_fixture null = null_open();
    all = (storm){.cpu = small_model(NULL),
                  .null = small_model(&null.options),
                  .runs = test_count(1000000, 30000) / THREADS};
    for (uint32_t row = 0; row < ROWS; row++) {
        float x[SMALL_IN];
        small_fill_rows(x, row, 1);
        CHECK_OK(small_run_rows(all.cpu, x, 1, all.expected[row]));
    }
    const sp_host_tensor x = input_x(1);
    if (combining_is_certain()) {
        CHECK(combining_prepare(all.cpu, &x, 1) > 0);
        CHECK(combining_prepare(all.null, &x, 1) > 0);
    }
    for (int i = 0; i < TOKENS; i++) sp_store_relaxed(&all.tokens[i], token_create().bits);
    test_threads(THREADS, run_storm, &all);
    for (int i = 0; i < TOKENS; i++) {
        CHECK_OK(sp_cancel_token_release((sp_cancel_token){sp_load_relaxed(&all.tokens[i])}));
    }
    const uint64_t accepted = sp_load_relaxed(&all.accepted);
    const uint64_t cancelled = sp_load_relaxed(&all.cancelled);
    CHECK_EQ_U64(sp_load_relaxed(&all.done) + cancelled, accepted);
    CHECK(cancelled > 0 || accepted < 5000);
    test_note("%llu runs, %llu cancelled, %llu refused", (unsigned long long)accepted,
              (unsigned long long)cancelled, (unsigned long long)sp_load_relaxed(&all.refused));
    CHECK_OK(sp_model_release(all.cpu));
    CHECK_OK(sp_model_release(all.null));
    CHECK_OK(sp_device_close(null.device));
}

TEST_MAIN
