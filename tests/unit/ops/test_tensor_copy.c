/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between tensors: any layout to any other, overlapping ones, in the order of the storages'
 * uses, and from many threads. */
#include <streampool/tensor.h>

#include <stdlib.h>
#include <string.h>

#include "runtime_fixture.h"
#include "support/own_memory.h"

enum { STORAGE_BYTES = 2048 };

typedef struct numbers {
    uint64_t state;
} numbers;

static int64_t pick(numbers *random, int64_t low, int64_t high)
{
    random->state = random->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return low + (int64_t)((random->state >> 33) % (uint64_t)(high - low + 1));
}

/* A tensor of the shape at a random place of the storage, with strides of either sign and gaps; the
 * zero handle if it does not fit. */
static sp_tensor place(numbers *random, sp_storage storage, sp_dtype dtype, uint32_t rank,
                       const int64_t *shape)
{
    int64_t strides[SP_MAX_RANK] = {0}, next = 1, below = 0;
    uint32_t order[SP_MAX_RANK] = {0};
    for (uint32_t i = 0; i < rank; i++) {
        const int64_t k = pick(random, 0, i);
        order[i] = order[k];
        order[k] = i;
    }
    for (uint32_t i = 0; i < rank; i++) {
        const uint32_t d = order[i];
        strides[d] = next * pick(random, 1, 2);
        next = strides[d] * shape[d];
        if (pick(random, 0, 2) != 0) continue;
        below += strides[d] * (shape[d] - 1);
        strides[d] = -strides[d];
    }
    const uint64_t offset = (uint64_t)(below + pick(random, 0, 9)) * sp_dtype_bytes(dtype);
    sp_tensor tensor;
    if (sp_tensor_from_storage(storage, offset, dtype, rank, shape, strides, &tensor) == SP_OK) {
        return tensor;
    }
    return (sp_tensor){0};
}

static int64_t byte_of(const sp_tensor_info *info, uint64_t index)
{
    int64_t byte = (int64_t)info->offset;
    for (uint32_t i = info->rank; i-- > 0;) {
        const int64_t at = (int64_t)(index % (uint64_t)info->shape[i]);
        byte += at * info->strides[i] * (int64_t)sp_dtype_bytes(info->dtype);
        index /= (uint64_t)info->shape[i];
    }
    return byte;
}

static void scramble(numbers *random, sp_storage storage, uint8_t *model)
{
    void *data;
    for (int i = 0; i < STORAGE_BYTES; i++) model[i] = (uint8_t)pick(random, 0, 255);
    CHECK_OK(sp_storage_host_begin(storage, SP_WRITE, &data));
    memcpy(data, model, STORAGE_BYTES);
    CHECK_OK(sp_storage_host_end(storage, SP_WRITE));
}

static void expect_bytes(sp_storage storage, const uint8_t *model)
{
    void *data;
    CHECK_OK(sp_storage_host_begin(storage, SP_READ, &data));
    CHECK_EQ_MEM(data, model, STORAGE_BYTES);
    CHECK_OK(sp_storage_host_end(storage, SP_READ));
}

/* Copies, and applies the same to the models of both storages' bytes. */
static void copy_both(sp_tensor to, sp_tensor from, uint8_t *to_model, const uint8_t *from_model)
{
    sp_tensor_info x, y;
    uint8_t before[STORAGE_BYTES];
    memcpy(before, from_model, sizeof before);
    CHECK_OK(sp_tensor_get_info(from, &x));
    CHECK_OK(sp_tensor_get_info(to, &y));
    const uint64_t element = sp_dtype_bytes(y.dtype);
    for (uint64_t i = 0; i < y.bytes / element; i++) {
        memcpy(to_model + byte_of(&y, i), before + byte_of(&x, i), element);
    }
    CHECK_OK(sp_tensor_copy(to, from));
}

