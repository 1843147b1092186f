/* SPDX-License-Identifier: Apache-2.0 */
/* Threads and thread-local slots on pthreads. One pthread key runs the destructors of all slots;
 * the library is linked with -z nodelete, so its code outlives dlclose. */
#include "base/thread.h"

#include <stdlib.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/heap.h"

typedef struct start_record {
    sp_thread_fn fn;
    void *arg;
    char name[16];
} start_record;

/* True on a thread of the library outside all guards: it cannot be cancelled. */
static _Thread_local bool is_shielded;

static void *thread_main(void *opaque)
{
    sp_cancel_defer();
    is_shielded = true;
    start_record *record = opaque;
    const start_record copy = *record;
    sp_free(record);
    pthread_setname_np(pthread_self(), copy.name);
    copy.fn(copy.arg);
    return NULL;
}

sp_status sp_thread_create(sp_thread *out, const char *name, sp_thread_fn fn, void *arg)
{
    start_record *record = sp_malloc(sizeof *record);
    if (record == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to start thread %s", name);
    record->fn = fn;
    record->arg = arg;
    snprintf(record->name, sizeof record->name, "%s", name);

    /* Signals are handled on the application's threads. */
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&out->impl, NULL, thread_main, record);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0) return SP_OK;
    sp_free(record);
    return sp__fail(SP_EXHAUSTED,
                    "the system cannot start thread %s (error %d): raise its limit of threads",
                    name, error);
}

void sp_thread_join(sp_thread *thread)
{
    const int state = sp_cancel_defer();
    pthread_join(thread->impl, NULL);
    sp_cancel_restore(state);
}

void sp_thread_yield(void)
{
    sched_yield();
}

void sp_thread_exit(void)
{
    pthread_exit(NULL);
}

typedef struct guard {
    sp_thread_ended_fn ended;
    void *arg;
    jmp_buf stay;
} guard;

/* A longjmp out of the handler stops the exit: the frame is the guard's by then, and the pop
 * removes the guard from the thread's list. So a kept thread must not continue from inside the
 * handler: a second exit would use the list of the first. */
static void thread_ended(void *arg)
{
    guard *self = arg;
    if (sp_fork_is_child()) return; /* the child has no other threads */
    if (self->ended(self->arg)) longjmp(self->stay, 1);
}

static void call_guarded(sp_thread_fn fn, void *arg, bool was_shielded, int state)
{
    /* Inside another guard and on the program's threads the program chooses the state. */
    if (!was_shielded) sp_cancel_restore(state);
    fn(arg);
    sp_cancel_restore(was_shielded ? PTHREAD_CANCEL_ENABLE : state);
    pthread_testcancel();
}

void sp_thread_guard(sp_thread_fn fn, sp_thread_ended_fn ended, void *arg)
{
    guard self = {.ended = ended, .arg = arg};
    int state;
    const bool was_shielded = is_shielded;
    pthread_cleanup_push(thread_ended, &self);
    is_shielded = false;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
    if (setjmp(self.stay) == 0) call_guarded(fn, arg, was_shielded, state);
    sp_cancel_restore(state);
    is_shielded = was_shielded;
    pthread_cleanup_pop(0);
}

uint64_t sp_thread_number(void)
{
    return (uint64_t)syscall(SYS_gettid);
}

bool sp_thread_at_exit(void (*fn)(void))
{
    return atexit(fn) == 0;
}

bool sp_thread_is_main(void)
{
    return syscall(SYS_gettid) == (long)getpid();
}

uint32_t sp_thread_core_count(void)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    if (sched_getaffinity(0, sizeof cores, &cores) == 0) {
        const int count = CPU_COUNT(&cores);
        if (count > 0) return (uint32_t)count;
    }
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (uint32_t)online : 1;
}

/* ---- thread-local slots ---- */

_Thread_local void *sp__tls_values[SP_TLS_COUNT];
static _Thread_local void (*tls_destructors[SP_TLS_COUNT])(void *value);

static pthread_once_t tls_key_once = PTHREAD_ONCE_INIT;
static pthread_key_t tls_key;
static int tls_key_error;

void sp_tls_end(sp_tls_slot slot)
{
    void *value = sp__tls_values[slot];
    void (*destructor)(void *) = tls_destructors[slot];
    sp__tls_values[slot] = NULL;
    tls_destructors[slot] = NULL;
    if (value != NULL && destructor != NULL) destructor(value);
}

/* pthreads calls this again, a bounded number of times, if a destructor sets a slot again. */
static void run_destructors(void *unused)
{
    (void)unused;
    for (int slot = SP_TLS_COUNT - 1; slot >= 0; slot--) sp_tls_end((sp_tls_slot)slot);
}

static void make_tls_key(void)
{
    tls_key_error = pthread_key_create(&tls_key, run_destructors);
}

bool sp_tls_set(sp_tls_slot slot, void *value, void (*destructor)(void *value))
{
    if (value != NULL && destructor != NULL) {
        pthread_once(&tls_key_once, make_tls_key);
        if (tls_key_error != 0) return false;
        /* Any non-NULL value makes pthreads call run_destructors at the thread's end. */
        if (pthread_setspecific(tls_key, sp__tls_values) != 0) return false;
    }
    sp__tls_values[slot] = value;
    tls_destructors[slot] = destructor;
    return true;
}
