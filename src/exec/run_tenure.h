/* SPDX-License-Identifier: Apache-2.0 */
/* Tenure of a run slot: what is expected of a thread that releases its slot while others wait. See
 * docs/decisions/0038. All functions are for the calling thread's own tenure. */
#ifndef SP_EXEC_RUN_TENURE_H
#define SP_EXEC_RUN_TENURE_H

#include "device/thread_record.h"

typedef enum sp_release_action {
    SP_RELEASE_LEAVE,        /* the thread takes the slot again, soon */
    SP_RELEASE_CALL,         /* it does not */
    SP_RELEASE_CALL_AND_STAY /* it does, but its quantum is over */
} sp_release_action;

/* A quantum begins. */
void sp__run_tenure_begin(sp_run_tenure *tenure, uint64_t now);
/* The thread asks for a slot while others wait for one. */
void sp__run_tenure_return(sp_run_tenure *tenure);
/* The thread has a slot that others wait for, and releases it. If its tenure ends, *held_ns is how
 * long that took, at least 1; else 0. */
sp_release_action sp__run_tenure_release(sp_run_tenure *tenure, uint64_t *held_ns);

#endif
