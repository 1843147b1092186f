/* SPDX-License-Identifier: Apache-2.0 */
/* Calls in any order: random sequences over lists, host accesses, guards and events, each compared
 * with a small model of the headers. The model also tracks waits that would not end while this
 * thread itself has an access open; those calls are left out. */
#include "runtime_fixture.h"

#include <streampool/command_list.h>

#define BYTES 64
#define STORAGES 3
#define EVENTS 3
#define LISTS 3
#define STREAMS 3 /* the last one's lease was released */

typedef struct model_storage {
    sp_storage handle;
    uint32_t users; /* 0: the handle is stale */
    bool is_frozen;
    uint32_t open[SP_READ_WRITE + 1]; /* host accesses, by kind */
    bool is_held;                     /* a use may wait for one of this thread's accesses */
} model_storage;

typedef struct model_event {
    sp_event handle;
    uint32_t users;
    bool is_recorded;
    bool is_held;
} model_event;

typedef struct model_list {
    sp_command_list handle;
    uint32_t users;
    bool is_closed;
    uint32_t use_count;
    struct {
        uint64_t bits;
        uint32_t access;
    } uses[SP_COMMAND_LIST_STORAGES];
} model_list;

typedef struct model_stream {
    sp_stream handle;
    bool is_live;
    bool is_guard_open; /* guard k enters stream k */
    bool is_held;
    sp_stream_guard guard;
} model_stream;

typedef struct model {
    uint64_t random;
    uint64_t sequence;
    uint32_t step;
    bool is_wrong;
    uint64_t good_calls, bad_calls;
    uint32_t open_count; /* host accesses */
    model_storage storages[STORAGES];
    model_event events[EVENTS];
    model_list lists[LISTS];
    model_stream streams[STREAMS];
    uint32_t stack[STREAMS]; /* open guards, outermost first */
    uint32_t depth;
    sp_stream own;           /* the current stream outside of all guards */
    uint64_t expected_calls; /* of host functions and callbacks */
    sp_atomic_u32 calls;
} model;

/* ---- the model ---- */

/* splitmix64 (S. Vigna). */
static uint32_t pick(model *m, uint32_t count)
{
    uint64_t x = m->random += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)((x ^ (x >> 31)) >> 32) % count;
}

static void expect(model *m, const char *call, sp_status actual, sp_status expected)
{
    m->good_calls += expected == SP_OK;
    m->bad_calls += expected != SP_OK;
    if (actual == expected) return;
    if (!m->is_wrong) {
        test_note("sequence %llu, step %u: %s", (unsigned long long)m->sequence, m->step, call);
    }
    m->is_wrong = true;
    CHECK_STATUS(actual, expected);
}

static sp_status valid_if(bool is_valid)
{
    return is_valid ? SP_OK : SP_INVALID;
}

static uint32_t readers_of(const model_storage *s)
{
    return s->open[SP_READ];
}

static uint32_t writers_of(const model_storage *s)
{
    return s->open[SP_WRITE] + s->open[SP_READ_WRITE];
}

static bool is_any_held(const model *m)
{
    for (int i = 0; i < STREAMS; i++) {
        if (m->streams[i].is_held) return true;
    }
    return false;
}

/* After the last open access nothing waits for this thread any more. */
static void accesses_ended(model *m, uint32_t count)
{
    m->open_count -= count;
    if (m->open_count > 0) return;
    for (int i = 0; i < STORAGES; i++) m->storages[i].is_held = false;
    for (int i = 0; i < EVENTS; i++) m->events[i].is_held = false;
    for (int i = 0; i < STREAMS; i++) m->streams[i].is_held = false;
}

static bool conflicts(const model_storage *s, uint32_t access)
{
    return writers_of(s) > 0 || ((access & SP_WRITE) != 0 && readers_of(s) > 0);
}

static void hold_stream_if(model_stream *stream, const model_storage *s, uint32_t access)
{
    if (s->is_held || conflicts(s, access)) stream->is_held = true;
}

/* A command of a held stream holds everything that it uses. */
static void hold_storage_if(const model_stream *stream, model_storage *s)
{
    if (stream->is_held) s->is_held = true;
}

static bool may_use(const model_storage *s, uint32_t access)
{
    return s->users > 0 && !((access & SP_WRITE) != 0 && s->is_frozen);
}

static model_storage *find_storage(model *m, uint64_t bits)
{
    for (int i = 0; i < STORAGES; i++) {
        if (m->storages[i].users > 0 && m->storages[i].handle.bits == bits) return &m->storages[i];
    }
    return NULL;
}

