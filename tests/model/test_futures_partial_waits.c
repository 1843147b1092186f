/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in several plans that host functions and callbacks wait for, while runs behind the function
 * have all slots, plans or contexts. */
#include <string.h>

#include <streampool/null_device.h>
#include <streampool/storage.h>
#include <streampool/stream.h>

#include "base/thread.h"
#include "partial_cases.h"
#include "run_fixture.h"

enum { MOST_SLOTS = 128, SEVERAL = 5 };

/* A stream that is blocked by a host access, then by a function; runs of other threads follow. */
typedef struct blockade {
    sp_device device;
    sp_model partial; /* what the function waits for */
    sp_model blocked; /* what has the slots */
    case_kind kind;
    partial_case cases[SEVERAL];
    sp_future early; /* submitted before the function runs */
    sp_stream stream;
    sp_storage key;
    uint32_t runner_count;
    sp_thread runners[MOST_SLOTS];
    sp_atomic_u32 has_run;
} blockade;

static void gate_close(blockade *b, sp_host_function fn)
{
    void *bytes;
    const uint8_t zero = 0;
    CHECK_OK(sp_stream_from_pool(b->device, &b->stream));
    CHECK_OK(sp_storage_create(b->device, 1, NULL, &b->key));
    CHECK_OK(sp_storage_host_begin(b->key, SP_WRITE, &bytes));
    const sp_storage_range all = {.storage = b->key, .bytes = 1};
    CHECK_OK(sp_storage_fill_async(b->stream, all, &zero, 1));
    CHECK_OK(sp_stream_host_function(b->stream, fn, b));
}

static void run_behind_gate(void *arg)
{
    blockade *b = arg;
    CHECK_OK(sp_stream_set_current(b->stream));
    small_run(b->blocked);
    CHECK_OK(sp_stream_set_current((sp_stream){0}));
}

static void runners_start(blockade *b, sp_thread_fn fn, uint32_t count, sp_model model)
{
    b->runner_count = count;
    for (uint32_t i = 0; i < count; i++) {
        CHECK_OK(sp_thread_create(&b->runners[i], "runner", fn, b));
    }
    await_in_flight(model, count);
}

static void blockade_end(blockade *b)
{
    CHECK_OK(sp_storage_host_end(b->key, SP_WRITE));
    while (sp_load_acquire(&b->has_run) == 0) sp_thread_yield();
    for (uint32_t i = 0; i < b->runner_count; i++) sp_thread_join(&b->runners[i]);
    CHECK_OK(sp_storage_release(b->key));
    CHECK_OK(sp_stream_release(b->stream));
    CHECK_OK(sp_model_release(b->partial));
    CHECK_OK(sp_model_release(b->blocked));
}

static sp_future submit(blockade *b, int i)
{
    sp_host_tensor outputs[CASE_OUTPUTS] = {0};
    sp_future future = {0};
    partial_case_make(&b->cases[i], b->kind, (uint64_t)i);
    CHECK_OK(partial_case_submit(b->partial, &b->cases[i], outputs, &future));
    return future;
}

/* ---- slots ---- */

static void wait_for_each(void *ctx, sp_status status)
{
    blockade *b = ctx;
    CHECK_OK(status);
    const sp_future future = submit(b, 1);
    CHECK_STATUS(sp_future_wait_for(future, 1000000), SP_TIMEOUT);
    partial_case_check(b->partial, &b->cases[1], future);
    partial_case_check(b->partial, &b->cases[0], b->early);
    sp_store_release(&b->has_run, 1);
}

static void wait_for_any_and_all(void *ctx, sp_status status)
{
    blockade *b = ctx;
    sp_future futures[SEVERAL] = {b->early};
    uint32_t which = SEVERAL;
    CHECK_OK(status);
    for (int i = 1; i < SEVERAL; i++) futures[i] = submit(b, i);
    CHECK_STATUS(sp_future_wait_any(futures, SEVERAL, 1000000, &which), SP_TIMEOUT);
    CHECK_OK(sp_future_wait_any(futures + 1, SEVERAL - 1, -1, &which));
    CHECK_EQ_U64(which, 0);
    CHECK_OK(sp_future_wait_all(futures, SEVERAL, -1));
    for (int i = 0; i < SEVERAL; i++) partial_case_check(b->partial, &b->cases[i], futures[i]);
    sp_store_release(&b->has_run, 1);
}

