/* SPDX-License-Identifier: Apache-2.0 */
/* Generates random op calls. Some are invalid: the shape rule decides. */
#include "cuda/kernel_case_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

/* ---- products ---- */

static sp_shape shape_2d(int64_t a, int64_t b)
{
    return (sp_shape){.rank = 2, .dims = {a, b}};
}

static float pick_factor(data_random *random)
{
    static const float factors[] = {1.0f, 1.0f, 0.5f, -1.0f, 0.0f, 1.7f};
    return factors[pick(random, 0, SP_COUNT_OF(factors) - 1)];
}

static void make_gemm(data_random *random, kernel_case *c)
{
    int64_t m = pick_size(random, 80), n = pick_size(random, 150), k = pick_size(random, 200);
    if (one_in(random, 12)) { /* wide, for each tile height */
        m = pick(random, 1, 70);
        n = pick(random, 2000, one_in(random, 2) ? 3000 : 8400);
        k = pick(random, 1, 10);
    } else if (one_in(random, 6)) { /* of several segments */
        m = pick(random, 1, 20);
        k = pick(random, 200, 1100);
    }
    const bool ta = one_in(random, 4), tb = one_in(random, 3);
    c->op = "Gemm";
    c->activation = pick_activation(random);
    c->version = 13;
    c->packs = one_in(random, 2);
    add_int(c, "transA", ta);
    add_int(c, "transB", tb);
    add_float(c, "alpha", pick_factor(random));
    add_float(c, "beta", pick_factor(random));
    const sp_shape a = ta ? shape_2d(k, m) : shape_2d(m, k),
                   b = tb ? shape_2d(n, k) : shape_2d(k, n);
    add_random(c, random, SP_F32, &a);
    add_random(c, random, SP_F32, &b);
    const sp_shape y = shape_2d(m, n), operand = pick_operand(random, &y);
    if (one_in(random, 2)) add_random(c, random, SP_F32, &operand);
}

static void make_matmul(data_random *random, kernel_case *c)
{
    const int64_t m = pick_size(random, 40), n = pick_size(random, 60), k = pick_size(random, 80);
    c->op = "MatMul";
    c->activation = pick_activation(random);
    c->version = 13;
    c->packs = one_in(random, 2);
    const sp_shape batch = pick_shape(random, 0, 3, 4);
    sp_shape a = one_in(random, 2) ? batch : pick_operand(random, &batch);
    sp_shape b = one_in(random, 2) ? (sp_shape){.rank = 0} : pick_operand(random, &batch);
    if (a.rank > 0 || !one_in(random, 5)) a.dims[a.rank++] = m;
    a.dims[a.rank++] = k;
    b.dims[b.rank++] = k;
    if (b.rank > 1 || !one_in(random, 5)) b.dims[b.rank++] = n;
    add_random(c, random, SP_F32, &a);
    add_random(c, random, SP_F32, &b);
}

/* A narrow product, which may have its left operand packed too: kernels of few calls, so that half
 * of them have an activation. */
void make_narrow(data_random *random, kernel_case *c)
{
    c->precision = (sp_precision)pick(random, SP_PRECISION_TF32, SP_PRECISION_BF16);
    c->packs = true;
    c->packs_left = one_in(random, 2);
    c->activation = one_in(random, 2) ? SP_ACTIVATION_NONE
                                      : (sp_activation)pick(random, 1, SP_ACTIVATION_COUNT - 1);
}

static void make_narrow_gemm(data_random *random, kernel_case *c)
{
    make_gemm(random, c);
    make_narrow(random, c);
}

/* ---- windows ---- */