/* ---- storages ---- */

static void do_create_storage(model *m)
{
    model_storage *s = &m->storages[pick(m, STORAGES)];
    if (s->users > 0) return;
    sp_storage handle;
    expect(m, "sp_storage_create", sp_storage_create(CPU, BYTES, NULL, &handle), SP_OK);
    /* Its memory may be that of a storage with pending uses. */
    *s = (model_storage){.handle = handle, .users = 1, .is_held = is_any_held(m)};
}

static void do_retain_storage(model *m)
{
    model_storage *s = &m->storages[pick(m, STORAGES)];
    expect(m, "sp_storage_retain", sp_storage_retain(s->handle), valid_if(s->users > 0));
    if (s->users > 0) s->users++;
}

static void do_release_storage(model *m)
{
    model_storage *s = &m->storages[pick(m, STORAGES)];
    const bool is_zero = s->handle.bits == 0;
    expect(m, "sp_storage_release", sp_storage_release(s->handle),
           valid_if(is_zero || s->users > 0));
    if (s->users > 0) s->users--;
    if (s->users > 0 || s->handle.bits == 0) return;
    const uint32_t open = readers_of(s) + writers_of(s);
    *s = (model_storage){.handle = s->handle};
    accesses_ended(m, open);
}

static void do_freeze(model *m)
{
    model_storage *s = &m->storages[pick(m, STORAGES)];
    if (s->users > 0 && !s->is_frozen && (s->is_held || conflicts(s, SP_READ))) return;
    expect(m, "sp_storage_freeze", sp_storage_freeze(s->handle), valid_if(s->users > 0));
    if (s->users > 0) s->is_frozen = true;
}

static void do_host_begin(model *m)
{
    model_storage *s = &m->storages[pick(m, STORAGES)];
    const sp_access access = (sp_access)(1 + pick(m, 3));
    void *data;
    const bool is_good = may_use(s, access);
    if (is_good && !s->is_frozen && (s->is_held || conflicts(s, access))) return;
    expect(m, "sp_storage_host_begin", sp_storage_host_begin(s->handle, access, &data),
           valid_if(is_good));
    CHECK(is_good == (data != NULL));
    if (!is_good || s->is_frozen) return; /* no conflicting use */
    s->open[access]++;
    m->open_count++;
}

static void do_host_end(model *m)
{
    model_storage *s = &m->storages[pick(m, STORAGES)];
    const sp_access access = (sp_access)(1 + pick(m, 3));
    const bool is_open = s->open[access] > 0;
    /* Readers of a frozen storage are not counted. */
    const bool is_good = is_open || (s->users > 0 && s->is_frozen && access == SP_READ);
    expect(m, "sp_storage_host_end", sp_storage_host_end(s->handle, access), valid_if(is_good));
    if (!is_open) return;
    s->open[access]--;
    accesses_ended(m, 1);
}

/* ---- commands ---- */

/* Sometimes a range that exceeds the storage. */
static sp_storage_range some_range(model *m, const model_storage *s)
{
    const uint64_t offset = pick(m, 8) == 0 ? BYTES / 2 + 1 : pick(m, 2) * 8;
    return (sp_storage_range){s->handle, offset, BYTES / 2};
}

static bool is_inside(sp_storage_range range)
{
    return range.offset + range.bytes <= BYTES;
}

static void do_fill(model *m)
{
    model_stream *stream = &m->streams[pick(m, STREAMS)];
    model_storage *s = &m->storages[pick(m, STORAGES)];
    const sp_storage_range range = some_range(m, s);
    const uint32_t pattern_bytes = pick(m, 16) == 0 ? 3 : 4;
    const uint32_t pattern = 7;
    const bool is_good =
        stream->is_live && may_use(s, SP_WRITE) && is_inside(range) && pattern_bytes == 4;
    expect(m, "sp_storage_fill_async",
           sp_storage_fill_async(stream->handle, range, &pattern, pattern_bytes),
           valid_if(is_good));
    if (!is_good) return;
    hold_stream_if(stream, s, SP_WRITE);
    hold_storage_if(stream, s);
}

