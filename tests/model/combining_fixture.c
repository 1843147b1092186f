/* SPDX-License-Identifier: Apache-2.0 */
#include "combining_fixture.h"

#include <stdio.h>
#include <string.h>

#include "base/option.h"
#include "base/thread.h"
#include "batch/batch.h"
#include "batch/batch_builder.h"
#include "batch/batch_plans.h"
#include "partial_fixture.h"

bool combining_is_certain(void)
{
    sp_option_load();
    return sp_option_enum(SP_OPTION_BATCHING) == SP_OPTION_BATCHING_ALWAYS;
}

/* ---- slots ---- */

held_slots slots_hold(sp_model model)
{
    held_slots held = {.model = sp__model_hold(model)};
    held.slots = sp__device_run_slots(held.model->device);
    for (; held.count < held.slots->count; held.count++)
        CHECK_OK(sp__run_slots_acquire(held.slots, NULL));
    return held;
}

void slots_give_one(held_slots *held)
{
    held->count--;
    sp__wait_entry_resume(sp__run_slots_release(held->slots, NULL));
}

void slots_give(held_slots *held)
{
    while (held->count > 0) slots_give_one(held);
    sp__model_drop(held->model);
}

void slots_await(const held_slots *held, uint32_t waiting)
{
    while (sp__run_slots_waiting(held->slots) < waiting) sp_thread_yield();
}

/* ---- larger plans ---- */

enum { REQUESTS = 70 }; /* more than a plan's runs must wait before it gets larger ones */

void combining_request(sp_model model, const sp_host_tensor *inputs, uint32_t count)
{
    sp_future futures[REQUESTS];
    uint32_t submitted = 0;
    sp_host_tensor none[FIXTURE_PORTS] = {0};
    CHECK_OK(sp_model_infer(model, inputs, count, none, model_info_of(model).output_count));
    held_slots held = slots_hold(model);
    for (int i = 0; i < REQUESTS; i++) {
        const sp_status status =
            sp_model_submit(model, inputs, count, NULL, 0, &futures[submitted]);
        if (status == SP_OK) submitted++;
    }
    slots_give(&held);
    for (uint32_t i = 0; i < submitted; i++) {
        (void)sp_future_wait(futures[i]); /* inputs may be such that the run fails */
        CHECK_OK(sp_future_release(futures[i]));
    }
}

uint32_t combining_buckets(sp_model model)
{
    sp_rt_model *held = sp__model_hold(model);
    sp_plan_entry *entry = sp__plan_cache_acquire_newest(&held->plans);
    uint32_t count = 0;
    if (entry != NULL) {
        const sp_batch_plans *plans = sp__batch_plans_of(entry);
        if (plans != NULL) count = sp__batch_plans_count(plans);
        sp__plan_cache_release(&held->plans, entry);
    }
    sp__model_drop(held);
    return count;
}

uint32_t combining_batches(sp_model model)
{
    sp_rt_model *held = sp__model_hold(model);
    sp_plan_entry *entry = sp__plan_cache_acquire_newest(&held->plans);
    sp_batch_plans *plans = entry != NULL ? sp__batch_plans_of(entry) : NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; plans != NULL && i < sp__batch_plans_count(plans); i++) {
        sp_batch_bucket *bucket = &plans->buckets[i];
        sp_mutex_lock(&bucket->lock);
        for (const sp_batch *batch = bucket->idle; batch != NULL; batch = batch->next) count++;
        sp_mutex_unlock(&bucket->lock);
    }
    if (entry != NULL) sp__plan_cache_release(&held->plans, entry);
    sp__model_drop(held);
    return count;
}

uint32_t combining_prepare(sp_model model, const sp_host_tensor *inputs, uint32_t count)
{
    combining_request(model, inputs, count);
    sp__batch_builder_drain();
    return combining_buckets(model);
}

uint32_t combining_build(sp_model model)
{
    sp_rt_model *held = sp__model_hold(model);
    sp_plan_entry *entry = sp__plan_cache_acquire_newest(&held->plans);
    if (entry != NULL) {
        sp__batch_builder_request(held, entry);
        sp__plan_cache_release(&held->plans, entry);
    }
    sp__model_drop(held);
    sp__batch_builder_drain();
    return combining_buckets(model);
}

/* ---- counts ---- */

static uint32_t bucket_of(uint32_t rows)
{
    static const uint32_t sizes[] = {64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2};
    for (uint32_t i = 0; i < SP_COUNT_OF(sizes); i++) {
        if (sizes[i] <= rows) return sizes[i];
    }
    return 1;
}

merged_runs merged_expected(uint32_t callers, uint32_t slots)
{
    merged_runs sum = {0};
    while (callers > 0) {
        const uint32_t waiting = callers - 1;
        const uint32_t rows = bucket_of(1 + (waiting + slots - 1) / slots);
        callers -= rows;
        if (rows == 1) continue;
        sum.batches++;
        sum.runs += rows;
    }
    return sum;
}

