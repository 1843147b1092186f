/* SPDX-License-Identifier: Apache-2.0 */
/* Calls in progress of a replaceable callback: a replacement waits until all calls of the previous
 * callback have returned. The callback itself is called with no lock held; the owner's lock guards
 * this data, and the owner's condition variable signals that a call has ended. */
#ifndef SP_BASE_CALLBACK_H
#define SP_BASE_CALLBACK_H

#include <stdbool.h>
#include <stdint.h>

/* One call, on its thread's stack. */
typedef struct sp_callback_call {
    uint64_t thread;
    uint64_t generation;
    struct sp_callback_call *next;
} sp_callback_call;

typedef struct sp_callback_calls {
    uint64_t generation; /* counts the replacements */
    sp_callback_call *first;
} sp_callback_calls;

static inline void sp_callback_enter(sp_callback_calls *calls, sp_callback_call *call,
                                     uint64_t thread)
{
    *call = (sp_callback_call){thread, calls->generation, calls->first};
    calls->first = call;
}

static inline void sp_callback_leave(sp_callback_calls *calls, const sp_callback_call *call)
{
    sp_callback_call **link = &calls->first;
    while (*link != call) link = &(*link)->next;
    *link = call->next;
}

static inline bool sp_callback_is_inside(const sp_callback_calls *calls, uint64_t thread)
{
    for (const sp_callback_call *call = calls->first; call != NULL; call = call->next) {
        if (call->thread == thread) return true;
    }
    return false;
}

/* After a replacement: whether `thread` must still wait for calls of an earlier callback. Never if
 * it is inside such a call itself, which would be a wait for its own end. */
static inline bool sp_callback_must_wait(const sp_callback_calls *calls, uint64_t generation,
                                         uint64_t thread)
{
    if (sp_callback_is_inside(calls, thread)) return false;
    for (const sp_callback_call *call = calls->first; call != NULL; call = call->next) {
        if (call->generation < generation) return true;
    }
    return false;
}

#endif
