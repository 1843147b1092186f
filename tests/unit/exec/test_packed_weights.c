/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a model's packed weights: what is shared, what is not, and the state after
 * failures. */
#include "exec/packed_weights.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "runtime_fixture.h"
#include "support/model_data.h"
#include "support/random_weight.h"

enum { MOST_PACKINGS = 8 };

/* x [n, 4] times w, twice, and once times the transpose of w; times v [3, 5]. */
static const sp_graph *graph_of_products(void)
{
    static const int64_t x_dims[2] = {-1, 4}, w_dims[2] = {4, 3}, v_dims[2] = {3, 5};
    writer graph = {0};
    add_random_weight(&graph, "w", w_dims, 2, 1);
    add_random_weight(&graph, "v", v_dims, 2, 2);
    add_input(&graph, "x", 1, x_dims, 2);
    add_node(&graph, make_node("MatMul", "x w", "a"));
    writer back = make_node("Gemm", "a w", "b");
    add_attribute_int(&back, "transB", 1);
    add_node(&graph, back);
    add_node(&graph, make_node("MatMul", "b w", "c"));
    add_node(&graph, make_node("MatMul", "c v", "y"));
    add_output(&graph, "y");
    writer file = make_model(&graph, 13);
    const sp_graph *loaded = NULL;
    CHECK_OK(sp__graph_load(file.bytes, file.len, &loaded));
    writer_free(&file);
    return loaded;
}

static const sp_graph_plan *plan_of(const sp_graph *graph, int64_t rows, const sp_kernel *kernels)
{
    const sp_plan_input x = {.dtype = SP_F32, .shape = {.rank = 2, .dims = {rows, 4}}};
    const sp_plan_request request = {.kernels = kernels, .inputs = &x, .input_count = 1};
    const sp_graph_plan *plan = NULL;
    CHECK_OK(sp__plan_compile(graph, &request, &plan));
    return plan;
}

typedef struct world {
    const sp_graph *graph;
    const sp_graph_plan *plan;
    sp_packed_weights table;
} world;

static world world_begin(void)
{
    runtime_begin();
    world w = {.graph = graph_of_products()};
    w.plan = plan_of(w.graph, 2, NULL);
    CHECK_OK(sp__packed_weights_init(&w.table, w.graph));
    return w;
}

static void world_end(world *w)
{
    sp__packed_weights_deinit(&w->table);
    sp__plan_destroy(w->plan);
    sp__graph_destroy(w->graph);
    runtime_end();
}

static sp_status get(world *w, const sp_graph_plan *plan, sp_device device, const bool *is_needed,
                     sp_memory *out)
{
    static const bool all[MOST_PACKINGS] = {true, true, true, true, true, true, true, true};
    CHECK(plan->packing_count <= MOST_PACKINGS);
    const sp_packed_request request = {.plan = plan,
                                       .device = rt_device(device),
                                       .is_needed = is_needed != NULL ? is_needed : all,
                                       .may_wait = true};
    return sp__packed_weights_get(&w->table, &request, out);
}

static uint64_t table_bytes(world *w)
{
    return sp_load_relaxed(&w->table.bytes);
}

/* ---- plans ---- */

TEST(a_plan_asks_for_each_layout_of_a_weight_once)
{
    world w = world_begin();
    const sp_graph_plan *plan = w.plan;
    CHECK_EQ_INT(plan->packing_count, 3);
    CHECK_EQ_INT(plan->packings[0].weight, plan->packings[1].weight);
    CHECK(plan->packings[2].weight != plan->packings[0].weight);
    CHECK_EQ_U64(plan->packings[0].bytes, 4 * 16 * sizeof(float));
    CHECK_EQ_U64(plan->packings[1].bytes, 3 * 16 * sizeof(float));
    for (uint32_t s = 0; s < plan->step_count; s++) {
        for (uint32_t i = 0; i < plan->steps[s].binding_count; i++) {
            CHECK(plan->steps[s].bindings[i].where != SP_PLACE_WEIGHT);
        }
    }
    CHECK_OK(sp__plan_check(plan));
    world_end(&w);
}

/* ---- the table ---- */

TEST(copies_hold_what_the_packing_says)
{
    world w = world_begin();
    sp_memory copies[MOST_PACKINGS];
    CHECK_EQ_U64(table_bytes(&w), 0);
    REQUIRE_OK(get(&w, w.plan, CPU, NULL, copies));
    for (uint32_t i = 0; i < w.plan->packing_count; i++) {
        const sp_packing *packing = &w.plan->packings[i];
        void *want = malloc((size_t)packing->bytes);
        sp__weight_hold(&w.table.store, packing->weight);
        CHECK_OK(sp__packing_run(w.graph, packing, w.plan->kernels, want));
        sp__weight_drop(&w.table.store, packing->weight);
        CHECK_EQ_U64(copies[i].bytes, packing->bytes);
        CHECK_EQ_MEM(copies[i].host, want, (size_t)packing->bytes);
        CHECK_EQ_U64((uintptr_t)copies[i].host % 64, 0);
        free(want);
    }
    world_end(&w);
}

