/* SPDX-License-Identifier: Apache-2.0 */
/* The lock-free stack of slot numbers. */
#include "base/tagged_stack.h"

#include "support/test.h"

#define SLOTS 16

typedef struct slots {
    sp_tagged_stack stack;
    sp_atomic_u32 links[SLOTS];
    uint32_t owner[SLOTS]; /* plain: the owner of the slot; two owners are a race */
    uint32_t uses[SLOTS];
    uint64_t rounds;
    sp_atomic_u64 total;
} slots;

static sp_atomic_u32 *link_of(void *ctx, uint32_t slot)
{
    return &((slots *)ctx)->links[slot];
}

static void push(slots *s, uint32_t slot)
{
    sp_tagged_stack_push(&s->stack, link_of, s, slot);
}

static bool pop(slots *s, uint32_t *slot)
{
    return sp_tagged_stack_pop(&s->stack, link_of, s, slot);
}

TEST(an_empty_stack_gives_nothing)
{
    slots s = {.rounds = 0};
    uint32_t slot = 99;
    CHECK(!pop(&s, &slot));
    CHECK_EQ_U64(slot, 99);
    push(&s, 3);
    CHECK(pop(&s, &slot));
    CHECK(!pop(&s, &slot));
}

TEST(the_last_one_in_is_the_first_one_out)
{
    slots s = {.rounds = 0};
    for (uint32_t i = 0; i < SLOTS; i++) push(&s, i);
    for (uint32_t i = SLOTS; i-- > 0;) {
        uint32_t slot = 99;
        CHECK(pop(&s, &slot));
        CHECK_EQ_U64(slot, i);
    }
}

TEST(the_same_top_after_a_pop_and_a_push_is_another_head)
{
    slots s = {.rounds = 0};
    push(&s, 0);
    push(&s, 1);
    const uint64_t seen = sp_load_relaxed(&s.stack.head);
    uint32_t first = 99;
    uint32_t second = 99;
    CHECK(pop(&s, &first));
    CHECK(pop(&s, &second));
    push(&s, first); /* slot 0 is now owned: a slow pop must not make it the top */
    const uint64_t now = sp_load_relaxed(&s.stack.head);
    CHECK_EQ_U64((uint32_t)now, (uint32_t)seen);
    CHECK(now != seen);
}

TEST(the_tag_may_wrap)
{
    slots s = {.stack = {{UINT64_C(0xffffffff) << 32}}};
    uint32_t slot = 99;
    push(&s, 5);
    CHECK(pop(&s, &slot));
    CHECK_EQ_U64(slot, 5);
    CHECK_EQ_U64(sp_load_relaxed(&s.stack.head), 0);
}

static void take_and_give(void *arg, uint32_t index)
{
    slots *s = arg;
    for (uint64_t i = 0; i < s->rounds; i++) {
        uint32_t mine[3];
        uint32_t count = 0;
        while (count < 1 + i % 3 && pop(s, &mine[count])) count++;
        for (uint32_t k = 0; k < count; k++) {
            REQUIRE_EQ_U64(s->owner[mine[k]], 0);
            s->owner[mine[k]] = index + 1;
            s->uses[mine[k]]++;
        }
        if (i % 16 == 0) sp_thread_yield();
        for (uint32_t k = 0; k < count; k++) {
            REQUIRE_EQ_U64(s->owner[mine[k]], index + 1);
            s->owner[mine[k]] = 0;
            push(s, mine[k]);
        }
        sp_fetch_add_relaxed(&s->total, (uint64_t)count);
    }
}

TEST(slots_are_conserved_under_eight_threads)
{
    static slots s;
    s = (slots){.rounds = test_count(500000, 30000)};
    for (uint32_t i = 0; i < SLOTS; i++) push(&s, i);
    test_threads(8, take_and_give, &s);
    bool is_seen[SLOTS] = {false};
    uint64_t uses = 0;
    uint32_t slot;
    while (pop(&s, &slot)) {
        REQUIRE(slot < SLOTS);
        CHECK(!is_seen[slot]);
        is_seen[slot] = true;
        uses += s.uses[slot];
    }
    for (uint32_t i = 0; i < SLOTS; i++) CHECK(is_seen[i]);
    CHECK_EQ_U64(uses, sp_load_relaxed(&s.total));
}

TEST_MAIN
