/* SPDX-License-Identifier: Apache-2.0 */
/* 31 threads allocate random sizes on random streams, for random durations, and pass storages to
 * each other. Every byte is verified before a storage is destroyed, many are destroyed with work in
 * flight, and between the phases, when no thread is inside, the figures are compared with the
 * test's own ledger. */
#include "stress.h"

#define THREADS 31
#define SLOTS 12
#define MAILBOXES 64
#define SHARED_STREAMS 6
#define PHASES 5
#define MOST_BYTES (3u << 20) /* larger than a slab of small blocks */
#define HELD_BLOCKS 200

/* The contents of a storage follow from its pattern, so that any thread can verify it. */
typedef struct block {
    sp_storage storage;
    uint64_t bytes;
    uint8_t pattern;
} block;

typedef struct mailbox {
    sp_mutex lock;
    block content SP_GUARDED_BY(lock);
} mailbox;

typedef struct stress {
    sp_stream shared[SHARED_STREAMS];
    block slots[THREADS][SLOTS]; /* one row per thread, kept between phases */
    mailbox mailboxes[MAILBOXES];
    uint64_t random[THREADS];
    uint32_t rounds;
    overlap calls;
    sp_atomic_u32 finished; /* threads, in this phase */
    uint64_t trimmed_bytes; /* returned while others allocated */
    bool may_run_out;       /* of memory: a limit is set */
    sp_stream held;         /* waits for the host's access to `key` */
    block key, sink;
    /* The ledger. */
    sp_atomic_i64 in_use_bytes;
    sp_atomic_u64 allocations, frees, verified_bytes, refused;
} stress;

static int64_t rounded(uint64_t bytes)
{
    uint32_t size_class;
    uint64_t size = 0;
    CHECK(sp__size_class_of(bytes, &size_class, &size));
    return (int64_t)size;
}

static uint64_t random_size(uint64_t *random)
{
    if (random_next(random) % 64 == 0) return random_next(random) % MOST_BYTES;
    const uint32_t shift = random_next(random) % 15; /* up to 32 KiB, small ones as often */
    return random_next(random) % (2u << shift);
}

/* False if memory runs out. */
static bool make(stress *all, block *made)
{
    const sp_status status = sp_storage_create(TESTED, made->bytes, NULL, &made->storage);
    if (status == SP_OUT_OF_MEMORY && all->may_run_out) {
        sp_fetch_add_relaxed(&all->refused, (uint64_t)1);
        return false;
    }
    CHECK_OK(status);
    sp_fetch_add_relaxed(&all->in_use_bytes, rounded(made->bytes));
    sp_fetch_add_relaxed(&all->allocations, (uint64_t)1);
    return true;
}

static void release(stress *all, block *old)
{
    sp_fetch_sub_relaxed(&all->in_use_bytes, rounded(old->bytes));
    sp_fetch_add_relaxed(&all->frees, (uint64_t)1);
    CHECK_OK(sp_storage_release(old->storage));
    *old = (block){.storage = {0}};
}

static void verify(stress *all, const block *used)
{
    CHECK_EQ_INT(first_other(used->storage, used->pattern), -1);
    sp_fetch_add_relaxed(&all->verified_bytes, used->bytes);
}

static void verify_and_release(stress *all, block *old)
{
    verify(all, old);
    release(all, old);
}

static sp_stream random_shared(const stress *all, uint64_t *random)
{
    return all->shared[random_next(random) % SHARED_STREAMS];
}

/* Created and filled, possibly on different streams; zeroed if memory runs out. */
static block create(stress *all, uint64_t *random)
{
    block made = {.bytes = random_size(random), .pattern = (uint8_t)random_next(random)};
    const sp_stream maker = random_shared(all, random);
    const sp_stream filler =
        random_next(random) % 2 == 0 ? current_stream() : random_shared(all, random);
    sp_stream_guard guard;
    CHECK_OK(sp_stream_guard_begin(maker, &guard));
    const bool is_made = make(all, &made);
    CHECK_OK(sp_stream_guard_end(&guard));
    if (!is_made) return (block){.storage = {0}};
    fill(filler, made.storage, made.pattern);
    return made;
}

static void exchange(stress *all, block *mine, uint32_t at)
{
    mailbox *box = &all->mailboxes[at];
    sp_mutex_lock(&box->lock);
    const block theirs = box->content;
    box->content = *mine;
    sp_mutex_unlock(&box->lock);
    *mine = theirs;
}

