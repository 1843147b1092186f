/* SPDX-License-Identifier: Apache-2.0 */
/* The product of operands by strides: the bits of gemm_f32 on copies of the operands, with every
 * instruction set. Operands end before a page without access, and what is between the outputs is
 * not written. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fpenv.h"
#include "ops/cpu/tiling.h"
#include "ops/lowering.h"
#include "ops/ops.h"
#include "support/model_data.h"
#include "support/test.h"

enum { BATCH = 2 };

/* ---- memory that ends before a page without access ---- */

typedef struct place {
    void *map;
    size_t bytes;
    float *data;
} place;

static place make_place(int64_t count)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (size_t)count * sizeof(float);
    const size_t whole = (bytes + page - 1) / page * page;
    place p = {.bytes = whole + page};
    p.map = mmap(NULL, p.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p.map == MAP_FAILED || mprotect((char *)p.map + whole, page, PROT_NONE) != 0) abort();
    p.data = (float *)(void *)((char *)p.map + whole - bytes);
    return p;
}

static void free_place(const place *p)
{
    (void)munmap(p->map, p->bytes);
}

/* ---- a random product ---- */

static int64_t pick(data_random *random, int64_t low, int64_t high)
{
    return low + (int64_t)(data_next(random) % (uint64_t)(high - low + 1));
}

static bool one_in(data_random *random, int64_t n)
{
    return pick(random, 1, n) == 1;
}

/* Floats of an operand with these sizes and strides, of which the last has no more behind it. */
static int64_t extent(int64_t first, const int64_t *dims, const int64_t *strides, int count)
{
    for (int i = 0; i < count; i++) first += (dims[i] - 1) * strides[i];
    return first + 1;
}

typedef struct product {
    sp_gemm_strided_constants k;
    sp_tiling tiling;
    int64_t a, b, c, y; /* floats of each */
} product;

static product random_product(data_random *random)
{
    const int64_t lengths[] = {1, 5, 16, 31, 64, 100};
    product p = {.k.a_first = pick(random, 0, 40), .k.b_first = pick(random, 0, 40)};
    sp_gemm_constants *g = &p.k.of;
    g->rows = one_in(random, 4) ? 1 : pick(random, 1, 40);
    g->columns = one_in(random, 3) ? lengths[pick(random, 0, 5)] : pick(random, 1, 70);
    g->depth = one_in(random, 3) ? lengths[pick(random, 0, 5)] : pick(random, 1, 80);
    if (one_in(random, 12)) g->depth = pick(random, 250, SP_GEMM_STRIDED_DEPTH);
    g->batch_rank = (uint32_t)pick(random, 0, BATCH);
    for (uint32_t i = 0; i < g->batch_rank; i++) g->batch_dims[i] = pick(random, 1, 3);
    g->alpha = one_in(random, 3) ? 0.5f : 1.0f;
    g->beta = 1.0f;
    g->has_c = g->batch_rank == 0 && one_in(random, 2);
    g->c_row = one_in(random, 2) ? 0 : g->columns;
    g->c_column = 1;
    g->activation = one_in(random, 3) ? SP_ACTIVATION_RELU : SP_ACTIVATION_NONE;
    const int64_t panels = (g->columns + SP_GEMM_PANEL - 1) / SP_GEMM_PANEL;
    sp__tiling_gemm(g, &p.tiling);
    if (one_in(random, 2)) sp_tiling_cover(&p.tiling, 0, g->rows, 4 * pick(random, 1, 4));
    if (one_in(random, 2)) sp_tiling_cover(&p.tiling, 1, panels, pick(random, 1, 4));
    return p;
}

/* Strides with gaps; matrices of a batch are behind each other, or side by side. */
static void choose_strides(product *p, data_random *random)
{
    sp_gemm_constants *g = &p->k.of;
    const bool is_transposed = one_in(random, 2);
    g->a_depth = 1;
    g->a_row = g->depth * 3 + pick(random, 0, 9);
    p->k.b_column = is_transposed ? g->depth * 3 + pick(random, 0, 9) : 1;
    g->b_depth = is_transposed ? 1 : g->columns * 3 + pick(random, 0, 9);
    if (is_transposed && p->k.b_column == 1) g->b_depth = 1;
    p->k.y_row = g->columns * 3 + pick(random, 0, 9);
    int64_t a = g->depth, b = is_transposed ? g->depth : g->columns, y = g->columns;
    for (uint32_t i = 0; i < g->batch_rank; i++) { /* the first is side by side */
        g->a_batch[i] = a;
        g->b_batch[i] = b;
        p->k.y_batch[i] = y;
        a = g->rows * g->a_row * 3;
        b = (is_transposed ? g->columns * p->k.b_column : g->depth * g->b_depth) * 3;
        y = g->rows * p->k.y_row * 3;
    }
}

