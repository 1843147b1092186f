/* SPDX-License-Identifier: Apache-2.0 */
/* Cancel tokens: one call cancels all runs that were given the token.
 *
 * A token is passed to runs by sp_run_options (model.h), to any number of them, waited for and
 * submitted ones, of any models. It stays cancelled: there is no reset. One run alone is cancelled
 * by its future, without a token (sp_future_cancel).
 *
 * A cancelled run ends with SP_CANCELLED if the cancel came in time, and as it would have ended if
 * not; other runs are unaffected, those of the same batch too. A run that waits for a run slot
 * leaves the queue at once. A run that computes stops before its next part or its next segment, on
 * cpu and null before its next kernel. A run in a batch with others runs to its end, as does one
 * on a GPU whose kernels have been issued. In any case the run's buffers are free again only when
 * the call has returned, or the future is done; the bytes of outputs are undefined then. */
#ifndef STREAMPOOL_CANCEL_H
#define STREAMPOOL_CANCEL_H

#include <stdbool.h>
#include <stdint.h>

#include <streampool/status.h>

SP_EXTERN_C_BEGIN

typedef struct sp_cancel_token {
    uint64_t bits;
} sp_cancel_token;

/* A token that is not cancelled. */
SP_API sp_status sp_cancel_token_create(sp_cancel_token *out);
/* One more reference. SP_EXHAUSTED past 65,535. */
SP_API sp_status sp_cancel_token_retain(sp_cancel_token token);
/* Drops a reference; runs that use the token continue. Does nothing for the zero handle. */
SP_API sp_status sp_cancel_token_release(sp_cancel_token token);

/* Cancels all runs that use the token, and those that will: they are SP_CANCELLED at once. Waits
 * for no run. May be called any number of times, in host functions and callbacks, and after
 * sp_shutdown. */
SP_API sp_status sp_cancel_token_cancel(sp_cancel_token token);

/* Whether the token was cancelled. */
SP_API sp_status sp_cancel_token_is_cancelled(sp_cancel_token token, bool *out);

SP_EXTERN_C_END

#endif
