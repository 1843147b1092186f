/* SPDX-License-Identifier: Apache-2.0 */
/* Storages used on one stream after another without synchronisation by the user. */
#include "stress.h"

#include <string.h>

#define SLOTS 8
#define BYTES 4096

typedef struct relay {
    sp_storage slots[SLOTS];
    sp_stream producer;
    uint64_t fill_ns;
    uint32_t rounds;
    sp_atomic_u32 produced; /* submitted, not done */
    sp_atomic_u32 consumed;
    sp_atomic_u32 wrong;
} relay;

static void produce(relay *self)
{
    for (uint32_t i = 0; i < self->rounds; i++) {
        while (i - sp_load_acquire(&self->consumed) >= SLOTS) sp_thread_yield();
        const sp_use use = use_of(self->slots[i % SLOTS], SP_WRITE);
        const kernel_constants constants = {
            .ns = self->fill_ns, .bytes = BYTES, .value = (uint8_t)(i + 1)};
        CHECK_OK(dispatch(self->producer, &kernel_slow_fill, &constants, &use, 1));
        if (i % 16 == 0) CHECK_OK(sp_stream_flush(self->producer));
        sp_store_release(&self->produced, i + 1);
    }
}

static void consume(relay *self)
{
    const sp_storage own = new_storage(BYTES);
    for (uint32_t i = 0; i < self->rounds; i++) {
        while (sp_load_acquire(&self->produced) <= i) sp_thread_yield();
        copy(current_stream(), own, self->slots[i % SLOTS]);
        if (first_other(own, (uint8_t)(i + 1)) >= 0) raise_by_one(&self->wrong);
        sp_store_release(&self->consumed, i + 1);
    }
    CHECK_OK(sp_storage_release(own));
}

static void run_relay(void *arg, uint32_t index)
{
    if (index == 0) {
        produce(arg);
    } else {
        consume(arg);
    }
}

static uint32_t wrong_rounds(relay *self, bool is_untracked)
{
    for (int i = 0; i < SLOTS; i++) {
        self->slots[i] = new_storage_on(TESTED, BYTES, is_untracked);
        fill(current_stream(), self->slots[i], 0);
    }
    CHECK_OK(sp_stream_synchronize(current_stream()));
    self->producer = new_stream();
    test_threads(2, run_relay, self);
    CHECK_OK(sp_device_synchronize(TESTED));
    for (int i = 0; i < SLOTS; i++) CHECK_OK(sp_storage_release(self->slots[i]));
    CHECK_OK(sp_stream_release(self->producer));
    return sp_load_acquire(&self->wrong);
}

TEST(consumers_see_what_producers_submitted_before)
{
    runtime_begin();
    delay_everywhere(); /* before each publish, among other places */
    relay self = {.rounds = (uint32_t)test_count(10000, 10000)};
    CHECK_EQ_U64(wrong_rounds(&self, false), 0);
    runtime_end();
}

TEST(untracked_with_a_missing_wait_gives_wrong_bytes_and_is_reported)
{
    if (is_thread_sanitized() || is_address_sanitized()) SKIP("the race is deliberate");
    runtime_begin();
    expect_reports();
    uint32_t wrong = 0;
    /* Slow builds need slow producers: each try takes longer, until a consumer overtakes one. */
    for (uint64_t fill_ns = 100000; wrong == 0 && fill_ns < SECOND; fill_ns *= 10) {
        relay self = {.rounds = (uint32_t)test_count(10000, 200), .fill_ns = fill_ns};
        if (fill_ns > 100000) self.rounds = 10;
        wrong = wrong_rounds(&self, true);
        test_note("%u of %u rounds saw other bytes", wrong, self.rounds);
    }
    CHECK(wrong > 0); /* otherwise the test above would pass without any tracking */
    runtime_end();    /* the checker, if on, has reported it too */
}

/* ---- one writer, many readers ---- */

#define READERS 31

typedef struct library {
    sp_storage book;
    uint32_t rounds;
    sp_atomic_u32 editions; /* writes submitted */
    sp_atomic_u32 is_done;
    sp_atomic_u32 mixed;
    sp_atomic_u64 reads;
    overlap calls;
} library;

static void overwrite(library *self)
{
    for (uint32_t i = 0; i < self->rounds; i++) {
        const sp_use use = use_of(self->book, SP_WRITE);
        const kernel_constants constants = {.bytes = BYTES, .value = (uint8_t)(i + 1)};
        CHECK_OK(dispatch(current_stream(), &kernel_two_halves, &constants, &use, 1));
        sp_store_release(&self->editions, i + 1);
        if (i % 8 == 0) CHECK_OK(sp_stream_synchronize(current_stream()));
    }
    sp_store_release(&self->is_done, 1);
}

static void read_and_compare(library *self)
{
    const sp_storage own = new_storage(BYTES);
    do {
        overlap_enter(&self->calls);
        overlap_meet(&self->calls);
        copy(current_stream(), own, self->book);
        unsigned char *data;
        CHECK_OK(sp_storage_host_begin(own, SP_READ, (void **)&data));
        for (uint32_t i = 1; i < BYTES; i++) {
            if (data[i] == data[0]) continue;
            raise_by_one(&self->mixed);
            break;
        }
        CHECK_OK(sp_storage_host_end(own, SP_READ));
        sp_fetch_add_relaxed(&self->reads, (uint64_t)1);
        overlap_leave(&self->calls);
    } while (sp_load_acquire(&self->is_done) == 0);
    CHECK_OK(sp_storage_release(own));
}

static void run_library(void *arg, uint32_t index)
{
    if (index == READERS) {
        overwrite(arg);
    } else {
        read_and_compare(arg);
    }
}

TEST(no_reader_of_31_sees_a_mix_while_the_owner_overwrites)
{
    runtime_begin();
    library self = {.rounds = (uint32_t)test_count(20000, 2000), .book = new_storage(BYTES)};
    fill(current_stream(), self.book, 0);
    test_threads(READERS + 1, run_library, &self);
    CHECK_EQ_U64(sp_load_acquire(&self.mixed), 0);
    CHECK_EQ_INT(first_other(self.book, (uint8_t)self.rounds), -1);
    test_note("%u editions, %llu reads", self.rounds,
              (unsigned long long)sp_load_relaxed(&self.reads));
    check_overlap(&self.calls, 2);
    CHECK_OK(sp_storage_release(self.book));
    runtime_end();
}

TEST_MAIN
