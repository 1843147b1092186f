/* SPDX-License-Identifier: Apache-2.0 */
/* Models on tensors that threads share, in random order on shared streams, with no wait but for the
 * results. Each result has the bits of one of the inputs. */
#include <string.h>

#include "stress.h"
#include "tensor_fixture.h"

enum { THREADS = 8, STREAMS = 5, INPUTS = 6, CELLS = 3, ROWS = 9, OUT = ROWS * SMALL_OUT };

typedef struct tensors_load {
    sp_device device;
    sp_model first, second; /* y = first(x), z = second(y) */
    sp_stream streams[STREAMS];
    sp_tensor x[INPUTS];
    sp_tensor cells[CELLS]; /* each a y of some input, written and read by all threads */
    float y[INPUTS][OUT], z[INPUTS][OUT];
    uint64_t rounds;
    overlap overlap;
    sp_atomic_u32 differing, cancelled;
} tensors_load;

static sp_stream any_stream(const tensors_load *self, uint64_t *random)
{
    const uint32_t i = random_next(random) % (STREAMS + 1);
    return i < STREAMS ? self->streams[i] : (sp_stream){0};
}

static sp_status run(sp_model model, sp_stream stream, sp_tensor from, sp_tensor *to)
{
    const sp_model_tensor input = {.tensor = from};
    sp_model_tensor output = {.tensor = *to};
    sp_status status;
    do {
        status = sp_model_run_tensors(model, stream, NULL, &input, 1, &output, 1);
    } while (is_busy(status, stream));
    *to = output.tensor;
    return status;
}

/* As bits. */
static bool are_same(const void *a, const void *b)
{
    return memcmp(a, b, OUT * sizeof(float)) == 0;
}

/* The input whose result the tensor has, or INPUTS. Releases the tensor. */
static uint32_t result_of(sp_tensor tensor, float (*wanted)[OUT])
{
    float got[OUT];
    uint32_t i = INPUTS;
    if (sp_tensor_read(tensor, got, sizeof got) == SP_OK) {
        for (i = 0; i < INPUTS; i++) {
            if (are_same(got, wanted[i])) break;
        }
    }
    return sp_tensor_release(tensor) == SP_OK ? i : INPUTS;
}

/* Two models, on two streams; the tensor between them is released at once. */
static bool chain_is_right(tensors_load *self, uint64_t *random)
{
    const uint32_t i = random_next(random) % INPUTS;
    sp_tensor y = {0}, z = {0};
    if (run(self->first, any_stream(self, random), self->x[i], &y) != SP_OK) return false;
    const sp_status status = run(self->second, any_stream(self, random), y, &z);
    return sp_tensor_release(y) == SP_OK && status == SP_OK && result_of(z, self->z) == i;
}

static bool cell_is_written(tensors_load *self, uint64_t *random)
{
    const uint32_t i = random_next(random) % INPUTS;
    sp_tensor cell = self->cells[random_next(random) % CELLS];
    return run(self->first, any_stream(self, random), self->x[i], &cell) == SP_OK;
}

/* Of whichever input was the last: never parts of two. */
static bool cell_is_whole(tensors_load *self, uint64_t *random)
{
    sp_tensor z = {0};
    const sp_tensor cell = self->cells[random_next(random) % CELLS];
    return run(self->second, any_stream(self, random), cell, &z) == SP_OK &&
           result_of(z, self->z) < INPUTS;
}

/* A run in place, of a tensor that no other thread has. */
static bool update_is_right(tensors_load *self, uint64_t *random)
{
    const uint32_t i = random_next(random) % INPUTS;
    sp_tensor y = {0};
    if (run(self->first, any_stream(self, random), self->x[i], &y) != SP_OK) return false;
    if (run(self->second, any_stream(self, random), y, &y) != SP_OK) return false;
    return result_of(y, self->z) == i;
}

static bool host_run_is_right(tensors_load *self, uint64_t *random)
{
    const uint32_t i = random_next(random) % INPUTS;
    float y[OUT];
    small_of_rows(self->first, i, ROWS, y);
    return are_same(y, self->y[i]);
}

