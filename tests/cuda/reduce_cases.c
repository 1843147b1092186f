/* SPDX-License-Identifier: Apache-2.0 */
/* Random calls of reductions, normalisations, pools, and convolutions that GPUs have no kernels
 * for. */
#include "base/macros.h"
#include "cuda/kernel_case_parts.h"

static sp_dtype pick_one_of(data_random *random, const sp_dtype *dtypes, int64_t count)
{
    return dtypes[pick(random, 0, count - 1)];
}

static sp_shape shape_1d(int64_t count)
{
    return (sp_shape){.rank = 1, .dims = {count}};
}

/* Some dimensions of the shape; returns their count. */
static uint32_t pick_axes(data_random *random, const sp_shape *shape, int64_t out[SP_MAX_RANK])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (one_in(random, 2)) out[count++] = one_in(random, 3) ? (int64_t)i - shape->rank : i;
    }
    return count;
}

/* ---- reductions ---- */

static void make_reduce(data_random *random, kernel_case *c)
{
    static const char *const ops[] = {
        "ReduceMax", "ReduceMin", "ReduceSum",    "ReduceMean",      "ReduceProd",
        "ReduceL1",  "ReduceL2",  "ReduceLogSum", "ReduceSumSquare", "ReduceLogSumExp"};
    static const sp_dtype dtypes[] = {SP_F32, SP_F32, SP_F32, SP_F64, SP_F16,
                                      SP_I32, SP_I64, SP_U8,  SP_I8,  SP_BOOL};
    /* Half of them of the two ops with kernels for all dtypes. */
    const int64_t op =
        one_in(random, 2) ? pick(random, 0, 1) : pick(random, 2, SP_COUNT_OF(ops) - 1);
    const int64_t types = op < 2 ? SP_COUNT_OF(dtypes) : op < 6 ? 7 : 5;
    const sp_shape x = pick_shape(random, 0, 5, one_in(random, 3) ? 3000 : 90);
    int64_t axes[SP_MAX_RANK];
    const uint32_t count = pick_axes(random, &x, axes);
    c->op = ops[op];
    c->version = 20;
    add_int(c, "keepdims", one_in(random, 2));
    add_int(c, "noop_with_empty_axes", one_in(random, 2));
    add_random(c, random, pick_one_of(random, dtypes, types), &x);
    add_known_ints(c, axes, count);
}

static void make_softmax(data_random *random, kernel_case *c)
{
    static const char *const ops[] = {"Softmax", "LogSoftmax", "Hardmax"};
    static const sp_dtype dtypes[] = {SP_F32, SP_F32, SP_F64, SP_F16};
    const int64_t op = pick(random, 0, 2);
    const sp_shape x = pick_shape(random, 1, 4, one_in(random, 3) ? 2000 : 90);
    c->op = ops[op];
    c->version = one_in(random, 3) ? 11 : 13;
    c->in_place = one_in(random, 2);
    add_int(c, "axis", pick(random, 0, x.rank - 1));
    add_random(c, random, op < 2 ? pick_one_of(random, dtypes, 4) : SP_F32, &x);
}

static void make_arg(data_random *random, kernel_case *c)
{
    static const sp_dtype dtypes[] = {SP_F32, SP_F64, SP_I32, SP_I64, SP_I8, SP_U8};
    const sp_shape x = pick_shape(random, 1, 4, 90);
    c->op = one_in(random, 2) ? "ArgMax" : "ArgMin";
    c->version = 13;
    add_int(c, "axis", pick(random, 0, x.rank - 1));
    add_int(c, "keepdims", one_in(random, 2));
    add_int(c, "select_last_index", one_in(random, 2));
    add_random(c, random, pick_one_of(random, dtypes, SP_COUNT_OF(dtypes)), &x);
}

static void make_cumsum(data_random *random, kernel_case *c)
{
    static const sp_dtype dtypes[] = {SP_F32, SP_F64, SP_I32, SP_I64};
    const sp_shape x = pick_shape(random, 1, 4, 90);
    const int64_t axis = pick(random, 0, x.rank - 1);
    c->op = "CumSum";
    c->version = 14;
    add_int(c, "exclusive", one_in(random, 2));
    add_int(c, "reverse", one_in(random, 2));
    add_random(c, random, pick_one_of(random, dtypes, SP_COUNT_OF(dtypes)), &x);
    add_known_ints(c, &axis, 1);
}

