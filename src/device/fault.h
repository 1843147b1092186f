/* SPDX-License-Identifier: Apache-2.0 */
/* Faults: status and message of a command that failed on a device after its submit returned.
 *
 * A fault is a 32-bit number, status:8 | serial:24, so that timelines, the poison of a storage and
 * requests can store it in a word, without ownership. Messages are kept for the newest
 * SP_FAULT_MESSAGES faults; an older fault still has its status. */
#ifndef SP_DEVICE_FAULT_H
#define SP_DEVICE_FAULT_H

#include <stdint.h>

#include <streampool/status.h>

#include "base/atomic.h"

typedef uint32_t sp_fault;

#define SP_NO_FAULT ((sp_fault)0)
/* Of all runs that their caller has cancelled: a constant, without a message of its own. */
#define SP_FAULT_CANCELLED ((sp_fault)SP_CANCELLED << 24)
#define SP_FAULT_MESSAGES 4096

/* Creates a fault of `status` with this thread's last error, which names the command, as message.
 */
sp_fault sp__fault_create(sp_status status);

/* Makes the fault's message the calling thread's last error and returns its status. */
sp_status sp__fault_report(sp_fault fault);

static inline sp_status sp__fault_status(sp_fault fault)
{
    return (sp_status)(fault >> 24);
}

/* Poison of one storage: epoch << 32 | fault; zero: the data is valid. The epoch distinguishes uses
 * of recycled memory: poison of an earlier epoch is ignored and never replaces that of a later one.
 * Relaxed: executors write and read it in the order of the commands, which hazards, or for
 * untracked memory the user, define; the text of a fault has its own lock. */
typedef struct sp_poison {
    sp_atomic_u64 word;
} sp_poison;

sp_fault sp__poison_fault(const sp_poison *poison, uint32_t epoch);
void sp__poison_set(sp_poison *poison, uint32_t epoch, sp_fault fault);
/* Clears the poison, after a command has overwritten the whole storage. */
void sp__poison_clear(sp_poison *poison, uint32_t epoch);

#endif
