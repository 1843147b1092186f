/* SPDX-License-Identifier: Apache-2.0 */
/* y = f(x) and y = a op b with broadcasting. Neighbouring threads compute neighbouring elements;
 * each computes SP_CUDA_ELEMENTS at once, or one if its index is expensive to compute. y may be the
 * memory of an operand of its shape: a thread reads each element before it overwrites it. */

/* For each element of this thread in one pass: calls body(slot, index). */
template <class Body> SP_CUDA_FUNCTION void sp_each_slot(int64_t first, int64_t count, Body body)
{
#pragma unroll
    for (int slot = 0; slot < SP_CUDA_ELEMENTS; slot++) {
        const int64_t at = first + slot * SP_CUDA_THREADS;
        if (at < count) body(slot, at);
    }
}

SP_CUDA_FUNCTION int64_t sp_first_element()
{
    return (int64_t)blockIdx.x * (SP_CUDA_THREADS * SP_CUDA_ELEMENTS) + threadIdx.x;
}

SP_CUDA_FUNCTION int64_t sp_element_stride()
{
    return (int64_t)gridDim.x * (SP_CUDA_THREADS * SP_CUDA_ELEMENTS);
}

template <float function(float)>
SP_CUDA_FUNCTION void sp_unary(const sp_gpu_bindings &bindings, const sp_flat_constants &k)
{
    const float *x = (const float *)bindings.at[0];
    float *y = (float *)bindings.at[1];
#pragma unroll 1
    for (int64_t first = sp_first_element(); first < k.count; first += sp_element_stride()) {
        float values[SP_CUDA_ELEMENTS];
        sp_each_slot(first, k.count, [&](int slot, int64_t at) { values[slot] = x[at]; });
        sp_each_slot(first, k.count,
                     [&](int slot, int64_t at) { y[at] = sp_canonical(function(values[slot])); });
    }
}

#define SP_UNARY_KERNEL(name, function)                                                            \
    SP_CUDA_KERNEL(name, sp_flat_constants)                                                        \
    {                                                                                              \
        sp_unary<function>(bindings, k);                                                           \
    }

SP_UNARY_KERNEL(relu_f32, sp_reluf)
SP_UNARY_KERNEL(sigmoid_f32, sp_sigmoidf)
SP_UNARY_KERNEL(tanh_f32, sp_tanhf)
SP_UNARY_KERNEL(exp_f32, sp_expf)

SP_CUDA_FUNCTION float sp_finish_binary(const sp_binary_constants &k, float y)
{
    return sp_activate(k.activation, y);
}
SP_CUDA_FUNCTION int32_t sp_finish_binary(const sp_binary_constants &, int32_t y)
{
    return y;
}
SP_CUDA_FUNCTION int64_t sp_finish_binary(const sp_binary_constants &, int64_t y)
{
    return y;
}

template <class T, T function(T, T)>
SP_CUDA_FUNCTION void sp_binary(const sp_gpu_bindings &bindings, const sp_binary_constants &k)
{
    const T *a = (const T *)bindings.at[0], *b = (const T *)bindings.at[1];
    T *y = (T *)bindings.at[2];
    if (sp_cuda_binary_elements(&k) == 1) {
#pragma unroll 1
        for (int64_t i = sp_thread_index(); i < k.count; i += sp_thread_stride()) {
            int64_t rest = i, a_at = 0, b_at = 0;
#pragma unroll 1
            for (uint32_t d = k.rank - 1; d > 0; d--) {
                const int64_t coordinate = sp_take_coordinate(&rest, k.dims[d]);
                a_at += coordinate * k.a[d];
                b_at += coordinate * k.b[d];
            }
            const T out = function(a[a_at + rest * k.a[0]], b[b_at + rest * k.b[0]]);
            y[i] = sp_finish_binary(k, out);
        }
        return;
    }
#pragma unroll 1
    for (int64_t first = sp_first_element(); first < k.count; first += sp_element_stride()) {
        T left[SP_CUDA_ELEMENTS], right[SP_CUDA_ELEMENTS];
        sp_each_slot(first, k.count, [&](int slot, int64_t at) {
            left[slot] = a[at * k.a[0]];
            right[slot] = b[at * k.b[0]];
        });
        sp_each_slot(first, k.count, [&](int slot, int64_t at) {
            y[at] = sp_finish_binary(k, function(left[slot], right[slot]));
        });
    }
}

SP_CUDA_FUNCTION float sp_add_floats(float a, float b)
{
    return sp_canonical(__fadd_rn(a, b));
}
SP_CUDA_FUNCTION float sp_sub_floats(float a, float b)
{
    return sp_canonical(__fsub_rn(a, b));
}
SP_CUDA_FUNCTION float sp_mul_floats(float a, float b)
{
    return sp_canonical(__fmul_rn(a, b));
}
SP_CUDA_FUNCTION float sp_div_floats(float a, float b)
{
    return sp_canonical(__fdiv_rn(a, b));
}

/* Unsigned arithmetic wraps by definition. A division by 0 gives 0, and the smallest number divided
 * by -1 is itself. */
template <class T, class U> SP_CUDA_FUNCTION T sp_add_ints(T a, T b)
{
    return (T)((U)a + (U)b);
}
template <class T, class U> SP_CUDA_FUNCTION T sp_sub_ints(T a, T b)
{
    return (T)((U)a - (U)b);
}
template <class T, class U> SP_CUDA_FUNCTION T sp_mul_ints(T a, T b)
{
    return (T)((U)a * (U)b);
}
template <class T, class U> SP_CUDA_FUNCTION T sp_div_ints(T a, T b)
{
    if (b == 0) return 0;
    return b == -1 ? sp_sub_ints<T, U>(0, a) : a / b;
}

#define SP_BINARY_KERNEL(name, ...)                                                                \
    SP_CUDA_KERNEL(name, sp_binary_constants)                                                      \
    {                                                                                              \
        sp_binary<__VA_ARGS__>(bindings, k);                                                       \
    }

SP_BINARY_KERNEL(add_f32, float, sp_add_floats)
SP_BINARY_KERNEL(sub_f32, float, sp_sub_floats)
SP_BINARY_KERNEL(mul_f32, float, sp_mul_floats)
SP_BINARY_KERNEL(div_f32, float, sp_div_floats)

#define SP_INT_KERNELS(suffix, type, unsigned_type)                                                \
    SP_BINARY_KERNEL(add_##suffix, type, sp_add_ints<type, unsigned_type>)                         \
    SP_BINARY_KERNEL(sub_##suffix, type, sp_sub_ints<type, unsigned_type>)                         \
    SP_BINARY_KERNEL(mul_##suffix, type, sp_mul_ints<type, unsigned_type>)                         \
    SP_BINARY_KERNEL(div_##suffix, type, sp_div_ints<type, unsigned_type>)

SP_INT_KERNELS(i32, int32_t, uint32_t)
SP_INT_KERNELS(i64, int64_t, uint64_t)
