/* SPDX-License-Identifier: Apache-2.0 */
/* The left operand of a narrow product (docs/decisions/0072), which a kernel would round and pack
 * before that: the step that computes it writes it so (docs/decisions/0093). A product or attention
 * does if nothing else reads its result; a normalisation of rows writes both forms, also through a
 * copy that transposes its rows. Changes no bit. */
#include "base/macros.h"
#include "ops/pack.h"
#include "plan/plan_fuse.h"
#include "plan/plan_strides.h"

/* A step that packs a matrix of f32, which lies in rows. */
typedef struct packing {
    sp_plan_step *step;
    const sp_pack_constants *matrix;
    sp_pack_format format;
} packing;

static bool find_packing(const sp_stride_pass *pass, uint32_t s, packing *out)
{
    sp_plan_step *step = &pass->builder->steps[s];
    const bool is_packing = step->kernel == SP_KERNEL_ID_narrow_pack_tf32 ||
                            step->kernel == SP_KERNEL_ID_narrow_pack_f16 ||
                            step->kernel == SP_KERNEL_ID_narrow_pack_bf16;
    if (!is_packing || step->bindings[0].where != SP_PLACE_ARENA) return false;
    *out = (packing){step, step->constants, sp__pack_format_of(step->kernel)};
    return sp__pack_is_whole(out->format, out->matrix);
}

/* The step that alone writes what `read` reads; or NULL. */
static sp_plan_step *find_writer(const sp_stride_pass *pass, const sp_plan_binding *read)
{
    const sp_stride_value *value = &pass->values[read->index];
    if (value->writes != 1 || value->writer == SP_NO_STEP) return NULL;
    return &pass->builder->steps[value->writer];
}

/* The same, if nothing else reads it. */
static sp_plan_step *find_only_writer(const sp_stride_pass *pass, const packing *p)
{
    const sp_plan_binding *x = &p->step->bindings[0];
    return pass->values[x->index].reads == 1 ? find_writer(pass, x) : NULL;
}

/* The step gets the constants, and `written` as its binding number `at`; the packing goes. */
static sp_status replace_packing(sp_stride_pass *pass, const packing *p, sp_plan_step *step,
                                 uint32_t at, const void *constants, uint32_t constant_bytes)
{
    sp_plan_builder *builder = pass->builder;
    const sp_plan_binding *packed = &p->step->bindings[1];
    sp_plan_binding *bindings;
    SP_TRY(sp__bump_array(&builder->plan->bump, at + 1, sizeof *bindings, &bindings));
    for (uint32_t i = 0; i < at; i++) bindings[i] = step->bindings[i];
    bindings[at] = *packed;
    step->constants = constants;
    step->constant_bytes = constant_bytes;
    step->bindings = bindings;
    step->binding_count = at + 1;
    pass->values[packed->index].writer = (uint32_t)(step - builder->steps);
    p->step->kernel = SP_NO_KERNEL;
    return SP_OK;
}

/* ---- products ---- */

static bool is_product(sp_kernel_id kernel)
{
    return kernel == SP_KERNEL_ID_gemm_packed_tf32 || kernel == SP_KERNEL_ID_gemm_packed_f16 ||
           kernel == SP_KERNEL_ID_gemm_packed_bf16;
}

/* The product of two packed operands whose result is packed; or NULL. */
static sp_plan_step *find_product(const sp_stride_pass *pass, const packing *p)
{
    sp_plan_step *product = find_only_writer(pass, p);
    if (product == NULL || !is_product(product->kernel)) return NULL;
    const sp_gemm_constants *k = product->constants;
    const bool is_short =
        k->activation == SP_ACTIVATION_NONE || k->activation == SP_ACTIVATION_RELU;
    const bool is_same = k->rows == p->matrix->columns && k->columns == p->matrix->depth;
    const bool is_apart = !k->is_half && k->y_format == SP_PACK_NONE && k->batch_rank == 0;
    const bool has_format = sp__pack_format_of(product->kernel) == p->format;
    return is_short && is_same && is_apart && has_format ? product : NULL;
}

static sp_status pack_product(sp_stride_pass *pass, const packing *p, sp_plan_step *product)
{
    sp_gemm_constants *k;
    SP_TRY(sp__bump_array(&pass->builder->plan->bump, 1, sizeof *k, &k));
    *k = *(const sp_gemm_constants *)product->constants;
    k->y_format = (uint8_t)p->format;
    return replace_packing(pass, p, product, product->binding_count - 1, k, sizeof *k);
}

/* ---- attention ---- */

/* Are the columns of each query of each head part of a row of the matrix, from a multiple of 8 on?
 */
static bool is_in_rows(const sp_attention_constants *k, int64_t width)
{
    const int64_t columns = k->columns;
    if (columns % 8 != 0 || width % columns != 0) return false;
    if (k->y.row % columns != 0) return false;
    for (uint32_t i = 0; i < k->batch_rank; i++) {
        if (k->y.batch[i] % columns != 0) return false;
    }
    return true;
}

/* Does attention write each element of the matrix? It may write some heads of a larger one. */
static bool is_all_of(const sp_attention_constants *k, const sp_pack_constants *matrix)
{
    int64_t count = k->rows * k->columns;
    for (uint32_t i = 0; i < k->batch_rank; i++) count *= k->batch_dims[i];
    return count == matrix->depth * matrix->columns;
}

