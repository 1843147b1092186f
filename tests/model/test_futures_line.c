/* SPDX-License-Identifier: Apache-2.0 */
/* Queued submitted runs: behind runs that are blocked in their streams, for memory, and for host
 * functions and callbacks that wait for them. */
#include <string.h>

#include <streampool/event.h>
#include <streampool/storage.h>
#include <streampool/stream.h>

#include "base/thread.h"
#include "run_fixture.h"

enum { MOST_SLOTS = 128 };

/* A stream blocked at a gate, and one run behind it per run slot. */
typedef struct blockade {
    sp_model model;
    small_row expected;
    sp_stream stream;
    sp_storage key;
    uint32_t slots;
    sp_thread runners[MOST_SLOTS];
} blockade;

static void run_behind_gate(void *arg)
{
    blockade *b = arg;
    CHECK_OK(sp_stream_set_current(b->stream));
    const small_row out = small_run(b->model);
    CHECK_EQ_MEM(&out, &b->expected, sizeof out);
    CHECK_OK(sp_stream_set_current((sp_stream){0}));
}

/* Closes the gate: later commands of the stream follow it. */
static void close_gate(blockade *b)
{
    *b = (blockade){.model = small_model(NULL)};
    b->expected = small_run(b->model);
    sp_device_info device;
    void *bytes;
    const uint8_t zero = 0;
    CHECK_OK(sp_device_get_info((sp_device){0}, &device));
    b->slots = device.run_slots;
    CHECK_OK(sp_stream_from_pool((sp_device){0}, &b->stream));
    CHECK_OK(sp_storage_create((sp_device){0}, 1, NULL, &b->key));
    CHECK_OK(sp_storage_host_begin(b->key, SP_WRITE, &bytes));
    const sp_storage_range all = {.storage = b->key, .bytes = 1};
    CHECK_OK(sp_storage_fill_async(b->stream, all, &zero, 1));
}

static void take_all_slots(blockade *b)
{
    REQUIRE(b->slots <= MOST_SLOTS);
    for (uint32_t i = 0; i < b->slots; i++) {
        CHECK_OK(sp_thread_create(&b->runners[i], "runner", run_behind_gate, b));
    }
    await_in_flight(b->model, b->slots);
}

static void open_gate(blockade *b)
{
    CHECK_OK(sp_storage_host_end(b->key, SP_WRITE));
}

static void end_blockade(blockade *b)
{
    for (uint32_t i = 0; i < b->slots; i++) sp_thread_join(&b->runners[i]);
    CHECK_OK(sp_storage_release(b->key));
    CHECK_OK(sp_stream_release(b->stream));
    CHECK_OK(sp_model_release(b->model));
}

enum { QUEUED = 40 };

TEST(a_submit_does_not_wait_for_a_slot_and_the_run_starts_by_itself)
{
    blockade b;
    small_row out[QUEUED];
    sp_future futures[QUEUED];
    close_gate(&b);
    take_all_slots(&b);
    memset(out, 0xff, sizeof out);
    for (int i = 0; i < QUEUED; i++) CHECK_OK(small_submit(b.model, &out[i], &futures[i]));
    for (int i = 0; i < QUEUED; i++) CHECK_STATUS(sp_future_query(futures[i]), SP_NOT_READY);
    CHECK_STATUS(sp_future_wait_for(futures[QUEUED - 1], 1000000), SP_TIMEOUT);
    open_gate(&b);
    for (int i = 0; i < QUEUED; i++) {
        CHECK_OK(sp_future_wait(futures[i]));
        CHECK_EQ_MEM(&out[i], &b.expected, sizeof out[i]);
        CHECK_OK(sp_future_release(futures[i]));
    }
    end_blockade(&b);
}

TEST(a_submitted_run_does_not_get_stuck_in_a_stream)
{
    blockade b;
    close_gate(&b);
    CHECK_OK(sp_stream_set_current(b.stream));
    small_row out;
    sp_future future;
    for (uint32_t i = 0; i < 2 * b.slots; i++) { /* nor hold slots */
        CHECK_OK(small_submit(b.model, &out, &future));
        CHECK_OK(sp_future_wait(future));
        CHECK_EQ_MEM(&out, &b.expected, sizeof out);
        CHECK_OK(sp_future_release(future));
    }
    CHECK_OK(sp_stream_set_current((sp_stream){0}));
    b.slots = 0;
    open_gate(&b);
    end_blockade(&b);
}

/* ---- callbacks that wait ---- */

typedef struct encounter {
    blockade b;
    small_row out;
    sp_future early; /* submitted outside, and queued */
    small_row early_out;
    sp_atomic_u32 has_run;
} encounter;

/* All runs that have slots are ordered after this function. */
static void submit_and_wait_in_function(void *ctx, sp_status status)
{
    encounter *e = ctx;
    sp_future future;
    CHECK_OK(status);
    CHECK_OK(small_submit(e->b.model, &e->out, &future));
    CHECK_STATUS(sp_future_wait_for(future, 1000000), SP_TIMEOUT);
    CHECK_OK(sp_future_wait(future));
    CHECK_EQ_MEM(&e->out, &e->b.expected, sizeof e->out);
    CHECK_OK(sp_future_release(future));
    CHECK_OK(sp_future_wait(e->early));
    CHECK_EQ_MEM(&e->early_out, &e->b.expected, sizeof e->early_out);
    sp_store_release(&e->has_run, 1);
}

