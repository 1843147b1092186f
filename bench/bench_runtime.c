/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of the runtime's own steps, each beside the bare primitive it is made of. */
#include <streampool/model.h>
#include <streampool/runtime.h>
#include <streampool/storage.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "base/wait.h"
#include "bench.h"
#include "device/thread_record.h"
#include "device/wait.h"
#include "model/plan.h"
#include "runtime/current_stream.h"
#include "runtime/submit.h"

static const sp_device cpu = {0};

static sp_stream_ref current_ref(void)
{
    sp_stream stream;
    sp_stream_ref ref;
    bench_check(sp_stream_current(cpu, &stream) == SP_OK, "sp_stream_current");
    bench_check(sp__stream_find(stream, &ref) == SP_OK, "sp__stream_find");
    return ref;
}

/* ---- bare primitives ---- */

static void lock_unlock(void *ctx, uint64_t count)
{
    sp_mutex *mutex = ctx;
    for (uint64_t i = 0; i < count; i++) {
        sp_mutex_lock(mutex);
        sp_mutex_unlock(mutex);
    }
}

static double mutex_pair_ns(void)
{
    sp_mutex mutex;
    sp_mutex_init(&mutex, SP_LOCK_FOREIGN);
    const double ns = bench_ns(lock_unlock, &mutex, 20);
    sp_mutex_deinit(&mutex);
    return ns;
}

/* ---- current stream, through the shared library ---- */

typedef sp_status (*current_fn)(sp_device device, sp_stream *out);

static void ask_current(void *ctx, uint64_t count)
{
    const current_fn ask = *(current_fn *)ctx;
    sp_stream stream;
    for (uint64_t i = 0; i < count; i++) ask(cpu, &stream);
}

static void bench_current_stream(void)
{
    void *library = dlopen(SP_BENCH_LIBRARY, RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr, "current_stream: %s\n", dlerror());
        return;
    }
    current_fn ask;
    *(void **)&ask = dlsym(library, "sp_stream_current");
    bench_check(ask != NULL, "dlsym");
    bench_print("current_stream_shared_library", bench_ns(ask_current, &ask, 20), NULL, 0, 4);
}

/* ---- submit and wait ---- */

static void submit_and_wait(void *ctx, uint64_t count)
{
    const sp_stream_ref *ref = ctx;
    const sp_submission nothing = {0};
    sp_point point = {0};
    for (uint64_t i = 0; i < count; i++) {
        sp__submit_plain(ref, &nothing, &point);
        sp__point_wait(point, SP_NO_DEADLINE);
    }
}

/* ---- memory ---- */

#define ALLOCATION ((uint64_t)64 << 10)

static void create_release(void *ctx, uint64_t count)
{
    (void)ctx;
    sp_storage storage;
    for (uint64_t i = 0; i < count; i++) {
        sp_storage_create(cpu, ALLOCATION, NULL, &storage);
        sp_storage_release(storage);
    }
}

typedef struct peer_allocator {
    void *(*allocate)(size_t bytes);
    void (*release)(void *ptr);
} peer_allocator;

static void peer_create_release(void *ctx, uint64_t count)
{
    const peer_allocator *peer = ctx;
    for (uint64_t i = 0; i < count; i++) {
        void *volatile ptr = peer->allocate(ALLOCATION);
        peer->release(ptr);
    }
}

static void bench_allocation(void)
{
    const double ours = bench_ns(create_release, NULL, 20);
    void *library = dlopen("libmimalloc.so.2", RTLD_NOW);
    peer_allocator peer = {malloc, free};
    const char *name = "malloc + free";
    if (library != NULL) {
        *(void **)&peer.allocate = dlsym(library, "mi_malloc");
        *(void **)&peer.release = dlsym(library, "mi_free");
        name = "mimalloc malloc + free";
    }
    const double theirs = bench_ns(peer_create_release, &peer, 20);
    bench_print("allocate_free_64k", ours, name, theirs, 3 * theirs);
}

typedef struct allocation_load {
    sp_atomic_u32 is_running;
    sp_atomic_u64 total;
} allocation_load;