/* All slots are taken by runs behind the function; the early run waits for one, or is queued. */
static void meet(case_kind kind, sp_host_function fn)
{
    static blockade b;
    b = (blockade){.kind = kind};
    sp_device_info device;
    CHECK_OK(sp_device_get_info(b.device, &device));
    REQUIRE(device.run_slots <= MOST_SLOTS);
    b.partial = partial_model(kind, NULL);
    b.blocked = small_model(NULL);
    small_run(b.blocked);
    gate_close(&b, fn);
    runners_start(&b, run_behind_gate, device.run_slots, b.blocked);
    b.early = submit(&b, 0);
    blockade_end(&b);
}

TEST(a_host_function_waits_for_runs_behind_runs_that_wait_for_it)
{
    for (int kind = 0; kind < CASE_KINDS; kind++) meet((case_kind)kind, wait_for_each);
}

TEST(a_host_function_waits_for_any_or_all_of_several_runs)
{
    for (int kind = 0; kind < CASE_KINDS; kind++) meet((case_kind)kind, wait_for_any_and_all);
}

/* ---- plans ---- */

static void run_partial_behind_gate(void *arg)
{
    blockade *b = arg;
    partial_case c;
    sp_host_tensor outputs[CASE_OUTPUTS] = {0};
    CHECK_OK(sp_stream_set_current(b->stream));
    partial_case_make(&c, b->kind, 99);
    CHECK_OK(partial_case_run(b->partial, &c, outputs));
    partial_free(&c, outputs);
    CHECK_OK(sp_stream_set_current((sp_stream){0}));
}

/* The shapes are those of the blocked run, so the first plan is found and the next one is not. */
static void wait_beside_its_plan(void *ctx, sp_status status)
{
    blockade *b = ctx;
    CHECK_OK(status);
    for (int i = 1; i < SEVERAL; i++) {
        const sp_future future = submit(b, i);
        /* Let it wait; it is done if the blocked run was between two plans. */
        const sp_status early = i % 2 == 0 ? sp_future_wait_for(future, 2000000) : SP_OK;
        if (early != SP_OK) CHECK_STATUS(early, SP_TIMEOUT);
        CHECK_OK(sp_future_wait(future));
        sp_host_tensor taken[CASE_OUTPUTS] = {0};
        partial_case_take(&b->cases[i], future, taken);
        partial_free(&b->cases[i], taken);
        CHECK_OK(sp_future_release(future));
    }
    sp_store_release(&b->has_run, 1);
}

TEST(a_host_function_waits_for_a_run_whose_plan_has_no_place)
{
    static blockade b;
    for (int kind = 0; kind < CASE_KINDS; kind++) {
        b = (blockade){.kind = (case_kind)kind};
        b.partial = partial_model(b.kind, &(sp_model_options){.max_plans = 1});
        b.blocked = small_model(NULL);
        gate_close(&b, wait_beside_its_plan);
        runners_start(&b, run_partial_behind_gate, 1, b.partial);
        blockade_end(&b);
    }
}

/* ---- callbacks ---- */

typedef struct chain {
    sp_model model;
    partial_case c;
    uint32_t left;
    sp_host_tensor expected[CASE_OUTPUTS];
    sp_future last;
    sp_atomic_u32 is_through;
} chain;

/* Submits two more, waits for the first and is called by the second. */
static void submit_next(void *ctx, sp_status status)
{
    chain *c = ctx;
    sp_host_tensor taken[CASE_OUTPUTS] = {0};
    sp_host_tensor outputs[CASE_OUTPUTS] = {0};
    sp_future waited;
    CHECK_OK(status);
    partial_case_take(&c->c, c->last, taken);
    CHECK(partial_is_same(&c->c, taken, c->expected));
    partial_free(&c->c, taken);
    CHECK_OK(sp_future_release(c->last));
    if (c->left-- == 0) {
        sp_store_release(&c->is_through, 1);
        return;
    }
    CHECK_OK(partial_case_submit(c->model, &c->c, outputs, &waited));
    CHECK_OK(partial_case_submit(c->model, &c->c, outputs, &c->last));
    CHECK_OK(sp_future_wait(waited));
    CHECK_OK(sp_future_release(waited));
    CHECK_OK(sp_future_on_complete(c->last, submit_next, c));
}

TEST(a_callback_submits_waits_and_takes)
{
    static chain chains[CASE_KINDS];
    for (int k = 0; k < CASE_KINDS; k++) {
        chain *c = &chains[k];
        sp_host_tensor outputs[CASE_OUTPUTS] = {0};
        *c = (chain){.model = partial_model((case_kind)k, NULL)};
        c->left = (uint32_t)test_count(2000, 100);
        partial_case_make(&c->c, (case_kind)k, 21);
        CHECK_OK(partial_case_run(c->model, &c->c, c->expected));
        CHECK_OK(partial_case_submit(c->model, &c->c, outputs, &c->last));
        CHECK_OK(sp_future_on_complete(c->last, submit_next, c));
    }
    for (int k = 0; k < CASE_KINDS; k++) {
        await_count(&chains[k].is_through, 1);
        partial_free(&chains[k].c, chains[k].expected);
        CHECK_OK(sp_model_release(chains[k].model));
    }
}

