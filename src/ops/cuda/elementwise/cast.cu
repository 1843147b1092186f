/* SPDX-License-Identifier: Apache-2.0 */
/* Casts between all element types (ops/cpu/elementwise/cast.c). An element is loaded as a float, a
 * double, an int64_t or a uint64_t, which represent every number of its type exactly. */

/* To a float that is then rounded to 16 bits. */
SP_CUDA_FUNCTION sp_f32 sp_to_odd(sp_f32 x)
{
    return x;
}
SP_CUDA_FUNCTION sp_f32 sp_to_odd(sp_f64 x)
{
    return sp_odd_float_of_f64(x);
}
SP_CUDA_FUNCTION sp_f32 sp_to_odd(int64_t x)
{
    return sp_odd_float_of_f64(sp_sticky_f64_of_i64(x));
}
SP_CUDA_FUNCTION sp_f32 sp_to_odd(uint64_t x)
{
    return sp_odd_float_of_f64(sp_sticky_f64_of_u64(x));
}

/* The number without its class. */
SP_CUDA_FUNCTION float sp_plain(sp_f32 x)
{
    return x.v;
}
SP_CUDA_FUNCTION double sp_plain(sp_f64 x)
{
    return x.v;
}
SP_CUDA_FUNCTION int64_t sp_plain(int64_t x)
{
    return x;
}
SP_CUDA_FUNCTION uint64_t sp_plain(uint64_t x)
{
    return x;
}

/* To an integer: of floats towards zero, outside the type its nearest end, NaN 0; of integers the
 * low bits. */
template <class To, class From> SP_CUDA_FUNCTION To sp_saturated(From x)
{
    /* The largest value of the type plus 1 is a power of two, so a float. */
    const From above = (From)(sp_limits<To>::most() / 2 + 1) * 2;
    if (x >= above) return sp_limits<To>::most();
    if (x <= (From)sp_limits<To>::least()) return sp_limits<To>::least();
    return x == x ? (To)x : (To)0;
}

template <class To> struct sp_cast_to {
    SP_CUDA_MEMBER To from(sp_f32 x)
    {
        return sp_saturated<To>(x.v);
    }
    SP_CUDA_MEMBER To from(sp_f64 x)
    {
        return sp_saturated<To>(x.v);
    }
    SP_CUDA_MEMBER To from(int64_t x)
    {
        return (To)x;
    }
    SP_CUDA_MEMBER To from(uint64_t x)
    {
        return (To)x;
    }
};
template <> struct sp_cast_to<float> {
    template <class From> SP_CUDA_MEMBER float from(From x)
    {
        return sp_store(sp_f32((float)sp_plain(x)));
    }
};
template <> struct sp_cast_to<double> {
    template <class From> SP_CUDA_MEMBER double from(From x)
    {
        return sp_store(sp_f64((double)sp_plain(x)));
    }
};
template <> struct sp_cast_to<sp_f16> {
    template <class From> SP_CUDA_MEMBER sp_f16 from(From x)
    {
        return sp_to_f16(sp_to_odd(x));
    }
};
template <> struct sp_cast_to<sp_bf16> {
    template <class From> SP_CUDA_MEMBER sp_bf16 from(From x)
    {
        return sp_to_bf16(sp_to_odd(x));
    }
};
template <> struct sp_cast_to<bool> {
    template <class From> SP_CUDA_MEMBER bool from(From x)
    {
        return x != 0;
    }
};

/* How an element is loaded. */
SP_CUDA_FUNCTION sp_f32 sp_carry(float x)
{
    return x;
}
SP_CUDA_FUNCTION sp_f64 sp_carry(double x)
{
    return x;
}
SP_CUDA_FUNCTION sp_f32 sp_carry(sp_f16 x)
{
    return sp_load(x);
}
SP_CUDA_FUNCTION sp_f32 sp_carry(sp_bf16 x)
{
    return sp_load(x);
}
#define SP_CARRIED(T, carrier)                                                                     \
    SP_CUDA_FUNCTION carrier sp_carry(T x)                                                         \
    {                                                                                              \
        return x;                                                                                  \
    }
SP_CARRIED(int8_t, int64_t)
SP_CARRIED(int16_t, int64_t)
SP_CARRIED(int32_t, int64_t)
SP_CARRIED(int64_t, int64_t)
SP_CARRIED(uint8_t, uint64_t)
SP_CARRIED(uint16_t, uint64_t)
SP_CARRIED(uint32_t, uint64_t)
SP_CARRIED(uint64_t, uint64_t)

/* A byte as a bool: 0 or 1. */
struct sp_logical {
    uint8_t byte;
};
SP_CUDA_FUNCTION uint64_t sp_carry(sp_logical x)
{
    return x.byte != 0;
}

template <class From, class To>
SP_CUDA_FUNCTION void sp_cast_elements(const sp_gpu_bindings &bindings, int64_t count)
{
    sp_map<From, To>(bindings, count, [](From x) { return sp_cast_to<To>::from(sp_carry(x)); });
}

template <class From>
SP_CUDA_FUNCTION void sp_cast(const sp_gpu_bindings &bindings, const sp_cast_constants &k)
{
    if (k.to == SP_CODE_F32) sp_cast_elements<From, float>(bindings, k.count);
    if (k.to == SP_CODE_F64) sp_cast_elements<From, double>(bindings, k.count);
    if (k.to == SP_CODE_F16) sp_cast_elements<From, sp_f16>(bindings, k.count);
    if (k.to == SP_CODE_BF16) sp_cast_elements<From, sp_bf16>(bindings, k.count);
    if (k.to == SP_CODE_I8) sp_cast_elements<From, int8_t>(bindings, k.count);
    if (k.to == SP_CODE_I16) sp_cast_elements<From, int16_t>(bindings, k.count);
    if (k.to == SP_CODE_I32) sp_cast_elements<From, int32_t>(bindings, k.count);
    if (k.to == SP_CODE_I64) sp_cast_elements<From, int64_t>(bindings, k.count);
    if (k.to == SP_CODE_U8) sp_cast_elements<From, uint8_t>(bindings, k.count);
    if (k.to == SP_CODE_U16) sp_cast_elements<From, uint16_t>(bindings, k.count);
    if (k.to == SP_CODE_U32) sp_cast_elements<From, uint32_t>(bindings, k.count);
    if (k.to == SP_CODE_U64) sp_cast_elements<From, uint64_t>(bindings, k.count);
    if (k.to == SP_CODE_BOOL) sp_cast_elements<From, bool>(bindings, k.count);
}

#define SP_CAST_KERNEL(suffix, From)                                                               \
    SP_CUDA_KERNEL(cast_##suffix, sp_cast_constants)                                               \
    {                                                                                              \
        sp_cast<From>(bindings, k);                                                                \
    }

SP_CAST_KERNEL(f32, float)
SP_CAST_KERNEL(f64, double)
SP_CAST_KERNEL(f16, sp_f16)
SP_CAST_KERNEL(bf16, sp_bf16)
SP_CAST_KERNEL(i8, int8_t)
SP_CAST_KERNEL(i16, int16_t)
SP_CAST_KERNEL(i32, int32_t)
SP_CAST_KERNEL(i64, int64_t)
SP_CAST_KERNEL(u8, uint8_t)
SP_CAST_KERNEL(u16, uint16_t)
SP_CAST_KERNEL(u32, uint32_t)
SP_CAST_KERNEL(u64, uint64_t)
SP_CAST_KERNEL(bool, sp_logical)
