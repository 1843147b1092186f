/* SPDX-License-Identifier: Apache-2.0 */
#include "batch/wake_cost.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"
#include "base/wait.h"

#define SERIES 9
#define ROUNDS 16 /* of each series */
/* Where there is no thread to measure with. */
#define ASSUMED_NS 5000

typedef struct wake_pair {
    sp_parker there, back;
} wake_pair;

static void wake_back(void *arg)
{
    wake_pair *pair = arg;
    for (int i = 0; i < SERIES * ROUNDS; i++) {
        sp_parker_park(&pair->there, SP_NO_DEADLINE);
        sp_parker_unpark(&pair->back);
    }
}

static uint64_t series_measure(wake_pair *pair)
{
    const uint64_t before = sp_clock_thread();
    for (int i = 0; i < ROUNDS; i++) {
        sp_parker_unpark(&pair->there);
        sp_parker_park(&pair->back, SP_NO_DEADLINE);
    }
    return (sp_clock_thread() - before) / ROUNDS;
}

static int time_compare(const void *a, const void *b)
{
    const uint64_t first = *(const uint64_t *)a;
    const uint64_t second = *(const uint64_t *)b;
    return (first > second) - (first < second);
}

/* The median of some series, since a wake-up of an idle processor costs several times that of a
 * busy one. */
uint64_t sp__wake_cost_measure(void)
{
    wake_pair pair = {0};
    sp_thread thread;
    uint64_t series[SERIES];
    if (sp_thread_create(&thread, "sp-wake", wake_back, &pair) != SP_OK) return ASSUMED_NS;
    for (int i = 0; i < SERIES; i++) series[i] = series_measure(&pair);
    sp_thread_join(&thread);
    qsort(series, SERIES, sizeof series[0], time_compare);
    return series[SERIES / 2];
}
