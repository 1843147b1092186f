/* SPDX-License-Identifier: Apache-2.0 */
/* The guard around the interpreter's lock: a mutex here, which ends after the guard was closed.
 * primitive: an interpreter's lock is not the library's. */
#include "python/src/exit_guard.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "support/test.h"

typedef struct interpreter {
    pthread_mutex_t lock;
    uint64_t steps; /* guarded by the lock */
} interpreter;

static interpreter *running;
static atomic_uint refused;

static bool step(void)
{
    if (!sp_py_guard_begin_take()) return false;
    pthread_mutex_lock(&running->lock);
    sp_py_guard_end_take();
    running->steps++;
    pthread_mutex_unlock(&running->lock);
    return true;
}

static void step_until_refused(void *arg, uint32_t index)
{
    (void)arg;
    if (index > 0) {
        while (step()) {
        }
        atomic_fetch_add(&refused, 1);
        return;
    }
    for (int i = 0; i < 1000; i++) CHECK(step());
    pthread_mutex_lock(&running->lock); /* as the interpreter's exit handlers run */
    pthread_mutex_unlock(&running->lock);
    CHECK(!sp_py_guard_is_closed());
    sp_py_guard_close();
    CHECK(sp_py_guard_is_closed());
    CHECK(step()); /* the thread that has closed it may go on */
    sp_py_guard_close();
    /* A thread that still took the lock now would use freed memory. */
    pthread_mutex_lock(&running->lock);
    interpreter *ended = running;
    running = NULL;
    CHECK(ended->steps >= 1001);
    pthread_mutex_unlock(&ended->lock);
    pthread_mutex_destroy(&ended->lock);
    free(ended);
}

TEST(a_lost_take_of_a_forked_parent_does_not_hold_up_the_child)
{
    CHECK(sp_py_guard_begin_take());
    sp_py_guard_after_fork();
    CHECK(sp_py_guard_begin_take());
    sp_py_guard_end_take();
}

/* Last, since a guard is closed once. A hang is the count of takes being wrong. */
TEST(after_the_close_no_other_thread_takes_the_lock)
{
    running = calloc(1, sizeof *running);
    REQUIRE(running != NULL);
    pthread_mutex_init(&running->lock, NULL);
    test_threads(8, step_until_refused, NULL);
    CHECK_EQ_INT(atomic_load(&refused), 7);
}

TEST_MAIN
