/* SPDX-License-Identifier: Apache-2.0 */
/* 31 threads use everything at once: streams, host functions that wait and submit, nested host
 * accesses, events, adopted memory, callbacks, memory that runs out, devices that close. Every
 * accepted operation ends, no byte is wrong, and nothing hangs. */
#include "stress_storm.h"

#include <stdio.h>
#include <stdlib.h>

#include <streampool/null_device.h>

#define PATIENCE_S 60 /* without an operation of any thread */
#define GUESTS 40u    /* null devices in sequence: a process has room for 64 devices */

static void run_worker(void *arg, uint32_t index)
{
    worker self;
    storm_worker_begin(&self, arg, index);
    while (sp_clock_now() < self.all->deadline_ns) storm_move(&self);
    storm_worker_end(&self);
    raise_by_one(&self.all->left);
}

/* Opens and closes null devices while the others use them; commands of every other one fail. */
static void run_guests(storm *all)
{
    const uint64_t start = sp_clock_now();
    const uint64_t turn_ns = (all->deadline_ns - start) / GUESTS;
    for (uint32_t i = 0; i < GUESTS && sp_clock_now() < all->deadline_ns; i++) {
        sp_device device;
        REQUIRE_OK(sp_device_open("null", &device));
        if (i % 2 == 1) CHECK_OK(sp_null_fail_randomly(device, 300, i));
        sp_store_release(&all->guest, device.bits);
        sp_clock_sleep(turn_ns);
        if (i % 4 == 3) CHECK_OK(sp_null_lose(device));
        if (i % 2 == 0) sp_store_release(&all->guest, (uint64_t)0); /* otherwise it closes in use */
        CHECK_OK(sp_device_close(device));
    }
}

/* Ends the process if no operation completes for PATIENCE_S, so that a hang is a failure with a
 * stack. */
static void run_watch(storm *all)
{
    uint64_t seen = 0;
    uint32_t still = 0;
    while (sp_load_relaxed(&all->left) < THREADS) {
        sp_clock_sleep(SECOND / 10);
        const uint64_t moves = sp_load_relaxed(&all->moves) + sp_load_relaxed(&all->left);
        still = moves == seen ? still + 1 : 0;
        seen = moves;
        if (still < 10 * PATIENCE_S) continue;
        fprintf(stderr, "storm: no move for %d s after %llu\n", PATIENCE_S,
                (unsigned long long)moves);
        abort();
    }
}

static void run_one(void *arg, uint32_t index)
{
    if (index < THREADS) {
        run_worker(arg, index);
    } else if (index == THREADS) {
        run_guests(arg);
    } else {
        run_watch(arg);
    }
}

static void check_balance(balance *self, const char *what)
{
    const uint64_t accepted = sp_load_relaxed(&self->accepted);
    for (int i = 0; i < 3000 && sp_load_relaxed(&self->ended) < accepted; i++) {
        sp_clock_sleep(10 * MILLISECOND);
    }
    test_note("%llu %s", (unsigned long long)accepted, what);
    CHECK_EQ_U64(sp_load_relaxed(&self->ended), accepted);
    CHECK(accepted > 0);
}

TEST(whatever_31_threads_mix_comes_to_its_end_with_the_right_bytes)
{
    runtime_begin_with(&(runtime_setting){.workers = "2", .streams = "12"});
    static storm all;
    all = (storm){.deadline_ns = sp_clock_now() + test_count(1800, 5) * (uint64_t)SECOND};
    for (uint32_t i = 0; i < SHARED_STREAMS; i++) all.shared[i] = new_stream();
    for (uint32_t i = 0; i < LOCKS; i++) {
        all.locks[i] = new_storage(8);
        fill(all.shared[0], all.locks[i], 0);
    }
    all.common = new_storage(THREADS * BYTES);
    test_threads(THREADS + 2, run_one, &all);

    CHECK_OK(sp_device_set_memory_limit(CPU, 0));
    CHECK_OK(sp_device_synchronize(CPU));
    check_overlap(&all.calls, 2);
    test_note("%llu moves; refused: %llu deadlocks, %llu without memory, %llu closed",
              (unsigned long long)sp_load_relaxed(&all.moves),
              (unsigned long long)sp_load_relaxed(&all.deadlocks),
              (unsigned long long)sp_load_relaxed(&all.shortages),
              (unsigned long long)sp_load_relaxed(&all.closed));
    for (uint32_t i = 0; i < LOCKS; i++) CHECK_OK(sp_storage_release(all.locks[i]));
    CHECK_OK(sp_storage_release(all.common));
    for (uint32_t i = 0; i < SHARED_STREAMS; i++) CHECK_OK(sp_stream_release(all.shared[i]));
    check_balance(&all.host_functions, "host functions");
    check_balance(&all.callbacks, "callbacks");
    check_balance(&all.adopted, "adopted");
    runtime_end();
}

TEST_MAIN
