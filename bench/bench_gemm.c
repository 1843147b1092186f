/* SPDX-License-Identifier: Apache-2.0 */
/* Products of one core with packed weights, beside libxsmm: one JSON line for each shape, in
 * GFLOP/s, and the geometric mean of the ratios. libxsmm compiles a kernel for each block; its
 * blocks, like ours, read weights that are packed before. */
#include <libxsmm.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fpenv.h"
#include "base/heap.h"
#include "base/macros.h"
#include "bench.h"
#include "ops/cpu/arch/kernels.h"
#include "ops/lowering.h"
#include "ops/registry.h"

/* Blocks of libxsmm: the best of those that were tried. Columns are its rows, since its matrices
 * are stored by columns. */
enum { BLOCK_COLUMNS = 64, BLOCK_ROWS = 24, BLOCK_DEPTH = 256 };

static const struct {
    int rows, depth, columns;
} shapes[] = {
    /* one row to eight: policies, classifiers, gates */
    {1, 48, 512},
    {1, 256, 128},
    {1, 256, 256},
    {1, 512, 512},
    {1, 1024, 1024},
    {1, 128, 512},
    {2, 512, 512},
    {4, 256, 128},
    {4, 512, 512},
    {8, 256, 256},
    {8, 512, 512},
    {8, 1024, 1024},
    {3, 200, 100},
    /* transformers: rows of a sequence */
    {32, 128, 128},
    {32, 128, 512},
    {32, 512, 128},
    {64, 256, 256},
    {64, 256, 1024},
    {64, 1024, 256},
    {64, 2048, 2048},
    {100, 300, 200},
    {128, 768, 768},
    {128, 768, 3072},
    {256, 512, 512},
    /* convolutions as products */
    {49, 512, 2048},
    {196, 256, 1024},
    {784, 128, 512},
    {3136, 64, 64},
    {512, 512, 512},
    {1024, 1024, 1024},
};

typedef struct product {
    int64_t rows, depth, columns;
    float *a, *b, *packed, *y; /* ours */
    float *blocks, *their_y;
    libxsmm_smmfunction kernels[2][2][2][2]; /* rests of columns, rows and depth; adds to y */
    const sp_kernel *kernel;
    sp_lowering lowering;
} product;

/* ---- ours ---- */

static void our_product(void *ctx, uint64_t count)
{
    product *p = ctx;
    const sp_dispatch *dispatch = &p->lowering.dispatches[0];
    void *const bindings[3] = {p->a, p->packed, p->y};
    for (uint64_t i = 0; i < count; i++) {
        bench_check(sp__kernel_run(p->kernel, bindings, dispatch->constants) == SP_OK,
                    "the kernel");
    }
}

static void lower_product(product *p, const sp_kernel *kernels)
{
    const sp_op *op;
    sp_op_value inputs[2] = {0}, output = {0};
    const int64_t dims[2][2] = {{p->rows, p->depth}, {p->depth, p->columns}};
    for (int i = 0; i < 2; i++) {
        inputs[i] = (sp_op_value){
            .is_present = true,
            .dtype = SP_F32,
            .shape = {.rank = 2, .dims = {dims[i][0], dims[i][1]}},
            .bytes = (uint64_t)(dims[i][0] * dims[i][1]) * sizeof(float),
        };
    }
    bench_check(sp__op_find((sp_text){0}, sp__text("MatMul"), 13, &op) == SP_OK, "MatMul");
    sp_op_call call = {.op = op,
                       .version = 13,
                       .inputs = inputs,
                       .outputs = &output,
                       .input_count = 2,
                       .output_count = 1};
    bench_check(sp__op_infer(&call) == SP_OK, "its shapes");
    const sp_pack pack = sp__op_pack(&call, 1);
    p->packed = sp_aligned_malloc(64, sp__pack_copy_bytes(&pack));
    void *const bindings[2] = {p->b, p->packed};
    bench_check(sp__kernel_run(&kernels[sp__pack_kernel(pack.format)], bindings, &pack.matrix) ==
                    SP_OK,
                "its packing");
    inputs[1].is_packed = true;
    sp__lowering_init(&p->lowering);
    bench_check(sp__op_lower(&call, &p->lowering) == SP_OK, "its kernel");
    p->kernel = &kernels[p->lowering.dispatches[0].kernel];
}

/* ---- libxsmm's ---- */

static int64_t at_most(int64_t left, int64_t most)
{
    return left < most ? left : most;
}

/* Weights in blocks of columns: [column block][depth][columns]. */
static void pack_blocks(product *p)
{
    for (int64_t n = 0; n < p->columns; n += BLOCK_COLUMNS) {
        const int64_t width = at_most(p->columns - n, BLOCK_COLUMNS);
        float *to = p->blocks + n * p->depth;
        for (int64_t k = 0; k < p->depth; k++) {
            for (int64_t i = 0; i < width; i++) *to++ = p->b[k * p->columns + n + i];
        }
    }
}

static libxsmm_smmfunction find_kernel(const product *p, int width, int height, int depth,
                                       bool adds)
{
    const int row_a = (int)p->depth, row_y = (int)p->columns;
    const float alpha = 1, beta = adds ? 1 : 0;
    const libxsmm_smmfunction kernel = libxsmm_smmdispatch(width, height, depth, &width, &row_a,
                                                           &row_y, &alpha, &beta, NULL, NULL);
    bench_check(kernel != NULL, "a kernel of libxsmm");
    return kernel;
}

