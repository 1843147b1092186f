/* SPDX-License-Identifier: Apache-2.0 */
/* Each key has its last write and the reads since; a step is ordered after those it conflicts with.
 * A pair of conflicting steps without another order between them is a race in DPOR's sense: they
 * may occur in the other order. An unlock cannot race (no other thread can lock before it), so
 * locks race with the last lock instead. */
#include "deps.h"

#include <string.h>

#include "shadow.h"
#include "strategy.h"

#define OBJECT_SLOTS (1u << 13)
#define RACES_MAX (2 * (SP_SCHED_MAX_THREADS + 1))

typedef struct dep_object {
    uintptr_t key;
    uint64_t run;
    uint32_t last_write;
    uint32_t last_lock;
    uint32_t readers;                     /* threads with a read since the last write */
    uint32_t reads[SP_SCHED_MAX_THREADS]; /* the last read of each */
} dep_object;

static dep_object *objects;
static sp_step *steps;
static uint32_t step_count;
static uint32_t ordinals[SP_SCHED_MAX_THREADS];
static uint64_t run_number;
static uint64_t trace_hash;

const sp_step *sp__deps_steps(void)
{
    return steps;
}

uint32_t sp__deps_step_count(void)
{
    return step_count;
}

uint64_t sp__deps_trace_hash(void)
{
    return trace_hash;
}

void sp__deps_begin(void)
{
    if (objects == NULL) {
        objects = sp__reserve(OBJECT_SLOTS * sizeof *objects);
        steps = sp__reserve((SP_SCHED_STEPS_MAX + 2) * sizeof *steps);
    }
    run_number++;
    step_count = 0;
    trace_hash = 0;
    memset(ordinals, 0, sizeof ordinals);
}

static dep_object *key_object(uintptr_t key)
{
    const uint64_t hash = (uint64_t)key * 0x9e3779b97f4a7c15u;
    for (uint32_t i = 0; i < OBJECT_SLOTS; i++) {
        dep_object *object = &objects[((hash >> 40) + i) % OBJECT_SLOTS];
        if (object->run != run_number) {
            object->run = run_number;
            object->key = key;
            object->last_write = object->last_lock = object->readers = 0;
            return object;
        }
        if (object->key == key) return object;
    }
    sp__engine_fail(SP_SCHED_TOO_BIG, "more than %u atomics in one run", OBJECT_SLOTS);
}

bool sp__deps_are_dependent(const sp_op *a, const sp_op *b)
{
    for (uint32_t i = 0; i < a->key_count; i++) {
        for (uint32_t j = 0; j < b->key_count; j++) {
            if (a->key[i] == b->key[j] && (a->is_write[i] || b->is_write[j])) return true;
        }
    }
    return false;
}

bool sp__deps_races_with_write(const sp_sched_thread *self, uintptr_t key)
{
    const uint32_t step = key_object(key)->last_write;
    if (step == 0) return false;
    const uint32_t other = steps[step].id;
    return other != self->id && (int32_t)step > self->step_clock.at[other];
}

static bool is_unlock(const sp_op *op, uint32_t key)
{
    return (op->kind == SP_OP_UNLOCK && key == 0) || (op->kind == SP_OP_COND_WAIT && key == 1);
}

typedef struct race_list {
    uint32_t step[RACES_MAX];
    uint32_t count;
} race_list;

static void add_race(race_list *races, const sp_vclock *before, uint32_t id, uint32_t step)
{
    const uint32_t other = steps[step].id;
    if (step == 0 || other == id || (int32_t)step <= before->at[other]) return;
    races->step[races->count++] = step;
}

static void step_touch_key(sp_step *step, uint32_t key, const sp_vclock *before, race_list *races)
{
    const sp_op *op = &step->op;
    dep_object *object = key_object(op->key[key]);
    if (op->kind == SP_OP_LOCK) {
        add_race(races, before, step->id, object->last_lock);
    } else if (!is_unlock(op, key)) {
        add_race(races, before, step->id, object->last_write);
    }
    if (object->last_write != 0) sp__vclock_join(&step->clock, &steps[object->last_write].clock);
    if (!op->is_write[key]) {
        object->readers |= 1u << step->id;
        object->reads[step->id] = step_count;
        return;
    }
    for (uint32_t left = object->readers; left != 0; left &= left - 1) {
        const uint32_t read = object->reads[__builtin_ctz(left)];
        if (op->kind != SP_OP_LOCK) add_race(races, before, step->id, read);
        sp__vclock_join(&step->clock, &steps[read].clock);
    }
    object->readers = 0;
    object->last_write = step_count;
    if (op->kind == SP_OP_LOCK || op->kind == SP_OP_TRY_LOCK) object->last_lock = step_count;
}

static uint64_t hash_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0xff51afd7ed558ccdu;
    return hash ^ (hash >> 32);
}

/* The value that a step read, at level weak, where it is not determined by the step's past.
 * Addresses are excluded: they depend on the order of allocations, which are not steps. */
static uint64_t step_outcome(uint64_t value)
{
    if (!sp__engine.is_weak) return 0;
    return value - (uintptr_t)sp__engine.region < SP_SCHED_REGION_BYTES ? 1 : value;
}

/* The same for every run of the trace: names a step by thread and ordinal, and its past by the
 * ordinals of the last steps in it. */
static uint64_t step_hash(const sp_step *step, uint64_t value)
{
    uint64_t hash = hash_mix(hash_mix(0x1234567, step->id), step->op.kind);
    for (uint32_t i = 0; i < SP_SCHED_MAX_THREADS; i++) {
        const int32_t last = step->clock.at[i];
        hash = hash_mix(hash, last == 0 ? 0 : steps[last].ordinal);
    }
    return hash_mix(hash, step_outcome(value));
}

void sp__deps_step(sp_sched_thread *self, uint64_t value)
{
    sp_step *step = &steps[++step_count];
    const sp_vclock before = self->step_clock;
    race_list races = {.count = 0};
    step->clock = before;
    step->op = self->op;
    step->id = self->id;
    step->ordinal = ++ordinals[self->id];
    for (uint32_t i = 0; i < step->op.key_count; i++) step_touch_key(step, i, &before, &races);
    step->clock.at[self->id] = (int32_t)step_count;
    self->step_clock = step->clock;
    if (sp__engine.options.on_trace != NULL) trace_hash += step_hash(step, value);
    if (sp__engine.strategy->wants_every_step) {
        sp__dpor_races(step_count, races.step, races.count);
    }
}

void sp__deps_follow(sp_sched_thread *thread, const sp_vclock *cause)
{
    if (cause != NULL) {
        sp__vclock_join(&thread->step_clock, cause);
        return;
    }
    for (uint32_t i = 0; i < sp__engine.thread_count; i++) {
        sp__vclock_join(&thread->step_clock, &sp__engine.threads[i].step_clock);
    }
}
