/* SPDX-License-Identifier: Apache-2.0 */
#include "cancel_fixture.h"

#include <string.h>

#include <streampool/stream.h>

sp_cancel_token token_create(void)
{
    sp_cancel_token token = {0};
    CHECK_OK(sp_cancel_token_create(&token));
    return token;
}

small_row wiped_row(void)
{
    small_row row;
    memset(&row, 0xff, sizeof row);
    return row;
}

void check_cancelled(sp_future future, const small_row *row)
{
    const small_row wiped = wiped_row();
    CHECK_STATUS(sp_future_query(future), SP_CANCELLED);
    CHECK_EQ_STR(sp_last_error(), CANCELLED_TEXT);
    CHECK_STATUS(sp_future_wait(future), SP_CANCELLED);
    CHECK(small_is_same(row, &wiped));
}

void waiting_run_thread(void *arg)
{
    waiting_run *w = arg;
    w->row = wiped_row();
    if (w->stream.bits != 0) CHECK_OK(sp_stream_set_current(w->stream));
    w->status = small_run_with(w->model, w->token, &w->row);
    if (w->status != SP_OK) CHECK_EQ_STR(sp_last_error(), CANCELLED_TEXT);
    /* The cancel is no failure of the thread's stream. */
    if (w->stream.bits != 0) CHECK_OK(sp_stream_synchronize(w->stream));
    if (w->stream.bits != 0) CHECK_OK(sp_stream_set_current((sp_stream){0}));
}
