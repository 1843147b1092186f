/* SPDX-License-Identifier: Apache-2.0 */
/* Which weights leave memory and when, and that they come back with their bits. */
#include "exec/weight_store.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/heap.h"
#include "base/option.h"
#include "exec/packed_weights.h"
#include "runtime_fixture.h"
#include "support/model_data.h"
#include "support/random_weight.h"

enum { SIDE = 320, COUNT = SIDE * SIDE, BYTES = COUNT * 4, SMALL = 200, MOST_PACKINGS = 8 };

_Static_assert(BYTES >= 256 * 1024, "the large weights are parked, whatever their kernel");

/* x [n, SIDE] times a, times the transpose of a, times b; plus c, of the same size; times d, which
 * is small. */
static const sp_graph *graph_of_products(void)
{
    static const int64_t square[2] = {SIDE, SIDE}, flat[2] = {SIDE, SMALL};
    writer graph = {0};
    add_random_weight(&graph, "a", square, 2, 1);
    add_random_weight(&graph, "b", square, 2, 2);
    add_random_weight(&graph, "c", square, 2, 3);
    add_random_weight(&graph, "d", flat, 2, 4);
    add_input(&graph, "x", 1, (int64_t[]){-1, SIDE}, 2);
    add_node(&graph, make_node("MatMul", "x a", "p"));
    writer back = make_node("Gemm", "p a", "q");
    add_attribute_int(&back, "transB", 1);
    add_node(&graph, back);
    add_node(&graph, make_node("MatMul", "q b", "r"));
    add_node(&graph, make_node("Add", "r c", "s"));
    add_node(&graph, make_node("MatMul", "s d", "y"));
    add_output(&graph, "y");
    writer file = make_model(&graph, 13);
    const sp_graph *loaded = NULL;
    CHECK_OK(sp__graph_load(file.bytes, file.len, &loaded));
    writer_free(&file);
    return loaded;
}

static const sp_graph_plan *plan_of(const sp_graph *graph, const sp_kernel *kernels)
{
    const sp_plan_input x = {.dtype = SP_F32, .shape = {.rank = 2, .dims = {SIDE, SIDE}}};
    const sp_plan_request request = {.kernels = kernels, .inputs = &x, .input_count = 1};
    const sp_graph_plan *plan = NULL;
    CHECK_OK(sp__plan_compile(graph, &request, &plan));
    return plan;
}

typedef struct world {
    const sp_graph *graph, *other; /* the other one is no model's: nothing of it is parked */
    const sp_graph_plan *plan;
    sp_packed_weights table;
} world;

static world world_begin(void)
{
    runtime_begin();
    world w = {.graph = graph_of_products(), .other = graph_of_products()};
    w.plan = plan_of(w.graph, NULL);
    CHECK_OK(sp__packed_weights_init(&w.table, w.graph));
    return w;
}

static void world_end(world *w)
{
    sp__packed_weights_deinit(&w->table);
    sp__plan_destroy(w->plan);
    sp__graph_destroy(w->graph);
    sp__graph_destroy(w->other);
    runtime_end();
}

static sp_status get_as(world *w, const sp_graph_plan *plan, sp_device device, bool may_wait,
                        sp_memory *out)
{
    static const bool all[MOST_PACKINGS] = {true, true, true, true, true, true, true, true};
    CHECK(plan->packing_count <= MOST_PACKINGS);
    const sp_packed_request request = {
        .plan = plan, .device = rt_device(device), .is_needed = all, .may_wait = may_wait};
    return sp__packed_weights_get(&w->table, &request, out);
}

static sp_status get(world *w, const sp_graph_plan *plan, sp_device device, sp_memory *out)
{
    return get_as(w, plan, device, true, out);
}

/* Are the whole pages of the weight in memory? */
static bool is_in_memory(const world *w, uint32_t weight)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const sp_weight *of = &w->graph->weights[weight];
    const uintptr_t first = ((uintptr_t)of->data + page - 1) / page * page;
    const uintptr_t end = ((uintptr_t)of->data + of->bytes) / page * page;
    const size_t count = (size_t)((end - first) / page);
    unsigned char *is_there = calloc(count, 1);
    CHECK(is_there != NULL && mincore((void *)first, (size_t)(end - first), is_there) == 0);
    bool is_any = false;
    for (size_t i = 0; is_there != NULL && i < count; i++) is_any |= (is_there[i] & 1) != 0;
    free(is_there);
    return is_any;
}

