/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that are cancelled, and what is left of them. */
#ifndef SP_TESTS_CANCEL_FIXTURE_H
#define SP_TESTS_CANCEL_FIXTURE_H

#include "run_fixture.h"

#define CANCELLED_TEXT "the run was cancelled; its outputs are undefined"

sp_cancel_token token_create(void);
small_row wiped_row(void);
/* The future is done with SP_CANCELLED, without a wait, and nothing was written. */
void check_cancelled(sp_future future, const small_row *row);

/* A run with a token on a thread: on `stream` if that is not zero, which must be as good
 * afterwards. */
typedef struct waiting_run {
    sp_model model;
    sp_cancel_token token;
    small_row row;
    sp_status status;
    sp_stream stream;
} waiting_run;
void waiting_run_thread(void *arg);

#endif
