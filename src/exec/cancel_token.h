/* SPDX-License-Identifier: Apache-2.0 */
/* Cancel tokens: a flag, and a list of those that a cancel has to tell at once: submitted runs and
 * threads that wait. A run in execution is not in the list: it polls the flag.
 *
 *     a listener is in the list of one token, or in none
 *     a cancel sets the flag, then pops listeners one at a time; an add after that is refused
 *
 * So each listener that was added is popped by one canceller, or removed by its owner; never both.
 * The token's lock is held for no call: a popped thread is unparked, and a popped run is cancelled,
 * after it was released. */
#ifndef SP_EXEC_CANCEL_TOKEN_H
#define SP_EXEC_CANCEL_TOKEN_H

#include <stdbool.h>

#include <streampool/cancel.h>

#include "base/handle.h"
#include "base/macros.h"
#include "base/mutex.h"
#include "base/wait.h"

typedef struct sp_cancel_listener sp_cancel_listener;

struct sp_cancel_listener {
    /* Guarded by the lock of the token. `link` is NULL while the listener is in no list. */
    sp_cancel_listener *next, **link;
    /* Of a waiting thread, on whose stack the listener is: unparked, without further access to the
     * listener. Type-stable. Else NULL, and */
    sp_parker *parker;
    /* is called, with no lock held. The adder keeps the listener alive until then. */
    void (*cancel)(sp_cancel_listener *listener);
};

typedef struct sp_rt_cancel_token {
    SP_CACHE_ALIGNED sp_object object;
    /* 1 once cancelled, for the rest of the life. Written (release) before the list is emptied;
     * it publishes nothing, and the lock orders it for adds. */
    sp_atomic_u32 is_cancelled;
    sp_mutex lock;
    sp_cancel_listener *first SP_GUARDED_BY(lock);
} sp_rt_cancel_token;

sp_status sp__cancel_token_create(sp_cancel_token *out);
/* One reference of the handle more, or less. */
sp_status sp__cancel_token_retain(sp_cancel_token handle);
sp_status sp__cancel_token_release(sp_cancel_token handle);

/* The token of a handle, with a hold. After a shutdown too: runs may still wait. */
sp_status sp__cancel_token_hold(sp_cancel_token handle, sp_rt_cancel_token **out);
void sp__cancel_token_drop(sp_rt_cancel_token *token);

void sp__cancel_token_cancel(sp_rt_cancel_token *token);

/* A hint without the list. */
static inline bool sp__cancel_token_is_cancelled(const sp_rt_cancel_token *token)
{
    return sp_load_relaxed(&token->is_cancelled) != 0;
}

/* Adds a listener, which must not move. False, and it was not added: the token is cancelled. */
SP_NODISCARD bool sp__cancel_token_add(sp_rt_cancel_token *token, sp_cancel_listener *listener);
/* Removes it. False: a canceller has popped it, or it was not added. */
bool sp__cancel_token_remove(sp_rt_cancel_token *token, sp_cancel_listener *listener);

/* Frees the table: for tests, while no handle is in use. */
void sp__cancel_tokens_deinit(void);

#endif
