/* SPDX-License-Identifier: Apache-2.0 */
/* Copies by strides against a plain loop, in tiles of any size, on every instruction set. Operands
 * end before a page without access, and what is between the elements that are written is kept. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ops/cpu/tiling.h"
#include "ops/ops.h"
#include "support/model_data.h"
#include "support/test.h"

/* ---- memory that ends before a page without access ---- */

typedef struct place {
    void *map;
    size_t bytes;
    unsigned char *at;
} place;

static place place_create(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (bytes + page - 1) / page * page;
    place p = {.bytes = whole + page};
    p.map = mmap(NULL, p.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p.map == MAP_FAILED || mprotect((char *)p.map + whole, page, PROT_NONE) != 0) abort();
    p.at = (unsigned char *)p.map + whole - bytes;
    return p;
}

static void place_destroy(const place *p)
{
    (void)munmap(p->map, p->bytes);
}

/* ---- random copies ---- */

static int64_t pick(data_random *random, int64_t low, int64_t high)
{
    return low + (int64_t)(data_next(random) % (uint64_t)(high - low + 1));
}

/* Strides of the dimensions in another order, the last of them `step` apart; returns how many
 * elements that spans. */
static int64_t set_strides(data_random *random, const int64_t *dims, uint32_t rank, int64_t step,
                           bool is_turned, int64_t *strides)
{
    uint32_t order[SP_KERNEL_RANK];
    for (uint32_t i = 0; i < rank; i++) order[i] = i;
    for (uint32_t i = rank; i-- > 1 && is_turned;) {
        const uint32_t other = (uint32_t)pick(random, 0, i), moved = order[i];
        order[i] = order[other];
        order[other] = moved;
    }
    int64_t stride = step;
    for (uint32_t i = rank; i-- > 0;) {
        strides[order[i]] = stride;
        stride *= dims[order[i]];
        if (pick(random, 0, 3) == 0) stride += pick(random, 1, 3);
    }
    int64_t last = 0;
    for (uint32_t i = 0; i < rank; i++) last += (dims[i] - 1) * strides[i];
    return last + 1;
}

typedef struct copy_case {
    sp_copy_constants k;
    int64_t x_count, y_count, tile_count;
} copy_case;

static copy_case random_case(data_random *random)
{
    const int64_t sizes[] = {1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 33, 40};
    const uint32_t bytes[] = {1, 2, 4, 4, 4, 8};
    copy_case c = {.k = {.rank = (uint32_t)pick(random, 1, 4),
                         .element_bytes = bytes[pick(random, 0, 5)],
                         .count = 1,
                         .x_first = pick(random, 0, 2),
                         .y_first = pick(random, 0, 2)}};
    sp_copy_constants *k = &c.k;
    for (uint32_t i = 0; i < k->rank; i++) {
        k->dims[i] = sizes[pick(random, 0, k->rank > 3 ? 5 : 11)];
        k->count *= k->dims[i];
    }
    const int64_t x_step = pick(random, 0, 2) == 0 ? 2 : 1,
                  y_step = pick(random, 0, 4) == 0 ? 2 : 1;
    c.x_count = k->x_first + set_strides(random, k->dims, k->rank, x_step, true, k->x);
    c.y_count =
        k->y_first + set_strides(random, k->dims, k->rank, y_step, pick(random, 0, 4) == 0, k->y);
    c.tile_count = pick(random, 0, 2) == 0 ? k->count : pick(random, 1, k->count);
    return c;
}

/* Element by element. */
static void copy_plainly(const sp_copy_constants *k, const unsigned char *x, unsigned char *y)
{
    for (int64_t i = 0; i < k->count; i++) {
        int64_t from = k->x_first, to = k->y_first, left = i;
        for (uint32_t d = k->rank; d-- > 0; left /= k->dims[d]) {
            from += left % k->dims[d] * k->x[d];
            to += left % k->dims[d] * k->y[d];
        }
        memcpy(y + to * k->element_bytes, x + from * k->element_bytes, k->element_bytes);
    }
}

static bool check_case(const copy_case *c, data_random *random)
{
    const sp_copy_constants *k = &c->k;
    const size_t x_bytes = (size_t)c->x_count * k->element_bytes;
    const size_t y_bytes = (size_t)c->y_count * k->element_bytes;
    const place x = place_create(x_bytes), y = place_create(y_bytes);
    unsigned char *want = malloc(y_bytes);
    if (want == NULL) abort();
    for (size_t i = 0; i < x_bytes; i++) x.at[i] = (unsigned char)data_next(random);
    memset(want, 0xa5, y_bytes);
    copy_plainly(k, x.at, want);
    void *const bindings[2] = {x.at, y.at};
    sp_tiling tiling;
    sp_tiling_line(&tiling, k->count, c->tile_count);
    bool is_same = true;
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        const sp_kernel *kernels = sp__cpu_kernels((sp_cpu_isa)isa);
        if (kernels == NULL) continue;
        memset(y.at, 0xa5, y_bytes);
        CHECK_OK(sp__kernel_run_tiling(&kernels[SP_KERNEL_ID_copy_strided], &tiling, bindings, k));
        is_same = is_same && memcmp(y.at, want, y_bytes) == 0;
        CHECK(is_same);
    }
    free(want);
    place_destroy(&x);
    place_destroy(&y);
    return is_same;
}

TEST(copies_by_strides_are_those_of_a_plain_loop)
{
    const uint64_t count = test_count(40000, 4000);
    for (uint64_t seed = 1; seed <= count; seed++) {
        data_random random = {seed};
        const copy_case c = random_case(&random);
        if (check_case(&c, &random)) continue;
        test_note("copy %llu", (unsigned long long)seed);
        return;
    }
}

/* [rows][columns] becomes [columns][rows]. */
TEST(every_transposed_matrix_of_up_to_40_rows_and_columns_is_right)
{
    data_random random = {1};
    for (int64_t rows = 1; rows <= 40; rows++) {
        for (int64_t columns = 1; columns <= 40; columns++) {
            const int64_t count = rows * columns;
            const copy_case c = {.k = {.rank = 2,
                                       .element_bytes = 4,
                                       .count = count,
                                       .dims = {columns, rows},
                                       .x = {1, columns},
                                       .y = {rows, 1}},
                                 .x_count = count,
                                 .y_count = count,
                                 .tile_count = pick(&random, 1, count)};
            if (check_case(&c, &random)) continue;
            test_note("%lld rows, %lld columns", (long long)rows, (long long)columns);
            return;
        }
    }
}

TEST_MAIN
