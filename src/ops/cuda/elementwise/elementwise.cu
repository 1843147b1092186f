/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of f32, i32 and i64, and the functions of f32 that most models have. */

#define SP_CANONICAL_UNARY(name, function)                                                         \
    SP_CUDA_FUNCTION float sp_canonical_##name(float x)                                            \
    {                                                                                              \
        return sp_store(function(x));                                                          \
    }                                                                                              \
    SP_UNARY_KERNEL(name##_f32, float, float, sp_canonical_##name)

SP_CANONICAL_UNARY(relu, sp_reluf)
SP_CANONICAL_UNARY(sigmoid, sp_sigmoidf)
SP_CANONICAL_UNARY(tanh, sp_tanhf)
SP_CANONICAL_UNARY(exp, sp_expf)

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

#define SP_ACTIVATED_KERNEL(name, function)                                                        \
    SP_CUDA_KERNEL(name, sp_binary_constants)                                                      \
    {                                                                                              \
        sp_map_pairs<float, float>(bindings, k, [&](float a, float b) {                            \
            return sp_activate(k.activation, function(a, b));                                      \
        });                                                                                        \
    }

SP_ACTIVATED_KERNEL(add_f32, sp_add_floats)
SP_ACTIVATED_KERNEL(sub_f32, sp_sub_floats)
SP_ACTIVATED_KERNEL(mul_f32, sp_mul_floats)
SP_ACTIVATED_KERNEL(div_f32, sp_div_floats)

#define SP_INT_KERNELS(suffix, type, unsigned_type)                                                \
    SP_BINARY_KERNEL(add_##suffix, type, type, sp_add_ints<type, unsigned_type>)                   \
    SP_BINARY_KERNEL(sub_##suffix, type, type, sp_sub_ints<type, unsigned_type>)                   \
    SP_BINARY_KERNEL(mul_##suffix, type, type, sp_mul_ints<type, unsigned_type>)                   \
    SP_BINARY_KERNEL(div_##suffix, type, type, sp_div_ints<type, unsigned_type>)

SP_INT_KERNELS(i32, int32_t, uint32_t)
SP_INT_KERNELS(i64, int64_t, uint64_t)
