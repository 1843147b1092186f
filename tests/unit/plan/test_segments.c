/* SPDX-License-Identifier: Apache-2.0 */
/* Partitioning a plan: the borders of segments, and the copies with which a run in several memories
 * computes the same as a run in one memory. */
#include "plan/segments.h"

#include <stdio.h>
#include <string.h>

#include "base/heap.h"
#include "support/model_data.h"
#include "support/test.h"

enum { MAX_STEPS = 40, MAX_BINDINGS = 4, MAX_PORTS = 4, SLOTS = 12, UNIT = 64, DEVICES = 4 };

/* A plan built by hand, or at random. */
typedef struct made_plan {
    sp_graph_plan plan;
    sp_plan_step steps[MAX_STEPS];
    sp_plan_binding bindings[MAX_STEPS][MAX_BINDINGS];
    sp_plan_tensor inputs[MAX_PORTS], outputs[MAX_PORTS];
    sp_plan_lifetime lifetimes[MAX_STEPS];
} made_plan;

static const sp_kernel table[2] = {{.name = "a"}, {.name = "b"}};

static void made_init(made_plan *m, uint32_t inputs, uint32_t outputs)
{
    memset(m, 0, sizeof *m);
    m->plan = (sp_graph_plan){.kernels = table,
                              .steps = m->steps,
                              .inputs = m->inputs,
                              .outputs = m->outputs,
                              .lifetimes = m->lifetimes,
                              .input_count = inputs,
                              .output_count = outputs,
                              .arena_bytes = SLOTS * UNIT};
    for (uint32_t i = 0; i < inputs; i++) m->inputs[i].bytes = UNIT;
    for (uint32_t i = 0; i < outputs; i++) m->outputs[i].bytes = UNIT;
}

static void add_step(made_plan *m)
{
    const uint32_t s = m->plan.step_count++;
    m->steps[s] = (sp_plan_step){.kernel = (sp_kernel_id)(s % 2),
                                 .bindings = m->bindings[s],
                                 .op_name = s % 2 == 0 ? "A" : "B"};
}

static void bind(made_plan *m, sp_place_kind where, uint32_t index, bool is_write)
{
    const uint32_t s = m->plan.step_count - 1;
    sp_plan_binding *binding = &m->bindings[s][m->steps[s].binding_count++];
    const bool is_arena = where == SP_PLACE_ARENA;
    *binding = (sp_plan_binding){.where = where,
                                 .index = is_arena ? 0 : index,
                                 .offset = is_arena ? (uint64_t)index * UNIT : 0,
                                 .bytes = UNIT,
                                 .is_write = is_write};
}

/* Begins a lifetime in arena slot `slot` at the newest step; returns its number. */
static uint32_t begin_value(made_plan *m, uint32_t slot)
{
    const uint32_t s = m->plan.step_count - 1;
    m->lifetimes[m->plan.lifetime_count] = (sp_plan_lifetime){
        .offset = (uint64_t)slot * UNIT, .bytes = UNIT, .first_step = s, .last_step = s};
    return m->plan.lifetime_count++;
}

/* d is the model's device, c the cpu, e and f further devices with their own memory. */
static const char letters[] = "dcef";

static uint8_t device_of(char letter)
{
    return (uint8_t)(strchr(letters, letter) - letters);
}

/* x -> slot 0 -> slot 1 -> ... -> y, one step per letter of `places`. */
static void make_chain(made_plan *m, const char *places, uint8_t *devices)
{
    const uint32_t count = (uint32_t)strlen(places);
    made_init(m, 1, 1);
    for (uint32_t s = 0; s < count; s++) {
        devices[s] = device_of(places[s]);
        add_step(m);
        if (s == 0) bind(m, SP_PLACE_INPUT, 0, false);
        else bind(m, SP_PLACE_ARENA, s - 1, false);
        if (s > 0) m->lifetimes[s - 1].last_step = s;
        if (s + 1 == count) {
            bind(m, SP_PLACE_OUTPUT, 0, true);
        } else {
            begin_value(m, s);
            bind(m, SP_PLACE_ARENA, s, true);
        }
    }
}