static sp_plan_step *find_attention(const sp_stride_pass *pass, const packing *p)
{
    static const sp_rounding roundings[SP_PACK_FORMAT_COUNT] = {
        [SP_PACK_F16] = SP_ROUNDING_F16, [SP_PACK_BF16] = SP_ROUNDING_BF16};
    sp_plan_step *step = find_only_writer(pass, p);
    if (step == NULL || step->kernel != SP_KERNEL_ID_attention_f32) return NULL;
    const sp_attention_constants *k = step->constants;
    const bool has_type = k->rounding != SP_ROUNDING_NONE && k->rounding == roundings[p->format];
    const bool is_short = k->columns <= k->depth;
    const bool is_whole = is_all_of(k, p->matrix) && is_in_rows(k, p->matrix->depth);
    return has_type && is_short && is_whole ? step : NULL;
}

static sp_status pack_attention(sp_stride_pass *pass, const packing *p, sp_plan_step *step)
{
    sp_attention_constants *k;
    SP_TRY(sp__bump_array(&pass->builder->plan->bump, 1, sizeof *k, &k));
    *k = *(const sp_attention_constants *)step->constants;
    k->y_format = (uint8_t)p->format;
    k->y_width = p->matrix->depth;
    k->y_lines = p->matrix->columns;
    return replace_packing(pass, p, step, step->binding_count - 1, k, sizeof *k);
}

/* ---- normalisations ---- */

/* Where the rows of a normalisation are in the packed matrix: row r is line r / block * outer +
 * r % block * inner. */
typedef struct norm_lines {
    sp_plan_step *norm;
    int64_t block, outer, inner;
} norm_lines;

/* Line l of the matrix begins at l / block * outer + l % block * inner of the rows, which are in
 * their order, or in that of a transposed batch. */
static bool invert_lines(const sp_view_rows *lines, int64_t rows, int64_t extent, norm_lines *out)
{
    const int64_t block = lines->block, blocks = rows / block;
    const bool is_plain = block == rows && lines->inner == extent;
    out->block = is_plain ? rows : blocks;
    out->outer = is_plain ? 0 : 1;
    out->inner = is_plain ? 1 : block;
    const bool is_transposed =
        rows % block == 0 && lines->outer == extent && lines->inner == extent * blocks;
    return is_plain || is_transposed;
}

static bool find_norm(const sp_stride_pass *pass, const packing *p, norm_lines *out)
{
    const int64_t rows = p->matrix->columns, extent = p->matrix->depth;
    const sp_plan_binding *x = &p->step->bindings[0];
    sp_view_rows lines = {.block = rows, .inner = extent};
    sp_stride_source source;
    if (sp__stride_find(pass, x, sizeof(float), &source)) {
        if (!sp__view_find_rows(&source.view, extent, &lines)) return false;
        x = &source.binding;
    }
    out->norm = find_writer(pass, x);
    if (out->norm == NULL || out->norm->kernel != SP_KERNEL_ID_row_norm_f32) return false;
    const sp_row_norm_constants *k = out->norm->constants;
    const bool is_open = k->activation == SP_ACTIVATION_NONE && k->y_format == SP_PACK_NONE;
    const bool is_same = k->rows == rows && k->extent == extent;
    return is_open && is_same && extent <= SP_NORM_PACKED_EXTENT &&
           invert_lines(&lines, rows, extent, out);
}

static sp_status pack_norm(sp_stride_pass *pass, const packing *p, const norm_lines *of)
{
    const sp_plan_step *norm = of->norm;
    const uint32_t y = norm->bindings[norm->binding_count - 1].index;
    sp_row_norm_constants *k;
    SP_TRY(sp__bump_array(&pass->builder->plan->bump, 1, sizeof *k, &k));
    *k = *(const sp_row_norm_constants *)norm->constants;
    sp__stride_drop_read(pass, p->step->bindings[0].index);
    k->y_format = (uint8_t)p->format;
    k->is_only_packed = pass->values[y].reads == 0;
    k->line_block = of->block;
    k->line_outer = of->outer;
    k->line_inner = of->inner;
    return replace_packing(pass, p, of->norm, norm->binding_count - (k->is_only_packed ? 1 : 0), k,
                           sizeof *k);
}

/* ---- the pass ---- */

static sp_status visit_step(sp_stride_pass *pass, uint32_t s)
{
    packing p;
    norm_lines norm;
    if (!find_packing(pass, s, &p)) return SP_OK;
    sp_plan_step *product = find_product(pass, &p);
    if (product != NULL) return pack_product(pass, &p, product);
    sp_plan_step *attention = find_attention(pass, &p);
    if (attention != NULL) return pack_attention(pass, &p, attention);
    return find_norm(pass, &p, &norm) ? pack_norm(pass, &p, &norm) : SP_OK;
}

sp_status sp__plan_fuse_packed(sp_plan_builder *builder)
{
    /* Without a precision no product of f32 is narrow. */
    if (builder->request->precision == SP_PRECISION_DEFAULT) return SP_OK;
    return sp__stride_each(builder, visit_step);
}
