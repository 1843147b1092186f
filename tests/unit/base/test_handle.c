/* SPDX-License-Identifier: Apache-2.0 */
/* Handles: misuse of every kind is an error, and an object is destroyed exactly once, after its
 * last use. */
#include "base/handle.h"

#include "base/heap.h"
#include "base/thread.h"
#include "support/test.h"

#define MAX_USERS 65535u
#define MAX_HOLDS 1048574u

typedef struct thing {
    SP_CACHE_ALIGNED sp_object object;
    sp_atomic_u64 payload;   /* the handle of the object's current generation */
    uint64_t plain;          /* written by the creator, read under a hold */
    sp_atomic_u32 destroyed; /* how often objects of the slot were destroyed */
} thing;

static void destroy_thing(sp_object *object);

static sp_handle_table things = {.kind = SP_KIND_EVENT,
                                 .object_bytes = sizeof(thing),
                                 .destroy = destroy_thing,
                                 .lock = SP_MUTEX_INIT(SP_LOCK_HANDLE_TABLE)};
static sp_atomic_u64 destroy_count;
static sp_atomic_u32 keeps_slots; /* destroyed things are not recycled */

static thing *thing_of(sp_object *object)
{
    return SP_CONTAINER_OF(object, thing, object);
}

static void destroy_thing(sp_object *object)
{
    thing *t = thing_of(object);
    t->plain = 0; /* a race if a holder still reads it */
    sp_fetch_add_relaxed(&t->destroyed, 1);
    sp_fetch_add_relaxed(&destroy_count, (uint64_t)1);
    if (sp_load_relaxed(&keeps_slots) == 0) sp__handle_recycle(&things, object);
}

static void start(void)
{
    sp__handle_table_reset(&things);
    sp_store_relaxed(&destroy_count, 0);
    sp_store_relaxed(&keeps_slots, 0);
}

static uint64_t make(void)
{
    sp_object *object = NULL;
    CHECK_OK(sp__handle_acquire(&things, &object));
    if (object == NULL) return 0;
    thing *t = thing_of(object);
    t->plain = 42;
    /* Release, and before the publish: a reader that reads it and then finds the handle current has
     * the payload of that handle. */
    sp_store_release(&t->payload, sp__handle_of(&things, object));
    return sp__handle_publish(&things, object);
}

static uint64_t destroyed(void)
{
    return sp_load_relaxed(&destroy_count);
}

/* ---- misuse ---- */

static void check_refused(uint64_t handle, const char *why)
{
    CHECK(sp__handle_hold(&things, handle, "thing") == NULL);
    CHECK_MESSAGE(why);
    CHECK_MESSAGE("thing");
    CHECK_STATUS(sp__handle_retain(&things, handle, "thing"), SP_INVALID);
    CHECK_MESSAGE(why);
    if (handle != 0) CHECK_STATUS(sp__handle_release(&things, handle, "thing"), SP_INVALID);
    CHECK(sp__handle_peek(&things, handle) == NULL);
}

TEST(the_zero_handle_is_refused_except_by_release)
{
    start();
    check_refused(0, "zero handle");
    CHECK_OK(sp__handle_release(&things, 0, "thing"));
}

TEST(a_released_handle_is_stale)
{
    start();
    const uint64_t handle = make();
    CHECK(handle != 0);
    CHECK_OK(sp__handle_release(&things, handle, "thing"));
    CHECK_EQ_U64(destroyed(), 1);
    for (int i = 0; i < 3; i++) check_refused(handle, "stale");
    CHECK_EQ_U64(destroyed(), 1);
}

TEST(a_handle_of_another_kind_is_refused)
{
    start();
    const uint64_t handle = make();
    for (uint64_t kind = 0; kind < 256; kind++) {
        if (kind == SP_KIND_EVENT) continue;
        const uint64_t foreign = (handle & (UINT64_MAX >> 8)) | kind << 56;
        CHECK_EQ_U64(sp__handle_kind(foreign), kind);
        check_refused(foreign, "no thing handle");
    }
    CHECK_OK(sp__handle_release(&things, handle, "thing"));
}