TEST(all_plans_of_a_model_share_the_copies)
{
    world w = world_begin();
    const sp_graph_plan *other = plan_of(w.graph, 7, NULL);
    sp_memory first[MOST_PACKINGS], second[MOST_PACKINGS];
    REQUIRE_OK(get(&w, w.plan, CPU, NULL, first));
    const uint64_t bytes = table_bytes(&w);
    REQUIRE_OK(get(&w, other, CPU, NULL, second));
    CHECK_EQ_U64(table_bytes(&w), bytes);
    for (uint32_t i = 0; i < other->packing_count; i++) CHECK(first[i].host == second[i].host);
    sp__plan_destroy(other);
    world_end(&w);
}

TEST(devices_and_instruction_sets_have_copies_of_their_own)
{
    world w = world_begin();
    sp_device null = {0};
    REQUIRE_OK(sp_device_open("null", &null));
    sp_kernel kernels[SP_KERNEL_COUNT];
    memcpy(kernels, w.plan->kernels, sizeof kernels);
    const sp_graph_plan *other = plan_of(w.graph, 2, kernels);
    sp_memory on_cpu[MOST_PACKINGS], on_null[MOST_PACKINGS], by_other[MOST_PACKINGS];
    REQUIRE_OK(get(&w, w.plan, CPU, NULL, on_cpu));
    const uint64_t bytes = table_bytes(&w);
    REQUIRE_OK(get(&w, w.plan, null, NULL, on_null));
    REQUIRE_OK(get(&w, other, CPU, NULL, by_other));
    CHECK_EQ_U64(table_bytes(&w), 3 * bytes);
    for (uint32_t i = 0; i < w.plan->packing_count; i++) {
        CHECK(on_null[i].device == rt_device(null)->dev);
        CHECK(on_cpu[i].host != on_null[i].host && on_cpu[i].host != by_other[i].host);
        CHECK_EQ_MEM(on_cpu[i].host, on_null[i].host, (size_t)on_cpu[i].bytes);
    }
    sp__plan_destroy(other);
    world_end(&w);
}

TEST(what_no_step_on_the_device_reads_is_not_made)
{
    world w = world_begin();
    const bool one[MOST_PACKINGS] = {false, true};
    sp_memory some[MOST_PACKINGS], all[MOST_PACKINGS];
    REQUIRE_OK(get(&w, w.plan, CPU, one, some));
    CHECK(some[0].device == NULL && some[1].device != NULL && some[2].device == NULL);
    const uint64_t bytes = table_bytes(&w);
    CHECK_EQ_U64(bytes, (w.plan->packings[1].bytes + 255) / 256 * 256);
    REQUIRE_OK(get(&w, w.plan, CPU, NULL, all));
    CHECK(all[1].host == some[1].host);
    CHECK(table_bytes(&w) > bytes);
    world_end(&w);
}

TEST(without_memory_nothing_is_left_and_the_next_call_makes_it_all)
{
    world w = world_begin();
    (void)rt_device(CPU); /* is open */
    bool has_failed = true;
    for (uint64_t skip = 0; has_failed; skip++) {
        sp_memory copies[MOST_PACKINGS];
        sp__packed_weights_deinit(&w.table);
        sp_heap_fail_after(skip);
        const sp_status begun = sp__packed_weights_init(&w.table, w.graph);
        const sp_status status = begun == SP_OK ? get(&w, w.plan, CPU, NULL, copies) : begun;
        has_failed = sp_heap_has_failed();
        sp_heap_fail_after(UINT64_MAX);
        CHECK_STATUS(status, has_failed ? SP_OUT_OF_MEMORY : SP_OK);
        if (has_failed) CHECK_EQ_U64(table_bytes(&w), 0);
        if (begun == SP_OK) CHECK_OK(get(&w, w.plan, CPU, NULL, copies));
        CHECK(skip < 100);
    }
    world_end(&w);
}

typedef struct crowd {
    world *w;
    sp_memory copies[8][MOST_PACKINGS];
} crowd;

static void get_all(void *arg, uint32_t index)
{
    crowd *c = arg;
    CHECK_OK(get(c->w, c->w->plan, CPU, NULL, c->copies[index]));
}

TEST(threads_that_ask_at_the_same_time_get_the_same_copies)
{
    world w = world_begin();
    for (uint64_t round = 0; round < test_count(2000, 200); round++) {
        crowd c = {.w = &w};
        test_threads(8, get_all, &c);
        for (uint32_t t = 1; t < 8; t++) {
            CHECK(memcmp(c.copies[t], c.copies[0], w.plan->packing_count * sizeof(sp_memory)) == 0);
        }
        sp__packed_weights_deinit(&w.table);
        REQUIRE_OK(sp__packed_weights_init(&w.table, w.graph));
    }
    world_end(&w);
}

TEST(a_table_that_was_never_begun_ends)
{
    sp_packed_weights table = {0};
    sp__packed_weights_deinit(&table);
    CHECK_EQ_U64(sp_load_relaxed(&table.bytes), 0);
}

TEST_MAIN