/* As "d2(1,1) c3 d0(0,0)": device, number of steps, copies in and out. */
static void describe(const sp_segments *segments, char *out, size_t room)
{
    size_t used = 0;
    for (uint32_t g = 0; g < segments->count && used < room; g++) {
        const sp_segment *segment = &segments->list[g];
        const char *gap = g > 0 ? " " : "";
        REQUIRE(segment->device < sizeof letters - 1);
        used += (size_t)snprintf(out + used, room - used, "%s%c%u", gap, letters[segment->device],
                                 segment->step_count);
        if (segment->device == SP_SEGMENT_FALLBACK) {
            CHECK(segment->copies_in + segment->copies_out == 0);
        } else if (used < room) {
            used += (size_t)snprintf(out + used, room - used, "(%u,%u)", segment->copies_in,
                                     segment->copies_out);
        }
    }
}

static void check_chain(const char *places, const char *wanted)
{
    static made_plan m;
    uint8_t devices[MAX_STEPS];
    sp_segments segments;
    char text[256] = "";
    make_chain(&m, places, devices);
    if (places[0] == '\0') made_init(&m, 1, 0);
    REQUIRE_OK(sp__segments_partition(&m.plan, devices, &segments));
    describe(&segments, text, sizeof text);
    CHECK_EQ_STR(text, wanted);
    uint32_t next = 0;
    for (uint32_t g = 0; g < segments.count; g++) {
        CHECK_EQ_U64(segments.list[g].first_step, next);
        next += segments.list[g].step_count;
    }
    CHECK_EQ_U64(next, m.plan.step_count);
    sp__segments_deinit(&segments);
}

TEST(segments_take_turns_and_begin_and_end_on_the_device)
{
    static const char *const cases[][2] = {
        {"", "d0(0,0)"},
        {"d", "d1(1,1)"},
        {"dddd", "d4(1,1)"},
        {"c", "d0(0,0) c1 d0(0,0)"}, /* the caller's memory is the cpu's: nothing to copy */
        {"cccc", "d0(0,0) c4 d0(0,0)"},
        {"cddd", "d0(0,0) c1 d3(1,1)"},
        {"dddc", "d3(1,1) c1 d0(0,0)"},
        {"ddcdd", "d2(1,1) c1 d2(1,1)"},
        {"cdc", "d0(0,0) c1 d1(1,1) c1 d0(0,0)"},
        {"dcdcd", "d1(1,1) c1 d1(1,1) c1 d1(1,1)"},
        {"dccdccd", "d1(1,1) c2 d1(1,1) c2 d1(1,1)"},
    };
    for (size_t i = 0; i < SP_COUNT_OF(cases); i++) check_chain(cases[i][0], cases[i][1]);
}

TEST(a_value_goes_from_device_to_device_through_the_host)
{
    static const char *const cases[][2] = {
        {"e", "d0(0,0) e1(1,1) d0(0,0)"},
        {"deed", "d1(1,1) e2(1,1) d1(1,1)"},
        {"dce", "d1(1,1) c1 e1(1,1) d0(0,0)"},
        {"ecd", "d0(0,0) e1(1,1) c1 d1(1,1)"},
        {"dede", "d1(1,1) e1(1,1) d1(1,1) e1(1,1) d0(0,0)"},
        {"defced", "d1(1,1) e1(1,1) f1(1,1) c1 e1(1,1) d1(1,1)"},
    };
    for (size_t i = 0; i < SP_COUNT_OF(cases); i++) check_chain(cases[i][0], cases[i][1]);
}