/* Holds the weight and compares it with that of the other graph. */
static void check_bits(world *w, uint32_t weight)
{
    const sp_weight *of = &w->graph->weights[weight], *want = &w->other->weights[weight];
    sp__weight_hold(&w->table.store, weight);
    CHECK_EQ_U64(of->bytes, want->bytes);
    CHECK_EQ_MEM(of->data, want->data, (size_t)want->bytes);
    sp__weight_drop(&w->table.store, weight);
}

enum { A, B, C, D, WEIGHTS };

/* ---- which ones ---- */

TEST(large_weights_that_only_products_read_are_parkable)
{
    world w = world_begin();
    REQUIRE(w.graph->weight_count == WEIGHTS);
    CHECK(w.graph->weights[A].is_parkable && w.graph->weights[B].is_parkable);
    CHECK(!w.graph->weights[C].is_parkable); /* a sum reads it */
    CHECK(w.graph->weights[D].is_parkable ==
          (w.graph->weights[D].bytes >= sp_option_bytes(SP_OPTION_PARK_BYTES)));
    world_end(&w);
}

typedef struct reader_case {
    const char *nodes[3];
    const char *output;
    bool is_default, is_parkable;
} reader_case;

static bool is_parkable_in(const reader_case *c)
{
    static const int64_t dims[2] = {SIDE, SIDE};
    writer graph = {0};
    add_random_weight(&graph, "w", dims, 2, 1);
    add_random_weight(&graph, "v", dims, 2, 2);
    add_input(&graph, "x", 1, (int64_t[]){-1, SIDE}, 2);
    if (c->is_default) add_input(&graph, "w", 1, dims, 2);
    for (int i = 0; i < 3 && c->nodes[i] != NULL; i++) {
        add_node(&graph, make_text_node(c->nodes[i]));
    }
    add_output(&graph, c->output);
    writer file = make_model(&graph, 13);
    const sp_graph *loaded = NULL;
    CHECK_OK(sp__graph_load(file.bytes, file.len, &loaded));
    writer_free(&file);
    bool is_parkable = false; /* any of them */
    for (uint32_t i = 0; loaded != NULL && i < loaded->weight_count; i++) {
        is_parkable |= loaded->weights[i].is_parkable;
    }
    sp__graph_destroy(loaded);
    return is_parkable;
}

TEST(weights_that_anything_else_reads_are_not)
{
    static const reader_case cases[] = {
        {.nodes = {"MatMul x w > y"}, .output = "y", .is_parkable = true},
        {.nodes = {"MatMul x w > p", "MatMul p w > y"}, .output = "y", .is_parkable = true},
        {.nodes = {"MatMul x w > p", "Add p w > y"}, .output = "y"},
        {.nodes = {"MatMul w x > y"}, .output = "y"},
        /* q is a constant of its own */
        {.nodes = {"MatMul x w > p", "Identity w > q", "Add p q > y"},
         .output = "y",
         .is_parkable = true},
        {.nodes = {"MatMul x w > y"}, .output = "w"},
        {.nodes = {"MatMul x w > y"}, .output = "y", .is_default = true},
    };
    for (size_t i = 0; i < SP_COUNT_OF(cases); i++) {
        if (is_parkable_in(&cases[i]) == cases[i].is_parkable) continue;
        CHECK_EQ_INT((int64_t)i, -1); /* names the case */
    }
}

TEST(plans_use_no_element_of_a_parkable_weight)
{
    world w = world_begin();
    for (uint32_t i = 0; i < WEIGHTS; i++) {
        const sp_weight *of = &w.graph->weights[i];
        if (of->is_parkable) memset(of->data, 0xff, (size_t)of->bytes);
    }
    const sp_graph_plan *other = plan_of(w.graph, NULL);
    CHECK_EQ_INT(other->step_count, w.plan->step_count);
    CHECK_EQ_INT(other->packing_count, w.plan->packing_count);
    sp__plan_destroy(other);
    world_end(&w);
}

/* ---- when ---- */