static void allocate_until_stopped(void *arg)
{
    allocation_load *load = arg;
    uint64_t count = 0;
    while (sp_load_relaxed(&load->is_running)) {
        create_release(NULL, 64);
        count += 64;
    }
    sp_fetch_add_relaxed(&load->total, count);
}

/* Allocations a second of so many threads together. */
static double allocations_per_second(uint32_t threads)
{
    allocation_load load = {.is_running = {1}};
    sp_thread handles[64];
    const uint64_t start = sp_clock_now();
    for (uint32_t i = 0; i < threads; i++) {
        bench_check(sp_thread_create(&handles[i], "bench", allocate_until_stopped, &load) == SP_OK,
                    "thread");
    }
    sp_clock_sleep(400000000);
    sp_store_relaxed(&load.is_running, 0);
    for (uint32_t i = 0; i < threads; i++) sp_thread_join(&handles[i]);
    return (double)sp_load_relaxed(&load.total) * 1e9 / (double)(sp_clock_now() - start);
}

static double sample_one(void *ctx)
{
    (void)ctx;
    return 1e9 / allocations_per_second(1);
}

static double sample_many(void *ctx)
{
    (void)ctx;
    return 1e9 / allocations_per_second(31);
}

static void bench_allocation_threads(void)
{
    const uint32_t cores = sp_thread_core_count();
    const double one = bench_median(sample_one, NULL, 5) / (cores < 31 ? cores : 31);
    const double many = bench_median(sample_many, NULL, 5);
    bench_print("allocate_free_64k_31_threads", many, "one thread / cores", one, one * 1.1);
}

/* ---- events ---- */

typedef struct event_pair {
    sp_event event;
    sp_stream stream;
} event_pair;

static void record_query(void *ctx, uint64_t count)
{
    const event_pair *pair = ctx;
    for (uint64_t i = 0; i < count; i++) {
        sp_event_record(pair->event, pair->stream);
        sp_event_query(pair->event);
    }
}

static void bench_event(void)
{
    event_pair pair;
    bench_check(sp_stream_current(cpu, &pair.stream) == SP_OK, "sp_stream_current");
    bench_check(sp_event_create(NULL, &pair.event) == SP_OK, "sp_event_create");
    bench_print("event_record_query", bench_ns(record_query, &pair, 20), NULL, 0, 60);
    sp_event_release(pair.event);
}

/* ---- tracking ---- */

typedef struct tracked_use {
    sp_stream_ref ref;
    sp_storage storage;
    uint32_t uses;
} tracked_use;

/* An empty fill: the hazard step and the submission, no bytes. */
static void submit_use(void *ctx, uint64_t count)
{
    const tracked_use *use = ctx;
    const sp_use uses[1] = {{.storage = use->storage, .access = SP_WRITE}};
    const uint32_t pattern = 0;
    sp_command command = {
        .type = SP_COMMAND_FILL, .constants = &pattern, .constant_bytes = sizeof pattern};
    sp_point point = {0};
    for (uint64_t i = 0; i < count; i++) {
        sp__submit_command(&use->ref, &command, uses, 1, NULL, &point);
        if (i % 16 == 15) sp__point_wait(point, SP_NO_DEADLINE);
    }
    sp__point_wait(point, SP_NO_DEADLINE);
}

/* The same command with no storage behind it. */
static void submit_no_use(void *ctx, uint64_t count)
{
    const tracked_use *use = ctx;
    uint32_t word = 0;
    const sp_memory memory = {.host = &word, .bytes = sizeof word};
    const sp_binding binding = {.memory = &memory, .access = SP_WRITE};
    const uint32_t pattern = 0;
    sp_command command = {.type = SP_COMMAND_FILL,
                          .bindings = &binding,
                          .binding_count = 1,
                          .constants = &pattern,
                          .constant_bytes = sizeof pattern};
    const sp_submission submission = {.commands = &command, .command_count = 1};
    sp_point point = {0};
    for (uint64_t i = 0; i < count; i++) {
        sp__submit_plain(&use->ref, &submission, &point);
        if (i % 16 == 15) sp__point_wait(point, SP_NO_DEADLINE);
    }
    sp__point_wait(point, SP_NO_DEADLINE);
}

