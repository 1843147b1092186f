/* SPDX-License-Identifier: Apache-2.0 */
#include "row_fixture.h"

#include <string.h>

#include "base/thread.h"
#include "partial_fixture.h"
#include "segment_fixture.h"
#include "support/own_memory.h"

sp_device rows_device_open(void)
{
    return segment_is_cuda() ? segment_begin() : open_own_memory(false);
}

void rows_device_close(sp_device device)
{
    if (segment_is_cuda()) segment_end();
    else CHECK_OK(sp_device_close(device));
}

/* ---- models and callers ---- */

sp_model rows_model_open(model_kind kind, sp_device device, uint32_t max_waiting)
{
    static const int64_t flat[] = {-1, LONG}, pieces[] = {4, -1, LONG / 4};
    const sp_model_options options = {.device = device,
                                      .max_waiting = max_waiting,
                                      .cpu_ops = kind == TURNED ? "Transpose" : NULL};
    writer graph = {0};
    sp_model model = {0};
    if (kind == TABLE) partial_add_floats(&graph, "table", (const float[]){.5f, 1, 2, 3, 4}, 5);
    add_input(&graph, "x", kind == TABLE ? ONNX_INT64 : ONNX_FLOAT, kind == PIECES ? pieces : flat,
              kind == PIECES ? 3 : 2);
    if (kind == TABLE) add_node(&graph, make_node("Gather", "table x", "t"));
    else add_node(&graph, make_node("Tanh", "x", "t"));
    add_node(&graph, make_node("Neg", "t", kind == TURNED ? "n" : "y"));
    if (kind == TURNED) add_node(&graph, make_node("Transpose", "n", "y"));
    add_output(&graph, "y");
    if (kind == TWO) add_output(&graph, "t");
    CHECK_OK(partial_load(&graph, &options, &model));
    return model;
}

caller callers[THREADS];

void caller_fill(caller *r, uint32_t number, uint32_t salt)
{
    for (uint32_t i = 0; i < LONG; i++) {
        if (r->kind == TABLE) r->x.indices[i] = (int64_t)((number + i * 7 + salt) % 5);
        else r->x.numbers[i] = (float)((number * 31 + i * 7 + salt) % 2048) / 1024 - 1;
    }
    if (r->is_bad) r->x.indices[LONG / 2] = 5;
}

static sp_host_tensor caller_input(const caller *r)
{
    sp_host_tensor in = {.data = (void *)(uintptr_t)&r->x,
                         .bytes = sizeof r->x.numbers,
                         .dtype = SP_F32,
                         .rank = 2,
                         .shape = {1, LONG}};
    if (r->kind == TABLE) {
        in.bytes = sizeof r->x.indices;
        in.dtype = SP_I64;
    }
    if (r->kind == PIECES) {
        in.rank = 3;
        in.shape[0] = 4;
        in.shape[1] = 1;
        in.shape[2] = LONG / 4;
    }
    return in;
}

sp_status caller_run(caller *r)
{
    const sp_host_tensor in = caller_input(r);
    sp_host_tensor out = {.name = "y", .data = r->y, .capacity = sizeof r->y};
    memset(r->y, 0xff, sizeof r->y);
    return sp_model_run_with(r->model, &r->options, &in, 1, &out, 1);
}

void caller_check(const caller *r)
{
    CHECK(memcmp((const void *)r->y, (const void *)r->alone, sizeof r->y) == 0);
}

void caller_main(void *arg, uint32_t index)
{
    caller *r = (caller *)arg + index;
    CHECK_STATUS(caller_run(r), r->expected);
    if (r->expected == SP_OK) caller_check(r);
}

/* ---- a model with larger plans ---- */

void rows_world_open_with(rows_world *w, model_kind kind, uint32_t max_waiting)
{
    w->device = rows_device_open();
    w->model = rows_model_open(kind, w->device, max_waiting);
    for (uint32_t i = 0; i < THREADS; i++) {
        callers[i] = (caller){.kind = kind, .model = w->model};
        caller_fill(&callers[i], i, 0);
        CHECK_OK(caller_run(&callers[i]));
        memcpy(callers[i].alone, callers[i].y, sizeof callers[i].y);
    }
    CHECK(combining_build(w->model) > 0);
    w->held = sp__model_hold(w->model);
    w->entry = sp__plan_cache_acquire_newest(&w->held->plans);
    w->plans = sp__batch_plans_of(w->entry);
    w->before = merged_of(w->model);
}

void rows_world_open(rows_world *w, model_kind kind)
{
    rows_world_open_with(w, kind, 0);
}

uint32_t rows_take(const rows_world *w, void **taken, uint32_t most)
{
    uint32_t count = 0;
    while (count < most && (taken[count] = sp__batch_rows_acquire(w->plans->rows)) != NULL) count++;
    return count;
}

void rows_give(const rows_world *w, void **taken, uint32_t count)
{
    while (count > 0) sp__batch_rows_release(w->plans->rows, taken[--count]);
}

uint32_t rows_free(const rows_world *w)
{
    void *taken[MOST_ROWS];
    const uint32_t count = rows_take(w, taken, MOST_ROWS);
    rows_give(w, taken, count);
    return count;
}

void rows_world_close(rows_world *w)
{
    CHECK_EQ_U64(rows_free(w), w->plans->rows->count);
    sp__plan_cache_release(&w->held->plans, w->entry);
    sp__model_drop(w->held);
    CHECK_OK(sp_model_release(w->model));
    rows_device_close(w->device);
}

void slots_take(const rows_world *w)
{
    for (uint32_t i = 0; i < w->plans->own_slots->count; i++) {
        CHECK_OK(sp__run_slots_acquire(w->plans->own_slots, NULL));
    }
}

void slots_return(void *arg)
{
    const slot_return *r = arg;
    sp_run_slots *slots = r->w->plans->own_slots;
    while (sp__run_slots_waiting(slots) < r->waiting) sp_thread_yield();
    if (r->before != NULL) r->before(r);
    for (uint32_t i = 0; i < slots->count; i++) {
        sp__wait_entry_resume(sp__run_slots_release(slots, NULL));
    }
}

void callers_run(slot_return *r, uint32_t threads, uint32_t submitted)
{
    sp_thread returner;
    slots_take(r->w);
    r->waiting = threads + submitted;
    for (uint32_t i = threads; i < r->waiting; i++) {
        const sp_host_tensor in = caller_input(&callers[i]);
        sp_host_tensor out = {.name = "y", .data = callers[i].y, .capacity = sizeof callers[i].y};
        CHECK_OK(sp_model_submit(callers[i].model, &in, 1, &out, 1, &callers[i].future));
    }
    CHECK_OK(sp_thread_create(&returner, "returner", slots_return, r));
    test_threads(threads, caller_main, callers);
    sp_thread_join(&returner);
    for (uint32_t i = threads; i < r->waiting; i++) {
        CHECK_STATUS(sp_future_wait(callers[i].future), callers[i].expected);
        if (callers[i].expected == SP_OK) caller_check(&callers[i]);
        CHECK_OK(sp_future_release(callers[i].future));
    }
}

void check_rows_in_use(const slot_return *r)
{
    CHECK_EQ_U64(rows_free(r->w), r->free_rows);
}
