/* SPDX-License-Identifier: Apache-2.0 */
/* Thread records: a list of free records behind a lock, which a thread locks at its first use of
 * the library and at its end. */
#include "device/thread_record.h"

#include "base/fork.h"
#include "base/heap.h"
#include "base/mutex.h"
#include "base/thread.h"

static struct {
    sp_mutex lock;
    sp_thread_record *free SP_GUARDED_BY(lock);
    uint64_t last_number SP_GUARDED_BY(lock);
} records = {.lock = SP_MUTEX_INIT(SP_LOCK_RECORDS)}; /* process-wide: like threads */

/* Runs when the thread ends: the record stays mapped for late unparks. */
static void record_release(void *value)
{
    sp_thread_record *record = value;
    if (sp_fork_is_child()) return; /* the lock may be held by a thread that does not exist */
    sp_mutex_lock(&records.lock);
    record->next_free = records.free;
    records.free = record;
    sp_mutex_unlock(&records.lock);
}

static sp_thread_record *record_acquire(void)
{
    sp_mutex_lock(&records.lock);
    sp_thread_record *record = records.free;
    if (record != NULL) records.free = record->next_free;
    const uint64_t number = ++records.last_number;
    sp_mutex_unlock(&records.lock);
    if (record == NULL) {
        record = sp_aligned_malloc(SP_CACHE_LINE, sizeof *record);
        if (record == NULL) return NULL;
        *record = (sp_thread_record){0};
    }
    record->number = record->holder = number;
    /* The last owner may have been an executor thread. */
    record->is_executor = false;
    record->ends_with_shutdown = false;
    record->runs_own_functions = false;
    record->check = NULL;
    record->help_until_ns = 0;
    record->computed_futures = 0;
    record->inside = NULL;
    record->tenure = (sp_run_tenure){0};
    return record;
}

static SP_NOINLINE sp_thread_record *record_new(void)
{
    sp_thread_record *record = record_acquire();
    if (record != NULL && sp_tls_set(SP_TLS_WAITER, record, record_release)) return record;
    if (record != NULL) record_release(record);
    sp__fail(SP_OUT_OF_MEMORY, "no memory for this thread's record");
    return NULL;
}

sp_thread_record *sp__thread_record(void)
{
    sp_thread_record *record = sp_tls_get(SP_TLS_WAITER);
    return SP_LIKELY(record != NULL) ? record : record_new();
}

void sp__thread_add_helped(uint64_t ns)
{
    sp_thread_record *record = sp_tls_get(SP_TLS_WAITER);
    if (record != NULL) record->helped_ns += ns;
}

uint64_t sp__thread_helped_ns(void)
{
    const sp_thread_record *record = sp_tls_get(SP_TLS_WAITER);
    return record != NULL ? record->helped_ns : 0;
}

void sp__thread_forget_accesses(sp_thread_record *record)
{
    if (SP_LIKELY(sp_load_relaxed(&record->open_accesses) == 0)) return;
    sp_mutex_lock(&records.lock);
    record->holder = ++records.last_number;
    sp_mutex_unlock(&records.lock);
}

void sp__thread_records_deinit(void)
{
    /* The caller's record is freed too: its number could repeat after the reset. */
    sp_thread_record *own = sp_tls_get(SP_TLS_WAITER);
    sp_tls_set(SP_TLS_WAITER, NULL, NULL);
    if (own != NULL) record_release(own);
    sp_mutex_lock(&records.lock);
    sp_thread_record *record = records.free;
    records.free = NULL;
    records.last_number = 0;
    sp_mutex_unlock(&records.lock);
    while (record != NULL) {
        sp_thread_record *next = record->next_free;
        sp_free(record);
        record = next;
    }
}