static bool cancelled_run_is_right(tensors_load *self, uint64_t *random)
{
    const uint32_t i = random_next(random) % INPUTS;
    const sp_model_tensor input = {.tensor = self->x[i]};
    sp_model_tensor output = {.tensor = {0}};
    sp_future future;
    if (sp_model_submit_tensors(self->first, any_stream(self, random), NULL, &input, 1, &output, 1,
                                &future) != SP_OK) {
        return false;
    }
    bool is_right = sp_future_cancel(future) == SP_OK;
    const sp_status status = sp_future_wait(future);
    is_right = sp_future_release(future) == SP_OK && is_right;
    const uint32_t result = result_of(output.tensor, self->y);
    if (status == SP_CANCELLED) raise_by_one(&self->cancelled);
    return is_right && (status == SP_CANCELLED || (status == SP_OK && result == i));
}

typedef bool (*move)(tensors_load *self, uint64_t *random);

static const move moves[] = {chain_is_right,  cell_is_written,   cell_is_whole,
                             update_is_right, host_run_is_right, cancelled_run_is_right};

static void run_moves(void *arg, uint32_t index)
{
    tensors_load *self = arg;
    uint64_t random = random_seed(index);
    for (uint64_t round = 0; round < self->rounds; round++) {
        const move next = moves[random_next(&random) % SP_COUNT_OF(moves)];
        overlap_enter(&self->overlap);
        if (round == 0) overlap_meet(&self->overlap);
        if (!next(self, &random)) raise_by_one(&self->differing);
        overlap_leave(&self->overlap);
    }
}

static void load_fill(tensors_load *self)
{
    self->first = small_model(&(sp_model_options){.device = self->device});
    self->second = tanh_model(self->device);
    for (uint32_t i = 0; i < STREAMS; i++) self->streams[i] = new_stream_on(self->device);
    for (uint32_t i = 0; i < INPUTS; i++) {
        self->x[i] = tensor_of_rows(self->device, i, ROWS);
        small_of_rows(self->first, i, ROWS, self->y[i]);
        tanh_of(self->y[i], OUT, self->z[i]);
    }
    static const int64_t shape[] = {ROWS, SMALL_OUT};
    for (uint32_t i = 0; i < CELLS; i++) {
        CHECK_OK(sp_tensor_from_host(self->device, SP_F32, 2, shape, self->y[0], sizeof self->y[0],
                                     &self->cells[i]));
    }
}

static void load_free(const tensors_load *self)
{
    for (uint32_t i = 0; i < INPUTS; i++) CHECK_OK(sp_tensor_release(self->x[i]));
    for (uint32_t i = 0; i < CELLS; i++) CHECK_OK(sp_tensor_release(self->cells[i]));
    for (uint32_t i = 0; i < STREAMS; i++) CHECK_OK(sp_stream_release(self->streams[i]));
    CHECK_OK(sp_model_release(self->first));
    CHECK_OK(sp_model_release(self->second));
}

static void check_moves(const char *cpu_ops)
{
    static tensors_load load;
    memset(&load, 0, sizeof load);
    load.device = segment_begin();
    segment_set_ops(cpu_ops);
    load_fill(&load);
    load.rounds = test_count(5000, 150);
    test_threads(THREADS, run_moves, &load);
    CHECK_EQ_U64(sp_load_relaxed(&load.differing), 0);
    check_overlap(&load.overlap, 2);
    test_note("%u runs were cancelled, %u contexts", sp_load_relaxed(&load.cancelled),
              model_info_of(load.first).context_count);
    load_free(&load);
    segment_end(); /* queued runs have ended, which read the options */
    segment_set_ops(NULL);
}

TEST(threads_share_tensors_streams_and_models)
{
    check_moves("");
}

TEST(threads_share_tensors_of_models_with_steps_on_the_cpu)
{
    check_moves("Tanh");
}

TEST_MAIN
