/* SPDX-License-Identifier: Apache-2.0 */
/* Random small programs at level weak: the full search, DPOR, and DPOR with its equivalent choices
 * reach the same outcomes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/macros.h"
#include "base/thread.h"
#include "subject.h"

#define PROGRAMS 300u
#define THREADS_MAX 3u
#define OPS_MAX 4u
#define VARIABLES 2u
#define OUTCOMES_MAX 4096u

typedef enum op_kind { OP_LOAD, OP_STORE, OP_ADD, OP_SWAP, OP_CAS, OP_KINDS } op_kind;
typedef enum op_order { ORDER_RELAXED, ORDER_ACQ_REL, ORDER_SEQ_CST, ORDERS } op_order;

typedef struct random_op {
    op_kind kind;
    op_order order; /* acquire of a load, release of a store */
    uint32_t variable;
    uint32_t value;    /* for a CAS, the desired value */
    uint32_t expected; /* of a CAS */
} random_op;

typedef struct random_program {
    uint32_t thread_count;
    uint32_t op_count;
    random_op ops[THREADS_MAX][OPS_MAX];
} random_program;

/* The values that each operation read, five bits each, and the final values. */
typedef struct outcome_set {
    uint64_t outcomes[OUTCOMES_MAX];
    uint32_t count;
} outcome_set;

static struct {
    const random_program *program;
    sp_atomic_u32 variables[VARIABLES];
    uint32_t read[THREADS_MAX][OPS_MAX]; /* plain: a row is private to its thread until the join */
} shared;

static outcome_set *current; /* of all runs of an exploration; the runs do not read it */

__attribute__((no_sanitize("thread"))) static void note_outcome(uint64_t outcome)
{
    for (uint32_t i = 0; i < current->count; i++) {
        if (current->outcomes[i] == outcome) return;
    }
    if (current->count < OUTCOMES_MAX) current->outcomes[current->count++] = outcome;
}

/* ---- programs ---- */

static uint64_t random_state;

static uint32_t random_below(uint32_t bound)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(((random_state >> 32) * bound) >> 32);
}

static void program_generate(random_program *p, uint32_t number)
{
    random_state = number;
    for (uint32_t i = 0; i < 8; i++) (void)random_below(2);
    p->thread_count = 2 + number % 2;
    p->op_count = p->thread_count == 2 ? 4 : 2;
    for (uint32_t t = 0; t < p->thread_count; t++) {
        for (uint32_t i = 0; i < p->op_count; i++) {
            p->ops[t][i] = (random_op){.kind = (op_kind)random_below(OP_KINDS),
                                       .order = (op_order)random_below(ORDERS),
                                       .variable = random_below(VARIABLES),
                                       .value = 1 + random_below(3),
                                       .expected = random_below(3)};
        }
    }
}

static void print_program(const random_program *p)
{
    static const char *const kinds[OP_KINDS] = {"load", "store", "add", "swap", "cas"};
    static const char *const orders[ORDERS] = {"relaxed", "acq_rel", "seq_cst"};
    for (uint32_t t = 0; t < p->thread_count; t++) {
        printf("    ");
        for (uint32_t i = 0; i < p->op_count; i++) {
            const random_op *op = &p->ops[t][i];
            printf("%s %s %c %u %u; ", kinds[op->kind], orders[op->order], "xy"[op->variable],
                   op -> value, op -> expected);
        }
        printf("\n");
    }
}

/* ---- running ---- */

#define BY_ORDER(order, relaxed, acq_rel, seq_cst)                                                 \
    ((order) == ORDER_RELAXED ? (relaxed) : (order) == ORDER_ACQ_REL ? (acq_rel) : (seq_cst))

static uint32_t op_store(sp_atomic_u32 *place, const random_op *op)
{
    switch (op->order) {
    case ORDER_RELAXED:
        sp_store_relaxed(place, op->value);
        break;
    case ORDER_ACQ_REL:
        sp_store_release(place, op->value);
        break;
    default:
        sp_store_seq_cst(place, op->value);
        break;
    }
    return 0;
}

static uint32_t op_compare_and_swap(sp_atomic_u32 *place, const random_op *op)
{
    uint32_t found = op->expected;
    (void)BY_ORDER(op->order, sp_cas_relaxed(place, &found, op->value),
                   sp_cas_acq_rel(place, &found, op->value),
                   sp_cas_seq_cst(place, &found, op->value));
    return found;
}