static void copy_at_random(sp_device device, bool is_one_storage, uint64_t rounds)
{
    numbers random = {.state = is_one_storage ? 5 : 3};
    uint8_t models[2][STORAGE_BYTES];
    sp_storage storages[2];
    uint64_t copies = 0;
    for (int i = 0; i < 2; i++) {
        storages[i] = new_storage_on(device, STORAGE_BYTES, false);
        scramble(&random, storages[i], models[i]);
    }
    static const sp_dtype dtypes[] = {SP_BOOL, SP_F16, SP_I32, SP_F64};
    for (uint64_t i = 0; i < rounds; i++) {
        const sp_dtype dtype = dtypes[pick(&random, 0, 3)];
        int64_t shape[SP_MAX_RANK];
        const uint32_t rank = (uint32_t)pick(&random, 0, 5);
        for (uint32_t d = 0; d < rank; d++) shape[d] = pick(&random, 1, 4);
        const int from = is_one_storage ? 0 : 1;
        const sp_tensor to = place(&random, storages[0], dtype, rank, shape);
        const sp_tensor source = place(&random, storages[from], dtype, rank, shape);
        if (to.bits != 0 && source.bits != 0) {
            copy_both(to, source, models[0], models[from]);
            copies++;
        }
        CHECK_OK(sp_tensor_release(to)); /* the copy may still be queued */
        CHECK_OK(sp_tensor_release(source));
        if (i % 50 == 0) expect_bytes(storages[0], models[0]);
    }
    for (int i = 0; i < 2; i++) {
        expect_bytes(storages[i], models[i]);
        CHECK_OK(sp_storage_release(storages[i]));
    }
    CHECK(copies > rounds / 4);
}

TEST(a_copy_moves_each_element_to_its_place_and_touches_nothing_else)
{
    runtime_begin();
    copy_at_random(TESTED, false, test_count(20000, 1500));
    runtime_end();
}

TEST(a_copy_within_a_storage_reads_all_before_it_writes)
{
    runtime_begin();
    copy_at_random(TESTED, true, test_count(20000, 1500));
    runtime_end();
}

TEST(a_pretend_accelerator_copies_like_the_processor)
{
    runtime_begin();
    const sp_device null = open_null();
    copy_at_random(null, false, 200);
    copy_at_random(null, true, 200);
    CHECK_OK(sp_device_close(null));
    runtime_end();
}

/* More than one tile of the kernel, and rows that tiles split. */
TEST(a_large_copy_is_cut_into_tiles)
{
    runtime_begin();
    enum { ROWS = 301, COLUMNS = 1003 };
    const int64_t shape[] = {ROWS, COLUMNS};
    uint16_t *values = malloc(2 * sizeof *values * ROWS * COLUMNS);
    uint16_t *got = values + ROWS * COLUMNS;
    for (int i = 0; i < ROWS * COLUMNS; i++) values[i] = (uint16_t)(i * 7);
    sp_tensor tensor, turned, reversed, wide, view, packed;
    const uint64_t bytes = sizeof *values * ROWS * COLUMNS;
    CHECK_OK(sp_tensor_from_host(TESTED, SP_I16, 2, shape, values, bytes, &tensor));
    CHECK_OK(sp_tensor_transpose(tensor, 0, 1, &turned));
    CHECK_OK(sp_tensor_slice(turned, 0, COLUMNS - 1, COLUMNS, -1, &reversed));
    CHECK_OK(sp_tensor_contiguous(reversed, &packed));
    CHECK_OK(sp_tensor_read(packed, got, bytes));
    bool is_right = true;
    for (int c = 0; c < COLUMNS; c++) {
        for (int r = 0; r < ROWS; r++) {
            is_right &= got[c * ROWS + r] == values[r * COLUMNS + COLUMNS - 1 - c];
        }
    }
    CHECK(is_right);
    /* Every second column of a wider table. */
    CHECK_OK(sp_tensor_create(TESTED, SP_I16, 2, (const int64_t[]){ROWS, 2 * COLUMNS}, &wide));
    CHECK_OK(sp_tensor_slice(wide, 1, 1, COLUMNS, 2, &view));
    CHECK_OK(sp_tensor_copy(view, tensor));
    memset(got, 0, bytes);
    CHECK_OK(sp_tensor_read(view, got, bytes));
    CHECK_EQ_MEM(got, values, bytes);
    CHECK_OK(sp_tensor_release(tensor));
    CHECK_OK(sp_tensor_release(turned));
    CHECK_OK(sp_tensor_release(reversed));
    CHECK_OK(sp_tensor_release(packed));
    CHECK_OK(sp_tensor_release(wide));
    CHECK_OK(sp_tensor_release(view));
    free(values);
    runtime_end();
}

