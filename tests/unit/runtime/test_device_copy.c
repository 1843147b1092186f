/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between storages of two devices: the cpu, null devices that share the host's memory, and
 * null devices with memory of their own, which stand for GPUs. */
#include <streampool/null_device.h>
#include <streampool/tensor.h>

#include "base/heap.h"
#include "own_memory_fixture.h"
#include "support/child.h"

enum { DEVICES = 5, BYTES = 4096, PIECE = 2 << 20 };

/* cpu, two devices that share its memory, two that do not. */
typedef struct world {
    sp_device devices[DEVICES];
    sp_stream streams[DEVICES];
} world;

#define SHARED 1 /* the first of its kind */
#define OWN 3

static world world_begin(void)
{
    runtime_begin();
    world w = {
        .devices = {CPU, open_null(), open_null(), open_own_memory(false), open_own_memory(false)}};
    for (int i = 0; i < DEVICES; i++) w.streams[i] = new_stream_on(w.devices[i]);
    return w;
}

static void world_end(const world *w)
{
    for (int i = 0; i < DEVICES; i++) CHECK_OK(sp_stream_release(w->streams[i]));
    for (int i = 1; i < DEVICES; i++) {
        const sp_status status = sp_device_close(w->devices[i]);
        CHECK(status == SP_OK || status == SP_CLOSED);
    }
    runtime_end();
}

/* Of equal bytes in two pieces one could stand for the other. */
static uint8_t byte_at(uint64_t i, uint32_t seed)
{
    return (uint8_t)(((i * 2654435761u + seed) >> 13) + i / PIECE * 37);
}

static void put_pattern(sp_storage storage, uint64_t bytes, uint32_t seed)
{
    uint8_t *data = NULL;
    CHECK_OK(sp_storage_host_begin(storage, SP_WRITE, (void **)&data));
    for (uint64_t i = 0; i < bytes; i++) data[i] = byte_at(i, seed);
    CHECK_OK(sp_storage_host_end(storage, SP_WRITE));
}

typedef struct copied {
    uint64_t to, from, bytes, seed;
} copied;

/* The pattern of the source in the range of the copy, zeros elsewhere; -1: everywhere. */
static int64_t first_wrong(sp_storage storage, uint64_t bytes, const copied *c)
{
    const uint8_t *data = NULL;
    int64_t wrong = -1;
    CHECK_OK(sp_storage_host_begin(storage, SP_READ, (void **)&data));
    for (uint64_t i = 0; i < bytes && wrong < 0; i++) {
        const bool is_inside = i >= c->to && i - c->to < c->bytes;
        const uint8_t wanted = is_inside ? byte_at(i - c->to + c->from, (uint32_t)c->seed) : 0;
        if (data[i] != wanted) wrong = (int64_t)i;
    }
    CHECK_OK(sp_storage_host_end(storage, SP_READ));
    return wrong;
}

static void copy_one_way(const world *w, int to, int from, int via, uint64_t bytes)
{
    const copied c = {.to = 5, .from = 3, .bytes = bytes, .seed = (uint64_t)(to * 10 + from)};
    const uint64_t room = bytes + 9;
    const sp_storage target = new_storage_on(w->devices[to], room, false);
    const sp_storage source = new_storage_on(w->devices[from], room, false);
    put_pattern(source, room, (uint32_t)c.seed);
    fill(w->streams[to], target, 0);
    CHECK_OK(sp_storage_copy_async(w->streams[via], range_of(target, c.to, bytes),
                                   range_of(source, c.from, bytes)));
    CHECK_EQ_INT(first_wrong(target, room, &c), -1);
    CHECK_OK(sp_storage_release(target));
    CHECK_OK(sp_storage_release(source));
}

TEST(bytes_are_copied_between_any_two_devices_on_a_stream_of_either)
{
    static const uint64_t sizes[] = {0, 1, 1000, PIECE, 4 * PIECE + 77};
    const world w = world_begin();
    for (int to = 0; to < DEVICES; to++) {
        for (int from = 0; from < DEVICES; from++) {
            const bool is_direct = to < OWN && from < OWN;
            for (size_t i = 0; i < SP_COUNT_OF(sizes) && !(is_direct && i > 2); i++) {
                copy_one_way(&w, to, from, to, sizes[i]);
                copy_one_way(&w, to, from, from, sizes[i]);
            }
        }
    }
    world_end(&w);
}