/* A read in flight when the storage is destroyed: the next write to the memory must wait for it. */
static void release_while_read(stress *all, block *old, uint64_t *random)
{
    block copied = {.bytes = old->bytes, .pattern = old->pattern};
    if (!make(all, &copied)) return;
    copy(random_shared(all, random), copied.storage, old->storage);
    release(all, old);
    verify_and_release(all, &copied);
}

/* A write in flight: it must not reach the memory's next storage. */
static void release_while_written(stress *all, block *old, uint64_t *random)
{
    verify(all, old);
    fill(random_shared(all, random), old->storage, (uint8_t)~old->pattern);
    release(all, old);
}

/* Reads on two streams, so that the memory belongs to neither stream when the storage is
 * destroyed. */
static void release_while_read_twice(stress *all, block *old, uint64_t *random)
{
    block copies[2] = {*old, *old};
    for (int i = 0; i < 2; i++) {
        if (make(all, &copies[i])) {
            copy(random_shared(all, random), copies[i].storage, old->storage);
        } else {
            copies[i].storage.bits = 0;
        }
    }
    release(all, old);
    for (int i = 0; i < 2; i++) {
        if (copies[i].storage.bits != 0) verify_and_release(all, &copies[i]);
    }
}

static void end_life(stress *all, block *old, uint64_t *random)
{
    switch (random_next(random) % 5) {
    case 0:
        release_while_read(all, old, random);
        break;
    case 1:
        release_while_written(all, old, random);
        break;
    case 2:
        release_while_read_twice(all, old, random);
        break;
    default:
        verify_and_release(all, old);
        break;
    }
}

/* Trims memory while the others allocate. */
static void trim_until_finished(stress *all)
{
    sp_allocator *allocator = &rt_device(TESTED)->allocator;
    do {
        all->trimmed_bytes += sp__allocator_trim(allocator, UINT64_MAX, true);
        sp_thread_yield();
    } while (sp_load_acquire(&all->finished) < THREADS);
}

static void run_phase(void *arg, uint32_t index)
{
    stress *all = arg;
    if (index == THREADS) {
        trim_until_finished(all);
        return;
    }
    uint64_t *random = &all->random[index];
    for (uint32_t i = 0; i < all->rounds; i++) {
        block *slot = &all->slots[index][random_next(random) % SLOTS];
        overlap_enter(&all->calls);
        if (i == 0) overlap_meet(&all->calls);
        if (slot->storage.bits == 0) {
            *slot = create(all, random);
        } else if (random_next(random) % 4 == 0) {
            exchange(all, slot, random_next(random) % MAILBOXES);
        } else {
            end_life(all, slot, random);
        }
        overlap_leave(&all->calls);
    }
    raise_by_one(&all->finished);
}

static void compare(stress *all)
{
    const sp_memory_stats stats = stats_of(TESTED);
    CHECK_EQ_U64(stats.in_use_bytes, (uint64_t)sp_load_relaxed(&all->in_use_bytes));
    CHECK_EQ_U64(stats.allocations, sp_load_relaxed(&all->allocations));
    CHECK_EQ_U64(stats.frees, sp_load_relaxed(&all->frees));
    const bool is_consistent = sp__allocator_check(&rt_device(TESTED)->allocator);
    CHECK(is_consistent);
    if (!is_consistent) test_note("%s", sp_last_error());
}

static void release_rest(stress *all)
{
    for (int i = 0; i < THREADS * SLOTS; i++) {
        block *left = &all->slots[i / SLOTS][i % SLOTS];
        if (left->storage.bits != 0) verify_and_release(all, left);
    }
    for (int i = 0; i < MAILBOXES; i++) {
        block left = {.storage = {0}};
        exchange(all, &left, (uint32_t)i);
        if (left.storage.bits != 0) verify_and_release(all, &left);
        sp_mutex_deinit(&all->mailboxes[i].lock);
    }
}

typedef enum stress_kind { STRESS_PLAIN, STRESS_TRIMMED, STRESS_LIMITED, STRESS_HELD } stress_kind;

static void touch(sp_stream stream, sp_storage to, sp_storage from)
{
    CHECK_OK(sp_storage_copy_async(stream, (sp_storage_range){to, 0, 1},
                                   (sp_storage_range){from, 0, 1}));
}

