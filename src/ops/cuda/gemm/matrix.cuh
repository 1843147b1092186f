/* SPDX-License-Identifier: Apache-2.0 */
/* The operands of a product of many matrices. */

/* One matrix of the batch. */
struct sp_gemm_matrix {
    const float *a, *b, *c;
    float *y;
};

SP_CUDA_FUNCTION sp_gemm_matrix sp_make_gemm_matrix(const sp_gpu_bindings &bindings,
                                                    const sp_gemm_constants &k, int64_t batch)
{
    sp_gemm_matrix m;
    m.a = (const float *)bindings.at[0];
    m.b = (const float *)bindings.at[1];
    m.c = k.has_c ? (const float *)bindings.at[2] : nullptr;
    m.y = (float *)bindings.at[k.has_c ? 3 : 2] + batch * k.rows * k.columns;
#pragma unroll 1
    for (uint32_t i = k.batch_rank; i-- > 0;) {
        const int64_t at = sp_take_coordinate(&batch, k.batch_dims[i]);
        m.a += at * k.a_batch[i];
        m.b += at * k.b_batch[i];
    }
    return m;
}
