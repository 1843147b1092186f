/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA kernel of attention, in the emulator: the CPU's bits, for any operands that a plan may
 * give it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fpenv.h"
#include "cuda/cuda_emulator.h"
#include "ops/cpu/arch/half.h"
#include "ops/cpu/tiling.h"
#include "ops/cuda/attention/attention_tile.h"
#include "ops/cuda/cuda_kernels.h"
#include "ops/cuda/cuda_launch.h"
#include "ops/lowering.h"
#include "support/model_data.h"
#include "support/test.h"

enum { QUERY, KEY, VALUE, MASK, CONDITION, Y, OPERANDS, IMAGES = 2 };

/* A call, and the memory of each operand. */
typedef struct call {
    sp_attention_constants k;
    void *memory[OPERANDS];
    size_t bytes[OPERANDS];
    uint32_t shared_bytes;
} call;

static uint32_t at_once_runs, chunk_runs;
static uint32_t rounded_runs[3]; /* by 64 keys in registers */
static uint32_t packed_runs, half_runs;

/* ---- memory that ends before a page without access ---- */

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t whole_pages(size_t bytes)
{
    return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

static void *guarded_alloc(size_t bytes)
{
    const size_t whole = whole_pages(bytes);
    char *map = mmap(NULL, whole + page_bytes(), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || mprotect(map + whole, page_bytes(), PROT_NONE) != 0) abort();
    return map + whole - bytes;
}

static void guarded_free(void *memory, size_t bytes)
{
    if (memory == NULL) return;
    (void)munmap((char *)memory + bytes - whole_pages(bytes), whole_pages(bytes) + page_bytes());
}

/* ---- a random call ---- */

static int64_t pick(data_random *random, int64_t low, int64_t high)
{
    return low + (int64_t)(data_next(random) % (uint64_t)(high - low + 1));
}

static bool one_in(data_random *random, int64_t count)
{
    return pick(random, 1, count) == 1;
}

/* Often near an end of what is computed at a time. */
static int64_t pick_size(data_random *random, int64_t least, int64_t most)
{
    static const int64_t ends[] = {4, 8, 32, 64, 128, 192, 256, 512};
    const int64_t end = ends[pick(random, 0, SP_COUNT_OF(ends) - 1)] + pick(random, -1, 1);
    const int64_t size = one_in(random, 2) ? end : pick(random, least, 70);
    return size < least || size > most ? pick(random, least, most < 70 ? most : 70) : size;
}

static sp_attention_scale pick_scale(data_random *random)
{
    static const float numbers[] = {8, 0.17677669f, -0.3f, 1e-20f, 1e30f};
    const int64_t kind = pick(random, SP_SCALE_NONE, SP_SCALE_DIVIDES);
    return (sp_attention_scale){(uint32_t)kind, numbers[pick(random, 0, 4)]};
}

/* Strides of an operand of images, heads, rows and neighbouring columns; sets its extent, in
 * elements: rows of one head are apart by the other heads, or follow each other. Every other one
 * can be loaded by vectors. */
static sp_attention_operand pick_strides(data_random *random, int64_t heads, int64_t rows,
                                         int64_t columns, size_t *extent)
{
    const int64_t unit = one_in(random, 2) ? 4 : 1, width = sp_cuda_tiles(columns, unit) * unit;
    sp_attention_operand of = {.first = pick(random, 0, 1) * pick(random, 0, 5) * unit,
                               .column = 1};
    const int64_t gap = one_in(random, 2) ? 0 : pick(random, 0, 5) * unit;
    const bool is_interleaved = one_in(random, 2);
    of.row = is_interleaved ? heads * width + gap : width + gap;
    of.batch[1] = is_interleaved ? width : rows * of.row;
    of.batch[0] = is_interleaved ? rows * of.row : heads * rows * of.row;
    *extent = (size_t)(of.first + IMAGES * of.batch[0]);
    return of;
}

/* Keys may also have neighbouring rows, or no neighbours. */
static void turn_keys(sp_attention_operand *of, int64_t row, int64_t rows, int64_t columns,
                      int64_t heads, size_t *extent)
{
    of->row = row;
    of->column = rows * row;
    of->batch[1] = columns * of->column;
    of->batch[0] = heads * of->batch[1];
    *extent = (size_t)(of->first + IMAGES * of->batch[0]);
}

/* Some dimensions of a mask or a condition are broadcast. */
static void broadcast(data_random *random, sp_attention_operand *of)
{
    if (one_in(random, 2)) of->row = 0;
    if (one_in(random, 2)) of->batch[0] = 0;
    if (one_in(random, 2)) of->batch[1] = 0;
}

static void *fill_floats(data_random *random, size_t count, bool has_specials, size_t *bytes)
{
    static const float specials[] = {INFINITY, -INFINITY, NAN, -0.0f, 1e-42f, 3e38f};
    float *values = guarded_alloc(count * sizeof *values);
    data_fill(random, values, count);
    for (size_t i = 0; i < count; i++) {
        values[i] *= 3;
        if (has_specials && one_in(random, 300)) values[i] = specials[pick(random, 0, 5)];
    }
    *bytes = count * sizeof *values;
    return values;
}

static uint8_t *fill_bytes(data_random *random, size_t count, size_t *bytes)
{
    uint8_t *values = guarded_alloc(count);
    for (size_t i = 0; i < count; i++)
        values[i] = one_in(random, 3) ? (uint8_t)pick(random, 1, 255) : 0;
    *bytes = count;
    return values;
}

static void pick_sizes(data_random *random, call *c, bool is_large)
{
    sp_attention_constants *k = &c->k;
    k->rows = pick_size(random, is_large ? 8 : 1, is_large ? 100 : 70);
    k->keys = pick_size(random, 1, is_large ? SP_ATTENTION_KEYS : 300);
    k->depth = pick_size(random, 1, is_large ? SP_ATTENTION_DEPTH : 70);
    k->columns = pick_size(random, 1, is_large ? 300 : 70);
    k->batch_rank = 2;
    k->batch_dims[0] = IMAGES;
    k->batch_dims[1] = pick(random, 1, 3);
    k->of_query = pick_scale(random);
    k->of_key = pick_scale(random);
    k->of_scores = pick_scale(random);
    k->rounding = (uint8_t)(one_in(random, 2) ? pick(random, SP_ROUNDING_F16, SP_ROUNDING_BF16)
                                              : SP_ROUNDING_NONE);
    if (k->rounding != SP_ROUNDING_NONE && one_in(random, 2)) { /* which may be packed */
        k->columns = 8 * pick(random, 1, is_large ? SP_ATTENTION_DEPTH / 8 : 9);
        if (k->depth < k->columns || one_in(random, 2)) k->depth = k->columns;
    }
    /* Several keys of a second segment. */
    if (k->rounding != SP_ROUNDING_NONE && one_in(random, 4)) k->keys = pick(random, 258, 300);
}

static void pick_masks(data_random *random, call *c, bool has_specials)
{
    sp_attention_constants *k = &c->k;
    const int64_t heads = k->batch_dims[1];
    size_t extent;
    k->has_mask = one_in(random, 2);
    k->has_condition = one_in(random, 2);
    k->fills_false = one_in(random, 2);
    k->is_condition_last = one_in(random, 2);
    k->fill = one_in(random, 2) ? -INFINITY : -1e30f;
    if (k->has_mask) {
        k->mask = pick_strides(random, heads, k->rows, k->keys, &extent);
        c->memory[MASK] = fill_floats(random, extent, has_specials, &c->bytes[MASK]);
        broadcast(random, &k->mask);
    }
    if (k->has_condition) {
        k->condition = pick_strides(random, heads, k->rows, k->keys, &extent);
        c->memory[CONDITION] = fill_bytes(random, extent, &c->bytes[CONDITION]);
        broadcast(random, &k->condition);
    }
}

/* Of the smallest device that runs the call: those with tensor cores have more. */
static uint32_t least_shared_bytes(const sp_attention_constants *k)
{
    return (k->rounding == SP_ROUNDING_NONE ? 64 : 99) * 1024;
}

/* Operands of two bytes, of which a product may have made them: units of eight elements. */
static void halve_operands(data_random *random, call *c)
{
    sp_attention_constants *k = &c->k;
    sp_attention_operand *const operands[] = {&k->query, &k->key, &k->value};
    const int64_t heads = k->batch_dims[1], width = heads * (2 * k->depth + k->columns);
    const int64_t firsts[] = {0, heads * k->depth, 2 * heads * k->depth};
    const int64_t sizes[] = {k->depth, k->depth, k->columns};
    const int64_t rows = k->rows > k->keys ? k->rows : k->keys;
    const size_t count = (size_t)(IMAGES * rows * width);
    const bool is_by_images = one_in(random, 2);
    k->is_half = true;
    k->of_query.kind = k->of_key.kind = SP_SCALE_NONE;
    for (int i = QUERY; i <= VALUE; i++) {
        size_t bytes;
        float *values = fill_floats(random, count, one_in(random, 4), &bytes);
        guarded_free(c->memory[i], c->bytes[i]);
        c->bytes[i] = count * sizeof(uint16_t);
        uint16_t *halves = c->memory[i] = guarded_alloc(c->bytes[i]);
        for (size_t e = 0; e < count; e++) {
            halves[e] = k->rounding == SP_ROUNDING_F16 ? sp_f16_of_float(values[e])
                                                       : sp_bf16_of_float(values[e]);
        }
        guarded_free(values, bytes);
        *operands[i] =
            (sp_attention_operand){.first = firsts[i],
                                   .row = is_by_images ? width : IMAGES * width,
                                   .column = 1,
                                   .batch = {is_by_images ? rows * width : width, sizes[i]}};
    }
    half_runs++;
}

static bool can_be_packed(const sp_attention_constants *k)
{
    return k->rounding != SP_ROUNDING_NONE && k->columns % 8 == 0 && k->columns <= k->depth;
}

/* The result is a packed matrix: some of its rows, and of each row all heads, or all but the last
 * columns. */
static void pack_result(data_random *random, call *c)
{
    sp_attention_constants *k = &c->k;
    const int64_t group = SP_NARROW_BYTES / 2, heads = k->batch_dims[1];
    k->y_format = k->rounding == SP_ROUNDING_F16 ? SP_PACK_F16 : SP_PACK_BF16;
    k->y_width = sp_cuda_tiles(heads * k->columns, group) * group;
    k->y_lines = sp_cuda_tiles(IMAGES * k->rows, SP_NARROW_LINES) * SP_NARROW_LINES;
    const bool is_by_images = one_in(random, 2);
    k->y = (sp_attention_operand){
        .row = is_by_images ? k->y_width : IMAGES * k->y_width,
        .column = 1,
        .batch = {is_by_images ? k->rows * k->y_width : k->y_width, k->columns}};
    c->bytes[Y] = (size_t)(k->y_lines * k->y_width * 2);
    packed_runs++;
}

static call make_call(data_random *random, bool is_large)
{
    call c = {0};
    sp_attention_constants *k = &c.k;
    const bool has_specials = one_in(random, 2);
    size_t extent;
    pick_sizes(random, &c, is_large);
    c.shared_bytes = one_in(random, 3) ? least_shared_bytes(k) : 227 * 1024;
    const int64_t heads = k->batch_dims[1];
    k->query = pick_strides(random, heads, k->rows, k->depth, &extent);
    c.memory[QUERY] = fill_floats(random, extent, has_specials, &c.bytes[QUERY]);
    k->key = pick_strides(random, heads, k->keys, k->depth, &extent);
    if (one_in(random, 2)) {
        const int64_t row = one_in(random, 4) ? 4 : 1;
        turn_keys(&k->key, row, k->keys, k->depth, heads, &extent);
    }
    c.memory[KEY] = fill_floats(random, extent, has_specials, &c.bytes[KEY]);
    k->value = pick_strides(random, heads, k->keys, k->columns, &extent);
    c.memory[VALUE] = fill_floats(random, extent, has_specials, &c.bytes[VALUE]);
    pick_masks(random, &c, has_specials);
    k->y = pick_strides(random, heads, k->rows, k->columns, &extent);
    k->y.first = 0;
    c.bytes[Y] = extent * sizeof(float);
    if (can_be_packed(k) && k->depth % 8 == 0 && one_in(random, 2)) halve_operands(random, &c);
    if (can_be_packed(k) && one_in(random, 2)) pack_result(random, &c);
    return c;
}

static void free_call(call *c)
{
    for (int i = 0; i < OPERANDS; i++) guarded_free(c->memory[i], c->bytes[i]);
}

/* The operands in the order of the kernel's bindings. */
static uint32_t bind(const call *c, void *y, void **bindings)
{
    uint32_t count = 0;
    for (int i = 0; i < Y; i++) {
        if (c->memory[i] != NULL) bindings[count++] = c->memory[i];
    }
    bindings[count++] = y;
    return count;
}

static void run_on_cpu(const call *c, void *y)
{
    const sp_attention_constants *k = &c->k;
    const sp_kernel *kernel = &sp__cpu_kernels(SP_CPU_PORTABLE)[SP_KERNEL_ID_attention_f32];
    sp_tiling tiling; /* a panel a tile */
    sp_tiling_line(&tiling, k->rows, SP_GEMM_PANEL);
    sp_tiling_each(&tiling, 2, k->batch_dims[0] * k->batch_dims[1]);
    void *bindings[OPERANDS];
    CHECK(bind(c, y, bindings) >= 4);
    CHECK_OK(sp__kernel_run_tiling(kernel, &tiling, bindings, k));
}

/* Another number of warps, if their queries and scores find room, and scores in registers or not.
 */
static void pick_rounded_shape(data_random *random, const call *c, sp_launch_shape *shape)
{
    const int64_t warps = (int64_t)1 << pick(random, 0, 3);
    const bool is_at_once = sp_cuda_rounded_keys_at_once(&c->k) > 0 && one_in(random, 2);
    const int64_t bytes = is_at_once ? sp_cuda_rounded_bytes_at_once(&c->k, warps)
                                     : sp_cuda_rounded_bytes(&c->k, warps);
    if (one_in(random, 2) || bytes > c->shared_bytes) return;
    sp__cuda_launch_rounded_attention(&c->k, warps, is_at_once, shape);
}

/* Any form of the kernel that the call may have: keys and values by chunks, or at once. */
static sp_launch_shape pick_shape(data_random *random, const call *c)
{
    static const uint32_t all_rows[] = {2, 4, 8};
    const sp_attention_constants *k = &c->k;
    sp_launch_shape shape = {0};
    sp__cuda_tiled_attention(k, c->shared_bytes, &shape);
    CHECK(shape.shared_bytes <= c->shared_bytes);
    if (k->rounding != SP_ROUNDING_NONE) {
        pick_rounded_shape(random, c, &shape);
        rounded_runs[shape.tile[1] / 64]++;
        return shape;
    }
    if (!sp_cuda_attention_fits_at_once(k) || one_in(random, 4)) return shape;
    const uint32_t rows = all_rows[pick(random, 0, 2)], warps = one_in(random, 2) ? 8 : 4;
    const int64_t bytes = sp_cuda_attention_bytes_at_once(k, warps, rows);
    if (bytes > c->shared_bytes) return shape;
    at_once_runs++;
    return (sp_launch_shape){
        .grid = {(uint32_t)(sp_cuda_tiles(k->rows, warps * rows) * sp_cuda_attention_heads(k)), 1,
                 1},
        .block = {warps * SP_CUDA_LANES, 1, 1},
        .tile = {warps, rows},
        .shared_bytes = (uint32_t)bytes};
}

/* The kernel in front: before it has ended its results are not there. */
typedef struct front {
    const call *c;
    void *results[Y];
} front;

static front begin_front(const call *c)
{
    front f = {.c = c};
    for (int i = 0; i < Y; i++) {
        if (c->memory[i] == NULL) continue;
        f.results[i] = malloc(c->bytes[i] + 1);
        if (f.results[i] == NULL) abort();
        memcpy(f.results[i], c->memory[i], c->bytes[i]);
        memset(c->memory[i], 0x7f, c->bytes[i]);
    }
    return f;
}

static void end_front(void *context)
{
    front *f = context;
    for (int i = 0; i < Y; i++) {
        if (f->results[i] != NULL) memcpy(f->c->memory[i], f->results[i], f->c->bytes[i]);
        free(f->results[i]);
        f->results[i] = NULL;
    }
}

/* `largest`: the blocks of the grid, at most; they then compute several tiles. */
static void run_emulated(data_random *random, const call *c, uint32_t largest, void *y)
{
    void *bindings[OPERANDS];
    const uint32_t count = bind(c, y, bindings);
    sp_launch_shape shape = pick_shape(random, c);
    const sp_gpu_kernel *gpu =
        shape.variant != NULL ? shape.variant : sp__cuda_kernels()[SP_KERNEL_ID_attention_f32].gpu;
    chunk_runs += shape.variant == NULL && shape.tile[1] == 0;
    if (shape.grid[0] > largest) shape.grid[0] = largest;
    else if (one_in(random, 4)) shape.grid[0] += 2; /* blocks without tiles */
    front in_front = begin_front(c);
    cuda_emulator_set_front(end_front, &in_front);
    CHECK(cuda_emulator_launch(gpu->entry, &shape, bindings, count, &c->k));
    cuda_emulator_set_front(NULL, NULL);
    for (int i = 0; i < Y; i++) CHECK(in_front.results[i] == NULL); /* somebody has awaited it */
}

static void check_call(uint64_t seed, bool is_large)
{
    data_random random = {seed};
    call c = make_call(&random, is_large);
    char *want = guarded_alloc(c.bytes[Y]), *got = guarded_alloc(c.bytes[Y]);
    memset(want, 0xa5, c.bytes[Y]);
    memset(got, 0xa5, c.bytes[Y]);
    run_on_cpu(&c, want);
    run_emulated(&random, &c, one_in(&random, 2) ? 2 : UINT32_MAX, got);
    const bool is_same = memcmp(want, got, c.bytes[Y]) == 0;
    CHECK(is_same);
    if (!is_same) {
        test_note("seed %llu: %lld queries, %lld keys, depth %lld, %lld columns",
                  (unsigned long long)seed, (long long)c.k.rows, (long long)c.k.keys,
                  (long long)c.k.depth, (long long)c.k.columns);
    }
    guarded_free(want, c.bytes[Y]);
    guarded_free(got, c.bytes[Y]);
    free_call(&c);
}

TEST(attention_has_the_bits_of_the_cpu)
{
    const sp_fpenv before = sp_fpenv_enter();
    for (uint64_t i = 1; i <= test_count(1000, 200); i++) check_call(i, false);
    for (uint64_t i = 1; i <= test_count(60, 4); i++) check_call(1000000 + i, true);
    sp_fpenv_leave(before);
    CHECK(at_once_runs > 10);
    CHECK(chunk_runs > 10);
    for (int i = 0; i < 3; i++) CHECK(rounded_runs[i] > 0);
    CHECK(packed_runs > 10);
    CHECK(half_runs > 10);
}

/* A launch fits each device and has a block for each of its tiles; whether keys and values are
 * there by chunks or at once follows from the head alone. */
TEST(a_launch_has_all_tiles_and_fits_the_device)
{
    data_random random = {7};
    for (uint64_t i = 0; i < 1000; i++) {
        call c = {0};
        pick_sizes(&random, &c, true);
        c.shared_bytes = i % 2 == 0 ? least_shared_bytes(&c.k) : 227 * 1024;
        bool is_at_once[2] = {false};
        for (int many = 0; many < 2; many++) {
            sp_launch_shape shape = {0};
            sp__cuda_tiled_attention(&c.k, c.shared_bytes, &shape);
            is_at_once[many] = c.k.rounding == SP_ROUNDING_NONE && shape.tile[1] > 0;
            const int64_t rows = c.k.rounding != SP_ROUNDING_NONE ? SP_CUDA_ROUNDED_ROWS
                                 : is_at_once[many]               ? shape.tile[1]
                                                                  : SP_ATTENTION_ROWS;
            const int64_t tiles = sp_cuda_tiles(c.k.rows, shape.tile[0] * rows);
            CHECK_EQ_U64(shape.grid[0], (uint64_t)(tiles * sp_cuda_attention_heads(&c.k)));
            CHECK_EQ_U64(shape.block[0], shape.tile[0] * SP_CUDA_LANES);
            CHECK(shape.shared_bytes <= c.shared_bytes);
            c.k.batch_dims[0] *= 1000;
        }
        CHECK(is_at_once[0] == is_at_once[1]);
    }
}

/* Where scores need more room than queries leave, fewer warps share a block. */
TEST(rounded_attention_of_wide_heads_fits_99_kib)
{
    for (int64_t keys = 16; keys <= 1024; keys *= 2) {
        const sp_attention_constants k = {.rows = 256,
                                          .keys = keys,
                                          .depth = 256,
                                          .columns = 64,
                                          .batch_rank = 1,
                                          .batch_dims = {1000},
                                          .rounding = SP_ROUNDING_BF16};
        sp_launch_shape shape = {0};
        sp__cuda_tiled_attention(&k, 99 * 1024, &shape);
        CHECK(shape.shared_bytes <= 99 * 1024);
    }
}

TEST_MAIN