TEST(a_weight_leaves_memory_when_a_copy_has_all_its_elements)
{
    world w = world_begin();
    sp_memory copies[MOST_PACKINGS];
    CHECK(is_in_memory(&w, A) && is_in_memory(&w, B) && is_in_memory(&w, C));
    REQUIRE_OK(get(&w, w.plan, CPU, copies));
    CHECK(!is_in_memory(&w, A) && !is_in_memory(&w, B) && is_in_memory(&w, C));
    for (uint32_t i = 0; i < WEIGHTS; i++) check_bits(&w, i);
    CHECK(!is_in_memory(&w, A) && !is_in_memory(&w, B) && is_in_memory(&w, C));
    world_end(&w);
}

TEST(a_weight_that_is_held_stays)
{
    world w = world_begin();
    sp_memory copies[MOST_PACKINGS];
    sp_weight_store *store = &w.table.store;
    sp__weight_hold(store, A);
    sp__weight_hold(store, A);
    REQUIRE_OK(get(&w, w.plan, CPU, copies));
    CHECK(is_in_memory(&w, A) && !is_in_memory(&w, B));
    CHECK_EQ_MEM(w.graph->weights[A].data, w.other->weights[A].data, BYTES);
    sp__weight_drop(store, A);
    CHECK(is_in_memory(&w, A));
    CHECK_EQ_MEM(w.graph->weights[A].data, w.other->weights[A].data, BYTES);
    sp__weight_drop(store, A);
    CHECK(!is_in_memory(&w, A));
    world_end(&w);
}

TEST(a_copy_that_lacks_elements_is_no_source)
{
    world w = world_begin();
    const sp_pack_constants half = {
        .depth = SIDE, .columns = SIDE / 2, .depth_stride = SIDE, .column_stride = 1};
    const sp_packing packing = {.weight = A,
                                .kernel = SP_KERNEL_ID_gemm_pack_f32,
                                .constants = &half,
                                .constant_bytes = sizeof half,
                                .bytes = BYTES / 2};
    sp__weight_offer(&w.table.store, &packing, w.other->weights[B].data);
    CHECK(is_in_memory(&w, A));
    check_bits(&w, A);
    world_end(&w);
}

TEST(a_copy_that_is_withdrawn_gives_the_weight_back)
{
    world w = world_begin();
    sp_memory copies[MOST_PACKINGS];
    REQUIRE_OK(get(&w, w.plan, CPU, copies));
    sp_weight_store *store = &w.table.store;
    for (uint32_t i = 0; i < w.plan->packing_count; i++) {
        sp__weight_withdraw(store, w.plan->packings[i].weight, copies[i].host);
    }
    CHECK(is_in_memory(&w, A) && is_in_memory(&w, B));
    CHECK_EQ_MEM(w.graph->weights[A].data, w.other->weights[A].data, BYTES);
    CHECK_EQ_MEM(w.graph->weights[B].data, w.other->weights[B].data, BYTES);
    sp__weight_offer(store, &w.plan->packings[0], copies[0].host);
    CHECK(!is_in_memory(&w, w.plan->packings[0].weight));
    check_bits(&w, w.plan->packings[0].weight);
    world_end(&w);
}

TEST(another_copy_than_the_source_may_be_withdrawn)
{
    world w = world_begin();
    sp_memory copies[MOST_PACKINGS];
    REQUIRE_OK(get(&w, w.plan, CPU, copies));
    sp__weight_withdraw(&w.table.store, A, w.other->weights[A].data);
    CHECK(!is_in_memory(&w, A));
    check_bits(&w, A);
    world_end(&w);
}

/* ---- more copies ---- */

static void check_copies(const world *w, const sp_graph_plan *plan, const sp_memory *copies)
{
    for (uint32_t i = 0; i < plan->packing_count; i++) {
        void *want = malloc((size_t)plan->packings[i].bytes);
        REQUIRE(want != NULL);
        CHECK_OK(sp__packing_run(w->other, &plan->packings[i], plan->kernels, want));
        CHECK_EQ_MEM(copies[i].host, want, (size_t)plan->packings[i].bytes);
        free(want);
    }
}

