/* SPDX-License-Identifier: Apache-2.0 */
/* Backing off: a spin that turns into sleeps. */
#include "base/backoff.h"

#include "support/test.h"

TEST(a_wait_spins_for_a_while_and_then_sleeps_ever_longer)
{
    sp_backoff backoff = {0};
    for (uint32_t i = 0; i < SP_BACKOFF_SPINS; i++) {
        sp_backoff_turn(&backoff);
        CHECK_EQ_U64(backoff.sleep_ns, 0);
    }
    uint64_t slept = 0;
    const uint64_t start = sp_clock_now();
    for (int i = 0; i < 10; i++) {
        const uint32_t before = backoff.sleep_ns;
        sp_backoff_turn(&backoff);
        CHECK(backoff.sleep_ns > before || backoff.sleep_ns == SP_BACKOFF_LAST_NS);
        slept += backoff.sleep_ns;
    }
    CHECK_EQ_U64(backoff.sleep_ns, SP_BACKOFF_LAST_NS);
    CHECK(sp_clock_now() - start >= slept);
}

TEST_MAIN
