/* SPDX-License-Identifier: Apache-2.0 */
/* Random calls of Einsum, and of products and convolutions of many segments
 * (docs/decisions/0002-bit-rules.md), which blocks may share in several rounds; convolutions whose
 * windows share elements (docs/decisions/0086). */
#include <string.h>

#include "cuda/kernel_case_parts.h"

/* Each letter is an index of a random size. */
static void make_einsum(data_random *random, kernel_case *c)
{
    static const struct {
        const char *equation, *terms[2];
    } all[] = {{"bij,bjk->bik", {"bij", "bjk"}},
               {"bqhd,bkhd->bhqk", {"bqhd", "bkhd"}},
               {"ij,jk->ki", {"ij", "jk"}},
               {"i,jk->kij", {"i", "jk"}},
               {"ij,kl->jl", {"ij", "kl"}},
               {"iij,jk", {"iij", "jk"}},
               {"ij->ji", {"ij"}},
               {"ijk->j", {"ijk"}}};
    static const sp_dtype types[] = {SP_F32, SP_F32, SP_F64, SP_F16, SP_BF16, SP_I32, SP_I64};
    const int64_t which = pick(random, 0, SP_COUNT_OF(all) - 1);
    const sp_dtype dtype = types[pick(random, 0, SP_COUNT_OF(types) - 1)];
    int64_t sizes[26];
    for (int i = 0; i < 26; i++) sizes[i] = pick_size(random, 12);
    c->op = "Einsum";
    c->version = 12;
    c->text = sp__text(all[which].equation);
    c->attributes[c->attribute_count++] = data_attribute_text("equation", &c->text);
    for (int i = 0; i < 2 && all[which].terms[i] != NULL; i++) {
        const char *term = all[which].terms[i];
        sp_shape shape = {.rank = (uint32_t)strlen(term)};
        for (uint32_t k = 0; k < shape.rank; k++) shape.dims[k] = sizes[term[k] - 'a'];
        add_random(c, random, dtype, &shape);
    }
}

static sp_shape shape_2d(int64_t a, int64_t b)
{
    return (sp_shape){.rank = 2, .dims = {a, b}};
}

static void make_long_gemm(data_random *random, kernel_case *c)
{
    const int64_t m = pick(random, 1, 70), n = pick(random, 1, 140);
    const int64_t k = pick(random, 3, 20) * 256 + (one_in(random, 2) ? 0 : pick(random, 1, 255));
    const bool ta = one_in(random, 6), tb = one_in(random, 3);
    c->op = "Gemm";
    c->activation = pick_activation(random);
    c->version = 13;
    c->packs = !one_in(random, 3);
    add_int(c, "transA", ta);
    add_int(c, "transB", tb);
    const sp_shape a = ta ? shape_2d(k, m) : shape_2d(m, k),
                   b = tb ? shape_2d(n, k) : shape_2d(k, n);
    add_random(c, random, SP_F32, &a);
    add_random(c, random, SP_F32, &b);
    const sp_shape bias = {.rank = 1, .dims = {n}};
    if (one_in(random, 2)) add_random(c, random, SP_F32, &bias);
}

static void make_long_conv(data_random *random, kernel_case *c)
{
    const int64_t taps = one_in(random, 3) ? 1 : 3, images = pick(random, 1, 3);
    const int64_t groups = one_in(random, 4) ? 2 : 1, filters = pick(random, 1, 70);
    const int64_t channels = (taps == 1 ? 256 : 32) * pick(random, 2, 9) + pick(random, -20, 20);
    case_window w = {.spatial = 2};
    for (uint32_t i = 0; i < 2; i++) {
        w.kernel[i] = taps;
        w.pads[i] = w.pads[2 + i] = taps / 2;
        w.stride[i] = w.dilation[i] = 1;
        w.in[i] = pick(random, 1, 8);
    }
    c->op = "Conv";
    c->activation = pick_activation(random);
    c->version = 11;
    add_conv(c, random, &w, images, groups, channels, filters);
}

static void fill_with(const sp_array *array, float value)
{
    float *at = array->data;
    for (uint64_t i = 0; i < array->bytes / sizeof *at; i++) at[i] = value;
}

/* Of one segment, with windows of few columns; sometimes of enough images for all processors. */
static void make_direct_conv(data_random *random, kernel_case *c)
{
    const int64_t images = one_in(random, 2) ? pick(random, 1, 3) : pick(random, 20, 50);
    const int64_t groups = one_in(random, 4) ? 2 : 1, channels = pick(random, 2, 18);
    const int64_t filters = one_in(random, 3) ? pick(random, 8, 40) : pick(random, 1, 4) * 8;
    case_window w = {.spatial = one_in(random, 3) ? 1 : 2};
    for (uint32_t i = 0; i < w.spatial; i++) {
        const bool is_last = i + 1 == w.spatial;
        w.kernel[i] = is_last ? pick(random, 1, 2) * 2 + 1 : pick(random, 1, 4);
        w.stride[i] = w.kernel[i] == 5 ? 1 : pick(random, 1, 2);
        w.dilation[i] = 1;
        w.pads[i] = pick(random, 0, w.kernel[i] - 1);
        w.pads[w.spatial + i] = pick(random, 0, w.kernel[i] - 1);
        w.in[i] = w.kernel[i] + pick(random, 0, w.spatial == 1 ? 90 : 14);
    }
    c->op = "Conv";
    c->activation = pick_activation(random);
    c->version = 11;
    add_conv(c, random, &w, images, groups, channels, filters);
    if (one_in(random, 6)) { /* products that round to -0; no sum is */
        c->activation = SP_ACTIVATION_NONE;
        static const float values[] = {1e-30f, -1e-30f, -0.0f};
        for (uint32_t i = 0; i < c->input_count; i++) fill_with(&c->inputs[i], values[i]);
    }
}

const kernel_case_kind product_case_kinds[] = {
    {"einsum", make_einsum, NULL},
    {"long gemm", make_long_gemm, NULL},
    {"long conv", make_long_conv, NULL},
    {"direct conv", make_direct_conv, NULL},
    {0},
};
