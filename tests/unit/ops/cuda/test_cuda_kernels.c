/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA kernels, without a GPU: the table is complete, every launch is within the limits of
 * every processor, and NVRTC, if installed, compiles the text unchanged. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "device/cuda/cuda_program.h"
#include "ops/cuda/cuda_kernels.h"
#include "ops/cuda/cuda_launch.h"
#include "ops/op_kernels.h"
#include "ops/pack.h"
#include "ops/registry.h"
#include "support/test.h"

static const sp_gpu_program *const programs[] = {
#define PROGRAM(name, kernels) &sp__cuda_program_##name,
    SP_CUDA_PROGRAM_LIST(PROGRAM)
#undef PROGRAM
};

static bool is_listed(uint32_t kernel)
{
    static const sp_kernel_id listed[] = {
#define LISTED(kernel, constants, launch) SP_KERNEL_ID_##kernel,
        SP_CUDA_KERNEL_LIST(LISTED)
#undef LISTED
    };
    uint32_t found = 0;
    for (size_t i = 0; i < SP_COUNT_OF(listed); i++) found += listed[i] == kernel;
    CHECK(found <= 1); /* in one program */
    return found > 0;
}

TEST(every_kernel_of_cuda_has_an_entry_in_a_program_and_others_have_a_name)
{
    const sp_kernel *kernels = sp__cuda_kernels();
    for (uint32_t i = 0; i < SP_KERNEL_COUNT; i++) {
        CHECK_EQ_STR(kernels[i].name, sp__cpu_kernels(SP_CPU_PORTABLE)[i].name);
        CHECK(kernels[i].run == NULL);
        CHECK_EQ_INT(kernels[i].gpu != NULL, is_listed(i));
        if (kernels[i].gpu == NULL) continue;
        CHECK(kernels[i].gpu->index < kernels[i].gpu->program->kernel_count);
        CHECK((kernels[i].gpu->shape != NULL) != (kernels[i].gpu->tiled != NULL));
        REQUIRE(strncmp(kernels[i].gpu->entry, "sp_", 3) == 0);
        CHECK_EQ_STR(kernels[i].gpu->entry + 3, kernels[i].name);
    }
}

/* ---- a new op needs its CUDA part, or an entry here ---- */

typedef struct reason {
    const char *name, *why;
} reason;

/* A kernel of one of the families, or one that is named. */
static const reason kernels_of_the_cpu[] = {
#define BLOCKED(kernel) {#kernel, "only plans for the cpu have images in blocks of channels"},
    SP_BLOCKED_KERNEL_LIST(BLOCKED)
#undef BLOCKED
#define STRIDED(kernel) {#kernel, "only plans for the cpu have products of views"},
        SP_STRIDED_KERNEL_LIST(STRIDED)
#undef STRIDED
};

static const reason ops_without_kernels[] = {
    {"Constant", "a weight of the model"},
    {"Flatten", "a view"},
    {"Identity", "a view"},
    {"If", "the host chooses"},
    {"Loop", "the host runs the body"},
    {"Reshape", "a view"},
    {"Scan", "the host runs the body"},
    {"Shape", "known to the plan"},
    {"Size", "known to the plan"},
    {"Squeeze", "a view"},
    {"Unsqueeze", "a view"},
};

static const char *reason_of(const reason *reasons, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(reasons[i].name, name) == 0) return reasons[i].why;
    }
    return NULL;
}

TEST(each_kernel_that_cuda_does_not_have_is_of_the_cpu_for_a_reason)
{
    const sp_kernel *kernels = sp__cuda_kernels();
    for (uint32_t i = 0; i < SP_KERNEL_COUNT; i++) {
        const char *why =
            reason_of(kernels_of_the_cpu, SP_COUNT_OF(kernels_of_the_cpu), kernels[i].name);
        CHECK_EQ_INT(kernels[i].gpu == NULL, why != NULL);
        if ((kernels[i].gpu == NULL) != (why != NULL)) test_note("%s", kernels[i].name);
    }
}