merged_runs merged_of(sp_model model)
{
    const sp_model_info info = model_info_of(model);
    return (merged_runs){info.batches, info.batched_runs};
}

merged_runs merged_since(sp_model model, merged_runs before)
{
    const merged_runs now = merged_of(model);
    return (merged_runs){now.batches - before.batches, now.runs - before.runs};
}

/* ---- a model that may fail ---- */

static float table_at(int64_t row, int64_t column)
{
    return (float)(row * 10 + column) + 0.25f;
}

sp_model table_model(const sp_model_options *options)
{
    static const int64_t table_dims[2] = {TABLE_ROWS, TABLE_WIDTH};
    static const int64_t x_dims[1] = {-1};
    float table[TABLE_ROWS * TABLE_WIDTH];
    for (int i = 0; i < TABLE_ROWS * TABLE_WIDTH; i++) {
        table[i] = table_at(i / TABLE_WIDTH, i % TABLE_WIDTH);
    }
    writer graph = {0};
    sp_model model = {0};
    writer tensor = make_tensor("t", ONNX_FLOAT, table_dims, 2, table, sizeof table);
    write_message(&graph, GRAPH_INITIALIZER_FIELD, &tensor);
    add_input(&graph, "x", ONNX_INT64, x_dims, 1);
    add_node(&graph, make_node("Gather", "t x", "g"));
    add_node(&graph, make_node("Neg", "g", "y"));
    add_output(&graph, "y");
    CHECK_OK(partial_load(&graph, options, &model));
    return model;
}

sp_host_tensor table_input(const int64_t *index)
{
    return partial_ints("x", index, 1);
}

bool table_is_right(int64_t index, const float *y)
{
    float expected[TABLE_WIDTH];
    for (int i = 0; i < TABLE_WIDTH; i++) expected[i] = -table_at(index, i);
    return memcmp((const void *)y, (const void *)expected, sizeof expected) == 0;
}

sp_model factors_model(void)
{
    static const int64_t x_dims[2] = {-1, 4};
    static const int64_t k_dims[1] = {3};
    static const int64_t order[2] = {0, 1};
    writer graph = {0};
    sp_model model = {0};
    add_input(&graph, "x", ONNX_FLOAT, x_dims, 2);
    add_input(&graph, "k", ONNX_FLOAT, k_dims, 1);
    partial_add_ints(&graph, "begin", (const int64_t[]){0}, 1);
    partial_add_ints(&graph, "end", (const int64_t[]){3}, 1);
    partial_add_ints(&graph, "axis", (const int64_t[]){1}, 1);
    add_node(&graph, make_node("Slice", "x begin end axis", "s"));
    add_node(&graph, partial_node_ints("Transpose", "s", "t", "perm", order, 2));
    add_node(&graph, make_node("Mul", "t k", "p"));
    add_node(&graph, make_node("Tanh", "p", "y"));
    add_output(&graph, "y");
    CHECK_OK(partial_load(&graph, NULL, &model));
    return model;
}

/* The graph has x of these dimensions, and y = second(first(x)). */
static sp_model chain_model(const int64_t *dims, const char *first, const char *second,
                            const sp_model_options *options)
{
    writer graph = {0};
    sp_model model = {0};
    add_input(&graph, "x", ONNX_FLOAT, dims, 2);
    add_node(&graph, make_node(first, "x", "t"));
    add_node(&graph, make_node(second, "t", "y"));
    add_output(&graph, "y");
    CHECK_OK(partial_load(&graph, options, &model));
    return model;
}

sp_model plain_model(const sp_model_options *options)
{
    return chain_model((int64_t[]){-1, SMALL_IN}, "Tanh", "Neg", options);
}

sp_model width_model(void)
{
    return chain_model((int64_t[]){1, -1}, "Neg", "Abs", NULL);
}

sp_model products_model(void)
{
    enum { PRODUCTS = 60, WIDTH = PRODUCTS_WIDTH };
    static const int64_t x_dims[2] = {-1, WIDTH};
    static const int64_t w_dims[2] = {WIDTH, WIDTH};
    float weights[WIDTH * WIDTH] = {0};
    for (int i = 0; i < WIDTH; i++) weights[i * WIDTH + (i + 1) % WIDTH] = 1;
    writer graph = {0};
    add_input(&graph, "x", ONNX_FLOAT, x_dims, 2);
    for (int i = 0; i < PRODUCTS; i++) {
        char inputs[16], output[8];
        snprintf(inputs, sizeof inputs, i == 0 ? "x w" : "t%d w", i - 1);
        snprintf(output, sizeof output, i == PRODUCTS - 1 ? "y" : "t%d", i);
        add_node(&graph, make_node("MatMul", inputs, output));
    }
    writer part = make_tensor("w", ONNX_FLOAT, w_dims, 2, weights, sizeof weights);
    write_message(&graph, GRAPH_INITIALIZER_FIELD, &part);
    add_output(&graph, "y");
    return graph_load(&graph, NULL);
}