static void measure(product *p)
{
    const sp_gemm_constants *g = &p->k.of;
    const int64_t d[4] = {g->batch_rank > 0 ? g->batch_dims[0] : 1,
                          g->batch_rank > 1 ? g->batch_dims[1] : 1};
    const int64_t in_a[4] = {d[0], d[1], g->rows, g->depth};
    const int64_t in_b[4] = {d[0], d[1], g->depth, g->columns};
    const int64_t in_y[4] = {d[0], d[1], g->rows, g->columns};
    const int64_t a[4] = {g->a_batch[0], g->a_batch[1], g->a_row, g->a_depth};
    const int64_t b[4] = {g->b_batch[0], g->b_batch[1], g->b_depth, p->k.b_column};
    const int64_t y[4] = {p->k.y_batch[0], p->k.y_batch[1], p->k.y_row, 1};
    p->a = extent(p->k.a_first, in_a, a, 4);
    p->b = extent(p->k.b_first, in_b, b, 4);
    p->y = extent(0, in_y, y, 4);
    p->c = g->has_c ? (g->rows - 1) * g->c_row + g->columns : 0;
}

/* ---- the same on copies ---- */

/* One element after the other: rows of a and of b, then y at its strides. */
static void run_on_copies(const product *p, const float *a, const float *b, const float *c,
                          float *y)
{
    const sp_gemm_constants *g = &p->k.of;
    float *left = malloc((size_t)(g->rows * g->depth) * sizeof *left);
    float *right = malloc((size_t)(g->depth * g->columns) * sizeof *right);
    float *out = malloc((size_t)(g->rows * g->columns) * sizeof *out);
    REQUIRE(left != NULL && right != NULL && out != NULL);
    sp_gemm_constants plain = *g;
    plain.batch_rank = 0;
    plain.a_row = g->depth;
    plain.a_depth = 1;
    plain.b_depth = g->columns;
    sp_tiling one = p->tiling;
    one.grid[2] = 1;
    for (int64_t entry = 0; entry < p->tiling.grid[2]; entry++) {
        int64_t rest = entry, at_a = p->k.a_first, at_b = p->k.b_first, at_y = 0;
        for (uint32_t i = g->batch_rank; i-- > 0; rest /= g->batch_dims[i]) {
            at_a += rest % g->batch_dims[i] * g->a_batch[i];
            at_b += rest % g->batch_dims[i] * g->b_batch[i];
            at_y += rest % g->batch_dims[i] * p->k.y_batch[i];
        }
        for (int64_t i = 0; i < g->rows * g->depth; i++) {
            left[i] = a[at_a + i / g->depth * g->a_row + i % g->depth * g->a_depth];
        }
        for (int64_t i = 0; i < g->depth * g->columns; i++) {
            right[i] = b[at_b + i / g->columns * g->b_depth + i % g->columns * p->k.b_column];
        }
        void *bindings[4] = {left, right, g->has_c ? (void *)(uintptr_t)c : out, out};
        REQUIRE_OK(sp__kernel_run_tiling(&sp__cpu_kernels(SP_CPU_PORTABLE)[SP_KERNEL_ID_gemm_f32],
                                         &one, bindings, &plain));
        for (int64_t i = 0; i < g->rows * g->columns; i++) {
            y[at_y + i / g->columns * p->k.y_row + i % g->columns] = out[i];
        }
    }
    free(left);
    free(right);
    free(out);
}

static void check_product(const product *p, data_random *random, uint64_t seed)
{
    place a = make_place(p->a), b = make_place(p->b), c = make_place(p->c), y = make_place(p->y);
    float *want = malloc((size_t)p->y * sizeof *want);
    REQUIRE(want != NULL);
    data_fill(random, a.data, (size_t)p->a);
    data_fill(random, b.data, (size_t)p->b);
    data_fill(random, c.data, (size_t)p->c);
    memset(want, 0x5a, (size_t)p->y * sizeof *want);
    run_on_copies(p, a.data, b.data, c.data, want);
    void *bindings[4] = {a.data, b.data, p->k.of.has_c ? c.data : y.data, y.data};
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        const sp_kernel *kernels = sp__cpu_kernels((sp_cpu_isa)isa);
        if (kernels == NULL) continue;
        memset(y.data, 0x5a, (size_t)p->y * sizeof *want);
        REQUIRE_OK(sp__kernel_run_tiling(&kernels[SP_KERNEL_ID_gemm_strided_f32], &p->tiling,
                                         bindings, &p->k));
        const bool is_same = memcmp(y.data, want, (size_t)p->y * sizeof *want) == 0;
        CHECK(is_same);
        if (!is_same) test_note("product %llu, table %d", (unsigned long long)seed, isa);
    }
    free(want);
    free_place(&a);
    free_place(&b);
    free_place(&c);
    free_place(&y);
}

TEST(products_by_strides_have_the_bits_of_products_of_copies)
{
    const sp_fpenv before = sp_fpenv_enter();
    for (uint64_t seed = 1; seed <= test_count(50000, 2000); seed++) {
        data_random random = {seed};
        product p = random_product(&random);
        choose_strides(&p, &random);
        measure(&p);
        check_product(&p, &random, seed);
    }
    sp_fpenv_leave(before);
}

TEST_MAIN
