/* SPDX-License-Identifier: Apache-2.0 */
/* A narrow product whose result only another one reads, which has it rounded and packed by a kernel
 * before (docs/decisions/0072): the product writes it so (docs/decisions/0093). Changes no bit. */
#include "base/macros.h"
#include "ops/pack.h"
#include "plan/plan_fuse.h"
#include "plan/plan_strides.h"

static bool is_packing(sp_kernel_id kernel)
{
    return kernel == SP_KERNEL_ID_narrow_pack_tf32 || kernel == SP_KERNEL_ID_narrow_pack_f16 ||
           kernel == SP_KERNEL_ID_narrow_pack_bf16;
}

static bool is_product(sp_kernel_id kernel)
{
    return kernel == SP_KERNEL_ID_gemm_packed_tf32 || kernel == SP_KERNEL_ID_gemm_packed_f16 ||
           kernel == SP_KERNEL_ID_gemm_packed_bf16;
}

/* The product of two packed operands that writes the matrix which `packing` packs, and that nothing
 * else reads; or NULL. */
static sp_plan_step *find_product(const sp_stride_pass *pass, const sp_plan_step *packing)
{
    const sp_pack_constants *matrix = packing->constants;
    const sp_pack_format format = sp__pack_format_of(packing->kernel);
    const sp_plan_binding *x = &packing->bindings[0];
    if (x->where != SP_PLACE_ARENA || !sp__pack_is_whole(format, matrix)) return NULL;
    const sp_stride_value *value = &pass->values[x->index];
    if (value->writes != 1 || value->reads != 1 || value->writer == SP_NO_STEP) return NULL;
    sp_plan_step *product = &pass->builder->steps[value->writer];
    if (!is_product(product->kernel)) return NULL;
    const sp_gemm_constants *k = product->constants;
    const bool is_short =
        k->activation == SP_ACTIVATION_NONE || k->activation == SP_ACTIVATION_RELU;
    const bool is_same = k->rows == matrix->columns && k->columns == matrix->depth;
    const bool is_apart = !k->is_half && k->y_format == SP_PACK_NONE && k->batch_rank == 0;
    const bool has_format = sp__pack_format_of(product->kernel) == format;
    return is_short && is_same && is_apart && has_format ? product : NULL;
}

static sp_status pack_result(sp_stride_pass *pass, sp_plan_step *product, sp_plan_step *packing)
{
    sp_plan_builder *builder = pass->builder;
    const uint32_t count = product->binding_count;
    sp_gemm_constants *k;
    sp_plan_binding *bindings;
    SP_TRY(sp__bump_array(&builder->plan->bump, 1, sizeof *k, &k));
    SP_TRY(sp__bump_array(&builder->plan->bump, count, sizeof *bindings, &bindings));
    *k = *(const sp_gemm_constants *)product->constants;
    k->y_format = (uint8_t)sp__pack_format_of(packing->kernel);
    for (uint32_t i = 0; i + 1 < count; i++) bindings[i] = product->bindings[i];
    bindings[count - 1] = packing->bindings[1];
    product->constants = k;
    product->constant_bytes = sizeof *k;
    product->bindings = bindings;
    pass->values[bindings[count - 1].index].writer = (uint32_t)(product - builder->steps);
    packing->kernel = SP_NO_KERNEL;
    return SP_OK;
}

static sp_status visit_step(sp_stride_pass *pass, uint32_t s)
{
    sp_plan_step *packing = &pass->builder->steps[s];
    if (!is_packing(packing->kernel)) return SP_OK;
    sp_plan_step *product = find_product(pass, packing);
    return product != NULL ? pack_result(pass, product, packing) : SP_OK;
}

sp_status sp__plan_fuse_packed(sp_plan_builder *builder)
{
    /* Without a precision no product of f32 is narrow. */
    if (builder->request->precision == SP_PRECISION_DEFAULT) return SP_OK;
    return sp__stride_each(builder, visit_step);
}
