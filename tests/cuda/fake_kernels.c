/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_kernels.h"

#include <stdio.h>

#include "device/cuda/cuda_command.h"
#include "fake_cuda.h"
#include "fake_nvrtc.h"
#include "ops/cuda/cuda_kernels.h"
#include "ops/lowering.h"
#include "support/test.h"

/* ---- the grids of the lowerings, from the constants ---- */

typedef struct grid {
    uint32_t size[3];
} grid;

static uint32_t tile_count(int64_t count, int64_t per_tile)
{
    return (uint32_t)sp__lower_tiles((uint64_t)count, (uint64_t)per_tile);
}

static grid grid_line(int64_t count, int64_t per_tile)
{
    return (grid){{tile_count(count, per_tile), 1, 1}};
}

static grid grid_gemm(const void *constants)
{
    const sp_gemm_constants *k = constants;
    int64_t batch = 1;
    for (uint32_t i = 0; i < k->batch_rank; i++) batch *= k->batch_dims[i];
    const int64_t panels = (k->columns + SP_GEMM_PANEL - 1) / SP_GEMM_PANEL;
    return (grid){
        {tile_count(k->rows, k->tile_rows), tile_count(panels, k->tile_panels), (uint32_t)batch}};
}

static grid grid_one(const void *constants)
{
    (void)constants;
    return (grid){{1, 1, 1}};
}
#define grid_pack grid_one
#define grid_narrow_tf32 grid_gemm
#define grid_narrow_f16 grid_gemm
#define grid_narrow_bf16 grid_gemm
#define grid_packed_tf32 grid_gemm
#define grid_packed_f16 grid_gemm
#define grid_packed_bf16 grid_gemm
#define grid_narrow_pack_tf32 grid_one
#define grid_narrow_pack_f16 grid_one
#define grid_look_up_pack grid_one
#define grid_blend grid_one
#define grid_non_zero grid_one

static grid grid_attention(const void *constants)
{
    const sp_attention_constants *k = constants;
    int64_t heads = 1;
    for (uint32_t i = 0; i < k->batch_rank; i++) heads *= k->batch_dims[i];
    return (grid){{tile_count(k->rows, k->tile_rows), 1, (uint32_t)heads}};
}

static grid grid_conv(const void *constants)
{
    const sp_conv_constants *k = constants;
    return (grid){{tile_count(k->out_h * k->out_w, k->tile_pixels), (uint32_t)k->groups,
                   (uint32_t)(k->planes / (k->groups * k->filters))}};
}

static grid grid_depthwise(const void *constants)
{
    const sp_conv_constants *k = constants;
    return grid_line(k->planes, k->tile_planes);
}

static grid grid_pool(const void *constants)
{
    const sp_pool_constants *k = constants;
    return grid_line(k->planes, k->tile_planes);
}

static grid grid_binary(const void *constants)
{
    const sp_binary_constants *k = constants;
    return grid_line(k->count, k->tile_count);
}

static grid grid_flat(const void *constants)
{
    const sp_flat_constants *k = constants;
    return grid_line(k->count, k->tile_count);
}

static grid grid_bytes(const void *constants)
{
    return grid_flat(constants);
}

static grid grid_copy(const void *constants)
{
    const sp_copy_constants *k = constants;
    return grid_line(k->count, k->tile_count);
}

static grid grid_concat(const void *constants)
{
    const sp_concat_constants *k = constants;
    return grid_line(k->outer, k->tile_outer);
}

static grid grid_pad(const void *constants)
{
    const sp_pad_constants *k = constants;
    return grid_line(k->rows, k->tile_rows);
}

static grid grid_fill(const void *constants)
{
    const sp_fill_constants *k = constants;
    return grid_line(k->count, k->tile_count);
}

