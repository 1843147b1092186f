/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of several models and shapes that wait in one queue: each is merged with its like only, with
 * its own choice of outputs. Needs STREAMPOOL_BATCHING=always. */
#include <string.h>

#include "base/thread.h"
#include "combining_fixture.h"
#include "partial_fixture.h"

enum { CALLERS = 31 };

enum { MOST_WIDTH = 7, PIECES = 3, MOST_COUNT = PIECES * MOST_WIDTH, WIDE_OUTPUTS = 3 };

/* y = Tanh(x), z = Neg(x), of any shape; w with the batch on the second axis. */
static sp_model wide_model(void)
{
    static const int64_t dims[3] = {1, PIECES, -1};
    static const int64_t order[3] = {1, 0, 2};
    writer graph = {0};
    sp_model model = {0};
    add_input(&graph, "x", ONNX_FLOAT, dims, 3);
    add_node(&graph, make_node("Tanh", "x", "y"));
    add_node(&graph, make_node("Neg", "x", "z"));
    add_node(&graph, partial_node_ints("Transpose", "x", "w", "perm", order, 3));
    add_output(&graph, "y");
    add_output(&graph, "z");
    add_output(&graph, "w");
    CHECK_OK(partial_load(&graph, NULL, &model));
    return model;
}

typedef struct wide_caller {
    sp_model model;
    uint32_t index;
    int64_t width;
    sp_thread thread;
    float x[MOST_COUNT];
    float expected[WIDE_OUTPUTS][MOST_COUNT];
} wide_caller;

static uint64_t wide_bytes(const wide_caller *c)
{
    return (uint64_t)(PIECES * c->width) * sizeof(float);
}

static sp_host_tensor wide_input(const wide_caller *c)
{
    return (sp_host_tensor){.data = (void *)(uintptr_t)c->x,
                            .bytes = wide_bytes(c),
                            .dtype = SP_F32,
                            .rank = 3,
                            .shape = {1, PIECES, c->width}};
}

/* Outputs of three kinds: in the caller's memory, allocated by the run, and not requested. */
static void wide_main(void *arg)
{
    static const char *const names[WIDE_OUTPUTS] = {"y", "z", "w"};
    const wide_caller *c = arg;
    const sp_host_tensor x = wide_input(c);
    float rooms[WIDE_OUTPUTS][MOST_COUNT];
    sp_host_tensor outputs[WIDE_OUTPUTS] = {0};
    uint32_t at[WIDE_OUTPUTS], count = 0;
    memset(rooms, 0xff, sizeof rooms);
    for (uint32_t i = 0; i < WIDE_OUTPUTS; i++) {
        const uint32_t kind = (c->index >> i) % 3;
        if (kind == 2) continue;
        at[count] = i;
        outputs[count] = (sp_host_tensor){.name = names[i]};
        if (kind == 0) {
            outputs[count].data = rooms[i];
            outputs[count].capacity = sizeof rooms[i];
        }
        count++;
    }
    CHECK_OK(sp_model_run(c->model, &x, 1, outputs, count));
    for (uint32_t k = 0; k < count; k++) {
        CHECK_EQ_U64(outputs[k].bytes, wide_bytes(c));
        CHECK_EQ_MEM(outputs[k].data, c->expected[at[k]], wide_bytes(c));
        if (outputs[k].data != rooms[at[k]]) sp_host_tensor_free(&outputs[k]);
    }
}

static void wide_init(wide_caller *c, sp_model model, uint32_t index)
{
    *c = (wide_caller){.model = model, .index = index, .width = index % 2 == 0 ? 4 : MOST_WIDTH};
    for (uint32_t i = 0; i < MOST_COUNT; i++) c->x[i] = (float)(index * 7 + i) * 0.01f;
    const sp_host_tensor x = wide_input(c);
    sp_host_tensor outputs[WIDE_OUTPUTS];
    for (uint32_t i = 0; i < WIDE_OUTPUTS; i++) outputs[i] = output_y(c->expected[i], MOST_COUNT);
    CHECK_OK(sp_model_run(model, &x, 1, outputs, WIDE_OUTPUTS));
}

/* Of two models and two shapes each, in turns. */
TEST(runs_of_several_models_and_shapes_wait_in_one_queue_and_get_their_outputs)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    static wide_caller callers[CALLERS];
    const sp_model models[2] = {wide_model(), wide_model()};
    for (uint32_t i = 0; i < CALLERS; i++) {
        wide_init(&callers[i], models[i / 2 % 2], i);
        const sp_host_tensor x = wide_input(&callers[i]);
        if (i < 4) CHECK_EQ_U64(combining_prepare(callers[i].model, &x, 1), 11);
    }
    held_slots held = slots_hold(models[0]);
    for (uint32_t i = 0; i < CALLERS; i++) {
        CHECK_OK(sp_thread_create(&callers[i].thread, "caller", wide_main, &callers[i]));
        slots_await(&held, i + 1);
    }
    slots_give(&held);
    for (uint32_t i = 0; i < CALLERS; i++) sp_thread_join(&callers[i].thread);
    for (int i = 0; i < 2; i++) {
        CHECK(merged_of(models[i]).runs >= CALLERS / 4);
        CHECK_OK(sp_model_release(models[i]));
    }
}

TEST_MAIN