static void bench_tracking(double pair_ns)
{
    tracked_use use = {.ref = current_ref()};
    bench_check(sp_storage_create(cpu, 64, NULL, &use.storage) == SP_OK, "sp_storage_create");
    const bench_pair use_ns = bench_pair_ns(submit_use, submit_no_use, &use, 20);
    bench_print("tracked_use_on_own_stream", use_ns.extra, "mutex lock + unlock", pair_ns,
                2 * pair_ns);
    sp_storage_release(use.storage);
}

/* ---- hand-over ---- */

#define HAND_OVERS 301
#define FALLS_ASLEEP_NS 3000000 /* three naps of a worker */

/* Two threads that wake each other: what a hand-over to a sleeper costs at the very least. */
typedef struct futex_game {
    sp_atomic_u32 ping;
    sp_atomic_u32 pong;
    sp_atomic_u32 is_over;
} futex_game;

static void wake_with(sp_atomic_u32 *word, uint32_t value)
{
    sp_store_release(word, value);
    sp_word_wake(word, 1);
}

static void answer_pings(void *arg)
{
    futex_game *game = arg;
    uint32_t last = 0;
    while (!sp_load_acquire(&game->is_over)) {
        sp_word_wait(&game->ping, last, SP_NO_DEADLINE);
        last = sp_load_acquire(&game->ping);
        wake_with(&game->pong, last);
    }
}

/* Wakes a sleeping thread and sleeps until it is woken by it. */
static double sample_futex(void *ctx)
{
    futex_game *game = ctx;
    sp_clock_sleep(FALLS_ASLEEP_NS);
    const uint32_t last = sp_load_relaxed(&game->ping);
    const uint64_t start = sp_clock_now();
    wake_with(&game->ping, last + 1);
    while (sp_load_acquire(&game->pong) == last) sp_word_wait(&game->pong, last, SP_NO_DEADLINE);
    return (double)(sp_clock_now() - start);
}

static double futex_ping_pong_ns(void)
{
    futex_game game = {0};
    sp_thread thread;
    bench_check(sp_thread_create(&thread, "pong", answer_pings, &game) == SP_OK, "thread");
    const double ns = bench_median(sample_futex, &game, HAND_OVERS);
    sp_store_release(&game.is_over, 1);
    wake_with(&game.ping, UINT32_MAX);
    sp_thread_join(&thread);
    return ns;
}

/* A submitter that sleeps until a worker has done its command, and does not help. */
typedef struct sleeping_submitter {
    sp_stream_ref ref;
    sp_waiter waiter;
    sp_parker parker;
} sleeping_submitter;

static void wake_submitter(sp_waiter *waiter)
{
    sp_parker_unpark(&SP_CONTAINER_OF(waiter, sleeping_submitter, waiter)->parker);
}

/* Submits an empty command and makes sure that a worker comes for it. */
static sp_point submit_for_worker(const sp_stream_ref *ref)
{
    const sp_submission nothing = {0};
    sp_point point = {0};
    sp__submit_plain(ref, &nothing, &point);
    ref->queue->device->vtable->flush(ref->queue);
    return point;
}

static double sample_sleeping_worker(void *ctx)
{
    sleeping_submitter *submitter = ctx;
    sp_clock_sleep(FALLS_ASLEEP_NS);
    const uint64_t start = sp_clock_now();
    const sp_point point = submit_for_worker(&submitter->ref);
    submitter->waiter = (sp_waiter){.value = point.value, .fire = wake_submitter};
    if (sp__timeline_register(point.timeline, &submitter->waiter)) {
        sp_parker_park(&submitter->parker, SP_NO_DEADLINE);
    }
    return (double)(sp_clock_now() - start);
}

/* One command after the other, each when the one before has passed: the worker that did that one is
 * still looking around. */
