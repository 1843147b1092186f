/* SPDX-License-Identifier: Apache-2.0 */
#include "stress_requests.h"

#include <string.h>

#include <streampool/cancel.h>

#include "cancel_fixture.h"

/* ---- outcomes ---- */

static void outcome_add(const request *r, outcome ended)
{
    sp_fetch_add_relaxed(&r->all->outcomes[r->target][ended], (uint64_t)1);
}

static bool request_has_guilt(const request *r)
{
    return r->target == TARGET_TABLE && r->index >= TABLE_ROWS;
}

static void check_bits(const request *r)
{
    if (r->target == TARGET_TABLE) CHECK(table_is_right(r->index, r->y));
    else CHECK_EQ_MEM((const void *)r->y, (const void *)r->all->expected[r->row], sizeof r->y);
}

/* Of a request that was accepted. On a guest any failure may happen, and those of the table are
 * its requests' own. */
static outcome outcome_of(const request *r, sp_status status)
{
    if (status == SP_CANCELLED) return OUTCOME_CANCELLED;
    if (status == SP_TIMEOUT) return OUTCOME_EXPIRED;
    if (status != SP_OK) {
        if (r->target == TARGET_GUEST) return OUTCOME_FAILED;
        CHECK(request_has_guilt(r));
        CHECK_STATUS(status, SP_INVALID);
        return OUTCOME_FAILED;
    }
    CHECK(!request_has_guilt(r) && !r->has_wrong_shape);
    check_bits(r);
    return OUTCOME_DONE;
}

/* The last call of this thread was the request's, with its outcome. */
static void check_message(const request *r, outcome ended)
{
    if (ended == OUTCOME_FAILED && r->target != TARGET_GUEST) CHECK_MESSAGE("(Gather)");
}

/* Whether a call may refuse the request with this status. */
static bool is_refusal(const request *r, sp_status status)
{
    if (r->has_wrong_shape && status == SP_MISMATCH) return true;
    if (r->target == TARGET_GUEST) return status == SP_CLOSED || status == SP_DEVICE_LOST;
    return false;
}

static void references_drop(request *r)
{
    CHECK_OK(sp_batch_queue_release(r->served.queue));
    CHECK_OK(sp_model_release(r->served.model));
}

/* ---- drawing ---- */

static served served_retain(served from)
{
    CHECK_OK(sp_model_retain(from.model));
    CHECK_OK(sp_batch_queue_retain(from.queue));
    return from;
}

static served guest_borrow(storm *all)
{
    sp_mutex_lock(&all->guest_lock);
    const served out = served_retain(all->guest);
    sp_mutex_unlock(&all->guest_lock);
    return out;
}

static void request_fill(request *r, uint64_t *random)
{
    r->row = random_next(random) % ROWS;
    r->index = (int64_t)(random_next(random) % TABLE_ROWS);
    if (random_next(random) % 64 == 0) r->index += TABLE_ROWS;
    r->has_wrong_shape = random_next(random) % 128 == 0;
    r->in_callback = random_next(random);
    small_fill_rows(r->x, r->row, 1);
    memset(r->y, 0xff, sizeof r->y);
}

static void request_draw_for(request *r, storm *all, target which, uint64_t *random)
{
    *r = (request){.all = all, .target = which, .has_callback = true};
    r->served = which == TARGET_GUEST ? guest_borrow(all) : served_retain(all->served[which]);
    request_fill(r, random);
    sp_fetch_add_relaxed(&all->made, (uint64_t)1);
}

void request_draw(request *r, storm *all, uint64_t *random)
{
    request_draw_for(r, all, random_next(random) % TARGET_COUNT, random);
}

/* A reference to a shared token, or the zero handle. */
static sp_cancel_token token_borrow(storm *all, uint64_t *random)
{
    sp_atomic_u64 *place = &all->tokens[random_next(random) % TOKENS];
    const sp_cancel_token token = {sp_load_acquire(place)};
    bool is_cancelled;
    if (random_next(random) % 4 != 0) return (sp_cancel_token){0};
    if (sp_cancel_token_retain(token) != SP_OK) return (sp_cancel_token){0};
    CHECK_OK(sp_cancel_token_is_cancelled(token, &is_cancelled));
    if (!is_cancelled) {
        if (random_next(random) % 64 == 0) CHECK_OK(sp_cancel_token_cancel(token));
        return token;
    }
    const sp_cancel_token fresh = token_create();
    uint64_t former = token.bits;
    const bool is_mine = sp_cas_acq_rel(place, &former, fresh.bits);
    CHECK_OK(sp_cancel_token_release(is_mine ? token : fresh)); /* the place's reference */
    return token;
}

