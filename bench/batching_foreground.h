/* SPDX-License-Identifier: Apache-2.0 */
/* The main thread of a program with background work: one thread that runs now and then, with high
 * priority, beside callers that never pause. */
#ifndef SP_BENCH_BATCHING_FOREGROUND_H
#define SP_BENCH_BATCHING_FOREGROUND_H

#include "batching_callers.h"

/* WINDOW_FOREGROUND: figures[0] are those of `count` callers in a closed loop, figures[1] those of
 * the runs of the main thread, during the warm-up too. */
sp_status window_foreground(const window *asked, const target *background, const subject *model,
                            window_result *out);

#endif