TEST(each_op_has_kernels_of_cuda_or_a_reason)
{
    const sp_kernel *kernels = sp__cuda_kernels();
    uint32_t count;
    const sp_op *ops = sp__op_table(&count);
    uint32_t reasons = 0;
    for (uint32_t o = 0; o < count; o++) {
        bool has_kernel = false;
        for (uint32_t i = 0; i < SP_KERNEL_COUNT; i++) {
            if (!sp__op_may_use(ops[o].name, (sp_kernel_id)i)) continue;
            has_kernel = true;
            CHECK(kernels[i].gpu != NULL);
            if (kernels[i].gpu == NULL) test_note("%s: %s", ops[o].name, kernels[i].name);
        }
        const char *why =
            reason_of(ops_without_kernels, SP_COUNT_OF(ops_without_kernels), ops[o].name);
        CHECK_EQ_INT(has_kernel, why == NULL);
        if (has_kernel != (why == NULL)) test_note("%s", ops[o].name);
        /* The versions of an op are consecutive. */
        reasons += why != NULL && (o == 0 || strcmp(ops[o].name, ops[o - 1].name) != 0);
    }
    CHECK_EQ_U64(reasons, SP_COUNT_OF(ops_without_kernels)); /* each is of an op */
}

TEST(no_two_kernels_of_a_program_have_an_index)
{
    const sp_kernel *kernels = sp__cuda_kernels();
    const sp_gpu_kernel *all[SP_KERNEL_COUNT + 64];
    uint32_t count = 0;
    for (uint32_t i = 0; i < SP_KERNEL_COUNT; i++) {
        if (kernels[i].gpu != NULL) all[count++] = kernels[i].gpu;
    }
#define VARIANT(name) all[count++] = &sp__cuda_variant_##name;
    SP_CUDA_VARIANT_LIST(VARIANT)
    SP_CUDA_CELL_VARIANT_LIST(VARIANT)
    SP_CUDA_TENSOR_VARIANT_LIST(VARIANT)
#undef VARIANT
    for (uint32_t i = 0; i < count; i++) {
        CHECK(all[i]->index < all[i]->program->kernel_count);
        for (uint32_t j = 0; j < i; j++) {
            CHECK(all[i]->program != all[j]->program || all[i]->index != all[j]->index);
        }
    }
}

TEST(a_program_is_one_text_without_includes)
{
    for (size_t i = 0; i < SP_COUNT_OF(programs); i++) {
        char *text;
        REQUIRE_OK(sp__cuda_program_text(programs[i], &text));
        CHECK(strlen(text) > 10000);
        CHECK(strstr(text, "#include") == NULL);
        /* The library has it compressed. */
        const sp_gpu_text *const *parts = programs[i]->parts;
        CHECK_EQ_U64(strlen(text), parts[0]->bytes + parts[1]->bytes);
        CHECK(3 * (parts[0]->deflated_bytes + parts[1]->deflated_bytes) < strlen(text));
        CHECK_EQ_INT(programs[i]->binary == NULL, programs[i]->binary_bytes == 0);
        test_note("%s: %zu bytes of text, %zu of them its own, %zu of binaries", programs[i]->name,
                  strlen(text), parts[1]->bytes, programs[i]->binary_bytes);
        sp_free(text);
    }
}

/* ---- launches ---- */

static uint32_t shared_bytes = 48 * 1024;

static sp_launch_shape shape_of(sp_kernel_id kernel, const void *constants)
{
    sp_launch_shape shape;
    memset(&shape, 0xff, sizeof(shape));
    const sp_gpu_kernel *gpu = sp__cuda_kernels()[kernel].gpu;
    if (gpu->tiled != NULL) gpu->tiled(constants, shared_bytes, &shape);
    else gpu->shape(constants, &shape);
    const uint64_t threads = (uint64_t)shape.block[0] * shape.block[1] * shape.block[2];
    CHECK(threads > 0 && threads <= 1024);
    CHECK(shape.block[2] <= 64);
    CHECK(shape.grid[0] <= 0x7fffffff);
    CHECK(shape.grid[1] <= 65535);
    CHECK(shape.grid[2] <= 65535);
    CHECK(shape.shared_bytes <= (gpu->tiled != NULL ? shared_bytes : 0));
    return shape;
}

