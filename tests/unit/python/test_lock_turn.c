/* SPDX-License-Identifier: Apache-2.0 */
/* Turns at the interpreter's lock: a mutex here.
 * primitive: an interpreter's lock is not the library's. */
#include "python/src/lock_turn.h"

#include <pthread.h>
#include <stdatomic.h>

#include "support/test.h"

enum { THREADS = 8, TAKES = 2000 };
static const int64_t begin_ns = 1000000;

static void try_once(void *arg, uint32_t index)
{
    (void)index;
    if (sp_py_turn_try(begin_ns)) atomic_fetch_add((atomic_uint *)arg, 1);
}

TEST(a_free_turn_is_claimed_by_one_thread)
{
    for (int i = 0; i < 100; i++) {
        atomic_uint claims = 0;
        sp_py_turn_end();
        test_threads(THREADS, try_once, &claims);
        CHECK_EQ_INT(atomic_load(&claims), 1);
    }
}

TEST(a_turn_is_waited_for_until_it_ends)
{
    sp_py_turn_end();
    sp_py_turn_begin(begin_ns);
    CHECK(!sp_py_turn_try(begin_ns));
    CHECK(!sp_py_turn_try(begin_ns + SP_PY_TURN_NS - 1));
    sp_py_turn_end();
    CHECK(sp_py_turn_try(begin_ns + 1));
    CHECK(!sp_py_turn_try(begin_ns + 2)); /* whoever claimed it has it */
}

TEST(an_old_turn_is_not_waited_for)
{
    sp_py_turn_end();
    sp_py_turn_begin(begin_ns);
    CHECK(sp_py_turn_try(begin_ns + SP_PY_TURN_NS));
    CHECK(sp_py_turn_try(begin_ns + SP_PY_TURN_NS)); /* by nobody */
    sp_py_turn_begin(begin_ns + SP_PY_TURN_NS);
    CHECK(!sp_py_turn_try(begin_ns + SP_PY_TURN_NS + 1));
}

TEST(a_turn_that_begins_after_the_time_was_read_is_waited_for)
{
    sp_py_turn_end();
    sp_py_turn_begin(begin_ns + SP_PY_TURN_NS);
    CHECK(!sp_py_turn_try(begin_ns));
}

/* A hang is a turn that nobody ends. */
TEST(a_wait_ends_though_the_turn_does_not)
{
    sp_py_turn_end();
    sp_py_turn_begin(sp_py_turn_clock());
    sp_py_turn_await();
    sp_py_turn_end();
    sp_py_turn_await();
}

typedef struct interpreter {
    pthread_mutex_t lock;
    uint64_t steps; /* guarded by the lock */
} interpreter;

static void take_turns(void *arg, uint32_t index)
{
    interpreter *it = arg;
    for (int i = 0; i < TAKES; i++) {
        sp_py_turn_await();
        pthread_mutex_lock(&it->lock);
        sp_py_turn_begin(sp_py_turn_clock());
        it->steps++;
        pthread_mutex_unlock(&it->lock);
        if (index > 0 || i % 2 == 0) sp_py_turn_end(); /* else as a thread that sleeps elsewhere */
    }
}

TEST(threads_that_take_turns_all_get_the_lock)
{
    interpreter it = {.lock = PTHREAD_MUTEX_INITIALIZER};
    sp_py_turn_end();
    test_threads(THREADS, take_turns, &it);
    CHECK(it.steps == (uint64_t)THREADS * TAKES);
    pthread_mutex_destroy(&it.lock);
}

TEST_MAIN