static void do_copy(model *m)
{
    model_stream *stream = &m->streams[pick(m, STREAMS)];
    model_storage *to = &m->storages[pick(m, STORAGES)];
    model_storage *from = &m->storages[pick(m, STORAGES)];
    const sp_storage_range source = some_range(m, from);
    sp_storage_range target = some_range(m, to);
    if (pick(m, 16) == 0) target.bytes--;
    sp_status expected = valid_if(may_use(to, SP_WRITE) && may_use(from, SP_READ) &&
                                  is_inside(target) && is_inside(source));
    if (target.bytes != source.bytes) expected = SP_MISMATCH;
    if (!stream->is_live) expected = SP_INVALID;
    expect(m, "sp_storage_copy_async", sp_storage_copy_async(stream->handle, target, source),
           expected);
    if (expected != SP_OK) return;
    hold_stream_if(stream, to, SP_WRITE);
    hold_stream_if(stream, from, SP_READ);
    hold_storage_if(stream, to);
    hold_storage_if(stream, from);
}

static void note_call(void *ctx, sp_status status)
{
    CHECK_STATUS(status, SP_OK);
    raise_by_one(ctx);
}

static void do_host_function(model *m)
{
    const model_stream *stream = &m->streams[pick(m, STREAMS)];
    expect(m, "sp_stream_host_function",
           sp_stream_host_function(stream->handle, note_call, &m->calls),
           valid_if(stream->is_live));
    if (stream->is_live) m->expected_calls++;
}

static void do_synchronize(model *m)
{
    const model_stream *stream = &m->streams[pick(m, STREAMS)];
    if (stream->is_held) return;
    expect(m, "sp_stream_synchronize", sp_stream_synchronize(stream->handle),
           valid_if(stream->is_live));
}

/* ---- lists ---- */

static void do_create_list(model *m)
{
    model_list *list = &m->lists[pick(m, LISTS)];
    if (list->users > 0) return;
    *list = (model_list){.users = 1};
    expect(m, "sp_command_list_create", sp_command_list_create(CPU, &list->handle), SP_OK);
}

static void do_retain_list(model *m)
{
    model_list *list = &m->lists[pick(m, LISTS)];
    expect(m, "sp_command_list_retain", sp_command_list_retain(list->handle),
           valid_if(list->users > 0));
    if (list->users > 0) list->users++;
}

static void do_release_list(model *m)
{
    model_list *list = &m->lists[pick(m, LISTS)];
    const bool is_zero = list->handle.bits == 0;
    expect(m, "sp_command_list_release", sp_command_list_release(list->handle),
           valid_if(is_zero || list->users > 0));
    if (list->users > 0) list->users--;
}

/* The index of the storage among the list's uses; appended if missing. */
static sp_status use_in_list(model_list *list, const model_storage *s, sp_storage_range range,
                             uint32_t *place)
{
    if (s->users == 0 || !is_inside(range)) return SP_INVALID;
    for (*place = 0; *place < list->use_count; (*place)++) {
        if (list->uses[*place].bits == s->handle.bits) return SP_OK;
    }
    if (list->use_count == SP_COMMAND_LIST_STORAGES) return SP_EXHAUSTED;
    list->uses[*place].bits = s->handle.bits;
    list->uses[*place].access = 0;
    list->use_count++;
    return SP_OK;
}

static void do_list_fill(model *m)
{
    model_list *list = &m->lists[pick(m, LISTS)];
    const model_storage *s = &m->storages[pick(m, STORAGES)];
    const sp_storage_range range = some_range(m, s);
    const uint32_t pattern = 9;
    uint32_t place = 0;
    sp_status expected = valid_if(list->users > 0 && !list->is_closed);
    if (expected == SP_OK) expected = use_in_list(list, s, range, &place);
    expect(m, "sp_command_list_fill", sp_command_list_fill(list->handle, range, &pattern, 4),
           expected);
    if (expected == SP_OK) list->uses[place].access |= SP_WRITE;
}

static void do_list_copy(model *m)
{
    model_list *list = &m->lists[pick(m, LISTS)];
    const model_storage *to = &m->storages[pick(m, STORAGES)];
    const model_storage *from = &m->storages[pick(m, STORAGES)];
    const sp_storage_range source = some_range(m, from);
    sp_storage_range target = some_range(m, to);
    if (pick(m, 16) == 0) target.bytes--;
    const uint32_t former_count = list->use_count;
    uint32_t places[2] = {0};
    sp_status expected = valid_if(list->users > 0 && !list->is_closed);
    if (expected == SP_OK) expected = use_in_list(list, to, target, &places[0]);
    if (expected == SP_OK) expected = use_in_list(list, from, source, &places[1]);
    if (target.bytes != source.bytes) expected = SP_MISMATCH;
    expect(m, "sp_command_list_copy", sp_command_list_copy(list->handle, target, source), expected);
    if (expected == SP_OK) {
        list->uses[places[0]].access |= SP_WRITE;
        list->uses[places[1]].access |= SP_READ;
    } else {
        list->use_count = former_count; /* it changed nothing */
    }
}