TEST(every_single_forged_bit_is_noticed)
{
    start();
    uint64_t handles[100];
    for (int i = 0; i < 100; i++) handles[i] = make();
    for (int bit = 28; bit < 56; bit++) { /* bits of the generation: all are in the first one */
        check_refused(handles[0] ^ UINT64_C(1) << bit, "stale");
    }
    for (int bit = 8; bit < 28; bit++) { /* bits of the slot: fewer slots exist */
        check_refused(handles[0] ^ UINT64_C(1) << bit, "stale");
    }
    for (int i = 0; i < 100; i++) CHECK_OK(sp__handle_release(&things, handles[i], "thing"));
    CHECK_EQ_U64(destroyed(), 100);
}

TEST(random_numbers_are_no_handles)
{
    start();
    uint64_t kept[64];
    for (int i = 0; i < 64; i++) kept[i] = make();
    for (int i = 0; i < 64; i += 2) CHECK_OK(sp__handle_release(&things, kept[i], "thing"));
    uint64_t x = 88172645463325252u; /* G. Marsaglia, xorshift64 */
    const uint64_t rounds = test_count(10000000, 300000);
    uint64_t hits = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        /* Half of them of the right kind, a quarter with a slot that exists. */
        uint64_t handle = x;
        if (i % 2 == 0) handle = (x >> 8) | (uint64_t)SP_KIND_EVENT << 56;
        if (i % 4 == 0) handle &= ~UINT64_C(0xfffff80);
        sp_object *object = sp__handle_hold(&things, handle, "thing");
        if (object == NULL) continue;
        hits++; /* possible: then it is an existing handle */
        CHECK_EQ_U64(sp__handle_of(&things, object), handle);
        sp__object_drop(&things, object);
    }
    CHECK(hits < 10);
    CHECK_EQ_U64(destroyed(), 32);
}

/* ---- life cycle ---- */

TEST(a_slot_is_used_again_under_another_handle)
{
    start();
    const uint64_t first = make();
    CHECK_OK(sp__handle_release(&things, first, "thing"));
    const uint64_t second = make();
    CHECK(first != second);
    CHECK_EQ_U64(first & 0xfffffff, second & 0xfffffff);
    check_refused(first, "stale");
    CHECK(sp__handle_peek(&things, second) != NULL);
    CHECK_OK(sp__handle_release(&things, second, "thing"));
    check_refused(first, "stale");
    check_refused(second, "stale");
}

/* The effect of 2^28 - 2 creates and releases. */
static void age(sp_object *object)
{
    sp_store_relaxed(&object->word, ((UINT64_C(1) << 28) - 1) << 36);
}

TEST(a_slot_is_spent_after_its_last_generation_and_no_handle_comes_twice)
{
    start();
    const uint64_t first = make();
    CHECK_OK(sp__handle_release(&things, first, "thing"));
    sp_object *object = NULL;
    REQUIRE_OK(sp__handle_acquire(&things, &object));
    CHECK(!sp__handle_is_spent(object));
    age(object);
    const uint64_t last = sp__handle_publish(&things, object);
    CHECK_EQ_U64(last >> 28 & 0xfffffff, 0xfffffff);
    CHECK_OK(sp__handle_release(&things, last, "thing"));
    CHECK(sp__handle_is_spent(object));
    check_refused(last, "stale");
    for (int i = 0; i < 1000; i++) {
        const uint64_t next = make();
        CHECK(((first ^ next) & 0xfffffff) != 0); /* another slot */
        check_refused(first, "stale");
        CHECK_OK(sp__handle_release(&things, next, "thing"));
    }
}

TEST(many_objects_at_once_each_have_a_handle_of_their_own)
{
    start();
    enum { COUNT = 1000 }; /* several chunks */
    static uint64_t handles[COUNT];
    for (int i = 0; i < COUNT; i++) handles[i] = make();
    for (int i = 0; i < COUNT; i++) {
        sp_object *object = sp__handle_hold(&things, handles[i], "thing");
        REQUIRE(object != NULL);
        CHECK_EQ_U64(sp_load_relaxed(&thing_of(object)->payload), handles[i]);
        CHECK_EQ_U64((uintptr_t)object % SP_CACHE_LINE, 0);
        sp__object_drop(&things, object);
    }
    for (int i = 0; i < COUNT; i++) CHECK_OK(sp__handle_release(&things, handles[i], "thing"));
    CHECK_EQ_U64(destroyed(), COUNT);
}

