/* SPDX-License-Identifier: Apache-2.0 */
/* Waits on one 32-bit word (a futex). The waker changes the word first, then wakes; the waiter
 * passes the value it read, and sleeps only while the word still has it, so no wake-up is lost. */
#ifndef SP_BASE_WAIT_H
#define SP_BASE_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

#define SP_WAKE_ALL UINT32_MAX

/* Sleeps while *word == seen. Returns false once `deadline_ns` has passed; true otherwise, also
 * spuriously: check the word again. */
bool sp_word_wait(sp_atomic_u32 *word, uint32_t seen, uint64_t deadline_ns);

/* The same for the implementation of locks: other locks may be held. */
bool sp__word_sleep(sp_atomic_u32 *word, uint32_t seen, uint64_t deadline_ns);

/* Wakes up to `count` threads that sleep on `word`, which is only used as an address: its memory
 * may be freed already. */
void sp_word_wake(sp_atomic_u32 *word, uint32_t count);

/* Parker of one thread: its owner parks, any thread unparks; an unpark before the park is kept as a
 * token. Zeroed memory has no token. */
typedef struct sp_parker {
    /* 0 empty, 1 token, 2 owner asleep. Written by owner and unparkers; the release in unpark
     * publishes what the unparker wrote, the acquire in park sees it. */
    sp_atomic_u32 word;
} sp_parker;

/* Sleeps until there is a token and takes it; false if `deadline_ns` passed first. */
bool sp_parker_park(sp_parker *parker, uint64_t deadline_ns);
/* Takes the token if there is one; false if there is none. For a thread that spins. */
bool sp_parker_take(sp_parker *parker);
void sp_parker_unpark(sp_parker *parker);

#endif
