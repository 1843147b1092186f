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

/* The state of a kept slot that the thread leaves now (device/free_slots.h), with the time, as far
 * as it is known: of the last observed release. */
uint32_t sp__run_tenure_left_state(const sp_run_tenure *tenure);
/* Whether a slot in that state was left longer ago than its owner would stay away; not if it was
 * left after `now`. */
bool sp__run_tenure_is_overdue(uint32_t left_state, uint64_t now);

/* A quantum begins. */
void sp__run_tenure_begin(sp_run_tenure *tenure, uint64_t now);
/* After a release that ended a quantum, of a thread that takes the slot again soon: whether its
 * runs are so short that it may have another quantum at once, and that it has it. */
bool sp__run_tenure_may_go_on(const sp_run_tenure *tenure);
void sp__run_tenure_go_on(sp_run_tenure *tenure);
/* The thread asks for a slot while others wait for one. True if it has come back soon. */
bool sp__run_tenure_return(sp_run_tenure *tenure);
/* The thread has a slot that others wait for, and releases it. `may_leave` false: it is not
 * expected back soon, although it was the last time. If its tenure ends, *held_ns is how long that
 * took, at least 1; else 0. */
sp_release_action sp__run_tenure_release(sp_run_tenure *tenure, bool may_leave, uint64_t *held_ns);

#endif