TEST(pieces_of_a_copy_wait_for_slow_transfers_of_earlier_ones)
{
    const world w = world_begin();
    CHECK_OK(sp_null_set_latency(w.devices[OWN], 20 * MILLISECOND));
    copy_one_way(&w, OWN, 0, 0, 6 * (uint64_t)PIECE + 1);
    copy_one_way(&w, 0, OWN, 0, 6 * (uint64_t)PIECE + 1);
    copy_one_way(&w, OWN + 1, OWN, OWN, 6 * (uint64_t)PIECE + 1);
    world_end(&w);
}

TEST(what_is_not_of_the_two_devices_or_does_not_fit_is_refused)
{
    const world w = world_begin();
    const sp_storage a = new_storage_on(w.devices[SHARED], BYTES, false);
    const sp_storage b = new_storage_on(w.devices[OWN], BYTES, false);
    const sp_storage_range to = whole(a), from = whole(b);
    CHECK_STATUS(sp_storage_copy_async(w.streams[0], to, from), SP_INVALID);
    CHECK_MESSAGE("a copy from null:3 to null:1 on a stream of cpu");
    CHECK_MESSAGE("pass a stream of one of them");
    CHECK_STATUS(sp_storage_copy_async(w.streams[OWN], to, range_of(b, 0, 8)), SP_MISMATCH);
    CHECK_STATUS(
        sp_storage_copy_async(w.streams[OWN], range_of(a, BYTES - 1, 8), range_of(b, 0, 8)),
        SP_INVALID);
    CHECK_MESSAGE("outside of a storage of 4096 bytes");
    CHECK_STATUS(sp_storage_fill_async(w.streams[OWN], to, "x", 1), SP_INVALID);
    CHECK_MESSAGE("a storage of device null:1 is used on a stream of device null:3");
    CHECK_OK(sp_storage_freeze(a));
    CHECK_STATUS(sp_storage_copy_async(w.streams[OWN], to, from), SP_INVALID);
    CHECK_MESSAGE("frozen");
    CHECK_OK(sp_storage_release(b));
    CHECK_STATUS(sp_storage_copy_async(w.streams[SHARED], to, from), SP_INVALID);
    CHECK_OK(sp_storage_release(a));
    world_end(&w);
}

/* ---- order ---- */

/* Of each way of copying one, and the stream that it is on. */
typedef struct copy_way {
    int to, from, via;
} copy_way;

static const copy_way ways[] = {
    {0, SHARED, 0},
    {SHARED, 0, 0},
    {SHARED, SHARED + 1, SHARED},
    {OWN, 0, OWN},
    {OWN, 0, 0},
    {0, OWN, OWN},
    {0, OWN, 0},
    {SHARED, OWN, SHARED},
    {OWN, OWN + 1, OWN},
    {OWN, OWN + 1, OWN + 1},
};

TEST(a_copy_follows_earlier_uses_of_both_and_later_ones_follow_it)
{
    const world w = world_begin();
    for (size_t i = 0; i < SP_COUNT_OF(ways); i++) {
        const copy_way *way = &ways[i];
        const sp_storage to = new_storage_on(w.devices[way->to], BYTES, false);
        const sp_storage from = new_storage_on(w.devices[way->from], BYTES, false);
        const sp_storage seen = new_storage_on(w.devices[way->to], BYTES, false);
        const sp_stream others[] = {new_stream_on(w.devices[way->from]),
                                    new_stream_on(w.devices[way->to])};
        gate gates[] = {gate_closed(w.devices[way->from]), gate_closed(w.devices[way->to])};
        fill(w.streams[way->from], from, 1);
        CHECK_OK(sp_stream_synchronize(w.streams[way->from]));
        gate_hold(&gates[0], others[0]);
        gate_hold(&gates[1], others[1]);
        fill(others[0], from, 2);
        fill(others[1], to, 3);
        copy(w.streams[way->via], to, from);
        fill(w.streams[way->from], from, 4);
        copy(w.streams[way->to], seen, to);
        fill(w.streams[way->to], to, 5);
        gate_open(&gates[0]);
        CHECK_STATUS(sp_stream_query(w.streams[way->via]),
                     SP_NOT_READY); /* behind the other gate */
        gate_open(&gates[1]);
        CHECK_EQ_INT(first_other(seen, 2), -1);
        CHECK_EQ_INT(first_other(from, 4), -1);
        CHECK_EQ_INT(first_other(to, 5), -1);
        for (int k = 0; k < 2; k++) {
            CHECK_OK(sp_stream_synchronize(others[k]));
            gate_destroy(&gates[k]);
            CHECK_OK(sp_stream_release(others[k]));
        }
        CHECK_OK(sp_storage_release(to));
        CHECK_OK(sp_storage_release(from));
        CHECK_OK(sp_storage_release(seen));
    }
    world_end(&w);
}

