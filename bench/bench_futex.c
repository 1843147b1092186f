/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_futex.h"

#include "base/clock.h"
#include "base/wait.h"
#include "bench.h"

static void wake_with(sp_atomic_u32 *word, uint32_t value)
{
    sp_store_release(word, value);
    sp_word_wake(word, 1);
}

static void answer_pings(void *arg)
{
    bench_futex *pair = arg;
    uint32_t last = 0;
    while (!sp_load_acquire(&pair->is_over)) {
        sp_word_wait(&pair->ping, last, SP_NO_DEADLINE);
        last = sp_load_acquire(&pair->ping);
        wake_with(&pair->pong, last);
    }
}

void bench_futex_start(bench_futex *pair)
{
    *pair = (bench_futex){0};
    bench_check(sp_thread_create(&pair->thread, "pong", answer_pings, pair) == SP_OK, "thread");
}

void bench_futex_round(bench_futex *pair)
{
    const uint32_t last = sp_load_relaxed(&pair->ping);
    wake_with(&pair->ping, last + 1);
    while (sp_load_acquire(&pair->pong) == last) {
        sp_word_wait(&pair->pong, last, SP_NO_DEADLINE);
    }
}

void bench_futex_stop(bench_futex *pair)
{
    sp_store_release(&pair->is_over, 1);
    wake_with(&pair->ping, UINT32_MAX);
    sp_thread_join(&pair->thread);
}