/* ---- contexts ---- */

enum { WIDE = 1 << 16 };

typedef struct shortage {
    blockade b;
    float x[WIDE];
    sp_future waited, left; /* by the function, and not */
} shortage;

/* y = the number of elements of x that are not 0, plus a sum that takes much memory. */
static sp_model wide_model(sp_device device)
{
    writer graph = {0};
    sp_model model = {0};
    partial_add_found(&graph, "values");
    add_node(&graph, make_node("Shape", "values", "count"));
    add_node(&graph, partial_node_int("Cast", "count", "n", "to", ONNX_FLOAT));
    add_node(&graph, make_node("Tanh", "x", "t"));
    add_node(&graph, partial_node_int("Concat", "t t t t t t t t", "long", "axis", 0));
    add_node(&graph, partial_node_int("ReduceSum", "long", "sum", "keepdims", 1));
    add_node(&graph, make_node("Add", "sum n", "y"));
    add_output(&graph, "y");
    CHECK_OK(partial_load(&graph, &(sp_model_options){.device = device}, &model));
    return model;
}

static sp_status wide_run(sp_model model, const float *data)
{
    float result;
    const sp_host_tensor x = partial_floats("x", data, WIDE);
    sp_host_tensor y = partial_room("y", &result, sizeof result);
    return sp_model_run(model, &x, 1, &y, 1);
}

static sp_future wide_submit(shortage *s)
{
    const sp_host_tensor x = partial_floats("x", s->x, WIDE);
    sp_host_tensor y = {0};
    sp_future future = {0};
    CHECK_OK(sp_model_submit(s->b.partial, &x, 1, &y, 1, &future));
    return future;
}

static void wide_run_behind_gate(void *arg)
{
    shortage *s = SP_CONTAINER_OF(arg, shortage, b);
    CHECK_OK(sp_stream_set_current(s->b.stream));
    CHECK_OK(wide_run(s->b.partial, s->x));
    CHECK_OK(sp_stream_set_current((sp_stream){0}));
}

/* The blocked run has the only context, and there is no memory for another one. */
static void wait_without_memory(void *ctx, sp_status status)
{
    shortage *s = SP_CONTAINER_OF(ctx, shortage, b);
    CHECK_OK(status);
    CHECK_STATUS(sp_future_wait_for(s->waited, 2000000), SP_TIMEOUT);
    CHECK_STATUS(sp_future_wait(s->waited), SP_OUT_OF_MEMORY);
    CHECK_STATUS(sp_future_wait_for(s->left, 2000000), SP_TIMEOUT);
    sp_store_release(&s->b.has_run, 1);
}

TEST(a_run_that_waits_for_a_context_fails_where_the_context_waits_for_the_function)
{
    static shortage s;
    CHECK_OK(sp_device_open("null", &s.b.device));
    s.b.partial = wide_model(s.b.device);
    s.b.blocked = small_model(NULL);
    s.x[5] = 1;
    sp_status status = SP_OUT_OF_MEMORY;
    uint64_t limit = 0;
    while (status == SP_OUT_OF_MEMORY) {
        limit += 256 << 10;
        CHECK_OK(sp_device_set_memory_limit(s.b.device, limit));
        status = wide_run(s.b.partial, s.x);
    }
    CHECK_OK(status);
    CHECK_OK(sp_device_set_memory_limit(s.b.device, limit + (256 << 10))); /* for the gate */
    gate_close(&s.b, wait_without_memory);
    runners_start(&s.b, wide_run_behind_gate, 1, s.b.partial);
    s.waited = wide_submit(&s);
    s.left = wide_submit(&s);
    CHECK_OK(sp_storage_host_end(s.b.key, SP_WRITE));
    await_count(&s.b.has_run, 1);
    CHECK_OK(sp_future_wait(s.left));
    CHECK_OK(sp_future_release(s.waited));
    CHECK_OK(sp_future_release(s.left));
    CHECK_OK(sp_storage_host_begin(s.b.key, SP_WRITE, &(void *){NULL}));
    blockade_end(&s.b);
    CHECK_OK(sp_device_close(s.b.device));
}

TEST_MAIN
