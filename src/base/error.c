/* SPDX-License-Identifier: Apache-2.0 */
/* The calling thread's last error. Its buffer is allocated at the thread's first failure, kept in
 * the slot SP_TLS_ERROR and freed when the thread ends. Without memory the slot has the constant
 * text of the status instead, and the next failure tries again. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/heap.h"
#include "base/thread.h"

/* Removes the analyzer's wrappers, which would apply to the definitions. */
#undef sp__fail
#undef sp__fail_text
#undef sp__fail_prefix
#undef sp__fail_add_file

/* Value of SP_TLS_ERROR; `text` is returned by sp_last_error.
 * Invariant: the slot owns the object  <=>  it is the head of an error_buffer. */
typedef struct error_head {
    const char *text;
    bool is_heap;
} error_head;

typedef struct error_buffer {
    error_head head;
    char text[SP_ERROR_BYTES];
    char *file; /* owned; NULL: the message is about none */
    int file_code;
} error_buffer;

static const error_head constants[] = {
#define STATUS_HEAD(code, value, text) [code] = {text, false},
    SP_STATUS_LIST(STATUS_HEAD)
#undef STATUS_HEAD
};

static error_head *error_head_of_thread(void)
{
    return sp_tls_get(SP_TLS_ERROR);
}

static void error_buffer_destroy(void *arg)
{
    error_buffer *buffer = SP_CONTAINER_OF((error_head *)arg, error_buffer, head);
    sp_free(buffer->file);
    sp_free(buffer);
}

static void file_forget(error_buffer *buffer)
{
    sp_free(buffer->file);
    buffer->file = NULL;
}

/* This thread's buffer, or NULL without memory. */
static error_buffer *error_buffer_of_thread(void)
{
    error_head *head = error_head_of_thread();
    if (head != NULL && head->is_heap) return SP_CONTAINER_OF(head, error_buffer, head);
    error_buffer *buffer = sp_calloc(1, sizeof *buffer);
    if (buffer == NULL) return NULL;
    buffer->head = (error_head){buffer->text, true};
    if (sp_tls_set(SP_TLS_ERROR, &buffer->head, error_buffer_destroy)) return buffer;
    sp_free(buffer);
    return NULL;
}

/* Before the first failure inside a scope: saves the message that it will replace. */
static void scope_save_former(void)
{
    sp_error_scope *scope = sp_tls_get(SP_TLS_ERROR_SCOPE);
    if (SP_LIKELY(scope == NULL || scope->has_failed)) return;
    const error_head *head = error_head_of_thread();
    scope->has_failed = true;
    scope->former = head;
    snprintf(scope->text, sizeof scope->text, "%s", head != NULL ? head->text : "");
}

static void error_store(sp_status status, const char *message, bool keeps_file)
{
    scope_save_former();
    error_buffer *buffer = error_buffer_of_thread();
    if (buffer != NULL) {
        if (SP_UNLIKELY(buffer->file != NULL) && !keeps_file) file_forget(buffer);
        memcpy(buffer->text, message, strlen(message) + 1);
        return;
    }
    const size_t index = (size_t)status < SP_COUNT_OF(constants) ? (size_t)status : SP_INTERNAL;
    /* The slot's type is void *, but a head that is not on the heap is never written. */
    (void)sp_tls_set(SP_TLS_ERROR, (void *)(uintptr_t)&constants[index], NULL);
}

sp_status sp__fail(sp_status status, const char *format, ...)
{
    /* Formatted into a copy, since an argument may be this thread's last error itself. */
    char message[SP_ERROR_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    error_store(status, message, false);
    return status;
}

sp_status sp__fail_text(sp_status status, const char *text)
{
    SP_ASSERT(strlen(text) < SP_ERROR_BYTES);
    error_store(status, text, false);
    return status;
}

sp_status sp__fail_cancelled(void)
{
    return sp__fail(SP_CANCELLED, "the run was cancelled; its outputs are undefined");
}

sp_status sp__fail_prefix(sp_status status, const char *format, ...)
{
    char message[SP_ERROR_BYTES];
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(message, sizeof message, format, args);
    va_end(args);
    const char *rest = sp_last_error();
    if (rest[0] == '\0') rest = sp_status_text(status);
    if (length >= 0 && (size_t)length < sizeof message) {
        snprintf(message + length, sizeof message - (size_t)length, "%s", rest);
    }
    error_store(status, message, true);
    return status;
}

sp_status sp__fail_add_file(sp_status status, const char *folder, const char *name, int code)
{
    error_buffer *buffer = error_buffer_of_thread();
    if (buffer == NULL) return status;
    const bool has_folder = folder != NULL;
    const size_t bytes = (has_folder ? strlen(folder) + 1 : 0) + strlen(name) + 1;
    file_forget(buffer);
    char *file = sp_malloc(bytes);
    if (file == NULL) return status;
    snprintf(file, bytes, "%s%s%s", has_folder ? folder : "", has_folder ? "/" : "", name);
    buffer->file = file;
    buffer->file_code = code;
    return status;
}

const char *sp_last_error_file(int *code)
{
    const error_head *head = error_head_of_thread();
    if (head == NULL || !head->is_heap) return NULL;
    const error_buffer *buffer = SP_CONTAINER_OF(head, error_buffer, head);
    if (buffer->file != NULL && code != NULL) *code = buffer->file_code;
    return buffer->file;
}

const char *sp_last_error(void)
{
    const error_head *head = error_head_of_thread();
    return head != NULL ? head->text : "";
}

/* ---- scopes ---- */

void sp__error_set_aside(sp_error_scope *scope)
{
    scope->outer = sp_tls_get(SP_TLS_ERROR_SCOPE);
    scope->has_failed = false;
    (void)sp_tls_set(SP_TLS_ERROR_SCOPE, scope, NULL); /* fails only with a destructor */
}

void sp__error_put_back(sp_error_scope *scope)
{
    (void)sp_tls_set(SP_TLS_ERROR_SCOPE, scope->outer, NULL);
    if (SP_LIKELY(!scope->has_failed)) return;
    error_head *head = error_head_of_thread();
    if (head->is_heap) {
        /* The buffer is kept, also if it was allocated in the scope: it is then empty. */
        error_buffer *buffer = SP_CONTAINER_OF(head, error_buffer, head);
        memcpy(buffer->text, scope->text, sizeof buffer->text);
        file_forget(buffer);
    } else {
        /* No buffer now, so there was none before. */
        (void)sp_tls_set(SP_TLS_ERROR, (void *)(uintptr_t)scope->former, NULL);
    }
}

void sp__error_keep(sp_error_scope *scope)
{
    (void)sp_tls_set(SP_TLS_ERROR_SCOPE, scope->outer, NULL);
    if (scope->outer == NULL || scope->outer->has_failed || !scope->has_failed) return;
    scope->outer->has_failed = true;
    scope->outer->former = scope->former;
    memcpy(scope->outer->text, scope->text, sizeof scope->text);
}

void sp__error_abandon_scopes(void)
{
    (void)sp_tls_set(SP_TLS_ERROR_SCOPE, NULL, NULL);
}

sp_status sp__error_settle(sp_error_scope *scope, sp_status status)
{
    if (status == SP_OK) {
        sp__error_put_back(scope);
    } else {
        sp__error_keep(scope);
    }
    return status;
}
