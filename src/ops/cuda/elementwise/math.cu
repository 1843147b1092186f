/* SPDX-License-Identifier: Apache-2.0 */
/* Functions and comparisons of f32, logic, selection, and the gates of fused steps. */

SP_FLOAT_KERNELS(f32, sp_f32, float)
SP_FLOAT_BINARY(pow_f32, sp_f32, float, sp_powf)
SP_FLOAT_BINARY(fmod_f32, sp_f32, float, sp_fmod)

/* x * tanh(log(1 + e^x)), without the logarithm: tanh(log u) = (u^2 - 1) / (u^2 + 1). */
SP_CUDA_FUNCTION sp_f32 sp_mish(sp_f32 x)
{
    const sp_f32 e = sp_exp(x > 20.0f ? sp_f32(20.0f) : x), n = e * (e + 2.0f);
    return x > 20.0f ? x : x * (n / (n + 2.0f));
}

SP_CUDA_FUNCTION sp_f32 sp_gelu(sp_f32 x)
{
    return sp_f32(0.5f) * x * (sp_f32(1.0f) + sp_erff(x * 0.707106781f));
}

SP_CUDA_FUNCTION sp_f32 sp_gelu_tanh(sp_f32 x)
{
    const sp_f32 inner = sp_f32(0.797884561f) * (x + sp_f32(0.044715f) * (x * x * x));
    return sp_f32(0.5f) * x * (sp_f32(1.0f) + sp_tanhf(inner));
}

SP_FLOAT_UNARY(erf_f32, sp_f32, float, sp_erff)
SP_FLOAT_UNARY(softplus_f32, sp_f32, float, sp_softplusf)
SP_FLOAT_UNARY(mish_f32, sp_f32, float, sp_mish)
SP_FLOAT_UNARY(gelu_f32, sp_f32, float, sp_gelu)
SP_FLOAT_UNARY(gelu_tanh_f32, sp_f32, float, sp_gelu_tanh)

SP_CUDA_FUNCTION sp_f32 sp_elu(sp_f32 x, sp_f32 alpha, sp_f32)
{
    return x < 0 ? alpha * sp_expm1f(x) : x;
}

/* beta is ONNX's gamma. */
SP_CUDA_FUNCTION sp_f32 sp_selu(sp_f32 x, sp_f32 alpha, sp_f32 beta)
{
    return beta * (x < 0 ? alpha * sp_expm1f(x) : x);
}

SP_CUDA_FUNCTION sp_f32 sp_celu(sp_f32 x, sp_f32 alpha, sp_f32)
{
    return x < 0 ? alpha * sp_expm1f(x / alpha) : x;
}

SP_FLOAT_FUNCTION(elu_f32, sp_f32, float, sp_elu)
SP_FLOAT_FUNCTION(selu_f32, sp_f32, float, sp_selu)
SP_FLOAT_FUNCTION(celu_f32, sp_f32, float, sp_celu)

/* ---- bools: every byte but 0 is true ---- */

SP_CUDA_FUNCTION uint8_t sp_and(uint8_t a, uint8_t b)
{
    return a != 0 && b != 0;
}
SP_CUDA_FUNCTION uint8_t sp_or(uint8_t a, uint8_t b)
{
    return (a | b) != 0;
}
SP_CUDA_FUNCTION uint8_t sp_xor(uint8_t a, uint8_t b)
{
    return (a != 0) != (b != 0);
}
SP_CUDA_FUNCTION uint8_t sp_same(uint8_t a, uint8_t b)
{
    return (a != 0) == (b != 0);
}
SP_CUDA_FUNCTION uint8_t sp_not(uint8_t x)
{
    return x == 0;
}

SP_BINARY_KERNEL(and_bool, uint8_t, uint8_t, sp_and)
SP_BINARY_KERNEL(or_bool, uint8_t, uint8_t, sp_or)
SP_BINARY_KERNEL(xor_bool, uint8_t, uint8_t, sp_xor)
SP_BINARY_KERNEL(equal_bool, uint8_t, uint8_t, sp_same)
SP_UNARY_KERNEL(not_bool, uint8_t, uint8_t, sp_not)

/* ---- selection, by the bits of an element ---- */

template <class T>
SP_CUDA_FUNCTION void sp_select(const sp_gpu_bindings &bindings, const sp_select_constants &k)
{
    const uint8_t *condition = (const uint8_t *)bindings.at[0];
    const T *x = (const T *)bindings.at[1], *y = (const T *)bindings.at[2];
    T *out = (T *)bindings.at[3];
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < k.count; i += sp_thread_stride()) {
        int64_t rest = i, c_at = 0, x_at = 0, y_at = 0;
#pragma unroll 1
        for (uint32_t d = k.rank; d-- > 0;) {
            const int64_t at = d > 0 ? sp_take_coordinate(&rest, k.dims[d]) : rest;
            c_at += at * k.condition[d];
            x_at += at * k.x[d];
            y_at += at * k.y[d];
        }
        out[i] = condition[c_at] != 0 ? x[x_at] : y[y_at];
    }
}

#define SP_SELECT_KERNEL(name, T)                                                                  \
    SP_CUDA_KERNEL(name, sp_select_constants)                                                      \
    {                                                                                              \
        sp_select<T>(bindings, k);                                                                 \
    }

SP_SELECT_KERNEL(where_8, uint8_t)
SP_SELECT_KERNEL(where_16, uint16_t)
SP_SELECT_KERNEL(where_32, uint32_t)
SP_SELECT_KERNEL(where_64, uint64_t)

/* ---- gates (ops/cpu/elementwise/gate.c) ---- */

SP_CUDA_FUNCTION sp_f32 sp_erf_gate(sp_f32 x, const sp_gate_constants &k)
{
    return x * (sp_erff(x / k.divisor) + k.addend) * k.factor;
}

SP_CUDA_FUNCTION sp_f32 sp_clip_gate(sp_f32 x, const sp_gate_constants &k)
{
    return x * sp_clip<sp_f32>(x + k.addend, k.low, k.high) / k.divisor;
}

SP_CUDA_FUNCTION sp_f32 sp_hard_sigmoid_gate(sp_f32 x, const sp_gate_constants &k)
{
    return x * sp_hard_sigmoid<sp_f32>(x, k.scale, k.addend);
}

SP_CUDA_FUNCTION sp_f32 sp_softplus_gate(sp_f32 x, const sp_gate_constants &)
{
    return x * sp_tanhf(sp_softplusf(x));
}

SP_CUDA_FUNCTION sp_f32 sp_tanh_gate(sp_f32 x, const sp_gate_constants &k)
{
    const sp_f32 cube = x * (x * (sp_f32(k.cube) * x));
    const sp_f32 gate = sp_f32(k.addend) + sp_tanhf(sp_f32(k.scale) * (x + cube));
    return x * (sp_f32(k.factor) * gate);
}

#define SP_GATE_KERNEL(name, function)                                                             \
    SP_CUDA_KERNEL(name, sp_gate_constants)                                                        \
    {                                                                                              \
        sp_map<float, float>(bindings, k.count,                                                    \
                             [&](float x) { return sp_store(function(x, k)); });                   \
    }

SP_GATE_KERNEL(erf_gate_f32, sp_erf_gate)
SP_GATE_KERNEL(clip_gate_f32, sp_clip_gate)
SP_GATE_KERNEL(hard_sigmoid_gate_f32, sp_hard_sigmoid_gate)
SP_GATE_KERNEL(softplus_gate_f32, sp_softplus_gate)
SP_GATE_KERNEL(tanh_gate_f32, sp_tanh_gate)
