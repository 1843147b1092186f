/* SPDX-License-Identifier: Apache-2.0 */
/* Random calls of narrow products and convolutions (docs/decisions/0072), also of f16 and bf16. */
#include <string.h>

#include "cuda/kernel_case_parts.h"

/* The type of operands that a file may have. Activations are of f32. */
static sp_dtype pick_narrow_dtype(data_random *random, kernel_case *c)
{
    if (!one_in(random, 3)) return SP_F32;
    c->activation = SP_ACTIVATION_NONE;
    return one_in(random, 2) ? SP_F16 : SP_BF16;
}

static sp_shape shape_2d(int64_t a, int64_t b)
{
    return (sp_shape){.rank = 2, .dims = {a, b}};
}

static void make_narrow_matmul(data_random *random, kernel_case *c)
{
    const int64_t m = pick_size(random, 150), n = pick_size(random, 150);
    int64_t k = pick_size(random, 80);
    if (one_in(random, 3)) k = pick(random, 250, 1400); /* of several segments */
    c->op = "MatMul";
    c->version = 13;
    make_narrow(random, c);
    const sp_shape a = {.rank = 3, .dims = {1, m, k}}, b = shape_2d(k, n);
    const sp_dtype dtype = pick_narrow_dtype(random, c);
    add_random(c, random, dtype, &a);
    add_random(c, random, dtype, &b);
}

static void make_narrow_gemm_of_halves(data_random *random, kernel_case *c)
{
    const int64_t m = pick_size(random, 40), n = pick_size(random, 40), k = pick_size(random, 300);
    c->op = "Gemm";
    c->version = 13;
    make_narrow(random, c);
    c->activation = SP_ACTIVATION_NONE;
    const sp_dtype dtype = one_in(random, 2) ? SP_F16 : SP_BF16;
    const bool ta = one_in(random, 3), tb = one_in(random, 2);
    if (ta) add_int(c, "transA", 1);
    if (tb) add_int(c, "transB", 1);
    if (one_in(random, 2)) add_float(c, "alpha", 1.5f);
    const sp_shape a = ta ? shape_2d(k, m) : shape_2d(m, k);
    const sp_shape b = tb ? shape_2d(n, k) : shape_2d(k, n);
    const sp_shape bias = {.rank = 1, .dims = {n}};
    add_random(c, random, dtype, &a);
    add_random(c, random, dtype, &b);
    if (!one_in(random, 3)) add_random(c, random, dtype, &bias);
}

static void make_narrow_conv(data_random *random, kernel_case *c)
{
    /* Chunks of one tap, or of several; planes of the depth, or not. */
    const int64_t channels = one_in(random, 3) ? 64 * pick(random, 1, 2) : pick(random, 1, 70);
    const int64_t filters = pick(random, 1, one_in(random, 4) ? 150 : 40);
    const bool is_pointwise = one_in(random, 3);
    case_window w = pick_image_window(random, 12);
    c->op = "Conv";
    c->version = 11;
    make_narrow(random, c);
    if (is_pointwise) {
        w.kernel[0] = w.kernel[1] = w.stride[0] = w.stride[1] = 1;
        if (!one_in(random, 4)) memset(w.pads, 0, sizeof(w.pads));
    }
    add_window(c, &w);
    const sp_dtype dtype = pick_narrow_dtype(random, c);
    const sp_shape x = window_shape(&w, pick(random, 1, 3), channels, w.in);
    const sp_shape weights = window_shape(&w, filters, channels, w.kernel);
    const sp_shape bias = {.rank = 1, .dims = {filters}};
    add_random(c, random, dtype, &x);
    add_random(c, random, dtype, &weights);
    if (one_in(random, 2)) add_random(c, random, dtype, &bias);
}

/* Of two computed values, in a batch or not (docs/decisions/0089). */
static void make_rounded_matmul(data_random *random, kernel_case *c)
{
    const int64_t m = pick_size(random, 150), n = pick_size(random, 150);
    const int64_t k = one_in(random, 3) ? pick(random, 250, 600) : pick_size(random, 80);
    const int64_t batch = pick(random, 1, 3);
    c->op = "MatMul";
    c->version = 13;
    c->precision = (sp_precision)pick(random, SP_PRECISION_F16, SP_PRECISION_BF16);
    c->activation = pick_activation(random);
    sp_shape a = {.rank = 3, .dims = {one_in(random, 3) ? 1 : batch, m, k}};
    sp_shape b = {.rank = 3, .dims = {batch, k, n}};
    if (one_in(random, 4)) b = shape_2d(k, n);
    add_random(c, random, SP_F32, &a);
    add_random(c, random, SP_F32, &b);
}

/* More chunks than a block has stages, more rows than a cluster has in a tile. */
static void make_long_narrow_matmul(data_random *random, kernel_case *c)
{
    const int64_t k = pick(random, 200, 900);
    const sp_shape a = shape_2d(pick(random, 1, 300), k), b = shape_2d(k, pick(random, 1, 200));
    c->op = "MatMul";
    c->version = 13;
    make_narrow(random, c);
    c->packs_left = true;
    add_random(c, random, SP_F32, &a);
    add_random(c, random, SP_F32, &b);
}

const kernel_case_kind narrow_case_kinds[] = {
    {"long narrow matmul", make_long_narrow_matmul, NULL},
    {"narrow matmul", make_narrow_matmul, NULL},
    {"narrow gemm of halves", make_narrow_gemm_of_halves, NULL},
    {"narrow conv", make_narrow_conv, NULL},
    {"rounded matmul", make_rounded_matmul, NULL},
    {0},
};
