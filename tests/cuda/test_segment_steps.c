/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts with observed steps on the cpu: their failures, their waits, their queues. The plans are
 * chains of Relu (on the device) and Tanh (on the cpu); a Tanh of an input that begins with 77
 * fails. */
#include <streampool/model.h>

#include <string.h>

#include "base/error.h"
#include "device/wait.h"
#include "exec/context.h"
#include "runtime/current_stream.h"
#include "segment_fixture.h"
#include "support/onnx_writer.h"

enum { COUNT = 64 };
static const float bad = 77;

static sp_kernel kernels[SP_KERNEL_COUNT];
static sp_kernel_fn run_tanh;
static sp_atomic_u32 tanh_count; /* tiles run */

static sp_status run_watched_tanh(const sp_tile *tile)
{
    sp_fetch_add_relaxed(&tanh_count, 1);
    if (*(const float *)tile->bindings[0] == bad) return sp__fail(SP_FAILED, "asked to fail");
    return run_tanh(tile);
}

typedef struct chain {
    sp_rt_device *device;
    const sp_graph *graph;
    sp_upload weights;
    sp_executable *compiled;
} chain;

static const sp_graph_plan *plan_of(const sp_graph *graph)
{
    memcpy(kernels, sp__cpu_kernels(sp__cpu_isa_selected()), sizeof kernels);
    run_tanh = kernels[SP_KERNEL_ID_tanh_f32].run;
    kernels[SP_KERNEL_ID_tanh_f32].run = run_watched_tanh;
    const sp_plan_input input = {.dtype = SP_F32, .shape = {.rank = 1, .dims = {COUNT}}};
    const sp_plan_request request = {.kernels = kernels, .inputs = &input, .input_count = 1};
    const sp_graph_plan *plan = NULL;
    CHECK_OK(sp__plan_compile(graph, &request, &plan));
    return plan;
}

/* `ops`: R is Relu, T is Tanh. */
static const sp_graph *graph_of(const char *ops)
{
    static const int64_t dims[1] = {COUNT};
    writer graph = {0};
    const size_t count = strlen(ops);
    char name[2] = "x";
    for (size_t i = 0; i < count; i++) {
        const char next[2] = {i + 1 == count ? 'y' : (char)('a' + i), '\0'};
        writer node = make_node(ops[i] == 'T' ? "Tanh" : "Relu", name, next);
        write_message(&graph, GRAPH_NODE_FIELD, &node);
        name[0] = next[0];
    }
    writer part = make_value("x", 1, dims, 1);
    write_message(&graph, GRAPH_INPUT_FIELD, &part);
    part = make_value("y", 1, dims, 1);
    write_message(&graph, GRAPH_OUTPUT_FIELD, &part);
    writer file = make_model(&graph, 13);
    const sp_graph *loaded = NULL;
    CHECK_OK(sp__graph_load(file.bytes, file.len, &loaded));
    writer_free(&file);
    return loaded;
}

static chain chain_open(sp_device device, const char *ops)
{
    chain c = {.device = rt_device(device), .graph = graph_of(ops)};
    CHECK_OK(sp__upload_init(c.device, c.graph->weights, c.graph->weight_count, &c.weights));
    CHECK_OK(
        sp__executable_create(plan_of(c.graph), c.device, c.weights.memories, "Tanh", &c.compiled));
    CHECK_OK(sp__executable_prepare(c.compiled));
    return c;
}

static void chain_close(chain *c)
{
    sp__executable_destroy(c->compiled);
    sp__upload_deinit(c->device, &c->weights);
    sp__graph_destroy(c->graph);
    segment_set_ops(NULL);
}

static void fill_input(float *x, float first)
{
    for (int i = 0; i < COUNT; i++) x[i] = (float)i * 0.125f - 3.0f;
    x[0] = first;
}

static sp_status chain_run(const chain *c, const float *x, float *y)
{
    sp_stream_ref stream;
    sp_exec_context *context;
    const void *input = x;
    void *output = y;
    SP_TRY(sp__current_stream(c->device, &stream));
    SP_TRY(sp__exec_context_acquire(c->compiled, 0, true, &context));
    const sp_status status = sp__exec_context_run(context, &stream, &input, &output);
    sp__wait_entry_resume(sp__exec_context_release(context));
    return status;
}