static sp_stream held_stream(const world *w, gate *key, int device)
{
    const sp_stream stream = new_stream_on(w->devices[device]);
    gate_hold(key, stream);
    return stream;
}

/* A frozen or untracked storage is in no order, but its memory stays until the copy has been. */
TEST(a_released_source_is_kept_for_a_copy_on_the_other_devices_stream)
{
    for (int is_frozen = 0; is_frozen < 2; is_frozen++) {
        for (int to = SHARED; to <= OWN; to += OWN - SHARED) {
            const world w = world_begin();
            gate g = gate_closed(w.devices[to]);
            const sp_stream stream = held_stream(&w, &g, to);
            const sp_storage target = new_storage_on(w.devices[to], BYTES, false);
            const sp_storage source = new_storage_on(CPU, BYTES, is_frozen == 0);
            fill(w.streams[0], source, 7);
            CHECK_OK(sp_stream_synchronize(w.streams[0]));
            const void *address = address_of(source);
            if (is_frozen != 0) CHECK_OK(sp_storage_freeze(source));
            copy(stream, target, source);
            CHECK_OK(sp_storage_release(source));
            CHECK(!is_taken_again(address, BYTES));
            gate_open(&g);
            CHECK_EQ_INT(first_other(target, 7), -1);
            CHECK_OK(sp_stream_synchronize(stream));
            CHECK(is_taken_again(address, BYTES));
            gate_destroy(&g);
            CHECK_OK(sp_storage_release(target));
            CHECK_OK(sp_stream_release(stream));
            world_end(&w);
        }
    }
}

/* ---- failures ---- */

static void check_poisoned(sp_storage storage, sp_status status, const char *message)
{
    void *data;
    const sp_status actual = sp_storage_host_begin(storage, SP_READ, &data);
    CHECK_STATUS(actual, status);
    CHECK_MESSAGE(message);
    if (actual == SP_OK) CHECK_OK(sp_storage_host_end(storage, SP_READ));
}

TEST(a_failed_source_fails_the_copy_and_its_destination_until_that_is_overwritten)
{
    const world w = world_begin();
    for (size_t i = 0; i < SP_COUNT_OF(ways); i++) {
        const copy_way *way = &ways[i];
        const sp_storage to = new_storage_on(w.devices[way->to], BYTES, false);
        const sp_storage from = new_storage_on(w.devices[way->from], BYTES, false);
        submit_failing(w.streams[way->from], from);
        copy(w.streams[way->via], to, from);
        check_poisoned(to, SP_FAILED, "asked to fail");
        CHECK_STATUS(sp_stream_synchronize(w.streams[way->via]), SP_FAILED);
        (void)sp_stream_synchronize(w.streams[way->from]);
        fill(w.streams[way->from], from, 6);
        /* Of a part: the rest stays poisoned. */
        CHECK_OK(
            sp_storage_copy_async(w.streams[way->via], range_of(to, 0, 8), range_of(from, 0, 8)));
        check_poisoned(to, SP_FAILED, "asked to fail");
        copy(w.streams[way->via], to, from);
        CHECK_EQ_INT(first_other(to, 6), -1);
        CHECK_OK(sp_stream_synchronize(w.streams[way->via]));
        CHECK_OK(sp_storage_release(to));
        CHECK_OK(sp_storage_release(from));
    }
    world_end(&w);
}

