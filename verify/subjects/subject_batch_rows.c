/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that callers copy: what a batch reads and writes is the caller's row, each row comes back,
 * and their memory is freed once, while none is in use. */
#include "batches_world.h"

#include <string.h>

#include "runtime/storage.h"
#include "sched/subject.h"

/* ---- in batches ---- */

/* The row is written by another caller as soon as it is returned. */
static void subject_batch_rows(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    sp_batches_world w;
    sp__batches_begin_taken(&w, 1, 2, 0);
    sp__batches_add_rows(&w, 1);
    sp__subject_run(
        (const sp_thread_fn[]){sp__batches_lead_one, sp__batches_run, sp__batches_use_row}, threads,
        &w);
    sp__batches_end(&w, 2);
}

/* The lead waited, too, and has a row. */
static void subject_batch_rows_lead(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    sp_batches_world w;
    sp__batches_begin(&w, 1, 2, 3);
    sp__batches_add_rows(&w, 2);
    sp__subject_run((const sp_thread_fn[]){sp__batches_run, sp__batches_run, sp__batches_run},
                    threads, &w);
    sp__batches_end(&w, threads);
}

static void subject_batch_rows_break(void *arg)
{
    (void)arg;
    sp_batches_world w;
    sp__batches_begin_taken(&w, 1, 2, 0);
    sp__batches_add_rows(&w, 2);
    w.fails = true;
    sp__subject_run((const sp_thread_fn[]){sp__batches_lead_one, sp__batches_run}, 2, &w);
    sp__batches_end(&w, 2);
}

static void subject_batch_rows_late(void *arg)
{
    (void)arg;
    sp_batches_world w;
    sp__batches_begin_taken(&w, 1, 2, 0);
    sp__batches_add_rows(&w, 1);
    sp__subject_run((const sp_thread_fn[]){sp__batches_release_slot, sp__batches_run_late}, 2, &w);
    sp__batches_end(&w, sp_load_relaxed(&w.ended));
}

/* ---- reclaimed ---- */

#define ROWS 2u

typedef struct reclaim_world {
    sp_rt_device *device;
    sp_batch_rows rows;
    sp_atomic_u32 links[ROWS];
    sp_atomic_u32 freed;
} reclaim_world;

static void reclaim_begin(reclaim_world *w)
{
    memset(w, 0, sizeof *w);
    w->device = sp__subject_bare_device();
    sp__allocator_init(&w->device->allocator, w->device, w->device->dev);
    w->rows = (sp_batch_rows){
        .allocator = &w->device->allocator, .row_bytes = 4096, .count = ROWS, .links = w->links};
    SP_SCHED_ASSERT(sp__batch_rows_refill(&w->rows));
}

/* Of rows there are all or none, as of their memory. */
static void reclaim_end(reclaim_world *w)
{
    uint32_t count = 0;
    while (sp__batch_rows_acquire(&w->rows) != NULL) count++;
    SP_SCHED_ASSERT(count == (sp_load_relaxed(&w->freed) == 0 ? ROWS : 0));
    SP_SCHED_ASSERT((w->rows.block != NULL) == (count != 0));
    if (w->rows.block != NULL) sp__allocator_release(&w->device->allocator, w->rows.block);
    SP_SCHED_ASSERT(sp__allocator_check(&w->device->allocator));
    sp__allocator_deinit(&w->device->allocator);
    sp__subject_bare_device_free(w->device);
    sp__storages_deinit();
    sp__subject_end();
}

static void reclaim(void *arg)
{
    reclaim_world *w = arg;
    if (sp__batch_rows_reclaim(&w->rows)) sp_fetch_add_relaxed(&w->freed, 1);
}

static void hold_row(void *arg)
{
    reclaim_world *w = arg;
    void *row = sp__batch_rows_acquire(&w->rows);
    if (row != NULL) sp__batch_rows_release(&w->rows, row);
}

static void subject_batch_rows_reclaim(void *arg)
{
    reclaim_world w;
    (void)arg;
    reclaim_begin(&w);
    sp__subject_run((const sp_thread_fn[]){reclaim, reclaim}, 2, &w);
    SP_SCHED_ASSERT(sp_load_relaxed(&w.freed) == 1);
    reclaim_end(&w);
}

/* A caller may have a row, so perhaps none is freed. */
static void subject_batch_rows_use(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    reclaim_world w;
    reclaim_begin(&w);
    sp__subject_run((const sp_thread_fn[]){hold_row, reclaim, reclaim}, threads, &w);
    SP_SCHED_ASSERT(sp_load_relaxed(&w.freed) <= 1);
    reclaim_end(&w);
}

const sp_subject sp__subjects_batch_rows[] = {
    {.name = "batch_rows_2",
     .test = subject_batch_rows,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "relaxed_grant row_unplaced",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "batch_rows_3",
     .test = subject_batch_rows,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "row_early row_unplaced",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "batch_rows_lead_2",
     .test = subject_batch_rows_lead,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "row_leaked",
     .seconds = 0.5},
    {.name = "batch_rows_lead_3",
     .test = subject_batch_rows_lead,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "row_unplaced row_leaked",
     .seconds = 0.5},
    {.name = "batch_rows_break",
     .test = subject_batch_rows_break,
     .thread_count = 2,
     .planted = "row_leaked",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "batch_rows_late",
     .test = subject_batch_rows_late,
     .thread_count = 2,
     .planted = "row_leaked",
     .options = SP_SLEEPERS,
     .seconds = 0.5},
    {.name = "batch_rows_reclaim",
     .test = subject_batch_rows_reclaim,
     .thread_count = 2,
     .planted = "reclaims_at_once",
     .seconds = 0.5},
    {.name = "batch_rows_use_2",
     .test = subject_batch_rows_use,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "row_reclaimed",
     .seconds = 0.5},
    {.name = "batch_rows_use_3",
     .test = subject_batch_rows_use,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "row_reclaimed",
     .seconds = 0.5},
    {0},
};