static void expect(const chain *c, const float *x, float *y)
{
    const void *input = x;
    void *output = y;
    char arena[4096];
    REQUIRE(c->compiled->plan->arena_bytes <= sizeof arena);
    CHECK_OK(sp__plan_run_reference(c->compiled->plan, &input, &output, arena));
}

TEST(every_pattern_of_places_gives_the_bits_of_one_place)
{
    static const char *const patterns[] = {"R",   "T",      "RT",     "TR",      "RTR",
                                           "TRT", "TTRRTT", "RRTTRR", "TRTRTRTR"};
    const sp_device device = segment_begin();
    for (size_t i = 0; i < SP_COUNT_OF(patterns); i++) {
        chain c = chain_open(device, patterns[i]);
        float x[COUNT], y[COUNT] = {0}, wanted[COUNT];
        fill_input(x, 1);
        expect(&c, x, wanted);
        CHECK_OK(chain_run(&c, x, y));
        CHECK_EQ_MEM(y, wanted, sizeof y);
        chain_close(&c);
    }
    segment_end();
}

TEST(a_step_that_fails_on_the_cpu_names_node_and_op_and_skips_what_follows)
{
    const sp_device device = segment_begin();
    chain c = chain_open(device, "RTRTR");
    float x[COUNT], y[COUNT] = {0}, wanted[COUNT];
    for (int round = 0; round < 3; round++) {
        const uint32_t before = sp_load_relaxed(&tanh_count);
        fill_input(x, bad);
        CHECK_STATUS(chain_run(&c, x, y), SP_FAILED);
        CHECK_MESSAGE("node 'b' (Tanh)");
        CHECK_MESSAGE("asked to fail");
        CHECK_EQ_U64(sp_load_relaxed(&tanh_count) - before, 1); /* not the second one */
        fill_input(x, 2);
        expect(&c, x, wanted);
        CHECK_OK(chain_run(&c, x, y));
        CHECK_EQ_MEM(y, wanted, sizeof y);
    }
    chain_close(&c);
    segment_end();
}

typedef struct mixed_load {
    const chain *c;
    sp_atomic_u32 failed, right;
} mixed_load;

static void run_good_and_bad(void *arg, uint32_t index)
{
    mixed_load *load = arg;
    float x[COUNT], y[COUNT], wanted[COUNT];
    fill_input(x, (float)index);
    expect(load->c, x, wanted);
    for (uint32_t round = 0; round < test_count(500, 30); round++) {
        const bool is_bad = (index + round) % 3 == 0;
        x[0] = is_bad ? bad : (float)index;
        const sp_status status = chain_run(load->c, x, y);
        if (is_bad) {
            CHECK_STATUS(status, SP_FAILED);
            sp_fetch_add_relaxed(&load->failed, 1);
        } else {
            CHECK_OK(status);
            CHECK_EQ_MEM(y, wanted, sizeof y);
            sp_fetch_add_relaxed(&load->right, 1);
        }
    }
}

static void check_mixed(const char *streams)
{
    const sp_device device = segment_begin_with(&(runtime_setting){.streams = streams});
    chain c = chain_open(device, "RTRT");
    mixed_load load = {.c = &c};
    test_threads(16, run_good_and_bad, &load);
    CHECK(sp_load_relaxed(&load.failed) > 0 && sp_load_relaxed(&load.right) > 0);
    chain_close(&c);
    segment_end();
}

TEST(runs_that_fail_disturb_no_other_on_streams_of_their_own)
{
    check_mixed("32");
}

TEST(runs_that_fail_disturb_no_other_on_shared_streams)
{
    check_mixed("3");
}

/* ---- order ---- */

typedef struct run_job {
    const chain *c;
    sp_stream stream;
    sp_status status;
    float x[COUNT], y[COUNT];
    sp_atomic_u32 is_done;
} run_job;

