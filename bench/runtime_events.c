/* SPDX-License-Identifier: Apache-2.0 */
/* Events. */
#include <streampool/event.h>

#include "bench.h"
#include "runtime_cases.h"

typedef struct event_pair {
    sp_event event;
    sp_stream stream;
} event_pair;

static void record_query(void *ctx, uint64_t count)
{
    const event_pair *pair = ctx;
    bool is_right = true;
    for (uint64_t i = 0; i < count; i++) {
        is_right &= sp_event_record(pair->event, pair->stream) == SP_OK;
        is_right &= sp_event_query(pair->event) == SP_OK;
    }
    bench_check(is_right, "record and query");
}

void bench_events(void)
{
    event_pair pair;
    bench_check(sp_stream_current(bench_cpu, &pair.stream) == SP_OK, "sp_stream_current");
    bench_check(sp_event_create(NULL, &pair.event) == SP_OK, "sp_event_create");
    const bench_figure figure = bench_ns(record_query, &pair);
    bench_print("event_record_query", &figure, NULL, 0, 60);
    sp_event_release(pair.event);
}
