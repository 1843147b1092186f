/* SPDX-License-Identifier: Apache-2.0 */
/* What a product does with a sum. */

SP_CUDA_FUNCTION float sp_gemm_finish(const sp_gemm_constants &k, bool has_c, float sum, float addend)
{
    float out = __fmul_rn(sum, k.alpha);
    if (has_c) out = __fadd_rn(out, __fmul_rn(addend, k.beta));
    return sp_canonical(out);
}
