/* SPDX-License-Identifier: Apache-2.0 */
/* One logical thread's machine state. Two back ends: a stack switched by hand, and an operating
 * system thread that waits for a token (slow; for debuggers and for checking the first). A fiber
 * may be abandoned at any point: starting it again begins anew. */
#ifndef SP_SCHED_FIBER_H
#define SP_SCHED_FIBER_H

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct sp_fiber {
    void *stack_pointer; /* where a suspended fiber resumes */
    /* Token back end only. */
    pthread_t os_thread;
    sem_t token;
    jmp_buf top;
    bool has_os_thread;
    bool is_restarted; /* begins anew when it gets the token */
} sp_fiber;

typedef void (*sp_fiber_entry)(void);

/* Selects the back end. Call only while no fiber runs. */
void sp__fiber_use_os_threads(bool enabled);

/* The caller's own context, on the stack of the process. */
void sp__fiber_init_home(sp_fiber *home);

/* Makes `fiber` begin with `entry()` on this stack when it is next switched to. */
void sp__fiber_start(sp_fiber *fiber, char *stack, size_t bytes, sp_fiber_entry entry);

void sp__fiber_switch(sp_fiber *from, sp_fiber *to);

#endif