/* ---- normalisations ---- */

static void make_lp_norm(data_random *random, kernel_case *c)
{
    const sp_shape x = pick_shape(random, 1, 4, 90);
    c->op = "LpNormalization";
    c->version = 1;
    add_int(c, "axis", pick(random, 0, x.rank - 1));
    add_int(c, "p", pick(random, 1, 2));
    add_random(c, random, SP_F32, &x);
}

static void make_lrn(data_random *random, kernel_case *c)
{
    const sp_shape x = pick_shape(random, 2, 4, 40);
    c->op = "LRN";
    c->version = 13;
    add_int(c, "size", pick(random, 1, 9));
    add_float(c, "alpha", 0.3f);
    add_float(c, "beta", one_in(random, 2) ? 0.75f : 0.6f);
    add_random(c, random, SP_F32, &x);
}

static void make_mvn(data_random *random, kernel_case *c)
{
    const sp_shape x = pick_shape(random, 1, 4, 40);
    int64_t axes[SP_MAX_RANK];
    c->op = "MeanVarianceNormalization";
    c->version = 13;
    add_ints(c, "axes", axes, pick_axes(random, &x, axes));
    add_random(c, random, SP_F32, &x);
}

static void make_batch_norm(data_random *random, kernel_case *c)
{
    const sp_shape x = pick_shape(random, 1, 4, 40);
    const sp_shape channels = shape_1d(x.rank > 1 ? x.dims[1] : 1);
    const bool is_training = one_in(random, 3);
    c->op = "BatchNormalization";
    c->version = 15;
    c->in_place = one_in(random, 2);
    c->output_count = is_training ? (uint32_t)pick(random, 1, 3) : 1;
    if (!is_training) c->activation = pick_activation(random);
    add_int(c, "training_mode", is_training);
    add_float(c, "epsilon", 0.01f);
    add_random(c, random, SP_F32, &x);
    for (int i = 0; i < 4; i++) add_random(c, random, SP_F32, &channels);
}

static void make_layer_norm(data_random *random, kernel_case *c)
{
    const sp_shape x = pick_shape(random, 1, 4, 60);
    const uint32_t axis = (uint32_t)pick(random, 0, x.rank - 1);
    sp_shape row = {.rank = x.rank - axis};
    for (uint32_t i = 0; i < row.rank; i++) row.dims[i] = x.dims[axis + i];
    c->op = "LayerNormalization";
    c->version = 17;
    c->output_count = (uint32_t)pick(random, 1, 3);
    add_int(c, "axis", axis);
    add_random(c, random, SP_F32, &x);
    add_random(c, random, SP_F32, &row);
    if (one_in(random, 2)) add_random(c, random, SP_F32, &row);
}

static void make_group_norm(data_random *random, kernel_case *c)
{
    const int64_t groups = pick(random, 1, 5);
    const bool is_instance = one_in(random, 3), is_old = one_in(random, 2);
    sp_shape x = pick_shape(random, 3, 4, 30);
    x.dims[1] = groups * pick(random, 1, 4);
    const sp_shape scales = shape_1d(is_old && !is_instance ? groups : x.dims[1]);
    c->op = is_instance ? "InstanceNormalization" : "GroupNormalization";
    c->version = is_instance || is_old ? 18 : 21;
    if (!is_instance) add_int(c, "num_groups", groups);
    add_random(c, random, SP_F32, &x);
    for (int i = 0; i < 2; i++) add_random(c, random, SP_F32, &scales);
}

/* ---- reductions of more than one block of elements ---- */

/* A few rows of many elements along the last axis, or columns along the first. */
static sp_shape pick_long_shape(data_random *random, uint32_t *axis)
{
    const int64_t extent = one_in(random, 4) ? pick(random, 4090, 4110) : pick(random, 4097, 40000);
    const int64_t rows = pick(random, 1, extent < 20000 ? 5 : 2);
    *axis = one_in(random, 2);
    return (sp_shape){.rank = 2, .dims = {*axis == 0 ? extent : rows, *axis == 0 ? rows : extent}};
}