TEST(a_value_that_both_sides_read_is_copied_once)
{
    static made_plan m;
    made_init(&m, 1, 1);
    add_step(&m);
    bind(&m, SP_PLACE_INPUT, 0, false);
    const uint32_t value = begin_value(&m, 3);
    bind(&m, SP_PLACE_ARENA, 3, true);
    for (int i = 0; i < 4; i++) { /* each reads it, alternating between the cpu and the device */
        add_step(&m);
        bind(&m, SP_PLACE_ARENA, 3, false);
        bind(&m, SP_PLACE_ARENA, 3, false);
    }
    m.lifetimes[value].last_step = 4;
    add_step(&m);
    bind(&m, SP_PLACE_OUTPUT, 0, true);
    const uint8_t devices[] = {0, 1, 0, 1, 0, 0};
    sp_segments segments;
    char text[256] = "";
    REQUIRE_OK(sp__segments_partition(&m.plan, devices, &segments));
    describe(&segments, text, sizeof text);
    CHECK_EQ_STR(text, "d1(1,1) c1 d1(0,0) c1 d2(0,1)");
    CHECK_EQ_INT(segments.list[0].copies[1].where, SP_PLACE_ARENA);
    CHECK_EQ_U64(segments.list[0].copies[1].offset, 3 * UNIT);
    CHECK_EQ_U64(segments.list[0].copies[1].bytes, UNIT);
    CHECK_EQ_U64(segments.fallback_step_count, 2);
    sp__segments_deinit(&segments);
}

TEST(a_value_is_copied_out_behind_the_newest_segment_of_the_device_that_has_it)
{
    static made_plan m;
    made_init(&m, 1, 1);
    const uint8_t devices[] = {2, 3, 2, 0, 3, 2};
    for (uint32_t s = 0; s < SP_COUNT_OF(devices); s++) {
        add_step(&m);
        if (s == 0) {
            bind(&m, SP_PLACE_INPUT, 0, false);
            begin_value(&m, 5);
            bind(&m, SP_PLACE_ARENA, 5, true);
        } else if (s == 2 || s >= 4) {
            bind(&m, SP_PLACE_ARENA, 5, false);
        }
    }
    m.lifetimes[0].last_step = 5;
    bind(&m, SP_PLACE_OUTPUT, 0, true);
    sp_segments segments;
    char text[256] = "";
    REQUIRE_OK(sp__segments_partition(&m.plan, devices, &segments));
    describe(&segments, text, sizeof text);
    /* Step 4 needs the value of step 0; both devices have it for step 5. */
    CHECK_EQ_STR(text, "d0(0,0) e1(1,0) f1(0,0) e1(0,1) d1(0,0) f1(1,0) e1(0,1) d0(0,0)");
    CHECK_EQ_INT(segments.list[3].copies[0].where, SP_PLACE_ARENA);
    CHECK_EQ_U64(segments.list[3].copies[0].offset, 5 * UNIT);
    CHECK_EQ_INT(segments.list[5].copies[0].where, SP_PLACE_ARENA);
    CHECK_EQ_INT(segments.list[6].copies[0].where, SP_PLACE_OUTPUT);
    CHECK_EQ_U64(segments.fallback_step_count, 0);
    sp__segments_deinit(&segments);
}

/* The first two steps read input 1, then 0; the last one, on another device, output 1, then 0. */
TEST(copies_of_one_segment_are_in_the_order_of_the_steps_that_need_them)
{
    static made_plan m;
    made_init(&m, 2, 2);
    const uint8_t devices[] = {2, 2, 0};
    for (uint32_t s = 0; s < 2; s++) {
        add_step(&m);
        bind(&m, SP_PLACE_INPUT, 1 - s, false);
        bind(&m, SP_PLACE_OUTPUT, s, true);
    }
    add_step(&m);
    bind(&m, SP_PLACE_OUTPUT, 1, false);
    bind(&m, SP_PLACE_OUTPUT, 0, false);
    sp_segments segments;
    REQUIRE_OK(sp__segments_partition(&m.plan, devices, &segments));
    const sp_segment *e = &segments.list[1];
    REQUIRE(e->copies_in == 2 && e->copies_out == 2);
    const sp_place_kind where[] = {SP_PLACE_INPUT, SP_PLACE_INPUT, SP_PLACE_OUTPUT,
                                   SP_PLACE_OUTPUT};
    const uint32_t index[] = {1, 0, 1, 0};
    for (uint32_t i = 0; i < 4; i++) {
        CHECK_EQ_INT(e->copies[i].where, where[i]);
        CHECK_EQ_U64(e->copies[i].index, index[i]);
    }
    CHECK_EQ_U64(segments.list[2].copies_in, 2);
    CHECK(segments.list[2].copies == e->copies + 4);
    sp__segments_deinit(&segments);
}