/* The number of objects that a walk visits. */
static uint32_t walk(void)
{
    uint32_t count = 0;
    sp_object *object;
    for (uint32_t slot = 0; sp__handle_hold_slot(&things, slot, &object); slot++) {
        if (object == NULL) continue;
        CHECK_EQ_U64(thing_of(object)->plain, 42);
        sp__object_drop(&things, object);
        count++;
    }
    return count;
}

TEST(a_walk_meets_every_object_that_lives)
{
    start();
    CHECK_EQ_U64(walk(), 0);
    uint64_t handles[100];
    for (int i = 0; i < 100; i++) handles[i] = make();
    CHECK_EQ_U64(walk(), 100);
    sp_object *held = sp__handle_hold(&things, handles[7], "thing");
    for (int i = 0; i < 50; i++) CHECK_OK(sp__handle_release(&things, handles[i], "thing"));
    CHECK_EQ_U64(walk(), 51); /* one is only held */
    sp__object_drop(&things, held);
    CHECK_EQ_U64(walk(), 50);
    for (int i = 50; i < 100; i++) CHECK_OK(sp__handle_release(&things, handles[i], "thing"));
    CHECK_EQ_U64(destroyed(), 100);
}

TEST(a_hold_keeps_a_released_object_until_it_is_dropped)
{
    start();
    const uint64_t handle = make();
    sp_object *object = sp__handle_hold(&things, handle, "thing");
    REQUIRE(object != NULL);
    sp__object_hold(object);
    CHECK_OK(sp__handle_release(&things, handle, "thing"));
    check_refused(handle, "stale"); /* stale for users */
    CHECK_EQ_U64(destroyed(), 0);
    CHECK_EQ_U64(thing_of(object)->plain, 42);
    sp__object_drop(&things, object);
    CHECK_EQ_U64(destroyed(), 0);
    sp__object_drop(&things, object);
    CHECK_EQ_U64(destroyed(), 1);
}

TEST(the_last_hold_can_be_kept_for_where_it_may_destroy)
{
    start();
    const uint64_t handle = make();
    sp_object *object = sp__handle_hold(&things, handle, "thing");
    REQUIRE(object != NULL);
    CHECK(sp__object_drop_unless_last(object)); /* the user's reference remains */
    CHECK(!sp__object_drop_unless_last(object));
    object = sp__handle_hold(&things, handle, "thing");
    CHECK_OK(sp__handle_release(&things, handle, "thing"));
    CHECK(!sp__object_drop_unless_last(object));
    CHECK_EQ_U64(destroyed(), 0);
    sp__object_drop(&things, object);
    CHECK_EQ_U64(destroyed(), 1);
}

TEST(a_hold_that_comes_with_the_handle_survives_every_release)
{
    start();
    sp_object *object;
    REQUIRE_OK(sp__handle_acquire(&things, &object));
    const uint64_t handle = sp__handle_publish_held(&things, object);
    CHECK_OK(sp__handle_release(&things, handle, "thing"));
    CHECK_EQ_U64(destroyed(), 0);
    sp__object_drop(&things, object);
    CHECK_EQ_U64(destroyed(), 1);
}

TEST(an_object_lives_as_long_as_its_last_reference)
{
    start();
    const uint64_t handle = make();
    CHECK_OK(sp__handle_retain(&things, handle, "thing"));
    CHECK_OK(sp__handle_retain(&things, handle, "thing"));
    CHECK_OK(sp__handle_release(&things, handle, "thing"));
    CHECK_OK(sp__handle_release(&things, handle, "thing"));
    CHECK_EQ_U64(destroyed(), 0);
    CHECK_OK(sp__handle_release(&things, handle, "thing"));
    CHECK_EQ_U64(destroyed(), 1);
    check_refused(handle, "stale");
}

