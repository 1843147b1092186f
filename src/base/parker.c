/* SPDX-License-Identifier: Apache-2.0 */
/* Parking on a word. Only the owner sets ASLEEP; any thread sets TOKEN. */
#include "base/clock.h"
#include "base/lock_check.h"
#include "base/macros.h"
#include "base/tsan.h"
#include "base/wait.h"

enum { EMPTY = 0, TOKEN = 1, ASLEEP = 2 };

bool sp_parker_take(sp_parker *parker)
{
    uint32_t seen = TOKEN;
    if (sp_load_relaxed(&parker->word) != TOKEN) return false;
    /* Pairs with the release exchange in unpark. */
    if (!sp_cas_acquire(&parker->word, &seen, EMPTY)) return false;
    sp_tsan_acquire(&parker->word);
    return true;
}

bool sp_parker_park(sp_parker *parker, uint64_t deadline_ns)
{
    sp_lock_check_none("parking");
    for (;;) {
        uint32_t seen = TOKEN;
        /* Pairs with the release exchange in unpark. */
        if (sp_cas_acquire(&parker->word, &seen, EMPTY)) {
            sp_tsan_acquire(&parker->word);
            return true;
        }
        if (deadline_ns != SP_NO_DEADLINE && sp_clock_now() >= deadline_ns) {
            seen = ASLEEP;
            /* Relaxed: no token was taken. */
            if (sp_cas_relaxed(&parker->word, &seen, EMPTY) || seen == EMPTY) return false;
            continue; /* the token was set before the time-out */
        }
        if (seen == EMPTY && !sp_cas_relaxed(&parker->word, &seen, ASLEEP)) continue;
        sp_word_wait(&parker->word, ASLEEP, deadline_ns);
    }
}

void sp_parker_unpark(sp_parker *parker)
{
    sp_tsan_release(&parker->word);
    /* Publishes the caller's writes to the acquire in park. After the exchange the owner may return
     * and its parker may be freed: only the address is used below. */
    if (SP_PLANTED(look_before_token)) {
        const bool sleeps = sp_load_relaxed(&parker->word) == ASLEEP;
        sp_store_release(&parker->word, TOKEN);
        if (sleeps) sp_word_wake(&parker->word, 1);
        return;
    }
    if (sp_exchange_acq_rel(&parker->word, TOKEN) == ASLEEP) sp_word_wake(&parker->word, 1);
}