TEST(an_output_that_is_read_again_is_copied_where_it_is_read)
{
    static made_plan m;
    made_init(&m, 1, 2);
    const uint8_t devices[] = {1, 0};
    add_step(&m);
    bind(&m, SP_PLACE_INPUT, 0, false);
    bind(&m, SP_PLACE_OUTPUT, 0, true);
    add_step(&m);
    bind(&m, SP_PLACE_OUTPUT, 0, false);
    bind(&m, SP_PLACE_OUTPUT, 1, true);
    sp_segments segments;
    char text[256] = "";
    REQUIRE_OK(sp__segments_partition(&m.plan, devices, &segments));
    describe(&segments, text, sizeof text);
    CHECK_EQ_STR(text, "d0(0,0) c1 d1(1,1)"); /* output 0 in, output 1 out */
    CHECK_EQ_INT(segments.list[2].copies[0].where, SP_PLACE_OUTPUT);
    CHECK_EQ_U64(segments.list[2].copies[0].index, 0);
    CHECK_EQ_U64(segments.list[2].copies[1].index, 1);
    sp__segments_deinit(&segments);
}

TEST(a_device_past_the_last_one_is_refused)
{
    static made_plan m;
    uint8_t devices[MAX_STEPS];
    sp_segments segments;
    make_chain(&m, "ded", devices);
    devices[1] = SP_SEGMENT_DEVICES - 1;
    REQUIRE_OK(sp__segments_partition(&m.plan, devices, &segments));
    CHECK_EQ_U64(segments.list[1].device, SP_SEGMENT_DEVICES - 1);
    sp__segments_deinit(&segments);
    devices[1] = SP_SEGMENT_DEVICES;
    CHECK_STATUS(sp__segments_partition(&m.plan, devices, &segments), SP_INTERNAL);
    CHECK(segments.list == NULL && segments.copies == NULL);
}

TEST(a_broken_plan_is_refused)
{
    static made_plan m;
    made_init(&m, 1, 1);
    const uint8_t devices[] = {0, 1};
    for (int i = 0; i < 2; i++) {
        add_step(&m);
        bind(&m, SP_PLACE_ARENA, 0, i == 0); /* without a lifetime */
    }
    sp_segments segments;
    CHECK_STATUS(sp__segments_partition(&m.plan, devices, &segments), SP_INTERNAL);
    CHECK(segments.list == NULL && segments.copies == NULL);
}

/* ---- random plans in several memories ---- */

/* A value is two words; a step that writes an existing value may write half of it. */
typedef struct word_pair {
    uint64_t half[2];
} word_pair;

typedef struct memories {
    word_pair arena[SLOTS], inputs[MAX_PORTS], outputs[MAX_PORTS];
} memories;

typedef struct random_plan {
    made_plan m;
    uint8_t devices[MAX_STEPS];
    uint8_t halves[MAX_STEPS][MAX_BINDINGS]; /* for writes: bits of the words */
    uint32_t owner[SLOTS];                   /* the lifetime in each slot, or NO_OWNER */
    bool is_written[MAX_PORTS];
} random_plan;

#define NO_OWNER UINT32_MAX