/* Sizes that are consistent with each other. */
case_window pick_image_window(data_random *random, int64_t most)
{
    case_window w = {.spatial = one_in(random, 4) ? 1 : 2};
    const bool is_plain = one_in(random, 2);
    for (uint32_t i = 0; i < w.spatial; i++) {
        w.kernel[i] = is_plain ? 1 + 2 * pick(random, 0, 2) : pick(random, 1, 5);
        w.stride[i] = one_in(random, 2) ? 1 : pick(random, 1, 3);
        w.dilation[i] = is_plain ? 1 : pick(random, 1, 3);
        w.pads[i] = is_plain ? w.kernel[i] / 2 : pick(random, 0, 3);
        w.pads[w.spatial + i] = is_plain ? w.kernel[i] / 2 : pick(random, 0, 3);
        const int64_t reach = (w.kernel[i] - 1) * w.dilation[i] + 1;
        const int64_t least = reach - w.pads[i] - w.pads[w.spatial + i];
        w.in[i] = (least > 1 ? least : 1) + pick(random, 0, most);
    }
    if (is_plain) w.kernel[1] = w.kernel[0], w.pads[1] = w.pads[0];
    if (is_plain && w.spatial == 2) w.pads[2] = w.pads[3] = w.pads[0];
    return w;
}

void add_window(kernel_case *c, const case_window *w)
{
    add_ints(c, "strides", w->stride, w->spatial);
    add_ints(c, "dilations", w->dilation, w->spatial);
    add_ints(c, "pads", w->pads, 2 * w->spatial);
}

sp_shape window_shape(const case_window *w, int64_t first, int64_t second, const int64_t *sizes)
{
    sp_shape s = {.rank = 2 + w->spatial, .dims = {first, second}};
    for (uint32_t i = 0; i < w->spatial; i++) s.dims[2 + i] = sizes[i];
    return s;
}

void add_conv(kernel_case *c, data_random *random, const case_window *w, int64_t images,
              int64_t groups, int64_t channels, int64_t filters)
{
    add_window(c, w);
    add_int(c, "group", groups);
    const sp_shape x = window_shape(w, images, groups * channels, w->in);
    const sp_shape weights = window_shape(w, groups * filters, channels, w->kernel);
    const sp_shape bias = {.rank = 1, .dims = {groups * filters}};
    add_random(c, random, SP_F32, &x);
    add_random(c, random, SP_F32, &weights);
    if (one_in(random, 2)) add_random(c, random, SP_F32, &bias);
}

static void make_conv(data_random *random, kernel_case *c)
{
    c->op = "Conv";
    c->activation = pick_activation(random);
    c->version = 11;
    const int64_t images = one_in(random, 40) ? 0 : pick(random, 1, 3);
    const int64_t groups = one_in(random, 2) ? 1 : pick(random, 1, 5);
    int64_t channels = one_in(random, 3) ? 1 : pick(random, 1, 9);
    int64_t filters = one_in(random, 3) ? 1 : pick(random, 1, 20);
    case_window w = pick_image_window(random, 24);
    if (one_in(random, 12)) { /* large enough for high tiles */
        channels = 2;
        filters = pick(random, 9, 70);
        w = pick_image_window(random, 2);
        for (uint32_t i = 0; i < w.spatial; i++) {
            w.stride[i] = 1;
            w.in[i] += w.spatial == 2 ? 62 : 4000;
        }
    } else if (one_in(random, 8)) { /* of several segments */
        channels = pick(random, 10, 60);
        filters = pick(random, 1, 5);
    } else if (one_in(random, 20)) { /* a kernel of several segments */
        channels = pick(random, 1, 2);
        filters = pick(random, 1, 3);
        for (uint32_t i = 0; i < w.spatial; i++) {
            w.kernel[i] = w.spatial == 2 ? pick(random, 20, 36) : pick(random, 500, 1100);
            w.in[i] = (w.kernel[i] - 1) * w.dilation[i] + 1 + pick(random, 0, 5);
        }
    } else if (one_in(random, 4)) { /* pointwise */
        channels = pick(random, 2, one_in(random, 3) ? 600 : 100);
        w.kernel[0] = w.kernel[1] = 1;
        if (!one_in(random, 4)) memset(w.pads, 0, sizeof(w.pads));
        w.stride[0] = w.stride[1] = 1;
    }
    add_conv(c, random, &w, images, groups, channels, filters);
}

static void make_max_pool(data_random *random, kernel_case *c)
{
    c->op = "MaxPool";
    c->version = 12;
    const case_window w = pick_image_window(random, 24);
    add_window(c, &w);
    add_ints(c, "kernel_shape", w.kernel, w.spatial);
    add_int(c, "ceil_mode", one_in(random, 3));
    const int64_t channels = pick(random, 1, 9);
    const int64_t images = one_in(random, 40) ? 0 : pick(random, 1, 3);
    const sp_shape x = window_shape(&w, images, channels, w.in);
    add_random(c, random, SP_F32, &x);
}