static void make_long(data_random *random, kernel_case *c)
{
    static const char *const ops[] = {
        "ReduceSum", "ReduceMean", "ReduceLogSumExp", "ReduceL2", "ReduceMax", "ReduceProd",
        "Softmax",   "LogSoftmax", "LpNormalization", "ArgMax",   "Hardmax"};
    static const uint32_t versions[] = {13, 18, 18, 18, 18, 18, 13, 13, 1, 13, 13};
    static const sp_dtype dtypes[] = {SP_F32, SP_F32, SP_F64};
    const int64_t op = pick(random, 0, SP_COUNT_OF(ops) - 1);
    uint32_t axis;
    const sp_shape x = pick_long_shape(random, &axis);
    const int64_t axes = axis;
    c->op = ops[op];
    c->version = versions[op];
    if (op >= 6) add_int(c, "axis", axis);
    const bool is_f32_only = c->version == 1 || op == SP_COUNT_OF(ops) - 1;
    add_random(c, random, is_f32_only ? SP_F32 : pick_one_of(random, dtypes, 3), &x);
    if (op < 6) add_known_ints(c, &axes, 1);
}

static void make_long_norm(data_random *random, kernel_case *c)
{
    const sp_shape x = {.rank = 2, .dims = {pick(random, 1, 3), pick(random, 4097, 14000)}};
    const sp_shape row = shape_1d(x.dims[1]);
    c->op = "LayerNormalization";
    c->version = 17;
    c->output_count = (uint32_t)pick(random, 1, 3);
    add_int(c, "axis", 1);
    add_random(c, random, SP_F32, &x);
    add_random(c, random, SP_F32, &row);
    if (one_in(random, 2)) add_random(c, random, SP_F32, &row);
}

/* Windows of more than one block of taps. */
static void make_long_pool(data_random *random, kernel_case *c)
{
    const int64_t kernel[] = {pick(random, 60, 80), pick(random, 70, 90)}, ones[] = {1, 1};
    const int64_t pads[] = {pick(random, 0, 3), 0, 0, pick(random, 0, 3)};
    const sp_shape x = {.rank = 4, .dims = {1, 2, kernel[0] + 1, kernel[1]}};
    c->op = "AveragePool";
    c->version = 19;
    add_ints(c, "kernel_shape", kernel, 2);
    add_ints(c, "strides", ones, 2);
    add_ints(c, "pads", pads, 4);
    add_int(c, "count_include_pad", one_in(random, 2));
    add_random(c, random, SP_F32, &x);
}

/* ---- windows of one to three dimensions ---- */

static case_window pick_window(data_random *random, uint32_t least_rank)
{
    case_window w = {.spatial = (uint32_t)pick(random, least_rank, 3)};
    for (uint32_t i = 0; i < w.spatial; i++) {
        w.kernel[i] = pick(random, 1, 4);
        w.stride[i] = one_in(random, 2) ? 1 : pick(random, 1, 3);
        w.dilation[i] = one_in(random, 2) ? 1 : pick(random, 1, 3);
        w.pads[i] = one_in(random, 2) ? 0 : pick(random, 0, 3);
        w.pads[w.spatial + i] = one_in(random, 2) ? 0 : pick(random, 0, 3);
        const int64_t reach = (w.kernel[i] - 1) * w.dilation[i] + 1;
        const int64_t least = reach - w.pads[i] - w.pads[w.spatial + i];
        w.in[i] = (least > 1 ? least : 1) + pick(random, 0, i + 1 == w.spatial ? 90 : 8);
    }
    return w;
}

static void make_pool(data_random *random, kernel_case *c)
{
    static const sp_dtype dtypes[] = {SP_F32, SP_F64, SP_U8, SP_I8};
    const bool is_average = one_in(random, 2);
    const case_window w = pick_window(random, 1);
    const int64_t channels = pick(random, 1, 4);
    const sp_shape x = window_shape(&w, pick_size(random, 3), channels, w.in);
    c->op = is_average ? "AveragePool" : "MaxPool";
    c->version = 19;
    add_window(c, &w);
    add_ints(c, "kernel_shape", w.kernel, w.spatial);
    add_int(c, "ceil_mode", one_in(random, 3));
    add_int(c, is_average ? "count_include_pad" : "storage_order", one_in(random, 2));
    if (!is_average) c->output_count = (uint32_t)pick(random, 1, 2);
    add_random(c, random, is_average ? SP_F32 : pick_one_of(random, dtypes, 4), &x);
}

