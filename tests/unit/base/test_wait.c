/* SPDX-License-Identifier: Apache-2.0 */
/* Waits on a word, and parking. */
#include "base/wait.h"

#include "base/backoff.h"
#include "base/clock.h"
#include "base/pages.h"
#include "base/thread.h"
#include "support/test.h"

#define MS UINT64_C(1000000)

TEST(a_wait_for_a_word_that_changed_already_returns_at_once)
{
    sp_atomic_u32 word = {5};
    CHECK(sp_word_wait(&word, 4, SP_NO_DEADLINE));
    CHECK(sp_word_wait(&word, 4, sp_clock_now() + 60000 * MS));
}

TEST(a_wait_for_a_word_ends_at_its_deadline)
{
    sp_atomic_u32 word = {5};
    CHECK(!sp_word_wait(&word, 5, 0));
    const uint64_t start = sp_clock_now();
    while (sp_word_wait(&word, 5, start + 20 * MS)) {
    }
    const uint64_t waited = sp_clock_now() - start;
    CHECK(waited >= 20 * MS && waited < 2000 * MS);
}

typedef struct sleepers {
    sp_atomic_u32 word;
    sp_atomic_u32 asleep, awake;
} sleepers;

static void sleep_on_word(void *arg, uint32_t index)
{
    sleepers *s = arg;
    if (index == 0) { /* the waker */
        while (sp_load_acquire(&s->asleep) < 6) sp_thread_yield();
        sp_clock_sleep(2 * MS);
        sp_store_release(&s->word, 1);
        sp_word_wake(&s->word, SP_WAKE_ALL);
        return;
    }
    sp_fetch_add_acq_rel(&s->asleep, 1);
    while (sp_load_acquire(&s->word) == 0) sp_word_wait(&s->word, 0, SP_NO_DEADLINE);
    sp_fetch_add_acq_rel(&s->awake, 1);
}

TEST(waking_all_wakes_everybody)
{
    for (int i = 0; i < 10; i++) {
        sleepers s = {.word = {0}};
        test_threads(7, sleep_on_word, &s);
        CHECK_EQ_U64(sp_load_relaxed(&s.awake), 6);
    }
}

static void take_one_wake_up(void *arg, uint32_t index)
{
    sleepers *s = arg;
    if (index == 0) {
        /* One wake-up at a time until all have left: none may be lost, however few are sent. */
        while (sp_load_acquire(&s->awake) < 4) {
            sp_word_wake(&s->word, 1);
            sp_thread_yield();
        }
        return;
    }
    while (!sp_word_wait(&s->word, 0, sp_clock_now() + 60000 * MS)) {
    }
    sp_fetch_add_acq_rel(&s->awake, 1);
}

TEST(waking_one_at_a_time_wakes_everybody_in_the_end)
{
    sleepers s = {.word = {0}};
    test_threads(5, take_one_wake_up, &s);
    CHECK_EQ_U64(sp_load_relaxed(&s.awake), 4);
}

/* ---- parking ---- */

TEST(a_token_that_came_first_is_kept)
{
    sp_parker parker = {{0}};
    sp_parker_unpark(&parker);
    CHECK(sp_parker_park(&parker, SP_NO_DEADLINE));
    sp_parker_unpark(&parker);
    CHECK(sp_parker_park(&parker, 0)); /* even past the deadline */
}

TEST(two_unparks_are_one_token)
{
    sp_parker parker = {{0}};
    sp_parker_unpark(&parker);
    sp_parker_unpark(&parker);
    CHECK(sp_parker_park(&parker, 0));
    CHECK(!sp_parker_park(&parker, 0));
}

TEST(parking_ends_at_its_deadline_and_leaves_the_spot_empty)
{
    sp_parker parker = {{0}};
    for (int i = 0; i < 3; i++) {
        const uint64_t start = sp_clock_now();
        CHECK(!sp_parker_park(&parker, start + 10 * MS));
        const uint64_t waited = sp_clock_now() - start;
        CHECK(waited >= 10 * MS && waited < 2000 * MS);
        CHECK_EQ_U64(sp_load_relaxed(&parker.word), 0);
    }
}