/* ---- elementwise ---- */

static void make_binary_of(data_random *random, kernel_case *c, sp_dtype dtype)
{
    static const char *const ops[] = {"Add", "Sub", "Mul", "Div"};
    c->op = ops[pick(random, 0, 3)];
    c->version = 14;
    c->in_place = one_in(random, 2);
    const sp_shape y = pick_shape(random, 0, 6, one_in(random, 4) ? 9000 : 3000);
    const sp_shape a = pick_operand(random, &y),
                   b = one_in(random, 2) ? y : pick_operand(random, &y);
    add_random(c, random, dtype, &a);
    add_random(c, random, dtype, &b);
}

static void make_binary(data_random *random, kernel_case *c)
{
    static const sp_dtype dtypes[] = {SP_F32, SP_I32, SP_I64};
    make_binary_of(random, c, dtypes[pick(random, 0, 2)]);
}

static void make_activated_binary(data_random *random, kernel_case *c)
{
    make_binary_of(random, c, SP_F32);
    c->activation = pick_activation(random);
}

static void make_unary(data_random *random, kernel_case *c)
{
    static const char *const ops[] = {"Relu", "Sigmoid", "Tanh", "Exp"};
    c->op = ops[pick(random, 0, 3)];
    c->version = 13;
    c->in_place = one_in(random, 2);
    const sp_shape x = pick_shape(random, 0, 3, 5000);
    add_random(c, random, SP_F32, &x);
}

/* ---- copies ---- */

static void make_concat(data_random *random, kernel_case *c)
{
    c->op = "Concat";
    c->version = 13;
    const sp_dtype dtype = pick_dtype(random);
    sp_shape x = pick_shape(random, 1, 4, 30);
    const uint32_t axis = (uint32_t)pick(random, 0, x.rank - 1);
    add_int(c, "axis", axis);
    const int64_t parts =
        one_in(random, 4) ? pick(random, 14, KERNEL_CASE_INPUTS) : pick(random, 1, 5);
    for (int64_t i = 0; i < parts; i++) {
        if (!one_in(random, 3)) x.dims[axis] = pick_size(random, 20);
        add_random(c, random, dtype, &x);
    }
}

static void make_split(data_random *random, kernel_case *c)
{
    c->op = "Split";
    c->version = 13;
    c->output_count = (uint32_t)(one_in(random, 4) ? pick(random, 14, 20) : pick(random, 1, 5));
    sp_shape x = pick_shape(random, 1, 4, 30);
    const uint32_t axis = (uint32_t)pick(random, 0, x.rank - 1);
    add_int(c, "axis", axis);
    int64_t sizes[20], total = 0;
    for (uint32_t i = 0; i < c->output_count; i++) total += sizes[i] = pick_size(random, 9);
    x.dims[axis] = total;
    add_random(c, random, pick_dtype(random), &x);
    add_known_ints(c, sizes, c->output_count);
}

static void make_transpose(data_random *random, kernel_case *c)
{
    c->op = "Transpose";
    c->version = 13;
    const sp_shape x = pick_shape(random, 0, 6, 200);
    int64_t perm[SP_MAX_RANK] = {0};
    for (uint32_t i = 0; i < x.rank; i++) {
        const int64_t j = pick(random, 0, i);
        perm[i] = perm[j];
        perm[j] = i;
    }
    add_ints(c, "perm", perm, x.rank);
    add_random(c, random, pick_dtype(random), &x);
}