static word_pair *pair_at(memories *m, sp_place_kind where, uint32_t index, uint64_t offset)
{
    if (where == SP_PLACE_INPUT) return &m->inputs[index];
    if (where == SP_PLACE_OUTPUT) return &m->outputs[index];
    return &m->arena[offset / UNIT];
}

/* A slot with a value from before this step, or SLOTS. */
static uint32_t pick_living(const random_plan *p, data_random *random)
{
    const uint32_t s = p->m.plan.step_count - 1;
    const uint32_t first = (uint32_t)(data_next(random) % SLOTS);
    for (uint32_t i = 0; i < SLOTS; i++) {
        const uint32_t slot = (first + i) % SLOTS;
        const uint32_t owner = p->owner[slot];
        if (owner != NO_OWNER && p->m.lifetimes[owner].first_step < s) return slot;
    }
    return SLOTS;
}

static void read_something(random_plan *p, data_random *random)
{
    made_plan *m = &p->m;
    const uint32_t port = (uint32_t)(data_next(random) % MAX_PORTS);
    const uint32_t slot = pick_living(p, random);
    switch (data_next(random) % 4) {
    case 0:
        bind(m, SP_PLACE_INPUT, port, false);
        break;
    case 1:
        if (p->is_written[port]) bind(m, SP_PLACE_OUTPUT, port, false);
        break;
    default:
        if (slot == SLOTS) break;
        m->lifetimes[p->owner[slot]].last_step = m->plan.step_count - 1;
        bind(m, SP_PLACE_ARENA, slot, false);
    }
}

static void write_to(random_plan *p, sp_place_kind where, uint32_t index, uint8_t halves)
{
    const uint32_t s = p->m.plan.step_count - 1;
    p->halves[s][p->m.steps[s].binding_count] = halves;
    bind(&p->m, where, index, true);
}

static void write_new(random_plan *p, uint32_t slot)
{
    p->owner[slot] = begin_value(&p->m, slot);
    write_to(p, SP_PLACE_ARENA, slot, 3);
}

static void write_something(random_plan *p, data_random *random)
{
    made_plan *m = &p->m;
    const uint32_t port = (uint32_t)(data_next(random) % MAX_PORTS);
    const uint32_t slot = (uint32_t)(data_next(random) % SLOTS);
    const uint32_t living = pick_living(p, random);
    const uint8_t half = (uint8_t)(1 + data_next(random) % 3);
    switch (data_next(random) % 4) {
    case 0: /* an output, or a part of it */
        write_to(p, SP_PLACE_OUTPUT, port, p->is_written[port] ? half : 3);
        p->is_written[port] = true;
        return;
    case 1: /* over an operand whose lifetime ends here */
        if (living == SLOTS) break;
        m->lifetimes[p->owner[living]].last_step = m->plan.step_count - 1;
        bind(m, SP_PLACE_ARENA, living, false);
        write_new(p, living);
        return;
    case 2: /* a part of an existing value */
        if (living == SLOTS) break;
        m->lifetimes[p->owner[living]].last_step = m->plan.step_count - 1;
        write_to(p, SP_PLACE_ARENA, living, half);
        return;
    default:
        break;
    }
    if (p->owner[slot] == NO_OWNER) write_new(p, slot);
}

/* `device_count`: 2, or more for devices beside the model's and the cpu. */
static void make_random(random_plan *p, uint32_t device_count, data_random *random)
{
    memset(p, 0, sizeof *p);
    made_init(&p->m, MAX_PORTS, MAX_PORTS);
    for (uint32_t i = 0; i < SLOTS; i++) p->owner[i] = NO_OWNER;
    const uint32_t count = 1 + (uint32_t)(data_next(random) % MAX_STEPS);
    const uint64_t share = data_next(random) % 5; /* of four steps, the number on the cpu */
    for (uint32_t s = 0; s < count; s++) {
        add_step(&p->m);
        const bool is_on_cpu = data_next(random) % 4 < share;
        p->devices[s] = is_on_cpu ? SP_SEGMENT_FALLBACK : SP_SEGMENT_MODEL;
        if (device_count > 2 && data_next(random) % 2 == 0) {
            p->devices[s] = (uint8_t)(data_next(random) % device_count);
        }
        if (data_next(random) % 4 > 0) read_something(p, random);
        write_something(p, random);
        const uint32_t slot = (uint32_t)(data_next(random) % SLOTS);
        if (data_next(random) % 3 == 0) p->owner[slot] = NO_OWNER;
    }
}

