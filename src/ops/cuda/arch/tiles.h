/* SPDX-License-Identifier: Apache-2.0 */
/* What one block of a CUDA kernel computes: for the host, which chooses it, and for the kernel. It
 * affects no bit of the results. C and CUDA C++ compile this text, after kernel_constants.h. */
#ifndef SP_OPS_CUDA_ARCH_TILES_H
#define SP_OPS_CUDA_ARCH_TILES_H

#ifndef SP_CUDA_FUNCTION
#define SP_CUDA_FUNCTION static inline
#endif

/* Entries of the program that are launched in place of a kernel, for some shapes: those whose
 * blocks run alone, and those that run in clusters of so many blocks along x. */
#define SP_CUDA_BLOCK_LIST(X)                                                                      \
    X(gemm_rows_f32)                                                                               \
    X(gemm_square_128_f32)                                                                         \
    X(gemm_square_64_f32)                                                                          \
    X(conv_square_128_f32)                                                                         \
    X(conv_square_64_f32)                                                                          \
    X(conv_direct_3_f32)                                                                           \
    X(conv_direct_3_by_2_f32)                                                                      \
    X(conv_direct_5_f32)                                                                           \
    X(conv_small_f32)
#define SP_CUDA_CLUSTER_LIST(X)                                                                    \
    X(gemm_pair_f32, SP_CUDA_PAIR)                                                                 \
    X(gemm_team_f32, SP_CUDA_TEAM)                                                                 \
    X(conv_team_f32, SP_CUDA_TEAM)
#define SP_CUDA_VARIANT_LIST(X)                                                                    \
    SP_CUDA_BLOCK_LIST(X)                                                                          \
    X(gemm_pair_f32)                                                                               \
    X(gemm_team_f32)                                                                               \
    X(conv_team_f32)
#define SP_CUDA_PAIR 2
#define SP_CUDA_TEAM 8

/* The same of the program of recurrent layers. */
#define SP_CUDA_CELL_CLUSTER_LIST(X)                                                               \
    X(lstm_team_f32, SP_CUDA_TEAM)                                                                 \
    X(gru_team_f32, SP_CUDA_TEAM)                                                                  \
    X(rnn_team_f32, SP_CUDA_TEAM)
#define SP_CUDA_CELL_VARIANT_LIST(X)                                                               \
    X(lstm_team_f32)                                                                               \
    X(gru_team_f32)                                                                                \
    X(rnn_team_f32)

/* The same of the program with narrow products. Those of the cluster list are launched in clusters
 * on processors with warpgroups. */
#define SP_CUDA_TENSOR_CLUSTER_LIST(X)                                                             \
    X(gemm_packed_128_tf32, SP_CUDA_GROUP_BLOCKS)                                                  \
    X(gemm_packed_128_f16, SP_CUDA_GROUP_BLOCKS)                                                   \
    X(gemm_packed_128_bf16, SP_CUDA_GROUP_BLOCKS)                                                  \
    X(gemm_packed_192_tf32, SP_CUDA_GROUP_BLOCKS)                                                  \
    X(gemm_packed_192_f16, SP_CUDA_GROUP_BLOCKS)                                                   \
    X(gemm_packed_192_bf16, SP_CUDA_GROUP_BLOCKS)                                                  \
    X(gemm_halves_128_f16, SP_CUDA_GROUP_BLOCKS)                                                   \
    X(gemm_halves_128_bf16, SP_CUDA_GROUP_BLOCKS)                                                  \
    X(gemm_halves_192_f16, SP_CUDA_GROUP_BLOCKS)                                                   \
    X(gemm_halves_192_bf16, SP_CUDA_GROUP_BLOCKS)