static void do_submit_list(model *m)
{
    model_stream *stream = &m->streams[pick(m, STREAMS)];
    model_list *list = &m->lists[pick(m, LISTS)];
    bool is_good = stream->is_live && list->users > 0;
    if (is_good) list->is_closed = true; /* whatever the result of the submission */
    for (uint32_t i = 0; i < list->use_count; i++) {
        const model_storage *s = find_storage(m, list->uses[i].bits);
        if (s == NULL || !may_use(s, list->uses[i].access)) is_good = false;
    }
    expect(m, "sp_stream_submit_list", sp_stream_submit_list(stream->handle, list->handle),
           valid_if(is_good));
    for (uint32_t i = 0; is_good && i < list->use_count; i++) {
        hold_stream_if(stream, find_storage(m, list->uses[i].bits), list->uses[i].access);
    }
    for (uint32_t i = 0; is_good && i < list->use_count; i++) {
        hold_storage_if(stream, find_storage(m, list->uses[i].bits));
    }
}

/* ---- guards ---- */

static void do_guard_begin(model *m)
{
    const uint32_t k = pick(m, STREAMS);
    model_stream *stream = &m->streams[k];
    if (stream->is_guard_open) return;
    expect(m, "sp_stream_guard_begin", sp_stream_guard_begin(stream->handle, &stream->guard),
           valid_if(stream->is_live));
    if (!stream->is_live) return;
    stream->is_guard_open = true;
    m->stack[m->depth++] = k;
}

static void do_guard_end(model *m)
{
    const uint32_t k = pick(m, STREAMS);
    model_stream *stream = &m->streams[k];
    const bool is_inner = m->depth > 0 && m->stack[m->depth - 1] == k;
    expect(m, "sp_stream_guard_end", sp_stream_guard_end(&stream->guard), valid_if(is_inner));
    if (!is_inner) return;
    stream->is_guard_open = false;
    m->depth--;
}

static void do_current(model *m)
{
    sp_stream current;
    expect(m, "sp_stream_current", sp_stream_current(CPU, &current), SP_OK);
    const sp_stream expected = m->depth > 0 ? m->streams[m->stack[m->depth - 1]].handle : m->own;
    expect(m, "sp_stream_current's stream", valid_if(current.bits == expected.bits), SP_OK);
}

/* ---- events ---- */

static void do_create_event(model *m)
{
    model_event *event = &m->events[pick(m, EVENTS)];
    if (event->users > 0) return;
    *event = (model_event){.users = 1};
    expect(m, "sp_event_create", sp_event_create(NULL, &event->handle), SP_OK);
}

static void do_retain_event(model *m)
{
    model_event *event = &m->events[pick(m, EVENTS)];
    expect(m, "sp_event_retain", sp_event_retain(event->handle), valid_if(event->users > 0));
    if (event->users > 0) event->users++;
}

static void do_release_event(model *m)
{
    model_event *event = &m->events[pick(m, EVENTS)];
    const bool is_zero = event->handle.bits == 0;
    expect(m, "sp_event_release", sp_event_release(event->handle),
           valid_if(is_zero || event->users > 0));
    if (event->users > 0) event->users--;
}

static void do_record(model *m)
{
    model_event *event = &m->events[pick(m, EVENTS)];
    const model_stream *stream = &m->streams[pick(m, STREAMS)];
    const bool is_good = event->users > 0 && stream->is_live;
    expect(m, "sp_event_record", sp_event_record(event->handle, stream->handle), valid_if(is_good));
    if (!is_good) return;
    event->is_recorded = true;
    event->is_held = stream->is_held;
}

static bool has_point(const model_event *event)
{
    return event->users > 0 && event->is_recorded;
}

static void do_query(model *m)
{
    const model_event *event = &m->events[pick(m, EVENTS)];
    sp_status status = sp_event_query(event->handle);
    if (has_point(event) && status == SP_NOT_READY) status = SP_OK; /* both are allowed */
    expect(m, "sp_event_query", status, valid_if(has_point(event)));
}

static void do_synchronize_event(model *m)
{
    const model_event *event = &m->events[pick(m, EVENTS)];
    if (has_point(event) && event->is_held) return;
    expect(m, "sp_event_synchronize_for", sp_event_synchronize_for(event->handle, 30 * SECOND),
           valid_if(has_point(event)));
}