static void run_step(const random_plan *p, uint32_t s, memories *memory)
{
    const sp_plan_step *step = &p->m.steps[s];
    uint64_t hash = 0x9e3779b97f4a7c15u * (s + 1);
    for (uint32_t i = 0; i < step->binding_count; i++) {
        const sp_plan_binding *b = &step->bindings[i];
        if (b->is_write) continue;
        const word_pair *pair = pair_at(memory, b->where, b->index, b->offset);
        for (int k = 0; k < 2; k++) hash = (hash ^ pair->half[k]) * 0xff51afd7ed558ccdu + 1;
    }
    for (uint32_t i = 0; i < step->binding_count; i++) {
        const sp_plan_binding *b = &step->bindings[i];
        if (!b->is_write) continue;
        word_pair *pair = pair_at(memory, b->where, b->index, b->offset);
        for (int k = 0; k < 2; k++) {
            if ((p->halves[s][i] >> k & 1) != 0) pair->half[k] = hash + (uint64_t)k;
        }
    }
}

static void run_copies(const sp_segment_copy *copies, uint32_t count, memories *to, memories *from)
{
    for (uint32_t i = 0; i < count; i++) {
        const sp_segment_copy *c = &copies[i];
        CHECK_EQ_U64(c->bytes, UNIT);
        *pair_at(to, c->where, c->index, c->offset) = *pair_at(from, c->where, c->index, c->offset);
    }
}

/* `memories`: of each device. */
static void run_segments(const random_plan *p, const sp_segments *segments, memories *all)
{
    memories *host = &all[SP_SEGMENT_FALLBACK];
    for (uint32_t g = 0; g < segments->count; g++) {
        const sp_segment *segment = &segments->list[g];
        memories *own = &all[segment->device];
        const bool is_edge = g == 0 || g + 1 == segments->count;
        CHECK(!is_edge || segment->device == SP_SEGMENT_MODEL);
        CHECK(g == 0 || segment->device != segments->list[g - 1].device);
        CHECK(is_edge || segment->step_count > 0);
        run_copies(segment->copies, segment->copies_in, own, host);
        for (uint32_t i = 0; i < segment->step_count; i++) {
            const uint32_t s = segment->first_step + i;
            CHECK_EQ_U64(p->devices[s], segment->device);
            run_step(p, s, own);
        }
        run_copies(segment->copies + segment->copies_in, segment->copies_out, host, own);
    }
}

static void fill_memories(memories *m, data_random *random)
{
    uint64_t *words = (uint64_t *)m;
    for (size_t i = 0; i < sizeof *m / sizeof *words; i++) words[i] = data_next(random);
}

static void check_random(uint32_t device_count)
{
    random_plan *p = sp_malloc(sizeof *p);
    uint64_t copies = 0, partitioned = 0;
    const uint64_t rounds = test_count(200000, 5000);
    for (uint64_t seed = 0; seed < rounds; seed++) {
        data_random random = {seed};
        memories one, all[DEVICES];
        sp_segments segments;
        make_random(p, device_count, &random);
        fill_memories(&one, &random);
        for (uint32_t i = 0; i < device_count; i++) fill_memories(&all[i], &random);
        memories *host = &all[SP_SEGMENT_FALLBACK];
        memcpy(host->inputs, one.inputs, sizeof one.inputs);
        for (uint32_t s = 0; s < p->m.plan.step_count; s++) run_step(p, s, &one);
        REQUIRE_OK(sp__segments_partition(&p->m.plan, p->devices, &segments));
        run_segments(p, &segments, all);
        for (uint32_t i = 0; i < MAX_PORTS; i++) {
            if (!p->is_written[i]) continue;
            REQUIRE_EQ_MEM(&host->outputs[i], &one.outputs[i], sizeof one.outputs[i]);
        }
        if (segments.count > 1) partitioned++;
        copies += segments.copy_count;
        sp__segments_deinit(&segments);
    }
    CHECK(partitioned > rounds / 4);
    test_note("%llu plans of several segments, %llu copies", (unsigned long long)partitioned,
              (unsigned long long)copies);
    sp_free(p);
}

