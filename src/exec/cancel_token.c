/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/cancel_token.h"

#include "base/delay.h"
#include "base/error.h"
#include "runtime/runtime_state.h"

static void token_make(sp_object *object);
static void token_destroy(sp_object *object);

static sp_handle_table tokens = {/* process-wide: the table of all token handles */
                                 .kind = SP_KIND_CANCEL_TOKEN,
                                 .object_bytes = sizeof(sp_rt_cancel_token),
                                 .make = token_make,
                                 .destroy = token_destroy,
                                 .lock = SP_MUTEX_INIT(SP_LOCK_HANDLE_TABLE)};

/* ---- life ---- */

static sp_rt_cancel_token *token_of(sp_object *object)
{
    return SP_CONTAINER_OF(object, sp_rt_cancel_token, object);
}

static void token_make(sp_object *object)
{
    sp_mutex_init(&token_of(object)->lock, SP_LOCK_CANCEL_TOKEN);
}

/* The list is empty: a run with a listener holds the token. */
static void token_destroy(sp_object *object)
{
    if (!sp__runtime_is_forked()) sp__handle_recycle(&tokens, object);
}

sp_status sp__cancel_token_create(sp_cancel_token *out)
{
    sp_object *object;
    SP_TRY(sp__handle_acquire(&tokens, &object));
    sp_store_relaxed(&token_of(object)->is_cancelled, 0);
    out->bits = sp__handle_publish(&tokens, object);
    return SP_OK;
}

sp_status sp__cancel_token_retain(sp_cancel_token handle)
{
    return sp__handle_retain(&tokens, handle.bits, "cancel token");
}

sp_status sp__cancel_token_release(sp_cancel_token handle)
{
    return sp__handle_release(&tokens, handle.bits, "cancel token");
}

sp_status sp__cancel_token_hold(sp_cancel_token handle, sp_rt_cancel_token **out)
{
    if (sp__runtime_is_forked()) SP_TRY(sp__runtime_enter()); /* fails, with the message */
    sp_object *object = sp__handle_hold(&tokens, handle.bits, "cancel token");
    if (object == NULL) return SP_INVALID;
    *out = token_of(object);
    return SP_OK;
}

void sp__cancel_token_drop(sp_rt_cancel_token *token)
{
    sp__object_drop(&tokens, &token->object);
}

void sp__cancel_tokens_deinit(void)
{
    sp__handle_table_reset(&tokens);
}

/* ---- the list ---- */

static void listener_unlink_locked(sp_cancel_listener *listener)
{
    *listener->link = listener->next;
    if (listener->next != NULL) listener->next->link = listener->link;
    listener->link = NULL;
}

bool sp__cancel_token_add(sp_rt_cancel_token *token, sp_cancel_listener *listener)
{
    listener->link = NULL;
    if (SP_PLANTED(add_unseen) && sp__cancel_token_is_cancelled(token)) return false;
    sp_mutex_lock(&token->lock);
    /* The canceller has set the flag before it locks: its last pop, or this, sees the other. */
    const bool is_added = SP_PLANTED(add_unseen) || !sp__cancel_token_is_cancelled(token);
    if (is_added) {
        listener->next = token->first;
        listener->link = &token->first;
        if (listener->next != NULL) listener->next->link = &listener->next;
        token->first = listener;
    }
    sp_mutex_unlock(&token->lock);
    return is_added;
}

bool sp__cancel_token_remove(sp_rt_cancel_token *token, sp_cancel_listener *listener)
{
    sp_mutex_lock(&token->lock);
    const bool is_added = listener->link != NULL;
    if (is_added) listener_unlink_locked(listener);
    sp_mutex_unlock(&token->lock);
    return is_added;
}

/* ---- cancel ---- */

/* The next listener to be told, with its parker, which is read while the listener exists for sure.
 */
static sp_cancel_listener *listener_pop(sp_rt_cancel_token *token, sp_parker **parker)
{
    sp_mutex_lock(&token->lock);
    sp_cancel_listener *listener = token->first;
    if (listener != NULL) {
        listener_unlink_locked(listener);
        *parker = listener->parker;
    }
    sp_mutex_unlock(&token->lock);
    return listener;
}

void sp__cancel_token_cancel(sp_rt_cancel_token *token)
{
    sp_parker *parker = NULL;
    /* The lock orders it before later adds, and the parker before what a thread does next. */
    if (!SP_PLANTED(late_flag)) sp_store_release(&token->is_cancelled, 1);
    sp_delay_point();
    for (sp_cancel_listener *listener; (listener = listener_pop(token, &parker)) != NULL;) {
        if (SP_PLANTED(touch_popped)) parker = listener->parker;
        if (parker != NULL) sp_parker_unpark(parker);
        else listener->cancel(listener);
    }
    if (SP_PLANTED(late_flag)) sp_store_relaxed(&token->is_cancelled, 1);
}
