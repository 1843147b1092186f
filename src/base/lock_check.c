/* SPDX-License-Identifier: Apache-2.0 */
/* The thread's slot points to the newest lock that it holds; each lock points to the one before.
 * The list is accessed by its thread only, since only the holder of a mutex accesses the link in
 * it. */
#include "base/lock_check.h"

#if SP_LOCK_CHECKS

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/assert.h"
#include "base/macros.h"
#include "base/thread.h"

typedef struct rank_info {
    const char *lock;
    bool is_leaf;
} rank_info;

#define IS_LEAF_NESTS false
#define IS_LEAF_LEAF true

static const rank_info infos[] = {
    [SP_LOCK_UNKNOWN] = {"a mutex that was never initialised", false},
#define ROW(kind, name, lock, ...) [SP_LOCK_##name] = {lock, IS_LEAF_##kind},
    SP_LOCK_LIST(ROW)
#undef ROW
        [SP_LOCK_FOREIGN] = {"a foreign lock", false},
};
_Static_assert(SP_COUNT_OF(infos) == SP_LOCK_RANK_COUNT, "each rank has a row");

#define LOCK_TEXT_BYTES 128

/* "sp_rt_storage.lock (rank 3, place 7)", or "tickets.lock (leaf)" */
static const char *lock_text(const sp_lock_state *state, char *text)
{
    const unsigned rank = (unsigned)state->rank;
    if (infos[rank].is_leaf) {
        snprintf(text, LOCK_TEXT_BYTES, "%s (leaf)", infos[rank].lock);
    } else if (state->place != 0) {
        snprintf(text, LOCK_TEXT_BYTES, "%s (rank %u, place %llu)", infos[rank].lock, rank,
                 (unsigned long long)state->place);
    } else {
        snprintf(text, LOCK_TEXT_BYTES, "%s (rank %u)", infos[rank].lock, rank);
    }
    return text;
}

static _Noreturn void fail_order(const sp_lock_state *wanted, const sp_lock_state *held)
{
    char message[3 * LOCK_TEXT_BYTES];
    char of_wanted[LOCK_TEXT_BYTES];
    char of_held[LOCK_TEXT_BYTES];
    snprintf(message, sizeof message, "lock order: %s is taken inside %s",
             lock_text(wanted, of_wanted), lock_text(held, of_held));
    sp__assert_failed(__FILE__, __LINE__, message);
}

static bool may_take_inside(const sp_lock_state *wanted, const sp_lock_state *held)
{
    if (infos[held->rank].is_leaf) return false;
    if (wanted->rank != held->rank) return wanted->rank > held->rank;
    return wanted->place > held->place;
}

void sp__lock_check_init(sp_lock_state *lock, sp_lock_rank rank)
{
    *lock = (sp_lock_state){.rank = rank};
}

void sp__lock_check_order(const sp_lock_state *wanted)
{
    SP_ASSERT(wanted->rank > SP_LOCK_UNKNOWN && wanted->rank < SP_LOCK_RANK_COUNT);
    if (wanted->rank == SP_LOCK_FOREIGN) return;
    for (const sp_lock_state *held = sp_tls_get(SP_TLS_LOCKS); held != NULL; held = held->outer) {
        if (!may_take_inside(wanted, held)) fail_order(wanted, held);
    }
}

void sp__lock_check_taken(sp_lock_state *lock)
{
    if (lock->rank == SP_LOCK_FOREIGN) return;
    lock->outer = sp_tls_get(SP_TLS_LOCKS);
    (void)sp_tls_set(SP_TLS_LOCKS, lock, NULL);
}

void sp__lock_check_released(sp_lock_state *lock)
{
    if (lock->rank == SP_LOCK_FOREIGN) return;
    sp_lock_state *held = sp_tls_get(SP_TLS_LOCKS);
    if (held == lock) {
        (void)sp_tls_set(SP_TLS_LOCKS, held->outer, NULL);
        return;
    }
    /* Locks need not be released in stack order. */
    while (held != NULL && held->outer != lock) held = held->outer;
    SP_ASSERT(held != NULL); /* the thread holds what it unlocks */
    held->outer = lock->outer;
}

void sp_lock_check_none(const char *what)
{
    const sp_lock_state *held = sp_tls_get(SP_TLS_LOCKS);
    if (SP_LIKELY(held == NULL)) return;
    char message[3 * LOCK_TEXT_BYTES];
    char of_held[LOCK_TEXT_BYTES];
    snprintf(message, sizeof message, "lock order: %s inside %s", what, lock_text(held, of_held));
    sp__assert_failed(__FILE__, __LINE__, message);
}

#endif