/* Creates memory of all sizes that is pending, and belongs to no stream, until let_go. */
static void hold_memory(stress *all)
{
    uint64_t random = random_seed(THREADS);
    void *data;
    all->held = new_stream();
    all->key = all->sink = (block){.bytes = 64};
    CHECK(make(all, &all->key) && make(all, &all->sink));
    CHECK_OK(sp_storage_host_begin(all->key.storage, SP_WRITE, &data));
    for (int i = 0; i < HELD_BLOCKS; i++) {
        block held = {.bytes = 1 + random_size(&random)};
        CHECK(make(all, &held));
        touch(all->held, all->key.storage, held.storage);
        touch(all->shared[i % SHARED_STREAMS], all->sink.storage, held.storage);
        release(all, &held);
    }
}

static void let_go(stress *all)
{
    CHECK_STATUS(sp_stream_query(all->held), SP_NOT_READY);
    CHECK_OK(sp_storage_host_end(all->key.storage, SP_WRITE));
    CHECK_OK(sp_stream_synchronize(all->held));
    release(all, &all->key);
    release(all, &all->sink);
    CHECK_OK(sp_stream_release(all->held));
}

/* Sets the limit to half of the memory in use after the first phase, so that later phases run out
 * of memory. */
static void limit_memory(stress *all)
{
    const uint64_t limit = stats_of(TESTED).in_use_bytes / 2;
    CHECK_OK(sp_device_set_memory_limit(TESTED, limit));
    all->may_run_out = true;
    test_note("limit %llu bytes", (unsigned long long)limit);
}

static void begin_stress(stress *all, stress_kind kind)
{
    /* One stream per thread, so that no thread shares the held one. */
    runtime_begin_with(&(runtime_setting){.streams = kind == STRESS_HELD ? "64" : NULL});
    *all = (stress){.rounds = (uint32_t)test_count(20000, 500)};
    if (kind == STRESS_TRIMMED) CHECK_OK(sp_device_set_cache_watermarks(TESTED, 1 << 18, 1 << 20));
    for (uint32_t i = 0; i < THREADS; i++) all->random[i] = random_seed(i);
    for (int i = 0; i < MAILBOXES; i++) sp_mutex_init(&all->mailboxes[i].lock, SP_LOCK_FOREIGN);
    for (int i = 0; i < SHARED_STREAMS; i++) all->shared[i] = new_stream();
}

static void end_stress(stress *all)
{
    release_rest(all);
    compare(all);
    CHECK_EQ_U64(stats_of(TESTED).in_use_bytes, 0);
    for (int i = 0; i < SHARED_STREAMS; i++) CHECK_OK(sp_stream_release(all->shared[i]));
    runtime_end();
}

static void run_stress(stress_kind kind)
{
    static stress all; /* too large for a stack */
    begin_stress(&all, kind);
    if (kind == STRESS_HELD) hold_memory(&all);
    for (int phase = 0; phase < PHASES; phase++) {
        if (kind == STRESS_LIMITED && phase == 1) limit_memory(&all);
        sp_store_relaxed(&all.finished, 0);
        test_threads(kind == STRESS_TRIMMED ? THREADS + 1 : THREADS, run_phase, &all);
        compare(&all);
    }
    check_overlap(&all.calls, 2);
    const uint64_t refused = sp_load_relaxed(&all.refused);
    test_note("%llu allocations, %llu refused, %llu bytes verified, %llu bytes trimmed",
              (unsigned long long)sp_load_relaxed(&all.allocations), (unsigned long long)refused,
              (unsigned long long)sp_load_relaxed(&all.verified_bytes),
              (unsigned long long)all.trimmed_bytes);
    if (kind == STRESS_TRIMMED) CHECK(all.trimmed_bytes > 0); /* slabs were created and returned */
    if (kind == STRESS_LIMITED) CHECK(refused > 0);
    if (kind == STRESS_HELD) let_go(&all);
    end_stress(&all);
}

TEST(memory_of_31_threads_is_never_shared_and_every_byte_is_accounted_for)
{
    run_stress(STRESS_PLAIN);
}

TEST(the_same_holds_while_the_cache_is_trimmed_all_the_time)
{
    run_stress(STRESS_TRIMMED);
}

TEST(the_same_holds_at_a_memory_limit)
{
    run_stress(STRESS_LIMITED);
}

TEST(the_same_holds_while_some_memory_of_all_sizes_stays_pending)
{
    run_stress(STRESS_HELD);
}

TEST_MAIN
