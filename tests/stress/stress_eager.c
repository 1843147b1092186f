/* SPDX-License-Identifier: Apache-2.0 */
/* Eager calls from 31 threads: every op on shared views, chains of calls, tensors passed from
 * thread to thread without waiting. The bits are those of a single thread. */
#include <string.h>

#include "stress.h"
#include "support/eager_rows.h"

#define THREADS 31
#define MAX_ROWS 256

/* ---- every op ---- */

typedef struct shared_use {
    eager_case c;
    sp_tensor tensors[CASE_OPERANDS]; /* scattered */
    sp_array wanted[CASE_OPERANDS];   /* of a single thread */
} shared_use;

typedef struct op_load {
    shared_use *uses;
    uint64_t rounds;
    overlap overlap;
    sp_atomic_u32 differing;
} op_load;

static sp_status call_and_read(const shared_use *use, sp_array *got)
{
    sp_tensor results[CASE_OPERANDS] = {0};
    sp_status status = eager_case_call(&use->c, TESTED, use->tensors, results);
    for (uint32_t i = 0; i < use->c.output_count && status == SP_OK; i++) {
        status = array_from_tensor(results[use->c.result_of[i]], &got[i]);
    }
    tensors_release(results, CASE_OPERANDS);
    return status;
}

static void call_ops(void *arg, uint32_t index)
{
    op_load *self = arg;
    uint64_t random = random_seed(index);
    for (uint64_t round = 0; round < self->rounds; round++) {
        const shared_use *use = &self->uses[random_next(&random) % eager_row_count];
        sp_array got[CASE_OPERANDS] = {0};
        overlap_enter(&self->overlap);
        if (round == 0) overlap_meet(&self->overlap);
        const sp_status status = call_and_read(use, got);
        overlap_leave(&self->overlap);
        CHECK_OK(status);
        if (status != SP_OK || !arrays_are_same(got, use->wanted, use->c.output_count)) {
            raise_by_one(&self->differing);
        }
        data_free(got, CASE_OPERANDS);
    }
}

TEST(every_op_on_shared_views_has_the_bits_of_one_thread)
{
    static shared_use uses[MAX_ROWS];
    runtime_begin();
    REQUIRE(eager_row_count <= MAX_ROWS);
    memset(uses, 0, sizeof uses);
    for (uint32_t i = 0; i < eager_row_count; i++) {
        eager_case_make(&eager_rows[i], &uses[i].c);
        CHECK_OK(eager_case_upload(&uses[i].c, TESTED, true, uses[i].tensors));
        CHECK_OK(eager_case_run(&uses[i].c, TESTED, false, uses[i].wanted));
    }
    op_load load = {.uses = uses, .rounds = test_count(20000, 400)};
    test_threads(THREADS, call_ops, &load);
    CHECK_EQ_U64(sp_load_relaxed(&load.differing), 0);
    check_overlap(&load.overlap, 2);
    for (uint32_t i = 0; i < eager_row_count; i++) {
        tensors_release(uses[i].tensors, CASE_OPERANDS);
        data_free(uses[i].wanted, CASE_OPERANDS);
        eager_case_close(&uses[i].c);
    }
    runtime_end();
}

/* ---- a chain of calls ---- */

enum { ROWS = 7, DEPTH = 48, WIDTH = 40 };

typedef struct chain_load {
    sp_tensor x, w, b, scale; /* x is a transposed view, w every other row */
    float wanted[ROWS * WIDTH];
    uint64_t rounds;
    overlap overlap;
    sp_atomic_u32 differing;
} chain_load;

/* softmax(layer_norm(gelu(x w' + b))) plus itself, transposed twice; without any wait. */
static sp_status chain(const chain_load *self, sp_tensor *out)
{
    sp_tensor steps[6] = {0};
    sp_status status = sp_linear(self->x, self->w, self->b, &steps[0]);
    if (status == SP_OK) status = sp_gelu(steps[0], false, &steps[1]);
    if (status == SP_OK) {
        status = sp_layer_norm(steps[1], self->scale, self->b, -1, 1e-5f, &steps[2]);
    }
    if (status == SP_OK) status = sp_tensor_transpose(steps[2], 0, 1, &steps[3]);
    if (status == SP_OK) status = sp_softmax(steps[3], 0, &steps[4]);
    if (status == SP_OK) status = sp_add(steps[4], steps[3], &steps[5]);
    if (status == SP_OK) status = sp_tensor_transpose(steps[5], 0, 1, out);
    tensors_release(steps, 6);
    return status;
}

static sp_status run_chain(const chain_load *self, float *values)
{
    sp_tensor y;
    SP_TRY(chain(self, &y));
    const sp_status status = sp_tensor_read(y, values, sizeof self->wanted);
    (void)sp_tensor_release(y);
    return status;
}

