/* SPDX-License-Identifier: Apache-2.0 */
/* The hazard checker inside the library. It keeps a vector clock per stream and per thread
 * (checker_clock.h). A submission joins the clocks of the points it waits for, and its thread's:
 * all that this thread has seen to have passed, directly or by a hand-over from another thread. A
 * use is compared with the conflicting uses since the storage's last write.
 *
 * Hand-overs: record and use of an event; uses of one tracked or frozen storage, whose lock orders
 * them, so that a point which one thread drops from the frontier is known to the next; the ends of
 * threads; what the application declares. include/streampool/check.h documents them for users.
 *
 * Off, each hook is one relaxed load. On, one lock, a leaf, guards everything here. */
#ifndef SP_RUNTIME_CHECKER_H
#define SP_RUNTIME_CHECKER_H

#include <streampool/check.h>

#include "base/atomic.h"
#include "device/command.h"
#include "device/device.h"
#include "runtime/frontier.h"

typedef struct sp_check_history sp_check_history;

extern sp_atomic_u32 sp__check_enabled; /* written when the runtime comes up */

static inline bool sp__check_is_on(void)
{
    return __builtin_expect(sp_load_relaxed(&sp__check_enabled) != 0, 0);
}

/* Reads the option; called while the runtime comes up. */
void sp__check_start(void);
/* Forgets everything. For tests. */
void sp__check_reset(void);

/* Around a host function of the submission at `point`, on the thread that runs it. */
void sp__check_host_begins(sp_point point);
void sp__check_host_ends(sp_point point);

/* The object that served as a token of sp_check_happens_before is destroyed. */
void sp__check_forget_token(const void *token);

/* The calling thread has locked a tracked or frozen storage and read its frontier: it joins what
 * all earlier threads left in `history`, and adds its own for later ones. */
void sp__check_met(sp_check_history **history);

/* A submission was accepted as `point` after `waits`. */
void sp__check_submitted(sp_point point, const sp_point *waits, uint32_t wait_count);

/* Reports to be emitted when no lock is held. */
#define SP_CHECK_BATCH 16
typedef struct sp_check_batch {
    uint32_t count;
    sp_check_report reports[SP_CHECK_BATCH];
} sp_check_batch;

/* A use of a storage by the submission at `point`. `*history` belongs to the storage and is created
 * here. Called with the storage's lock. `batch` may be NULL for lack of memory: the reports are
 * only counted. */
void sp__check_used(sp_check_history **history, uint64_t bytes, sp_point point,
                    const sp_check_use *use, sp_check_batch *batch);

/* An access by the host, which waits for the points of `behind` first and lasts until its ticket's
 * point has passed; with a NULL timeline, no later use can conflict with it. Called in the same
 * step that adds the ticket to the storage's frontier, so that later uses find it in the history
 * too. */
void sp__check_accessed(sp_check_history **history, uint64_t bytes, sp_point ticket,
                        const sp_wait_set *behind, const sp_check_use *use, sp_check_batch *batch);

/* Passes the reports to the callback or the log, and frees the batch; NULL is ignored. */
void sp__check_emit(sp_check_batch *batch);

/* Call site of the public function that contains this expression. */
#define SP_CALL_SITE __builtin_return_address(0)

/* The storage is destroyed. */
void sp__check_forget(sp_check_history **history);

#endif