TEST(references_are_limited_and_the_limit_loses_none)
{
    start();
    const uint64_t handle = make();
    for (uint32_t i = 1; i < MAX_USERS; i++) {
        REQUIRE_OK(sp__handle_retain(&things, handle, "thing"));
    }
    CHECK_STATUS(sp__handle_retain(&things, handle, "thing"), SP_EXHAUSTED);
    CHECK_MESSAGE("65535");
    for (uint32_t i = 0; i < MAX_USERS; i++) {
        CHECK_EQ_U64(destroyed(), 0);
        REQUIRE_OK(sp__handle_release(&things, handle, "thing"));
    }
    CHECK_EQ_U64(destroyed(), 1);
    CHECK_STATUS(sp__handle_release(&things, handle, "thing"), SP_INVALID);
}

TEST(holds_are_limited_and_the_limit_loses_none)
{
    start();
    const uint64_t handle = make();
    sp_object *object = NULL;
    for (uint32_t i = 1; i < MAX_HOLDS; i++) {
        object = sp__handle_hold(&things, handle, "thing");
        REQUIRE(object != NULL);
    }
    CHECK(sp__handle_hold(&things, handle, "thing") == NULL);
    CHECK_MESSAGE("1048574 times");
    CHECK_OK(sp__handle_release(&things, handle, "thing"));
    for (uint32_t i = 1; i < MAX_HOLDS; i++) {
        CHECK_EQ_U64(destroyed(), 0);
        sp__object_drop(&things, object);
    }
    CHECK_EQ_U64(destroyed(), 1);
}

TEST(a_destroyer_may_keep_the_object_and_publish_it_again)
{
    start();
    sp_store_relaxed(&keeps_slots, 1);
    const uint64_t first = make();
    sp_object *object = sp__handle_peek(&things, first);
    CHECK_OK(sp__handle_release(&things, first, "thing"));
    CHECK_EQ_U64(destroyed(), 1);
    const uint64_t second = sp__handle_publish(&things, object);
    check_refused(first, "stale");
    CHECK(sp__handle_peek(&things, second) == object);
    sp_store_relaxed(&keeps_slots, 0);
    CHECK_OK(sp__handle_release(&things, second, "thing"));
}

TEST(without_memory_or_slots_there_is_no_object_and_nothing_changed)
{
    start();
    sp_object *object = NULL;
    sp_heap_fail_after(0);
    CHECK_STATUS(sp__handle_acquire(&things, &object), SP_OUT_OF_MEMORY);
    sp_heap_fail_after(UINT64_MAX);
    CHECK(object == NULL);
    sp_mutex_lock(&things.lock);
    things.slot_count = (1u << 28) - 64; /* as if that many were alive */
    sp_mutex_unlock(&things.lock);
    CHECK_STATUS(sp__handle_acquire(&things, &object), SP_EXHAUSTED);
    CHECK_MESSAGE("are alive");
    sp_mutex_lock(&things.lock);
    things.slot_count = 0;
    sp_mutex_unlock(&things.lock);
    const uint64_t handle = make();
    CHECK_OK(sp__handle_release(&things, handle, "thing"));
}

/* ---- threads ---- */

#define THREADS 8

typedef struct contest {
    sp_atomic_u64 handle;
    sp_atomic_u64 released; /* releases that succeeded */
    uint64_t rounds;
} contest;

/* Many threads hold and drop while as many release the one reference: one release succeeds, the
 * object is destroyed once, and never while a thread holds it. */
static void hold_while_it_dies(void *arg, uint32_t index)
{
    contest *c = arg;
    const uint64_t handle = sp_load_relaxed(&c->handle);
    for (uint32_t i = 0; i < 20 + index; i++) {
        sp_object *object = sp__handle_hold(&things, handle, "thing");
        if (object == NULL) break;
        REQUIRE_EQ_U64(thing_of(object)->plain, 42);
        if (i % 3 == 0) {
            sp__object_hold(object);
            sp__object_drop(&things, object);
        }
        REQUIRE_EQ_U64(sp_load_relaxed(&thing_of(object)->payload), handle);
        sp__object_drop(&things, object);
    }
    if (sp__handle_release(&things, handle, "thing") == SP_OK) {
        sp_fetch_add_relaxed(&c->released, (uint64_t)1);
    }
}