static void make_global_pool(data_random *random, kernel_case *c)
{
    static const sp_dtype dtypes[] = {SP_F32, SP_F32, SP_F64, SP_F16};
    const sp_shape x = pick_shape(random, 2, 5, 50);
    c->op = one_in(random, 2) ? "GlobalAveragePool" : "GlobalMaxPool";
    c->version = 1;
    add_random(c, random, pick_one_of(random, dtypes, 4), &x);
}

static void add_operands(data_random *random, kernel_case *c, const case_window *w,
                         bool is_transposed, sp_dtype dtype)
{
    const int64_t groups = one_in(random, 2) ? 1 : pick(random, 1, 3);
    const int64_t channels = pick(random, 1, 4), filters = pick(random, 1, 9);
    const sp_shape x = window_shape(w, pick_size(random, 3), groups * channels, w->in);
    const sp_shape weights = is_transposed ? window_shape(w, groups * channels, filters, w->kernel)
                                           : window_shape(w, groups * filters, channels, w->kernel);
    const sp_shape bias = shape_1d(groups * filters);
    add_int(c, "group", groups);
    add_random(c, random, dtype, &x);
    add_random(c, random, dtype, &weights);
    if (one_in(random, 2)) add_random(c, random, dtype, &bias);
}

static void make_conv_3d(data_random *random, kernel_case *c)
{
    const case_window w = pick_window(random, 3);
    c->op = "Conv";
    c->version = 11;
    c->activation = pick_activation(random);
    add_window(c, &w);
    add_operands(random, c, &w, false, SP_F32);
}

static void make_conv_any(data_random *random, kernel_case *c)
{
    static const sp_dtype dtypes[] = {SP_F64, SP_F16, SP_BF16};
    const case_window w = pick_window(random, (uint32_t)pick(random, 1, 3));
    c->op = "Conv";
    c->version = 11;
    add_window(c, &w);
    add_operands(random, c, &w, false, pick_one_of(random, dtypes, SP_COUNT_OF(dtypes)));
}

static void make_matmul_any(data_random *random, kernel_case *c)
{
    static const sp_dtype dtypes[] = {SP_F64, SP_F16, SP_BF16, SP_I32, SP_I64, SP_U32, SP_U64};
    const sp_dtype dtype = pick_one_of(random, dtypes, SP_COUNT_OF(dtypes));
    const int64_t m = pick_size(random, 20), n = pick_size(random, 40), k = pick_size(random, 40);
    const sp_shape a = {.rank = 3, .dims = {pick(random, 1, 3), m, k}};
    const sp_shape b = {.rank = 2, .dims = {k, n}};
    c->op = "MatMul";
    c->version = 13;
    add_random(c, random, dtype, &a);
    add_random(c, random, dtype, &b);
}

static void make_conv_transpose(data_random *random, kernel_case *c)
{
    case_window w = pick_window(random, 1);
    int64_t extra[3];
    for (uint32_t i = 0; i < w.spatial; i++) {
        extra[i] = pick(random, 0, w.stride[i] - 1);
        w.in[i] = pick(random, 1, i + 1 == w.spatial ? 40 : 6);
    }
    c->op = "ConvTranspose";
    c->version = 11;
    c->activation = pick_activation(random);
    add_window(c, &w);
    add_ints(c, "output_padding", extra, w.spatial);
    add_operands(random, c, &w, true, SP_F32);
}

const kernel_case_kind reduce_case_kinds[] = {
    {"reduce", make_reduce, NULL},
    {"softmax", make_softmax, NULL},
    {"arg", make_arg, NULL},
    {"cumsum", make_cumsum, NULL},
    {"lp norm", make_lp_norm, NULL},
    {"lrn", make_lrn, NULL},
    {"mvn", make_mvn, NULL},
    {"batch norm", make_batch_norm, NULL},
    {"layer norm", make_layer_norm, NULL},
    {"group norm", make_group_norm, NULL},
    {"long reduction", make_long, NULL},
    {"long norm", make_long_norm, NULL},
    {"long pool", make_long_pool, NULL},
    {"pool", make_pool, NULL},
    {"global pool", make_global_pool, NULL},
    {"conv 3d", make_conv_3d, NULL},
    {"conv any", make_conv_any, NULL},
    {"conv transpose", make_conv_transpose, NULL},
    {"matmul any", make_matmul_any, NULL},
    {0},
};
