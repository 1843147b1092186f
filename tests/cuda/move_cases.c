/* SPDX-License-Identifier: Apache-2.0 */
/* Random calls of ops that gather, scatter, generate and interpolate elements. Indices are in
 * range: errors of others are not compared. */
#include "cuda/kernel_case_parts.h"

#include <stdlib.h>
#include <string.h>

/* Without dimensions of 0, for which no index is in range. */
static sp_shape pick_full_shape(data_random *random, uint32_t least, uint32_t most, int64_t size)
{
    sp_shape shape = {.rank = (uint32_t)pick(random, least, most)};
    for (uint32_t i = 0; i < shape.rank; i++) shape.dims[i] = pick(random, 1, size);
    return shape;
}

static sp_shape shape_1d(int64_t count)
{
    return (sp_shape){.rank = 1, .dims = {count}};
}

/* Any bits; floats are numbers, except for some NaNs. */
static void add_data(kernel_case *c, data_random *random, sp_dtype dtype, sp_shape shape)
{
    sp_array *array = add_array(c, dtype, shape);
    for (uint64_t i = 0; i < array->bytes; i++) {
        ((unsigned char *)array->data)[i] = (unsigned char)data_next(random);
    }
    const bool is_f32 = dtype == SP_F32;
    for (uint64_t i = 0; is_f32 && i < array->bytes / sizeof(float); i++) {
        if (data_next(random) % 50 != 0) ((float *)array->data)[i] = data_next_float(random);
    }
}

static void add_indices(kernel_case *c, data_random *random, sp_shape shape, int64_t size)
{
    const bool is_wide = data_next(random) % 2 == 0;
    sp_array *array = add_array(c, is_wide ? SP_I64 : SP_I32, shape);
    for (uint64_t i = 0; i < sp__shape_count(&shape); i++) {
        const int64_t index = pick(random, -size, size - 1);
        if (is_wide) ((int64_t *)array->data)[i] = index;
        else ((int32_t *)array->data)[i] = (int32_t)index;
    }
}

/* A dtype by its size, for kernels that copy bits. */
static sp_dtype pick_bits(data_random *random)
{
    static const sp_dtype all[] = {SP_F32, SP_I64, SP_U8, SP_F16, SP_I32};
    return all[pick(random, 0, SP_COUNT_OF(all) - 1)];
}

static int64_t least_size(const sp_shape *shape)
{
    int64_t least = shape->dims[0];
    for (uint32_t i = 1; i < shape->rank; i++) {
        if (shape->dims[i] < least) least = shape->dims[i];
    }
    return least;
}

/* ---- walks ---- */

static void make_slice_of(data_random *random, kernel_case *c, sp_shape x, uint32_t axes,
                          int64_t lists[4][SP_MAX_RANK])
{
    set_op(c, "Slice", 13);
    for (uint32_t i = 0; i < axes; i++) {
        const int64_t step = pick(random, 1, 3), size = x.dims[i];
        const bool is_backwards = one_in(random, 2);
        lists[0][i] = is_backwards ? pick(random, size / 2, size) : pick(random, -size, size / 2);
        lists[1][i] = is_backwards ? pick(random, -size - 1, -size / 2 - 1)
                                   : pick(random, size / 2 + 1, size + 1);
        lists[2][i] = i;
        lists[3][i] = is_backwards ? -step : step;
    }
    add_data(c, random, pick_bits(random), x);
}

static void make_slice(data_random *random, kernel_case *c)
{
    const sp_shape x = pick_full_shape(random, 1, 4, 12);
    int64_t lists[4][SP_MAX_RANK]; /* starts, ends, axes, steps */
    make_slice_of(random, c, x, x.rank, lists);
    for (int i = 0; i < 4; i++) add_known_ints(c, lists[i], x.rank);
}

