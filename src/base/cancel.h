/* SPDX-License-Identifier: Apache-2.0 */
/* pthread_cancel and the library. Calls of the system that are cancellation points are made between
 * sp_cancel_defer and sp_cancel_restore, so that a thread that the program cancels ends in code of
 * the program alone: never with a claim, lock or file of the library. A cancellation stays pending
 * meanwhile. Neither call enters the kernel. */
#ifndef SP_BASE_CANCEL_H
#define SP_BASE_CANCEL_H

#include <pthread.h>

/* The former state, for sp_cancel_restore. */
static inline int sp_cancel_defer(void)
{
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    return state;
}

static inline void sp_cancel_restore(int state)
{
    pthread_setcancelstate(state, NULL);
}

#endif