typedef struct ping_pong {
    sp_parker parkers[2];
    uint64_t rounds;
    uint64_t ball; /* plain: published by the parkers */
} ping_pong;

static void play(void *arg, uint32_t index)
{
    ping_pong *game = arg;
    for (uint64_t i = 0; i < game->rounds; i++) {
        if (index == 0) {
            game->ball++;
            sp_parker_unpark(&game->parkers[1]);
        }
        REQUIRE(sp_parker_park(&game->parkers[index], SP_NO_DEADLINE));
        REQUIRE_EQ_U64(game->ball, index == 0 ? 2 * (i + 1) : 2 * i + 1);
        if (index == 1) {
            game->ball++;
            sp_parker_unpark(&game->parkers[0]);
        }
    }
}

TEST(two_threads_play_ping_pong_and_lose_no_ball)
{
    ping_pong game = {.rounds = test_count(1000000, 100000)};
    const uint64_t start = sp_clock_now();
    test_threads(2, play, &game);
    CHECK_EQ_U64(game.ball, 2 * game.rounds);
    test_note("%llu rounds, %llu ns each", (unsigned long long)game.rounds,
              (unsigned long long)((sp_clock_now() - start) / game.rounds));
}

typedef struct race {
    sp_parker parker;
    sp_atomic_u64 sent, received;
    sp_atomic_u32 is_over;
    uint64_t rounds;
} race;

static void race_tokens(void *arg, uint32_t index)
{
    race *r = arg;
    if (index == 0) {
        for (uint64_t i = 0; i < r->rounds; i++) {
            sp_fetch_add_release(&r->sent, (uint64_t)1);
            sp_parker_unpark(&r->parker);
            sp_backoff backoff = {0}; /* the other thread may need this one's processor */
            while (sp_load_acquire(&r->received) < sp_load_relaxed(&r->sent)) {
                sp_backoff_turn(&backoff);
            }
            for (uint64_t turn = 0; turn < i % 64; turn++) sp_spin_hint();
        }
        sp_store_release(&r->is_over, 1);
        sp_parker_unpark(&r->parker);
        return;
    }
    /* Time-outs of all lengths, so that they coincide with tokens at every step of the protocol. */
    for (uint64_t i = 0;; i++) {
        const bool is_token = sp_parker_park(&r->parker, sp_clock_now() + i % 5000);
        if (!is_token) continue;
        if (sp_load_acquire(&r->is_over) != 0) return;
        /* Each token is new, and all that was sent before it is visible. */
        const uint64_t sent = sp_load_acquire(&r->sent);
        CHECK_EQ_U64(sp_fetch_add_release(&r->received, (uint64_t)1) + 1, sent);
    }
}

TEST(tokens_that_race_with_time_outs_are_neither_lost_nor_doubled)
{
    race r = {.rounds = test_count(200000, 10000)};
    test_threads(2, race_tokens, &r);
    CHECK_EQ_U64(sp_load_relaxed(&r.received), r.rounds);
}

typedef struct vanishing {
    SP_ATOMIC(sp_parker *) current;
    uint64_t rounds;
} vanishing;

static void park_on_pages_that_go(void *arg, uint32_t index)
{
    vanishing *v = arg;
    for (uint64_t i = 0; i < v->rounds; i++) {
        if (index == 0) {
            sp_parker *parker = sp_pages_map(4096);
            REQUIRE(parker != NULL);
            sp_store_release(&v->current, parker);
            CHECK(sp_parker_park(parker, SP_NO_DEADLINE));
            sp_pages_unmap(parker, 4096);
        } else {
            sp_parker *parker;
            sp_backoff backoff = {0};
            while ((parker = sp_exchange_acq_rel(&v->current, NULL)) == NULL) {
                sp_backoff_turn(&backoff);
            }
            sp_parker_unpark(parker);
        }
    }
}

TEST(the_owner_may_unmap_its_spot_as_soon_as_it_has_the_token)
{
    vanishing v = {.rounds = test_count(100000, 5000)};
    test_threads(2, park_on_pages_that_go, &v);
}

TEST_MAIN
