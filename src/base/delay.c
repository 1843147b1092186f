/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded delays. The sequence of sleeps depends on the seed and on the number of marks passed, so a
 * seed gives the same delays each time, but not the same interleaving. */
#include "base/delay.h"

#if defined(SP_DELAYS)

#include "base/atomic.h"
#include "base/clock.h"
#include "base/thread.h"

/* Configuration and the count of marks passed: relaxed, they publish nothing. */
static sp_atomic_u64 delay_seed;
static sp_atomic_u32 delay_per_mille;
static sp_atomic_u64 delay_max_ns;
static sp_atomic_u64 delay_marks;

void sp_delay_configure(uint64_t seed, uint32_t per_mille, uint64_t max_ns)
{
    sp_store_relaxed(&delay_seed, seed);
    sp_store_relaxed(&delay_max_ns, max_ns);
    sp_store_relaxed(&delay_per_mille, per_mille);
}

/* splitmix64 (S. Vigna): one 64-bit mix of a counter. */
static uint64_t splitmix64(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

void sp_delay_point(void)
{
    const uint32_t per_mille = sp_load_relaxed(&delay_per_mille);
    if (per_mille == 0) return;
    const uint64_t mark = sp_fetch_add_relaxed(&delay_marks, 1);
    const uint64_t random = splitmix64(sp_load_relaxed(&delay_seed) ^ mark);
    if (random % 1000 >= per_mille) return;
    const uint64_t max_ns = sp_load_relaxed(&delay_max_ns);
    const uint64_t duration = max_ns > 0 ? (random >> 10) % max_ns : 0;
    if (duration < 1000) {
        sp_thread_yield();
    } else {
        sp_clock_sleep(duration);
    }
}

#endif
