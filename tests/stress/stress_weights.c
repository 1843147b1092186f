/* SPDX-License-Identifier: Apache-2.0 */
/* Weights leave memory and come back while threads run models, compile plans for other shapes,
 * which read the weights in other layouts, and evict them again, on two devices: every run has the
 * bits of a graph that has all its weights. */
#include "stress.h"

#include <stdlib.h>
#include <string.h>

#include "run_fixture.h"
#include "support/random_weight.h"

enum {
    CHANNELS = 384, /* between the convolutions */
    FILTERS = 20,   /* in blocks in images of up to 64 pixels, else plain */
    COLUMNS = 4096,
    IN = 4,
    MOST_SIDE = 9,
    MOST_IMAGES = 3,
    SHAPES = 6,
    THREADS = 8
};

typedef struct shape_case {
    int64_t images, side;
    float x[MOST_IMAGES * IN * MOST_SIDE * MOST_SIDE];
    float want[MOST_IMAGES * COLUMNS];
} shape_case;

static const struct {
    int64_t images, side;
} shapes[SHAPES] = {{1, 4}, {2, 4}, {1, 9}, {3, 8}, {2, 9}, {1, 8}};

typedef struct world {
    sp_model models[3]; /* on the cpu; on the null device, all of it or with convolutions on cpu */
    sp_device null;
    shape_case *cases;
    uint64_t rounds;
} world;

/* ---- the model ---- */

static writer graph_of(void)
{
    writer graph = {0};
    add_random_weight(&graph, "a", (int64_t[]){CHANNELS, IN, 1, 1}, 4, 1);
    add_random_weight(&graph, "b", (int64_t[]){FILTERS, CHANNELS, 3, 3}, 4, 2);
    add_random_weight(&graph, "c", (int64_t[]){FILTERS, COLUMNS}, 2, 3);
    add_input(&graph, "x", 1, NULL, -1); /* of any size */
    add_node(&graph, make_node("Conv", "x a", "p"));
    writer conv = make_node("Conv", "p b", "q");
    add_attribute_ints(&conv, "pads", (int64_t[]){1, 1, 1, 1}, 4);
    add_node(&graph, conv);
    add_node(&graph, make_node("GlobalAveragePool", "q", "r"));
    add_node(&graph, make_node("Flatten", "r", "s"));
    add_node(&graph, make_node("MatMul", "s c", "y"));
    add_output(&graph, "y");
    return graph;
}

/* ---- what a run has to give ---- */

static void case_fill(const sp_graph *graph, uint32_t index, shape_case *c)
{
    c->images = shapes[index].images;
    c->side = shapes[index].side;
    data_random random = {index + 100};
    data_fill(&random, c->x, SP_COUNT_OF(c->x));
    const sp_shape shape = SHAPE(c->images, IN, c->side, c->side);
    const sp_plan_input input = {.dtype = SP_F32, .shape = shape};
    const sp_plan_request request = {.inputs = &input, .input_count = 1};
    const sp_graph_plan *plan;
    REQUIRE_OK(sp__plan_compile(graph, &request, &plan));
    const sp_array x = {.dtype = SP_F32,
                        .shape = shape,
                        .bytes = sizeof(float) * sp__shape_count(&shape),
                        .data = c->x};
    sp_array y;
    REQUIRE_OK(data_run_plan(plan, &x, &y));
    memcpy(c->want, y.data, (size_t)y.bytes);
    data_free(&y, 1);
    sp__plan_destroy(plan);
}

static world *world_begin(uint64_t rounds)
{
    runtime_begin();
    world *w = calloc(1, sizeof *w);
    if (w == NULL) abort();
    w->rounds = rounds;
    w->cases = calloc(SHAPES, sizeof *w->cases);
    if (w->cases == NULL) abort();
    writer file = graph_of(), graph = graph_of();
    file = make_model(&file, 13);
    const sp_graph *whole = NULL;
    CHECK_OK(sp__graph_load(file.bytes, file.len, &whole));
    for (uint32_t i = 0; whole != NULL && i < SHAPES; i++) case_fill(whole, i, &w->cases[i]);
    sp__graph_destroy(whole);
    writer_free(&file);
    CHECK_OK(sp_device_open("null", &w->null));
    w->models[0] = graph_load(&graph, &(sp_model_options){.max_plans = 2});
    graph = graph_of();
    w->models[1] = graph_load(&graph, &(sp_model_options){.device = w->null, .max_plans = 2});
    graph = graph_of();
    w->models[2] = graph_load(
        &graph, &(sp_model_options){.device = w->null, .cpu_ops = "Conv", .max_plans = 2});
    return w;
}