static void run_on_stream(void *arg)
{
    run_job *job = arg;
    CHECK_OK(sp_stream_set_current(job->stream));
    job->status = chain_run(job->c, job->x, job->y);
    CHECK_OK(sp_stream_set_current((sp_stream){0}));
    sp_store_release(&job->is_done, 1);
}

static void run_beside(void *arg, uint32_t index)
{
    run_job *jobs = arg;
    if (index == 0) run_on_stream(&jobs[0]);
    if (index != 1) return;
    sp_clock_sleep(20 * MILLISECOND);
    CHECK_EQ_U64(sp_load_acquire(&jobs[0].is_done), 0);
    run_on_stream(&jobs[1]); /* ends while the other cannot begin */
    CHECK_EQ_U64(sp_load_acquire(&jobs[0].is_done), 0);
}

typedef struct held_runs {
    run_job jobs[2];
    gate door;
} held_runs;

static void run_or_open(void *arg, uint32_t index)
{
    held_runs *h = arg;
    run_beside(h->jobs, index);
    if (index != 2) return;
    await_at_least(&h->jobs[1].is_done, 1);
    gate_open(&h->door);
}

/* The one on the held stream begins with a step on the cpu. */
TEST(a_run_follows_its_stream_and_one_that_is_stuck_holds_up_no_other)
{
    const sp_device device = segment_begin();
    chain c = chain_open(device, "TR");
    held_runs h = {.door = gate_closed(device)};
    for (int i = 0; i < 2; i++) {
        h.jobs[i].c = &c;
        h.jobs[i].stream = new_stream_on(device);
        fill_input(h.jobs[i].x, (float)i);
    }
    gate_hold(&h.door, h.jobs[0].stream);
    const uint32_t before = sp_load_relaxed(&tanh_count);
    test_threads(3, run_or_open, &h);
    CHECK_EQ_U64(sp_load_relaxed(&tanh_count) - before, 2);
    for (int i = 0; i < 2; i++) {
        float wanted[COUNT];
        expect(&c, h.jobs[i].x, wanted);
        CHECK_OK(h.jobs[i].status);
        CHECK_EQ_MEM(h.jobs[i].y, wanted, sizeof wanted);
        CHECK_OK(sp_stream_release(h.jobs[i].stream));
    }
    gate_destroy(&h.door);
    chain_close(&c);
    segment_end();
}

/* ---- a full queue ---- */

/* Fills the stream's fallback queue behind a wait that the test ends. */
static sp_point fill_fallback_queue(sp_queue *queue, sp_timeline *door)
{
    const sp_point wait = {door, 1};
    sp_submission submission = {.waits = &wait, .wait_count = 1};
    sp_stream_ref ref = {.queue = queue};
    sp_point last = {0};
    while (sp__submit_plain(&ref, &submission, &last) == SP_OK) submission.wait_count = 0;
    return last;
}

TEST(a_full_queue_refuses_the_run_and_leaves_nothing_behind)
{
    const sp_device device = segment_begin();
    chain c = chain_open(device, "RTR");
    float x[COUNT], y[COUNT], wanted[COUNT];
    fill_input(x, 1);
    expect(&c, x, wanted);
    sp_stream_ref stream;
    CHECK_OK(sp__current_stream(c.device, &stream));
    static sp_timeline door;
    sp__timeline_init(&door, NULL);
    const sp_point last =
        fill_fallback_queue(sp__fallback_queue(rt_device(CPU), stream.stream), &door);
    for (int i = 0; i < 3; i++) {
        CHECK_STATUS(chain_run(&c, x, y), SP_BUSY);
        CHECK_MESSAGE("is full");
        /* Its first segment is over: the context is not in use. */
        CHECK(sp__point_has_passed(sp__queue_last_point(stream.queue)));
    }
    sp__timeline_advance(&door, 1);
    CHECK_OK(sp__point_wait(last, SP_NO_DEADLINE));
    CHECK_OK(chain_run(&c, x, y));
    CHECK_EQ_MEM(y, wanted, sizeof y);
    chain_close(&c);
    segment_end();
    sp__timeline_deinit(&door);
}

TEST_MAIN