static uint32_t op_execute(sp_atomic_u32 *place, const random_op *op)
{
    switch (op->kind) {
    case OP_LOAD:
        return BY_ORDER(op->order, sp_load_relaxed(place), sp_load_acquire(place),
                        sp_load_seq_cst(place));
    case OP_STORE:
        return op_store(place, op);
    case OP_ADD:
        return BY_ORDER(op->order, sp_fetch_add_relaxed(place, op->value),
                        sp_fetch_add_acq_rel(place, op->value),
                        sp_fetch_add_seq_cst(place, op->value));
    case OP_SWAP:
        return BY_ORDER(op->order, sp_exchange_relaxed(place, op->value),
                        sp_exchange_acq_rel(place, op->value),
                        sp_exchange_seq_cst(place, op->value));
    default:
        return op_compare_and_swap(place, op);
    }
}

static void run_thread(void *arg)
{
    const uint32_t thread = *(const uint32_t *)arg;
    for (uint32_t i = 0; i < shared.program->op_count; i++) {
        const random_op *op = &shared.program->ops[thread][i];
        shared.read[thread][i] = op_execute(&shared.variables[op->variable], op);
    }
}

static void run_program(void *arg)
{
    static const uint32_t numbers[THREADS_MAX] = {0, 1, 2};
    sp_thread threads[THREADS_MAX];
    uint64_t outcome = 0;
    shared.program = arg;
    for (uint32_t i = 0; i < VARIABLES; i++) shared.variables[i].value = 0;
    const uint32_t count = shared.program->thread_count;
    for (uint32_t t = 0; t < count; t++) {
        SP_SCHED_ASSERT(
            sp_thread_create(&threads[t], "", run_thread, (void *)(uintptr_t)&numbers[t]) == SP_OK);
    }
    for (uint32_t t = 0; t < count; t++) sp_thread_join(&threads[t]);
    for (uint32_t t = 0; t < count; t++) {
        for (uint32_t i = 0; i < shared.program->op_count; i++) {
            outcome = outcome << 5 | shared.read[t][i];
        }
    }
    for (uint32_t i = 0; i < VARIABLES; i++) {
        outcome = outcome << 5 | sp_load_relaxed(&shared.variables[i]);
    }
    note_outcome(outcome);
}

/* ---- comparing ---- */

static outcome_set *outcomes_collect(const random_program *p, sp_sched_search search,
                                     bool keeps_equivalent)
{
    const sp_explore_options options = {.search = search,
                                        .level = SP_LEVEL_WEAK,
                                        .preemption_bound = SP_SCHED_NO_BOUND,
                                        .keeps_equivalent_choices = keeps_equivalent,
                                        .max_seconds = 5};
    sp_explore_result result;
    outcome_set *set = calloc(1, sizeof *set);
    current = set;
    sp_explore(run_program, (void *)(uintptr_t)p, &options, &result);
    if (result.verdict == SP_SCHED_OK && result.is_exhausted && set->count < OUTCOMES_MAX) {
        return set;
    }
    printf("  %s: %s %s\n", sp_sched_search_name(search), sp_sched_verdict_name(result.verdict),
           result.message);
    free(set);
    return NULL;
}

static bool outcomes_contain(const outcome_set *set, uint64_t outcome)
{
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->outcomes[i] == outcome) return true;
    }
    return false;
}

static bool outcomes_are_equal(const outcome_set *a, const outcome_set *b)
{
    if (a == NULL || b == NULL || a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++) {
        if (!outcomes_contain(b, a->outcomes[i])) return false;
    }
    return true;
}

static bool has_same_outcomes(uint32_t number)
{
    random_program p;
    memset(&p, 0, sizeof p);
    program_generate(&p, number);
    outcome_set *full = outcomes_collect(&p, SP_SEARCH_BOUNDED, false);
    outcome_set *dpor = outcomes_collect(&p, SP_SEARCH_DPOR, false);
    outcome_set *equivalent = outcomes_collect(&p, SP_SEARCH_DPOR, true);
    const bool is_same = outcomes_are_equal(full, dpor) && outcomes_are_equal(full, equivalent);
    if (!is_same || getenv("SP_SCHED_VERBOSE") != NULL) {
        printf("  program %u: %u outcomes of the full search, %u of dpor, %u with equivalent "
               "choices\n",
               number, full != NULL ? full->count : 0, dpor != NULL ? dpor->count : 0,
               equivalent != NULL ? equivalent->count : 0);
        print_program(&p);
        for (uint32_t i = 0; full != NULL && i < full->count; i++) {
            printf("    = %#" PRIx64 "\n", full->outcomes[i]);
        }
    }
    free(full);
    free(dpor);
    free(equivalent);
    return is_same;
}

static bool random_programs(void)
{
    bool is_right = true;
    for (uint32_t i = 0; i < PROGRAMS; i++) is_right = has_same_outcomes(i) && is_right;
    return is_right;
}

const sp_selftest sp__selftests_random[] = {
    {"random programs have one set of outcomes", random_programs},
    {NULL, NULL},
};