static sp_run_options options_draw(storm *all, uint64_t *random)
{
    sp_run_options options = {.cancel_token = token_borrow(all, random)};
    if (random_next(random) % 8 == 0) options.priority = SP_PRIORITY_HIGH;
    if (random_next(random) % 8 == 0) options.timeout_ns = 1 + random_next(random) % 200000;
    options.no_wait = random_next(random) % 32 == 0;
    return options;
}

static sp_host_tensor input_of(const request *r)
{
    sp_host_tensor x = r->target == TARGET_TABLE ? table_input(&r->index) : input_x(1);
    if (r->target != TARGET_TABLE) x.data = (void *)(uintptr_t)r->x;
    if (r->has_wrong_shape) x.shape[x.rank++] = 1;
    return x;
}

/* ---- runs ---- */

/* Of a call that has returned without a future. */
static outcome call_end(request *r, sp_status status)
{
    const bool is_refused = status == SP_BUSY || is_refusal(r, status);
    const outcome ended = is_refused ? OUTCOME_REFUSED : outcome_of(r, status);
    outcome_add(r, ended);
    return ended;
}

void request_run(request *r, uint64_t *random)
{
    const sp_run_options options = options_draw(r->all, random);
    const sp_host_tensor x = input_of(r);
    sp_host_tensor y = output_y(r->y, SMALL_OUT);
    const sp_status status = sp_model_run_with(r->served.model, &options, &x, 1, &y, 1);
    check_message(r, call_end(r, status));
    CHECK_OK(sp_cancel_token_release(options.cancel_token));
    references_drop(r);
}

void requests_infer(request *requests, uint32_t count, uint64_t *random)
{
    storm *all = requests[0].all;
    const target which = random_next(random) % TARGET_COUNT;
    sp_inference calls[BURST];
    sp_host_tensor inputs[BURST], outputs[BURST];
    for (uint32_t i = 0; i < count; i++) {
        request_draw_for(&requests[i], all, which, random);
        inputs[i] = input_of(&requests[i]);
        outputs[i] = output_y(requests[i].y, SMALL_OUT);
        calls[i] = (sp_inference){
            .inputs = &inputs[i], .outputs = &outputs[i], .input_count = 1, .output_count = 1};
    }
    (void)sp_batch_inference(requests[0].served.model, calls, count);
    for (uint32_t i = 0; i < count; i++) {
        (void)call_end(&requests[i], calls[i].status);
        references_drop(&requests[i]);
    }
}

/* ---- submitted requests ---- */

/* In a callback: a run, or a submit and a wait. */
static void nested_run(request *outer, bool is_submitted)
{
    uint64_t random = outer->in_callback;
    request nested;
    request_draw_for(&nested, outer->all, TARGET_SMALL, &random);
    nested.has_callback = false;
    if (!is_submitted) {
        request_run(&nested, &random);
        return;
    }
    request_submit(&nested, random % 2 == 0, &random);
    request_end(&nested);
}

static void on_complete(void *ctx, sp_status status)
{
    request *r = ctx;
    (void)status;
    sp_fetch_add_relaxed(&r->all->called, (uint64_t)1);
    if (r->in_callback % 16 == 0) nested_run(r, false);
    else if (r->in_callback % 16 == 8) nested_run(r, true);
    sp_fetch_add_release(&r->calls, 1); /* the last access */
}

void request_submit(request *r, bool is_queued, uint64_t *random)
{
    const sp_run_options options = options_draw(r->all, random);
    const sp_host_tensor x = input_of(r);
    sp_host_tensor y = output_y(r->y, SMALL_OUT);
    const served *to = &r->served;
    const sp_status status =
        is_queued ? sp_batch_queue_submit(to->queue, &options, &x, 1, &y, 1, &r->future)
                  : sp_model_submit_with(to->model, &options, &x, 1, &y, 1, &r->future);
    CHECK_OK(sp_cancel_token_release(options.cancel_token));
    if (status == SP_OK) {
        if (!r->has_callback) return;
        sp_fetch_add_relaxed(&r->all->callbacks, (uint64_t)1);
        CHECK_OK(sp_future_on_complete(r->future, on_complete, r));
        return;
    }
    r->future = (sp_future){0};
    const bool is_refused = status == SP_BUSY || status == SP_CANCELLED || status == SP_TIMEOUT;
    CHECK(is_refused || is_refusal(r, status) || r->target == TARGET_GUEST);
    outcome_add(r, OUTCOME_REFUSED);
    references_drop(r);
}

void request_end(request *r)
{
    if (r->future.bits == 0) return;
    const outcome ended = outcome_of(r, sp_future_wait(r->future));
    check_message(r, ended);
    outcome_add(r, ended);
    CHECK_OK(sp_future_release(r->future));
    if (r->has_callback) await_count(&r->calls, 1);
    CHECK_EQ_U64(sp_load_acquire(&r->calls), r->has_callback ? 1 : 0);
    references_drop(r);
}
