/* SPDX-License-Identifier: Apache-2.0 */
/* The formats of packed matrices (docs/decisions/0080-pack-formats.md): how the matrix on the right
 * of a product, or the filters of a convolution as its columns, is laid out for the kernels that
 * read it. Step k of column n is element
 *
 *     ((n / width * groups + k / group) * width + n % width) * group + k % group
 *
 * of the copy: panels of `width` columns, in each of them `groups` groups of the depth, in each of
 * them so many steps of a column after those of another. What the matrix does not have is zeros. C
 * and CUDA C++ compile this text, which includes no header. Which kernel reads which format:
 * ops/pack.c. */
#ifndef SP_OPS_PACK_FORMAT_H
#define SP_OPS_PACK_FORMAT_H

/* Columns of a panel of SP_PACK_F32. */
#define SP_GEMM_PANEL 16

/* Narrow formats are one panel of all columns, padded to a multiple of SP_NARROW_LINES. A group is
 * a chunk of so many bytes of a column, whose parts of 16 bytes are not in their order: part p of
 * column n is at p ^ n % SP_NARROW_LINES (docs/decisions/0092). */
#define SP_NARROW_BYTES 128
#define SP_NARROW_LINES 8

/* X(name, bytes of an element, columns of a panel or 0: of all, their padding, steps of a group) */
#define SP_PACK_FORMAT_LIST(X)                                                                     \
    X(F32, 4, SP_GEMM_PANEL, SP_GEMM_PANEL, 1)                                                     \
    X(ROWS_F32, 4, 0, 1, 1) /* the matrix as it lies: rows of steps */                             \
    X(TF32, 4, 0, SP_NARROW_LINES, SP_NARROW_BYTES / 4)                                            \
    X(F16, 2, 0, SP_NARROW_LINES, SP_NARROW_BYTES / 2)                                             \
    X(BF16, 2, 0, SP_NARROW_LINES, SP_NARROW_BYTES / 2)

typedef enum sp_pack_format {
    SP_PACK_NONE, /* not packed */
#define SP_PACK_ENUM(name, bytes, width, padding, group) SP_PACK_##name,
    SP_PACK_FORMAT_LIST(SP_PACK_ENUM)
#undef SP_PACK_ENUM
        SP_PACK_FORMAT_COUNT
} sp_pack_format;

/* A matrix of depth x columns, as the kernels that pack it read it: step k of column n is element
 * k * depth_stride + n * column_stride. k may have two strides: `block` steps, if not 0, have
 * depth_stride, and the next ones begin block_stride elements after them. */
typedef struct sp_pack_constants {
    int64_t depth, columns, depth_stride, column_stride;
    int64_t block, block_stride;
    int64_t is_half; /* 1: of f16 or bf16, which the format is of, too; else of f32. As wide as the
                        others: packings are compared by bytes */
} sp_pack_constants;

#endif