static void do_wait_event(model *m)
{
    const model_event *event = &m->events[pick(m, EVENTS)];
    model_stream *stream = &m->streams[pick(m, STREAMS)];
    const bool is_good = has_point(event) && stream->is_live;
    expect(m, "sp_stream_wait_event", sp_stream_wait_event(stream->handle, event->handle),
           valid_if(is_good));
    if (is_good && event->is_held) stream->is_held = true;
}

static void do_on_complete(model *m)
{
    const model_event *event = &m->events[pick(m, EVENTS)];
    expect(m, "sp_event_on_complete", sp_event_on_complete(event->handle, note_call, &m->calls),
           valid_if(has_point(event)));
    if (has_point(event)) m->expected_calls++;
}

/* ---- sequences ---- */

/* Some are listed twice so that objects live long enough for the others. */
static void (*const steps[])(model *m) = {
    do_create_storage, do_create_storage, do_retain_storage, do_release_storage,
    do_freeze,         do_host_begin,     do_host_begin,     do_host_end,
    do_host_end,       do_fill,           do_copy,           do_host_function,
    do_synchronize,    do_create_list,    do_create_list,    do_retain_list,
    do_release_list,   do_list_fill,      do_list_fill,      do_list_copy,
    do_list_copy,      do_submit_list,    do_submit_list,    do_guard_begin,
    do_guard_end,      do_current,        do_create_event,   do_create_event,
    do_retain_event,   do_release_event,  do_record,         do_synchronize_event,
    do_query,          do_wait_event,     do_on_complete,
};

/* Ends every access and releases everything; held work completes. */
static void clean_up(model *m)
{
    while (m->depth > 0) {
        model_stream *inner = &m->streams[m->stack[--m->depth]];
        expect(m, "the last sp_stream_guard_end", sp_stream_guard_end(&inner->guard), SP_OK);
        inner->is_guard_open = false;
    }
    for (int i = 0; i < STORAGES; i++) {
        model_storage *s = &m->storages[i];
        for (uint32_t users = s->users; users > 0; users--) {
            expect(m, "the last sp_storage_release", sp_storage_release(s->handle), SP_OK);
        }
        *s = (model_storage){.handle = s->handle};
    }
    for (int i = 0; i < EVENTS; i++) {
        for (; m->events[i].users > 0; m->events[i].users--) {
            expect(m, "the last sp_event_release", sp_event_release(m->events[i].handle), SP_OK);
        }
    }
    for (int i = 0; i < LISTS; i++) {
        for (; m->lists[i].users > 0; m->lists[i].users--) {
            expect(m, "the last sp_command_list_release",
                   sp_command_list_release(m->lists[i].handle), SP_OK);
        }
    }
    accesses_ended(m, m->open_count);
    for (int i = 0; i + 1 < STREAMS; i++) {
        expect(m, "the last sp_stream_synchronize", sp_stream_synchronize(m->streams[i].handle),
               SP_OK);
    }
}

TEST(calls_in_any_order_say_what_the_headers_say)
{
    runtime_begin();
    model m = {.own = current_stream()};
    for (int i = 0; i < STREAMS; i++) {
        m.streams[i] = (model_stream){.handle = new_stream(), .is_live = true};
    }
    m.streams[STREAMS - 1].is_live = false;
    CHECK_OK(sp_stream_release(m.streams[STREAMS - 1].handle));
    const uint64_t sequences = test_count(100000, 5000);
    for (m.sequence = 0; m.sequence < sequences && !m.is_wrong; m.sequence++) {
        m.random = m.sequence;
        const uint32_t length = 20 + pick(&m, 80);
        for (m.step = 0; m.step < length && !m.is_wrong; m.step++) {
            steps[pick(&m, SP_COUNT_OF(steps))](&m);
        }
        clean_up(&m);
    }
    for (int i = 0; i + 1 < STREAMS; i++) CHECK_OK(sp_stream_release(m.streams[i].handle));
    runtime_end();
    CHECK_EQ_U64(sp_load_acquire(&m.calls), m.expected_calls); /* each was called once */
    test_note("%llu calls that work, %llu that are refused", (unsigned long long)m.good_calls,
              (unsigned long long)m.bad_calls);
    CHECK(m.is_wrong || (m.good_calls > 10 * sequences && m.bad_calls > 10 * sequences));
}

TEST_MAIN