TEST(random_plans_in_two_memories_compute_what_they_do_in_one)
{
    check_random(2);
}

TEST(random_plans_in_three_memories_compute_what_they_do_in_one)
{
    check_random(3);
}

TEST(random_plans_in_four_memories_compute_what_they_do_in_one)
{
    check_random(DEVICES);
}

TEST(every_allocation_of_a_partition_may_fail)
{
    static made_plan m;
    uint8_t devices[MAX_STEPS];
    make_chain(&m, "dcdcdedcdcdcdedcdcdcdcd", devices);
    sp_status status = SP_OUT_OF_MEMORY;
    uint64_t skip = 0;
    for (; status != SP_OK; skip++) {
        sp_segments segments;
        sp_heap_fail_after(skip);
        status = sp__segments_partition(&m.plan, devices, &segments);
        sp_heap_fail_after(UINT64_MAX);
        if (status != SP_OK) CHECK_STATUS(status, SP_OUT_OF_MEMORY);
        if (status != SP_OK) CHECK(segments.list == NULL && segments.copies == NULL);
        sp__segments_deinit(&segments);
    }
    CHECK(skip > 4);
}

/* ---- the choice of steps ---- */

static sp_status run_nothing(const sp_tile *tile)
{
    (void)tile;
    return SP_OK;
}

TEST(a_step_is_on_the_cpu_if_the_device_lacks_its_kernel_or_the_list_has_its_op)
{
    static made_plan m;
    uint8_t on[MAX_STEPS];      /* 1: the cpu */
    make_chain(&m, "dddd", on); /* kernels a b a b, ops A B A B */
    const sp_kernel both[2] = {{.name = "a", .run = run_nothing},
                               {.name = "b", .run = run_nothing}};
    const sp_kernel first[2] = {{.name = "a", .run = run_nothing}, {.name = "b"}};
    CHECK_EQ_U64(sp__segments_assign(&m.plan, both, "", on), 0);
    CHECK_EQ_U64(sp__segments_assign(&m.plan, first, "", on), 2);
    CHECK(on[0] == 0 && on[1] == 1 && on[2] == 0 && on[3] == 1);
    CHECK_EQ_U64(sp__segments_assign(&m.plan, both, "X, A", on), 2);
    CHECK(on[0] == 1 && on[1] == 0 && on[2] == 1 && on[3] == 0);
    CHECK_EQ_U64(sp__segments_assign(&m.plan, first, "A", on), 4);

    sp_segments segments;
    const char *name = NULL;
    uint32_t count = 0;
    CHECK_EQ_U64(sp__segments_assign(&m.plan, first, "A", on), 4);
    on[2] = 0;
    REQUIRE_OK(sp__segments_partition(&m.plan, on, &segments));
    CHECK(sp__segments_fallback_op(&segments, &m.plan, 0, &name, &count));
    CHECK_EQ_STR(name, "A");
    CHECK_EQ_U64(count, 1);
    CHECK(sp__segments_fallback_op(&segments, &m.plan, 1, &name, &count));
    CHECK_EQ_STR(name, "B");
    CHECK_EQ_U64(count, 2);
    CHECK(!sp__segments_fallback_op(&segments, &m.plan, 2, &name, &count));
    sp__segments_deinit(&segments);
}

TEST_MAIN