#define SP_CUDA_TENSOR_BLOCKS(X, type)                                                             \
    X(gemm_narrow_deep_##type)                                                                     \
    X(gemm_narrow_32_##type)                                                                       \
    X(gemm_narrow_64_##type)                                                                       \
    X(gemm_packed_wide_##type)                                                                     \
    X(conv_narrow_deep_##type)                                                                     \
    X(conv_narrow_64_##type)                                                                       \
    X(conv_narrow_wide_##type)                                                                     \
    X(row_norm_packed_##type)
#define SP_CUDA_ROUNDED_VARIANTS(X, type)                                                          \
    X(gemm_rounded_##type)                                                                         \
    X(gemm_halves_##type)                                                                          \
    X(attention_rounded_##type)
#define SP_CUDA_TENSOR_BLOCK_LIST(X)                                                               \
    SP_CUDA_TENSOR_BLOCKS(X, tf32)                                                                 \
    SP_CUDA_TENSOR_BLOCKS(X, f16)                                                                  \
    SP_CUDA_TENSOR_BLOCKS(X, bf16)                                                                 \
    SP_CUDA_ROUNDED_VARIANTS(X, f16)                                                               \
    SP_CUDA_ROUNDED_VARIANTS(X, bf16)
#define SP_CUDA_TENSOR_VARIANT_LIST(X)                                                             \
    SP_CUDA_TENSOR_BLOCK_LIST(X)                                                                   \
    X(gemm_packed_128_tf32)                                                                        \
    X(gemm_packed_128_f16)                                                                         \
    X(gemm_packed_128_bf16)                                                                        \
    X(gemm_packed_192_tf32)                                                                        \
    X(gemm_packed_192_f16)                                                                         \
    X(gemm_packed_192_bf16)                                                                        \
    X(gemm_halves_128_f16)                                                                         \
    X(gemm_halves_128_bf16)                                                                        \
    X(gemm_halves_192_f16)                                                                         \
    X(gemm_halves_192_bf16)

#define SP_CUDA_THREADS 256
/* Of a recurrent layer, by one block and by each of a team. */
#define SP_CUDA_CELL_THREADS 512
#define SP_CUDA_CELL_TEAM_THREADS 256
/* Batch rows that a block computes for the whole sequence. */
#define SP_CUDA_CELL_ROWS 4
#define SP_CUDA_LANES 32
#define SP_CUDA_WARPS (SP_CUDA_THREADS / SP_CUDA_LANES)
/* Elements that a thread of an elementwise kernel processes at once. */
#define SP_CUDA_ELEMENTS 4
SP_CUDA_FUNCTION int64_t sp_cuda_binary_elements(const sp_binary_constants *k)
{
    return k->rank == 1 ? SP_CUDA_ELEMENTS : 1;
}

/* Bytes that a thread of a kernel that copies contiguous memory processes at once. */
#define SP_CUDA_WORD 16

/* Processors on which a block can have so much shared memory run clusters of blocks. */
#define SP_CUDA_CLUSTER_BYTES (227 * 1024)

/* Shared memory that a GPU adds to that of each block. */
#define SP_CUDA_RESERVED_BYTES 1024

/* Blocks that fill a large processor; more of them do not run faster. */
#define SP_CUDA_ENOUGH_BLOCKS 128

SP_CUDA_FUNCTION int64_t sp_cuda_tiles(int64_t count, int64_t per_tile)
{
    return count / per_tile + (count % per_tile != 0);
}

/* Elements of a block of a reduction (docs/decisions/0022), and reductions of at most one block
 * that a block of threads computes. */
#define SP_CUDA_REDUCTION 4096
#define SP_CUDA_REDUCTIONS 16

/* Whether a block of threads computes one of `count` reductions. Columns: neighbouring reductions
 * have neighbouring elements, which are read together if there are enough of them. */
SP_CUDA_FUNCTION bool sp_cuda_is_wide_reduction(int64_t count, int64_t extent, bool is_columns)
{
    const int64_t enough = (int64_t)SP_CUDA_ENOUGH_BLOCKS * SP_CUDA_REDUCTIONS;
    return extent > SP_CUDA_REDUCTION && (!is_columns || count < enough);
}

SP_CUDA_FUNCTION int64_t sp_cuda_reduction_blocks(int64_t count, int64_t extent, bool is_columns)
{
    const bool is_wide = sp_cuda_is_wide_reduction(count, extent, is_columns);
    return is_wide ? count : sp_cuda_tiles(count, SP_CUDA_REDUCTIONS);
}

/* Warps that keep a row of neighbouring elements in registers; 0: it is too long. Blocks of rows
 * with one warp have SP_CUDA_ROW_BLOCK of them. */
#define SP_CUDA_ROW_BLOCK 4
/* Of a block with a long row: its elements, the maxima of its warps, and a sum. */
#define SP_CUDA_ROW_POOL (SP_CUDA_REDUCTION + SP_CUDA_WARPS + 1)
SP_CUDA_FUNCTION int64_t sp_cuda_row_warps(int64_t extent)
{
    if (extent > SP_CUDA_REDUCTION) return 0;
    const int64_t most = (int64_t)SP_CUDA_LANES * SP_CUDA_LANES; /* of a warp */
    return extent > most ? SP_CUDA_WARPS : 1;
}

/* Rows of neighbouring elements that a block has of a running sum. */
#define SP_CUDA_CUMSUM_ROWS 8

/* Whether rows of a copy, along the last dimension, are whole words of so many bytes in both
 * operands, if their addresses are: a thread copies a word instead of an element then. */
#define SP_CUDA_COPY_WORD 16
SP_CUDA_FUNCTION bool sp_cuda_copy_has_words(const sp_copy_constants *k)
{
    if (k->rank == 0 || k->x[k->rank - 1] != 1 || k->y[k->rank - 1] != 1) return false;
    uint64_t elements = (uint64_t)k->dims[k->rank - 1];
    for (uint32_t d = 0; d + 1 < k->rank; d++) elements |= (uint64_t)k->x[d] | (uint64_t)k->y[d];
    return elements * k->element_bytes % SP_CUDA_COPY_WORD == 0;
}

/* The limit of a grid along y and z on every GPU. */
#define SP_CUDA_MAX_OUTER_BLOCKS 0xffff

/* Steps of the depth that a block of a product loads at a time, for each of its groups. */
#define SP_CUDA_CHUNK 128

/* What a block of a product computes: SP_CUDA_LANES columns, one per lane, of `warps * rows` rows,
 * `rows` for each warp. `groups` segments of the depth are computed side by side, each by a group
 * of SP_CUDA_WARPS / groups warps, so that the chains of a deep product wait less for each other.
 * With no groups it is a square of `rows` rows and columns, of all segments in turn; or, if there
 * are `warps`, a tile of SP_CUDA_TEAM_OUTPUTS outputs whose segments so many blocks of a cluster
 * share; or, with both, a direct convolution of `rows` filters whose parts of images are `warps`
 * words wide. */
typedef struct sp_cuda_tile {
    uint32_t groups, warps, rows;
} sp_cuda_tile;

/* Matrices of the batch. */
SP_CUDA_FUNCTION int64_t sp_cuda_gemm_matrices(const sp_gemm_constants *k)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < k->batch_rank; i++) count *= k->batch_dims[i];
    return count;
}

/* Images of a convolution. */
SP_CUDA_FUNCTION int64_t sp_cuda_conv_images(const sp_conv_constants *k)
{
    const int64_t filters = k->groups * k->filters;
    return filters > 0 ? k->planes / filters : 0;
}

/* Of a large tile: steps of the depth that are loaded at a time, and the shared memory: two chunks
 * of both operands, and the sums, if they must wait (for another segment, or a long activation). */
#define SP_CUDA_SQUARE_DEPTH 16
#define SP_CUDA_SQUARE_PAD 4 /* floats of a step's rows, so that copies meet few banks twice */
#define SP_CUDA_SQUARE_BYTES(side, has_sums)                                                       \
    (((2 * (side) + SP_CUDA_SQUARE_PAD) * 2 * SP_CUDA_SQUARE_DEPTH +                               \
      ((has_sums) ? (side) * (side) : 0)) *                                                        \
     4)
#define SP_CUDA_SQUARE_THREADS(side) ((side) == 64 ? 128 : 256)

/* The tiles of narrow products and convolutions: X(name, rows, columns, rows and columns of a warp,
 * groups of warps, stages, left), see gemm/narrow.cuh. The first of each list is the kernel's
 * (gemm_narrow_TYPE, gemm_packed_TYPE, conv_narrow_TYPE), and fits a block of every GPU; the other
 * ones are of variants with the tile's name in theirs. */
/* The left operand in shared memory: as the right one; or of f32, [row][step] or [step][row], where
 * a row, or a step, is followed by room that spreads accesses over the banks. */
#define SP_NARROW_PACKED 0
#define SP_NARROW_ROWS 1
#define SP_NARROW_PIXELS 2
#define SP_CUDA_NARROW_TILE_LIST(X)                                                                \
    X(few, 16, 32, 16, 16, 2, 5, SP_NARROW_ROWS)                                                   \
    X(deep, 16, 16, 16, 16, 8, 3, SP_NARROW_ROWS)                                                  \
    X(32, 32, 64, 16, 32, 2, 3, SP_NARROW_ROWS)                                                    \
    X(64, 64, 64, 32, 32, 1, 4, SP_NARROW_ROWS)
#define SP_CUDA_PACKED_TILE_LIST(X)                                                                \
    X(packed, 64, 64, 32, 32, 1, 4, SP_NARROW_PACKED)                                              \
    X(wide, 64, 128, 32, 32, 1, 4, SP_NARROW_PACKED)                                               \
    X(128, 128, 128, 64, 32, 1, 4, SP_NARROW_PACKED)
#define SP_CUDA_CONV_TILE_LIST(X)                                                                  \
    X(few_pixels, 32, 32, 16, 16, 2, 3, SP_NARROW_PIXELS)                                          \
    X(deep_pixels, 16, 32, 16, 16, 8, 2, SP_NARROW_PIXELS)                                         \
    X(64_pixels, 64, 64, 32, 32, 1, 3, SP_NARROW_PIXELS)                                           \
    X(wide_pixels, 64, 128, 32, 32, 1, 3, SP_NARROW_PIXELS)
/* The last tile of packed products by warpgroups (gemm/group.cuh), for which a block of 9.0 has
 * room: stages of 128 rows and 128 columns, two mbarriers for each, and room to align them. So many
 * blocks of a cluster have tiles one below the other. */
#define SP_CUDA_GROUP_STAGES(columns) ((columns) > 128 ? 5 : 6)
#define SP_CUDA_GROUP_MOST_STAGES 6
#define SP_CUDA_GROUP_BYTES(columns)                                                               \
    (SP_CUDA_GROUP_STAGES(columns) * (128 + (columns)) * SP_NARROW_BYTES +                         \
     SP_CUDA_GROUP_MOST_STAGES * 16 + 1024)
#define SP_CUDA_GROUP_BLOCKS 2
/* Where parts of a range of addresses begin. */
#define SP_CUDA_RANGE_UNIT (2 << 20)
/* From one row or column to the next in shared memory. */
#define SP_CUDA_NARROW_PITCH (SP_NARROW_BYTES + 16)
/* Shared memory of a tile of elements of `size` bytes: stages of both operands for each group, and
 * the chains of all groups but one. */
#define SP_CUDA_NARROW_LEFT_BYTES(rows, left, size)                                                \
    ((left) == SP_NARROW_PACKED ? (rows) * SP_CUDA_NARROW_PITCH                                    \
     : (left) == SP_NARROW_ROWS ? (rows) * ((SP_NARROW_BYTES + 16) * 4 / (size))                   \
                                : SP_NARROW_BYTES / (size) * ((rows) + 2 * (size)) * 4)
#define SP_CUDA_NARROW_TILE_BYTES(rows, columns, groups, stages, left, size)                       \
    ((groups) * (stages) *                                                                         \
         ((columns) * SP_CUDA_NARROW_PITCH + SP_CUDA_NARROW_LEFT_BYTES(rows, left, size)) +        \
     ((groups) - 1) * (rows) * (columns) * 4)

/* Of a product whose operands are rounded on their way to shared memory, of elements of two bytes:
 * a warp has 16 rows, and as many columns as the block. */
#define SP_CUDA_ROUNDED_ROWS 16
#define SP_CUDA_ROUNDED_WARPS 4
#define SP_CUDA_ROUNDED_COLUMNS 64
#define SP_CUDA_ROUNDED_BYTES                                                                      \
    ((SP_CUDA_ROUNDED_ROWS * SP_CUDA_ROUNDED_WARPS + SP_CUDA_ROUNDED_COLUMNS) *                    \
     SP_CUDA_NARROW_PITCH)

/* Of a tile of several blocks: few rows of a product, or few pixels of a convolution. Three chunks
 * of both operands, chains that the other blocks read, and the sums of the block's part, if there
 * are more segments than blocks. */
#define SP_CUDA_TEAM_ROWS 32
#define SP_CUDA_TEAM_COLUMNS 128
#define SP_CUDA_TEAM_OUTPUTS (SP_CUDA_TEAM_ROWS * SP_CUDA_TEAM_COLUMNS)
#define SP_CUDA_TEAM_STAGES 3
#define SP_CUDA_TEAM_THREADS 128
#define SP_CUDA_TEAM_BYTES(blocks, has_sums)                                                       \
    (((SP_CUDA_TEAM_ROWS + SP_CUDA_TEAM_COLUMNS + SP_CUDA_SQUARE_PAD) * SP_CUDA_TEAM_STAGES *      \
          SP_CUDA_SQUARE_DEPTH +                                                                   \
      SP_CUDA_TEAM_OUTPUTS + ((has_sums) ? SP_CUDA_TEAM_OUTPUTS / (blocks) : 0)) *                 \
     4)

/* The table of a convolution's taps, before it. */
#define SP_CUDA_TAPS_BYTES (SP_CONV_MAX_SEGMENT * 12)

/* A direct convolution (conv/direct.cu). A thread has so many filters of so many neighbouring
 * pixels, a word; a block so many words and filters; channels are loaded so many at a time, while
 * those before them are computed. */
#define SP_CUDA_DIRECT_THREADS 128
#define SP_CUDA_DIRECT_FILTERS 8
#define SP_CUDA_DIRECT_COLUMNS 4
#define SP_CUDA_DIRECT_WORDS 64
#define SP_CUDA_DIRECT_HEIGHT 16
#define SP_CUDA_DIRECT_CHANNELS 4
/* Elements of a row that a thread reads, by fours, for windows of `width` columns. */
#define SP_CUDA_DIRECT_REACH(width, step)                                                          \
    (((SP_CUDA_DIRECT_COLUMNS - 1) * (step) + (width) + 3) / 4 * 4)

/* Rows of the input that a block has, and floats from one to the next, of a part `across` words
 * wide. */
SP_CUDA_FUNCTION int64_t sp_cuda_direct_rows(const sp_conv_constants *k, int64_t across)
{
    return (SP_CUDA_DIRECT_WORDS / across - 1) * k->stride_h + k->kernel_h;
}
SP_CUDA_FUNCTION int64_t sp_cuda_direct_pitch(const sp_conv_constants *k, int64_t across)
{
    return (across - 1) * SP_CUDA_DIRECT_COLUMNS * k->stride_w +
           SP_CUDA_DIRECT_REACH(k->kernel_w, k->stride_w);
}
/* Shared memory: two chunks of an image and of weights. */
SP_CUDA_FUNCTION int64_t sp_cuda_direct_bytes(const sp_conv_constants *k, int64_t across)
{
    const int64_t image = sp_cuda_direct_rows(k, across) * sp_cuda_direct_pitch(k, across);
    const int64_t weights = k->kernel_h * k->kernel_w * SP_CUDA_DIRECT_HEIGHT;
    return (image + weights) * SP_CUDA_DIRECT_CHANNELS * 2 * 4;
}

#endif
