/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/run_counters.h"

#include "base/assert.h"
#include "base/clock.h"

void sp__run_counters_init(sp_run_counters *counters, sp_lane *lanes)
{
    *counters = (sp_run_counters){.lanes = lanes};
    for (uint32_t i = 0; i < SP_LANES; i++) {
        for (uint32_t c = SP_RUN_STARTED; c <= SP_RUN_WAIT_NS; c++) {
            sp_store_relaxed(&lanes[i].counts[c], 0);
        }
    }
}

static void count(sp_atomic_u64 *counter)
{
    sp_fetch_add_relaxed(counter, (uint64_t)1);
}

static uint64_t sum(const sp_run_counters *counters, uint32_t index)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < SP_LANES; i++) {
        all += sp_load_relaxed(&counters->lanes[i].counts[index]);
    }
    return all;
}

bool sp__run_counters_start(sp_run_counters *counters, uint32_t lane)
{
    sp_lane *own = &counters->lanes[lane];
    return sp_fetch_add_relaxed(&own->counts[SP_RUN_STARTED], (uint64_t)1) % SP_RUN_SAMPLE == 0;
}

void sp__run_counters_time(sp_run_counters *counters, uint64_t begin_ns)
{
    sp_fetch_add_relaxed(&counters->timed_ns, sp_clock_now() - begin_ns);
    count(&counters->timed);
}

void sp__run_counters_end(sp_run_counters *counters, sp_status status)
{
    if (SP_LIKELY(status == SP_OK)) return;
    switch (status) {
    case SP_BUSY:
        count(&counters->refused);
        break;
    case SP_TIMEOUT:
        count(&counters->expired);
        break;
    case SP_CANCELLED:
        count(&counters->cancelled);
        break;
    default:
        count(&counters->failed);
        break;
    }
}

static void raise32(sp_atomic_u32 *most, uint32_t to)
{
    uint32_t now = sp_load_relaxed(most);
    while (now < to && !sp_cas_relaxed(most, &now, to)) {
    }
}

static void raise64(sp_atomic_u64 *most, uint64_t to)
{
    uint64_t now = sp_load_relaxed(most);
    while (now < to && !sp_cas_relaxed(most, &now, to)) {
    }
}

uint32_t sp__run_counters_in_flight(const sp_run_counters *counters)
{
    const int64_t runs = (int64_t)sum(counters, SP_RUN_IN_FLIGHT);
    return runs > 0 ? (uint32_t)runs : 0; /* lanes are read one after the other */
}

void sp__run_counters_enter(sp_run_counters *counters, uint32_t lane, bool looks)
{
    count(&counters->lanes[lane].counts[SP_RUN_IN_FLIGHT]);
    if (looks) raise32(&counters->most_in_flight, sp__run_counters_in_flight(counters));
}

void sp__run_counters_leave(sp_run_counters *counters, uint32_t lane)
{
    sp_fetch_sub_relaxed(&counters->lanes[lane].counts[SP_RUN_IN_FLIGHT], (uint64_t)1);
}

void sp__run_counters_wait(sp_run_counters *counters, const sp_run_request *request)
{
    if (request->queued_ns == 0 || request->granted_ns == 0) return;
    const uint64_t waited = request->granted_ns - request->queued_ns;
    sp_lane *own = &counters->lanes[request->terms.lane];
    count(&own->counts[SP_RUN_WAITED]);
    sp_fetch_add_relaxed(&own->counts[SP_RUN_WAIT_NS], waited);
    raise64(&counters->longest_wait_ns, waited);
}

void sp__run_counters_batch(sp_run_counters *counters, uint32_t rows)
{
    SP_ASSERT(rows <= SP_MODEL_BATCH_ROWS);
    count(&counters->batches);
    sp_fetch_add_relaxed(&counters->batched_runs, (uint64_t)rows);
    count(&counters->batches_of[rows]);
}

uint64_t sp__run_counters_started(const sp_run_counters *counters)
{
    return sum(counters, SP_RUN_STARTED);
}

void sp__run_counters_read(const sp_run_counters *counters, sp_model_statistics *out)
{
    out->refused = sp_load_relaxed(&counters->refused);
    out->expired = sp_load_relaxed(&counters->expired);
    out->cancelled = sp_load_relaxed(&counters->cancelled);
    out->failed = sp_load_relaxed(&counters->failed);
    out->runs = sum(counters, SP_RUN_STARTED) - out->refused;
    out->in_flight = sp__run_counters_in_flight(counters);
    out->most_in_flight = sp_load_relaxed(&counters->most_in_flight);
    out->waited = sum(counters, SP_RUN_WAITED);
    out->wait_ns = sum(counters, SP_RUN_WAIT_NS);
    out->longest_wait_ns = sp_load_relaxed(&counters->longest_wait_ns);
    out->timed = sp_load_relaxed(&counters->timed);
    out->timed_ns = sp_load_relaxed(&counters->timed_ns);
    out->batches = sp_load_relaxed(&counters->batches);
    out->batched_runs = sp_load_relaxed(&counters->batched_runs);
    for (uint32_t rows = 0; rows <= SP_MODEL_BATCH_ROWS; rows++) {
        out->batches_of[rows] = sp_load_relaxed(&counters->batches_of[rows]);
    }
}