/* Of whole rows, or of parts of them, of so many elements that they may be whole words. */
static void make_slice_of_rows(data_random *random, kernel_case *c)
{
    sp_shape x = pick_full_shape(random, 1, 4, 6);
    const uint32_t last = x.rank - 1;
    const int64_t unit = pick(random, 0, 1) == 0 ? 4 : 16;
    x.dims[last] = unit * pick(random, 2, 8);
    int64_t lists[4][SP_MAX_RANK];
    make_slice_of(random, c, x, last, lists);
    lists[0][last] = one_in(random, 4) ? pick(random, 0, 3) : unit * pick(random, 0, 1);
    lists[1][last] = x.dims[last] - (one_in(random, 4) ? lists[0][last] : 0);
    lists[2][last] = last;
    lists[3][last] = 1;
    for (int i = 0; i < 4; i++) add_known_ints(c, lists[i], x.rank);
}

static void make_tile(data_random *random, kernel_case *c)
{
    set_op(c, "Tile", 13);
    const sp_shape x = pick_full_shape(random, 1, 3, 12);
    int64_t repeats[SP_MAX_RANK];
    for (uint32_t i = 0; i < x.rank; i++) repeats[i] = pick(random, 1, 4);
    add_data(c, random, pick_bits(random), x);
    add_known_ints(c, repeats, x.rank);
}

static void make_blocks(data_random *random, kernel_case *c)
{
    const bool is_to_space = one_in(random, 2);
    const int64_t size = pick(random, 1, 3), rows = pick(random, 1, 6),
                  columns = pick(random, 1, 6);
    sp_shape x = {.rank = 4, .dims = {pick(random, 1, 3), pick(random, 1, 4), rows, columns}};
    set_op(c, is_to_space ? "DepthToSpace" : "SpaceToDepth", 13);
    if (is_to_space) add_text(c, "mode", &c->text, one_in(random, 2) ? "CRD" : "DCR");
    add_int(c, "blocksize", size);
    if (is_to_space) x.dims[1] *= size * size;
    for (int i = 2; i < 4 && !is_to_space; i++) x.dims[i] *= size;
    add_data(c, random, pick_bits(random), x);
}

/* ---- indices ---- */

static void make_gather(data_random *random, kernel_case *c)
{
    set_op(c, "Gather", 13);
    const sp_shape x = pick_full_shape(random, 1, 4, 12);
    const uint32_t axis = (uint32_t)pick(random, 0, x.rank - 1);
    add_int(c, "axis", axis);
    add_data(c, random, pick_bits(random), x);
    add_indices(c, random, pick_full_shape(random, 0, 3, 6), x.dims[axis]);
}

/* Appends indices of x's shape, longer along the axis. */
static sp_shape add_beside(data_random *random, kernel_case *c, sp_dtype dtype)
{
    const sp_shape x = pick_full_shape(random, 1, 4, 8);
    const uint32_t axis = (uint32_t)pick(random, 0, x.rank - 1);
    sp_shape indices = x;
    for (uint32_t i = 0; i < x.rank; i++) indices.dims[i] = pick(random, 1, x.dims[i]);
    indices.dims[axis] = pick(random, 1, 12);
    add_int(c, "axis", axis);
    add_data(c, random, dtype, x);
    add_indices(c, random, indices, x.dims[axis]);
    return indices;
}

static void make_gather_elements(data_random *random, kernel_case *c)
{
    set_op(c, "GatherElements", 13);
    add_beside(random, c, pick_bits(random));
}

static void make_gather_nd(data_random *random, kernel_case *c)
{
    set_op(c, "GatherND", 12);
    const sp_shape x = pick_full_shape(random, 1, 4, 8);
    const sp_shape indices = {.rank = 2, .dims = {pick(random, 1, 20), pick(random, 1, x.rank)}};
    add_data(c, random, pick_bits(random), x);
    add_indices(c, random, indices, least_size(&x));
}

static void add_reduction(data_random *random, kernel_case *c)
{
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    add_text(c, "reduction", &c->text, names[pick(random, 0, 4)]);
}

static sp_dtype pick_number(data_random *random)
{
    static const sp_dtype all[] = {SP_F32, SP_F32, SP_F64, SP_I8,  SP_U16, SP_I16,
                                   SP_I64, SP_U32, SP_U8,  SP_I32, SP_U64};
    return all[pick(random, 0, SP_COUNT_OF(all) - 1)];
}

static void make_scatter_elements(data_random *random, kernel_case *c)
{
    set_op(c, "ScatterElements", 18);
    const sp_dtype dtype = pick_number(random);
    add_reduction(random, c);
    const sp_shape updates = add_beside(random, c, dtype);
    add_data(c, random, dtype, updates);
}