TEST(later_copies_of_a_parked_weight_have_its_bits)
{
    world w = world_begin();
    sp_device null = {0};
    REQUIRE_OK(sp_device_open("null", &null));
    sp_kernel kernels[SP_KERNEL_COUNT];
    memcpy(kernels, w.plan->kernels, sizeof kernels);
    const sp_graph_plan *by_other = plan_of(w.graph, kernels);
    sp_memory copies[MOST_PACKINGS];
    REQUIRE_OK(get(&w, w.plan, CPU, copies));
    check_copies(&w, w.plan, copies);
    REQUIRE_OK(get(&w, w.plan, null, copies));
    check_copies(&w, w.plan, copies);
    REQUIRE_OK(get(&w, by_other, CPU, copies));
    check_copies(&w, by_other, copies);
    CHECK(!is_in_memory(&w, A) && !is_in_memory(&w, B));
    sp__plan_destroy(by_other);
    world_end(&w);
}

/* The kernels of a plan whose packing fails from the call `fails_at` on. */
static sp_kernel failing_kernels[SP_KERNEL_COUNT];
static sp_kernel_fn own_pack;
static uint32_t calls, fails_at;

static sp_status pack_or_fail(const sp_tile *tile)
{
    if (calls++ >= fails_at) return SP_EXHAUSTED;
    return own_pack(tile);
}

TEST(a_failure_half_way_gives_all_weights_back)
{
    world w = world_begin();
    memcpy(failing_kernels, w.plan->kernels, sizeof failing_kernels);
    own_pack = failing_kernels[SP_KERNEL_ID_gemm_pack_f32].run;
    failing_kernels[SP_KERNEL_ID_gemm_pack_f32].run = pack_or_fail;
    const sp_graph_plan *plan = plan_of(w.graph, failing_kernels);
    sp_memory copies[MOST_PACKINGS];
    for (fails_at = 0; fails_at < plan->packing_count; fails_at++) {
        calls = 0;
        CHECK_STATUS(get(&w, plan, CPU, copies), SP_EXHAUSTED);
        CHECK(is_in_memory(&w, A) && is_in_memory(&w, B));
        CHECK_EQ_MEM(w.graph->weights[A].data, w.other->weights[A].data, BYTES);
        CHECK_EQ_MEM(w.graph->weights[B].data, w.other->weights[B].data, BYTES);
    }
    fails_at = UINT32_MAX;
    REQUIRE_OK(get(&w, plan, CPU, copies));
    check_copies(&w, plan, copies);
    CHECK(!is_in_memory(&w, A) && !is_in_memory(&w, B));
    sp__plan_destroy(plan);
    world_end(&w);
}

/* ---- two packers ---- */

/* One packer fails while another one makes copies of the same weights. */
typedef enum packing_stage {
    NOTHING,
    OFFERED,       /* the one that fails has made its first copy, of A */
    OFFERED_AGAIN, /* the other one has made its two copies of A */
    FAILED,
} packing_stage;

static sp_atomic_u32 stage; /* a packing_stage; written (release) and read (acquire) by both */
static sp_atomic_u32 fail_calls, other_calls;

static void stage_await(packing_stage wanted)
{
    while (sp_load_acquire(&stage) < (uint32_t)wanted) sp_thread_yield();
}

static sp_status pack_and_fail(const sp_tile *tile)
{
    if (sp_fetch_add_relaxed(&fail_calls, 1) == 0) return own_pack(tile);
    sp_store_release(&stage, OFFERED);
    stage_await(OFFERED_AGAIN);
    return SP_EXHAUSTED;
}

static sp_status pack_beside(const sp_tile *tile)
{
    if (sp_fetch_add_relaxed(&other_calls, 1) == 2) {
        sp_store_release(&stage, OFFERED_AGAIN);
        stage_await(FAILED);
    }
    return own_pack(tile);
}

typedef struct two_packers {
    world *w;
    const sp_graph_plan *failing, *other;
    bool ends_first; /* the other one, before the first one fails */
} two_packers;

static void pack_as_one_of_two(void *arg, uint32_t index)
{
    const two_packers *two = arg;
    sp_memory copies[MOST_PACKINGS];
    if (index == 0) {
        CHECK_STATUS(get_as(two->w, two->failing, CPU, false, copies), SP_EXHAUSTED);
        sp_store_release(&stage, FAILED);
        return;
    }
    stage_await(OFFERED);
    CHECK_OK(get_as(two->w, two->other, CPU, false, copies));
    if (two->ends_first) sp_store_release(&stage, OFFERED_AGAIN);
}