TEST(a_contiguous_tensor_is_its_own_contiguous_copy)
{
    runtime_begin();
    sp_tensor tensor, same, turned, packed;
    CHECK_OK(sp_tensor_create(CPU, SP_F32, 2, (const int64_t[]){2, 3}, &tensor));
    CHECK_OK(sp_tensor_contiguous(tensor, &same));
    CHECK(same.bits == tensor.bits);
    CHECK_OK(sp_tensor_release(same));
    CHECK_OK(sp_tensor_transpose(tensor, 0, 1, &turned));
    CHECK_OK(sp_tensor_contiguous(turned, &packed));
    sp_tensor_info info;
    CHECK_OK(sp_tensor_get_info(packed, &info));
    CHECK(info.is_contiguous && info.offset == 0 && info.shape[0] == 3 && info.shape[1] == 2);
    CHECK_OK(sp_tensor_release(packed));
    CHECK_OK(sp_tensor_release(turned));
    CHECK_OK(sp_tensor_release(tensor));
    runtime_end();
}

/* ---- between devices ---- */

enum { ROWS = 5, COLUMNS = 7, ELEMENTS = ROWS * COLUMNS };

static sp_tensor counted_on(sp_device device, float first)
{
    float values[ELEMENTS];
    sp_tensor tensor;
    for (int i = 0; i < ELEMENTS; i++) values[i] = first + (float)i;
    CHECK_OK(sp_tensor_from_host(device, SP_F32, 2, (const int64_t[]){ROWS, COLUMNS}, values,
                                 sizeof values, &tensor));
    return tensor;
}

static void check_elements(sp_tensor tensor, const float *wanted, uint64_t count)
{
    float got[ELEMENTS] = {0};
    CHECK_OK(sp_tensor_read(tensor, got, count * sizeof *got));
    CHECK_EQ_MEM(got, wanted, count * sizeof *got);
}

/* A view of every second column, backwards. */
static sp_tensor columns_of(sp_tensor tensor)
{
    sp_tensor view;
    CHECK_OK(sp_tensor_slice(tensor, 1, COLUMNS - 1, 3, -2, &view));
    return view;
}

TEST(elements_in_any_layout_are_copied_between_devices)
{
    runtime_begin();
    const sp_device devices[] = {CPU, open_null(), open_own_memory(false), open_own_memory(false)};
    for (size_t pair = 0; pair < 16; pair++) {
        if (pair / 4 == pair % 4) continue;
        const sp_tensor to = counted_on(devices[pair / 4], 100);
        const sp_tensor from = counted_on(devices[pair % 4], 0);
        const sp_tensor to_view = columns_of(to), from_view = columns_of(from);
        sp_tensor packed;
        float part[3 * ROWS], all[ELEMENTS];
        for (int i = 0; i < 3 * ROWS; i++) {
            const int at = i / 3 * COLUMNS + COLUMNS - 1 - i % 3 * 2;
            part[i] = (float)at;
        }
        for (int i = 0; i < ELEMENTS; i++) {
            const bool is_copied = i % COLUMNS % 2 == 0 && i % COLUMNS > 0;
            all[i] = (float)i + (is_copied ? 0 : 100);
        }
        CHECK_OK(sp_tensor_copy(to_view, from_view)); /* packed, and unpacked */
        check_elements(to, all, ELEMENTS);
        CHECK_OK(sp_tensor_to(from_view, devices[pair / 4], &packed)); /* packed */
        check_elements(packed, part, 3 * (uint64_t)ROWS);
        CHECK_OK(sp_tensor_copy(from_view, packed)); /* unpacked */
        check_elements(from_view, part, 3 * (uint64_t)ROWS);
        CHECK_OK(sp_tensor_copy(to, from));
        check_elements(to_view, part, 3 * (uint64_t)ROWS);
        CHECK_OK(sp_tensor_release(packed));
        CHECK_OK(sp_tensor_release(to_view));
        CHECK_OK(sp_tensor_release(from_view));
        CHECK_OK(sp_tensor_release(to));
        CHECK_OK(sp_tensor_release(from));
    }
    runtime_end();
}