static uint64_t blocks_of(sp_kernel_id kernel, const void *constants)
{
    const sp_launch_shape shape = shape_of(kernel, constants);
    return (uint64_t)shape.grid[0] * shape.grid[1] * shape.grid[2];
}

static const int64_t counts[] = {0, 1, 255, 1024, 1025, INT64_C(1) << 31, INT64_C(1) << 40};

/* No launch for an empty output, a launch for any other. */
#define CHECK_LAUNCHES(kernel, constants, count)                                                   \
    CHECK_EQ_INT(blocks_of(SP_KERNEL_ID_##kernel, constants) > 0, (count) > 0)

TEST(elements_are_launched_for_any_count)
{
    for (size_t i = 0; i < SP_COUNT_OF(counts); i++) {
        const int64_t n = counts[i];
        for (uint32_t rank = 1; rank <= SP_MAX_RANK; rank++) {
            sp_binary_constants binary = {.rank = rank, .count = n};
            for (int id = SP_KERNEL_ID_add_f32; id <= SP_KERNEL_ID_div_i64; id++) {
                CHECK_EQ_INT(blocks_of((sp_kernel_id)id, &binary) > 0, n > 0);
            }
            sp_copy_constants copy = {.rank = rank, .element_bytes = 1, .count = n};
            CHECK_LAUNCHES(copy_strided, &copy, n);
            sp_pad_constants pad = {.rank = rank, .element_bytes = 1, .rows = 1};
            pad.out[rank - 1] = n;
            CHECK_LAUNCHES(pad, &pad, n);
        }
        const sp_flat_constants flat = {.count = n};
        for (int id = SP_KERNEL_ID_relu_f32; id <= SP_KERNEL_ID_copy_bytes; id++) {
            CHECK_EQ_INT(blocks_of((sp_kernel_id)id, &flat) > 0, n > 0);
        }
        const sp_rows_constants rows = {.rows = 1, .outer = 1, .chunk = n};
        CHECK_LAUNCHES(move_rows, &rows, n);
        const sp_fill_constants fill = {.count = n, .element_bytes = 1};
        CHECK_LAUNCHES(fill, &fill, n);
    }
}

TEST(elementwise_kernels_are_launched_for_any_count)
{
    for (size_t i = 0; i < SP_COUNT_OF(counts); i++) {
        const int64_t n = counts[i];
        const sp_function_constants function = {.count = n};
        CHECK_LAUNCHES(clip_f32, &function, n);
        const sp_gate_constants gate = {.count = n};
        CHECK_LAUNCHES(erf_gate_f32, &gate, n);
        const sp_row_affine_constants affine = {.rows = 1, .extent = n};
        CHECK_LAUNCHES(row_affine_f32, &affine, n);
        const sp_cast_constants cast = {.count = n};
        CHECK_LAUNCHES(cast_f16, &cast, n);
        const sp_select_constants select = {.rank = 1, .count = n};
        CHECK_LAUNCHES(where_32, &select, n);
        const sp_binary_constants binary = {.rank = 1, .count = n};
        CHECK_LAUNCHES(standardize_f32, &binary, n);
        const sp_blend_constants blend = {.count = n};
        CHECK_LAUNCHES(blend_f32, &blend, n);
        const sp_batch_norm_constants norm = {.planes = n, .plane = 1};
        CHECK_LAUNCHES(batch_norm_f32, &norm, n);
        const sp_lrn_constants lrn = {.planes = 1, .plane = n};
        CHECK_LAUNCHES(lrn_f32, &lrn, n);
    }
}

TEST(reductions_are_launched_for_any_count_and_extent)
{
    for (size_t i = 0; i < SP_COUNT_OF(counts) * SP_COUNT_OF(counts); i++) {
        const int64_t n = counts[i / SP_COUNT_OF(counts)], extent = counts[i % SP_COUNT_OF(counts)];
        for (int is_columns = 0; is_columns < 2; is_columns++) {
            const sp_reduce_constants reduce = {
                .count = n, .extent = extent, .is_columns = is_columns != 0};
            CHECK_LAUNCHES(reduce_f32, &reduce, n);
            const sp_axis_constants axis = {
                .rows = n, .extent = extent, .inner = is_columns != 0 ? 7 : 1};
            CHECK_LAUNCHES(softmax_f32, &axis, n);
            CHECK_LAUNCHES(cumsum_f32, &axis, n);
        }
        const sp_norm_constants norm = {.rows = n, .extent = extent};
        CHECK_LAUNCHES(norm_f32, &norm, n);
        const sp_row_norm_constants row_norm = {.rows = n, .extent = extent};
        CHECK_LAUNCHES(row_norm_f32, &row_norm, n);
    }
}

TEST(selected_elements_are_launched_for_any_count)
{
    for (size_t i = 0; i < SP_COUNT_OF(counts); i++) {
        const int64_t n = counts[i];
        for (int64_t bytes = 1; bytes <= 16; bytes *= 2) {
            const sp_gather_constants gather = {.outer = 1, .count = n, .inner_bytes = bytes};
            CHECK_LAUNCHES(gather, &gather, n);
            const sp_gather_nd_constants gather_nd = {.rows = n, .slice_bytes = bytes};
            CHECK_LAUNCHES(gather_nd, &gather_nd, n);
        }
        const sp_gather_elements_constants elements = {.count = n};
        CHECK_LAUNCHES(gather_elements, &elements, n);
        const sp_scatter_elements_constants lines = {.lines = n};
        CHECK_LAUNCHES(scatter_elements, &lines, n);
        const sp_scatter_nd_constants slices = {.count = 1, .slice = n};
        CHECK_LAUNCHES(scatter_nd, &slices, n);
        const sp_one_hot_constants one_hot = {.outer = n, .depth = 1, .inner = 1};
        CHECK_LAUNCHES(one_hot, &one_hot, n);
        const sp_range_constants range = {.count = n};
        CHECK_LAUNCHES(range, &range, n);
        const sp_diagonal_constants diagonal = {.rows = n, .columns = 1};
        CHECK_LAUNCHES(trilu, &diagonal, n);
        const sp_non_zero_constants non_zero = {.count = n};
        CHECK_LAUNCHES(non_zero, &non_zero, n);
        const sp_top_k_constants top_k = {.outer = n, .axis = 1, .inner = 1};
        CHECK_LAUNCHES(top_k, &top_k, n);
        const sp_look_up_constants look_up = {.rows = n, .columns = 1};
        CHECK_LAUNCHES(look_up_f32, &look_up, n);
        const sp_resize_constants resize = {.outer = 1, .out = n, .inner = 1};
        CHECK_LAUNCHES(resize_f32, &resize, n);
    }
}

TEST(windows_products_of_all_types_and_layers_are_launched_for_any_size)
{
    for (size_t i = 0; i < SP_COUNT_OF(counts); i++) {
        const int64_t n = counts[i];
        const sp_window_constants window = {.planes = 1, .out = {1, 1, n}};
        CHECK_LAUNCHES(average_pool_f32, &window, n);
        const sp_conv_transpose_constants transposed = {.window = window};
        CHECK_LAUNCHES(conv_transpose_f32, &transposed, n);
        const sp_conv_3d_constants volume = {.plane = {.planes = n, .out_h = 1, .out_w = 1},
                                             .out_d = 1};
        CHECK_LAUNCHES(conv_3d_f32, &volume, n);
        const sp_gemm_any_constants gemm = {.gemm = {.rows = n, .columns = 1}};
        CHECK_LAUNCHES(gemm_any_i64, &gemm, n);
        const sp_recurrent_constants layer = {.rows = n, .directions = 2};
        CHECK_LAUNCHES(lstm_f32, &layer, n);
    }
}

TEST(parts_are_launched_for_any_size)
{
    for (uint32_t parts = 1; parts <= SP_CONCAT_MAX_PARTS; parts++) {
        for (size_t i = 0; i < SP_COUNT_OF(counts); i++) {
            sp_concat_constants k = {.parts = parts, .outer = counts[i]};
            CHECK_LAUNCHES(concat, &k, 0);
            k.part_bytes[parts - 1] = 1;
            CHECK_LAUNCHES(concat, &k, counts[i]);
            k.outer = 1;
            k.part_bytes[parts - 1] = counts[i];
            CHECK_LAUNCHES(split, &k, counts[i]);
        }
    }
}

TEST(products_are_launched_for_any_size)
{
    static const int64_t sizes[] = {0, 1, 16, 33, 100000, INT64_C(1) << 19};
    for (size_t i = 0; i < SP_COUNT_OF(sizes) * SP_COUNT_OF(sizes); i++) {
        const int64_t m = sizes[i / SP_COUNT_OF(sizes)], n = sizes[i % SP_COUNT_OF(sizes)];
        sp_gemm_constants gemm = {.rows = m, .columns = n, .depth = 0};
        CHECK_LAUNCHES(gemm_f32, &gemm, m * n);
        gemm.batch_rank = 2;
        gemm.batch_dims[0] = 3;
        CHECK_LAUNCHES(gemm_f32, &gemm, 0);
        gemm.batch_dims[1] = 5;
        CHECK_LAUNCHES(gemm_f32, &gemm, m * n);
        const sp_pack_constants pack = {.depth = m, .columns = n};
        CHECK_LAUNCHES(gemm_pack_f32, &pack, m * n);
        CHECK_LAUNCHES(look_up_pack_f32, &pack, n);
        const sp_conv_constants conv = {
            .groups = 2, .filters = m, .planes = 2 * m, .out_h = n, .out_w = n, .segment = 1};
        CHECK_LAUNCHES(conv_f32, &conv, m * n);
        CHECK_LAUNCHES(conv_depthwise_f32, &conv, m * n);
        const sp_pool_constants pool = {.planes = m, .out_h = 1, .out_w = n};
        CHECK_LAUNCHES(max_pool_f32, &pool, m * n);
    }
}

/* A launch has whole clusters, and enough blocks; only processors with clusters have such launches.
 * Returns the blocks of a tile. */
static uint32_t check_team(const sp_launch_shape *shape, uint64_t tiles)
{
    const bool is_pair = shape->variant == &sp__cuda_variant_gemm_pair_f32;
    CHECK(is_pair || shape->variant == &sp__cuda_variant_gemm_team_f32 ||
          shape->variant == &sp__cuda_variant_conv_team_f32);
    const uint64_t cluster = is_pair ? SP_CUDA_PAIR : SP_CUDA_TEAM, blocks = shape->tile[1];
    CHECK_EQ_U64(cluster % blocks, 0);
    CHECK_EQ_U64(shape->grid[0], (tiles * blocks + cluster - 1) / cluster * cluster);
    CHECK_EQ_U64(shape->block[0], SP_CUDA_TEAM_THREADS);
    CHECK_EQ_U64(shared_bytes, 227 * 1024);
    return shape->tile[1];
}

static uint64_t team_tiles(int64_t m, int64_t n)
{
    return (uint64_t)((m + 31) / 32 * ((n + 127) / 128));
}

TEST(a_product_fits_blocks_with_less_memory)
{
    static const uint32_t limits[] = {48 * 1024, 64 * 1024, 99 * 1024, 163 * 1024, 227 * 1024};
    uint32_t seen = 0;
    for (size_t i = 0; i < SP_COUNT_OF(limits); i++) {
        shared_bytes = limits[i];
        for (int64_t m = 1; m < 10000; m = m * 2 + 1) {
            for (int64_t n = 1; n < 100000; n = n * 3 + 1) {
                for (int64_t depth = 1; depth < 5000; depth = depth * 2 + 1) {
                    const sp_gemm_constants gemm = {.rows = m, .columns = n, .depth = depth};
                    const sp_launch_shape shape = shape_of(SP_KERNEL_ID_gemm_f32, &gemm);
                    if (shape.tile[0] == 0 && shape.tile[1] > 0) {
                        seen |= UINT32_C(1) << (16 + check_team(&shape, team_tiles(m, n)));
                        continue;
                    }
                    const bool is_square = shape.tile[0] == 0;
                    const uint64_t rows = (uint64_t)shape.tile[2] * (is_square ? 1 : shape.tile[1]);
                    CHECK_EQ_INT(shape.variant != NULL, is_square);
                    CHECK_EQ_U64(shape.grid[0], ((uint64_t)m + rows - 1) / rows);
                    seen |= UINT32_C(1) << (is_square ? shape.tile[2] / 16 : shape.tile[0]);
                }
            }
        }
    }
    shared_bytes = 48 * 1024;
    /* 1, 2, 4 groups, both squares, and tiles of 2 and 8 blocks. */
    CHECK_EQ_U64(seen, 1u << 1 | 1u << 2 | 1u << 4 | 1u << 8 | 1u << 18 | 1u << 24);
}

TEST(a_deep_convolution_with_few_pixels_has_several_blocks_for_each_tile)
{
    uint32_t seen = 0;
    shared_bytes = 227 * 1024;
    for (int64_t filters = 128; filters <= 1024; filters *= 2) {
        for (int64_t size = 7; size <= 56; size *= 2) {
            const sp_conv_constants conv = {.groups = 1,
                                            .filters = filters,
                                            .planes = filters,
                                            .channels = filters,
                                            .in_h = size,
                                            .in_w = size,
                                            .out_h = size,
                                            .out_w = size,
                                            .kernel_h = 3,
                                            .kernel_w = 3,
                                            .segment = 288};
            const sp_launch_shape shape = shape_of(SP_KERNEL_ID_conv_f32, &conv);
            if (shape.tile[0] != 0 || shape.tile[1] == 0) continue;
            seen |= check_team(&shape, team_tiles(size * size, filters));
        }
    }
    shared_bytes = 48 * 1024;
    CHECK_EQ_U64(seen, 4u | 8u);
}

TEST(a_narrow_product_fits_blocks_with_less_memory)
{
    static const uint32_t limits[] = {99 * 1024, 163 * 1024, 227 * 1024};
    static const sp_kernel_id kernels[] = {
#define NARROW(name) SP_KERNEL_ID_gemm_##name,
        SP_CUDA_NARROW_LAUNCH_LIST(NARROW)
#undef NARROW
    };
    for (size_t i = 0; i < SP_COUNT_OF(limits) * SP_COUNT_OF(kernels); i++) {
        const sp_gpu_kernel *seen[SP_CUDA_NARROW_TILES] = {NULL};
        uint32_t count = 0;
        shared_bytes = limits[i % SP_COUNT_OF(limits)];
        for (int64_t m = 1; m < 10000; m = m * 2 + 1) {
            for (int64_t n = 1; n < 100000; n = n * 3 + 1) {
                const sp_kernel_id kernel = kernels[i / SP_COUNT_OF(limits)];
                const sp_gemm_constants gemm = {.rows = m,
                                                .columns = n,
                                                .depth = m % 3 == 0 ? 64 : 2048,
                                                .b_format = (uint8_t)sp__pack_format_of(kernel)};
                const sp_launch_shape shape = shape_of(kernel, &gemm);
                uint32_t at = 0;
                while (at < count && seen[at] != shape.variant) at++;
                REQUIRE(at < SP_CUDA_NARROW_TILES);
                if (at == count) seen[count++] = shape.variant;
            }
        }
        /* With most memory each tile is launched; of packed products, where the last one is by
         * warpgroups, that in both widths and the first one. */
        const bool is_packed = i / SP_COUNT_OF(limits) >= SP_COUNT_OF(kernels) / 2;
        if (shared_bytes == 227 * 1024) CHECK_EQ_U64(count, is_packed ? 3 : SP_CUDA_NARROW_TILES);
        if (shared_bytes == 163 * 1024 && is_packed) CHECK_EQ_U64(count, SP_CUDA_PACKED_TILES);
    }
    shared_bytes = 48 * 1024;
}

TEST(a_narrow_convolution_fits_blocks_with_less_memory)
{
    static const uint32_t limits[] = {99 * 1024, 163 * 1024, 227 * 1024};
    static const sp_kernel_id kernels[] = {
        SP_KERNEL_ID_conv_narrow_tf32, SP_KERNEL_ID_conv_narrow_f16, SP_KERNEL_ID_conv_narrow_bf16};
    for (size_t i = 0; i < SP_COUNT_OF(limits) * SP_COUNT_OF(kernels); i++) {
        const sp_gpu_kernel *seen[SP_CUDA_CONV_TILES] = {NULL};
        uint32_t count = 0;
        shared_bytes = limits[i % SP_COUNT_OF(limits)];
        for (int64_t images = 1; images < 100; images *= 2) {
            for (int64_t filters = 1; filters < 2000; filters = filters * 3 + 1) {
                const sp_conv_constants k = {.groups = 1,
                                             .channels = images % 3 == 1 ? 16 : 512,
                                             .filters = filters,
                                             .planes = images * filters,
                                             .kernel_h = 3,
                                             .kernel_w = 3,
                                             .out_h = 14,
                                             .out_w = 14};
                const sp_launch_shape shape = shape_of(kernels[i / SP_COUNT_OF(limits)], &k);
                uint32_t at = 0;
                while (at < count && seen[at] != shape.variant) at++;
                REQUIRE(at < SP_CUDA_CONV_TILES);
                if (at == count) seen[count++] = shape.variant;
            }
        }
        /* With most memory each tile is launched. */
        if (shared_bytes == 227 * 1024) CHECK_EQ_U64(count, SP_CUDA_CONV_TILES);
    }
    shared_bytes = 48 * 1024;
}

TEST(attention_fits_blocks_with_less_memory)
{
    static const uint32_t limits[] = {64 * 1024, 99 * 1024, 163 * 1024, 227 * 1024};
    uint32_t seen = 0;
    for (size_t i = 0; i < SP_COUNT_OF(limits); i++) {
        shared_bytes = limits[i];
        for (int64_t rows = 0; rows < 3000; rows = rows * 2 + 1) {
            for (int64_t keys = 1; keys <= SP_ATTENTION_KEYS; keys += 7) {
                sp_attention_constants k = {.rows = rows,
                                            .keys = keys,
                                            .depth = keys % SP_ATTENTION_DEPTH + 1,
                                            .columns = 64,
                                            .batch_rank = 1,
                                            .batch_dims = {5}};
                const sp_launch_shape shape = shape_of(SP_KERNEL_ID_attention_f32, &k);
                CHECK_EQ_INT(shape.grid[0] > 0, rows > 0);
                CHECK_EQ_U64(shape.block[0], shape.tile[0] * UINT64_C(32));
                seen |= shape.tile[0];
            }
        }
    }
    shared_bytes = 48 * 1024;
    CHECK_EQ_U64(seen, 1u | 2u | 4u | 8u); /* warps */
}

/* ---- NVRTC ---- */

typedef struct nvrtc {
    int (*create)(void **, const char *, const char *, int, const char *const *,
                  const char *const *);
    int (*compile)(void *, int, const char *const *);
    int (*log_size)(void *, size_t *);
    int (*log)(void *, char *);
    int (*version)(int *, int *);
    int (*ptx_size)(void *, size_t *);
    int (*ptx)(void *, char *);
    int (*destroy)(void **);
} nvrtc;

static bool find(void *library, const char *name, void *out)
{
    void *symbol = dlsym(library, name);
    memcpy(out, &symbol, sizeof(symbol)); /* an object pointer becomes a function pointer */
    return symbol != NULL;
}

static bool load_nvrtc(nvrtc *out)
{
    const char *const names[] = {getenv("STREAMPOOL_NVRTC"), "libnvrtc.so", "libnvrtc.so.13",
                                 "libnvrtc.so.12"};
    void *library = NULL;
    for (size_t i = 0; i < SP_COUNT_OF(names) && library == NULL; i++) {
        if (names[i] != NULL) library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    }
    return library != NULL && find(library, "nvrtcCreateProgram", &out->create) &&
           find(library, "nvrtcCompileProgram", &out->compile) &&
           find(library, "nvrtcGetProgramLogSize", &out->log_size) &&
           find(library, "nvrtcGetProgramLog", &out->log) &&
           find(library, "nvrtcVersion", &out->version) &&
           find(library, "nvrtcGetPTXSize", &out->ptx_size) &&
           find(library, "nvrtcGetPTX", &out->ptx) &&
           find(library, "nvrtcDestroyProgram", &out->destroy);
}

static bool has_entry(const char *ptx, const char *entry)
{
    char line[128];
    snprintf(line, sizeof line, ".entry %s(", entry);
    return strstr(ptx, line) != NULL;
}

static void check_entries(const char *ptx, const sp_gpu_program *of)
{
    for (int i = 0; i < SP_KERNEL_COUNT; i++) {
        const sp_gpu_kernel *gpu = sp__cuda_kernels()[i].gpu;
        if (gpu != NULL && gpu->program == of) CHECK(has_entry(ptx, gpu->entry));
    }
#define CHECK_ENTRY(name)                                                                          \
    if (sp__cuda_variant_##name.program == of) CHECK(has_entry(ptx, "sp_" #name));
    SP_CUDA_VARIANT_LIST(CHECK_ENTRY)
    SP_CUDA_CELL_VARIANT_LIST(CHECK_ENTRY)
#undef CHECK_ENTRY
}

/* To PTX only, in a third of the time: the assembler sees the kernels where nvcc compiles them. */
static void compile_program(const nvrtc *rtc, const sp_gpu_program *of, const char *architecture)
{
    void *program;
    char *text;
    REQUIRE_OK(sp__cuda_program_text(of, &text));
    REQUIRE_EQ_INT(rtc->create(&program, text, "ops.cu", 0, NULL, NULL), 0);
    sp_free(text);
    const char *const options[] = {architecture, "--std=c++17", "--fmad=false"};
    const int result = rtc->compile(program, SP_COUNT_OF(options), options);
    size_t bytes;
    REQUIRE_EQ_INT(rtc->log_size(program, &bytes), 0);
    char *log = calloc(1, bytes + 1);
    REQUIRE_EQ_INT(rtc->log(program, log), 0);
    if (bytes > 1) test_note("%s: %.2000s", of->name, log);
    free(log);
    REQUIRE_EQ_INT(result, 0);
    REQUIRE_EQ_INT(rtc->ptx_size(program, &bytes), 0);
    char *ptx = malloc(bytes);
    REQUIRE_EQ_INT(rtc->ptx(program, ptx), 0);
    check_entries(ptx, of);
    free(ptx);
    CHECK_EQ_INT(rtc->destroy(&program), 0);
}

TEST(nvrtc_compiles_every_entry)
{
    if (test_scale() < 1) SKIP("the compiler is slow in an instrumented process, and not ours");
    nvrtc rtc;
    if (!load_nvrtc(&rtc)) SKIP("libnvrtc is not there; STREAMPOOL_NVRTC may name it");
    int major, minor;
    REQUIRE_EQ_INT(rtc.version(&major, &minor), 0);
    const char *architecture =
        major >= 12 ? "--gpu-architecture=compute_90a" : "--gpu-architecture=compute_90";
    for (size_t i = 0; i < SP_COUNT_OF(programs); i++)
        compile_program(&rtc, programs[i], architecture);
}

TEST_MAIN
