/* SPDX-License-Identifier: Apache-2.0 */
/* Which convolutions are direct on a GPU, and what is launched for them (docs/decisions/0086). */
#include <string.h>

#include "ops/cuda/cuda_launch.h"
#include "ops/cuda/tile_choice.h"
#include "support/test.h"

enum { SHARED_BYTES = 227 * 1024 };

/* Windows of 3 x 3 of an image of 32 x 32 pixels, 16 channels and filters. */
static sp_conv_constants layer_of(int64_t images)
{
    return (sp_conv_constants){.groups = 1,
                               .channels = 16,
                               .filters = 16,
                               .in_h = 32,
                               .in_w = 32,
                               .out_h = 32,
                               .out_w = 32,
                               .kernel_h = 3,
                               .kernel_w = 3,
                               .stride_h = 1,
                               .stride_w = 1,
                               .dilation_h = 1,
                               .dilation_w = 1,
                               .pad_top = 1,
                               .pad_left = 1,
                               .segment = 288,
                               .planes = 16 * images};
}

/* The variant that is launched, whose blocks have all outputs; NULL: none of the direct ones. */
static const sp_gpu_kernel *direct_of(const sp_conv_constants *k, uint32_t shared_bytes)
{
    sp_launch_shape shape;
    memset(&shape, 0, sizeof shape);
    sp__cuda_tiled_conv(k, shared_bytes, &shape);
    if (shape.variant != &sp__cuda_variant_conv_direct_3_f32 &&
        shape.variant != &sp__cuda_variant_conv_direct_3_by_2_f32 &&
        shape.variant != &sp__cuda_variant_conv_direct_5_f32) {
        return NULL;
    }
    const int64_t across = shape.tile[1], columns = across * SP_CUDA_DIRECT_COLUMNS;
    const int64_t rows = SP_CUDA_DIRECT_WORDS / across;
    CHECK_EQ_INT(across * rows, SP_CUDA_DIRECT_WORDS);
    CHECK_EQ_INT(shape.grid[0], sp_cuda_tiles(k->out_w, columns) * sp_cuda_tiles(k->out_h, rows));
    CHECK(shape.grid[1] * SP_CUDA_DIRECT_HEIGHT >= k->filters);
    CHECK_EQ_INT(shape.grid[2], k->planes / k->filters);
    CHECK_EQ_INT(shape.block[0], SP_CUDA_DIRECT_THREADS);
    CHECK(shape.shared_bytes <= shared_bytes);
    return shape.variant;
}

TEST(convolutions_of_few_channels_are_direct)
{
    sp_conv_constants k = layer_of(64);
    CHECK(direct_of(&k, SHARED_BYTES) == &sp__cuda_variant_conv_direct_3_f32);
    CHECK(direct_of(&k, 48 * 1024) == &sp__cuda_variant_conv_direct_3_f32);
    k.channels = 32; /* a whole segment */
    CHECK(direct_of(&k, SHARED_BYTES) == &sp__cuda_variant_conv_direct_3_f32);
    k.stride_h = k.stride_w = 2;
    k.out_h = k.out_w = 16;
    k.filters = 32;
    k.planes = 32 * 64;
    CHECK(direct_of(&k, SHARED_BYTES) == &sp__cuda_variant_conv_direct_3_by_2_f32);
}

TEST(convolutions_of_sequences_are_direct)
{
    sp_conv_constants k = layer_of(64);
    k.in_h = k.out_h = k.kernel_h = 1;
    k.pad_top = 0;
    k.kernel_w = 5;
    k.pad_left = 2;
    k.in_w = k.out_w = 256;
    k.segment = 320;
    k.filters = 64;
    k.planes = 64 * 64;
    CHECK(direct_of(&k, SHARED_BYTES) == &sp__cuda_variant_conv_direct_5_f32);
}

#define CHECK_NOT_DIRECT(change)                                                                   \
    do {                                                                                           \
        sp_conv_constants k = layer_of(64);                                                        \
        change;                                                                                    \
        CHECK(direct_of(&k, SHARED_BYTES) == NULL);                                                \
    } while (0)

TEST(other_convolutions_are_not_direct)
{
    CHECK_NOT_DIRECT(k.channels = 33);   /* two segments */
    CHECK_NOT_DIRECT(k.planes = 16 * 8); /* too few blocks */
    CHECK_NOT_DIRECT(k.kernel_w = 4);
    CHECK_NOT_DIRECT(k.kernel_w = 5; k.stride_w = 2; k.segment = 1024);
    CHECK_NOT_DIRECT(k.kernel_h = 6; k.segment = 1024);
    CHECK_NOT_DIRECT(k.stride_h = 3);
    CHECK_NOT_DIRECT(k.stride_w = 3);
    CHECK_NOT_DIRECT(k.dilation_h = 2);
    CHECK_NOT_DIRECT(k.dilation_w = 2);
    CHECK_NOT_DIRECT(k.out_h = k.out_w = 4; k.planes = 16 * 1024); /* mostly empty blocks */
    CHECK_NOT_DIRECT(k.filters = 4; k.planes = 4 * 1024);
    CHECK_NOT_DIRECT(k.planes = 16 * 65536); /* more images than blocks of a grid */
}

TEST(a_block_without_room_for_two_chunks_is_not_direct)
{
    const sp_conv_constants k = layer_of(64);
    const uint32_t needed = (uint32_t)sp_cuda_direct_bytes(&k, sp_cuda_direct_across(&k));
    CHECK(direct_of(&k, needed) != NULL);
    CHECK(direct_of(&k, needed - 1) == NULL);
}

TEST_MAIN