TEST(a_tensor_is_on_its_device_already)
{
    runtime_begin();
    const sp_device own = open_own_memory(false);
    const sp_tensor tensor = counted_on(own, 0);
    const sp_tensor view = columns_of(tensor);
    sp_tensor same, empty, moved;
    sp_tensor_info info;
    CHECK_OK(sp_tensor_to(view, own, &same));
    CHECK(same.bits == view.bits);
    CHECK_OK(sp_tensor_release(same));
    CHECK_OK(sp_tensor_create(own, SP_I32, 2, (const int64_t[]){0, 3}, &empty));
    CHECK_OK(sp_tensor_to(empty, CPU, &moved));
    CHECK_OK(sp_tensor_get_info(moved, &info));
    CHECK(info.rank == 2 && info.shape[1] == 3 && info.bytes == 0);
    CHECK_OK(sp_tensor_release(moved));
    CHECK_STATUS(sp_tensor_to(view, CPU, NULL), SP_INVALID);
    CHECK_MESSAGE("sp_tensor_to: out is NULL");
    CHECK_STATUS(sp_tensor_to(view, (sp_device){12345}, &moved), SP_INVALID);
    CHECK_STATUS(sp_tensor_to((sp_tensor){0}, own, &moved), SP_INVALID);
    CHECK(moved.bits == 0);
    CHECK_OK(sp_device_close(own));
    CHECK_STATUS(sp_tensor_to(view, own, &moved), SP_CLOSED);
    CHECK_STATUS(sp_tensor_to(view, CPU, &moved), SP_CLOSED);
    CHECK(moved.bits == 0);
    CHECK_OK(sp_tensor_release(empty));
    CHECK_OK(sp_tensor_release(view));
    CHECK_OK(sp_tensor_release(tensor));
    runtime_end();
}

TEST(copies_that_do_not_fit_are_refused)
{
    runtime_begin();
    const sp_device null = open_null();
    sp_tensor a, b, c, d, row, rows;
    CHECK_OK(sp_tensor_create(CPU, SP_F32, 1, (const int64_t[]){4}, &a));
    CHECK_OK(sp_tensor_create(CPU, SP_F32, 1, (const int64_t[]){5}, &b));
    CHECK_OK(sp_tensor_create(CPU, SP_I32, 1, (const int64_t[]){4}, &c));
    CHECK_OK(sp_tensor_create(null, SP_F32, 1, (const int64_t[]){4}, &d));
    CHECK_STATUS(sp_tensor_copy(a, b), SP_MISMATCH);
    CHECK_MESSAGE("cannot copy f32 of shape [5] to f32 of shape [4]");
    CHECK_STATUS(sp_tensor_copy(a, c), SP_MISMATCH);
    CHECK_OK(sp_tensor_expand(a, 2, (const int64_t[]){3, 4}, &rows));
    CHECK_OK(sp_tensor_create(CPU, SP_F32, 2, (const int64_t[]){3, 4}, &row));
    const float values[12] = {0};
    CHECK_STATUS(sp_tensor_copy(rows, row), SP_INVALID);
    CHECK_MESSAGE("share memory");
    CHECK_STATUS(sp_tensor_write(rows, values, sizeof values), SP_INVALID);
    CHECK_OK(sp_tensor_copy(row, rows));
    CHECK_OK(sp_tensor_copy(a, a)); /* nothing to do */
    CHECK_OK(sp_device_close(null));
    CHECK_STATUS(sp_tensor_copy(d, d), SP_OK);
    CHECK_OK(sp_tensor_release(a));
    CHECK_OK(sp_tensor_release(b));
    CHECK_OK(sp_tensor_release(c));
    CHECK_OK(sp_tensor_release(d));
    CHECK_OK(sp_tensor_release(row));
    CHECK_OK(sp_tensor_release(rows));
    runtime_end();
}

/* ---- order ---- */

typedef struct reader {
    sp_tensor from;
    sp_tensor to;
} reader;

static void copy_on_thread(void *arg)
{
    const reader *self = arg;
    sp_tensor turned;
    CHECK_OK(sp_tensor_transpose(self->from, 0, 1, &turned));
    CHECK_OK(sp_tensor_copy(self->to, turned));
    CHECK_OK(sp_tensor_release(turned));
}

TEST(a_copy_on_another_thread_follows_the_write_that_was_submitted_before_it)
{
    runtime_begin();
    const int64_t shape[] = {64, 32}, turned[] = {32, 64};
    reader self;
    sp_tensor_info info;
    CHECK_OK(sp_tensor_create(CPU, SP_U8, 2, shape, &self.from));
    CHECK_OK(sp_tensor_create(CPU, SP_U8, 2, turned, &self.to));
    CHECK_OK(sp_tensor_get_info(self.from, &info));
    gate blocker = gate_closed(CPU);
    const sp_stream writer = new_stream_on(CPU);
    gate_hold(&blocker, writer);
    fill(writer, info.storage, 42);
    run_on_thread(copy_on_thread, &self); /* it returns, although the writer is held */
    CHECK_OK(sp_tensor_release(self.from));
    gate_open(&blocker);
    uint8_t got[2048], want[2048];
    memset(want, 42, sizeof want);
    CHECK_OK(sp_tensor_read(self.to, got, sizeof got));
    CHECK_EQ_MEM(got, want, sizeof got);
    CHECK_OK(sp_tensor_release(self.to));
    CHECK_OK(sp_stream_release(writer));
    gate_destroy(&blocker);
    runtime_end();
}