static void hand_over_awake(void *ctx, uint64_t count)
{
    const sp_stream_ref *ref = ctx;
    for (uint64_t i = 0; i < count; i++) {
        const sp_point point = submit_for_worker(ref);
        while (!sp__point_has_passed(point)) sp_spin_hint();
    }
}

static void bench_hand_over(void)
{
    sleeping_submitter submitter = {.ref = current_ref()};
    bench_print("hand_over_to_awake_worker", bench_ns(hand_over_awake, &submitter.ref, 20), NULL, 0,
                5000);
    const double bare = futex_ping_pong_ns();
    bench_print("hand_over_to_sleeping_worker",
                bench_median(sample_sleeping_worker, &submitter, HAND_OVERS), "futex ping-pong",
                bare, 1.5 * bare);
}

/* ---- a model ---- */

#define ACTION_INPUTS 48
#define ACTION_OUTPUTS 12

typedef struct model_run {
    sp_model model;
    const sp_plan *plan;
    void *arena;
    float input[ACTION_INPUTS];
    float output[ACTION_OUTPUTS];
} model_run;

static void run_model(void *ctx, uint64_t count)
{
    model_run *run = ctx;
    const sp_host_tensor in = {.data = run->input,
                               .bytes = sizeof run->input,
                               .dtype = SP_F32,
                               .rank = 2,
                               .shape = {1, ACTION_INPUTS}};
    for (uint64_t i = 0; i < count; i++) {
        sp_host_tensor out = {.data = run->output, .bytes = sizeof run->output};
        bench_check(sp_model_run(run->model, &in, 1, &out, 1) == SP_OK, "sp_model_run");
    }
}

/* The kernels of the plan, called one after the other. */
static void run_kernels(void *ctx, uint64_t count)
{
    model_run *run = ctx;
    const void *inputs[1] = {run->input};
    void *outputs[1] = {run->output};
    for (uint64_t i = 0; i < count; i++) {
        sp__plan_run_reference(run->plan, inputs, outputs, run->arena);
    }
}

static void bench_model(void)
{
    const char *path = SP_BENCH_DATA "/models/policy_go1/model.onnx";
    void *bytes;
    size_t len;
    if (sp_file_read(path, &bytes, &len) != SP_OK) {
        fprintf(stderr, "model_run_policy_go1: skipped, there is no %s\n", path);
        return;
    }
    model_run run = {.input = {0.5f}};
    const sp_graph *graph;
    bench_check(sp_model_load_from_memory(bytes, len, NULL, &run.model) == SP_OK, "load");
    bench_check(sp__graph_load(bytes, len, &graph) == SP_OK, "sp__graph_load");
    const sp_plan_input input = {.dtype = SP_F32, .shape = {2, {1, ACTION_INPUTS}}};
    const sp_plan_request request = {.inputs = &input, .input_count = 1};
    bench_check(sp__plan_compile(graph, &request, &run.plan) == SP_OK, "sp__plan_compile");
    run.arena = sp_aligned_malloc(64, run.plan->arena_bytes);
    const bench_pair ns = bench_pair_ns(run_model, run_kernels, &run, 20);
    bench_print("model_run_policy_go1", ns.peer + ns.extra, "its kernels", ns.peer, ns.peer + 1000);
    sp_free(run.arena);
    sp__plan_free(run.plan);
    sp__graph_free(graph);
    sp_free(bytes);
    sp_model_release(run.model);
}

int main(void)
{
    bench_header("bench_runtime");
    bench_check(sp_init() == SP_OK, "sp_init");
    const double pair = mutex_pair_ns();
    bench_print("mutex_lock_unlock", pair, NULL, 0, 0);
    bench_current_stream();
    sp_stream_ref ref = current_ref();
    bench_print("submit_wait_empty", bench_ns(submit_and_wait, &ref, 20), "mutex lock + unlock",
                pair, 100);
    bench_allocation();
    bench_allocation_threads();
    bench_event();
    bench_tracking(pair);
    bench_hand_over();
    bench_model();
    return 0;
}