TEST(an_object_that_all_release_and_hold_at_once_dies_once)
{
    start();
    contest c = {.rounds = test_count(20000, 500)};
    for (uint64_t i = 0; i < c.rounds; i++) {
        sp_store_relaxed(&c.handle, make());
        test_threads(THREADS, hold_while_it_dies, &c);
        REQUIRE_EQ_U64(sp_load_relaxed(&c.released), i + 1);
        REQUIRE_EQ_U64(destroyed(), i + 1);
    }
}

static void retain_and_release(void *arg, uint32_t index)
{
    contest *c = arg;
    const uint64_t handle = sp_load_relaxed(&c->handle);
    for (uint64_t i = 0; i < c->rounds; i++) {
        REQUIRE_OK(sp__handle_retain(&things, handle, "thing"));
        sp_object *object = (i + index) % 2 == 0 ? sp__handle_hold(&things, handle, "thing") : NULL;
        REQUIRE_OK(sp__handle_release(&things, handle, "thing"));
        if (object != NULL) sp__object_drop(&things, object);
    }
    REQUIRE_OK(sp__handle_release(&things, handle, "thing"));
}

TEST(references_of_many_threads_add_up)
{
    start();
    contest c = {.rounds = test_count(500000, 20000)};
    sp_store_relaxed(&c.handle, make());
    for (uint32_t i = 1; i < THREADS; i++) {
        CHECK_OK(sp__handle_retain(&things, sp_load_relaxed(&c.handle), "thing"));
    }
    test_threads(THREADS, retain_and_release, &c);
    CHECK_EQ_U64(destroyed(), 1);
}

static void make_and_release(void *arg, uint32_t index)
{
    (void)index;
    contest *c = arg;
    for (uint64_t i = 0; i < c->rounds; i++) {
        uint64_t handles[5];
        for (uint64_t k = 0; k < 1 + i % 5; k++) handles[k] = make();
        for (uint64_t k = 0; k < 1 + i % 5; k++) {
            sp_object *object = sp__handle_hold(&things, handles[k], "thing");
            REQUIRE(object != NULL);
            REQUIRE_EQ_U64(sp_load_relaxed(&thing_of(object)->payload), handles[k]);
            REQUIRE_OK(sp__handle_release(&things, handles[k], "thing"));
            sp__object_drop(&things, object);
        }
    }
}

TEST(threads_that_make_and_release_never_meet_in_a_slot)
{
    start();
    contest c = {.rounds = test_count(200000, 5000)};
    test_threads(THREADS, make_and_release, &c);
    CHECK_EQ_U64(destroyed(), THREADS * (c.rounds / 5 * 15));
}

/* One thread creates and destroys objects in one slot, the others peek: a payload counts only if
 * the handle is still current after it was read, and then it must be that handle's. */
static void peek_at_lives(void *arg, uint32_t index)
{
    contest *c = arg;
    if (index == 0) {
        for (uint64_t i = 0; i < c->rounds; i++) {
            const uint64_t handle = make();
            sp_store_release(&c->handle, handle);
            if (i % 4096 == 0) sp_thread_yield(); /* to spinning readers: costs a slice each */
            REQUIRE_OK(sp__handle_release(&things, handle, "thing"));
        }
        sp_store_release(&c->handle, 0);
        return;
    }
    uint64_t handle;
    while ((handle = sp_load_acquire(&c->handle)) != 0) {
        sp_object *object = sp__handle_peek(&things, handle);
        if (object == NULL) continue;
        const uint64_t payload = sp_load_acquire(&thing_of(object)->payload);
        if (!sp__handle_is_current(object, handle)) continue;
        REQUIRE_EQ_U64(payload, handle);
        sp_fetch_add_relaxed(&c->released, (uint64_t)1);
    }
}

TEST(what_a_peek_reads_of_a_current_handle_belongs_to_that_life)
{
    start();
    contest c = {.rounds = test_count(2000000, 200000)};
    sp_store_relaxed(&c.handle, make()); /* so that the readers do not end at once */
    const uint64_t first = sp_load_relaxed(&c.handle);
    test_threads(4, peek_at_lives, &c);
    test_note("%llu peeks met the life they asked for",
              (unsigned long long)sp_load_relaxed(&c.released));
    CHECK(sp_load_relaxed(&c.released) > 0);
    CHECK_OK(sp__handle_release(&things, first, "thing"));
}

TEST_MAIN