/* The size of whole blocks, or of the rest; 0: there are none. */
static int block_size(int64_t all, int block, int is_rest)
{
    if (is_rest != 0) return (int)(all % block);
    return all >= block ? block : 0;
}

static void find_kernels(product *p)
{
    for (int i = 0; i < 16; i++) {
        const int n = i & 1, m = i >> 1 & 1, k = i >> 2 & 1, adds = i >> 3;
        const int width = block_size(p->columns, BLOCK_COLUMNS, n);
        const int height = block_size(p->rows, BLOCK_ROWS, m);
        const int depth = block_size(p->depth, BLOCK_DEPTH, k);
        if (width == 0 || height == 0 || depth == 0) continue;
        p->kernels[n][m][k][adds] = find_kernel(p, width, height, depth, adds != 0);
    }
}

static void their_block(const product *p, int64_t n, int64_t m, int64_t k)
{
    const int64_t width = at_most(p->columns - n, BLOCK_COLUMNS);
    const int is_narrow = width < BLOCK_COLUMNS, is_low = p->rows - m < BLOCK_ROWS;
    const int is_short = p->depth - k < BLOCK_DEPTH;
    p->kernels[is_narrow][is_low][is_short][k > 0](p->blocks + n * p->depth + k * width,
                                                   p->a + m * p->depth + k,
                                                   p->their_y + m * p->columns + n);
}

static void their_product(void *ctx, uint64_t count)
{
    const product *p = ctx;
    for (uint64_t i = 0; i < count; i++) {
        for (int64_t n = 0; n < p->columns; n += BLOCK_COLUMNS) {
            for (int64_t k = 0; k < p->depth; k += BLOCK_DEPTH) {
                for (int64_t m = 0; m < p->rows; m += BLOCK_ROWS) their_block(p, n, m, k);
            }
        }
    }
}

/* ---- a shape ---- */

static float *numbers(int64_t count)
{
    static uint32_t state = 1;
    float *out = sp_aligned_malloc(64, (size_t)count * sizeof *out);
    if (out == NULL) abort();
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        out[i] = (float)(state >> 8) / 16777216.0f - 0.5f;
    }
    return out;
}

static void compare(const product *p)
{
    const double bound = 1e-5 * (double)p->depth;
    bool is_same = true;
    for (int64_t i = 0; i < p->rows * p->columns; i++) {
        is_same = is_same && fabs((double)p->y[i] - (double)p->their_y[i]) <= bound;
    }
    bench_check(is_same, "both products");
}

/* The ratio of the speeds. */
static double run_shape(product *p, const sp_kernel *kernels)
{
    p->a = numbers(p->rows * p->depth);
    p->b = numbers(p->depth * p->columns);
    p->y = numbers(p->rows * p->columns);
    p->their_y = numbers(p->rows * p->columns);
    p->blocks = numbers(p->depth * p->columns);
    lower_product(p, kernels);
    pack_blocks(p);
    find_kernels(p);
    our_product(p, 1);
    their_product(p, 1);
    compare(p);
    const bench_pair pair = bench_pair_ns(our_product, their_product, p);
    const double operations = 2.0 * (double)(p->rows * p->depth * p->columns);
    const double ratio = pair.peer.median / pair.ours.median;
    printf("{\"rows\": %lld, \"depth\": %lld, \"columns\": %lld, \"gflops\": %.1f, "
           "\"libxsmm_gflops\": %.1f, \"ratio\": %.3f}\n",
           (long long)p->rows, (long long)p->depth, (long long)p->columns,
           operations / pair.ours.median, operations / pair.peer.median, ratio);
    fflush(stdout);
    sp__lowering_deinit(&p->lowering);
    float *const owned[] = {p->a, p->b, p->y, p->their_y, p->blocks, p->packed};
    for (size_t i = 0; i < SP_COUNT_OF(owned); i++) sp_free(owned[i]);
    return ratio;
}

static void run_all(const sp_kernel *kernels)
{
    const size_t count = SP_COUNT_OF(shapes);
    double logs = 0, least = 1e9;
    for (size_t i = 0; i < count; i++) {
        product p = {
            .rows = shapes[i].rows, .depth = shapes[i].depth, .columns = shapes[i].columns};
        const double ratio = run_shape(&p, kernels);
        logs += log(ratio);
        least = ratio < least ? ratio : least;
    }
    printf("{\"shapes\": %zu, \"geometric_mean\": %.3f, \"least\": %.3f}\n", count,
           exp(logs / (double)count), least);
}

int main(int argc, char **argv)
{
    const sp_kernel *kernels = sp__cpu_kernels(sp__cpu_isa_selected());
    product p = {0};
    if (argc == 4)
        p = (product){.rows = atoi(argv[1]), .depth = atoi(argv[2]), .columns = atoi(argv[3])};
    if (argc != 1 && (p.rows < 1 || p.depth < 1 || p.columns < 1)) {
        fprintf(stderr, "usage: bench_gemm [ROWS DEPTH COLUMNS]\n");
        return 2;
    }
    libxsmm_init();
    const sp_fpenv before = sp_fpenv_enter();
    if (argc == 4) (void)run_shape(&p, kernels);
    else run_all(kernels);
    sp_fpenv_leave(before);
    libxsmm_finalize();
    return 0;
}