TEST(a_transfer_that_fails_poisons_the_destination)
{
    const world w = world_begin();
    const uint64_t bytes = 5 * (uint64_t)PIECE;
    for (uint64_t skip = 0; skip < 5; skip++) {
        const sp_storage to = new_storage_on(w.devices[OWN], bytes, false);
        const sp_storage from = new_storage_on(CPU, bytes, false);
        fill(w.streams[0], from, 1);
        CHECK_OK(sp_stream_synchronize(w.streams[0]));
        CHECK_OK(sp_null_fail_command(w.devices[OWN], skip));
        copy(w.streams[0], to, from);
        check_poisoned(to, SP_FAILED, "copy from cpu to null:3: copy on null:3: injected fault");
        CHECK_STATUS(sp_stream_synchronize(w.streams[0]), SP_FAILED);
        copy(w.streams[0], to, from);
        CHECK_EQ_INT(first_other(to, 1), -1);
        CHECK_OK(sp_storage_release(to));
        CHECK_OK(sp_storage_release(from));
    }
    world_end(&w);
}

TEST(pinned_memory_that_the_host_cannot_access_serves_between_such_devices_only)
{
    runtime_begin();
    const sp_device hidden = open_own_memory(true);
    const sp_device own = open_own_memory(false);
    const sp_stream streams[] = {current_stream(), new_stream_on(own)};
    const sp_storage a = new_storage_on(hidden, BYTES, false);
    const sp_storage b = new_storage_on(own, BYTES, false);
    const sp_storage c = new_storage_on(CPU, BYTES, false);
    const sp_stream stream = new_stream_on(hidden);
    fill(stream, a, 9);
    copy(streams[1], b, a);
    CHECK_EQ_INT(first_other(b, 9), -1);
    copy(streams[0], c, a);
    check_poisoned(c, SP_UNSUPPORTED,
                   "copy from null:1 to cpu: memory of null:1 cannot be reached");
    CHECK_STATUS(sp_stream_synchronize(streams[0]), SP_UNSUPPORTED);
    CHECK_OK(sp_storage_release(a));
    CHECK_OK(sp_storage_release(b));
    CHECK_OK(sp_storage_release(c));
    CHECK_OK(sp_stream_release(stream));
    CHECK_OK(sp_stream_release(streams[1]));
    CHECK_OK(sp_device_close(own));
    CHECK_OK(sp_device_close(hidden));
    runtime_end();
}

TEST(a_closed_or_lost_device_refuses_copies_and_fails_pending_ones)
{
    for (int is_lost = 0; is_lost < 2; is_lost++) {
        const world w = world_begin();
        const sp_status expected = is_lost != 0 ? SP_DEVICE_LOST : SP_CLOSED;
        gate g = gate_closed(CPU);
        const sp_stream stream = held_stream(&w, &g, 0);
        const sp_storage own = new_storage_on(w.devices[OWN], BYTES, false);
        const sp_storage host = new_storage_on(CPU, BYTES, false);
        fill(w.streams[OWN], own, 1);
        CHECK_OK(sp_stream_synchronize(w.streams[OWN]));
        copy(stream, host, own);
        if (is_lost != 0) CHECK_OK(sp_null_lose(w.devices[OWN]));
        else CHECK_OK(sp_device_close(w.devices[OWN]));
        gate_open(&g);
        check_poisoned(host, expected, "copy from null:3 to cpu: ");
        CHECK_STATUS(sp_stream_synchronize(stream), expected);
        CHECK_STATUS(sp_storage_copy_async(stream, whole(host), whole(own)), expected);
        CHECK_STATUS(sp_storage_copy_async(stream, whole(own), whole(host)), expected);
        gate_destroy(&g);
        CHECK_OK(sp_storage_release(own));
        CHECK_OK(sp_storage_release(host));
        CHECK_OK(sp_stream_release(stream));
        world_end(&w);
    }
}

