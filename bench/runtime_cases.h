/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of bench_runtime, one file per topic. Each prints its own lines. */
#ifndef SP_BENCH_RUNTIME_CASES_H
#define SP_BENCH_RUNTIME_CASES_H

#include <streampool/stream.h>

#include "runtime/submit.h"

static const sp_device bench_cpu = {0};

/* The calling thread's current stream. */
sp_stream_ref bench_current_ref(void);

/* `mutex_ns`: one lock and unlock, measured in the same run. */
void bench_streams(double mutex_ns);
void bench_memory(void);
void bench_events(void);
void bench_hazards(double mutex_ns);
void bench_hand_over(void);
void bench_model(void);

#endif