static void world_end(world *w)
{
    for (size_t i = 0; i < SP_COUNT_OF(w->models); i++) CHECK_OK(sp_model_release(w->models[i]));
    free(w->cases);
    free(w);
    runtime_end();
}

/* ---- runs ---- */

static void run_case(const world *w, uint32_t model, uint32_t index)
{
    const shape_case *c = &w->cases[index];
    float *got = malloc(sizeof c->want);
    REQUIRE(got != NULL);
    memset(got, 0xff, sizeof c->want);
    const uint64_t bytes = (uint64_t)c->images * COLUMNS * sizeof(float);
    const sp_host_tensor x = {.name = "x",
                              .dtype = SP_F32,
                              .rank = 4,
                              .shape = {c->images, IN, c->side, c->side},
                              .data = (void *)(uintptr_t)c->x,
                              .bytes =
                                  (uint64_t)(c->images * IN * c->side * c->side) * sizeof(float)};
    sp_host_tensor y = {.name = "y", .data = got, .capacity = bytes};
    CHECK_OK(sp_model_run(w->models[model], &x, 1, &y, 1));
    CHECK_EQ_MEM(got, c->want, (size_t)bytes);
    free(got);
}

TEST(each_shape_has_its_bits_whatever_has_run_before)
{
    world *w = world_begin(1);
    for (uint32_t model = 0; model < SP_COUNT_OF(w->models); model++) {
        for (uint32_t first = 0; first < SHAPES; first++) {
            for (uint32_t second = 0; second < SHAPES; second++) {
                run_case(w, model, first);
                run_case(w, model, second);
            }
        }
    }
    world_end(w);
}

typedef struct inside_call {
    const world *w;
    uint32_t model, index;
} inside_call;

static void run_inside(void *ctx, sp_status status)
{
    const inside_call *call = ctx;
    CHECK_OK(status);
    run_case(call->w, call->model, call->index);
}

/* A run on the calling thread reads all weights, packed and plain ones, in host memory. */
static void run_in_function(const world *w, uint32_t model, uint32_t index)
{
    sp_stream stream;
    inside_call call = {.w = w, .model = model, .index = index};
    REQUIRE_OK(sp_stream_from_pool(model == 0 ? (sp_device){0} : w->null, &stream));
    CHECK_OK(sp_stream_host_function(stream, run_inside, &call));
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_OK(sp_stream_release(stream));
}

TEST(runs_inside_of_host_functions_have_their_bits)
{
    world *w = world_begin(1);
    for (uint32_t model = 0; model < SP_COUNT_OF(w->models); model++) {
        for (uint32_t i = 0; i < SHAPES; i++) {
            run_in_function(w, model, i);
            run_case(w, model, (i + 1) % SHAPES);
        }
    }
    world_end(w);
}

static void run_some(void *arg, uint32_t index)
{
    const world *w = arg;
    uint64_t random = random_seed(index);
    for (uint64_t round = 0; round < w->rounds; round++) {
        const uint32_t model = random_next(&random) % SP_COUNT_OF(w->models);
        const uint32_t shape = random_next(&random) % SHAPES;
        if (random_next(&random) % 8 == 0) run_in_function(w, model, shape);
        else run_case(w, model, shape);
    }
}

TEST(threads_that_run_and_compile_at_the_same_time_have_their_bits)
{
    for (uint64_t turn = 0; turn < test_count(20, 3); turn++) {
        world *w = world_begin(test_count(100, 20));
        test_threads(THREADS, run_some, w);
        world_end(w);
    }
}

TEST_MAIN