static void make_scatter_nd(data_random *random, kernel_case *c)
{
    set_op(c, "ScatterND", 18);
    const sp_dtype dtype = pick_number(random);
    const sp_shape x = pick_full_shape(random, 1, 4, 8);
    const uint32_t depth = (uint32_t)pick(random, 1, x.rank);
    const sp_shape indices = {.rank = 2, .dims = {pick(random, 1, 20), depth}};
    sp_shape updates = {.rank = 1 + x.rank - depth, .dims = {indices.dims[0]}};
    for (uint32_t i = depth; i < x.rank; i++) updates.dims[1 + i - depth] = x.dims[i];
    add_reduction(random, c);
    add_data(c, random, dtype, x);
    add_indices(c, random, indices, least_size(&x));
    add_data(c, random, dtype, updates);
}

static void make_one_hot(data_random *random, kernel_case *c)
{
    set_op(c, "OneHot", 11);
    const int64_t depth = pick(random, 1, 9);
    const sp_shape indices = pick_full_shape(random, 0, 3, 7);
    add_int(c, "axis", pick(random, -1, indices.rank));
    if (pick(random, 0, 2) == 0) add_data(c, random, SP_F32, indices);
    else add_indices(c, random, indices, 2 * depth);
    add_known_ints(c, &depth, 1);
    add_data(c, random, pick_bits(random), shape_1d(2));
}

/* ---- generators ---- */

static void make_range(data_random *random, kernel_case *c)
{
    static const sp_dtype dtypes[] = {SP_F32, SP_F64, SP_I16, SP_I32, SP_I64};
    set_op(c, "Range", 11);
    const sp_dtype dtype = dtypes[pick(random, 0, 4)];
    const double step = dtype == SP_F32 || dtype == SP_F64 ? 0.1 : 3;
    const double numbers[] = {(double)pick(random, -50, 0), (double)pick(random, 1, 300), step};
    for (int i = 0; i < 3; i++) {
        c->is_known[c->input_count] = true;
        void *data = add_array(c, dtype, (sp_shape){0})->data;
        const int64_t whole = (int64_t)numbers[i];
        const float narrow = (float)numbers[i];
        if (dtype == SP_F32) memcpy(data, &narrow, sizeof(narrow));
        else if (dtype == SP_F64) memcpy(data, &numbers[i], sizeof(numbers[i]));
        else memcpy(data, &whole, sp_dtype_bytes(dtype));
    }
}

static void make_trilu(data_random *random, kernel_case *c)
{
    set_op(c, "Trilu", 14);
    const int64_t diagonal = pick(random, -12, 12);
    add_int(c, "upper", pick(random, 0, 1));
    const sp_shape x = pick_full_shape(random, 2, 4, 12);
    add_data(c, random, pick_bits(random), x);
    add_known_ints(c, &diagonal, 1);
}

static void make_eye(data_random *random, kernel_case *c)
{
    set_op(c, "EyeLike", 9);
    add_int(c, "k", pick(random, -12, 12));
    const sp_shape x = pick_full_shape(random, 2, 2, 12);
    add_data(c, random, pick_bits(random), x);
}

static void make_non_zero(data_random *random, kernel_case *c)
{
    set_op(c, "NonZero", 13);
    c->is_known[0] = true;
    const sp_shape x = pick_full_shape(random, 0, 4, 8);
    add_data(c, random, pick_bits(random), x);
    unsigned char *bytes = c->inputs[0].data;
    const uint64_t size = sp_dtype_bytes(c->inputs[0].dtype);
    for (uint64_t i = 0; i < c->inputs[0].bytes; i += size) {
        if (pick(random, 0, 1) == 0) memset(bytes + i, 0, size);
    }
}

static void make_top_k(data_random *random, kernel_case *c)
{
    set_op(c, "TopK", 11);
    const sp_shape x = pick_full_shape(random, 1, 3, 20);
    const uint32_t axis = (uint32_t)pick(random, 0, x.rank - 1);
    const int64_t count = pick(random, 1, x.dims[axis]);
    add_int(c, "axis", axis);
    add_int(c, "largest", pick(random, 0, 1));
    add_data(c, random, pick_number(random), x);
    add_known_ints(c, &count, 1);
    c->output_count = 2;
}