/* ---- threads ---- */

typedef struct shared {
    sp_tensor tensor; /* of 16 x 16 i32: element i is i */
    uint64_t rounds;
    sp_atomic_u32 wrong;
} shared;

/* The diagonal through views of views, each released after use. */
static void work_on_one(void *arg, uint32_t index)
{
    shared *self = arg;
    for (uint64_t i = 0; i < self->rounds; i++) {
        sp_tensor turned, part, packed, mine;
        int32_t got[64];
        const int64_t shape[] = {8, 8}, first = (int64_t)(index + i) % 8;
        bool is_right =
            sp_tensor_retain(self->tensor) == SP_OK &&
            sp_tensor_transpose(self->tensor, 0, 1, &turned) == SP_OK &&
            sp_tensor_release(self->tensor) == SP_OK &&
            sp_tensor_slice(turned, 0, first, 8, 1, &part) == SP_OK &&
            sp_tensor_release(turned) == SP_OK &&
            sp_tensor_slice(part, 1, 14, 8, -2, &turned) == SP_OK &&
            sp_tensor_release(part) == SP_OK && sp_tensor_contiguous(turned, &packed) == SP_OK &&
            sp_tensor_create(TESTED, SP_I32, 2, shape, &mine) == SP_OK &&
            sp_tensor_copy(mine, i % 2 == 0 ? packed : turned) == SP_OK &&
            sp_tensor_release(packed) == SP_OK && sp_tensor_release(turned) == SP_OK &&
            sp_tensor_read(mine, got, sizeof got) == SP_OK && sp_tensor_release(mine) == SP_OK;
        for (int64_t k = 0; is_right && k < 64; k++) {
            is_right = got[k] == (14 - k % 8 * 2) * 16 + first + k / 8;
        }
        if (!is_right) raise_by_one(&self->wrong);
    }
}

TEST(threads_view_copy_and_release_one_tensor_at_the_same_time)
{
    runtime_begin();
    int32_t values[256];
    for (int i = 0; i < 256; i++) values[i] = i;
    shared self = {.rounds = test_count(2000, 60)};
    const int64_t shape[] = {16, 16};
    CHECK_OK(sp_tensor_from_host(TESTED, SP_I32, 2, shape, values, sizeof values, &self.tensor));
    test_threads(31, work_on_one, &self);
    CHECK_EQ_U64(sp_load_acquire(&self.wrong), 0);
    CHECK_OK(sp_tensor_release(self.tensor));
    runtime_end();
}

typedef struct race {
    sp_tensor tensor;
    sp_atomic_u32 wrong;
} race;

/* One thread releases the last reference: each call is right or SP_INVALID. */
static void use_or_release(void *arg, uint32_t index)
{
    race *self = arg;
    sp_tensor view = {0};
    float values[4];
    sp_status status;
    if (index == 0) {
        status = sp_tensor_release(self->tensor);
    } else if (index % 2 == 0) {
        status = sp_tensor_slice(self->tensor, 0, 1, 2, 1, &view);
        if (status == SP_OK) status = sp_tensor_release(view);
    } else {
        status = sp_tensor_read(self->tensor, values, sizeof values);
    }
    if (status != SP_OK && status != SP_INVALID) raise_by_one(&self->wrong);
}

TEST(a_tensor_released_beside_its_users_is_used_or_refused)
{
    runtime_begin();
    for (uint64_t i = 0; i < test_count(2000, 100); i++) {
        race self = {.wrong = {0}};
        const float values[4] = {1, 2, 3, 4};
        CHECK_OK(
            sp_tensor_from_host(CPU, SP_F32, 1, (const int64_t[]){4}, values, 16, &self.tensor));
        test_threads(5, use_or_release, &self);
        CHECK_EQ_U64(sp_load_acquire(&self.wrong), 0);
        CHECK_STATUS(sp_tensor_release(self.tensor), SP_INVALID);
    }
    runtime_end();
}

TEST_MAIN
