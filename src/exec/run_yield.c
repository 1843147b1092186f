/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/run_yield.h"

#include "base/clock.h"
#include "base/macros.h"
#include "base/thread.h"

/* A slice of the system is longer; so may be a batch that another thread computes meanwhile. */
#define LONG_NS 1000000u
/* How many yields are measured after a long one. The clock of the process is a system call. */
#define MEASURED 64u
/* A pause is so many times what was lost: the share of its time that a thread may lose. */
#define PAUSE 16u
/* Of what was lost that counts: no slice is longer. The whole process may have been stopped for any
 * time, and nobody has its processors when it goes on. */
#define MOST_NS 100000000u

void sp__run_yields_init(sp_run_yields *yields, uint32_t width)
{
    const uint32_t cores = sp_thread_core_count();
    *yields = (sp_run_yields){.processors = width < cores ? width : cores};
}

void sp__run_yield_judge(sp_run_yields *yields, uint64_t before, uint64_t now, uint64_t used_ns)
{
    const uint64_t took_ns = now - before;
    if (took_ns < LONG_NS) return;
    sp_store_relaxed(&yields->measured, MEASURED);
    const bool is_ours = used_ns * 2 >= took_ns * yields->processors;
    if (is_ours || SP_PLANTED(yields_for_ever)) return;
    const uint64_t lost_ns = took_ns < MOST_NS ? took_ns : MOST_NS;
    sp_store_relaxed(&yields->paused_until, now + lost_ns * PAUSE);
}

static void yield_measured(sp_run_yields *yields, uint64_t before)
{
    const uint64_t used = sp_clock_process();
    sp_thread_yield();
    const uint64_t now = sp_clock_now();
    if (now - before >= LONG_NS) {
        sp__run_yield_judge(yields, before, now, sp_clock_process() - used);
    }
}

bool sp__run_yield(sp_run_yields *yields)
{
    const uint64_t before = sp_clock_now();
    if (before < sp_load_relaxed(&yields->paused_until)) return false;
    const uint32_t measured = sp_load_relaxed(&yields->measured);
    if (measured != 0) {
        sp_store_relaxed(&yields->measured, measured - 1);
        yield_measured(yields, before);
        return true;
    }
    sp_thread_yield();
    if (sp_clock_now() - before >= LONG_NS) sp_store_relaxed(&yields->measured, MEASURED);
    return true;
}
