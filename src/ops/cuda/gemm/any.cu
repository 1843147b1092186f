/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of types other than f32 (ops/cpu/gemm/gemm_any.inc.h). A thread has an output;
 * neighbouring threads have neighbouring columns. */

/* Integers wrap, and are not scaled: their op has no factors. */
template <class E> struct sp_product_of {
    typedef uint64_t T;
    SP_CUDA_MEMBER T step(T chain, E a, E b)
    {
        return chain + (T)a * (T)b;
    }
    SP_CUDA_MEMBER E finish(const sp_gemm_constants &, T sum, const E *c)
    {
        return (E)(c ? sum + (T)*c : sum);
    }
};

template <class E> struct sp_float_product {
    typedef sp_wide<E> T;
    SP_CUDA_MEMBER T step(T chain, E a, E b)
    {
        return sp_step(chain, sp_load(a), sp_load(b));
    }
    SP_CUDA_MEMBER E finish(const sp_gemm_constants &k, T sum, const E *c)
    {
        T out = sum * T((typename T::element)k.alpha);
        if (c) out = out + sp_load(*c) * T((typename T::element)k.beta);
        return sp_stored<E>::from(out);
    }
};
template <> struct sp_product_of<double> : sp_float_product<double> {
};
template <> struct sp_product_of<sp_f16> : sp_float_product<sp_f16> {
};
template <> struct sp_product_of<sp_bf16> : sp_float_product<sp_bf16> {
};

template <class E>
SP_CUDA_FUNCTION typename sp_product_of<E>::T sp_any_sum(const sp_gemm_any_constants &any,
                                                         const E *a, const E *b)
{
    typedef typename sp_product_of<E>::T T;
    const sp_gemm_constants &k = any.gemm;
    T sum = 0;
#pragma unroll 1
    for (int64_t first = 0; first < k.depth; first += SP_GEMM_SEGMENT) {
        const int64_t end = first + SP_GEMM_SEGMENT < k.depth ? first + SP_GEMM_SEGMENT : k.depth;
        T chain = 0;
#pragma unroll 8
        for (int64_t d = first; d < end; d++) {
            chain = sp_product_of<E>::step(chain, a[d * k.a_depth], b[d * k.b_depth]);
        }
        sum = sum + chain;
    }
    return sum;
}

template <class E>
SP_CUDA_FUNCTION void sp_gemm_any(const sp_gpu_bindings &bindings, const sp_gemm_any_constants &any)
{
    const sp_gemm_constants &k = any.gemm;
    const E *a = (const E *)bindings.at[0], *b = (const E *)bindings.at[1];
    const E *c = k.has_c ? (const E *)bindings.at[2] : nullptr;
    E *y = (E *)bindings.at[k.has_c ? 3 : 2];
    const int64_t count = sp_cuda_gemm_matrices(&k) * k.rows * k.columns;
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < count; i += sp_thread_stride()) {
        int64_t batch = i;
        const int64_t column = sp_take_coordinate(&batch, k.columns);
        const int64_t row = sp_take_coordinate(&batch, k.rows);
        int64_t a_at = row * k.a_row, b_at = column * any.b_column;
#pragma unroll 1
        for (uint32_t d = k.batch_rank; d-- > 0;) {
            const int64_t at = sp_take_coordinate(&batch, k.batch_dims[d]);
            a_at += at * k.a_batch[d];
            b_at += at * k.b_batch[d];
        }
        const E *addend = c ? c + row * k.c_row + column * k.c_column : nullptr;
        y[i] = sp_product_of<E>::finish(k, sp_any_sum(any, a + a_at, b + b_at), addend);
    }
}

#define SP_GEMM_ANY_KERNEL(suffix, E)                                                              \
    SP_CUDA_KERNEL(gemm_any_##suffix, sp_gemm_any_constants)                                       \
    {                                                                                              \
        sp_gemm_any<E>(bindings, k);                                                               \
    }

SP_GEMM_ANY_KERNEL(f64, double)
SP_GEMM_ANY_KERNEL(f16, sp_f16)
SP_GEMM_ANY_KERNEL(bf16, sp_bf16)
SP_GEMM_ANY_KERNEL(i32, int32_t)
SP_GEMM_ANY_KERNEL(i64, int64_t)
SP_GEMM_ANY_KERNEL(u32, uint32_t)
SP_GEMM_ANY_KERNEL(u64, uint64_t)