/* The host could copy the bytes: the lost device has not written all that it should have. */
TEST(a_copy_that_the_host_could_do_fails_with_the_lost_device)
{
    const world w = world_begin();
    gate g = gate_closed(CPU);
    const sp_stream stream = held_stream(&w, &g, 0);
    const sp_storage shared = new_storage_on(w.devices[SHARED], BYTES, false);
    const sp_storage host = new_storage_on(CPU, BYTES, false);
    fill(w.streams[SHARED], shared, 1);
    CHECK_OK(sp_stream_synchronize(w.streams[SHARED]));
    copy(stream, host, shared);
    CHECK_OK(sp_null_lose(w.devices[SHARED]));
    const sp_storage other = new_storage_on(w.devices[SHARED], BYTES, false);
    fill(w.streams[SHARED], other, 2);
    CHECK_STATUS(sp_stream_synchronize(w.streams[SHARED]), SP_DEVICE_LOST);
    gate_open(&g);
    check_poisoned(host, SP_DEVICE_LOST, "null:1");
    CHECK_STATUS(sp_stream_synchronize(stream), SP_DEVICE_LOST);
    fill(stream, host, 3); /* cpu works */
    CHECK_EQ_INT(first_other(host, 3), -1);
    gate_destroy(&g);
    CHECK_OK(sp_storage_release(other));
    CHECK_OK(sp_storage_release(shared));
    CHECK_OK(sp_storage_release(host));
    CHECK_OK(sp_stream_release(stream));
    world_end(&w);
}

/* Each allocation of the heap fails once. */
TEST(without_heap_memory_a_copy_is_refused_or_fails)
{
    const world w = world_begin();
    const sp_storage own = new_storage_on(w.devices[OWN], BYTES, false);
    const sp_storage host = new_storage_on(CPU, BYTES, false);
    fill(w.streams[OWN], own, 1);
    copy(w.streams[0], host, own); /* makes the queues and the pinned memory */
    CHECK_OK(sp_stream_synchronize(w.streams[0]));
    bool has_failed = false;
    for (uint64_t after = 0; after < 4; after++) {
        sp_heap_fail_after(after);
        const sp_status status = sp_storage_copy_async(w.streams[0], whole(host), whole(own));
        sp_heap_fail_after(UINT64_MAX);
        CHECK(status == SP_OK || status == SP_OUT_OF_MEMORY);
        has_failed = has_failed || status == SP_OUT_OF_MEMORY;
        (void)sp_stream_synchronize(w.streams[0]);
    }
    CHECK(has_failed);
    copy(w.streams[0], host, own);
    CHECK_EQ_INT(first_other(host, 1), -1);
    CHECK_OK(sp_storage_release(own));
    CHECK_OK(sp_storage_release(host));
    world_end(&w);
}

/* ---- many at once ---- */

typedef struct crossing {
    const world *w;
    sp_storage sides[2];
    uint32_t rounds;
} crossing;

static void cross(void *arg, uint32_t index)
{
    const crossing *c = arg;
    const uint32_t to = index % 2;
    for (uint32_t i = 0; i < c->rounds; i++) {
        sp_stream stream;
        CHECK_OK(sp_stream_current(c->w->devices[OWN + (index / 2 + i) % 2], &stream));
        copy(stream, c->sides[to], c->sides[1 - to]);
        if (i % 8 == 7) CHECK_OK(sp_stream_synchronize(stream));
    }
}

TEST(threads_that_copy_in_opposite_directions_do_not_wait_for_each_other)
{
    const world w = world_begin();
    const uint64_t bytes = PIECE + 100;
    crossing c = {.w = &w, .rounds = (uint32_t)test_count(2000, 60)};
    for (int i = 0; i < 2; i++) {
        c.sides[i] = new_storage_on(w.devices[OWN + i], bytes, false);
        fill(w.streams[OWN + i], c.sides[i], 8);
    }
    test_threads(4, cross, &c);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ_INT(first_other(c.sides[i], 8), -1);
        CHECK_OK(sp_storage_release(c.sides[i]));
    }
    world_end(&w);
}

enum { COPIES = 90 }; /* more than the executor has threads */

