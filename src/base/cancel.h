/* SPDX-License-Identifier: Apache-2.0 */
/* pthread_cancel and the library. System calls that are cancellation points are made between
 * sp_cancel_defer and sp_cancel_restore, so that a cancelled thread ends only in code of the
 * program: never with a claim, lock or file of the library. In between a cancellation stays
 * pending. Neither call enters the kernel. */
#ifndef SP_BASE_CANCEL_H
#define SP_BASE_CANCEL_H

#include <pthread.h>

/* Returns the previous state, for sp_cancel_restore. */
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