/* `fn` runs on the stream of a device whose slots are taken by runs that wait for it. */
static void meet_in_function(sp_host_function fn)
{
    static encounter e;
    e = (encounter){0};
    close_gate(&e.b);
    CHECK_OK(sp_stream_host_function(e.b.stream, fn, &e));
    take_all_slots(&e.b);
    CHECK_OK(small_submit(e.b.model, &e.early_out, &e.early));
    open_gate(&e.b);
    while (!sp_load_acquire(&e.has_run)) sp_thread_yield();
    CHECK_OK(sp_future_release(e.early));
    end_blockade(&e.b);
}

TEST(a_host_function_waits_for_runs_in_line_behind_runs_that_wait_for_it)
{
    meet_in_function(submit_and_wait_in_function);
}

/* The runs that have slots come after this function, and the futures of all are queued. */
static void wait_for_several_in_function(void *ctx, sp_status status)
{
    encounter *e = ctx;
    small_row out[3];
    sp_future futures[4];
    uint32_t which = 4;
    CHECK_OK(status);
    for (int i = 0; i < 3; i++) CHECK_OK(small_submit(e->b.model, &out[i], &futures[i]));
    futures[3] = e->early;
    CHECK_STATUS(sp_future_wait_any(futures, 4, 1000000, &which), SP_TIMEOUT);
    CHECK_OK(sp_future_wait_any(futures, 4, -1, &which));
    CHECK_EQ_U64(which, 0);
    CHECK_STATUS(sp_future_query(futures[3]), SP_NOT_READY);
    CHECK_OK(sp_future_wait_all(futures, 4, -1));
    for (int i = 0; i < 3; i++) {
        CHECK_EQ_MEM(&out[i], &e->b.expected, sizeof out[i]);
        CHECK_OK(sp_future_release(futures[i]));
    }
    CHECK_EQ_MEM(&e->early_out, &e->b.expected, sizeof e->early_out);
    sp_store_release(&e->has_run, 1);
}

TEST(a_host_function_waits_for_any_or_all_of_queued_runs)
{
    meet_in_function(wait_for_several_in_function);
}

/* ---- memory for one context ---- */

enum { BURST = 6 };

static void submit_in_turns(void *arg, uint32_t index)
{
    const model_case *c = arg;
    sp_array outputs[BURST][FIXTURE_PORTS] = {0};
    sp_future futures[BURST];
    sp_host_tensor input = tensor_of(&c->inputs[0], NULL);
    for (int k = 0; k < BURST; k++) outputs_make(c, outputs[k]);
    for (uint64_t round = 0; round < test_count(40, 2); round++) {
        for (int k = 0; k < BURST; k++) {
            sp_host_tensor tensors[FIXTURE_PORTS];
            outputs_wipe(c, outputs[k]);
            for (uint32_t i = 0; i < c->output_count; i++) {
                tensors[i] = tensor_of(&outputs[k][i], NULL);
            }
            CHECK_OK(sp_model_submit(c->model, &input, 1, tensors, c->output_count, &futures[k]));
        }
        if (index % 2 == 0) { /* threads and submitted runs in one wait queue */
            sp_array mine[FIXTURE_PORTS] = {0};
            outputs_make(c, mine);
            CHECK_OK(case_run(c, mine));
            CHECK(case_is_same(c, mine));
            outputs_free(c, mine);
        }
        for (int k = 0; k < BURST; k++) {
            CHECK_OK(sp_future_wait(futures[k]));
            CHECK(case_is_same(c, outputs[k]));
            CHECK_OK(sp_future_release(futures[k]));
        }
    }
    CHECK_EQ_STR(sp_last_error(), ""); /* a missing extra context is no error */
    for (int k = 0; k < BURST; k++) outputs_free(c, outputs[k]);
}

TEST(where_memory_holds_one_context_submitted_runs_take_turns)
{
    model_case c;
    sp_model_options options = {0};
    if (!case_open("blazeface_front_128", NULL, &c)) SKIP("no shared data");
    const sp_model on_cpu = c.model;
    char path[DATA_PATH_BYTES];
    CHECK(data_path(path, "models/blazeface_front_128/model.onnx"));
    CHECK_OK(sp_device_open("null", &options.device));
    CHECK_OK(sp_model_load(path, &options, &c.model));
    sp_status status = SP_OUT_OF_MEMORY;
    for (uint64_t limit = 256 << 10; status == SP_OUT_OF_MEMORY; limit += 256 << 10) {
        CHECK_OK(sp_device_set_memory_limit(options.device, limit));
        sp_host_tensor input = tensor_of(&c.inputs[0], NULL);
        sp_host_tensor output[FIXTURE_PORTS] = {0};
        status = sp_model_infer(c.model, &input, 1, output, c.output_count);
    }
    CHECK_OK(status);
    test_threads(8, submit_in_turns, &c);
    CHECK_OK(sp_model_release(on_cpu));
    case_close(&c);
    CHECK_OK(sp_device_close(options.device));
}

TEST_MAIN
