/* SPDX-License-Identifier: Apache-2.0 */
/* The calls on cancel tokens. */
#include <streampool/cancel.h>

#include "base/error.h"
#include "exec/cancel_token.h"
#include "runtime/runtime_state.h"

sp_status sp_cancel_token_create(sp_cancel_token *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_cancel_token_create: out is NULL");
    *out = (sp_cancel_token){0};
    SP_TRY(sp__runtime_enter());
    return sp__cancel_token_create(out);
}

sp_status sp_cancel_token_retain(sp_cancel_token token)
{
    SP_TRY(sp__runtime_enter());
    return sp__cancel_token_retain(token);
}

sp_status sp_cancel_token_release(sp_cancel_token token)
{
    if (sp__runtime_is_forked()) return SP_OK;
    return sp__cancel_token_release(token);
}

sp_status sp_cancel_token_cancel(sp_cancel_token handle)
{
    sp_rt_cancel_token *token;
    SP_TRY(sp__cancel_token_hold(handle, &token));
    sp__cancel_token_cancel(token);
    sp__cancel_token_drop(token);
    return SP_OK;
}

sp_status sp_cancel_token_is_cancelled(sp_cancel_token handle, bool *out)
{
    sp_rt_cancel_token *token;
    if (out == NULL) return sp__fail(SP_INVALID, "sp_cancel_token_is_cancelled: out is NULL");
    *out = false;
    SP_TRY(sp__cancel_token_hold(handle, &token));
    *out = sp__cancel_token_is_cancelled(token);
    sp__cancel_token_drop(token);
    return SP_OK;
}