#define GRID_LINE(launch, constants_name, what)                                                    \
    static grid grid_##launch(const void *constants)                                               \
    {                                                                                              \
        const sp_##constants_name##_constants *k = constants;                                      \
        return grid_line(k->what, k->tile_##what);                                                 \
    }
GRID_LINE(function, function, count)
GRID_LINE(gate, gate, count)
GRID_LINE(select, select, count)
GRID_LINE(cast, cast, count)
GRID_LINE(reduce, reduce, count)
GRID_LINE(axis, axis, rows)
GRID_LINE(softmax, axis, rows)
GRID_LINE(cumsum, axis, rows)
GRID_LINE(norm, norm, rows)
GRID_LINE(row_norm, row_norm, rows)
GRID_LINE(row_affine, row_affine, rows)
GRID_LINE(batch_norm, batch_norm, planes)
GRID_LINE(standardize, binary, count)
GRID_LINE(lrn, lrn, planes)
GRID_LINE(gather_elements, gather_elements, count)
GRID_LINE(gather_nd, gather_nd, rows)
GRID_LINE(scatter_elements, scatter_elements, lines)
GRID_LINE(scatter_nd, scatter_nd, slice)
GRID_LINE(one_hot, one_hot, outer)
GRID_LINE(range, range, count)
GRID_LINE(diagonal, diagonal, rows)
GRID_LINE(resize, resize, outer)
GRID_LINE(grid_sample, grid_sample, count)
GRID_LINE(look_up, look_up, rows)

static grid grid_gather(const void *constants)
{
    const sp_gather_constants *k = constants;
    return grid_line(k->outer * k->count, k->tile_rows);
}

static grid grid_top_k(const void *constants)
{
    const sp_top_k_constants *k = constants;
    return grid_line(k->outer * k->inner, k->tile_lines);
}

static grid grid_window(const void *constants)
{
    const sp_window_constants *k = constants;
    return grid_line(k->planes * k->out[0] * k->out[1], k->tile_rows);
}

static grid grid_conv_transpose(const void *constants)
{
    return grid_window(&((const sp_conv_transpose_constants *)constants)->window);
}

static grid grid_conv_3d(const void *constants)
{
    const sp_conv_3d_constants *d = constants;
    const sp_conv_constants *k = &d->plane;
    return (grid){{tile_count(d->out_d * k->out_h * k->out_w, k->tile_pixels), (uint32_t)k->groups,
                   (uint32_t)(k->planes / (k->groups * k->filters))}};
}

static grid grid_gemm_any(const void *constants)
{
    const sp_gemm_constants *k = &((const sp_gemm_any_constants *)constants)->gemm;
    int64_t batch = 1;
    for (uint32_t i = 0; i < k->batch_rank; i++) batch *= k->batch_dims[i];
    return (grid){{tile_count(k->rows, k->tile_rows), 1, (uint32_t)batch}};
}

static grid grid_recurrent(const void *constants)
{
    const sp_recurrent_constants *k = constants;
    return (grid){{tile_count(k->rows, SP_CELL_ROWS), k->directions, 1}};
}

/* ---- the kernels ---- */

static const struct kernel_row {
    uint32_t constant_bytes;
    grid (*grid)(const void *constants);
} rows[SP_KERNEL_COUNT] = {
#define ROW(kernel, constants, how)                                                                \
    [SP_KERNEL_ID_##kernel] = {sizeof(sp_##constants##_constants), grid_##how},
    SP_CUDA_KERNEL_LIST(ROW)
#undef ROW
};

/* The report that the GPU's kernel would make: the last binding, which a 0 follows. */
static void report(void *const *bindings)
{
    long long number = 0, limit = 0;
    const bool is_index =
        sscanf(sp_last_error(), "index %lld is out of range for a dimension of %lld", &number,
               &limit) == 2;
    const bool is_length =
        sscanf(sp_last_error(), "a sequence of length %lld; the longest has %lld", &number,
               &limit) == 2;
    CHECK(is_index || is_length);
    uint32_t count = 0;
    while (bindings[count] != NULL) count++;
    sp_gpu_report *place = bindings[count - 1];
    *place = (sp_gpu_report){.number = number, .most = limit + (is_length ? 2 : 1)};
}

static void run_kernel(sp_kernel_id id, void **params)
{
    const grid tiled = rows[id].grid(params[1]);
    const sp_kernel *kernel = &sp__cpu_kernels(sp__cpu_isa_selected())[id];
    const sp_status status = sp__kernel_run_grid(kernel, tiled.size, params[0], params[1]);
    if (status == SP_INVALID && sp__cuda_kernels()[id].gpu->reports) report(params[0]);
    else CHECK_OK(status);
}

#define RUN(kernel, constants, how)                                                                \
    static void run_##kernel(const uint32_t launch[3], const uint32_t block[3], void **params)     \
    {                                                                                              \
        (void)launch, (void)block;                                                                 \
        run_kernel(SP_KERNEL_ID_##kernel, params);                                                 \
    }
SP_CUDA_KERNEL_LIST(RUN)
#undef RUN

static void add_to_image(char **end, const char *stop, sp_kernel_id id, const char *name,
                         fake_cuda_kernel run)
{
    char entry[64];
    snprintf(entry, sizeof entry, "sp_%s", name);
    fake_cuda_register(entry, run);
    CHECK(rows[id].grid != NULL); /* each kernel needs a row */
    *end += snprintf(*end, (size_t)(stop - *end), "%s %zu %u\n", entry, sizeof(sp_cuda_bindings),
                     rows[id].constant_bytes);
}

void fake_kernels_begin(void)
{
    static char image[32768];
    char *end = image;
    end += snprintf(end, sizeof image, "FAKE\n");
#define ADD(kernel, constants, how)                                                                \
    add_to_image(&end, image + sizeof image, SP_KERNEL_ID_##kernel, #kernel, run_##kernel);
    SP_CUDA_KERNEL_LIST(ADD)
#undef ADD
    /* Variants compute what their kernel does. */
#define ADD_VARIANT(kernel, variant)                                                               \
    add_to_image(&end, image + sizeof image, SP_KERNEL_ID_##kernel, variant, run_##kernel);
    ADD_VARIANT(gemm_f32, "gemm_rows_f32")
    ADD_VARIANT(gemm_f32, "gemm_square_64_f32")
    ADD_VARIANT(gemm_f32, "gemm_square_128_f32")
    ADD_VARIANT(gemm_f32, "gemm_pair_f32")
    ADD_VARIANT(gemm_f32, "gemm_team_f32")
    ADD_VARIANT(conv_f32, "conv_team_f32")
    ADD_VARIANT(conv_f32, "conv_square_64_f32")
    ADD_VARIANT(conv_f32, "conv_square_128_f32")
    ADD_VARIANT(conv_f32, "conv_small_f32")
#define ADD_NARROW(type)                                                                           \
    ADD_VARIANT(gemm_narrow_##type, "gemm_narrow_deep_" #type)                                     \
    ADD_VARIANT(gemm_narrow_##type, "gemm_narrow_32_" #type)                                       \
    ADD_VARIANT(gemm_narrow_##type, "gemm_narrow_64_" #type)                                       \
    ADD_VARIANT(gemm_packed_##type, "gemm_packed_wide_" #type)                                     \
    ADD_VARIANT(gemm_packed_##type, "gemm_packed_128_" #type)
    ADD_NARROW(tf32)
    ADD_NARROW(f16)
    ADD_NARROW(bf16)
#undef ADD_NARROW
#undef ADD_VARIANT
    fake_cuda_set_image(image);
    fake_nvrtc_accept_all(true);
}