static void make_pad(data_random *random, kernel_case *c)
{
    static const char *const modes[] = {"constant", "edge", "reflect", "wrap"};
    const bool is_old = one_in(random, 3);
    c->op = "Pad";
    c->version = is_old ? 10 : 19;
    const sp_shape x = pick_shape(random, 0, 4, 30), scalar = {.rank = 0};
    const sp_dtype dtype = is_old ? SP_F32 : pick_dtype(random);
    add_random(c, random, dtype, &x);
    int64_t pads[2 * SP_MAX_RANK];
    for (uint32_t i = 0; i < 2 * x.rank; i++) {
        pads[i] = one_in(random, 2) ? 0 : pick(random, -2, one_in(random, 4) ? 20 : 3);
    }
    c->text = sp__text(modes[pick(random, 0, is_old ? 2 : 3)]);
    c->attributes[c->attribute_count++] = data_attribute_text("mode", &c->text);
    if (is_old) {
        add_ints(c, "pads", pads, 2 * x.rank);
        if (one_in(random, 2)) add_float(c, "value", data_next_float(random));
        return;
    }
    add_known_ints(c, pads, 2 * (int64_t)x.rank);
    if (one_in(random, 2)) add_random(c, random, dtype, &scalar);
}

static void make_fill(data_random *random, kernel_case *c)
{
    c->op = "ConstantOfShape";
    c->version = 9;
    const sp_shape y = pick_shape(random, 0, 3, 3000), one = {.rank = 1, .dims = {1}};
    add_known_ints(c, y.dims, y.rank);
    if (one_in(random, 4)) return;
    if (sp__array_init(&c->value, pick_dtype(random), &one) != SP_OK) abort();
    fill_random(random, &c->value);
    c->value_view =
        (sp_array_view){.dtype = c->value.dtype, .shape = c->value.shape, .data = c->value.data};
    c->attributes[c->attribute_count] =
        (sp_attribute){.name = sp__text("value"), .type = SP_ATTRIBUTE_TENSOR, .count = 1};
    c->attributes[c->attribute_count++].as.tensors = &c->value_view;
}

/* An alias, which is copied if necessary. */
static void make_identity(data_random *random, kernel_case *c)
{
    c->op = "Identity";
    c->version = 13;
    const sp_shape x = pick_shape(random, 0, 3, 5000);
    add_random(c, random, pick_dtype(random), &x);
}

/* ---- kinds ---- */

static const kernel_case_kind common_kinds[] = {
    {"gemm", make_gemm, NULL},
    {"matmul", make_matmul, NULL},
    {"narrow gemm", make_narrow_gemm, NULL},
    {"conv", make_conv, NULL},
    {"max pool", make_max_pool, NULL},
    {"binary", make_binary, NULL},
    {"unary", make_unary, NULL},
    {"concat", make_concat, NULL},
    {"split", make_split, NULL},
    {"transpose", make_transpose, NULL},
    {"pad", make_pad, NULL},
    {"fill", make_fill, NULL},
    {"identity", make_identity, NULL},
    {"activated binary", make_activated_binary, NULL},
    {0},
};

static const kernel_case_kind *const families[] = {
    common_kinds,      elementwise_case_kinds, move_case_kinds,  layer_case_kinds,
    reduce_case_kinds, product_case_kinds,     narrow_case_kinds};

/* NULL after the last. */
static const kernel_case_kind *find_kind(uint32_t kind)
{
    for (size_t i = 0; i < SP_COUNT_OF(families); i++) {
        for (const kernel_case_kind *k = families[i]; k->name != NULL; k++, kind--) {
            if (kind == 0) return k;
        }
    }
    return NULL;
}

uint32_t kernel_case_kinds(void)
{
    uint32_t count = 0;
    while (find_kind(count) != NULL) count++;
    return count;
}

const char *kernel_case_kind_name(uint32_t kind)
{
    return find_kind(kind)->name;
}

uint64_t kernel_case_count(uint32_t kind, uint64_t most)
{
    const kernel_case_kind *of = find_kind(kind);
    if (strncmp(of->name, "long", 4) == 0) most /= 4;
    return of->op == NULL || most < 600 ? most : 600;
}

void kernel_case_make(uint32_t kind, data_random *random, kernel_case *out)
{
    memset(out, 0, sizeof(*out));
    out->output_count = 1;
    const kernel_case_kind *made = find_kind(kind);
    if (made->op != NULL) elementwise_case_make(made, random, out);
    else made->make(random, out);
}

void kernel_case_free(kernel_case *what)
{
    for (uint32_t i = 0; i < what->input_count; i++) sp__array_deinit(&what->inputs[i]);
    sp__array_deinit(&what->value);
}