static const sp_graph_plan *plan_that_packs_by(const world *w, sp_kernel_fn fn, sp_kernel *kernels)
{
    memcpy(kernels, w->plan->kernels, SP_KERNEL_COUNT * sizeof *kernels);
    own_pack = kernels[SP_KERNEL_ID_gemm_pack_f32].run;
    kernels[SP_KERNEL_ID_gemm_pack_f32].run = fn;
    return plan_of(w->graph, kernels);
}

/* Are the weights parked for the copies of the packer that did not fail? */
static void check_two_packers(bool ends_first)
{
    static sp_kernel beside_kernels[SP_KERNEL_COUNT];
    world w = world_begin();
    two_packers two = {.w = &w, .ends_first = ends_first};
    two.failing = plan_that_packs_by(&w, pack_and_fail, failing_kernels);
    two.other = ends_first ? w.plan : plan_that_packs_by(&w, pack_beside, beside_kernels);
    sp_store_relaxed(&stage, NOTHING);
    sp_store_relaxed(&fail_calls, 0);
    sp_store_relaxed(&other_calls, 0);
    (void)rt_device(CPU); /* is open */
    test_threads(2, pack_as_one_of_two, &two);
    CHECK(!is_in_memory(&w, A) && !is_in_memory(&w, B));
    for (uint32_t i = 0; i < WEIGHTS; i++) check_bits(&w, i);
    sp__plan_destroy(two.failing);
    if (!ends_first) sp__plan_destroy(two.other);
    world_end(&w);
}

TEST(a_weight_is_parked_for_other_copies_when_a_packer_fails)
{
    check_two_packers(true);
}

TEST(a_weight_is_parked_for_copies_that_are_complete_after_a_packer_has_failed)
{
    check_two_packers(false);
}

TEST(without_memory_all_weights_are_there)
{
    world w = world_begin();
    (void)rt_device(CPU); /* is open */
    bool has_failed = true;
    for (uint64_t skip = 0; has_failed; skip++) {
        sp_memory copies[MOST_PACKINGS];
        sp_heap_fail_after(skip);
        const sp_status status = get(&w, w.plan, CPU, copies);
        has_failed = sp_heap_has_failed();
        sp_heap_fail_after(UINT64_MAX);
        CHECK_STATUS(status, has_failed ? SP_OUT_OF_MEMORY : SP_OK);
        for (uint32_t i = 0; i < WEIGHTS; i++) check_bits(&w, i);
        REQUIRE(skip < 100);
    }
    world_end(&w);
}

/* ---- threads ---- */

enum { THREADS = 6 };

typedef struct crowd {
    world *w;
    sp_device null;
    const sp_graph_plan *by_other;
    uint64_t rounds;
} crowd;

/* Half of them read weights, the others get copies for several devices and kernels. */
static void read_or_pack(void *arg, uint32_t index)
{
    crowd *c = arg;
    world *w = c->w;
    sp_memory copies[MOST_PACKINGS];
    for (uint64_t round = 0; round < c->rounds; round++) {
        if (index % 2 == 0) {
            check_bits(w, (uint32_t)(index / 2 + round) % WEIGHTS);
            continue;
        }
        const bool is_null = (round + index) % 4 < 2;
        const sp_graph_plan *plan = index == 1 ? c->by_other : w->plan;
        CHECK_OK(get(w, plan, is_null ? c->null : CPU, copies));
        if (round == 0) check_copies(w, plan, copies);
    }
}

TEST(threads_that_read_and_pack_at_the_same_time_have_the_bits)
{
    for (uint64_t turn = 0; turn < test_count(40, 4); turn++) {
        world w = world_begin();
        crowd c = {.w = &w, .rounds = 20};
        REQUIRE_OK(sp_device_open("null", &c.null));
        sp_kernel kernels[SP_KERNEL_COUNT];
        memcpy(kernels, w.plan->kernels, sizeof kernels);
        c.by_other = plan_of(w.graph, kernels);
        test_threads(THREADS, read_or_pack, &c);
        sp__plan_destroy(c.by_other);
        CHECK(!is_in_memory(&w, A) && !is_in_memory(&w, B));
        world_end(&w);
    }
}

TEST(a_store_that_was_never_begun_ends)
{
    sp_weight_store store = {0};
    sp__weight_store_deinit(&store);
    CHECK(store.graph == NULL);
}

TEST_MAIN