/* ---- Resize ---- */

static void make_resize(data_random *random, kernel_case *c, const char *mode, sp_dtype dtype)
{
    static const char *const coordinates[] = {"half_pixel",           "pytorch_half_pixel",
                                              "half_pixel_symmetric", "align_corners",
                                              "asymmetric",           "tf_crop_and_resize"};
    set_op(c, "Resize", 19);
    const sp_shape x = pick_full_shape(random, 1, 4, 12);
    int64_t sizes[SP_MAX_RANK];
    for (uint32_t i = 0; i < x.rank; i++) sizes[i] = pick(random, 1, 20);
    add_text(c, "mode", &c->text, mode);
    add_text(c, "coordinate_transformation_mode", &c->second_text, coordinates[pick(random, 0, 5)]);
    if (mode[0] != 'n') add_int(c, "antialias", pick(random, 0, 1));
    if (mode[0] != 'n') add_int(c, "exclude_outside", pick(random, 0, 1));
    add_data(c, random, dtype, x);
    c->input_count += 2; /* no roi, no scales */
    add_known_ints(c, sizes, x.rank);
}

static void make_resize_nearest(data_random *random, kernel_case *c)
{
    make_resize(random, c, "nearest", pick_bits(random));
}

static void make_resize_f32(data_random *random, kernel_case *c)
{
    make_resize(random, c, pick(random, 0, 1) ? "linear" : "cubic", SP_F32);
}

static void make_resize_f64(data_random *random, kernel_case *c)
{
    make_resize(random, c, pick(random, 0, 1) ? "linear" : "cubic", SP_F64);
}

/* Places in and around the image, some on the pixels. */
static void make_grid_sample(data_random *random, kernel_case *c)
{
    static const sp_text modes[] = {{"linear", 6}, {"nearest", 7}, {"cubic", 5}};
    static const sp_text paddings[] = {{"zeros", 5}, {"border", 6}, {"reflection", 10}};
    const int64_t images = pick(random, 1, 3), channels = pick(random, 1, 4);
    const int64_t rows = pick(random, 1, 9), columns = pick(random, 1, 9);
    set_op(c, "GridSample", 20);
    c->attributes[c->attribute_count++] = data_attribute_text("mode", &modes[pick(random, 0, 2)]);
    c->attributes[c->attribute_count++] =
        data_attribute_text("padding_mode", &paddings[pick(random, 0, 2)]);
    add_int(c, "align_corners", pick(random, 0, 1));
    add_floats(
        c, random,
        (sp_shape){.rank = 4, .dims = {images, channels, pick(random, 1, 9), pick(random, 1, 9)}});
    sp_array *grid =
        add_array(c, SP_F32, (sp_shape){.rank = 4, .dims = {images, rows, columns, 2}});
    for (int64_t i = 0; i < images * rows * columns * 2; i++) {
        const float place = data_next_float(random) * 3;
        ((float *)grid->data)[i] = pick(random, 0, 3) == 0 ? (float)(int)(place * 4) / 4 : place;
    }
}

const kernel_case_kind move_case_kinds[] = {
    {"slice", make_slice, NULL},
    {"slice of rows", make_slice_of_rows, NULL},
    {"tile", make_tile, NULL},
    {"blocks", make_blocks, NULL},
    {"gather", make_gather, NULL},
    {"gather elements", make_gather_elements, NULL},
    {"gather nd", make_gather_nd, NULL},
    {"scatter elements", make_scatter_elements, NULL},
    {"scatter nd", make_scatter_nd, NULL},
    {"one hot", make_one_hot, NULL},
    {"range", make_range, NULL},
    {"trilu", make_trilu, NULL},
    {"eye", make_eye, NULL},
    {"non zero", make_non_zero, NULL},
    {"top k", make_top_k, NULL},
    {"resize nearest", make_resize_nearest, NULL},
    {"resize f32", make_resize_f32, NULL},
    {"resize f64", make_resize_f64, NULL},
    {"grid sample", make_grid_sample, NULL},
    {0},
};