TEST(more_copies_wait_at_once_than_the_executor_has_threads)
{
    const world w = world_begin();
    sp_storage from[COPIES], to[COPIES];
    sp_stream streams[COPIES];
    CHECK_OK(sp_null_set_latency(w.devices[OWN], 2 * MILLISECOND));
    for (int i = 0; i < COPIES; i++) {
        streams[i] = new_stream_on(w.devices[i % 3]);
        from[i] = new_storage_on(w.devices[i % 3], BYTES, false);
        to[i] = new_storage_on(w.devices[OWN], BYTES, false);
        fill(streams[i], from[i], (uint8_t)i);
    }
    for (int i = 0; i < COPIES; i++) copy(streams[i], to[i], from[i]);
    for (int i = 0; i < COPIES; i++) {
        CHECK_EQ_INT(first_other(to[i], (uint8_t)i), -1);
        CHECK_OK(sp_storage_release(from[i]));
        CHECK_OK(sp_storage_release(to[i]));
        CHECK_OK(sp_stream_release(streams[i]));
    }
    world_end(&w);
}

/* ---- where it is called ---- */

typedef struct inside {
    sp_storage_range to, from;
    sp_stream stream;
    sp_status status;
} inside;

static void copy_and_wait(void *ctx, sp_status status)
{
    inside *in = ctx;
    (void)status;
    in->status = sp_storage_copy_async(in->stream, in->to, in->from);
    if (in->status == SP_OK) in->status = sp_stream_synchronize(in->stream);
}

TEST(a_host_function_copies_and_waits)
{
    const world w = world_begin();
    inside in = {.to = whole(new_storage_on(w.devices[OWN], BYTES, false)),
                 .from = whole(new_storage_on(CPU, BYTES, false)),
                 .stream = w.streams[0],
                 .status = SP_INTERNAL};
    fill(w.streams[0], in.from.storage, 4);
    CHECK_OK(sp_stream_host_function(w.streams[SHARED], copy_and_wait, &in));
    CHECK_OK(sp_stream_synchronize(w.streams[SHARED]));
    CHECK_OK(in.status);
    CHECK_EQ_INT(first_other(in.to.storage, 4), -1);
    CHECK_OK(sp_storage_release(in.to.storage));
    CHECK_OK(sp_storage_release(in.from.storage));
    world_end(&w);
}

static int copy_in_child(void *arg)
{
    const inside *in = arg;
    sp_tensor tensor = {0};
    if (sp_storage_copy_async(in->stream, in->to, in->from) != SP_FORKED) return 1;
    if (sp_tensor_to(tensor, CPU, &tensor) != SP_FORKED) return 2;
    return sp_storage_release(in->to.storage) == SP_OK ? 0 : 3;
}

TEST(a_forked_child_does_not_copy_and_the_parents_copies_go_on)
{
    const world w = world_begin();
    gate g = gate_closed(CPU);
    inside in = {.to = whole(new_storage_on(w.devices[OWN], BYTES, false)),
                 .from = whole(new_storage_on(CPU, BYTES, false)),
                 .stream = held_stream(&w, &g, 0)};
    fill(w.streams[0], in.from.storage, 3);
    copy(in.stream, in.to.storage, in.from.storage);
    CHECK_EQ_INT(child_run(copy_in_child, &in), 0);
    gate_open(&g);
    CHECK_EQ_INT(first_other(in.to.storage, 3), -1);
    CHECK_OK(sp_stream_synchronize(in.stream));
    gate_destroy(&g);
    CHECK_OK(sp_storage_release(in.to.storage));
    CHECK_OK(sp_storage_release(in.from.storage));
    CHECK_OK(sp_stream_release(in.stream));
    world_end(&w);
}

TEST(a_shutdown_ends_copies_that_are_pending)
{
    for (int i = 0; i < 4; i++) {
        const world w = world_begin();
        const sp_storage own = new_storage_on(w.devices[OWN], 3 * (uint64_t)PIECE, false);
        const sp_storage other = new_storage_on(w.devices[OWN + 1], 3 * (uint64_t)PIECE, false);
        const sp_storage host = new_storage_on(CPU, 3 * (uint64_t)PIECE, false);
        fill(w.streams[0], host, 3);
        copy(w.streams[0], own, host);
        copy(w.streams[OWN + 1], other, own);
        copy(w.streams[0], host, other);
        CHECK_OK(sp_shutdown());
        CHECK_OK(sp_storage_release(own));
        CHECK_OK(sp_storage_release(other));
        CHECK_OK(sp_storage_release(host));
        for (int k = 0; k < DEVICES; k++) (void)sp_stream_release(w.streams[k]);
        runtime_end();
    }
}

TEST_MAIN