static bool are_same(const float *a, const float *b)
{
    for (int i = 0; i < ROWS * WIDTH; i++) {
        if (!data_is_same(a[i], b[i])) return false;
    }
    return true;
}

static void run_chains(void *arg, uint32_t index)
{
    (void)index;
    chain_load *self = arg;
    for (uint64_t round = 0; round < self->rounds; round++) {
        float values[ROWS * WIDTH];
        overlap_enter(&self->overlap);
        if (round == 0) overlap_meet(&self->overlap);
        CHECK_OK(run_chain(self, values));
        overlap_leave(&self->overlap);
        if (!are_same(values, self->wanted)) raise_by_one(&self->differing);
    }
}

static sp_tensor random_tensor(uint64_t *random, int64_t rows, int64_t columns)
{
    float values[2 * WIDTH * DEPTH];
    sp_tensor tensor = {0};
    const int64_t shape[2] = {rows, columns};
    const size_t count = (size_t)(rows * columns);
    for (size_t i = 0; i < count; i++) values[i] = (float)random_next(random) / 1e9f - 1;
    CHECK_OK(sp_tensor_from_host(TESTED, SP_F32, rows == 1 ? 1 : 2, rows == 1 ? &columns : shape,
                                 values, count * sizeof *values, &tensor));
    return tensor;
}

TEST(chains_of_calls_have_the_bits_of_one_thread)
{
    runtime_begin();
    uint64_t random = random_seed(7);
    const sp_tensor x = random_tensor(&random, DEPTH, ROWS);
    const sp_tensor w = random_tensor(&random, 2 * WIDTH, DEPTH);
    chain_load load = {.b = random_tensor(&random, 1, WIDTH),
                       .scale = random_tensor(&random, 1, WIDTH),
                       .rounds = test_count(3000, 60)};
    CHECK_OK(sp_tensor_transpose(x, 0, 1, &load.x));
    CHECK_OK(sp_tensor_slice(w, 0, 1, WIDTH, 2, &load.w));
    CHECK_OK(run_chain(&load, load.wanted));
    test_threads(THREADS, run_chains, &load);
    CHECK_EQ_U64(sp_load_relaxed(&load.differing), 0);
    check_overlap(&load.overlap, 2);
    tensors_release((const sp_tensor[]){x, w, load.x, load.w, load.b, load.scale}, 6);
    runtime_end();
}

/* ---- from thread to thread ---- */

enum { ELEMENTS = 1024 };

typedef struct relay {
    sp_tensor base;
    sp_atomic_u64 slots[THREADS]; /* a tensor that a thread has just submitted; 0: taken */
    uint64_t rounds;
    sp_atomic_u32 wrong;
} relay;

static sp_tensor take(sp_atomic_u64 *slot)
{
    for (;;) {
        const uint64_t bits = sp_exchange_acq_rel(slot, 0);
        if (bits != 0) return (sp_tensor){bits};
        sp_thread_yield();
    }
}

/* Adds the base to the tensor from the left, passes the sum to the right, and reads it. */
static void pass_on(void *arg, uint32_t index)
{
    relay *self = arg;
    sp_atomic_u64 *from = &self->slots[index], *to = &self->slots[(index + 1) % THREADS];
    for (uint64_t round = 1; round <= self->rounds; round++) {
        float values[ELEMENTS];
        sp_tensor sum;
        const sp_tensor taken = take(from);
        CHECK_OK(sp_add(taken, self->base, &sum));
        CHECK_OK(sp_tensor_release(taken));
        CHECK_OK(sp_tensor_retain(sum));
        while (sp_load_relaxed(to) != 0) sp_thread_yield();
        sp_store_release(to, sum.bits);
        CHECK_OK(sp_tensor_read(sum, values, sizeof values));
        CHECK_OK(sp_tensor_release(sum));
        for (int i = 0; i < ELEMENTS; i++) {
            if (values[i] == (float)(round + 1)) continue;
            raise_by_one(&self->wrong);
            break;
        }
    }
}

TEST(a_result_may_be_used_by_another_thread_at_once)
{
    runtime_begin();
    const int64_t shape[1] = {ELEMENTS};
    float ones[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++) ones[i] = 1;
    relay load = {.rounds = test_count(5000, 100)};
    CHECK_OK(sp_tensor_from_host(TESTED, SP_F32, 1, shape, ones, sizeof ones, &load.base));
    for (uint32_t i = 0; i < THREADS; i++) {
        CHECK_OK(sp_tensor_retain(load.base));
        sp_store_relaxed(&load.slots[i], load.base.bits);
    }
    test_threads(THREADS, pass_on, &load);
    CHECK_EQ_U64(sp_load_relaxed(&load.wrong), 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        CHECK_OK(sp_tensor_release((sp_tensor){sp_load_relaxed(&load.slots[i])}));
    }
    CHECK_OK(sp_tensor_release(load.base));
    runtime_end();
}

TEST_MAIN
