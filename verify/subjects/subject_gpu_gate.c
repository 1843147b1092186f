/* SPDX-License-Identifier: Apache-2.0 */
/* The gate of a GPU: no thread passes it during a call that keeps it closed, and none waits for a
 * second call. */
#include "support.h"

#include <string.h>

#include "device/gpu/gpu_gate.h"
#include "sched/subject.h"

typedef struct world {
    sp_gpu_gate gate;
    sp_atomic_u32 inside, ended, opened; /* calls that keep the gate closed */
} world;

static void call(void *arg)
{
    world *w = arg;
    sp__gpu_gate_close(&w->gate);
    sp_fetch_add_acq_rel(&w->inside, 1);
    sp_fetch_sub_acq_rel(&w->inside, 1);
    sp_fetch_add_acq_rel(&w->ended, 1);
    sp__gpu_gate_open(&w->gate);
    sp_fetch_add_acq_rel(&w->opened, 1);
}

static void pass(void *arg)
{
    world *w = arg;
    const uint32_t ended = sp_load_acquire(&w->ended);
    const bool is_closed = sp_load_acquire(&w->inside) != 0;
    /* Those that have ended have opened the gate too: it is one of the others that lets it pass. */
    const bool is_late = sp_load_acquire(&w->opened) == ended;
    sp__gpu_gate_pass(&w->gate);
    /* A thread that finds the gate open has not seen what the call did: the newest value, not that.
     */
    if (is_closed && is_late) SP_SCHED_ASSERT(sp_fetch_add_acq_rel(&w->ended, 0) != ended);
}

static void subject_gpu_gate(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    world w;
    memset(&w, 0, sizeof w);
    sp__gpu_gate_init(&w.gate);
    sp__subject_run((const sp_thread_fn[]){call, pass, call}, threads, &w);
    SP_SCHED_ASSERT(sp__gpu_gate_waiting(&w.gate) == 0);
    sp__gpu_gate_deinit(&w.gate);
    sp__subject_end();
}

const sp_subject sp__subjects_gpu_gate[] = {
    {.name = "gpu_gate_2",
     .test = subject_gpu_gate,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "opens_quietly",
     .seconds = 0.5},
    {.name = "gpu_gate_3",
     .test = subject_gpu_gate,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "opens_quietly opens_for_others",
     .seconds = 0.5},
    {0},
};
