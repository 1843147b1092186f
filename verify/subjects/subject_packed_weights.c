/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a model's packed weights. The weight, the plan and the kernel are made up here; the
 * table is real. */
#include "support.h"

#include <string.h>

#include "base/heap.h"
#include "exec/packed_weights.h"
#include "sched/subject.h"

enum { THREADS = 3 };

typedef struct packed_world {
    sp_packed_weights table;
    sp_rt_device *device;
    sp_memory found[THREADS];
    sp_status status[THREADS];
    sp_atomic_u32 next;
} packed_world;

static const uint32_t data = 7;
static const sp_weight weight = {.data = (void *)(uintptr_t)&data, .bytes = sizeof data};
static const sp_graph graph = {.weights = &weight, .weight_count = 1};
static sp_atomic_u32 copies_made;

static sp_status pack(const sp_tile *tile)
{
    sp_fetch_add_relaxed(&copies_made, 1);
    *(uint32_t *)tile->bindings[1] = *(const uint32_t *)tile->bindings[0] + 1;
    return SP_OK;
}

static void one_tile(const void *constants, sp_tiling *out)
{
    (void)constants;
    *out = (sp_tiling){.grid = {1, 1, 1}};
}

static const sp_kernel kernels[1] = {{.name = "pack", .run = pack, .tiling = one_tile}};
static const sp_packing packing = {.bytes = sizeof data};
static const sp_graph_plan plan = {
    .graph = &graph, .kernels = kernels, .packings = &packing, .packing_count = 1};

static void begin_packed(packed_world *w)
{
    memset(w, 0, sizeof *w);
    sp_store_relaxed(&copies_made, 0);
    w->device = sp__subject_bare_device();
    SP_SCHED_ASSERT(sp__packed_weights_init(&w->table, &graph) == SP_OK);
}

static void end_packed(packed_world *w)
{
    sp__packed_weights_deinit(&w->table);
    sp__subject_bare_device_free(w->device);
    sp__subject_end();
}

static void get(packed_world *w, bool may_wait)
{
    static const bool is_needed = true;
    const uint32_t index = sp_fetch_add_relaxed(&w->next, 1);
    const sp_packed_request request = {
        .plan = &plan, .device = w->device, .is_needed = &is_needed, .may_wait = may_wait};
    w->status[index] = sp__packed_weights_get(&w->table, &request, &w->found[index]);
    if (w->status[index] != SP_OK) return;
    SP_SCHED_ASSERT(*(const uint32_t *)w->found[index].host == data + 1); /* a plain read */
}

static void get_packed(void *arg)
{
    get(arg, true);
}

static void get_packed_at_once(void *arg)
{
    get(arg, false);
}

static void check_shared(const packed_world *w, uint32_t threads)
{
    for (uint32_t i = 0; i < threads; i++) {
        SP_SCHED_ASSERT(w->status[i] == SP_OK);
        SP_SCHED_ASSERT(w->found[i].host == w->found[0].host);
    }
}

/* One thread makes the copy, the others wait for it. */
static void subject_packed_weights(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    packed_world w;
    begin_packed(&w);
    sp__subject_run((const sp_thread_fn[]){get_packed, get_packed, get_packed}, threads, &w);
    check_shared(&w, threads);
    SP_SCHED_ASSERT(sp_load_relaxed(&copies_made) == 1);
    end_packed(&w);
}

/* The first packer finds no memory: its caller gets the error, a waiting one makes the copy. */
static void subject_packed_weights_retry(void *arg)
{
    (void)arg;
    packed_world w;
    begin_packed(&w);
    sp_heap_fail_after(0);
    sp__subject_run((const sp_thread_fn[]){get_packed, get_packed}, 2, &w);
    sp_heap_fail_after(UINT64_MAX);
    SP_SCHED_ASSERT((w.status[0] == SP_OK) != (w.status[1] == SP_OK));
    SP_SCHED_ASSERT(sp_load_relaxed(&copies_made) == 1);
    end_packed(&w);
}

/* A caller that must not wait may make a second copy, which is freed: all use one. */
static void subject_packed_weights_at_once(void *arg)
{
    (void)arg;
    packed_world w;
    begin_packed(&w);
    sp__subject_run((const sp_thread_fn[]){get_packed, get_packed_at_once}, 2, &w);
    check_shared(&w, 2);
    SP_SCHED_ASSERT(sp_load_relaxed(&copies_made) <= 2);
    end_packed(&w);
}

/* ---- the table ---- */

const sp_subject sp__subjects_packed_weights[] = {
    {.name = "packed_weights_2",
     .test = subject_packed_weights,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "pack_twice"},
    {.name = "packed_weights_3",
     .test = subject_packed_weights,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "pack_twice",
     .seconds = 0.5},
    {.name = "packed_weights_retry",
     .test = subject_packed_weights_retry,
     .thread_count = 2,
     .planted = "quiet_packer"},
    {.name = "packed_weights_at_once",
     .test = subject_packed_weights_at_once,
     .thread_count = 2,
     .planted = "keep_second_copy"},
    {0},
};
