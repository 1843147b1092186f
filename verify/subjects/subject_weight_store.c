/* SPDX-License-Identifier: Apache-2.0 */
/* The store of a model's weights in the file's layout: what a thread reads between hold and drop is
 * the file's. The weight and its copy are made up here; the store and the inverse of the packing
 * are real. */
#include "support.h"

#include <string.h>

#include "exec/weight_store.h"
#include "sched/subject.h"

enum { DEPTH = 2, PANEL = SP_GEMM_PANEL };

typedef struct store_world {
    sp_weight_store store;
    sp_graph graph;
    sp_weight weight;
    uint32_t elements[DEPTH], copy[DEPTH * PANEL];
} store_world;

static const sp_pack_constants matrix = {
    .depth = DEPTH, .columns = 1, .depth_stride = 1, .column_stride = 1};
static const sp_packing packing = {.kernel = SP_KERNEL_ID_gemm_pack_f32,
                                   .constants = &matrix,
                                   .constant_bytes = sizeof matrix,
                                   .bytes = DEPTH * PANEL * sizeof(uint32_t)};

static uint32_t element(uint32_t index)
{
    return 7 + index;
}

static void begin_store(store_world *w, bool is_parked)
{
    memset(w, 0, sizeof *w);
    for (uint32_t i = 0; i < DEPTH; i++) w->elements[i] = w->copy[i * PANEL] = element(i);
    w->weight = (sp_weight){.data = w->elements, .bytes = sizeof w->elements, .is_parkable = true};
    w->graph = (sp_graph){.weights = &w->weight, .weight_count = 1};
    SP_SCHED_ASSERT(sp__weight_store_init(&w->store, &w->graph) == SP_OK);
    if (is_parked) sp__weight_offer(&w->store, &packing, w->copy);
}

static void end_store(store_world *w)
{
    sp__weight_store_deinit(&w->store);
    sp__subject_end();
}

static void read_held(void *arg)
{
    store_world *w = arg;
    sp__weight_hold(&w->store, 0);
    for (uint32_t i = 0; i < DEPTH; i++) {
        SP_SCHED_ASSERT(w->elements[i] == element(i)); /* plain reads */
    }
    sp__weight_drop(&w->store, 0);
}

static void offer(void *arg)
{
    store_world *w = arg;
    sp__weight_offer(&w->store, &packing, w->copy);
}

/* The copy ends, and its memory is used for something else. */
static void withdraw(void *arg)
{
    store_world *w = arg;
    sp__weight_withdraw(&w->store, 0, w->copy);
    memset(w->copy, 0, sizeof w->copy);
}

/* The first reader restores the weight, the others wait for that; the last one parks it. */
static void subject_weight_readers(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    store_world w;
    begin_store(&w, true);
    sp__subject_run((const sp_thread_fn[]){read_held, read_held, read_held}, threads, &w);
    read_held(&w);
    end_store(&w);
}

/* A copy is offered while the weight is read. */
static void subject_weight_offered(void *arg)
{
    (void)arg;
    store_world w;
    begin_store(&w, false);
    sp__subject_run((const sp_thread_fn[]){read_held, offer}, 2, &w);
    read_held(&w);
    end_store(&w);
}

/* The copy of a parked weight ends while the weight is read. */
static void subject_weight_withdrawn(void *arg)
{
    (void)arg;
    store_world w;
    begin_store(&w, true);
    sp__subject_run((const sp_thread_fn[]){read_held, withdraw}, 2, &w);
    read_held(&w);
    end_store(&w);
}

/* ---- the table ---- */

const sp_subject sp__subjects_weight_store[] = {
    {.name = "weight_readers_2",
     .test = subject_weight_readers,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "hold_half_restored quiet_mover"},
    {.name = "weight_readers_3",
     .test = subject_weight_readers,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "quiet_mover",
     .seconds = 0.5},
    {.name = "weight_offered",
     .test = subject_weight_offered,
     .thread_count = 2,
     .planted = "park_held"},
    {.name = "weight_withdrawn",
     .test = subject_weight_withdrawn,
     .thread_count = 2,
     .planted = "withdraw_parked"},
    {0},
};
